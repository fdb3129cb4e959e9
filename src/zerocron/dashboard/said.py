"""The API's sentences, said in the language of whoever reads a page (decision 0016).

Owns how a sentence is found by its text: the API says `A team has at most 20 channels.`, the catalog has words for
`A team has at most {0} channels.`. Must never take a value for anything but text, put into other words what is quoted,
nor take long for any text: a sentence is compared from left to right without going back, and only so many are. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from zerocron.core.phrases import LANGUAGES as PHRASES
from zerocron.core.schedule.sentences import SENTENCES, UNITS

TEXT_CHARACTERS_MAX = 4_000
SEGMENTS_MAX = 12
DEPTH_MAX = 3
LOOKS_MAX = 5_000
"""Sentences that a text is compared with: some 3 ms. Ours need 900 at most; what needs more is left as it is."""

PLACE = re.compile(r"\{(\d+|unit|units|whole)\}")
_SEGMENT = re.compile(r"(?<=[.?!:]) (?=\S)|(?<=.)(?=; )")
_NEXT_SENTENCE = re.compile(r"[.?!] [A-Z0-9]")
_NUMBER = re.compile(r"-?\d{1,3}(?:,\d{3}){1,6}")
"""As ours are written. A longer one, or one with a fraction, is somebody's value, and stays to the letter."""

