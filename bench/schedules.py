"""Schedules: how fast expressions are parsed and their next slots found, beside cronsim and croniter in the same run.

croniter is no dependency of ours: install it into the environment for its figures, else they are null. cronsim and
croniter know neither years nor wrapping ranges, so the mix has none.
"""

from __future__ import annotations

import contextlib
import importlib
import sqlite3
import time
from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim
from sqlalchemy import Connection, update

from bench.harness import Seed, Site, alone, arrivals, in_ledger, now_ms, report, seed, server, target, wait_until
from zerocron.core.errors import Invalid
from zerocron.core.schedule import Schedule, cron_parse, parse, reading, tzdata_version
from zerocron.core.schedule.cron_parse import compile_cron
from zerocron.core.understanding import describe, understand
from zerocron.engine.zonedata import FACT
from zerocron.storage.ledger import facts
from zerocron.storage.ledger.tables import jobs as job_rows

ZONES = ("UTC", "Europe/Paris", "America/New_York", "Asia/Tokyo", "Australia/Sydney")

MIX = (
    *("* * * * *", "*/5 * * * *", "*/15 * * * *", "*/10 9-17 * * 1-5", "0 * * * *", "30 * * * *"),
    *("0 */2 * * *", "15 */6 * * *", "0 0 * * *", "0 3 * * *", "30 2 * * *", "45 23 * * *"),
    *("0 9 * * 1-5", "0 9 * * MON-FRI", "30 17 * * 5", "0 8,12,18 * * *", "0 9-17 * * *", "0 6 * * 0"),
    *("0 0 1 * *", "0 4 1,15 * *", "0 12 L * *", "0 9 * * 1#1", "0 18 * * 5L", "0 0 1 1 *"),
    *("0 0 1 1,4,7,10 *", "30 6 1-7 * *", "0 5 29 2 *", "0 22 * 12 1-5", "5,35 8-20 * * *", "59 23 31 12 *"),
)
PHRASES = (
    *("every weekday at 9am", "every 15 minutes", "every 90 minutes", "tous les lundis à 8h30", "in 20 minutes"),
    *("el primer día de cada mes a las 9:00", "every 15 minutes between 9am and 5pm on weekdays", "evry day at 9am"),
)
REFUSED = ("twice a day", "every day at 25:00", "hello", "0 5 * * 1 root /usr/bin/backup.sh", "0 9 * * monday")
DAY_MS = 86_400_000
SECONDS = 0.5  # each figure is taken over at least so long


def schedules() -> None:
    """All figures; each is a number of operations per second of one core, which others may be using too."""
    after = now_ms()
    begun = datetime.fromtimestamp(after / 1000, UTC)
    walls = {zone: begun.astimezone(ZoneInfo(zone)) for zone in ZONES}
    pairs = [(text, ZONES[n % len(ZONES)]) for n, text in enumerate(MIX)]
    made = [parse(text, timezone=zone, now=after).schedule for text, zone in pairs]
    report(
        bench="schedules",
        mix=len(MIX),
        parse_and_next_per_second=_rate(len(pairs), lambda: [_parse_and_next(*pair, after) for pair in pairs]),
        parse_and_next_uncached_per_second=_rate(len(pairs), lambda: [_from_nothing(*pair, after) for pair in pairs]),
        next_per_second=_rate(len(made), lambda: [schedule.next_after(after) for schedule in made]),
        cronsim_parse_and_next_per_second=_rate(
            len(pairs), lambda: [next(CronSim(text, walls[zone])) for text, zone in pairs]
        ),
        croniter_parse_and_next_per_second=_croniter([(text, walls[zone]) for text, zone in pairs]),
    )
    report(
        bench="phrases",
        understood_per_second=_rate(len(PHRASES), lambda: [_outcome(text, after) for text in PHRASES]),
        refused_per_second=_rate(len(REFUSED), lambda: [_outcome(text, after) for text in REFUSED]),
        described_per_second=_rate(len(made), lambda: [describe(schedule, "fr") for schedule in made]),
    )
    restart()
    new_zone_data()


