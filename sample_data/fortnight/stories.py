"""What happens beside the ordinary work: the arranged stories that the demo tells."""

from dataclasses import dataclass, field
from functools import partial
from random import Random

from sample_data.agenda import Agenda
from sample_data.fortnight.controllers import JobSide
from sample_data.fortnight.demand import MS_PER_DAY, MS_PER_HOUR, MS_PER_MINUTE, Course, Demand, Request, Work
from sample_data.fortnight.kubelets import Kubelets
from sample_data.fortnight.lives import Json, Life, LivePod
from sample_data.fortnight.papers import Scribe
from sample_data.fortnight.site import GPU, Kind, Limit, Site
from sample_data.fortnight.standing import resource_groups
from sample_data.parts import set_condition

NEVER_FITS = "never_fits"
CRASH_LOOP = "crash_loop"
CRASHES_AGAIN = "crashes_again"
LONG_WAIT = "waits_for_its_own_quota"
BOUND_ONE_BY_ONE = "binds_one_by_one"
_A100: Kind = ("a100", GPU)
# Jobs of the new model in a whole fortnight.
_CRASHING = 19
_UNREADY_AFTER_MS = 40_000
_EVICTED_AFTER_MS = 340_000
_GONE_AFTER_MS = 900_000


@dataclass(slots=True, kw_only=True)
class Stories:
    """
    Plans what is done to nodes, quotas and namespaces; `parts` of the recording from 0 to 1 say when.

    For the truth it keeps when which quota was written, what each node offered, when which node's
    exporter was dark, and when which card fell off the bus.
    """

    agenda: Agenda
    scribe: Scribe
    rng: Random
    site: Site
    objects: dict[tuple[str, str], Json]
    kubelets: Kubelets
    jobs: JobSide
    start_ms: int
    end_ms: int
    quotas: list[Json] = field(default_factory=list)
    capacity: list[Json] = field(default_factory=list)
    dark: list[Json] = field(default_factory=list)
    fallen_ms: dict[str, int] = field(default_factory=dict)

    def plan(self) -> None:
        """Everything at its time."""
        for flavor in self.site.flavors.values():
            for node in flavor.nodes:
                self._offers(self.start_ms, node, open_=True)
        for queue in self.site.queues:
            for kind, limit in queue.quotas.items():
                self._owns(self.start_ms, queue.name, kind, limit)
        a100, h100 = self.site.flavors["a100"].nodes, self.site.flavors["h100"].nodes
        cordoned = a100[2]
        self.agenda.at(self._part(0.30), partial(self._cordon, cordoned, closes=True))
        self.agenda.at(self._part(0.38), partial(self._cordon, cordoned, closes=False))
        self.agenda.at(self._part(0.52), self._lose_a_node)
        self.agenda.at(self._part(0.64), partial(self._gpu_fails, h100[-1]))
        self.agenda.at(self._part(0.57), self._move_quota)
        self.agenda.at(self._part(0.66), self._relabel)
        for part, node, minutes in (
            (0.22, a100[0], 190),
            (0.41, h100[0], 45),
            (0.73, a100[1], 12),
            (0.9, a100[0], 70),
        ):
            self._is_dark(node, self._part(part), self._part(part) + minutes * MS_PER_MINUTE)

    def requests(self, demand: Demand) -> list[Request]:
        """The arranged work: a request that fits nowhere, crash loops, one gang bound pod by pod."""
        h100 = len(self.site.flavors["h100"].nodes)

        def job(name: str, part: float, **more: object) -> Request:
            usual: dict[str, object] = {
                "namespace": "ads",
                "user": "kofi",
                "priority_class": "batch",
                "flavor": "a100",
                "resource": GPU,
                "gpus": 1,
                "run_ms": 6 * MS_PER_HOUR,
                "work": Work.TRAINS,
            }
            return Request(name=demand.name(name), submit_ms=self._part(part), **(usual | more))  # type: ignore[arg-type]

        found = [
            job("colossus", 0.45, priority_class="best-effort", gpus=8, pods=64, mark=NEVER_FITS),
            job("sharded", 0.2, namespace="vision", user="bo", gpus=4, pods=2, binds_one_by_one=True,
                mark=BOUND_ONE_BY_ONE),
        ]  # fmt: skip
        days = (self.end_ms - self.start_ms) / MS_PER_DAY
        loops = max(2, round(days))
        found += [
            job(
                "ranker",
                0.04 + 0.92 * number / loops,
                gpus=self.rng.choice((1, 2)),
                course=Course.CRASH_LOOPS,
                crash_after_ms=self.rng.randint(12, 40) * MS_PER_MINUTE,
                crashes=self.rng.randint(4, 13),
                mark=CRASH_LOOP,
            )
            for number in range(loops)
        ]
        # A new model of the wasteful team: in the second week it crashes again and again, and saves nothing.
        crashing = max(2, round(_CRASHING * demand.share))
        found += [
            job(
                "ctr-v2",
                0.475 + 0.475 * number / crashing,
                user=self.rng.choice(("ines", "kofi", "lars")),
                priority_class="training",
                gpus=4,
                run_ms=90 * MS_PER_MINUTE,
                course=Course.RETRIES,
                crash_after_ms=self.rng.randint(60, 115) * MS_PER_MINUTE,
                crashes=self.rng.randint(3, 5),
                mark=CRASHES_AGAIN,
            )
            for number in range(crashing)
        ]
        # Its own quota, all of it, while the others have borrowed it for days.
        found.append(
            job("conformer", 0.35, namespace="speech", user="jun", priority_class="training", gpus=8,
                pods=max(1, self._quota("speech") // 8), run_ms=30 * MS_PER_HOUR,
                checkpoint_ms=MS_PER_HOUR, mark=LONG_WAIT)
        )  # fmt: skip
        found.append(
            job("foundation", 0.02, namespace="nlp", user="emil", priority_class="training",
                flavor="h100", gpus=8, pods=max(1, h100 // 4), run_ms=round(0.3 * days * 24) * MS_PER_HOUR,
                checkpoint_ms=2 * MS_PER_HOUR)
        )  # fmt: skip
        return found

    def _part(self, part: float) -> int:
        return self.start_ms + round(part * (self.end_ms - self.start_ms))

    def _quota(self, team: str) -> int:
        return next(one for one in self.site.queues if one.name == team).quotas[_A100].nominal

    def _offers(self, at_ms: int, node: str, *, open_: bool, missing: int = 0, gone: bool = False) -> None:
        self.capacity.append(
            {"at": at_ms / 1000, "node": node, "schedulable": open_, "missing": missing, "gone": gone}
        )

    def _owns(self, at_ms: int, queue: str, kind: Kind, limit: Limit) -> None:
        self.quotas.append(
            {
                "at": at_ms / 1000,
                "queue": queue,
                "flavor": kind[0],
                "resource": kind[1],
                "nominal": limit.nominal,
                "borrowing": limit.borrowing,
                "lending": limit.lending,
            }
        )

    def _is_dark(self, node: str, from_ms: int, to_ms: int) -> None:
        """Its exporter does not answer."""
        self.dark.append({"node": node, "from": from_ms / 1000, "to": to_ms / 1000})

    def _cordon(self, node: str, at_ms: int, *, closes: bool) -> None:
        obj = self.objects["nodes", node]
        obj["spec"] = {"unschedulable": True} if closes else {}
        closed = self.kubelets.machines.closed
        (closed.add if closes else closed.discard)(node)
        self.scribe.write(at_ms, "nodes", obj)
        self._offers(at_ms, node, open_=not closes)
        self.agenda.at(at_ms + 20, self.kubelets.schedule)

    def _lose_a_node(self, at_ms: int) -> None:
        """The power of a node is out: its pods are evicted after five minutes, then it is removed."""
        node = self._node_to_lose()
        if node is None:
            self.agenda.at(at_ms + 30 * MS_PER_MINUTE, self._lose_a_node)
            return
        self.kubelets.machines.closed.add(node)
        hit = self._on(node)
        for _, pod in hit:
            pod.lost = True
        self.agenda.at(at_ms + _UNREADY_AFTER_MS, partial(self._unready, node))
        self.agenda.at(at_ms + _EVICTED_AFTER_MS, partial(self._taint_evicts, hit))
        self.agenda.at(at_ms + _GONE_AFTER_MS, partial(self._node_gone, node, hit))
        self._is_dark(node, at_ms, self.end_ms)

    def _node_to_lose(self) -> str | None:
        """The A100 node with the most jobs, all of one pod: what a lost member means is another story."""
        found = []
        for node in self.site.flavors["a100"].nodes:
            lives = [life for life, _ in self._on(node)]
            simple = all(
                life.request.pods == 1
                and not life.bare
                and life.request.course is Course.SUCCEEDS
                and life.may_be_evicted
                and life.first_running_ms is not None
                for life in lives
            )
            if lives and simple and node not in self.kubelets.machines.closed:
                found.append((len(lives), node))
        return max(found)[1] if found else None

    def _on(self, node: str) -> list[tuple[Life, LivePod]]:
        return [
            (life, pod)
            for life in self.jobs.lives
            for pod in life.current()
            if pod.node == node and pod.holds
        ]

    def _unready(self, node: str, at_ms: int) -> None:
        obj = self.objects["nodes", node]
        unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        conditions = obj["status"]["conditions"]
        set_condition(conditions, at_ms, {**unknown, "message": "Kubelet stopped posting node status."})
        self.scribe.write(at_ms, "nodes", obj)
        self._offers(at_ms, node, open_=False)

    def _taint_evicts(self, hit: list[tuple[Life, LivePod]], at_ms: int) -> None:
        for life, pod in hit:
            pod.deletion_ms = pod.drained_from_ms = at_ms
            target = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
            set_condition(pod.conditions, at_ms, {**target, "message": "Taint manager: deleting"})
            self.scribe.pod(life, pod, at_ms)

    def _node_gone(self, node: str, hit: list[tuple[Life, LivePod]], at_ms: int) -> None:
        self.scribe.write(at_ms, "nodes", self.objects["nodes", node], gone=True)
        self._offers(at_ms, node, open_=False, gone=True)
        self.kubelets.machines.lose(node)
        for life, pod in hit:
            self.kubelets.lose(life, pod, at_ms)
            self.agenda.at(at_ms + 1_500, partial(self.jobs.replace, life))

    def _gpu_fails(self, node: str, at_ms: int) -> None:
        """A free card of the node falls off the bus; the device plugin takes it out of what is offered."""
        machines = self.kubelets.machines
        free = machines.free.get((node, GPU), [])
        if not free or node in machines.closed:
            self.agenda.at(at_ms + 20 * MS_PER_MINUTE, partial(self._gpu_fails, node))
            return
        device = free.pop()
        machines.broken.add(device)
        self.fallen_ms[device.uuid] = at_ms
        obj = self.objects["nodes", node]
        obj["status"]["allocatable"][GPU] = str(int(obj["status"]["allocatable"][GPU]) - 1)
        self.scribe.write(at_ms, "nodes", obj)
        self._offers(at_ms, node, open_=True, missing=1)

    def _move_quota(self, at_ms: int) -> None:
        """A person gives a fifth of vision's A100 to nlp."""
        moved = max(1, self._quota("vision") // 5)
        for team, change in (("vision", -moved), ("nlp", moved)):
            limits = self.jobs.quotas.limits
            old = limits[team, _A100]
            new = Limit(nominal=old.nominal + change, borrowing=old.borrowing, lending=old.lending)
            self.jobs.quotas.edit(team, _A100, new)
            obj = self.objects["clusterqueues", team]
            kinds = {kind: limit for (name, kind), limit in limits.items() if name == team}
            obj["spec"]["resourceGroups"] = resource_groups(kinds)
            obj["metadata"]["generation"] += 1
            self.scribe.write(at_ms, "clusterqueues", obj)
            self._owns(at_ms, team, _A100, new)
        self.agenda.at(at_ms + 10, self.jobs.cycle)

    def _relabel(self, at_ms: int) -> None:
        """The namespace `atlas` moves from vision to nlp; its local queue stays vision's."""
        self.jobs.teams["atlas"] = "nlp"
        obj = self.objects["namespaces", "atlas"]
        obj["metadata"]["labels"]["team"] = "nlp"
        self.scribe.write(at_ms, "namespaces", obj)
