"""Did this run, with its faults, keep the promise? The checker of PROMISES.md part B.

    python -m tests.faults.checker (--data-dir D | --database-url U) --target-log L --faults F --ops O

prints one violation a line and a JSON summary, and exits 1 when there is any. `violations(history)` is the same as a
function. What each invariant means here is the docstring of its function. The expected slots come from
`occurrences.py`, which shares no code with the product.

Words: a slot is *required* when some active version of its job has it and there was time for it before the read time;
*optional* within 0.1 s of a seam between two versions, inside the call that made the seam, or too close to the end.
A window is *blocked* for a job when no process could start anything, or (overlap skip, queue) another run held the
job's place. B is 5 s of time in which nothing is blocked and, with a cluster, no fault is being recovered from
(`History.recovering`: 10 s for Redis, 45 s for a node, 30 s for PostgreSQL and 10 s for a slow one; of them as much as
a session is shorter than 30 s).

Not here: the offsets of machines' clocks (the tests' machine has one, which is PostgreSQL's, too; a node whose clock is
wrong must not be noticed), I23 (pings and flips: `pings.py`), I24 (secrets: `tests/journeys/test_secrets.py` looks for
canaries), I25 (leaks are the suite's own hygiene; `cluster.Cluster.verdict` looks at PostgreSQL's connections). I22 is
here for any ledger that is given; the worlds of this folder have no channel, so that in their runs it finds no alert
(`tests/engine/test_outbox.py` and `test_notifier.py` are what tests them).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from uuid import NAMESPACE_URL, UUID, uuid5

from tests.faults.history import (
    FOREVER,
    Fault,
    History,
    Operation,
    Received,
    Row,
    Version,
    Window,
    load,
    merged,
    path_of,
    uncovered,
)
from tests.faults.matching import unmatched
from tests.faults.occurrences import occurrences

SIGMA_MS = 50
"""One machine has one clock; this is for the time between reading it and what is measured. An instant of a node may lie
further back, by as much as its clock may have been behind (`History.behind_ms`)."""

DIGEST_MS = 65_000
"""So long a channel's next message may wait: a minute after the one before."""

SEAM_MS = 100
B_MS = 5_000
CUT_OFF_MS = 1_000
"""A slot is asked for when the run went on so long after it (Jepsen's cut-off); `World.verdict` stops a node only when
it has caught up, so that B need not be waited for."""

MISFIRE_MS = 5_000
NO_CATCHUP_MS = 60_000
CATCHUP_MAX = 100
TURN_MS = 150
"""What one more run of a backlog may cost beside the time it takes itself."""

VALIDITY_MARGIN = 0.25
"""A silence may be so much shorter than a session's validity and still outlast it: the last renewal was before it."""

CROSSING_MS = 1_000
"""Of two nodes' transactions: on a busy machine a result waits so long for its commit, which alone frees the place."""
REDELIVERIES_MAX = 3
HORIZON_MS = 120_000
LOAD_MS = 15_000
HIDE_MS = 10_000
INDEX_ROUNDING_MS = 1
LEFT_BEHIND: dict[str, Callable[[Version, Version], bool]] = {
    "job_paused": lambda _, following: following.status == "paused",
    "job_disabled": lambda _, following: following.status == "disabled",
    "job_deleted": lambda _, following: following.status == "deleted",
    "job_edited": lambda version, following: version.plan != following.plan,
}
OPEN = ("queued", "running", "retrying")
WAITING = ("queued", "retrying")
CHANGES = ("edit", "pause", "resume", "delete")
UNDELIVERED = ("timeout", "connection_reset", "no_response", "incomplete_body", "node_lost")
"""What may become of an answer that the target has sent in full: it came too late, or not whole, or to nobody."""


@dataclass(frozen=True, slots=True)
class Violation:
    invariant: str
    text: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.text}"


Found = Iterator[str]


# --- the expected set ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expected:
    """The slots of a job that must be accounted for, and those that may be."""

    required: frozenset[int]
    optional: frozenset[int]

    @property
    def known(self) -> frozenset[int]:
        return self.required | self.optional


def expected(history: History, job_id: str) -> Expected:
    """Over all versions with status active; neighbours with the same plan count as one."""
    required: set[int] = set()
    optional: set[int] = set()
    blocked = history.blocked(job_id)
    for since, until, version in _spans(history.versions[job_id]):
        seams = [_seam(history, job_id, since)]
        if until != FOREVER:
            seams.append(_seam(history, job_id, until))
        for slot in occurrences(version.schedule, since - SEAM_MS, min(until + SEAM_MS, history.read_time + 2_000)):
            at_seam = any(begin <= slot <= end for begin, end in seams)
            # A version that has ended must have left an account of all its slots; an open one may have a backlog.
            excuses = blocked if version.exclusive and until == FOREVER else history.down
            in_time = uncovered(slot, history.read_time, excuses) >= CUT_OFF_MS
            (required if in_time and not at_seam else optional).add(slot)
    return Expected(frozenset(required), frozenset(optional - required))


def _spans(versions: list[Version]) -> Iterator[tuple[int, int, Version]]:
    current: tuple[int, int, Version] | None = None
    for version in versions:
        if version.status != "active":
            continue
        if current is not None and current[1] == version.since and current[2].plan == version.plan:
            current = (current[0], version.until, version)
            continue
        if current is not None:
            yield current
        current = (version.since, version.until, version)
    if current is not None:
        yield current


def _seam(history: History, job_id: str, instant: int) -> tuple[int, int]:
    begin, end = instant - SEAM_MS, instant + SEAM_MS
    for operation in _operations(history, job_id):
        if operation.since - SEAM_MS <= instant <= operation.until + SEAM_MS:
            begin = min(begin, operation.since - SEAM_MS)
            end = max(end, min(operation.until, operation.since + 60_000) + SEAM_MS)
    return begin, end


