"""Buckets of allowances: how many at once, how they come back, and that memory is bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.errors import TooMany
from zerocron.core.limits import Buckets, give_each_back, network_of, take_each


def test_a_bucket_gives_so_many_at_once_and_then_one_by_one() -> None:
    buckets = Buckets(3, 30)
    for _ in range(3):
        take_each([(buckets, "a")], 100.0)
    with pytest.raises(TooMany) as refusal:
        take_each([(buckets, "a")], 100.0)
    assert refusal.value.retry_after_seconds == 10
    assert refusal.value.message == "There were too many attempts. Try again in 10 seconds."
    take_each([(buckets, "b")], 100.0)
    assert buckets.wait_seconds("a", 105.0) == pytest.approx(5)
    take_each([(buckets, "a")], 110.0)
    with pytest.raises(TooMany):
        take_each([(buckets, "a")], 119.9)


def test_of_several_all_are_taken_or_none() -> None:
    many, few = Buckets(5, 60), Buckets(1, 6_000)
    claims = [(many, "a"), (few, "a")]
    take_each(claims, 0.0)
    for _ in range(10):
        with pytest.raises(TooMany, match="100 minutes"):
            take_each(claims, 0.0)
    for _ in range(4):
        take_each([(many, "a")], 0.0)
    give_each_back(claims, 0.0)
    take_each(claims, 0.0)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 50), st.booleans()), max_size=60))
def test_never_more_than_the_burst_and_what_came_back(steps: list[tuple[str, float, bool]]) -> None:
    buckets, now, taken = Buckets(4, 20), 0.0, dict.fromkeys("abc", 0)
    for key, seconds, gives_back in steps:
        now += seconds
        if buckets.wait_seconds(key, now) == 0:
            buckets.take(key, now)
            taken[key] += 1
            if gives_back:
                buckets.give_back(key, now)
                taken[key] -= 1
        assert taken[key] <= 4 + now * 4 / 20 + 1e-6


def test_memory_is_bounded_and_the_longest_unused_is_forgotten() -> None:
    buckets = Buckets(1, 1_000, keys_max=100)
    for number in range(100):
        buckets.take(number, 0.0)
    buckets.take("another", 0.0)
    assert len(buckets) == 100
    assert buckets.wait_seconds(0, 0.0) == 0
    assert buckets.wait_seconds(1, 0.0) > 0
    buckets.give_back(1, 0.0)
    assert len(buckets) == 99, "a full bucket is the same as none"


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2::", "2001:db8:1:2::"),
        ("::1", "::"),
        ("fe80::1%eth0", "fe80::"),
        ("", ""),
        ("x" * 100, "x" * 45),
    ],
)
def test_one_client_is_an_ipv4_address_or_the_network_of_an_ipv6_one(address: str, network: str) -> None:
    assert network_of(address) == network
