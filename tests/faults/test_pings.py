"""Monitors that are pinged while PostgreSQL is cut: every 200 has its row, and nobody is blamed (I23)."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from tests.faults.cluster import Cluster, cluster
from tests.faults.history import Row
from tests.faults.pings import PingHistory, Sender, Sent, i23_pings
from tests.faults.world import moment, until

PERIOD_MS, GRACE_MS = 4_000, 2_000
T = 1_000_000


def history(**given: Any) -> PingHistory:
    """A monitor `m` whose only ping was acknowledged at T."""
    fields: dict[str, Any] = {
        "sent": [Sent("m", "a", T, 200, T + 5)],
        "pings": [{"body": "a", "received_at": T}],
        "flips": [],
        "down": [],
    }
    return PingHistory(PERIOD_MS, GRACE_MS, **fields | given)


def down(at: int) -> list[Row]:
    return [{"monitor_id": "m", "at": at, "after": "down"}]


ONE = Sent("m", "a", T, 200, T + 5)
BROKEN = {
    "a 200 without a row": history(pings=[]),
    "two rows of one ping": history(pings=[{"body": "a", "received_at": T}] * 2),
    "a row of no ping": history(pings=[{"body": "a", "received_at": T}, {"body": "x", "received_at": T}]),
    "down too soon": history(flips=down(T + 5_900)),
    "down because of an outage": history(flips=down(T + 7_000), down=[(T + 1_000, T + 4_000)]),
    "down although one was refused": history(
        sent=[ONE, Sent("m", "b", T + 4_000, 503, T + 4_005)], flips=down(T + 6_000)
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_checker_sees_a_broken_promise(name: str) -> None:
    assert list(i23_pings(BROKEN[name]))


def test_the_checker_allows_what_is_right() -> None:
    assert not list(i23_pings(history(flips=down(T + 6_000))))
    assert not list(i23_pings(history(flips=down(T + 9_000), down=[(T + 1_000, T + 4_000)])))
    unanswered = Sent("m", "b", T + 1_000)
    assert not list(i23_pings(history(sent=[ONE, unanswered], flips=down(T + 6_000))))


async def monitor(scene: Cluster, name: str) -> Row:
    status, made = await scene.call(
        "POST",
        "/v1/monitors",
        {"name": name, "schedule": f"every {PERIOD_MS // 1000} seconds", "grace_period_seconds": GRACE_MS // 1000},
    )
    assert status == 201, made
    assert isinstance(made, dict)
    return made


@pytest.mark.timeout(180)
async def test_pings_while_postgresql_is_cut(tmp_path: Path) -> None:
    async with cluster(tmp_path) as scene:
        await scene.start("n1", "n2")
        record = PingHistory(PERIOD_MS, GRACE_MS)
        names = ("one", "two", "three")
        monitors = {name: await monitor(scene, name) for name in (*names, "silent")}
        senders = {name: Sender(scene, one, record.sent) for name, one in monitors.items()}

        async def cut(seconds: float, *nodes: str, silent: bool = False) -> None:
            since = scene.now_ms()
            async with contextlib.AsyncExitStack() as stack:
                for node in nodes:
                    await stack.enter_async_context(scene[node].cut(kind="cut_pg", silent=silent))
                await moment(seconds)
            if len(nodes) == 2:
                record.down.append((since, scene.now_ms()))

        def flips(name: str) -> list[Row]:
            query = "SELECT * FROM flips WHERE monitor_id = ? ORDER BY number"
            return scene.rows(query, monitors[name]["id"])

        assert (await senders["silent"].send("n1")).status == 200
        for name in names:
            senders[name].start()
        await until(lambda: [flip["after"] for flip in flips("silent")] == ["up", "down"], "the silent one's end", 20)
        for seconds, nodes, silent in (
            (3, ("n1", "n2"), False),
            (4, ("n2",), False),
            (8, ("n1", "n2"), True),
            (17, ("n1", "n2"), False),
        ):
            await cut(seconds, *nodes, silent=silent)
            taken = sum(sent.status == 200 for sent in record.sent)
            await until(lambda: sum(sent.status == 200 for sent in record.sent) > taken + 12, "pings again", 20)  # noqa: B023
        for name in names:
            await senders[name].stop()
        told = {name: [flip["after"] for flip in flips(name)] for name in names}
        assert told == {name: ["up"] for name in names}, _explain(scene, record)
        assert any(sent.status == 503 for sent in record.sent), "some were refused"
        await until(lambda: all(flips(name)[-1]["after"] == "down" for name in names), "the end of all", 30)
        record.pings, record.flips = scene.rows("SELECT * FROM pings"), scene.rows("SELECT * FROM flips")
        assert not list(i23_pings(record))


def _explain(scene: Cluster, record: PingHistory) -> str:
    """All that mattered, in the order of time."""
    lines = [(since, f"cut until {until_}") for since, until_ in record.down]
    lines += [(row["started_at"], f"outage until {row['ended_at']}") for row in scene.rows("SELECT * FROM outages")]
    lines += [
        (row["at"], f"{row['after']} {row['monitor_id'][-4:]} noticed {row['noticed_at']}")
        for row in scene.rows("SELECT * FROM flips")
    ]
    lines += [(sent.at, f"{sent.name} {sent.status} {sent.answered_at}") for sent in record.sent]
    return "\n".join(f"{at} {text}" for at, text in sorted(lines))
