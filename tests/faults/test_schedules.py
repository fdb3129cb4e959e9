"""Some dozens of random schedules in virtual time; `python -m tests.faults.schedules` plays thousands."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.faults.schedules import Schedule
from tests.faults.stage import open_ledger, quiet

NUMBER = 25


@pytest.mark.timeout(120)
def test_random_schedules(tmp_path: Path) -> None:
    first = random.SystemRandom().randrange(1_000_000)
    with quiet(), open_ledger(tmp_path / "ledger") as inner:
        for seed in range(first, first + NUMBER):
            found = Schedule(inner, tmp_path / str(seed), seed).play()
            again = f"python -m tests.faults.schedules --seed {seed} --number 1"
            assert not found, f"{again}\n" + "\n".join(map(str, found))
