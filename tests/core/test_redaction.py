"""What is masked contains no value of a secret any more, however the target spelt it; and nothing else is touched."""

from __future__ import annotations

import base64
import html
import json
import re
import textwrap
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from zerocron.core.redaction import CUT_CHARACTERS_MIN, UNSEARCHABLE, Redactor
from zerocron.core.secret import VALUE_CHARACTERS_MIN, Secret

KEY = Secret("STRIPE_KEY", "sk live/51\"Hx+<é>&'%41\\n\u2603=")
VALUE = KEY.reveal()
MASK = "[secret STRIPE_KEY]"

values = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=VALUE_CHARACTERS_MIN, max_size=60
)
telling_values = st.text(
    st.sampled_from("abcXYZ019 +/%&<>\"'\\\n\t;#=_-é€☃😀"), min_size=VALUE_CHARACTERS_MIN, max_size=40
)
around = st.text(st.sampled_from("ab 1{}<>\"'%&+\\/=\n\r;u0é"), max_size=20)


def b64(prefix: bytes, *, urlsafe: bool = False) -> Callable[[str], str]:
    def encode(value: str) -> str:
        encoder = base64.urlsafe_b64encode if urlsafe else base64.b64encode
        return encoder(prefix + value.encode() + b":after").decode()

    return encode


ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "url component": lambda value: quote(value, safe=""),
    "url as little as possible": lambda value: quote(value, safe=";,/?:@&=+$#!'()*"),
    "url in lower case": lambda value: re.sub("%..", lambda found: found[0].lower(), quote(value, safe="")),
    "url every byte": lambda value: "".join(f"%{byte:02X}" for byte in value.encode()),
    "form": quote_plus,
    "json": lambda value: json.dumps(value)[1:-1],
    "json as it is": lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
    "json with slashes": lambda value: json.dumps(value)[1:-1].replace("/", "\\/"),
    "json every character": lambda value: "".join(
        f"\\u{int.from_bytes(value.encode('utf-16-be')[index : index + 2]):04X}"
        for index in range(0, len(value.encode("utf-16-be")), 2)
    ),
    "html": html.escape,
    "html numbers": lambda value: "".join(f"&#{ord(sign)};" for sign in value),
    "html hex numbers": lambda value: "".join(f"&#x{ord(sign):X};" for sign in value),
    "json in json": lambda value: json.dumps(json.dumps(value))[1:-1],
    "url in json": lambda value: json.dumps(quote(value))[1:-1],
    "html in json": lambda value: json.dumps(html.escape(value))[1:-1],
    "json in html": lambda value: html.escape(json.dumps(value)),
    "url in url": lambda value: quote(quote(value, safe=""), safe=""),
    "base64 0": b64(b""),
    "base64 1": b64(b"u"),
    "base64 2": b64(b"u:"),
    "base64 url 0": b64(b"", urlsafe=True),
    "base64 url 1": b64(b"u", urlsafe=True),
    "base64 url 2": b64(b"u:", urlsafe=True),
    "the escape of old scripts": lambda value: "".join(f"%u{ord(sign):04x}" for sign in value),
    "base64 in url": lambda value: quote(b64(b"u:")(value), safe=""),
    "base64 in json": lambda value: b64(b"u")(value).replace("/", "\\/"),
    "base64 in lines": lambda value: textwrap.fill(b64(b"u")(value), 13),
    "hex": lambda value: value.encode().hex(),
    "HEX": lambda value: value.encode().hex().upper(),
}
TELLING = {name: encode for name, encode in ENCODINGS.items() if "html" not in name and "scripts" not in name}
"""HTML cannot say every character (a carriage return comes back as another one), nor can old scripts."""


def known(value: str) -> Redactor:
    return Redactor([Secret("STRIPE_KEY", value)])


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_value_is_masked_however_it_is_spelt(name: str) -> None:
    spelt = ENCODINGS[name](VALUE)
    masked = Redactor([KEY]).text(f"<before> {spelt} </after>")
    assert MASK in masked
    assert masked.startswith("<before> ")
    assert masked.endswith(" </after>")
    rest = masked.replace(MASK, "").removeprefix("<before> ").removesuffix(" </after>")
    assert rest.strip('"&;quot\\') == "" or name.startswith("base64")
    assert "live" not in masked
    longest = max(len(part) for part in masked.split(MASK))
    assert longest <= len("<before> ") + 16, "of base64 what stands around the value stays"


@pytest.mark.parametrize("name", TELLING)
@given(value=telling_values, before=around, after=around)
def test_nothing_of_it_is_left_in_whatever_surroundings(name: str, value: str, before: str, after: str) -> None:
    spelt = TELLING[name](value)
    masked = known(value).text(f"{before}|{spelt}|{after}")
    assert value not in masked
    assert spelt not in masked
    assert masked.count("|") <= 2 + before.count("|") + after.count("|")


@given(values, st.lists(values, max_size=3), around)
def test_a_masked_text_contains_no_value(value: str, others: list[str], between: str) -> None:
    used = [Secret(f"S{number}", text) for number, text in enumerate([value, *others])]
    text = between.join([value, *others, value])
    masked = Redactor(used).text(text)
    assert not [secret for secret in used if secret.reveal() in masked]
    assert Redactor(used).text(masked) == masked