def _operations(history: History, job_id: str) -> Iterator[Operation]:
    return (item for item in history.operations if item.data.get("job") == job_id and item.kind != "trigger")


def _is_slot(run: Row) -> bool:
    return bool(run["trigger_key"] == "")


def _slots(history: History, job_id: str) -> list[Row]:
    return [run for run in history.runs_of_job.get(job_id, []) if _is_slot(run)]


def _covers(skip: Row) -> tuple[int, int]:
    last = skip["scheduled_until"]
    return skip["scheduled_for"], skip["scheduled_for"] if last is None else last


# --- the invariants --------------------------------------------------------------------------------------------------


def i1_accounted(history: History) -> Found:
    """Every required slot is in exactly one run or one range of skips; an optional one in at most one."""
    for job_id in history.versions:
        rows = _slots(history, job_id)
        times = Counter(run["scheduled_for"] for run in rows if run["status"] != "skipped")
        ranges = [_covers(run) for run in rows if run["status"] == "skipped"]
        slots = expected(history, job_id)
        for slot in sorted(slots.known):
            number = times[slot] + sum(first <= slot <= last for first, last in ranges)
            if number > 1 or (number == 0 and slot in slots.required):
                yield f"job {job_id}: slot {slot} is accounted for {number} times"


def i2_no_phantom(history: History) -> Found:
    """Every scheduled run and every end of a range of skips is a slot, and a range counts what lies in it."""
    for job_id, rows in history.runs_of_job.items():
        if job_id not in history.versions:
            yield f"job {job_id}: has runs and no version"
            continue
        slots = expected(history, job_id)
        for run in filter(_is_slot, rows):
            first, last = _covers(run)
            for slot in {first, last} - slots.known:
                yield f"run {run['id']}: {slot} is no slot of job {job_id}"
            low = sum(first <= slot <= last for slot in slots.required)
            high = sum(first <= slot <= last for slot in slots.known)
            if not low <= run["count"] <= high:
                yield f"run {run['id']}: counts {run['count']} slots where there are {high}"


_RUN_NAMESPACE = uuid5(NAMESPACE_URL, "https://0cron.dev/run")


def i3_unique(history: History) -> Found:
    """One run a slot, whose id is UUIDv5 of job and slot; a manual run is named by its own id."""
    seen = Counter((run["job_id"], run["scheduled_for"]) for run in history.runs if _is_slot(run))
    yield from (f"job {job_id}: {number} runs of slot {slot}" for (job_id, slot), number in seen.items() if number > 1)
    for run in history.runs:
        if _is_slot(run):
            wanted = str(uuid5(_RUN_NAMESPACE, f"{run['job_id']}@{run['scheduled_for']}"))
            if run["id"] != wanted:
                yield f"run {run['id']}: slot {run['scheduled_for']} of {run['job_id']} must have the id {wanted}"
        elif run["trigger_key"] != run["id"] or UUID(run["id"]).version != 7:
            yield f"run {run['id']}: a manual run has a time-ordered id of its own, which is its trigger key"


def i4_skips_justified(history: History) -> Found:
    """`missed`: the slot was blocked, and the policy, applied at the moment of the decision, leaves exactly these out.

    `overlap`: another run of the job was under way; `queue_full`: another one waited. `job_paused`, `job_deleted`,
    `job_edited`: due and blocked when such a call came. `team_limit`: the team had as many runs in that minute as it
    may. No other skip exists. And the other way round: a slot that ran
    although it was more than 5 s late at the decision is one the policy keeps.
    """
    for run in history.runs:
        decided_at = run["created_at"] if _is_slot(run) else run["finished_at"]
        if run["status"] != "skipped":
            if _is_slot(run) and decided_at - run["scheduled_for"] > MISFIRE_MS:
                kept = _kept(history.version_of(run), run["scheduled_for"], decided_at)
                if run["scheduled_for"] not in kept:
                    yield f"run {run['id']}: ran {decided_at - run['scheduled_for']} ms late against its policy"
        elif run["reason"] == "missed" and _is_slot(run):
            yield from _missed(history, run)
        elif run["reason"] in LEFT_BEHIND and _is_slot(run):
            yield from _left_behind(history, run)
        elif run["reason"] == "team_limit" and _is_slot(run):
            yield from _team_limit(history, run)
        elif run["reason"] in ("overlap", "queue_full"):
            if not _justified(history, run, decided_at):
                yield f"run {run['id']}: skipped as {run['reason']} at {decided_at} without such a run"
        else:
            yield f"run {run['id']}: skipped for {run['reason']}, which is no reason"


def _missed(history: History, run: Row) -> Found:
    first, last = _covers(run)
    decided_at, version = run["created_at"], history.version_of(run)
    if decided_at - first <= MISFIRE_MS:
        yield f"run {run['id']}: missed although only {decided_at - first} ms late"
    yield from _was_blocked(history, run)
    kept = _kept(version, first, decided_at)
    left_out = [slot for slot in occurrences(version.schedule, first - 1, decided_at) if slot not in kept]
    wanted = [slot for slot in left_out if not kept or slot < kept[0]]
    if not wanted or (first, last, run["count"]) != (wanted[0], wanted[-1], len(wanted)):
        seen = f"{first}..{last} ({run['count']})"
        yield f"run {run['id']}: skips {seen}, the policy says {wanted[:1]}..{wanted[-1:]} ({len(wanted)})"


