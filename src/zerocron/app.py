"""The only place that joins the house: settings in, a running server out.

Owns the order of starting and stopping. Starting: lock and migrate the ledger, settle what a dead process left, listen.
Stopping (SIGTERM or SIGINT): stop claiming, wait for what is in flight while the API still answers, record, close; a
second signal ends the wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import os
import platform
import re
import resource
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog
from fastapi import FastAPI
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from zerocron import __version__
from zerocron.actions import resume
from zerocron.actions.channels import Channels
from zerocron.actions.entrance import Entrance
from zerocron.actions.jobs import Jobs
from zerocron.actions.keys import Keys
from zerocron.actions.monitors import Monitors
from zerocron.actions.one_time_links import new_reset_link, new_setup_link
from zerocron.actions.ping_tokens import TokenDirectory, TokenKeeper
from zerocron.actions.pings import Pings
from zerocron.actions.secrets import Secrets, check_master_keys
from zerocron.actions.sign_ins import SignIns
from zerocron.actions.signing import Signing
from zerocron.api.application import create_application
from zerocron.api.services import Services
from zerocron.channels.contract import Kind, Ways
from zerocron.channels.registry import KINDS
from zerocron.channels.sending import Outlets
from zerocron.clock import Clock, LedgerClock, SystemClock
from zerocron.core.addresses import OwnEndpoint, parse_allow
from zerocron.core.errors import Conflict, Unauthorized, Unavailable
from zerocron.core.model import DEFAULT_TEAM_ID, Instant
from zerocron.core.schedule import tzdata_version
from zerocron.core.sealing import Keyring, new_master_key, read_master_keys
from zerocron.demo import SAMPLES, DemoTarget, make_monitor, make_samples
from zerocron.engine.run import Bounds, Engine, Loop
from zerocron.engine.sessions import RENEW_SECONDS, OnTime, Session
from zerocron.engine.starting import StopPoint
from zerocron.engine.zonedata import ZoneData
from zerocron.metrics import Metrics
from zerocron.outbound import Outbound
from zerocron.serving import HttpServer, listen, url_of
from zerocron.settings import Settings
from zerocron.storage.ledger.database import Ledger, SqliteLedger
from zerocron.storage.ledger.membership import Membership
from zerocron.storage.ledger.postgres import PostgresLedger
from zerocron.storage.ledger.sessions import database_time, live_clock_differences
from zerocron.storage.migrations import upgrade
from zerocron.storage.timetable.contract import Timetable
from zerocron.storage.timetable.memory import MemoryTimetable
from zerocron.storage.timetable.redis import RedisTimetable

log = structlog.get_logger(__name__)

SWITCH_INTERVAL_SECONDS = {"sqlite": 0.001, "postgresql": 0.0001}
"""How long Python lets one thread run before another that waits gets its turn. At the default of 5 ms the ledger's
thread waits behind a busy event loop for seconds (decision 0005). Each turn costs: ten times fewer of them make a burst
of 10,000 runs on SQLite a tenth faster. PostgreSQL's thread asks for a turn at every answer, and a later one shows."""

OTHER_FILES = 1_000
"""Open files beside the requests: clients of the API, the ledger, logs."""

GARBAGE_THRESHOLDS = (20_000, 50, 100)
"""When Python looks for garbage in cycles. A request in flight is some two hundred objects, so that at the default of
700 a burst spends a third of its time looking through them; almost nothing here is in cycles."""


CLOCK_SAMPLES = 3

PINGS = re.compile(r"/v1/ping/[0-9a-f]{64}(/[a-z0-9]{1,5})?")
"""The paths of our own that a job may call."""

EARLY_MS = 25
"""So long before its slot a run is committed: what a start transaction takes (decision 0011). Its request leaves at the
slot, not before."""


@dataclass(slots=True)
class Node:
    """A running node over one ledger; `engine` None on one that only serves the API."""

    engine: Engine | None
    application: FastAPI
    jobs: Jobs
    keys: Keys
    secrets: Secrets
    ledger: Ledger
    monitors: Monitors
    pings: Pings
    clock: Clock


