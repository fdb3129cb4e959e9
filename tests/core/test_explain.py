"""Why a job did or did not run: every verdict, with its evidence."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.storage.samples import DAY, HOUR, MINUTE, NOON, a_job, a_run, a_trigger

from zerocron.core.explain import (
    EVIDENCE_MAX,
    VERDICT_TEXTS,
    Act,
    Attempt,
    Explanation,
    Facts,
    Verdict,
    Version,
    explain,
)
from zerocron.core.model import Instant, JobStatus, Reason, Run, RunStatus, TriggeredBy, skipped_run
from zerocron.core.schedule import Schedule

HOURLY = Schedule("cron", "0 * * * *", None, None, "UTC")
JOB = a_job(created_at=NOON - DAY, schedule=HOURLY)
MADE = Version(1, NOON - DAY, JobStatus.ACTIVE, HOURLY)


def about(at: Instant = NOON, **known: Any) -> Explanation:
    facts: dict[str, Any] = {
        "at": at,
        "now": NOON + DAY,
        "created_at": NOON - DAY,
        "versions": [MADE],
        "oldest_slot": NOON - DAY,
        "next_run_at": NOON + DAY + HOUR,
    }
    return explain(Facts(**facts | known))


def skipped(reason: Reason, slots: int = 1, first: Instant = NOON) -> Run:
    return skipped_run(JOB, first, first + (slots - 1) * HOUR, slots, reason, NOON + 5)


def test_every_verdict_has_its_words() -> None:
    assert set(VERDICT_TEXTS) == set(Verdict)


def test_it_ran_and_succeeded() -> None:
    run = a_run(JOB, NOON, status=RunStatus.SUCCEEDED, started_at=NOON + 7)
    found = about(runs=[run], attempts=[Attempt(1, NOON + 7, "success", None)])
    assert (found.verdict, found.sentence, found.run) == (Verdict.RAN, "It ran and succeeded.", run)
    assert found.evidence == [
        (NOON + 7, "Attempt 1 succeeded."),
        (NOON + 7, "It began, 7 ms after its slot."),
        (NOON + 10, "It was recorded as succeeded."),
    ]
    assert (found.nearest_before, found.nearest_after) == (NOON - HOUR, NOON + HOUR)


def test_it_ran_and_failed_by_which_rule() -> None:
    rule = "The status was 500; the job accepts 2xx."
    run = a_run(JOB, NOON, status=RunStatus.FAILED, reason=Reason.ATTEMPTS_EXHAUSTED)
    found = about(runs=[run], attempts=[Attempt(1, NOON, "failed", rule), Attempt(2, NOON + 9, "failed", rule)])
    assert found.verdict == Verdict.RAN
    assert found.sentence == f"It ran and failed. {rule} Every attempt failed."
    assert (NOON + 9, f"Attempt 2 failed. {rule}") in found.evidence


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (RunStatus.RUNNING, Verdict.RUNNING),
        (RunStatus.QUEUED, Verdict.WAITING),
        (RunStatus.RETRYING, Verdict.WAITING),
        (RunStatus.CANCELLED, Verdict.CANCELLED),
        (RunStatus.LOST, Verdict.LOST),
    ],
)
def test_there_is_a_run(status: RunStatus, verdict: Verdict) -> None:
    assert about(runs=[a_run(JOB, NOON, status=status)]).verdict == verdict


@pytest.mark.parametrize(
    ("reason", "verdict"),
    [
        (Reason.OVERLAP, Verdict.SKIPPED),
        (Reason.QUEUE_FULL, Verdict.SKIPPED),
        (Reason.MISSED, Verdict.MISSED),
        (Reason.RESTORED, Verdict.MISSED),
        (Reason.JOB_PAUSED, Verdict.PAUSED),
        (Reason.JOB_DISABLED, Verdict.DISABLED),
        (Reason.JOB_DELETED, Verdict.NO_JOB),
        (Reason.JOB_EDITED, Verdict.EDITED),
    ],
)
def test_it_was_skipped(reason: Reason, verdict: Verdict) -> None:
    found = about(runs=[skipped(reason)])
    assert found.verdict == verdict
    assert found.sentence.startswith("It did not run. ")


def test_missed_in_an_outage_with_many_others() -> None:
    run = skipped(Reason.MISSED, slots=5, first=NOON - 3 * HOUR)
    found = about(before=run)
    assert (found.verdict, found.run) == (Verdict.MISSED, run)
    assert found.sentence.endswith("It is one of 5 slots that one record stands for.")
    assert found.evidence[0] == (NOON - 3 * HOUR, "5 slots from here to 2027-01-15T13:00:00Z did not run.")
    assert about(NOON - 3 * HOUR, runs=[run]).evidence[0] == found.evidence[0]
    assert about(NOON + 30 * MINUTE, before=run).verdict == Verdict.NOT_A_SLOT
    assert about(NOON + 2 * HOUR, before=run).verdict == Verdict.UNKNOWN


def test_the_run_of_the_slot_goes_before_one_that_was_triggered() -> None:
    own, asked = a_run(JOB, NOON, status=RunStatus.SUCCEEDED), a_trigger(JOB, NOON + 3, status=RunStatus.FAILED)
    assert about(runs=[asked, own]).run == own
    found = about(NOON + 1_003, runs=[asked])
    assert found.run == asked
    assert "Somebody asked for this run" in found.sentence
    assert asked.triggered_by == TriggeredBy.MANUAL


def test_not_a_slot_has_the_nearest_ones() -> None:
    found = about(NOON + 90_000)
    assert (found.verdict, found.nearest_before, found.nearest_after) == (Verdict.NOT_A_SLOT, NOON, NOON + HOUR)
    assert found.sentence == "The schedule has no slot there."


def test_a_full_second_stands_for_all_of_it() -> None:
    every = Schedule("interval", None, HOUR, NOON - DAY + 123, "UTC")
    versions = [dataclasses.replace(MADE, schedule=every)]
    assert about(NOON, versions=versions).verdict == Verdict.UNKNOWN
    assert about(NOON + 123, versions=versions).verdict == Verdict.UNKNOWN
    assert about(NOON + 124, versions=versions).verdict == Verdict.NOT_A_SLOT
    assert about(NOON + 123, versions=versions).nearest_before == NOON + 123 - HOUR


def test_before_the_job_was_made() -> None:
    found = about(NOON - 2 * DAY)
    assert found.verdict == Verdict.NO_JOB
    assert "made on 2027-01-14 12:00 (UTC)" in found.sentence
    assert found.nearest_after is None


def stopped(status: JobStatus, since: Instant = NOON - HOUR) -> Version:
    return Version(2, since, status, HOURLY)


def test_paused_from_to() -> None:
    acts = [Act(NOON - HOUR, "job.pause", "Ada"), Act(NOON + HOUR, "job.resume", "Bob")]
    versions = [MADE, stopped(JobStatus.PAUSED), Version(3, NOON + HOUR, JobStatus.ACTIVE, HOURLY)]
    found = about(versions=versions, acts=acts)
    assert found.verdict == Verdict.PAUSED
    assert found.sentence == "The job was paused from 2027-01-15 11:00 (UTC) to 2027-01-15 13:00 (UTC)."
    assert (NOON - HOUR, "“Ada” paused the job.") in found.evidence
    assert (NOON + HOUR, "“Bob” resumed the job.") in found.evidence


def test_paused_and_edited_meanwhile_is_one_pause() -> None:
    versions = [MADE, stopped(JobStatus.PAUSED), Version(3, NOON - MINUTE, JobStatus.PAUSED, HOURLY)]
    found = about(NOON + MINUTE, versions=versions)
    assert "from 2027-01-15 11:00 (UTC) and still is." in found.sentence
    assert found.sentence.endswith("The schedule has no slot there anyway.")


def test_disabled_and_deleted_and_completed() -> None:
    assert about(versions=[MADE, stopped(JobStatus.DISABLED)]).verdict == Verdict.DISABLED
    deleted = about(versions=[MADE, stopped(JobStatus.DELETED)])
    assert deleted.verdict == Verdict.NO_JOB
    assert deleted.sentence == "The job was deleted on 2027-01-15 11:00 (UTC)."
    once = Version(1, NOON - DAY, JobStatus.ACTIVE, Schedule("once", None, None, NOON - HOUR, "UTC"))
    assert about(versions=[once]).verdict == Verdict.COMPLETED
    assert about(NOON - HOUR, versions=[once]).verdict == Verdict.UNKNOWN


def test_what_is_still_to_come() -> None:
    assert about(NOON + HOUR, now=NOON).verdict == Verdict.NOT_YET
    assert about(NOON + 90_000, now=NOON).verdict == Verdict.NOT_A_SLOT
    paused = about(NOON + HOUR, now=NOON, versions=[MADE, stopped(JobStatus.PAUSED)])
    assert paused.verdict == Verdict.PAUSED
    assert "unless it is resumed" in paused.sentence


def test_due_and_not_begun() -> None:
    assert about(NOON, now=NOON + 400, next_run_at=NOON).verdict == Verdict.LATE


def test_a_record_that_is_gone_and_one_that_should_be_there() -> None:
    assert about(NOON - 2 * HOUR, oldest_slot=NOON).verdict == Verdict.FORGOTTEN
    assert about(NOON, oldest_slot=None).verdict == Verdict.FORGOTTEN
    assert about(NOON).verdict == Verdict.UNKNOWN


def test_another_schedule_had_a_slot_there() -> None:
    daily = Schedule("cron", "30 12 * * *", None, None, "UTC")
    at = NOON + 30 * MINUTE
    earlier = about(
        at, versions=[dataclasses.replace(MADE, schedule=daily), Version(2, NOON, JobStatus.ACTIVE, HOURLY)]
    )
    assert earlier.verdict == Verdict.NOT_A_SLOT
    assert "had one until 2027-01-15 12:00 (UTC), when it was edited" in earlier.sentence
    later = about(at, versions=[MADE, Version(2, NOON + HOUR, JobStatus.ACTIVE, daily)])
    assert "only had one from 2027-01-15 13:00 (UTC)" in later.sentence
    same_moment = about(
        NOON, versions=[MADE, Version(2, NOON, JobStatus.ACTIVE, dataclasses.replace(HOURLY, cron="0 12 * * *"))]
    )
    assert same_moment.verdict == Verdict.NOT_A_SLOT
    assert "in the same moment" in same_moment.sentence


def test_a_change_of_the_clocks_ate_it() -> None:
    """2027-03-28: the clocks of Paris go from 02:00 to 03:00, and 02:30 is nowhere."""
    half_past_two = Schedule("cron", "30 2 * * *", None, None, "Europe/Paris", "skip")
    at = 1_806_197_400_000  # 01:30 UTC, which the clocks of Paris show as 03:30
    versions = [Version(1, at - 9 * DAY, JobStatus.ACTIVE, half_past_two)]
    found = about(at, now=at + DAY, created_at=at - 9 * DAY, versions=versions)
    assert found.verdict == Verdict.NOT_A_SLOT
    assert "The clocks changed: " in found.sentence
    assert "02:30" in found.sentence
    assert (at - 30 * MINUTE) in [when for when, _ in found.evidence]
    far = about(at + 20 * DAY, now=at + 30 * DAY, created_at=at - 9 * DAY, versions=versions)
    assert "clocks" not in far.sentence


def test_an_edit_tells_which_fields() -> None:
    act = Act(NOON, "job.edit", "Ada", {"url": "a", "timeout": 1}, {"url": "b", "timeout": 2})
    assert (NOON, "“Ada” changed the job: timeout, url.") in about(acts=[act]).evidence
    assert (NOON, "0cron disabled the job.") in about(acts=[Act(NOON, "job.disable", "")]).evidence


_STATUSES = st.sampled_from([JobStatus.ACTIVE, JobStatus.PAUSED, JobStatus.DISABLED, JobStatus.DELETED])
_CRONS = st.sampled_from(["0 * * * *", "* * * * *", "30 2 29 2 *", "0 0 31 12 *"])


@given(
    st.integers(0, 40 * DAY),
    st.lists(st.tuples(st.integers(1, 20 * DAY), _STATUSES, _CRONS), min_size=1, max_size=5),
    st.integers(0, 40 * DAY),
)
def test_there_is_an_answer_to_everything(at: int, changed: list[tuple[int, JobStatus, str]], now: int) -> None:
    since, versions = NOON, []
    for number, (later, status, cron) in enumerate(changed, 1):
        versions.append(Version(number, since, status, Schedule("cron", cron, None, None, "Europe/Paris")))
        since += later
    found = about(NOON - DAY + at, now=NOON + now, created_at=NOON, versions=versions)
    assert found.sentence.endswith(".")
    assert found.evidence == sorted(found.evidence)
    assert len(found.evidence) <= EVIDENCE_MAX
    assert found.nearest_before is None or NOON < found.nearest_before < NOON - DAY + at
    assert found.nearest_after is None or found.nearest_after > NOON - DAY + at