_WORD = re.compile(r"[A-Za-z]{2}")
_PROSE = re.compile(r"(?<![a-z'])[a-z']++ [a-z']++ [a-z']+", re.IGNORECASE)
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|“[^”]*”|`[^`]*`""", re.DOTALL)
_QUOTES = {"'": "'", '"': '"', "“": "”", "`": "`", "(": ")"}
_LETTERS_OF_ITS_OWN = 8
"""A sentence with fewer beside its places, such as `{0} and {1}`, could be found in anybody's."""


@dataclass(frozen=True)
class _Pattern:
    """A sentence with places. `texts` are what stands before, between and after them."""

    texts: tuple[str, ...]
    places: tuple[str, ...]
    words: str

    @cached_property
    def quoted(self) -> Mapping[str, str]:
        """The places between quotes, each with the quote that begins it."""
        around = zip(self.places, self.texts[:-1], self.texts[1:], strict=True)
        return {
            place: before[-1] for place, before, after in around if after.startswith(_QUOTES.get(before[-1:], "none"))
        }

    @cached_property
    def is_vague(self) -> bool:
        return sum(map(str.isalpha, "".join(self.texts))) < _LETTERS_OF_ITS_OWN

    @cached_property
    def is_part(self) -> bool:
        """`{0} and {1}`: of a sentence, and none by itself."""
        return self.is_vague and not self.texts[0] and not self.texts[-1].endswith((".", "?", "!"))

    def values(self, text: str) -> dict[str, str] | None:
        """What stands in the places, if the text is this sentence."""
        first, *between, last = self.texts
        end = len(text) - len(last)
        if end < len(first) or not text.startswith(first) or not text.endswith(last):
            return None
        found, begin = [], len(first)
        for each in between:
            place = text.find(each, begin, end)
            if place < 0:
                return None
            found.append(text[begin:place])
            begin = place + len(each)
        return dict(zip(self.places, [*found, text[begin:end]], strict=True))


class Sayer:
    """Says the sentences of a catalog, pairs of (the API's, ours). `number` writes `1,000` as readers do."""

    def __init__(self, pairs: Iterable[tuple[str, str]], number: Callable[[str], str] = str) -> None:
        self.number = number
        self.whole: dict[str, str] = {}
        patterns = []
        for sentence, words in pairs:
            parts = PLACE.split(sentence)
            if len(parts) == 1:
                self.whole.setdefault(sentence, words)
            elif any(map(_WORD.search, parts[::2])):
                patterns.append(_Pattern(tuple(parts[::2]), tuple(parts[1::2]), words))
        self._by_word: dict[str, list[_Pattern]] = {}
        self._others: list[_Pattern] = []  # those that begin with a value
        for pattern in sorted(patterns, key=lambda it: -len("".join(it.texts))):  # what says most of the sentence first
            word, blank, _ = pattern.texts[0].partition(" ")
            (self._by_word.setdefault(word, []) if blank else self._others).append(pattern)

    def said(self, text: str) -> str:
        """The text in the reader's language; as it is where it is no sentence of the API's, or very long."""
        try:
            return text if len(text) > TEXT_CHARACTERS_MAX else _Reading(self).said(text) or text
        except _TooIntricate:
            return text

    def patterns(self, text: str) -> Iterator[_Pattern]:
        """Those that it may be: what says most first."""
        yield from self._by_word.get(text.partition(" ")[0], ())
        yield from self._others


class _TooIntricate(Exception):
    """It is like so many sentences that it is none of ours."""


class _Reading:
    """One text, and how often it was compared. Its methods give None for what they do not know."""

    def __init__(self, sayer: Sayer) -> None:
        self._sayer = sayer
        self._looks = 0

    def said(self, text: str, depth: int = 0) -> str | None:
        """A sentence, or several. `depth`: it is a value in how many others."""
        if text in self._sayer.whole:
            return self._sayer.whole[text]
        if _NUMBER.fullmatch(text):
            return self._sayer.number(text)
        if depth > DEPTH_MAX or not _WORD.search(text):
            return None
        for pattern, values in self._fitting(text, depth):
            if any(map(_NEXT_SENTENCE.search, values.values())):  # perhaps it is two, and the next one is known, too
                of_several = self._in_segments(text, depth, is_all=True)
                if of_several is not None:
                    return of_several
            told = self._told(pattern, values, depth)
            if told is not None:
                return told
        return self._in_segments(text, depth, is_all=False) or (self._in_list(text, depth) if depth else None)

    def _fitting(self, text: str, depth: int) -> Iterator[tuple[_Pattern, dict[str, str]]]:
        for pattern in self._sayer.patterns(text):
            self._looks += 1
            if self._looks > LOOKS_MAX:
                raise _TooIntricate
            values = pattern.values(text) if depth or not pattern.is_part else None
            if values is not None:
                yield pattern, values

    def _in_segments(self, text: str, depth: int, *, is_all: bool) -> str | None:
        """Several sentences one after the other, or one behind the name of a field: as many of each as are known."""
        cuts = [0, *(match.end() for match in _SEGMENT.finditer(text)), len(text)]
        if not 2 < len(cuts) <= SEGMENTS_MAX + 1:
            return None
        parts, at, is_any = [], 0, False
        while at < len(cuts) - 1:
            for end in range(len(cuts) - 1, at, -1):
                if (at, end) == (0, len(cuts) - 1):
                    continue  # all of it, which was tried
                part = text[cuts[at] : cuts[end]]
                bare = part.rstrip(" ")
                is_rest = end == len(cuts) - 1 and not is_all
                told = self.said(bare, depth) if is_rest else self._one(bare, depth)
                if told is not None:
                    parts.append(told + part[len(bare) :])
                    at, is_any = end, True
                    break
            else:
                if is_all:
                    return None
                parts.append(text[cuts[at] : cuts[at + 1]])
                at += 1
        return "".join(parts) if is_any else None

    def _in_list(self, text: str, depth: int) -> str | None:
        """Several parts with commas between them, all of them known."""
        parts = text.split(", ")
        told = [self._one(part, depth) for part in parts] if 1 < len(parts) <= SEGMENTS_MAX else [None]
        return ", ".join(map(str, told)) if None not in told else None

    def _one(self, text: str, depth: int) -> str | None:
        """A segment: one sentence, of which no value holds another one's end."""
        if text in self._sayer.whole:
            return self._sayer.whole[text]
        for pattern, values in self._fitting(text, depth):
            if not any(map(_NEXT_SENTENCE.search, values.values())):
                told = self._told(pattern, values, depth)
                if told is not None:
                    return told
        return None

    def _told(self, pattern: _Pattern, values: Mapping[str, str], depth: int) -> str | None:
        """The words of a sentence with its values; None when it is hardly this one."""
        told = {}
        for place, value in values.items():
            quote = pattern.quoted.get(place)
            if quote and quote in value.partition(f"{_QUOTES[quote]}, ")[2]:
                return None  # it is several
            is_quoted = quote or _QUOTED.fullmatch(value)
            bare = value.strip(" ")
            known = None if is_quoted else self.said(bare, depth + 1)
            if known is None and pattern.is_vague and not is_quoted and _PROSE.search(value):
                return None
            told[place] = value if known is None else value.replace(bare, known)
        return _filled(pattern.words, told)


def _filled(words: str, values: Mapping[str, str]) -> str:
    return PLACE.sub(lambda match: values.get(match[1], match[0]), words)


def schedule_pairs(language: str) -> Iterator[tuple[str, str]]:
    """The sentences about schedules, which have their words in core because notices are made of them, too."""
    for key, sentence in SENTENCES["en"].items():
        yield sentence, SENTENCES[language][key]
    for unit, names in UNITS["en"].items():
        yield from zip(names, UNITS[language][unit], strict=True)
    ours, theirs = PHRASES["en"], PHRASES[language]
    for said, words in ((ours.messages, theirs.messages), (ours.notes, theirs.notes)):
        yield from ((_numbered(sentence), _numbered(words[key])) for key, sentence in said.items())


def _numbered(sentence: str) -> str:
    count = iter(range(9))
    return re.sub(r"\{\}", lambda _: f"{{{next(count)}}}", sentence)
