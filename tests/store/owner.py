"""
The process that owns the file: writes a pod for each line that it is sent, and serves the API.

It prints the API's address, and the number of rows appended after each line. Its clock goes
forward by one second a line.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from api.app import Api, create_app
from api.auth import NoAuth
from api.server import Server
from collector.intake import Intake
from collector.translator import find
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import format_instant, parse_instant
from service.answers import Answers
from service.refresh import Refresher
from store.embedded import Store


@dataclass(slots=True)
class SteppingClock:
    at_ms: int

    def now_ms(self) -> int:
        return self.at_ms


def pod(number: int, at_ms: int) -> dict[str, object]:
    stamp = format_instant(at_ms)[:19] + "Z"
    return {
        "metadata": {
            "uid": f"p{number}",
            "name": f"pod-{number}",
            "namespace": "nlp",
            "resourceVersion": str(number),
            "creationTimestamp": stamp,
        },
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]},
        "status": {"phase": "Pending"},
    }


def main() -> None:
    clock = SteppingClock(parse_instant("2026-01-01T00:00:00Z"))
    store = Store.open(Path(sys.argv[1]))
    intake = Intake("city", store, store.known("city"))
    refresher = Refresher(store=store)
    answers = Answers(store, Tenancy(), Policy(), clock)
    app = create_app(Api(answers=answers, auth=NoAuth(), metrics_text=bytes))
    translator = find("", "Pod")
    assert translator is not None
    with Server(app, "127.0.0.1", 0) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        for number, _ in enumerate(sys.stdin, start=1):
            clock.at_ms += 1000
            intake.see(translator, "ADDED", pod(number, clock.at_ms), clock.at_ms)
            appended = intake.flush()
            refresher.refresh()
            sys.stdout.write(f"{appended}\n")
            sys.stdout.flush()
    store.close()


if __name__ == "__main__":
    main()
