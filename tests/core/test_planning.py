"""What becomes of due slots: every one is accounted for once, in order, and by the job's own policies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from zerocron.core.model import Catchup, Overlap, Reason, RunStatus
from zerocron.core.planning import (
    CATCHUP_RUNS_MAX,
    MISFIRE_MS,
    NO_CATCHUP_MS,
    Occupancy,
    Skip,
    SlotPlan,
    TurnPlan,
    left_behind,
    plan_slots,
    plan_turn,
)
from zerocron.core.schedule import Schedule

NOON = 1_800_014_400_000  # 2027-01-15 12:00 UTC
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


def cron(text: str, zone: str = "UTC") -> Schedule:
    return Schedule("cron", text, None, None, zone)


def every(ms: int, anchor: int = NOON - 1_000 * DAY) -> Schedule:
    return Schedule("interval", None, ms, anchor, "UTC")


EVERY_MINUTE = cron("* * * * *")


def slots_in(schedule: Schedule, first: int, until: int) -> list[int]:
    """Every slot in [first, until], one step at a time."""
    found = []
    slot = schedule.next_after(first - 1)
    while slot is not None and slot <= until:
        found.append(slot)
        slot = schedule.next_after(slot)
    return found


@dataclass
class Story:
    """A job lived through by hand: plans are asked for, carried out on this record, and accounted for."""

    schedule: Schedule
    cursor: int | None
    now: int
    overlap: Overlap = Overlap.SKIP
    catchup: Catchup = Catchup.LATEST
    window_ms: int = DAY
    active: int | None = None  # the slot of the run that holds the place
    retrying: bool = False
    active_since: int | None = None
    owed: bool = False  # the run that holds the place lost its node and waits to be sent again
    queued: int | None = None
    started: list[int] = field(default_factory=list)
    queued_ever: list[int] = field(default_factory=list)
    superseded: list[int] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)

    def plan(self) -> SlotPlan:
        assert self.cursor is not None
        assert self.cursor <= self.now
        return plan_slots(
            self.schedule,
            due=self.cursor,
            overlap=self.overlap,
            catchup=self.catchup,
            catchup_window_ms=self.window_ms,
            occupancy=self.occupancy,
            now=self.now,
        )

    @property
    def occupancy(self) -> Occupancy:
        if self.active is None:
            return Occupancy(queued_run_id=_name(self.queued))
        return Occupancy(
            active_run_id=_name(self.active),
            active_status=RunStatus.RETRYING if self.retrying or self.owed else RunStatus.RUNNING,
            active_is_owed=self.owed,
            active_since=self.active_since,
            queued_run_id=_name(self.queued),
        )

    def carry_out(self, plan: SlotPlan) -> None:
        """Do what the start transaction does, and check what no plan may do."""
        assert self.cursor is not None
        assert plan.start is None or plan.queue is None
        if plan.waits:
            assert plan == SlotPlan(next_run_at=self.cursor, waits=True)
            assert self.overlap != Overlap.ALLOW
            assert self.active is not None or self.queued is not None
            return
        assert plan.next_run_at is None or plan.next_run_at > self.cursor
        self.skips += plan.skips
        if plan.supersede:
            assert self.retrying
            assert not self.owed
            assert plan.start is not None
            assert self.active is not None
            self.superseded.append(self.active)
            self.active = None
        if plan.start is not None:
            self._start(plan.start)
        if plan.queue is not None:
            assert self.overlap == Overlap.QUEUE
            assert self.queued is None
            self.queued = plan.queue
            self.queued_ever.append(plan.queue)
        self.cursor = plan.next_run_at

    def _start(self, slot: int) -> None:
        assert slot <= self.now, "nothing starts early"
        self.started.append(slot)
        if self.overlap != Overlap.ALLOW:
            assert self.active is None, "two runs at once"
            self.active, self.active_since, self.retrying, self.owed = slot, self.now, False, False

    def end_active(self) -> None:
        """The run that holds the place ends; the one that waits gets it."""
        self.active, self.active_since, self.retrying, self.owed = None, None, False, False
        if self.queued is not None:
            self.active, self.active_since, self.queued = self.queued, self.now, None

    def work_off(self) -> None:
        """At one instant: plan until nothing is due; runs take no time, and end only when a slot waits for them."""
        steps = 0
        limit = 3 * CATCHUP_RUNS_MAX + 3 * len(slots_in(self.schedule, self.now - MISFIRE_MS, self.now)) + 20
        while self.cursor is not None and self.cursor <= self.now:
            steps += 1
            assert steps <= limit, "does not come to an end"
            plan = self.plan()
            self.carry_out(plan)
            if plan.waits:
                self.end_active()

    def skipped(self) -> list[int]:
        """The slots inside the skips, each range checked to hold as many as it counts."""
        found: list[int] = []
        for skip in self.skips:
            inside = slots_in(self.schedule, skip.first, skip.last)
            assert (inside[0], inside[-1], len(inside)) == (skip.first, skip.last, skip.count)
            found += inside
        return found

    def check_account(self, first_due: int) -> None:
        """Every slot from the first due to the cursor is started, queued or skipped: once."""
        until = self.now if self.cursor is None else self.cursor - 1
        accounted = sorted([*self.started, *self.queued_ever, *self.skipped()])
        assert accounted == slots_in(self.schedule, first_due, until)
        assert self.cursor == self.schedule.next_after(until if until >= first_due else first_due - 1)
        for series in (self.started, self.queued_ever, [skip.first for skip in self.skips]):
            assert series == sorted(set(series)), "out of order"


def _name(slot: int | None) -> str | None:
    return None if slot is None else str(slot)


PERIODIC: list[tuple[Schedule, int]] = [
    (cron("* * * * * *"), 1_000),
    (cron("*/10 * * * * *"), 10_000),
    (cron("* * * * *"), MINUTE),
    (cron("*/7 * * * *"), 7 * MINUTE),
    (cron("0 * * * *", "Europe/Paris"), HOUR),
    (cron("30 1 * * *", "America/New_York"), DAY),
    (every(1_000), 1_000),
    (every(2_500), 2_500),
    (every(90 * MINUTE), 90 * MINUTE),
]


@st.composite
def stories(draw: st.DrawFn, *, slots_max: int = 250) -> Story:
    """A job whose cursor stands at one of its slots, so and so many slots ago."""
    schedule, period = draw(st.sampled_from(PERIODIC) | st.just((Schedule("once", None, None, NOON, "UTC"), DAY)))
    behind = draw(st.integers(0, slots_max) | st.integers(0, 3)) * period + draw(st.integers(0, period))
    if schedule.kind == "once":
        cursor = NOON
    else:
        found = schedule.next_after(NOON + draw(st.integers(0, 400 * DAY)))
        assert found is not None
        cursor = found
    return Story(
        schedule,
        cursor,
        cursor + behind,
        overlap=draw(st.sampled_from(Overlap)),
        catchup=draw(st.sampled_from(Catchup)),
        window_ms=draw(st.sampled_from([0, 1_000, MINUTE, HOUR, DAY, 30 * DAY])),
    )


@given(stories())
def test_after_downtime_every_slot_is_accounted_for_once_and_in_order(story: Story) -> None:
    first_due, now = story.cursor, story.now
    assert first_due is not None
    story.work_off()
    event(f"{story.catchup} {story.overlap}")
    assert story.cursor is None or story.cursor > now
    story.check_account(first_due)


@given(stories())
def test_after_downtime_exactly_the_slots_of_the_policy_run(story: Story) -> None:
    first_due, now = story.cursor, story.now
    assert first_due is not None
    due = slots_in(story.schedule, first_due, now)
    story.work_off()
    if now - first_due <= MISFIRE_MS:
        expected = due  # merely late: no policy is asked
    else:
        keep = CATCHUP_RUNS_MAX if story.catchup == Catchup.ALL else 1
        limit = min(story.window_ms, NO_CATCHUP_MS) if story.catchup == Catchup.NONE else story.window_ms
        kept = [slot for slot in due[-keep:] if now - slot <= limit]
        expected = [slot for slot in due if kept and slot >= kept[0]]
    assert story.started == expected
    assert not story.queued_ever
    assert {skip.reason for skip in story.skips} <= {Reason.MISSED}


EVENTS = ("plan", "plan", "plan", "end", "retry", "lose", "start again", "trigger")


@given(data=st.data(), story=stories(slots_max=40))
def test_whatever_happens_meanwhile_every_slot_is_accounted_for_once(data: st.DataObject, story: Story) -> None:
    """Time passes, runs end, fail, wait for their retry and start again, while slots come due."""
    first_due = story.cursor
    assert first_due is not None
    for _ in range(data.draw(st.integers(5, 40))):
        story.now += data.draw(st.sampled_from([0, 1, 900, 3_000, 6_000, 45_000, 10 * MINUTE]))
        happening = data.draw(st.sampled_from(EVENTS))
        if happening == "end" and story.active is not None:
            story.end_active()
        elif happening == "retry" and story.active is not None:
            story.retrying, story.owed = True, False
        elif happening == "lose" and story.active is not None:
            story.retrying, story.owed, story.active_since = False, True, story.now
        elif happening == "start again":
            story.retrying = story.owed = False
        elif happening == "trigger" and story.active is None and story.queued is None:
            story.active, story.active_since = -1, story.now  # a manual run takes the place
        elif happening == "plan" and story.cursor is not None and story.cursor <= story.now:
            story.carry_out(story.plan())
    story.end_active()
    story.end_active()
    if story.cursor is not None and story.cursor <= story.now:
        story.work_off()
    story.check_account(first_due)
    for skip in story.skips:
        if skip.reason == Reason.QUEUE_FULL:
            assert story.overlap == Overlap.QUEUE
        elif skip.reason == Reason.OVERLAP:
            assert story.overlap == Overlap.SKIP


# The policies of catching up, in words.


def after(schedule: Schedule, *, due: int, now: int, catchup: Catchup, window_ms: int = DAY) -> Story:
    story = Story(schedule, due, now, catchup=catchup, window_ms=window_ms)
    story.work_off()
    return story


def test_latest_runs_the_newest_slot_and_records_the_others() -> None:
    story = after(EVERY_MINUTE, due=NOON, now=NOON + 10 * MINUTE + 30_000, catchup=Catchup.LATEST)
    assert story.started == [NOON + 10 * MINUTE]
    assert story.skips == [Skip(NOON, NOON + 9 * MINUTE, 10, Reason.MISSED)]
    assert story.cursor == NOON + 11 * MINUTE


def test_latest_runs_nothing_that_is_older_than_the_window() -> None:
    daily = cron("0 12 * * *")
    assert after(daily, due=NOON, now=NOON + HOUR, catchup=Catchup.LATEST, window_ms=HOUR).started == [NOON]
    late = after(daily, due=NOON, now=NOON + HOUR + 1, catchup=Catchup.LATEST, window_ms=HOUR)
    assert late.started == []
    assert late.skips == [Skip(NOON, NOON, 1, Reason.MISSED)]


def test_all_runs_the_newest_hundred_oldest_first() -> None:
    story = after(EVERY_MINUTE, due=NOON, now=NOON + 249 * MINUTE, catchup=Catchup.ALL)
    assert story.started == [NOON + number * MINUTE for number in range(150, 250)]
    assert story.skips == [Skip(NOON, NOON + 149 * MINUTE, 150, Reason.MISSED)]


def test_none_runs_a_slot_of_the_last_minute_and_nothing_older() -> None:
    assert after(EVERY_MINUTE, due=NOON, now=NOON + MINUTE - 1, catchup=Catchup.NONE).started == [NOON]
    daily = cron("0 12 * * *")
    assert after(daily, due=NOON, now=NOON + NO_CATCHUP_MS, catchup=Catchup.NONE).started == [NOON]
    assert after(daily, due=NOON, now=NOON + NO_CATCHUP_MS + 1, catchup=Catchup.NONE).started == []


@pytest.mark.parametrize("catchup", Catchup)
def test_a_slot_up_to_five_seconds_late_runs_under_every_policy(catchup: Catchup) -> None:
    story = after(cron("* * * * * *"), due=NOON, now=NOON + MISFIRE_MS, catchup=catchup, window_ms=0)
    assert story.started == [NOON + second * 1_000 for second in range(6)]
    assert story.skips == []


@pytest.mark.parametrize("catchup", Catchup)
def test_more_than_a_hundred_missed_slots_do_not_stop_a_job(catchup: Catchup) -> None:
    story = after(EVERY_MINUTE, due=NOON, now=NOON + 101 * MINUTE, catchup=catchup)
    assert story.cursor == NOON + 102 * MINUTE


@pytest.mark.parametrize("catchup", Catchup)
def test_years_of_downtime_are_planned_at_once(catchup: Catchup) -> None:
    story = Story(EVERY_MINUTE, NOON, NOON + 1_000 * DAY, catchup=catchup)
    plan = story.plan()
    story.carry_out(plan)
    assert sum(skip.count for skip in plan.skips) >= 1_000 * 1440 - CATCHUP_RUNS_MAX
    assert plan.next_run_at is not None
    assert story.now - plan.next_run_at < CATCHUP_RUNS_MAX * MINUTE


def test_a_single_instant_that_was_missed_runs_late_or_is_recorded_and_has_no_next() -> None:
    once = Schedule("once", None, None, NOON, "UTC")
    late = after(once, due=NOON, now=NOON + HOUR, catchup=Catchup.LATEST)
    assert (late.started, late.cursor) == ([NOON], None)
    missed = after(once, due=NOON, now=NOON + 2 * DAY, catchup=Catchup.LATEST)
    assert (missed.skips, missed.cursor) == ([Skip(NOON, NOON, 1, Reason.MISSED)], None)


def test_a_cursor_that_is_no_slot_any_more_begins_the_account() -> None:
    """Zone data changed after the cursor was computed: 12:30 is no slot of an hourly job, but it was promised."""
    plan = Story(cron("0 * * * *"), NOON + 30 * MINUTE, NOON + 3 * HOUR + 30 * MINUTE).plan()
    assert plan.start == NOON + 3 * HOUR
    assert plan.skips == (Skip(NOON + 30 * MINUTE, NOON + 2 * HOUR, 2, Reason.MISSED),)


# The policies of overlapping, in words.

Setting = Callable[[Story], None]


def running(story: Story) -> None:
    story.active, story.active_since = NOON - HOUR, NOON - HOUR


def waiting_for_a_retry(story: Story) -> None:
    running(story)
    story.retrying = True


def waiting_to_be_sent_again_after_its_node_was_lost(story: Story) -> None:
    running(story)
    story.owed = True


def running_with_one_behind_it(story: Story) -> None:
    running(story)
    story.queued = NOON - MINUTE


def waiting_for_a_retry_with_one_behind_it(story: Story) -> None:
    running_with_one_behind_it(story)
    story.retrying = True


def begun_after_the_slot(story: Story) -> None:
    story.active, story.active_since = NOON - HOUR, NOON


def about_to_take_its_turn(story: Story) -> None:
    story.queued = NOON - MINUTE


def free(_story: Story) -> None:
    pass


START = SlotPlan(NOON + MINUTE, start=NOON)
QUEUE = SlotPlan(NOON + MINUTE, queue=NOON)
WAIT = SlotPlan(NOON, waits=True)
SUPERSEDE = SlotPlan(NOON + MINUTE, start=NOON, supersede=True)


def left_out(reason: Reason) -> SlotPlan:
    return SlotPlan(NOON + MINUTE, skips=(Skip(NOON, NOON, 1, reason),))


@pytest.mark.parametrize(
    ("setting", "skip", "queue", "allow"),
    [
        (free, START, START, START),
        (running, left_out(Reason.OVERLAP), QUEUE, START),
        (running_with_one_behind_it, left_out(Reason.OVERLAP), left_out(Reason.QUEUE_FULL), START),
        (waiting_for_a_retry, SUPERSEDE, SUPERSEDE, START),
        (waiting_for_a_retry_with_one_behind_it, WAIT, WAIT, START),
        (waiting_to_be_sent_again_after_its_node_was_lost, WAIT, WAIT, START),
        (begun_after_the_slot, WAIT, WAIT, START),
        (about_to_take_its_turn, WAIT, WAIT, START),
    ],
)
def test_a_slot_that_meets_another_run_goes_by_the_overlap_policy(
    setting: Setting, skip: SlotPlan, queue: SlotPlan, allow: SlotPlan
) -> None:
    for overlap, wanted in ((Overlap.SKIP, skip), (Overlap.QUEUE, queue), (Overlap.ALLOW, allow)):
        story = Story(EVERY_MINUTE, NOON, NOON + 20, overlap=overlap)
        setting(story)
        assert story.plan() == wanted


def test_an_active_run_that_cannot_be_looked_at_counts_as_running() -> None:
    story = Story(EVERY_MINUTE, NOON, NOON)
    occupancy = Occupancy(active_run_id="held by another node", active_since=NOON - HOUR)
    plan = plan_slots(
        story.schedule,
        due=NOON,
        overlap=Overlap.SKIP,
        catchup=Catchup.LATEST,
        catchup_window_ms=DAY,
        occupancy=occupancy,
        now=NOON,
    )
    assert plan == left_out(Reason.OVERLAP)


def test_missed_slots_and_the_overlapping_newest_one_are_recorded_apart() -> None:
    story = Story(EVERY_MINUTE, NOON, NOON + 3 * MINUTE + 100)
    running(story)
    assert story.plan() == SlotPlan(
        NOON + 4 * MINUTE,
        skips=(
            Skip(NOON, NOON + 2 * MINUTE, 3, Reason.MISSED),
            Skip(NOON + 3 * MINUTE, NOON + 3 * MINUTE, 1, Reason.OVERLAP),
        ),
    )


def test_a_backlog_is_worked_off_one_run_after_the_other() -> None:
    story = Story(EVERY_MINUTE, NOON, NOON + 2 * MINUTE, catchup=Catchup.ALL)
    story.carry_out(story.plan())
    assert story.started == [NOON]
    assert story.plan().waits
    story.now += 10_000
    story.end_active()
    story.carry_out(story.plan())
    assert story.started == [NOON, NOON + MINUTE]


# What a job leaves behind that is stopped or gets another schedule.


@given(stories())
def test_the_slots_a_job_leaves_behind_are_all_in_one_record(story: Story) -> None:
    assert story.cursor is not None
    skip = left_behind(story.schedule, story.cursor, story.now, Reason.JOB_PAUSED)
    due = slots_in(story.schedule, story.cursor, story.now)
    assert skip == Skip(due[0], due[-1], len(due), Reason.JOB_PAUSED)


def test_a_job_that_is_not_due_leaves_nothing_behind() -> None:
    assert left_behind(EVERY_MINUTE, None, NOON, Reason.JOB_PAUSED) is None
    assert left_behind(EVERY_MINUTE, NOON + 1, NOON, Reason.JOB_PAUSED) is None


def test_a_promised_slot_is_recorded_even_if_the_schedule_no_longer_has_it() -> None:
    skip = left_behind(cron("0 * * * *"), NOON + 30 * MINUTE, NOON + 40 * MINUTE, Reason.JOB_EDITED)
    assert skip == Skip(NOON + 30 * MINUTE, NOON + 30 * MINUTE, 1, Reason.JOB_EDITED)


# A waiting run whose time has come.


@pytest.mark.parametrize(
    ("occupancy", "skip", "queue"),
    [
        (Occupancy(), "start", "start"),
        (Occupancy(queued_run_id="me"), "start", "start"),
        (Occupancy("other", RunStatus.RUNNING), Reason.OVERLAP, "wait"),
        (Occupancy("other", RunStatus.RUNNING, queued_run_id="me"), Reason.OVERLAP, "wait"),
        (Occupancy("other", RunStatus.RUNNING, queued_run_id="another"), Reason.OVERLAP, Reason.QUEUE_FULL),
        (Occupancy(queued_run_id="another"), Reason.OVERLAP, Reason.QUEUE_FULL),
    ],
)
def test_a_queued_run_needs_the_place_for_itself(occupancy: Occupancy, skip: Reason | str, queue: Reason | str) -> None:
    for overlap, wanted in ((Overlap.SKIP, skip), (Overlap.QUEUE, queue), (Overlap.ALLOW, "start")):
        turn = plan_turn(RunStatus.QUEUED, "me", is_owed=False, overlap=overlap, occupancy=occupancy, job_paused=False)
        assert turn.cancel is None
        assert (turn.start, turn.wait_in_queue) == (wanted == "start", wanted == "wait")
        assert turn.skip == (wanted if isinstance(wanted, Reason) else None)


@pytest.mark.parametrize("overlap", Overlap)
def test_a_retrying_run_has_its_place_already(overlap: Overlap) -> None:
    occupancy = Occupancy("me", RunStatus.RETRYING, queued_run_id="another")
    assert plan_turn(
        RunStatus.RETRYING, "me", is_owed=False, overlap=overlap, occupancy=occupancy, job_paused=False
    ).start


@pytest.mark.parametrize(
    ("occupancy", "retry", "owed"),
    [
        (Occupancy("me", RunStatus.RETRYING), "start", "start"),
        (Occupancy(), "start", "start"),
        (Occupancy("other", RunStatus.RUNNING), "supersede", "wait"),
        (Occupancy("other", RunStatus.RETRYING), "supersede", "wait"),
    ],
)
def test_a_retrying_run_that_began_beside_others_gives_way_or_waits(
    occupancy: Occupancy, retry: str, owed: str
) -> None:
    """An edit has forbidden overlapping since: the place may be another's. One whose node was lost is not given up."""
    for is_owed, exclusive in ((False, retry), (True, owed)):
        for overlap, wanted in ((Overlap.SKIP, exclusive), (Overlap.QUEUE, exclusive), (Overlap.ALLOW, "start")):
            turn = plan_turn(
                RunStatus.RETRYING, "me", is_owed=is_owed, overlap=overlap, occupancy=occupancy, job_paused=False
            )
            assert turn == TurnPlan(**{wanted: True})  # type: ignore[arg-type]


@pytest.mark.parametrize("status", [RunStatus.QUEUED, RunStatus.RETRYING])
@pytest.mark.parametrize("is_owed", [False, True])
def test_nothing_that_waits_starts_in_a_paused_job(status: RunStatus, is_owed: bool) -> None:
    for overlap in Overlap:
        turn = plan_turn(status, "me", is_owed=is_owed, overlap=overlap, occupancy=Occupancy(), job_paused=True)
        assert turn.cancel == Reason.JOB_PAUSED
        assert not turn.start
