"""What is asked of the timetable in memory beyond the contract: that it stays as small as what it holds."""

from __future__ import annotations

from zerocron.storage.timetable.memory import MemoryTimetable

NOW = 1_800_014_400_000


async def test_the_heap_does_not_grow_with_the_number_of_changes() -> None:
    timetable = MemoryTimetable()
    await timetable.put({"j:first": NOW})  # what is behind it is not looked at, and so not cleared away by the way
    for step in range(200):
        await timetable.put({f"j:{number}": NOW + 10_000 - step for number in range(100)})
    assert len(timetable._heap) <= 2 * 101 + 1024 + 100
    claim = await timetable.claim(NOW + 10_000, 200)
    assert claim.members[0] == "j:first"
    assert len(claim.members) == 101