@contextlib.asynccontextmanager
async def run_node(
    settings: Settings,
    *,
    clock: Clock | None = None,
    force: asyncio.Event | None = None,
    resume_from_now: bool = False,
    stop_point: StopPoint = lambda _name: None,
    kinds: Mapping[str, Kind] = KINDS,
) -> AsyncIterator[Node]:
    """A node that works until the block is left. Raises Conflict when another process has its data."""
    _tune_interpreter(settings)
    _allow_open_files(settings)
    async with contextlib.AsyncExitStack() as stack:
        ground = await _lay_ground(settings, clock, stack)
        ledger, clock, metrics = ground.ledger, ground.clock, ground.metrics
        if resume_from_now:
            await resume.from_now(ledger, clock, exclusive=isinstance(ledger, SqliteLedger))
        outbound = await _open_door(settings, stack)
        outlets = _outlets(settings, outbound, clock, kinds)
        engine = _make_engine(settings, ground, outbound, outlets, stop_point) if settings.role != "api" else None
        jobs = Jobs(
            ledger=ledger,
            timetable=ground.timetable,
            clock=clock,
            allow_insecure_tls=settings.allow_insecure_tls,
        )
        keys = Keys(ledger=ledger, clock=clock)
        secrets = Secrets(ledger=ledger, clock=clock, keyring=ground.keyring, stop_point=stop_point)
        channels = Channels(ledger=ledger, clock=clock, secrets=secrets, outlets=outlets)
        entrance = Entrance(ledger=ledger, clock=clock, secrets=secrets, outlets=outlets)
        stack.push_async_callback(entrance.close)
        monitors, pings, ping_loops = await _make_monitors(settings, ground, stack)
        if engine is not None:
            engine.heartbeat.pings_owed_since = lambda: pings.owed_since
        if settings.role != "engine":
            await _keep_local_key(keys, settings.local_key_path)
        application = create_application(
            Services(
                ledger=ledger,
                timetable=ground.timetable,
                jobs=jobs,
                keys=keys,
                secrets=secrets,
                signing=Signing(ledger=ledger, clock=clock, secrets=secrets),
                clock=clock,
                metrics=metrics,
                stalled=partial(_stalled, engine, ping_loops),
                version=__version__,
                serve_metrics=settings.metrics,
                monitors=monitors,
                channels=channels,
                pings=pings,
                base_url=outlets.base_url,
                entrance=entrance,
            ),
            only_operation=settings.role == "engine",
        )
        if engine is not None:
            await engine.start()
            stack.push_async_callback(engine.stop, settings.drain_seconds, force)
        else:
            time_keeping = Loop("clock", partial(_keep_time, ledger, ground.on_time), clock=clock, metrics=metrics)
            time_keeping.start()
            stack.push_async_callback(time_keeping.stop)
        _start_upkeep(engine, keys, entrance.sign_ins, ground, stack)
        yield Node(engine, application, jobs, keys, secrets, ledger, monitors, pings, clock)


def _start_upkeep(
    engine: Engine | None, keys: Keys, sign_ins: SignIns, ground: Ground, stack: contextlib.AsyncExitStack
) -> None:
    """What goes on beside the work: it may be late, and its failures stop nothing."""
    clock, metrics = ground.clock, ground.metrics
    for name, save in (("key-use", keys.save_use), ("sign-in-use", sign_ins.save_use)):
        use = Loop(name, save, clock=clock, metrics=metrics)
        use.start()
        stack.push_async_callback(_stop_use, use, save)
    if engine is None:
        return
    zone_data = ZoneData(ledger=ground.ledger, timetable=ground.timetable, clock=clock, version=tzdata_version())
    for name, tick in (("secret-use", engine.unsealer.save_use), ("zone-data", zone_data.tick)):
        loop = Loop(name, tick, clock=clock, metrics=metrics)
        loop.start()
        stack.push_async_callback(loop.stop)


