"""The section `money` of the settings: the price book, inline or in a file, and who pays what."""

import csv
import difflib
from collections.abc import Iterable
from datetime import date, datetime, tzinfo
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import available_timezones

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from analytics.chargeback.agreement import Agreement, CostCentre
from analytics.chargeback.distribution import IdlePolicy
from analytics.chargeback.extras import BorneBy, Preempted, SharedBy, SharedCost
from analytics.chargeback.statement import Billing
from domain.calendar import billing_zone
from domain.errors import PolicyError, SettingsError, UsageError
from domain.money import CapacityType, Currency, Price, PriceBook
from domain.window import MS_PER_HOUR, format_instant, parse_instant, to_ms
from service.setting_types import Section

_TABLE_SUFFIXES = frozenset({".csv"})
_TEXT_SUFFIXES = frozenset({".yaml", ".yml"})
# 365.25 days, as a year is over four of them.
_HOURS_A_YEAR = 8766
_MOST_YEARS = 100
# Budgets keep prices in billionths, of which a column holds nine times as many.
_MOST = 10**9
_DEFAULTS = Agreement()
# As fine as budgets tell a price. Over four years a GPU is written off to a hundredth of a cent.
_AMORTISED_TO = Decimal("0.000000001")


def _from(value: object) -> object:
    # YAML reads an unquoted instant as a datetime, and an unquoted date as a date.
    return value.isoformat() if isinstance(value, date) else value


def _amount(value: object) -> object:
    # The number as it is written: 0.1 as a binary fraction would be another price.
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _decimal(value: object) -> Decimal:
    try:
        return Decimal(str(_amount(value)))
    except ArithmeticError as cause:
        message = 'an amount per GPU-hour, for example "2.50"'
        raise ValueError(message) from cause


def _zone(name: str) -> str:
    try:
        billing_zone(name)
    except UsageError as cause:
        close = difflib.get_close_matches(name, sorted(available_timezones()), n=1, cutoff=0.7)
        hint = f"did you mean {close[0]}?" if close else "for example Europe/Berlin or UTC"
        message = f"an IANA time zone; {hint}"
        raise ValueError(message) from cause
    return name


def _code(code: str) -> str:
    try:
        return Currency.of(code).code
    except PolicyError as cause:
        message = "an ISO 4217 code, for example EUR"
        raise ValueError(message) from cause


Since = Annotated[str, BeforeValidator(_from)]
Amount = Annotated[Decimal, BeforeValidator(_decimal)]


class PriceSettings(Section):
    """
    A row of the price book, as `domain.money.Price`. A date begins with its day in the billing zone.

    What was bought has `purchase` per GPU and the `years` over which it is written off, evenly by the hour,
    in the place of `list`; `running` is what a GPU-hour costs beside, such as power and space. Such a price
    ends with its years, or before them at `valid_to`.
    """

    valid_from: Since
    valid_to: Since | None = None
    list: Amount
    purchase: Amount | None = None
    years: Amount | None = None
    running: Amount = Decimal(0)
    contracted: Amount | None = None
    effective: Amount | None = None
    model: str = "*"
    flavor: str = "*"
    pool: str = "*"
    mig_profile: str = "*"
    capacity_type: CapacityType | None = None
    node_labels: dict[str, str] = {}

    @model_validator(mode="before")
    @classmethod
    def _amortised(cls, row: Any) -> Any:
        if not isinstance(row, dict) or not {"purchase", "years", "running"} & row.keys():
            return row
        given = [_decimal(row.get(name) or 0) for name in ("purchase", "years", "running")]
        purchase, years, running = given
        finite = all(each.is_finite() for each in given)
        if "list" in row or not (finite and purchase > 0 and 0 < years <= _MOST_YEARS and running >= 0):
            message = (
                f"either list, or purchase and years above 0 (at most {_MOST_YEARS}) and, if at all, running"
            )
            raise ValueError(message)
        try:
            hourly = (purchase / (years * _HOURS_A_YEAR) + running).quantize(_AMORTISED_TO)
        except ArithmeticError as cause:
            message = "a purchase over years that is an amount per GPU-hour"
            raise ValueError(message) from cause
        return row | {"list": str(hourly)}

    def price(self, zone: tzinfo) -> Price:
        """
        The row in the words of the domain.

        Raises:
            PolicyError: an amount or its time makes no sense.
            UsageError: an instant is none.
        """
        dearest = max(each for each in (self.list, self.contracted, self.effective) if each is not None)
        if dearest > _MOST:
            message = f"price from {self.valid_from}: {dearest}: expected at most {_MOST:,} per GPU-hour"
            raise PolicyError(message)
        from_ms = _instant_ms(self.valid_from, zone)
        return Price(
            listed=self.list,
            contracted=self.contracted,
            effective=self.effective,
            gpu_model=self.model,
            flavor=self.flavor,
            pool=self.pool,
            mig_profile=self.mig_profile,
            capacity_type=self.capacity_type,
            node_labels=frozenset(self.node_labels.items()),
            valid_from_ms=from_ms,
            valid_to_ms=self._to_ms(from_ms, zone),
            note=self._note(),
        )

    def _to_ms(self, from_ms: int, zone: tzinfo) -> int | None:
        until_ms = None if self.valid_to is None else _instant_ms(self.valid_to, zone)
        if self.purchase is None or self.years is None:
            return until_ms
        paid_ms = from_ms + int(self.years * _HOURS_A_YEAR * MS_PER_HOUR)
        if until_ms is not None and until_ms > paid_ms:
            message = (
                f"price from {format_instant(from_ms)}: its purchase is written off at"
                f" {format_instant(paid_ms)}, after {self.years:f} years; expected valid_to then or earlier,"
                " and a row of its own for what comes later"
            )
            raise PolicyError(message)
        return paid_ms if until_ms is None else until_ms

    def _note(self) -> str:
        if self.purchase is None or self.years is None:
            return ""
        running = f", and {self.running:f} an hour for running it" if self.running else ""
        over = f"{self.years:f} years of {_HOURS_A_YEAR} hours"
        return f"{self.purchase:f} a GPU, written off over {over}{running}"


