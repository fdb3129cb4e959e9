"""What a refused text may have meant: suggestions a person can paste.

Owns guesses, and only shows them: nothing here may ever become a schedule without being typed again. A suggestion is
given only if it compiles.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from zerocron.core.errors import Invalid
from zerocron.core.schedule.cron_parse import FULL_NAMES, Cron, DayMatch, compile_cron

_LOOK_ALIKES = str.maketrans(
    {"\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": "-", "\u2212": "-", "\u2217": "*"}
)
_INVISIBLE = ("Cc", "Cf", "Mn", "Me")
_WORD = re.compile(r"[A-Z]{4,9}")
_YEAR = re.compile(r"[12][0-9]{3}")
_FIELD = re.compile(r"[0-9*?]")
_MOST_WORDS = 40  # a pasted crontab line may carry a command; longer than that is not one


def repaired(text: str, day_match: DayMatch = "either") -> tuple[Cron, ...]:
    """Expressions the text may have meant, compiled, best first."""
    found: dict[str, Cron] = {}
    for candidate in _candidates(text):
        try:
            cron = compile_cron(candidate, day_match)
        except Invalid:
            continue
        found.setdefault(cron.text, cron)
    return tuple(found.values())


def _candidates(text: str) -> Iterator[str]:
    for line in text.splitlines()[:5]:
        cleaned = visible(line)
        if not cleaned.isascii():
            continue
        words = cleaned.split()[:_MOST_WORDS]
        yield " ".join(words)
        yield _WORD.sub(lambda word: FULL_NAMES.get(word[0], word[0]), " ".join(words).upper())
        if len(words) == 6 and _YEAR.fullmatch(words[5]):
            yield " ".join(["0", *words])
        if len(words) == 5:
            yield " ".join([words[0], re.sub(r"\b24\b", "0", words[1]), *words[2:]])
        if len(words) > 5 and not _FIELD.match(words[5]):  # a crontab line with its command or comment
            yield " ".join(words[:5])


def visible(text: str) -> str:
    """The text without invisible characters, and with the plain form of look-alikes."""
    plain = unicodedata.normalize("NFKC", text.translate(_LOOK_ALIKES))
    return "".join(" " if c == "\t" else c for c in plain if c == "\t" or unicodedata.category(c) not in _INVISIBLE)
