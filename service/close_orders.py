"""Closing a month by order, also while the store is served."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from service.closing import Closer, record
from service.orders import Handler

CLOSE: Final = "chargeback close"


@dataclass(frozen=True, slots=True)
class CloseOrders:
    """What can be ordered of whoever closes months."""

    closer: Closer

    def handlers(self) -> Mapping[str, Handler]:
        """What can be ordered, by name; it takes its argument as JSON and says what it did."""
        return {CLOSE: self._close}

    def _close(self, argument: str) -> str:
        """Close a month; raises as `Closer.close`."""
        asked = json.loads(argument)
        return json.dumps(record(self.closer.close(asked["month"], who=asked["who"], reason=asked["reason"])))
