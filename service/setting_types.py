"""What sections of the settings are made of: frozen models, and values that are written as texts."""

import ipaddress
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from domain.errors import UsageError
from domain.window import parse_duration, parse_instant


def _duration(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    try:
        return parse_duration(value if isinstance(value, str) else "")
    except UsageError as cause:
        message = "a duration, for example 5m, 24h or 7d"
        raise ValueError(message) from cause


def _instant_ms(value: object) -> int:
    # YAML reads an unquoted instant as a datetime, and an unquoted date as a date.
    text = value.isoformat() if hasattr(value, "isoformat") else str(value)
    try:
        return parse_instant(text)
    except UsageError as cause:
        message = "an instant with its zone, for example 2026-10-01T00:00:00Z"
        raise ValueError(message) from cause


def _network(value: str) -> str:
    try:
        ipaddress.ip_network(value)
    except ValueError as cause:
        message = "an address or network, for example 10.0.0.0/8"
        raise ValueError(message) from cause
    return value


Duration = Annotated[timedelta, BeforeValidator(_duration)]
InstantMs = Annotated[int, BeforeValidator(_instant_ms)]
Network = Annotated[str, AfterValidator(_network)]
Port = Annotated[int, Field(ge=0, le=65535)]
Size = Annotated[str, Field(pattern=r"^\d+(\.\d+)?\s?([KMGT]i?B)$")]


class Section(BaseModel):
    """Frozen; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)
