"""
The reports: one file each, with a `REPORT`. A new file here is a new report.

A report is made from the answers that its reader may see, by the same questions that the pages ask:
it computes no figure of its own. `gpuledger report`, `/api/v1/reports/{name}` and the weekly files
come from `REPORTS`.
"""

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from typing import Final

from api.reports.report import Builder
from domain.errors import PolicyError

_PARTS: Final = {"report", "sections"}


def _declared() -> Iterable[Builder]:
    for module in pkgutil.iter_modules(__path__):
        if module.name in _PARTS:
            continue
        builder = importlib.import_module(f"{__name__}.{module.name}").REPORT
        if builder.name != module.name:
            message = (
                f"report {builder.name} in {module.name}.py: expected the file to have the report's name"
            )
            raise PolicyError(message)
        yield builder


REPORTS: Final[Mapping[str, Builder]] = {builder.name: builder for builder in _declared()}
