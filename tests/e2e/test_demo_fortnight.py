"""`gpuledger demo` with two weeks of a cluster: it comes up, and its figures are there."""

from pathlib import Path

import pytest

from sample_data.fortnight import END
from tests.e2e.processes import Demo, demo, fetch

# Some 40 s on two idle cores.
READY_SECONDS = 240.0

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


def test_the_fortnight_is_imported_with_its_gpu_metrics_and_answers(tmp_path: Path) -> None:
    with demo(tmp_path, "--sample", "fortnight", ready_seconds=READY_SECONDS) as running:
        said = running.output.read_text()
        assert "changes of objects and" in said
        assert "books kept and measured in" in said
        listed = fetch(f"{running.api}/api/v1/metrics").json()["rows"]
        assert {"queue_wait_seconds", "held_gpus"} <= {row["name"] for row in listed}
        answer = fetch(f"{running.api}/api/v1/metrics/held_gpus", by="gpu_model").json()
        assert answer["as_of"] == END.replace("Z", ".000Z")
        models = {row["labels"]["gpu_model"]: row["value"] for row in answer["rows"]}
        assert models["NVIDIA-A100-SXM4-80GB"] > 50
        assert fetch(f"{running.dashboard}/_stcore/health").text == "ok"
        _a_cut_of_the_wasteful_team_pays_for_what_the_starved_one_is_owed(running)


def _a_cut_of_the_wasteful_team_pays_for_what_the_starved_one_is_owed(running: Demo) -> None:
    """In here, for an import of the fortnight takes long."""
    address = f"{running.api}/api/v1/quota/proposals"
    rows = fetch(address).json()["rows"]
    [cut] = [row for row in rows if row["kind"] == "cut"]
    [gift] = [row for row in rows if row["holder"] == "speech"]
    assert (cut["holder"], cut["week"], cut["pool"]) == ("ads", "2026-W44", "company/a100")
    assert cut["before_gpus"] - cut["after_gpus"] >= 2
    assert 0.25 < cut["evidence"]["hell_ratio"] < 0.40
    assert f"{cut['evidence']['hell_ratio']:.1%}" in cut["because"]
    assert gift["kind"] == "gift"
    assert gift["funding"] == [{"proposal": cut["id"], "gpus": gift["after_gpus"] - gift["before_gpus"]}]
    for row in (cut, gift):
        change = fetch(f"{address}/{row['id']}").json()["patch"][-1]
        assert (change["op"], change["value"]) == ("replace", str(row["after_gpus"]))
