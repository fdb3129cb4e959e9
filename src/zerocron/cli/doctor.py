"""`0cron doctor`: is everything here as it should be, and what to do where it is not.

Each check is a function that looks at one thing and tells what it found. A doctor harms nobody: it writes one small
file beside the data and removes it, and holds the lock of the data for no longer than it takes to see that it is free.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Literal

import typer
from rich.table import Table
from rich.text import Text

from zerocron import __version__
from zerocron.cli import options as o
from zerocron.cli.client import Answer, Client, Server, data_directory, find_server
from zerocron.cli.errors import FAILED
from zerocron.cli.program import program
from zerocron.cli.show import STYLES, clean, print_json, print_table, say
from zerocron.clock import SystemClock
from zerocron.core.errors import Invalid, Unavailable, ZerocronError
from zerocron.core.schedule import tzdata_version
from zerocron.settings import Settings, load

FREE_BYTES_LOW = 1_000_000_000
FREE_BYTES_MIN = 100_000_000
CLOCK_SECONDS_OFF = 2
CLOCK_SECONDS_MAX = 5
SQLITE_MIN = (3, 35, 0)
"""The first that knows RETURNING, which the ledger uses; UPDATE ... FROM is older."""

CHECK_SECONDS_MAX = 30
CHECK_STEPS = 100_000
"""How many of SQLite's steps lie between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check saw, and what to do about it."""

    check: str
    status: Literal["ok", "warn", "FAIL"]
    message: str
    advice: str | None = None


def doctor(
    as_json: o.AsJson = False, api_url: o.ApiUrl = None, api_key: o.ApiKey = None, data_dir: o.DataDir = None
) -> None:
    """Check this installation, its data and its server; exit code 1 when something must be mended."""
    findings = list(_examine(api_url, api_key, data_dir))
    is_well = all(finding.status != "FAIL" for finding in findings)
    if as_json:
        print_json({"ok": is_well, "checks": [asdict(finding) for finding in findings]})
    else:
        _print(findings)
    if not is_well:
        raise typer.Exit(FAILED)


def _print(findings: list[Finding]) -> None:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for finding in findings:
        message = Text(clean(finding.message))
        if finding.advice is not None and finding.status != "ok":
            message.append(f"\n{clean(finding.advice)}", style="dim")
        grid.add_row(Text(finding.status, style=STYLES[finding.status]), Text(finding.check), message)
    print_table(grid)
    failed = sum(finding.status == "FAIL" for finding in findings)
    warned = sum(finding.status == "warn" for finding in findings)
    say()
    say(f"{failed} to mend, {warned} to look at." if failed or warned else "All is well.")


def _examine(api_url: str | None, api_key: str | None, data_dir: Path | None) -> Iterator[Finding]:
    yield _software()
    settings, finding = _settings(data_dir)
    yield finding
    if settings.database_url:
        yield from _cluster(settings)
        yield from _server(settings, None, api_url, api_key, data_dir)
        return
    yield _sqlite()
    yield _directory(settings.data_dir)
    yield _disk(settings.data_dir)
    yield _file_clock(settings.data_dir)
    holder = lock_holder(settings.database_path.with_name(settings.database_path.name + ".lock"))
    yield _lock(settings, holder)
    if holder is None:
        yield _integrity(settings.database_path)
    yield from _server(settings, holder, api_url, api_key, data_dir)


def _software() -> Finding:
    words = f"0cron {__version__}, Python {platform.python_version()}, time zones {tzdata_version()}"
    return Finding("software", "ok", words)


def _cluster(settings: Settings) -> Iterator[Finding]:
    """PostgreSQL, Redis, and the clocks."""
    import asyncio

    from zerocron import cluster_look
    from zerocron.cli.logs import configure_logging

    configure_logging("critical", "text")  # the findings say it
    try:
        state = asyncio.run(cluster_look.look_at_cluster(settings))
    except Invalid as error:
        yield Finding("database", "FAIL", error.message, "Correct the URL.")
        return
    if isinstance(state.nodes, cluster_look.Away):
        advice = "Without it nothing starts. Look at ZEROCRON_DATABASE_URL, the network and the server's log."
        yield Finding("database", "FAIL", state.nodes.reason, advice)
    else:
        yield Finding("database", "ok", f"PostgreSQL answers; {state.nodes} engine nodes are alive")
        yield _compared("clock", -state.clock_ahead_ms / 1000, "the database")
    if state.redis_policy is None:
        words = "in the memory of the one engine node"
        yield Finding("timetable", "ok", words)
    elif isinstance(state.redis_policy, cluster_look.Away):
        advice = "Nodes work straight from the database meanwhile, later than usual. Look at ZEROCRON_REDIS_URL."
        yield Finding("timetable", "FAIL", state.redis_policy.reason, advice)
    elif state.redis_policy not in ("noeviction", ""):
        words = f"Redis answers, and evicts keys ({state.redis_policy}) when its memory is full"
        yield Finding("timetable", "warn", words, "Set maxmemory-policy noeviction.")
    else:
        yield Finding("timetable", "ok", "Redis answers")


