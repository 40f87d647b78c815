"""Certificates and tokens that end, from real ones over real TLS to what the operator reads."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from collector.kube.client import Connection
from collector.kube.credentials import Lifetime
from domain.window import SystemClock
from service.alarms import Alarms
from service.cli import run
from service.collecting import Collectors
from service.forgotten import Forgotten
from service.settings_file import load_settings
from store.embedded import Store
from tests.collector_live.running import PODS, until
from tests.collector_live.test_credentials import token
from tests.fake_cluster import FakeCluster
from tests.service.certificates import Authority, Pair

LONG = 300.0
SOON = 1.5  # hours, so that the time that the tests take changes no hour that is told
OVER = -1.0


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.made(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def pair(authority: Authority) -> Callable[[str, float], Pair]:
    """A client's or a server's certificate, a day old, with so many hours left; each is made once."""
    made: dict[tuple[str, float], Pair] = {}

    def give(kind: str, hours_left: float) -> Pair:
        key = (kind, hours_left)
        if key not in made:
            made[key] = authority.signs(kind, f"{kind}{len(made)}", hours_ago=24, hours_left=hours_left)
        return made[key]

    return give


def settings_file(folder: Path, url: str, authority: Authority, own: Pair, *, secret: str = "") -> Path:
    """Settings that name one cluster, reached with that certificate and perhaps a token."""
    user = {"client-certificate": str(own.certificate), "client-key": str(own.key)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "north",
        "clusters": [
            {"name": "north", "cluster": {"server": url, "certificate-authority": str(authority.certificate)}}
        ],
        "users": [{"name": "reader", "user": user | ({"token": secret} if secret else {})}],
        "contexts": [{"name": "north", "context": {"cluster": "north", "user": "reader"}}],
    }
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    file = folder / "gpuledger.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "store": {"data_dir": str(folder / "data")},
                "server": {"port": 0, "dashboard_port": 0},
                "clusters": [{"name": "north", "kubeconfig": str(kubeconfig)}],
            }
        )
    )
    return file


@pytest.mark.parametrize(
    ("client", "server", "code", "verdict", "says", "do"),
    [
        (LONG, LONG, 0, "", "", ""),
        (SOON, LONG, 0, "warning", "the client certificate ends in 1 h ", "renew it in the kubeconfig"),
        (OVER, LONG, 3, "wrong", "the client certificate ended 1 h", "renew it in the kubeconfig"),
        (LONG, SOON, 0, "warning", "the server certificate ends in 1 h ", "renew it on the API server"),
        (LONG, OVER, 3, "wrong", "the server certificate ended 1 h", "renew it on the API server"),
    ],
)
def test_the_doctor_says_which_certificate_ends_and_where_to_renew_it(
    *,
    client: float,
    server: float,
    code: int,
    verdict: str,
    says: str,
    do: str,
    authority: Authority,
    pair: Callable[[str, float], Pair],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with FakeCluster(tls=authority.server(pair("server", server))) as cluster:
        file = settings_file(tmp_path, cluster.url, authority, pair("client", client))
        assert run(["doctor", "--config", str(file)]) == code
    lines = capsys.readouterr().out.splitlines()
    about = [line for line in lines if "cluster north: the " in line]
    if not says:
        assert about == []
        assert not any("no answer" in line for line in lines)
        return
    [line] = about
    assert (line.split()[0], says in line) == (verdict, True), line
    assert do in lines[lines.index(line) + 1]
    # One that is over keeps us out, and that is said too.
    assert any("no answer" in line for line in lines) is (code == 3)


def test_the_doctor_says_that_a_token_ends(
    authority: Authority,
    pair: Callable[[str, float], Pair],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = int(time.time())
    secret = token(iat=now - 86_400, exp=now + 5_400)
    with FakeCluster(tls=authority.server(pair("server", LONG))) as cluster:
        file = settings_file(tmp_path, cluster.url, authority, pair("client", LONG), secret=secret)
        assert run(["doctor", "--config", str(file)]) == 0
    assert "warning  cluster north: the token ends in 1 h " in capsys.readouterr().out


@pytest.mark.parametrize(("client", "server", "what"), [(SOON, LONG, "client"), (LONG, SOON, "server")])
def test_a_running_service_sounds_an_alarm_until_the_certificate_is_renewed(
    *,
    client: float,
    server: float,
    what: str,
    authority: Authority,
    pair: Callable[[str, float], Pair],
    tmp_path: Path,
) -> None:
    alarms = Alarms()
    now_ms = SystemClock().now_ms()
    store = Store.open(tmp_path / "data/gpuledger.duckdb")
    with FakeCluster(tls=authority.server(pair("server", server))) as cluster:
        cluster.serve(PODS)
        file = settings_file(tmp_path, cluster.url, authority, pair("client", client))
        collectors = Collectors(
            load_settings(file),
            store,
            alarms=alarms,
            forgotten=Forgotten(tmp_path / "none", ()),
            failed=print,
        )
        collectors.start()
        # It reads with the certificate: what is warned of is what is used.
        until(lambda: any(mark["seen_ms"] for mark in store.marks()))
        collectors.check_credentials(now_ms)
        assert f"the {what} certificate ends at" in alarms.sounding()["credentials_end/north"]
        collectors.check_credentials(now_ms - 12 * 3_600_000)
        assert "credentials_end/north" not in alarms.sounding()
        if what == "client":
            settings_file(tmp_path, cluster.url, authority, pair("client", LONG))
            cluster.close_watches(PODS)
            until(lambda: renewed(collectors, alarms, now_ms), pause=0.1)
        collectors.stop()
    store.close()


def test_a_cluster_that_is_opened_while_credentials_are_looked_at_keeps_no_alarm_from_sounding(
    authority: Authority,
    pair: Callable[[str, float], Pair],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alarms, lifetimes = Alarms(), Connection.lifetimes
    store = Store.open(tmp_path / "data/gpuledger.duckdb")

    def opened_meanwhile(connection: Connection) -> list[Lifetime]:
        collectors._running.connections["south"] = connection
        return lifetimes(connection)

    with FakeCluster(tls=authority.server(pair("server", LONG))) as cluster:
        file = settings_file(tmp_path, cluster.url, authority, pair("client", SOON))
        collectors = Collectors(
            load_settings(file),
            store,
            alarms=alarms,
            forgotten=Forgotten(tmp_path / "none", ()),
            failed=print,
        )
        collectors.start()
        monkeypatch.setattr(Connection, "lifetimes", opened_meanwhile)
        collectors.check_credentials(SystemClock().now_ms())
        collectors.stop()
    store.close()
    assert "credentials_end/north" in alarms.sounding()


def renewed(collectors: Collectors, alarms: Alarms, now_ms: int) -> bool:
    """Whether the alarm has ended: the kubeconfig is read again with the next request."""
    collectors.check_credentials(now_ms)
    return "credentials_end/north" not in alarms.sounding()
