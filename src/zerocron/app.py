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
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import structlog
from fastapi import FastAPI

from zerocron import __version__
from zerocron.actions import resume
from zerocron.actions.audit import Audit
from zerocron.actions.changes import Changes
from zerocron.actions.channels import Channels
from zerocron.actions.entrance import Entrance
from zerocron.actions.explaining import Explaining
from zerocron.actions.jobs import Jobs
from zerocron.actions.keys import Keys
from zerocron.actions.monitors import Monitors
from zerocron.actions.oidc import Client, Issuer
from zerocron.actions.one_time_links import new_setup_link
from zerocron.actions.overview import Overview
from zerocron.actions.ping_tokens import TokenDirectory, TokenKeeper
from zerocron.actions.pings import Pings
from zerocron.actions.secrets import Secrets, check_master_keys
from zerocron.actions.signing import Signing
from zerocron.actions.single_sign_on import SingleSignOn
from zerocron.actions.team_limits import note_defaults
from zerocron.actions.teams import Belongings, Teams
from zerocron.api.application import create_application
from zerocron.api.forwarded import Forwarded
from zerocron.api.services import Services
from zerocron.channels.contract import Kind, Ways
from zerocron.channels.registry import KINDS
from zerocron.channels.sending import Outlets
from zerocron.clock import Clock, LedgerClock, SystemClock
from zerocron.core.access import KEY_SCOPES
from zerocron.core.addresses import OwnEndpoint, parse_allow
from zerocron.core.errors import Conflict, Invalid, Unauthorized, Unavailable
from zerocron.core.model import DEFAULT_TEAM_ID, Instant
from zerocron.core.schedule import tzdata_version
from zerocron.core.sealing import Keyring, new_master_key, read_master_keys
from zerocron.core.single_sign_on import parse_domains
from zerocron.dashboard import gallery
from zerocron.dashboard.problem_pages import ProblemPages
from zerocron.dashboard.site import Site
from zerocron.demo import SAMPLES, DemoTarget, make_monitor, make_samples
from zerocron.engine.run import Bounds, Engine, Loop
from zerocron.engine.sessions import RENEW_SECONDS, OnTime, Session
from zerocron.engine.starting import StopPoint
from zerocron.engine.team_history import TeamHistory
from zerocron.engine.trying import Trying
from zerocron.engine.zonedata import ZoneData
from zerocron.metrics import Metrics
from zerocron.outbound import Outbound
from zerocron.private_files import keep_first_private, read_if_there, write_private
from zerocron.serving import HttpServer, listen, url_of
from zerocron.settings import Settings
from zerocron.storage.ledger.database import Ledger, SqliteLedger
from zerocron.storage.ledger.membership import Membership
from zerocron.storage.ledger.postgres import PostgresLedger
from zerocron.storage.ledger.sessions import database_time
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

EARLY_MS = 50
"""So long before its slot a run is committed: what a claim waits for company and a start transaction takes (decision
0011). Its request leaves at the slot, not before."""


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
    changes: Changes


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
    _warn_of_proxies(settings)
    async with contextlib.AsyncExitStack() as stack:
        ground = await _lay_ground(settings, clock, stack)
        ledger, clock = ground.ledger, ground.clock
        await note_defaults(ledger, settings.limits)
        if resume_from_now:
            await resume.from_now(ledger, clock, exclusive=isinstance(ledger, SqliteLedger))
        outbound = await _open_door(settings, stack)
        outlets = _outlets(settings, outbound, clock, kinds)
        engine = _make_engine(settings, ground, outbound, outlets, stop_point) if settings.role != "api" else None
        beside: list[Loop] = []
        services = await _make_services(settings, ground, outbound, outlets, engine, stop_point, beside, stack)
        if settings.role != "engine":
            await _keep_local_key(services.keys, settings.local_key_path)
        application = create_application(
            services,
            only_operation=settings.role == "engine",
            forwarded=Forwarded(settings.proxies, settings.trusted_header) if settings.proxies else None,
        )
        if settings.role != "engine":
            _add_pages(application, settings, clock)
        await _start_work(engine, settings, ground, force, stack)
        beside += _start_upkeep(settings, engine, services, ground, stack)
        yield Node(
            engine,
            application,
            services.jobs,
            services.keys,
            services.secrets,
            ledger,
            services.monitors,
            services.pings,
            clock,
            services.changes,
        )


