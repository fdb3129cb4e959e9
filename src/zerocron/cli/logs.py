"""The server's log: one line for each event on standard error, as JSON for machines or as text for people.

Owns the configuration of structlog and of the standard library's logging, through which uvicorn, aiohttp and alembic
speak; theirs is heard from `warning` on, unless everything is asked for with `debug`. A logged exception is its
traceback without local variables, which may hold secrets. Values are quoted, so that none can forge a line.
"""

from __future__ import annotations

import json
import logging
import sys
import textwrap
from collections.abc import MutableMapping
from typing import Any

import structlog
from structlog.typing import Processor

from zerocron.cli import times
from zerocron.cli.show import clean
from zerocron.clock import SystemClock
from zerocron.core.instants import to_rfc3339

_COLOURS = {"debug": "\033[2m", "warning": "\033[33m", "error": "\033[31m", "critical": "\033[31m"}
_PLAIN = "\033[0m"
_LEADING = ("timestamp", "level", "event", "exception")

Event = MutableMapping[str, Any]


def configure_logging(level: str, format: str) -> None:
    """`level` is debug, info, warning or error; `format` is json, text, or auto: text on a terminal."""
    number = logging.getLevelNamesMapping()[level.upper()]
    is_text = format == "text" or (format == "auto" and sys.stderr.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        _add_time,
        structlog.processors.ExceptionRenderer(),  # as text, without locals
        structlog.processors.StackInfoRenderer(),
    ]
    renderer: Processor = _as_text if is_text else _as_json
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.add_logger_name,
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *shared,
                renderer,
            ],
        )
    )
    logging.basicConfig(
        handlers=[handler], level=number if number <= logging.DEBUG else max(number, logging.WARNING), force=True
    )
    logging.captureWarnings(True)


def _add_time(_logger: object, _method: str, event: Event) -> Event:
    event["timestamp"] = to_rfc3339(SystemClock().now())
    return event


def _as_json(_logger: object, _method: str, event: Event) -> str:
    ordered = {name: event[name] for name in _LEADING if name in event} | dict(event)
    return json.dumps(ordered, default=str)


def _as_text(_logger: object, _method: str, event: Event) -> str:
    """`16:04:30.123 warning  tick_failed  loop=sweep  failures=1`, local time, with the traceback below."""
    level = str(event.get("level", ""))
    words = [f"{name}={_quoted(value)}" for name, value in event.items() if name not in (*_LEADING, "stack")]
    time = times.local(times.instant(str(event["timestamp"]))).strftime("%H:%M:%S.%f")[:-3]
    line = f"{time} {level:8} {_one_line(str(event.get('event', '')))}" + "".join(f"  {word}" for word in words)
    colour = _COLOURS.get(level)
    if colour is not None and sys.stderr.isatty():
        line = f"{colour}{line}{_PLAIN}"
    below = [textwrap.indent(clean(str(event[name])), "    ") for name in ("exception", "stack") if event.get(name)]
    return "\n".join([line, *below])


def _quoted(value: object) -> str:
    text = str(value)
    return text if text.isprintable() and text and not set(text) & set(" \"'=") else json.dumps(text)


def _one_line(text: str) -> str:
    return text if text.isprintable() else json.dumps(text)[1:-1]
