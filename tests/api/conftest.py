"""A client of the API over a store in memory, for any viewer."""

from collections.abc import Callable, Iterator

import pytest
from starlette.testclient import TestClient

from api.app import Api, create_app
from api.auth import Auth, HeaderAuth, NoAuth
from api.scope import Scope, scoped
from api.viewer import Role
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock
from service.answers import Answers
from tests.build import at, filled

SECRET, TOKEN = "between us", "for programs"
HEADER_AUTH = HeaderAuth(
    secret=SECRET,
    token=TOKEN,
    roles={"gpu-admins": Role.ADMIN, "money": Role.FINANCE, "ops": Role.OPERATOR},
    team_groups={"red-people": ("red",), "blue-people": ("blue",)},
)
NOW = at(120)
Connect = Callable[..., TestClient]


@pytest.fixture
def answers() -> Iterator[Answers]:
    store = filled()
    yield Answers(store, Tenancy(), Policy(), FixedClock(NOW))
    store.close()


@pytest.fixture
def connect(answers: Answers) -> Connect:
    """A client with these headers, under this authentication and scope."""

    def make(
        headers: dict[str, str] | None = None, *, auth: Auth | None = None, scope: Scope = scoped
    ) -> TestClient:
        api = Api(answers=answers, auth=auth or NoAuth(), metrics_text=lambda: b"up 1\n", scope=scope)
        return TestClient(
            create_app(api),
            base_url="http://127.0.0.1",
            headers=headers,
            raise_server_exceptions=False,
            client=("127.0.0.1", 5000),
        )

    return make


@pytest.fixture
def client(connect: Connect) -> TestClient:
    """Everyone is admin."""
    return connect()


def as_member(*groups: str, user: str = "ada") -> dict[str, str]:
    """What the proxy sends of a user in these groups."""
    return {
        "X-Forwarded-User": user,
        "X-Forwarded-Groups": ",".join(groups),
        "X-Gpuledger-Proxy-Secret": SECRET,
    }
