"""What a request needs is there before the last look at slot and session; and a ledger that is away fails no job."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.engine.house import answered
from tests.storage.samples import NOON, a_definition, a_job, a_run
from tests.support.clock import ManualClock

from zerocron.core.errors import Unavailable
from zerocron.core.exchange import Outcome, Request
from zerocron.core.model import Definition, Run
from zerocron.core.secret import Secret
from zerocron.engine.attempt import Result, Started
from zerocron.engine.executor import Executor
from zerocron.engine.rendering import NotSent
from zerocron.metrics import Metrics

RUN = dataclasses.replace(a_run(a_job()), attempt_started_at=NOON)
NEEDS_BOTH: dict[str, Any] = {"body": "${secrets.KEY}", "sign": True}


class Line:
    """An executor whose every step takes `seconds` and is noted, and whose `away` steps find no ledger."""

    def __init__(self, *, now: int = NOON, seconds: float = 0.0, away: str = "", permitted: bool = True) -> None:
        self.clock = ManualClock(now)
        self.steps: list[tuple[str, int]] = []
        self.results: list[Result] = []
        self.requests: list[Request] = []
        self._seconds, self._away, self._permitted = seconds, away, permitted
        self.executor = Executor(
            load=self._load,
            send=self._send,
            settle=self._settle,
            clock=self.clock,
            metrics=Metrics(),
            capacity=5,
            permit=self._permit,
            secrets=self._secrets,
            signing_keys=self._signing_keys,
        )

    async def _step(self, name: str) -> None:
        if name == self._away:
            raise Unavailable("The database cannot be used now.")
        await self.clock.sleep(self._seconds)
        self.steps.append((name, self.clock.now() - NOON))

    async def _load(self, _run: Run) -> Definition:
        await self._step("load")
        return a_definition(**NEEDS_BOTH)

    async def _secrets(self, _team_id: str, names: frozenset[str]) -> Mapping[str, Secret]:
        await self._step("secrets")
        if self._away == "nothing there":
            raise NotSent("secret_unknown", "There is no secret KEY.")
        return {name: Secret(name, "no great secret") for name in names}

    async def _signing_keys(self, _team_id: str) -> Sequence[bytes]:
        await self._step("keys")
        return [b"k" * 32]

    async def _permit(self, _run: Run) -> bool:
        self.steps.append(("permit", self.clock.now() - NOON))
        return self._permitted

    async def _send(self, request: Request) -> Outcome:
        self.steps.append(("send", self.clock.now() - NOON))
        self.requests.append(request)
        return answered()

    async def _settle(self, result: Result) -> None:
        self.results.append(result)

    async def run(self, definition: Definition | None = None) -> None:
        self.executor.launch(Started(RUN, definition))
        await self.clock.advance(120)
        assert not self.executor.in_flight


async def test_the_last_look_is_taken_after_everything_that_may_take_long() -> None:
    line = Line(seconds=20)
    await line.run()
    assert line.steps == [("load", 20_000), ("secrets", 40_000), ("keys", 60_000), ("permit", 60_000), ("send", 60_000)]


async def test_a_session_that_ended_meanwhile_sends_nothing() -> None:
    line = Line(seconds=20, permitted=False)
    await line.run(a_definition(**NEEDS_BOTH))
    assert (line.requests, line.results) == ([], [])


@pytest.mark.parametrize("seconds", [0.0, 0.2])
async def test_what_is_read_early_leaves_at_the_slot(seconds: float) -> None:
    line = Line(now=NOON - 500, seconds=seconds)
    await line.run(a_definition(**NEEDS_BOTH))
    assert line.steps[-2:] == [("permit", 0), ("send", 0)]
    [request] = line.requests
    assert dict(request.headers)["webhook-timestamp"] == str(NOON // 1000)


@pytest.mark.parametrize("away", ["load", "secrets", "keys", "nothing there"])
async def test_what_is_refused_early_is_recorded_at_the_slot(away: str) -> None:
    line = Line(now=NOON - 500, away=away)
    await line.run()
    [result] = line.results
    assert result.execution.started_at >= NOON
    assert line.requests == []


@pytest.mark.parametrize("away", ["load", "secrets", "keys"])
async def test_a_ledger_that_is_away_is_no_failure_of_the_job(away: str) -> None:
    line = Line(away=away)
    await line.run()
    [result] = line.results
    assert (result.is_shortage, result.no_retry) == (True, None)
    assert result.execution.error_kind == "local_resources"
    assert "database" in (result.execution.error_message or "")
    assert "no great secret" not in repr(dataclasses.asdict(result.execution))
