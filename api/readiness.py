"""What `/readyz?verbose` says: one line per source, as Kubernetes' own probes do."""

from collections.abc import Iterable

from api.answers import Record, SourceState

_WELL = (SourceState.READ, SourceState.NOT_INSTALLED)


def verbose(sources: Iterable[Record]) -> str:
    """
    A line per source: `[+]` where it is read or there is nothing to read, else `[-]` and why.

    A source that is not read makes nobody unready: the rest works, and says what is missing.
    """
    return "\n".join([*map(_line, sources), "ok", ""])


def _line(row: Record) -> str:
    if row["kind"] == "gap":
        # Some trouble of the ledger itself is of no cluster.
        whose = row["cluster"] or row["source"]
        return f"[-]{whose} {row['last_error']}: {row['missing']}; {row['remedy']}"
    name = "/".join(part for part in (row["cluster"], row["kind"], row["source"]) if part)
    if row["state"] == SourceState.SET_ASIDE_ONLY:
        return f"[+]{name} {row['set_aside']} set aside"
    if row["state"] in _WELL:
        lag = "" if row["lag_seconds"] is None else f", {row['lag_seconds']:.0f} s behind"
        return f"[+]{name} {row['state']}{lag}"
    why = "; ".join(part for part in (row["missing"], row["last_error"], row["remedy"]) if part)
    return f"[-]{name} {row['state']}: {why}"
