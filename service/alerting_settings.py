"""Where alerts go without a Prometheus: a section of the settings."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from service.gpu_metrics_settings import Url
from service.setting_types import Duration, Section

# Prometheus lets an alert stand for four times as long as it takes to send it again.
_LEAST_RESENDS = 4


def _without_password(value: str) -> str:
    if "@" in urlsplit(value).netloc:
        message = "an address without a name and password in it; they go to user and password_file"
        raise ValueError(message)
    return value


def _timeout(value: timedelta) -> timedelta:
    if not timedelta(milliseconds=100) <= value <= timedelta(minutes=1):
        message = "a length from 100ms to 1m, for example 10s"
        raise ValueError(message)
    return value


class AlertmanagerSettings(Section):
    """
    One Alertmanager; each of a group of several is told everything.

    `user` with `password_file` is basic authentication, `token_file` a bearer token, `ca_file` the authority
    of its certificate where the machine does not trust it anyway.
    """

    url: Annotated[Url, AfterValidator(_without_password)]
    user: str = ""
    password_file: Path | None = None
    token_file: Path | None = None
    ca_file: Path | None = None
    timeout: Annotated[Duration, AfterValidator(_timeout)] = timedelta(seconds=10)

    @model_validator(mode="after")
    def _has_one_way_in(self) -> Self:
        if bool(self.user) is not (self.password_file is not None):
            message = "user and password_file, or neither of them"
            raise ValueError(message)
        if self.user and self.token_file is not None:
            message = "either user and password_file, or token_file"
            raise ValueError(message)
        return self


class AlertingSettings(Section):
    """
    Alertmanagers that are told of alerts, which the product evaluates itself; with a Prometheus, none.

    What fires is sent again every `resend`. When nothing is sent any more, an Alertmanager takes it for
    resolved after `expire`: a ledger that is away for less than that resolves nothing. The watchdog is taken
    for resolved sooner, after four times `resend`, so that somebody notices.

    `runbooks_url` is where the site keeps the runbooks; without it alerts point to those on the page Alerts.
    """

    alertmanagers: tuple[AlertmanagerSettings, ...] = ()
    resend: Annotated[Duration, Field(ge=timedelta(milliseconds=200))] = timedelta(minutes=1)
    expire: Duration = timedelta(days=3)
    runbooks_url: str = ""

    @model_validator(mode="after")
    def _expires_late_enough(self) -> Self:
        if self.expire < _LEAST_RESENDS * self.resend:
            message = f"expire of at least {_LEAST_RESENDS} times resend, so that a lost message does no harm"
            raise ValueError(message)
        return self