async def _make_services(
    settings: Settings,
    ground: Ground,
    outbound: Outbound,
    outlets: Outlets,
    engine: Engine | None,
    stop_point: StopPoint,
    beside: list[Loop],
    stack: contextlib.AsyncExitStack,
) -> Services:
    """The verbs, over the ground that the node stands on. `beside` will hold the loops of the upkeep."""
    ledger, clock = ground.ledger, ground.clock
    jobs = _make_jobs(settings, ground)
    keys = Keys(ledger=ledger, clock=clock)
    secrets = Secrets(ledger=ledger, clock=clock, keyring=ground.keyring, stop_point=stop_point)
    channels = Channels(ledger=ledger, clock=clock, secrets=secrets, outlets=outlets)
    entrance = Entrance(ledger=ledger, clock=clock, secrets=secrets, outlets=outlets)
    stack.push_async_callback(entrance.close)
    monitors, pings, ping_loops = await _make_monitors(settings, ground, stack)
    if engine is not None:
        engine.heartbeat.pings_owed_since = lambda: pings.owed_since
    changes = Changes(ledger=ledger, clock=clock)
    stack.push_async_callback(changes.close)
    return Services(
        ledger=ledger,
        timetable=ground.timetable,
        jobs=jobs,
        keys=keys,
        secrets=secrets,
        signing=Signing(ledger=ledger, clock=clock, secrets=secrets),
        clock=clock,
        metrics=ground.metrics,
        stalled=partial(_stalled, engine, ping_loops),
        loops=partial(_loops, engine, ping_loops, beside),
        ledger_kind="postgresql" if settings.database_url else "sqlite",
        timetable_kind="redis" if settings.redis_url else "memory",
        version=__version__,
        serve_metrics=settings.metrics,
        monitors=monitors,
        channels=channels,
        pings=pings,
        base_url=outlets.base_url,
        audit=Audit(ledger=ledger),
        teams=Teams(
            ledger=ledger,
            clock=clock,
            entrance=entrance,
            limits=settings.limits,
            belongings=Belongings(jobs, monitors, channels, secrets),
            keys=keys,
        ),
        limits=settings.limits,
        entrance=entrance,
        overview=Overview(ledger=ledger, clock=clock),
        changes=changes,
        explaining=Explaining(ledger=ledger, clock=clock),
        trying=_make_trying(settings, ground, outbound, stack),
        single_sign_on=_single_sign_on(settings, ground, outbound, entrance),
    )


def _make_jobs(settings: Settings, ground: Ground) -> Jobs:
    return Jobs(
        ledger=ground.ledger,
        timetable=ground.timetable,
        clock=ground.clock,
        allow_insecure_tls=settings.allow_insecure_tls,
        limits=settings.limits,
    )


def _add_pages(application: FastAPI, settings: Settings, clock: Clock) -> None:
    pages = Site(application, clock.now, __version__, base_url=settings.base_url)
    application.router.routes.extend(pages.routes())
    application.add_middleware(ProblemPages, site=pages)
    if settings.development:
        application.router.routes.extend(gallery.routes())


def _make_trying(settings: Settings, ground: Ground, outbound: Outbound, stack: contextlib.AsyncExitStack) -> Trying:
    trying = Trying(
        ledger=ground.ledger,
        clock=ground.clock,
        keyring=ground.keyring,
        send=outbound.send,
        allow_insecure_tls=settings.allow_insecure_tls,
    )
    stack.push_async_callback(trying.close)
    return trying


async def _start_work(
    engine: Engine | None,
    settings: Settings,
    ground: Ground,
    force: asyncio.Event | None,
    stack: contextlib.AsyncExitStack,
) -> None:
    """Begin to run jobs; a node without an engine only keeps the ledger's time."""
    if engine is not None:
        await engine.start()
        stack.push_async_callback(engine.stop, settings.drain_seconds, force)
        return
    tick = partial(keep_time, ground.ledger, ground.on_time)
    time_keeping = Loop("clock", tick, clock=ground.clock, metrics=ground.metrics)
    time_keeping.start()
    stack.push_async_callback(time_keeping.stop)


def _start_upkeep(
    settings: Settings,
    engine: Engine | None,
    services: Services,
    ground: Ground,
    stack: contextlib.AsyncExitStack,
) -> list[Loop]:
    """What goes on beside the work: it may be late, and its failures stop nothing."""
    loops: list[Loop] = []

    def keep(name: str, tick: Callable[[], Awaitable[float]], at_last: Callable[[], Awaitable[object]] | None) -> None:
        loop = Loop(name, tick, clock=ground.clock, metrics=ground.metrics)
        loop.start()
        loops.append(loop)
        stack.push_async_callback(loop.stop if at_last is None else partial(_stop_and_save, loop, at_last))

    keys, sign_ins = services.keys, services.entrance.sign_ins
    keep("key-use", keys.save_use, keys.save_use)
    keep("sign-in-use", sign_ins.save_use, sign_ins.save_use)
    if engine is not None:
        keep("team-deletion", services.teams.finish, None)
        zone_data = ZoneData(
            ledger=ground.ledger, timetable=ground.timetable, clock=ground.clock, version=tzdata_version()
        )
        keep("secret-use", engine.unsealer.save_use, None)
        keep("zone-data", zone_data.tick, None)
        history = TeamHistory(ledger=ground.ledger, clock=ground.clock, bytes_max=settings.limits.history_bytes_max)
        keep("team-history", history.tick, None)
        keep("tally", engine.tally.tick, engine.tally.save)
    return loops


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
    ledger, clock, on_time = await open_ledger(settings, clock)
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
        text = await asyncio.to_thread(read_if_there, path)
        if text is None:
            await check_master_keys(ledger, Keyring(), hint)  # a key that was lost must not be replaced by another one
            text = await asyncio.to_thread(keep_first_private, path, new_master_key())
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


