"""The verbs on channels: create, edit, test, pause, resume, delete; and the outbox as people see it.

Owns the meaning of each verb. A configuration is checked by its kind, sealed with the team's data key, and shown to
nobody again. Each verb holds the channel's row, so that the notifier sees it before or after and never halfway. Must
never log a configuration.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import structlog
from sqlalchemy import Connection

from zerocron.actions.idempotency import Once, make, still_there
from zerocron.actions.secrets import Secrets
from zerocron.channels.contract import Delivery, Envelope, Kind
from zerocron.channels.email import NO_SERVER, Email
from zerocron.channels.sending import Outlets, deliver
from zerocron.clock import Clock
from zerocron.core.access import SERVER, Actor
from zerocron.core.alerting import GAP_MS, Notify
from zerocron.core.auditing import HIDDEN, changes
from zerocron.core.errors import Conflict, Invalid, NotFound
from zerocron.core.ids import new_id
from zerocron.core.model import Instant, is_uuid
from zerocron.core.notice import EventKind, Notice
from zerocron.core.sealing import CannotOpen, DataKey
from zerocron.storage.ledger import alerts as alert_rows
from zerocron.storage.ledger import audit
from zerocron.storage.ledger import channels as channel_rows
from zerocron.storage.ledger.alerts import AlertRow
from zerocron.storage.ledger.channels import ChannelRow, ChannelStatus
from zerocron.storage.ledger.database import Ledger

log = structlog.get_logger(__name__)

CHANNELS_MAX = 50
"""Of one team: each event without a list of channels is a message for each of them."""

TEST_GAP_MS = 10_000
"""From one test of a channel to the next."""

NAMED_MAX = 3


@dataclass(frozen=True, slots=True)
class ChannelSpec:
    """Everything a user may write about a channel. `config` is what its kind asks for, and may hold secrets."""

    name: str
    kind: str
    config: Mapping[str, object] = dataclasses.field(repr=False)


class Channels:
    """Verbs on the channels of a team. Another team's channel is not there. `by`: who asked, for the audit log."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        secrets: Secrets,
        outlets: Outlets,
    ) -> None:
        self.kinds = outlets.kinds
        self._ledger = ledger
        self._clock = clock
        self._secrets = secrets
        self._outlets = outlets

    async def create(
        self, team_id: str, spec: ChannelSpec, idempotency_key: str | None = None, *, by: Actor = SERVER
    ) -> tuple[ChannelRow, bool]:
        """The new channel and True; or the one this idempotency key made before and False.

        Raises Invalid, Conflict.
        """
        kind = self._kind(spec.kind)
        config = kind.check(spec.config)
        self._secrets.need_keys()
        now = self._clock.now()
        channel_id = new_id(now)
        hidden = {field.name for field in kind.fields if field.secret}
        shown = {name: value for name, value in spec.config.items() if name not in hidden}  # a digest tells of a secret
        once = Once.of(team_id, "channels.create", idempotency_key, [spec.name, spec.kind, shown])

        def transaction(connection: Connection) -> tuple[ChannelRow, bool]:
            earlier = once.claim(connection, channel_id, now)
            if earlier is not None:
                return still_there(channel_rows.get(connection, team_id, earlier), "channel"), False
            key, _ = self._secrets.sealing_key(connection, team_id, now)  # the row it holds is the lock of the count
            if channel_rows.count(connection, team_id) >= CHANNELS_MAX:
                raise Conflict(f"A team has at most {CHANNELS_MAX} channels. Delete one that is not used any more.")
            channel = ChannelRow(
                id=channel_id,
                team_id=team_id,
                kind=spec.kind,
                name=spec.name,
                status=ChannelStatus.ACTIVE,
                reason=None,
                destination=_destination(kind, config),
                data_key_id=key.id,
                sealed=channel_rows.seal(key, channel_id, config),
                failures=0,
                next_send_at=now,
                last_sent_at=None,
                tested_at=None,
                created_at=now,
                updated_at=now,
            )
            channel_rows.insert(connection, channel)
            audit.record_of(
                connection, "channel", channel, "create", by, now, after={"kind": channel.kind, "config": HIDDEN}
            )
            return channel, True

        def look_up(connection: Connection) -> tuple[ChannelRow, bool] | None:
            found = channel_rows.get(connection, team_id, channel_id)
            return None if found is None else (found, True)

        made, is_new = await make(self._ledger, transaction, look_up)
        if is_new:
            log.info("channel_created", team_id=team_id, channel=made.id, kind=made.kind, by=by.id)
        return made, is_new

    def warning(self, channel: ChannelRow) -> str | None:
        """What its owner has to know of it: why this server cannot send anything by it."""
        is_mail = isinstance(self.kinds.get(channel.kind), Email)
        return NO_SERVER.reason if is_mail and self._outlets.ways.mail is None else None

    async def get(self, team_id: str, channel_id: str) -> ChannelRow:
        """Raises NotFound."""
        return await self._ledger.read(lambda connection: _existing(connection, team_id, channel_id, lock=False))

    async def page(
        self, team_id: str, *, before: tuple[Instant, str] | None = None, limit: int = 50
    ) -> list[ChannelRow]:
        """Newest first."""
        return await self._ledger.read(
            lambda connection: channel_rows.page(connection, team_id, before=before, limit=limit)
        )

    async def edit(
        self,
        team_id: str,
        channel_id: str,
        *,
        name: str | None,
        config: Mapping[str, object] | None,
        by: Actor = SERVER,
    ) -> ChannelRow:
        """Give it another name, or another configuration as a whole. Raises NotFound, Invalid, Conflict."""
        now = self._clock.now()
        before = await self.get(team_id, channel_id)
        kind = self._kind(before.kind)
        given = None if config is None else kind.check(config)
        if given is not None:
            self._secrets.need_keys()

        def transaction(connection: Connection) -> ChannelRow:
            # The data key before the channel, as a rotation takes them.
            key = None if given is None else self._secrets.sealing_key(connection, team_id, now)[0]
            channel = _existing(connection, team_id, channel_id)
            changed = dataclasses.replace(channel, name=name or channel.name)
            if key is not None and given is not None:
                changed = dataclasses.replace(
                    changed,
                    destination=_destination(kind, given),
                    data_key_id=key.id,
                    sealed=channel_rows.seal(key, channel_id, given),
                )
                changed = _mended(connection, changed, now)
            if changed == channel:
                return channel
            changed = dataclasses.replace(changed, updated_at=now)
            channel_rows.save(connection, changed)
            was, became = changes(_told_of(channel), _told_of(changed), hidden=["config"])
            audit.record_of(connection, "channel", changed, "edit", by, now, before=was, after=became)
            return changed

        edited = await self._ledger.write(transaction)
        log.info("channel_edited", team_id=team_id, channel=channel_id, with_config=given is not None, by=by.id)
        return edited

    async def pause(self, team_id: str, channel_id: str, *, by: Actor = SERVER) -> ChannelRow:
        """Tell nothing by it; what waits is not sent either. Raises NotFound."""
        return await self._stop(team_id, channel_id, ChannelStatus.PAUSED, "The channel was paused.", by)

    async def resume(self, team_id: str, channel_id: str, *, by: Actor = SERVER) -> ChannelRow:
        """Tell by it again what happens from now on. Raises NotFound."""
        now = self._clock.now()

        def transaction(connection: Connection) -> ChannelRow:
            channel = _existing(connection, team_id, channel_id)
            if channel.status == ChannelStatus.ACTIVE:
                return channel
            resumed = dataclasses.replace(channel, status=ChannelStatus.ACTIVE, reason=None, updated_at=now)
            resumed = _mended(connection, resumed, now)
            channel_rows.save(connection, resumed)
            was, became = changes(_told_of(channel), _told_of(resumed), hidden=["config"])
            audit.record_of(connection, "channel", resumed, "resume", by, now, before=was, after=became)
            return resumed

        return await self._ledger.write(transaction)

    async def delete(self, team_id: str, channel_id: str, *, by: Actor = SERVER) -> None:
        """Remove it with its configuration; what waits is not sent any more.

        Raises NotFound, and Conflict while a job or monitor names it: those would fall silent.
        """
        await self._stop(team_id, channel_id, ChannelStatus.DELETED, "The channel was deleted.", by)
        log.info("channel_deleted", team_id=team_id, channel=channel_id, by=by.id)

    async def test(self, team_id: str, channel_id: str, *, by: Actor = SERVER) -> Delivery:
        """Send a test message now, and say what came of it. Raises NotFound, Conflict."""
        now = self._clock.now()

        def transaction(connection: Connection) -> tuple[ChannelRow, DataKey]:
            channel = _existing(connection, team_id, channel_id)
            if not channel_rows.note_test(connection, channel_id, now, before=now - TEST_GAP_MS):
                raise Conflict(f"It was tested a moment ago. Wait {TEST_GAP_MS // 1000} seconds.")
            audit.record_of(connection, "channel", channel, "test", by, now)
            return channel, self._secrets.opening_key(connection, channel.data_key_id)

        channel, key = await self._ledger.write(transaction)
        kind = self._kind(channel.kind)
        try:
            config = channel_rows.opened(key, channel)
        except CannotOpen:
            raise Conflict("The settings of this channel are damaged. Edit them anew.") from None
        test_id = new_id(now)
        notice = Notice(
            event_id=test_id,
            kind=EventKind.TEST,
            team_id=team_id,
            at=now,
            subject_id=channel.id,
            subject_name=channel.name,
        )
        envelope = Envelope(alert_id=test_id, notices=(notice,), base_url=self._outlets.base_url)
        return await deliver(kind, config, envelope, self._outlets.ways, self._clock)

    async def alerts(
        self,
        team_id: str,
        *,
        status: str | None = None,
        channel_id: str | None = None,
        subject_id: str | None = None,
        before: tuple[Instant, str] | None = None,
        limit: int = 50,
    ) -> list[tuple[AlertRow, str, str]]:
        """(alert, name of its channel, kind of that), newest first."""

        def transaction(connection: Connection) -> list[tuple[AlertRow, str, str]]:
            found = alert_rows.page(
                connection,
                team_id,
                status=status,
                channel_id=channel_id,
                subject_id=subject_id,
                before=before,
                limit=limit,
            )
            names = channel_rows.names(connection, {alert.channel_id for alert in found})
            return [(alert, *names.get(alert.channel_id, ("", ""))) for alert in found]

        return await self._ledger.read(transaction)

    async def _stop(self, team_id: str, channel_id: str, status: ChannelStatus, reason: str, by: Actor) -> ChannelRow:
        now = self._clock.now()

        def transaction(connection: Connection) -> ChannelRow:
            channel = _existing(connection, team_id, channel_id)
            if channel.status == status:
                return channel
            stopped = dataclasses.replace(channel, status=status, reason=None, updated_at=now)
            if status == ChannelStatus.DELETED:
                _check_not_named(connection, team_id, channel_id)
                stopped = dataclasses.replace(stopped, sealed="", destination="")
            channel_rows.save(connection, stopped)
            alert_rows.bury_channel(connection, channel_id, now, reason)
            verb = "delete" if status == ChannelStatus.DELETED else "pause"
            audit.record_of(
                connection,
                "channel",
                stopped,
                verb,
                by,
                now,
                before={"status": channel.status},
                after={"status": status},
            )
            return stopped

        return await self._ledger.write(transaction)

    def _kind(self, name: str) -> Kind:
        kind = self.kinds.get(name)
        if kind is None:
            known = ", ".join(sorted(self.kinds)) or "none"
            raise Invalid(f"There is no such kind of channel on this server. There are: {known}.", field="kind")
        return kind