class CostCentreSettings(Section):
    """What a team is booked on from a day on, as `analytics.chargeback.agreement.CostCentre`."""

    code: str
    valid_from: Since | None = None
    valid_to: Since | None = None

    def centre(self, zone: tzinfo) -> CostCentre:
        """
        The same in the words of the domain.

        Raises:
            PolicyError: it ends before it begins.
            UsageError: an instant is none.
        """
        from_ms, to_ms = _validity(self.code, self.valid_from, self.valid_to, zone)
        return CostCentre(code=self.code, from_ms=from_ms, to_ms=to_ms)


class SharedCostSettings(Section):
    """A fixed monthly cost that teams share, as `analytics.chargeback.extras.SharedCost`."""

    name: str
    monthly: Amount
    by: SharedBy = SharedBy.USE
    valid_from: Since | None = None
    valid_to: Since | None = None

    def cost(self, zone: tzinfo) -> SharedCost:
        """
        The same in the words of the domain.

        Raises:
            PolicyError: the amount is negative, or it ends before it begins.
            UsageError: an instant is none.
        """
        if not (self.monthly.is_finite() and self.monthly >= 0):
            message = f"{self.name}, monthly = {self.monthly}: expected a number of at least 0"
            raise PolicyError(message)
        from_ms, to_ms = _validity(self.name, self.valid_from, self.valid_to, zone)
        return SharedCost(name=self.name, monthly=self.monthly, by=self.by, from_ms=from_ms, to_ms=to_ms)


class MoneySettings(Section):
    """Prices and who pays them. Without prices there are GPU-hours only."""

    currency: Annotated[str, AfterValidator(_code)] = "USD"
    zone: Annotated[str, AfterValidator(_zone)] = "UTC"
    billing: Billing = Billing.SHOWBACK
    idle: IdlePolicy = IdlePolicy.NONE
    distribute_unavailable: bool = False
    prices: tuple[PriceSettings, ...] = ()
    price_file: Path | None = None
    cost_centres: dict[str, str | tuple[CostCentreSettings, ...]] = {}
    shared_costs: tuple[SharedCostSettings, ...] = ()
    preempted: Preempted = Preempted.CHARGED
    preempted_borne_by: BorneBy = BorneBy.NOBODY
    provider: Annotated[str, Field(min_length=1)] = _DEFAULTS.provider
    billing_account: Annotated[str, Field(min_length=1)] = _DEFAULTS.billing_account
    close_coverage: Annotated[float, Field(ge=0, le=1)] = 0.99

    def agreement(self) -> Agreement:
        """
        All of it in the words of the domain.

        Raises:
            SettingsError: the price file cannot be read, or a price makes no sense.
        """
        zone = billing_zone(self.zone)
        rows = self.prices + (() if self.price_file is None else read_prices(self.price_file))
        try:
            book = PriceBook(tuple(row.price(zone) for row in rows))
        except (PolicyError, UsageError) as cause:
            message = f"settings, money.prices: {cause}"
            raise SettingsError(message) from cause
        try:
            centres = {
                team: (CostCentre(code=told),)
                if isinstance(told, str)
                else tuple(each.centre(zone) for each in told)
                for team, told in self.cost_centres.items()
            }
        except (PolicyError, UsageError) as cause:
            message = f"settings, money.cost_centres: {cause}"
            raise SettingsError(message) from cause
        try:
            shared = tuple(each.cost(zone) for each in self.shared_costs)
        except (PolicyError, UsageError) as cause:
            message = f"settings, money.shared_costs: {cause}"
            raise SettingsError(message) from cause
        return Agreement(
            currency=Currency.of(self.currency),
            book=book,
            zone=zone,
            zone_name=self.zone,
            billing=self.billing,
            idle=self.idle,
            unavailable_too=self.distribute_unavailable,
            cost_centres=centres,
            close_coverage=self.close_coverage,
            shared_costs=shared,
            preempted=self.preempted,
            preempted_borne_by=self.preempted_borne_by,
            provider=self.provider,
            billing_account=self.billing_account,
        )


