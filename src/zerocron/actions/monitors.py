"""The verbs on monitors: create, edit, pause, resume, rotate the token, delete; and what can be read of them.

Owns the meaning of each verb. Each is one transaction that holds the monitor's row, so that a verb, a ping and the
passing of time come one after the other; the timetable is told afterwards and may be told wrong.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy import Connection

from zerocron.actions.channels import check_named
from zerocron.actions.idempotency import Once, make, still_there
from zerocron.actions.ping_tokens import TokenDirectory
from zerocron.actions.schedules import given_timezone, read, spoken
from zerocron.clock import Clock
from zerocron.core.access import SERVER, Actor
from zerocron.core.alerting import MONITOR_DEFAULT, Notify, checked, read_notify, write_notify
from zerocron.core.auditing import changes
from zerocron.core.errors import Conflict, Invalid, NotFound
from zerocron.core.ids import new_id
from zerocron.core.instants import to_rfc3339
from zerocron.core.model import Instant, is_uuid
from zerocron.core.monitor import (
    GRACE_SECONDS,
    JUDGED_AFTER_MS,
    PAUSED,
    Day,
    Expectation,
    Flip,
    FlipReason,
    Health,
    Monitor,
    Outage,
    Verdict,
    Watch,
    advance,
    days_ago,
    judge,
    pause,
    resume,
    uptime,
)
from zerocron.core.monitor_schedule import understand_expected
from zerocron.core.phrases import Code as Language
from zerocron.core.recent import Recent
from zerocron.core.schedule import DayMatch, DstPolicy, Schedule
from zerocron.core.understanding import DEFAULT_TIMEZONE, Understood
from zerocron.storage.ledger import audit, glances
from zerocron.storage.ledger import monitors as monitor_rows
from zerocron.storage.ledger import ping_tokens as token_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.monitors import FlipRow, PingRow
from zerocron.storage.ledger.scheduled import Place
from zerocron.storage.ledger.telling import tell_flips
from zerocron.storage.timetable.contract import Timetable, monitor_member
from zerocron.storage.timetable.horizon import in_step, point_at, put_near

log = structlog.get_logger(__name__)
_told = Recent()

DAY_MS = 86_400_000
PAUSE_MS_MAX = 366 * DAY_MS
FLIPS_READ_MAX = 10_000
FLIPS_READ_OF_MANY_MAX = 500
UPTIMES_MAX = 100
PAGES_JUDGED_MAX = 5
"""So many pages of monitors are judged for one page of those that show what is asked for."""


@dataclass(frozen=True, slots=True)
class MonitorSpec:
    """Everything a user may write about a monitor. Types and sizes are checked before; meanings are checked here."""

    name: str
    schedule: str
    timezone: str | None = None
    """None: not given, so that a zone named in the schedule sets it; else UTC."""
    grace_period_seconds: int = GRACE_SECONDS
    max_duration_seconds: int | None = None
    min_duration_seconds: int | None = None
    post_only: bool = False
    resume_on_ping: bool = True
    tags: tuple[str, ...] = ()
    dst: DstPolicy = "run_once"
    day_match: DayMatch = "either"
    notify: Notify = MONITOR_DEFAULT
    language: Language | None = None
    """Of the schedule as typed; None: whichever understands it."""

    @classmethod
    def of(cls, monitor: Monitor) -> MonitorSpec:
        """The specification a monitor has now, for an edit to start from."""
        expectation = monitor.expectation
        return cls(
            name=monitor.name,
            schedule=monitor.schedule_text,
            timezone=given_timezone(expectation.schedule),
            grace_period_seconds=expectation.grace_ms // 1000,
            max_duration_seconds=_seconds(expectation.max_run_ms),
            min_duration_seconds=_seconds(expectation.min_run_ms),
            post_only=monitor.post_only,
            resume_on_ping=expectation.resume_on_ping,
            tags=monitor.tags,
            dst=expectation.schedule.dst,
            day_match=expectation.schedule.day_match,
            notify=read_notify(monitor.notify, "monitor"),
        )


@dataclass(frozen=True, slots=True)
class Seen:
    """A monitor as it stands at this moment, and its token for whoever owns it; empty when it cannot be opened."""

    monitor: Monitor
    verdict: Verdict
    token: str


class Monitors:
    """Verbs on the monitors of a team. Another team's monitor is not there. `by`: who asked, for the audit log."""

    def __init__(self, *, ledger: Ledger, timetable: Timetable, clock: Clock, tokens: TokenDirectory) -> None:
        self._ledger = ledger
        self._timetable = timetable
        self._clock = clock
        self._tokens = tokens

    async def create(
        self, team_id: str, spec: MonitorSpec, idempotency_key: str | None = None, *, by: Actor = SERVER
    ) -> tuple[Seen, bool]:
        """The new monitor and True; or the one this idempotency key made before and False.

        Raises Invalid, Conflict.
        """
        now = self._clock.now()
        once = Once.of(team_id, "monitors.create", idempotency_key, dataclasses.asdict(spec))
        try:
            monitor = self._build(team_id, spec, now)
        except Invalid:
            # An instant that was to come when the monitor was made may be past when the request is repeated.
            earlier = await self._ledger.read(once.earlier)
            if earlier is None:
                raise
            return await self.get(team_id, earlier), False

        def transaction(connection: Connection) -> tuple[Monitor, bool]:
            earlier = once.claim(connection, monitor.id, now)
            if earlier is not None:
                return still_there(monitor_rows.get(connection, team_id, earlier), "monitor"), False
            check_named(connection, team_id, spec.notify)
            monitor_rows.insert(connection, monitor)
            _, made = changes(dataclasses.asdict(MonitorSpec("", "")), dataclasses.asdict(spec))
            audit.record_of(connection, "monitor", monitor, "create", by, now, after=made)
            token_rows.date(connection, monitor.id)
            return monitor, True

        def look_up(connection: Connection) -> tuple[Monitor, bool] | None:
            found = monitor_rows.get(connection, team_id, monitor.id)
            return None if found is None else (found, True)

        made, is_new = await make(self._ledger, transaction, look_up)
        self._tokens.learn([(made.id, made.token_hash, True)])
        return self._seen(made), is_new

    async def get(self, team_id: str, monitor_id: str) -> Seen:
        """Raises NotFound."""
        now = self._clock.now()

        def transaction(connection: Connection) -> tuple[Monitor, Verdict]:
            monitor = _existing(connection, team_id, monitor_id, lock=False)
            return monitor, verdicts(connection, [monitor], now)[0]

        monitor, verdict = await self._ledger.read(transaction)
        return Seen(monitor, verdict, self._token(monitor))

    async def page(
        self,
        team_id: str,
        *,
        status: str | None = None,
        health: str | None = None,
        state: str | None = None,
        tag: str | None = None,
        text: str | None = None,
        sort: str = "-created_at",
        before: Place | None = None,
        limit: int = 50,
    ) -> tuple[list[Seen], Place | None]:
        """(monitors in the order of `sort`, the place of the last one that was looked at; None: there are no more).

        `state` is what a monitor shows, which has to be judged: where few of many do, the page may not be full.
        """
        now = self._clock.now()

        def transaction(connection: Connection) -> tuple[list[tuple[Monitor, Verdict]], Place | None]:
            shown: list[tuple[Monitor, Verdict]] = []
            place = before
            for _ in range(PAGES_JUDGED_MAX):
                found = monitor_rows.page(
                    connection,
                    team_id,
                    status=status,
                    health=health,
                    state=None if state is None else glances.may_show(state, now),
                    tag=tag,
                    text=text,
                    sort=sort,
                    before=place,
                    limit=limit + 1,
                )
                looked_at = found[:limit]
                judged = verdicts(connection, [monitor for _, monitor in looked_at], now)
                for (key, monitor), verdict in zip(looked_at, judged, strict=True):
                    if len(shown) == limit:
                        return shown, place
                    place = (key, monitor.id)
                    if state is None or shown_now(monitor, verdict) == state:
                        shown.append((monitor, verdict))
                if len(found) <= limit:
                    return shown, None
                if len(shown) == limit:
                    break
            return shown, place

        found, following = await self._ledger.read(transaction)
        return [Seen(monitor, verdict, self._token(monitor)) for monitor, verdict in found], following

    async def edit(
        self, team_id: str, monitor_id: str, change: Callable[[MonitorSpec], MonitorSpec], *, by: Actor = SERVER
    ) -> Seen:
        """Apply a change to the monitor as it is, and judge it anew. Raises NotFound, Invalid."""
        now = self._clock.now()

        def changed(connection: Connection, monitor: Monitor) -> tuple[Monitor, list[Flip]]:
            before = MonitorSpec.of(monitor)
            spec = change(before)
            if spec == before:
                return monitor, []
            edited = _rebuilt(monitor, spec, before, now)
            if spec.notify != before.notify:
                check_named(connection, team_id, spec.notify)
            outages = monitor_rows.known_outages(connection, _begun(monitor.watch, now), now)
            return edited, advance(edited.expectation, edited.watch, now, outages, because=FlipReason.EDITED)

        return await self._change(team_id, monitor_id, changed, "edit", by, now)

    async def pause(self, team_id: str, monitor_id: str, until: Instant | None = None, *, by: Actor = SERVER) -> Seen:
        """Judge it no more, until an instant if one is given. Raises NotFound, Invalid."""
        now = self._clock.now()
        if until is not None and not now < until <= now + PAUSE_MS_MAX:
            raise Invalid("Give an instant that is still to come, within a year.", field="until")
        return await self._change(
            team_id,
            monitor_id,
            lambda _connection, monitor: (monitor, pause(monitor.watch, now, until)),
            "pause",
            by,
            now,
        )

    async def resume(self, team_id: str, monitor_id: str, *, by: Actor = SERVER) -> Seen:
        """Judge it again, from now on. Raises NotFound."""
        now = self._clock.now()
        return await self._change(
            team_id,
            monitor_id,
            lambda _connection, monitor: (monitor, resume(monitor.expectation, monitor.watch, now)),
            "resume",
            by,
            now,
        )

    async def rotate_token(self, team_id: str, monitor_id: str, *, by: Actor = SERVER) -> Seen:
        """A new token; the one before opens nothing any more (on other nodes within seconds). Raises NotFound."""
        now = self._clock.now()
        token = self._tokens.keeper.new()

        def changed(_connection: Connection, monitor: Monitor) -> tuple[Monitor, list[Flip]]:
            keeper = self._tokens.keeper
            rotated = dataclasses.replace(
                monitor,
                token_hash=keeper.digest(token),
                token_sealed=keeper.seal(token, monitor.id),
                token_changed_at=now,
            )
            return rotated, []

        seen = await self._change(team_id, monitor_id, changed, "rotate-token", by, now, always=True)
        self._tokens.learn([(seen.monitor.id, seen.monitor.token_hash, True)])
        return seen

    async def delete(self, team_id: str, monitor_id: str, *, by: Actor = SERVER) -> None:
        """Remove the monitor and its token. Raises NotFound."""
        now = self._clock.now()

        def transaction(connection: Connection) -> None:
            monitor = _existing(connection, team_id, monitor_id)
            if not monitor_rows.delete(connection, team_id, monitor_id, now):
                raise NotFound("There is no such monitor.")
            audit.record_of(connection, "monitor", monitor, "delete", by, now, before={"status": monitor.watch.status})
            token_rows.date(connection, monitor_id)

        async with in_step(self._timetable, monitor_member(team_id, monitor_id), self._clock):
            await self._ledger.write(transaction)
        self._tokens.learn([(monitor_id, "", False)])
        await self._timetable.drop([monitor_member(team_id, monitor_id)])

    async def pings(
        self, team_id: str, monitor_id: str, *, kind: str | None = None, before: int | None = None, limit: int = 50
    ) -> list[PingRow]:
        """Newest first. Raises NotFound."""

        def transaction(connection: Connection) -> list[PingRow]:
            _existing(connection, team_id, monitor_id, lock=False)
            return monitor_rows.pings_page(connection, monitor_id, kind=kind, before=before, limit=limit)

        return await self._ledger.read(transaction)

    async def flips(
        self, team_id: str, monitor_id: str, *, before: int | None = None, limit: int = 50
    ) -> list[FlipRow]:
        """Newest first. Raises NotFound."""

        def transaction(connection: Connection) -> list[FlipRow]:
            _existing(connection, team_id, monitor_id, lock=False)
            return monitor_rows.flips_page(connection, monitor_id, before=before, limit=limit)

        return await self._ledger.read(transaction)

    async def uptime(self, team_id: str, monitor_id: str, *, days: int) -> tuple[str, list[Day]]:
        """(time zone, the last `days` days by its clocks, oldest first; none before it was made). Raises NotFound."""
        found = await self.uptimes(team_id, [monitor_id], days=days, flips_max=FLIPS_READ_MAX)
        if monitor_id not in found:
            raise NotFound("There is no such monitor.")
        return found[monitor_id]

    async def uptimes(
        self, team_id: str, monitor_ids: Sequence[str], *, days: int, flips_max: int = FLIPS_READ_OF_MANY_MAX
    ) -> dict[str, tuple[str, list[Day]]]:
        """(time zone, the last days by its clocks) of each of the monitors that is the team's.

        Of one that changed more than `flips_max` times in these days, the time before the last of them is not judged.
        """
        now = self._clock.now()
        wanted = list(dict.fromkeys(filter(is_uuid, monitor_ids)))

        def transaction(connection: Connection) -> dict[str, tuple[str, list[Day]]]:
            zones: dict[str, tuple[str, Instant]] = {}
            for monitor in monitor_rows.of_ids(connection, team_id, wanted):
                zone = monitor.expectation.schedule.timezone
                zones[monitor.id] = (zone, max(monitor.created_at, days_ago(now, days - 1, zone)))
            begins = [(monitor_id, start) for monitor_id, (_, start) in zones.items()]
            shown = glances.shown_since(connection, begins, flips_max) if begins else {}
            return {
                monitor_id: (zone, uptime(shown[monitor_id], Health.NEW, start=start, now=now, timezone=zone))
                for monitor_id, (zone, start) in zones.items()
            }

        return await self._ledger.read(transaction) if wanted else {}

    async def _change(
        self,
        team_id: str,
        monitor_id: str,
        change: Callable[[Connection, Monitor], tuple[Monitor, list[Flip]]],
        verb: str,
        by: Actor,
        now: Instant,
        *,
        always: bool = False,
    ) -> Seen:
        """Change a monitor that is held, with the flips this brings; `always` saves it even if it looks the same."""

        def transaction(connection: Connection) -> tuple[Monitor, dict[str, Instant]]:
            monitor = _existing(connection, team_id, monitor_id)
            was = dataclasses.replace(monitor, watch=dataclasses.replace(monitor.watch))
            changed, flips = change(connection, monitor)
            if changed == was and not flips and not always:
                return changed, {}
            saved = dataclasses.replace(changed, version=was.version + 1, updated_at=now)
            if not monitor_rows.update_definition(connection, saved, seen_version=was.version):
                raise Conflict("Somebody else changed the monitor at the same moment. Look at it again.")
            before, after = changes(_told_of(was), _told_of(saved))
            audit.record_of(connection, "monitor", saved, verb, by, now, before=before, after=after)
            alerts = _flipped(connection, monitor_id, flips, now)
            if saved.token_hash != was.token_hash:
                token_rows.date(connection, monitor_id)
            return saved, alerts

        async with in_step(self._timetable, monitor_member(team_id, monitor_id), self._clock):
            monitor, alerts = await self._ledger.write(transaction)
        if alerts:
            await put_near(self._timetable, alerts, now)
        await self._point_at(monitor)
        return await self.get(team_id, monitor.id)

    async def _point_at(self, monitor: Monitor) -> None:
        deadline = monitor.watch.deadline_at
        judged_at = None if deadline is None else deadline + JUDGED_AFTER_MS
        await point_at(self._timetable, monitor_member(monitor.team_id, monitor.id), judged_at, self._clock.now())

    def _build(self, team_id: str, spec: MonitorSpec, now: Instant) -> Monitor:
        understood = _understand(spec, now)
        _check_durations(spec)
        monitor_id = new_id(now)
        token = self._tokens.keeper.new()
        return Monitor(
            id=monitor_id,
            team_id=team_id,
            version=1,
            name=spec.name,
            schedule_text=spec.schedule,
            expectation=_expectation(spec, understood.schedule),
            post_only=spec.post_only,
            notify=write_notify(checked(spec.notify, "monitor"), "monitor"),
            tags=spec.tags,
            warnings=understood.warnings,
            language=spoken(understood, spec.language),
            token_hash=self._tokens.keeper.digest(token),
            token_sealed=self._tokens.keeper.seal(token, monitor_id),
            token_changed_at=now,
            watch=Watch(created_at=now, since=now),
            pings=0,
            flips=0,
            created_at=now,
            updated_at=now,
        )

    def _seen(self, monitor: Monitor) -> Seen:
        return Seen(monitor, judge(monitor.expectation, monitor.watch, self._clock.now()), self._token(monitor))

    def _token(self, monitor: Monitor) -> str:
        try:
            return self._tokens.keeper.unseal(monitor.token_sealed, monitor.id)
        except ValueError:
            if _told.is_new("token", monitor.id):
                log.error("ping_token_not_opened", monitor=monitor.id, hint="Give it a new one: 0cron monitors rotate.")
            return ""


