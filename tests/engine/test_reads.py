"""Attempts that ask at the same time share a query, and not the fault of one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from zerocron.core.errors import Unavailable
from zerocron.engine.reads import SharedReads


async def test_a_row_that_cannot_be_read_fails_nobody_but_who_needs_it() -> None:
    async def query(keys: frozenset[str]) -> Mapping[str, str]:
        if "damaged" in keys:
            raise ValueError("damaged")
        return {key: key.upper() for key in keys}

    reads = SharedReads(query)
    asked = [reads.get(frozenset(keys)) for keys in (["a"], ["damaged"], ["b", "c"])]
    first, failed, last = await asyncio.gather(*asked, return_exceptions=True)
    assert (first, last) == ({"a": "A"}, {"b": "B", "c": "C"})
    assert isinstance(failed, ValueError)


async def test_a_ledger_that_is_away_is_asked_once_for_all() -> None:
    queries = 0

    async def query(_keys: frozenset[str]) -> Mapping[str, str]:
        nonlocal queries
        queries += 1
        raise Unavailable("away")

    reads = SharedReads(query)
    found = await asyncio.gather(*(reads.get(frozenset([key])) for key in "abc"), return_exceptions=True)
    assert [type(error) for error in found] == [Unavailable] * 3
    assert queries == 1
