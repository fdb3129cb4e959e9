"""The contract of a timetable: each promise by itself, then all of them against a plain dictionary.

An implementation is done when this passes for it; `conftest.TIMETABLES` lists them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from tests.storage.conftest import TIMETABLES

from zerocron.storage.timetable.contract import (
    CLAIM_LIMIT_MAX,
    HIDE_MS,
    Timetable,
    job_member,
    run_member,
    split_member,
)
from zerocron.storage.timetable.horizon import HORIZON_MS, put_near

T = TypeVar("T")
NOW = 1_800_014_400_000


async def claimed(timetable: Timetable, now: int = NOW, limit: int = CLAIM_LIMIT_MAX) -> list[str]:
    return list((await timetable.claim(now, limit)).members)


# put


async def test_a_member_is_claimed_when_it_is_due_and_not_before(timetable: Timetable) -> None:
    await timetable.put({"j:a": NOW})
    assert await claimed(timetable, NOW - 1) == []
    assert await claimed(timetable, NOW) == ["j:a"]


@pytest.mark.parametrize("again", [NOW - 5, NOW + 5])
async def test_putting_a_member_again_replaces_its_instant(timetable: Timetable, again: int) -> None:
    await timetable.put({"j:a": NOW})
    await timetable.put({"j:a": again})
    assert await timetable.size() == 1
    assert await claimed(timetable, again - 1) == []
    assert await claimed(timetable, again) == ["j:a"]


async def test_putting_nothing_is_no_error(timetable: Timetable) -> None:
    await timetable.put({})
    assert await timetable.size() == 0


async def test_putting_a_hidden_member_brings_it_back(timetable: Timetable) -> None:
    await timetable.put({"j:a": NOW})
    await claimed(timetable)
    await timetable.put({"j:a": NOW + 1})
    assert await claimed(timetable, NOW + 1) == ["j:a"]


# claim


async def test_a_claim_takes_the_earliest_first_and_no_more_than_its_limit(timetable: Timetable) -> None:
    await timetable.put({f"j:{number}": NOW - number for number in range(10)})
    assert await claimed(timetable, limit=3) == ["j:9", "j:8", "j:7"]
    assert await claimed(timetable, limit=3) == ["j:6", "j:5", "j:4"]


async def test_a_claim_never_takes_more_than_two_hundred(timetable: Timetable) -> None:
    await timetable.put({f"j:{number:03}": NOW for number in range(CLAIM_LIMIT_MAX + 5)})
    assert len(await claimed(timetable, limit=1_000)) == CLAIM_LIMIT_MAX == 200
    assert len(await claimed(timetable, limit=1_000)) == 5


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_claim_without_room_takes_nothing(timetable: Timetable, limit: int) -> None:
    await timetable.put({"j:a": NOW})
    claim = await timetable.claim(NOW, limit)
    assert list(claim.members) == []
    assert claim.next_due == NOW


async def test_a_claimed_member_is_hidden_and_comes_back_by_itself(timetable: Timetable) -> None:
    await timetable.put({"j:a": NOW})
    await claimed(timetable)
    assert await claimed(timetable, NOW + HIDE_MS - 1) == []
    assert await timetable.size() == 1
    assert await claimed(timetable, NOW + HIDE_MS) == ["j:a"]


async def test_a_claimer_may_hide_for_another_time(timetable: Timetable) -> None:
    await timetable.put({"j:a": NOW})
    await timetable.claim(NOW, 1, hide_ms=500)
    assert await claimed(timetable, NOW + 499) == []
    assert await claimed(timetable, NOW + 500) == ["j:a"]


async def test_the_next_due_instant_counts_everything_that_is_left(timetable: Timetable) -> None:
    assert (await timetable.claim(NOW, 10)).next_due is None
    await timetable.put({"j:a": NOW, "j:b": NOW + 70, "j:c": NOW + 90})
    assert (await timetable.claim(NOW, 10)).next_due == NOW + 70
    await timetable.drop(["j:b", "j:c"])
    assert (await timetable.claim(NOW, 10)).next_due == NOW + HIDE_MS  # the hidden one


async def test_what_is_due_and_did_not_fit_is_next(timetable: Timetable) -> None:
    await timetable.put({"j:a": NOW - 2, "j:b": NOW - 1})
    claim = await timetable.claim(NOW, 1)
    assert (list(claim.members), claim.next_due) == (["j:a"], NOW - 1)


async def test_claims_made_at_once_share_the_members_and_never_overlap(timetable: Timetable) -> None:
    await timetable.put({f"j:{number}": NOW - number for number in range(100)})
    claims = await asyncio.gather(*(timetable.claim(NOW, 7) for _ in range(20)))
    members = [member for claim in claims for member in claim.members]
    assert len(members) == len(set(members)) == 100


# restore


async def test_restoring_puts_what_is_missing_and_counts_it(timetable: Timetable) -> None:
    await timetable.put({"j:a": NOW})
    assert await timetable.restore({"j:a": NOW, "j:b": NOW, "r:c": NOW - 5}, now=NOW) == 2
    assert await claimed(timetable) == ["r:c", "j:a", "j:b"]


async def test_restoring_leaves_a_hidden_member_to_its_claimer(timetable: Timetable) -> None:
    await timetable.put({"j:a": NOW})
    await claimed(timetable)
    assert await timetable.restore({"j:a": NOW}, now=NOW) == 0
    assert await timetable.restore({"j:a": NOW}, now=NOW + 3_000) == 0
    assert await claimed(timetable, NOW + 3_000) == []


async def test_restoring_leaves_an_earlier_instant_alone(timetable: Timetable) -> None:
    await timetable.put({"j:a": NOW - 50})
    assert await timetable.restore({"j:a": NOW}, now=NOW) == 0
    assert await claimed(timetable, NOW - 50) == ["j:a"]


async def test_restoring_brings_forward_what_is_later_than_any_claim_would_hide_it(timetable: Timetable) -> None:
    await timetable.put({"j:late": NOW + HIDE_MS + 1, "j:hidden": NOW + HIDE_MS})
    assert await timetable.restore({"j:late": NOW, "j:hidden": NOW}, now=NOW) == 1
    assert await claimed(timetable) == ["j:late"]


async def test_restoring_what_is_due_later_puts_it_at_its_own_instant(timetable: Timetable) -> None:
    await timetable.put({"j:late": NOW + 90_000})
    assert await timetable.restore({"j:late": NOW + 60_000, "j:new": NOW + 60_000}, now=NOW) == 2
    assert await claimed(timetable, NOW + 59_999) == []
    assert await claimed(timetable, NOW + 60_000) == ["j:late", "j:new"]


async def test_restoring_nothing_is_no_error(timetable: Timetable) -> None:
    assert await timetable.restore({}, now=NOW) == 0


# drop, clear, size


async def test_a_dropped_member_does_not_come_back(timetable: Timetable) -> None:
    await timetable.put({"j:a": NOW, "j:b": NOW})
    await claimed(timetable)
    await timetable.drop(["j:a"])
    assert await claimed(timetable, NOW + HIDE_MS) == ["j:b"]


async def test_a_dropped_member_may_be_put_again(timetable: Timetable) -> None:
    await timetable.put({"j:a": NOW})
    await timetable.drop(["j:a"])
    await timetable.put({"j:a": NOW})
    assert await claimed(timetable) == ["j:a"]
    assert await claimed(timetable) == []


async def test_dropping_unknown_members_is_no_error(timetable: Timetable) -> None:
    await timetable.drop(["j:nobody"])
    await timetable.drop([])
    assert await timetable.size() == 0


async def test_clearing_forgets_everything(timetable: Timetable) -> None:
    await timetable.put({"j:a": NOW, "r:b": NOW + 1})
    await timetable.clear()
    assert await timetable.size() == 0
    assert (await timetable.claim(NOW + HIDE_MS, 10)).next_due is None


async def test_ten_thousand_changes_do_not_pile_up(timetable: Timetable) -> None:
    """Members are put again and again, as by jobs that run every second for hours."""
    for step in range(100):
        await timetable.put({f"j:{number}": NOW + step for number in range(100)})
    assert await timetable.size() == 100
    assert len(await claimed(timetable, NOW + 98)) == 0
    assert len(await claimed(timetable, NOW + 99)) == 100


# earlier


async def test_who_waits_is_woken_by_a_member_ahead_of_all_others(timetable: Timetable) -> None:
    assert not timetable.earlier.is_set()
    await timetable.put({"j:a": NOW + 50})
    assert timetable.earlier.is_set()
    timetable.earlier.clear()
    await timetable.put({"j:b": NOW + 60})
    assert not timetable.earlier.is_set()
    await timetable.put({"j:c": NOW + 70, "j:d": NOW + 40})
    assert timetable.earlier.is_set()


async def test_who_waits_is_woken_by_a_member_that_is_brought_forward_or_restored(timetable: Timetable) -> None:
    await timetable.put({"j:a": NOW + 50, "j:b": NOW + 60})
    timetable.earlier.clear()
    await timetable.put({"j:b": NOW + 40})
    assert timetable.earlier.is_set()
    timetable.earlier.clear()
    await timetable.restore({"j:c": NOW + 30}, now=NOW)
    assert timetable.earlier.is_set()


async def test_who_waits_is_not_woken_by_a_member_that_moves_away(timetable: Timetable) -> None:
    await timetable.put({"j:a": NOW + 50, "j:b": NOW + 60})
    timetable.earlier.clear()
    await timetable.put({"j:a": NOW + 55})
    await timetable.drop(["j:a"])
    assert not timetable.earlier.is_set()


# names, and how far the house looks ahead


@pytest.mark.parametrize("identity", ["a", "0190a0b0-0000-7000-8000-000000000001", "with:colon", ""])
def test_a_members_name_says_what_it_is(identity: str) -> None:
    assert split_member(job_member(identity)) == ("j", identity)
    assert split_member(run_member(identity)) == ("r", identity)


@pytest.mark.parametrize("member", ["", "j", "x:a", "jr:a", ":a", "J:a"])
def test_a_member_that_is_none_of_ours_has_no_kind(member: str) -> None:
    assert split_member(member) == ("", member)


async def test_only_what_is_near_is_put_and_what_has_moved_away_is_forgotten(timetable: Timetable) -> None:
    await timetable.put({"j:moved": NOW})
    await put_near(timetable, {"j:near": NOW + HORIZON_MS, "j:far": NOW + HORIZON_MS + 1, "j:moved": NOW * 2}, NOW)
    assert await timetable.size() == 1
    assert await claimed(timetable, NOW + HORIZON_MS) == ["j:near"]
    await put_near(timetable, {"j:near": NOW * 2}, NOW)
    await put_near(timetable, {"j:other": NOW}, NOW)
    assert await claimed(timetable, NOW + HORIZON_MS * 2) == ["j:other"]


# all of it together

MEMBERS = [f"j:{letter}" for letter in "abcdefgh"]
members = st.sampled_from(MEMBERS)
offsets = st.integers(-20_000, 20_000) | st.sampled_from([-HIDE_MS, 0, HIDE_MS, HIDE_MS + 1])


class TimetableMachine(RuleBasedStateMachine):
    """Random calls on a timetable and on a dictionary that stands for it. Instants of members are all different from
    each other where it matters: members due at the same instant may be claimed in any order."""

    make: Callable[[], AbstractAsyncContextManager[Timetable]]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.context = type(self).make()
        self.timetable: Timetable = self.do(self.context.__aenter__())
        self.model: dict[str, int] = {}
        self.hidden: dict[str, int] = {}  # until when nobody else may claim it
        self.now = NOW

    def do(self, call: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(call)

    def teardown(self) -> None:
        self.do(self.context.__aexit__(None, None, None))
        self.runner.close()

    def _expect_earlier(self, first: int | None) -> None:
        ahead = bool(self.model) and (first is None or min(self.model.values()) < first)
        assert self.timetable.earlier.is_set() == ahead
        self.timetable.earlier.clear()

    @rule(due=st.dictionaries(members, offsets, max_size=4))
    def put(self, due: dict[str, int]) -> None:
        first = min(self.model.values(), default=None)
        instants = {member: self.now + offset for member, offset in due.items()}
        self.do(self.timetable.put(instants))
        self.model |= instants
        for member in instants:
            self.hidden.pop(member, None)
        self._expect_earlier(first)

    @rule(due=st.dictionaries(members, offsets, max_size=8))
    def restore(self, due: dict[str, int]) -> None:
        first = min(self.model.values(), default=None)
        instants = {member: self.now + offset for member, offset in due.items()}
        lost = {
            member: instant
            for member, instant in instants.items()
            if member not in self.model or self.model[member] > max(instant, self.now + HIDE_MS)
        }
        assert not lost.keys() & self.hidden.keys(), "restoring never disturbs a claim"
        assert self.do(self.timetable.restore(instants, now=self.now)) == len(lost)
        self.model |= lost
        self._expect_earlier(first)

    @rule(dropped=st.lists(members, max_size=3))
    def drop(self, dropped: list[str]) -> None:
        self.do(self.timetable.drop(dropped))
        for member in dropped:
            self.model.pop(member, None)
            self.hidden.pop(member, None)
        assert not self.timetable.earlier.is_set()

    @rule(limit=st.integers(0, 10), hide_ms=st.sampled_from([HIDE_MS, HIDE_MS, 1, 3_000]))
    def claim(self, limit: int, hide_ms: int) -> None:
        claim = self.do(self.timetable.claim(self.now, limit, hide_ms))
        taken = list(claim.members)
        due = sorted(instant for instant in self.model.values() if instant <= self.now)
        assert [self.model[member] for member in taken] == due[:limit], "the earliest first, none early, none lost"
        for member in taken:
            assert self.hidden.pop(member, self.now) <= self.now, "claimed again within its hiding time"
            self.model[member] = self.hidden[member] = self.now + hide_ms
        assert claim.next_due == min(self.model.values(), default=None)
        assert not self.timetable.earlier.is_set()

    @rule(ms=st.integers(0, 15_000))
    def advance(self, ms: int) -> None:
        self.now += ms
        self.hidden = {member: until for member, until in self.hidden.items() if until > self.now}

    @rule()
    def clear(self) -> None:
        self.do(self.timetable.clear())
        self.model.clear()
        self.hidden.clear()

    @invariant()
    def nothing_is_lost(self) -> None:
        assert self.do(self.timetable.size()) == len(self.model)


@pytest.mark.parametrize("name", sorted(TIMETABLES))
def test_whatever_is_called_a_timetable_agrees_with_a_plain_dictionary(name: str) -> None:
    machine = type("Machine", (TimetableMachine,), {"make": staticmethod(TIMETABLES[name])})
    run_state_machine_as_test(machine, settings=settings(max_examples=100, stateful_step_count=40, deadline=None))
