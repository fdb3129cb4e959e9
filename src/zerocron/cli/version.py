"""`0cron version` and `0cron openapi`: what this installation is, and the document of its API."""

from __future__ import annotations

import platform
from typing import Any, cast

from zerocron import __version__
from zerocron.cli import options as o
from zerocron.cli.show import Json, print_json, say
from zerocron.core.schedule import tzdata_version


def version(as_json: o.AsJson = False) -> None:
    """Print the versions of 0cron, Python and the time zone data."""
    print_version(as_json)


def print_version(as_json: bool) -> None:
    if as_json:
        print_json(versions())
    else:
        say("0cron {version} (Python {python}, time zones {tzdata})".format(**versions()))


def versions() -> Json:
    return {"version": __version__, "python": platform.python_version(), "tzdata": tzdata_version()}


def openapi() -> None:
    """Print the OpenAPI document of the API as JSON. Needs no server."""
    from zerocron.api.application import create_application
    from zerocron.api.services import Services
    from zerocron.clock import SystemClock
    from zerocron.core.team_limits import NO_LIMITS
    from zerocron.metrics import Metrics

    nobody = cast(Any, None)  # the document needs no service, only the routes
    services = Services(
        ledger=nobody,
        timetable=nobody,
        jobs=nobody,
        keys=nobody,
        secrets=nobody,
        signing=nobody,
        clock=SystemClock(),
        metrics=Metrics(),
        stalled=list,
        version=__version__,
        serve_metrics=True,
        monitors=nobody,
        channels=nobody,
        pings=nobody,
        base_url="",
        limits=NO_LIMITS,
        entrance=nobody,
        overview=nobody,
        changes=nobody,
        explaining=nobody,
        trying=nobody,
        loops=list,
        ledger_kind="sqlite",
        timetable_kind="memory",
        single_sign_on=nobody,
    )
    print_json(create_application(services).openapi())
