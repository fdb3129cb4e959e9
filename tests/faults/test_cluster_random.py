"""Random faults over three nodes and fifteen jobs; the checker has nothing to say.

`ZEROCRON_FAULT_SEED` chooses the seed; without it every run has one of its own, and says which. For longer ones see
`python -m tests.faults.cluster_long`.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest
from tests.faults.checker import summary
from tests.faults.cluster import cluster
from tests.faults.cluster_chaos import ClusterChaos

SECONDS = 25


@pytest.mark.timeout(400)
async def test_random_faults_of_a_cluster(tmp_path: Path) -> None:
    given = os.environ.get("ZEROCRON_FAULT_SEED")  # noqa: TID251  a knob of the tests, not of the product
    seed = int(given) if given else random.SystemRandom().randrange(1_000_000)
    async with cluster(tmp_path / "cluster", own_postgres=True) as it:
        chaos = ClusterChaos(it, seed)
        await chaos.play(SECONDS)
        found = await it.verdict()
        told = json.dumps({"seed": seed, "injected": chaos.injected} | summary(it.history(), found))
        assert not found, f"ZEROCRON_FAULT_SEED={seed}, logs in {it.folder}\n{told}\n" + "\n".join(map(str, found[:40]))
        assert len(it.calls) > 50, told
