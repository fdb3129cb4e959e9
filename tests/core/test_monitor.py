"""The verdict on a monitor: the cases from the field that are pure (heartbeat.jsonl), and what always holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.errors import Invalid
from zerocron.core.instants import from_rfc3339
from zerocron.core.monitor import (
    FLIP_REASON_TEXTS,
    FUTURE_MS_MAX,
    GAP_MS,
    OPEN_RUNS_MAX,
    PUNCTUAL_MS,
    Expectation,
    Flip,
    FlipReason,
    Health,
    MonitorStatus,
    Outage,
    Ping,
    PingKind,
    Verdict,
    Watch,
    advance,
    days_ago,
    judge,
    missed_slots,
    outages_with_gap,
    pause,
    receive,
    resume,
    uptime,
)
from zerocron.core.monitor_schedule import describe_expected, understand_expected
from zerocron.core.schedule import Schedule
from zerocron.core.understanding import understand

CASES = {
    case["id"]: case
    for case in map(json.loads, Path(__file__).with_name("heartbeat.jsonl").read_text("utf-8").splitlines())
}
SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
T0 = from_rfc3339("2024-01-01T00:00:00Z")


def period(ms: int) -> Schedule:
    return Schedule("interval", None, ms, T0, "UTC")


def cron(expression: str, zone: str = "UTC") -> Schedule:
    return understand(expression, timezone=zone, now=T0).schedule


def expecting(schedule: Schedule, grace_s: int = 0, **given: Any) -> Expectation:
    return Expectation(schedule, grace_s * 1000, **given)


class Story:
    """A monitor, and what happens to it in order."""

    def __init__(self, expectation: Expectation, created_at: int = T0) -> None:
        self.expectation = expectation
        self.watch = Watch(created_at=created_at, since=created_at)
        self.flips: list[Flip] = []
        self.durations: list[int | None] = []
        self.outages: list[Outage] = []

    def ping(self, at: int, kind: str = PingKind.SUCCESS, *, now: int | None = None, **given: Any) -> Story:
        flips, duration = receive(
            self.expectation,
            self.watch,
            Ping(kind, at, **given),
            now=at if now is None else now,
            outages=self.outages,
        )
        self.flips += flips
        self.durations.append(duration)
        return self

    def wait(self, now: int, because: FlipReason | None = None) -> Story:
        self.flips += advance(self.expectation, self.watch, now, self.outages, because=because)
        return self

    def judged(self, now: int) -> Verdict:
        return judge(self.expectation, self.watch, now, self.outages)

    @property
    def downs(self) -> list[int]:
        return [flip.at for flip in self.flips if flip.after == Health.DOWN]

    @property
    def told(self) -> list[str]:
        return [flip.after for flip in self.flips]


def of(case: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return CASES[case]["given"], CASES[case]["expect"]


def at(text: str) -> int:
    return from_rfc3339(text)


def test_hb_001_a_ping_at_the_very_deadline_counts() -> None:
    given, _ = of("hb-001")
    story = Story(expecting(period(given["period_s"] * SECOND))).ping(at(given["last_ping"]))
    story.ping(at(given["next_ping"])).wait(at(given["next_ping"]))

    assert story.judged(at(given["next_ping"])).health == Health.UP
    assert story.downs == []


def test_hb_004_down_at_the_end_of_grace_boundary_included() -> None:
    given, expect = of("hb-004")
    story = Story(expecting(period(HOUR), 300)).ping(at(given["last_ping"]))

    assert story.judged(at(given["now"]) - 1).health == Health.LATE
    assert story.wait(at(given["now"])).downs == [at(expect["down_at"])]


def test_hb_005_the_recorded_instant_is_the_true_one() -> None:
    given, expect = of("hb-005")
    story = Story(expecting(period(HOUR), 300)).ping(at(given["last_ping"]))

    assert story.wait(at(given["evaluator_runs_at"])).downs == [at(expect["down_at_recorded"])]


def test_hb_006_ordinary_jitter_does_not_flap() -> None:
    story = Story(expecting(period(600 * SECOND), 60))
    for number in range(144):
        story.ping(T0 + number * 600 * SECOND + (number * 7919 % 5_000)).wait(T0 + number * 600 * SECOND + 6_000)

    assert story.told == [Health.UP]


SLOTS = ["hb-007", "hb-008", "hb-013", "hb-014", "hb-015", "hb-021", "hb-022", "hb-024"]


@pytest.mark.parametrize("name", SLOTS)
def test_the_expected_slot_and_the_end_of_its_grace(name: str) -> None:
    given, expect = of(name)
    story = Story(expecting(cron(given["cron"], given["tz"]), given["grace_s"]), at(given["last_ping"]) - DAY)
    story.ping(at(given["last_ping"]))
    verdict = story.judged(at(given["last_ping"]))

    assert verdict.expected_at == at(expect["due"])
    assert "down_at" not in expect or verdict.down_at == at(expect["down_at"])


def test_hb_009_a_run_that_began_early_and_ended_after_the_slot() -> None:
    given, expect = of("hb-009")
    story = Story(expecting(cron(given["cron"]), given["grace_s"]), at(given["start"]) - HOUR)
    story.ping(at("2023-02-10T12:00:10Z")).ping(at(given["start"]), PingKind.START).ping(at(given["success"]))

    assert story.watch.health == expect["state_after"]
    assert story.judged(at(given["success"])).expected_at == at(expect["due_next"])


def test_hb_016_grace_longer_than_the_gap_between_slots() -> None:
    given, expect = of("hb-016")
    story = Story(expecting(cron(given["cron"]), given["grace_s"]), at(given["last_ping"]) - HOUR)
    story.ping(at(given["last_ping"])).wait(at(given["next_ping"])).ping(at(given["next_ping"]))

    assert story.downs == []
    assert story.judged(at(given["next_ping"])).expected_at == at(expect["due_next"])


def test_hb_017_a_schedule_that_never_comes_is_refused() -> None:
    with pytest.raises(Invalid):
        understand_expected(of("hb-017")[0]["cron"], timezone="UTC", now=T0)


def test_hb_018_six_fields_are_seconds_first() -> None:
    schedule = understand_expected(of("hb-018")[0]["cron"], timezone="UTC", now=T0).schedule

    assert schedule.next_after(T0) == T0 + HOUR


def test_hb_020_after_its_last_slot_a_monitor_stays_up() -> None:
    story = Story(expecting(Schedule("once", None, None, T0 + HOUR, "UTC"), 60)).ping(T0 + HOUR)

    assert story.wait(T0 + 1000 * DAY).told == [Health.UP]
    assert story.watch.deadline_at is None


def test_hb_025_an_ambiguous_slot_next_week_is_no_reason_to_refuse() -> None:
    given, _ = of("hb-025")

    assert understand_expected(given["cron"], timezone=given["tz"], now=at(given["saved_at"])).schedule.kind == "cron"


def test_hb_028_a_run_longer_than_its_limit_is_down_until_it_reports() -> None:
    story = Story(expecting(period(DAY), 21_600), at("2021-08-09T00:00:00Z"))
    story.ping(at("2021-08-10T05:00:00Z"), PingKind.START).wait(at("2021-08-10T11:00:00.500Z"))
    story.ping(at("2021-08-10T11:00:01Z"))

    assert [(flip.at, flip.after, flip.reason) for flip in story.flips] == [
        (at("2021-08-10T11:00:00Z"), Health.DOWN, FlipReason.TOO_LONG),
        (at("2021-08-10T11:00:01Z"), Health.UP, FlipReason.PING),
    ]
    assert story.durations[-1] == 21_601 * SECOND
    assert story.wait(at("2021-08-10T12:00:00Z")).watch.health == Health.UP


def test_hb_029_a_start_alone_does_not_satisfy_the_slot() -> None:
    given, expect = of("hb-029")
    for earlier in (None, at("2023-05-15T05:22:00Z")):
        story = Story(expecting(cron(given["cron"]), given["grace_s"]), at("2023-05-01T00:00:00Z"))
        if earlier is not None:
            story.ping(earlier)
        story.ping(at("2023-05-16T05:21:01Z"), PingKind.START)

        assert story.wait(at("2023-05-16T06:00:00Z")).downs == [at(expect["down_at"])]


def test_hb_030_a_start_that_comes_after_its_own_end_arms_nothing() -> None:
    rid = "7b0f3a52-5d6e-4c1a-9c88-2f4b6d8e0a13"
    story = Story(expecting(period(DAY), 60)).ping(T0 + 5_000, rid=rid).ping(T0 + 6_000, PingKind.START, rid=rid)

    assert story.wait(T0 + HOUR).told == [Health.UP]


def test_hb_032_no_duration_is_invented() -> None:
    assert Story(expecting(period(HOUR))).ping(T0).ping(T0 + 2_000).durations == [None, None]


def test_hb_033_an_explicit_failure_is_down_at_once() -> None:
    story = Story(expecting(period(HOUR), 60)).ping(T0, PingKind.START).ping(T0 + 5, PingKind.FAIL)

    assert [(flip.after, flip.at, flip.reason) for flip in story.flips] == [(Health.DOWN, T0 + 5, FlipReason.FAIL)]


def test_hb_034_a_log_prolongs_nothing() -> None:
    story = Story(expecting(period(HOUR), 0)).ping(T0).ping(T0 + MINUTE, PingKind.LOG)

    assert story.judged(T0 + 2 * MINUTE).expected_at == T0 + HOUR
    assert Story(expecting(period(HOUR))).ping(T0, PingKind.LOG).watch.health == Health.NEW


def test_hb_036_a_first_start_that_never_ends() -> None:
    given, expect = of("hb-036")
    story = Story(expecting(period(300 * SECOND), 60), at(given["created"]))
    story.ping(at(given["start_only"]), PingKind.START)

    assert story.watch.deadline_at == at(expect["down_at"])
    assert story.wait(T0 + HOUR).downs == [at(expect["down_at"])]


def paused(**given: Any) -> Story:
    story = Story(expecting(period(HOUR), 60, **given)).ping(T0)
    story.flips = pause(story.watch, T0 + 30 * MINUTE)
    return story


def test_hb_038_a_success_resumes() -> None:
    story = paused().ping(T0 + DAY)

    assert (story.watch.status, story.watch.health) == (MonitorStatus.ACTIVE, Health.UP)
    assert story.told == ["paused", "up"]


def test_hb_039_or_not_if_so_chosen() -> None:
    story = paused(resume_on_ping=False).ping(T0 + DAY)

    assert story.watch.status == MonitorStatus.PAUSED
    assert story.watch.last_ping_at == T0 + DAY


def test_hb_041_a_failure_of_a_paused_monitor_tells_nobody() -> None:
    assert paused().ping(T0 + DAY, PingKind.FAIL).wait(T0 + 2 * DAY).told == ["paused"]


def test_hb_042_resuming_does_not_judge_the_time_spent_paused() -> None:
    given, _ = of("hb-042")
    story = paused()
    story.flips = resume(story.expectation, story.watch, at(given["resumed"]))

    assert story.wait(at(given["resumed"])).told == ["up"]
    assert story.judged(at(given["resumed"])).expected_at == at(given["resumed"]) + HOUR
    assert story.wait(at("2024-01-02T01:02:00Z")).downs == [at("2024-01-02T01:01:00Z")]


def test_hb_043_pausing_twice_is_one_flip() -> None:
    story = paused()

    assert pause(story.watch, T0 + 31 * MINUTE) == []


def test_a_pause_until_an_instant_resumes_itself_then() -> None:
    story = Story(expecting(period(HOUR), 60)).ping(T0)
    story.flips = pause(story.watch, T0 + MINUTE, T0 + DAY)

    assert story.watch.deadline_at == T0 + DAY
    story.wait(T0 + DAY + 5_000)
    assert [(flip.after, flip.at) for flip in story.flips] == [("paused", T0 + MINUTE), ("up", T0 + DAY)]
    assert story.watch.deadline_at == T0 + DAY + HOUR + MINUTE


def edited(story: Story, expectation: Expectation, now: int) -> Story:
    story.expectation = expectation
    return story.wait(now, FlipReason.EDITED)


def test_hb_044_a_stricter_schedule_judges_at_once() -> None:
    story = Story(expecting(period(DAY), 60)).ping(T0)

    assert edited(story, expecting(period(HOUR), 60), T0 + 2 * HOUR).downs == [T0 + HOUR + MINUTE]


def test_hb_045_a_relaxed_schedule_brings_it_up_without_another_alert() -> None:
    story = Story(expecting(period(HOUR), 60)).ping(T0).wait(T0 + 2 * HOUR)
    edited(story, expecting(period(DAY), 60), T0 + 2 * HOUR)

    assert story.told == [Health.UP, Health.DOWN, Health.UP]
    assert story.flips[-1].reason == FlipReason.EDITED


def test_hb_046_an_edit_that_changes_nothing_tells_nobody() -> None:
    story = Story(expecting(period(HOUR), 60)).ping(T0).wait(T0 + 2 * HOUR)
    told = len(story.flips)

    assert len(edited(story, expecting(period(HOUR), 120), T0 + 3 * HOUR).flips) == told


def test_an_edit_does_not_forgive_a_run_that_took_too_long() -> None:
    story = Story(expecting(period(DAY), 60)).ping(T0).ping(T0 + HOUR, PingKind.START).wait(T0 + 2 * HOUR)

    assert edited(story, expecting(period(DAY), 90), T0 + 2 * HOUR).watch.health == Health.DOWN


def test_hb_055_silence_after_a_failure_is_not_told_again() -> None:
    story = Story(expecting(period(HOUR), 60)).ping(T0).ping(T0 + MINUTE, PingKind.FAIL).wait(T0 + 5 * HOUR)

    assert len(story.downs) == 1


def test_hb_056_recovery_says_how_long_it_was_down() -> None:
    story = Story(expecting(period(HOUR), 60)).ping(T0).wait(T0 + 2 * HOUR).ping(T0 + 3 * HOUR)

    assert story.told == ["up", "down", "up"]
    assert story.flips[-1].at - story.flips[-1].previous_since == 2 * HOUR - MINUTE


def test_hb_057_a_good_ping_begins_the_count_of_misses_anew() -> None:
    story = Story(expecting(period(HOUR), 60)).ping(T0)
    counts = [missed_slots(story.expectation, story.watch, T0 + hours * HOUR + 2 * MINUTE) for hours in (1, 2)]
    story.wait(T0 + 3 * HOUR).ping(T0 + 3 * HOUR)

    assert counts == [1, 2]
    assert missed_slots(story.expectation, story.watch, T0 + 4 * HOUR + 2 * MINUTE) == 1


def test_hb_058_a_ping_of_before_a_flip_leaves_one_state_and_an_order() -> None:
    story = Story(expecting(period(HOUR), 60)).ping(T0).wait(T0 + HOUR + MINUTE)
    story.ping(T0 + HOUR + MINUTE - 5, now=T0 + HOUR + MINUTE + 300)

    assert story.told == ["up", "down", "up"]
    assert story.flips[-1].at >= story.flips[-2].at


def test_hb_080_an_older_ping_that_comes_later_moves_nothing_back() -> None:
    story = Story(expecting(period(HOUR), 60)).ping(T0 + MINUTE).ping(T0, now=T0 + 2 * MINUTE)

    assert story.watch.last_ping_at == T0 + MINUTE
    assert story.judged(T0 + 2 * MINUTE).expected_at == T0 + MINUTE + HOUR
    story.ping(T0 + 30_000, PingKind.FAIL, now=T0 + 2 * MINUTE)
    assert story.watch.health == Health.UP


def test_hb_081_an_outage_blames_nobody_within_the_first_grace() -> None:
    story = Story(expecting(period(HOUR), 300)).ping(T0)
    story.outages = [Outage(T0 + 10 * MINUTE, T0 + 130 * MINUTE)]

    assert story.wait(T0 + 130 * MINUTE).downs == []
    assert story.wait(T0 + 130 * MINUTE + HOUR + 299 * SECOND).downs == []
    assert story.wait(T0 + 130 * MINUTE + HOUR + 300 * SECOND).downs == [T0 + 130 * MINUTE + HOUR + 300 * SECOND]


def test_a_success_of_a_wrong_clock_does_not_put_off_the_verdict() -> None:
    story = Story(expecting(period(HOUR), 60)).ping(T0).ping(T0 + 30 * DAY)
    story.wait(T0 + MINUTE)

    assert story.wait(T0 + 2 * HOUR + 2 * MINUTE).watch.health == Health.DOWN


@pytest.mark.parametrize("after", [0, 1, HOUR])
def test_a_failure_that_comes_when_a_pause_is_over_counts(after: int) -> None:
    story = Story(expecting(period(HOUR), 60)).ping(T0)
    story.flips += pause(story.watch, T0 + MINUTE, T0 + HOUR)
    story.ping(T0 + HOUR + after, PingKind.FAIL)

    assert story.told == [Health.UP, "paused", Health.UP, Health.DOWN]
    assert [flip.at for flip in story.flips[2:]] == [T0 + HOUR, T0 + HOUR + after]


def test_hb_082_a_clock_that_jumps_forward_and_back() -> None:
    story = Story(expecting(period(HOUR), 60)).ping(T0)
    jumped = T0 + 3 * HOUR
    story.outages = outages_with_gap([], T0 + 5_000, jumped)
    story.wait(jumped).ping(jumped + 1_000, now=jumped + 1_000)
    story.ping(T0 + HOUR, now=T0 + HOUR)

    assert story.downs == []
    assert story.watch.last_ping_at == T0 + HOUR, "a ping from the future is replaced"
    assert story.watch.anchor == T0 + HOUR
    assert jumped - T0 > FUTURE_MS_MAX


# outages and slots


def test_a_slot_whose_ping_an_outage_may_have_swallowed_is_not_judged() -> None:
    story = Story(expecting(cron("0 2 * * *"), 600), T0 - DAY).ping(T0 - DAY + 2 * HOUR)
    story.ping(T0 + 2 * HOUR)
    slot = T0 + DAY + 2 * HOUR
    for outage in (
        Outage(slot, slot + 30_000),
        Outage(slot - HOUR, slot),
        Outage(slot + 300_000, slot + 300_000),
        Outage(slot + 300_000, slot + DAY // 2),
    ):
        story.outages = [outage]
        assert story.judged(slot + HOUR).health == Health.UP, outage
        assert story.judged(slot + HOUR).expected_at == slot + DAY
    for outage in (Outage(slot - HOUR, slot - 1), Outage(slot + 600_001, slot + 601_000)):
        story.outages = [outage]
        assert story.judged(slot + HOUR).health == Health.DOWN, outage


def test_an_outage_in_a_long_grace_moves_the_deadline_by_its_length() -> None:
    slot = T0 + 2 * HOUR
    story = Story(expecting(cron("0 2 * * *"), 6 * 3600), T0 - DAY).ping(T0 - HOUR)
    story.outages = [Outage(slot + HOUR, slot + HOUR + 20_000), Outage(slot + 6 * HOUR, slot + 6 * HOUR + 30_000)]
    down_at = slot + 6 * HOUR + 50_000

    assert story.judged(down_at - 1).down_at == down_at
    assert story.wait(down_at).downs == [down_at]
    story.outages = [Outage(slot + HOUR, slot + 5 * HOUR)]
    assert story.judged(slot + HOUR).expected_at == slot + DAY, "it took more than half of the grace"


def test_outages_that_overlap_count_once() -> None:
    slot = T0 + 2 * HOUR
    story = Story(expecting(cron("0 2 * * *"), 6 * 3600), T0 - DAY).ping(T0 - HOUR)
    story.outages = [
        Outage(slot + HOUR, slot + HOUR + 20_000),
        Outage(slot + HOUR + 10_000, slot + HOUR + 15_000),
        Outage(slot + HOUR + 15_000, slot + HOUR + 30_000),
    ]
    assert story.judged(T0).down_at == slot + 6 * HOUR + 30_000


@pytest.mark.parametrize("schedule", [period(HOUR), cron("0 * * * *")], ids=["period", "cron"])
@pytest.mark.parametrize("grace_s", [0, 60, 300, 1800])
def test_outages_time_and_again_never_hide_two_slots_in_a_row(schedule: Schedule, grace_s: int) -> None:
    """A server that is restarted at every full hour must not keep silence from being noticed for ever."""
    story = Story(expecting(schedule, grace_s)).ping(T0)
    story.outages = [Outage(T0 + n * HOUR - 10_000, T0 + n * HOUR + 10_000) for n in range(1, 100)]
    story.wait(T0 + 99 * HOUR)

    assert len(story.downs) == 1
    assert story.downs[0] <= T0 + 2 * HOUR + grace_s * SECOND + 40_000


def test_a_run_whose_end_may_have_come_in_an_outage_has_no_deadline() -> None:
    story = Story(expecting(period(DAY), 60)).ping(T0).ping(T0 + HOUR, PingKind.START)
    story.outages = [Outage(T0 + HOUR + 30_000, T0 + HOUR + 50_000)]

    assert story.judged(T0 + 2 * HOUR).health == Health.UP


def test_an_outage_that_goes_on_counts() -> None:
    assert outages_with_gap([], T0, T0 + GAP_MS) == []
    assert outages_with_gap([], T0, T0 + GAP_MS + 1) == [Outage(T0, T0 + GAP_MS + 1)]
    assert outages_with_gap([], None, T0) == []


# runs


def test_runs_that_overlap_are_told_apart() -> None:
    a, b = "7b0f3a52-5d6e-4c1a-9c88-2f4b6d8e0a13", "7b0f3a52-5d6e-4c1a-9c88-2f4b6d8e0a14"
    story = Story(expecting(period(DAY), 60, max_run_ms=10 * MINUTE)).ping(T0)
    story.ping(T0 + MINUTE, PingKind.START, rid=a).ping(T0 + 2 * MINUTE, PingKind.START, rid=b)
    story.ping(T0 + 5 * MINUTE, rid=b)

    assert story.durations[-1] == 3 * MINUTE
    assert story.wait(T0 + 15 * MINUTE).downs == [T0 + 11 * MINUTE]
    assert story.ping(T0 + 16 * MINUTE, rid=a).watch.health == Health.UP


def test_a_success_ends_the_wait_for_runs_that_should_have_ended_long_ago() -> None:
    """A machine that crashes in the middle of `0cron exec` never sends the end."""
    story = Story(expecting(period(DAY), 60, max_run_ms=10 * MINUTE)).ping(T0)
    story.ping(T0 + MINUTE, PingKind.START, rid="crashed").ping(T0 + 2 * MINUTE, PingKind.START, rid="swallowed")
    story.outages = [Outage(T0 + 5 * MINUTE, T0 + 5 * MINUTE)]
    story.ping(T0 + 20 * MINUTE, PingKind.START, rid="alive").ping(T0 + 25 * MINUTE, rid="other")

    assert list(story.watch.runs) == ["alive"]
    assert story.wait(T0 + 26 * MINUTE).watch.health == Health.UP


def test_a_run_that_ends_too_soon_has_failed() -> None:
    story = Story(expecting(period(DAY), 60, min_run_ms=10_000)).ping(T0)
    story.ping(T0 + MINUTE, PingKind.START).ping(T0 + MINUTE + 9_999)

    assert story.flips[-1].reason == FlipReason.TOO_SHORT
    story.ping(T0 + HOUR, PingKind.START).ping(T0 + HOUR + 10_000)
    assert story.watch.health == Health.UP


def test_a_monitor_remembers_no_more_runs_than_it_should() -> None:
    story = Story(expecting(period(DAY), 86_400))
    for number in range(OPEN_RUNS_MAX + 5):
        story.ping(T0 + number, PingKind.START, rid=f"run {number}")

    assert len(story.watch.runs) == OPEN_RUNS_MAX
    assert "run 0" not in story.watch.runs


def test_every_reason_has_a_sentence() -> None:
    assert FLIP_REASON_TEXTS.keys() == set(FlipReason)


# words

PERIODS = [
    ("every 5 minutes", 300_000, "every 5 minutes"),
    ("Every  7 minutes", 420_000, "every 7 minutes"),
    ("every 90 minutes", 5_400_000, "every 90 minutes"),
    ("every minute", 60_000, "every minute"),
    ("every day", DAY, "every day"),
    ("every week", 7 * DAY, "every 7 days"),
    ("every 24 hours", DAY, "every day"),
    ("toutes les 5 minutes", 300_000, "toutes les 5 minutes"),
    ("cada hora", HOUR, "cada hora"),
]


@pytest.mark.parametrize(("text", "ms", "words"), PERIODS)
def test_a_length_alone_is_a_period(text: str, ms: int, words: str) -> None:
    understood = understand_expected(text, timezone="Europe/Paris", now=T0)

    assert (understood.schedule.kind, understood.schedule.every_ms) == ("interval", ms)
    assert understood.schedule.timezone == "Europe/Paris"
    assert understood.warnings == ()
    assert describe_expected(understood.schedule, understood.language or "en") == words


@pytest.mark.parametrize("text", ["*/5 * * * *", "every day at 9am", "@hourly", "every weekday at noon"])
def test_what_names_times_keeps_to_the_clock(text: str) -> None:
    assert understand_expected(text, timezone="UTC", now=T0).schedule.kind == "cron"


@pytest.mark.parametrize(("text", "field"), [("every 0 minutes", "schedule"), ("nonsense", "schedule")])
def test_what_is_no_schedule_is_refused(text: str, field: str) -> None:
    with pytest.raises(Invalid) as refusal:
        understand_expected(text, timezone="UTC", now=T0)
    assert refusal.value.fields[0].field == field


def test_a_zone_that_does_not_exist_is_refused_for_a_period_too() -> None:
    with pytest.raises(Invalid) as refusal:
        understand_expected("every 5 minutes", timezone="Europe/Nowhere", now=T0)
    assert refusal.value.fields[0].field == "timezone"


# days


def test_days_count_up_and_down_and_leave_out_pauses() -> None:
    start = T0 - 12 * HOUR
    changes = [(T0 - 6 * HOUR, "down"), (T0 + HOUR, "up"), (T0 + 20 * HOUR, "paused")]
    days = uptime(changes, "up", start=start, now=T0 + 30 * HOUR, timezone="UTC")
    before = [(start - HOUR, "down"), (start, "up")]
    assert uptime([*before, *changes], "new", start=start, now=T0 + 30 * HOUR, timezone="UTC") == days

    assert [tuple(day) for day in days] == [
        ("2023-12-31", 6 * HOUR, 6 * HOUR, 1),
        ("2024-01-01", 19 * HOUR, HOUR, 0),
        ("2024-01-02", 0, 0, 0),
    ]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York", "Asia/Beirut"])
def test_so_many_days_ago_is_the_beginning_of_a_day(zone: str) -> None:
    """The clocks of Beirut skip midnight in spring."""
    now = at("2025-03-30T18:00:00Z")
    for days in (0, 1, 2, 6):
        start = days_ago(now, days, zone)
        found = uptime([], "up", start=start, now=now, timezone=zone)
        assert len(found) == days + 1
        assert all(22 * HOUR <= day.up_ms <= 25 * HOUR for day in found[:-1])
        assert now - DAY - HOUR < start + days * DAY <= now + HOUR


def test_a_day_on_which_the_clocks_change_has_its_own_length() -> None:
    start = at("2025-03-30T00:00:00+01:00")
    (day, _) = uptime([], "up", start=start, now=start + 23 * HOUR + 1, timezone="Europe/Berlin")

    assert (day.date, day.up_ms) == ("2025-03-30", 23 * HOUR)


# what always holds

kinds = st.sampled_from([*PingKind])
steps = st.lists(
    st.tuples(
        st.integers(1, 3 * HOUR),
        st.one_of(kinds, st.sampled_from(["wait", "pause", "resume"])),
        st.sampled_from([None, "a", "b"]),
    ),
    max_size=30,
)
expectations = st.builds(
    expecting,
    st.sampled_from([period(HOUR), period(5 * MINUTE), cron("0 * * * *"), cron("30 2 * * *", "Europe/Berlin")]),
    st.sampled_from([0, 1, 60, 3600, 86_400]),
    max_run_ms=st.sampled_from([None, MINUTE, DAY]),
    min_run_ms=st.sampled_from([None, MINUTE]),
    resume_on_ping=st.booleans(),
)


def told(expectation: Expectation, moves: list[tuple[int, str, str | None]], *, lazily: bool) -> Story:
    """The story of these moves; `lazily`: nobody looks between them."""
    story, now = Story(expectation), T0
    for pause_ms, what, rid in moves:
        now += pause_ms
        if not lazily:
            while (deadline := story.watch.deadline_at) is not None and deadline < now:
                story.wait(deadline)
        if what == "pause":
            story.wait(now - 1)
            story.flips += pause(story.watch, now)
        elif what == "resume":
            story.flips += resume(expectation, story.watch, now)
        elif what != "wait":
            story.ping(now, what, rid=rid)
    return story.wait(now)


@given(expectations, steps)
def test_flips_form_a_chain_in_the_order_of_time(
    expectation: Expectation, moves: list[tuple[int, str, str | None]]
) -> None:
    story = told(expectation, moves, lazily=False)
    before, since = str(Health.NEW), T0
    for flip in story.flips:
        assert flip.before == before
        assert flip.after != flip.before
        assert flip.previous_since == since
        assert flip.at >= since
        before, since = flip.after, flip.at
    assert story.watch.shown == before


@given(expectations, steps)
def test_whoever_looks_late_finds_the_same_downs(
    expectation: Expectation, moves: list[tuple[int, str, str | None]]
) -> None:
    eager, lazy = told(expectation, moves, lazily=False), told(expectation, moves, lazily=True)

    assert [(flip.at, flip.after) for flip in eager.flips] == [(flip.at, flip.after) for flip in lazy.flips]


@given(expectations, steps)
def test_a_deadline_is_never_later_than_the_next_change(
    expectation: Expectation, moves: list[tuple[int, str, str | None]]
) -> None:
    story = told(expectation, moves, lazily=False)
    if story.watch.status != MonitorStatus.ACTIVE or story.watch.health == Health.DOWN:
        return
    verdict = story.judged(T0)
    if verdict.down_at is not None:
        assert story.watch.deadline_at is not None
        assert story.watch.deadline_at <= verdict.down_at


@given(expectations, st.integers(0, DAY), st.integers(0, 3 * DAY), st.integers(1, 2 * DAY))
def test_no_silence_of_an_outage_makes_a_monitor_go_down(
    expectation: Expectation, last: int, begin: int, length: int
) -> None:
    story = Story(expectation).ping(T0 + last)
    story.outages = [Outage(T0 + begin, T0 + begin + length)]
    verdict = story.judged(T0 + 10 * DAY)

    if verdict.health == Health.DOWN:
        assert verdict.expected_at is not None
        assert verdict.down_at is not None
        (outage,), grace = story.outages, expectation.grace_ms
        if verdict.down_at >= outage.started_at and verdict.expected_at <= outage.ended_at:
            within = verdict.expected_at + grace - outage.started_at
            assert outage.started_at > verdict.expected_at + min(grace, PUNCTUAL_MS), "punctual pings still came"
            assert 2 * min(length, within) < grace, "half of the grace was left"
            assert verdict.down_at == verdict.expected_at + grace + length, "and that was all of it"