def _sqlite() -> Finding:
    if sqlite3.sqlite_version_info < SQLITE_MIN:
        wanted = ".".join(map(str, SQLITE_MIN))
        return Finding("sqlite", "FAIL", f"SQLite {sqlite3.sqlite_version}", f"0cron needs SQLite {wanted} or later.")
    return Finding("sqlite", "ok", f"SQLite {sqlite3.sqlite_version}")


def _settings(data_dir: Path | None) -> tuple[Settings, Finding]:
    try:
        settings = load({"data_dir": data_dir})
    except Invalid as error:
        faults = "; ".join(f"{fault.field}: {fault.message}" for fault in error.fields)
        advice = "Correct or unset these environment variables; the server refuses to start with them."
        return Settings(data_dir=data_directory(data_dir)), Finding("settings", "FAIL", faults, advice)
    return settings, Finding("settings", "ok", f"listens on {settings.host}:{settings.port}")


def _directory(path: Path) -> Finding:
    if not path.exists():
        where = next((parent for parent in path.absolute().parents if parent.exists()), Path("/"))
        if not os.access(where, os.W_OK | os.X_OK):
            advice = f"It cannot be made: {where} is not writable for you. Give another with --data-dir."
            return Finding("data", "FAIL", f"{path} does not exist", advice)
        return Finding("data", "warn", f"{path} does not exist yet", f"`{program()} serve` makes it.")
    if not path.is_dir():
        return Finding("data", "FAIL", f"{path} is no directory", "Give another with --data-dir.")
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return Finding("data", "FAIL", f"{path} is not writable for you", "Use the account that runs the server.")
    return Finding("data", "ok", f"{path.absolute()} is writable")


def _disk(path: Path) -> Finding:
    where = next(parent for parent in (path.absolute(), *path.absolute().parents) if parent.exists())
    free = shutil.disk_usage(where).free
    words = f"{free / 1e9:,.1f} GB free"
    if free < FREE_BYTES_MIN:
        return Finding("disk", "FAIL", words, "Make room: with a full disk no run can be recorded, so none is sent.")
    if free < FREE_BYTES_LOW:
        return Finding("disk", "warn", words, "Make room soon, or keep less history (ZEROCRON_HISTORY_DAYS).")
    return Finding("disk", "ok", words)


def _file_clock(path: Path) -> Finding:
    """The machine's clock against that of the disk, which is another machine's on a network file system."""
    try:
        with tempfile.NamedTemporaryFile(dir=path, prefix=".doctor-") as file:
            file.write(b"0cron")
            file.flush()
            written = os.fstat(file.fileno()).st_mtime_ns / 1e9
    except OSError:
        return Finding("clock", "warn", "not compared with the disk's", "The data directory cannot be written to.")
    return _compared("clock", written - SystemClock().now() / 1000, "the disk")


def _compared(check: str, off_seconds: float, other: str) -> Finding:
    if abs(off_seconds) <= CLOCK_SECONDS_OFF:
        return Finding(check, "ok", f"agrees with {other}")
    words = f"{other} is {abs(off_seconds):.0f} s {'ahead of' if off_seconds > 0 else 'behind'} this machine"
    status: Literal["warn", "FAIL"] = "FAIL" if abs(off_seconds) > CLOCK_SECONDS_MAX else "warn"
    return Finding(check, status, words, "Let every machine take its time from NTP (timedatectl set-ntp true).")


