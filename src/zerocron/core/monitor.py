"""The verdict on a monitor: what its pings and its silence mean.

Owns every rule of a monitor's health. A `Watch` is what is known of one monitor; it changes only in the functions here,
and each change of what it shows is a `Flip` that carries its true instant, however late somebody noticed. Must never do
I/O and never read a clock: instants are milliseconds since the epoch, so that grace is added in UTC.

    expected   the next slot after the last success; of a period, that success plus the period
    late       from the instant after `expected` on
    down       from `expected + grace` on, that instant included; a ping received in that millisecond still counts
    run        a start arms a deadline of `max_run_ms` (else the grace); who is not done by then is down
    outage     time in which nobody could take pings: it does not count towards the grace. One at the time when pings
               come may have swallowed this one: then the slot is passed over, but never two in a row. A run whose end
               it may have swallowed has no deadline of its own

Being late is part of an ordinary run's life (it takes its minutes), so it is shown and is no flip: `Watch.health` is
`new`, `up` or `down`, and `judge` knows of late.

`Watch.deadline_at` is when somebody has to look again, at the latest. A success of a monitor that is up leaves it where
it is: it is too early then, never too late, so that a ping costs no index entry. Whoever looks moves it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import StrEnum
from operator import itemgetter
from typing import Any, NamedTuple

from zerocron.core.model import Instant
from zerocron.core.schedule import Schedule
from zerocron.core.schedule.zones import local_to_seconds, segment_at

GRACE_SECONDS = 300
"""The default grace."""

OPEN_RUNS_MAX = 50
ENDED_RUNS_MAX = 20
"""So many runs that overlap are told apart, and so many that ended are remembered: a start that comes after its own end
(two requests of a short job that overtook each other) arms nothing."""

FUTURE_MS_MAX = 60_000
"""A result from further in the future than this was received while the clock was wrong; later ones replace it."""

JUDGED_AFTER_MS = 250
"""So long after a deadline it is looked at, less what the scheduler claims early: pings received before it may still be
on their way into the ledger."""

PUNCTUAL_MS = 300_000
"""Until so long after the expected instant (and within the grace) a ping is punctual. An outage in that time may have
swallowed the ping, and so may one that takes half the grace; a short one later in a long grace hardly ever has, and
must not hide a failure."""

PULSE_SECONDS = 5.0
GAP_MS = 15_000
"""Nodes that can take pings say so every `PULSE_SECONDS`; silence of all of them for longer than `GAP_MS` is an
outage."""


class Health(StrEnum):
    NEW = "new"  # no ping yet; never alerts
    UP = "up"
    LATE = "late"  # the expected ping is overdue, within its grace
    DOWN = "down"


class MonitorStatus(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    DELETED = "deleted"


PAUSED = MonitorStatus.PAUSED
"""What a paused monitor shows in the place of its health: flips go to it and come from it."""


class PingKind(StrEnum):
    SUCCESS = "success"
    START = "start"
    FAIL = "fail"
    LOG = "log"  # kept, and changes nothing


class FlipReason(StrEnum):
    """Why a monitor flipped. `FLIP_REASON_TEXTS` has the sentences."""

    PING = "ping"
    SILENCE = "silence"
    FAIL = "fail"
    EXIT_CODE = "exit_code"
    TOO_LONG = "too_long"
    TOO_SHORT = "too_short"
    OUTAGE = "outage"
    EDITED = "edited"
    PAUSED = "paused"
    RESUMED = "resumed"


FLIP_REASON_TEXTS: dict[FlipReason, str] = {
    FlipReason.PING: "A ping said that the job is well.",
    FlipReason.SILENCE: "No ping came when one was expected.",
    FlipReason.FAIL: "A ping said that the job failed.",
    FlipReason.EXIT_CODE: "The job ended with an exit code other than 0.",
    FlipReason.TOO_LONG: "The job started and did not end in time.",
    FlipReason.TOO_SHORT: "The job ended sooner than it ever should.",
    FlipReason.OUTAGE: "0cron could not take pings when one was expected, so its silence means nothing.",
    FlipReason.EDITED: "The monitor was changed.",
    FlipReason.PAUSED: "The monitor was paused.",
    FlipReason.RESUMED: "The monitor was resumed; it counts from that moment.",
}


class Outage(NamedTuple):
    """Time in which no ping could be taken, its ends included."""

    started_at: Instant
    ended_at: Instant


def outages_with_gap(outages: Sequence[Outage], pulse_at: Instant | None, now: Instant) -> list[Outage]:
    """The recorded outages and the one that is not over yet, if the last pulse is so long ago."""
    if pulse_at is None or now - pulse_at <= GAP_MS:
        return list(outages)
    return [*outages, Outage(pulse_at, now)]


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a monitor expects. `schedule` of kind interval is a period: it counts from the last success."""

    schedule: Schedule
    grace_ms: int = GRACE_SECONDS * 1000
    max_run_ms: int | None = None
    min_run_ms: int | None = None
    resume_on_ping: bool = True

    @property
    def run_limit_ms(self) -> int:
        """How long a run may take from its start."""
        return self.grace_ms if self.max_run_ms is None else self.max_run_ms

    def expected_after(self, anchor: Instant) -> Instant | None:
        """When the ping after a success at `anchor` is expected; None when the schedule has no slot left."""
        if self.schedule.kind == "interval":
            return anchor + (self.schedule.every_ms or 0)
        return self.schedule.next_after(anchor)


