"""Signing in by the word of an issuer or of the proxy in front: who that is here, and whether they come in.

Owns the rule. Who was here before by that identity comes in. Otherwise a verified address decides: an account that has
it is linked, an invitation to it is accepted, and where its domain is one of the operator's its owner joins the first
team as a viewer. Everybody else is refused. An address that is not verified decides nothing. Must never make the first
owner: that takes the set-up link.

Who is signed in goes there as well: to prove again who they are, and to link who they are there. Such a flow is for the
sign-in in which it was begun; an answer about anybody else changes nothing.

A network has its allowance of beginnings and of answers, which who comes in gets back. A flow comes back once.
"""

from __future__ import annotations

import contextlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass

import structlog
from sqlalchemy import Connection

from zerocron.actions.identities import Identities, bind
from zerocron.actions.oidc import Issuer
from zerocron.actions.people import DEFAULT_TEAM_NAME, new_person
from zerocron.actions.second_factors import held, of_person, subject_of
from zerocron.actions.sign_ins import ELEVATED_MS, Opened, SignIns, Visitor
from zerocron.channels.text import one_line
from zerocron.clock import Clock
from zerocron.core.access import Actor, Bearer, Role
from zerocron.core.errors import Forbidden, TooMany, Unauthorized, Unavailable
from zerocron.core.limits import Buckets, Claims, give_each_back, network_of, take_each
from zerocron.core.model import DEFAULT_TEAM_ID, Instant
from zerocron.core.opaque import new_opaque
from zerocron.core.people import NAME_CHARACTERS_MAX, Method, PersonStatus, known_email
from zerocron.core.sealing import Keyring
from zerocron.core.single_sign_on import (
    FLOW_SECONDS_MAX,
    Flow,
    NotNow,
    Purpose,
    Refusal,
    SignInRefused,
    UsedFlows,
    read_flow,
    safe_path,
)
from zerocron.storage.ledger import audit
from zerocron.storage.ledger import identities as identity_rows
from zerocron.storage.ledger import one_time_links as link_rows
from zerocron.storage.ledger import people as people_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.people import Person

log = structlog.get_logger(__name__)

CODE_CHARACTERS_MAX = 4_096


