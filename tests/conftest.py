"""What every test shares: Hypothesis' profiles and the switch that rewrites golden cases."""

import os

import pytest
from hypothesis import settings

# In CI the examples are the same each time, so that a red run can be repeated.
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("work", deadline=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "work")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden-rewrite",
        action="store_true",
        help="write what golden cases gave as their new expectation; review the diff like code",
    )


@pytest.fixture(scope="session")
def golden_rewrite(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--golden-rewrite"))
