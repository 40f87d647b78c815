"""`doctor`: what is wrong, in plain words, and what to do about it."""

import platform
import shutil
import socket
from collections.abc import Iterator
from importlib import metadata
from typing import TYPE_CHECKING, Any

import requests
import typer

from api.answers import SourceState
from dashboard.shared.causes import explained
from dashboard.shared.own_api import ask
from domain.errors import DataError, ProductError
from domain.facts import ObjectKind
from domain.gpu_sample import GPU_METRICS
from domain.window import SystemClock
from domain.words import count
from service import words
from service.cli import doctor_clusters
from service.cli.finding import Finding, Verdict
from service.cli.options import Config, DataDir, Given
from service.gaps import GAP
from service.running import announced, found
from service.settings import Settings
from store.limits import size_bytes

if TYPE_CHECKING:
    from store.embedded import Store

_PACKAGES = ("duckdb", "polars", "pyarrow", "streamlit", "kubernetes", "starlette", "prometheus-client")
_LOW_BYTES = 1_000_000_000
_SHOWN = 10
# To be reached, and to answer.
_SERVE_SECONDS = (3, 30)
# What to do about a source that is silent.
_STALE_KIND = "is `gpuledger serve` running, and does it reach the cluster?"
_STALE = {
    GPU_METRICS: "is `gpuledger serve` running, and does dcgm-exporter run and give values on the nodes?"
}


# Kinds that come when somebody brings them.
_NEVER_WATCHED = (ObjectKind.IMPORTED_JOB, ObjectKind.CHECKPOINT)
# A cluster that is silent for so long may be gone for good.
_GONE_SECONDS = 86_400


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(doctor)


def doctor(*, config: Config = None, data_dir: DataDir = None) -> None:
    """Say what is wrong, and what to do about it.

    Looks at the installation, the settings, the store and the sources.
    """
    settings = Given(config=config, data_dir=data_dir).settings()
    findings = []
    for finding in examine(settings):
        findings.append(finding)
        typer.echo(f"{finding.verdict:<8} {finding.text}")
        if finding.remedy:
            typer.echo(f"{'':<8} -> {finding.remedy}")
    wrong = [finding for finding in findings if finding.verdict is Verdict.WRONG]
    if wrong:
        are = "is" if len(wrong) == 1 else "are"
        message = f"{len(wrong)} of {count(len(findings), 'finding')} {are} wrong; the first: {wrong[0].text}"
        raise DataError(message)


def examine(settings: Settings) -> Iterator[Finding]:
    """All findings, in the order in which they should be mended."""
    yield from _installation()
    yield from _access(settings)
    for cluster in settings.clusters:
        yield from doctor_clusters.findings(cluster, SystemClock())
    yield from doctor_clusters.second_names(settings.clusters)
    yield from _data_dir(settings)
    yield from _books(settings)


def _installation() -> Iterator[Finding]:
    versions = [f"Python {platform.python_version()}"]
    for package in ("gpuledger", *_PACKAGES):
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            yield Finding(
                Verdict.WRONG, f"package {package} is not installed", "install again: pip install ."
            )
    yield Finding(Verdict.OK, ", ".join(versions))


def _access(settings: Settings) -> Iterator[Finding]:
    try:
        settings.authentication().check_bind(settings.server.host)
        settings.token()
        yield Finding(Verdict.OK, f"auth mode {settings.auth.mode} on {settings.server.host}")
    except ProductError as error:
        yield Finding(Verdict.WRONG, str(error), "mend the settings; `gpuledger config show` prints them")
    serving = found(settings.serve_file)
    stale = announced(settings.serve_file)
    if serving is None and stale is not None:
        text = f"serve (pid {stale.pid}) announced {stale.url} and does not answer"
        yield Finding(Verdict.WARNING, text, "start it again with `gpuledger serve`, or remove serve.json")
    for name, port in (("API", settings.server.port), ("dashboard", settings.server.dashboard_port)):
        if serving is None and port and _is_taken(settings.server.host, port):
            text = f"port {port} of the {name} is in use by another program"
            yield Finding(Verdict.WARNING, text, "stop that program, or choose another port in the settings")


def _is_taken(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=0.5):
            return True
    except OSError:
        return False


