"""`chargeback close`: a month becomes a statement that never changes."""

import getpass
import json
from typing import Annotated

import typer

from domain.errors import StoreError, UsageError
from service.cli.options import Config, DataDir, Given
from service.cli.output import remark
from service.running import found
from service.settings import Settings

# A month of many jobs is settled while somebody waits.
_ANSWER_SECONDS = 600.0


def close(
    *,
    month: Annotated[
        str, typer.Option("--month", help="Year and month in the billing zone.", metavar="YYYY-MM")
    ],
    reason: Annotated[
        str,
        typer.Option(
            "--reason",
            help="Why it may be closed although little of it was observed, or causes are missing; recorded.",
        ),
    ] = "",
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """
    Close a month for good, also while the store is served.

    It is refused where the month is not over, where its reconciliation does not hold, and where it is closed.
    """
    if not month.strip():
        message = "--month: expected year and month, for example 2026-10"
        raise UsageError(message)
    asked = {"month": month, "who": getpass.getuser(), "reason": reason}
    told = json.loads(_ordered(Given(config=config, data_dir=data_dir).settings(), json.dumps(asked)))
    typer.echo(f"{told['month']} is closed: sha256 {told['sha256']}")
    for each in told["checks"]:
        state = "holds" if each["holds"] else "forced"
        remark(f"{state.ljust(6)}  {each['words']}")


def _ordered(settings: Settings, asked: str) -> str:
    """Let a running serve do it, else do it with the store; raises StoreError without one."""
    from service.close_orders import CLOSE, CloseOrders
    from service.orders import give

    if found(settings.serve_file) is not None:
        return give(settings.orders_dir, CLOSE, asked, seconds=_ANSWER_SECONDS)
    if not settings.store_file.exists():
        message = f"{settings.store_file}: there is no store yet; say with --data-dir where it lies"
        raise StoreError(message)
    from service.clocks import clock_of
    from service.closing import Closer
    from store.embedded import Store

    store = Store.open(settings.store_file, memory_limit=settings.store.memory_limit)
    try:
        closer = Closer(
            store=store,
            agreement=settings.money.agreement(),
            policy=settings.thresholds(),
            tenancy=settings.tenancy_rules(),
            clock=clock_of(settings, store),
        )
        return CloseOrders(closer).handlers()[CLOSE](asked)
    finally:
        store.close()
