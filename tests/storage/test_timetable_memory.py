"""What is asked of the timetable in memory beyond the contract: that it stays as small as what it holds."""

from __future__ import annotations

from zerocron.storage.timetable.memory import MemoryTimetable

NOW = 1_800_014_400_000


async def test_the_heap_does_not_grow_with_the_number_of_changes() -> None:
    timetable = MemoryTimetable()
    await timetable.put({"j:t:first": NOW})  # what is behind it is not looked at, and so not cleared away by the way
    for step in range(200):
        await timetable.put({f"j:t:{number}": NOW + 10_000 - step for number in range(100)})
    assert timetable._entries <= 2 * 101 + 1024 + 100
    claim = await timetable.claim(NOW + 10_000, 200)
    assert claim.members[0] == "j:t:first"
    assert len(claim.members) == 101


async def test_the_only_node_never_loses_it() -> None:
    timetable = MemoryTimetable()
    assert not await timetable.lost(NOW)
    await timetable.clear()
    assert not await timetable.lost(NOW)


async def test_lanes_without_members_are_forgotten() -> None:
    timetable = MemoryTimetable()
    for number in range(3_000):
        await timetable.put({f"j:team{number}:a": NOW})
        await timetable.drop([f"j:team{number}:a"])
    assert (await timetable.claim(NOW, 10)).next_due is None
    assert not timetable._lanes
    assert not timetable._listed
    assert not timetable._heads
    assert timetable._entries == 0
