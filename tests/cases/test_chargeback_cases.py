"""
Cases drawn from public bug reports about money: C01 to C05.

The adapters rename keys, parse times and convert units; what they ask for is computed by the
calendar, the price book and the chargeback.
"""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from analytics.chargeback.capacity import Kind
from analytics.chargeback.distribution import Charge, Distribution, IdlePolicy, Pool, distributed
from analytics.chargeback.statement import rolled_up
from analytics.chargeback.statement import statement as written_down
from analytics.chargeback.stays import Owner
from api.answers import Question
from domain.calendar import Period, billing_zone, month
from domain.errors import RefusedError
from domain.money import MICRO_GPU_MS_PER_GPU_HOUR, PARTS
from domain.window import FixedClock, parse_instant
from service.answers import Answers
from service.refresh import Refresher
from service.settings import Settings
from service.settings_file import load_settings
from tests.cases.billing import USD, node, price, priced_lines, statement, stay, total
from tests.cases.replay import Feed, Json, asking, case, truths, written

DAY = "2026-06-01"


def check(answer: Json, expected: Json) -> None:
    assert answer == {name: value for name, value in expected.items() if name != "must_not"}


def test_c01_the_hour_of_the_clock_change_stays_in_its_month() -> None:
    given, expected = case("C01-month-boundary-with-dst")
    job, zone = given["data"]["job"], billing_zone("Europe/Berlin")
    held, months = stay(job["gpus"], job["start"], job["end"]), ("2026-10", "2026-11")
    found = {label: statement([held], label, price("2.00"), zone=zone) for label in months}
    days = {row.day: row.gpu_hours for row in rolled_up(found["2026-10"].rows, ("day",))}
    answer = {
        "hours_in_month": {label: month(label, zone).hours for label in months},
        "gpu_hours": {label: each.total().gpu_hours for label, each in found.items()},
        "cost_usd": {label: str(each.total().list_cost) for label, each in found.items()},
        "gpu_hours_on_2026_10_25": days["2026-10-25"],
    }
    check(answer, expected)


def test_c02_a_later_price_changes_nothing_before_it() -> None:
    given, expected = case("C02-price-change-mid-month")
    job, told = given["data"]["job"], [*given["data"]["prices"], given["data"]["catalog_update"]]
    held = stay(job["gpus"], job["start"], job["end"])
    prices = [price(one["usd_per_gpu_hour"], one["from"]) for one in told]
    answer = {
        "cost_usd": str(statement([held], "2026-06", *prices[:-1]).total().list_cost),
        "cost_usd_after_catalog_update": str(statement([held], "2026-06", *prices).total().list_cost),
        "lines": priced_lines(held, *prices),
    }
    check(answer, expected)


def test_c03_idle_is_never_negative_and_the_books_close() -> None:
    given, expected = case("C03-idle-cost-not-negative")
    there, pods = given["data"]["node"], given["data"]["pods"]
    stays = [stay(pod["gpus"], pod["start"], pod["gone"], Owner(team=pod["name"])) for pod in pods]
    nodes, cost = [node(there["gpus"], there["from"], there["to"])], price(there["usd_per_gpu_hour"])
    settled = statement(stays, "2026-03", cost, nodes=nodes)
    by = {(row.kind, row.team): row.list_cost for row in rolled_up(settled.rows, ("kind", "team"))}
    answer = {
        "charged_usd": {pod["name"]: str(by["held", pod["name"]]) for pod in pods},
        "idle_usd": str(by.get(("idle", "__idle__"), USD.currency.amount(0))),
        "overlap_adjustment_usd": str(by["overlap", "__overlap__"]),
        "total_usd": str(settled.total().list_cost),
    }
    check(answer, expected)
    assert settled.hours.difference == 0


def test_c04_parts_sum_to_the_invoice() -> None:
    given, expected = case("C04-cents-that-do-not-add-up")
    parts = {}
    for invoice in given["data"]["invoices"]:
        # What nobody held costs as much as the invoice, and is borne by use.
        held = [
            _charge(Kind.HELD, team, Fraction(str(hours)), "0")
            for team, hours in invoice["gpu_hours"].items()
        ]
        whole = _charge(Kind.IDLE, "__idle__", Fraction(1), invoice["total"])
        shared = distributed([*held, whole], Distribution(policy=IdlePolicy.BY_USE))
        days = [Period(label=DAY, start_ms=0, end_ms=1)]
        rows = written_down(shared, days=days, period=days[0], terms=USD).rows
        assert total(rows) == invoice["total"]
        parts[invoice["id"]] = {row.team: str(row.list_cost) for row in rows if row.kind != Kind.HELD}
    check({"parts": parts}, expected)