def _team_limit(history: History, run: Row) -> Found:
    """A scheduled run counts in the minute in which it was to be sent, a trigger in that in which it was taken."""
    minute = _minute(run)
    others = [one for one in history.runs if one["team_id"] == run["team_id"] and not _skipped_at_once(one)]
    counted = sum(_minute(one) == minute for one in others)
    allowed = history.runs_per_minute_max.get(run["team_id"])
    if allowed is None or counted < allowed:
        yield f"run {run['id']}: skipped as team_limit, with {counted} runs in its minute and a limit of {allowed}"


def _skipped_at_once(run: Row) -> bool:
    """Others waited first, and counted when they began to."""
    return _is_slot(run) and run["status"] == "skipped" and bool(run["finished_at"] == run["created_at"])


def _minute(run: Row) -> int:
    return max(int(run["created_at"]), int(run["scheduled_for"])) // 60_000


def _left_behind(history: History, run: Row) -> Found:
    """All that was due of the version that a pause, delete or edit ended at that moment."""
    first, last = _covers(run)
    decided_at, version = run["created_at"], history.version_of(run)
    following = history.version(run["job_id"], version.number + 1)
    if following is None or following.since != decided_at or not LEFT_BEHIND[run["reason"]](version, following):
        yield f"run {run['id']}: skipped as {run['reason']}, and there was none"
    slots = occurrences(version.schedule, first - 1, decided_at)
    if not slots or (first, last, run["count"]) != (slots[0], slots[-1], len(slots)):
        yield f"run {run['id']}: skips {first}..{last} ({run['count']}), {len(slots)} slots were due"
    yield from _was_blocked(history, run)


def _was_blocked(history: History, run: Row) -> Found:
    first, decided_at = run["scheduled_for"], run["created_at"]
    exclusive = history.version_of(run).exclusive
    idle = uncovered(first, decided_at, history.excused(run["job_id"]) if exclusive else history.recovering)
    backlog = sum(first <= (other["started_at"] or 0) <= decided_at for other in _slots(history, run["job_id"]))
    if idle > B_MS + backlog * TURN_MS:
        yield f"run {run['id']}: {run['reason']} although its start was possible for {idle} ms"


def _kept(version: Version, first: int, decided_at: int) -> list[int]:
    """Of the slots from `first` to the decision, those the catch-up policy runs."""
    policy, window_ms = version.schedule["catchup"], version.schedule["catchup_window_seconds"] * 1000
    if policy == "none":
        window_ms = min(window_ms, NO_CATCHUP_MS)
    slots = occurrences(version.schedule, first - 1, decided_at)
    newest = slots[-CATCHUP_MAX:] if policy == "all" else slots[-1:]
    return [slot for slot in newest if decided_at - slot <= window_ms]


def _justified(history: History, run: Row, at: int) -> bool:
    others = [other for other in history.runs_of_job[run["job_id"]] if other["id"] != run["id"]]
    slack = _crossing_ms(history, at)
    if run["reason"] == "overlap" and _is_slot(run):
        return any(_held_by(other, at) and (other["finished_at"] or FOREVER) >= at - slack for other in others)
    # A waiting run, or for a manual trigger any run that is open: it takes its place behind the one that waits.
    return any(
        other["status"] != "skipped" and other["created_at"] <= at <= (other["finished_at"] or FOREVER) + slack
        for other in others
    )


def _crossing_ms(history: History, at: int) -> int:
    """By how much the instants of two transactions may contradict the order of their commits: each takes its own
    before it begins, and on several nodes they wait for PostgreSQL side by side."""
    if not history.validity_ms:
        return 0
    behind_ms = history.behind_ms(at)
    troubled = any(
        fault.kind in ("pg", "pg_slow", "cut_pg", "pause", "stall") and fault.since - B_MS <= at <= fault.until + B_MS
        for fault in history.faults
    )
    return B_MS if troubled else CROSSING_MS + behind_ms


def _sigma_ms(history: History, at: int) -> int:
    return SIGMA_MS + history.behind_ms(at)


def _held_by(run: Row, at: int) -> bool:
    """A slot's run holds its place from its commit on; `started_at` is when its request left, which may be later."""
    return _started_by(run, at) or (run["started_at"] is not None and _is_slot(run) and run["created_at"] <= at)


def _started_by(run: Row, at: int) -> bool:
    return run["started_at"] is not None and run["started_at"] <= at


def i5_not_early(history: History) -> Found:
    """No execution starts, and no request arrives, before the run's due time."""
    for execution in history.executions:
        run = history.run_of.get(execution["run_id"])
        if run is not None and execution["started_at"] < run["scheduled_for"]:
            yield f"execution {_name(execution)}: started {run['scheduled_for'] - execution['started_at']} ms early"
    for request in history.received:
        run = history.run_of.get(request.run_id or "")
        if run is not None and request.at < run["scheduled_for"] - SIGMA_MS:
            early = run["scheduled_for"] - request.at
            yield f"request {request.run_id}.{request.attempt}: arrived {early:.0f} ms early"


def lateness(history: History, run: Row) -> int | None:
    """How late the first execution began, leaving out time in which it may be late; None when there was none."""
    executions = history.executions_of_run.get(run["id"], [])
    if not executions:
        return None
    version = history.version_of(run)
    blocked = [
        *history.recovering,
        *(
            (other["started_at"], other["finished_at"] or FOREVER)
            for other in history.runs_of_job[run["job_id"]]
            if version.exclusive and other["id"] != run["id"] and other["started_at"] is not None
        ),
    ]
    return uncovered(run["scheduled_for"], executions[0]["started_at"], merged(blocked))


