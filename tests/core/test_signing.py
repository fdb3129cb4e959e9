"""Signatures: the standard's own vector, what its own package verifies, and what is no key."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from zerocron.clock import SystemClock
from zerocron.core.signing import key_text, read_key, signed_headers

VECTOR_KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
keys = st.binary(min_size=24, max_size=64)


def now_seconds() -> int:
    return SystemClock().now() // 1000


def test_the_vector_of_the_standard() -> None:
    headers = signed_headers(
        [read_key(VECTOR_KEY)],
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp_seconds=1614265330,
        body=b'{"test": 2432232314}',
    )
    assert headers == [
        ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
        ("webhook-timestamp", "1614265330"),
        ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
    ]


@given(st.lists(keys, min_size=1, max_size=3, unique=True), st.uuids().map(str), st.text(max_size=200))
def test_the_package_of_the_standard_verifies_each_key_of_a_rotation(some: list[bytes], run_id: str, body: str) -> None:
    headers = dict(signed_headers(some, message_id=run_id, timestamp_seconds=now_seconds(), body=body.encode()))
    for key in some:
        Webhook(key_text(key)).verify(body, headers, json_parse=False)


@given(keys, keys, st.text(max_size=50))
def test_it_refuses_another_key_another_body_and_another_id(key: bytes, other: bytes, body: str) -> None:
    headers = dict(signed_headers([key], message_id="run", timestamp_seconds=now_seconds(), body=body.encode()))
    forged = [(key, body + "x", headers), (key, body, headers | {"webhook-id": "other"})]
    if other != key:
        forged.append((other, body, headers))
    for verifier, seen, seen_headers in forged:
        with pytest.raises(WebhookVerificationError):
            Webhook(key_text(verifier)).verify(seen, seen_headers, json_parse=False)


def test_no_body_is_signed_as_an_empty_one() -> None:
    signed = [signed_headers([b"k" * 24], message_id="r", timestamp_seconds=1, body=body) for body in (None, b"")]
    assert signed[0] == signed[1]


@given(keys)
def test_a_key_survives_the_way_to_text_and_back(key: bytes) -> None:
    assert key_text(key).startswith("whsec_")
    assert read_key(key_text(key)) == key


@pytest.mark.parametrize("length", [0, 23, 65])
def test_a_key_that_the_standard_does_not_allow_is_none(length: int) -> None:
    with pytest.raises(ValueError, match="24 to 64 bytes"):
        key_text(b"k" * length)
    with pytest.raises(ValueError, match="not a signing key") as refusal:
        read_key("whsec_" + base64.b64encode(b"k" * length).decode())
    assert refusal.value.args == ("this is not a signing key",), "nothing of it is shown"


@pytest.mark.parametrize(
    "text", ["", "whsec_", VECTOR_KEY.removeprefix("whsec_"), VECTOR_KEY + "!", "whsk_" + "a" * 32]
)
def test_what_is_no_key(text: str) -> None:
    with pytest.raises(ValueError, match="not a signing key"):
        read_key(text)
