"""Tells those who listen that something of their team has changed, so that they look again.

Owns who listens and how often the ledger is asked: at most once a second, only while somebody listens, and never for
more than a twentieth of the time, however many teams and jobs there are. A listener is told of its own team, and what
it has not taken yet is folded into one word: nothing piles up behind a slow one. Whoever may not listen any more is cut
off. Must never say what has changed: for that there are routes that know who may see it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog
from sqlalchemy import Connection

from zerocron.clock import Clock
from zerocron.core.access import Bearer, Permission
from zerocron.core.errors import TooMany, Unavailable, ZerocronError
from zerocron.storage.ledger import glances
from zerocron.storage.ledger.database import Ledger

log = structlog.get_logger(__name__)

LISTENERS_MAX = 200
"""Of a node."""

LISTENERS_A_BEARER_MAX = 20
LOOK_SECONDS = 1.0
SHARE_OF_TIME = 20
"""A look that took so long is followed by a pause that is so many times longer."""

RECHECK_SECONDS = 3.0
RETRY_SECONDS = 30
KINDS = ("jobs", "monitors", "alerts")

Still = Callable[[], Awaitable[Bearer]]
"""Who it is that listens, asked anew. Raises Unauthorized and its kin."""


@dataclass(frozen=True, slots=True)
class State:
    """How the three kinds of things of a team were, each as a short text that changes with them."""

    jobs: str
    monitors: str
    alerts: str

    @property
    def id(self) -> str:
        return f"{self.jobs}.{self.monitors}.{self.alerts}"

    @classmethod
    def of_id(cls, text: str) -> State | None:
        parts = text.split(".")
        return cls(*parts) if len(parts) == len(KINDS) else None

    def differences(self, other: State) -> frozenset[str]:
        return frozenset(kind for kind in KINDS if getattr(self, kind) != getattr(other, kind))


class Listener:
    """One who listens. `known` is what it has seen last, None before it has seen anything."""

    def __init__(self, bearer: Bearer, still: Still, known: State | None) -> None:
        self.bearer = bearer
        self.still = still
        self.woken = asyncio.Event()
        self.is_over = False
        self._known = known
        self._state: State | None = None

    def show(self, state: State) -> None:
        """The hub's: how things are now."""
        self._state = state
        if state != self._known:
            self.woken.set()

    def end(self) -> None:
        """The hub's: there is nothing more to hear."""
        self.is_over = True
        self.woken.set()

    def take(self) -> tuple[State, frozenset[str]] | None:
        """(how things are now, the kinds that have changed since the last time); None when nothing is new."""
        self.woken.clear()
        state, known = self._state, self._known
        if state is None or state == known:
            return None
        self._known = state
        return state, frozenset() if known is None else state.differences(known)


class Changes:
    """The listeners of one node."""

    def __init__(self, *, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._listeners: set[Listener] = set()
        self._of_bearer: Counter[str] = Counter()
        self._task: asyncio.Task[None] | None = None
        self._new = asyncio.Event()
        self._states: dict[str, State] = {}
        self._is_closed = False

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    def listen(self, bearer: Bearer, still: Still, known: str = "") -> Listener:
        """Begin to listen; `known` is the id of what was seen last, if anything was. Raises TooMany."""
        if self._is_closed:
            raise TooMany("This server is stopping. Listen again in a moment.", 1)
        if len(self._listeners) >= LISTENERS_MAX:
            raise TooMany("Too many are listening to this server. Listen again later.", RETRY_SECONDS)
        if self._of_bearer[_name_of(bearer)] >= LISTENERS_A_BEARER_MAX:
            most = f"At most {LISTENERS_A_BEARER_MAX} may listen at once for one key or person."
            raise TooMany(f"{most} Close some.", RETRY_SECONDS)
        listener = Listener(bearer, still, State.of_id(known))
        self._listeners.add(listener)
        self._of_bearer[_name_of(bearer)] += 1
        if bearer.team_id in self._states:
            listener.show(self._states[bearer.team_id])
        else:
            self._new.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch(), name="changes")
        return listener

    def leave(self, listener: Listener) -> None:
        """It listens no more; leaving twice is no error."""
        if listener in self._listeners:
            self._listeners.remove(listener)
            self._of_bearer[_name_of(listener.bearer)] -= 1
            self._of_bearer += Counter()  # those that are left

    async def close(self) -> None:
        """End all listening, now and for good. Closing twice is no error."""
        self._is_closed = True
        for listener in list(self._listeners):
            listener.end()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _watch(self) -> None:
        checked_at = self._clock.monotonic()
        while self._listeners:
            self._new.clear()
            begun = self._clock.monotonic()
            try:
                await self._look()
                if begun - checked_at >= RECHECK_SECONDS:
                    await self._recheck()
                    checked_at = begun
            except Exception:
                log.exception("changes_not_seen")
            pause = SHARE_OF_TIME * (self._clock.monotonic() - begun)
            await self._clock.sleep(LOOK_SECONDS)
            if pause > LOOK_SECONDS:
                await self._clock.wait(self._new, pause - LOOK_SECONDS)
        self._states = {}

    async def _look(self) -> None:
        teams = sorted({listener.bearer.team_id for listener in self._listeners})
        try:
            self._states = await self._ledger.read(lambda connection: {one: _state(connection, one) for one in teams})
        except Unavailable:
            return
        for listener in list(self._listeners):
            state = self._states.get(listener.bearer.team_id)
            if state is not None:
                listener.show(state)

    async def _recheck(self) -> None:
        """Cut off who may not listen any more: their key was revoked, they signed out, they see another team now."""
        for listener in list(self._listeners):
            try:
                bearer = await listener.still()
            except Unavailable:
                return
            except ZerocronError:
                listener.end()
                continue
            if bearer.team_id != listener.bearer.team_id or Permission.READ not in bearer.permissions:
                listener.end()


def _name_of(bearer: Bearer) -> str:
    return bearer.key_id or bearer.person_id or bearer.actor.id


def _state(connection: Connection, team_id: str) -> State:
    versions = (glances.job_version, glances.monitor_version, glances.alert_version)
    return State(*(_short(version(connection, team_id)) for version in versions))


def _short(version: tuple[object, ...]) -> str:
    return hashlib.blake2b(repr(version).encode(), digest_size=6).hexdigest()