def lock_holder(path: Path) -> str | None:
    """The process that has the data, as text; None when nobody has it."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.read(file, 32).decode("ascii", "replace").strip() or "unknown"
    finally:
        os.close(file)
    return None


def _lock(settings: Settings, holder: str | None) -> Finding:
    if holder is None:
        return Finding("lock", "ok", "no server uses this data")
    return Finding("lock", "ok", f"a server uses this data (process {holder})")


def _integrity(path: Path) -> Finding:
    if not path.exists():
        return Finding("database", "ok", "none yet")
    clock = SystemClock()
    until = clock.monotonic() + CHECK_SECONDS_MAX
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            connection.set_progress_handler(lambda: clock.monotonic() > until, CHECK_STEPS)
            faults = [str(row[0]) for row in connection.execute("PRAGMA quick_check(5)")]
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):
            return Finding("database", "warn", f"not checked within {CHECK_SECONDS_MAX} s", "It is large; try later.")
        return Finding("database", "FAIL", f"{path} cannot be read: {error}", "Look at its owner and its disk.")
    except sqlite3.DatabaseError as error:
        return Finding("database", "FAIL", f"{path}: {error}", "Restore it from a backup.")
    if faults != ["ok"]:
        return Finding("database", "FAIL", f"{path} is damaged: {'; '.join(faults)}", "Restore it from a backup.")
    return Finding("database", "ok", f"{path.stat().st_size / 1e6:,.1f} MB, no damage found")


def _server(
    settings: Settings, holder: str | None, api_url: str | None, api_key: str | None, data_dir: Path | None
) -> Iterator[Finding]:
    try:
        server = find_server(api_url, api_key, data_dir)
    except ZerocronError as error:
        yield Finding("server", "FAIL", error.message)
        return
    client = Client(server)
    try:
        health = client.call("GET", "/healthz")
    except Unavailable as error:
        yield _no_server(settings, server, holder, error)
        return
    version = _version(health)
    is_named = server.url_from in ("--api-url", "ZEROCRON_API_URL")
    if version is None and (is_named or holder is not None):
        words = f"what answers at {server.url} is not a 0cron server"
        yield Finding("server", "FAIL", words, f"Correct the URL (from {server.url_from}).")
        return
    if version is None:
        yield _no_server(settings, server, holder, None)
        return
    if holder is None and not is_named and not settings.database_url:
        words = f"the one at {server.url} does not use this data"
        yield Finding("server", "warn", words, "Name its data with --data-dir, or start one for this data.")
        return
    yield _ready(client, server, version)
    with contextlib.suppress(KeyError, ValueError):
        there = parsedate_to_datetime(health.headers["date"]).timestamp() + 0.5  # the header has whole seconds
        yield _compared("server clock", there - SystemClock().now() / 1000, f"the server at {server.url}")
    yield _key(client, server)


def _version(health: Answer) -> str | None:
    try:
        document = health.document()
    except ValueError:
        return None
    version = document.get("version") if isinstance(document, dict) else None
    return version if isinstance(version, str) else None


def _no_server(settings: Settings, server: Server, holder: str | None, error: Unavailable | None) -> Finding:
    if holder is not None and error is not None:
        advice = f"Process {holder} has the data but does not answer: look at its log, or stop it and start it again."
        return Finding("server", "FAIL", error.message, advice)
    if server.url_from in ("--api-url", "ZEROCRON_API_URL") and error is not None:
        return Finding("server", "FAIL", error.message, "Start it there, or correct the URL.")
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        socket.create_server((settings.host, settings.port), family=family).close()
    except OSError as fault:
        words = f"none runs, and {settings.host}:{settings.port} cannot be used: {fault.strerror or fault}"
        return Finding("server", "FAIL", words, "Choose another address with --host and --port.")
    return Finding("server", "warn", "none runs here", f"Start one: {program()} serve")


def _ready(client: Client, server: Server, version: str) -> Finding:
    try:
        answer = client.call("GET", "/readyz")
        state = answer.document()
    except (Unavailable, ValueError) as error:
        return Finding("server", "FAIL", f"{server.url} is alive but does not say whether it is ready: {error}")
    if answer.status != 200:
        stalled = ", ".join(state.get("stalled_loops", ())) or "none"
        words = f"{server.url} is not ready: ledger {state.get('ledger')}, stalled loops: {stalled}"
        return Finding("server", "FAIL", words, "Look at its log.")
    if version != __version__:
        words = f"{server.url} is ready, version {version}; this command is {__version__}"
        return Finding("server", "warn", words, "Use the same version on both sides.")
    return Finding("server", "ok", f"{server.url} is ready")


def _key(client: Client, server: Server) -> Finding:
    try:
        client.get("/v1/jobs", limit=1)
    except ZerocronError as error:
        return Finding("api key", "FAIL", error.message, " ".join(getattr(error, "__notes__", ())) or None)
    return Finding("api key", "ok", f"the one from {server.key_from} is accepted")
