"""Material that is kept beside the project: recordings, samples and open cases."""

import os
from pathlib import Path

import pytest

_SHARED = Path(__file__).resolve().parents[2] / "shared"


def shared(path: str) -> Path:
    """
    A file or folder of that material.

    Where it is absent the test is skipped, with the reason; in CI (`CI=true`) it fails.
    """
    found = _SHARED / path
    if not found.exists():
        message = f"{found} is absent: this test reads material that is kept beside the project"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return found