@dataclass(frozen=True, slots=True)
class Ground:
    """What a node stands on. `on_time` is to be told the ledger's time."""

    ledger: Ledger
    timetable: Timetable
    clock: Clock
    on_time: OnTime
    metrics: Metrics
    keyring: Keyring


async def _lay_ground(settings: Settings, clock: Clock | None, stack: contextlib.AsyncExitStack) -> Ground:
    await asyncio.to_thread(settings.data_dir.mkdir, parents=True, exist_ok=True)
    metrics = Metrics()
    metrics.build.info({"version": __version__, "tzdata": tzdata_version()})
    ledger, clock, on_time = await _open_ledger(settings, clock)
    stack.push_async_callback(ledger.close)
    keyring = await _find_master_keys(settings, ledger)
    if settings.database_url and settings.role != "api":
        membership = await Membership.join(settings.database_url, clock=clock, alone=not settings.redis_url)
        stack.push_async_callback(membership.leave)
    return Ground(ledger, await _open_timetable(settings, stack), clock, on_time, metrics, keyring)


async def _find_master_keys(settings: Settings, ledger: Ledger) -> Keyring:
    """The master keys of this node, which are those that the ledger needs. Raises Invalid, Conflict.

    A node without any may share a PostgreSQL ledger for as long as no node has one: a cluster that keeps no secrets
    needs no key, and one that does is joined by nobody who could not open them.
    """
    path = settings.secret_key_path
    hint = "Add the right one to ZEROCRON_SECRET_KEY: several are separated by commas, the newest first."
    if settings.secret_key:
        keyring = read_master_keys(settings.secret_key, source="ZEROCRON_SECRET_KEY")
    elif settings.database_url:
        keyring = Keyring()
    else:
        hint = f"Put back the file {path} as it was, or set ZEROCRON_SECRET_KEY to what it held."
        text = await asyncio.to_thread(_read_if_there, path)
        if text is None:
            await check_master_keys(ledger, Keyring(), hint)  # a key that was lost must not be replaced by another one
            text = await asyncio.to_thread(_keep_first_private, path, new_master_key())
        keyring = read_master_keys(text, source=str(path))
    await check_master_keys(ledger, keyring, hint)
    return keyring


def _own_endpoints(settings: Settings) -> list[OwnEndpoint]:
    """Where this server is reached, which no job may call, but for pings: they start nothing."""
    own = [OwnEndpoint(settings.host, settings.port, PINGS)]
    return [*own, OwnEndpoint.of_url(settings.base_url, PINGS)] if settings.base_url else own


async def _open_door(settings: Settings, stack: contextlib.AsyncExitStack) -> Outbound:
    """The way to other people's servers: for jobs on engines, for messages on all nodes."""
    outbound = Outbound(
        allow=parse_allow(settings.outbound_allow),
        own=_own_endpoints(settings),
        connections_max=settings.in_flight_max,
        user_agent=f"0cron/{__version__}",
    )
    await outbound.start()
    stack.push_async_callback(outbound.close)
    return outbound


def _outlets(settings: Settings, outbound: Outbound, clock: Clock, kinds: Mapping[str, Kind]) -> Outlets:
    ways = Ways(outbound.send, clock.now, mail=settings.mail, apprise_allowed=settings.apprise, dial=outbound.dial)
    return Outlets(kinds, ways, settings.base_url.rstrip("/"))