def i6_not_late(history: History) -> Found:
    """The first execution begins within B of the slot (or trigger), plus 0.15 s for each run of a backlog before it."""
    for run in history.runs:
        late = lateness(history, run)
        if late is None:
            continue
        begun = history.executions_of_run[run["id"]][0]["started_at"]
        backlog = sum(
            run["scheduled_for"] <= (other["started_at"] or 0) < begun for other in history.runs_of_job[run["job_id"]]
        )
        if late > B_MS + backlog * TURN_MS:
            yield f"run {run['id']}: first execution {late} ms late although its start was possible"


def i7_write_ahead(history: History) -> Found:
    """Every request at the target has its run and its execution row, begun before it arrived."""
    rows = {(execution["run_id"], execution["attempt"]): execution for execution in history.executions}
    for request in history.received:
        execution = rows.get((request.run_id or "", request.attempt or 0))
        if execution is None:
            yield f"request {request.run_id}.{request.attempt} to {request.path}: has no execution row"
        elif execution["started_at"] > request.at + SIGMA_MS:
            yield f"execution {_name(execution)}: began after its request had arrived"
        elif request.key != request.run_id or request.job_id != execution["job_id"]:
            yield f"request {request.run_id}.{request.attempt}: its headers contradict each other"


def i8_one_request(history: History) -> Found:
    """One request an execution."""
    for (run_id, attempt), requests in history.received_of.items():
        if len(requests) > 1:
            yield f"execution {run_id}.{attempt}: the target saw {len(requests)} requests"


def i9_attempts(history: History) -> Found:
    """Executions are 1..n; each has its cause; a retry waits its back-off (or Retry-After) and at most B longer."""
    for run in history.runs:
        executions = history.executions_of_run.get(run["id"], [])
        numbers = [execution["attempt"] for execution in executions]
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"run {run['id']}: its executions are numbered {numbers}"
            continue
        failures = 0
        for index, execution in enumerate(executions):
            before = executions[index - 1] if index else None
            lost = before is not None and before["error_kind"] == "node_lost"
            cause = "first" if before is None else "node_lost" if lost else "retry"
            if execution["cause"] != cause:
                yield f"execution {_name(execution)}: its cause is {execution['cause']}, not {cause}"
            if before is not None:
                wait = 0 if lost else _wait_ms(history.version_of(run), failures, before)
                yield from _waited(history, before, execution, wait)
            failures += execution["error_kind"] not in (None, "node_lost")


def _waited(history: History, before: Row, execution: Row, wait: int) -> Found:
    ended_at = _ended_at(history, before)
    waited = execution["started_at"] - ended_at
    if waited < wait - 1:
        yield f"execution {_name(execution)}: began {waited} ms after the one before, its wait is {wait} ms"
    longer = uncovered(ended_at + wait, execution["started_at"], history.recovering)
    if longer > B_MS:
        yield f"execution {_name(execution)}: waited {longer} ms longer than its wait of {wait} ms"


def _ended_at(history: History, execution: Row) -> int:
    """When it ended, or was given up: a late result is as late as it is, and its session had ended before."""
    ended_at: int = execution["finished_at"]
    if execution["error_kind"] == "node_lost":
        session = history.sessions.get(execution["session_id"]) or {}
        ended_at = min(ended_at, session.get("ended_at") or ended_at)
    return ended_at


def _wait_ms(version: Version, failures: int, before: Row) -> int:
    factor = {"exponential": 2 ** (failures - 1), "linear": failures}.get(version.retry["backoff"], 1)
    wait = float(min(version.retry["delay_seconds"] * factor, 86_400) * 1000)
    assert version.retry.get("jitter", "none") == "none", "fault runs have no jitter: the checker could not know it"
    for name, value in (before["response"] or {}).get("headers", []):
        if name.lower() == "retry-after" and value.isdigit():
            wait = max(wait, min(int(value), 3_600) * 1000)
    return round(wait)


def i10_bounded(history: History) -> Found:
    """At most the configured attempts and 3 redeliveries; with `give_up` nothing is sent after an unknown outcome."""
    for run in history.runs:
        executions = history.executions_of_run.get(run["id"], [])
        version = history.version_of(run)
        redelivered = sum(execution["cause"] == "node_lost" for execution in executions)
        if redelivered > REDELIVERIES_MAX:
            yield f"run {run['id']}: was redelivered {redelivered} times"
        if len(executions) > version.retry["attempts"] + redelivered:
            yield f"run {run['id']}: {len(executions)} executions, {redelivered} of them redelivered"
        give_up = {item.schedule["on_lost"] for item in history.versions[run["job_id"]]} == {"give_up"}
        if give_up:
            failures = sum(execution["error_kind"] not in (None, "node_lost") for execution in executions)
            requests = sum(len(history.received_of.get((run["id"], row["attempt"]), [])) for row in executions)
            if redelivered or requests > 1 + failures:
                yield f"run {run['id']}: sent {requests} times after {failures} recorded failures, at most once"


def i11_losses_excused(history: History) -> Found:
    """A lost execution lies across the death of its own node or, in a cluster, across a pause or isolation of it that
    outlasted its session; and its session has ended. An outage of PostgreSQL or Redis excuses nothing."""
    for execution in history.executions:
        if execution["error_kind"] != "node_lost":
            continue
        session = history.sessions.get(execution["session_id"])
        node = (session or {}).get("node") if history.validity_ms else ""
        excuses = [fault for fault in history.faults if fault.node == node and _explains(history, fault, execution)]
        if not excuses:
            yield f"execution {_name(execution)}: lost without a fault of its node {node}"
        if (session is None or session["ended_at"] is None) and all(fault.kind != "ledger" for fault in excuses):
            yield f"execution {_name(execution)}: lost while its session goes on"