def _single_sign_on(settings: Settings, ground: Ground, outbound: Outbound, entrance: Entrance) -> SingleSignOn:
    """By whose word people may sign in. Raises Invalid for an issuer on a server without a master key."""
    issuer = None
    if settings.oidc_issuer:
        if not ground.keyring:
            raise Invalid(
                "ZEROCRON_OIDC_ISSUER: what browsers keep meanwhile is signed with the master key, and there is none. "
                "Set ZEROCRON_SECRET_KEY, the same on every node; make one with: 0cron secrets new-key",
                field="ZEROCRON_OIDC_ISSUER",
            )
        if settings.oidc_issuer.startswith("http:"):
            log.warning(
                "issuer_without_tls", hint="Whoever stands between this server and the issuer can sign in as anybody."
            )
        client = Client(
            settings.oidc_issuer,
            settings.oidc_client_id,
            settings.oidc_client_secret,
            settings.base_url.rstrip("/") + "/auth/oidc/callback",
        )
        issuer = Issuer(client=client, send=outbound.send, clock=ground.clock)
    return SingleSignOn(
        ledger=ground.ledger,
        clock=ground.clock,
        sign_ins=entrance.sign_ins,
        keyring=ground.keyring,
        issuer=issuer,
        issuer_name=settings.oidc_name or urlsplit(settings.oidc_issuer).hostname or "",
        takes_header=bool(settings.trusted_header),
        domains=parse_domains(settings.sign_up_domains),
    )


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
            audit_days=settings.audit_days,
            runs_per_minute_max=settings.limits.runs_per_minute_max,
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


def _loops(engine: Engine | None, ping_loops: list[Loop], beside: list[Loop]) -> list[tuple[str, bool]]:
    """(name, whether it goes round) of every loop that this node has."""
    stalled = {*_stalled(engine, ping_loops), *(loop.name for loop in beside if loop.is_stalled)}
    known = [*(engine.loops if engine is not None else ()), *ping_loops, *beside]
    names = [loop.name for loop in known]
    return [(name, name not in stalled) for name in [*names, *sorted(stalled - set(names))]]


async def open_ledger(settings: Settings, clock: Clock | None) -> tuple[Ledger, Clock, OnTime]:
    """The ledger, its clock, and who is to be told the ledger's time."""
    if not settings.database_url:
        return await SqliteLedger.open(settings.database_path, upgrade), clock or SystemClock(), _no_news
    ledger = await PostgresLedger.open(
        settings.database_url, upgrade, connections_max=settings.database_connections_max
    )
    ledger_clock = LedgerClock()
    try:
        for _ in range(CLOCK_SAMPLES):
            await keep_time(ledger, ledger_clock.observe)
    except BaseException:
        await ledger.close()
        raise
    return ledger, ledger_clock, ledger_clock.observe


def _no_news(_now: Instant, _before: float, _after: float) -> None:
    """The machine's clock is the ledger's."""


async def keep_time(ledger: Ledger, on_time: OnTime) -> float:
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


def _warn_of_proxies(settings: Settings) -> None:
    """This server speaks no TLS itself: where people reach it by https, something stands before it."""
    if settings.base_url.startswith("https:") and not settings.proxies and settings.role != "engine":
        log.warning(
            "no_trusted_proxies",
            hint="The base URL is https, so there is a proxy, which ZEROCRON_TRUSTED_PROXIES does not name. Until then "
            "all clients count as one, and cookies cannot be marked as Secure.",
        )


def _tune_interpreter(settings: Settings) -> None:
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS["postgresql" if settings.database_url else "sqlite"])
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    gc.collect()
    gc.freeze()  # modules and classes stay for ever; no need to look at them again and again


async def _stop_and_save(loop: Loop, save: Callable[[], Awaitable[object]]) -> None:
    """What is only counted must not make a failure of a stop: the rest is still to be closed, and told to others."""
    await loop.stop()
    try:
        await save()
    except Unavailable as error:
        log.warning("not_saved_at_stop", loop=loop.name, reason=error.message)


async def _keep_local_key(keys: Keys, path: Path) -> None:
    """See to it that the file beside the data holds an API key that works, readable by its owner only."""
    text = await asyncio.to_thread(read_if_there, path)
    if text is not None:
        with contextlib.suppress(Unauthorized):
            await keys.recognise(f"Bearer {text}")
            return
    _, token = await keys.create(DEFAULT_TEAM_ID, "local command line", scopes=KEY_SCOPES)
    await asyncio.to_thread(write_private, path, token.text + "\n")


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
        await asyncio.to_thread(write_private, settings.local_url_path, url + "\n")
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
        await node.changes.close()  # who listens would keep the server from stopping
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