@dataclass(slots=True)
class OpenRun:
    """A run that started and has not ended; `is_overdue` once its deadline made the monitor go down."""

    started_at: Instant
    is_overdue: bool = False


@dataclass(slots=True)
class Watch:
    """What is known of a monitor. `since` is the instant of its last flip; `anchor` what the next slot counts from;
    `failed_at` the failure that only a success ends; `result_at` the last success or failure."""

    created_at: Instant
    status: str = MonitorStatus.ACTIVE
    health: str = Health.NEW
    since: Instant = 0
    reason: str | None = None
    anchor: Instant | None = None
    failed_at: Instant | None = None
    result_at: Instant | None = None
    last_ping_at: Instant | None = None
    last_ping_kind: str | None = None
    runs: dict[str, OpenRun] = field(default_factory=dict)
    ended_runs: list[str] = field(default_factory=list)
    deadline_at: Instant | None = None
    resume_at: Instant | None = None

    @property
    def shown(self) -> str:
        """`paused`, or its health."""
        return PAUSED if self.status == PAUSED else self.health


@dataclass(frozen=True, slots=True)
class Monitor:
    """What a user wrote about a monitor, and its watch. `pings` and `flips` are how many there were."""

    id: str
    team_id: str
    version: int
    name: str
    schedule_text: str
    expectation: Expectation
    post_only: bool
    notify: dict[str, Any]
    tags: tuple[str, ...]
    warnings: tuple[str, ...]
    language: str
    token_hash: str
    token_sealed: str
    token_changed_at: Instant
    watch: Watch
    pings: int
    flips: int
    created_at: Instant
    updated_at: Instant


@dataclass(frozen=True, slots=True)
class Ping:
    """One signal of a job. `exit_code` decides between success and failure where there is one."""

    kind: str
    at: Instant
    rid: str | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Flip:
    """A change of what a monitor shows, and what people are to be told about it.

    `expected_at` is the slot that was missed; `previous_since` the instant of the flip before, so that `at -
    previous_since` is how long a recovered monitor was down; `missed` how many slots went by without a ping.
    """

    at: Instant
    before: str
    after: str
    reason: str
    previous_since: Instant
    expected_at: Instant | None = None
    last_ping_at: Instant | None = None
    exit_code: int | None = None
    missed: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """`health` since `at`; `look_at` is when it may change without a ping, None when it cannot."""

    health: str
    at: Instant | None = None
    reason: str | None = None
    expected_at: Instant | None = None
    down_at: Instant | None = None
    look_at: Instant | None = None
    overdue_run: str | None = None


def judge(expectation: Expectation, watch: Watch, now: Instant, outages: Sequence[Outage] = ()) -> Verdict:
    """The health of an active monitor at `now`, from what is known of it."""
    if watch.failed_at is not None:
        return Verdict(Health.DOWN, watch.failed_at, watch.reason)
    expected, slot_down_at = _window(expectation, watch.anchor, outages)
    run, run_down_at = _first_run_deadline(expectation, watch, outages)
    down_at = min((at for at in (slot_down_at, run_down_at) if at is not None), default=None)
    if down_at is None:
        return Verdict(_well(watch), expected_at=expected)
    by_run = down_at == run_down_at
    if down_at <= now:
        reason = FlipReason.TOO_LONG if by_run else FlipReason.SILENCE
        return Verdict(Health.DOWN, down_at, reason, expected, down_at, overdue_run=run if by_run else None)
    if expected is not None and expected < now:
        return Verdict(Health.LATE, expected, FlipReason.SILENCE, expected, down_at, look_at=down_at)
    return Verdict(_well(watch), None, None, expected, down_at, look_at=down_at)


