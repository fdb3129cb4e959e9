"""The contract of a timetable: each promise by itself, then all of them against a plain dictionary.

An implementation is done when this passes for it; `conftest.TIMETABLES` lists them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Sequence
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
    lane_of,
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
    await timetable.put({"j:t:a": NOW})
    assert await claimed(timetable, NOW - 1) == []
    assert await claimed(timetable, NOW) == ["j:t:a"]


@pytest.mark.parametrize("again", [NOW - 5, NOW + 5])
async def test_putting_a_member_again_replaces_its_instant(timetable: Timetable, again: int) -> None:
    await timetable.put({"j:t:a": NOW})
    await timetable.put({"j:t:a": again})
    assert await timetable.size() == 1
    assert await claimed(timetable, again - 1) == []
    assert await claimed(timetable, again) == ["j:t:a"]


async def test_putting_nothing_is_no_error(timetable: Timetable) -> None:
    await timetable.put({})
    assert await timetable.size() == 0


async def test_putting_a_hidden_member_brings_it_back(timetable: Timetable) -> None:
    await timetable.put({"j:t:a": NOW})
    await claimed(timetable)
    await timetable.put({"j:t:a": NOW + 1})
    assert await claimed(timetable, NOW + 1) == ["j:t:a"]


# claim


async def test_a_claim_takes_the_earliest_first_and_no_more_than_its_limit(timetable: Timetable) -> None:
    await timetable.put({f"j:t:{number}": NOW - number for number in range(10)})
    assert await claimed(timetable, limit=3) == ["j:t:9", "j:t:8", "j:t:7"]
    assert await claimed(timetable, limit=3) == ["j:t:6", "j:t:5", "j:t:4"]


async def test_a_claim_never_takes_more_than_two_hundred(timetable: Timetable) -> None:
    await timetable.put({f"j:t:{number:03}": NOW for number in range(CLAIM_LIMIT_MAX + 5)})
    assert len(await claimed(timetable, limit=1_000)) == CLAIM_LIMIT_MAX == 200
    assert len(await claimed(timetable, limit=1_000)) == 5


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_claim_without_room_takes_nothing(timetable: Timetable, limit: int) -> None:
    await timetable.put({"j:t:a": NOW})
    claim = await timetable.claim(NOW, limit)
    assert list(claim.members) == []
    assert claim.next_due == NOW


async def test_a_claimed_member_is_hidden_and_comes_back_by_itself(timetable: Timetable) -> None:
    await timetable.put({"j:t:a": NOW})
    await claimed(timetable)
    assert await claimed(timetable, NOW + HIDE_MS - 1) == []
    assert await timetable.size() == 1
    assert await claimed(timetable, NOW + HIDE_MS) == ["j:t:a"]


async def test_a_claimer_may_hide_for_another_time(timetable: Timetable) -> None:
    await timetable.put({"j:t:a": NOW})
    await timetable.claim(NOW, 1, hide_ms=500)
    assert await claimed(timetable, NOW + 499) == []
    assert await claimed(timetable, NOW + 500) == ["j:t:a"]


async def test_the_next_due_instant_counts_everything_that_is_left(timetable: Timetable) -> None:
    assert (await timetable.claim(NOW, 10)).next_due is None
    await timetable.put({"j:t:a": NOW, "j:t:b": NOW + 70, "j:t:c": NOW + 90})
    assert (await timetable.claim(NOW, 10)).next_due == NOW + 70
    await timetable.drop(["j:t:b", "j:t:c"])
    assert (await timetable.claim(NOW, 10)).next_due == NOW + HIDE_MS  # the hidden one


async def test_what_is_due_and_did_not_fit_is_next(timetable: Timetable) -> None:
    await timetable.put({"j:t:a": NOW - 2, "j:t:b": NOW - 1})
    claim = await timetable.claim(NOW, 1)
    assert (list(claim.members), claim.next_due) == (["j:t:a"], NOW - 1)


async def test_claims_made_at_once_share_the_members_and_never_overlap(timetable: Timetable) -> None:
    await timetable.put({f"j:t:{number}": NOW - number for number in range(100)})
    claims = await asyncio.gather(*(timetable.claim(NOW, 7) for _ in range(20)))
    members = [member for claim in claims for member in claim.members]
    assert len(members) == len(set(members)) == 100


# restore


async def test_restoring_puts_what_is_missing_and_counts_it(timetable: Timetable) -> None:
    await timetable.put({"j:t:a": NOW})
    assert await timetable.restore({"j:t:a": NOW, "j:t:b": NOW, "r:t:c": NOW - 5}, now=NOW) == 2
    assert await claimed(timetable) == ["r:t:c", "j:t:a", "j:t:b"]


async def test_restoring_leaves_a_hidden_member_to_its_claimer(timetable: Timetable) -> None:
    await timetable.put({"j:t:a": NOW})
    await claimed(timetable)
    assert await timetable.restore({"j:t:a": NOW}, now=NOW) == 0
    assert await timetable.restore({"j:t:a": NOW}, now=NOW + 3_000) == 0
    assert await claimed(timetable, NOW + 3_000) == []


async def test_restoring_leaves_an_earlier_instant_alone(timetable: Timetable) -> None:
    await timetable.put({"j:t:a": NOW - 50})
    assert await timetable.restore({"j:t:a": NOW}, now=NOW) == 0
    assert await claimed(timetable, NOW - 50) == ["j:t:a"]


async def test_restoring_brings_forward_what_is_later_than_any_claim_would_hide_it(timetable: Timetable) -> None:
    await timetable.put({"j:t:late": NOW + HIDE_MS + 1, "j:t:hidden": NOW + HIDE_MS})
    assert await timetable.restore({"j:t:late": NOW, "j:t:hidden": NOW}, now=NOW) == 1
    assert await claimed(timetable) == ["j:t:late"]


async def test_restoring_what_is_due_later_puts_it_at_its_own_instant(timetable: Timetable) -> None:
    await timetable.put({"j:t:late": NOW + 90_000})
    assert await timetable.restore({"j:t:late": NOW + 60_000, "j:t:new": NOW + 60_000}, now=NOW) == 2
    assert await claimed(timetable, NOW + 59_999) == []
    assert await claimed(timetable, NOW + 60_000) == ["j:t:late", "j:t:new"]


async def test_restoring_nothing_is_no_error(timetable: Timetable) -> None:
    assert await timetable.restore({}, now=NOW) == 0


# drop, clear, size


async def test_a_dropped_member_does_not_come_back(timetable: Timetable) -> None:
    await timetable.put({"j:t:a": NOW, "j:t:b": NOW})
    await claimed(timetable)
    await timetable.drop(["j:t:a"])
    assert await claimed(timetable, NOW + HIDE_MS) == ["j:t:b"]


async def test_a_dropped_member_may_be_put_again(timetable: Timetable) -> None:
    await timetable.put({"j:t:a": NOW})
    await timetable.drop(["j:t:a"])
    await timetable.put({"j:t:a": NOW})
    assert await claimed(timetable) == ["j:t:a"]
    assert await claimed(timetable) == []


async def test_dropping_unknown_members_is_no_error(timetable: Timetable) -> None:
    await timetable.drop(["j:t:nobody"])
    await timetable.drop([])
    assert await timetable.size() == 0


async def test_clearing_forgets_everything(timetable: Timetable) -> None:
    await timetable.put({"j:t:a": NOW, "r:t:b": NOW + 1})
    await timetable.clear()
    assert await timetable.size() == 0
    assert (await timetable.claim(NOW + HIDE_MS, 10)).next_due is None


async def test_ten_thousand_changes_do_not_pile_up(timetable: Timetable) -> None:
    """Members are put again and again, as by jobs that run every second for hours."""
    for step in range(100):
        await timetable.put({f"j:t:{number}": NOW + step for number in range(100)})
    assert await timetable.size() == 100
    assert len(await claimed(timetable, NOW + 98)) == 0
    assert len(await claimed(timetable, NOW + 99)) == 100


# earlier


async def test_who_waits_is_woken_by_a_member_ahead_of_all_others(timetable: Timetable) -> None:
    assert not timetable.earlier.is_set()
    await timetable.put({"j:t:a": NOW + 50})
    assert timetable.earlier.is_set()
    timetable.earlier.clear()
    await timetable.put({"j:t:b": NOW + 60})
    assert not timetable.earlier.is_set()
    await timetable.put({"j:t:c": NOW + 70, "j:t:d": NOW + 40})
    assert timetable.earlier.is_set()


async def test_who_waits_is_woken_by_a_member_that_is_brought_forward_or_restored(timetable: Timetable) -> None:
    await timetable.put({"j:t:a": NOW + 50, "j:t:b": NOW + 60})
    timetable.earlier.clear()
    await timetable.put({"j:t:b": NOW + 40})
    assert timetable.earlier.is_set()
    timetable.earlier.clear()
    await timetable.restore({"j:t:c": NOW + 30}, now=NOW)
    assert timetable.earlier.is_set()


async def test_who_waits_is_not_woken_by_a_member_that_moves_away(timetable: Timetable) -> None:
    await timetable.put({"j:t:a": NOW + 50, "j:t:b": NOW + 60})
    timetable.earlier.clear()
    await timetable.put({"j:t:a": NOW + 55})
    await timetable.drop(["j:t:a"])
    assert not timetable.earlier.is_set()


# lanes


async def test_a_lane_with_thousands_due_keeps_no_other_waiting(timetable: Timetable) -> None:
    await timetable.put({f"j:big:{number:04}": NOW - 1_000 for number in range(1_000)})
    await timetable.put({f"j:small{number}:a": NOW for number in range(5)})
    members = await claimed(timetable)
    assert len(members) == CLAIM_LIMIT_MAX
    assert {f"j:small{number}:a" for number in range(5)} <= set(members)


@pytest.mark.parametrize(
    ("due", "limit", "shares"),
    [
        ({"a": 10, "b": 10}, 6, {"a": 3, "b": 3}),
        ({"a": 10, "b": 1}, 6, {"a": 5, "b": 1}),
        ({"a": 10, "b": 2, "c": 1}, 9, {"a": 6, "b": 2, "c": 1}),
        ({"a": 10, "b": 10, "c": 3}, 12, {"a": 5, "b": 4, "c": 3}),
        ({"a": 1, "b": 1}, 9, {"a": 1, "b": 1}),
        ({"a": 10, "b": 10, "c": 10}, 3, {"a": 1, "b": 1, "c": 1}),
    ],
)
async def test_each_lane_gets_an_equal_share_and_what_it_does_not_use_goes_to_the_others(
    timetable: Timetable, due: dict[str, int], limit: int, shares: dict[str, int]
) -> None:
    for lane, members in due.items():
        await timetable.put({f"j:{lane}:{number}": NOW - 9 + number for number in range(members)})
    claim = await timetable.claim(NOW, limit)
    assert Counter(lane_of(member) for member in claim.members) == shares
    for lane, share in shares.items():
        taken = {member for member in claim.members if lane_of(member) == lane}
        assert taken == {f"j:{lane}:{number}" for number in range(share)}, "within a lane the earliest come first"


@pytest.mark.parametrize("limit", [1, 7, 200])
async def test_with_more_lanes_than_places_every_lane_has_its_turn(timetable: Timetable, limit: int) -> None:
    lanes, rounds = limit * 2 + 1, 3
    await timetable.put({f"j:{lane:03}:{number}": NOW - lane for lane in range(lanes) for number in range(9)})
    shares: Counter[str] = Counter()
    for _ in range(rounds * 3):
        members = await claimed(timetable, limit=limit)
        assert len(members) == limit
        shares.update(lane_of(member) for member in members)
        await timetable.put(dict.fromkeys(members, NOW - int(lane_of(members[0]))))  # they stay due
    assert len(shares) == lanes, "nobody was left out"


async def test_lanes_that_are_passed_over_keep_their_members(timetable: Timetable) -> None:
    await timetable.put({"j:full:a": NOW - 9, "j:other:a": NOW - 5, "j:other:b": NOW + 70, "j:full:b": NOW + 3})
    claim = await timetable.claim(NOW, 10, without=["full"])
    assert (list(claim.members), claim.next_due) == (["j:other:a"], NOW + 70)
    assert await claimed(timetable) == ["j:full:a"]


async def test_with_every_lane_passed_over_nothing_is_next(timetable: Timetable) -> None:
    await timetable.put({"j:a:1": NOW, "j:b:1": NOW})
    claim = await timetable.claim(NOW, 10, without={"a", "b", "nobody"})
    assert (list(claim.members), claim.next_due) == ([], None)
    assert sorted(await claimed(timetable)) == ["j:a:1", "j:b:1"]


async def test_a_member_that_is_none_of_ours_is_claimed_like_any_other(timetable: Timetable) -> None:
    strange = ["", "x", "j:only", "::", "x:y:z", "j:t:with:colon", "j:t:\udcff"]
    await timetable.put(dict.fromkeys(strange, NOW))
    assert sorted(await claimed(timetable)) == sorted(strange)
    await timetable.drop(strange)
    assert await timetable.size() == 0


# many nodes


async def test_nodes_share_the_members_and_never_overlap(two_nodes: Sequence[Timetable]) -> None:
    await two_nodes[0].put({f"j:{number % 7}:{number}": NOW - number for number in range(300)})
    claims = await asyncio.gather(*(node.claim(NOW, 7) for node in two_nodes for _ in range(30)))
    members = [member for claim in claims for member in claim.members]
    assert len(members) == len(set(members)) == 300


async def test_an_earlier_member_wakes_the_other_node(two_nodes: Sequence[Timetable]) -> None:
    here, there = two_nodes
    await here.put({"j:t:a": NOW + 50})
    await asyncio.wait_for(there.earlier.wait(), 5)
    here.earlier.clear()
    there.earlier.clear()
    await there.restore({"j:u:b": NOW + 40}, now=NOW)
    await asyncio.wait_for(here.earlier.wait(), 5)


async def test_one_node_is_on_duty(two_nodes: Sequence[Timetable]) -> None:
    assert await two_nodes[0].on_duty(30)
    assert await two_nodes[0].on_duty(30), "who has it keeps it"


# names, and how far the house looks ahead


@pytest.mark.parametrize("identity", ["a", "0190a0b0-0000-7000-8000-000000000001", "with:colon"])
def test_a_members_name_says_what_it_is(identity: str) -> None:
    assert split_member(job_member("team", identity)) == ("j", "team", identity)
    assert split_member(run_member("team", identity)) == ("r", "team", identity)
    assert lane_of(job_member("team", identity)) == "team"


@pytest.mark.parametrize("member", ["", "j", "j:a", "j:a:", "j::a", "x:t:a", "jr:t:a", ":t:a", "J:t:a"])
def test_a_member_that_is_none_of_ours_has_no_parts(member: str) -> None:
    assert split_member(member) is None


async def test_only_what_is_near_is_put_and_what_has_moved_away_is_forgotten(timetable: Timetable) -> None:
    near, far, moved = NOW + HORIZON_MS, NOW + HORIZON_MS + 1, NOW * 2
    await timetable.put({"j:t:moved": NOW})
    await put_near(timetable, {"j:t:near": near, "j:t:far": far, "j:t:moved": moved}, NOW)
    assert await timetable.size() == 1
    assert await claimed(timetable, NOW + HORIZON_MS) == ["j:t:near"]
    await put_near(timetable, {"j:t:near": NOW * 2}, NOW)
    await put_near(timetable, {"j:t:other": NOW}, NOW)
    assert await claimed(timetable, NOW + HORIZON_MS * 2) == ["j:t:other"]


# all of it together

LANES = ["a", "b", "c", ""]
MEMBERS = [f"j:{lane}:{number}" for lane in "abc" for number in range(4)] + ["none of ours"]
members = st.sampled_from(MEMBERS)
offsets = st.integers(-20_000, 20_000) | st.sampled_from([-HIDE_MS, 0, HIDE_MS, HIDE_MS + 1])
nodes = st.integers(0, 1)


class TimetableMachine(RuleBasedStateMachine):
    """Random calls of two nodes on a timetable, and on a dictionary that stands for it. Members due at the same instant
    may be claimed in any order, so that instants are compared, not names."""

    make: Callable[[int], AbstractAsyncContextManager[Sequence[Timetable]]]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.context = type(self).make(2)
        self.nodes = self.do(self.context.__aenter__())
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
        for node in self.nodes:
            if ahead:  # the other node hears of it a little later
                self.do(asyncio.wait_for(node.earlier.wait(), 5))
            assert node.earlier.is_set() == ahead
        for node in self.nodes:
            node.earlier.clear()

    @rule(node=nodes, due=st.dictionaries(members, offsets, max_size=6))
    def put(self, node: int, due: dict[str, int]) -> None:
        first = min(self.model.values(), default=None)
        instants = {member: self.now + offset for member, offset in due.items()}
        self.do(self.nodes[node].put(instants))
        self.model |= instants
        for member in instants:
            self.hidden.pop(member, None)
        self._expect_earlier(first)

    @rule(node=nodes, due=st.dictionaries(members, offsets, max_size=8))
    def restore(self, node: int, due: dict[str, int]) -> None:
        first = min(self.model.values(), default=None)
        instants = {member: self.now + offset for member, offset in due.items()}
        lost = {
            member: instant
            for member, instant in instants.items()
            if member not in self.model or self.model[member] > max(instant, self.now + HIDE_MS)
        }
        assert not lost.keys() & self.hidden.keys(), "restoring never disturbs a claim"
        assert self.do(self.nodes[node].restore(instants, now=self.now)) == len(lost)
        self.model |= lost
        self._expect_earlier(first)

    @rule(node=nodes, dropped=st.lists(members, max_size=3))
    def drop(self, node: int, dropped: list[str]) -> None:
        self.do(self.nodes[node].drop(dropped))
        for member in dropped:
            self.model.pop(member, None)
            self.hidden.pop(member, None)
        assert not any(node.earlier.is_set() for node in self.nodes)

    @rule(
        node=nodes,
        limit=st.integers(0, 10),
        hide_ms=st.sampled_from([HIDE_MS, HIDE_MS, 1, 3_000]),
        without=st.sets(st.sampled_from([*LANES, "nobody"]), max_size=2),
    )
    def claim(self, node: int, limit: int, hide_ms: int, without: set[str]) -> None:
        claim = self.do(self.nodes[node].claim(self.now, limit, hide_ms, without=without))
        self._check_shares(claim.members, limit, without)
        for member in claim.members:
            assert self.hidden.get(member, self.now) <= self.now, "claimed again within its hiding time"
            self.model[member] = self.hidden[member] = self.now + hide_ms
        left = [due for member, due in self.model.items() if lane_of(member) not in without]
        assert claim.next_due == min(left, default=None)
        assert not any(node.earlier.is_set() for node in self.nodes)

    def _check_shares(self, taken: Sequence[str], limit: int, without: Collection[str]) -> None:
        assert len(taken) == len(set(taken))
        due: dict[str, list[int]] = {}
        for member, instant in self.model.items():
            if instant <= self.now and lane_of(member) not in without:
                due.setdefault(lane_of(member), []).append(instant)
        shares = Counter(lane_of(member) for member in taken)
        assert shares.total() == min(limit, sum(map(len, due.values()))), "as many as there is room for"
        for lane, instants in due.items():
            its = sorted(self.model[member] for member in taken if lane_of(member) == lane)
            assert its == sorted(instants)[: shares[lane]], "the earliest of its lane, none early, none lost"
            if shares[lane] < len(instants):
                assert max(shares.values(), default=0) <= shares[lane] + 1, "who wants more has as much as anybody"

    @rule(ms=st.integers(0, 15_000))
    def advance(self, ms: int) -> None:
        self.now += ms
        self.hidden = {member: until for member, until in self.hidden.items() if until > self.now}

    @rule(node=nodes)
    def clear(self, node: int) -> None:
        self.do(self.nodes[node].clear())
        self.model.clear()
        self.hidden.clear()

    @invariant()
    def nothing_is_lost(self) -> None:
        assert self.do(self.nodes[0].size()) == len(self.model)


@pytest.mark.parametrize("name", sorted(TIMETABLES))
def test_whatever_is_called_a_timetable_agrees_with_a_plain_dictionary(name: str) -> None:
    machine = type("Machine", (TimetableMachine,), {"make": staticmethod(TIMETABLES[name])})
    run_state_machine_as_test(machine, settings=settings(max_examples=60, stateful_step_count=30, deadline=None))
