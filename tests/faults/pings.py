"""Did monitors keep their promise while the ledger was away? I23 of PROMISES.md part B.

    each 200 has its row; no `down` if an acknowledged ping lies in the window, nor because of D

Owns the record of what was sent (`Sender`) and the judgement of it (`i23_pings`), for monitors that are periods. D is
what the fault log says of the ledger, and every moment at which a ping got no 200.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import aiohttp
from tests.faults.cluster import Cluster
from tests.faults.history import Row, uncovered
from tests.faults.world import moment

PATIENCE_SECONDS = 5.0
SIGMA_MS = 50


@dataclass(slots=True)
class Sent:
    """One success of a monitor's job. `status` None: no answer came. `name` is in its body, and nowhere else."""

    monitor_id: str
    name: str
    at: int
    status: int | None = None
    answered_at: int = 0


@dataclass
class PingHistory:
    """What was sent, and what the ledger holds. `down`: windows in which no node could use the ledger."""

    period_ms: int
    grace_ms: int
    sent: list[Sent] = field(default_factory=list)
    pings: list[Row] = field(default_factory=list)
    flips: list[Row] = field(default_factory=list)
    down: list[tuple[int, int]] = field(default_factory=list)


def i23_pings(history: PingHistory) -> Iterator[str]:
    """Each 200 has its row, nothing has two or came from nowhere; and each `down` was earned: for a period and its
    grace, outages not counted, no ping was acknowledged and none was refused."""
    rows = Counter(row["body"] for row in history.pings)
    for sent in history.sent:
        number = rows.pop(sent.name, 0)
        if number > 1:
            yield f"ping {sent.name}: {number} rows"
        elif sent.status == 200 and number == 0:
            yield f"ping {sent.name}: answered 200 and has no row"
    for name in rows:
        yield f"ping {name}: nobody sent it"
    received = {row["body"]: row["received_at"] for row in history.pings}
    for flip in history.flips:
        if flip["after"] != "down":
            continue
        at, silence = flip["at"], history.period_ms + history.grace_ms
        for sent in history.sent:
            came_at = received.get(sent.name, sent.at)
            counts = sent.status == 200 or sent.answered_at > 0
            if sent.monitor_id == flip["monitor_id"] and counts and at - silence + SIGMA_MS < came_at <= at - SIGMA_MS:
                yield f"monitor {flip['monitor_id']}: down at {at}, and {sent.name} ({sent.status}) came at {came_at}"
        last = max((received[one.name] for one in history.sent if _counted(one, flip, received)), default=0)
        if uncovered(last, at, history.down) < silence - SIGMA_MS:
            yield f"monitor {flip['monitor_id']}: down at {at}, {at - last} ms after its last ping, outages included"


def _counted(sent: Sent, flip: Row, received: dict[str, int]) -> bool:
    return sent.monitor_id == flip["monitor_id"] and sent.name in received and received[sent.name] <= flip["at"]


class Sender:
    """A job that reports every second, at one node after the other, and never tries again."""

    def __init__(self, cluster: Cluster, monitor: Row, record: list[Sent]) -> None:
        self._cluster = cluster
        self._monitor = monitor
        self._record = record
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._send_for_ever())

    async def stop(self) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def send(self, node: str) -> Sent:
        sent = Sent(self._monitor["id"], f"{self._monitor['name']} {len(self._record)}", self._cluster.now_ms())
        self._record.append(sent)
        url = f"{self._cluster.nodes[node].url}/v1/ping/{self._monitor['ping_token']}"
        timeout = aiohttp.ClientTimeout(total=PATIENCE_SECONDS)
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            async with aiohttp.ClientSession(timeout=timeout) as session, session.post(url, data=sent.name) as answer:
                sent.status, sent.answered_at = answer.status, self._cluster.now_ms()
        return sent

    async def _send_for_ever(self) -> None:
        async with asyncio.TaskGroup() as group:
            for node in itertools.cycle(self._cluster.nodes):
                group.create_task(self.send(node))
                await moment(1.0)
