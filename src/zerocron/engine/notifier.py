"""Sends what the outbox holds, until each alert is accepted or dead.

Owns when a message is sent, how often, and what travels in it. One transaction holds the channels of what is due and
chooses at most one message for each: what was never tried goes first, and everything else that waits is folded into it,
a digest. Then a channel takes no other for a minute. What was sent once keeps its id and its content at every further
try, so that a receiver can tell a repetition. A node that dies leaves its alert due again a minute later: sent at least
once. Ten nodes may look at once: who holds the channel sends. Must never send what is not in the outbox, and never
forget a message before it is accepted, refused for good, or a day old.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog
from sqlalchemy import Connection

from zerocron.channels.contract import Accepted, Again, Delivery, Envelope, Refused
from zerocron.channels.sending import Outlets, deliver
from zerocron.clock import Clock
from zerocron.core.access import SERVER
from zerocron.core.alerting import GAP_MS
from zerocron.core.errors import Unavailable
from zerocron.core.model import Due, Instant, RetryPolicy
from zerocron.core.notice import Notice
from zerocron.core.retry import RETRY_AFTER_SECONDS_MAX, wait_ms
from zerocron.core.sealing import CannotOpen, Keyring
from zerocron.metrics import Metrics
from zerocron.storage.ledger import alerts as alert_rows
from zerocron.storage.ledger import audit
from zerocron.storage.ledger import channels as channel_rows
from zerocron.storage.ledger import secrets as secret_rows
from zerocron.storage.ledger.alerts import Waiting
from zerocron.storage.ledger.channels import ChannelRow, ChannelStatus
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.secrets import DataKeyRow
from zerocron.storage.ledger.telling import LOOK_MAX, is_to_look, look, tell_of_channel
from zerocron.storage.timetable.contract import Timetable, alert_member, split_member
from zerocron.storage.timetable.horizon import put_near

log = structlog.get_logger(__name__)

PLACES = 20
"""Messages that a node sends at a time."""

EXPIRY_MS = 86_400_000
UNHEARD_MS = EXPIRY_MS + 3_600_000
"""A message that is this old and was tried is not tried again: of its last tries nothing was ever heard."""

UNHEARD = "It was not accepted within 24 hours, and nothing was heard of its last try."
CHANNELS_AT_ONCE_MAX = 2
"""So many channels of one transaction: with ten thousand events to fold, each may take a quarter of a second, in which
nothing else is written on SQLite."""

SHOWN_MAX = 20
"""So many events of a message are told one by one; the rest are counted."""

BACKOFF = RetryPolicy(backoff="exponential", delay_seconds=14, jitter="full")
BACKOFF_FAILURES_MAX = 9
"""From 14 seconds, doubled eight times, to an hour; the wait is a random part of it."""

WAIT_MS_MIN = 1_000
BUSY_MS = 250
NO_PLACE_MS = 1_000
TICK_SECONDS = 2.0
OVERDUE_MS = 2_000
OVERDUE_MAX = 200
RECORD_TRIES = 10
RECORD_AGAIN_SECONDS = 2.0
STOP_SECONDS = 5.0
"""How long a stop waits for messages under way; what is cut off is sent again by the next process."""

NOT_ACTIVE = {
    ChannelStatus.PAUSED: "The channel was paused.",
    ChannelStatus.DISABLED: "The channel is disabled.",
    ChannelStatus.DELETED: "The channel was deleted.",
}


@dataclass(frozen=True, slots=True)
class Message:
    """What is to be sent now, and by which channel. `alert`: as it was before this try; `newest_at`: of its alerts."""

    alert: Waiting
    channel: ChannelRow
    key: DataKeyRow | None
    notices: tuple[Notice, ...]
    count: int
    newest_at: Instant

    @property
    def tries(self) -> int:
        """This one counted."""
        return self.alert.tries + 1


@dataclass(slots=True)
class Taken:
    """What one transaction did: the messages, and where the members of the others belong now."""

    messages: list[Message] = field(default_factory=list)
    put: dict[str, Instant] = field(default_factory=dict)
    drop: list[str] = field(default_factory=list)
    dead: int = 0
    folded: int = 0


class Notifier:
    """One for each engine node; called by the scheduler with what it claimed, and by the sweep."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        timetable: Timetable,
        clock: Clock,
        metrics: Metrics,
        keyring: Keyring,
        outlets: Outlets,
    ) -> None:
        self._ledger = ledger
        self._timetable = timetable
        self._clock = clock
        self._metrics = metrics
        self._keyring = keyring
        self._outlets = outlets
        self._sending: set[asyncio.Task[None]] = set()
        self._is_stopping = False

    async def take(self, members: Sequence[str]) -> int:
        """Send what is due of these members, without waiting for it; how many messages. Raises Unavailable."""
        places = 0 if self._is_stopping else PLACES - len(self._sending)
        now = self._clock.now()
        taken = await self._ledger.write(lambda connection: take(connection, members, now, places))
        for message in taken.messages:
            task = asyncio.create_task(self._send(message), name="alert")
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
        self._metrics.alerts.labels("folded").inc(taken.folded)
        self._metrics.alerts.labels("dead").inc(taken.dead)
        if taken.drop:
            await self._timetable.drop(taken.drop)
        await put_near(self._timetable, taken.put, now)
        return len(taken.messages)

    async def tick(self) -> float:
        """Tell of monitors that are late or still down, and send what should have been sent long ago: the timetable
        lost it, or nobody had a place to claim it. Returns the seconds until the next time."""
        now = self._clock.now()

        def waiting(connection: Connection) -> tuple[bool, list[Due], Instant | None]:
            overdue = alert_rows.overdue(connection, before=now - OVERDUE_MS, limit=OVERDUE_MAX)
            return is_to_look(connection, now), overdue, alert_rows.oldest_pending(connection)

        again, overdue, oldest = await self._ledger.read(waiting)
        while again:
            looked, due = await self._ledger.write(lambda connection: look(connection, now))
            await put_near(self._timetable, due, now)
            again = looked == LOOK_MAX
        self._metrics.alerts_waiting.set(0 if oldest is None else max(0, now - oldest) / 1000)
        if overdue:
            await self.take([alert_member(one.team_id, one.id) for one in overdue])
        return TICK_SECONDS

    async def stop(self) -> None:
        """Wait for what is under way, not for long; it is sent again by another process if it was cut off."""
        self._is_stopping = True
        if self._sending:
            limit = asyncio.create_task(self._clock.sleep(STOP_SECONDS))
            all_sent = asyncio.create_task(asyncio.wait(self._sending))
            await asyncio.wait({limit, all_sent}, return_when=asyncio.FIRST_COMPLETED)
            under_way = [limit, all_sent, *self._sending]
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    async def _send(self, message: Message) -> None:
        begun = self._clock.monotonic()
        delivery = await self._deliver(message)
        channel = message.channel
        self._metrics.alert_duration.labels(channel.kind).observe(self._clock.monotonic() - begun)
        log.info(
            "alert_sent" if isinstance(delivery, Accepted) else "alert_not_sent",
            alert=message.alert.id,
            channel=channel.id,
            kind=channel.kind,
            attempt=message.tries,
            events=message.count,
            **({} if isinstance(delivery, Accepted) else {"reason": delivery.reason}),
        )
        try:
            await self._record(message, delivery)
        except Exception:  # it is due again when its lease is over
            log.exception("alert_not_recorded", alert=message.alert.id)

    async def _deliver(self, message: Message) -> Delivery:
        channel = message.channel
        kind = self._outlets.kinds.get(channel.kind)
        if kind is None:
            return Again(f"This server knows no channels of the kind {channel.kind!r}.")
        try:
            if message.key is None:
                raise CannotOpen
            config = channel_rows.opened(message.key.opened(self._keyring), channel)
        except CannotOpen:
            log.error("channel_not_opened", channel=channel.id, team_id=channel.team_id)
            return Again("The channel's settings cannot be opened by this server, whose log has the details.")
        envelope = Envelope(
            alert_id=message.alert.id,
            notices=message.notices,
            base_url=self._outlets.base_url,
            attempt=message.tries,
            more=message.count - len(message.notices),
        )
        return await deliver(kind, config, envelope, self._outlets.ways, self._clock)

    async def _record(self, message: Message, delivery: Delivery) -> None:
        """Write down what came of it, for as long as the lease lasts if need be: what was accepted is not sent again
        for want of a database."""
        for _ in range(RECORD_TRIES - 1):
            try:
                return await self._record_once(message, delivery)
            except Unavailable:
                self._metrics.ledger_unavailable.inc()
                await self._clock.sleep(RECORD_AGAIN_SECONDS)
        return await self._record_once(message, delivery)

    async def _record_once(self, message: Message, delivery: Delivery) -> None:
        now = self._clock.now()
        status, due = await self._ledger.write(lambda connection: record(connection, message, delivery, now))
        if status is not None:
            self._metrics.alerts.labels(status).inc()
        member = alert_member(message.alert.team_id, message.alert.id)
        if member not in due:
            await self._timetable.drop([member])
        await put_near(self._timetable, due, now)