def _told_of(channel: ChannelRow) -> dict[str, object]:
    """What the audit log may tell of a channel; of its configuration only that it is another one."""
    return {"name": channel.name, "status": channel.status, "config": channel.sealed}


def check_named(connection: Connection, team_id: str, notify: Notify) -> None:
    """Raises Invalid when `notify` names what is no channel of the team. None of them can be deleted meanwhile."""
    missing = channel_rows.missing(connection, team_id, notify.channels) if notify.channels else []
    if missing:
        raise Invalid(
            f"There is no channel {missing[0]!r}. GET /v1/channels has those there are; leave `channels` out for all.",
            field="notify.channels",
        )


def _check_not_named(connection: Connection, team_id: str, channel_id: str) -> None:
    named = channel_rows.named_by(connection, team_id, channel_id, NAMED_MAX + 1)
    if named:
        whom = ", ".join(
            f'the job "{name}"' if noun == "job" else f'the monitor "{name}"' for noun, name in named[:NAMED_MAX]
        )
        if len(named) > NAMED_MAX:
            whom = f"{whom} and others"
        raise Conflict(
            f"It is named by {whom}, which would fall silent. Change their `notify` first, or pause the channel."
        )


def _existing(connection: Connection, team_id: str, channel_id: str, *, lock: bool = True) -> ChannelRow:
    channel = channel_rows.get(connection, team_id, channel_id, lock=lock) if is_uuid(channel_id) else None
    if channel is None:
        raise NotFound("There is no such channel.")
    return channel


def _mended(connection: Connection, channel: ChannelRow, now: Instant) -> ChannelRow:
    """A channel that is held, to be tried soon: what it did before its owner saw to it says nothing any more."""
    soon = min(channel.next_send_at, now + GAP_MS)
    alert_rows.bring_forward(connection, channel.id, soon)
    return dataclasses.replace(channel, failures=0, next_send_at=soon)


def _destination(kind: Kind, config: Mapping[str, object]) -> str:
    return alert_rows.line(kind.destination(config))
