"""`backup`, `restore`, `rebuild`, `forget`, `retire`: acts on the books, served or not."""

from pathlib import Path
from typing import Annotated

import typer

from domain.errors import StoreError, StoreHeldError
from service.cli.options import Config, DataDir, Given
from service.running import found
from service.settings import Settings

# What is done to a store that is there; a backup of none would look like one. A rebuild makes one.
_NEEDS_A_STORE = ("backup", "forget", "retire")
# A rebuild of a long journal takes its time.
_ANSWER_SECONDS = 3600.0


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("backup")(backup)
    app.command("restore")(restore)
    app.command("rebuild")(rebuild)
    app.command("forget")(forget)
    app.command("retire")(retire)


def backup(
    target: Annotated[
        Path | None,
        typer.Argument(help="The file to write.", show_default="one beside the store", metavar="FILE"),
    ] = None,
    *,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """Copy the store to a file, also while it is served."""
    _order(_settings(config, data_dir), "backup", "" if target is None else str(target.absolute()))


def restore(
    source: Annotated[Path, typer.Argument(help="A file that backup wrote.", metavar="FILE")],
    *,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """
    Put a backup in the place of the store, also while it is served.

    The store that was there is kept aside. Clusters are read on from where the backup stands.
    """
    _order(_settings(config, data_dir), "restore", str(source.absolute()))


def rebuild(*, config: Config = None, data_dir: DataDir = None) -> None:
    """
    Cut facts anew from the journal, with today's translators.

    There is a journal while keeping.journal_size is set. The store that was there is kept aside.
    """
    _order(_settings(config, data_dir), "rebuild", "")


def forget(
    user: Annotated[str, typer.Argument(help="The name, as the label has it.", metavar="USER")],
    *,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """
    Take a person's name out of the store, its journal and the backups beside it.

    Another word stands for it from then on. Backups elsewhere, and stores that were kept aside, are
    not touched.
    """
    _order(_settings(config, data_dir), "forget", user)


def retire(
    cluster: Annotated[str, typer.Argument(help="Its name in the settings, as it was.", metavar="CLUSTER")],
    *,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """
    End all that is known of a cluster that is read no more.

    Its work and nodes end with its last reading, so that nothing of it waits, runs or is late for ever.
    What happened before stays in the books.
    """
    _order(_settings(config, data_dir), "retire", cluster)


def _settings(config: Path | None, data_dir: Path | None) -> Settings:
    return Given(config=config, data_dir=data_dir).settings()


def _order(settings: Settings, order: str, argument: str) -> None:
    from service.keeping import Keeper
    from service.orders import give
    from service.recovery import open_store

    if found(settings.serve_file) is not None:
        typer.echo(give(settings.orders_dir, order, argument, seconds=_ANSWER_SECONDS))
        return
    file = settings.store_file
    if not file.exists() and order in _NEEDS_A_STORE:
        message = f"{order}: there is no store {file}; name its folder with --data-dir, or in the settings"
        raise StoreError(message)
    if not file.exists() and order == "restore":
        typer.echo(_restore_over(settings, Path(argument), None))
        return
    try:
        store = open_store(settings)
    except StoreHeldError:
        raise
    except StoreError as cause:
        if order != "restore":
            raise
        typer.echo(_restore_over(settings, Path(argument), cause))
        return
    try:
        typer.echo(Keeper(settings, store).handlers()[order](argument))
    finally:
        store.close()


def _restore_over(settings: Settings, source: Path, cause: StoreError | None) -> str:
    """
    Put a backup in the place of a store that cannot be opened: that is what backups are for.

    Without a `cause` there is none.
    """
    from service.backups import replace_broken
    from service.keeping import Keeper
    from service.recovery import backup_file, open_store

    aside = settings.store.data_dir / "aside" / backup_file(settings).stem
    replace_broken(source, settings, aside)
    store = open_store(settings)
    try:
        again = Keeper(settings, store).forget_again()
    finally:
        store.close()
    told = f"{source} is in place"
    if cause is not None:
        told += f"; what was there before could not be opened, and is in {aside} ({cause})"
    return f"{told}; {again:,} names that were forgotten since were forgotten in it too" if again else told
