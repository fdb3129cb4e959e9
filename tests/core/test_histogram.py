"""Percentiles of counts: never too small, and not too large by more than a size."""

from __future__ import annotations

import itertools
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.histogram import BOUNDS_MS, exact_percentile, percentile, size_of


def test_sizes_grow_by_a_quarter_at_most() -> None:
    assert BOUNDS_MS[:10] == (0, 1, 2, 3, 4, 5, 6, 7, 8, 10)
    assert all(low < high <= max(low + 1, low * 5 // 4) for low, high in itertools.pairwise(BOUNDS_MS))
    assert len(BOUNDS_MS) < 100
    assert BOUNDS_MS[-1] >= 86_400_000


def test_a_value_is_in_the_smallest_size_that_holds_it() -> None:
    for size, bound in enumerate(BOUNDS_MS):
        assert size_of(bound) == size
        assert size_of(bound + 1) == min(size + 1, len(BOUNDS_MS) - 1)


def test_of_nothing_there_is_no_percentile() -> None:
    assert percentile({}, 50) is None


@given(st.lists(st.integers(0, 10_000_000), min_size=1), st.integers(1, 100))
def test_a_percentile_is_the_right_one_rounded_up_to_its_size(values: list[int], percent: int) -> None:
    right = exact_percentile(sorted(values), percent)
    found = percentile(Counter(map(size_of, values)), percent)
    assert found == BOUNDS_MS[size_of(right)]
    assert right <= found <= max(right + 1, right * 5 // 4)


@given(st.lists(st.integers(0, 1_000), min_size=1), st.integers(1, 100))
def test_so_many_in_a_hundred_are_not_larger(values: list[int], percent: int) -> None:
    found = exact_percentile(sorted(values), percent)
    assert found in values
    assert 100 * sum(value <= found for value in values) >= percent * len(values)
    assert 100 * sum(value < found for value in values) < percent * len(values)