def _explains(history: History, fault: Fault, execution: Row) -> bool:
    given_up_at = _given_up_at(history, execution)
    begin, end = execution["started_at"] - SIGMA_MS, given_up_at + _sigma_ms(history, given_up_at)
    if fault.since > end or fault.until < begin:
        return False
    if fault.kind in ("pause", "cut_pg"):
        # Counted up to the take-over, because a longer silence came too late to be its reason.
        least = history.validity_ms * (1 - VALIDITY_MARGIN)
        return bool(history.validity_ms) and min(fault.until, end) - fault.since >= least
    return fault.kind in ("kill", "forced_stop", "ledger")


def _given_up_at(history: History, execution: Row) -> int:
    """When a lost execution was taken over, which its own row does not say once a late result is in it."""
    following = history.executions_of_run[execution["run_id"]][execution["attempt"] :]
    run = history.run_of.get(execution["run_id"])
    session = history.sessions.get(execution["session_id"]) or {}
    if not history.validity_ms:
        return int(execution["finished_at"])
    if following:
        return int(following[0]["started_at"])
    return int((run or {}).get("finished_at") or session.get("ended_at") or execution["finished_at"])


def i12_settled(history: History) -> Found:
    """At the end nothing is overdue or stuck, and every active job has a slot of its schedule to come."""
    ended_gracefully = any(fault.kind == "stop" and fault.until == FOREVER for fault in history.faults)
    for run in history.runs:
        if run["status"] == "running" and (ended_gracefully or history.validity_ms):
            yield f"run {run['id']}: still running after the stop"
        if run["status"] in WAITING:
            job = history.jobs[run["job_id"]]
            if run["retry_at"] is None and job["active_run_id"] is None:
                yield f"run {run['id']}: waits for nobody"
            elif run["retry_at"] is not None:
                overdue = uncovered(run["retry_at"], history.read_time, history.excused(run["job_id"]))
                if overdue > B_MS:
                    yield f"run {run['id']}: {run['status']} and overdue by {overdue} ms"
    for job_id, job in history.jobs.items():
        yield from _cursor_settled(history, job_id, job)
        for column in ("active_run_id", "queued_run_id"):
            holder = history.run_of.get(job[column] or "")
            if job[column] is not None and (holder is None or holder["status"] not in OPEN):
                yield f"job {job_id}: its {column} is a run that is not open"


def _cursor_settled(history: History, job_id: str, job: Row) -> Found:
    version, cursor = history.versions[job_id][-1], job["next_run_at"]
    if job["status"] != "active":
        if cursor is not None:
            yield f"job {job_id}: is {job['status']} and due at {cursor}"
        return
    if cursor is None or occurrences(version.schedule, cursor - 1, cursor) != [cursor]:
        yield f"job {job_id}: is active, and its cursor {cursor} is no slot of its schedule"
        return
    overdue = uncovered(cursor, history.read_time, history.excused(job_id) if version.exclusive else history.recovering)
    if overdue > B_MS:
        yield f"job {job_id}: its slot {cursor} is overdue by {overdue} ms"


def i13_truth(history: History) -> Found:
    """What is recorded about an answer is what the target says it sent, and `succeeded` means that it is accepted.

    An answer that the target finished and the rule accepts is not recorded as a broken rule, nor as any failure but
    those that keep an answer from arriving. A target log without answers (`tests.support.target --log`) is taken at the
    ledger's word.
    """
    for execution in history.executions:
        run = history.run_of.get(execution["run_id"])
        if run is None:
            yield f"execution {_name(execution)}: has no run"
            continue
        version = history.version_of(run)
        requests = history.received_of.get((execution["run_id"], execution["attempt"]), [])
        response, kind = execution["response"] or {}, execution["error_kind"]
        accepted = response.get("status") is not None and _accepts(version, response["status"])
        if (execution["status"] == "success") != (kind is None):
            yield f"execution {_name(execution)}: is {execution['status']} with the error {kind}"
        if kind is None and not (accepted and requests):
            seen = f"status {response.get('status')}, {len(requests)} requests"
            yield f"execution {_name(execution)}: success with {seen}"
        if kind == "rule" and accepted and set(version.success) == {"status"}:
            yield f"execution {_name(execution)}: failed although its status {response['status']} is accepted"
        if kind in (None, "rule") and requests and requests[0].knows_answers:
            digest = hashlib.sha256((execution["response_body"] or "").encode()).hexdigest()
            if (requests[0].status, requests[0].body_sha256) != (response.get("status"), digest):
                yield f"execution {_name(execution)}: records another answer than the target sent"
        if kind not in (None, "rule", *UNDELIVERED) and any(_was_accepted(version, request) for request in requests):
            yield f"execution {_name(execution)}: the target finished an accepted answer, and the record says {kind}"


def _was_accepted(version: Version, request: Received) -> bool:
    return request.status is not None and _accepts(version, request.status)


def _accepts(version: Version, status: int) -> bool:
    for pattern in version.success["status"]:
        low, _, high = pattern.replace("xx", "00").partition("-")
        if pattern.endswith("xx"):
            high = str(int(low) + 99)
        if int(low) <= status <= int(high or low):
            return True
    return False


