"""Random kills, stops, pauses and calls over twenty jobs; the checker has nothing to say.

`ZEROCRON_FAULT_SEED` chooses the seed; without it every run has one of its own, and says which. For longer ones see
`python -m tests.faults.long`.
"""

from __future__ import annotations

import json
import os
import random

import pytest
from tests.faults.chaos import Chaos
from tests.faults.checker import summary
from tests.faults.world import World

SECONDS = 12


@pytest.mark.timeout(300)
async def test_random_faults(world: World) -> None:
    given = os.environ.get("ZEROCRON_FAULT_SEED")  # noqa: TID251  a knob of the tests, not of the product
    seed = int(given) if given else random.SystemRandom().randrange(1_000_000)
    chaos = Chaos(world, seed)
    await chaos.play(SECONDS)
    found = await world.verdict()
    assert not found, f"ZEROCRON_FAULT_SEED={seed}, logs in {world.folder}\n" + "\n".join(map(str, found[:40]))
    assert len(world.calls) > 50, json.dumps(summary(world.history(), found))
