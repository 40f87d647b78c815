"""Who answers the command line: a running `serve`, else the store itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

import requests

from api.answers import (
    Answers,
    Filters,
    Listing,
    ListQuestion,
    Question,
    Record,
    ReportQuestion,
    format_length,
    metric_record,
)
from api.reports import REPORTS
from api.reports.report import made
from dashboard.shared.own_api import ask
from domain.errors import DataError, ForbiddenError, ProductError, StoreError, UnreachableError, UsageError
from domain.window import format_instant
from service.running import Running, found
from service.settings import Settings

_SECONDS = (3.0, 120.0)
_PIECE_BYTES = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A file on its way: its name, with the version of the month, and its bytes piece by piece."""

    name: str
    pieces: Iterator[bytes]


class Reader(Protocol):
    """Gives the documents of the API."""

    def metrics(self) -> Record:
        """Every metric's declaration."""

    def metric(self, name: str, question: Question) -> Record:
        """A metric's values."""

    def workloads(self, question: ListQuestion) -> Record:
        """A page of workloads."""

    def workload(self, uid: str, as_of_ms: int | None) -> Record:
        """One workload."""

    def why(self, uid: str, as_of_ms: int | None) -> Record:
        """Why one workload waits."""

    def pending(self, question: ListQuestion) -> Record:
        """A page of the workloads that wait for quota."""

    def report(self, name: str, question: ReportQuestion) -> Record:
        """One report."""

    def chargeback(self, month: str, question: Question) -> Record:
        """A month's statement."""

    def alerts(self, question: ReportQuestion) -> Record:
        """What fires, is pending, and fired in a window."""

    def export(self, month: str, question: Question, form: str) -> Exported:
        """A month as a file, in a format of `api.exports.formats`."""

    def quota_proposals(self, as_of_ms: int | None) -> Record:
        """Every quota proposal."""

    def quota_proposal(self, proposal_id: str, as_of_ms: int | None) -> Record:
        """One quota proposal with its patch."""


@dataclass(frozen=True, slots=True)
class StoreReader:
    """Reads an open store in this process."""

    _answers: Answers

    def metrics(self) -> Record:
        """Every metric's declaration."""
        rows = [metric_record(metric) for metric in self._answers.registry().values()]
        return Listing(as_of_ms=None, rows=rows, total=len(rows), page_size=len(rows)).document()

    def metric(self, name: str, question: Question) -> Record:
        """A metric's values."""
        return self._answers.metric(name, question).document()

    def workloads(self, question: ListQuestion) -> Record:
        """A page of workloads."""
        return self._answers.workloads(question).document()

    def workload(self, uid: str, as_of_ms: int | None) -> Record:
        """One workload; raises UsageError where there is none."""
        workload = self._answers.workload(uid, as_of_ms)
        if workload is None:
            message = f"workload {uid!r}: there is none; `gpuledger workloads` lists them"
            raise UsageError(message)
        return workload

    def why(self, uid: str, as_of_ms: int | None) -> Record:
        """Why one workload waits; raises UsageError where there is none."""
        found = self._answers.why(uid, as_of_ms)
        if found is None:
            message = f"workload {uid!r}: there is none; `gpuledger workloads` lists them"
            raise UsageError(message)
        return found

    def pending(self, question: ListQuestion) -> Record:
        """A page of the workloads that wait for quota."""
        return self._answers.pending_workloads(question).document()

    def report(self, name: str, question: ReportQuestion) -> Record:
        """One report."""
        return made(REPORTS[name], self._answers, question)

    def chargeback(self, month: str, question: Question) -> Record:
        """A month's statement."""
        return self._answers.chargeback(month, question)

    def alerts(self, question: ReportQuestion) -> Record:
        """What fires, is pending, and fired in a window."""
        return self._answers.alerts(question).document()

    def export(self, month: str, question: Question, form: str) -> Exported:
        """A month as a file."""
        from api.exports.formats import export_format, file_name

        chosen = export_format(form, named="format")
        statement = self._answers.month_statement(month, question)
        return Exported(name=file_name(statement, chosen), pieces=chosen.write(statement))

    def quota_proposals(self, as_of_ms: int | None) -> Record:
        """Every quota proposal."""
        return self._answers.quota_proposals(as_of_ms).document()

    def quota_proposal(self, proposal_id: str, as_of_ms: int | None) -> Record:
        """One quota proposal; raises UsageError where there is none."""
        proposal = self._answers.quota_proposal(proposal_id, as_of_ms)
        if proposal is None:
            message = f"proposal {proposal_id!r}: there is none; `gpuledger quota list` shows them"
            raise UsageError(message)
        return proposal


