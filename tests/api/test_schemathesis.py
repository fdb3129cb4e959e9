"""schemathesis: requests made from the OpenAPI document, right ones and wrong ones; no answer may be a fault of ours.

It reaches the application without a socket, on an event loop of its own; the node lives on that loop.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.python import asgi
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from zerocron.app import run_node
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.settings import Settings

EXAMPLES_PER_OPERATION = 40
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    allow_header_conformance,
]


class Served:
    """The application of a node that starts and stops with the application's lifespan."""

    def __init__(self, data_dir: Path) -> None:
        self._settings = Settings(data_dir=data_dir, drain_seconds=0)
        self._node: Any = None
        self.headers: dict[str, str] = {}
        self.ids: dict[str, str] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._node.application(scope, receive, send)

    async def _live(self, receive: Any, send: Any) -> None:
        assert (await receive())["type"] == "lifespan.startup"
        async with contextlib.AsyncExitStack() as stack:
            self._node = await stack.enter_async_context(run_node(self._settings))
            _, token = await self._node.keys.create(DEFAULT_TEAM_ID, "schemathesis")
            self.headers = {"Authorization": f"Bearer {token.text}"}
            await send({"type": "lifespan.startup.complete"})
            assert (await receive())["type"] == "lifespan.shutdown"
        await send({"type": "lifespan.shutdown.complete"})


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    it = Served(tmp_path_factory.mktemp("schemathesis"))
    yield it
    asgi.shutdown_lifespans()


@pytest.fixture(scope="module")
def api_schema(served: Served) -> Any:
    return schemathesis.openapi.from_asgi("/openapi.json", served)


schema = schemathesis.pytest.from_fixture("api_schema")


@schema.parametrize()
@hypothesis.settings(
    max_examples=EXAMPLES_PER_OPERATION,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    database=None,
)
def test_no_request_is_a_fault_of_ours(case: Any, served: Served) -> None:
    response = case.call(headers=served.headers)

    case.validate_response(response, checks=CHECKS)
    assert response.status_code != 401
