"""Random faults for as long as you like.

    python -m tests.faults.long --minutes 30 --seed 1 [--seconds 60] [--jobs 20] [--keep DIR]

plays one journey after the other, each with the next seed, prints the checker's summary of each, and ends with 1 at the
first that breaks a promise; its logs are then in the directory that is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path
from shutil import rmtree

from tests.faults import world as worlds
from tests.faults.chaos import Chaos
from tests.faults.checker import Violation, summary
from tests.faults.world import wall_ms


async def journey(folder: Path, seed: int, seconds: float, jobs: int) -> tuple[dict[str, object], list[Violation]]:
    """Play one, and judge it."""
    async with worlds.world(folder) as world:
        await Chaos(world, seed, jobs=jobs).play(seconds)
        found = await world.verdict()
        return summary(world.history(), found), found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60, help="faults last so long in each journey")
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--keep", type=Path, help="where the logs go; a temporary directory otherwise")
    options = parser.parse_args()
    base = options.keep or Path(tempfile.mkdtemp(prefix="zerocron-faults-"))
    end = wall_ms() + options.minutes * 60_000
    seed = options.seed
    while wall_ms() < end:
        folder = base / f"seed-{seed}"
        told, found = asyncio.run(journey(folder, seed, options.seconds, options.jobs))
        sys.stdout.write(json.dumps({"seed": seed} | told) + "\n")
        sys.stdout.flush()
        if found:
            sys.stdout.write("\n".join([*map(str, found), f"the logs are in {folder}"]) + "\n")
            return 1
        if options.keep is None:
            rmtree(folder)
        seed += 1
    if options.keep is None:
        rmtree(base)
    return 0


if __name__ == "__main__":
    sys.exit(main())
