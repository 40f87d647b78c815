"""Small sites of Kueue in plain words, and what their quota allows, told from the sums of every cohort."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from analytics.fairness.kueue_shares import KueueSite, kueue_sites
from analytics.why.order import Waiting
from analytics.why.quota import KueueQuota, PodSetAsk, Request
from domain.metric import Row

GPU, CPU = "nvidia.com/gpu", "cpu"
FLAVORS = ("a100", "h100")
# Where CPUs have flavors of their own, they have this one.
PLAIN = "plain"
Kind = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Of one flavor and resource."""

    nominal: int
    borrow: int | None = None
    lend: int | None = None


@dataclass(frozen=True, kw_only=True)
class Site:
    """Queues and cohorts with their parents and terms, and what each queue has in use."""

    parents: Mapping[str, str]
    cohorts: Mapping[str, str]
    terms: Mapping[str, Mapping[Kind, Terms]]
    used: Mapping[str, Mapping[Kind, int]] = field(default_factory=dict)

    def parent(self, name: str) -> str:
        return {**self.parents, **self.cohorts}[name]

    def below(self, name: str) -> list[str]:
        return [child for child, parent in {**self.parents, **self.cohorts}.items() if parent == name]

    def own(self, name: str, kind: Kind) -> Terms:
        return self.terms.get(name, {}).get(kind, Terms(nominal=0))

    def has(self, name: str, kind: Kind) -> int:
        """All quota below, as far as its holders do not keep it."""
        return self.own(name, kind).nominal + sum(
            self.has(child, kind) - self.keeps(child, kind) for child in self.below(name)
        )

    def keeps(self, name: str, kind: Kind) -> int:
        lend = self.own(name, kind).lend
        return 0 if lend is None or not self.parent(name) else max(0, self.has(name, kind) - lend)

    def uses(self, name: str, kind: Kind) -> int:
        """What it uses of its own, and its members use of it."""
        return self.used.get(name, {}).get(kind, 0) + sum(
            max(0, self.uses(child, kind) - self.keeps(child, kind)) for child in self.below(name)
        )

    def line(self, name: str) -> Iterator[str]:
        while name:
            yield name
            name = self.parent(name)

    def broken(self, queue: str, kind: Kind) -> list[str]:
        """Who in the line of a queue uses more than is allowed."""
        found = []
        for name in self.line(queue):
            most, borrow = self.has(name, kind), self.own(name, kind).borrow
            if self.parent(name) and borrow is None:
                continue
            if self.uses(name, kind) > most + (borrow or 0 if self.parent(name) else 0):
                found.append(name)
        return found

    def with_use(self, queue: str, amounts: Mapping[Kind, int]) -> "Site":
        before = self.used.get(queue, {})
        now = {**before, **{kind: before.get(kind, 0) + more for kind, more in amounts.items()}}
        return replace(self, used={**self.used, queue: now})

    def emptied(self) -> "Site":
        return replace(self, used={})

    def with_terms(self, name: str, kind: Kind, terms: Terms) -> "Site":
        return replace(self, terms={**self.terms, name: {**self.terms.get(name, {}), kind: terms}})

    def flavors(self, queue: str) -> list[str]:
        return [flavor for flavor in FLAVORS if (flavor, GPU) in self.terms.get(queue, {})]

    def groups(self, queue: str) -> list[tuple[list[str], list[str]]]:
        """Resources that come from one flavor, each group with its flavors."""
        has = {kind for kind in self.terms.get(queue, {}) if kind[0] != PLAIN}
        together = sorted({resource for _, resource in has})
        plain = sorted({r for f, r in self.terms.get(queue, {}) if f == PLAIN})
        return [(together, self.flavors(queue)), *([(plain, [PLAIN])] if plain else [])]

    def assigned(self, request: Request) -> dict[Kind, int] | None:
        """What the request takes: each set of pods the first flavor with enough of all of each group."""
        taken: dict[Kind, int] = {}
        for ask in request.pod_sets:
            for resources, flavors in self.groups(request.queue):
                asked = {name: ask.amounts[name] for name in resources if ask.amounts.get(name)}
                for flavor in flavors if asked else ():
                    more = {(flavor, name): amount for name, amount in asked.items()}
                    tried = self.with_use(request.queue, taken).with_use(request.queue, more)
                    if (ask.flavors is None or flavor in ask.flavors) and not any(
                        tried.broken(request.queue, kind) for kind in more
                    ):
                        taken = {
                            kind: taken.get(kind, 0) + more.get(kind, 0)
                            for kind in dict.fromkeys((*taken, *more))
                        }
                        break
                else:
                    if asked:
                        return None
        return taken

    # What the product is given.

    def site(self) -> KueueSite:
        blank: dict[str, object] = {
            "what": "", "cluster": "c", "queue": "", "parent": "", "weight_milli": 1000, "quotas": "[]",
            "flavor": "", "resources": "", "number": 0,
        }  # fmt: skip
        rows: list[Row] = []
        for what, holders in (("ClusterQueue", self.parents), ("Cohort", self.cohorts)):
            for name, parent in holders.items():
                quotas = [
                    [flavor, resource, one.nominal, one.lend, one.borrow]
                    for (flavor, resource), one in self.terms.get(name, {}).items()
                ]
                rows.append(
                    {**blank, "what": what, "queue": name, "parent": parent, "quotas": json.dumps(quotas)}
                )
        for queue, used in self.used.items():
            for (flavor, resource), amount in used.items():
                resources = json.dumps({resource: amount})
                rows.append({**blank, "what": "use", "queue": queue, "flavor": flavor, "resources": resources,
                             "number": 1})  # fmt: skip
        (site,) = kueue_sites(rows).values()
        return site

    def quota(self) -> KueueQuota:
        return KueueQuota(self.site())


