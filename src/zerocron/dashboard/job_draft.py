"""A job as its form has it: texts as they were typed, and what the API is to be sent.

Owns which field of the form is which field of the API, in both directions, and where a fault that the API found is
shown. Must never judge what was typed: what is no number goes to the API as the text that it is, and the API says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from zerocron.core.alerting import EVENTS, JOB_DEFAULT
from zerocron.core.spans import read_seconds, span
from zerocron.dashboard.forms import Form

Json = Mapping[str, Any]

DEFAULTS: Json = {
    "name": "",
    "schedule": "",
    "url": "",
    "timezone": "UTC",
    "dst": "run_once",
    "day_match": "either",
    "method": "GET",
    "headers": {},
    "body": None,
    "timeout": 30,
    "retry": {"attempts": 1, "backoff": "exponential", "delay": 5, "jitter": "none"},
    "overlap": "skip",
    "catchup": "latest",
    "catchup_window": 86_400,
    "on_lost": "rerun",
    "disable_after": 0,
    "redirects": 0,
    "verify_tls": True,
    "sign": False,
    "success": {
        "status": ["2xx"],
        "body_contains": None,
        "body_not_contains": None,
        "body_matches": None,
        "json": [],
        "headers": {},
        "max_duration_ms": None,
    },
    "notify": {
        "channels": None,
        "on": list(JOB_DEFAULT.on),
        "after_failures": JOB_DEFAULT.after_failures,
        "out_of": JOB_DEFAULT.out_of,
        "remind_every": JOB_DEFAULT.remind_every,
        "late_after": JOB_DEFAULT.late_after,
    },
    "tags": [],
}
"""A job of which nothing is said. A test compares it with the API's."""

NEEDED = ("name", "schedule", "url")
REQUEST = ("url", "method", "headers", "body", "timeout", "redirects", "verify_tls", "sign", "success")
"""What sending a request once is told."""

NUMBER_LIMIT = 2.0**63
"""Whole numbers of JSON from here on have no one meaning, and no writer of ours writes them."""

_WHOLE = re.compile(r"-?[0-9]{1,15}")
_NUMBER = re.compile(r"-?[0-9]{1,15}(?:[.,][0-9]{1,9})?")


@dataclass(frozen=True, slots=True)
class Kind:
    """How a value of the API is written into a field, and what a text in it means to the API."""

    write: Callable[[Any], str]
    read: Callable[[str], Any]
    is_raw: bool = False
    """Blanks around the text, and its line ends, belong to it."""


def _read_number(text: str) -> Any:
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text.replace(",", ".")) if _NUMBER.fullmatch(text) else text


def _plain(value: float) -> float:
    """A whole number as one: the API takes no 5.0 where a whole number belongs."""
    return int(value) if value == int(value) else value


def _read_length(text: str) -> Any:
    try:
        return _plain(read_seconds(text.replace(",", ".")))
    except ValueError:
        return text


def _read_milliseconds(text: str) -> Any:
    length = _read_length(text)
    return length if isinstance(length, str) else _plain(round(length * 1_000, 3))


def _maybe(kind: Kind) -> Kind:
    """The same, and nothing for none."""
    return Kind(
        lambda value: "" if value is None else kind.write(value),
        lambda text: kind.read(text) if text else None,
        kind.is_raw,
    )


def _listed(separators: str) -> Kind:
    def read(text: str) -> list[str]:
        return [part.strip() for part in re.split(separators, text) if part.strip()]

    return Kind(", ".join, read)


TEXT = Kind(str, str)
RAW = Kind(str, str, is_raw=True)
NUMBER = Kind(lambda value: f"{value:.15g}", _read_number)
LENGTH = Kind(span, _read_length)
MILLISECONDS = Kind(
    lambda value: span(value / 1_000) if value % 1_000 == 0 else f"{value} ms",
    _read_milliseconds,
)
FLAG = Kind(lambda value: "true" if value else "", lambda text: text == "true")

FIELDS: Mapping[str, Kind] = {
    "name": TEXT,
    "method": TEXT,
    "url": TEXT,
    "schedule": TEXT,
    "timezone": TEXT,
    "dst": TEXT,
    "day_match": TEXT,
    "body": _maybe(RAW),
    "timeout": LENGTH,
    "redirects": NUMBER,
    "verify_tls": FLAG,
    "sign": FLAG,
    "retry.attempts": NUMBER,
    "retry.backoff": TEXT,
    "retry.delay": LENGTH,
    "retry.jitter": TEXT,
    "success.status": _listed(r"[,;\s]+"),
    "success.body_contains": _maybe(RAW),
    "success.body_not_contains": _maybe(RAW),
    "success.body_matches": _maybe(RAW),
    "success.max_duration_ms": _maybe(MILLISECONDS),
    "overlap": TEXT,
    "catchup": TEXT,
    "catchup_window": LENGTH,
    "on_lost": TEXT,
    "disable_after": NUMBER,
    "notify.after_failures": NUMBER,
    "notify.out_of": _maybe(NUMBER),
    "notify.remind_every": _maybe(LENGTH),
    "notify.late_after": LENGTH,
    "tags": _listed(r"[,;\n]+"),
}
"""The fields that are one input each, by the API's names."""


