"""Masking: the values of secrets are taken out of what is kept of a request and its answer.

A target may echo what it was sent, and in its own words. So a value is looked for as it is, percent-encoded, escaped as
in JSON and in HTML (decoded here, up to two of them on top of each other, so that no spelling of an escape is
overlooked), in base64 at each of its three alignments and both alphabets, and in hex. Where a text was cut, the
beginning of a value at the cut is masked as well. A target that encrypts, compresses or reverses what it echoes is
beyond this.

Pure. The time is linear in the text for each layer that it really has.
"""

from __future__ import annotations

import base64
import bisect
import html
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from zerocron.core.secret import VALUE_CHARACTERS_MIN, Secret

LAYERS_MAX = 2
CUT_CHARACTERS_MIN = 4
"""A shorter beginning at a cut stays: masking it would say more about the value than it does."""

ESCAPES_MAX = 200_000
"""Of one text, in all its layers: a quarter of a second of work, and more than a megabyte of JSON or HTML holds."""

UNSEARCHABLE = "***"
"""What is left of a text that is escapes upon escapes, and of what would tell the length of a value."""

_CUT_BASE64_CHARACTERS_MIN = 6
_UNFINISHED_CHARACTERS_MAX = 12  # the longest escape that a cut leaves behind: half a pair of surrogates in JSON
_ROUNDS_MAX = 4


@dataclass(frozen=True, slots=True, repr=False)  # so that nothing prints the text
class _Needle:
    text: str
    name: str
    more_left: int = 0  # base64: neighbours that hold some bits of the value
    more_right: int = 0
    cut_min: int = CUT_CHARACTERS_MIN


class _Piece(NamedTuple):
    """Characters of a decoded text, from `at` on, and where they come from: as they are, or all from one escape."""

    at: int
    start: int
    end: int
    is_escape: bool


