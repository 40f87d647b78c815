"""The page of alerts: what fires first, what that rests on, and where to go from there."""

from pathlib import Path
from urllib.parse import parse_qsl

from alerts.wording import Links
from api.schemas import SCHEMAS
from dashboard.shared import runbooks
from dashboard.shared.tables import Cell
from dashboard.shared.verdict import of_alerts
from dashboard.views.alerts import _of_both
from tests.api.test_answers_over_http import check
from tests.dashboard import fake_alerts
from tests.dashboard.conftest import Open
from tests.dashboard.fake_api import Scenario
from tests.dashboard.test_pages import words

AT = "2026-03-02T10:00:00.000Z"


def test_the_fake_alerts_have_the_shape_of_real_ones() -> None:
    for found in fake_alerts.alerts(AT):
        check(found, SCHEMAS["Alert"], at=found["alert"])


def test_what_fires_stands_first_with_its_value_its_limit_and_links_that_hold_below_a_path(
    open_page: Open,
) -> None:
    app = open_page("alerts", Scenario(), window="7d")
    assert not app.exception
    shown = words(app)
    for expected in (
        "4 alerts fire, 1 of them critical. 1 of them is not told, as another one says it.",
        "Of 1 nobody knows how it is now, so they stay.",
        "1 more may follow.",
        "▲ critical",
        "somebody waits for 1h 10m 0s",
        'href="queues?cluster=north&amp;queue=nlp-batch"',
        'href="sources?cluster=north"',
        'href="https://book.example/GpuQueueWaitTooLong.md"',
        "1 h 10 m",
        "1 h 0 m",
        "starvation_index_seconds, 97.0 % observed",
        "gpuledger itself",
        "nobody knows of south (no data: cluster south is not read in time)",
        "sweeps waited for 2d 0h 0m 0s (calm since, and about to resolve)",
        "(not told while GpuledgerSourceStale fires for the same)",
        "Pending: beyond the limit, and not yet for long enough",
        "Resolved, last 7 d",
        "**Look at**",
    ):
        assert expected in shown, expected
    assert "docs/runbooks" not in shown
    assert [box.label for box in app.expander] == ["GpuledgerSourceStale", "GpuQueueWaitTooLong"]
    assert shown.index("Firing") < shown.index("Pending") < shown.index("Resolved")


def test_home_says_that_alerts_fire_also_where_each_class_is_within_its_target(open_page: Open) -> None:
    [link] = [link for link in open_page("home", Scenario()).get("page_link") if link.proto.page == "alerts"]
    assert link.proto.label.startswith("4 alerts fire, 1 of them critical.")
    quiet = open_page("home", Scenario(name="empty")).get("page_link")
    assert "alerts" not in [link.proto.page for link in quiet]


def test_silence_is_told_in_a_sentence_and_is_no_silence_where_nobody_looked(open_page: Open) -> None:
    assert "No alert fires." in words(open_page("alerts", Scenario(name="empty")))
    scenario = Scenario(name="never evaluated")
    never = open_page("alerts", scenario, window="6h", as_of=AT)
    assert "No alert was evaluated yet" in words(never)
    assert not never.success
    # The past was asked for as the address says.
    [asked] = [query for path, query in scenario.seen if path == "/api/v1/alerts" and "as_of" in query]
    assert (asked["as_of"], asked["window"]) == (AT, "6h")


def test_a_link_of_an_alert_opens_its_runbook_above_all_else(open_page: Open) -> None:
    """Also of one that is never listed, and while nothing answers: what to do is needed most then."""
    links, name = Links(dashboard_url="https://gpu.example/tools/fair"), "GpuledgerMeasurementsAbsent"
    page, _, query = links.runbook(name).rpartition("/")[2].partition("?")
    for scenario in (Scenario(), Scenario(status=503)):
        app = open_page(page, scenario, **dict(parse_qsl(query)))
        assert not app.exception
        first, *_ = app.expander
        assert (first.label, first.proto.expanded) == (f"What to do about {name}", True)
        assert runbooks.text_of(name) in [each.value for each in first.markdown]
        shown = words(app)
        assert scenario.status == 503 or shown.index("**Look at**") < shown.index("4 alerts fire")
    unknown = open_page("alerts", Scenario(), runbook="../adr/*x*")
    assert "No such runbook" in unknown.warning[0].value
    assert r"\*x\*" in unknown.warning[0].value
    assert "4 alerts fire" in words(unknown)


def test_a_link_to_the_page_itself_holds_below_a_path(open_page: Open) -> None:
    row = fake_alerts.alert(AT, runbook_url="https://gpu.example/tools/fair/alerts?runbook=GpuIdle")
    assert _of_both(row)["alert"] == Cell(
        shown=row["alert"], note=row["description"], href="alerts?runbook=GpuIdle"
    )


def test_one_alert_is_told_as_one() -> None:
    assert of_alerts([fake_alerts.alert(AT)], []) == "1 alert fires."
    assert of_alerts([], [fake_alerts.alert(AT)]) == "No alert fires. 1 more may follow."


def test_a_runbook_is_found_by_the_name_of_its_alert_only(tmp_path: Path) -> None:
    assert runbooks.text_of("GpuledgerSourceStale")
    assert not runbooks.text_of("../adr/README")
    assert not runbooks.text_of("NoSuchAlert")