def take(connection: Connection, members: Sequence[str], now: Instant, places: int) -> Taken:
    """The transaction that chooses what is sent: at most one message a channel, and at most `places`."""
    taken = Taken()
    wanted = {parts.id: member for member in members if (parts := split_member(member)) is not None}
    waiting = {one.id: one for one in alert_rows.waiting(connection, wanted)}
    taken.drop += [member for alert_id, member in wanted.items() if alert_id not in waiting]
    due: dict[str, list[Waiting]] = {}
    for one in waiting.values():
        if one.next_attempt_at > now:
            taken.put[wanted[one.id]] = one.next_attempt_at
        else:
            due.setdefault(one.channel_id, []).append(one)
    held = channel_rows.hold(connection, due) if due else {}
    keys = secret_rows.data_keys_of(connection, {channel.data_key_id for channel in held.values()})
    for channel_id, ones in due.items():
        mine = [wanted[one.id] for one in ones]
        channel = held.get(channel_id)
        if channel is None:
            taken.put |= dict.fromkeys(mine, now + BUSY_MS)
        elif channel.status != ChannelStatus.ACTIVE:
            taken.dead += alert_rows.bury_channel(
                connection, channel_id, now, NOT_ACTIVE[ChannelStatus(channel.status)]
            )
            taken.drop += mine
        elif channel.next_send_at > now:
            alert_rows.postpone(connection, channel_id, channel.next_send_at)
            taken.put |= dict.fromkeys(mine, channel.next_send_at)
        elif len(taken.messages) >= min(places, CHANNELS_AT_ONCE_MAX):
            taken.put |= dict.fromkeys(mine, now + NO_PLACE_MS)
        else:
            _choose(connection, channel, keys.get(channel.data_key_id), mine, now, taken)
    return taken