@dataclass(frozen=True, slots=True)
class ApiReader:
    """Asks a running `serve` over HTTP."""

    _running: Running
    _token: str

    def metrics(self) -> Record:
        """Every metric's declaration."""
        return self._get("metrics", {})

    def metric(self, name: str, question: Question) -> Record:
        """A metric's values."""
        params = _common(question.as_of_ms, question.filters)
        if question.window is not None:
            params["window"] = format_length(question.window)
        if question.by is not None:
            params["by"] = ",".join(question.by)
        return self._get(f"metrics/{_piece('metric', name, 'metrics')}", params)

    def workloads(self, question: ListQuestion) -> Record:
        """A page of workloads."""
        params = _common(question.as_of_ms, question.filters)
        params |= {"sort": question.sort, "page": question.page, "page_size": question.page_size}
        if question.states:
            params["state"] = ",".join(question.states)
        return self._get("workloads", params)

    def workload(self, uid: str, as_of_ms: int | None) -> Record:
        """One workload."""
        return self._get(f"workloads/{_piece('workload', uid, 'workloads')}", _common(as_of_ms, {}))

    def why(self, uid: str, as_of_ms: int | None) -> Record:
        """Why one workload waits."""
        return self._get(f"workloads/{_piece('workload', uid, 'workloads')}/why", _common(as_of_ms, {}))

    def pending(self, question: ListQuestion) -> Record:
        """A page of the workloads that wait for quota."""
        params = _common(question.as_of_ms, question.filters)
        return self._get(
            "pending-workloads", params | {"page": question.page, "page_size": question.page_size}
        )

    def report(self, name: str, question: ReportQuestion) -> Record:
        """One report."""
        return self._get(f"reports/{quote(name, safe='')}", _over_a_window(question))

    def alerts(self, question: ReportQuestion) -> Record:
        """What fires, is pending, and fired in a window."""
        return self._get("alerts", _over_a_window(question))

    def chargeback(self, month: str, question: Question) -> Record:
        """A month's statement."""
        params = _common(question.as_of_ms, question.filters)
        if question.by is not None:
            params["by"] = ",".join(question.by)
        return self._get(f"chargeback/{_month_piece(month)}", params)

    def export(self, month: str, question: Question, form: str) -> Exported:
        """A month as a file."""
        params = _common(question.as_of_ms, question.filters) | {"format": form}
        reply = self._ask(f"chargeback/{_month_piece(month)}/export", params, accept="*/*", stream=True)
        _, _, name = reply.headers["Content-Disposition"].partition('filename="')
        return Exported(name=name.rstrip('"'), pieces=self._pieces(reply))

    def quota_proposals(self, as_of_ms: int | None) -> Record:
        """Every quota proposal."""
        return self._get("quota/proposals", _common(as_of_ms, {}))

    def quota_proposal(self, proposal_id: str, as_of_ms: int | None) -> Record:
        """One quota proposal."""
        proposal = _piece("proposal", proposal_id, "quota list")
        return self._get(f"quota/proposals/{proposal}", _common(as_of_ms, {}))

    def _pieces(self, reply: requests.Response) -> Iterator[bytes]:
        try:
            yield from reply.iter_content(_PIECE_BYTES)
        except requests.RequestException as cause:
            message = f"{reply.url}: the answer broke off; the log of gpuledger serve may say why"
            raise UnreachableError(message) from cause

    def _get(self, path: str, params: dict[str, Any]) -> Record:
        document: Record = self._ask(path, params, accept="application/json").json()
        return document

    def _ask(
        self, path: str, params: dict[str, Any], *, accept: str, stream: bool = False
    ) -> requests.Response:
        url = f"{self._running.url}/api/v1/{path}"
        headers = {"Accept": accept}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            reply = ask("GET", url, params=params, headers=headers, timeout=_SECONDS, stream=stream)
        except requests.RequestException as cause:
            message = f"{url}: no answer from gpuledger serve (pid {self._running.pid}); its log may say why"
            raise UnreachableError(message) from cause
        if reply.ok:
            return reply
        raise _error_of(reply)


def _piece(kind: str, name: str, listed_by: str) -> str:
    """
    A name as one piece of an address.

    Raises:
        UsageError: it cannot be one, so nothing bears it.
    """
    if not _is_piece(name):
        message = f"{kind} {name!r}: there is none; `gpuledger {listed_by}` lists them"
        raise UsageError(message)
    return quote(name, safe="")


def _month_piece(month: str) -> str:
    if not _is_piece(month):
        message = f"month {month!r}: expected year and month, for example 2026-10, or current"
        raise UsageError(message)
    return quote(month, safe="")


def _is_piece(name: str) -> bool:
    # A server reads an escaped slash as a slash, and a client takes dots for a way through folders: either
    # would ask another address, whose "Not Found" says nothing of the name.
    return "/" not in name and name not in {"", ".", ".."}


def _common(as_of_ms: int | None, filters: Filters) -> dict[str, Any]:
    # Each value by itself: an empty one means something.
    params: dict[str, Any] = {name: list(values) for name, values in filters.items()}
    if as_of_ms is not None:
        params["as_of"] = format_instant(as_of_ms)
    return params


def _over_a_window(question: ReportQuestion) -> dict[str, Any]:
    params = _common(question.as_of_ms, question.filters)
    if question.window is not None:
        params["window"] = format_length(question.window)
    return params


def _error_of(reply: requests.Response) -> ProductError:
    try:
        detail = str(reply.json()["detail"])
    except (ValueError, KeyError, TypeError):
        detail = f"{reply.url}: status {reply.status_code}"
    if reply.status_code in {401, 403}:
        return ForbiddenError(detail)
    if reply.status_code < 500:
        return UsageError(detail)
    return UnreachableError(detail) if reply.status_code == 503 else DataError(detail)


@contextmanager
def open_reader(settings: Settings) -> Iterator[Reader]:
    """
    The running `serve` of these settings, else the store.

    Raises:
        StoreError: there is no store, or another process holds it.
    """
    running = found(settings.serve_file)
    if running is not None:
        yield ApiReader(running, settings.token())
        return
    if not settings.store_file.exists():
        message = (
            f"{settings.store_file}: there is no store yet; fill one with `gpuledger import k8s FOLDER`,"
            " look at a sample with `gpuledger demo`, or say with --data-dir where it lies"
        )
        raise StoreError(message)
    from service.answers import Answers as StoreAnswers
    from service.clocks import clock_of
    from store.embedded import Store

    store = Store.open(settings.store_file, memory_limit=settings.store.memory_limit)
    try:
        clock = clock_of(settings, store)
        answers = StoreAnswers(
            store,
            settings.tenancy_rules(),
            settings.thresholds(),
            clock,
            agreement=settings.money.agreement(),
            quotas=settings.quota,
        )
        yield StoreReader(answers)
    finally:
        store.close()
