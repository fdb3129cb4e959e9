"""Who is told what: examples of each rule, and what holds for every history."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.alerting import (
    EVENTS,
    JOB_DEFAULT,
    MONITOR_DEFAULT,
    NOTHING,
    Event,
    Notify,
    Subject,
    Told,
    checked,
    flipped,
    looked_at,
    notify_of_text,
    read_notify,
    read_told,
    reminder_at,
    run_ended,
    unheard,
    write_notify,
    write_told,
)
from zerocron.core.errors import Invalid
from zerocron.core.notice import EventKind

CHANNEL = "01999b6e-0c1d-7a52-9c07-1f6d6f0a4c11"
MINUTE = 60_000


def history(notify: Notify, results: str, *, disabled_at: int | None = None) -> list[str]:
    """What is told of runs that end so, a minute apart (`f` failed, `s` succeeded): one word for each, `-` for none."""
    told, words = NOTHING, []
    for number, result in enumerate(results):
        told, events = run_ended(
            notify,
            told,
            failed=result == "f",
            now=(number + 1) * MINUTE,
            disabled=number == disabled_at,
        )
        words.append("+".join(("again " if one.reminder else "") + one.kind.partition(".")[2] for one in events) or "-")
    return words


def test_a_failure_is_told_once_and_so_is_its_end() -> None:
    assert history(JOB_DEFAULT, "sffsssfs") == ["-", "failed", "-", "recovered", "-", "-", "failed", "recovered"]


def test_failures_in_a_row() -> None:
    notify = dataclasses.replace(JOB_DEFAULT, after_failures=3)
    assert history(notify, "ffsfffs") == ["-", "-", "-", "-", "-", "failed", "recovered"]


def test_failures_among_the_last_runs() -> None:
    """Two of four: one success among failures does not end it, and does not begin it anew."""
    notify = dataclasses.replace(JOB_DEFAULT, after_failures=2, out_of=4)
    assert history(notify, "fsfsfsssss") == ["-", "-", "failed", "-", "-", "-", "recovered", "-", "-", "-"]


def test_it_is_told_again_while_it_lasts() -> None:
    notify = dataclasses.replace(JOB_DEFAULT, remind_every=300)
    assert history(notify, "f" * 12) == ["failed", *["-"] * 4, "again failed", *["-"] * 4, "again failed", "-"]


def test_what_was_not_told_has_no_end() -> None:
    only_disabled = dataclasses.replace(JOB_DEFAULT, on=("recovered", "disabled"))
    assert history(only_disabled, "ffs") == ["-", "-", "-"]
    assert history(only_disabled, "ffs", disabled_at=1) == ["-", "disabled", "recovered"]


def test_a_job_that_is_disabled_by_its_failure_is_one_message() -> None:
    assert history(JOB_DEFAULT, "ff", disabled_at=1) == ["failed", "disabled"]
    assert history(dataclasses.replace(JOB_DEFAULT, on=("failed",)), "ff", disabled_at=1) == ["failed", "-"]


def test_successes_for_those_who_asked() -> None:
    notify = dataclasses.replace(JOB_DEFAULT, on=("failed", "recovered", "succeeded"))
    assert history(notify, "sfss") == ["succeeded", "failed", "recovered", "succeeded"]


def test_since_is_the_first_failure() -> None:
    told, _ = run_ended(dataclasses.replace(JOB_DEFAULT, after_failures=2), NOTHING, failed=True, now=5)
    told, events = run_ended(dataclasses.replace(JOB_DEFAULT, after_failures=2), told, failed=True, now=9)
    assert events == [Event(EventKind.JOB_FAILED, 5)]
    _, events = run_ended(JOB_DEFAULT, told, failed=False, now=12)
    assert events == [Event(EventKind.JOB_RECOVERED, 5)]


def test_what_nobody_heard_is_told_when_somebody_can() -> None:
    told, _ = run_ended(JOB_DEFAULT, NOTHING, failed=True, now=1)
    deaf = unheard(NOTHING, told)
    assert run_ended(JOB_DEFAULT, deaf, failed=False, now=2)[1] == []
    assert run_ended(JOB_DEFAULT, deaf, failed=True, now=2)[1] == [Event(EventKind.JOB_FAILED, 1)]
    assert unheard(told, told) == told


def test_a_monitor_is_told_of_once() -> None:
    told, events = flipped(MONITOR_DEFAULT, NOTHING, after="up", at=1, now=1)
    assert (told, events) == (NOTHING, [])
    told, events = flipped(MONITOR_DEFAULT, told, after="down", at=10, now=12)
    assert events == [Event(EventKind.MONITOR_DOWN, 10)]
    assert flipped(MONITOR_DEFAULT, told, after="down", at=11, now=12)[1] == []
    assert flipped(MONITOR_DEFAULT, told, after="paused", at=13, now=13) == (NOTHING, [])
    assert flipped(MONITOR_DEFAULT, told, after="up", at=14, now=15) == (NOTHING, [Event(EventKind.MONITOR_UP, 10)])


def test_a_monitor_that_stays_down_is_told_again() -> None:
    notify = dataclasses.replace(MONITOR_DEFAULT, remind_every=300)
    told, _ = flipped(notify, NOTHING, after="down", at=0, now=1_000)
    assert reminder_at(notify, told) == 301_000
    assert looked_at(notify, told, is_down=True, late_for=None, now=300_999)[1] == []
    told, events = looked_at(notify, told, is_down=True, late_for=None, now=301_000)
    assert events == [Event(EventKind.MONITOR_DOWN, 0, reminder=True)]
    assert reminder_at(notify, told) == 601_000
    assert looked_at(MONITOR_DEFAULT, told, is_down=True, late_for=None, now=10**9)[1] == []


def test_a_monitor_is_late_once_a_slot() -> None:
    notify = dataclasses.replace(MONITOR_DEFAULT, on=("down", "up", "late"))
    told, events = looked_at(notify, NOTHING, is_down=False, late_for=50, now=60)
    assert events == [Event(EventKind.MONITOR_LATE, 50)]
    assert looked_at(notify, told, is_down=False, late_for=50, now=70) == (told, [])
    assert looked_at(notify, told, is_down=False, late_for=99, now=100)[1]
    assert looked_at(MONITOR_DEFAULT, NOTHING, is_down=False, late_for=50, now=60) == (NOTHING, [])


@pytest.mark.parametrize(
    ("subject", "change", "field", "words"),
    [
        ("job", {"on": ("down",)}, "notify.on", "There is no event 'down'. A job has: failed, recovered"),
        ("monitor", {"on": ("up",)}, "notify.on", "'up' is told only after 'down' was"),
        ("job", {"on": ("recovered",)}, "notify.on", "add 'failed', or leave it out"),
        ("job", {"after_failures": 0}, "notify.after_failures", "1 to 100"),
        ("job", {"after_failures": 101}, "notify.after_failures", "1 to 100"),
        ("job", {"after_failures": 5, "out_of": 4}, "notify.out_of", "at least as many runs as `after_failures` has"),
        ("job", {"out_of": 101}, "notify.out_of", "at most 100"),
        ("job", {"remind_every": 299}, "notify.remind_every", "300 to 604800"),
        ("job", {"late_after": 0}, "notify.late_after", "1 to 86400"),
        ("job", {"channels": ("pager",)}, "notify.channels", "by its id"),
        ("job", {"channels": tuple(f"{CHANNEL[:-2]}{n:02}" for n in range(21))}, "notify.channels", "at most 20"),
    ],
)
def test_what_cannot_be_meant_is_refused(subject: Subject, change: dict[str, object], field: str, words: str) -> None:
    default = {"job": JOB_DEFAULT, "monitor": MONITOR_DEFAULT}[subject]
    with pytest.raises(Invalid, match=r".*") as refusal:
        checked(dataclasses.replace(default, **change), subject)  # type: ignore[arg-type]
    assert [fault.field for fault in refusal.value.fields] == [field]
    assert words in refusal.value.message


def test_its_canonical_form() -> None:
    given_so = Notify(("recovered", "failed", "failed"), channels=(CHANNEL, CHANNEL))
    assert checked(given_so, "job") == Notify(("failed", "recovered"), channels=(CHANNEL,))
    assert checked(Notify(()), "job") == Notify(())


notifies = st.builds(
    Notify,
    on=st.lists(st.sampled_from(EVENTS["job"]), unique=True).map(tuple),
    channels=st.none() | st.lists(st.just(CHANNEL), max_size=1).map(tuple),
    after_failures=st.integers(1, 4),
    out_of=st.none() | st.integers(4, 6),
    remind_every=st.none() | st.integers(300, 600),
)


@given(notifies)
def test_it_is_kept_and_read_back(notify: Notify) -> None:
    assert read_notify(write_notify(notify, "job"), "job") == notify
    assert write_notify(JOB_DEFAULT, "job") == {}
    assert notify_of_text("{}", "monitor") == MONITOR_DEFAULT
    assert read_notify({"from_the_future": 1}, "job") == JOB_DEFAULT


@given(st.builds(Told, st.text("01"), *[st.none() | st.integers(1, 10**13)] * 4))
def test_what_was_told_is_kept_and_read_back(told: Told) -> None:
    assert read_told(write_told(told)) == told
    assert write_told(NOTHING) == ""


@given(notifies, st.text("fs", max_size=60))
def test_every_history(notify: Notify, results: str) -> None:
    """Failures and recoveries take turns, nothing is told that nobody asked for, and the state stays small."""
    told, is_told = NOTHING, False
    for number, result in enumerate(results):
        now = (number + 1) * MINUTE
        told, events = run_ended(notify, told, failed=result == "f", now=now)
        assert len(told.recent) <= notify.runs_looked_at
        assert len(events) <= 1
        window = results[max(0, number + 1 - notify.runs_looked_at) : number + 1]
        is_failing = window.count("f") >= notify.after_failures
        for event in events:
            assert event.kind.partition(".")[2] in notify.on
            if event.kind == EventKind.JOB_FAILED:
                assert result == "f"
                assert event.reminder == is_told
                assert is_failing or event.reminder
                is_told = True
            elif event.kind == EventKind.JOB_RECOVERED:
                assert (result, is_told, is_failing) == ("s", True, False)
        if not is_failing and result == "s":
            is_told = False
        assert (told.told_at is not None) == is_told
    if "f" not in results:
        assert told == NOTHING, "who never failed costs nothing to remember"
