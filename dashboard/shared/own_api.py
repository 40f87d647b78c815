"""How our own API is asked: straight, for the question carries a token or the proxy's secret."""

import os
from typing import Any, Final

import requests

# Variables of an authority that a site put before the usual ones; `requests` knows the same two.
_AUTHORITIES: Final = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def ask(method: str, url: str, **said: Any) -> requests.Response:
    """
    What the API at that address answers, asked without a proxy and without following a redirect.

    A proxy of the environment is meant for the world outside, and a ~/.netrc for other servers: the
    address of our own API is where it listens, and what we say to it is for nobody else to hear.

    Args:
        said: as `requests.request` takes it; `timeout` in seconds is needed.

    Raises:
        requests.RequestException: no answer, or one that sends us elsewhere.
    """
    with requests.Session() as session:
        session.trust_env = False
        session.verify = next((path for name in _AUTHORITIES if (path := os.environ.get(name))), True)
        reply = session.request(method, url, allow_redirects=False, **said)
    if reply.is_redirect:
        message = f"{url}: sends us to {reply.headers['Location']!r}; expected an answer of gpuledger's API"
        raise requests.TooManyRedirects(message, response=reply)
    return reply
