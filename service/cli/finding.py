"""What `doctor` says of one thing that it looked at."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `remedy` is what to do, empty when all is well."""

    verdict: Verdict
    text: str
    remedy: str = ""