def _data_dir(settings: Settings) -> Iterator[Finding]:
    folder = settings.store.data_dir
    existing = next((path for path in (folder, *folder.absolute().parents) if path.exists()), folder)
    free = shutil.disk_usage(existing).free
    reserved = size_bytes(settings.keeping.min_free)
    if free < reserved:
        text = f"{existing} has {free / 1e6:,.0f} MB free, less than keeping.min_free: nothing is read now"
        yield Finding(Verdict.WRONG, text, "make room, or lower keeping.min_free; reading goes on by itself")
    elif free < _LOW_BYTES:
        text = f"{existing} has {free / 1e6:,.0f} MB free"
        yield Finding(Verdict.WARNING, text, "make room: a full disk stops the collector")
    if not settings.store_file.exists():
        remedy = "import a recording (`gpuledger import k8s FOLDER`) or watch a cluster (`gpuledger up`)"
        yield Finding(Verdict.WARNING, f"{settings.store_file}: there is no store yet", remedy)
        return
    size = settings.store_file.stat().st_size
    yield Finding(Verdict.OK, f"{settings.store_file}: {size / 1e6:,.1f} MB, {free / 1e9:,.1f} GB free")


def _books(settings: Settings) -> Iterator[Finding]:
    """What the store says, asked of the running `serve` where there is one."""
    serving = found(settings.serve_file)
    if serving is not None:
        yield Finding(Verdict.OK, f"serve (pid {serving.pid}) answers on {serving.url}")
        token = settings.token()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            yield from _told_by_serve(serving.url, headers, settings)
        except requests.RequestException as error:
            text = f"serve does not tell its sources: {error}"
            yield Finding(Verdict.WRONG, text, "look at its log; start it again if it hangs")
        return
    if not settings.store_file.exists():
        return
    from service.answers import Answers
    from service.clocks import clock_of
    from store.embedded import Store

    try:
        store = Store.open(settings.store_file, memory_limit=settings.store.memory_limit)
    except ProductError as error:
        yield Finding(Verdict.WRONG, str(error), "close what holds it, or restore a backup")
        return
    try:
        yield from _schema(store)
        answers = Answers(store, settings.tenancy_rules(), settings.thresholds(), clock_of(settings, store))
        yield from source_findings(list(answers.sources().rows), settings)
    finally:
        store.close()


def _told_by_serve(url: str, headers: dict[str, str], settings: Settings) -> Iterator[Finding]:
    reply = ask("GET", f"{url}/api/v1/sources", headers=headers, timeout=_SERVE_SECONDS)
    if not reply.ok:
        text = f"serve refuses its sources with status {reply.status_code}"
        yield Finding(Verdict.WARNING, text, "set auth.token_file, so that the command line may ask")
        return
    yield from source_findings(reply.json()["rows"], settings)
    checks = ask("GET", f"{url}/api/v1/kueue-checks", headers=headers, timeout=_SERVE_SECONDS)
    if checks.ok:
        yield from kueue_findings(checks.json()["rows"])


def _schema(store: "Store") -> Iterator[Finding]:
    from store.migrate import migrations

    yield Finding(Verdict.OK, f"store {store.name} is at schema {migrations()[-1].name}")


def source_findings(rows: list[dict[str, Any]], settings: Settings) -> Iterator[Finding]:
    """What is missing or late, and what was set aside, by the rows of `/api/v1/sources`."""
    if not rows:
        yield Finding(
            Verdict.WARNING, "nothing was read yet", "import a recording, or name a cluster in the settings"
        )
        return
    gaps = [row for row in rows if row["kind"] == GAP]
    rows = [row for row in rows if row["kind"] != GAP]
    stale, left = _late(rows, settings)
    # What the cluster does not serve has an error too, and there is nothing to miss.
    failing = [row for row in rows if row["last_error"] and row["state"] != SourceState.NOT_INSTALLED]
    read = [row for row in rows if row["seen_at"]]
    yield Finding(
        Verdict.OK,
        f"{count(len(read), 'source')} of {count(len({row['cluster'] for row in read}), 'cluster')} "
        f"{'was' if len(read) == 1 else 'were'} read",
    )
    yield from _failing(failing)
    for row in gaps[:_SHOWN]:
        whose = f"cluster {row['cluster']}" if row["cluster"] else row["source"]
        yield Finding(Verdict.WARNING, f"{whose}: {row['last_error']}: {row['missing']}", row["remedy"])
    for row in stale[:_SHOWN]:
        text = f"{_name(row)} was last read {words.duration(row['lag_seconds'])} ago"
        remedy = _STALE.get(row["kind"], _STALE_KIND)
        if row["kind"] != GPU_METRICS and row["lag_seconds"] > _GONE_SECONDS:
            remedy += (
                f" If cluster {row['cluster']} is gone for good, take it out of clusters in the settings,"
                f" and give `gpuledger retire {row['cluster']}`"
            )
        yield Finding(Verdict.WRONG, text, remedy)
    for cluster, lag_seconds in list(left.items())[:_SHOWN]:
        text = f"cluster {cluster} is in no setting, and was last read {words.duration(lag_seconds)} ago"
        remedy = (
            f"if it is gone for good, or has another name now, give `gpuledger retire {cluster}`: else its"
            " work runs and waits for ever; of a recording that was imported nothing more is expected"
        )
        yield Finding(Verdict.WARNING, text, remedy)
    causes = [(row, cause) for row in rows for cause in row["set_aside_causes"]]
    for row, cause in causes[:_SHOWN]:
        plain = explained(cause["because"])
        text = f"{_name(row)}: {cause['count']:,} set aside, {plain.plainly}"
        yield Finding(Verdict.WARNING, f"{text} ({cause['because']})", plain.remedy)
    if len(causes) > _SHOWN:
        text = f"{len(causes) - _SHOWN} more causes of things set aside"
        yield Finding(Verdict.WARNING, text, "the page Sources lists all of them")