def _make_engine(
    settings: Settings,
    ground: Ground,
    outbound: Outbound,
    outlets: Outlets,
    stop_point: StopPoint,
) -> Engine:
    session = Session(
        ledger=ground.ledger,
        timetable=ground.timetable,
        clock=ground.clock,
        metrics=ground.metrics,
        node=f"{platform.node()}:{os.getpid()}",
        version=__version__,
        exclusive=isinstance(ground.ledger, SqliteLedger),
        on_time=ground.on_time,
        machine_now=SystemClock().now,
    )
    return Engine(
        ledger=ground.ledger,
        timetable=ground.timetable,
        clock=ground.clock,
        metrics=ground.metrics,
        session=session,
        send=outbound.send,
        keyring=ground.keyring,
        allow_insecure_tls=settings.allow_insecure_tls,
        outlets=outlets,
        bounds=Bounds(
            in_flight_max=settings.in_flight_max,
            team_in_flight_max=settings.team_in_flight_max,
            host_in_flight_max=settings.host_in_flight_max,
            early_ms=EARLY_MS,
            retry_percent_max=settings.retry_percent_max,
            history_days=settings.history_days,
            history_runs_per_job=settings.history_runs_per_job,
        ),
        stop_point=stop_point,
    )


async def _make_monitors(
    settings: Settings, ground: Ground, stack: contextlib.AsyncExitStack
) -> tuple[Monitors, Pings, list[Loop]]:
    """The verbs on monitors and the path of pings with its loops, which a node without an API does not serve."""
    ledger, clock, metrics = ground.ledger, ground.clock, ground.metrics
    exclusive = isinstance(ledger, SqliteLedger)
    keeper = await TokenKeeper.open(ledger, ground.keyring)
    tokens = TokenDirectory(ledger=ledger, clock=clock, keeper=keeper, exclusive=exclusive)
    monitors = Monitors(ledger=ledger, timetable=ground.timetable, clock=clock, tokens=tokens)
    pings = Pings(
        ledger=ledger,
        timetable=ground.timetable,
        clock=clock,
        tokens=tokens,
        per_second=settings.pings_per_second,
        exclusive=exclusive,
    )
    loops = []
    if settings.role != "engine":
        await tokens.load()
        await pings.pulse()
        pings.start()
        stack.push_async_callback(pings.stop)
        loops.append(Loop("pulse", pings.pulse, clock=clock, metrics=metrics))
        if not exclusive:
            loops.append(Loop("tokens", tokens.tick, clock=clock, metrics=metrics))
        for loop in loops:
            loop.start()
            stack.push_async_callback(loop.stop)
    return monitors, pings, loops


def _stalled(engine: Engine | None, ping_loops: list[Loop]) -> list[str]:
    """Names of parts that do not go round, whichever this node has."""
    stalled = engine.stalled() if engine is not None else []
    return [*stalled, *(loop.name for loop in ping_loops if loop.is_stalled)]


async def _open_ledger(settings: Settings, clock: Clock | None) -> tuple[Ledger, Clock, OnTime]:
    """The ledger, its clock, and who is to be told the ledger's time."""
    if not settings.database_url:
        return await SqliteLedger.open(settings.database_path, upgrade), clock or SystemClock(), _no_news
    ledger = await PostgresLedger.open(
        settings.database_url, upgrade, connections_max=settings.database_connections_max
    )
    ledger_clock = LedgerClock()
    try:
        for _ in range(CLOCK_SAMPLES):
            await _keep_time(ledger, ledger_clock.observe)
    except BaseException:
        await ledger.close()
        raise
    return ledger, ledger_clock, ledger_clock.observe


def _no_news(_now: Instant, _before: float, _after: float) -> None:
    """The machine's clock is the ledger's."""


async def _keep_time(ledger: Ledger, on_time: OnTime) -> float:
    """Ask the database for its time; returns the seconds until the next time. Engines do so as they renew."""
    clock = SystemClock()
    before = clock.monotonic()
    database_now = await ledger.read(database_time)
    if database_now is not None:
        on_time(database_now, before, clock.monotonic())
    return RENEW_SECONDS


async def _open_timetable(settings: Settings, stack: contextlib.AsyncExitStack) -> Timetable:
    if not settings.redis_url:
        return MemoryTimetable()
    timetable = await RedisTimetable.open(
        settings.redis_url, prefix=settings.redis_prefix, shards=settings.redis_shards
    )
    stack.push_async_callback(timetable.close)
    return timetable


