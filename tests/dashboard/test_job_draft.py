"""A job goes through its form and comes out as it was, and only what was changed is sent."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerocron.api.job_models import JobIn
from zerocron.api.notify_models import notify_out
from zerocron.core.spans import read_seconds, span
from zerocron.dashboard.forms import Form
from zerocron.dashboard.job_draft import (
    DEFAULTS,
    FIELDS,
    FLAG,
    PICKS,
    REQUEST,
    ROWS,
    SECTIONS,
    Draft,
    Unsaid,
    differing,
    names_of,
    open_sections,
    placed,
    read_scalar,
    seen_of,
    write_scalar,
)
from zerocron.dashboard.specimens.job_form import JOB


def as_browser_sends(draft: Draft) -> list[tuple[str, str]]:
    """A form of the draft: boxes that are not ticked are left out, and line ends are as HTML has them, or gone."""
    pairs = []
    for name, text in draft.texts.items():
        end = "\r\n" if FIELDS[name].is_raw else ""
        if text or FIELDS[name] is not FLAG:
            pairs.append((name, text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", end)))
    for group, rows in draft.rows.items():
        for name, value in [*rows, ("", "")]:
            pairs += [(f"{group}.name", name), (f"{group}.value", value)]
    pairs += [("notify.told", draft.told), *(("notify.channels", each) for each in draft.channels)]
    return [*pairs, *(("notify.on", event) for event in draft.events), ("seen", draft.seen)]


def through_browser(draft: Draft) -> Draft:
    return Draft.of_form(Form(parse_qsl(urlencode(as_browser_sends(draft)), keep_blank_values=True)))


def test_the_defaults_are_those_of_the_api() -> None:
    job = JobIn(name="n", schedule="s", url="u").model_dump(by_alias=True)
    expected = {name: value for name, value in job.items() if name not in ("language", "notify")}
    expected |= {"notify": notify_out({}, "job"), "name": "", "schedule": "", "url": ""}
    assert expected == DEFAULTS


def test_every_field_of_a_job_has_an_input_and_a_section_or_is_always_shown() -> None:
    whole = set(names_of(DEFAULTS))
    assert whole == {*FIELDS, *ROWS, *PICKS}
    folded = {name for names in SECTIONS.values() for name in names}
    always = {"name", "url", "method", "schedule", "timezone", "dst", "day_match"}
    assert {name.partition(".")[0] for name in whole} == folded | always
    assert set(REQUEST) <= set(DEFAULTS)


TEXTS = st.text(max_size=12)
NUMBERS = st.floats(min_value=1e-9, max_value=900, allow_nan=False)
JOBS = st.fixed_dictionaries(
    {
        "schedule": TEXTS,
        "body": st.none() | TEXTS.filter(bool),
        "timeout": NUMBERS,
        "headers": st.dictionaries(st.from_regex(r"[A-Za-z-]{1,8}", fullmatch=True), TEXTS.map(str.strip), max_size=3),
        "catchup_window": st.integers(0, 1_000_000),
        "retry": st.fixed_dictionaries({"delay": NUMBERS, "attempts": st.integers(1, 10)}),
        "success": st.fixed_dictionaries(
            {
                "body_contains": st.none() | TEXTS.filter(bool),
                "json": st.lists(
                    st.fixed_dictionaries(
                        {
                            "path": st.just("$.a"),
                            "equals": st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS | NUMBERS,
                        }
                    ),
                    max_size=3,
                ),
                "max_duration_ms": st.none() | st.integers(1, 900_000),
            }
        ),
        "tags": st.lists(st.sampled_from(["a", "b c", "d,e"]), unique=True),
        "verify_tls": st.booleans(),
        "sign": st.booleans(),
    }
)


@given(JOBS)
def test_a_job_that_nobody_touched_is_not_changed_by_its_form(changes: dict[str, Any]) -> None:
    nested = {name: {**JOB[name], **changes[name]} for name in ("retry", "success")}
    job = {**JOB, **changes, **nested}
    assert differing(through_browser(Draft.of_job(job)).job(job), job) == {}


@given(NUMBERS.map(lambda value: round(value, 2)))
def test_a_length_is_read_as_it_is_written(seconds: float) -> None:
    assert read_seconds(span(seconds)) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("timeout", "2 min", 120),
        ("timeout", "1,5", 1.5),
        ("timeout", "soon", "soon"),
        ("catchup_window", "2 d", 172_800),
        ("retry.attempts", "3", 3),
        ("retry.attempts", "2.5", 2.5),
        ("retry.attempts", "three", "three"),
        ("success.max_duration_ms", "2 s", 2_000),
        ("success.max_duration_ms", "250 ms", 250),
        ("success.max_duration_ms", "", None),
        ("notify.remind_every", "", None),
        ("notify.out_of", "5", 5),
        ("success.status", "2xx, 404  500-599", ["2xx", "404", "500-599"]),
        ("tags", "a, b c,,", ["a", "b c"]),
        ("body", " x ", " x "),
        ("body", "", None),
        ("sign", "true", True),
    ],
)
def test_what_a_text_means_to_the_api(name: str, text: str, value: Any) -> None:
    draft = Draft.of_job(DEFAULTS)
    draft.texts[name] = text
    first, _, rest = name.partition(".")
    made = draft.job()
    assert (made[first][rest] if rest else made[first]) == value
    assert names_of(differing(made, DEFAULTS)) == ([] if value is None else [name])


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("1.5", 1.5), ("true", True), ("null", None), ('"1"', "1"), ("done", "done"), ("", ""), ("NaN", "NaN")],
)
def test_the_value_of_a_place_in_json(text: str, value: Any) -> None:
    found = read_scalar(text)
    assert (found, type(found)) == (value, type(value))
    assert read_scalar(write_scalar(value)) == value


def test_what_the_api_could_not_be_told_is_said_at_its_place() -> None:
    for place, change in {
        "headers.1": {"headers": [("A", "1"), ("A", "2")]},
        "success.json.0": {"success.json": [("$.a", "1" * 30)]},
    }.items():
        draft = Draft.of_job(DEFAULTS)
        draft.rows |= change
        with pytest.raises(Unsaid) as caught:
            draft.job()
        assert caught.value.place == place
    draft = Draft.of_job(DEFAULTS)
    draft.told = "some"
    with pytest.raises(Unsaid, match=r"notify\.channels"):
        draft.job()


def test_one_and_true_are_not_the_same() -> None:
    before = {"json": [{"path": "$.a", "equals": 1}]}
    job = {**DEFAULTS, "success": {**DEFAULTS["success"], **before}}
    after = {**DEFAULTS, "success": {**DEFAULTS["success"], "json": [{"path": "$.a", "equals": True}]}}
    assert differing(after, job) == {"success": {"json": [{"path": "$.a", "equals": True}]}}


def test_faults_find_their_inputs() -> None:
    rows = {
        "headers": [("X-A", "1"), ("X-Token", ""), ("L" * 80, "1")],
        "success.headers": [],
        "success.json": [("a", "1")],
    }
    places = {
        "retry.attempts": "retry.attempts",
        "success.status.0": "success.status",
        "headers.X-Token": "headers.1",
        "headers." + "L" * 59 + "…": "headers.2",
        "headers": "headers",
        "headers.gone": "headers",
        "success.json.0.path": "success.json.0",
        "success.json.7.path": "success.json",
        "notify.channels.0": "notify.channels",
        "tags.3": "tags",
        "language": "language",
    }
    assert {name: next(iter(placed({name: "m"}, rows))) for name in places} == places


def test_sections_open_for_what_differs_and_for_faults() -> None:
    assert open_sections([], []) == set()
    assert open_sections(["retry.delay"], ["headers.2", "language"]) == {"retry", "request"}


def test_a_pause_is_no_edit() -> None:
    assert seen_of(JOB) == seen_of({**JOB, "status": "paused", "version": 9})
    assert seen_of(JOB) != seen_of({**JOB, "disable_after": 1})
