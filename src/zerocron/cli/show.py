"""What reaches the screen: JSON for scripts; tables, fields and plain lines for people.

Owns the two consoles and the rule that nothing from a server can act on a terminal: control characters are shown, not
sent. Data goes to standard output, everything else to standard error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

Json = dict[str, Any]

WIDE = 132
"""From this many columns on, tables have room for one line a row."""

STYLES = {
    "active": "green",
    "up": "green",
    "succeeded": "green",
    "success": "green",
    "ok": "green",
    "sent": "green",
    "paused": "yellow",
    "disabled": "red",
    "late": "yellow",
    "pending": "yellow",
    "dead": "red",
    "warn": "yellow",
    "retrying": "yellow",
    "skipped": "yellow",
    "cancelled": "yellow",
    "failed": "red",
    "fail": "red",
    "down": "red",
    "lost": "red",
    "timeout": "red",
    "error": "red",
    "FAIL": "bold red",
    "running": "cyan",
    "queued": "cyan",
}

_HIDDEN = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code != 0x0A}
_HIDDEN[0x09] = "    "
_HIDDEN |= {code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}  # turn text around
_JSON_HIDDEN = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}


def clean(text: str) -> str:
    """The text with control characters written out; only line ends stay."""
    return text.translate(_HIDDEN)


def output() -> Console:
    """Standard output: eighty columns and no colour where it is no terminal."""
    return Console(markup=False, highlight=False, emoji=False)


def errors() -> Console:
    return Console(markup=False, highlight=False, emoji=False, stderr=True)


def say(text: str | Text = "", style: str | None = None) -> None:
    """One line for a person, which the terminal may wrap but a pipe gets whole."""
    output().print(clean(text) if isinstance(text, str) else text, style=style, soft_wrap=True)


def note(text: str) -> None:
    """A line beside the data: on standard error."""
    errors().print(clean(text), soft_wrap=True)


def print_json(value: Any, *, line: bool = False) -> None:
    """A JSON document; with `line`, on one line, for streams."""
    text = json.dumps(value, ensure_ascii=False, indent=None if line else 2)
    sys.stdout.write(text.translate(_JSON_HIDDEN) + "\n")
    sys.stdout.flush()


def print_result(value: Any, as_json: bool, words: str) -> None:
    """What a command has done: as JSON, or in words."""
    if as_json:
        print_json(value)
    else:
        say(words)


def word(status: str) -> Text:
    """A status in its colour."""
    return Text(clean(status), style=STYLES.get(status, ""))


def table(*headings: str) -> Table:
    """A table without lines. Its cells are texts or `Text`s, never markup."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        made.add_column(heading, overflow="fold")
    return made


def print_table(made: RenderableType) -> None:
    """Print it; a pipe gets no blanks at the ends of its lines."""
    console = output()
    if console.is_terminal:
        console.print(made)
        return
    with console.capture() as capture:
        console.print(made)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))
    sys.stdout.flush()


def print_fields(pairs: Iterable[tuple[str, str | Text]]) -> None:
    """Names and values below each other, long values indented under themselves."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(f"  {name}", Text(clean(value)) if isinstance(value, str) else value)
    print_table(grid)


def lines(texts: Sequence[str | Text]) -> Text:
    """Several lines in one cell."""
    parts = [Text(clean(text)) if isinstance(text, str) else text for text in texts]
    return Text("\n").join(parts)


def plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def shortened(text: str, characters: int) -> str:
    """The text up to so many characters, and a word about the rest."""
    if len(text) <= characters:
        return text
    return f"{text[:characters]}... ({len(text) - characters:,} characters more; --json has them)"
