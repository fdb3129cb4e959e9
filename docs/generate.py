"""Writes the pages that are made from the code, so that they cannot lie: `make docs`.

`--check` writes nothing and fails when a page is not what the code would make of it (part of `make check`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

from docs.notifications_page import notifications_page
from docs.schedules_page import schedules_page
from zerocron.core.exchange import ERROR_KINDS, OWN_KINDS, OWN_SHORTAGE_KINDS, PERMANENT_KINDS, TIMEOUT_KINDS
from zerocron.core.model import REASON_TEXTS
from zerocron.settings import CHOICES, PREFIX, Settings

HERE = Path(__file__).parent
MADE = "<!-- Made by `make docs`; do not edit. -->\n\n"


def settings_page() -> str:
    """Every knob of the server."""
    lines = [
        MADE + "# Settings\n",
        "A server is told by environment variables; `0cron serve --help` has options for the most used. Each may also",
        f"be given as a file: `{PREFIX}NAME_FILE=/run/secrets/name`. A variable that does not exist is refused at",
        "start.\n",
        "| variable | default | what it is for |",
        "|---|---|---|",
    ]
    for knob in fields(Settings):
        default = knob.default
        shown = "" if default == "" else f"`{str(default).lower() if isinstance(default, bool) else default}`"
        why = knob.metadata["why"].replace("|", "\\|")
        if knob.name in CHOICES and not any(choice in why for choice in CHOICES[knob.name]):
            why += " One of " + ", ".join(CHOICES[knob.name]) + "."
        lines.append(f"| `{PREFIX}{knob.name.upper()}` | {shown} | {why}{_bounds(knob.metadata)} |")
    lines += [
        "",
        "The command line's client reads two more: `ZEROCRON_API_URL` and `ZEROCRON_API_KEY`. Without them it uses the",
        "files `local-url` and `local-key` in the data directory of the server on the same machine.",
    ]
    return "\n".join(lines) + "\n"


def _bounds(metadata: Any) -> str:
    low, high = metadata["low"], metadata["high"]
    return "" if low is None else f" {low:,} to {high:,}."


def outcomes_page() -> str:
    """What can become of a run and of an execution."""
    lines = [
        MADE + "# What can become of a run\n",
        "## Reasons\n",
        "`reason` of a run is set where its status alone does not say why it ended; `explanation` is its sentence.\n",
        "| reason | explanation |",
        "|---|---|",
        *(f"| `{reason}` | {text} |" for reason, text in REASON_TEXTS.items()),
        "\n## Errors of an execution\n",
        "`error.kind` is stable: scripts may rely on it. `error.message` is for people.\n",
        "| kind | meaning | what else it tells |",
        "|---|---|---|",
        *(f"| `{kind}` | {text} | {_told_by(kind)} |" for kind, text in sorted((ERROR_KINDS | OWN_KINDS).items())),
    ]
    return "\n".join(lines) + "\n"


def _told_by(kind: str) -> str:
    if kind in OWN_SHORTAGE_KINDS:
        return "This server's own shortage; the target was not called."
    if kind in PERMANENT_KINDS:
        return "The same request would fail the same way again."
    return "Time ran out." if kind in TIMEOUT_KINDS else ""


def cli_page() -> str:
    """The help of every command."""
    lines = [
        MADE + "# The command line\n",
        "`0cron` speaks to a server through its API. On the server's machine it finds the server and a key by itself;",
        "elsewhere set `ZEROCRON_API_URL` and `ZEROCRON_API_KEY`. Commands that answer take `--json` for scripts.\n",
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # each is a process of its own
        for command, text in zip(COMMANDS, pool.map(_help, COMMANDS), strict=True):
            lines += [f"## `{' '.join(['0cron', *command])}`\n", "```text", text, "```\n"]
    return "\n".join(lines)


COMMANDS: tuple[tuple[str, ...], ...] = (
    (),
    ("serve",),
    *(
        ("jobs", verb)
        for verb in ("create", "list", "show", "edit", "pause", "resume", "trigger", "explain", "delete", "runs")
    ),
    ("runs", "show"),
    *(("signing", verb) for verb in ("rotate", "show")),
    *(("secrets", verb) for verb in ("set", "list", "delete", "rotate", "new-key")),
    *(
        ("monitors", verb)
        for verb in ("create", "list", "show", "edit", "pause", "resume", "rotate", "delete", "pings", "flips")
    ),
    *(("channels", verb) for verb in ("create", "list", "kinds", "show", "edit", "test", "pause", "resume", "delete")),
    ("alerts", "list"),
    ("ping",),
    ("exec",),
    *(("keys", verb) for verb in ("create", "list", "revoke")),
    ("preview",),
    ("doctor",),
    ("teams", "limits"),
)


def _help(command: tuple[str, ...]) -> str:
    environment = {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    done = subprocess.run(
        [sys.executable, "-m", "zerocron", *command, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())


def openapi_document() -> str:
    """The API in OpenAPI's own form."""
    done = subprocess.run([sys.executable, "-m", "zerocron", "openapi"], capture_output=True, text=True, check=True)
    return done.stdout


PAGES = {
    "schedules.md": schedules_page,
    "notifications.md": notifications_page,
    "settings.md": settings_page,
    "outcomes.md": outcomes_page,
    "cli.md": cli_page,
    "openapi.json": openapi_document,
}


def main() -> int:
    stale = []
    for name, make in PAGES.items():
        path, text = HERE / name, make()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
    if "--check" in sys.argv and stale:
        sys.stderr.write(f"Stale: {', '.join('docs/' + name for name in stale)}. Run `make docs` and commit.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