def _allow_open_files(settings: Settings) -> None:
    """A request in flight is an open file, and many systems allow a process 1,024 unless it asks for more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = settings.in_flight_max + OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < wanted:
        log.warning("few_open_files_allowed", allowed=allowed, wanted=wanted, hint="Raise the limit of open files.")


def _tune_interpreter(settings: Settings) -> None:
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS["postgresql" if settings.database_url else "sqlite"])
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    gc.collect()
    gc.freeze()  # modules and classes stay for ever; no need to look at them again and again


async def _stop_use(loop: Loop, save: Callable[[], Awaitable[float]]) -> None:
    await loop.stop()
    await save()


async def _keep_local_key(keys: Keys, path: Path) -> None:
    """See to it that the file beside the data holds an API key that works, readable by its owner only."""
    text = await asyncio.to_thread(_read_if_there, path)
    if text is not None:
        with contextlib.suppress(Unauthorized):
            await keys.recognise(f"Bearer {text}")
            return
    _, token = await keys.create(DEFAULT_TEAM_ID, "local command line")
    await asyncio.to_thread(_write_private, path, token.text + "\n")


def _read_if_there(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None


def _write_private(path: Path, text: str) -> None:
    """The file holds the text, whole, for its owner only (0600)."""
    with _draft(path, text) as draft:
        draft.replace(path)


def _keep_first_private(path: Path, text: str) -> str:
    """What the file holds: the text, or what another process wrote first."""
    with _draft(path, text + "\n") as draft:
        try:
            os.link(draft, path)  # which replaces nothing
        except FileExistsError:
            return path.read_text(encoding="utf-8").strip()
        except OSError:
            draft.replace(path)  # a file system without links; the ledger's lock lets one process come so far
    return text


@contextlib.contextmanager
def _draft(path: Path, text: str) -> Iterator[Path]:
    """A file beside the path, to become it. Its name is its own: process ids are the same in many containers."""
    file, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    draft = Path(name)
    try:
        try:
            os.write(file, text.encode())
            os.fsync(file)
        finally:
            os.close(file)
        yield draft
    finally:
        draft.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # what is sealed with a key must not outlive it in a power cut
    finally:
        os.close(folder)


@dataclass(frozen=True, slots=True)
class Announcement:
    """What a server says about itself once it works."""

    url: str
    data_dir: Path
    sample_jobs: int
    role: str
    ledger: str
    timetable: str
    setup_url: str | None = None


async def serve(
    settings: Settings,
    *,
    demo: bool = False,
    resume_from_now: bool = False,
    announce: Callable[[Announcement], None] = lambda _news: None,
    stop_point: StopPoint = lambda _name: None,
) -> None:
    """Serve until a signal comes. Raises Conflict when the address or the data are in use."""
    listener = listen(settings.host, settings.port)
    host, port = listener.getsockname()[:2]
    settings = dataclasses.replace(settings, host=host, port=port)  # as they are: a port of 0 took a free one
    stopping, force = asyncio.Event(), asyncio.Event()
    _on_signals(stopping, force)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(listener.close)
        target = DemoTarget() if demo else None
        if target is not None:
            await target.start()
            stack.push_async_callback(target.stop)
            rules = filter(None, (settings.outbound_allow, f"127.0.0.1/32:{target.port}"))
            settings = dataclasses.replace(settings, outbound_allow=",".join(rules))
        node = await stack.enter_async_context(
            run_node(settings, force=force, resume_from_now=resume_from_now, stop_point=stop_point)
        )
        server = HttpServer(node.application, listener)
        await server.start()
        stack.push_async_callback(server.stop)
        if target is not None:
            await make_samples(node.jobs, target.port)
            target.ping_url = await make_monitor(node.monitors, url_of(listener))
        url = url_of(listener)
        setup_path = await _setup_path(node) if settings.role != "engine" else None
        await asyncio.to_thread(_write_private, settings.local_url_path, url + "\n")
        stack.callback(settings.local_url_path.unlink, missing_ok=True)
        announce(
            Announcement(
                url,
                settings.data_dir,
                len(SAMPLES) if demo else 0,
                settings.role,
                "PostgreSQL" if settings.database_url else "SQLite",
                "Redis" if settings.redis_url else "memory",
                None if setup_path is None else (settings.base_url.rstrip("/") or url) + setup_path,
            )
        )
        await stopping.wait()
        if node.engine is not None:
            await node.engine.stop(settings.drain_seconds, force)  # first of all, so that the API answers meanwhile


def _on_signals(stopping: asyncio.Event, force: asyncio.Event) -> None:
    def stop(name: str) -> None:
        if stopping.is_set():
            force.set()
        log.info("stopping", signal=name, forced=force.is_set())
        stopping.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number.name)


async def _setup_path(node: Node) -> str | None:
    """Where the first owner is made; None when there is one."""
    now = node.clock.now()
    try:
        return await node.ledger.write(lambda connection: new_setup_link(connection, now))
    except Conflict:
        return None


async def one_time_url(settings: Settings, *, reset_email: str | None = None, remove_totp: bool = False) -> str:
    """A link that makes the first owner, or lets the person of that address set a new password (with `remove_totp` the
    second factor that they have lost is taken off). A server may run. Raises Conflict when there is an owner, NotFound,
    Invalid, Unavailable."""

    def make(connection: Connection) -> str:
        now = database_time(connection) or SystemClock().now()
        if reset_email is None:
            return new_setup_link(connection, now)
        return new_reset_link(connection, reset_email, now, remove_totp=remove_totp)

    ledger: Ledger
    if settings.database_url:
        ledger = await PostgresLedger.open(settings.database_url, upgrade, connections_max=3)
    else:
        try:
            ledger = await SqliteLedger.open(settings.database_path, upgrade)
        except Conflict:
            ledger = SqliteLedger.beside(settings.database_path)
    try:
        path = await ledger.write(make)
    finally:
        await ledger.close()
    running_at = await asyncio.to_thread(_read_if_there, settings.local_url_path)
    return (settings.base_url or running_at or f"http://{settings.host}:{settings.port}").rstrip("/") + path


async def migrate(settings: Settings) -> None:
    """Bring the ledger's schema up to date, and nothing else. Raises Conflict, Invalid, Unavailable."""
    ledger, _, _ = await _open_ledger(settings, None)
    await ledger.close()


