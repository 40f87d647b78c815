"""Cases from public bug reports: flapping, no data, storms, empty queues, silent watches, base paths."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from urllib.parse import parse_qs, urljoin, urlsplit

from prometheus_client.parser import text_string_to_metric_families

from alerts.declared import SOURCE_STALE, Declared, declared, read_by
from alerts.evaluation import Alert, Evaluation
from alerts.exporter import Exporter
from alerts.posting import Identity, Told
from alerts.readings import Reading, annotations, readings
from alerts.standing import State
from alerts.wording import Links
from analytics.metrics import REGISTRY
from api.answers import ListQuestion
from collector.kube.credentials import Lifetime
from dashboard.shared import filters
from dashboard.shared.frame import stale_sentence
from domain.alert import AlertRule
from domain.facts import ObjectKind
from domain.metric import Sample
from domain.policy import Policy
from domain.window import FixedClock, format_instant, parse_instant
from service import children, sources
from service.alerting import Alerting
from service.alerting_settings import AlertingSettings
from service.settings import Settings
from tests.cases.replay import Feed, Json, answers, case, queued_for, written

START_MS = 1_800_000_000_000
METRIC = REGISTRY["starvation_index_seconds"]
(WAIT,) = (one for one in declared(REGISTRY) if one.rule.name == "GpuQueueWaitTooLong")
# What the cases call inactive.
STATES = {None: "inactive", State.PENDING: "pending", State.FIRING: "firing", State.RESOLVED: "inactive"}
IDENTITY = {"cluster": "east", "queue": "red", "service_class": "interactive"}


def instant_of(second: int) -> str:
    return format_instant(START_MS + second * 1000)


def objects_of(step: Json) -> dict[str, Json]:
    """The queues of a step, and a Workload for each wait, by uid: what waits on has the same one."""
    queues = {queue: written("ClusterQueue", queue, created=instant_of(-86_400)) for queue in step["queues"]}
    waits = [(queue, step["t"] - wait) for queue, found in step["queues"].items() for wait in found]
    return queues | {
        f"{queue}@{since}": written("Workload", f"{queue}@{since}", created=instant_of(since),
                                    spec=queued_for(1) | {"queueName": queue})
        for queue, since in waits
    }  # fmt: skip


def scrape(exporter: Exporter, feed: Feed, second: int) -> dict[str, float]:
    """What Prometheus reads of the metric after it was measured at that second."""
    as_of_ms = START_MS + second * 1000
    exporter.publish(answers(feed.settled()).measure(METRIC, as_of_ms), as_of_ms)
    families = {family.name: family for family in text_string_to_metric_families(exporter.text().decode())}
    return {sample.labels["queue"]: sample.value for sample in families[f"gpuledger_{METRIC.name}"].samples}


def test_a04_an_empty_queue_reports_0_and_a_deleted_one_nothing() -> None:
    given, expected = case("A04-oldest-wait-of-an-empty-queue")
    exporter, feed = Exporter({METRIC.name: METRIC}), Feed()
    there: dict[str, Json] = {}
    scrapes = {}
    for step in given["data"]["steps"]:
        now = objects_of(step)
        for uid in there.keys() - now.keys():
            feed.see("DELETED", there[uid], instant_of(step["t"] - 1))
        for uid in now.keys() - there.keys():
            feed.see("ADDED", now[uid], instant_of(step["t"] - 1))
        there = now
        scrapes[str(step["t"])] = scrape(exporter, feed, step["t"])
    assert {"scrapes": scrapes} == expected


def timed(rule: AlertRule, *, hold: int, keep: int, window: int) -> AlertRule:
    """The rule with the lengths of a case, in minutes."""
    lengths = [timedelta(minutes=minutes) for minutes in (hold, keep, window)]
    return replace(rule, hold=lengths[0], keep=lengths[1], window=lengths[2])


def annotated(one: Declared, reading: Reading) -> Mapping[str, str]:
    return annotations(one, reading, Links(dashboard_url="https://g"))


def states(of: Declared, by_minute: Sequence[Mapping[str, Sequence[Sample]]]) -> list[str]:
    """How the one alert stands after each minute's evaluation."""
    alerts: Mapping[Identity, Alert] = {}
    found = []
    for minute, samples in enumerate(by_minute):
        at_ms = START_MS + minute * 60_000
        evaluation = Evaluation(
            declared=[of],
            samples=samples,
            policy=Policy(),
            annotate=annotated,
            at_ms=at_ms,
            now_ms=at_ms,
        )
        alerts = evaluation.after(alerts)
        assert len(alerts) <= 1
        found.append(STATES[next((alert.standing.state for alert in alerts.values()), None)])
    return found


