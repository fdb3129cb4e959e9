"""Splits a command that somebody pasted into its words, as a shell would, without doing anything a shell would do.

Owns quoting: '...', "...", $'...', backslashes, continued lines, and the carets of Windows. What only a shell could
fill in (variables, substitutions) stays as it is written and is told of. Linear in the length of the text. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from zerocron.core.errors import Invalid

EXPANSIONS_MAX = 10
_BLANKS = " \t\r\n"
_ESCAPES = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_CODE = re.compile(r"x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}")
_VARIABLE = re.compile(r"\$(?:\{[^}]{0,80}\}|[A-Za-z_][A-Za-z0-9_]{0,79}|\()")
_QUOTED = re.compile(r"""\\.|\$'(?:\\.|[^'\\])*'?|'[^']*'|(?<!\^)"(?:\\.|[^"\\])*"?""", re.DOTALL)
"""What a caret in it says nothing of. A quote that is not closed reaches to the end, so that no text is read twice."""

_OF_WINDOWS = re.compile(r"\^(?:\"|\r?\n)")
_CARET = re.compile(r"\^(\r?\n|.)", re.DOTALL)


@dataclass(slots=True)
class Words:
    """The words of the first command, what stands behind it, and what only a shell could fill in."""

    words: list[str] = field(default_factory=list)
    rest: str = ""
    expansions: list[str] = field(default_factory=list)
    has_bare_ampersand: bool = False


def split(text: str) -> Words:
    """Raises Invalid for a quote that is not closed."""
    return _Splitter(_without_carets(text)).run()


def _without_carets(text: str) -> str:
    """The text of a Windows command, where a caret escapes what follows it; any other text as it is."""
    if not _OF_WINDOWS.search(_QUOTED.sub("_", text)):
        return text
    return _CARET.sub(lambda match: "" if match[1].endswith("\n") else match[1], text)


class _Splitter:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._made = Words()
        self._word: list[str] | None = None

    def run(self) -> Words:
        text = self._text
        while self._at < len(text):
            char = text[self._at]
            if char == "\\":
                self._backslash()
            elif char in _BLANKS:
                if char == "\n" and (self._word is not None or self._made.words) and self._ends_here():
                    break
                self._end_word()
                self._at += 1
            elif char == "'":
                self._single()
            elif char == '"':
                self._double()
            elif text.startswith(("$'", '$"'), self._at):
                self._at += 1
                self._ansi() if text[self._at] == "'" else self._double()
            elif char == "#" and self._word is None:
                self._at = _end_of_line(text, self._at)
            elif char in "|;<>()" or (char == "&" and self._is_operator()):
                if char in "<>" and self._word is not None and "".join(self._word).isdecimal():
                    self._word = None  # `2>` names what is sent elsewhere
                self._end_word()
                self._made.rest = text[self._at :].strip()
                break
            else:
                self._plain(char)
        self._end_word()
        return self._made

    def _ends_here(self) -> bool:
        """Whether a line that is not continued ends the command: what follows it is another one."""
        rest = self._text[self._at :].strip()
        self._end_word()
        if rest and not rest.startswith("-"):
            self._made.rest = rest
            return True
        return False

    def _is_operator(self) -> bool:
        """An ampersand within a word is taken for a part of an address that somebody forgot to quote."""
        following = self._text[self._at + 1 : self._at + 2]
        if self._word is not None and following and following not in _BLANKS + "&":
            self._made.has_bare_ampersand = True
            return False
        return True

    def _plain(self, char: str) -> None:
        if char in "$`":
            self._note_expansion()
        self._add(char)
        self._at += 1

    def _backslash(self) -> None:
        following = self._text[self._at + 1 : self._at + 3]
        if following[:1] == "\n" or following == "\r\n":
            self._at += 2 if following[0] == "\n" else 3
            return
        self._add(following[:1])
        self._at += 2

    def _single(self) -> None:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise _open("'")
        self._add(self._text[self._at + 1 : end])
        self._at = end + 1

    def _double(self) -> None:
        self._add("")
        self._at += 1
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == '"':
                self._at += 1
                return
            if char == "\\":
                following = self._text[self._at + 1 : self._at + 2]
                if following in ('"', "\\", "$", "`"):
                    self._add(following)
                elif following != "\n":
                    self._add("\\" + following)
                self._at += 2
                continue
            if char in "$`":
                self._note_expansion()
            self._add(char)
            self._at += 1
        raise _open('"')

    def _ansi(self) -> None:
        self._add("")
        self._at += 1
        while self._at < len(self._text):
            char = self._text[self._at]
            self._at += 1
            if char == "'":
                return
            self._add(self._escape() if char == "\\" else char)
        raise _open("$'")

    def _escape(self) -> str:
        code = _CODE.match(self._text, self._at)
        if code is not None:
            self._at = code.end()
            number = int(code[0][1:], 16) if code[0][0] in "xuU" else int(code[0], 8)
            return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
        char = self._text[self._at : self._at + 1]
        self._at += 1
        return _ESCAPES.get(char, "\\" + char)

    def _note_expansion(self) -> None:
        found = _VARIABLE.match(self._text, self._at)
        shown = "`" if self._text[self._at] == "`" else found[0] if found else ""
        if (
            len(self._made.expansions) < EXPANSIONS_MAX
            and shown
            and not shown.startswith("${secrets.")
            and shown not in self._made.expansions
        ):
            self._made.expansions.append(shown)

    def _add(self, text: str) -> None:
        if self._word is None:
            self._word = []
        self._word.append(text)

    def _end_word(self) -> None:
        if self._word is not None:
            self._made.words.append("".join(self._word))
            self._word = None


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _open(quote: str) -> Invalid:
    return Invalid(f"A quote ({quote}) is opened and never closed. Paste the whole command.", field="command")
