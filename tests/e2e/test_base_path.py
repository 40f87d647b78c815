"""D04 with the real server: below its base path the dashboard answers, its socket too, and nowhere else."""

import base64
import socket
from pathlib import Path

import pytest
import requests

from service import children
from service.settings import Settings
from tests.cases.replay import case
from tests.e2e.processes import free_ports, started, until

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


def shake_hands(port: int, path: str) -> int:
    """The status with which the server answers who wants a socket there."""
    key = base64.b64encode(b"0123456789abcdef").decode()
    lines = (
        f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Connection: Upgrade", "Upgrade: websocket",
        "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Protocol: streamlit", "", "",
    )  # fmt: skip
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
        line.sendall("\r\n".join(lines).encode())
        return int(line.recv(1000).split()[1])


def test_everything_lies_below_the_base_path_however_it_is_spelt(tmp_path: Path) -> None:
    given, expected = case("D04-base-path-behind-a-proxy")
    origin, public = (
        "https://gpu.example.org",
        f"https://gpu.example.org/{given['data']['base_path_spellings'][0]}/",
    )
    (port,) = free_ports(1)
    server = {"dashboard_url": public, "dashboard_port": port}
    settings = Settings.model_validate({"server": server})
    here = f"http://127.0.0.1:{port}"
    health, page, stream = (
        expected["urls"][name].partition("gpu.example.org")[2]
        for name in ("health", "page_jobs_team_red", "websocket")
    )
    output = tmp_path / "dashboard.txt"
    command, below = children.dashboard_command(settings), children.dashboard_address(settings)

    def answers() -> bool | None:
        try:
            return requests.get(f"{below}/_stcore/health", timeout=2).ok or None
        except requests.RequestException:
            return None

    with started(command, output) as process:
        until(answers, process, output, seconds=60)
        assert requests.get(here + health, timeout=60).text == "ok"
        assert "<html" in requests.get(here + page, timeout=60).text
        assert shake_hands(port, stream) == 101
        for wrong in expected["must_not"]:
            if wrong.startswith("wss://"):
                assert shake_hands(port, wrong.partition("gpu.example.org")[2]) != 101
        assert requests.get(f"{here}/_stcore/health", timeout=60).text != "ok"
    assert settings.dashboard_url == f"{origin}/tools/fair"
