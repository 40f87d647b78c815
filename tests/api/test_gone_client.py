"""Whoever asks may go away before all is said: a line in the log, and no error of ours."""

import logging
import socket

import pytest

from api.app import Api, create_app
from api.auth import NoAuth
from api.server import Server
from service.answers import Answers
from tests.collector_live.running import until

PATHS = ("/api/v1/checkpoints", "/api/v1/chargeback/2026-01/close")


@pytest.mark.parametrize("path", PATHS)
def test_a_client_that_goes_away_while_it_tells_is_one_quiet_line(
    answers: Answers, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    app = create_app(Api(answers=answers, auth=NoAuth(), metrics_text=lambda: b"up 1\n"))
    lines = (
        f"POST {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        "Content-Length: 99",
        "",
        "{",
    )
    with Server(app, "127.0.0.1", 0) as server:
        with socket.create_connection((server.host, server.port)) as client:
            client.sendall("\r\n".join(lines).encode())
        until(lambda: any(one.name == "gpuledger.api" for one in caplog.records))
    told = [(one.name, one.levelname, one.getMessage()) for one in caplog.records]
    assert [one for one in told if one[0] == "gpuledger.api"] == [
        ("gpuledger.api", "INFO", "the client went away")
    ]
    assert [one for one in told if one[1] != "INFO"] == []
