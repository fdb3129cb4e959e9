"""`${secrets.KEY}`: exactly this, filled once, and never more than what its place may hold."""

from __future__ import annotations

import json
import time
from functools import partial
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerocron.core import placeholders

MANY = 10**6
values = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=50)
VALUES = {"A": 'a"b/c?d&e=f#g%h\\i é\n', "B_2": "${secrets.A}"}


def value_of(name: str) -> str:
    return VALUES[name]


def test_a_placeholder_is_replaced_wherever_it_stands() -> None:
    assert placeholders.fill("x${secrets.A}y${secrets.A}", lambda _: "1", characters_max=MANY) == "x1y1"
    assert placeholders.fill("none", value_of, characters_max=MANY) == "none"
    assert placeholders.names_in("${secrets.A} ${secrets.B_2} ${secrets.A}") == {"A", "B_2"}


def test_a_value_that_looks_like_a_placeholder_is_not_expanded() -> None:
    assert placeholders.fill("${secrets.B_2}", value_of, characters_max=MANY) == "${secrets.A}"
    assert (
        placeholders.fill("${secrets.B_2}${secrets.A}", value_of, characters_max=MANY) == "${secrets.A}" + VALUES["A"]
    )


@given(values, values)
def test_values_that_join_to_a_placeholder_are_not_expanded(first: str, second: str) -> None:
    parts = {"A": "${secrets" + first, "B": ".A}" + second}
    assert (
        placeholders.fill("${secrets.A}${secrets.B}", parts.__getitem__, characters_max=MANY) == parts["A"] + parts["B"]
    )


@pytest.mark.parametrize(
    "text",
    [
        "${secrets.a}",
        "${secret.A}",
        "${secrets.A",
        "${ secrets.A }",
        "${secrets.1A}",
        "${SECRETS.A}",
        "${{secrets.A}}",
        "{{secrets.A}}",
        "${secrets.A-B}",
        "${secrets.}",
        "${secrets." + "A" * 65 + "}",
        "$secrets.A",
        "${secrets.Á}",
    ],
)
def test_what_only_looks_like_one_stays_and_is_warned_of(text: str) -> None:
    exact = placeholders.names_in(text)
    assert not exact
    assert placeholders.fill(text, value_of, characters_max=MANY) == text
    [warning] = placeholders.warnings("https://example.com/", [("X", text)], None)
    assert warning.startswith(text[:40])
    assert placeholders.warnings(f"https://example.com/?{text}", [], text) != ()


@pytest.mark.parametrize(
    "text", ["${secrets.A}", "secret", '{"secret": {"secrets": 1}}', "a ${b} {c}", "${secrets.A}}"]
)
def test_what_is_one_or_looks_like_none_is_not_warned_of(text: str) -> None:
    assert placeholders.warnings("https://example.com/", [("X", text)], text) == ()


def test_warnings_are_few_and_short() -> None:
    body = " ".join(f"${{secrets.a{'x' * 90}{number}}}" for number in range(100))
    found = placeholders.warnings("https://example.com/", [], body)
    assert 1 <= len(found) <= placeholders.WARNINGS_MAX
    assert all(len(text) < 300 for text in found)


def test_a_long_text_full_of_both_is_looked_through_once() -> None:
    """A look back at every placeholder for everything that looks like one took minutes."""
    body = "${secrets.A} ${secrets.a}" * 40_000
    began = time.process_time()
    assert len(placeholders.warnings("https://example.com/", [("X", body)], body)) == 1
    assert time.process_time() - began < 3


@pytest.mark.parametrize("text", ["${secrets.A}secrets.x}", "{{${secrets.A}secrets.x}}", "$${secrets.A}secrets.x"])
def test_what_stands_around_a_placeholder_is_not_joined_over_it(text: str) -> None:
    assert placeholders.lookalikes([text]) == []


