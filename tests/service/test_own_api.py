"""Our own API is asked without a proxy: what the question carries is for nobody else."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import requests
from typing_extensions import override

from dashboard.shared import data
from dashboard.shared.own_api import ask
from service.cli.doctor import examine
from service.cli.reader import ApiReader
from service.running import Running, answers
from service.settings import Settings

SAID = "known-to-two"


@dataclass
class Site:
    """A server that answers each question in one way and remembers what it heard."""

    url: str
    heard: list[str] = field(default_factory=list)


def _site(status: int, location: str = "") -> Iterator[Site]:
    site = Site("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.heard.append(f"{self.path} {self.headers}")
            body = json.dumps({"rows": [], "kept": True}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if location:
                self.send_header("Location", location)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 (its name is the library's)

        @override
        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def api() -> Iterator[Site]:
    yield from _site(200)


@pytest.fixture
def proxy() -> Iterator[Site]:
    yield from _site(200)


def _doctor(url: str, folder: Path) -> None:
    secret = folder / "token"
    secret.write_text(SAID)
    settings = Settings.model_validate({"store": {"data_dir": folder}, "auth": {"token_file": secret}})
    settings.serve_file.write_text(json.dumps({"url": url, "pid": 1}))
    list(examine(settings))


def _page(url: str, folder: Path) -> None:
    data.get("viewer")


CALLERS: dict[str, Callable[[str, Path], object]] = {
    "doctor": _doctor,
    "command line": lambda url, _folder: ApiReader(Running(url=url, pid=1), SAID).quota_proposals(None),
    "is it there": lambda url, _folder: answers(f"{url}/livez"),
    "page": _page,
    "close a month": lambda _url, _folder: data.close_month("2026-01", reason="x"),
    "download": lambda _url, _folder: data.download("chargeback", {}, (("X-Secret", SAID),)),
}


@pytest.mark.parametrize("caller", CALLERS)
def test_no_proxy_of_the_environment_hears_what_is_said_to_our_own_api(
    caller: str, api: Site, proxy: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(data.API_URL, api.url)
    monkeypatch.setattr(data, "viewer", lambda: (("X-Secret", SAID),))
    CALLERS[caller](api.url, tmp_path)
    assert proxy.heard == []
    assert api.heard


def test_a_redirect_is_not_followed_and_is_no_answer(api: Site) -> None:
    for site in _site(302, location=api.url):
        with pytest.raises(requests.RequestException, match="sends us to"):
            ask("GET", f"{site.url}/livez", timeout=5, headers={"X-Secret": SAID})
        assert not answers(f"{site.url}/livez")
    assert api.heard == []


def test_the_authority_of_the_site_still_counts(api: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    send = requests.Session.send

    def noting(session: requests.Session, request: requests.PreparedRequest, **said: object) -> object:
        seen.append(said["verify"])
        return send(session, request, **said)  # type: ignore[arg-type]

    monkeypatch.setattr(requests.Session, "send", noting)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "site.pem")
    ask("GET", api.url, timeout=5)
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)
    ask("GET", api.url, timeout=5)
    assert seen == ["site.pem", True]
