"""What an answer says about the next attempt, which rule it broke, and where it came from."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from tests.engine.house import TIMINGS, answered, broken
from tests.engine.test_executor import Bench
from tests.storage.samples import NOON, a_definition, a_job, a_run

from zerocron.core.exchange import ERROR_KINDS, OWN_SHORTAGE_KINDS, PERMANENT_KINDS, Hop, Outcome, Request
from zerocron.core.model import JsonRule, Reason, RetryPolicy, SuccessRule
from zerocron.core.secret import Secret
from zerocron.core.signing import signed_headers
from zerocron.engine import executor as executors
from zerocron.engine.attempt import Attempt, Result
from zerocron.engine.judging import JUDGED_AT_ONCE_BYTES_MAX, MATCHED_AT_ONCE_BYTES_MAX, judge
from zerocron.engine.rendering import render, sign


def judged(outcome: Outcome, **given: Any) -> Result:
    attempt = Attempt(a_run(a_job()), a_definition(**given))
    return judge(attempt, render(attempt), outcome, started_at=NOON, now=NOON + 5)


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (answered(500), None),
        (answered(400), None),
        (answered(489), Reason.RETRY_REFUSED),
        (answered(503, headers={"x-0cron-retry": "No"}), Reason.RETRY_REFUSED),
        (answered(302), Reason.RETRY_USELESS),
        (answered(307), Reason.RETRY_USELESS),
        (answered(302, headers={"X-0cron-Retry": "no"}), Reason.RETRY_REFUSED),
        (answered(200, headers={"X-0cron-Retry": "no"}), None),
    ],
)
def test_an_answer_may_make_a_next_attempt_useless(outcome: Outcome, reason: Reason | None) -> None:
    assert judged(outcome).no_retry == reason


@pytest.mark.parametrize("kind", sorted(ERROR_KINDS))
def test_a_failure_that_would_come_back_needs_no_retry(kind: str) -> None:
    result = judged(broken(kind))
    assert (result.no_retry == Reason.RETRY_USELESS) == (kind in PERMANENT_KINDS)
    assert result.is_shortage == (kind in OWN_SHORTAGE_KINDS)


def test_half_an_answer_may_still_refuse_a_retry() -> None:
    half = answered(489).response
    outcome = broken("incomplete_body")
    assert outcome.failure is not None
    result = judged(Outcome(None, dataclasses.replace(outcome.failure, response=half), TIMINGS))
    assert result.no_retry == Reason.RETRY_REFUSED


def test_a_redirect_that_the_rule_accepts_is_a_success() -> None:
    result = judged(answered(302), success=SuccessRule(("3xx",)))
    assert (result.succeeded, result.no_retry) == (True, None)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (SuccessRule(body_matches="^no"), "The body does not match '^no'; it begins with '{\"a\": 1}'."),
        (SuccessRule(json=(JsonRule("$.a", "2"),)), "The body has 1 at $.a; the job expects 2."),
        (SuccessRule(headers=(("X-A", "c"),)), "The header X-A was 'b'; the job expects 'c'."),
        (SuccessRule(max_duration_ms=1), "The answer took 2 ms; the job accepts at most 1 ms."),
    ],
)
def test_every_kind_of_rule_is_applied(rule: SuccessRule, said: str) -> None:
    result = judged(answered(200, b'{"a": 1}', {"X-A": "b"}), success=rule)
    assert (result.execution.status, result.execution.error_kind) == ("failed", "rule")
    assert result.execution.error_message == said


def test_the_way_of_redirects_is_part_of_the_record() -> None:
    hops = (Hop("POST", "https://a.example/", 303, True), Hop("GET", "https://b.example/", None, False))
    for outcome in (dataclasses.replace(answered(), hops=hops), dataclasses.replace(broken(), hops=hops)):
        assert judged(outcome).execution.request["hops"] == [
            ["POST", "https://a.example/", 303, True],
            ["GET", "https://b.example/", None, False],
        ]
    assert "hops" not in judged(answered()).execution.request


def test_the_job_says_how_many_redirects_are_followed_and_whether_certificates_count() -> None:
    attempt = Attempt(a_run(a_job()), a_definition(redirects=3, verify_tls=False))
    request = render(attempt)
    assert (request.redirects, request.verify_tls) == (3, False)
    request = render(Attempt(attempt.run, a_definition()))
    assert (request.redirects, request.verify_tls) == (0, True)


def test_a_signature_covers_the_bytes_that_are_sent() -> None:
    attempt = Attempt(a_run(a_job()), a_definition(method="POST", body="é"))
    request = sign(render(attempt), attempt.run, [b"k" * 24, b"l" * 24], NOON + 1_999)
    headers = dict(request.headers)
    assert (headers["webhook-id"], headers["webhook-timestamp"]) == (attempt.run.id, str(NOON // 1000 + 1))
    signed = signed_headers(
        [b"k" * 24, b"l" * 24], message_id=attempt.run.id, timestamp_seconds=NOON // 1000 + 1, body=b"\xc3\xa9"
    )
    assert request.headers[-3:] == signed
    assert request.body == "é".encode()


# in the executor


class Recorder(Bench):
    """A bench that keeps the requests and answers as it is told."""

    def __init__(self, answer: Outcome, **given: Any) -> None:
        super().__init__()
        self.requests: list[Request] = []
        self.answer = answer
        self.executor = executors.Executor(
            load=self.load,
            send=self.keep,
            settle=self.settle,
            clock=self.clock,
            metrics=self.metrics,
            capacity=200,
            **given,
        )

    async def keep(self, request: Request) -> Outcome:
        self.requests.append(request)
        return self.answer


@pytest.mark.parametrize(("allowed", "verified"), [(False, True), (True, False)])
async def test_certificates_count_unless_job_and_operator_agree(allowed: bool, verified: bool) -> None:
    bench = Recorder(answered(), allow_insecure_tls=allowed)
    bench.launch(verify_tls=False)
    bench.launch(verify_tls=True)
    await bench.clock.rest()
    assert [request.verify_tls for request in bench.requests] == [verified, True]


async def test_a_job_that_is_to_be_signed_is_not_sent_without_a_key() -> None:
    bench = Recorder(answered())
    bench.launch(sign=True, retry=RetryPolicy(3))
    await bench.clock.rest()
    [result] = bench.results
    assert bench.requests == []
    assert (result.execution.status, result.execution.error_kind) == ("error", "not_signed")
    assert result.no_retry == Reason.RETRY_USELESS


async def one_secret(_team_id: str, names: frozenset[str]) -> Mapping[str, Secret]:
    return {name: Secret(name, "no great secret") for name in names}


MATCHES, HAS_JSON = SuccessRule(body_matches="x$"), SuccessRule(json=(JsonRule("$[0]", "1"),))
LONG = JUDGED_AT_ONCE_BYTES_MAX


@pytest.mark.parametrize(
    ("beside", "body", "headers", "given"),
    [
        (False, b"x" * LONG * 9, {}, {}),
        (False, b"x" * LONG * 9, {}, {"success": SuccessRule(body_contains="x")}),
        (False, b"x" * MATCHED_AT_ONCE_BYTES_MAX, {}, {"success": MATCHES}),
        (True, b"x" * (MATCHED_AT_ONCE_BYTES_MAX + 1), {}, {"success": MATCHES}),
        (False, b"[1]" + b" " * (LONG - 3), {}, {"success": HAS_JSON}),
        (True, b"[1]" + b" " * (LONG - 2), {}, {"success": HAS_JSON}),
        (False, b"x" * (LONG // 2), {}, {"body": "${secrets.KEY}"}),
        (True, b"x" * LONG, {}, {"body": "${secrets.KEY}"}),
        (True, b"", {"X": "x" * LONG}, {"body": "${secrets.KEY}"}),
        (True, b"", {}, {"body": "${secrets.KEY}" + "x" * LONG}),
    ],
)
async def test_what_takes_long_to_judge_or_mask_does_not_hold_the_event_loop_up(
    monkeypatch: pytest.MonkeyPatch, beside: bool, body: bytes, headers: dict[str, str], given: dict[str, Any]
) -> None:
    threads: list[str] = []

    def watched(*given: Any, **named: Any) -> Result:
        threads.append(threading.current_thread().name)
        return judge(*given, **named)

    monkeypatch.setattr(executors, "judge", watched)
    bench = Recorder(answered(200, body, headers), secrets=one_secret)
    for _ in range(3):
        bench.launch(**given)
    assert await bench.executor.drain(10)
    assert all(result.succeeded for result in bench.results)
    assert set(threads) == {"zerocron-judge_0" if beside else "MainThread"}
    bench.executor.close()


async def test_a_shortage_of_our_own_lowers_the_places_and_holds_them_for_a_while() -> None:
    bench = Recorder(broken("local_resources"))
    assert bench.executor.free == 200
    for _ in range(120):
        bench.launch()
    await bench.clock.rest()
    assert bench.executor.free == 60, "half of what was under way"
    assert bench.metrics.registry.get_sample_value("zerocron_claims_deferred_total", {"reason": "shortage"}) == 1, (
        "one shortage, however many requests met it"
    )
    bench.executor.ledger_took(0.01)
    assert bench.executor.free == 60, "a quick ledger opens no files"
    await bench.clock.advance(executors.SHORTAGE_SECONDS + 1)
    bench.executor.ledger_took(0.01)
    assert bench.executor.free == 70


async def test_a_shortage_lasts_until_what_met_it_has_been_tried_again() -> None:
    bench = Recorder(broken("local_resources"))
    assert bench.executor.short_seconds == 0
    for _ in range(3):
        bench.launch()
        await bench.clock.advance(100)
    assert bench.executor.short_seconds == 300
    await bench.clock.advance(executors.SHORTAGE_OVER_SECONDS)
    assert bench.executor.short_seconds == 0
    bench.launch()
    await bench.clock.advance(1)
    assert bench.executor.short_seconds == 1, "a new one counts from its own beginning"
    bench.answer = answered()
    bench.launch()
    await bench.clock.advance(4)
    assert bench.executor.short_seconds == 5, "one that got through in the midst of it says nothing"
    bench.launch()
    await bench.clock.advance(1)
    bench.launch()
    await bench.clock.advance(1)
    assert bench.executor.short_seconds == 0
