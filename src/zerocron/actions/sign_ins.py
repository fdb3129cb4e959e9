"""Sign-ins: opened, recognised, elevated, ended.

Owns what a cookie is worth. Who is there and who is not get the same answer for the same work: one hash, one look at
the ledger, and nothing that is waited for besides. A found sign-in is remembered for a second, so that it is dead on
every node within that second of its end. Must never keep or log a token, a password or a code.

How often it may be tried: an address from which a person has signed in before has its own allowance for that person,
which nobody else can use up; all other addresses share one for each account, and have one each for all accounts.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog
from sqlalchemy import Connection

from zerocron.actions.hashing import Hashing
from zerocron.actions.second_factors import SecondFactors, held, of_person, subject_of
from zerocron.clock import Clock
from zerocron.core.access import PERMISSIONS, SERVER, Actor, Bearer, Role
from zerocron.core.errors import Forbidden, NotFound, Unauthorized, ZerocronError
from zerocron.core.ids import new_id
from zerocron.core.limits import Buckets, Claims, give_each_back, network_of, take_each
from zerocron.core.model import Instant
from zerocron.core.opaque import is_opaque, new_opaque
from zerocron.core.people import Method, PersonStatus, known_email
from zerocron.core.tokens import digest
from zerocron.storage.ledger import audit
from zerocron.storage.ledger import people as people_rows
from zerocron.storage.ledger import sign_ins as sign_in_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.people import Membership, Person
from zerocron.storage.ledger.sign_ins import Known, SignIn
from zerocron.storage.ledger.uses import Uses

log = structlog.get_logger(__name__)

REMEMBERED_SECONDS = 1.0
REMEMBERED_MAX = 10_000
DAY_MS = 86_400_000
IDLE_MS = 14 * DAY_MS
ABSOLUTE_MS = 90 * DAY_MS
ELEVATED_MS = 600_000
USER_AGENT_CHARACTERS_MAX = 300

REFUSED = "This address, password or code is not right."
CODE_NEEDED = "code_needed"
"""The `code` of a refusal: the password was right, and a second factor is asked for."""

ENDED = "This sign-in has ended. Sign in again."
NO_TEAM = "You are in no team any more. Ask an owner or admin of one for an invitation."


@dataclass(frozen=True, slots=True)
class Visitor:
    """Where a request comes from. `address` is the client's, empty where there is none."""

    address: str
    user_agent: str


