"""What every test shares: profiles of Hypothesis, how stores are made, the switch for golden cases."""

import os
from collections.abc import Iterator

import duckdb
import pytest
from hypothesis import HealthCheck, settings

from store import engine
from store.embedded import Store
from store.migrate import migrate

# How long examples take tells of the machine, not of us.
settings.register_profile(
    "work", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
# In CI the examples are the same each time, so that a red run can be repeated.
settings.register_profile("ci", settings.get_profile("work"), derandomize=True)
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


@pytest.fixture(scope="session", autouse=True)
def _new_stores_are_copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """
    A store that a test makes is a copy of an empty one: the migrations are applied once, not 3,000 times.

    They are then checked as for any store. Tests of the migrations, and other processes, apply them.
    """
    empty = tmp_path_factory.mktemp("empty") / "empty.duckdb"
    Store.open(empty).close()

    def copied(
        connection: duckdb.DuckDBPyConnection, *, now_ms: int, name: str, existing: bool = False
    ) -> int:
        if not existing and not connection.execute("select 1 from duckdb_tables() limit 1").fetchall():
            [(database,)] = connection.execute("select current_database()").fetchall()
            connection.execute(f"attach '{empty}' as empty_store (read_only)")
            connection.execute(f'copy from database empty_store to "{database}"')
            connection.execute("detach empty_store")
            connection.execute("update schema_migration set applied_at_ms = ?", [now_ms])
        return migrate(connection, now_ms=now_ms, name=name, existing=existing)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "migrate", copied)
        yield