class _View:
    """A text after some layers were taken off, and the way back into the original."""

    def __init__(self, text: str, pieces: list[_Piece] | None = None, below: _View | None = None) -> None:
        self.text = text
        self._pieces = pieces or []
        self._starts = [piece.at for piece in self._pieces]
        self._below = below

    @property
    def escapes(self) -> int:
        """How many pieces it is made of: an escape is one, and so is what stands between two."""
        return len(self._pieces)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where the characters from `start` to `end` (at least one) stand in the original."""
        if self._below is None:
            return start, end
        first, last = self._piece(start), self._piece(end - 1)
        start = first.start if first.is_escape else first.start + start - first.at
        end = last.end if last.is_escape else last.start + end - last.at
        return self._below.span(start, end)

    def _piece(self, index: int) -> _Piece:
        return self._pieces[bisect.bisect_right(self._starts, index) - 1]


class _TooManyEscapes(Exception):
    """The text would take too long to search."""


class Redactor:
    """Masks the values of these secrets."""

    def __init__(self, used: Iterable[Secret]) -> None:
        values = {secret.name: secret.reveal() for secret in used}
        masks = {name: f"[secret {name}]" for name in values}
        self._masks = {
            name: "***" if any(value in mask for value in values.values()) else mask for name, mask in masks.items()
        }
        known = [(name, alike) for name, value in values.items() for alike in _alike(value)]
        self._needles = [needle for name, value in known for needle in _needles(name, value)]
        self._binary = [needle for name, value in known for needle in _binary_needles(name, value)]
        self._has_blanks = any(" " in value for value in values.values())

    def text(self, text: str, *, cut: bool = False) -> str:
        """The text with every value masked; `cut`: something was cut off its end."""
        return self._mask(text, self._needles, cut=cut)

    def data(self, data: bytes, *, cut: bool = False) -> bytes:
        """The same for what is no text."""
        masked = self._mask(data.decode("latin-1"), self._binary, cut=cut)
        return masked.encode("latin-1")

    def sentence(self, text: str) -> str:
        """A message of ours, which may quote the beginning of something and mark the cut with dots."""
        parts = re.split(r"(…|\.\.\.)", text)
        return "".join(self.text(part, cut=index + 1 < len(parts)) for index, part in enumerate(parts))

    def _mask(self, text: str, needles: list[_Needle], *, cut: bool) -> str:
        """A mask may join its neighbours to a new occurrence, so it is looked for again; a text that shows one after
        some rounds, or cannot be searched, goes whole."""
        try:
            for _ in range(_ROUNDS_MAX):
                found = list(self._found(text, needles, cut=cut))
                if not found:
                    return text
                text = self._replaced(text, found)
                cut = False
        except _TooManyEscapes:
            pass
        return UNSEARCHABLE

    def _found(self, text: str, needles: list[_Needle], *, cut: bool) -> Iterator[tuple[int, int, str]]:
        """(start, end, name) of each occurrence, in any order; they may overlap."""
        for view in self._views(text):
            for needle in needles:
                for start, end in _occurrences(view.text, needle):
                    yield *view.span(start, end), needle.name
                if cut and (begin := _begun(view.text, needle)) is not None:
                    yield view.span(begin, len(view.text))[0], len(text), needle.name

    def _views(self, text: str) -> Iterator[_View]:
        seen = {text}
        escapes = 0
        level = [_View(text)]
        for depth in range(LAYERS_MAX + 1):
            yield from level
            above = []
            for below in level if depth < LAYERS_MAX else ():
                for decode in self._decoders():
                    view = decode(below, ESCAPES_MAX - escapes)
                    if view is None:
                        continue
                    escapes += view.escapes
                    if view.text not in seen:
                        seen.add(view.text)
                        above.append(view)
            level = above

    def _decoders(self) -> Iterator[Callable[[_View, int], _View | None]]:
        yield from (_percent, _json, _html, _joined)
        if self._has_blanks:
            yield _form

    def _replaced(self, text: str, found: list[tuple[int, int, str]]) -> str:
        parts: list[str] = []
        begin, end, name = 0, 0, ""
        done = 0
        for start, stop, owner in [*sorted(found, key=lambda item: (item[0], -item[1])), (len(text) + 1, 0, "")]:
            if name and start < end:
                end = max(end, stop)
                continue
            if name:
                parts += text[done:begin], self._masks[name]
                done = end
            begin, end, name = start, stop, owner
        return "".join([*parts, text[done:]])


def _alike(value: str) -> set[str]:
    """What servers make of a value before they repeat it: line ends of the other kind or none, no blanks at its ends.

    Never shorter than a value may be: it could not be told from ordinary text.
    """
    lines = value.replace("\r\n", "\n")
    found = {value, lines, *(lines.replace("\n", end) for end in ("\r\n", " ", ""))}
    found |= {text.strip() for text in found}
    return {value} | {text for text in found if len(text) >= VALUE_CHARACTERS_MIN}


def _needles(name: str, value: str) -> Iterator[_Needle]:
    content = value.encode()
    yield _Needle(value, name)
    # Header values come as UTF-8, or as bytes that are none; bodies by their charset.
    for other in {content.decode("latin-1"), _as_wrong_utf8(value)} - {value, ""}:
        yield _Needle(other, name)
    yield from _encoded(name, content)


def _binary_needles(name: str, value: str) -> Iterator[_Needle]:
    """Among bytes, each of them seen as one character."""
    for charset in ("utf-8", "utf-16-le", "utf-16-be", "latin-1"):
        try:
            yield _Needle(value.encode(charset).decode("latin-1"), name)
        except UnicodeEncodeError:
            continue
    yield from _encoded(name, value.encode())


def _as_wrong_utf8(value: str) -> str:
    try:
        return value.encode("latin-1").decode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return ""


def _encoded(name: str, content: bytes) -> Iterator[_Needle]:
    digits = content.hex()
    yield _Needle(digits, name)
    if digits != digits.upper():
        yield _Needle(digits.upper(), name)
    for before in range(3):
        text = base64.b64encode(bytes(before) + content).decode()
        dropped = (0, 2, 3)[before]  # characters that hold bits of what stands before, too
        remainder = (before + len(content)) % 3
        kept = text[dropped : len(text) - (0, 3, 2)[remainder]]
        for core in {kept, kept.replace("+", "-").replace("/", "_")}:
            yield _Needle(core, name, int(before > 0), int(remainder > 0), _CUT_BASE64_CHARACTERS_MIN)


_BASE64 = re.compile(r"[A-Za-z0-9+/_-]")


def _occurrences(text: str, needle: _Needle) -> Iterator[tuple[int, int]]:
    start = text.find(needle.text)
    while start >= 0:
        end = start + len(needle.text)
        left = needle.more_left and start > 0 and _BASE64.match(text[start - 1])
        right = needle.more_right and end < len(text) and _BASE64.match(text[end])
        yield start - bool(left), end + bool(right)
        start = text.find(needle.text, end)


def _begun(text: str, needle: _Needle) -> int | None:
    """Where the text ends with the beginning of a needle, perhaps followed by half an escape."""
    beginning = needle.text[: needle.cut_min]
    for length in range(min(_UNFINISHED_CHARACTERS_MAX, len(text)) + 1):
        stop = len(text) - length
        if length and text[stop] not in "%\\&":
            continue
        start = text.find(beginning, max(0, stop - len(needle.text) + 1), stop)
        while start >= 0:
            if needle.text.startswith(text[start:stop]):
                return start
            start = text.find(beginning, start + 1, stop)
    return None


def _decoded(view: _View, most: int, pattern: re.Pattern[str], decode: Callable[[str], str]) -> _View | None:
    """The view with each match of the pattern decoded; None when there is none. Raises _TooManyEscapes beyond `most`
    pieces."""
    text = view.text
    parts: list[str] = []
    pieces: list[_Piece] = []
    at = done = 0
    for match in pattern.finditer(text):
        if len(pieces) >= most:
            raise _TooManyEscapes
        start, end = match.span()
        if start > done:
            pieces.append(_Piece(at, done, start, False))
            parts.append(text[done:start])
            at += start - done
        meant = decode(match[0])
        pieces.append(_Piece(at, start, end, True))
        parts.append(meant)
        at += len(meant)
        done = end
    if not done:
        return None
    if done < len(text):
        pieces.append(_Piece(at, done, len(text), False))
        parts.append(text[done:])
    return _View("".join(parts), pieces, view)


_H = "[0-9A-Fa-f]"
_PERCENT = re.compile(
    f"%u{_H}{{4}}|%[CcDd]{_H}%[89ABab]{_H}|%[Ee]{_H}(?:%[89ABab]{_H}){{2}}|%[Ff]{_H}(?:%[89ABab]{_H}){{3}}|%{_H}{{2}}"
)
_FORM = re.compile(_PERCENT.pattern + r"|\+")
_JSON = re.compile(rf"\\u[dD][89ABab]{_H}{{2}}\\u[dD][C-Fc-f]{_H}{{2}}|\\u{_H}{{4}}|\\x{_H}{{2}}|\\[\"'\\/bfnrtv0]")
_HTML = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
# Between characters of base64 only: most line ends stand elsewhere, and each counts as an escape. A run of blanks is
# looked at once, from its beginning, and not again from each of its blanks.
_LINE_END = re.compile(r"(?<=[A-Za-z0-9+/_-]{4})[ \t]*+\r?\n[ \t]*(?=[A-Za-z0-9+/_-])")
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}


def _percent(view: _View, most: int) -> _View | None:
    return _decoded(view, most, _PERCENT, _percent_character) if "%" in view.text else None


def _form(view: _View, most: int) -> _View | None:
    return _decoded(view, most, _FORM, _percent_character) if "+" in view.text else None


def _percent_character(escape: str) -> str:
    if escape == "+":
        return " "
    if escape[1] in "uU":
        return chr(int(escape[2:], 16))
    content = bytes.fromhex(escape.replace("%", ""))
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _json(view: _View, most: int) -> _View | None:
    return _decoded(view, most, _JSON, _json_character) if "\\" in view.text else None


def _json_character(escape: str) -> str:
    if escape[1] not in "ux":
        return _SHORT.get(escape[1], escape[1])
    codes = bytes.fromhex(escape.replace("\\u", "").replace("\\x", "00"))
    return codes.decode("utf-16-be", "surrogatepass")


def _html(view: _View, most: int) -> _View | None:
    return _decoded(view, most, _HTML, html.unescape) if "&" in view.text else None


def _joined(view: _View, most: int) -> _View | None:
    """Base64 in mails is broken into lines."""
    return _decoded(view, most, _LINE_END, lambda _: "") if "\n" in view.text else None