def notifications(found: Sequence[str], *, named: str = "") -> list[list[object]]:
    """When somebody is told, and what."""
    told: list[list[object]] = []
    for minute, (before, after) in enumerate(zip(["inactive", *found], found, strict=False)):
        if (before == "firing") is not (after == "firing"):
            told.append([minute, f"{named}{'firing' if after == 'firing' else 'resolved'}"])
    return told


def waits(seconds: float | None) -> dict[str, list[Sample]]:
    """What is measured of the longest wait; nothing at all where there is no data."""
    if seconds is None:
        return {}
    return {
        METRIC.name: [Sample(labels=IDENTITY, value=float(seconds))],
        "wait_target_seconds": [Sample(labels={"service_class": "interactive"}, value=300.0)],
    }


def test_a01_an_oldest_wait_that_flaps_tells_people_three_times() -> None:
    given, expected = case("A01-flapping-oldest-wait")
    of = replace(WAIT, rule=timed(WAIT.rule, hold=2, keep=5, window=15))
    found = states(of, [waits(seconds) for seconds in given["data"]["oldest_wait_s_by_minute"]])
    assert {"states": found, "notifications": notifications(found)} == expected


def test_a02_no_data_keeps_the_state_and_has_an_alert_of_its_own() -> None:
    given, expected = case("A02-no-data-is-not-resolved")
    values = given["data"]["oldest_wait_s_by_minute"]
    of = replace(WAIT, rule=timed(WAIT.rule, hold=2, keep=1, window=2))
    found = states(of, [waits(seconds) for seconds in values])
    # The alert is the one about a source that is not read, with the times of the case.
    (stale,) = (one for one in declared(REGISTRY) if one.rule.name == SOURCE_STALE)
    no_data = replace(stale, rule=timed(stale.rule, hold=0, keep=0, window=0))
    about = {"ledger": "gpuledger", "cluster": "east"}
    heard = [max(at for at in range(minute + 1) if values[at] is not None) for minute in range(len(values))]
    ages = [
        {SOURCE_STALE: [Sample(labels=about, value=60.0 * (minute - at))]} for minute, at in enumerate(heard)
    ]
    told = notifications(found, named="wait ") + notifications(states(no_data, ages), named="no_data ")
    assert {"wait_states": found, "notifications": sorted(told, key=str_of_minute)} == expected


def str_of_minute(told: list[object]) -> int:
    return int(str(told[0]))


def waiting(jobs: list[Json], as_of_second: int) -> Feed:
    """Jobs that wait, in their queues and classes, as long as the case says at that second."""
    feed = Feed()
    for queue in sorted({job["queue"] for job in jobs}):
        begun = instant_of(-200_000)
        feed.see("ADDED", written("ClusterQueue", queue, created=begun), begun)
    for job in jobs:
        spec = queued_for(1) | {"queueName": job["queue"], "priorityClassName": job["class"]}
        created = instant_of(as_of_second - job["wait_s"])
        labels = {"labels": {"kueue.x-k8s.io/priority-class": job["class"], "user": job["user"]}}
        feed.see(
            "ADDED", written("Workload", job["job"], created=created, metadata=labels, spec=spec), created
        )
    return feed


class Later:
    """A clock that goes, and is past all that the case evaluates."""

    def now_ms(self) -> int:
        return START_MS + 3_600_000


def test_a03_a_storm_makes_one_alert_per_queue_and_class_with_the_numbers_beside_it() -> None:
    given, expected = case("A03-alert-storm-and-labels")
    store = waiting(given["data"]["jobs"], 0).settled()
    # By a clock that stands, the past would be measured too.
    reader, links = replace(answers(store, START_MS), clock=Later()), Links(dashboard_url="https://g")
    alerting = Alerting(
        reader, AlertingSettings(), links=links, every=timedelta(minutes=1), clock=FixedClock(START_MS)
    )
    measured = [one for name in read_by(WAIT) for one in reader.measure(REGISTRY[name], START_MS)]
    alerts: list[list[Told]] = []
    for second in (0, 60, 120):
        alerting.take(measured, START_MS + second * 1000, {})
        alerts.append([one for one in alerting.told() if "queue" in one.labels])
    assert {one.identity for one in alerts[1]} == {one.identity for one in alerts[2]}
    assert len(alerts[1]) == len(expected["alerts"])
    # Annotations are texts; which of them are numbers the case says.
    wanted = [
        {
            "labels": one["labels"],
            "annotations": {name: str(said) for name, said in one["annotations"].items()},
        }
        for one in expected["alerts"]
    ]
    names = wanted[0]["annotations"].keys()
    found = [
        {
            "labels": dict(one.labels) | {"cluster": "east"},
            "annotations": {name: one.annotations[name] for name in names},
        }
        for one in alerts[2]
    ]
    assert sorted(found, key=str) == sorted(wanted, key=str)
    # Who is paged by Prometheus finds the example where the link leads: the first of those that wait.
    for one in alerts[2]:
        page = ListQuestion(
            as_of_ms=START_MS,
            states=("queued",),
            filters={name: (one.labels[name],) for name in ("queue", "service_class")},
            sort="-waiting_seconds",
        )
        assert reader.workloads(page).rows[0]["name"] == one.annotations["example_job"]


