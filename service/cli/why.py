"""`why`: why a workload waits, the answer first."""

from typing import Annotated

import typer

from analytics.why.timeline import NOT_EVALUATED
from api.answers import ListQuestion, Record
from domain.errors import UsageError
from service import words
from service.cli import options
from service.cli.options import AsOf, Cluster, Config, DataDir, Given, Output
from service.cli.output import Column, check_format, field, remark, table, write
from service.cli.reader import Reader, open_reader

# Sources by the API's words, as one says them.
_SOURCES = {
    "stated": "by its own state",
    "message": "by the scheduler's message",
    "placement": "by our search for a place",
    "quota": "by our arithmetic of quota",
    "order": "by the order of the queue",
}
_FINDINGS = (
    field("reason", "reason"),
    field("since", "since", words.instant),
    field("what", "sentence"),
    field("source", "source", wide=True),
    field("remedy", "remedy", wide=True),
)
_HOLDERS = (
    field("namespace", "namespace"),
    field("name", "name"),
    field("team", "team"),
    field("user", "user"),
    field("gpus", "amount", words.number),
    field("since", "since", words.instant),
    field("ends about", "ends_at", words.instant),
    field("not before", "ends_earliest", words.instant, wide=True),
    field("at the latest", "ends_latest", words.instant, wide=True),
    field("as", "ends_because", wide=True),
    field("nodes", "nodes", ", ".join),
    field("uid", "uid", wide=True),
)
_STRETCHES = (
    field("from", "start_at", words.instant),
    field("until", "end_at", words.instant),
    field("reason", "reason"),
    field("in the way", "blocker"),
    field("source", "source", wide=True),
)
_ENDED = "ended"
# How time is told in which nobody looked for a reason.
_WORDS = {NOT_EVALUATED: "before anybody looked why"}
# Of many holders the largest are told; all of them in wide and in JSON.
_HOLDERS_TOLD = 10
# Of a long course the last stretches are told; all of them in wide and in JSON.
_STRETCHES_TOLD = 8
_NAMED = 5
_EVIDENCE_TOLD = 8


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("why")(why)


