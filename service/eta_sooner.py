"""Other ways to ask of a waiting workload: fewer GPUs, another flavor or queue, another hour."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from analytics.eta.estimate import Estimate
from analytics.eta.replay import ask_of
from analytics.eta.sooner import Option, Way, off_peak
from analytics.eta.waits import FOREVER_MS, Ask, size_bucket
from analytics.why.nodes import Gang, PodSet
from analytics.why.placement import place
from analytics.why.quota import Request
from analytics.why.reason import Explanation, Reason
from domain.placement import Placement
from domain.quantity import MICRO_PER_GPU
from domain.workload import State
from service.eta_waits import Known as KnownWaits
from service.why_facts import Known
from service.why_nodes import placement_of
from service.why_search import Search

_AGAIN: Final = "it is submitted anew, and waits from the beginning"
# Half, a quarter, an eighth.
_PARTS: Final = (2, 4, 8)


@dataclass(frozen=True, slots=True)
class Ways:
    """What one waiting workload might do."""

    search: Search
    known: Known
    waits: KnownWaits
    answer: Explanation

    def options(self) -> Iterator[Option]:
        """All of them, good or not; where its pods are not alike, those that leave them as they are."""
        gang = self._gang()
        if len(gang.pod_sets) == 1:
            yield from self._fewer(gang.pod_sets[0], gang)
            yield from self._flavors(gang.pod_sets[0], gang)
        yield from self._queues()
        yield from self._hours()

    def _ask(self) -> Ask | None:
        """As it would ask if it was submitted now."""
        at = self.waits.place.get(str(self.known.course["uid"]))
        if at is None or self.waits.waits.until_ms[at] != FOREVER_MS:
            return None
        return replace(ask_of(self.waits.waits, at), submitted_ms=self.search.as_of_ms - 1, again=False)

    def _estimate(self, *, size: int | None = None, queue: int | None = None) -> Estimate | None:
        ask = self._ask()
        if ask is None:
            return None
        if size is not None:
            ask = replace(ask, size=size)
        if queue is not None:
            ask = replace(ask, queue=queue, line=-1)
        found = self.waits.past.estimate(ask, self.search.as_of_ms)
        return found if isinstance(found, Estimate) else None

    def _fewer(self, pods: PodSet, gang: Gang) -> Iterator[Option]:
        micro_gpus = self.known.course["requested_micro_gpus"]
        for part in _PARTS:
            smaller = _part(pods, part)
            if smaller is None or not micro_gpus or micro_gpus < part * MICRO_PER_GPU:
                return
            gpus = micro_gpus / part / MICRO_PER_GPU
            bucket = int(size_bucket(np.array([micro_gpus // part]))[0])
            # Where there is room for all of it, to ask for less brings it no nearer.
            fits = (
                None
                if self._has_room(gang)
                else self._fits(replace(gang, pod_sets=(smaller,)), self._request(part=part))
            )
            yield Option(
                way=Way.FEWER_GPUS,
                what=f"Ask for {gpus:g} GPU{'s' * (gpus != 1)} instead of {micro_gpus / MICRO_PER_GPU:g}",
                assumes=f"it can work with {gpus:g}, for longer; {_AGAIN}",
                fits_now=fits,
                estimate=self._estimate(size=bucket),
            )
            if fits:
                return

    def _flavors(self, pods: PodSet, gang: Gang) -> Iterator[Option]:
        """Flavors of its queue that its selector leaves out; what waits there for them is not told apart."""
        wanted = pods.placement
        queue = str(self.known.course["queue"])
        if wanted is None or not (wanted.labels or wanted.terms):
            return
        free = Placement(tolerations=wanted.tolerations)
        for flavor, wants in self._flavors_of(queue, pods.devices).items():
            if all(wants.labels.get(name) == value for name, value in wanted.labels.items()):
                continue
            there = replace(pods, placement=free, flavors=(wants,))
            if self._fits(replace(gang, pod_sets=(there,)), self._request(flavor=flavor)):
                yield Option(
                    way=Way.FLAVOR,
                    what=f"Ask for flavor {flavor} of queue {queue}",
                    assumes=f"it runs on those GPUs as well, and selects them; {_AGAIN}",
                    fits_now=True,
                )

    def _flavors_of(self, queue: str, devices: Mapping[str, int]) -> dict[str, Placement]:
        return {
            row["flavor"]: placement_of(row["wants"])
            for row in self.search.site.flavor_rows
            if row["queue"] == queue and row["resource"] in devices
        }

    def _queues(self) -> Iterator[Option]:
        """Other doors of its namespace, as far as they are open."""
        site, own = self.search.site, str(self.known.course["queue"])
        for (namespace, door), body in sorted(site.local_queues.items()):
            queue = body.cluster_queue
            if namespace != self.known.course["namespace"] or queue in ("", own):
                continue
            if queue not in site.cluster_queues or site.stopped(namespace, door, queue):
                continue
            gang = self._gang()
            moved = tuple(
                replace(
                    pods,
                    flavors=tuple(
                        wants for one in pods.devices for wants in site.flavors.get((queue, one), ())
                    ),
                )
                for pods in gang.pod_sets
            )
            yield Option(
                way=Way.QUEUE,
                what=f"Submit it to local queue {door}",
                assumes=f"its work may be charged to queue {queue}; {_AGAIN}",
                fits_now=self._fits(replace(gang, pod_sets=moved), self._request(queue=queue)),
                estimate=self._estimate(queue=self.waits.queues.get(queue, -1)),
            )

    def _hours(self) -> Iterator[Option]:
        ask = self._ask()
        found = off_peak(self.waits.past, ask, self.search.as_of_ms) if ask else None
        if found is not None:
            hours, estimate = found
            yield Option(
                way=Way.OFF_PEAK,
                what=f"Next time, submit it on {hours}",
                assumes="the next weeks are as the last four; its wait is counted from then",
                estimate=estimate,
            )

    def _request(self, *, part: int = 1, flavor: str = "", queue: str = "") -> Request | None:
        """What it would ask of quota; None where no quota of Kueue is asked."""
        queue = queue or str(self.known.course["queue"])
        if self.known.kueue is None or queue not in self.search.site.cluster_queues:
            return None
        request = self.search.request(queue, self.known.kueue)
        sets = tuple(
            replace(
                one,
                amounts={name: amount // part for name, amount in one.amounts.items()},
                flavors=frozenset({flavor}) if flavor else one.flavors,
            )
            for one in request.pod_sets
        )
        return Request(queue=queue, pod_sets=sets)

    def _fits(self, gang: Gang, request: Request | None) -> bool | None:
        """
        Whether there are room and quota for it now, and nobody before it whom the queue lets nobody pass.

        Who else waits for them is not asked. None where neither is what it waits for.
        """
        is_behind = any(one.reason is Reason.BEHIND_IN_QUEUE for one in self.answer.findings)
        if self.known.state is State.CHECKING or (not is_behind and self._has_room(self._gang())):
            return None
        if request is not None and self.search.is_blocked(self.known, request.queue):
            return False
        return self._is_free(gang, request)

    def _gang(self) -> Gang:
        return self.known.gang(self.search.site)

    def _has_room(self, gang: Gang) -> bool:
        """Whether there are room and quota for it as it is, or it has them."""
        return self.known.state is State.CHECKING or self._is_free(gang, self._request())

    def _is_free(self, gang: Gang, request: Request | None) -> bool:
        if request is not None and self.search.site.quota.findings(request):
            return False
        if not gang.pod_sets or place(gang, self.search.site.stock):
            return False
        return self.search.lets_in(self.known, gang)


def _part(pods: PodSet, part: int) -> PodSet | None:
    """A part of it: fewer pods, or less for a single one; None where devices cannot be parted so."""
    if pods.pods % part == 0:
        return replace(pods, pods=pods.pods // part)
    if pods.pods == 1 and all(each % part == 0 for each in pods.devices.values()):
        return replace(
            pods,
            devices={name: each // part for name, each in pods.devices.items()},
            others={name: -(-each // part) for name, each in pods.others.items()},
        )
    return None