@given(st.lists(st.sampled_from(["${secrets.A}", "${secrets.B}", "é", "x"]), max_size=9), values, st.integers(0, 60))
def test_what_would_become_too_long_is_not_made(parts: list[str], value: str, most: int) -> None:
    text = "".join(parts)
    whole = "".join({"${secrets.A}": value, "${secrets.B}": ""}.get(part, part) for part in parts)
    fill = partial(placeholders.fill, text, {"A": value, "B": ""}.__getitem__, characters_max=most)
    if len(whole) <= most or "$" not in text:
        assert fill() == whole
    else:
        with pytest.raises(placeholders.TooLong):
            fill()


def test_a_value_is_escaped_once_however_often_it_is_named() -> None:
    asked: list[str] = []

    def escape(value: str) -> str:
        asked.append(value)
        return value

    with pytest.raises(placeholders.TooLong):
        placeholders.fill("${secrets.A}" * 80_000, lambda _: "x" * 16_000, escape, characters_max=10**6)
    assert len(asked) == 1


@given(values)
def test_in_a_url_a_value_stays_in_its_component(value: str) -> None:
    url = placeholders.fill_url(
        "https://h.example/a/${secrets.A}/b?k=${secrets.A}&l=1#f", lambda _: value, characters_max=MANY
    )
    parts = urlsplit(url)
    assert (parts.scheme, parts.netloc, parts.fragment) == ("https", "h.example", "f")
    path = parts.path.split("/")
    assert [path[1], unquote(path[2]), path[3]] == ["a", value, "b"]
    assert parse_qsl(parts.query, keep_blank_values=True) == [("k", value), ("l", "1")]
    assert url.isascii()


@pytest.mark.parametrize(
    "url",
    [
        "https://${secrets.A}/",
        "https://a.${secrets.A}.example/x",
        "${secrets.A}://h/",
        "${secrets.A}",
        "https://h:${secrets.A}/",
        "https://u:${secrets.A}@h/",
        "https://h${secrets.A}?x",
    ],
)
def test_none_may_decide_who_is_called(url: str) -> None:
    assert placeholders.is_before_path(url)
    with pytest.raises(ValueError, match="scheme or host"):
        placeholders.fill_url(url, value_of, characters_max=MANY)


@pytest.mark.parametrize("url", ["https://h/${secrets.A}", "https://h?${secrets.A}", "https://h#${secrets.A}", "//h"])
def test_behind_the_host_it_may_stand(url: str) -> None:
    assert not placeholders.is_before_path(url)


@given(values)
def test_in_json_a_value_stays_in_its_string(value: str) -> None:
    escape = placeholders.escape_for("application/json")
    body = placeholders.fill('{"a": "x${secrets.A}y", "b": 1}', lambda _: value, escape, characters_max=MANY)
    assert json.loads(body) == {"a": f"x{value}y", "b": 1}


@given(values)
def test_in_a_form_a_value_stays_in_its_field(value: str) -> None:
    escape = placeholders.escape_for("application/x-www-form-urlencoded")
    body = placeholders.fill("a=${secrets.A}&b=1", lambda _: value, escape, characters_max=MANY)
    assert parse_qsl(body, keep_blank_values=True) == [("a", value), ("b", "1")]


@pytest.mark.parametrize(
    ("content_type", "escape"),
    [
        ("application/json", placeholders.in_json),
        ("APPLICATION/JSON; charset=utf-8", placeholders.in_json),
        ("application/problem+json", placeholders.in_json),
        ("text/json", placeholders.in_json),
        ("application/x-www-form-urlencoded;charset=utf-8", placeholders.in_url),
        ("text/plain", str),
        ("application/xml", str),
        ("application/jsonl", str),
        ("", str),
    ],
)
def test_the_type_of_a_body_says_how_a_value_stands_in_it(content_type: str, escape: placeholders.Escape) -> None:
    assert placeholders.escape_for(content_type) is escape