def _well(watch: Watch) -> str:
    return Health.NEW if watch.health == Health.NEW else Health.UP


def _window(
    expectation: Expectation, anchor: Instant | None, outages: Sequence[Outage]
) -> tuple[Instant | None, Instant | None]:
    """The first slot after `anchor` that can be judged, and when its grace is over, outages not counted.

    Passed over are the first slot whose ping an outage may have swallowed and those that the same outage covers. The
    one after them has a verdict, whatever comes.
    """
    expected = None if anchor is None else expectation.expected_after(anchor)
    if anchor is None or expected is None:
        return None, None
    grace_ms = expectation.grace_ms
    # A ping before its slot does not count for it; a period is over early when a ping comes early.
    lead = min(grace_ms, expectation.schedule.every_ms or 0)
    punctual_until, down_at = expected + min(grace_ms, PUNCTUAL_MS), expected + grace_ms
    swallowed = [
        end
        for begin, end in outages
        if end > anchor
        and end >= expected - lead
        and begin <= down_at
        and (begin <= punctual_until or 2 * (min(end, down_at) - begin) >= grace_ms)
    ]
    if swallowed:
        expected = expectation.expected_after(max(swallowed))
        if expected is None:
            return None, None
    return expected, _put_off(expected + grace_ms, expected - lead, outages)


def _put_off(deadline: Instant, since: Instant, outages: Sequence[Outage]) -> Instant:
    """The deadline without the time of outages after `since`, which did not count."""
    counted = since
    for started_at, ended_at in sorted(outages):
        if started_at <= deadline and ended_at > counted:
            deadline += ended_at - max(started_at, counted)
            counted = ended_at
    return deadline


def _first_run_deadline(
    expectation: Expectation, watch: Watch, outages: Sequence[Outage]
) -> tuple[str | None, Instant | None]:
    """The open run that has to end first. One whose end may have come during an outage has no deadline."""
    limit = expectation.run_limit_ms
    found: tuple[str | None, Instant | None] = (None, None)
    for key, run in watch.runs.items():
        deadline = run.started_at + limit
        if run.is_overdue or (found[1] is not None and found[1] <= deadline):
            continue
        if any(outage.started_at <= deadline and outage.ended_at >= run.started_at for outage in outages):
            continue
        found = (key, deadline)
    return found


def advance(
    expectation: Expectation,
    watch: Watch,
    now: Instant,
    outages: Sequence[Outage] = (),
    *,
    because: FlipReason | None = None,
) -> list[Flip]:
    """Let time pass up to `now`: the flips it brings, in order, each with its true instant.

    `because` is the reason of a flip to the better, when it is not time that passed but the monitor that was changed.
    """
    flips: list[Flip] = []
    if watch.status == PAUSED and watch.resume_at is not None and watch.resume_at <= now:
        flips += resume(expectation, watch, watch.resume_at)
    if watch.status != MonitorStatus.ACTIVE:
        watch.deadline_at = watch.resume_at if watch.status == PAUSED else None
        return flips
    if watch.anchor is not None and watch.anchor > now + FUTURE_MS_MAX:  # the clock was wrong when that was received
        watch.anchor = now
    verdict = judge(expectation, watch, now, outages)
    is_down = verdict.health == Health.DOWN
    if is_down != (watch.health == Health.DOWN):
        at = now if verdict.at is None or not is_down else verdict.at
        reason = (verdict.reason or FlipReason.SILENCE) if is_down else (because or FlipReason.OUTAGE)
        missed = missed_slots(expectation, watch, now) if is_down else 0
        health = Health.DOWN if is_down else Health.UP
        flips.append(_flip(watch, at, health, reason, expected_at=verdict.expected_at, missed=missed))
        if verdict.overdue_run is not None:
            watch.runs[verdict.overdue_run].is_overdue = True
            watch.failed_at = verdict.at
    watch.deadline_at = verdict.look_at
    return flips


def missed_slots(expectation: Expectation, watch: Watch, now: Instant) -> int:
    """How many slots and their grace went by since the last success."""
    if watch.anchor is None:
        return 0
    until = now - expectation.grace_ms
    if expectation.schedule.kind == "interval":
        return max(0, until - watch.anchor) // max(1, expectation.schedule.every_ms or 1)
    return expectation.schedule.count_between(watch.anchor, until)


