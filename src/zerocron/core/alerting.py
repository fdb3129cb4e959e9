"""Who is told what, and when it is said again.

Owns `notify`, what people want to be told of a job or a monitor, and `Told`, what they know already: the state from
which each further event is decided. Must never do I/O, never read a clock, and never know how an alert is delivered.

    job      failed     the last `after_failures` runs failed (with `out_of`: so many of the last `out_of`)
             recovered  that is no longer so, and the failure was told
             disabled, missed, late, succeeded
    monitor  down, up (if down was told), late

A state of affairs is told once. While it lasts it is told again every `remind_every` seconds, if that is set: for a
job when a run fails, for a monitor as time goes by.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import orjson

from zerocron.core.errors import Invalid
from zerocron.core.model import Instant, is_uuid
from zerocron.core.notice import EventKind

Subject = Literal["job", "monitor"]

JOB_EVENTS = ("failed", "recovered", "disabled", "missed", "late", "succeeded")
MONITOR_EVENTS = ("down", "up", "late")
EVENTS: Mapping[Subject, tuple[str, ...]] = {"job": JOB_EVENTS, "monitor": MONITOR_EVENTS}
JOB_ON = ("failed", "recovered", "disabled", "missed")
MONITOR_ON = ("down", "up")

GAP_MS = 60_000
"""From one message of a channel to the next, in the whole cluster."""

CHANNELS_NAMED_MAX = 20
RUNS_MAX = 100
"""The most runs that are looked back at."""

REMIND_SECONDS_MIN, REMIND_SECONDS_MAX = 300, 604_800
LATE_SECONDS = 60
LATE_SECONDS_MAX = 86_400


@dataclass(frozen=True, slots=True)
class Notify:
    """What people want to be told. `channels`: ids; None: all of the team, () nobody. `on`: names of events, in the
    order of `EVENTS`. `out_of` None: the failures count in a row. `remind_every`, `late_after`: seconds."""

    on: tuple[str, ...]
    channels: tuple[str, ...] | None = None
    after_failures: int = 1
    out_of: int | None = None
    remind_every: int | None = None
    late_after: int = LATE_SECONDS

    @property
    def runs_looked_at(self) -> int:
        return self.out_of or self.after_failures


JOB_DEFAULT = Notify(JOB_ON)
MONITOR_DEFAULT = Notify(MONITOR_ON)
DEFAULTS: Mapping[Subject, Notify] = {"job": JOB_DEFAULT, "monitor": MONITOR_DEFAULT}


def checked(notify: Notify, subject: Subject) -> Notify:
    """The same in its canonical form. Raises Invalid, which names the field."""
    known = EVENTS[subject]
    strange = sorted(set(notify.on) - set(known))
    if strange:
        raise Invalid(f"There is no event {strange[0]!r}. A {subject} has: {', '.join(known)}.", field="notify.on")
    on = tuple(name for name in known if name in notify.on)
    for ending, beginnings in (("recovered", ("failed", "disabled")), ("up", ("down",))):
        if ending in on and not set(beginnings) & set(on):
            raise Invalid(
                f"{ending!r} is told only after {beginnings[0]!r} was: add {beginnings[0]!r}, or leave it out.",
                field="notify.on",
            )
    if not 1 <= notify.after_failures <= RUNS_MAX:
        raise Invalid(f"Give 1 to {RUNS_MAX} failed runs.", field="notify.after_failures")
    if notify.out_of is not None and not notify.after_failures <= notify.out_of <= RUNS_MAX:
        raise Invalid(
            f"Give at least as many runs as `after_failures` has ({notify.after_failures}), and at most {RUNS_MAX}.",
            field="notify.out_of",
        )
    if notify.remind_every is not None and not REMIND_SECONDS_MIN <= notify.remind_every <= REMIND_SECONDS_MAX:
        raise Invalid(
            f"Give {REMIND_SECONDS_MIN} to {REMIND_SECONDS_MAX} seconds (five minutes to a week).",
            field="notify.remind_every",
        )
    if not 1 <= notify.late_after <= LATE_SECONDS_MAX:
        raise Invalid(f"Give 1 to {LATE_SECONDS_MAX} seconds.", field="notify.late_after")
    channels = notify.channels
    if channels is not None:
        channels = tuple(dict.fromkeys(channels))
        if len(channels) > CHANNELS_NAMED_MAX:
            raise Invalid(f"Name at most {CHANNELS_NAMED_MAX} channels.", field="notify.channels")
        for channel_id in channels:
            if not is_uuid(channel_id):
                raise Invalid("A channel is named by its id, as GET /v1/channels shows it.", field="notify.channels")
    return dataclasses.replace(notify, on=on, channels=channels)


def write_notify(notify: Notify, subject: Subject) -> dict[str, Any]:
    """What is not as by default, to be kept as JSON."""
    default = DEFAULTS[subject]
    return {name: part for name in Notify.__slots__ if (part := getattr(notify, name)) != getattr(default, name)}


def read_notify(kept: Mapping[str, Any], subject: Subject) -> Notify:
    """`write_notify` read back, also when it was written by a newer release."""
    default = DEFAULTS[subject]
    if not kept:
        return default
    given = {name: kept[name] for name in Notify.__slots__ if name in kept}
    given |= {name: tuple(given[name]) for name in ("on", "channels") if given.get(name) is not None}
    return dataclasses.replace(default, **given)


@lru_cache(maxsize=4096)
def notify_of_text(text: str, subject: Subject) -> Notify:
    """`read_notify` of JSON text."""
    return read_notify(json.loads(text), subject)


class Told(NamedTuple):
    """What is known of a subject's trouble, and what was said about it. A tuple, because a frozen dataclass is slow to
    change, and each flip changes it three times.

    `recent`: how the last runs ended, the newest last, `1` for a failure; those before the first failure are left
    out. `since`: when its trouble began. `told_at`: when that was told, None while it was not; `last_told_at`: the last
    time. `late_for`: the slot about which a monitor was called late.
    """

    recent: str = ""
    since: Instant | None = None
    told_at: Instant | None = None
    last_told_at: Instant | None = None
    late_for: Instant | None = None


NOTHING = Told()


def write_told(told: Told) -> str:
    """The text that is kept; empty for nothing."""
    if told == NOTHING:
        return ""
    return orjson.dumps({name: part for name, part in zip(Told._fields, told, strict=True) if part}).decode()


def read_told(text: str) -> Told:
    """`write_told` read back."""
    if not text:
        return NOTHING
    kept = json.loads(text)
    return Told(**{name: kept[name] for name in Told._fields if name in kept})


@dataclass(frozen=True, slots=True)
class Event:
    """Something to tell. `since`: when the state of affairs began that it is about."""

    kind: EventKind
    since: Instant | None = None
    reminder: bool = False


def run_ended(
    notify: Notify, told: Told, *, failed: bool, now: Instant, disabled: bool = False
) -> tuple[Told, list[Event]]:
    """What the end of a job's run changes, and what of it is to be told. `disabled`: by this failure."""
    recent = (told.recent + ("1" if failed else "0"))[-notify.runs_looked_at :].lstrip("0")
    since = (told.since or now) if failed else told.since
    after = told._replace(recent=recent, since=since if recent else None)
    is_failing = recent.count("1") >= notify.after_failures
    if not failed:
        if is_failing or told.told_at is None:
            return after, _wanted(notify, Event(EventKind.JOB_SUCCEEDED))
        recovered = _wanted(notify, Event(EventKind.JOB_RECOVERED, told.since))
        known = after._replace(told_at=None, last_told_at=None)
        return known, recovered or _wanted(notify, Event(EventKind.JOB_SUCCEEDED))
    events: list[Event] = []
    if disabled:
        events = _wanted(notify, Event(EventKind.JOB_DISABLED, since))
    if not events and is_failing and told.told_at is None:
        events = _wanted(notify, Event(EventKind.JOB_FAILED, since))
    if not events and reminder_due(notify, told, now):
        events = _wanted(notify, Event(EventKind.JOB_FAILED, since, reminder=True))
    return (_said(after, now) if events else after), events