@st.composite
def sites(draw: st.DrawFn) -> Site:
    cohorts = {"top": "", "left": draw(st.sampled_from(["", "top"])), "deep": "left"}
    parents = {
        f"q{n}": draw(st.sampled_from(["", *cohorts, *cohorts])) for n in range(draw(st.integers(1, 4)))
    }
    limit = st.sampled_from([None, None, 0, 2, 4])
    amounts = st.integers(0, 8)

    def terms(flavors: tuple[str, ...], resources: tuple[str, ...]) -> dict[Kind, Terms]:
        return {
            (flavor, resource): Terms(nominal=draw(amounts), borrow=draw(limit), lend=draw(limit))
            for flavor in flavors
            for resource in resources
        }

    both = draw(st.sampled_from([(GPU,), (GPU,), (GPU, CPU)]))
    found = {name: terms(draw(st.sampled_from([FLAVORS[:1], FLAVORS, FLAVORS])), both) for name in parents}
    # Kueue's queues may have CPUs in a group of their own.
    if CPU not in both and draw(st.booleans()):
        found = {name: own | terms((PLAIN,), (CPU,)) for name, own in found.items()}
    for name in cohorts:
        if draw(st.booleans()):
            found[name] = terms(draw(st.sampled_from([FLAVORS[:1], FLAVORS])), (GPU,))
    site = Site(parents=parents, cohorts=cohorts, terms=found)
    for _ in range(draw(st.integers(0, 4))):
        request = draw(requests(site))
        site = site.with_use(request.queue, site.assigned(request) or {})
    return site


@st.composite
def requests(draw: st.DrawFn, site: Site) -> Request:
    queue = draw(st.sampled_from(sorted(site.parents)))
    has_cpu = any(resource == CPU for _, resource in site.terms[queue])
    asks = tuple(
        PodSetAsk(
            amounts={GPU: draw(st.integers(1, 6))} | ({CPU: draw(st.integers(0, 6))} if has_cpu else {}),
            flavors=draw(
                st.sampled_from([None, None, frozenset([FLAVORS[0], PLAIN]), frozenset([FLAVORS[1], PLAIN])])
            ),
        )
        for _ in range(draw(st.sampled_from([1, 1, 2])))
    )
    return Request(queue=queue, pod_sets=asks)


@st.composite
def lines(draw: st.DrawFn, site: Site) -> list[Waiting]:
    """Who waits: few priorities and times, so that many are alike."""
    return [
        Waiting(uid=f"w{number}", queue=(request := draw(requests(site))).queue, request=request,
                priority=draw(st.sampled_from([0, 10])), since_ms=draw(st.integers(0, 3)))
        for number in range(draw(st.integers(1, 7)))
    ]  # fmt: skip
