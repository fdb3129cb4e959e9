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
import resource
import signal
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import structlog
from fastapi import FastAPI

from zerocron import __version__
from zerocron.actions.jobs import Jobs
from zerocron.actions.keys import Keys
from zerocron.api.application import create_application
from zerocron.api.services import Services
from zerocron.clock import Clock, SystemClock
from zerocron.core.addresses import parse_allow
from zerocron.core.errors import Unauthorized
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.core.schedule import tzdata_version
from zerocron.demo import SAMPLES, DemoTarget, make_samples
from zerocron.engine import zonedata
from zerocron.engine.run import Engine, Loop
from zerocron.engine.starting import StopPoint
from zerocron.metrics import Metrics
from zerocron.outbound import Outbound
from zerocron.serving import HttpServer, listen, url_of
from zerocron.settings import Settings
from zerocron.storage.ledger.database import Ledger, SqliteLedger
from zerocron.storage.migrations import upgrade
from zerocron.storage.timetable.memory import MemoryTimetable

log = structlog.get_logger(__name__)

SWITCH_INTERVAL_SECONDS = 0.0001
"""How long Python lets one thread run before another that waits gets its turn. At the default of 5 ms the ledger's
thread waits behind a busy event loop for seconds (decision 0005)."""

OTHER_FILES = 1_000
"""Open files beside the requests: clients of the API, the ledger, logs."""

GARBAGE_THRESHOLDS = (20_000, 50, 100)
"""When Python looks for garbage in cycles. A request in flight is some two hundred objects, so that at the default of
700 a burst spends a third of its time looking through them; almost nothing here is in cycles."""


@dataclass(slots=True)
class Node:
    """A running node: the engine and the application over one ledger."""

    engine: Engine
    application: FastAPI
    jobs: Jobs
    keys: Keys
    ledger: Ledger
    key_use: Loop


@contextlib.asynccontextmanager
async def run_node(
    settings: Settings,
    *,
    clock: Clock | None = None,
    force: asyncio.Event | None = None,
    stop_point: StopPoint = lambda _name: None,
) -> AsyncIterator[Node]:
    """A node that works until the block is left. Raises Conflict when another process has its data."""
    _tune_interpreter()
    _allow_open_files(settings)
    clock = clock or SystemClock()
    metrics = Metrics()
    metrics.build.info({"version": __version__, "tzdata": tzdata_version()})
    async with contextlib.AsyncExitStack() as stack:
        ledger = await SqliteLedger.open(settings.database_path, upgrade)
        stack.push_async_callback(ledger.close)
        await zonedata.refresh(ledger, clock, tzdata_version())
        outbound = Outbound(
            allow=parse_allow(settings.outbound_allow),
            connections_max=settings.in_flight_max,
            user_agent=f"0cron/{__version__}",
        )
        await outbound.start()
        stack.push_async_callback(outbound.close)
        timetable = MemoryTimetable()
        engine = Engine(
            ledger=ledger,
            timetable=timetable,
            clock=clock,
            metrics=metrics,
            send=outbound.send,
            node=f"{platform.node()}:{os.getpid()}",
            version=__version__,
            in_flight_max=settings.in_flight_max,
            history_days=settings.history_days,
            history_runs_per_job=settings.history_runs_per_job,
            stop_point=stop_point,
        )
        jobs = Jobs(ledger=ledger, timetable=timetable, clock=clock)
        keys = Keys(ledger=ledger, clock=clock)
        await _keep_local_key(keys, settings.local_key_path)
        application = create_application(
            Services(
                ledger=ledger,
                jobs=jobs,
                keys=keys,
                clock=clock,
                metrics=metrics,
                stalled=engine.stalled,
                version=__version__,
                serve_metrics=settings.metrics,
            )
        )
        key_use = Loop("key-use", keys.save_use, clock=clock, metrics=metrics)
        await engine.start()
        stack.push_async_callback(engine.stop, settings.drain_seconds, force)
        key_use.start()
        stack.push_async_callback(_stop_key_use, key_use, keys)
        yield Node(engine, application, jobs, keys, ledger, key_use)


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


def _tune_interpreter() -> None:
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    gc.collect()
    gc.freeze()  # modules and classes stay for ever; no need to look at them again and again


async def _stop_key_use(loop: Loop, keys: Keys) -> None:
    await loop.stop()
    await keys.save_use()


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
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)
    draft.replace(path)


@dataclass(frozen=True, slots=True)
class Announcement:
    """What a server says about itself once it works."""

    url: str
    data_dir: Path
    sample_jobs: int


async def serve(
    settings: Settings,
    *,
    demo: bool = False,
    announce: Callable[[Announcement], None] = lambda _news: None,
    stop_point: StopPoint = lambda _name: None,
) -> None:
    """Serve until a signal comes. Raises Conflict when the address or the data are in use."""
    listener = listen(settings.host, settings.port)
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
        node = await stack.enter_async_context(run_node(settings, force=force, stop_point=stop_point))
        server = HttpServer(node.application, listener)
        await server.start()
        stack.push_async_callback(server.stop)
        if target is not None:
            await make_samples(node.jobs, target.port)
        url = url_of(listener)
        await asyncio.to_thread(_write_private, settings.local_url_path, url + "\n")
        stack.callback(settings.local_url_path.unlink, missing_ok=True)
        announce(Announcement(url, settings.data_dir, len(SAMPLES) if demo else 0))
        await stopping.wait()
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
