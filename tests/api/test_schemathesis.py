"""schemathesis: requests made from the OpenAPI document, right ones and wrong ones; no answer may be a fault of ours.

It reaches the application without a socket, on an event loop of its own; the node lives on that loop.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.errors
import pytest
import schemathesis
from hypothesis.strategies import SearchStrategy
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.python import asgi
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.api.browsers import FOR_BROWSERS
from tests.api.support import CHANNEL, JOB, MONITOR
from tests.api.test_openapi import OPERATIONS
from tests.support.channels import FakeKind

from zerocron.app import run_node
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.settings import Settings

EXAMPLES = 15
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    allow_header_conformance,
]


Operations = dict[str, Any]


class Served:
    """The application of a node that starts and stops with the application's lifespan."""

    def __init__(self, data_dir: Path) -> None:
        self._settings = Settings(data_dir=data_dir, drain_seconds=0)
        self._node: Any = None
        self.headers: dict[str, str] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._node.application(scope, receive, send)

    async def _live(self, receive: Any, send: Any) -> None:
        assert (await receive())["type"] == "lifespan.startup"
        async with contextlib.AsyncExitStack() as stack:
            self._node = await stack.enter_async_context(run_node(self._settings, kinds={"fake": FakeKind()}))
            _, token = await self._node.keys.create(DEFAULT_TEAM_ID, "schemathesis")
            self.headers = {"Authorization": f"Bearer {token.text}", "Sec-Fetch-Site": "same-origin"}
            await send({"type": "lifespan.startup.complete"})
            assert (await receive())["type"] == "lifespan.shutdown"
        await send({"type": "lifespan.shutdown.complete"})


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    it = Served(tmp_path_factory.mktemp("schemathesis"))
    yield it
    asgi.shutdown_lifespans()


@pytest.fixture(scope="module")
def operations(served: Served) -> Operations:
    """Every operation of the document, by its id."""
    schema = schemathesis.openapi.from_asgi("/openapi.json", served)
    found: list[Any] = [result.ok() for result in schema.get_all_operations()]  # type: ignore[union-attr]
    return {one.definition.raw["operationId"]: one for one in found}


def test_every_operation_is_asked(operations: Operations) -> None:
    assert operations.keys() == OPERATIONS.keys()


@pytest.fixture
def ids(operations: Operations, served: Served) -> Iterator[dict[str, str]]:
    """A job, its run and a monitor, new for each test, so that right requests find something."""
    job = operations["create_job"].Case(body=JOB).call(headers=served.headers).json()
    trigger = operations["trigger_job"].Case(path_parameters={"job_id": job["id"]})
    run = trigger.call(headers=served.headers).json()
    monitor = operations["create_monitor"].Case(body=MONITOR).call(headers=served.headers).json()
    channel = operations["create_channel"].Case(body=CHANNEL).call(headers=served.headers).json()
    yield {
        "job_id": job["id"],
        "run_id": run["id"],
        "execution_id": f"{run['id']}.1",
        "monitor_id": monitor["id"],
        "channel_id": channel["id"],
    }
    # A team has so many channels and no more.
    operations["delete_channel"].Case(path_parameters={"channel_id": channel["id"]}).call(headers=served.headers)


def ask(served: Served, strategy: SearchStrategy[Any], *, right: bool) -> None:
    @hypothesis.given(case=strategy)
    @hypothesis.settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],  # what fails is told as it is; shrinking takes minutes
    )
    def each(case: Any) -> None:
        response = case.call(headers=served.headers)
        case.validate_response(response, checks=CHECKS)
        assert response.status_code != 401 or not right

    with contextlib.suppress(hypothesis.errors.Unsatisfiable):  # nothing is wrong where nothing is given
        each()


ASKED = [name for name in OPERATIONS if name != "listen_to_events"]
"""An answer that goes on for ever is one for tests/api/test_events.py."""


@pytest.mark.parametrize("name", ASKED)
def test_right_requests(name: str, operations: Operations, served: Served, ids: dict[str, str]) -> None:
    known = {place: ids[place] for place in ids if f"{{{place}}}" in operations[name].path}
    strategy = operations[name].as_strategy(generation_mode=GenerationMode.POSITIVE, path_parameters=known or None)

    ask(served, strategy, right=not operations[name].path.startswith(FOR_BROWSERS))


@pytest.mark.parametrize("name", ASKED)
def test_wrong_requests(name: str, operations: Operations, served: Served) -> None:
    ask(served, operations[name].as_strategy(generation_mode=GenerationMode.NEGATIVE), right=False)
