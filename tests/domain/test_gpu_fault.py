"""Which XIDs are faults of the machine, against what NVIDIA's own tools and papers say."""

import pytest

from domain.gpu_fault import FaultKind, is_of_the_machine, xid_words

# NVIDIA/k8s-device-plugin, internal/rm/health.go: "Application errors: the GPU should still be healthy".
OF_APPLICATIONS = (13, 31, 43, 45, 68, 109)
# Xid catalog, release 610, immediate action RESET_GPU; less 109 and 155, as domain/gpu_fault.py says.
RESET_GPU = (46, 62, 64, 95, 110, 119, 120, 136, 140, 143, 156, 158)
# The same, action for the node, the board or the links.
BEYOND_THE_GPU = (48, 54, 74, 79)
# The same, RESTART_APP, CHECK_APP or IGNORE: a run that fails beside one is the program's own affair.
NO_FAULT = (8, 32, 63, 69, 92, 154)


@pytest.mark.parametrize("code", [*RESET_GPU, *BEYOND_THE_GPU])
def test_a_number_for_which_the_gpu_its_link_or_its_node_is_to_be_mended_is_of_the_machine(code: int) -> None:
    assert is_of_the_machine(FaultKind.XID, code)
    assert xid_words(code)


@pytest.mark.parametrize("code", [*OF_APPLICATIONS, *NO_FAULT])
def test_an_error_of_an_application_and_a_note_blame_no_machine(code: int) -> None:
    assert not is_of_the_machine(FaultKind.XID, code)
    assert xid_words(code)


def test_memory_that_failed_is_of_the_machine_though_the_program_is_to_be_started_again() -> None:
    assert is_of_the_machine(FaultKind.XID, 94)


@pytest.mark.parametrize("code", [0, 1, 999])
def test_a_number_that_nobody_explains_blames_nobody(code: int) -> None:
    assert not is_of_the_machine(FaultKind.XID, code)
    assert xid_words(code) == ""
