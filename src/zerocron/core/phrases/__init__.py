"""Plain language to schedules, in English, French and Spanish; and schedules to words.

Deterministic: tokens, then the rows of one table per language, then one plan. No I/O, no clock, no model, linear time.

    tokens.py    text -> folded tokens; what no schedule contains is refused here
    grammar.py   the engine: patterns over tokens, the longest row wins
    en.py, fr.py, es.py   the tables: words, rows with their examples, messages, words to speak with
    language.py  what a table is made of
    meaning.py   the pieces that rows build
    draft.py     pieces of one phrase laid out, or two schedules in one
    plan.py      the one schedule they mean, exactly, or a refusal with ideas (times.py, instants.py, refusals.py help)
    fields.py    cron fields as sets
    describe.py  sets -> words
    typos.py     slips of one letter
    zones.py     cities and zone names
    api.py       the choice of the language, and the wording of refusals

To add a phrase: one row with examples in one table. To add a language: one file and one line in api.py.
"""

from zerocron.core.phrases.api import (
    LANGUAGES,
    NotUnderstood,
    Reading,
    describe_correction,
    describe_cron,
    describe_instant,
    describe_interval,
    read,
    speech,
)
from zerocron.core.phrases.fields import looks_like_cron
from zerocron.core.phrases.language import Code

__all__ = [
    "LANGUAGES",
    "Code",
    "NotUnderstood",
    "Reading",
    "describe_correction",
    "describe_cron",
    "describe_instant",
    "describe_interval",
    "looks_like_cron",
    "read",
    "speech",
]
