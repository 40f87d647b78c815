"""What the operator does with the books: copies, rebuilding, forgetting, retiring, dropping what is old."""

import gzip
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from pathlib import Path

import msgspec

from collector.intake import Intake
from collector.journal import Journal, JournaledIntake, JournalFirst, journal_files
from collector.journal_reading import JournalFile
from collector.kube.watch_steps import Outcome
from collector.on_disk import settle
from collector.shared_intake import TakesIn
from collector.translator import TRANSLATORS
from domain.errors import StoreError, UsageError
from service import rebuilding
from service.backups import (
    beside,
    brought_in,
    check_room,
    check_target,
    drop,
    keep_aside,
    refuse_log,
    written_first,
)
from service.corrections import unlearnt
from service.forgotten import Forgotten
from service.forgotten_months import forget_in_months, named_in_months
from service.orders import Handler
from service.recovery import backup_file, backups, journal_folder, journals
from service.settings import Settings
from store import forgetting, retention, statements
from store.embedded import Store
from store.limits import size_bytes

_BLOCK_BYTES = 1 << 20


class Keeper:
    """
    Acts on an open store, also while it is served.

    Args:
        settings: where things lie.
        store: the books.
        alone: while it is entered nobody reads clusters or measures.
        renewed: called when the books are other ones than before.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        *,
        alone: Callable[[], AbstractContextManager[None]] = nullcontext,
        renewed: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._store = store
        self._alone = alone
        self._renewed = renewed
        self.forgotten = forgotten_names(settings)

    def handlers(self) -> Mapping[str, Handler]:
        """What can be ordered, by name; each takes its one argument and says what it did."""
        return {
            "backup": lambda target: self.backup(Path(target) if target else None),
            "restore": lambda source: self.restore(Path(source)),
            "rebuild": lambda _: self.rebuild(),
            "forget": self.forget,
            "retire": self.retire,
        }

    def backup(self, target: Path | None = None) -> str:
        """
        Copy all that is committed to a file; by default to one beside the store.

        Raises:
            StoreError: it is there already, or cannot be written.
        """
        target = backup_file(self._settings) if target is None else target
        check_target(target)
        written = written_first(target)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._copy_to(written)
            settle(written)
            written.replace(target)
            settle(target)
        except OSError as cause:
            message = f"backup {target}: {cause}; choose a folder that can be written"
            raise StoreError(message) from cause
        finally:
            drop(written)
        return f"{target}: {target.stat().st_size / 1e6:,.1f} MB"

    def restore(self, source: Path) -> str:
        """
        Put a backup in the place of the store; the store is kept aside.

        Raises:
            StoreError: it is no backup of this version, or there is no room; the store is as it was.
        """
        incoming = brought_in(source, self._settings)
        try:
            with self._alone():
                before = statements.closed_months(self._store)
                aside = self._exchange(incoming, alone=nullcontext)
                again = self.forget_again()
                there = {head.sha256 for head in statements.closed_months(self._store)}
        except OSError as cause:
            message = f"backup {source}: {cause}; look at the folder of the store"
            raise StoreError(message) from cause
        finally:
            drop(incoming)
        signed = [f"{head.month} (sha256 {head.sha256})" for head in before if head.sha256 not in there]
        told = [f"{source} is in place; what was there before is {aside}"]
        told += [f"{again:,} names that were forgotten since were forgotten in it too"] if again else []
        told += [f"closed months that it does not have are there: {', '.join(signed)}"] if signed else []
        return "; ".join(told)

    def rebuild(self) -> str:
        """
        Cut facts of clusters with a journal anew from it, with today's translators.

        What their journals do not tell, other clusters, GPU samples, and what was said and measured at the
        time are taken over as they are.

        Raises:
            StoreError: nothing was journaled, or something would be lost; the store is as it was.
        """
        journaled = journals(self._settings)
        if not journaled:
            message = "there is no journal to rebuild from: set keeping.journal_size, for example 5GB"
            raise StoreError(message)
        incoming = beside(self._settings.store_file, "rebuilt")
        earlier = beside(self._settings.store_file, "earlier")
        try:
            with self._alone():
                self._copy_to(earlier)
                rebuilt = Store.open(incoming)
                try:
                    told = rebuilding.rebuild(rebuilt, earlier, journaled, self._settings.checkpoints.keys)
                finally:
                    rebuilt.close()
                settle(incoming)
                aside = self._exchange(incoming, alone=nullcontext)
        except OSError as cause:
            message = f"rebuild: {cause}; look at the folder of the store"
            raise StoreError(message) from cause
        finally:
            drop(incoming)
            drop(earlier)
        return f"{told.words()}; what was there before is {aside}"

    def forget(self, name: str) -> str:
        """
        Take a person's name out of the books, the journal, and the backups and reports beside the store.

        Another word stands for it from now on, also when the cluster tells the name again. Reports
        that hold it are removed; `serve` writes those of the last weeks anew.
        """
        if not self.forgotten.labels:
            message = "tenancy.users names no label that holds a user's name: there is nothing to forget"
            raise StoreError(message)
        with self._alone():
            instead = self.forgotten.add(name)
            rows, months = self._forget(name, instead)
            self._leave_nothing_in_free_blocks()
            entries = sum(
                self._rewrite(path, name)
                for _, folder in journals(self._settings)
                for path in journal_files(folder)
            )
            old = backups(self._settings)
            if old:
                self.backup()
            for path in old:
                path.unlink()
            reports = self._drop_reports(name)
            self._renewed()
        elsewhere = forgetting.elsewhere(self._store, name)
        told = [f"{name} is {instead} now; {rows:,} descriptions were changed"]
        told += [f"{reports:,} weekly reports were removed"] if reports else []
        told += [f"{months:,} closed months are signed with it and keep it"] if months else []
        told += [
            f"{count:,} {place} hold it within something else"
            for place, count in (*elsewhere.items(), ("entries of the journal", entries))
            if count
        ]
        return "; ".join(told)

    def retire(self, cluster: str) -> str:
        """
        End all that is known of a cluster that is read no more, as of its last reading.

        Else its work would run, wait and hold GPUs for ever, and its sources would be late for ever.

        Raises:
            UsageError: it is in the settings, or nothing of it was ever read.
            StoreError: its journal cannot be written; nothing has changed.
        """
        if cluster in {one.name for one in self._settings.clusters}:
            message = f"cluster {cluster}: take it out of clusters in the settings first, and start again"
            raise UsageError(message)
        marks = self._store.known(cluster).marks
        if not any(mark.seen_ms for mark in marks.values()):
            read = ", ".join(self._store.clusters()) or "none"
            message = f"cluster {cluster}: expected one that was read ({read})"
            raise UsageError(message)
        with self._alone():
            intake = self._intake(cluster)
            for translator in TRANSLATORS:
                if translator.kind in marks:
                    last_ms = marks[translator.kind].seen_ms
                    intake.removed(translator, last_ms + 1)
                    intake.troubled(translator, f"{Outcome.NOT_INSTALLED}: the cluster was retired", last_ms)
            try:
                rows = intake.flush()
            except OSError as cause:
                message = f"cluster {cluster}: {cause}; make room, and give the order again"
                raise StoreError(message) from cause
            self._renewed()
        return f"{cluster} has ended with its last reading: {rows:,} facts say so"

    def _intake(self, cluster: str) -> TakesIn:
        """What is told of a cluster by us; where it has a journal, in that too."""
        known, folder = self._store.known(cluster), journal_folder(self._settings, cluster)
        if not folder.is_dir():
            return Intake(cluster, self._store, known)
        size = self._settings.keeping.journal_size
        # Of a journal that nobody keeps any more nothing is dropped for the sake of this.
        most_bytes = sys.maxsize if size is None else size_bytes(size)
        journal = Journal(folder, most_bytes=most_bytes, rewrite=self.forgotten.clean, marks=known.marks)
        return JournaledIntake(Intake(cluster, JournalFirst(self._store, journal), known), journal)

    def _forget(self, name: str, instead: str) -> tuple[int, int]:
        """Let a word stand for a name; gives how many descriptions changed, and closed months have it."""
        # First, so that closed months know the word whenever the books have it.
        months = forget_in_months(self._store, name, instead)
        with unlearnt(self._store):
            rows = forgetting.forget(self._store, name, instead, labels=self.forgotten.labels)
        return rows, months

    def forget_again(self) -> int:
        """Take names out that were forgotten after this store was copied; gives how many."""
        labels = self.forgotten.labels
        names = {
            name: instead
            for name in forgetting.names(self._store, labels) | named_in_months(self._store)
            if (instead := self.forgotten.instead_of(name)) is not None
        }
        for name, instead in names.items():
            self._forget(name, instead)
        if names:
            self._leave_nothing_in_free_blocks()
            self._renewed()
        return len(names)

    def drop_old(self, now_ms: int) -> int:
        """Drop what `keeping.retention` does not keep; gives how many workloads that were."""
        kept = self._settings.keeping.retention
        if kept is None:
            return 0
        before_ms = now_ms - kept // timedelta(milliseconds=1)
        return retention.drop_before(self._store, self._store.clusters(), before_ms)

    def _copy_to(self, target: Path) -> None:
        """
        A copy of the store, unless it would take the room that is reserved.

        Raises:
            StoreError: there is not so much room.
        """
        file = self._settings.store_file
        size = file.stat().st_size if file.exists() else 0
        check_room(target.parent, size, self._settings)
        self._store.copy_to(target)

    def _leave_nothing_in_free_blocks(self) -> None:
        """A copy takes the file's place: DuckDB leaves what was changed in blocks that it will use again."""
        file = self._settings.store_file
        copy = beside(file, "without")

        def exchange() -> None:
            refuse_log(file)
            copy.replace(file)
            settle(file)

        try:
            self._copy_to(copy)
            settle(copy)
            self._store.reopen(exchange)
        finally:
            drop(copy)

    def _exchange(
        self, incoming: Path, *, alone: Callable[[], AbstractContextManager[None]] | None = None
    ) -> Path:
        file = self._settings.store_file
        aside = self._settings.store.data_dir / "aside" / backup_file(self._settings).name

        def exchange() -> None:
            refuse_log(file)
            aside.parent.mkdir(parents=True, exist_ok=True)
            # Whenever we are killed, there is a whole store in the place of the store.
            keep_aside(file, aside)
            incoming.replace(file)
            settle(file)

        with (self._alone if alone is None else alone)():
            self._store.fold()
            self._store.reopen(exchange)
            self._renewed()
        return aside

    def _drop_reports(self, name: str) -> int:
        """Remove the reports in which the name stands, each in all its formats; gives how many."""
        folder = self._settings.reports_dir
        files = [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
        holding = {path.stem for path in files if name in path.read_text(encoding="utf-8", errors="replace")}
        for path in files:
            if path.stem in holding:
                path.unlink()
        return len(holding)

    def _rewrite(self, path: Path, name: str) -> int:
        """
        The file without the name; gives how many entries still hold it within something else.

        It is written as it can be read, and says where it could not be.
        """
        written = path.with_suffix(".new")
        holding = 0
        file, waiting = JournalFile(path), bytearray()
        with written.open("wb") as new:
            for line in file:
                clean = self.forgotten.clean(line.decode(errors="surrogateescape"))
                holding += name in clean
                waiting += clean.encode(errors="surrogateescape") + b"\n"
                if len(waiting) > _BLOCK_BYTES:
                    new.write(gzip.compress(waiting))
                    waiting.clear()
            if file.broken is not None:
                waiting += msgspec.json.encode(file.broken) + b"\n"
            new.write(gzip.compress(waiting))
        settle(written)
        written.replace(path)
        settle(path)
        return holding


def forgotten_names(settings: Settings) -> Forgotten:
    """The names that were forgotten in these books; looked for in the labels that name users."""
    rules = settings.tenancy.users
    labels = {label for rule in rules for label in (rule.from_label, rule.from_namespace_label) if label}
    return Forgotten(settings.store.data_dir / "forgotten.json", tuple(sorted(labels)))
