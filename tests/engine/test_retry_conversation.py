"""What a target and a job say about retries, obeyed by the whole engine; lines 111 to 125 of the faults from the field.

`http_faults.jsonl` (in tests/outbound) names the cases; here they are told with a scripted target and time moved by
hand.
"""

from __future__ import annotations

from email.utils import formatdate
from itertools import pairwise
from pathlib import Path

import pytest
from tests.engine.house import House, answered, broken
from tests.storage.samples import NOON

from zerocron.core.model import Instant, Job, RetryPolicy, Run
from zerocron.core.retry import BUDGET_BURST

ONCE = "2027-01-15T12:00:01Z"
SLOT = NOON + 1_000
URL = "https://example.com/hook"
FOUR = RetryPolicy(4, "fixed", 5)


async def ended(house: House, job: Job) -> Run:
    """The one run of a job, once it is over."""
    await house.clock.advance(600)
    [run] = await house.runs(job)
    assert run.finished_at is not None
    return run


async def begun(house: House, run: Run) -> list[Instant]:
    """When each attempt of a run was made, in milliseconds after its slot."""
    return [execution.started_at - run.scheduled_for for execution in await house.executions(run)]


@pytest.mark.parametrize(
    ("case", "header", "low_ms", "high_ms"),
    [
        ("http-111", "30", 30_000, 31_000),
        ("http-112", formatdate((NOON + 61_000) / 1000, usegmt=True), 58_000, 75_000),
        ("http-114", "-5", 5_000, 6_000),
        ("http-116", "99999999999", 3_600_000, 3_601_000),
        ("http-118", formatdate((NOON + 61_000) / 1000, localtime=False), 58_000, 75_000),
        ("junk", "soon", 5_000, 6_000),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
async def test_a_target_is_given_the_time_it_asks_for(
    tmp_path: Path, case: str, header: str, low_ms: int, high_ms: int, status: int
) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, answered(status, headers={"Retry-After": header}), answered())
        job = await house.create(ONCE, retry=RetryPolicy(2, "fixed", 5))
        await house.clock.advance(high_ms / 1000 + 5)
        [run] = await house.runs(job)
        assert run.status == "succeeded", case
        first, second = await begun(house, run)
        assert low_ms <= second - first <= high_ms


async def test_http_120_waiting_neither_swallows_nor_doubles_the_next_slot(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, answered(429, headers={"Retry-After": "90"}), answered())
        job = await house.create("* * * * *", retry=FOUR)
        await house.clock.advance(130)
        runs = await house.runs(job)
        assert [(run.status, run.reason, run.attempt) for run in runs] == [
            ("failed", "no_time_for_retry", 1),
            ("succeeded", None, 1),
        ]
        assert len(house.target.requests) == 2


async def test_http_121_every_attempt_carries_the_same_key(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, answered(500))
        job = await house.create(ONCE, method="POST", retry=FOUR)
        run = await ended(house, job)
        assert (run.status, run.reason, run.attempt) == ("failed", "attempts_exhausted", 4)
        assert {dict(request.headers)["Idempotency-Key"] for request in house.target.requests} == {run.id}


async def test_http_122_a_client_error_is_tried_again_unless_the_target_says_that_it_is_final(tmp_path: Path) -> None:
    """Documented in docs/jobs.md: what one caller must mend (400) another has only to wait for (404, 409, 423)."""
    async with House(tmp_path) as house:
        house.target.on(URL, answered(400))
        house.target.on("https://example.com/final", answered(400, headers={"X-0cron-Retry": "no"}))
        tried = await house.create(ONCE, retry=FOUR)
        final = await house.create(ONCE, "https://example.com/final", retry=FOUR)
        assert (await ended(house, tried)).attempt == 4
        assert (await ended(house, final)).attempt == 1


async def test_http_123_a_run_that_recovers_is_a_success(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, answered(500), answered(500), answered(200))
        job = await house.create(ONCE, retry=FOUR)
        run = await ended(house, job)
        assert (run.status, run.attempt) == ("succeeded", 3)
        state = (await house.job(job)).state
        assert (state.failed, state.consecutive_failures, state.succeeded) == (0, 0, 1)


@pytest.mark.parametrize("event", ["delete", "pause", "disable"])
async def test_http_125_nothing_is_sent_once_the_job_is_gone_or_stopped(tmp_path: Path, event: str) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, answered(500))
        job = await house.create(ONCE, retry=RetryPolicy(4, "fixed", 60))
        await house.clock.advance(10)
        assert [run.status for run in await house.runs(job)] == ["retrying"]
        if event == "disable":
            await house.sql("UPDATE jobs SET status = 'disabled', next_run_at = NULL")
        else:
            await getattr(house.jobs, event)(job.team_id, job.id)
        await house.clock.advance(300)
        [run] = await house.runs(job)
        assert (run.status, run.reason) == ("cancelled", f"job_{event}d" if event != "delete" else "job_deleted")
        assert len(house.target.requests) == 1


