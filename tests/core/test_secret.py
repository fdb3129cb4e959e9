"""What a secret may be, and that its value shows in nothing that is made of it."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import traceback

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.errors import Invalid
from zerocron.core.secret import (
    ALLOWED_HOSTS_MAX,
    VALUE_BYTES_MAX,
    Secret,
    check_allowed_hosts,
    check_name,
    check_value,
    may_go_to,
)

VALUE = "canary-5a1f-value"
SECRET = Secret("API_KEY", VALUE, ("api.example.com",))


@pytest.mark.parametrize("name", ["A", "_", "STRIPE_KEY", "_2", "K" * 64])
def test_a_name(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "a", "1A", "A-B", "A.B", "K" * 65, "É", "A\n", "Ａ"])
def test_no_name(name: str) -> None:
    with pytest.raises(Invalid, match="capitals, digits and underscores"):
        check_name(name)


@pytest.mark.parametrize("value", ["12345678", "é" * 8, "a\r\nb-----", " " * 8, "x" * VALUE_BYTES_MAX])
def test_a_value(value: str) -> None:
    assert check_value(value) == value


@pytest.mark.parametrize(
    "value", ["", "1234567", "é" * 7, "x" * (VALUE_BYTES_MAX + 1), "é" * 9_000, "1234567\0", "a\ud800" * 8]
)
def test_no_value_and_nothing_is_told_of_it(value: str) -> None:
    with pytest.raises(Invalid) as error:
        check_value(value)
    assert [fault.field for fault in error.value.fields] == ["value"]
    assert not value or value not in error.value.message
    assert str(len(value)) not in error.value.message.replace("16,384", "").replace("at least 8", "")


@given(st.text(min_size=8, max_size=30))
def test_nothing_that_is_made_of_a_secret_shows_its_value(value: str) -> None:
    secret = Secret("API_KEY", "canary" + value)
    shown = [repr(secret), str(secret), f"{secret}", f"{secret!r:>40}", "%s" % secret, repr({"a": [secret]})]  # noqa: UP031
    assert not [text for text in shown if "canary" in text]
    assert secret.reveal() == "canary" + value


def test_a_secret_is_not_serialised() -> None:
    for serialise in (pickle.dumps, copy.copy, copy.deepcopy, json.dumps, orjson.dumps):
        with pytest.raises(TypeError) as error:
            serialise(SECRET)
        assert VALUE not in str(error.value)


def test_neither_a_log_nor_a_traceback_shows_it(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger().error("used %s %r", SECRET, [SECRET])
    try:
        raise ValueError(SECRET)
    except ValueError as error:
        logging.getLogger().exception("failed")
        told = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert "<secret API_KEY>" in told
    assert "<secret API_KEY>" in caplog.text
    assert not [text for text in (told, caplog.text) if VALUE in text.replace(f"VALUE = {VALUE!r}", "")]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("api.example.com", "api.example.com"),
        ("API.Example.COM.", "api.example.com"),
        ("*.example.com", "*.example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("192.0.2.7", "192.0.2.7"),
        ("[2001:DB8::1]", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("localhost", "localhost"),
    ],
)
def test_a_host_is_kept_as_it_is_compared(given: str, kept: str) -> None:
    assert check_allowed_hosts([given]) == (kept,)
    assert check_allowed_hosts([kept, given]) == (kept,), "what was shown can be given back"


@pytest.mark.parametrize(
    "host",
    [
        "",
        "*",
        "*.",
        "https://a.example",
        "a.example:443",
        "a.example/x",
        "u@a.example",
        "*.*.example",
        "a.*.example",
        "*.192.0.2.7",
        "2130706433",
        "a b.example",
        "a.example?x",
        "a.example#x",
        "${secrets.X}",
        "*.[::1]",
    ],
)
def test_what_is_no_host(host: str) -> None:
    with pytest.raises(Invalid, match="An allowed host is"):
        check_allowed_hosts([host])


def test_hosts_are_few() -> None:
    with pytest.raises(Invalid, match="at most 20"):
        check_allowed_hosts([f"a{number}.example" for number in range(ALLOWED_HOSTS_MAX + 1)])


@pytest.mark.parametrize(
    ("host", "rule", "fits"),
    [
        ("api.example.com", "api.example.com", True),
        ("api.example.com.", "api.example.com", True),
        ("api.example.com.evil.test", "api.example.com", False),
        ("evil-api.example.com", "api.example.com", False),
        ("example.com", "api.example.com", False),
        ("api.example.com", "*.example.com", True),
        ("a.b.example.com", "*.example.com", True),
        ("example.com", "*.example.com", False),
        ("evilexample.com", "*.example.com", False),
        (".example.com", "*.example.com", False),
        ("api.example.com", "*.api.example.com", False),
    ],
)
def test_a_host_fits_a_rule_as_a_whole(host: str, rule: str, fits: bool) -> None:
    assert may_go_to(host, [rule]) is fits
    assert may_go_to(host, ["other.test", rule]) is fits
    assert not may_go_to(host, [])
