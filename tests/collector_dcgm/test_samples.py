"""From readings to samples: whose they are, what is set aside, what copies and instances become."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.dcgm.exporter import take_answer
from collector.dcgm.samples import (
    BAD_LABELS,
    BAD_LINE,
    NO_DEVICE,
    NOT_PER_INSTANCE,
    PARENT,
    REPEATED,
    Gathered,
    Samples,
)
from domain.gpu_sample import BLANKS, Device, Field, NoValue, owner_of, value_of
from tests.shared import shared

STEP_MS = 15_000
AT_MS = 1_000_000


def made(text: str, *, at_ms: int = AT_MS) -> Samples:
    gathered = Gathered(node="n9")
    take_answer(gathered, text, at_ms)
    return gathered.samples(STEP_MS)


def rows(text: str) -> list[dict[str, Any]]:
    return list(made(text).frame.iter_rows(named=True))


def sample(name: str) -> list[dict[str, Any]]:
    return rows((shared("reference/samples") / name).read_text())


def line(value: object, *, name: str = "DCGM_FI_DEV_GPU_UTIL", **labels: str) -> str:
    given = {"gpu": "0", "UUID": "GPU-1", "Hostname": "n1"} | labels
    inner = ",".join(f'{key}="{text}"' for key, text in given.items())
    return f"{name}{{{inner}}} {value}\n"


def test_the_profiling_field_counts_before_the_drivers_and_memory_is_all_that_the_exporter_names() -> None:
    first, second = sample("dcgm_full_gpu.txt")
    assert (first["pod"], first["namespace"], first["node"]) == ("llm-a-3", "team-a", "gpu-node-01")
    assert (first["activity"], first["engine"]) == (0.968312, True)
    # used 71,900 + free 9,012 + reserved 647 MiB
    assert (first["memory_mib"], first["memory_total_mib"]) == (71_900, 81_559)
    assert second["activity"] == 0.97011
    assert {first["micro_gpus"], second["micro_gpus"]} == {1_000_000}


def test_without_the_profiling_field_the_drivers_counts_in_percent() -> None:
    (one,) = sample("dcgm_lowercase_hostname_poduid.txt")
    assert (one["activity"], one["engine"], one["node"]) == (0.97, False, "gpu-node-01")
    assert one["pod_uid"] == "5f1e0000-0000-4000-8000-000000000107"


def test_each_mig_instance_is_a_device_with_its_part_of_the_card() -> None:
    found = {row["device"].rpartition("/")[2]: row for row in sample("dcgm_mig.txt")}
    assert {name: row["micro_gpus"] for name, row in found.items()} == {
        "1": 428_571, "9": 142_857, "10": 142_857,
    }  # fmt: skip
    assert found["10"]["pod"] == "mig-1"


def test_the_whole_gpu_beside_its_instances_is_not_counted_again() -> None:
    instance = {"GPU_I_ID": "1", "GPU_I_PROFILE": "3g.40gb"}
    both = made(line(50) + line(0.5, name="DCGM_FI_PROF_GR_ENGINE_ACTIVE", **instance))
    assert both.frame["device"].to_list() == ["GPU-1/1"]
    assert both.set_aside == {PARENT: 1}


def test_a_gpu_counts_whole_before_it_is_cut_into_instances_and_after_it_is_made_whole_again() -> None:
    whole = line(50)
    instance = line(0.5, name="DCGM_FI_PROF_GR_ENGINE_ACTIVE", GPU_I_ID="1", GPU_I_PROFILE="3g.40gb")
    gathered, kept = Gathered(), list[object]()
    # The first two come together, as a recording's and a chunk's do; the last by itself, as a later chunk's.
    for texts in ([whole, instance], [whole]):
        for text in texts:
            take_answer(gathered, text, AT_MS + len(kept) * STEP_MS)
            kept.append(text)
        found = gathered.samples(STEP_MS)
        assert found.frame["device"].to_list() == ["GPU-1" if text is whole else "GPU-1/1" for text in texts]
        assert not found.set_aside


def test_a_gpu_of_another_node_with_the_same_name_is_no_parent_of_these_instances() -> None:
    cut = line(0.5, name="DCGM_FI_PROF_GR_ENGINE_ACTIVE", GPU_I_ID="1", GPU_I_PROFILE="3g.40gb")
    found = made(cut + line(50, Hostname="n2"))
    assert found.frame.select("node", "device").rows() == [("n1", "GPU-1/1"), ("n2", "GPU-1")]
    assert not found.set_aside


def test_the_drivers_utilisation_of_a_mig_instance_is_none() -> None:
    found = made(line(0, GPU_I_ID="1", GPU_I_PROFILE="3g.40gb"))
    assert found.frame.height == 0
    assert found.set_aside == {NOT_PER_INSTANCE: 1}


def test_copies_of_a_shared_gpu_are_one_row_per_pod_that_counts_them() -> None:
    found = sample("dcgm_timesliced_virtual_gpus_duplicated.txt")
    assert [(row["pod"], row["shares"], row["activity"]) for row in found] == [
        ("nb-1", 1, 0.78), ("nb-2", 1, 0.78), ("nb-3", 1, 0.78),
    ]  # fmt: skip
    twice = rows(line(40, vgpu="0", pod="a", namespace="t") + line(40, vgpu="1", pod="a", namespace="t"))
    assert [(row["shares"], row["pod_shares"], row["activity"]) for row in twice] == [(2, 2, 0.4)]


def test_values_per_process_are_the_pods_own_beside_the_devices() -> None:
    found = sample("dcgm_timesliced_per_process.txt")
    assert [(row["pod"], row["activity"], row["per_process"]) for row in found] == [
        ("", 0.8, False), ("nb-1", 0.6, True), ("nb-2", 0.2, True), ("nb-3", 0.0, True),
    ]  # fmt: skip
    assert found[1]["memory_mib"] == 12_000


def test_a_series_for_each_job_of_another_scheduler_is_one_reading() -> None:
    both = made((shared("reference/samples") / "dcgm_hpc_job.txt").read_text())
    assert both.frame.height == 1
    assert both.set_aside == {REPEATED: 1}


def test_what_is_no_value_is_missing_and_counted_by_its_cause() -> None:
    text = line(2147483632) + line("NaN", UUID="GPU-2") + line("+Inf", UUID="GPU-3") + line(101, UUID="GPU-4")
    found = made(text + line(7, UUID="GPU-5"))
    assert dict(zip(found.frame["device"], found.frame["activity"], strict=True)) == {
        "GPU-1": None, "GPU-2": None, "GPU-3": None, "GPU-4": None, "GPU-5": 0.07,
    }  # fmt: skip
    assert found.set_aside == {f"{Field.UTIL}: {why}": 1 for why in NoValue}


def test_lines_and_labels_that_cannot_be_read_are_counted_and_the_rest_is_kept() -> None:
    text = line(1) + 'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 1\n' + "DCGM_FI_DEV_GPU_UTIL{gpu=0} 1\n" + line("?")
    found = made(text)
    assert found.frame.height == 1
    assert found.set_aside == {NO_DEVICE: 1, BAD_LABELS: 1, BAD_LINE: 1}


def test_a_device_without_a_node_is_on_the_node_that_was_asked() -> None:
    (one,) = rows('DCGM_FI_DEV_GPU_UTIL{UUID="GPU-1"} 5\n')
    assert one["node"] == "n9"


TARGET = {"pod": "nvidia-dcgm-exporter-x7k2m", "namespace": "gpu-operator", "job": "dcgm"}
OLD_NAMES = {"pod_name": "llm-0", "pod_namespace": "team-a", "container_name": "main"}


@pytest.mark.parametrize(
    ("labels", "owner"),
    [
        ({"pod": "onnx-0", "namespace": "team-a", "container": "exporter"}, ("team-a", "onnx-0")),
        ({"pod": "dcgm-exporter-x1", "namespace": "mon", "container": "exporter"}, ("", "")),
        (TARGET | {"container": "nvidia-dcgm-exporter"}, ("", "")),
        (TARGET, ("", "")),
        (OLD_NAMES, ("team-a", "llm-0")),
        (OLD_NAMES | TARGET | {"container": "nvidia-dcgm-exporter"}, ("team-a", "llm-0")),
        (OLD_NAMES | TARGET, ("team-a", "llm-0")),
        (OLD_NAMES | {"namespace": "gpu-operator"}, ("team-a", "llm-0")),
        ({"pod": "llm-0", "namespace": "team-a", "pod_name": "dcgm-exporter-x1"}, ("team-a", "llm-0")),
    ],
)
def test_a_series_is_of_the_pod_on_the_gpu_whatever_its_container_and_the_labels_are_called(
    labels: dict[str, str], owner: tuple[str, str]
) -> None:
    found = owner_of(labels)
    assert (found.namespace, found.pod) == owner


VALUES = st.one_of(
    st.floats(),
    st.floats(-1, 200),
    st.sampled_from([float(edge) for pair in BLANKS for edge in pair]),
)


@given(st.sampled_from([name for name in Field if name is not Field.SM]), VALUES)
def test_whole_columns_decide_as_the_definition_does_value_by_value(name: Field, value: float) -> None:
    gathered = Gathered()
    series = gathered.series({"UUID": "GPU-1", "Hostname": "n1"})
    assert series is not None
    gathered.add(series, name, AT_MS, value)
    expected = value_of(name, value)
    causes = {} if isinstance(expected, float) else {f"{name}: {expected.value}": 1}
    assert gathered.samples(STEP_MS).set_aside == causes


@pytest.mark.parametrize(
    ("model", "instance", "profile", "mib"),
    [
        ("NVIDIA A100-SXM4-80GB", "", "", 81_920),
        ("NVIDIA-H100-80GB-HBM3", "", "", 81_920),
        ("NVIDIA L40S", "", "", 49_152),
        ("NVIDIA A100-SXM4-80GB", "1", "3g.40gb", 40_960),
        ("", "", "", None),
        ("EXAMPLE", "", "", None),
    ],
)
def test_memory_is_as_large_as_the_name_says_or_unknown(
    model: str, instance: str, profile: str, mib: float | None
) -> None:
    device = Device(node="n", uuid="GPU-1", model=model, instance=instance, profile=profile)
    assert device.memory_mib == mib