@dataclass(frozen=True, slots=True)
class Away:
    """A service that could not be used, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class ClusterState:
    """What a look at PostgreSQL and Redis found. `redis_policy` None: no Redis is configured."""

    nodes: int | Away
    clock_ahead_ms: int
    redis_policy: str | Away | None


async def look_at_cluster(settings: Settings) -> ClusterState:
    """For `doctor`: connect to both services, change nothing. Raises Invalid for a URL that makes no sense."""
    nodes: int | Away
    ahead_ms = 0
    try:
        ledger = await PostgresLedger.open(settings.database_url, lambda _connection: None, connections_max=3)
    except Unavailable as error:
        nodes = Away(error.message)
    else:
        try:
            nodes, ahead_ms = await ledger.read(_living_nodes)
        except (Unavailable, DBAPIError):
            nodes = Away("Its schema is not there yet, or cannot be read; a server makes it when it starts.")
        finally:
            await ledger.close()
    redis_policy: str | Away | None = None
    if settings.redis_url:
        timetable = await RedisTimetable.open(settings.redis_url, prefix=settings.redis_prefix)
        try:
            await timetable.size()
            redis_policy = await timetable.eviction_policy()
        except Unavailable as error:
            redis_policy = Away(error.message)
        finally:
            await timetable.close()
    return ClusterState(nodes, ahead_ms, redis_policy)


def _living_nodes(connection: Connection) -> tuple[int, int]:
    now = database_time(connection) or 0
    return len(live_clock_differences(connection, now)), SystemClock().now() - now
