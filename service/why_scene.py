"""A cluster just before an instant, kept for whoever asks next: what is the same for all that waits."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock, RLock
from typing import Any, Final, TypeAlias

from analytics.eta.calibration import Calibration, Held, held
from analytics.eta.estimate import Margins
from analytics.why.order import Waiting
from analytics.why.quota import Request
from analytics.why.reason import Finding
from domain.facts import ObjectKind
from domain.window import MS_PER_HOUR, MS_PER_MINUTE, minute_before
from service.eta_told import SHOWN_DAYS, outcome_rows, outcomes_of
from service.eta_waits import Known as KnownWaits
from service.eta_waits import known_waits
from service.why_site import Site
from store.embedded import Store

# Of whom a scene reads what they say of themselves.
_QUEUES: Final = ", ".join(
    f"'{kind}'"
    for kind in (
        ObjectKind.CLUSTER_QUEUE,
        ObjectKind.LOCAL_QUEUE,
        ObjectKind.RESOURCE_FLAVOR,
        ObjectKind.VOLCANO_QUEUE,
        ObjectKind.KAI_QUEUE,
        ObjectKind.PRIORITY_CLASS,
        ObjectKind.WORKLOAD_PRIORITY_CLASS,
        ObjectKind.RESOURCE_QUOTA,
    )
)
# One row: something else as soon as a queue, flavor, quota or priority class is told of anew, or what a
# Workload says of itself changes. What is new of a Workload decides nothing before its life is cut.
_TOLD: Final = f"""
select
    (
        select max(seq) from description
        where
            cluster = $cluster
            and (
                kind in ({_QUEUES})
                or (kind = 'Workload' and earliest_ms is not null)
            )
    ) as seq,
    (
        select bit_xor(hash(uid, gone_ms)) from object_state
        where
            cluster = $cluster
            and gone_ms is not null
            and kind in ({_QUEUES})
    ) as gone
"""  # noqa: S608 (kinds from here)

# One row: the instants around $as_of_ms, from $from_ms to $to_ms at most, between which nothing begins or
# ends that a scene is made of.
_UNCHANGED: Final = f"""
with instants as (
    select unnest([start_ms, end_ms]) as at_ms from node_device where cluster = $cluster
    union all
    select unnest([start_ms, end_ms]) as at_ms from queue_flavor where cluster = $cluster
    union all
    select unnest([start_ms, end_ms]) as at_ms from kueue_terms where cluster = $cluster
    union all
    select unnest([bound_ms, released_ms]) as at_ms
    from holding
    where cluster = $cluster and open_until_ms >= $from_ms
    union all
    select unnest([start_ms, end_ms]) as at_ms
    from quota_use
    where cluster = $cluster and open_until_ms >= $from_ms
    union all
    select unnest([start_ms, end_ms]) as at_ms
    from span
    where cluster = $cluster and open_until_ms >= $from_ms
    union all
    select unnest([submitted_ms, first_placed_ms, ended_ms, open_until_ms]) as at_ms
    from workload
    where cluster = $cluster and open_until_ms >= $from_ms
    union all
    select from_ms as at_ms
    from description
    where
        cluster = $cluster
        and from_ms >= $from_ms
        and kind in ({_QUEUES}, 'Workload')
    union all
    select unnest([at_ms, at_ms + high_ms + 1]) as at_ms from eta_told where cluster = $cluster
    union all
    select gone_ms as at_ms
    from object_state
    where
        cluster = $cluster
        and gone_ms >= $from_ms
        and kind in ({_QUEUES})
)

select
    greatest(coalesce(max(at_ms) filter (at_ms < $as_of_ms), $from_ms), $from_ms) as after_ms,
    least(coalesce(min(at_ms) filter (at_ms >= $as_of_ms), $to_ms), $to_ms) as until_ms