def _told_of(monitor: Monitor) -> dict[str, object]:
    """What the audit log may tell of a monitor."""
    until = monitor.watch.resume_at
    return dataclasses.asdict(MonitorSpec.of(monitor)) | {
        "status": monitor.watch.status,
        "paused_until": None if until is None else to_rfc3339(until),
    }


def _existing(connection: Connection, team_id: str, monitor_id: str, *, lock: bool = True) -> Monitor:
    monitor = monitor_rows.get(connection, team_id, monitor_id, lock=lock) if is_uuid(monitor_id) else None
    if monitor is None:
        raise NotFound("There is no such monitor.")
    return monitor


def verdicts(connection: Connection, monitors: list[Monitor], now: Instant) -> list[Verdict]:
    """How each of them is now, by its pings and the outages that are known."""
    since = min((_begun(monitor.watch, now) for monitor in monitors), default=now)
    outages = monitor_rows.known_outages(connection, since, now)
    return [_verdict(monitor, now, outages) for monitor in monitors]


def shown_now(monitor: Monitor, verdict: Verdict) -> str:
    """`new`, `up`, `late`, `down` or `paused`: what its health is said to be now."""
    if monitor.watch.status == PAUSED:
        return PAUSED
    return Health.LATE if verdict.health == Health.LATE else monitor.watch.health