def i14_fence(history: History) -> Found:
    """A run is ended by its newest execution and never changes again (the latter by the ledger's audit triggers)."""
    for entry in history.audit:
        if entry["kind"] in ("run_after_end", "run_deleted"):
            yield f"run {entry['id']}: {entry['kind']} ({entry['note']})"
    for run in history.runs:
        executions = history.executions_of_run.get(run["id"], [])
        last = executions[-1] if executions else None
        if executions and run["attempt"] != len(executions) and run["status"] != "running":
            yield f"run {run['id']}: at attempt {run['attempt']} with {len(executions)} executions"
        if any(execution["error_kind"] is None for execution in executions[:-1]):
            yield f"run {run['id']}: went on after a success"
        if run["status"] in ("succeeded", "failed", "lost") and last is None:
            yield f"run {run['id']}: is {run['status']} without an execution"
        elif last is not None and run["status"] not in OPEN and not _fits(run, last):
            yield f"run {run['id']}: is {run['status']} ({run['reason']}), its last execution {last['error_kind']}"


def _fits(run: Row, last: Row) -> bool:
    kind = last["error_kind"]
    fitting = {
        "succeeded": kind is None,
        "failed": kind not in (None, "node_lost") or run["reason"] == "redeliveries_exhausted",
        "lost": kind == "node_lost",
        "cancelled": kind is not None,
        "skipped": False,
    }
    return bool(fitting[run["status"]])


def i15_no_overlap(history: History) -> Found:
    """With overlap skip or queue no execution begins during one of another run, and slots start in order.

    An edit that forbids overlapping counts from its commit: what began before may go on, and nothing begins beside it.
    """
    for job_id, rows in history.runs_of_job.items():
        spans = [
            (execution["started_at"], _ended_at(history, execution), run["id"])
            for run in rows
            for execution in history.executions_of_run.get(run["id"], [])
        ]
        begun = [(run["scheduled_for"], run["started_at"]) for run in rows if _is_slot(run) and run["started_at"]]
        for since, until in _exclusive(history, job_id):
            yield from (f"job {job_id}: {text}" for text in _beside_another(spans, since, until))
            starts = [started_at for _, started_at in begun if since <= started_at < until]
            if any(second < first - _crossing_ms(history, first) for first, second in pairwise(starts)):
                yield f"job {job_id}: its slots did not start in order"


def _exclusive(history: History, job_id: str) -> Iterator[Window]:
    """When the job's runs might not overlap; without the instants in which an edit began or ended that."""
    versions = history.versions.get(job_id, [])
    for is_exclusive, group in groupby(versions, lambda version: version.exclusive):
        stretch = list(group)
        if not is_exclusive:
            continue
        since, until = 0, FOREVER
        if stretch[0] is not versions[0]:
            since = stretch[0].since + SEAM_MS + _crossing_ms(history, stretch[0].since)
        if stretch[-1] is not versions[-1]:
            until = stretch[-1].until - SEAM_MS - _crossing_ms(history, stretch[-1].until)
        yield since, until


def _beside_another(spans: list[tuple[int, int, str]], since: int, until: int) -> Found:
    going: list[tuple[int, str]] = []  # (end, run) of those that had not ended when the last one began
    for begin, end, run_id in sorted(spans):
        going = [(other_end, other) for other_end, other in going if other_end > begin]
        if since <= begin < until:
            for other_end, other in going:
                if other != run_id:
                    yield f"run {run_id} began {other_end - begin} ms before {other} had ended"
        going.append((end, run_id))


def i16_durable(history: History) -> Found:
    """What an ok call made is there at the end, what a failed call asked for is not; one key makes one thing.

    Every version of a job but the first is the one that an ok call gave, or made by an unclear one, which makes one at
    most; only the engine makes those that are disabled.
    """
    keys: dict[str, str] = {}
    names = Counter(job["name"] for job in history.jobs.values())
    for item in history.operations:
        data = item.data
        if item.outcome == "ok":
            if item.kind == "trigger":
                if data["run"] not in history.run_of:
                    yield f"op {item.number}: the run {data['run']} of an acknowledged trigger is not there"
            elif history.version(data["job"], data["version"]) is None:
                yield f"op {item.number}: version {data['version']} of an acknowledged {item.kind} is not there"
            made = data["run"] if item.kind == "trigger" else data["job"]
            if data.get("key") is not None and keys.setdefault(data["key"], made) != made:
                yield f"op {item.number}: its key gave {keys[data['key']]} before, now {made}"
        elif item.kind == "create" and names[data["name"]] > (item.outcome == "info"):
            yield f"op {item.number}: a {item.outcome} create left {names[data['name']]} jobs {data['name']!r}"
    for job_id in sorted(set(history.versions).intersection(item.data.get("job") for item in history.operations)):
        yield from _versions_asked_for(history, job_id)


def _versions_asked_for(history: History, job_id: str) -> Found:
    """Asked of jobs that calls on record made or changed."""
    changes = [item for item in _operations(history, job_id) if item.kind in CHANGES]
    known = {item.data["version"] for item in changes if item.outcome == "ok"}
    others = [
        version.number
        for version in history.versions[job_id][1:]
        if version.number not in known and version.status != "disabled"
    ]
    unclear = sum(item.outcome == "info" for item in changes)
    if len(others) > unclear:
        yield f"job {job_id}: {unclear} unclear calls, and versions {others} are of no acknowledged one"


def i17_stopped(history: History) -> Found:
    """After an acknowledged pause or delete nothing starts until a resume was asked for, and nothing waits."""
    for item in history.operations:
        if item.kind not in ("pause", "delete") or item.outcome != "ok":
            continue
        job_id = item.data["job"]
        resumed = min(
            (
                other.since
                for other in history.operations
                if other.kind == "resume" and other.data.get("job") == job_id and other.since >= item.since
            ),
            default=FOREVER,
        )
        for run in history.runs_of_job.get(job_id, []):
            for execution in history.executions_of_run.get(run["id"], []):
                if item.until < execution["started_at"] < resumed:
                    yield f"execution {_name(execution)}: began after the {item.kind} of {item.until} was acknowledged"
            if resumed == FOREVER and run["status"] in WAITING:
                yield f"run {run['id']}: waits although its job had a {item.kind}"


