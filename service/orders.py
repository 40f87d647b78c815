"""
Orders to a running `serve`: a file in the data folder asks, another one answers.

Whoever may write there may order; no door of the network is needed for what only the operator does.
"""

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event
from time import monotonic
from typing import TypeAlias
from uuid import uuid4

from domain.errors import ProductError, StoreError, UnreachableError, UsageError

log = logging.getLogger("gpuledger.orders")

Handler: TypeAlias = Callable[[str], str]
_ASKED, _ANSWERED = ".order.json", ".answer.json"
_LOOK_SECONDS = 0.1


def give(folder: Path, order: str, argument: str, *, seconds: float) -> str:
    """
    Order something of the process that serves from this folder; gives what it says.

    Raises:
        UnreachableError: no answer came in that time.
        UsageError: what was ordered makes no sense.
        StoreError: it could not do it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = uuid4().hex
    asked, answered = folder / f"{name}{_ASKED}", folder / f"{name}{_ANSWERED}"
    _write(asked, {"order": order, "argument": argument})
    give_up, pause = monotonic() + seconds, Event()
    try:
        while not answered.exists():
            if monotonic() > give_up:
                message = (
                    f"{order}: the running gpuledger serve gave no answer in {seconds:.0f} s; look at its log"
                )
                raise UnreachableError(message)
            pause.wait(_LOOK_SECONDS)
    finally:
        # Whoever gives up, also by Ctrl-C, does not want it done later.
        asked.unlink(missing_ok=True)
    said = json.loads(answered.read_text(encoding="utf-8"))
    answered.unlink()
    if said["error"]:
        raise (UsageError if said["wrong"] else StoreError)(said["error"])
    return str(said["said"])


def take(folder: Path, handlers: Mapping[str, Handler]) -> int:
    """Do what was ordered since, and answer; gives how many orders there were."""
    orders = sorted(folder.glob(f"*{_ASKED}")) if folder.is_dir() else []
    for path in orders:
        said = {"said": "", "error": "", "wrong": ""}
        try:
            order = json.loads(path.read_text(encoding="utf-8"))
            # Taken once: one that ends us would else end us at each start.
            path.unlink()
            said["said"] = handlers[order["order"]](str(order["argument"]))
        except ProductError as error:
            said |= {"error": str(error), "wrong": "asked" if isinstance(error, UsageError) else ""}
        except Exception as error:
            # Whoever waits for the answer hears of a fault of ours too, and the service goes on.
            log.exception("order failed", extra={"order": path.name})
            said["error"] = f"order {path.name}: {type(error).__name__}: {error}"
        path.unlink(missing_ok=True)
        _write(path.with_name(path.name.removesuffix(_ASKED) + _ANSWERED), said)
    return len(orders)


def _write(path: Path, said: Mapping[str, str]) -> None:
    """The rename makes the file whole for every reader."""
    written = path.with_suffix(".new")
    written.write_text(json.dumps(said) + "\n", encoding="utf-8")
    written.chmod(0o600)
    written.replace(path)
