"""A month as FOCUS 1.4: what the specification asks of every column, and what a stranger's linter finds."""

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import yaml
from focus_data_toolkit.model.validator import lint_focus_1_4_structure, load_model
from focus_data_toolkit.validate.allocation import validate_split_allocation
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.chargeback.capacity import Kind
from analytics.chargeback.line import Line
from analytics.chargeback.statement import Billing
from api.exports.focus import METHOD_ID
from api.exports.focus_charge import charges
from api.exports.formats import EXPORT_FORMATS
from domain.errors import RefusedError
from tests.api.exports import made_up
from tests.api.exports.made_up import AGREED, closed_october, october

CONTRACT: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("focus_1_4.yaml").read_text(encoding="utf-8")
)["columns"]
# FOCUS' number, instant and unit formats.
SHAPES: dict[str, Callable[[str], object]] = {
    "text": bool,
    "decimal": re.compile(r"-?\d+(\.\d+)?").fullmatch,
    "instant": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ").fullmatch,
    "currency": re.compile(r"[A-Z]{3}").fullmatch,
    "unit": re.compile(r"[A-Z]+-Hours", re.IGNORECASE).fullmatch,
    "json": json.loads,
}

FocusRow = dict[str, str]


def rows_of(content: bytes) -> list[FocusRow]:
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


@pytest.fixture(scope="module")
def rows() -> list[FocusRow]:
    return rows_of(b"".join(EXPORT_FORMATS["focus"].write(closed_october())))


def test_every_mandatory_column_is_there_and_ours_come_after_them(rows: list[FocusRow]) -> None:
    names = list(rows[0])
    theirs = list(takewhile(lambda name: not name.startswith("x_"), names))
    mandatory = {name for name, told in CONTRACT.items() if told["level"] == "mandatory"}
    assert len(mandatory) == 21
    assert mandatory <= set(theirs) <= set(CONTRACT)
    assert all(re.fullmatch(r"x_[A-Z][A-Za-z0-9]*", name) for name in names[len(theirs) :])


@pytest.mark.parametrize("name", CONTRACT)
def test_each_column_holds_what_the_specification_allows(name: str, rows: list[FocusRow]) -> None:
    told, values = CONTRACT[name], [row[name] for row in rows if name in row]
    if not told["nullable"]:
        assert "" not in values
    given = [value for value in values if value]
    assert [value for value in given if not SHAPES[told["type"]](value)] == []
    assert set(given) <= set(told.get("allowed", given))
    if "least" in told:
        assert [value for value in given if Decimal(value) < told["least"]] == []


def test_our_contract_is_that_of_the_toolkits_model() -> None:
    model = load_model()["datasets"]["Cost and Usage"]["columns"]
    assert list(CONTRACT) == list(model)
    for name, told in CONTRACT.items():
        theirs = model[name]
        assert told["level"] == theirs["feature_level"].lower(), name
        assert told["nullable"] == theirs["allows_nulls"], name
        assert set(told.get("allowed", ())) <= set(theirs["allowed_values"] or ()), name


@pytest.mark.parametrize("billing", list(Billing))
def test_the_toolkit_finds_nothing_wrong(billing: Billing) -> None:
    agreed = replace(AGREED, billing=billing)
    found = rows_of(b"".join(EXPORT_FORMATS["focus"].write(closed_october(agreement=agreed))))
    report = lint_focus_1_4_structure("cost and usage", found, supported_conditions=["SupportsUnitPricing"])
    assert report.messages() == []
    assert report.row_count == len(found) > 0
    # The linter is awake.
    found[0]["ChargeCategory"] = "Held"
    assert not lint_focus_1_4_structure("cost and usage", found).ok


def test_who_runs_the_platform_is_a_setting() -> None:
    agreed = replace(AGREED, provider="Acme IT", billing_account="4711")
    [told] = {
        tuple(row[name] for name in ("BillingAccountId", "BillingAccountName", "HostProviderName",
                                     "InvoiceIssuerName", "ServiceProviderName"))
        for row in rows_of(b"".join(EXPORT_FORMATS["focus"].write(closed_october(agreement=agreed))))
    }  # fmt: skip
    assert told == ("4711", "Acme IT", "Acme IT", "Acme IT", "Acme IT")


def test_the_allocated_charges_are_parts_of_their_origin(rows: list[FocusRow]) -> None:
    origins: dict[str, list[FocusRow]] = defaultdict(list)
    for row in rows:
        assert bool(row["AllocatedMethodId"]) == bool(row["x_OriginChargeId"])
        if row["AllocatedMethodDetails"]:
            origins[row["x_OriginChargeId"]].append(row)
    assert sorted(origins) == ["north/H100/2026-10-01", "north/H100/2026-10-01/overlap", "south//2026-10-01"]
    split = []
    for origin, parts in origins.items():
        details = [
            json.loads(row["AllocatedMethodDetails"], parse_float=Decimal)["Elements"] for row in parts
        ]
        assert sum(element["AllocatedRatio"] for (element,) in details) == 1
        assert all(element["UsageUnit"] == "GPU-Hours" for (element,) in details)
        # What FOCUS calls dimensions is the same in all parts; what they sum to is the origin's.
        for name in ("ResourceId", "SubAccountId", "ChargeDescription", "ChargeCategory", "SkuId"):
            assert len({row[name] for row in parts}) == 1, name
        ids = [row["AllocatedResourceId"] for row in parts if row["AllocatedResourceId"]]
        assert len(ids) == len(set(ids))
        total = sum(Decimal(row["BilledCost"]) for row in parts)
        split += [
            row
            | {"x_SplitOriginId": origin, "x_SplitOriginCost": str(total)}
            | {"AllocatedResourceId": row["AllocatedResourceId"] or row["x_Kind"]}
            for row in parts
        ]
    assert validate_split_allocation(split) == []


