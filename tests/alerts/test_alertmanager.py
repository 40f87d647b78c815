"""What goes over the wire to an Alertmanager, and what becomes of its answers."""

from pathlib import Path

import pytest

from alerts.alertmanager import BATCH, Access, Alertmanager
from domain.errors import DataError, UnreachableError
from tests.alerts.fake_alertmanager import alertmanager

SECRET = "secret"  # noqa: S105
ALERT = {"labels": {"alertname": "A"}}


def test_alerts_are_posted_below_its_path_in_batches() -> None:
    with alertmanager() as fake:
        line = Alertmanager(f"{fake.url}/", Access(), timeout_seconds=5)
        line.post([ALERT] * (BATCH + 1))
        line.close()
        assert fake.paths == ["/am/api/v2/alerts"] * 2
        assert [len(one) for one in fake.heard] == [BATCH, 1]
        assert fake.headers[0]["Content-Type"] == "application/json"
        assert "Authorization" not in fake.headers[0]


@pytest.mark.parametrize(
    ("access", "header"),
    [
        (Access(user="ada", password=SECRET), "Basic YWRhOnNlY3JldA=="),
        (Access(token=SECRET), f"Bearer {SECRET}"),
    ],
)
def test_it_gets_in_with_a_password_or_a_token(access: Access, header: str) -> None:
    with alertmanager() as fake:
        line = Alertmanager(fake.url, access, timeout_seconds=5)
        line.post([ALERT])
        line.close()
        assert fake.headers[0]["Authorization"] == header


@pytest.mark.parametrize(
    ("status", "error"),
    [(400, DataError), (404, UnreachableError), (302, UnreachableError), (503, UnreachableError)],
)
def test_a_refusal_is_told_from_an_outage(status: int, error: type[Exception]) -> None:
    with alertmanager() as fake:
        fake.status = status
        line = Alertmanager(fake.url, Access(), timeout_seconds=5)
        with pytest.raises(error, match=rf"Alertmanager 127.0.0.1:\d+/am answers with status {status}"):
            line.post([ALERT])
        line.close()


def test_neither_a_proxy_nor_a_password_of_the_environment_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine 127.0.0.1 login u password {SECRET}\n")
    netrc.chmod(0o600)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(netrc))
    with alertmanager() as fake:
        line = Alertmanager(fake.url, Access(), timeout_seconds=5)
        line.post([ALERT])
        line.close()
        assert "Authorization" not in fake.headers[0]


def test_one_that_is_not_there_is_named_with_what_to_check() -> None:
    line = Alertmanager("http://127.0.0.1:1", Access(password=SECRET, user="u"), timeout_seconds=5)
    with pytest.raises(UnreachableError, match=r"127.0.0.1:1 gives no answer .*does it run\?") as raised:
        line.post([ALERT])
    assert SECRET not in str(raised.value)
    line.close()
