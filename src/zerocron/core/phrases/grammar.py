"""The engine: rows of patterns over tokens, the longest row wins, every answer is remembered.

A table (en.py, fr.py, es.py) is data: `Words` give single words or fixed groups a kind and a value, `Row`s give
patterns a meaning. A pattern is written in this small notation:

    every          the word itself (folded: no accents, lower case)
    DAY            anything of that kind: of Words, of Rows, or INT (DIGITS as text), CLOCK, DECIMAL, DATE, ZONEID
    TIME+          a list of them, separated by the table's SEP rows; its value is a tuple
    [of the]       may be left out
    (a|per|each)   one of these
    !pm            the next word is not this one

A row's `build` receives the values of the kinds in the pattern, in order (None for one that was left out). A phrase is
a sequence of CLAUSE rows with FILLER words between them. At each place the longest row wins, then the first in the
table; there is no going back, and each (kind, place) is matched once, so the time is linear in the text.

This file owns matching. It must never know a word of any language nor what a value means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .tokens import Token, tokenize

# An example is "a phrase => what it must become": a cron expression, `every 5400 s`, `at 2026-11-30T09:00Z` or
# `no reason`; `@ Europe/Paris` behind it is the zone that the phrase sets. tests/core/phrases/ runs every one.

_TOKEN_KINDS: Final = {
    "INT": "int",
    "DIGITS": "int",
    "CLOCK": "clock",
    "DECIMAL": "decimal",
    "DATE": "date",
    "ZONEID": "zone",
}


@dataclass(frozen=True, slots=True)
class Words:
    """Words of one kind: value -> its spellings, separated by ` | `; a spelling may be several words.

    `example` is run for every spelling: {} on the left is the spelling, {} on the right the value. A mapping gives each
    value an example of its own.
    """

    kind: str
    spellings: Mapping[Any, str]
    example: str | Mapping[Any, str]


@dataclass(frozen=True, slots=True)
class Row:
    """One pattern of one kind, what it means, and phrases that prove it."""

    kind: str
    pattern: str
    build: Callable[..., Any]
    examples: tuple[str, ...]


def row(kind: str, pattern: str, build: Callable[..., Any], *examples: str) -> Row:
    """A Row, in the shape a table is nicest to read in."""
    return Row(kind, pattern, build, examples)


def clause(pattern: str, build: Callable[..., Any], *examples: str) -> Row:
    """A row that is a whole piece of a phrase."""
    return Row("CLAUSE", pattern, build, examples)


@dataclass(frozen=True, slots=True)
class Match:
    """A kind found in the tokens: where it ends and its value."""

    end: int
    value: Any


@dataclass(frozen=True, slots=True)
class _Word:
    text: str


@dataclass(frozen=True, slots=True)
class _Kind:
    name: str
    many: bool


@dataclass(frozen=True, slots=True)
class _Choice:
    options: tuple[tuple[_Item, ...], ...]
    values: int  # how many values an option gives; the same for all of them


@dataclass(frozen=True, slots=True)
class _Not:
    text: str


_Item = _Word | _Not | _Kind | _Choice
_NOTATION = re.compile(r"\s*([\[\]()|]|[A-Z_]+\+?|[^\s\[\]()|]+)")


def compile_pattern(pattern: str) -> tuple[_Item, ...]:
    """The items of a pattern. Optional groups are choices whose last option is empty."""
    pieces = _NOTATION.findall(pattern)
    options, rest = _options(pieces, 0, "")
    if rest != len(pieces) or len(options) != 1:
        raise ValueError(f"unbalanced pattern: {pattern}")
    return options[0]


def _options(pieces: list[str], at: int, closing: str) -> tuple[list[tuple[_Item, ...]], int]:
    options: list[list[_Item]] = [[]]
    while at < len(pieces):
        piece = pieces[at]
        at += 1
        if piece in "])":
            if piece != closing:
                raise ValueError("unbalanced pattern")
            return [tuple(option) for option in options], at
        if piece == "|":
            options.append([])
        elif piece in "[(":
            inner, at = _options(pieces, at, "]" if piece == "[" else ")")
            if piece == "[":
                inner.append(())
            options[-1].append(_Choice(tuple(inner), max(_count(option) for option in inner)))
        elif piece.rstrip("+").isupper() and piece != "+":
            options[-1].append(_Kind(piece.rstrip("+"), piece.endswith("+")))
        elif piece.startswith("!"):
            options[-1].append(_Not(piece[1:]))
        else:
            options[-1].extend(_Word(token.text) for token in tokenize(piece))
    if closing:
        raise ValueError("unbalanced pattern")
    return [tuple(option) for option in options], at


def _count(items: tuple[_Item, ...]) -> int:
    return sum(1 if isinstance(i, _Kind) else i.values if isinstance(i, _Choice) else 0 for i in items)


def _kinds(items: tuple[_Item, ...]) -> Iterator[str]:
    for item in items:
        if isinstance(item, _Kind):
            yield item.name
        elif isinstance(item, _Choice):
            for option in item.options:
                yield from _kinds(option)


def _literals(items: tuple[_Item, ...]) -> Iterator[str]:
    for item in items:
        if isinstance(item, _Word):
            yield item.text
        elif isinstance(item, _Choice):
            for option in item.options:
                yield from _literals(option)


class Grammar:
    """A compiled table: its lexicon and its rows by kind."""

    def __init__(self, words: tuple[Words, ...], rows: tuple[Row, ...]) -> None:
        self.lexicon: dict[str, dict[tuple[str, ...], Any]] = {}
        for group in words:
            entries = self.lexicon.setdefault(group.kind, {})
            for value, spellings in group.spellings.items():
                for spelling in spellings.split("|"):
                    entries[tuple(t.text for t in tokenize(spelling))] = value
        self.longest = {kind: max(map(len, entries)) for kind, entries in self.lexicon.items()}
        self.rows: dict[str, list[tuple[tuple[_Item, ...], Row]]] = {}
        for row in rows:
            self.rows.setdefault(row.kind, []).append((compile_pattern(row.pattern), row))
        self.vocabulary = self._vocabulary()
        self._check()

    def _vocabulary(self) -> frozenset[str]:
        literals = {w for rows in self.rows.values() for items, _ in rows for w in _literals(items)}
        return frozenset(literals | {w for entries in self.lexicon.values() for key in entries for w in key})

    def _check(self) -> None:
        """A pattern that names a kind nobody defines would never match: refuse the table instead."""
        known = set(self.lexicon) | set(self.rows) | set(_TOKEN_KINDS)
        for rows in self.rows.values():
            for items, row in rows:
                if unknown := set(_kinds(items)) - known:
                    raise ValueError(f"{row.pattern}: no such kind {sorted(unknown)}")


@dataclass(slots=True)
class Scan:
    """One reading of one list of tokens with one grammar."""

    grammar: Grammar
    tokens: list[Token]
    furthest: int = 0  # the last token that something before it made a row ask for
    _seen: dict[tuple[str, int], Match | None] = field(default_factory=dict)

    def find(self, kind: str, at: int) -> Match | None:
        """The longest match of `kind` at this place, remembered."""
        key = (kind, at)
        if key not in self._seen:
            self.furthest = max(self.furthest, at)
            self._seen[key] = None  # a kind that needs itself at the same place does not match
            self._seen[key] = self._longest(kind, at)
        return self._seen[key]

    def _longest(self, kind: str, at: int) -> Match | None:
        best = self._token(kind, at) if kind in _TOKEN_KINDS else self._lexicon(kind, at)
        for items, row in self.grammar.rows.get(kind, ()):
            for end, values in self._sequence(items, 0, at):
                if best is None or end > best.end:
                    built = row.build(*values)
                    if built is not None:
                        best = Match(end, built)
        return best

    def _token(self, kind: str, at: int) -> Match | None:
        if at < len(self.tokens) and self.tokens[at].kind == _TOKEN_KINDS[kind]:
            token = self.tokens[at]
            return Match(at + 1, int(token.text) if kind == "INT" else token.text)
        return None

    def _lexicon(self, kind: str, at: int) -> Match | None:
        entries = self.grammar.lexicon.get(kind)
        if entries is None:
            return None
        for length in range(min(self.grammar.longest[kind], len(self.tokens) - at), 0, -1):
            key = tuple(token.text for token in self.tokens[at : at + length])
            if key in entries:
                return Match(at + length, entries[key])
        return None

    def _sequence(self, items: tuple[_Item, ...], index: int, at: int) -> Iterator[tuple[int, list[Any]]]:
        """All the ways the items can match here; patterns are short, so these are few."""
        if index == len(items):
            yield at, []
            return
        for end, values in self._item(items[index], at):
            for last, more in self._sequence(items, index + 1, end):
                yield last, values + more

    def _item(self, item: _Item, at: int) -> Iterator[tuple[int, list[Any]]]:
        if isinstance(item, _Word):
            self.furthest = max(self.furthest, at)
            if at < len(self.tokens) and self.tokens[at].text == item.text:
                yield at + 1, []
        elif isinstance(item, _Not):
            if at == len(self.tokens) or self.tokens[at].text != item.text:
                yield at, []
        elif isinstance(item, _Kind):
            found = self._list(item.name, at) if item.many else self.find(item.name, at)
            if found is not None:
                yield found.end, [found.value]
        else:
            for option in item.options:
                for end, values in self._sequence(option, 0, at):
                    yield end, values + [None] * (item.values - len(values))

    def _list(self, kind: str, at: int) -> Match | None:
        """As many of `kind` as there are, with separators between."""
        key = (kind + "+", at)
        if key not in self._seen:
            first = self.find(kind, at)
            if first is None:
                self._seen[key] = None
            else:
                end, values = first.end, [first.value]
                while (mark := self.find("SEP", end)) and (more := self.find(kind, mark.end)):
                    end, values = more.end, [*values, more.value]
                self._seen[key] = Match(end, tuple(values))
        return self._seen[key]
