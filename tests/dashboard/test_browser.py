"""Every page of the real demo in Debian's Chromium: data, no console error, no request to outside."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import requests
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

from tests.e2e.processes import free_ports

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = "/usr/bin/chromium"
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 60_000
START_SECONDS = 240
# Streamlit asks for these below a page's own address first, then below the root.
PROBES = re.compile(r"/(_stcore/(health|host-config))$")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not shutil.which("chromium") and os.environ.get("CI") != "true",  # in CI a missing browser fails
        reason="no chromium here: apt-get install chromium",
    ),
]


@dataclass(frozen=True)
class Demo:
    pages: str
    api: str


@dataclass
class Visit:
    page: Page
    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    def on_console(self, message: ConsoleMessage) -> None:
        address = str(message.location.get("url", ""))
        if message.type == "error" and not PROBES.search(address):
            self.errors.append(f"{message.text} {address}")

    def on_request(self, request: Request) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")):
            self.outside.append(request.url)

    def end(self) -> None:
        assert self.errors == []
        assert self.outside == []


@pytest.fixture(scope="module")
def demo() -> Iterator[Demo]:
    port, dashboard_port = free_ports(2)
    command = [sys.executable, "-m", "service.cli", "demo", "--sample", "small"]
    command += ["--port", str(port), "--dashboard-port", str(dashboard_port)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = Demo(pages=f"http://127.0.0.1:{dashboard_port}", api=f"http://127.0.0.1:{port}/api/v1")
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            wait_until_up(f"{found.pages}/_stcore/health", process)
            wait_until_up(f"{found.api}/metrics", process)
            yield found
        finally:
            process.terminate()
            process.wait(timeout=60)


def wait_until_up(address: str, process: subprocess.Popen[bytes]) -> None:
    give_up = time.monotonic() + START_SECONDS
    while time.monotonic() < give_up:
        assert process.poll() is None, f"the demo ended with {process.returncode}"
        try:
            if requests.get(address, timeout=5).ok:
                return
        except requests.RequestException:
            time.sleep(0.3)
    pytest.fail(f"{address} did not come up within {START_SECONDS} s")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=ARGS)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    page = browser.new_page(viewport={"width": 1440, "height": 1100})
    page.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    visit = Visit(page)
    page.on("console", visit.on_console)
    page.on("request", visit.on_request)
    yield visit
    page.close()


def longest_waiting(demo: Demo) -> dict[str, str]:
    reply = requests.get(f"{demo.api}/workloads?sort=-queue_wait_seconds&page_size=1", timeout=60)
    row: dict[str, str] = reply.json()["rows"][0]
    return row


@pytest.mark.parametrize(
    ("path", "shown", "charts"),
    [
        ("", "Waits per class against their targets", 1),
        ("queues", "p99 of started", 1),
        ("jobs", "1 to 25 of", 0),
        ("sources", "read in time", 0),
        ("definitions", "kept back by its owner", 0),
    ],
)
def test_a_page_of_the_demo_shows_data_quietly(
    path: str,
    shown: str,
    charts: int,
    demo: Demo,
    visit: Visit,
) -> None:
    visit.page.goto(f"{demo.pages}/{path}")
    expect(visit.page.get_by_text(shown).first).to_be_visible()
    if charts:
        expect(visit.page.locator(".js-plotly-plot").first).to_be_visible()
    expect(visit.page.get_by_test_id("stException")).to_have_count(0)
    visit.end()


def test_a_job_of_the_demo_has_a_verdict_and_a_timeline(demo: Demo, visit: Visit) -> None:
    job = longest_waiting(demo)
    visit.page.goto(f"{demo.pages}/job?uid={job['uid']}")
    expect(visit.page.get_by_text(f"{job['namespace']}/{job['name']}").first).to_be_visible()
    expect(visit.page.get_by_text(re.compile("^(Waiting|Waited) ")).first).to_be_visible()
    expect(visit.page.locator(".js-plotly-plot").first).to_be_visible()
    visit.end()


def test_a_filter_changes_the_address_and_a_link_leads_to_the_job(demo: Demo, visit: Visit) -> None:
    page = visit.page
    page.goto(f"{demo.pages}/jobs?sort=-queue_wait_seconds&page=2")
    expect(page.get_by_text("26 to 50 of")).to_be_visible()
    expect(page.get_by_role("combobox", name="Order")).to_have_value("longest queue wait first")
    page.get_by_role("combobox", name="Class").click()
    page.get_by_role("option", name="best-effort").click()
    expect(page).to_have_url(re.compile(r"class=best_effort"))
    expect(page.get_by_text(re.compile("^1 to "))).to_be_visible()
    expect(page).not_to_have_url(re.compile(r"page="))
    page.locator("table a").first.click()
    expect(page).to_have_url(re.compile(r"/job\?uid="))
    expect(page.get_by_text("Timeline")).to_be_visible()
    visit.end()