def _choose(
    connection: Connection, channel: ChannelRow, key: DataKeyRow | None, mine: list[str], now: Instant, taken: Taken
) -> None:
    """The next message of a channel that is held and free."""
    # By turns: else what was refused once would wait for as long as anything new comes.
    first = alert_rows.next_of_channel(connection, channel.id, now, tried_first=now // GAP_MS % 2 == 1)
    if first is None:  # what was due has been taken since it was read
        taken.put |= dict.fromkeys(mine, now + BUSY_MS)
        return
    if first.tries == 0:
        taken.folded += alert_rows.fold(connection, channel.id, first.id, now)
    notices, count, newest_at = alert_rows.message(connection, first.id, SHOWN_MAX)
    if not notices or (first.tries and now - newest_at >= UNHEARD_MS):
        why = UNHEARD if notices else "This release cannot read it: a newer one wrote it, or it is damaged."
        taken.dead += alert_rows.bury(connection, first.id, now, why)
        taken.put |= dict.fromkeys(mine, now + BUSY_MS)
        return
    free_at = now + GAP_MS  # longer than an attempt takes, so that it is the lease of this one, too
    alert_rows.begin(connection, first.id, tries=first.tries, again_at=free_at)
    channel_rows.note_sending(connection, channel.id, next_send_at=free_at)
    alert_rows.postpone(connection, channel.id, free_at)
    taken.messages.append(Message(first, channel, key, tuple(notices), count, newest_at))
    taken.put |= dict.fromkeys(mine, free_at)


def record(
    connection: Connection, message: Message, delivery: Delivery, now: Instant
) -> tuple[str | None, dict[str, Instant]]:
    """The transaction that writes down what came of a try: (how the alert ended, if it did; members of alerts)."""
    alert, channel = message.alert, channel_rows.wait_for(connection, message.channel.id)
    if isinstance(delivery, Accepted):
        channel_rows.note_accepted(connection, message.channel.id, now)
        return ("sent" if alert_rows.accept(connection, alert.id, now, delivery.detail) else None), {}
    if isinstance(delivery, Refused):
        ended = "dead" if alert_rows.bury(connection, alert.id, now, delivery.reason) else None
        if delivery.disables and channel is not None and channel.status == ChannelStatus.ACTIVE:
            return ended, _disable(connection, channel, delivery.reason, now)
        return ended, {}
    if now - message.newest_at >= EXPIRY_MS:
        reason = f"It was not accepted within 24 hours; the last answer: {delivery.reason}"
        return ("dead" if alert_rows.bury(connection, alert.id, now, reason) else None), {}
    asked_ms = None if delivery.retry_after_ms is None else min(delivery.retry_after_ms, RETRY_AFTER_SECONDS_MAX * 1000)
    failures = min(message.channel.failures + 1, BACKOFF_FAILURES_MAX)
    wait = wait_ms(BACKOFF, failures, asked_ms=asked_ms, run_id=f"{alert.id}.{message.tries}")
    at = now + max(wait, WAIT_MS_MIN)
    if not alert_rows.try_again(connection, alert.id, tries=message.tries, at=at, reason=delivery.reason):
        return None, {}
    channel_rows.note_failed(connection, message.channel.id, next_send_at=at)
    return None, {alert_member(alert.team_id, alert.id): at}


def _disable(connection: Connection, channel: ChannelRow, reason: str, now: Instant) -> dict[str, Instant]:
    """No message will be taken any more: end what waits, and tell the others."""
    told = alert_rows.line(reason)
    channel_rows.disable(connection, channel.id, told, now)
    alert_rows.bury_channel(connection, channel.id, now, f"The channel is disabled: {told}")
    audit.record(
        connection,
        team_id=channel.team_id,
        at=now,
        by=SERVER,
        action="channel.disable",
        subject=audit.Subject("channel", channel.id, channel.name),
        before={"status": channel.status},
        after={"status": ChannelStatus.DISABLED, "status_reason": told},
    )
    log.warning("channel_disabled", channel=channel.id, team_id=channel.team_id, kind=channel.kind, reason=told)
    return tell_of_channel(connection, channel, told, now)


def is_alert(member: str) -> bool:
    """Whether a member of the timetable is an alert."""
    return member.startswith("a:")
