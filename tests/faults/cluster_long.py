"""The fault suite of the cluster for as long as you like, with a table of what was done and what came of it.

    python -m tests.faults.cluster_long --minutes 60 --seed 1 [--nodes 3] [--seconds 60] [--scale 0.2] [--out DIR]
                                        [--only NUMBER,...] [--skip-catalogue] [--stop-at-first]

First every fault of the catalogue with shortened sessions, then those whose times are the point of them with the real
ones (30 s), then random journeys, each with the next seed, until the time is over. A seed is printed with each, for
`--seed S --skip-catalogue`. DIR gets `faults.jsonl` (a line a journey), `faults.md` (a line a fault) and the logs of
every journey that broke a promise. Ends with 1 when there was one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from typing import Any

from tests.faults.checker import Violation, summary
from tests.faults.cluster import SCALE, Cluster, cluster
from tests.faults.cluster_chaos import ClusterChaos
from tests.faults.cluster_faults import CASES, Case, may_mount, scene_of
from tests.faults.history import TABLES
from tests.faults.world import wall_ms

REAL_TIME = ("4", "12", "13", "26", "34")
"""Faults whose point is what outlasts a session: also played with sessions of 30 s."""

JOURNEY_SECONDS_MAX = 600


@dataclass(slots=True)
class Line:
    """What one journey was, and what came of it."""

    name: str
    injected: dict[str, int]
    told: dict[str, Any] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def as_json(self) -> str:
        return json.dumps({"journey": self.name, "injected": self.injected, "broken": self.broken[:40]} | self.told)


async def play_case(case: Case, folder: Path, scale: float) -> Line:
    line = Line(f"{case.number} {case.name}" + (", real times" if scale == 1 else ""), {})
    line.injected = {line.name: 1}
    async with scene_of(case, folder, scale=scale) as it:
        await _judged(line, it, case.journey(it))
    return line


async def play_random(seed: int, folder: Path, options: argparse.Namespace) -> Line:
    line = Line(f"random, seed {seed}", {})
    async with cluster(folder, own_postgres=True, scale=options.scale) as it:
        chaos = ClusterChaos(it, seed, nodes=options.nodes)

        async def whole() -> None:
            await chaos.play(options.seconds)
            await it.assert_clean()

        await _judged(line, it, whole())
        line.injected = dict(chaos.injected)
    return line


async def _judged(line: Line, it: Cluster, journey: Any) -> None:
    try:
        async with asyncio.timeout(JOURNEY_SECONDS_MAX):
            await journey
    except Exception as error:
        line.broken = str(error).splitlines()[:100] or [traceback.format_exc(limit=-1)]
        (it.folder / "nodes.log").write_text(it.node_log())
        tables = {name: it.rows(f"SELECT * FROM {name}") for name in TABLES}
        (it.folder / "ledger.json").write_text(json.dumps(tables, default=str))
    found: list[Violation] = []
    line.told = await asyncio.to_thread(lambda: summary(it.history(), found))


def write_table(lines: Iterable[Line], file: Path) -> None:
    """A line a fault: how often it was injected, over how many slots and requests, and what was broken."""
    rows: dict[str, list[int]] = {}
    for line in lines:
        for name, times in line.injected.items():
            row = rows.setdefault(name, [0, 0, 0, 0])
            row[0] += times
            row[1] += int(line.told.get("required_slots", 0))
            row[2] += int(line.told.get("requests", 0))
            row[3] += bool(line.broken)
    table = ["| fault | injected | slots | requests | journeys with a violation |", "|---|---|---|---|---|"]
    table += [f"| {name} | {' | '.join(map(str, row))} |" for name, row in rows.items()]
    file.write_text("\n".join(table) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60, help="faults last so long in each random journey")
    parser.add_argument("--scale", type=float, default=SCALE, help="of the sessions in random journeys")
    parser.add_argument("--only", default="", help="numbers of the catalogue")
    parser.add_argument("--skip-catalogue", action="store_true")
    parser.add_argument("--stop-at-first", action="store_true", help="end with the first broken promise")
    parser.add_argument("--out", type=Path, help="where table and logs go; a temporary directory otherwise")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as an exception, so that nodes and servers are ended
    base = options.out or Path(tempfile.mkdtemp(prefix="zerocron-cluster-faults-"))
    base.mkdir(parents=True, exist_ok=True)
    lines: list[Line] = []
    end = wall_ms() + options.minutes * 60_000
    for number, journey in enumerate(_journeys(options)):
        if wall_ms() >= end:
            break
        folder = base / f"journey-{number}"
        line = asyncio.run(journey(folder))
        lines.append(line)
        sys.stdout.write(line.as_json() + "\n")
        sys.stdout.flush()
        with (base / "faults.jsonl").open("a") as file:
            file.write(line.as_json() + "\n")
        write_table(lines, base / "faults.md")
        if not line.broken:
            rmtree(folder, ignore_errors=True)
        elif options.stop_at_first:
            break
    broken = [line for line in lines if line.broken]
    sys.stdout.write(f"{len(lines)} journeys, {len(broken)} broke a promise; see {base}\n")
    return 1 if broken else 0


def _journeys(options: argparse.Namespace) -> Iterable[Any]:
    wanted = set(filter(None, options.only.split(",")))
    cases = [case for case in CASES if not wanted or case.number in wanted]
    if not options.skip_catalogue:
        for scale in (SCALE, 1.0):
            for case in cases:
                if (scale == SCALE or case.number in REAL_TIME) and (not case.disk_mb or may_mount()):
                    yield lambda folder, case=case, scale=scale: play_case(case, folder, scale)
    seed = options.seed
    while not wanted:
        yield lambda folder, seed=seed: play_random(seed, folder, options)
        seed += 1


if __name__ == "__main__":
    sys.exit(main())