from instants
"""  # noqa: S608 (kinds from here)
# Now, and two instants of the past.
_MOST: Final = 3
# Amounts of each pod set by resource, and what its pods want of a node, as text.
Shape: TypeAlias = tuple[tuple[tuple[tuple[str, int], ...], str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """What came of the intervals that were told: the margins, and how many held of late, as `held` says."""

    of: Sequence[Mapping[str, Any]]
    calibration: Calibration
    held: Mapping[tuple[int, str, bool], Held]

    def margins(self, band: int, service_class: str) -> Margins:
        """Those of a band and class."""
        return self.calibration.margins(band, service_class)


class Scene:
    """
    What is there in a cluster just before an instant, and what was found out about it so far.

    Nothing of it depends on who is asked about, or on who asks. Many may have it, and one at a time uses it.
    """

    def __init__(self, store: Store, cluster: str, as_of_ms: int) -> None:
        self._store = store
        self._cluster = cluster
        self._as_of_ms = as_of_ms
        self._calibrated: Calibrated | None = None
        self.site = Site(store, cluster, as_of_ms)
        self.lock = RLock()
        # Who waits for quota: in a queue, or anywhere.
        self.lines: dict[str | None, list[Waiting]] = {}
        self.orders: dict[str | None, Mapping[str, Finding]] = {}
        self.places: dict[str, Mapping[str, int]] = {}
        self.requests: dict[tuple[str, Shape], Request] = {}
        self.given: dict[str, tuple[int, Sequence[Mapping[str, Any]]]] = {}
        # To whom the objects belong that answers name, and who the workloads are; None is no such.
        self.owners: dict[str, Mapping[str, Any] | None] = {}
        self.names: dict[str, Mapping[str, Any] | None] = {}

    @cached_property
    def waits(self) -> KnownWaits:
        """The waits of the cluster."""
        return known_waits(self._store, self._cluster, self._as_of_ms)

    def calibrated(self) -> Calibrated:
        """By what came of the intervals that are kept now: they are told without a change of lives."""
        rows = outcome_rows(self._store, self._cluster, self._as_of_ms)
        if self._calibrated is None or self._calibrated.of is not rows:
            came = outcomes_of(rows)
            since_ms = minute_before(self._as_of_ms) - SHOWN_DAYS * 24 * MS_PER_HOUR
            self._calibrated = Calibrated(
                of=rows,
                calibration=Calibration(came),
                held=held(one for one in came if one.known_ms >= since_ms),
            )
        return self._calibrated


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """A scene, of which books it is, and that it is the same for all instants in (`after_ms`, `until_ms`]."""

    scene: Scene
    of: object
    after_ms: int
    until_ms: int


@dataclass(slots=True)
class Scenes:
    """
    The scenes that were asked for last; the longest unused goes first. For any thread.

    A scene serves until something is committed that changes it, and for the instants between which nothing
    happened, of one minute at most.
    """

    _kept: OrderedDict[tuple[str, int], _Kept] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    @contextmanager
    def entered(self, store: Store, cluster: str, as_of_ms: int) -> Iterator[Scene]:
        """The scene of just before an instant; nobody else uses it meanwhile."""
        scene = self._of(store, cluster, as_of_ms)
        with scene.lock:
            yield scene

    def _of(self, store: Store, cluster: str, as_of_ms: int) -> Scene:
        # Before anything is read of them: what is committed meanwhile makes it an old one.
        (told,) = store.kept_rows(_TOLD, {"cluster": cluster})
        of = (id(store), store.lives_version, told["seq"], told["gone"])
        with self._lock:
            for key, one in list(self._kept.items()):
                if one.of != of and key[0] == cluster:
                    del self._kept[key]
                elif key[0] == cluster and one.after_ms < as_of_ms <= one.until_ms:
                    self._kept.move_to_end(key)
                    return one.scene
        scene = Scene(store, cluster, as_of_ms)
        after_ms, until_ms = _unchanged(store, cluster, as_of_ms)
        with self._lock:
            self._kept[cluster, after_ms] = _Kept(scene=scene, of=of, after_ms=after_ms, until_ms=until_ms)
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        return scene


def _unchanged(store: Store, cluster: str, as_of_ms: int) -> tuple[int, int]:
    """Between which instants of its minute nothing happens that decides who may start."""
    minute_ms = minute_before(as_of_ms)
    asked = {
        "cluster": cluster,
        "as_of_ms": as_of_ms,
        "from_ms": minute_ms,
        "to_ms": minute_ms + MS_PER_MINUTE,
    }
    (row,) = store.rows(_UNCHANGED, asked)
    return int(str(row["after_ms"])), int(str(row["until_ms"]))