def test_what_nobody_held_is_allocated_to_nobody(rows: list[FocusRow]) -> None:
    by_kind = {row["x_Kind"]: row for row in rows if row["x_OriginChargeId"] and not row["ChargeClass"]}
    assert [kind for kind, row in by_kind.items() if not row["AllocatedResourceId"]] == [
        "idle", "unavailable", "overlap",
    ]  # fmt: skip
    assert {row["AllocatedMethodId"] for row in by_kind.values()} == {METHOD_ID}
    first = rows[0]
    assert first["AllocatedResourceId"] == "nlp/llm/%3Dcmd%7C%27%2Fc%20calc%27%21A1/q-nlp"
    assert json.loads(first["AllocatedTags"])["user"] == "=cmd|'/c calc'!A1"


def test_a_correction_is_billed_in_the_open_month_and_charged_for_its_day(rows: list[FocusRow]) -> None:
    (row,) = [row for row in rows if row["ChargeClass"]]
    assert row["ChargeClass"] == "Correction"
    # Days and months of Berlin, in summer and in winter.
    assert (row["ChargePeriodStart"], row["ChargePeriodEnd"]) == (
        "2026-09-13T22:00:00Z",
        "2026-09-14T22:00:00Z",
    )
    assert (row["BillingPeriodStart"], row["BillingPeriodEnd"]) == (
        "2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z",
    )  # fmt: skip
    assert (row["EffectiveCost"], row["PricingQuantity"]) == ("-6.00", "-3.000000000")


def test_an_invoice_has_an_id_when_a_chargeback_is_closed(rows: list[FocusRow]) -> None:
    assert {row["InvoiceId"] for row in rows} == {"2026-10-5f5f5f5f5f5f"}
    still_open = rows_of(b"".join(EXPORT_FORMATS["focus"].write(october())))
    assert {row["InvoiceId"] for row in still_open} == {""}
    assert {row["x_StatementSha256"] for row in still_open} == {""}
    # Nobody gets an invoice of a showback.
    shown = closed_october(agreement=replace(AGREED, billing=Billing.SHOWBACK))
    assert {row["InvoiceId"] for row in rows_of(b"".join(EXPORT_FORMATS["focus"].write(shown)))} == {""}


def test_parts_of_an_origin_that_is_not_all_there_have_no_ratio() -> None:
    own = october().only({"team": ["nlp"]})
    found = rows_of(b"".join(EXPORT_FORMATS["focus"].write(own)))
    assert {row["x_Team"] for row in found} == {"nlp"}
    assert {row["AllocatedMethodDetails"] for row in found} == {""}
    assert lint_focus_1_4_structure("cost and usage", found).messages() == []


def test_without_prices_there_is_no_focus_and_the_reason_is_told() -> None:
    with pytest.raises(RefusedError, match=r"no prices are set; its costs may not be null, so set prices"):
        EXPORT_FORMATS["focus"].write(october(no_money_because="no prices are set"))


@settings(max_examples=30, deadline=None)
@given(
    parts=st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**15)), min_size=1, max_size=9),
)
def test_ratios_of_an_origin_are_parts_that_sum_to_one(parts: list[tuple[int, int]]) -> None:
    lines = tuple(
        Line(row=made_up.row("held", f"team {number}", time, str(Decimal(cents) / 100)), causes={})
        for number, (cents, time) in enumerate(parts)
    )
    ratios = [charge.ratio for charge in charges(october(lines=lines))]
    if not any(cents or time for cents, time in parts):
        assert set(ratios) == {None}
        return
    known = [ratio for ratio in ratios if ratio is not None]
    assert len(known) == len(parts)
    assert all(0 <= ratio <= 1 for ratio in known)
    assert sum(known) == 1


def test_every_kind_of_line_is_usage_or_an_adjustment() -> None:
    lines = tuple(Line(row=made_up.row(kind, "nlp", 0, "1.00"), causes={}) for kind in Kind)
    found = rows_of(b"".join(EXPORT_FORMATS["focus"].write(october(lines=lines))))
    usage = [line["x_Kind"] for line in found if line["ChargeCategory"] == "Usage"]
    assert usage == ["held", "idle", "idle_share", "unavailable", "unavailable_share"]
    assert {line["ChargeCategory"] for line in found} == {"Usage", "Adjustment"}
    assert lint_focus_1_4_structure("cost and usage", found).messages() == []
