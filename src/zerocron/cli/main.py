"""The command line's front door: the tree of commands, and what becomes of errors.

Owns nothing else. A command's module is light to import; what is heavy (the server, the database) is imported inside
the few commands that need it, so that the others start at once.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from zerocron.cli import (
    alerts,
    channels,
    doctor,
    jobs,
    keys,
    migrate,
    monitors,
    pings,
    preview,
    runs,
    secrets,
    serve,
    setup_link,
    signing,
    team_limits,
    version,
)
from zerocron.cli.errors import EXIT_CODES_HELP, USAGE, report
from zerocron.cli.program import name

_ORDER = (
    "serve",
    "setup-link",
    "migrate",
    "doctor",
    "teams",
    "jobs",
    "runs",
    "monitors",
    "ping",
    "exec",
    "channels",
    "alerts",
    "secrets",
    "signing",
    "keys",
    "preview",
    "openapi",
    "version",
)


class _Root(TyperGroup):
    """Shows the commands in the order in which one comes to need them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=_ORDER.index)


app = typer.Typer(
    cls=_Root,
    help="0cron calls your HTTP endpoints at the right second, once, with proof.\n\n"
    "Commands talk to the server that runs on this machine, or to the one that ZEROCRON_API_URL and "
    "ZEROCRON_API_KEY name. Every command takes --help; those that answer take --json for scripts.",
    epilog=EXIT_CODES_HELP,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
_HERE = "On the server's machine"
_THERE = "With a server"
_ALONE = "Without a server"

app.command(rich_help_panel=_HERE)(serve.serve)
app.command("setup-link", rich_help_panel=_HERE)(setup_link.setup_link)
app.command(rich_help_panel=_HERE)(migrate.migrate)
app.command(rich_help_panel=_HERE)(doctor.doctor)
app.add_typer(team_limits.app, name="teams", rich_help_panel=_HERE)
app.add_typer(jobs.app, name="jobs", rich_help_panel=_THERE)
app.add_typer(runs.app, name="runs", rich_help_panel=_THERE)
app.add_typer(monitors.app, name="monitors", rich_help_panel=_THERE)
app.command(rich_help_panel=_THERE, epilog=pings.PING_EXAMPLE)(pings.ping)
app.command(
    "exec",
    rich_help_panel=_THERE,
    epilog=pings.EXEC_EXAMPLE,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)(pings.execute)
app.add_typer(channels.app, name="channels", rich_help_panel=_THERE)
app.add_typer(alerts.app, name="alerts", rich_help_panel=_THERE)
app.add_typer(secrets.app, name="secrets", rich_help_panel=_THERE)
app.add_typer(signing.app, name="signing", rich_help_panel=_THERE)
app.add_typer(keys.app, name="keys", rich_help_panel=_THERE)
app.command(rich_help_panel=_ALONE, epilog=preview.EXAMPLE)(preview.preview)
app.command(rich_help_panel=_ALONE)(version.openapi)
app.command(rich_help_panel=_ALONE)(version.version)


@app.callback()
def root(
    context: typer.Context,
    show_version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if show_version:
        version.print_version(as_json=False)
        raise typer.Exit
    _help_without_command(context)


def _help_without_command(context: typer.Context) -> None:
    """A group without a command shows its help; the exit code says that nothing was asked for."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(USAGE)


for group in (
    jobs.app,
    runs.app,
    monitors.app,
    channels.app,
    alerts.app,
    secrets.app,
    signing.app,
    keys.app,
    team_limits.app,
):
    group.callback(invoke_without_command=True)(_help_without_command)


def tree() -> Any:
    """The commands as the parser has them; the generated pages read this too."""
    command = typer.main.get_command(app)
    _say_nothing_of_flags(command, None)
    return command


def _say_nothing_of_flags(command: Any, parent: typer.Context | None) -> None:
    """Help would list every flag with a value of the type `<bool>`, which none takes."""
    context = typer.Context(command, parent=parent, **command.context_settings)
    for parameter in command.get_params(context):
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    for inner in getattr(command, "commands", {}).values():
        _say_nothing_of_flags(inner, context)


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments say; the exit code."""
    try:
        code = tree()(args=list(arguments), prog_name=name(), standalone_mode=False)
    except Exception as error:  # nobody is shown a traceback
        return report(error)
    return code if isinstance(code, int) else 0


def main() -> None:
    """`0cron` and `zerocron`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a name that the terminal's encoding lacks must not end a command
    sys.exit(run(sys.argv[1:]))
