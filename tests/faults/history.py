"""What a fault run left behind, read for the checker: ledger, target log, fault log, operation log.

Owns the reading and the shapes; judges nothing. The ledger is read with plain sqlite3 or plain asyncpg, because the
checker must not lean on the code it checks. Instants are milliseconds, UTC.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg

Row = dict[str, Any]
Window = tuple[int, int]

FOREVER = 1 << 53

STANDSTILL = ("kill", "pause", "stop", "forced_stop", "absent", "cut_pg", "clock")
"""While these last, that node starts nothing."""

LOSSES = ("kill", "pause", "forced_stop", "cut_pg")
"""After these, what that node had in hand comes late: a claim when its hiding ends, a run when its session does."""

VALIDITY_MS = 30_000
REDIS_MS, PG_MS, PG_SLOW_MS = 10_000, 30_000, 10_000
"""R of a fault of Redis, of a PostgreSQL that is away, and of one that is slow, where a session is valid for
`VALIDITY_MS`. Where a test shortens that, it shortens hiding and time-outs with it, and so R. A node's is one and a
half times its session's validity: 45 s of 30 s."""

SAMPLE_MS = 2_000
"""A clock is as it was sampled for about as long as it takes until the next sample."""

NODE_MS_MIN = 12_000
"""R of a node where a test shortens the validity: what is not shortened with it takes that long on a slow machine."""


@dataclass(frozen=True, slots=True)
class Version:
    """A job as it was from one commit to the next; `until` is FOREVER for the newest."""

    number: int
    status: str
    schedule: Mapping[str, Any]
    definition: Mapping[str, Any]
    since: int
    until: int

    @property
    def plan(self) -> tuple[Any, ...]:
        """What decides about its slots: two neighbouring versions with the same plan have no seam."""
        own = ("overlap", "catchup", "catchup_window_seconds", "on_lost")
        return tuple(sorted((key, value) for key, value in self.schedule.items() if key not in own))

    @property
    def retry(self) -> Mapping[str, Any]:
        """attempts, backoff, delay_seconds, jitter."""
        given: Mapping[str, Any] = self.definition["delivery"]["retry"]
        return given

    @property
    def success(self) -> Mapping[str, Any]:
        """status, a list of patterns, and whatever else an answer has to keep."""
        given: Mapping[str, Any] = self.definition["delivery"]["success"]
        return given

    @property
    def exclusive(self) -> bool:
        return bool(self.schedule["overlap"] != "allow")


@dataclass(frozen=True, slots=True)
class Received:
    """One request as the target saw it. `status` is what it answered in full, None when it did not finish."""

    at: float
    path: str
    run_id: str | None
    attempt: int | None
    scheduled_for: str | None
    version: int | None
    key: str | None
    job_id: str | None
    status: int | None = None
    body_sha256: str | None = None
    knows_answers: bool = True


@dataclass(slots=True)
class Fault:
    """`until` is FOREVER while it lasts. Kinds, and what they are:

    of one process     kill, pause, stop (graceful), forced_stop, absent (not started yet)
    of one node's link cut_pg, cut_redis, clock
    of everybody       ledger (writes fail), pg, pg_slow, redis, stall (the machine had no core for anybody)
    """

    kind: str
    since: int
    until: int
    node: str = ""


@dataclass(slots=True)
class Operation:
    """An API call: `outcome` is ok, failed, or info (nobody knows)."""

    number: int
    kind: str
    since: int
    until: int
    outcome: str
    data: Row = field(default_factory=dict)


