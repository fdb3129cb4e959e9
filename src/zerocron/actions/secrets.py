"""Secrets: put, listed, deleted, sealed anew; and the check that a node has the master keys its ledger needs.

Owns what is sealed with which key. Every change is one transaction, a rotation one for each team, so that a kill leaves
each team as it was or as it is to be. A value comes in and never goes out again here: only the engine opens secrets.
Must never log one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import orjson
import structlog
from sqlalchemy import Connection

from zerocron.actions import ping_tokens
from zerocron.clock import Clock
from zerocron.core.access import SERVER, Actor
from zerocron.core.auditing import HIDDEN
from zerocron.core.errors import Conflict, NotFound
from zerocron.core.ids import new_id
from zerocron.core.model import Instant
from zerocron.core.sealing import USES_ALARM, USES_MAX, CannotOpen, DataKey, Keyring
from zerocron.core.secret import SECRETS_MAX, check_allowed_hosts, check_name, check_value
from zerocron.storage.ledger import audit, facts
from zerocron.storage.ledger import channels as channel_rows
from zerocron.storage.ledger import people as people_rows
from zerocron.storage.ledger import secrets as secret_rows
from zerocron.storage.ledger import signing as signing_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.secrets import DataKeyRow, SecretRow

log = structlog.get_logger(__name__)

CHECK_FACT = "master_key_check"
NO_KEY = (
    "This server has no master key, so it keeps no secrets. Make one with `0cron secrets new-key`, set it as "
    "ZEROCRON_SECRET_KEY on every node, and restart them."
)


async def check_master_keys(ledger: Ledger, keyring: Keyring, hint: str) -> None:
    """See to it that this node can open every secret of the ledger, and leave a mark by which the next one knows.

    Raises Conflict, with what to do (`hint`), before anything runs: a node with the wrong key would fail every job that
    uses a secret.
    """

    def known(connection: Connection) -> tuple[str | None, set[str]]:
        needed = secret_rows.master_key_ids(connection) | ping_tokens.master_key_ids(connection)
        return facts.get(connection, CHECK_FACT), needed

    check, needed = await ledger.read(known)
    if check is None and keyring:
        mark = _mark(keyring)

        def leave(connection: Connection) -> tuple[str | None, set[str]]:
            facts.add(connection, CHECK_FACT, mark)  # of two nodes that find none at once, one does
            return known(connection)

        check, needed = await ledger.write(leave)
    if check is None and not needed:
        return
    if not keyring:
        raise Conflict(f"The secrets of this ledger are sealed with a master key, and this node has none. {hint}")
    if check is not None:
        made = orjson.loads(check)
        master = keyring.get(made["id"])
        if master is None or not master.made(made["check"]):
            needed.add(made["id"])
    missing = sorted(key_id for key_id in needed if key_id not in keyring)
    if missing:
        raise Conflict(
            f"The secrets of this ledger are sealed with another master key (id {', '.join(missing)}) than this node "
            f"has (id {', '.join(keyring.ids)}). {hint}"
        )


def _mark(keyring: Keyring) -> str:
    return orjson.dumps({"id": keyring.newest.id, "check": keyring.newest.check_value()}).decode()


def _changes(before: SecretRow | None, after: SecretRow) -> tuple[dict[str, object], dict[str, object]]:
    """What the audit log tells of a value that was put. Nobody looks whether it is the same as before."""
    was: dict[str, object] = {} if before is None else {"value": HIDDEN}
    became: dict[str, object] = {"value": HIDDEN}
    hosts = () if before is None else before.allowed_hosts
    if hosts != after.allowed_hosts:
        was |= {"allowed_hosts": list(hosts)} if before is not None else {}
        became["allowed_hosts"] = list(after.allowed_hosts)
    return was, became


def _record(
    connection: Connection,
    team_id: str | None,
    verb: str,
    name: str,
    by: Actor,
    at: Instant,
    *,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> None:
    """A secret has no other id than its name, as far as anybody is told."""
    audit.record(
        connection,
        team_id=team_id,
        at=at,
        by=by,
        action=f"secret.{verb}",
        subject=audit.Subject("secret", name, name or "all secrets"),
        before=before,
        after=after,
    )


class Secrets:
    """Verbs on the secrets of a team. Another team's secret is not there. `by`: who asked, for the audit log."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        keyring: Keyring,
        stop_point: Callable[[str], None] = lambda _name: None,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._keyring = keyring
        self._stop_point = stop_point

    async def put(
        self, team_id: str, name: str, value: str, allowed_hosts: Sequence[str] | None, *, by: Actor = SERVER
    ) -> SecretRow:
        """The secret as it is now; the next execution uses it. `allowed_hosts` None: as they were.

        Raises Invalid, and Conflict when the server has no master key, or the team too many secrets.
        """
        check_name(name)
        check_value(value)
        hosts = None if allowed_hosts is None else check_allowed_hosts(allowed_hosts)
        self.need_keys()
        now = self._clock.now()

        def transaction(connection: Connection) -> tuple[SecretRow, int]:
            key, uses = self.sealing_key(connection, team_id, now)
            before = secret_rows.get(connection, team_id, name)
            if before is None and secret_rows.count(connection, team_id) >= SECRETS_MAX:
                raise Conflict(f"A team has at most {SECRETS_MAX} secrets. Delete one that is not used any more.")
            secret_id = before.id if before is not None else new_id(now)
            secret = SecretRow(
                id=secret_id,
                team_id=team_id,
                name=name,
                data_key_id=key.id,
                sealed=key.seal(value, secret_id=secret_id, name=name),
                allowed_hosts=(before.allowed_hosts if before is not None else ()) if hosts is None else hosts,
                created_at=before.created_at if before is not None else now,
                updated_at=now,
                last_used_at=before.last_used_at if before is not None else None,
            )
            if before is None:
                secret_rows.insert(connection, secret)
            else:
                secret_rows.replace(connection, secret)
            was, became = _changes(before, secret)
            _record(connection, team_id, "put", name, by, now, before=was, after=became)
            return secret, uses

        secret, uses = await self._ledger.write(transaction)
        log.info("secret_put", team_id=team_id, name=name, by=by.id, allowed_hosts=list(secret.allowed_hosts))
        if uses >= USES_ALARM:
            log.error("data_key_worn", team_id=team_id, uses=uses, hint="Run `0cron secrets rotate`.")
        return secret

    async def page(self, team_id: str, *, after: str, limit: int) -> list[SecretRow]:
        """The team's secrets by name."""
        return await self._ledger.read(
            lambda connection: secret_rows.page(connection, team_id, after=after, limit=limit)
        )

    async def delete(self, team_id: str, name: str, *, by: Actor = SERVER) -> None:
        """Runs that name it fail from now on, before anything is sent. Raises NotFound."""
        now = self._clock.now()

        def transaction(connection: Connection) -> None:
            if not secret_rows.delete(connection, team_id, name):
                raise NotFound("There is no such secret.")
            _record(connection, team_id, "delete", name, by, now)

        await self._ledger.write(transaction)
        log.info("secret_deleted", team_id=team_id, name=name, by=by.id)

    async def rotate(self, team_id: str | None = None, *, by: Actor = SERVER) -> int:
        """Seal the secrets of all teams with new data keys under the newest master key; how many there were.

        `team_id`: in whose audit log it is told.

        Afterwards nothing needs an older master key. It may be killed and repeated at any point. Raises Conflict.
        """
        self.need_keys()
        sealed, next_id = 0, await self._team_after("")
        while next_id is not None:
            sealed += await self._ledger.write(partial(self._rotate_team, next_id))
            self._stop_point("between-teams")
            next_id = await self._team_after(next_id)
        mark = _mark(self._keyring)

        def finish(connection: Connection) -> None:
            ping_tokens.rewrap(connection, self._keyring)
            facts.put(connection, CHECK_FACT, mark)
            _record(connection, team_id, "rotate", "", by, self._clock.now(), after={"secrets": sealed})

        await self._ledger.write(finish)
        log.info("secrets_rotated", secrets=sealed, master_key_id=self._keyring.newest.id, by=by.id)
        return sealed

    async def _team_after(self, team_id: str) -> str | None:
        """The next team that has secrets, or had some."""
        return await self._ledger.read(lambda connection: secret_rows.team_after(connection, team_id))

    def _rotate_team(self, team_id: str, connection: Connection) -> int:
        secret_rows.hold_keys(connection, team_id)
        old = {row.id: row for row in secret_rows.hold_data_keys(connection, team_id)}
        if not old:
            return 0
        opened = {key_id: self._opened(row) for key_id, row in old.items()}
        kept = secret_rows.page(connection, team_id, after="", limit=SECRETS_MAX)
        now = self._clock.now()
        generation = max(row.generation for row in old.values()) + 1
        key = self._add_key(connection, team_id, generation, len(kept), now)
        resealed = {}
        for secret in kept:
            try:
                value = opened[secret.data_key_id].open(secret.sealed, secret_id=secret.id, name=secret.name)
            except (CannotOpen, KeyError):
                raise Conflict(f"The secret {secret.name} is damaged. Set it anew, or delete it, and go on.") from None
            resealed[secret.id] = key.seal(value, secret_id=secret.id, name=secret.name)
        if resealed:
            secret_rows.reseal(connection, resealed, key.id)
        try:
            signing_rows.reseal(connection, team_id, opened, key)
        except CannotOpen:
            raise Conflict("A signing key is damaged. Rotate it, wait a day, and go on.") from None
        try:
            channel_rows.reseal(connection, team_id, opened, key)
        except CannotOpen:
            raise Conflict("The settings of a channel are damaged. Delete it, and go on.") from None
        if team_id == people_rows.SEALED_FOR:
            try:
                people_rows.reseal(connection, opened, key)
            except CannotOpen:
                raise Conflict("The second factor of a person is damaged. Have them take it off, and go on.") from None
        self._stop_point("inside-rotate")
        secret_rows.remove_data_keys(connection, old)
        return len(resealed)

    def sealing_key(self, connection: Connection, team_id: str, now: Instant) -> tuple[DataKey, int]:
        """The team's data key, made if there is none, and how often it has sealed with this time."""
        row = secret_rows.take_data_key(connection, team_id)
        if row is None:
            secret_rows.hold_keys(connection, team_id)
            row = secret_rows.take_data_key(connection, team_id)  # somebody may have made or replaced it meanwhile
        if row is None:
            return self._add_key(connection, team_id, 1, 1, now), 1
        if row.uses > USES_MAX:
            raise Conflict("The data key of this team has sealed too often. Run `0cron secrets rotate` first.")
        return self._opened(row), row.uses

    def opening_key(self, connection: Connection, data_key_id: str) -> DataKey:
        """A data key by its id. Raises Conflict when this node cannot open it."""
        row = secret_rows.data_keys_of(connection, [data_key_id]).get(data_key_id)
        if row is None:
            raise Conflict("The data key of this is gone. Set it anew.")
        return self._opened(row)

    def _add_key(self, connection: Connection, team_id: str, generation: int, uses: int, now: Instant) -> DataKey:
        master = self._keyring.newest
        key, wrapped = master.new_data_key(new_id(now), team_id)
        row = DataKeyRow(key.id, team_id, generation, master.id, wrapped, uses)
        if not secret_rows.add_data_key(connection, row, now):
            raise Conflict("Somebody else changed the keys at the same moment. Try again.")
        return key

    def _opened(self, row: DataKeyRow) -> DataKey:
        try:
            return row.opened(self._keyring)
        except CannotOpen:
            raise Conflict(
                f"The secrets of this team are sealed with a master key (id {row.master_key_id}) that this node does "
                "not have. Give all nodes the same ZEROCRON_SECRET_KEY."
            ) from None

    def need_keys(self) -> None:
        if not self._keyring:
            raise Conflict(NO_KEY)