def i18_version(history: History) -> Found:
    """A request names its run's version, which was the active one when the run was made."""
    for request in history.received:
        run = history.run_of.get(request.run_id or "")
        if run is not None and request.version != run["job_version"]:
            yield f"request {request.run_id}.{request.attempt}: says version {request.version}"
    for run in history.runs:
        version = history.version(run["job_id"], run["job_version"])
        slack = SIGMA_MS + _crossing_ms(history, run["created_at"])
        if version is None:
            yield f"run {run['id']}: its version {run['job_version']} is not there"
        elif not version.since - slack <= run["created_at"] <= version.until + slack:
            yield f"run {run['id']}: made at {run['created_at']}, when version {version.number} was not the active one"
        elif version.status != "active" and _is_slot(run):
            yield f"run {run['id']}: a slot of a job that was {version.status}"


def i19_manual(history: History) -> Found:
    """Each acknowledged trigger is one run of its own; an unclear one is at most one; there are no others."""
    known = {item.data["run"] for item in history.operations if item.kind == "trigger" and item.outcome == "ok"}
    unclear = Counter(
        item.data["job"] for item in history.operations if item.kind == "trigger" and item.outcome == "info"
    )
    for job_id, rows in history.runs_of_job.items():
        others = [run for run in rows if not _is_slot(run) and run["id"] not in known]
        if len(others) > unclear[job_id]:
            yield f"job {job_id}: {len(others)} manual runs that nobody asked for"
        for run in rows:
            if run["id"] in known and (_is_slot(run) or run["triggered_by"] == "schedule"):
                yield f"run {run['id']}: a trigger that took a slot"


def i20_cursor(history: History) -> Found:
    """Within a version the cursor only grows (by the ledger's audit triggers)."""
    for entry in history.audit:
        if entry["kind"] != "cursor" or entry["note"] != "same" or None in (entry["before"], entry["after"]):
            continue
        if entry["after"] < entry["before"]:
            yield f"job {entry['id']}: its cursor went from {entry['before']} back to {entry['after']}"


def i21_index(history: History) -> Found:
    """At the end the timetable is what the ledger says: no orphan, nothing missing within the horizon, each member at
    its instant unless a claim hides it."""
    if history.index is None:
        return
    due = {f"j:{job['team_id']}:{job['id']}": job["next_run_at"] for job in history.jobs.values()}
    due |= {f"r:{run['team_id']}:{run['id']}": run["retry_at"] for run in history.runs}
    due |= {f"a:{alert['team_id']}:{alert['id']}": alert["next_attempt_at"] for alert in history.alerts}
    now = history.read_time
    for member, score in history.index.items():
        at = due.get(member)
        if at is None and member in due and member[0] == "a" and score <= now + DIGEST_MS:
            continue  # it travels with another's message; its own claim, within the channel's minute, drops it
        if at is None:
            yield f"member {member}: the ledger does not know it as due"
        elif score < at and abs(score - now) <= B_MS:
            continue  # given back as due at once by a node that was stopping; the next claim puts it right
        elif abs(score - at) > INDEX_ROUNDING_MS and not (at <= now and at <= score <= now + HIDE_MS + B_MS):
            yield f"member {member}: at {score:.0f} in the timetable and {at} in the ledger"
    near = now + HORIZON_MS - LOAD_MS - B_MS
    for member, at in due.items():
        if at is not None and at <= near and member not in history.index:
            yield f"member {member}: due at {at} and missing in the timetable"


def i22_alerts(history: History) -> Found:
    """One row for each event and channel; at the end it was accepted, travels with one that was, or is dead with a
    reason, unless it waits for its turn. None without the run it is about, no end without a beginning, and no beginning
    of which nobody was told."""
    yield from _untold(history)
    for key, times in Counter((alert["event_id"], alert["channel_id"]) for alert in history.alerts).items():
        if times > 1:
            yield f"event {key[0]}: {times} alerts for channel {key[1]}"
    begun: set[tuple[str, str]] = set()
    for alert in sorted(history.alerts, key=lambda alert: (alert["created_at"], alert["id"])):
        yield from _fate(history, alert)
        run = history.run_of.get(json.loads(alert["notice"]).get("run_id"))
        ends = _TOLD_OF.get(alert["kind"])
        if ends is not None and (run is None or run["status"] not in ends):
            yield f"alert {alert['id']}: {alert['kind']} of a run that did not end so"
        told = (alert["subject_id"], alert["channel_id"])
        if alert["kind"] == "job.recovered":
            if told not in begun:
                yield f"alert {alert['id']}: the end of what this channel was not told"
            begun.discard(told)
        elif alert["kind"] in ("job.failed", "job.disabled"):
            begun.add(told)


def _untold(history: History) -> Found:
    """The first failed run of a row of them is told to each channel that was there before it ended."""
    told = {(alert["channel_id"], json.loads(alert["notice"]).get("run_id")) for alert in history.alerts}
    for job_id, rows in history.runs_of_job.items() if history.channels else ():
        job = history.jobs[job_id]
        if json.loads(job["notify"]) or job["status"] == "deleted":
            continue  # it has wishes of its own, or nobody is told of it any more
        ended = sorted(
            (run for run in rows if run["status"] in ("succeeded", "failed", "lost")),
            key=lambda run: run["finished_at"],
        )
        for before, run in zip([None, *ended], ended, strict=False):
            begins = run["status"] != "succeeded" and (before is None or before["status"] == "succeeded")
            # Of two that ended in the same millisecond nobody knows here which was first.
            if not begins or (before is not None and before["finished_at"] == run["finished_at"]):
                continue
            for channel in history.channels:
                if channel["created_at"] < run["finished_at"] and (channel["id"], run["id"]) not in told:
                    yield f"run {run['id']}: failed first, and channel {channel['id']} was not told"