def restart(jobs: int = 100_000) -> None:
    """The next slots of many jobs, as after a restart: all alike from the mix, and no two alike."""
    after = now_ms()
    shared = [Schedule("cron", MIX[n % len(MIX)], None, None, ZONES[n % len(ZONES)]) for n in range(jobs)]
    distinct = [
        Schedule("cron", f"{n % 60} {n // 60 % 24} * * {n // 1440 % 7}", None, None, ZONES[n // 10_080 % len(ZONES)])
        for n in range(jobs)
    ]
    figures = {}
    for name, made in (("shared", shared), ("distinct", distinct)):
        compile_cron.cache_clear()
        cron_parse._day_masks.cache_clear()
        start = time.process_time()
        found = [schedule.next_after(after) for schedule in made]
        figures[f"{name}_seconds"] = round(time.process_time() - start, 3)
        if not all(slot is not None and slot > after for slot in found):
            raise AssertionError("a schedule of the mix has no next slot")
    report(bench="schedules_restart", jobs=jobs, **figures)


def new_zone_data(jobs: int = 100_000) -> None:
    """A start with other zone data than before, when one job is overdue: all others are computed again behind its back.

    `old_first_request_after_ms` is the same start with the same zone data, where nothing is computed.
    """
    figures: dict[str, int] = {}
    for name, known in (("old_", tzdata_version()), ("", "2000a")):
        with target() as port, alone() as site:
            overdue = now_ms() + 1_000
            far = [Seed(overdue + DAY_MS + n, DAY_MS) for n in range(jobs - 1)]
            seed(site, port, [Seed(overdue, DAY_MS), *far])
            in_ledger(site, lambda connection, known=known: _make_cron(connection, known))  # type: ignore[misc]
            wait_until(overdue)
            begun = now_ms()
            with server(site):
                while not (found := arrivals(port)):
                    time.sleep(0.01)
                figures[f"{name}first_request_after_ms"] = round(found[0][0] - begun)
                while _zone_data_of(site) != tzdata_version():
                    time.sleep(0.2)
                figures[f"{name}all_computed_after_ms"] = now_ms() - begun
    report(bench="new_zone_data", jobs=jobs, **figures)


def _zone_data_of(site: Site) -> str:
    """Read beside the server, which has the ledger to itself."""
    with contextlib.closing(sqlite3.connect(f"file:{site.folder / 'zerocron.db'}?mode=ro", uri=True)) as beside:
        return str(beside.execute("SELECT value FROM facts WHERE name = ?", (FACT,)).fetchone()[0])


def _make_cron(connection: Connection, known: str) -> None:
    connection.execute(
        update(job_rows).values(schedule_kind="cron", schedule_cron="0 3 * * *", timezone="Europe/Paris")
    )
    facts.put(connection, FACT, known)


def _parse_and_next(text: str, zone: str, after: int) -> int | None:
    return parse(text, timezone=zone, now=after).schedule.next_after(after)


def _from_nothing(text: str, zone: str, after: int) -> int | None:
    for cached in (compile_cron, cron_parse._day_masks, reading._read):
        cached.cache_clear()
    return _parse_and_next(text, zone, after)


def _outcome(text: str, after: int) -> object:
    try:
        return understand(text, now=after)
    except Invalid as refusal:
        return refusal


def _croniter(pairs: list[tuple[str, datetime]]) -> int | None:
    try:
        croniter = importlib.import_module("croniter").croniter
    except ImportError:
        return None
    pairs = [(text.replace("5L", "L5"), wall) for text, wall in pairs]  # its way to write the last Friday
    return _rate(len(pairs), lambda: [croniter(text, wall).get_next(datetime) for text, wall in pairs])


def _rate(size: int, work: Callable[[], object]) -> int:
    """Operations a second, where one call of `work` is `size` of them; the first call warms up."""
    work()
    calls, start = 0, time.process_time()
    while (passed := time.process_time() - start) < SECONDS:
        work()
        calls += 1
    return round(calls * size / passed)


if __name__ == "__main__":
    schedules()
