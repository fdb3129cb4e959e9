"""The ledger's time as a node keeps it: never ahead of the database, however the machine's own clock is set."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerocron.clock import SAMPLES_KEPT, LedgerClock, SystemClock

NOON = 1_800_014_400_000


@dataclass
class World:
    """A machine's monotonic clock, its own clock, and a database's, all moved by hand."""

    monotonic_ns: int = 5_000_000_000_000
    database_ahead_ms: float = float(NOON)
    machine_ns: int = NOON * 1_000_000
    clock: LedgerClock = field(default_factory=LedgerClock)

    def pass_time(self, ms: float) -> None:
        self.monotonic_ns += round(ms * 1_000_000)

    @property
    def true_ms(self) -> float:
        return self.monotonic_ns / 1_000_000 + self.database_ahead_ms

    def sample(self, there_ms: float, back_ms: float) -> None:
        """Ask the database, which takes that long there and back; its answer is in whole milliseconds."""
        before = self.monotonic_ns / 1_000_000_000
        self.pass_time(there_ms)
        answer = int(self.true_ms)
        self.pass_time(back_ms)
        self.clock.observe(answer, before, self.monotonic_ns / 1_000_000_000)

    @property
    def ahead_ms(self) -> float:
        """How far the clock is ahead of the database."""
        return self.clock.now() - self.true_ms


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return bound(World(), monkeypatch)


def bound(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr("zerocron.clock.time.monotonic_ns", lambda: world.monotonic_ns)
    monkeypatch.setattr("zerocron.clock.time.time_ns", lambda: world.machine_ns)
    return world


TRIPS = st.floats(0, 500)
SAMPLES = st.lists(st.tuples(TRIPS, TRIPS, st.floats(0, 10_000)), min_size=1, max_size=20)


@given(samples=SAMPLES)
def test_it_is_never_ahead_of_the_database_nor_further_behind_than_the_best_answer_took(
    samples: list[tuple[float, float, float]],
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        world = bound(World(), monkeypatch)
        for number, (there, back, pause) in enumerate(samples, start=1):
            world.sample(there, back)
            best = min(trip for _, trip, _ in samples[max(0, number - SAMPLES_KEPT) : number])
            for passed in (0.0, pause):
                world.pass_time(passed)
                assert world.ahead_ms < 0.01
                assert world.ahead_ms > -best - 2.01  # the answer and `now` are whole milliseconds


@given(step=st.floats(-1e9, 1e9).filter(lambda ms: abs(ms) > 10), samples=SAMPLES)
def test_a_step_of_the_database_is_followed_with_the_next_sample(
    step: float, samples: list[tuple[float, float, float]]
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        world = bound(World(), monkeypatch)
        for there, back, pause in samples:
            world.sample(there, back)
            world.pass_time(pause)
        world.database_ahead_ms += step
        world.sample(3, 4)
        assert -6.01 < world.ahead_ms < 0.01


def test_one_slow_answer_spoils_nothing(world: World) -> None:
    world.sample(0.2, 0.3)
    good = world.ahead_ms
    world.sample(4_000, 4_000)
    assert world.ahead_ms == pytest.approx(good, abs=1.01)


def test_setting_the_machines_clock_changes_nothing(world: World) -> None:
    world.sample(1, 1)
    before = world.clock.now()
    for machine_ns in (0, 10**18, world.machine_ns + 3_600 * 10**9):
        world.machine_ns = machine_ns
        assert world.clock.now() == before
    world.pass_time(1_234)
    assert world.clock.now() == before + 1_234


def test_without_a_database_the_machines_clock_is_the_ledgers(world: World) -> None:
    assert SystemClock().now() == NOON
    world.machine_ns += 1_999_999
    assert SystemClock().now() == NOON + 1