def receive(
    expectation: Expectation, watch: Watch, ping: Ping, *, now: Instant, outages: Sequence[Outage] = ()
) -> tuple[list[Flip], int | None]:
    """Take one ping in: the flips it brings, and for how long its run ran (ms; None without a start)."""
    flips: list[Flip] = []
    if watch.status == PAUSED and watch.resume_at is not None and watch.resume_at <= ping.at:
        flips = advance(expectation, watch, max(watch.resume_at, ping.at - 1), outages)  # its pause is over
    elif watch.status == MonitorStatus.ACTIVE and watch.deadline_at is not None and watch.deadline_at < ping.at:
        flips = advance(expectation, watch, ping.at - 1, outages)
    if watch.last_ping_at is None or ping.at >= watch.last_ping_at or watch.last_ping_at > now + FUTURE_MS_MAX:
        watch.last_ping_at, watch.last_ping_kind = ping.at, ping.kind
    if ping.kind == PingKind.LOG:
        return flips, None
    if ping.kind == PingKind.START:
        if watch.status == MonitorStatus.ACTIVE:
            _start(expectation, watch, ping, outages)
        return flips, None
    started_at = _end_run(watch, ping.rid)
    duration = None if started_at is None else max(0, ping.at - started_at)
    result_at = watch.result_at
    if result_at is not None and ping.at < result_at <= now + FUTURE_MS_MAX:
        return flips, duration  # an older one that comes later is history
    is_short = duration is not None and expectation.min_run_ms is not None and duration < expectation.min_run_ms
    if ping.kind == PingKind.SUCCESS and not is_short:
        flips += _succeed(expectation, watch, ping, outages)
    elif watch.status == MonitorStatus.ACTIVE:
        flips += _fail(watch, ping, FlipReason.TOO_SHORT if ping.kind == PingKind.SUCCESS else None)
    return flips, duration


def excuse(watch: Watch, at: Instant) -> None:
    """A success came at `at` and was refused: silence means nothing up to then, and the run may have ended with it."""
    if watch.anchor is None or watch.failed_at is not None:
        return
    watch.anchor = max(watch.anchor, at)
    watch.runs = {key: run for key, run in watch.runs.items() if run.started_at > at}


def _start(expectation: Expectation, watch: Watch, ping: Ping, outages: Sequence[Outage]) -> None:
    key = ping.rid or ""
    if key and key in watch.ended_runs:
        return
    watch.runs.pop(key, None)
    watch.runs[key] = OpenRun(ping.at)
    while len(watch.runs) > OPEN_RUNS_MAX:
        del watch.runs[next(iter(watch.runs))]
    if watch.anchor is None:
        # The first sign of life: the slot whose window is open now is the one that this run is for.
        watch.anchor = max(watch.created_at, ping.at - expectation.grace_ms - 1)
        watch.deadline_at = judge(expectation, watch, ping.at, outages).look_at
    elif watch.health != Health.DOWN:
        limit = ping.at + expectation.run_limit_ms
        watch.deadline_at = limit if watch.deadline_at is None else min(watch.deadline_at, limit)


def _end_run(watch: Watch, rid: str | None) -> Instant | None:
    """When the run started that a result ends: the named one, else the one without a name, else the only one."""
    if rid:
        watch.ended_runs = [*(known for known in watch.ended_runs if known != rid), rid][-ENDED_RUNS_MAX:]
        run = watch.runs.pop(rid, None)
    else:
        run = watch.runs.pop("", None)
        if run is None and len(watch.runs) == 1:
            run = watch.runs.pop(next(iter(watch.runs)))
    return None if run is None else run.started_at


def _succeed(expectation: Expectation, watch: Watch, ping: Ping, outages: Sequence[Outage]) -> list[Flip]:
    was = watch.shown
    if was == PAUSED:
        if not expectation.resume_on_ping:
            return []
        watch.status, watch.resume_at = MonitorStatus.ACTIVE, None
    watch.result_at = watch.anchor = ping.at
    watch.failed_at = None
    if watch.runs:  # who should have ended before, and did not, is not waited for any more
        begun = ping.at - expectation.run_limit_ms
        watch.runs = {key: run for key, run in watch.runs.items() if run.started_at >= begun}
    if was == Health.UP:
        return []
    flip = _flip(watch, ping.at, Health.UP, FlipReason.PING, before=was)
    watch.deadline_at = judge(expectation, watch, ping.at, outages).look_at
    return [flip]


def _fail(watch: Watch, ping: Ping, reason: FlipReason | None) -> list[Flip]:
    watch.result_at = ping.at
    if watch.anchor is None:
        watch.anchor = ping.at
    if watch.failed_at is not None:
        return []
    watch.failed_at = ping.at
    watch.deadline_at = None
    if reason is None:
        reason = FlipReason.EXIT_CODE if ping.exit_code else FlipReason.FAIL
    if watch.health == Health.DOWN:  # by silence: it is told already
        watch.reason = reason
        return []
    return [_flip(watch, ping.at, Health.DOWN, reason, exit_code=ping.exit_code)]