@dataclass(frozen=True, slots=True)
class Vouched:
    """What somebody else says of a visitor. `email` is empty unless it is known to be theirs; `issuer` and `subject`
    are empty where the address is all that is said."""

    method: Method
    email: str
    name: str = ""
    issuer: str = ""
    subject: str = ""
    is_elevated: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back with the browser from an issuer, None where it was not there."""

    code: str | None
    state: str | None
    issuer: str | None
    error: str | None


class SingleSignOn:
    """`issuer` None: there is none. `takes_header`: a trusted proxy may say who somebody is."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        sign_ins: SignIns,
        keyring: Keyring,
        issuer: Issuer | None,
        issuer_name: str,
        takes_header: bool,
        domains: frozenset[str],
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._sign_ins = sign_ins
        self._keyring = keyring
        self._issuer = issuer
        self.issuer_name = issuer_name if issuer is not None else None
        self.takes_header = takes_header
        self._domains = domains
        self.identities = Identities(
            ledger=ledger, clock=clock, sign_ins=sign_ins, issuer_url=None if issuer is None else issuer.url
        )
        self._used_flows = UsedFlows()
        self._starts = Buckets(30, 900)
        self._answers = Buckets(30, 900)

    async def start(
        self,
        path: str | None,
        visitor: Visitor,
        purpose: Purpose = Purpose.SIGN_IN,
        bearer: Bearer | None = None,
    ) -> tuple[str, str]:
        """(where to send the browser, what it is to keep meanwhile). For another purpose than coming in the issuer asks
        anew who they are, and `bearer` is who is signed in. Raises SignInRefused, Forbidden for a key."""
        issuer = self._one()
        if purpose != Purpose.SIGN_IN and bearer is None:
            raise SignInRefused(Refusal.EXPIRED, "nobody is signed in")
        flow = Flow(
            state=new_opaque(),
            nonce=new_opaque(),
            verifier=new_opaque(),
            path=safe_path(path),
            purpose=purpose,
            sign_in_id="" if purpose == Purpose.SIGN_IN or bearer is None else of_person(bearer)[1],
            expires_at=self._clock.now() + FLOW_SECONDS_MAX * 1000,
        )
        with self._allowed([(self._starts, network_of(visitor.address))]):
            return await issuer.sign_in_url(flow), flow.signed(self._keyring)

    def begun(self, kept: str | None) -> Flow | None:
        """What a browser went to the issuer for; None where that cannot be known."""
        try:
            return read_flow(kept, self._keyring, self._clock.now())
        except SignInRefused:
            return None

    async def finish(
        self, kept: str | None, answer: Answer, visitor: Visitor, bearer: Bearer | None = None
    ) -> tuple[Opened | None, str]:
        """The sign-in of who comes back from the issuer, and where they wanted to go; None where it stays as it is.
        `bearer`: who is signed in in this browser. Raises SignInRefused."""
        issuer = self._one()
        flow = read_flow(kept, self._keyring, self._clock.now())
        if not hmac.compare_digest((answer.state or "").encode(), flow.state.encode()):
            raise SignInRefused(Refusal.EXPIRED, "the state is another one")
        network = network_of(visitor.address)
        answers: Claims = [(self._answers, network)]
        begun: Claims = [(self._starts, network)]
        with self._allowed(answers, begun):
            opened = await self._finish(issuer, flow, answer, visitor, bearer)
        give_each_back([*answers, *begun], self._clock.monotonic())  # an office has one network
        return opened, flow.path

    async def _finish(
        self, issuer: Issuer, flow: Flow, answer: Answer, visitor: Visitor, bearer: Bearer | None
    ) -> Opened | None:
        self._used_flows.use(flow, self._clock.now())
        if flow.sign_in_id and (bearer is None or bearer.sign_in_id != flow.sign_in_id):
            raise SignInRefused(Refusal.EXPIRED, "it was begun in another sign-in")
        if answer.issuer is not None and answer.issuer != issuer.url:
            raise SignInRefused(Refusal.ISSUER, "the answer came from another issuer")
        if answer.error is not None or not answer.code:
            raise SignInRefused(Refusal.DENIED, one_line(answer.error or "there is no code", 100))
        if len(answer.code) > CODE_CHARACTERS_MAX:
            raise SignInRefused(Refusal.ISSUER, "the code is too long")
        told = await issuer.claims(answer.code, flow)
        since = self._clock.now() - ELEVATED_MS
        vouched = Vouched(
            Method.OIDC,
            known_email(told.email) if told.is_email_verified else "",
            told.name,
            issuer.url,
            told.subject,
            is_elevated=told.auth_time is not None and told.auth_time > since,
        )
        if flow.purpose == Purpose.SIGN_IN or bearer is None:
            return await self._let_in(vouched, visitor)
        if flow.purpose == Purpose.PROOF:
            return await self._prove(vouched, bearer)
        now = self._clock.now()
        await self._ledger.write(
            lambda connection: self.identities.link(connection, bearer, vouched.issuer, vouched.subject, now)
        )
        return None

    async def _prove(self, vouched: Vouched, bearer: Bearer) -> Opened:
        person_id, _ = of_person(bearer)
        now = self._clock.now()

        def transaction(connection: Connection) -> Opened:
            person = held(connection, person_id)
            if identity_rows.find(connection, vouched.issuer, vouched.subject) != person.id:
                raise SignInRefused(Refusal.SOMEBODY_ELSE)
            if not vouched.is_elevated:
                raise SignInRefused(Refusal.NO_PROOF, "the issuer does not say that it asked just now")
            try:
                return self._sign_ins.prove(connection, bearer, person, now, vouched.method)
            except Unauthorized:
                raise SignInRefused(Refusal.EXPIRED, "the sign-in has ended") from None

        opened = await self._ledger.write(transaction)
        self._sign_ins.forget(person_id)
        return opened

    async def enter(self, signed_in_as: str | None, visitor: Visitor) -> Opened:
        """The sign-in of who the proxy says is there. Raises SignInRefused."""
        if not self.takes_header:
            raise SignInRefused(Refusal.NO_HEADER, "no header is trusted")
        email = known_email(signed_in_as or "")
        if not email:
            raise SignInRefused(Refusal.NO_HEADER)
        return await self._let_in(Vouched(Method.TRUSTED_HEADER, email), visitor)

    @contextlib.contextmanager
    def _allowed(self, claims: Claims, begun: Claims = ()) -> Iterator[None]:
        """What is done within costs the claims, unless it fails through nothing that who came in has done: then they
        are given back, and so is what its beginning cost."""
        try:
            take_each(claims, self._clock.monotonic())
        except TooMany as error:
            seconds = error.retry_after_seconds
            raise SignInRefused(Refusal.TOO_MANY, error.message, retry_after_seconds=seconds) from None
        try:
            yield
        except (NotNow, Unavailable):
            give_each_back([*claims, *begun], self._clock.monotonic())
            raise

    def _one(self) -> Issuer:
        if self._issuer is None:
            raise SignInRefused(Refusal.ISSUER, "no issuer is set up")
        return self._issuer

    async def _let_in(self, vouched: Vouched, visitor: Visitor) -> Opened:
        now = self._clock.now()

        def transaction(connection: Connection) -> Opened:
            person = self._known(connection, vouched, now) or self._newcomer(connection, vouched, visitor, now)
            if person.status != PersonStatus.ACTIVE:
                raise SignInRefused(Refusal.DISABLED)
            try:
                return self._sign_ins.open(
                    connection, person, vouched.method, visitor, now, is_elevated=vouched.is_elevated
                )
            except Forbidden:
                raise SignInRefused(Refusal.NO_TEAM) from None

        return await self._ledger.write(transaction)

    def _known(self, connection: Connection, vouched: Vouched, now: Instant) -> Person | None:
        """By the identity, or else by the address, which is the identity's from then on."""
        if vouched.subject:
            person_id = identity_rows.find(connection, vouched.issuer, vouched.subject)
            person = None if person_id is None else people_rows.hold(connection, person_id)
            # Found again now that they are held: who takes it off at this moment ends every sign-in by it.
            if person is not None and identity_rows.find(connection, vouched.issuer, vouched.subject) == person.id:
                return person
        if not vouched.email:
            raise SignInRefused(Refusal.UNVERIFIED)
        person = people_rows.find(connection, vouched.email)
        if person is not None:
            _bind(connection, vouched, person, now)
        return person

    def _newcomer(self, connection: Connection, vouched: Vouched, visitor: Visitor, now: Instant) -> Person:
        """The account of somebody who was invited, or whose domain is one of ours."""
        if not people_rows.is_anybody_there(connection):
            raise SignInRefused(Refusal.NOT_SET_UP)
        places = {
            link.team_id: Role(link.role)
            for link in link_rows.invitations_of(connection, vouched.email, now)
            if link.team_id and link.role and link_rows.use(connection, link.id, now)
        }
        if not places and vouched.email.rpartition("@")[2] in self._domains:
            people_rows.hold_team(connection, DEFAULT_TEAM_ID, DEFAULT_TEAM_NAME, now)
            places = {DEFAULT_TEAM_ID: Role.VIEWER}
        if not places:
            raise SignInRefused(Refusal.UNKNOWN)
        name = one_line(vouched.name, NAME_CHARACTERS_MAX) or vouched.email.partition("@")[0]
        person = new_person(vouched.email, name, None, now)
        if not people_rows.insert(connection, person):
            raise SignInRefused(Refusal.BUSY, "the same person came in at the same moment")
        _bind(connection, vouched, person, now)
        for team_id, role in places.items():
            people_rows.add_membership(connection, team_id, person.id, role, now)
            audit.record(
                connection,
                team_id=team_id,
                at=now,
                by=Actor("person", person.id, person.name, visitor.address),
                action="person.join",
                subject=subject_of(person),
                after={"email": person.email, "role": role, "method": str(vouched.method)},
            )
        return person


def _bind(connection: Connection, vouched: Vouched, person: Person, now: Instant) -> None:
    if not vouched.subject or person.status != PersonStatus.ACTIVE:
        return
    bind(connection, person, vouched.issuer, vouched.subject, now, by=Actor("person", person.id, person.name))
