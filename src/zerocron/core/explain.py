"""Why a job did or did not run at an instant, with the evidence.

Owns the verdict. It reads what is on record: runs, versions of the job, and what people did to it; where nothing is, it
says so and guesses nothing. Sentences are in English, like all that the API says, and each is written whole, because
pages find it by its text to say it in their reader's language (decision 0016). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from zerocron.core.instants import to_rfc3339
from zerocron.core.model import REASON_TEXTS, ExecutionStatus, Instant, JobStatus, Reason, Run, RunStatus
from zerocron.core.schedule import Schedule, clock_changes
from zerocron.core.schedule.describe import describe_instant

DAY_MS = 86_400_000
LOOK_BACK_MS = 9 * 366 * DAY_MS
"""A slot on the 29th of February comes back within eight years."""

EVIDENCE_MAX = 12


class Verdict(StrEnum):
    """What became of an instant of a job. `VERDICT_TEXTS` says what each means."""

    RAN = "ran"
    RUNNING = "running"
    WAITING = "waiting"
    SKIPPED = "skipped"
    MISSED = "missed"
    CANCELLED = "cancelled"
    LOST = "lost"
    PAUSED = "paused"
    DISABLED = "disabled"
    COMPLETED = "completed"
    EDITED = "edited"
    NOT_A_SLOT = "not_a_slot"
    NOT_YET = "not_yet"
    LATE = "late"
    NO_JOB = "no_job"
    FORGOTTEN = "forgotten"
    UNKNOWN = "unknown"


VERDICT_TEXTS: dict[Verdict, str] = {
    Verdict.RAN: "There is a run, which succeeded or failed.",
    Verdict.RUNNING: "There is a run, which is under way.",
    Verdict.WAITING: "There is a run, which waits for its turn or its next attempt.",
    Verdict.SKIPPED: "An earlier run was still in the way.",
    Verdict.MISSED: "0cron was away, and the job's catch-up policy leaves it out.",
    Verdict.CANCELLED: "There is a run, which was called off before it could begin or be tried again.",
    Verdict.LOST: "There is a run, whose node was lost.",
    Verdict.PAUSED: "The job was paused.",
    Verdict.DISABLED: "The job was disabled, because too many of its runs had failed in a row.",
    Verdict.COMPLETED: "The job was completed: its schedule had no slot left.",
    Verdict.EDITED: "The job got another schedule before this slot could run.",
    Verdict.NOT_A_SLOT: "The schedule has no slot there.",
    Verdict.NOT_YET: "It is still to come.",
    Verdict.LATE: "It is due, and has not begun.",
    Verdict.NO_JOB: "There was no such job then.",
    Verdict.FORGOTTEN: "What is known of the job does not go back so far.",
    Verdict.UNKNOWN: "There is no record of a slot that should have one.",
}

_OF_REASON = {
    Reason.MISSED: Verdict.MISSED,
    Reason.RESTORED: Verdict.MISSED,
    Reason.JOB_PAUSED: Verdict.PAUSED,
    Reason.JOB_DISABLED: Verdict.DISABLED,
    Reason.JOB_DELETED: Verdict.NO_JOB,
    Reason.JOB_EDITED: Verdict.EDITED,
}
_OF_STATUS = {
    RunStatus.QUEUED: Verdict.WAITING,
    RunStatus.RETRYING: Verdict.WAITING,
    RunStatus.RUNNING: Verdict.RUNNING,
    RunStatus.SUCCEEDED: Verdict.RAN,
    RunStatus.FAILED: Verdict.RAN,
    RunStatus.SKIPPED: Verdict.SKIPPED,
    RunStatus.CANCELLED: Verdict.CANCELLED,
    RunStatus.LOST: Verdict.LOST,
}
_STOPPED = {JobStatus.PAUSED: Verdict.PAUSED, JobStatus.DISABLED: Verdict.DISABLED}


@dataclass(frozen=True, slots=True)
class Version:
    """What the job was from `since` on."""

    number: int
    since: Instant
    status: str
    schedule: Schedule


@dataclass(frozen=True, slots=True)
class Act:
    """What somebody did to the job, as the audit log has it. `action` is `job.pause` and its kin."""

    at: Instant
    action: str
    actor: str
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """An execution, as far as it is evidence."""

    number: int
    at: Instant
    status: str
    error: str | None


@dataclass(frozen=True, slots=True)
class Facts:
    """What is on record about a job around an instant.

    `versions` are some up to the instant and some after it, ascending; `runs` those whose slots lie at the instant,
    `before` the last slot before it; `oldest_slot` the first that is still on record; `next_run_at` the job's cursor.
    """

    at: Instant
    now: Instant
    created_at: Instant
    versions: Sequence[Version]
    runs: Sequence[Run] = ()
    attempts: Sequence[Attempt] = ()
    before: Run | None = None
    acts: Sequence[Act] = ()
    oldest_slot: Instant | None = None
    next_run_at: Instant | None = None


@dataclass(slots=True)
class Explanation:
    """The verdict on an instant. `evidence` is (when, what), ascending."""

    verdict: Verdict
    sentence: str
    run: Run | None = None
    nearest_before: Instant | None = None
    nearest_after: Instant | None = None
    evidence: list[tuple[Instant, str]] = field(default_factory=list)


def moment(at: Instant) -> tuple[Instant, Instant]:
    """The instants that are meant by one: a full second stands for all of it."""
    return (at, at + 999) if at % 1000 == 0 else (at, at)


def chosen(runs: Sequence[Run]) -> Run | None:
    """The run to speak of: that of the slot rather than one that somebody triggered."""
    return min(runs, key=lambda run: (run.trigger_key != "", run.scheduled_for), default=None)


def explain(facts: Facts) -> Explanation:
    """Say what became of the instant."""
    version = _in_force(facts)
    found = _verdict(facts, version)
    if version is not None:
        _find_neighbours(found, facts, version.schedule)
    found.evidence += [(act.at, _said(act)) for act in facts.acts]
    found.evidence = sorted(dict.fromkeys(found.evidence))[-EVIDENCE_MAX:]
    return found


def _verdict(facts: Facts, version: Version | None) -> Explanation:
    run = chosen(facts.runs)
    if run is not None:
        return _of_run(facts, run)
    if version is None:
        made = describe_instant(facts.created_at, _zone(facts))
        return Explanation(Verdict.NO_JOB, f"There was no such job yet: it was made on {made}.")
    is_slot = _is_slot(version.schedule, facts.at)
    covering = _covering(facts)
    if covering is not None and is_slot:
        return _of_many(facts, covering)
    if version.status == JobStatus.DELETED:
        deleted = describe_instant(_period(facts, version)[0], _zone(facts))
        return Explanation(Verdict.NO_JOB, f"The job was deleted on {deleted}.")
    if version.status in _STOPPED:
        return _of_stopped(facts, version, is_slot)
    if not is_slot:
        return _of_no_slot(facts, version)
    if facts.at > facts.now:
        return Explanation(Verdict.NOT_YET, "It is still to come: it will run then, unless somebody changes the job.")
    return _of_slot_without_run(facts, version)


def _of_run(facts: Facts, run: Run) -> Explanation:
    """There is a record."""
    reason = None if run.reason is None else Reason(run.reason)
    text = "" if reason is None else REASON_TEXTS[reason]
    verdict = _OF_STATUS[RunStatus(run.status)]
    if run.status == RunStatus.SKIPPED and reason is not None:
        verdict = _OF_REASON.get(reason, Verdict.SKIPPED)
    error = next((attempt.error for attempt in reversed(facts.attempts) if attempt.error), None)
    asked = "" if run.trigger_key == "" else " Somebody asked for this run; it is no slot of the schedule."
    sentences = {
        RunStatus.SUCCEEDED: "It ran and succeeded.",
        RunStatus.FAILED: "It ran and failed.",
        RunStatus.RUNNING: "It is running.",
        RunStatus.RETRYING: "It ran, failed, and will be tried again.",
        RunStatus.QUEUED: "It waits for its turn.",
        RunStatus.SKIPPED: "It did not run.",
        RunStatus.CANCELLED: "It was called off.",
        RunStatus.LOST: "Nobody knows how it ended.",
    }
    shown = error if run.status in (RunStatus.FAILED, RunStatus.RETRYING) else None
    parts = (sentences[RunStatus(run.status)], shown, text)
    found = Explanation(verdict, " ".join(filter(None, parts)) + asked, run)
    if run.count > 1 and run.scheduled_until is not None:
        found.evidence.append((run.scheduled_for, _account(run)))
    if run.started_at is not None:
        late = run.started_at - run.scheduled_for
        found.evidence.append((run.started_at, f"It began, {late:,} ms after its slot."))
    for attempt in facts.attempts:
        found.evidence.append((attempt.at, _ended(attempt)))
    if run.finished_at is not None:
        found.evidence.append((run.finished_at, f"It was recorded as {run.status}."))
    if run.retry_at is not None and run.status == RunStatus.RETRYING:
        found.evidence.append((run.retry_at, "It will be tried again."))
    return found


def _ended(attempt: Attempt) -> str:
    if attempt.status == ExecutionStatus.SUCCESS:
        return f"Attempt {attempt.number} succeeded."
    if attempt.error:
        return f"Attempt {attempt.number} failed. {attempt.error}"
    return f"Attempt {attempt.number} failed."


def _of_many(facts: Facts, run: Run) -> Explanation:
    """The instant is one of many that one record stands for."""
    reason = Reason(run.reason) if run.reason else Reason.MISSED
    of_many = f"It is one of {run.count:,} slots that one record stands for."
    sentence = " ".join(("It did not run.", REASON_TEXTS[reason], of_many))
    return Explanation(
        _OF_REASON.get(reason, Verdict.SKIPPED),
        sentence,
        run,
        evidence=[(run.scheduled_for, _account(run)), (run.created_at, "That was found out.")],
    )


def _account(run: Run) -> str:
    return f"{run.count:,} slots from here to {to_rfc3339(run.scheduled_until or run.scheduled_for)} did not run."


def _of_stopped(facts: Facts, version: Version, is_slot: bool) -> Explanation:
    begun, ended = _period(facts, version)
    zone = _zone(facts)
    since = describe_instant(begun, zone)
    if ended is None:
        sentence = f"The job was {version.status} from {since} and still is."
    else:
        sentence = f"The job was {version.status} from {since} to {describe_instant(ended, zone)}."
    verdict = _STOPPED[JobStatus(version.status)]
    if not is_slot:
        sentence += " The schedule has no slot there anyway."
    elif facts.at > facts.now:
        sentence += " It will not run then, unless it is resumed before."
    evidence = [(begun, f"The job became {version.status} (version {version.number}).")]
    if ended is not None:
        evidence.append((ended, "The job went on."))
    return Explanation(verdict, sentence, evidence=evidence)


def _of_no_slot(facts: Facts, version: Version) -> Explanation:
    last = version.schedule.next_after(facts.at) is None
    if version.status == JobStatus.COMPLETED or (last and version.schedule.kind == "once"):
        return Explanation(Verdict.COMPLETED, "The schedule had no slot left: the job was completed.")
    found = Explanation(Verdict.NOT_A_SLOT, "The schedule has no slot there.")
    for change in clock_changes(version.schedule, after=facts.at - DAY_MS, years=1):
        if abs(change.at - facts.at) <= DAY_MS:
            found.evidence.append((change.at, change.effect))
            found.sentence += f" The clocks changed: {change.effect}"
            break
    for other in facts.versions:
        if other.schedule != version.schedule and _is_slot(other.schedule, facts.at):
            if other.number > version.number:
                when = describe_instant(other.since, _zone(facts))
                found.sentence += f" Another schedule of this job only had one from {when}, when it was edited."
            else:
                when = describe_instant(version.since, _zone(facts))
                found.sentence += f" Another schedule of this job had one until {when}, when it was edited."
            found.evidence.append((version.since, f"The job got this schedule (version {version.number})."))
            break
    return found


def _of_slot_without_run(facts: Facts, version: Version) -> Explanation:
    if facts.next_run_at is not None and facts.next_run_at <= moment(facts.at)[1]:
        return Explanation(
            Verdict.LATE,
            "It is due and has not begun yet. GET /v1/system tells who runs the server what holds runs up.",
        )
    if facts.at < facts.created_at:
        return Explanation(Verdict.NO_JOB, "There was no such job yet.")
    if facts.at <= version.since:
        return Explanation(
            Verdict.NOT_A_SLOT,
            "The job was changed in the same moment, and a schedule counts from the instant after that.",
            evidence=[(version.since, f"The job got this schedule (version {version.number}).")],
        )
    if facts.oldest_slot is None or facts.at < facts.oldest_slot:
        return Explanation(
            Verdict.FORGOTTEN,
            "It is a slot of the schedule, and its record is gone: history is kept for so many days and runs.",
        )
    return Explanation(
        Verdict.UNKNOWN,
        "It is a slot of the schedule, and there is no record of it. Every slot should have one: please report this.",
    )


def _find_neighbours(found: Explanation, facts: Facts, schedule: Schedule) -> None:
    """The slots next to the instant, of the schedule that was in force."""
    first, last = moment(facts.at)
    floor = max(facts.created_at, first - LOOK_BACK_MS)
    earlier = schedule.latest_between(floor, first - 1, 1)
    found.nearest_before = earlier[0] if earlier else None
    found.nearest_after = schedule.next_after(last)


def _in_force(facts: Facts) -> Version | None:
    """The version at the instant; that of now for one that is to come."""
    known = [version for version in facts.versions if version.since <= moment(facts.at)[1]]
    if not known or facts.at < facts.created_at - facts.created_at % 1000:
        return None
    return known[-1]


def _period(facts: Facts, version: Version) -> tuple[Instant, Instant | None]:
    """From when to when the job had the status of this version; None: it still has."""
    numbers = list(facts.versions)
    index = first = numbers.index(version)
    while first > 0 and numbers[first - 1].status == version.status:
        first -= 1
    following = index
    while following < len(numbers) and numbers[following].status == version.status:
        following += 1
    return numbers[first].since, numbers[following].since if following < len(numbers) else None


def _covering(facts: Facts) -> Run | None:
    run = facts.before
    is_one = run is not None and run.status == RunStatus.SKIPPED and (run.scheduled_until or 0) >= facts.at
    return run if is_one else None


def _is_slot(schedule: Schedule, at: Instant) -> bool:
    first, last = moment(at)
    following = schedule.next_after(first - 1)
    return following is not None and following <= last


def _zone(facts: Facts) -> str:
    return facts.versions[-1].schedule.timezone if facts.versions else "UTC"


def _said(act: Act) -> str:
    """An act in words: who, what, and of an edit which fields."""
    who = f"“{act.actor}”" if act.actor else "0cron"  # what people call themselves and their keys may be any words
    if act.action == "job.edit" and act.after:
        return f"{who} changed the job: {', '.join(sorted(act.after))}."
    done = {
        "job.create": f"{who} made the job.",
        "job.edit": f"{who} changed the job.",
        "job.pause": f"{who} paused the job.",
        "job.resume": f"{who} resumed the job.",
        "job.delete": f"{who} deleted the job.",
        "job.disable": f"{who} disabled the job.",
        "job.trigger": f"{who} triggered a run.",
    }
    return done.get(act.action, f"{who} {act.action}.")
