"""The checker on histories made by hand: silent about a good one, and each invariant speaks when it is broken."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest
from tests.faults import checker
from tests.faults.checker import Violation, violations
from tests.faults.history import FOREVER, Fault, History, Operation, Received, Row, Version, merged, uncovered
from tests.faults.matching import unmatched
from tests.faults.occurrences import following, occurrences
from tests.faults.world import prepare

JOB = "01a22816-91a1-7e53-99df-abce6000d6bc"
MANUAL = "01a22816-91a1-7e53-99df-abce6000d6bd"
MEMBER = f"j:team:{JOB}"
T0 = 1_800_000_000_000
EVERY_SECOND = {
    "kind": "cron",
    "cron": "* * * * * *",
    "every_ms": None,
    "at": None,
    "timezone": "UTC",
    "overlap": "skip",
    "catchup": "latest",
    "catchup_window_seconds": 86_400,
    "on_lost": "rerun",
}
RETRY = {"attempts": 2, "backoff": "fixed", "delay_seconds": 0.1, "jitter": "none"}
DEFINITION = {"url": "http://127.0.0.1:1/job", "delivery": {"retry": RETRY, "success": {"status": ["2xx"]}}}
OK = hashlib.sha256(b"ok").hexdigest()


def at(seconds: float) -> int:
    return T0 + round(seconds * 1000)


def run_id(slot: int) -> str:
    return str(uuid5(uuid5(NAMESPACE_URL, "https://0cron.dev/run"), f"{JOB}@{slot}"))


def version(number: int = 1, *, since: float = 0.5, until: float | None = None, **changes: Any) -> Version:
    status = changes.pop("status", "active")
    end = FOREVER if until is None else at(until)
    return Version(number, status, EVERY_SECOND | changes, DEFINITION, at(since), end)


def run(second: float, **changes: Any) -> Row:
    slot = at(second)
    row = {
        "id": run_id(slot),
        "team_id": "team",
        "scheduled_for": slot,
        "trigger_key": "",
        "job_id": JOB,
        "job_version": 1,
        "triggered_by": "schedule",
        "status": "succeeded",
        "reason": None,
        "attempt": 1,
        "retry_at": None,
        "created_at": slot + 2,
        "started_at": slot + 2,
        "finished_at": slot + 40,
        "count": 1,
        "scheduled_until": None,
    }
    return row | changes


def skipped(first: float, last: float, count: int, reason: str, decided: float, **changes: Any) -> Row:
    row = run(first, status="skipped", reason=reason, attempt=0, started_at=None, count=count)
    return row | {"created_at": at(decided), "finished_at": at(decided), "scheduled_until": at(last)} | changes


def execution(of: Row, attempt: int = 1, **changes: Any) -> Row:
    row = {
        "run_id": of["id"],
        "attempt": attempt,
        "job_id": JOB,
        "session_id": "s1",
        "cause": "first",
        "status": "success",
        "started_at": of["scheduled_for"] + 4,
        "finished_at": of["scheduled_for"] + 30,
        "response": {"status": 200, "headers": []},
        "response_body": "ok",
        "error_kind": None,
    }
    return row | changes


def request(of: Row, attempt: int = 1, **changes: Any) -> Received:
    received = Received(
        at=of["scheduled_for"] + 8.5,
        path="/job",
        run_id=of["id"],
        attempt=attempt,
        scheduled_for=None,
        version=of["job_version"],
        key=of["id"],
        job_id=JOB,
        status=200,
        body_sha256=OK,
    )
    return dataclasses.replace(received, **changes)


def history() -> History:
    """Slots 1 to 5 ran; the node stopped at 6.2 s, when slot 6 had run too."""
    runs = [run(second) for second in range(1, 7)]
    return History(
        versions={JOB: [version()]},
        jobs={
            JOB: {
                "id": JOB,
                "team_id": "team",
                "name": "job",
                "status": "active",
                "next_run_at": at(7),
                "active_run_id": None,
                "queued_run_id": None,
            }
        },
        runs=runs,
        executions=[execution(row) for row in runs],
        sessions={"s1": {"id": "s1", "ended_at": at(6.2)}},
        received=[request(row) for row in runs],
        faults=[Fault("stop", at(6.2), FOREVER)],
        operations=[],
        audit=[],
        read_time=at(6.2),
    )


def judged(it: History) -> list[Violation]:
    """Judged afresh: a history remembers what it has worked out, and these are changed between two looks."""
    return violations(dataclasses.replace(it))


Break = Callable[[History], None]


def lose(position: int) -> Break:
    def change(it: History) -> None:
        gone = it.runs.pop(position)
        it.executions = [row for row in it.executions if row["run_id"] != gone["id"]]
        it.received = [item for item in it.received if item.run_id != gone["id"]]

    return change


def update(what: str, position: int, **changes: Any) -> Break:
    def change(it: History) -> None:
        rows = getattr(it, what)
        row = rows[position]
        rows[position] = row | changes if isinstance(row, dict) else dataclasses.replace(row, **changes)

    return change


def add(what: str, *items: Any) -> Break:
    return lambda it: getattr(it, what).extend(items)


def both(*changes: Break) -> Break:
    def change(it: History) -> None:
        for one in changes:
            one(it)

    return change


def operation(kind: str, begin: float, end: float, outcome: str = "ok", **data: Any) -> Break:
    data = {"job": JOB, "version": 1} | data
    return add("operations", Operation(1, kind, at(begin), at(end), outcome, data))


def team_limit(runs_per_minute_max: int) -> Break:
    return lambda it: setattr(it, "runs_per_minute_max", {"team": runs_per_minute_max})


manual = run(2.5, id=MANUAL, trigger_key=MANUAL, triggered_by="api")
THIRD = run(3)


def alert(second: float, **changes: Any) -> Row:
    """A failure of the run of that second that was told."""
    row: Row = {
        "id": f"alert-{second}",
        "event_id": f"event-{second}",
        "channel_id": "channel",
        "kind": "job.failed",
        "subject_id": JOB,
        "notice": json.dumps({"run_id": run_id(at(int(second)))}),
        "status": "sent",
        "tries": 1,
        "next_attempt_at": None,
        "digest_id": None,
        "last_error": None,
        "created_at": at(second),
    }
    return row | changes


WELL = {"kind": "job.succeeded"}

BROKEN: list[tuple[str, Break]] = [
    ("I1", lose(2)),
    ("I1", add("runs", skipped(2, 3, 2, "missed", 10))),
    ("I2", both(lose(2), add("runs", run(3.25)))),
    ("I2", both(lose(2), add("runs", skipped(3, 3, 2, "overlap", 3.01)))),
    ("I3", update("runs", 2, id=run_id(at(9)))),
    ("I3", add("runs", run(3))),
    ("I4", both(lose(2), add("runs", skipped(3, 3, 1, "overlap", 3.5)))),
    ("I4", both(lose(2), add("runs", skipped(3, 3, 1, "missed", 3.5)))),
    ("I4", both(lose(2), add("runs", skipped(3, 3, 1, "tired", 3.5)))),
    ("I4", both(lose(2), add("runs", skipped(3, 3, 1, "job_paused", 3.5)))),
    ("I4", both(lose(2), add("runs", skipped(3, 3, 1, "team_limit", 3.01)))),
    ("I4", update("runs", 0, created_at=at(6.1))),
    ("I5", update("executions", 2, started_at=at(2.9))),
    ("I5", update("received", 2, at=at(2.9))),
    ("I7", update("received", 2, attempt=2)),
    ("I7", update("received", 2, key="another")),
    ("I7", update("executions", 2, started_at=at(3.2), finished_at=at(3.3))),
    ("I8", add("received", request(THIRD))),
    ("I9", update("executions", 2, attempt=2)),
    ("I9", update("executions", 2, cause="retry")),
    ("I10", lambda it: it.executions.extend(execution(THIRD, number, cause="retry") for number in (2, 3))),
    ("I11", update("executions", 2, error_kind="node_lost", status="error")),
    ("I12", update("runs", 2, status="running", finished_at=None)),
    ("I12", update("runs", 2, status="retrying", finished_at=None, retry_at=at(-3))),
    ("I12", lambda it: it.jobs[JOB].update(next_run_at=at(-2))),
    ("I12", lambda it: it.jobs[JOB].update(next_run_at=at(6.5))),
    ("I12", lambda it: it.jobs[JOB].update(active_run_id=run_id(at(3)))),
    ("I13", update("executions", 2, response={"status": 500, "headers": []})),
    ("I13", update("executions", 2, response_body="other")),
    ("I13", update("received", 2, status=None)),
    ("I13", update("executions", 2, status="failed", error_kind="rule")),
    ("I14", add("audit", {"kind": "run_after_end", "id": "x", "note": "failed to running"})),
    ("I14", update("runs", 2, status="failed")),
    ("I14", update("runs", 2, attempt=2)),
    ("I15", update("executions", 2, finished_at=at(4.5))),
    ("I15", update("runs", 2, started_at=at(4.5))),
    ("I16", operation("edit", 3.1, 3.2, version=9)),
    ("I16", operation("trigger", 3.1, 3.2, run=MANUAL)),
    ("I16", operation("create", 3.1, 3.2, "failed", name="job")),
    ("I16", both(operation("edit", 3.1, 3.2, "failed"), lambda it: it.versions[JOB].append(version(2, since=9)))),
    ("I16", both(operation("pause", 3.1, 3.2, "failed"), lambda it: it.versions[JOB].append(version(2, since=9)))),
    ("I17", operation("pause", 3.2, 3.3)),
    ("I18", update("received", 2, version=2)),
    ("I18", update("runs", 2, job_version=2)),
    ("I18", update("runs", 2, created_at=at(0.2))),
    ("I19", both(add("runs", manual), add("executions", execution(manual)), add("received", request(manual)))),
    ("I20", add("audit", {"kind": "cursor", "id": JOB, "before": at(5), "after": at(4), "note": "same"})),
    ("I21", lambda it: setattr(it, "index", {})),
    ("I21", lambda it: setattr(it, "index", {MEMBER: at(7.5)})),
    ("I21", lambda it: setattr(it, "index", {MEMBER: at(0)})),
    ("I21", lambda it: setattr(it, "index", {MEMBER: at(7), "j:team:another": at(7)})),
    ("I22", add("alerts", alert(3))),
    ("I22", add("alerts", alert(3, **WELL), alert(3, **WELL, id="another"))),
    ("I22", add("alerts", alert(3, **WELL, tries=0))),
    ("I22", add("alerts", alert(3, **WELL, status="dead"))),
    ("I22", add("alerts", alert(3, **WELL, status="folded", tries=0, digest_id="nowhere"))),
    ("I22", add("alerts", alert(3, **WELL, status="pending", tries=0, next_attempt_at=at(-5)))),
    ("I22", add("alerts", alert(3, **WELL, notice="{}"))),
    ("I22", add("alerts", alert(3, kind="job.recovered"))),
    ("blind", update("received", 2, path="/elsewhere")),
    ("blind", add("received", dataclasses.replace(request(THIRD), at=at(3.5)))),
]


def test_a_good_history_is_clean() -> None:
    assert judged(history()) == []


def test_alerts_that_are_right_are_none_of_its_business() -> None:
    good = history()
    first = alert(3, **WELL)
    good.alerts = [
        first,
        alert(4, **WELL, status="folded", tries=0, digest_id=first["id"]),
        alert(5, **WELL, status="dead", last_error="status 410"),
        alert(6, **WELL, status="pending", next_attempt_at=at(60)),
    ]
    assert judged(good) == []


@pytest.mark.parametrize(("invariant", "change"), BROKEN, ids=[f"{n}-{name}" for n, (name, _) in enumerate(BROKEN)])
def test_each_invariant_speaks(invariant: str, change: Break) -> None:
    broken = history()
    change(broken)
    if invariant == "I18" and any(row["job_version"] == 2 for row in broken.runs):
        assert any("is not there" in text for text in checker.i18_version(broken))
        return
    assert invariant in {violation.invariant for violation in judged(broken)}


def test_every_invariant_but_lateness_is_broken_above() -> None:
    """I6 has a test of its own, because being late shifts everything else."""
    assert {name for name, _ in BROKEN} == set(checker.INVARIANTS) - {"I6"}


def test_late_without_a_reason() -> None:
    late = history()
    late.versions[JOB] = [version(kind="once", cron=None, at=at(1))]
    late.runs, late.received = [run(1, created_at=at(6.2), started_at=at(6.2), finished_at=at(6.2))], []
    late.executions = [execution(late.runs[0], started_at=at(6.1), finished_at=at(6.2))]
    assert list(checker.i6_not_late(dataclasses.replace(late)))
    late.faults.append(Fault("kill", at(0.9), at(5)))
    assert not list(checker.i6_not_late(dataclasses.replace(late)))


def test_downtime_by_the_policy() -> None:
    """Twenty seconds without a process: the newest slot runs, the others are one record, which counts them."""
    down = history()
    down.faults = [Fault("kill", at(6.2), at(26.5)), Fault("stop", at(28.2), FOREVER)]
    down.read_time = at(28.2)
    newest = run(26, created_at=at(26.5), started_at=at(26.5), finished_at=at(26.6))
    more = [newest, run(27), run(28)]
    down.runs += [skipped(7, 25, 19, "missed", 26.5), *more]
    down.executions += [execution(newest, started_at=at(26.51), finished_at=at(26.55))]
    down.executions += [execution(row) for row in more[1:]]
    down.received += [request(newest, at=at(26.52)), *(request(row) for row in more[1:])]
    down.jobs[JOB]["next_run_at"] = at(29)
    assert judged(down) == []
    down.runs[6] |= {"count": 18, "scheduled_until": at(24)}
    assert {violation.invariant for violation in judged(down)} == {"I1", "I4"}


def test_a_slot_that_the_limit_of_a_team_leaves_out() -> None:
    """The minute of the history has five other runs."""
    limited = history()
    both(team_limit(5), lose(2), add("runs", skipped(3, 3, 1, "team_limit", 3.01, scheduled_until=None)))(limited)
    assert judged(limited) == []
    team_limit(6)(limited)
    assert {violation.invariant for violation in judged(limited)} == {"I4"}


def test_a_job_that_was_paused() -> None:
    """Its slots end with the pause; the one at the seam may be there or not."""
    paused = history()
    paused.versions[JOB] = [version(until=4.05), version(2, since=4.05, status="paused")]
    paused.operations = [Operation(1, "pause", at(4.04), at(4.06), "ok", {"job": JOB, "version": 2})]
    paused.jobs[JOB] |= {"status": "paused", "next_run_at": None}
    for _ in range(2):
        lose(-1)(paused)
    assert judged(paused) == []
    lose(-1)(paused)
    assert judged(paused) == []
    lose(-1)(paused)
    assert {violation.invariant for violation in judged(paused)} == {"I1"}


def redelivered() -> History:
    """The first execution of slot 3 was lost with its session, s0; the second succeeded."""
    lost = history()
    again = lost.runs[2] = run(3, attempt=2, finished_at=at(3.9))
    gone: dict[str, Any] = {"status": "error", "error_kind": "node_lost", "response": None, "response_body": None}
    lost.executions[2] = execution(again, started_at=at(3.002), finished_at=at(3.5), session_id="s0", **gone)
    lost.executions.append(execution(again, 2, cause="node_lost", started_at=at(3.51), finished_at=at(3.6)))
    lost.received[2] = request(again, status=None, body_sha256=None)
    lost.received.append(request(again, 2, at=at(3.52)))
    return lost


def test_a_node_that_was_lost() -> None:
    """The second execution is excused by the kill, and only by it."""
    lost = redelivered()
    lost.sessions["s0"] = {"id": "s0", "ended_at": at(3.5)}
    lost.faults.insert(0, Fault("kill", at(3.1), at(3.4)))
    assert judged(lost) == []
    lost.faults.pop(0)
    assert {violation.invariant for violation in judged(lost)} == {"I11"}


def lost_in_a_cluster(fault: Fault) -> set[str]:
    """What is said about a redelivery from n1 to n2 whose reason was this fault; sessions are valid for 0.4 s."""
    lost = redelivered()
    lost.sessions = {"s0": {"ended_at": at(3.5), "node": "n1"}, "s1": {"ended_at": at(6.2), "node": "n2"}}
    lost.faults = [fault, Fault("stop", at(6.2), FOREVER, "n1"), Fault("stop", at(6.2), FOREVER, "n2")]
    lost.validity_ms = 400
    return {violation.invariant for violation in judged(lost)}


def test_what_excuses_a_lost_execution_in_a_cluster() -> None:
    """Death, and a silence that outlasted the session, of that node; nothing that happened to everybody."""
    excused: set[str] = set()
    for kind in ("kill", "forced_stop", "pause", "cut_pg"):
        assert lost_in_a_cluster(Fault(kind, at(3.1), at(3.45), "n1")) == excused, kind
        assert lost_in_a_cluster(Fault(kind, at(3.1), at(3.45), "n2")) == {"I11"}, kind
    for kind in ("pause", "cut_pg"):
        assert lost_in_a_cluster(Fault(kind, at(3.1), at(3.3), "n1")) == {"I11"}, f"too short a {kind}"
        assert lost_in_a_cluster(Fault(kind, at(3.4), at(9), "n1")) == {"I11"}, f"too late a {kind}"
    for kind in ("pg", "redis", "pg_slow", "cut_redis"):
        assert "I11" in lost_in_a_cluster(Fault(kind, at(3.1), at(3.45))), kind


def test_a_cluster_is_down_when_all_of_it_is() -> None:
    """One node's end is not the other's; what is late because of it has a bound, what is missing has no excuse."""
    cluster = history()
    cluster.validity_ms = 30_000
    cluster.faults = [Fault("kill", at(1), at(4), "n1"), Fault("pause", at(3), at(6), "n2"), Fault("pg", at(8), at(9))]
    assert cluster.down == [(at(3), at(4)), (at(8), at(9))]
    cluster = dataclasses.replace(
        cluster, faults=[Fault("kill", at(1), at(100), "n1"), Fault("stop", at(9), at(9), "n2")]
    )
    assert cluster.recovering == [(at(1), at(46))]
    cluster = dataclasses.replace(cluster, faults=[Fault("redis", at(1), at(100))])
    assert cluster.recovering == [(at(1), at(11)), (at(100), at(110))]
    cluster = dataclasses.replace(cluster, faults=[Fault("stall", at(1), at(2))])
    assert cluster.recovering == [(at(1), at(12))]


def test_how_far_behind_the_clocks_of_nodes_may_be() -> None:
    """From one sample to the next, and a little on both sides; of several nodes the worst."""
    cluster = history()
    assert cluster.behind_ms(at(5)) == 0
    cluster.clocks = {"n1": [(at(0), 400), (at(10), 20)], "n2": [(at(5), 30)]}
    assert [cluster.behind_ms(at(seconds)) for seconds in (-3, 1, 11.9, 12.1)] == [0, 400, 400, 30]


def test_a_clock_that_is_behind_explains_an_end_before_its_request() -> None:
    cluster = history()
    cluster.received[2] = dataclasses.replace(cluster.received[2], at=cluster.executions[2]["finished_at"] + 120)
    assert list(checker.blind(cluster))
    cluster.clocks = {"n1": [(at(0), 100)]}
    assert not list(checker.blind(cluster))


@pytest.mark.parametrize(
    ("cron", "timezone", "after", "found"),
    [
        ("*/5 * * * *", "UTC", T0, [at(300), at(600)]),
        ("* * * * * *", "UTC", T0, [at(1), at(2)]),
        ("1-59/20 * * * * *", "UTC", T0, [at(1), at(21)]),
        ("0 30 9 * * 5", "Asia/Tokyo", T0, []),
        ("0 0 13 15 1 *", "Europe/Paris", T0, [at(4 * 3600)]),
        ("0 0 13 14 1 5", "Europe/Paris", T0, [at(4 * 3600)]),
    ],
)
def test_the_oracle(cron: str, timezone: str, after: int, found: list[int]) -> None:
    """T0 is Friday, 15 January 2027, 08:00 UTC."""
    schedule = EVERY_SECOND | {"cron": cron, "timezone": timezone}
    until = after + (86_400_000 if not found else found[-1] - T0)
    assert occurrences(schedule, after, until)[:2] == found


def test_the_oracle_on_intervals() -> None:
    schedule = EVERY_SECOND | {"kind": "interval", "every_ms": 1_500, "at": T0 + 100}
    assert occurrences(schedule, T0, at(5)) == [at(1.6), at(3.1), at(4.6)]
    assert following(schedule, at(1.6)) == at(3.1)
    assert following({"kind": "once", "at": at(5)}, T0) == at(5)
    assert following({"kind": "once", "at": at(5)}, at(5)) is None


def test_windows_and_points() -> None:
    assert merged([(5, 7), (1, 3), (2, 4)]) == [(1, 4), (5, 7)]
    assert uncovered(0, 10, [(1, 4), (5, 7)]) == 5
    assert unmatched([(0, 10), (0, 3), (4, 5)], [2, 9]) == ([(4, 5)], [])
    assert unmatched([(0, 3)], [1, 2]) == ([], [2])


def test_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code, one violation a line, and a summary."""
    prepare(tmp_path / "data")
    logs = {name: tmp_path / f"{name}.jsonl" for name in ("target", "faults", "ops")}
    arguments = ["--data-dir", str(tmp_path / "data"), "--target-log", str(logs["target"])]
    arguments += ["--faults", str(logs["faults"]), "--ops", str(logs["ops"])]
    assert checker.main(arguments) == 0
    headers = {"x-0cron-run-id": "r", "x-0cron-attempt": "1"}
    line = {"wall_ms": T0, "method": "GET", "path": "/job", "headers": headers}
    logs["target"].write_text(json.dumps(line) + "\n")
    assert checker.main(arguments) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "I7: request r.1 to /job: has no execution row"
    assert json.loads(lines[2])["violations"] == {"I7": 1}
    with sqlite3.connect(tmp_path / "data" / "zerocron.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
