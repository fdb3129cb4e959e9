"""From a started run to the record of what came of it: rendering, judging, and the number in flight."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.house import answered, broken
from tests.storage.samples import MINUTE, NOON, SESSION_ID, a_definition, a_job, a_run
from tests.support.clock import ManualClock

from zerocron.core.errors import Unavailable
from zerocron.core.exchange import Outcome, Request, Response, Timings
from zerocron.core.model import Definition, Reason, RetryPolicy, Run, SuccessRule
from zerocron.engine.attempt import Attempt, Result, Started
from zerocron.engine.executor import EARLY_SECONDS_MAX, LATE_LOOK_MS, Executor
from zerocron.engine.judging import judge
from zerocron.engine.reads import READ_TRIES
from zerocron.engine.rendering import render
from zerocron.metrics import Metrics

RUN = a_run(a_job())


def an_attempt(**given: Any) -> Attempt:
    return Attempt(RUN, a_definition(**given))


def judged(outcome: Outcome, *, now: int = NOON + 5, **given: Any) -> Result:
    attempt = an_attempt(**given)
    return judge(attempt, render(attempt), outcome, started_at=NOON, now=now)


# what is sent


def test_every_request_says_which_run_and_which_attempt_it_is() -> None:
    request = render(an_attempt(method="POST", headers=(("X-Own", "1"),), timeout_seconds=7.0))
    assert (request.method, request.url, request.timeout_seconds) == ("POST", "https://example.com/hook", 7.0)
    assert request.headers == [
        ("X-Own", "1"),
        ("Idempotency-Key", RUN.id),
        ("X-0cron-Run-Id", RUN.id),
        ("X-0cron-Attempt", "1"),
        ("X-0cron-Scheduled-For", "2027-01-15T12:00:00Z"),
        ("X-0cron-Job-Id", RUN.job_id),
        ("X-0cron-Job-Version", "1"),
    ]


def test_all_attempts_of_a_run_carry_one_idempotency_key() -> None:
    again = Attempt(dataclasses.replace(RUN, attempt=2), a_definition())
    first, second = dict(render(an_attempt()).headers), dict(render(again).headers)
    assert first.pop("X-0cron-Attempt") != second.pop("X-0cron-Attempt")
    assert first == second


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ('{"a": 1}', "application/json"),
        ("\n [1]", "application/json"),
        ("hello", "text/plain; charset=utf-8"),
        ("", "text/plain; charset=utf-8"),
    ],
)
def test_a_body_without_a_declared_type_gets_one(body: str, content_type: str) -> None:
    request = render(an_attempt(body=body))
    assert request.body == body.encode()
    assert dict(request.headers)["Content-Type"] == content_type


def test_a_declared_type_is_kept_and_no_body_has_none() -> None:
    declared = render(an_attempt(body="{}", headers=(("content-TYPE", "text/csv"),)))
    assert [value for name, value in declared.headers if name.lower() == "content-type"] == ["text/csv"]
    assert "Content-Type" not in dict(render(an_attempt()).headers)
    assert render(an_attempt()).body is None


# what came of it


def test_an_accepted_answer_is_a_success_with_its_whole_story() -> None:
    result = judged(answered(201, b"made", {"Content-Type": "text/plain"}), body="hi", retry=RetryPolicy(3))
    execution = result.execution
    assert result.succeeded
    assert result.retry == RetryPolicy(3)
    assert (execution.status, execution.error_kind, execution.error_message) == ("success", None, None)
    assert (execution.started_at, execution.finished_at, execution.duration_ms) == (NOON, NOON + 5, 2.0)
    assert execution.timings == {"dns": None, "connect": None, "tls": None, "first_byte": 1.0, "total": 2.0}
    assert execution.request == {
        "url": "https://example.com/hook",
        "method": "GET",
        "headers": render(an_attempt(body="hi")).headers,
    }
    assert execution.request_body == "hi"
    assert execution.response == {
        "status": 201,
        "headers": (("Content-Type", "text/plain"),),
        "body_bytes": 4,
        "truncated": False,
        "encoding": "utf-8",
    }
    assert execution.response_body == "made"


def test_an_answer_that_breaks_the_rule_is_a_failure_that_says_how() -> None:
    result = judged(answered(500))
    assert not result.succeeded
    assert (result.execution.status, result.execution.error_kind) == ("failed", "rule")
    assert result.execution.error_message == "The status was 500; the job accepts 2xx."
    assert result.execution.response_body == "ok"


@pytest.mark.parametrize(("kind", "status"), [("timeout", "timeout"), ("dns", "error"), ("tls", "error")])
def test_no_answer_is_a_failure_of_its_own_kind(kind: str, status: str) -> None:
    execution = judged(broken(kind)).execution
    assert (execution.status, execution.error_kind, execution.response) == (status, kind, None)


def test_half_an_answer_is_kept_and_is_no_success() -> None:
    response = Response(200, (), b"hal", 3, truncated=True, content_type=None)
    outcome = broken("incomplete_body")
    assert outcome.failure is not None
    result = judged(Outcome(None, dataclasses.replace(outcome.failure, response=response), outcome.timings))
    assert (result.succeeded, result.execution.response_body) == (False, "hal")
    assert result.execution.response is not None
    assert result.execution.response["truncated"] is True


def test_a_failed_answer_may_ask_for_time_and_a_good_one_has_nothing_to_ask() -> None:
    asked = {"RETRY-after": "30"}
    assert judged(answered(503, headers=asked)).retry_after_ms == 30_000
    assert judged(answered(200, headers=asked)).retry_after_ms is None
    assert judged(answered(503, headers={"Retry-After": "soon"})).retry_after_ms is None
    assert judged(answered(503)).retry_after_ms is None


def test_a_body_rule_never_sees_a_body_that_is_not_text() -> None:
    binary = answered(200, b"\xff\xfe ok")
    result = judged(binary, success=SuccessRule(body_contains="ok"))
    assert not result.succeeded
    assert result.execution.response_body == base64.b64encode(b"\xff\xfe ok").decode()
    assert result.execution.response is not None
    assert result.execution.response["encoding"] == "base64"
    assert judged(binary, success=SuccessRule(body_not_contains="//4gb2s")).succeeded


def test_a_body_with_nul_is_kept_as_base64_because_no_text_column_takes_it() -> None:
    assert judged(answered(200, b"a\0b")).execution.response_body == base64.b64encode(b"a\0b").decode()


@given(text=st.text(), cut=st.integers(0, 3))
def test_a_text_that_was_cut_inside_a_character_is_still_text(text: str, cut: int) -> None:
    data = text.replace("\0", "").encode()
    kept = data[: len(data) - cut] if cut else data
    response = Response(200, (), kept, len(data), truncated=True, content_type=None)
    execution = judged(Outcome(response, None, Timings(None, None, None, None, 1.0))).execution
    assert execution.response is not None
    assert execution.response["encoding"] == "utf-8"
    assert execution.response_body == kept.decode("utf-8", "ignore")


@given(st.binary(max_size=60), st.booleans())
def test_any_body_is_kept(data: bytes, truncated: bool) -> None:
    response = Response(200, (), data, len(data), truncated=truncated, content_type=None)
    execution = judged(Outcome(response, None, Timings(None, None, None, None, 1.0))).execution
    assert execution.response is not None
    assert execution.response_body is not None
    if execution.response["encoding"] == "base64":
        assert base64.b64decode(execution.response_body) == data
    else:
        assert data.startswith(execution.response_body.encode())
        assert len(data) - len(execution.response_body.encode()) <= (3 if truncated else 0)


def test_a_clock_that_was_set_back_makes_no_attempt_end_before_it_began() -> None:
    assert judged(answered(), now=NOON - MINUTE).execution.finished_at == NOON


# in flight


class Bench:
    """An executor between a gate, where requests wait, and a list of results."""

    def __init__(self, capacity: int = 5) -> None:
        self.clock = ManualClock(NOON)
        self.gate = asyncio.Event()
        self.results: list[Result] = []
        self.recorded = asyncio.Event()
        self.recorded.set()
        self.loads = self.sent = 0
        self.stopped: Reason | None = None
        self.away_seconds = 0.0  # the ledger is away for so long, and then the job is paused
        self.metrics = Metrics()
        self.executor = Executor(
            load=self.load,
            send=self.send,
            stopped=self.why_stopped,
            permit=self.permit,
            settle=self.settle,
            clock=self.clock,
            metrics=self.metrics,
            capacity=capacity,
        )

    async def permit(self, _run: Run) -> bool:
        if self.away_seconds:
            await self.clock.sleep(self.away_seconds)
            self.away_seconds, self.stopped = 0.0, Reason.JOB_PAUSED
        return True

    async def why_stopped(self, _run: Run) -> Reason | None:
        return self.stopped

    async def send(self, request: Request) -> Outcome:
        self.sent += 1
        await self.gate.wait()
        if request.url.endswith("/fault"):
            raise LookupError("a fault of ours")
        return answered()

    async def load(self, run: Run) -> Definition:
        self.loads += 1
        if self.loads < READ_TRIES:
            raise Unavailable("The database cannot be used now.")
        return a_definition(url="https://example.com/loaded")

    async def settle(self, result: Result) -> None:
        self.results.append(result)
        await self.recorded.wait()

    def launch(self, run: Run | None = None, **given: Any) -> Started:
        started = Started(run or a_run(a_job()), a_definition(**given))
        self.executor.launch(started)
        return started


async def test_an_attempt_keeps_its_place_until_its_result_is_recorded() -> None:
    bench = Bench(capacity=2)
    bench.recorded.clear()
    started = bench.launch()
    assert (bench.executor.free, list(bench.executor.in_flight)) == (1, [started.run.id])
    bench.gate.set()
    await bench.clock.rest()
    assert len(bench.results) == 1
    assert bench.executor.free == 1
    bench.executor.freed.clear()
    bench.recorded.set()
    await bench.clock.rest()
    assert (bench.executor.free, list(bench.executor.in_flight)) == (2, [])
    assert bench.executor.freed.is_set()


async def test_a_next_attempt_may_begin_before_the_one_before_has_left() -> None:
    """With a delay of 0 the retry is started as soon as the failure is committed, before its task has heard of it."""
    bench = Bench(capacity=2)
    first = bench.launch()
    second = bench.launch(dataclasses.replace(first.run, attempt=2))
    assert bench.executor.free == 0
    bench.gate.set()
    bench.recorded.clear()
    await bench.clock.rest()
    bench.recorded.set()
    bench.gate.clear()
    third = bench.launch(dataclasses.replace(second.run, attempt=3))
    await bench.clock.rest()
    assert (bench.executor.free, list(bench.executor.in_flight)) == (1, [third.run.id]), (
        "the others have left, it has not"
    )
    await bench.executor.abort()


async def test_a_fault_of_ours_is_recorded_as_a_failed_attempt_and_hurts_no_other() -> None:
    bench = Bench()
    bench.gate.set()
    bench.launch(url="https://example.com/fault", retry=RetryPolicy(4))
    bench.launch()
    await bench.clock.rest()
    faulty, good = sorted(bench.results, key=lambda result: result.succeeded)
    assert good.succeeded
    assert (faulty.execution.status, faulty.execution.error_kind) == ("error", "internal")
    assert "a fault of ours" not in (faulty.execution.error_message or "")
    assert faulty.retry == RetryPolicy(4)
    assert bench.executor.free == 5


async def test_what_was_left_in_the_ledger_is_loaded_and_asked_for_again_while_it_is_away() -> None:
    bench = Bench()
    bench.gate.set()
    bench.executor.launch(Started(RUN, None))
    await bench.clock.advance(10)
    [result] = bench.results
    assert result.execution.request["url"] == "https://example.com/loaded"
    assert bench.loads == READ_TRIES


async def test_what_cannot_be_loaded_in_time_is_no_failure_of_the_job() -> None:
    bench = Bench()
    bench.loads = -READ_TRIES
    bench.executor.launch(Started(RUN, None))
    await bench.clock.advance(10)
    [result] = bench.results
    assert (result.is_shortage, result.execution.session_id) == (True, SESSION_ID)


@pytest.mark.parametrize(
    ("committed_ms", "late_ms", "is_asked"),
    [
        (0, 0, False),
        (0, LATE_LOOK_MS, False),
        (0, LATE_LOOK_MS + 1, True),  # of such an attempt nobody knows by then whether it is still wanted
        (-25, 0, False),
        (-25, 1, True),  # committed before its slot, and its commit answered after it
    ],
)
async def test_an_attempt_that_begins_late_is_called_off_when_its_job_was_stopped_meanwhile(
    committed_ms: int, late_ms: int, is_asked: bool
) -> None:
    bench = Bench()
    bench.gate.set()
    bench.stopped = Reason.JOB_DELETED
    begins_at = bench.clock.now() - late_ms
    run = dataclasses.replace(
        a_run(a_job()), scheduled_for=begins_at, created_at=begins_at + committed_ms, attempt_started_at=begins_at
    )
    bench.launch(run)
    await bench.clock.rest()
    [result] = bench.results
    assert result.called_off == (Reason.JOB_DELETED if is_asked else None)
    assert bench.sent == (0 if is_asked else 1)
    if is_asked:
        assert (result.execution.error_kind, result.execution.started_at) == ("called_off", begins_at)


async def test_an_attempt_that_waited_for_a_ledger_that_was_away_is_looked_at_again() -> None:
    bench = Bench()
    bench.gate.set()
    bench.away_seconds = 40
    bench.launch(dataclasses.replace(a_run(a_job()), attempt_started_at=bench.clock.now()))
    await bench.clock.advance(41)
    [result] = bench.results
    assert (result.called_off, bench.sent) == (Reason.JOB_PAUSED, 0)


@pytest.mark.parametrize("back_ms", [1, MINUTE, 24 * 60 * MINUTE])
async def test_a_clock_that_was_set_back_does_not_keep_an_attempt_from_being_looked_at(back_ms: int) -> None:
    """By it nothing is late any more, however long ago the attempt was committed."""
    bench = Bench()
    bench.gate.set()
    bench.stopped = Reason.JOB_PAUSED
    run = dataclasses.replace(a_run(a_job()), attempt_started_at=bench.clock.now())
    bench.clock.set(NOON - round(EARLY_SECONDS_MAX * 1000) - back_ms)
    bench.launch(run)
    await bench.clock.advance(EARLY_SECONDS_MAX)
    [result] = bench.results
    assert (result.called_off, bench.sent) == (Reason.JOB_PAUSED, 0)


async def test_draining_waits_for_what_is_in_flight() -> None:
    bench = Bench()
    assert await bench.executor.drain(1)
    bench.launch()
    draining = asyncio.create_task(bench.executor.drain(20))
    await bench.clock.rest()
    assert not draining.done()
    bench.gate.set()
    assert await draining


async def test_draining_ends_at_its_limit_and_aborting_ends_everything() -> None:
    bench = Bench()
    bench.launch()
    assert not await bench.executor.drain(0)
    await bench.executor.abort()
    await bench.clock.rest()
    assert (bench.executor.free, bench.results) == (5, [])


async def test_lateness_is_that_of_the_first_attempt() -> None:
    bench = Bench()
    bench.gate.set()
    bench.clock.set(NOON + 2_000)
    first = bench.launch(a_run(a_job(), NOON))
    bench.launch(dataclasses.replace(first.run, attempt=2))
    await bench.clock.rest()
    assert bench.metrics.registry.get_sample_value("zerocron_lateness_seconds_sum") == 2.0
    assert bench.metrics.registry.get_sample_value("zerocron_lateness_seconds_count") == 1.0
