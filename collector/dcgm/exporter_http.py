"""The line to exporters: one scrape of each, with a limit of time."""

from dataclasses import dataclass
from typing import Final

import requests

from domain.errors import UnreachableError

_TIMEOUT_SECONDS: Final = (3, 10)
_PATH: Final = "/metrics"


@dataclass(frozen=True, slots=True)
class ExporterAddress:
    """An exporter; its address may leave the path out."""

    url: str

    @property
    def source(self) -> str:
        """The name under which its samples are kept."""
        return f"exporter/{self.url.split('://', 1)[-1].rstrip('/')}"

    def scrape(self) -> str:
        """
        Its answer.

        Raises:
            UnreachableError: it does not answer in time, or not with metrics.
        """
        url = self.url if self.url.endswith(_PATH) else self.url.rstrip("/") + _PATH
        try:
            answer = requests.get(url, timeout=_TIMEOUT_SECONDS)
            answer.raise_for_status()
        except requests.RequestException as cause:
            message = f"exporter at {url} gave no answer: {cause}"
            raise UnreachableError(message) from cause
        return answer.text
