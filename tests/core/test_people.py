"""The one form of an address by which a person is known; and tokens that the ledger alone understands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.errors import Invalid
from zerocron.core.opaque import is_opaque, new_opaque
from zerocron.core.people import check_email, known_email


@pytest.mark.parametrize("text", ["Ada@Example.com", " ada@example.com ", "ADA@EXAMPLE.COM", "ada@example.com."])
def test_an_address_is_the_same_in_any_capitals(text: str) -> None:
    assert check_email(text) == "ada@example.com"


@pytest.mark.parametrize(
    "text", ["", "ada", "ada@", "@example.com", "a b@example.com", "Ada <ada@example.com>", "ada@localhost"]
)
def test_what_is_no_address_is_refused_and_is_nobodys(text: str) -> None:
    with pytest.raises(Invalid) as refusal:
        check_email(text)
    assert [fault.field for fault in refusal.value.fields] == ["email"]
    assert known_email(text) == ""


@given(st.text(max_size=300))
def test_no_text_makes_signing_in_fail_in_another_way(text: str) -> None:
    found = known_email(text)
    assert found == "" or found == check_email(found)


def test_tokens_have_256_random_bits_and_need_no_escape() -> None:
    tokens = {new_opaque() for _ in range(200)}
    assert len(tokens) == 200
    assert all(is_opaque(token) and len(token) == 43 for token in tokens)


@pytest.mark.parametrize("text", ["", "a" * 42, "a" * 44, "a" * 42 + "=", "a" * 42 + "é", "a" * 43 + "\n"])
def test_what_cannot_be_a_token_is_not_looked_up(text: str) -> None:
    assert not is_opaque(text)
