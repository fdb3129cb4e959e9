"""How an error reaches a person: one line on standard error, hints below it, and an exit code that scripts can use.

Owns the table of exit codes (zerocron.core.errors has its words). Hints travel with an error as its notes
(`error.add_note`). A traceback is shown to nobody, except under Python's development mode (PYTHONDEVMODE=1).
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Mapping

import typer
from pydantic import ValidationError

from zerocron.api.wording import fault_of
from zerocron.cli.show import clean, errors
from zerocron.core.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    TooLarge,
    TooMany,
    Unauthorized,
    Unavailable,
    ZerocronError,
)

FAILED = 1
USAGE = 2

EXIT_CODES: Mapping[type[ZerocronError], int] = {
    Invalid: USAGE,
    TooLarge: USAGE,
    Unauthorized: 3,
    Forbidden: 3,
    NotFound: 4,
    Conflict: 5,
    TooMany: 6,
    Unavailable: 6,
}

EXIT_CODES_HELP = """\
Exit codes: 0 done, 1 something failed (a run, a check), 2 bad input or usage, 3 the API key was not accepted \
or lacks a scope, 4 no such thing, 5 its state does not allow this, 6 the server cannot be reached, 130 Ctrl-C."""


def report(error: Exception) -> int:
    """Tell the person; the exit code."""
    hints = [str(note) for note in getattr(error, "__notes__", ())]
    if isinstance(error, ZerocronError):
        if isinstance(error, Invalid):
            hints = [*_other_faults(error), *_suggestions(error), *hints]
        _say(error.message, hints)
        return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), FAILED)
    if isinstance(error, typer.TyperException):
        _say(_usage_message(error), [*_usage_hints(error), *hints])
        return error.exit_code
    if isinstance(error, typer.Abort):
        _say("No answer was given, so nothing was done.", hints)
        return FAILED
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        _say(f"{where}{error.strerror}.", hints)
        return FAILED
    if sys.flags.dev_mode:
        traceback.print_exception(error)
    kind = type(error).__name__
    _say(
        f"0cron has a bug here: {kind}: {error}", ["Please report it. PYTHONDEVMODE=1 before the command shows where."]
    )
    return FAILED


def _say(message: str, hints: Iterable[str]) -> None:
    console = errors()
    console.print("error:", style="bold red", end=" ", soft_wrap=True)
    console.print(clean(" ".join(message.split())), soft_wrap=True)
    for hint in hints:
        console.print(clean(f"  {hint}"), soft_wrap=True)


def _other_faults(error: Invalid) -> list[str]:
    """The faults that the message does not tell already."""
    return [f"{fault.field}: {fault.message}" for fault in error.fields if fault.message not in error.message]


def _suggestions(error: Invalid) -> list[str]:
    return [f"try: {suggestion}" for suggestion in error.suggestions]


def _usage_message(error: typer.TyperException) -> str:
    """The parser's message, without its library's own turns of phrase."""
    fault = error.__cause__
    if isinstance(fault, ValidationError) and error.message.startswith(("Input should be ", "Unable to parse ")):
        error.message = fault_of(fault.errors(include_url=False)[0]).message
    message = error.format_message().replace("Value error, ", "")
    return message if message.endswith((".", "?", ")")) else f"{message}."


def _usage_hints(error: typer.TyperException) -> list[str]:
    hints = []
    if "unexpected extra argument" in error.format_message():
        hints.append("A text with blanks or * in it, such as a schedule, needs quotes: '0 9 * * 1-5'")
    context = getattr(error, "ctx", None)
    return hints if context is None else [*hints, f"See: {context.command_path} --help"]