def test_o06_a_silent_watch_is_no_quiet_queue_and_a_certificate_is_missed_before_it_ends() -> None:
    given, expected = case("O06-silent-watch-and-expiring-certificate")
    data, policy = given["data"], Policy()
    now_ms = parse_instant(data["now"])
    kinds = {"pods": ObjectKind.POD, "workloads": ObjectKind.WORKLOAD, "nodes": ObjectKind.NODE}
    marks = [
        {"cluster": "c", "kind": kinds[one["r"]], "seen_ms": parse_instant(one["last"]), "epoch": 1}
        | {"restarts": 0, "last_error": ""}
        for one in data["sources"]
    ]
    rows = {row["kind"]: row for row in sources.rows(marks, [], now_ms, policy=policy)}
    names = {"read": "live", "stale": "stale"}
    statuses = {given: names[rows[kind]["state"]] for given, kind in kinds.items()}
    # We have one state for what is late, and tell how late; past half an hour the case has a second word.
    statuses |= {given: "down" for given, kind in kinds.items() if rows[kind]["lag_seconds"] > 1800}
    year_ms = 365 * 86_400_000
    lives = {
        one["c"]: Lifetime(
            what=one["c"],
            from_ms=parse_instant(one["not_after"]) - year_ms,
            end_ms=parse_instant(one["not_after"]),
        )
        for one in data["credentials"]
    }
    credentials = {
        name: "expired" if life.end_ms <= now_ms else "expiring" if life.is_near_its_end(now_ms) else "fine"
        for name, life in lives.items()
    }
    late = [row for row in rows.values() if row["stale"]]
    assert {
        "source_status": statuses,
        "credential_status": credentials,
        "banner": bool(stale_sentence(late)) and any(word != "fine" for word in credentials.values()),
    } == expected
    # The alert hears of the worst of them: nobody may take the quiet for calm.
    heard = sources.last_good(marks, now_ms, policy=policy, clusters={"c"}, since_ms=now_ms)
    assert heard == {"c": parse_instant(data["sources"][2]["last"])}


def test_d04_behind_a_base_path_every_link_has_it_once() -> None:
    given, expected = case("D04-base-path-behind-a-proxy")
    found = []
    for spelling in given["data"]["base_path_spellings"]:
        public = f"https://gpu.example.org/{spelling.lstrip('/')}"
        settings = Settings.model_validate({"server": {"dashboard_url": public}})
        below = children.dashboard_address(settings).removeprefix("http://127.0.0.1:8501")
        index = f"https://gpu.example.org{below}/"
        assert index == f"{settings.dashboard_url}/"
        # Streamlit serves everything below it, its socket too: tests/e2e/test_base_path.py opens it there.
        assert "--server.baseUrlPath=tools/fair" in children.dashboard_command(settings)
        links = Links(dashboard_url=settings.dashboard_url)
        (reading,) = readings(WAIT, waits(400.0), Policy())
        told = annotations(WAIT, reading, links)["dashboard_url"]
        found.append(
            {
                "index": index,
                "page_jobs_team_red": urljoin(index, filters.link("jobs", team="red")),
                "generator_url": told,
            }
        )
    first = found[0]
    assert all(one == first for one in found) is expected["same_for_all_spellings"]
    generator = urlsplit(first.pop("generator_url"))
    # Ours says of which cluster and class too, so that the page shows what the alert is about.
    queue = parse_qs(generator.query)["queue"]
    assert f"https://{generator.netloc}{generator.path}?queue={queue[0]}" == expected["generator_url"]
    assert first == {name: expected["urls"][name] for name in first}
    assert not any("//" in url.removeprefix("https://") for url in first.values())
