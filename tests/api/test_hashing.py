"""Passwords are hashed by argon2id with enough work, never on the event loop, and a few at a time (D 41)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import argon2
import pytest
import pytest_asyncio
from argon2 import PasswordHasher

from zerocron.actions import hashing
from zerocron.actions.hashing import NOBODYS, THREADS, WAITING_MAX, Hashing
from zerocron.core.errors import TooMany

PASSWORD = "four words in a row"


@pytest_asyncio.fixture(loop_scope="module")
async def threads() -> AsyncIterator[Hashing]:
    it = Hashing()
    yield it
    await it.close()
    await it.close()


@pytest.mark.parametrize("made", ["a hash", "nobody's"])
async def test_the_work_is_what_it_has_to_be(threads: Hashing, made: str) -> None:
    parameters = argon2.extract_parameters(await threads.hash(PASSWORD) if made == "a hash" else NOBODYS)
    assert parameters.type is argon2.Type.ID
    assert parameters.memory_cost >= 19 * 1024
    assert parameters.time_cost >= 2
    assert parameters.parallelism == 1
    assert parameters.salt_len >= 16


async def test_it_is_the_password_and_nothing_else(threads: Hashing) -> None:
    kept = await threads.hash(PASSWORD)
    assert kept != await threads.hash(PASSWORD)
    assert PASSWORD not in kept
    assert await threads.matches(kept, PASSWORD)
    for wrong in ("", PASSWORD + " ", PASSWORD[:-1], PASSWORD.upper(), PASSWORD + "\0", PASSWORD * 100):
        assert not await threads.matches(kept, wrong)
    assert not await threads.matches(None, "nobody knows this"), "also where it is what nobody's hash was made of"
    assert not await threads.matches("no hash at all", PASSWORD)


async def test_nothing_of_a_long_password_is_cut(threads: Hashing) -> None:
    long = "wjkqz pvx" * 28
    kept = await threads.hash(long)
    assert await threads.matches(kept, long)
    assert not await threads.matches(kept, long[:-1])
    assert not await threads.matches(kept, long + "x" * 10)


async def test_keyboards_write_the_same_letter_in_several_ways(threads: Hashing) -> None:
    assert await threads.matches(await threads.hash("z\u00fcrichsee"), "zu\u0308richsee")


async def test_other_parameters_are_out_of_date(threads: Hashing) -> None:
    assert not threads.is_outdated(await threads.hash(PASSWORD))
    for weak in (
        PasswordHasher(time_cost=1, memory_cost=19_456, parallelism=1),
        PasswordHasher(time_cost=2, memory_cost=8_192, parallelism=1),
    ):
        assert threads.is_outdated(weak.hash(PASSWORD))
    assert threads.is_outdated("no hash at all")


async def test_fifty_at_once_are_never_hashed_on_the_loop_and_a_few_at_a_time(
    threads: Hashing, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop_thread = threading.current_thread()
    lock = threading.Lock()
    now, most = 0, 0
    hashed_in: set[threading.Thread] = set()
    both = threading.Barrier(THREADS)

    def verified(_password_hash: str, _text: str) -> bool:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
            hashed_in.add(threading.current_thread())
        both.wait(30)  # so that as many as may are in here at once
        with lock:
            now -= 1
        return True

    monkeypatch.setattr(hashing, "_verified", verified)
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while not all(task.done() for task in tasks):
            turns += 1
            await asyncio.wait(tasks, timeout=0)

    tasks = [asyncio.create_task(threads.matches("a hash", PASSWORD)) for _ in range(50)]
    await turn()
    assert all([await task for task in tasks])
    assert most == THREADS
    assert len(hashed_in) == THREADS
    assert loop_thread not in hashed_in
    assert turns > 1, "the loop went round meanwhile"


async def test_a_line_that_is_too_long_is_told_so(threads: Hashing, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    monkeypatch.setattr(hashing, "_verified", lambda _hash, _text: gate.wait(30))
    waiting = [asyncio.create_task(threads.matches("a hash", PASSWORD)) for _ in range(WAITING_MAX)]
    await asyncio.wait(waiting, timeout=0)
    with pytest.raises(TooMany):
        await threads.matches("a hash", PASSWORD)
    gate.set()
    assert all([await task for task in waiting])
    assert await threads.matches("a hash", PASSWORD)
