"""A loop goes round whatever happens in it, and says when it does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
import structlog
from tests.storage.samples import NOON
from tests.support.clock import ManualClock

from zerocron.engine.run import FAILURE_PAUSE_SECONDS_MAX, Loop
from zerocron.metrics import Metrics


class Rounds:
    """A tick that is told what to do in each round; 1 s of pause without further orders."""

    def __init__(self, *orders: float | Exception) -> None:
        self.clock = ManualClock(NOON)
        self.metrics = Metrics()
        self.orders = list(orders)
        self.at: list[float] = []

    async def tick(self) -> float:
        self.at.append(round(self.clock.monotonic(), 3))
        order = self.orders.pop(0) if self.orders else 1.0
        if isinstance(order, Exception):
            raise order
        return order

    def errors(self) -> float | None:
        return self.metrics.registry.get_sample_value("zerocron_loop_errors_total", {"loop": "test"})


@asynccontextmanager
async def looping(
    rounds: Rounds,
    tick: Callable[[], Awaitable[float]] | None = None,
    pause: Callable[[float], Awaitable[None]] | None = None,
) -> AsyncIterator[Loop]:
    loop = Loop("test", tick or rounds.tick, clock=rounds.clock, metrics=rounds.metrics, pause=pause)
    loop.start()
    yield loop
    await loop.stop()


async def test_a_loop_ticks_again_when_the_tick_says_so() -> None:
    rounds = Rounds(2.0, 0.5, 3.0)
    async with looping(rounds):
        await rounds.clock.advance(6)
    assert rounds.at == [0, 2, 2.5, 5.5]


async def test_a_tick_that_fails_is_tried_again_after_a_growing_pause() -> None:
    rounds = Rounds(*(LookupError("again") for _ in range(9)))
    async with looping(rounds) as loop:
        await rounds.clock.advance(30)
        pauses = [round(later - earlier, 3) for earlier, later in pairwise(rounds.at)]
        assert pauses[:9] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0, 5.0]
        assert max(pauses) == FAILURE_PAUSE_SECONDS_MAX
        assert rounds.errors() == 9
        assert loop.age_seconds < 1


async def test_one_good_tick_makes_the_pauses_short_again() -> None:
    rounds = Rounds(LookupError(), LookupError(), 1.0, LookupError())
    async with looping(rounds):
        await rounds.clock.advance(2)
    assert rounds.at == [0, 0.2, 0.6, 1.6, 1.8]


async def test_a_loop_whose_ticks_fail_for_hours_still_goes_round() -> None:
    rounds = Rounds(*(LookupError() for _ in range(1_200)))
    with structlog.testing.capture_logs():
        async with looping(rounds):
            await rounds.clock.advance(1_150 * FAILURE_PAUSE_SECONDS_MAX)
    assert len(rounds.at) > 1_140


async def test_a_pause_that_fails_does_not_end_the_loop_either() -> None:
    rounds = Rounds()

    async def pause(seconds: float) -> None:
        await rounds.clock.sleep(seconds)
        if rounds.clock.monotonic() < 2.5:
            raise LookupError("the index does not say when")

    async with looping(rounds, pause=pause):
        await rounds.clock.advance(6)
    assert len(rounds.at) >= 4
    assert rounds.errors() == 2


async def test_the_age_of_a_loop_counts_from_its_last_good_tick() -> None:
    rounds = Rounds(1.0, *(LookupError() for _ in range(100)))
    async with looping(rounds) as loop:
        await rounds.clock.advance(90)
        assert loop.age_seconds == pytest.approx(90)


async def test_stopping_lets_the_tick_under_way_end() -> None:
    rounds = Rounds()
    steps: list[str] = []

    async def tick() -> float:
        steps.append("begun")
        await rounds.clock.sleep(3)
        steps.append("ended")
        return 1.0

    loop = Loop("test", tick, clock=rounds.clock, metrics=rounds.metrics)
    loop.start()
    await rounds.clock.advance(1)
    stopping = asyncio.create_task(loop.stop())
    await rounds.clock.rest()
    assert not stopping.done()
    await rounds.clock.advance(2)
    await stopping
    await rounds.clock.advance(10)
    assert steps == ["begun", "ended"]


async def test_stopping_between_two_ticks_does_not_wait_for_the_next() -> None:
    rounds = Rounds(3_600.0)
    async with looping(rounds) as loop:
        await rounds.clock.advance(1)
        await loop.stop()
        await loop.stop()
    assert rounds.at == [0]


async def test_a_loop_that_never_started_may_be_stopped() -> None:
    rounds = Rounds()
    await Loop("test", rounds.tick, clock=rounds.clock, metrics=rounds.metrics).stop()