@pytest.mark.parametrize(
    ("case", "outcome", "reason"),
    [
        ("489", answered(489), "retry_refused"),
        ("header", answered(500, headers={"X-0cron-Retry": "no"}), "retry_refused"),
        ("http-015", answered(307), "retry_useless"),
        ("http-016", answered(302), "retry_useless"),
        ("ssrf", broken("address_refused"), "retry_useless"),
    ],
)
async def test_what_is_final_is_not_tried_again(tmp_path: Path, case: str, outcome: object, reason: str) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, outcome)  # type: ignore[arg-type]
        job = await house.create(ONCE, retry=RetryPolicy(6, "fixed", 1))
        run = await ended(house, job)
        assert (run.status, run.reason, run.attempt) == ("failed", reason, 1), case


async def test_http_062_an_empty_reply_is_tried_again(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, broken("no_response"), answered())
        assert (await ended(house, await house.create(ONCE, retry=FOUR))).status == "succeeded"


async def test_a_shortage_of_our_own_uses_up_no_attempt(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        short, failing = broken("local_resources"), answered(500)
        house.target.on(URL, short, failing, short, short, failing, answered())
        job = await house.create(ONCE, retry=RetryPolicy(3, "fixed", 7))
        run = await ended(house, job)
        assert (run.status, run.attempt) == ("succeeded", 6)
        assert [execution.error_kind for execution in await house.executions(run)] == [
            *("local_resources", "rule", "local_resources", "local_resources", "rule"),
            None,
        ]
        times = await begun(house, run)
        waits = [round((behind - before) / 1000) for before, behind in pairwise(times)]
        assert waits == [5, 7, 10, 20, 7], "its own wait doubles, that of the job stays what it is"


async def test_a_shortage_is_waited_out_also_by_a_job_without_retries_and_never_beyond_its_next_slot(
    tmp_path: Path,
) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, broken("local_resources"), answered())
        assert (await ended(house, await house.create(ONCE))).status == "succeeded"
        other = "https://example.com/short"
        house.target.on(other, broken("local_resources"))
        job = await house.create("* * * * *", other)
        await house.clock.advance(119)
        assert {run.reason for run in await house.runs(job) if run.status == "failed"} == {"no_time_for_retry"}


async def test_a_shortage_that_lasts_shows_as_not_ready_and_passes(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, *[broken("local_resources")] * 5, answered())
        await house.create(ONCE)
        await house.clock.advance(60)
        assert house.engine.stalled() == []
        await house.clock.advance(30)
        assert house.engine.stalled() == ["executor"]
        await house.clock.advance(70)
        assert len(house.target.requests) == 6
        assert house.engine.stalled() == []


async def test_a_hundred_failing_jobs_are_retried_at_once_and_more_are_spread(tmp_path: Path) -> None:
    async with House(tmp_path, capacity=500) as house:
        house.target.on(URL, *[answered(500)] * (BUDGET_BURST + 30), answered())
        for _ in range(BUDGET_BURST + 30):
            await house.create(ONCE, retry=RetryPolicy(2, "fixed", 5))
        await house.clock.advance(8)
        waiting = await house.sql("SELECT retry_at FROM runs WHERE retry_at IS NOT NULL ORDER BY retry_at")
        gaps = [behind - before for (before,), (behind,) in pairwise(waiting)]
        assert len(waiting) >= 25
        assert min(gaps) > 500, "about one a second"
        await house.clock.advance(60)
        assert await house.sql("SELECT DISTINCT status, attempt FROM runs") == [("succeeded", 2)]
