"""Credentials that end are noticed in time, and renewed ones are used."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

import pytest
import yaml
from kubernetes.client import Configuration

from collector.kube import client
from collector.kube.client import Connection
from collector.kube.credentials import Lifetime, of_certificates, of_token
from collector.kube.plugin import limited
from domain.errors import SettingsError, UnreachableError
from domain.window import SystemClock, format_instant, parse_instant
from tests.collector_live.running import PODS
from tests.fake_cluster import FakeCluster
from tests.fake_etcd import Canned, status_body

DAY_MS = 86_400_000
# openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365, made once.
CERTIFICATE = """
-----BEGIN CERTIFICATE-----
MIIBljCCATugAwIBAgIUCtH5f89EJpOclfCuWW97LfviI4IwCgYIKoZIzj0EAwIw
IDEPMA0GA1UEAwwGcmVhZGVyMQ0wCwYDVQQKDAR0ZWFtMB4XDTI2MTEzMDE5MzA0
NVoXDTI3MTEzMDE5MzA0NVowIDEPMA0GA1UEAwwGcmVhZGVyMQ0wCwYDVQQKDAR0
ZWFtMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEVCSJ9beWk4SKI71ARXAEfjpt
aUFs5PM9+HQ6l6l20HgPrpMIjpbE3Y02m3bZD/nb0h1kHiem/Y17PDBWHc69KqNT
MFEwHQYDVR0OBBYEFH1LvlWVpCAd2euviHAIHfYRElyMMB8GA1UdIwQYMBaAFH1L
vlWVpCAd2euviHAIHfYRElyMMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwID
SQAwRgIhAKnoFVGm7325dKdUOG6arvIrMeaxK4RMaM4IHAWKr7g7AiEA7mycppJF
NP/+cjt4XYxlvH/5+2cvvQzquNZGzIAKbBk=
-----END CERTIFICATE-----
"""


def token(**claims: int) -> str:
    parts = [{"alg": "none"}, claims]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, "signature"])


def test_a_certificate_tells_when_it_ends() -> None:
    (life,) = of_certificates(b"text before\n" + CERTIFICATE.encode(), "client certificate")
    assert (life.from_ms, life.end_ms) == (
        parse_instant("2026-11-30T19:30:45Z"),
        parse_instant("2027-11-30T19:30:45Z"),
    )
    assert of_certificates(b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "cut off") == []


def test_a_token_tells_when_it_ends() -> None:
    begin = parse_instant("2026-05-04T09:00:00Z") // 1000
    assert of_token(token(iat=begin, exp=begin + 3600), "token") == [
        Lifetime(what="token", from_ms=begin * 1000, end_ms=(begin + 3600) * 1000)
    ]


@pytest.mark.parametrize(
    ("days", "left_days", "near"),
    [(365, 8, False), (365, 7, True), (365, 6.9, True), (1, 0.2, False), (1, 0.09, True), (1, -1, True)],
)
def test_the_last_tenth_of_a_life_and_at_most_a_week_is_its_end(
    days: float, left_days: float, *, near: bool
) -> None:
    life = Lifetime(what="c", from_ms=0, end_ms=round(days * DAY_MS))
    assert life.is_near_its_end(round((days - left_days) * DAY_MS)) is near


def kubeconfig(path: Path, url: str, user: Mapping[str, object]) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    }
    written = path.with_suffix(".new")
    written.write_text(yaml.safe_dump(config))
    written.replace(path)
    return path


def test_a_kubeconfig_that_is_renewed_is_read_again(tmp_path: Path) -> None:
    with FakeCluster() as cluster:
        cluster.serve(PODS)
        path = kubeconfig(tmp_path / "kubeconfig", cluster.url, {"token": "old"})
        connection = Connection.open(kubeconfig=path)
        connection.get(PODS, {})
        kubeconfig(path, cluster.url, {"token": "new"})
        # A file system's clock may stand for some milliseconds, in which both were written.
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 10**9))
        connection.get(PODS, {})
        # One that is half written does not take the credentials away.
        path.write_text("users: [")
        connection.get(PODS, {})
    assert cluster.authorizations == ["Bearer old", "Bearer new", "Bearer new"]


def test_a_kubeconfig_that_is_renewed_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, renewals = client._configuration, iter([(1, "second"), (2, "third")])

    def read_and_renewed(path: Path | None, context: str | None) -> Configuration:
        found = read(path, context)
        for second, token in islice(renewals, 1):
            kubeconfig(written, cluster.url, {"token": token})
            os.utime(written, (0, second))
        return found

    monkeypatch.setattr(client, "_configuration", read_and_renewed)
    with FakeCluster() as cluster:
        cluster.serve(PODS)
        written = kubeconfig(tmp_path / "kubeconfig", cluster.url, {"token": "first"})
        connection = Connection.open(kubeconfig=written)
        for _ in range(3):
            connection.get(PODS, {})
    assert cluster.authorizations == ["Bearer second", "Bearer third", "Bearer third"]


HALF_WRITTEN = {
    "empty": "",
    "cut in its first word": "apiVer",
    "cut in the middle": "apiVersion: v1\nclusters: [{name: c, clus",
    "half a certificate": "certificate-authority-data: LS0tLS1CRUdJTi, server: https",
}


@pytest.mark.parametrize("written", HALF_WRITTEN.values(), ids=HALF_WRITTEN)
def test_a_kubeconfig_that_is_being_written_leaves_the_old_credentials_in_use(
    tmp_path: Path, written: str
) -> None:
    with FakeCluster() as cluster:
        cluster.serve(PODS)
        path = kubeconfig(tmp_path / "kubeconfig", cluster.url, {"token": "old"})
        whole = path.read_text()
        connection = Connection.open(kubeconfig=path)
        path.write_text(whole.replace("server: http", written) if "server" in written else written)
        connection.get(PODS, {})
        kubeconfig(path, cluster.url, {"token": "new"})
        connection.get(PODS, {})
    assert cluster.authorizations == ["Bearer old", "Bearer new"]


def test_credentials_that_are_refused_are_read_again(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    said, script = tmp_path / "credential", tmp_path / "plugin"
    said.write_text(json.dumps(plugin | {"status": {"token": "old"}}))
    script.write_text(f"#!/bin/sh\ncat {said}\n")
    script.chmod(0o755)
    execute = {
        "exec": {"apiVersion": plugin["apiVersion"], "command": str(script), "interactiveMode": "Never"}
    }
    with FakeCluster() as cluster:
        cluster.serve(PODS)
        connection = Connection.open(kubeconfig=kubeconfig(tmp_path / "kubeconfig", cluster.url, execute))
        cluster.answer_next_with(PODS, Canned(401, status_body(401, "Unauthorized"), {}))
        said.write_text(json.dumps(plugin | {"status": {"token": "new"}}))
        assert connection.get(PODS, {}).status == 401
        assert connection.get(PODS, {}).status == 200
    assert cluster.authorizations == ["Bearer old", "Bearer new"]


def test_a_token_is_sent_without_the_line_end_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    with FakeCluster() as cluster:
        cluster.serve(PODS)
        user = {"tokenFile": str(tmp_path / "token")}
        connection = Connection.open(kubeconfig=kubeconfig(tmp_path / "k", cluster.url, user))
        assert connection.get(PODS, {}).status == 200
    assert cluster.authorizations == ["Bearer secret"]


@pytest.mark.parametrize("written", ["sec\nret", "sec\r\n ret", "sec\u2026ret"])
def test_what_is_no_token_is_neither_sent_nor_told(tmp_path: Path, written: str) -> None:
    with FakeCluster() as cluster:
        cluster.serve(PODS)
        user = {"token": written}
        connection = Connection.open(kubeconfig=kubeconfig(tmp_path / "k", cluster.url, user))
        with pytest.raises(
            UnreachableError, match="the authorization is not one line of ASCII text"
        ) as error:
            connection.get(PODS, {})
    assert "sec" not in str(error.value)
    assert cluster.authorizations == []


PLUGIN = "client.authentication.k8s.io/v1"


def plugin(script: Path, *, gives: str | None, **status: str) -> dict[str, object]:
    """A user whose plug-in gives this token; None: it fails."""
    said = {"apiVersion": PLUGIN, "kind": "ExecCredential", "status": {"token": gives} | status}
    script.write_text("#!/bin/sh\n" + ("exit 1" if gives is None else f"echo '{json.dumps(said)}'") + "\n")
    script.chmod(0o755)
    return {"exec": {"apiVersion": PLUGIN, "command": str(script), "interactiveMode": "Never"}}


def test_a_plugin_that_fails_takes_no_credentials_away_and_is_asked_again(tmp_path: Path) -> None:
    """The package goes on as nobody, who is forbidden everything and never told that he is not known."""
    script, refused = tmp_path / "plugin", Canned(401, status_body(401, "Unauthorized"), {})
    execute = plugin(script, gives="old")
    with FakeCluster() as cluster:
        cluster.serve(PODS)
        connection = Connection.open(kubeconfig=kubeconfig(tmp_path / "kubeconfig", cluster.url, execute))
        for written in (None, "new"):
            plugin(script, gives=written)
            cluster.answer_next_with(PODS, refused)
            connection.get(PODS, {})
        connection.get(PODS, {})
        assert cluster.authorizations == ["Bearer old", "Bearer old", "Bearer new"]


def test_a_plugin_that_fails_at_the_start_is_asked_again_and_nobody_is_asked_as_nobody(
    tmp_path: Path,
) -> None:
    script = tmp_path / "plugin"
    execute = plugin(script, gives=None)
    with FakeCluster() as cluster:
        cluster.serve(PODS)
        connection = Connection.open(kubeconfig=kubeconfig(tmp_path / "kubeconfig", cluster.url, execute))
        with pytest.raises(UnreachableError, match="cannot be renewed: its plug-in gave none"):
            connection.get(PODS, {})
        assert connection.lifetimes() == []
        plugin(script, gives="new")
        assert connection.get(PODS, {}).status == 200
    assert cluster.authorizations == ["Bearer new"]


def test_a_plugin_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    script, alive = tmp_path / "plugin", tmp_path / "alive"
    os.mkfifo(alive)
    # Whoever reads it gets its end when the last of them that holds it open has ended.
    script.write_text(f"#!/bin/sh\nexec 3>{alive}\nsleep 600 &\nwait\n")
    script.chmod(0o755)
    limit = limited({"command": str(script), "args": ["a"], "apiVersion": PLUGIN}, 0.5)
    with subprocess.Popen([limit["command"], *limit["args"]], stderr=subprocess.PIPE) as asked:
        assert alive.read_bytes() == b""
        assert asked.communicate()[1] == b"it said nothing for 0.5 s and was ended\n"
    assert asked.returncode == 1
    assert limit["apiVersion"] == PLUGIN


@pytest.mark.usefixtures("capsys")  # at a terminal a person may log in
def test_a_plugin_of_a_kubeconfig_runs_where_it_can_be_ended_with_all_that_it_starts(tmp_path: Path) -> None:
    script = tmp_path / "plugin"
    execute = plugin(script, gives="old")
    said = {"apiVersion": PLUGIN, "kind": "ExecCredential"}
    script.write_text(
        f"#!{sys.executable}\nimport json, os\nleads = os.getsid(0) == os.getpid()\n"
        f"print(json.dumps({said} | {{'status': {{'token': f'leads {{leads}}'}}}}))\n"
    )
    with FakeCluster() as cluster:
        cluster.serve(PODS)
        Connection.open(kubeconfig=kubeconfig(tmp_path / "k", cluster.url, execute)).get(PODS, {})
    assert cluster.authorizations == ["Bearer leads True"]


def test_what_a_plugin_says_is_handed_on_with_its_complaints_and_its_exit_code(tmp_path: Path) -> None:
    script = tmp_path / "plugin"
    script.write_text("#!/bin/sh\necho $1\necho no >&2\nexit 3\n")
    script.chmod(0o755)
    limit = limited({"command": str(script), "args": ["a b"]}, 60)
    done = subprocess.run([limit["command"], *limit["args"]], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"a b\n", b"no\n")
    missing = limited({"command": str(tmp_path / "none")}, 60)
    done = subprocess.run([missing["command"], *missing["args"]], capture_output=True, check=False)
    assert done.returncode == 1
    assert b"No such file" in done.stderr


def test_an_identity_provider_that_is_not_reached_takes_no_credentials_away(tmp_path: Path) -> None:
    nobody = {
        "idp-issuer-url": "http://127.0.0.1:9",
        "client-id": "c",
        "client-secret": "s",
        "refresh-token": "r",
    }
    over = {"auth-provider": {"name": "oidc", "config": nobody | {"id-token": token(iat=1, exp=2)}}}
    with FakeCluster() as cluster:
        cluster.serve(PODS)
        connection = Connection.open(kubeconfig=kubeconfig(tmp_path / "k", cluster.url, {"token": "old"}))
        kubeconfig(tmp_path / "k", cluster.url, over)
        os.utime(tmp_path / "k", ns=(0, 1))
        assert connection.get(PODS, {}).status == 200
        with pytest.raises(SettingsError, match="context current: "):
            Connection.open(kubeconfig=tmp_path / "k")
    assert cluster.authorizations == ["Bearer old"]


def test_a_token_in_use_tells_when_it_ends(tmp_path: Path) -> None:
    secret = token(iat=1_000_000, exp=2_000_000)
    connection = Connection.open(
        kubeconfig=kubeconfig(tmp_path / "k", "http://127.0.0.1:9", {"token": secret})
    )
    (life,) = connection.lifetimes()
    assert (life.what, life.end_ms) == ("token", 2_000_000_000)


@pytest.mark.parametrize("left_minutes", [90, 6, 4])
def test_a_token_of_a_plugin_is_near_its_end_when_the_plugin_gave_no_other(
    tmp_path: Path, left_minutes: int
) -> None:
    now_ms = SystemClock().now_ms()
    end_ms = now_ms + left_minutes * 60_000
    secret = token(iat=(end_ms - DAY_MS) // 1000, exp=end_ms // 1000)
    user = plugin(tmp_path / "plugin", gives=secret, expirationTimestamp=format_instant(end_ms))
    connection = Connection.open(kubeconfig=kubeconfig(tmp_path / "k", "http://127.0.0.1:9", user))
    (life,) = connection.lifetimes()
    assert life.is_near_its_end(now_ms) is (left_minutes < 5)