def _late(rows: list[dict[str, Any]], settings: Settings) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """
    Sources that are late, and how late clusters are that were read once and are in no setting.

    Where no cluster is in the settings, all of them were imported, and are not expected to go on.
    """
    watched = {cluster.name for cluster in settings.clusters}
    measured = {one.cluster for one in settings.gpu_metrics}
    late: list[dict[str, Any]] = []
    left: dict[str, float] = {}
    for row in rows:
        cluster = row["cluster"]
        if not row["stale"] or row["kind"] in _NEVER_WATCHED:
            continue
        if cluster in (measured if row["kind"] == GPU_METRICS else watched):
            late.append(row)
        elif watched and row["kind"] != GPU_METRICS and cluster not in watched:
            left[cluster] = min(row["lag_seconds"], left.get(cluster, row["lag_seconds"]))
    return late, left


def _failing(rows: list[dict[str, Any]]) -> Iterator[Finding]:
    """One finding per trouble: a server that is away is one trouble of all its kinds."""
    alike: dict[tuple[str, bool, str], list[dict[str, Any]]] = {}
    for row in rows:
        same = (row["cluster"], row["state"] == SourceState.READ, row["last_error"])
        alike.setdefault(same, []).append(row)
    for (_, is_read, _), members in list(alike.items())[:_SHOWN]:
        first, further = members[0], len(members) - 1
        who = _name(first) + (f" and {further} more kinds" if further else "")
        again = "had trouble and are read again" if further else "had trouble and is read again"
        trouble = again if is_read else "cannot be read"
        missing = dict.fromkeys(row["missing"] for row in members if row["missing"])
        without = f"; meanwhile {'; '.join(missing)}" if missing else ""
        yield Finding(Verdict.WARNING, f"{who} {trouble}: {first['last_error']}{without}", first["remedy"])
    if len(alike) > _SHOWN:
        text = f"{len(alike) - _SHOWN} more troubles with sources"
        yield Finding(Verdict.WARNING, text, "the page Sources lists all of them")


def kueue_findings(rows: list[dict[str, Any]]) -> Iterator[Finding]:
    """Where Kueue's own figures lie apart from ours; nothing where nobody compares."""
    for source, error in sorted({(row["source"], row["error"]) for row in rows if row["error"]}):
        remedy = "is the address in kueue_metrics right, and does it answer from this machine?"
        yield Finding(Verdict.WARNING, f"Kueue's metrics at {source}: {error}", remedy)
    apart = [row for row in rows if row["differs"]]
    for row in apart[:_SHOWN]:
        flavor = f", flavor {row['flavor']}" if row["flavor"] else ""
        text = (
            f"{row['figure']} of ClusterQueue {row['queue']}{flavor} in {row['cluster']}: Kueue says "
            f"{row['theirs']:g}, we say {row['ours'] or 0:g}"
        )
        remedy = "does the account see all Workloads, and is the source read in time?"
        yield Finding(Verdict.WARNING, text, remedy)
    if not apart and (judged := [row for row in rows if row["figure"]]):
        yield Finding(Verdict.OK, f"{len(judged)} figures of Kueue were compared with ours and agree")


def _name(row: dict[str, Any]) -> str:
    """How a source is called: its cluster, its kind, and which of several it is."""
    return "/".join(part for part in (row["cluster"], row["kind"], row["source"]) if part)
