"""docs/schedules.md, made from the tables of core/schedule and core/phrases and computed by them: it cannot lie.

Owns what a user is told about schedules, and in which order. Every meaning, time and refusal on the page is what the
code answers at the moment the page is made; examples that the code does not understand stop it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from zerocron.core.errors import Invalid
from zerocron.core.phrases import LANGUAGES, describe_interval
from zerocron.core.phrases.fields import ALL_MONTHS, ALL_WEEKDAYS, of_cron
from zerocron.core.schedule import DayMatch, DstPolicy, Schedule, clock_changes
from zerocron.core.schedule.cron_parse import NICKNAMES
from zerocron.core.schedule.zones import segment_at
from zerocron.core.understanding import Understood, describe, understand

NOW: Final = int(datetime(2026, 11, 29, 12, 0, tzinfo=UTC).timestamp()) * 1000
DAY_MS: Final = 86_400_000
MADE: Final = "<!-- Made by `make docs`; do not edit. -->\n\n"
LANGUAGE_NAMES: Final = {"en": "English", "fr": "French", "es": "Spanish"}

FORMS: Final = (
    ("`*`, `5`, `1-5`, `1,15`", "all, one, a range, a list", "0 9 1,15 * *"),
    ("`*/15`, `10-50/20`, `5/20`", "steps: of all, of a range, from a value to the end", "5/20 9 * * *"),
    ("`FRI-MON`, `22-2`", "a range over the end of the week, or of the day", "0 22-2 * * *"),
    ("`MON`, `jan`", "names, in any case; Sunday is 0 or 7", "0 9 * jan mon"),
    ("`L`, `LW` as day of month", "the last day, the last weekday (Monday to Friday) of the month", "0 9 LW * *"),
    ("`15W` as day of month", "the weekday nearest to the 15th, within the month", "0 9 15W * *"),
    ("`5L`, `MON#2` as day of week", "the last Friday, the second Monday of the month", "0 9 * * MON#2"),
    ("`?` as a day", "the same as `*`", "0 9 ? * MON"),
    ("six fields", "the first is the second", "30 0 9 * * *"),
    ("seven fields", "the first is the second, the last the year", "0 0 9 1 1 ? 2030"),
)

POLICIES: Final[dict[DstPolicy, str]] = {
    "run_once": "What a gap swallows runs once, right after it; what comes twice runs the first time (Debian's cron).",
    "skip": "What a gap swallows does not run; what comes twice runs the first time.",
    "run_both": "What a gap swallows runs once, right after it; what comes twice runs both times.",
}

# A phrase is shown under the first of these that fits what it means.
GROUPS: Final = (
    "Times of the day",
    "Days of the week",
    "Days of the month and of the year",
    "Again and again",
    "Time zones",
    "Intervals",
    "Once",
)
SHOWN_KINDS: Final = ("CLAUSE", "EXACT", "TIME", "HOUR", "DAYS", "GROUP")


def schedules_page() -> str:
    """The whole page."""
    parts = (_beginning(), _phrases(), _cron(), _intervals(), _instants(), _clocks(), _refusals())
    return MADE + "\n".join(line for part in parts for line in part) + "\n"


def _beginning() -> Iterator[str]:
    yield "# Schedules\n"
    yield "A schedule is typed into one box: plain language, a cron expression, an interval, or one date and time.\n"
    yield from _table(
        ("typed", "understood as", "in words"),
        (
            _example(text)
            for text in (
                "every weekday at 9am Paris time",
                "0 9 * * 1-5",
                "@daily",
                "every 90 minutes",
                "in 20 minutes",
            )
        ),
    )
    yield (
        '`0cron preview "every weekday at 9am" --tz Europe/Paris` shows what a schedule means and when it runs next, '
        "before a job\nhas it, and `POST /v1/schedules/preview` does the same. Nothing is guessed in silence: what is "
        "assumed is shown as a warning,\nand what is not exactly one schedule is refused with schedules that come "
        "near.\n"
    )
    yield f"On this page it is {datetime.fromtimestamp(NOW / 1000, UTC):%A, %d %B %Y, %H:%M} UTC.\n"


# ---- plain language --------------------------------------------------------------------------------------------------


def _phrases() -> Iterator[str]:
    yield "## Plain language\n"
    yield (
        "English, French and Spanish; the language is found by itself. Capitals and accents do not matter, and one "
        "wrong letter\nin a word is corrected, visibly:\n"
    )
    yield from _table(("typed", "understood as", "warnings"), (_with_warnings(text) for text in _SHOWN_WARNINGS))
    yield "Without a time of day it is 00:00. A rhythm that cron cannot say exactly is an [interval](#intervals).\n"
    for code, name in LANGUAGE_NAMES.items():
        yield f"### {name}\n"
        grouped: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
        for phrase, found in _examples(code):
            grouped[_group(found)].append((f"`{phrase}`", _meaning(found.schedule)))
        for group, rows in grouped.items():
            if rows:
                yield from _table((group.lower(), "understood as"), rows)


_SHOWN_WARNINGS: Final = ("evry day at 9am", "at 9:00", "on the 31st at noon", "every 15 minutes between 9am and 5pm")


def _examples(code: str) -> Iterator[tuple[str, Understood]]:
    """The first example of each row of a table, as far as it is understood; each phrase once."""
    shown: set[str] = set()
    for row in LANGUAGES[code].rows:
        phrase, wanted = row.examples[0].split(" => ")
        if row.kind not in SHOWN_KINDS or wanted.startswith("no ") or phrase in shown:
            continue
        shown.add(phrase)
        yield phrase, understand(phrase, language=code, now=NOW)


def _group(found: Understood) -> str:
    schedule = found.schedule
    if schedule.timezone != "UTC":
        return "Time zones"
    if schedule.kind != "cron":
        return "Intervals" if schedule.kind == "interval" else "Once"
    meant = of_cron(schedule.compiled())
    if meant is None:
        raise AssertionError("a phrase means sets")
    if meant.wild:
        return "Again and again"
    if meant.months != ALL_MONTHS or meant.nth or len(meant.dates) < 31:
        return "Days of the month and of the year"
    return "Days of the week" if meant.weekdays != ALL_WEEKDAYS else "Times of the day"


# ---- cron ------------------------------------------------------------------------------------------------------------


def _cron() -> Iterator[str]:
    yield "## Cron\n"
    yield "Five fields: minute, hour, day of month, month, day of week.\n"
    yield from _table(
        ("form", "means", "example", "in words"),
        ((form, means, f"`{text}`", _words(understand(text, now=NOW).schedule)) for form, means, text in FORMS),
    )
    yield from _table(
        ("nickname", "is", "in words"),
        (
            (f"`{name.lower()}`", f"`{cron}`", _words(understand(name, now=NOW).schedule))
            for name, cron in NICKNAMES.items()
        ),
    )
    yield (
        "When day of month and day of week are both restricted, `day_match` says what that means. `either`, the "
        "default, is Debian's\nrule: one of them is enough, unless one begins with `*`; the job carries a warning. "
        "`both` wants both.\n"
    )
    rules: tuple[DayMatch, ...] = ("either", "both")
    yield from _table(
        ("`0 9 13 * FRI`", "the next days"),
        ((f"`{rule}`", _next_days(understand("0 9 13 * FRI", now=NOW, day_match=rule).schedule)) for rule in rules),
    )
    yield "A schedule that can never fire is refused:\n"
    yield from _refused_table(("0 0 31 2 *", "0 0 0 1 1 ? 2020"))
    yield (
        "A line pasted whole from a crontab is recognised and explained; a zone in front of an expression is taken:\n"
        "`CRON_TZ=Europe/Paris 0 5 * * 1` is "
        f"{_words(understand('CRON_TZ=Europe/Paris 0 5 * * 1', now=NOW).schedule)}.\n"
    )
    yield from _refused_table(
        ("0 5 * * 1 root /usr/bin/backup.sh", "@daily curl https://example.org/run", "0 9 * * 1 # weekly")
    )


def _next_days(schedule: Schedule) -> str:
    return ", ".join(f"{_wall(slot, schedule.timezone):%a %d %b %Y}" for slot in _next(schedule, 4))


# ---- intervals and instants ------------------------------------------------------------------------------------------


def _intervals() -> Iterator[str]:
    yield "## Intervals\n"
    yield (
        "Where cron cannot say a rhythm exactly (it starts again each hour, day or month), it is an interval: from one "
        "second to 366\ndays, counted from the moment the job was created or its schedule changed. The first slot "
        "comes one interval after that. It\ndoes not drift, and keeps its beat over restarts. It counts real time, so "
        "an interval of days shifts by an hour on the wall\nclock when the clocks change.\n"
    )
    yield from _table(
        ("typed", "the next slots of a job created now"),
        (
            (f"`{text}`", ", ".join(f"{_wall(slot, 'UTC'):%a %H:%M:%S}" for slot in _next(_schedule(text), 3)))
            for text in ("every 90 minutes", "every 45 seconds", "every 2 days", "every hour and a half")
        ),
    )


def _instants() -> Iterator[str]:
    yield "## Single instants\n"
    yield (
        "A job with one instant runs once and is then `completed`. After a downtime the job's `catchup` decides, as "
        "for any other slot.\n"
    )
    texts = (
        *("2027-01-01 09:00", "2027-01-01T09:00:00Z", "2027-01-01 09:00+05:30", "tomorrow at 9am"),
        *("on 3 March 2027 at 10:00", "in 20 minutes"),
    )
    yield from _table(
        ("typed, in the time zone Europe/Paris", "runs at"),
        (
            (f"`{text}`", f"{_wall(slot, 'UTC'):%Y-%m-%d %H:%M} UTC")
            for text in texts
            for slot in _next(understand(text, timezone="Europe/Paris", now=NOW).schedule, 1)
        ),
    )


# ---- time zones and clock changes ------------------------------------------------------------------------------------

ZONE: Final = "Europe/Paris"
DAYS: Final = (datetime(2027, 3, 28, tzinfo=UTC), datetime(2027, 10, 31, tzinfo=UTC))


def _clocks() -> Iterator[str]:
    yield "## Time zones and clock changes\n"
    yield (
        "`timezone` is an IANA name such as Europe/Paris, UTC by default. A zone in the schedule (`at 9am Paris time`) "
        "sets it; two\ndifferent ones are refused, and so are abbreviations. The zone data is part of 0cron, so that "
        "all machines agree; after an\nupgrade with new rules the next slots are computed again in the background.\n"
    )
    yield "When the clocks change, `dst` decides about fixed times of the day:\n"
    yield from _table(("`dst`", ""), ((f"`{name}`", means) for name, means in POLICIES.items()))
    yield (
        f"In {ZONE} the clocks go from 02:00 to 03:00 on {DAYS[0]:%d %B %Y}, and from 03:00 to 02:00 on "
        f"{DAYS[1]:%d %B %Y}. In brackets:\nhow far they are ahead of UTC.\n"
    )
    texts = ("30 2 * * *", "0 2,3 * * *", "0 30 2 * * *", "*/30 2 * * *")
    yield from _table(
        ("schedule", "`dst`", *(f"runs on {day:%d %B}" for day in DAYS)),
        ((f"`{text}`", f"`{dst}`", *(_runs_on(day, text, dst) for day in DAYS)) for text in texts for dst in POLICIES),
    )
    yield (
        "- However many times a gap swallows, one run makes them good; a slot right after the gap is that run.\n"
        "- A gap of more than three hours is a correction of the calendar (Samoa left out a day in 2011): nothing is "
        "made good.\n"
        "- A schedule whose minute or hour begins with `*` is a rhythm and follows the wall clock under every policy: "
        "every 15\n  minutes stays every 15 minutes, through both passes of a repeated hour.\n"
        "- A fixed time with a second field is taken literally under `run_once`, as no cron has a rule for it: not in "
        "a gap, both\n  times when it is repeated. Where that matters the job carries a warning. The other policies "
        "hold for it too.\n"
        "- Intervals and single instants count real time; no policy touches them.\n"
    )
    yield "The preview names the days of the next two years on which this matters:\n"
    yield from _table(
        ("`30 2 * * *` in Europe/Paris", "`run_once`"),
        (
            (f"{change.local_date:%a %d %b %Y}", change.effect)
            for change in clock_changes(understand("30 2 * * *", timezone=ZONE, now=NOW).schedule, after=NOW)
        ),
    )


def _runs_on(day: datetime, text: str, dst: DstPolicy) -> str:
    """The slots of a local day, as the wall clock shows them; its second pass of an hour has the smaller offset."""
    schedule = understand(text, timezone=ZONE, now=NOW, dst=dst).schedule
    noon = round((day + timedelta(hours=12)).timestamp()) * 1000
    slots = schedule.latest_between(noon - DAY_MS, noon, 50)
    today = [slot for slot in slots if _wall(slot, ZONE).date() == day.date()]
    return ", ".join(f"{_wall(slot, ZONE):%H:%M} ({_offset(slot)})" for slot in today) or "not at all"


def _offset(slot: int) -> str:
    return f"{segment_at(ZONE, slot // 1000).offset // 3600:+d} h"


# ---- refusals --------------------------------------------------------------------------------------------------------


def _refusals() -> Iterator[str]:
    yield "## What is refused, and why\n"
    yield (
        "A refusal says why and proposes what comes near; each proposal can be used as it is. `twice a day` alone is "
        "refused, as it\nnames no times: both `every 12 hours` and two named times are twice a day. With times it is "
        f"understood: `twice a day at 8:00\nand 18:00` is {_meaning(_schedule('twice a day at 8:00 and 18:00'))}.\n"
    )
    yield from _refused_table(("twice a day", "at 7", "every day at 25:00", *_refused_examples()))


def _refused_examples() -> Iterator[str]:
    """One phrase for each reason: the first example of a row of the English table that is refused."""
    reasons = {"which_times", "ambiguous_time", "unknown_word", "bad_time"}  # shown already, or by everything else
    for row in LANGUAGES["en"].rows:
        for example in row.examples:
            phrase, wanted = example.split(" => ")
            if wanted.startswith("no ") and wanted not in reasons and (reason := wanted[3:]) not in reasons:
                reasons.add(reason)
                yield phrase


def _refused_table(texts: Iterable[str]) -> Iterator[str]:
    return _table(("typed", "why not", "instead"), (_refused(text) for text in texts))


def _refused(text: str) -> tuple[str, str, str]:
    try:
        understand(text, now=NOW)
    except Invalid as refusal:
        return f"`{text}`", refusal.message, ", ".join(f"`{suggestion}`" for suggestion in refusal.suggestions)
    raise AssertionError(f"{text} is understood")


# ---- small parts -----------------------------------------------------------------------------------------------------


def _schedule(text: str) -> Schedule:
    return understand(text, now=NOW).schedule


def _example(text: str) -> tuple[str, str, str]:
    schedule = _schedule(text)
    return f"`{text}`", _meaning(schedule), _words(schedule)


def _with_warnings(text: str) -> tuple[str, str, str]:
    found = understand(text, now=NOW)
    return f"`{text}`", _meaning(found.schedule), " ".join(found.warnings)


def _meaning(schedule: Schedule) -> str:
    """What a schedule is, in one cell."""
    zone = "" if schedule.timezone == "UTC" else f", {schedule.timezone}"
    if schedule.kind == "cron":
        return f"`{schedule.cron}`{zone}"
    if schedule.every_ms is not None:
        return f"{describe_interval(schedule.every_ms, 'en')}, as an interval"
    return f"once, {_wall(schedule.at or 0, schedule.timezone):%Y-%m-%d %H:%M}{zone}"


def _words(schedule: Schedule) -> str:
    return describe(schedule).removesuffix(" (UTC)").replace(", UTC)", ")")


def _wall(slot: int, zone: str) -> datetime:
    """What the clocks of a zone show; the zone of the answer is only nominal."""
    second = slot // 1000
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second + segment_at(zone, second).offset)


def _next(schedule: Schedule, count: int) -> list[int]:
    found: list[int] = []
    slot = schedule.next_after(NOW)
    while slot is not None and len(found) < count:
        found.append(slot)
        slot = schedule.next_after(slot)
    return found


def _table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield _row(headings)
    yield "|" + "---|" * len(headings)
    for cells in rows:
        yield _row(cells)
    yield ""


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
