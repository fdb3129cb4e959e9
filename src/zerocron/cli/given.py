"""A text as it is given on the command line: itself, @FILE for what a file holds, or @- for standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from zerocron.core.errors import Invalid, TooLarge


def read_text(text: str, bytes_max: int, *, option: str, noun: str, keep_line_end: bool = True) -> str:
    """What the `text` that an option was given means. Raises Invalid or TooLarge; never reads much more than the bound.

    Without `keep_line_end` one line end behind what was read is left out: editors and `echo` add it.
    """
    if text.startswith("@@"):
        return text[1:]
    if not text.startswith("@"):
        return text
    try:
        if text == "@-":
            data = sys.stdin.buffer.read(bytes_max + 1)
        else:
            with Path(text[1:]).open("rb") as file:
                data = file.read(bytes_max + 1)
        if len(data) > bytes_max:
            raise TooLarge(f"{option}: a {noun} has at most {bytes_max:,} bytes, and {text[1:]} has more.")
        content = data.decode()
    except OSError as error:
        refusal = Invalid(f"{option}: {text[1:]} cannot be read: {error.strerror}.")
        refusal.add_note(f"A {noun} that begins with @ is the name of a file; write @@ for a plain @.")
        raise refusal from None
    except UnicodeDecodeError:
        raise Invalid(f"{option}: {text[1:]} is not UTF-8 text, and a {noun} is text.") from None
    return content if keep_line_end else content.removesuffix("\n").removesuffix("\r")