def _fate(history: History, alert: Row) -> Found:
    name, status = f"alert {alert['id']}", alert["status"]
    sent_with = {other["id"] for other in history.alerts if other["status"] in ("pending", "sent")}
    if status == "sent" and not alert["tries"]:
        yield f"{name}: sent without a try"
    if status == "sent" and history.delivered is not None and alert["id"] not in history.delivered:
        yield f"{name}: sent, and nothing arrived"
    if status == "dead" and not alert["last_error"]:
        yield f"{name}: dead without a reason"
    if status == "folded" and alert["digest_id"] not in sent_with:
        yield f"{name}: folded into what was not sent"
    if status == "pending" and alert["next_attempt_at"] < history.read_time - B_MS - MISFIRE_MS:
        yield f"{name}: due at {alert['next_attempt_at']} and not sent"


_TOLD_OF = {
    "job.failed": ("failed", "lost"),
    "job.disabled": ("failed", "lost"),
    "job.recovered": ("succeeded",),
    "job.succeeded": ("succeeded",),
    "job.missed": ("skipped",),
}


def blind(history: History) -> Found:
    """The second opinion, by paths and arrival times alone: headers that lie do not help.

    Every slot that had to run needs a request of its own in its window, and every request needs an attempt during
    which it arrived. Paths are one per job.
    """
    for job_id, versions in history.versions.items():
        paths = {path_of(version) for version in versions}
        arrivals = sorted(request.at for request in history.received if request.path.partition("?")[0] in paths)
        must: list[tuple[float, float]] = []
        attempts: list[tuple[float, float]] = []
        for run in history.runs_of_job.get(job_id, []):
            rows = history.executions_of_run.get(run["id"], [])
            ends = [row["finished_at"] + _sigma_ms(history, row["finished_at"]) for row in rows]
            attempts += [(row["started_at"] - SIGMA_MS, end) for row, end in zip(rows, ends, strict=True)]
            must += [
                (run["scheduled_for"] - SIGMA_MS, end)
                for row, end in zip(rows, ends, strict=True)
                if row["error_kind"] in (None, "rule", "no_response", "incomplete_body")
            ]
        for begin, end in unmatched(must, arrivals)[0]:
            yield f"job {job_id}: no request arrived between {begin} and {end}"
        for arrival in unmatched(attempts, arrivals)[1]:
            yield f"job {job_id}: the request of {arrival:.0f} belongs to no attempt"


INVARIANTS: dict[str, Callable[[History], Found]] = {
    "I1": i1_accounted,
    "I2": i2_no_phantom,
    "I3": i3_unique,
    "I4": i4_skips_justified,
    "I5": i5_not_early,
    "I6": i6_not_late,
    "I7": i7_write_ahead,
    "I8": i8_one_request,
    "I9": i9_attempts,
    "I10": i10_bounded,
    "I11": i11_losses_excused,
    "I12": i12_settled,
    "I13": i13_truth,
    "I14": i14_fence,
    "I15": i15_no_overlap,
    "I16": i16_durable,
    "I17": i17_stopped,
    "I18": i18_version,
    "I19": i19_manual,
    "I20": i20_cursor,
    "I21": i21_index,
    "I22": i22_alerts,
    "blind": blind,
}


def violations(history: History) -> list[Violation]:
    """Everything that was broken, invariant by invariant."""
    return [Violation(name, text) for name, check in INVARIANTS.items() for text in check(history)]


def summary(history: History, found: list[Violation]) -> dict[str, object]:
    """What was looked at, and what came of it."""
    late = sorted(value for run in history.runs if _is_slot(run) and (value := lateness(history, run)) is not None)
    return {
        "jobs": len(history.versions),
        "required_slots": sum(len(expected(history, job_id).required) for job_id in history.versions),
        "runs": dict(Counter(str(run["status"]) for run in history.runs)),
        "skipped_slots": sum(run["count"] for run in history.runs if run["status"] == "skipped"),
        "executions": len(history.executions),
        "requests": len(history.received),
        "node_lost": sum(execution["error_kind"] == "node_lost" for execution in history.executions),
        "faults": dict(Counter(fault.kind for fault in history.faults)),
        "lateness_ms": {
            name: late[min(len(late) - 1, int(len(late) * part))] if late else None
            for name, part in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))
        },
        "violations": dict(Counter(violation.invariant for violation in found)),
    }


def _name(execution: Row) -> str:
    return f"{execution['run_id']}.{execution['attempt']}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ledger = parser.add_mutually_exclusive_group(required=True)
    ledger.add_argument("--data-dir", type=Path)
    ledger.add_argument("--database-url")
    parser.add_argument("--validity-ms", type=int, default=0, help="of a session; for a cluster")
    parser.add_argument("--target-log", type=Path, required=True)
    parser.add_argument("--faults", type=Path, required=True)
    parser.add_argument("--ops", type=Path, required=True)
    options = parser.parse_args(arguments)
    history = load(
        options.data_dir or options.database_url,
        target_log=options.target_log,
        fault_log=options.faults,
        op_log=options.ops,
        validity_ms=options.validity_ms or (30_000 if options.database_url else 0),
    )
    found = violations(history)
    for violation in found:
        sys.stdout.write(f"{violation}\n")
    sys.stdout.write(json.dumps(summary(history, found)) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
