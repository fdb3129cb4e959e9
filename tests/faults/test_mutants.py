"""The checker's teeth: faults seeded into the engine of a real node must be rejected, each by its invariant.

Every mutant gets a node of its own and the same journey with the engine as it is must be clean (the control), so that
what is rejected is the mutant and not the journey.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.faults import world as worlds
from tests.faults.checker import B_MS, violations
from tests.faults.mutants import MUTANTS
from tests.faults.world import World, hold, until

pytestmark = pytest.mark.timeout(300)

Journey = Callable[[World, tuple[str, ...]], Awaitable[None]]
AT_ONCE = 4
"""Nodes that run side by side: most of a journey is waiting for the next second."""


async def plain(world: World, mutants: tuple[str, ...]) -> None:
    """Four seconds of a job that is called, one whose target fails, one that is slow, and triggers."""
    await world.start(mutants=mutants)
    await world.job("ok")
    await world.job("slow", lambda call: call.later(1.4, call.answer))
    retry = {"attempts": 2, "backoff": "fixed", "delay": 1}
    failing = await world.job("failing", lambda call: call.answer(500), schedule="every 4 seconds", retry=retry)
    hourly = await world.job("hourly", schedule="*/2 * * * * *")
    await until(lambda: world.calls_of("/hourly"), "the first call")
    for _ in range(2):
        await world.operate("trigger", hourly)
        await world.operate("trigger", failing)
    begun = world.now_ms()
    await until(lambda: world.now_ms() > begun + 4_500, "four seconds")


async def on_its_own(world: World, mutants: tuple[str, ...]) -> None:
    """One job for longer than a slot may be overdue."""
    await world.start(mutants=mutants)
    await world.job("job")
    await until(lambda: world.calls, "the first call")
    begun = world.now_ms()
    await until(lambda: world.now_ms() > begun + B_MS + 1_500, "the time in which a slot must have been dealt with")


async def killed_inside_start(world: World, mutants: tuple[str, ...]) -> None:
    await world.start(mutants=mutants, stop_at="inside-start:3")  # well after the call that made the job
    job_id = await world.job("job", overlap="allow")  # or a run that was never written would hold the place for ever
    await world.died()
    await world.start()
    before, begun = world.succeeded(job_id), world.now_ms()
    await until(lambda: world.succeeded(job_id) > before and world.now_ms() > begun + 1_500, "the checker's cut-off")


async def killed_while_sending(world: World, mutants: tuple[str, ...]) -> None:
    await world.start(mutants=mutants)
    job_id = await world.job("job", hold, on_lost="give_up")
    await until(lambda: world.calls, "the request")
    await world.kill()
    world.route("/job")
    await world.start(mutants=mutants)
    begun = world.now_ms()
    await until(lambda: world.succeeded(job_id) > 1 and world.now_ms() > begun + 1_500, "going on")


async def ten_minutes_down(world: World, mutants: tuple[str, ...]) -> None:
    world.shift_ms = -600_000
    await world.start(mutants=mutants)
    job_id = await world.job("job")
    await until(lambda: world.succeeded(job_id), "the first run")
    await world.kill()
    world.shift_ms = 0
    await world.start(mutants=mutants)
    begun = world.now_ms()
    await until(lambda: world.succeeded(job_id) > 3 and world.now_ms() > begun + 1_500, "going on")


async def paused_while_a_retry_waits(world: World, mutants: tuple[str, ...]) -> None:
    await world.start(mutants=mutants)
    retry = {"attempts": 3, "backoff": "fixed", "delay": 1}
    job_id = await world.job("job", lambda call: call.answer(500), schedule="every 1 hour", retry=retry)
    run_id = (await world.operate("trigger", job_id))["id"]
    await until(lambda: world.one("SELECT status FROM runs WHERE id = ?", run_id) == "retrying", "the failure")
    await world.operate("pause", job_id)
    begun = world.now_ms()
    await until(lambda: world.now_ms() > begun + 1_500, "the retry's time")


async def killed_after_an_answer(world: World, mutants: tuple[str, ...]) -> None:
    await world.start(mutants=mutants)
    job_id = await world.job("job", schedule="every 1 hour")
    for _ in range(3):
        assert await world.operate("trigger", job_id) is not None
    await world.kill()
    await world.start()


@dataclass(frozen=True, slots=True)
class Case:
    mutant: str
    journey: Journey
    caught_by: str


CASES = [
    Case("cursor_stands_still", on_its_own, "I12"),
    Case("cursor_committed_first", killed_inside_start, "I1"),
    Case("send_before_commit", killed_inside_start, "I8"),
    Case("results_without_executions", plain, "I7"),
    Case("overlap_ignored", plain, "I15"),
    Case("misses_unrecorded", ten_minutes_down, "I1"),
    Case("oldest_instead_of_latest", ten_minutes_down, "I4"),
    Case("retry_at_once", plain, "I9"),
    Case("everything_succeeds", plain, "I13"),
    Case("trigger_moves_the_schedule", plain, "I1"),
    Case("random_run_ids", plain, "I3"),
    Case("lost_runs_always_rerun", killed_while_sending, "I10"),
    Case("pause_forgets_what_waits", paused_while_a_retry_waits, "I17"),
    Case("acknowledged_before_the_commit", killed_after_an_answer, "I16"),
    Case("version_of_yesterday", plain, "I18"),
    Case("failures_untold", plain, "I22"),
]


async def _found(folder: Path, journey: Journey, mutants: tuple[str, ...]) -> set[str]:
    """The invariants that the journey breaks."""
    async with worlds.world(folder) as world:
        await journey(world, mutants)
        if mutants:
            await world.kill()  # a mutant need not be able to stop
            return {violation.invariant for violation in violations(world.history())}
        return {violation.invariant for violation in await world.verdict()}


async def _all(folder: Path, runs: Mapping[str, tuple[Journey, tuple[str, ...]]]) -> dict[str, set[str]]:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> set[str]:
        async with places:
            return await _found(folder / name, *runs[name])

    found = await asyncio.gather(*(one(name) for name in runs), return_exceptions=True)
    failed = [item for item in found if isinstance(item, BaseException)]
    if failed:
        raise failed[0]
    return {name: item for name, item in zip(runs, found, strict=True) if not isinstance(item, BaseException)}


async def test_every_mutant_is_rejected(tmp_path: Path) -> None:
    """By the invariant that says what is wrong with it."""
    found = await _all(tmp_path, {case.mutant: (case.journey, (case.mutant,)) for case in CASES})
    missed = {case.mutant: (case.caught_by, found[case.mutant]) for case in CASES}
    missed = {name: (wanted, seen) for name, (wanted, seen) in missed.items() if wanted not in seen}
    assert not missed, missed


async def test_the_same_journeys_are_clean_without_mutants(tmp_path: Path) -> None:
    journeys: dict[str, tuple[Journey, tuple[str, ...]]] = {case.journey.__name__: (case.journey, ()) for case in CASES}
    found = await _all(tmp_path, journeys)
    assert not any(found.values()), found


def test_every_mutant_has_a_case() -> None:
    assert {case.mutant for case in CASES} == set(MUTANTS)