def read_prices(path: Path) -> tuple[PriceSettings, ...]:
    """
    The rows of a price file: a YAML list, or CSV with the same names as columns.

    In CSV an empty field stands for nothing given, and node_labels are written `key=value;key=value`.

    Raises:
        SettingsError: the file cannot be read, or a row is wrong.
    """
    if path.suffix not in _TABLE_SUFFIXES | _TEXT_SUFFIXES:
        message = f'money.price_file = "{path}": expected a file that ends in .csv, .yaml or .yml'
        raise SettingsError(message)
    try:
        text = path.read_text(encoding="utf-8-sig")
        rows = list(_of_csv(text)) if path.suffix in _TABLE_SUFFIXES else yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError, csv.Error) as cause:
        message = f'money.price_file = "{path}": cannot be read ({cause}); expected rows of prices'
        raise SettingsError(message) from cause
    if not isinstance(rows, list):
        message = f'money.price_file = "{path}": expected a list of prices, each with valid_from and list'
        raise SettingsError(message)
    return tuple(_row(path, number, row) for number, row in enumerate(rows, start=1))


def _of_csv(text: str) -> Iterable[dict[str, Any]]:
    for read in csv.DictReader(text.splitlines()):
        row: dict[str, Any] = {name: value for name, value in read.items() if value}
        if "node_labels" in row:
            pairs = (pair.partition("=") for pair in row["node_labels"].split(";"))
            row["node_labels"] = {key.strip(): value.strip() for key, _, value in pairs}
        yield row


def _row(path: Path, number: int, row: object) -> PriceSettings:
    try:
        return PriceSettings.model_validate(row)
    except ValidationError as cause:
        message = f'money.price_file = "{path}", row {number}, {_wrong(cause)}'
        raise SettingsError(message) from cause


def _wrong(cause: ValidationError) -> str:
    """What is wrong with a row, and what was expected; a misspelt name before what is missing for it."""
    found = cause.errors()
    error: Any = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    place = ".".join(map(str, error["loc"])) or "the row"
    known = ", ".join(PriceSettings.model_fields)
    if error["type"] == "extra_forbidden":
        close = difflib.get_close_matches(place, PriceSettings.model_fields, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}?" if close else f"expected some of {known}"
        return f"{place}: unknown column; {hint}"
    if error["type"] == "missing":
        return f"{place}: is missing; every row has valid_from and list, and may have others of {known}"
    expected = error["ctx"]["error"] if error["type"] == "value_error" else error["msg"]
    return f"{place} = {error['input']!r}: expected {str(expected).removeprefix('Input should be ')}"


def _validity(
    name: str, valid_from: str | None, valid_to: str | None, zone: tzinfo
) -> tuple[int, int | None]:
    from_ms = 0 if valid_from is None else _instant_ms(valid_from, zone)
    to_ms = None if valid_to is None else _instant_ms(valid_to, zone)
    if to_ms is not None and to_ms <= from_ms:
        message = f"{name}, valid_to = {valid_to}: expected an instant after valid_from, or it never counts"
        raise PolicyError(message)
    return from_ms, to_ms


def _instant_ms(text: str, zone: tzinfo) -> int:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return parse_instant(text)
    return to_ms(datetime(day.year, day.month, day.day, tzinfo=zone))
