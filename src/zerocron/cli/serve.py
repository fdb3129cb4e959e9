"""`0cron serve`: the server, and what it says to the person who started it.

Owns the banner and the translation of options into settings; `zerocron.app` does the rest. ZEROCRON_STOP_AT=name or
name:n makes the process kill itself where the engine reaches that point (for the n-th time): a tool of fault tests.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import shlex
import signal
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from zerocron import __version__
from zerocron.cli.program import program
from zerocron.cli.show import clean, say
from zerocron.core.errors import Invalid, Unavailable, ZerocronError
from zerocron.settings import Settings, client_variable, load

if TYPE_CHECKING:
    from zerocron.app import Announcement
    from zerocron.engine.starting import StopPoint

_CREATE = "jobs create --name hello --schedule '*/5 * * * *' \\\n      --url https://example.com"
_KNOBS = {knob.name: knob for knob in dataclasses.fields(Settings)}


def _option(name: str, metavar: str) -> Any:
    """An option that says what the setting of that name says, and keeps its bounds."""
    knob = _KNOBS[name]
    default = f"{knob.default:g}" if isinstance(knob.default, float) else str(knob.default) or "none"
    return typer.Option(
        f"--{name.replace('_', '-')}",
        metavar=metavar,
        help=f"{knob.metadata['why']}  ({default})",
        parser=_number(knob) if isinstance(knob.default, int | float) else None,
    )


def _number(knob: dataclasses.Field[Any]) -> Callable[[str], float]:
    kind, low, high = type(knob.default), knob.metadata["low"], knob.metadata["high"]

    def read(text: str) -> float:
        try:
            number = float(text) if kind is float else int(text)
        except ValueError:
            raise ValueError(f"{text!r} is not a {'whole ' if kind is int else ''}number.") from None
        if not low <= number <= high:
            raise ValueError(f"{text} is not between {low:,} and {high:,}.")
        return number

    return read


def serve(
    demo: Annotated[
        bool, typer.Option("--demo", help="Add sample jobs and a target for them on this machine.")
    ] = False,
    role: Annotated[Literal["all", "api", "engine"] | None, _option("role", "ROLE")] = None,
    host: Annotated[str | None, _option("host", "ADDRESS")] = None,
    port: Annotated[int | None, _option("port", "PORT")] = None,
    data_dir: Annotated[Path | None, _option("data_dir", "DIR")] = None,
    outbound_allow: Annotated[str | None, _option("outbound_allow", "NETWORKS")] = None,
    in_flight_max: Annotated[int | None, _option("in_flight_max", "N")] = None,
    drain_seconds: Annotated[float | None, _option("drain_seconds", "SECONDS")] = None,
    resume_from: Annotated[
        Literal["now"] | None,
        typer.Option(
            "--resume-from",
            metavar="now",
            help="After a restore from backup: go on from now. What was due since the backup is recorded as skipped.",
        ),
    ] = None,
    log_level: Annotated[Literal["debug", "info", "warning", "error"] | None, _option("log_level", "LEVEL")] = None,
    log_format: Annotated[Literal["auto", "json", "text"] | None, _option("log_format", "FORMAT")] = None,
) -> None:
    """Run the server: API and scheduler in one process. Ctrl-C or SIGTERM stops it after what is running.

    By itself it needs nothing else. ZEROCRON_DATABASE_URL=postgresql://... and ZEROCRON_REDIS_URL=redis://... make it
    one node of a cluster.

    Every option has an environment variable, such as ZEROCRON_PORT for --port; the option wins.
    """
    given = {
        "role": role,
        "host": host,
        "port": port,
        "data_dir": data_dir,
        "outbound_allow": outbound_allow,
        "in_flight_max": in_flight_max,
        "drain_seconds": drain_seconds,
        "log_level": log_level,
        "log_format": log_format,
    }
    settings = load(given)
    if demo and settings.redis_url:
        raise Invalid("--demo is for one node: the target of its sample jobs is on this machine only.")
    stop_point = _stop_point(client_variable("STOP_AT"))

    import structlog

    from zerocron import app
    from zerocron.cli.logs import configure_logging

    configure_logging(settings.log_level, settings.log_format)

    def announce(news: Announcement) -> None:
        structlog.get_logger(__name__).info("serving", url=news.url, data_dir=str(news.data_dir))
        _print_banner(news, settings)

    with explained(settings):
        placed = dataclasses.replace(settings, data_dir=settings.data_dir.absolute())
        _run(
            app.serve(
                placed,
                demo=demo,
                resume_from_now=resume_from is not None,
                announce=announce,
                stop_point=stop_point,
            )
        )
    say("0cron has stopped.")


def _run(main: Coroutine[Any, Any, None]) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)


@contextlib.contextmanager
def explained(settings: Settings) -> Iterator[None]:
    """What can be wrong with the data of a server, in words."""
    import structlog
    from alembic.util import CommandError
    from sqlalchemy.exc import DatabaseError

    where = "The database" if settings.database_url else str(settings.database_path)
    try:
        yield
    except CommandError as error:
        unknown = Unavailable(f"{where} was written by a newer 0cron; this one is {__version__}.")
        unknown.add_note("Update 0cron, or give this one its own data.")
        raise unknown from error
    except DatabaseError as error:
        broken = Unavailable(f"{where} cannot be used: {error.orig}.")
        broken.add_note(f"Look at it with: {program()} doctor{_data_dir_option(settings)}")
        raise broken from error
    except OSError as error:
        if error.filename is not None:
            error.add_note(f"The data directory is {settings.data_dir}; another is given with --data-dir.")
        raise
    except ZerocronError:
        raise
    except Exception:
        structlog.get_logger(__name__).exception("crashed")  # where it happened is for the log, not for the screen
        raise


def _stop_point(text: str | None) -> StopPoint:
    """Kills this process, as a power cut would, at the point of that name."""
    if not text:
        return lambda name: None
    wanted, _, number = text.partition(":")
    if number and not (number.isascii() and number.isdigit() and int(number)):
        raise Invalid(f"ZEROCRON_STOP_AT: {text!r} is neither a name nor name:n.")
    left = int(number or 1)

    def stop(name: str) -> None:
        nonlocal left
        if name == wanted:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return stop


def _print_banner(news: Announcement, settings: Settings) -> None:
    say(f"0cron {__version__} is running at {news.url}", style="bold")
    if settings.database_url:
        work = {"all": "API and engine", "api": "API only", "engine": "engine only"}[news.role]
        say(f"Node of a cluster ({work}): ledger in {news.ledger}, timetable in {news.timetable}")
    else:
        say(f"Data: {news.data_dir}")
    if news.setup_url:
        say("\nNobody is here yet. Become the owner, by this link, which works once and for an hour:")
        say(f"  {news.setup_url}")
        say(f"Later: {program()} setup-link{_data_dir_option(settings)}")
    if news.sample_jobs:
        sample = _print_samples(news.sample_jobs)
        commands = ["jobs list", f"jobs runs {shlex.quote(sample)} --follow", _CREATE]
    else:
        commands = [_CREATE, "jobs list", "jobs runs hello --follow"]
    say("\nTry in another terminal:")
    for command in commands:
        say(f"  {program()} {command}{_data_dir_option(settings)}")
    say("\nCtrl-C stops it.")


def _print_samples(number: int) -> str:
    """Tells of the sample jobs; the name of the first."""
    from zerocron.clock import SystemClock
    from zerocron.core.schedule import parse
    from zerocron.core.understanding import DEFAULT_TIMEZONE
    from zerocron.demo import SAMPLES

    say(f"\n{number} sample jobs call a small target on this machine:")
    width = max(len(sample.spec.name) for sample in SAMPLES)
    for sample in SAMPLES:
        spec = sample.spec
        when = parse(
            spec.schedule, timezone=spec.timezone or DEFAULT_TIMEZONE, now=SystemClock().now()
        ).schedule.describe()
        say(clean(f"  {spec.name:{width}}  {when.removesuffix(' (UTC)')}"))
    return SAMPLES[0].spec.name


def _data_dir_option(settings: Settings) -> str:
    """What a command needs to find this server: nothing, when it uses the default."""
    is_default = settings.data_dir == _KNOBS["data_dir"].default
    return "" if is_default else f" --data-dir {shlex.quote(str(settings.data_dir))}"