def why(
    workload: Annotated[
        str, typer.Argument(help="A uid, NAMESPACE/NAME, or a name.", metavar="WORKLOAD", show_default=False)
    ],
    *,
    output: Output = "table",
    as_of: AsOf = None,
    cluster: Cluster = None,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """Say why a workload waits: a sentence, then the evidence, who holds what it needs, and what to do."""
    check_format(output)
    as_of_ms = options.instant(as_of)
    with open_reader(Given(config=config, data_dir=data_dir).settings()) as reader:
        found = reader.why(_uid_of(reader, workload, as_of_ms, cluster), as_of_ms)
    findings = [found["primary"], *found["further"]] if found["primary"] else []
    if output in {"csv", "parquet"}:
        write({"rows": [{**one, "evidence": _evidence(one)} for one in findings]}, output, ())
        return
    if output == "json":
        write(found, output, ())
        return
    _tell(found, wide=output == "wide")


def _uid_of(reader: Reader, named: str, as_of_ms: int | None, cluster: list[str] | None) -> str:
    """
    The uid that is meant: of several workloads of one name the one that is not over.

    Raises:
        UsageError: several are meant; names them.
    """
    namespace, _, name = named.rpartition("/")
    filters = {**options.filters(cluster=cluster), "name": (name,)}
    if namespace:
        filters["namespace"] = (namespace,)
    rows = reader.workloads(ListQuestion(as_of_ms=as_of_ms, filters=filters, page_size=100))["rows"]
    meant = [row for row in rows if row["state"] != "ended"] or rows[:1]
    if len(meant) > 1:
        several = ", ".join(f"{row['namespace']}/{row['name']} {row['uid']}" for row in meant[:_NAMED])
        message = f"workload {named!r}: {len(meant)} bear that name: say which by its uid: {several}"
        raise UsageError(message)
    return meant[0]["uid"] if meant else named


def _tell(found: Record, *, wide: bool) -> None:
    since = words.duration(found["in_state_seconds"])
    stands = f"ended {since} ago" if found["state"] == _ENDED else f"{found['state']} for {since}"
    queue = f" in queue {found['queue']}" if found["queue"] else ""
    gpus = found["requested_gpus"]
    typer.echo(f"{found['namespace']}/{found['name']}: {found['verdict']}")
    typer.echo(f"{stands}{queue}, asks {words.number(gpus)} {'GPU' if gpus == 1 else 'GPUs'}")
    primary = found["primary"]
    if primary is None:
        return
    if primary["remedy"]:
        typer.echo(f"\nWhat to do: {primary['remedy']}")
    typer.echo(f"Reason: {primary['reason']}, {_SOURCES[primary['source']]}")
    if primary["since"]:
        typer.echo(f"Since: {words.instant(primary['since'])}")
    if primary["evidence"]:
        typer.echo(f"Evidence: {_evidence(primary) if wide else _first_evidence(primary)}")
    if primary["text"]:
        typer.echo(f"In the scheduler's words: {primary['text']}")
    if found["eta"] is not None:
        _tell_start(found["eta"])
    if found["further"]:
        typer.echo("\nAlso true:\n" + table(found["further"], _shown(_FINDINGS, wide=wide)))
    _tell_holders(found, wide=wide)
    _tell_timeline(found, wide=wide)
    _tell_priority(found["priority"])
    place = found["queue_position"]
    if place is not None:
        kueue = "" if place["ahead"] is None else f", {place['ahead']} by Kueue's own order"
        typer.echo(f"\nBefore it in its queue: {place['ahead_by_our_order']}{kueue}")


def _tell_start(eta: Record) -> None:
    """When it starts, and what would let it start sooner."""
    typer.echo(f"\n{eta['sentence']}")
    if eta["sooner"]:
        typer.echo("What would let it start sooner, the best first:")
        for one in eta["sooner"]:
            typer.echo(f"- {one['sentence']}")


def _tell_priority(made: Record | None) -> None:
    if made is None:
        return
    value = f"{made['class']} {made['class_value']:,}, {made['ageing_bonus']:+,.0f} for its age"
    above = ""
    if made["outranks_at"]:
        at = words.instant(made["outranks_at"])
        above = f"; outranks {made['next_class']} ({made['next_value']:,}) at {at}"
    typer.echo(f"\nPriority by the policy: {value}{above}")


def _tell_holders(found: Record, *, wide: bool) -> None:
    if found["holders"]:
        what = "quota" if found["holds"] == "quota" else "GPUs"
        typer.echo(f"\nWho holds the {what} that it needs:")
        shown = found["holders"] if wide else found["holders"][:_HOLDERS_TOLD]
        typer.echo(table(shown, _shown(_HOLDERS, wide=wide)))
        rest = found["holders"][len(shown) :]
        if rest:
            amount = words.number(sum(one["amount"] for one in rest))
            remark(f"and {len(rest)} more with {amount} together; -o wide has them")
    others = found["other_holders"]
    if others["workloads"]:
        first = others["first_ends_at"]
        ends = f"; the first may end at about {words.instant(first)}" if first else ""
        remark(
            f"and {others['workloads']} other workloads with {words.number(others['amount'])} together{ends}"
        )


def _tell_timeline(found: Record, *, wide: bool) -> None:
    """For what it has waited, and in which order."""
    if not found["hours_by_reason"]:
        return
    waited = sum(one["hours"] for one in found["hours_by_reason"])
    parts = ", ".join(
        f"{words.duration(one['hours'] * 3600)} {_WORDS.get(one['reason'], one['reason'])}"
        for one in found["hours_by_reason"]
    )
    typer.echo(f"\nWaited {words.duration(waited * 3600)} so far: {parts}")
    timeline = found["timeline"] if wide else found["timeline"][-_STRETCHES_TOLD:]
    if len(found["timeline"]) > 1:
        typer.echo(table(timeline, _shown(_STRETCHES, wide=wide)))
    if len(timeline) < len(found["timeline"]):
        remark(f"and {len(found['timeline']) - len(timeline)} stretches before; -o wide has them")


def _shown(columns: tuple[Column, ...], *, wide: bool) -> list[Column]:
    return [column for column in columns if wide or not column.wide]


def _first_evidence(finding: Record) -> str:
    """
    So much of the evidence as one reads in a glance: counts of nodes come last.

    >>> _first_evidence({"evidence": {"nodes": 7, **{f"n{number}": 0 for number in range(8)}}})
    'n0 0, n1 0, n2 0, n3 0, n4 0, n5 0, n6 0, n7 0, and 1 more in -o wide'
    """
    told = sorted(finding["evidence"].items(), key=lambda one: one[0].startswith("nodes"))
    more = len(told) - _EVIDENCE_TOLD
    first = _evidence({"evidence": dict(told[:_EVIDENCE_TOLD])})
    return f"{first}, and {more} more in -o wide" if more > 0 else first


def _evidence(finding: Record) -> str:
    """
    Evidence in a line.

    >>> _evidence({"evidence": {"asked": 8, "taints": ["a", "b"]}})
    'asked 8, taints a b'
    """
    return ", ".join(
        f"{name.replace('_', ' ')} {' '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in finding["evidence"].items()
        # One flavor and resource stand there already, each by itself.
        if name != "kinds" or len(value) > 1
    )
