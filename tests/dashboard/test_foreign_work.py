"""No page shows a researcher anything of foreign work but sums."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from typing_extensions import override

from api.app import Api, create_app
from api.auth import Caller, NoAuth
from api.server import Server
from api.viewer import Role, Viewer
from dashboard import views
from dashboard.shared import data
from dashboard.shared.launch import APP
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock, parse_instant
from service.answers import Answers
from store.embedded import Store
from tests.api.two_worlds import AS_OF, NAMES, world
from tests.golden.cases import fill

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

PAGES = sorted(path.stem for path in Path(*views.__path__).glob("[!_]*.py"))
TEXTS = ("title", "header", "subheader", "markdown", "caption", "info", "warning", "error", "success")
# How long ago the worlds were is told by the machine's clock.
_AGO = re.compile(r"(?:<?\d+ [smhd] ?)+ago")


@dataclass(frozen=True)
class EverybodyIs(NoAuth):
    """An authentication by which everybody is the same viewer."""

    who: Viewer

    @override
    def viewer(self, caller: Caller) -> Viewer:
        del caller
        return self.who


RED = Viewer(name="ada", role=Role.RESEARCHER, teams=frozenset({"red"}))
ADMIN = Viewer(name="root", role=Role.ADMIN)


@pytest.fixture(scope="module")
def urls() -> Iterator[dict[tuple[Role, bool], str]]:
    """The served API by the role that everybody has there, and whether foreign work has moved."""
    found = {}
    with ExitStack() as opened:
        for moved in (False, True):
            store = Store.open(None)
            opened.callback(store.close)
            fill(store, world(moved=moved))
            answers = Answers(store, Tenancy(), Policy(), FixedClock(parse_instant(AS_OF)))
            for viewer in (RED, ADMIN):
                api = Api(answers=answers, auth=EverybodyIs(viewer), metrics_text=lambda: b"")
                server = opened.enter_context(Server(create_app(api), "127.0.0.1", 0))
                found[viewer.role, moved] = server.url
        yield found


def drawn(page: str, url: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All that a page says: texts, tiles, tables, charts and what may be chosen."""
    st.cache_data.clear()
    monkeypatch.setitem(os.environ, data.API_URL, url)
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.switch_page(f"views/{page}.py")
    app.query_params["uid"] = "r1"
    app.run()
    assert not app.exception
    said = [str(getattr(each, "value", "")) for kind in TEXTS for each in app.get(kind)]
    said += [f"{each.label} {each.value} {each.delta} {each.help}" for each in app.metric]
    said += [each.proto.body for each in app.get("html")]
    said += [json.dumps(json.loads(each.proto.spec)["data"]) for each in app.get("plotly_chart")]
    said += [f"{each.label} {each.options}" for each in app.selectbox]
    return [_AGO.sub("", text) for text in said]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_the_same_wherever_foreign_work_stands(
    page: str, urls: dict[tuple[Role, bool], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (drawn(page, urls[Role.RESEARCHER, moved], monkeypatch) for moved in (False, True))
    assert first == second
    assert [name for name in NAMES if re.search(rf"\b{name}\b", "\n".join(first))] == []


@pytest.mark.parametrize("page", ["home", "queues", "fairness", "waste", "policy", "cluster", "chargeback"])
def test_an_admins_page_differs(
    page: str, urls: dict[tuple[Role, bool], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (drawn(page, urls[Role.ADMIN, moved], monkeypatch) for moved in (False, True))
    assert first != second
