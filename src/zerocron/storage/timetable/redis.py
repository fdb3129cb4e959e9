"""The timetable that many nodes share: sorted sets in Redis, changed by Lua scripts.

Owns the keys, the numbers of a node's calls and what a failure means. All that must happen at once happens in a script
(`lua/`); this module splits calls by shard and into batches, and decides when to send. A member's shard is a stable
hash of its id; all keys of a shard carry one hash tag, `<prefix>:{<shard>}:`, so that they lie together in a Redis
Cluster:

    lanes            ZSET    lane -> instant of its first member
    lane:<lane>      ZSET    member -> instant at which it is due
    claim:<claimer>  STRING  a node's last claim, until its members come back by themselves
    epoch            HASH    which life of the index this is, and who owes its restoration
    mark:<claimer>   STRING  a node's own number, by which it sees that the index is not the one it knew
    duty             STRING  the node that sweeps
    earlier          channel: the shard's earliest instant became earlier

Must never be asked what is true, and never keep anybody waiting: a call ends within `CALL_SECONDS_MAX`, and while Redis
is away most end at once (`breaker`). Every script may be sent twice.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import zlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar, cast

import structlog
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import OutOfMemoryError, RedisError

from zerocron.clock import SystemClock
from zerocron.core.errors import Invalid, TimetableAway
from zerocron.core.model import Instant
from zerocron.storage.timetable import scripts
from zerocron.storage.timetable.breaker import Breaker
from zerocron.storage.timetable.connection import UNREACHABLE, RedisClients, connect, kind_of
from zerocron.storage.timetable.contract import CLAIM_LIMIT_MAX, HIDE_MS, Claim, lane_of
from zerocron.storage.timetable.scripts import Script
from zerocron.storage.timetable.wakeups import Wakeups

log = structlog.get_logger(__name__)

T = TypeVar("T")

CALL_SECONDS_MAX = 0.9
"""The longest that any call waits for Redis, its one repetition included."""

OPEN_SECONDS_MAX = 1.5

BATCH = 200
"""Members a script call; a longer one would keep every other node waiting (2,000 take Redis some 10 ms)."""

LANES_A_PAGE = 500
LANES_A_CLEARING = 100

PATIENCE_MS = 10_000
"""Who was told that the index is lost has this long to restore it before another is told too."""

MARK_MS = 3_600_000
"""A node that is away for longer takes the index for lost when it comes back; that costs one restoration."""

OWED_MAX = 10_000
"""So many members that Redis did not take are remembered; after more the index counts as lost."""

REDIS_VERSION_MIN = (6, 2)
SHARDS_MAX = 64

_AWAY = "The timetable does not answer. Until it does, due jobs are found in the ledger, a little later."


class _Shard:
    """The keys of one shard, and what this node knows of it."""

    def __init__(self, prefix: str, number: int, claimer: str, monotonic: Callable[[], float]) -> None:
        tag = f"{prefix}:{{{number}}}:"
        self.lanes = tag + "lanes"
        self.record = f"{tag}claim:{claimer}"
        self.epoch = tag + "epoch"
        self.mark = f"{tag}mark:{claimer}"
        self.duty = tag + "duty"
        self.channel = tag + "earlier"
        self.breaker = Breaker(monotonic)
        self.claiming = asyncio.Lock()  # the record is of one claim at a time
        self.claim_answered = 0  # the last number of a claim whose answer came
        self.mark_known = 0  # the last number that the mark is known to have had
        self.epoch_known = 0
        self.epoch_told = 0  # the last of which this node was told to restore the members
        self.away = False
        self.refused: dict[str, str] = {}  # script -> what it was refused for


class RedisTimetable:
    """Keeps `contract.Timetable` in Redis; to be closed by who opened it."""

    def __init__(self, clients: RedisClients, *, prefix: str, shards: int) -> None:
        self._clients = clients
        self._clock = SystemClock()
        self._claimer = secrets.token_hex(8)
        self._shards = [_Shard(prefix, number, self._claimer, self._clock.monotonic) for number in range(shards)]
        self._owed: dict[str, Instant] = {}  # what Redis did not take
        self._owes_more = False  # than could be remembered
        self._numbers = itertools.count(1)  # one for every call sent: a later call has the higher number
        self._first_shard = 0  # of the next claim
        self._turn = 0  # where the next claim begins when more lanes are due than it may take
        self._earlier = asyncio.Event()
        self._wakeups = Wakeups(
            clients,
            [shard.channel for shard in self._shards],
            self._claimer,
            clock=self._clock,
            wake=self._earlier.set,
        )
        self._listening: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, url: str, *, prefix: str = "zerocron", shards: int = 1) -> Self:
        """Connect and listen; succeeds also while Redis is away. All nodes must agree on `prefix` and `shards`.

        Raises Invalid.
        """
        if not prefix or set(prefix) & set("{}"):
            raise Invalid("The prefix of Redis keys must not be empty or hold braces.", field="redis_prefix")
        if not 1 <= shards <= SHARDS_MAX:
            raise Invalid(f"The number of shards must be between 1 and {SHARDS_MAX}.", field="redis_shards")
        timetable = cls(connect(url), prefix=prefix, shards=shards)
        timetable._listening = asyncio.create_task(timetable._wakeups.run(), name="timetable-wakeups")
        try:
            await timetable._inspect()
        except BaseException:
            await timetable.close()
            raise
        return timetable

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        await self._clients.aclose()

    @property
    def earlier(self) -> asyncio.Event:
        return self._earlier

    async def put(self, due: Mapping[str, Instant]) -> None:
        for shard, members in self._batches(due):
            words = [shard.channel, self._claimer, *_pairs_by_lane(members, due)]
            try:
                earlier = await self._call(shard, scripts.PUT, [shard.lanes], words)
            except TimetableAway:
                self._owe({member: due[member] for member in members})  # logged; `lost` puts them
                continue
            if self._owed:
                self._owe_no_more(members)
            if earlier:
                self._earlier.set()

    async def restore(self, due: Mapping[str, Instant], *, now: Instant) -> int:
        restored = 0
        for shard, members in self._batches(due):
            words = [shard.channel, self._claimer, now + HIDE_MS, *_pairs_by_lane(members, due)]
            count, earlier = await self._call(shard, scripts.RESTORE, [shard.lanes], words)
            restored += count
            if earlier:
                self._earlier.set()
        return restored

    async def drop(self, members: Iterable[str]) -> None:
        for shard, batch in self._batches(members):
            words: list[str | int] = []
            for lane, its in _by_lane(batch).items():
                words += [lane, len(its), *its]
            if self._owed:
                self._owe_no_more(batch)
            try:
                await self._call(shard, scripts.DROP, [shard.lanes], words)
            except TimetableAway:
                continue  # logged; a member that is no longer due is dropped when it is claimed

    async def claim(self, now: Instant, limit: int, hide_ms: int = HIDE_MS, *, without: Collection[str] = ()) -> Claim:
        """One shard after the other, each time from another one on, until the limit is reached. A shard that is away
        costs its own members only: TimetableAway is raised when nothing was found elsewhere."""
        wanted = max(0, min(limit, CLAIM_LIMIT_MAX))
        first = self._first_shard
        self._first_shard = (first + 1) % len(self._shards)
        members: list[str] = []
        instants: list[Instant] = []
        away: TimetableAway | None = None
        for shard in self._shards[first:] + self._shards[:first]:
            try:
                next_due, *claimed = await self._claim_from(shard, now, wanted - len(members), hide_ms, without)
            except TimetableAway as error:
                away = error
                continue
            members += claimed
            if next_due:
                instants.append(int(next_due))
        if away is not None and not members:
            raise away
        return Claim(members, min(instants, default=None))

    async def clear(self) -> None:
        for shard in self._shards:
            while await self._call(shard, scripts.CLEAR, [shard.lanes, shard.epoch], [LANES_A_CLEARING]):
                pass

    async def size(self) -> int:
        total = 0
        for shard in self._shards:
            for start in itertools.count(0, LANES_A_PAGE):
                members, lanes = await self._call(shard, scripts.SIZE, [shard.lanes], [start, LANES_A_PAGE])
                total += members
                if lanes < LANES_A_PAGE:
                    break
        return total

    async def lost(self, now: Instant) -> bool:
        """By marks and epochs, see `lua/lost.lua`. A shard that is away is asked again the next time; TimetableAway is
        raised when no other has lost members. What Redis did not take when this node put it is put now."""
        lost = False
        away: TimetableAway | None = None
        for shard in self._shards:
            try:
                lost |= await self._lost_by(shard, now)
            except TimetableAway as error:
                away = error
        if away is not None and not lost:
            raise away
        if lost or self._owes_more:
            self._owed, self._owes_more = {}, False  # all members come
            return True
        if self._owed:
            owed, self._owed = self._owed, {}
            await self.put(owed)  # not `restore`: most were claimed a moment ago, and are still hidden by that
            if self._owed:
                raise TimetableAway(_AWAY)
        return False

    async def on_duty(self, seconds: float) -> bool:
        shard = self._shards[0]
        words: list[str | int] = [self._claimer, max(1, round(seconds * 1000))]
        return bool(await self._call(shard, scripts.DUTY, [shard.duty], words))

    async def eviction_policy(self) -> str:
        """What Redis does when its memory is full; "" when this user may not know. Raises TimetableAway."""
        try:
            async with asyncio.timeout(CALL_SECONDS_MAX):
                return str((await self._clients.info()).get("maxmemory_policy", ""))
        except UNREACHABLE as error:
            raise TimetableAway(_AWAY) from error
        except RedisError:
            return ""

    def _owe(self, due: Mapping[str, Instant]) -> None:
        self._owed |= due
        if len(self._owed) > OWED_MAX:
            self._owed, self._owes_more = {}, True

    def _owe_no_more(self, members: Iterable[str]) -> None:
        for member in members:
            self._owed.pop(member, None)

    async def _claim_from(
        self, shard: _Shard, now: Instant, wanted: int, hide_ms: int, without: Collection[str]
    ) -> list[str]:
        """The script's answer: the next due instant or "", and the members."""

        async def attempt() -> list[str]:
            number = next(self._numbers)
            words: list[str | int] = [now, wanted, now + hide_ms, hide_ms, number, shard.claim_answered, self._turn]
            words += [shard.mark_known, MARK_MS, *without]
            answer = await self._clients.run(scripts.CLAIM, [shard.lanes, shard.record, shard.mark], words)
            shard.claim_answered = number
            self._turn += wanted
            shard.mark_known = max(shard.mark_known, number)
            return cast(list[str], answer)

        async with shard.claiming:
            return await self._guarded(shard, scripts.CLAIM, attempt)

    async def _lost_by(self, shard: _Shard, now: Instant) -> bool:
        async def attempt() -> bool:
            number = next(self._numbers)
            words: list[str | int] = [self._claimer, now, shard.epoch_known, shard.mark_known, number, shard.epoch_told]
            words += [PATIENCE_MS, MARK_MS]
            lost, epoch = await self._clients.run(scripts.LOST, [shard.epoch, shard.mark], words)
            shard.epoch_known = epoch
            shard.mark_known = max(shard.mark_known, number)
            if lost:
                shard.epoch_told = epoch
            return bool(lost)

        return await self._guarded(shard, scripts.LOST, attempt)

    async def _call(self, shard: _Shard, script: Script, keys: Sequence[str], words: Sequence[str | int]) -> Any:
        return await self._guarded(shard, script, lambda: self._clients.run(script, keys, words))

    async def _guarded(self, shard: _Shard, script: Script, attempt: Callable[[], Awaitable[T]]) -> T:
        """Try, and try once more when the connection broke; TimetableAway for every failure. One log line an outage."""
        if not shard.breaker.admits():
            raise TimetableAway(_AWAY)
        try:
            async with asyncio.timeout(CALL_SECONDS_MAX):
                try:
                    answer = await attempt()
                except RedisConnectionError:
                    answer = await attempt()
        except UNREACHABLE as error:
            shard.breaker.failed()
            if not shard.away:
                log.warning("redis_away", shard=shard.lanes, error=kind_of(error))
                shard.away = True
            raise TimetableAway(_AWAY) from error
        except RedisError as error:  # an answer: it costs nobody time, so that the breaker stays as it is
            shard.breaker.succeeded()
            self._note_refusal(shard, script, error)
            raise TimetableAway(_AWAY) from error
        except BaseException:
            shard.breaker.abandoned()
            raise
        shard.breaker.succeeded()
        self._note_success(shard, script)
        return answer

    def _note_refusal(self, shard: _Shard, script: Script, error: RedisError) -> None:
        kind = kind_of(error)
        if shard.refused.get(script.name) == kind:
            return
        shard.refused[script.name] = kind
        if isinstance(error, OutOfMemoryError):
            log.error("redis_out_of_memory", shard=shard.lanes, script=script.name, advice="Raise maxmemory.")
        else:
            log.warning("redis_refused", shard=shard.lanes, script=script.name, error=kind)

    def _note_success(self, shard: _Shard, script: Script) -> None:
        if shard.away:
            shard.away = False
            log.info("redis_back", shard=shard.lanes)
        if shard.refused.pop(script.name, None):
            log.info("redis_accepts_again", shard=shard.lanes, script=script.name)

    def _batches(self, members: Iterable[str]) -> Iterator[tuple[_Shard, list[str]]]:
        """Members by shard, at most `BATCH` at a time."""
        by_shard: dict[int, list[str]] = {}
        for member in members:
            by_shard.setdefault(self._shard_of(member), []).append(member)
        for number, its in by_shard.items():
            for start in range(0, len(its), BATCH):
                yield self._shards[number], its[start : start + BATCH]

    def _shard_of(self, member: str) -> int:
        if len(self._shards) == 1:
            return 0
        identity = member.rpartition(":")[2]
        return zlib.crc32(identity.encode("utf-8", "surrogateescape")) % len(self._shards)

    async def _inspect(self) -> None:
        """Warn about a server that does not suit, and wait until the node can be woken."""
        try:
            async with asyncio.timeout(OPEN_SECONDS_MAX):
                self._warn(await self._clients.info())
                await self._wakeups.subscribed.wait()
        except (RedisError, *UNREACHABLE) as error:
            log.warning("redis_not_inspected", error=kind_of(error))

    def _warn(self, info: Mapping[str, Any]) -> None:
        policy, version = str(info.get("maxmemory_policy", "")), str(info.get("redis_version", ""))
        if policy not in ("noeviction", ""):
            log.warning("redis_may_evict", policy=policy, advice="Set maxmemory-policy to noeviction.")
        numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
        if numbers and numbers < REDIS_VERSION_MIN:
            oldest = ".".join(map(str, REDIS_VERSION_MIN))
            log.warning("redis_too_old", version=version, advice=f"Use Redis {oldest} or later.")


def _by_lane(members: Iterable[str]) -> dict[str, list[str]]:
    lanes: dict[str, list[str]] = {}
    for member in members:
        lanes.setdefault(lane_of(member), []).append(member)
    return lanes


def _pairs_by_lane(members: Iterable[str], due: Mapping[str, Instant]) -> list[str | int]:
    """What `put` and `restore` take: for each lane its name, the number of pairs, and the pairs."""
    words: list[str | int] = []
    for lane, its in _by_lane(members).items():
        words += [lane, len(its)]
        for member in its:
            words += [due[member], member]
    return words