class Unsaid(Exception):
    """What was typed has no shape in the API: a header twice, or no channel where some were meant."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.place = place


Row = tuple[str, str]


def _json_rules(group: str, rows: list[Row]) -> list[dict[str, Any]]:
    made = []
    for number, (path, text) in enumerate(rows):
        try:
            made.append({"path": path, "equals": read_scalar(text)})
        except ValueError:
            raise Unsaid(f"{group}.{number}") from None
    return made


def _by_name(group: str, rows: list[Row]) -> dict[str, str]:
    made: dict[str, str] = {}
    for number, (name, value) in enumerate(rows):
        if name in made:
            raise Unsaid(f"{group}.{number}")
        made[name] = value
    return made


ROWS: Mapping[str, Callable[[str, list[Row]], Any]] = {
    "headers": _by_name,
    "success.headers": _by_name,
    "success.json": _json_rules,
}
"""The fields that are rows of two inputs each: a name or path, and a value."""

PICKS = ("notify.channels", "notify.on")
"""The fields that are boxes to tick."""

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "request": ("headers", "body", "timeout", "redirects", "verify_tls", "sign"),
    "retry": ("retry",),
    "success": ("success",),
    "collide": ("overlap", "catchup", "catchup_window", "on_lost", "disable_after"),
    "notify": ("notify",),
    "tags": ("tags",),
}
"""What is folded, by the beginnings of the fields in it."""


@dataclass
class Draft:
    """What the form shows. `told`: `all`, `some` (then `channels`) or `none`."""

    texts: dict[str, str] = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=dict)
    told: str = "all"
    channels: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    seen: str = ""
    """What the job was that the form was filled from, as `seen_of` has it; empty for a new one."""

    @classmethod
    def of_job(cls, job: Json) -> Draft:
        """The form of a job as the API shows it, or of DEFAULTS."""
        named = job["notify"]["channels"]
        return cls(
            {name: kind.write(_at(job, name)) for name, kind in FIELDS.items()},
            {
                "headers": list(job["headers"].items()),
                "success.headers": list(job["success"]["headers"].items()),
                "success.json": [(rule["path"], write_scalar(rule["equals"])) for rule in job["success"]["json"]],
            },
            "all" if named is None else "some" if named else "none",
            list(named or ()),
            list(job["notify"]["on"]),
            seen_of(job) if "id" in job else "",
        )

    @classmethod
    def of_form(cls, form: Form) -> Draft:
        """What was typed."""
        return cls(
            {name: _typed(form, name, kind) for name, kind in FIELDS.items()},
            {name: _rows_of(form, name) for name in ROWS},
            form.get("notify.told", "all"),
            form.all("notify.channels"),
            form.all("notify.on"),
            form.get("seen"),
        )

    def get(self, name: str) -> str:
        return self.texts[name]

    def job(self, base: Json = DEFAULTS) -> dict[str, Any]:
        """All of it as the API takes it: the shape of DEFAULTS. Raises Unsaid for what the API could not be told.

        A field that still shows what `base` has keeps that value as it is, whatever a field cannot show of it.
        """
        shown = Draft.of_job(base)
        made: dict[str, Any] = {}
        for name, kind in FIELDS.items():
            text = self.texts[name]
            is_kept = text == _as_typed(shown.texts[name], kind)
            _put(made, name, _at(base, name) if is_kept else kind.read(text))
        for name, read in ROWS.items():
            rows = self.rows[name]
            is_kept = rows == [(key.strip(), value.strip()) for key, value in shown.rows[name]]
            _put(made, name, _at(base, name) if is_kept else read(name, rows))
        _put(made, "notify.on", [event for event in EVENTS["job"] if event in self.events])
        _put(made, "notify.channels", self._channels())
        return made

    def _channels(self) -> list[str] | None:
        if self.told == "some" and not self.channels:
            raise Unsaid("notify.channels")
        return self.channels if self.told == "some" else [] if self.told == "none" else None


def seen_of(job: Json) -> str:
    """A digest of what can be edited of a job: another one once somebody has edited it. A pause leaves it as it is."""
    kept = {name: job[name] for name in DEFAULTS}
    return blake2b(json.dumps(kept, sort_keys=True).encode(), digest_size=12).hexdigest()


def differing(job: Json, base: Json) -> dict[str, Any]:
    """The fields of a job that are not as in `base`; of the three that have fields of their own, only those of them."""
    changed: dict[str, Any] = {}
    for name, value in job.items():
        if name in ("retry", "success", "notify"):
            value = {key: each for key, each in value.items() if _differs(each, base[name][key])}
            if value:
                changed[name] = value
        elif _differs(value, base[name]):
            changed[name] = value
    return changed


def _differs(value: Any, base: Any) -> bool:
    """`1` and `true` are the same to Python, and nobody else."""
    if isinstance(value, bool) or isinstance(base, bool):
        return value is not base
    if isinstance(value, list) and isinstance(base, list) and len(value) == len(base):
        return any(_differs(one, other) for one, other in zip(value, base, strict=True))
    if isinstance(value, Mapping) and isinstance(base, Mapping) and list(value) == list(base):
        return any(_differs(each, base[name]) for name, each in value.items())
    return bool(value != base) or isinstance(value, str) != isinstance(base, str)


def names_of(changed: Json) -> list[str]:
    """The changed fields by their whole names."""
    return [
        whole
        for name, value in changed.items()
        for whole in ([f"{name}.{key}" for key in value] if name in ("retry", "success", "notify") else [name])
    ]


def open_sections(changed: Iterable[str], errors: Iterable[str]) -> set[str]:
    """The sections that show something: other than the default, or at fault."""
    names = [*changed, *errors]
    return {
        section
        for section, beginnings in SECTIONS.items()
        if any(name == each or name.startswith(f"{each}.") for name in names for each in beginnings)
    }


def placed(errors: Mapping[str, str], rows: Mapping[str, list[Row]]) -> dict[str, str]:
    """Faults by the inputs that they belong to: `success.status.0` is about `success.status`, and `headers.X-Token`
    about the row of that name (`headers.2`). What has no input keeps its name."""
    found: dict[str, str] = {}
    for name, message in errors.items():
        found.setdefault(_place(name, rows), message)
    return found


def has_input(name: str) -> bool:
    """Whether the form shows a fault of this name beside an input."""
    group, _, number = name.rpartition(".")
    return name in FIELDS or name in ROWS or name in PICKS or (group in ROWS and number.isdigit())


def _place(name: str, rows: Mapping[str, list[Row]]) -> str:
    for group in ROWS:
        if name.startswith(f"{group}."):
            rest = name[len(group) + 1 :]
            if group == "success.json":
                index = rest.partition(".")[0]
                return f"{group}.{index}" if index.isdigit() and int(index) < len(rows[group]) else group
            for number, (key, _value) in enumerate(rows[group]):
                if key == rest or (rest.endswith("…") and key.startswith(rest[:-1])):
                    return f"{group}.{number}"
            return group
    parts = name.split(".")
    shown = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next(filter(has_input, shown), name)


def read_scalar(text: str) -> Any:
    """What a text in a field of a JSON value means: a number, true, false, null, a text in quotes; else the text.

    Raises ValueError for a number that JSON cannot carry exactly.
    """
    try:
        value = json.loads(text, parse_constant=str)
    except ValueError:
        return text
    if isinstance(value, (int, float)) and not abs(value) < NUMBER_LIMIT:
        raise ValueError(text)
    return value if value is None or isinstance(value, (str, bool, int, float)) else text


def write_scalar(value: Any) -> str:
    """As `read_scalar` reads it."""
    if isinstance(value, str) and value.isprintable() and value == value.strip():
        try:
            if read_scalar(value) == value:
                return value
        except ValueError:
            pass
    return json.dumps(value, ensure_ascii=False)


def _at(job: Json, name: str) -> Any:
    first, _, rest = name.partition(".")
    return job[first][rest] if rest else job[first]


def _put(made: dict[str, Any], name: str, value: Any) -> None:
    first, _, rest = name.partition(".")
    if rest:
        made.setdefault(first, {})[rest] = value
    else:
        made[first] = value


def _typed(form: Form, name: str, kind: Kind) -> str:
    """The text of a field. A box that is not ticked is not sent; any other field that is not sent is as by default."""
    if kind is not FLAG and not form.has(name):
        return kind.write(_at(DEFAULTS, name))
    return form.raw(name) if kind.is_raw else form.get(name)


def _as_typed(text: str, kind: Kind) -> str:
    """A text as it comes back from a field that shows it."""
    if kind.is_raw:
        return text.replace("\r\n", "\n").replace("\r", "\n")
    return text.replace("\r", "").replace("\n", "").strip()


def _rows_of(form: Form, name: str) -> list[Row]:
    pairs = zip(form.all(f"{name}.name"), form.all(f"{name}.value"), strict=False)
    return [pair for pair in pairs if any(pair)]