def flipped(notify: Notify, told: Told, *, after: str, at: Instant, now: Instant) -> tuple[Told, list[Event]]:
    """What a monitor's flip changes, and what of it is to be told. `after`: what it shows from `at` on.

    Whoever pauses a monitor knows of its trouble: what was told is forgotten.
    """
    if after == "down":
        if told.told_at is not None:
            return told, []
        events = _wanted(notify, Event(EventKind.MONITOR_DOWN, at))
        known = told._replace(since=at)
        return (_said(known, now) if events else known), events
    if after == "paused" or told.told_at is None:
        return NOTHING, []
    return NOTHING, _wanted(notify, Event(EventKind.MONITOR_UP, told.since))


def looked_at(
    notify: Notify, told: Told, *, is_down: bool, late_for: Instant | None, now: Instant
) -> tuple[Told, list[Event]]:
    """What is to be told of a monitor because time went by. `late_for`: the slot whose ping is overdue, if one is."""
    if is_down and told.told_at is None and told.since is not None:  # nobody could be told when it began
        events = _wanted(notify, Event(EventKind.MONITOR_DOWN, told.since))
        return (_said(told, now) if events else told), events
    if is_down and reminder_due(notify, told, now):
        return told._replace(last_told_at=now), _wanted(
            notify, Event(EventKind.MONITOR_DOWN, told.since, reminder=True)
        )
    if late_for is not None and late_for != told.late_for:
        events = _wanted(notify, Event(EventKind.MONITOR_LATE, late_for))
        return (told._replace(late_for=late_for) if events else told), events
    return told, []


def reminder_due(notify: Notify, told: Told, now: Instant) -> bool:
    """Whether a trouble that was told is to be told again."""
    at = reminder_at(notify, told)
    return at is not None and at <= now


def reminder_at(notify: Notify, told: Told) -> Instant | None:
    """When a trouble is to be told again, if it lasts; None: never."""
    if told.told_at is None or told.last_told_at is None or notify.remind_every is None:
        return None
    return told.last_told_at + notify.remind_every * 1000


def unheard(before: Told, after: Told) -> Told:
    """The state when there was no channel to tell by: what begins now is told as soon as there is one."""
    return after._replace(told_at=None, last_told_at=None) if before.told_at is None else after


def wants(notify: Notify, kind: EventKind) -> bool:
    """Whether people asked to be told of events of this kind."""
    return kind.partition(".")[2] in notify.on


def _said(told: Told, now: Instant) -> Told:
    return told._replace(told_at=told.told_at or now, last_told_at=now)


def _wanted(notify: Notify, event: Event) -> list[Event]:
    return [event] if wants(notify, event.kind) else []
