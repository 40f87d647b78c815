"""How much memory the store takes, from what the control group says."""

from pathlib import Path

import pytest

from store.embedded import Store
from store.limits import memory_limit


def group(folder: Path, path: str, text: str) -> None:
    file = folder / "cgroup" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        ("0::/\n", {"memory.max": "4294967296\n"}, "2048MiB"),
        ("0::/pod/main\n", {"pod/memory.max": "2147483648\n", "pod/main/memory.max": "max\n"}, "1024MiB"),
        ("9:pids:/\n4:cpu,memory:/pod\n", {"memory/pod/memory.limit_in_bytes": "3221225472\n"}, "1536MiB"),
        # The host's path, seen from inside: the container's own group is mounted at the root.
        ("4:memory:/kubepods/x\n", {"memory/memory.limit_in_bytes": "1073741824\n"}, "512MiB"),
        ("4:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712\n"}, "1GB"),
        ("0::/\n", {"memory.max": "104857600\n"}, "256MiB"),
        ("0::/\n", {}, "1GB"),
    ],
)
def test_half_of_the_containers_memory_is_the_stores(
    groups: str, files: dict[str, str], limit: str, tmp_path: Path
) -> None:
    (tmp_path / "groups").write_text(groups)
    for path, text in files.items():
        group(tmp_path, path, text)
    assert memory_limit(tmp_path / "cgroup", tmp_path / "groups") == limit


def test_a_machine_without_control_groups_gives_a_gigabyte(tmp_path: Path) -> None:
    assert memory_limit(tmp_path / "missing", tmp_path / "missing") == "1GB"


def test_a_limit_in_the_settings_wins(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "s.duckdb", memory_limit="300MiB")
    assert store.rows("select current_setting('memory_limit') as memory") == [{"memory": "300.0 MiB"}]
    store.close()
