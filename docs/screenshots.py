"""
Write `docs/screenshots/`: each page of the demo as Debian's Chromium shows it.

`python docs/screenshots.py [PAGE ...]` starts the demo, opens the pages and ends it.
"""

import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests
from playwright.sync_api import Browser, sync_playwright

FOLDER = Path(__file__).parent / "screenshots"
# File name -> address; a workload's name in braces stands for its uid. The window is a week, so that what a
# week shows is there.
PAGES = {
    "home": "",
    "queues": "queues?window=7d",
    "jobs": "jobs?state=waiting",
    "job": "job?uid={vision/ctr-1780}",
    "cluster": "cluster",
    "fairness": "fairness?window=7d",
    "waste": "waste?window=7d",
    "policy": "policy?window=7d",
    "capacity": "capacity?window=7d",
    "quota": "quota",
    "chargeback": "chargeback",
    "alerts": "alerts",
    "sources": "sources",
    "definitions": "definitions",
}
_NAMED = re.compile(r"\{([^/}]+)/([^}]+)\}")
_READY_SECONDS = 300
_SETTLE_MS = 120_000
_WIDTH, _HEIGHT = 1440, 900
# Streamlit marks the script's run on its root element.
_DONE = (
    "() => document.querySelector('[data-testid=\"stApp\"]')?.dataset.testScriptState === 'notRunning'"
    ' && !document.querySelector(\'[data-testid="stSkeleton"], [data-testid="stSpinner"]\')'
)


def main(names: list[str]) -> None:
    """Write the pages of these names, or all."""
    if strangers := set(names) - PAGES.keys():
        sys.exit(f"pages {sorted(strangers)}: expected some of {', '.join(PAGES)}")
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("no chromium here: apt-get install chromium")
    FOLDER.mkdir(exist_ok=True)
    with _demo() as (url, api), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name in names or PAGES:
            address = _NAMED.sub(lambda found: _uid(api, *found.groups()), PAGES[name])
            _shoot(browser, f"{url}/{address}", FOLDER / f"{name}.png")
            print(f"docs/screenshots/{name}.png")
        browser.close()


def _uid(api: str, namespace: str, name: str) -> str:
    """The uid of a workload of the demo."""
    asked = {"namespace": namespace, "name": name}
    rows = requests.get(f"{api}/api/v1/workloads", params=asked, timeout=60).json()["rows"]
    if not rows:
        sys.exit(f"the demo has no workload {namespace}/{name}: name another one in PAGES")
    return str(rows[0]["uid"])


def _shoot(browser: Browser, url: str, file: Path) -> None:
    page = browser.new_page(viewport={"width": _WIDTH, "height": _HEIGHT})
    page.goto(url)
    page.wait_for_function(_DONE, timeout=_SETTLE_MS)
    page.wait_for_timeout(1_500)  # charts draw themselves after the script has ended
    # Streamlit scrolls an inner box: the window is made as tall as what is in it.
    tall = page.evaluate("document.querySelector('[data-testid=\"stMain\"]')?.scrollHeight ?? 900")
    page.set_viewport_size({"width": _WIDTH, "height": min(max(int(tall), _HEIGHT), 2_400)})
    page.wait_for_timeout(700)
    page.screenshot(path=file)
    page.close()


@contextmanager
def _demo() -> Iterator[tuple[str, str]]:
    """The demo on free ports; gives the addresses of the dashboard and of the API."""
    port, dashboard_port = _free_port(), _free_port()
    command = [sys.executable, "-m", "service.cli", "demo", "--port", str(port)]
    command += ["--dashboard-port", str(dashboard_port)]
    demo = subprocess.Popen(command)
    url = f"http://127.0.0.1:{dashboard_port}"
    try:
        _wait_for(f"{url}/_stcore/health", demo)
        _wait_for(f"http://127.0.0.1:{port}/readyz", demo)
        yield url, f"http://127.0.0.1:{port}"
    finally:
        demo.terminate()
        demo.wait(30)


def _wait_for(url: str, demo: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while time.monotonic() < deadline:
        if demo.poll() is not None:
            sys.exit(f"the demo ended with code {demo.returncode}")
        try:
            if requests.get(url, timeout=2).ok:
                return
        except requests.RequestException:
            pass
        time.sleep(0.5)
    sys.exit(f"{url} does not answer")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main(sys.argv[1:])