def pause(watch: Watch, now: Instant, until: Instant | None = None) -> list[Flip]:
    """Judge nothing any more, until `until` where it is given. A paused monitor gets the new `until` and no flip."""
    watch.resume_at = watch.deadline_at = until
    if watch.status == PAUSED:
        return []
    before = watch.shown
    watch.status = PAUSED
    at = max(now, watch.since)
    flip = Flip(at, before, PAUSED, FlipReason.PAUSED, watch.since, last_ping_at=watch.last_ping_at)
    watch.since, watch.reason = at, FlipReason.PAUSED
    return [flip]


def resume(expectation: Expectation, watch: Watch, now: Instant) -> list[Flip]:
    """Judge again, from now on: nothing that happened or did not happen before counts any more."""
    if watch.status != PAUSED:
        return []
    watch.status, watch.resume_at, watch.failed_at = MonitorStatus.ACTIVE, None, None
    watch.runs.clear()
    health = Health.NEW if watch.result_at is None else Health.UP
    watch.anchor = None if watch.result_at is None else now
    flip = _flip(watch, now, health, FlipReason.RESUMED, before=PAUSED)
    watch.deadline_at = judge(expectation, watch, now).look_at
    return [flip]


def _flip(
    watch: Watch,
    at: Instant,
    health: str,
    reason: str,
    *,
    before: str | None = None,
    expected_at: Instant | None = None,
    exit_code: int | None = None,
    missed: int = 0,
) -> Flip:
    """Change the health, not before the flip that came last."""
    at = max(at, watch.since)
    flip = Flip(
        at,
        before or watch.health,
        health,
        reason,
        watch.since,
        expected_at,
        watch.last_ping_at,
        exit_code,
        missed,
    )
    watch.health, watch.since, watch.reason = health, at, reason
    return flip


# ---- looking back ----------------------------------------------------------------------------------------------------


class Day(NamedTuple):
    """One day of a monitor, by the clocks of its zone. `up_ms` and `down_ms` leave out what was paused or new."""

    date: str
    up_ms: int
    down_ms: int
    downs: int


def uptime(
    flips: Iterable[tuple[Instant, str]], shown_at_start: str, *, start: Instant, now: Instant, timezone: str
) -> list[Day]:
    """The days from the one `start` lies in to today, oldest first; `flips` are (at, what it showed from then on), of
    which those up to `start` say what it showed then."""
    days: list[Day] = []
    shown = shown_at_start
    waiting = deque(sorted(flips, key=itemgetter(0)))
    while waiting and waiting[0][0] <= start:
        shown = waiting.popleft()[1]
    begin = start
    for name, end in _days(start, now, timezone):
        up = down = downs = 0
        at = begin
        while at < end:
            following = waiting[0][0] if waiting and waiting[0][0] < end else end
            length = max(0, following - at)
            up += length if shown in (Health.UP, Health.LATE) else 0
            down += length if shown == Health.DOWN else 0
            at = max(at, following)
            if following < end:
                shown = waiting.popleft()[1]
                downs += shown == Health.DOWN
        days.append(Day(name, up, down, downs))
        begin = end
    return days


def days_ago(now: Instant, days: int, timezone: str) -> Instant:
    """When the local day begins that is so many days before today."""
    local = now // 1000 + segment_at(timezone, now // 1000).offset
    return _begin(local // 86_400 - days, timezone)


def _days(start: Instant, now: Instant, timezone: str) -> Iterable[tuple[str, Instant]]:
    """(date, when it ends or now) of each local day from `start` to `now`."""
    local = start // 1000 + segment_at(timezone, start // 1000).offset
    day = local // 86_400
    at = start
    while at < now:
        end = min(now, _begin(day + 1, timezone))
        yield _date(day), end
        at, day = max(end, at + 1), day + 1


def _begin(day: int, timezone: str) -> Instant:
    """When a day begins, which its number of days since the epoch names."""
    midnight = day * 86_400
    while not (seconds := list(local_to_seconds(timezone, midnight))):  # a day may begin with a gap of its clocks
        midnight += 900
    return seconds[0] * 1000


def _date(day: int) -> str:
    """`2027-01-15` of a number of days since the epoch."""
    return (date(1970, 1, 1) + timedelta(days=day)).isoformat()
