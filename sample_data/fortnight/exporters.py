"""The last hour of GPU metrics as exporters answer it: one file of recorded scrapes for each node."""

import gzip
from pathlib import Path
from typing import Any, Final

from sample_data.fortnight.samples import STEP_MS, samples
from sample_data.stamps import MS_PER_SECOND

_HOUR_MS: Final = 60 * STEP_MS
_ACTIVE: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
_USED: Final = "DCGM_FI_DEV_FB_USED"
_FAMILIES: Final = (_ACTIVE, _USED, "DCGM_FI_DEV_FB_FREE")
_DRIVER: Final = "580.82.07"


def write_exporters(truth: dict[str, Any], folder: Path) -> int:
    """
    Write `NODE.scrapes.gz` for each node that answered; gives the number of answers.

    Before each answer stands a line `#scrape {"t": SECONDS, "ms": .., "status": 200, "bytes": N}`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    end_ms = round(truth["end"] * MS_PER_SECOND)
    frame = samples(truth, from_ms=end_ms - _HOUR_MS).sort("node", "at_ms", maintain_order=True)
    answers: dict[str, list[tuple[int, list[dict[str, Any]]]]] = {}
    for row in frame.iter_rows(named=True):
        of_node = answers.setdefault(row["node"], [])
        if not of_node or of_node[-1][0] != row["at_ms"]:
            of_node.append((row["at_ms"], []))
        of_node[-1][1].append(row)
    for node, scrapes in answers.items():
        text = "".join(_scrape(at_ms, rows) for at_ms, rows in scrapes)
        (folder / f"{node}.scrapes.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    return sum(map(len, answers.values()))


def _scrape(at_ms: int, rows: list[dict[str, Any]]) -> str:
    lines = []
    for name in _FAMILIES:
        lines += [f"# HELP {name} {name}.", f"# TYPE {name} gauge"]
        lines += [f"{name}{{{_labels(row)}}} {_value(name, row)}" for row in rows]
    text = "\n".join(lines) + "\n"
    size = len(text.encode())
    head = f'#scrape {{"t": {at_ms / MS_PER_SECOND:.3f}, "ms": 1.2, "status": 200, "bytes": {size}}}\n'
    return head + text


def _value(name: str, row: dict[str, Any]) -> str:
    if name == _ACTIVE:
        return f"{row['activity']:.6f}"
    used = row["fb_used_mib"]
    return str(used if name == _USED else max(0, row["fb_total_mib"] - used))


def _labels(row: dict[str, Any]) -> str:
    said = {
        "gpu": "0",
        "UUID": row["uuid"],
        "modelName": row["gpu_model"],
        **({"GPU_I_PROFILE": row["profile"], "GPU_I_ID": row["instance"]} if row["instance"] else {}),
        "Hostname": row["node"],
        "DCGM_FI_DRIVER_VERSION": _DRIVER,
        "container": row["container"],
        "namespace": row["namespace"],
        "pod": row["pod"],
        **({"vgpu": "0"} if row["copies"] else {}),
    }
    return ",".join(f'{name}="{value}"' for name, value in said.items())