@dataclass(frozen=True, slots=True)
class Session:
    """What is told of a bearer: a person with the team they look at, or a key."""

    bearer: Bearer
    team_name: str
    role: Role | None = None
    teams: tuple[Membership, ...] = ()
    person: Person | None = None
    sign_in: SignIn | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A sign-in that was opened or elevated. `token` is what the cookie holds: nobody can see it again."""

    session: Session
    token: str = field(repr=False)


First = Callable[[Connection, Person], str | None]
"""Something done for a person who signs in; the team to look at, or None."""


def _nothing_first(_connection: Connection, _person: Person) -> str | None:
    return None


class Limits:
    """How often people may try. Each node counts for itself."""

    def __init__(self) -> None:
        self.address = Buckets(30, 900)
        self.account = Buckets(20, 3_600)
        self.familiar = Buckets(10, 900)
        self.code = Buckets(5, 3_600)
        self.link = Buckets(30, 900)
        self.mail = Buckets(3, 3_600)
        self.proof = Buckets(10, 900)


class SignIns:
    """Verbs on sign-ins."""

    def __init__(
        self, *, ledger: Ledger, clock: Clock, hashing: Hashing, second_factors: SecondFactors, limits: Limits
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._hashing = hashing
        self._second_factors = second_factors
        self._limits = limits
        self._remembered: OrderedDict[str, tuple[Known | None, float]] = OrderedDict()
        self._uses = Uses(ledger, sign_in_rows.save_last_seen)
        self._telling: set[asyncio.Task[None]] = set()

    # who is asking

    async def recognise(self, token: str, signed_in_as: str | None = None) -> Bearer:
        """Who has this token. `signed_in_as`: who a trusted proxy says is there, None where it says nothing; what it
        opened is theirs alone. Raises Unauthorized."""
        known = await self._find(token) if is_opaque(token) else None
        now = self._clock.now()
        if known is None or known.role is None or not self._is_open(known, now):
            raise Unauthorized(ENDED)
        is_by_proxy = signed_in_as is not None and known.sign_in.method == Method.TRUSTED_HEADER
        if is_by_proxy and known_email(signed_in_as or "") != known.email:
            raise Unauthorized(ENDED)
        sign_in = known.sign_in
        self._uses.noted[sign_in.id] = now
        return Bearer(
            team_id=sign_in.team_id or "",
            actor=Actor("person", sign_in.person_id, known.name),
            permissions=PERMISSIONS[known.role],
            person_id=sign_in.person_id,
            sign_in_id=sign_in.id,
            is_elevated=(sign_in.elevated_until or 0) > now,
        )

    def _is_open(self, known: Known, now: Instant) -> bool:
        sign_in = known.sign_in
        seen_at = max(sign_in.last_seen_at, self._uses.noted.get(sign_in.id, 0))
        return (
            known.status == PersonStatus.ACTIVE
            and sign_in.ended_at is None
            and now < sign_in.expires_at
            and now - seen_at < IDLE_MS
        )

    async def _find(self, token: str) -> Known | None:
        token_hash = digest(token)
        remembered = self._remembered.get(token_hash)
        now = self._clock.monotonic()
        if remembered is not None and now - remembered[1] < REMEMBERED_SECONDS:
            return remembered[0]
        known = await self._ledger.read(lambda connection: sign_in_rows.find(connection, token_hash))
        self._remembered[token_hash] = (known, now)
        self._remembered.move_to_end(token_hash)
        while len(self._remembered) > REMEMBERED_MAX:
            self._remembered.popitem(last=False)
        return known

    def forget(self, person_id: str) -> None:
        """What was changed about a person counts here from the next request on."""
        self._forget(lambda sign_in: sign_in.person_id == person_id)

    def forget_team(self, team_id: str) -> None:
        """The same of a team."""
        self._forget(lambda sign_in: sign_in.team_id == team_id)

    def _forget(self, is_changed: Callable[[SignIn], bool]) -> None:
        gone = [
            token_hash
            for token_hash, (known, _) in self._remembered.items()
            if known is not None and is_changed(known.sign_in)
        ]
        for token_hash in gone:
            del self._remembered[token_hash]

    async def session(self, bearer: Bearer) -> Session:
        """What the bearer is and may do. Raises Unauthorized when the sign-in ended at this moment."""
        return await self._ledger.read(lambda connection: _session(connection, bearer))

    # signing in

    async def sign_in(
        self, email: str, password: str, code: str | None, visitor: Visitor, *, first: First = _nothing_first
    ) -> Opened:
        """`first`: what is done in the same transaction, once it is proved who it is. Raises Unauthorized (with the
        code `code_needed` where that alone is missing), Forbidden, TooMany."""
        email = known_email(email)
        person, familiar = await self._ledger.read(lambda connection: _look_up(connection, email))
        network = network_of(visitor.address)
        claims = self._claims(email, network, is_familiar=network in familiar)
        take_each(claims, self._clock.monotonic())
        is_right = await self._hashing.matches(None if person is None else person.password_hash, password)
        if person is None or not is_right or person.status != PersonStatus.ACTIVE:
            self._tell_failure(person, "password", visitor)
            raise Unauthorized(REFUSED)
        if person.has_totp and not code:
            give_each_back(claims, self._clock.monotonic())
            raise Unauthorized("A code of your second factor is needed, too.", CODE_NEEDED)
        if person.has_totp:
            code_claims = [(self._limits.code, (person.id, network if network in familiar else ""))]
            take_each(code_claims, self._clock.monotonic())
            claims = [*claims, *code_claims]
        rehashed = None
        if person.password_hash is not None and self._hashing.is_outdated(person.password_hash):
            rehashed = await self._hashing.hash(password)
        try:
            opened = await self._ledger.write(self._opening(person, code, rehashed, visitor, first))
        except Unauthorized:
            self._tell_failure(person, "code", visitor)
            raise
        give_each_back(claims, self._clock.monotonic())
        return opened

    def _claims(self, email: str, network: str, *, is_familiar: bool) -> Claims:
        if is_familiar:
            return [(self._limits.familiar, (email, network))]
        return [(self._limits.address, network), (self._limits.account, email)]

    def _opening(
        self, person: Person, code: str | None, rehashed: str | None, visitor: Visitor, first: First
    ) -> Callable[[Connection], Opened]:
        now = self._clock.now()

        def transaction(connection: Connection) -> Opened:
            current = held(connection, person.id)
            if current.password_hash != person.password_hash or current.status != PersonStatus.ACTIVE:
                raise Unauthorized(REFUSED)  # changed since it was compared
            if current.has_totp and not self._second_factors.accepts(connection, current, code or "", now):
                raise Unauthorized(REFUSED)
            if rehashed is not None:
                people_rows.change(connection, person.id, now, password_hash=rehashed)
            team_id = first(connection, current)
            return self.open(connection, current, Method.PASSWORD, visitor, now, team_id=team_id)

        return transaction

    def open(
        self,
        connection: Connection,
        person: Person,
        method: Method,
        visitor: Visitor,
        now: Instant,
        *,
        team_id: str | None = None,
        is_elevated: bool = True,
    ) -> Opened:
        """A new sign-in of a person whose right to it was proved, in the transaction that proved it. It looks at
        `team_id`, or at the team of the last one. Raises Forbidden for who is in no team."""
        teams = people_rows.memberships(connection, person.id)
        if not teams:
            raise Forbidden(NO_TEAM)
        wanted = team_id or sign_in_rows.last_team(connection, person.id)
        team = next((each for each in teams if each.team_id == wanted), teams[0])
        token = new_opaque()
        sign_in = SignIn(
            id=new_id(now),
            token_hash=digest(token),
            person_id=person.id,
            team_id=team.team_id,
            method=str(method),
            address=visitor.address[:45],
            user_agent=visitor.user_agent[:USER_AGENT_CHARACTERS_MAX],
            created_at=now,
            last_seen_at=now,
            expires_at=now + ABSOLUTE_MS,
            elevated_until=now + ELEVATED_MS if is_elevated else None,
        )
        sign_in_rows.insert(connection, sign_in)
        actor = Actor("person", person.id, person.name, visitor.address)
        audit.record(
            connection,
            team_id=team.team_id,
            at=now,
            by=actor,
            action="sign-in.open",
            subject=subject_of(person),
            after={"method": sign_in.method, "user_agent": sign_in.user_agent},
        )
        bearer = Bearer(
            team_id=team.team_id,
            actor=actor,
            permissions=PERMISSIONS[team.role],
            person_id=person.id,
            sign_in_id=sign_in.id,
            is_elevated=is_elevated,
        )
        return Opened(Session(bearer, team.team_name, team.role, tuple(teams), person, sign_in), token)

    def _tell_failure(self, person: Person | None, what: str, visitor: Visitor) -> None:
        """Into the audit log of a known person, beside the answer: who waited for it would know that there is one."""
        if person is None:
            return
        task = asyncio.create_task(self._record_failure(person, what, visitor))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _record_failure(self, person: Person, what: str, visitor: Visitor) -> None:
        by = dataclasses.replace(SERVER, address=visitor.address)
        now = self._clock.now()

        def transaction(connection: Connection) -> None:
            team_id = sign_in_rows.last_team(connection, person.id)
            after = {"wrong": what, "user_agent": visitor.user_agent[:USER_AGENT_CHARACTERS_MAX]}
            subject = subject_of(person)
            audit.record(
                connection, team_id=team_id, at=now, by=by, action="sign-in.refuse", subject=subject, after=after
            )

        try:
            await self._ledger.write(transaction)
        except ZerocronError as error:
            log.warning("refused_sign_in_not_recorded", person_id=person.id, reason=error.message)

    # while signed in

    async def elevate(self, bearer: Bearer, password: str | None, code: str | None) -> Opened:
        """Prove again who one is, by the password or by a code; from then on another token opens the sign-in. Raises
        Unauthorized, TooMany."""
        person_id, sign_in_id = of_person(bearer)
        claims = list(self.proof_claims(bearer))
        if code is not None:
            claims.append((self._limits.code, (person_id, sign_in_id)))
        take_each(claims, self._clock.monotonic())
        person = await self._ledger.read(lambda connection: people_rows.get(connection, person_id))
        is_proved = password is not None and await self._hashing.matches(
            None if person is None else person.password_hash, password
        )
        now = self._clock.now()

        def transaction(connection: Connection) -> Opened:
            current = held(connection, person_id)
            is_the_same = person is not None and current.password_hash == person.password_hash
            has_code = (
                code is not None and current.has_totp and self._second_factors.accepts(connection, current, code, now)
            )
            if not ((is_proved and is_the_same) or has_code):
                raise Unauthorized(REFUSED)
            return self.prove(connection, bearer, current, now)

        opened = await self._ledger.write(transaction)
        give_each_back(claims, self._clock.monotonic())
        self.forget(person_id)
        return opened

    def prove(
        self, connection: Connection, bearer: Bearer, person: Person, now: Instant, method: Method | None = None
    ) -> Opened:
        """Elevate the sign-in of who has proved again who they are, in the transaction that proved it; after it
        `forget` them. From then on another token opens the sign-in. `method`: by which, where that is not a password or
        code of this server. Raises Unauthorized when it has ended."""
        _, sign_in_id = of_person(bearer)
        token = new_opaque()
        if not sign_in_rows.elevate(connection, sign_in_id, digest(token), now + ELEVATED_MS):
            raise Unauthorized(ENDED)
        audit.record(
            connection,
            team_id=bearer.team_id,
            at=now,
            by=bearer.actor,
            action="sign-in.elevate",
            subject=subject_of(person),
            after=None if method is None else {"method": str(method)},
        )
        return Opened(_session(connection, dataclasses.replace(bearer, is_elevated=True)), token)

    def proof_claims(self, bearer: Bearer) -> Claims:
        """What trying a password or code costs who is signed in; nobody else can use it up."""
        return [(self._limits.proof, bearer.sign_in_id)]

    async def look_at(self, bearer: Bearer, team_id: str) -> Session:
        """Another team of the person. Raises NotFound for one that is none of theirs."""
        person_id, sign_in_id = of_person(bearer)

        def transaction(connection: Connection) -> Session:
            team = next((one for one in people_rows.memberships(connection, person_id) if one.team_id == team_id), None)
            if team is None:
                raise NotFound("You are in no such team.")
            if not sign_in_rows.look_at(connection, sign_in_id, team_id):
                raise Unauthorized(ENDED)
            return _session(
                connection, dataclasses.replace(bearer, team_id=team_id, permissions=PERMISSIONS[team.role])
            )

        session = await self._ledger.write(transaction)
        self.forget(person_id)
        return session

    async def page(self, bearer: Bearer, *, before: tuple[Instant, str] | None, limit: int) -> list[SignIn]:
        """The person's sign-ins that are good, the newest first."""
        person_id, _ = of_person(bearer)
        now = self._clock.now()
        found = await self._ledger.read(
            lambda connection: sign_in_rows.open_of(
                connection, person_id, now=now, idle_since=now - IDLE_MS, before=before, limit=limit
            )
        )
        return [
            dataclasses.replace(one, last_seen_at=max(one.last_seen_at, self._uses.noted.get(one.id, 0)))
            for one in found
        ]

    async def end(self, bearer: Bearer, sign_in_id: str | None = None) -> None:
        """Sign out: here, or where that other sign-in of the same person is. Raises NotFound."""
        person_id, own_id = of_person(bearer)
        now = self._clock.now()

        def transaction(connection: Connection) -> None:
            if not sign_in_rows.end(connection, person_id, sign_in_id or own_id, now):
                raise NotFound("There is no such sign-in.")
            self._record_end(connection, bearer, now, {"sign_ins": 1})

        await self._ledger.write(transaction)
        self.forget(person_id)

    async def end_others(self, bearer: Bearer) -> int:
        """Sign out everywhere but here; how many there were."""
        person_id, own_id = of_person(bearer)
        now = self._clock.now()

        def transaction(connection: Connection) -> int:
            ended = sign_in_rows.end_all(connection, person_id, now, but=own_id)
            self._record_end(connection, bearer, now, {"sign_ins": ended})
            return ended

        ended = await self._ledger.write(transaction)
        self.forget(person_id)
        return ended

    def _record_end(self, connection: Connection, bearer: Bearer, now: Instant, after: dict[str, int]) -> None:
        person = held(connection, bearer.person_id or "")
        audit.record(
            connection,
            team_id=bearer.team_id,
            at=now,
            by=bearer.actor,
            action="sign-in.end",
            subject=subject_of(person),
            after=after,
        )

    async def save_use(self) -> float:
        """Write down when sign-ins were last used; returns the seconds until the next time."""
        return await self._uses.save()

    async def close(self) -> None:
        """Let what is being written down be written."""
        while self._telling:
            await asyncio.wait(self._telling)


def _look_up(connection: Connection, email: str) -> tuple[Person | None, frozenset[str]]:
    """The person of that address, and from where they have signed in before: the same questions for who is nobody."""
    person = people_rows.find(connection, email)
    familiar = sign_in_rows.addresses(connection, "" if person is None else person.id)
    return person, frozenset(map(network_of, familiar))


def _session(connection: Connection, bearer: Bearer) -> Session:
    if bearer.person_id is None:
        return Session(bearer, people_rows.team_name(connection, bearer.team_id) or "")
    person_id, sign_in_id = of_person(bearer)
    person = people_rows.get(connection, person_id)
    sign_in = sign_in_rows.get(connection, sign_in_id)
    teams = people_rows.memberships(connection, person_id)
    team = next((each for each in teams if each.team_id == bearer.team_id), None)
    if person is None or sign_in is None or team is None:
        raise Unauthorized(ENDED)
    return Session(bearer, team.team_name, team.role, tuple(teams), person, sign_in)