def _verdict(monitor: Monitor, now: Instant, outages: list[Outage]) -> Verdict:
    """One that cannot be judged is shown as it was last: it must not hide the others of its team."""
    try:
        return judge(monitor.expectation, monitor.watch, now, outages)
    except Exception as error:
        if _told.is_new("verdict", monitor.id, monitor.version):
            log.error("monitor_not_judged", monitor=monitor.id, exc_info=error)
        return Verdict(monitor.watch.health, monitor.watch.since, monitor.watch.reason)


def _begun(watch: Watch, now: Instant) -> Instant:
    """Outages before this cannot matter to it."""
    return min([watch.anchor or now, *(run.started_at for run in watch.runs.values())])


def _flipped(connection: Connection, monitor_id: str, flips: list[Flip], now: Instant) -> dict[str, Instant]:
    """Write down the flips of a monitor that was changed and is held, and see soon what else there is to tell of it;
    the members of the alerts."""
    held = monitor_rows.lock(connection, [monitor_id], wait=True)
    one = held[monitor_id]
    seen = one.flips
    rows = [monitor_rows.flip_row(one, flip, now) for flip in flips]
    if rows:
        monitor_rows.insert_flips(connection, rows)
    alerts = tell_flips(connection, held, rows, now)
    one.alert_at = now
    monitor_rows.save_watches(connection, [one], [seen])
    return alerts


