"""The pages against a real server on loopback."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dashboard.shared import data
from dashboard.shared.launch import APP
from tests.dashboard import fake_api
from tests.dashboard.fake_api import Scenario

Open = Callable[..., AppTest]
VIEWS = Path("views")


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens a page, by its file's name, against a server that answers a scenario."""
    with ExitStack() as servers:

        def opened(page: str, scenario: Scenario, /, **params: str) -> AppTest:
            st.cache_data.clear()
            address = servers.enter_context(fake_api.running(scenario))
            monkeypatch.setitem(os.environ, data.API_URL, address)
            app = AppTest.from_file(str(APP), default_timeout=60).run()
            app.switch_page(str(VIEWS / f"{page}.py"))
            for name, value in params.items():
                app.query_params[name] = value
            return app.run()

        yield opened
        st.cache_data.clear()
