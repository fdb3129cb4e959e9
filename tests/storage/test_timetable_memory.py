"""What is asked of the timetable in memory beyond the contract: that it stays as small as what it holds."""

from __future__ import annotations

from zerocron.storage.timetable.memory import MemoryTimetable

NOW = 1_800_014_400_000


async def test_the_heap_does_not_grow_with_the_number_of_changes() -> None:
    timetable = MemoryTimetable()
    for step in range(200):
        await timetable.put({f"j:{number}": NOW + step for number in range(100)})
        await timetable.drop(f"j:{number}" for number in range(50))
    assert len(timetable._heap) <= 2 * 100 + 1024 + 100
    claim = await timetable.claim(NOW + 200, 200)
    assert sorted(claim.members) == sorted(f"j:{number}" for number in range(50, 100))