def _rebuilt(monitor: Monitor, spec: MonitorSpec, before: MonitorSpec, now: Instant) -> Monitor:
    """The monitor with a new specification; its schedule is read anew only if that was changed."""
    _check_durations(spec)
    watch = dataclasses.replace(monitor.watch, runs=dict(monitor.watch.runs))
    made = dataclasses.replace(
        monitor,
        name=spec.name,
        post_only=spec.post_only,
        notify=write_notify(checked(spec.notify, "monitor"), "monitor"),
        tags=spec.tags,
        schedule_text=spec.schedule,
        watch=watch,
    )
    if _schedule_of(spec) == _schedule_of(before):
        expectation = _expectation(spec, monitor.expectation.schedule)
        return dataclasses.replace(made, expectation=expectation, language=spec.language or monitor.language)
    understood = _understand(spec, now)
    return dataclasses.replace(
        made,
        expectation=_expectation(spec, understood.schedule),
        warnings=understood.warnings,
        language=spoken(understood, spec.language),
    )


def _schedule_of(spec: MonitorSpec) -> tuple[str, str, str, str]:
    return spec.schedule, spec.timezone or DEFAULT_TIMEZONE, spec.dst, spec.day_match


def _understand(spec: MonitorSpec, now: Instant) -> Understood:
    """Raises Invalid, also for a schedule that names nothing to come."""
    understood = read(
        spec.schedule,
        timezone=spec.timezone,
        now=now,
        language=spec.language,
        dst=spec.dst,
        day_match=spec.day_match,
        reader=understand_expected,
    )
    if understood.schedule.next_after(now) is None:
        raise Invalid("This schedule has no slot left.", field="schedule")
    return understood


def _expectation(spec: MonitorSpec, schedule: Schedule) -> Expectation:
    return Expectation(
        schedule=schedule,
        grace_ms=spec.grace_period_seconds * 1000,
        max_run_ms=None if spec.max_duration_seconds is None else spec.max_duration_seconds * 1000,
        min_run_ms=None if spec.min_duration_seconds is None else spec.min_duration_seconds * 1000,
        resume_on_ping=spec.resume_on_ping,
    )


def _check_durations(spec: MonitorSpec) -> None:
    least, most = spec.min_duration_seconds, spec.max_duration_seconds
    if least is not None and most is not None and least > most:
        raise Invalid("It is longer than max_duration_seconds.", field="min_duration_seconds")


def _seconds(milliseconds: int | None) -> int | None:
    return None if milliseconds is None else milliseconds // 1000
