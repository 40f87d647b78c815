"""Answers of dcgm-exporter: a node of 8 GPUs with 12 metrics each, every GPU held by a pod."""

from typing import Final

GPUS: Final = 8
# Name, help, type, and how a value is written.
_FAMILIES: Final = (
    ("DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz).", "gauge", "{:.0f}", 1980),
    ("DCGM_FI_DEV_MEM_CLOCK", "Memory clock frequency (in MHz).", "gauge", "{:.0f}", 2619),
    ("DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).", "gauge", "{:.0f}", 70),
    ("DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", "gauge", "{:.6f}", 650),
    ("DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", "gauge", "{:.0f}", 99),
    ("DCGM_FI_DEV_XID_ERRORS", "Value of the last XID error encountered.", "gauge", "{:.0f}", 0),
    ("DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).", "gauge", "{:.0f}", 9000),
    ("DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", "gauge", "{:.0f}", 71900),
    ("DCGM_FI_DEV_FB_RESERVED", "Framebuffer memory reserved (in MiB).", "gauge", "{:.0f}", 647),
    ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Ratio of time the graphics engine is active.", "gauge", "{:.6f}", 1),
    ("DCGM_FI_PROF_SM_ACTIVE", "The ratio of cycles an SM has at least 1 warp.", "gauge", "{:.6f}", 1),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "Ratio of cycles the tensor pipe is active.", "gauge", "{:.6f}", 1),
)
METRICS: Final = len(_FAMILIES)


def answer(node: int, scrape: int) -> str:
    """What the exporter of a node tells at one scrape; values differ from scrape to scrape."""
    lines: list[str] = []
    for place, (name, told, kind, form, most) in enumerate(_FAMILIES):
        lines += (f"# HELP {name} {told}", f"# TYPE {name} {kind}")
        for gpu in range(GPUS):
            share = 1 - ((node * 31 + gpu * 17 + scrape * 13 + place * 7) % 97) / 400
            lines.append(f"{name}{{{_labels(node, gpu)}}} {form.format(most * share)}")
    return "\n".join(lines) + "\n"


def _labels(node: int, gpu: int) -> str:
    return (
        f'gpu="{gpu}",UUID="GPU-{node:08x}-0000-4000-8000-{gpu:012x}",'
        f'pci_bus_id="00000000:{gpu + 24:02x}:00.0",'
        f'device="nvidia{gpu}",modelName="NVIDIA H100 80GB HBM3",Hostname="gpu-node-{node:05d}",'
        f'DCGM_FI_DRIVER_VERSION="580.82.07",container="trainer",namespace="team-{node % 12}",'
        f'pod="pretrain-{node // 8:06d}-{node % 8}-x{node % 97:02d}",pod_uid=""'
    )