@dataclass
class History:
    """Everything the invariants look at. `read_time`: up to when the checker may ask for something to have happened."""

    versions: dict[str, list[Version]]
    jobs: dict[str, Row]
    runs: list[Row]
    executions: list[Row]
    sessions: dict[str, Row]
    received: list[Received]
    faults: list[Fault]
    operations: list[Operation]
    audit: list[Row]
    read_time: int
    validity_ms: int = 0
    """How long a session is valid, with a cluster; 0 when there is one node."""

    index: dict[str, float] | None = None
    """What the timetable held at the end, member -> instant; None when it was not read."""

    alerts: list[Row] = field(default_factory=list)
    channels: list[Row] = field(default_factory=list)
    delivered: frozenset[str] | None = None
    """Ids of the alerts that the channel's receiver has accepted; None where there is no such log."""
    runs_per_minute_max: Mapping[str, int] = field(default_factory=dict)
    """Of teams with such a limit of their own."""

    clocks: Mapping[str, list[tuple[int, int]]] = field(default_factory=dict)
    """By how many ms, at most, a node's clock was behind PostgreSQL's, and since when, by node: a clock is carried on
    from samples, and never ahead of what they leave open."""

    def behind_ms(self, at: int) -> int:
        """By how much the clock of any node may have been behind about then."""
        return max(
            (
                behind_ms
                for samples in self.clocks.values()
                for (since, behind_ms), (until, _) in pairwise([*samples, (FOREVER, 0)])
                if since - SAMPLE_MS <= at <= until + SAMPLE_MS
            ),
            default=0,
        )

    @cached_property
    def run_of(self) -> dict[str, Row]:
        return {run["id"]: run for run in self.runs}

    @cached_property
    def runs_of_job(self) -> dict[str, list[Row]]:
        return _grouped(sorted(self.runs, key=lambda run: (run["scheduled_for"], run["trigger_key"])), "job_id")

    @cached_property
    def executions_of_run(self) -> dict[str, list[Row]]:
        return _grouped(sorted(self.executions, key=lambda execution: execution["attempt"]), "run_id")

    @cached_property
    def received_of(self) -> dict[tuple[str, int], list[Received]]:
        found: dict[tuple[str, int], list[Received]] = {}
        for request in self.received:
            if request.run_id is not None and request.attempt is not None:
                found.setdefault((request.run_id, request.attempt), []).append(request)
        return found

    @cached_property
    def down(self) -> list[Window]:
        """When nothing could start anywhere: no ledger, or every node ended, paused or cut off from the ledger."""
        away: dict[str, list[Window]] = {}
        for fault in self.faults:
            if fault.kind in STANDSTILL:
                away.setdefault(fault.node, []).append((fault.since, fault.until))
        of_all = [(fault.since, fault.until) for fault in self.faults if fault.kind in ("ledger", "pg")]
        return merged([*of_all, *_common([merged(windows) for windows in away.values()])])

    @cached_property
    def recovering(self) -> list[Window]:
        """When something may be late: while nothing can start, and for R after a fault (PROMISES.md B, B(t))."""
        windows = list(self.down)
        redis_ms, pg_ms, pg_slow_ms = (r * self.validity_ms // VALIDITY_MS for r in (REDIS_MS, PG_MS, PG_SLOW_MS))
        for fault in self.faults if self.validity_ms else ():
            if fault.kind in ("redis", "cut_redis"):
                windows += [(fault.since, fault.since + redis_ms), (fault.until, fault.until + redis_ms)]
            elif fault.kind in ("pg", "pg_slow", "stall"):
                windows.append((fault.since, fault.until + (pg_ms if fault.kind == "pg" else pg_slow_ms)))
            elif fault.kind in LOSSES:
                windows.append((fault.since, fault.since + max(self.validity_ms * 3 // 2, NODE_MS_MIN)))
        return merged(windows)

    def version(self, job_id: str, number: int) -> Version | None:
        return next((version for version in self.versions.get(job_id, []) if version.number == number), None)

    def version_of(self, run: Row) -> Version:
        found = self.version(run["job_id"], run["job_version"])
        assert found is not None, f"run {run['id']} names version {run['job_version']}, which is not there"
        return found

    def blocked(self, job_id: str) -> list[Window]:
        """When a slot of an exclusive job could not start: nothing could, or another run held its place."""
        return merged([*self.down, *self._held(job_id)])

    def excused(self, job_id: str) -> list[Window]:
        """When a slot of the job may be late."""
        return merged([*self.recovering, *self._held(job_id)])

    def _held(self, job_id: str) -> list[Window]:
        return [
            (run["started_at"], run["finished_at"] or FOREVER)
            for run in self.runs_of_job.get(job_id, [])
            if run["started_at"] is not None and self.version_of(run).exclusive
        ]


def merged(windows: Iterable[Window]) -> list[Window]:
    """The union of windows, as disjoint ones in order."""
    union: list[Window] = []
    for since, until in sorted(windows):
        if union and since <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], until))
        else:
            union.append((since, until))
    return union


def _common(of_each: list[list[Window]]) -> list[Window]:
    """When all of them have a window; each is a union of disjoint ones in order."""
    if not of_each:
        return []
    common = of_each[0]
    for windows in of_each[1:]:
        common = [
            (max(since, begin), min(until, end))
            for since, until in common
            for begin, end in windows
            if max(since, begin) < min(until, end)
        ]
    return common


def uncovered(since: int, until: int, windows: list[Window]) -> int:
    """How much of [since, until] lies in none of the (disjoint) windows."""
    covered = sum(max(0, min(until, end) - max(since, begin)) for begin, end in windows)
    return max(0, until - since) - covered


TABLES = ("jobs", "job_versions", "runs", "executions", "sessions", "alerts", "channels", "teams")


def load(
    ledger: Path | str,
    *,
    target_log: Path,
    fault_log: Path,
    op_log: Path,
    inbox_log: Path | None = None,
    validity_ms: int = 0,
    index: dict[str, float] | None = None,
    clock_logs: Mapping[str, Path] | None = None,
) -> History:
    """Read everything; `ledger` is a data directory or a postgresql:// URL.

    Without an open-ended fault (the final stop), the read time is the newest instant on record.
    """
    tables = _sqlite_tables(ledger) if isinstance(ledger, Path) else _postgres_tables(ledger)
    faults, received, operations = read_faults(fault_log), read_target(target_log), read_operations(op_log)
    ends = [fault.since for fault in faults if fault.until == FOREVER]
    newest = max(
        [0, *(int(request.at) for request in received), *(run["created_at"] for run in tables["runs"])],
    )
    return History(
        versions=_versions(tables["job_versions"]),
        jobs={row["id"]: row for row in tables["jobs"]},
        runs=tables["runs"],
        executions=[_decoded(row) for row in tables["executions"]],
        sessions={row["id"]: row for row in tables["sessions"]},
        received=received,
        faults=faults,
        operations=operations,
        audit=tables["audit"],
        read_time=max(ends) if ends else newest,
        validity_ms=validity_ms,
        index=index,
        alerts=tables["alerts"],
        channels=tables["channels"],
        delivered=None if inbox_log is None else frozenset(line["alert"] for line in _lines(inbox_log)),
        runs_per_minute_max={
            row["id"]: row["runs_per_minute_max"] for row in tables["teams"] if row["runs_per_minute_max"]
        },
        clocks={
            node: [(line["at"], line["behind_ms"]) for line in _lines(path)]
            for node, path in (clock_logs or {}).items()
        },
    )


def _sqlite_tables(data_dir: Path) -> dict[str, list[Row]]:
    connection = sqlite3.connect(f"file:{data_dir / 'zerocron.db'}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        tables = {name: [dict(row) for row in connection.execute(f"SELECT * FROM {name}")] for name in TABLES}
        has_audit = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'audit'").fetchone()
        audit = [dict(row) for row in connection.execute("SELECT * FROM audit ORDER BY seq")] if has_audit else []
    finally:
        connection.close()
    return tables | {"audit": audit}


def _postgres_tables(url: str) -> dict[str, list[Row]]:
    async def read() -> dict[str, list[Row]]:
        connection = await asyncpg.connect(url)
        try:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                tables = {
                    name: [dict(row) for row in await connection.fetch(f"SELECT * FROM {name}")] for name in TABLES
                }
                has_audit = await connection.fetchval("SELECT to_regclass('audit')")
                audit = await connection.fetch("SELECT * FROM audit ORDER BY seq") if has_audit else []
        finally:
            await connection.close()
        return tables | {"audit": [dict(row) for row in audit]}

    found: list[dict[str, list[Row]]] = []
    thread = threading.Thread(target=lambda: found.append(asyncio.run(read())))  # the caller may be in a loop
    thread.start()
    thread.join()
    return found[0]


def _lines(path: Path) -> list[Row]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def read_faults(path: Path) -> list[Fault]:
    """Lines of {kind, from, to, node}; `to` null means that it lasts."""
    return [
        Fault(line["kind"], line["from"], FOREVER if line["to"] is None else line["to"], line.get("node", ""))
        for line in _lines(path)
    ]


def read_target(path: Path) -> list[Received]:
    """Lines of a target's log; those with `event: answered` belong to the request of the same `n`."""
    lines = _lines(path)
    answered = {line["n"]: line for line in lines if line.get("event") == "answered"}
    found: list[Received] = []
    for line in lines:
        if line.get("event") == "answered":
            continue
        headers, answer = line["headers"], answered.get(line.get("n"), {})
        attempt, version = headers.get("x-0cron-attempt"), headers.get("x-0cron-job-version")
        found.append(
            Received(
                at=line["wall_ms"],
                path=line["path"],
                run_id=headers.get("x-0cron-run-id"),
                attempt=None if attempt is None else int(attempt),
                scheduled_for=headers.get("x-0cron-scheduled-for"),
                version=None if version is None else int(version),
                key=headers.get("idempotency-key"),
                job_id=headers.get("x-0cron-job-id"),
                status=answer.get("status"),
                body_sha256=answer.get("body_sha256"),
                knows_answers="n" in line,
            )
        )
    return found


def read_operations(path: Path) -> list[Operation]:
    """Lines of {op, type: invoke|ok|failed|info, kind, at, data}; an op without an end is one nobody knows about."""
    operations: dict[int, Operation] = {}
    for line in _lines(path):
        number = line["op"]
        if line["type"] == "invoke":
            operations[number] = Operation(number, line["kind"], line["at"], FOREVER, "info", line.get("data") or {})
        else:
            operations[number].outcome = line["type"]
            operations[number].until = line["at"]
            operations[number].data |= line.get("data") or {}
    return list(operations.values())


def _versions(rows: list[Row]) -> dict[str, list[Version]]:
    grouped = _grouped(sorted(rows, key=lambda row: row["version"]), "job_id")
    return {
        job_id: [
            Version(
                number=row["version"],
                status=row["status"],
                schedule=json.loads(row["schedule"]),
                definition=json.loads(row["definition"]),
                since=row["created_at"],
                until=FOREVER if following is None else following["created_at"],
            )
            for row, following in pairwise([*of_job, None])
            if row is not None
        ]
        for job_id, of_job in grouped.items()
    }


def _decoded(row: Row) -> Row:
    return row | {name: json.loads(row[name]) for name in ("request", "response") if row[name]}


def _grouped(rows: list[Row], key: str) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[key], []).append(row)
    return found


def path_of(version: Version) -> str:
    """The path by which the target tells this job's requests from others, without looking at any header of ours."""
    return str(urlsplit(version.definition["url"]).path)