def _charge(kind: Kind, team: str, gpu_hours: Fraction, cost: str) -> Charge:
    amount = PARTS * Fraction(cost)
    return Charge(
        kind=kind, pool=Pool(cluster="c", gpu_model="any", day=DAY), owner=Owner(team=team),
        micro_gpu_ms=int(gpu_hours * MICRO_GPU_MS_PER_GPU_HOUR),
        list_cost=amount, contracted_cost=amount, effective_cost=amount,
    )  # fmt: skip


@pytest.mark.parametrize("read_before", [True, False], ids=["read before the rename", "read after it"])
def test_c05_a_renamed_team_is_one_row_and_a_deleted_namespace_still_pays(
    tmp_path: Path, *, read_before: bool
) -> None:
    given, expected = case("C05-renamed-team-deleted-namespace")
    names, renamed = _team_names(given["data"]["team_names"])
    rules = [
        {"namespace": one["ns"], "value": names[one["team_id"]], "valid_from": f"{one['from']}T00:00:00Z"}
        | ({"valid_to": f"{one['to']}T00:00:00Z"} if one["to"] else {})
        for one in given["data"]["namespace_team"]
    ]
    settings = _settings(tmp_path, {"teams": rules, "renamed": renamed})
    feed = Feed()
    then = _settings(tmp_path, {"teams": rules}) if read_before else settings
    feed.refresher = Refresher(store=feed.store, tenancy=then.tenancy_rules())
    # A month before the rename, too.
    for number, (day, namespace, gpus) in enumerate(
        [["2026-05-20", "vision-train", 7], *given["data"]["usage"]]
    ):
        place = {"namespace": namespace}
        status = {"phase": "Running", "conditions": truths({"PodScheduled": "True"}, f"{day}T00:00:00Z")}
        pod = written(
            "Pod", f"p{number}", created=f"{day}T00:00:00Z", metadata=place,
            spec={"nodeName": "n", **asking(gpus)}, status=status,
        )  # fmt: skip
        feed.see("ADDED", pod, f"{day}T00:00:00Z")
        feed.see("DELETED", pod, f"{day}T01:00:00Z")
    answers = Answers(
        feed.settled(), settings.tenancy_rules(), settings.thresholds(),
        FixedClock(parse_instant("2026-08-01T00:00:00Z")), agreement=settings.money.agreement(),
    )  # fmt: skip

    def told(month: str = "2026-06", **only: str) -> Json:
        filters = {"kind": ("held",)} | {name: (value,) for name, value in only.items()}
        return dict(answers.chargeback(month, Question(by=("team",), filters=filters)))

    found = told()
    answer = {
        "gpu_hours_by_team": {row["team"]: row["gpu_hours"] for row in found["rows"]},
        "cost_usd_by_team": {row["team"]: str(row["list_cost"]) for row in found["rows"]},
        "total_usd": str(found["total"]["list_cost"]),
    }
    check(answer, expected)
    # Nobody signs while a namespace has no team.
    with pytest.raises(RefusedError, match="no namespace that held GPUs is unassigned: orphan"):
        answers.close_month("2026-06", who="fin", reason="a case")
    may = told("2026-05")
    answers.close_month("2026-05", who="fin", reason="a case")
    assert told("2026-05")["closed"]["closed_by"] == "fin"
    assert (told("2026-05")["rows"], told("2026-05")["total"]) == (may["rows"], may["total"])
    # May keeps the name of then, and is found by either name.
    for asked in ({}, {"team": "perception"}, {"team": "vision"}):
        rows = told("2026-05", **asked)["rows"]
        assert [(row["team"], row["gpu_hours"], row["cost_centre"]) for row in rows] == [
            ("vision", 7, "4711")
        ]


def _team_names(told: list[Json]) -> tuple[dict[int, str], Json]:
    """The first name of each team, and what the settings say of its later ones."""
    names: dict[int, str] = {}
    renamed: Json = {}
    for one in told:
        first = names.setdefault(one["team_id"], one["name"])
        if first != one["name"]:
            renamed[first] = {"name": one["name"], "since": f"{one['from']}T00:00:00Z"}
    return names, renamed


def _settings(tmp_path: Path, tenancy: Json) -> Settings:
    money = {
        "prices": [{"valid_from": "2026-01-01", "list": "2.00"}],
        "cost_centres": {"perception": "4711"},
    }
    file = tmp_path / "gpuledger.yaml"
    file.write_text(json.dumps({"money": money, "tenancy": tenancy}))
    return load_settings(file)