@given(st.text(), values)
def test_a_text_without_the_value_stays_as_it_is(text: str, value: str) -> None:
    assume(value[:4] not in html.unescape(text))
    assert known("never-in-there" + value).text(text) == text


@given(st.integers(CUT_CHARACTERS_MIN, len(VALUE) - 1))
def test_the_beginning_of_a_value_at_a_cut_is_masked(size: int) -> None:
    redactor = Redactor([KEY])
    assert redactor.text("said " + VALUE[:size], cut=True) == f"said {MASK}"
    assert redactor.text("said " + VALUE[:size]) == "said " + VALUE[:size], "without a cut it is another word"


@pytest.mark.parametrize("name", ["url component", "url every byte", "json", "json every character", "html numbers"])
def test_a_cut_may_go_through_an_escape(name: str) -> None:
    spelt = ENCODINGS[name](VALUE)
    for size in range(len(spelt)):
        masked = Redactor([KEY]).text("said " + spelt[:size], cut=True)
        if not masked.endswith(MASK):
            shown = masked.removeprefix("said ")
            assert len(shown) < len(ENCODINGS[name](VALUE[: CUT_CHARACTERS_MIN + 1])), shown


def test_a_cut_goes_through_base64() -> None:
    spelt = ENCODINGS["base64 1"](VALUE)
    masked = Redactor([KEY]).text(spelt[:20], cut=True)
    assert masked.endswith(MASK)
    assert len(masked.removesuffix(MASK)) <= 2


def test_a_sentence_may_quote_the_beginning_of_a_value() -> None:
    redactor = Redactor([KEY])
    assert redactor.sentence(f"The body is '{VALUE[:9]}…', not 'ok'.") == f"The body is '{MASK}…', not 'ok'."
    assert redactor.sentence(f"It is {VALUE[:9]}...") == f"It is {MASK}..."
    assert redactor.sentence("The status is 500.") == "The status is 500."


def test_bytes_are_masked_in_the_charsets_that_are_met() -> None:
    for charset in ("utf-8", "utf-16-le", "utf-16-be"):
        data = b"\xff\x00" + VALUE.encode(charset) + b"\xfe"
        assert Redactor([KEY]).data(data) == b"\xff\x00" + MASK.encode() + b"\xfe"
    latin = Secret("STRIPE_KEY", "clé secrète")
    assert Redactor([latin]).data(b"\xff" + latin.reveal().encode("latin-1")) == b"\xff" + MASK.encode()
    header = latin.reveal().encode("latin-1").decode("utf-8", "surrogateescape")
    assert Redactor([latin]).text(header) == MASK


def test_of_two_values_one_may_contain_the_other() -> None:
    short, long = Secret("SHORT", "abcdefgh"), Secret("LONG", "abcdefghijkl")
    assert Redactor([short, long]).text("abcdefghijkl abcdefgh") == "[secret LONG] [secret SHORT]"


def test_a_value_that_is_part_of_a_mask_is_masked_by_another_one() -> None:
    odd = Secret("STRIPE_KEY", "[secret STRIPE_KEY")
    assert Redactor([odd]).text(f"a {odd.reveal()} b") == "a *** b"


def test_a_text_in_which_every_mask_makes_a_new_occurrence_goes_whole() -> None:
    odd = Secret("A", "A]bbbbbb")
    assert Redactor([odd]).text("A]" + "b" * 12) == "[secret [secret A]"
    assert Redactor([odd]).text("A]" + "b" * 60) == "***"


def test_a_text_that_cannot_be_searched_in_time_goes_whole() -> None:
    assert Redactor([KEY]).text("%25%26amp;\\u0026" * 65_000) == "***"


@pytest.mark.parametrize("escape", ["%25", "&amp;", "\\n", "abcd\n", "+"])
def test_of_many_escapes_only_so_many_are_tried(escape: str) -> None:
    text = escape * (1_100_000 // len(escape))
    began = time.process_time()
    assert Redactor([KEY]).text(text) == UNSEARCHABLE
    assert time.process_time() - began < 3
    assert Redactor([KEY]).text(escape * 20_000) == escape * 20_000


def test_what_servers_trim_or_whose_line_ends_they_change_is_the_same_value() -> None:
    value = " \tline one é\r\nline two\nline three \n"
    redactor = known(value)
    for alike in (
        value.strip(),
        value.replace("\r\n", "\n"),
        value.replace("\r\n", "\n").replace("\n", "\r\n").strip(),
    ):
        for name, encode in ENCODINGS.items():
            masked = redactor.text(f"<{encode(alike)}>")
            assert "[secret STRIPE_KEY]" in masked, name
            assert "line" not in masked
        assert b"line" not in redactor.data(b"\xff" + alike.encode("utf-16-le"))
    assert known("  abc    ").text("abc") == "abc", "too short to be told from a word"


def test_a_value_that_repeats_itself_takes_no_longer() -> None:
    """Looked for at every place of its own repetition it took a minute."""
    endless = Secret("STRIPE_KEY", "a" * 16_000)
    assert Redactor([endless]).text("a" * 1_000_000) == MASK * 62 + "a" * 8_000


def test_a_redactor_shows_no_value() -> None:
    redactor = Redactor([KEY])
    assert "live" not in repr([redactor, redactor.__dict__])
