"""Codes of an authenticator app and recovery codes: which count, and when."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, unquote, urlsplit

import pyotp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.second_factor import (
    RECOVERY_CODES,
    STEP_MS,
    enrolment_uri,
    new_recovery_codes,
    new_seed,
    qr_svg,
    recovery_hash,
    step_of,
)

SEED = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
"""The secret of RFC 6238's test vectors."""

STEP = 60_000_000
NOW = STEP * STEP_MS


@pytest.mark.parametrize(
    ("at_seconds", "code"),
    [(59, "287082"), (1_111_111_109, "081804"), (1_234_567_890, "005924"), (20_000_000_000, "353130")],
)
def test_codes_are_those_of_rfc_6238(at_seconds: int, code: str) -> None:
    assert step_of(SEED, code, at_seconds * 1000) == at_seconds // 30


def test_the_code_of_this_step_and_of_the_one_before_count_and_no_other() -> None:
    codes = {ahead: pyotp.HOTP(SEED).at(STEP + ahead) for ahead in (-2, -1, 0, 1)}
    for late_ms in (0, STEP_MS - 1):
        found = {ahead: step_of(SEED, code, NOW + late_ms) for ahead, code in codes.items()}
        assert found == {-2: None, -1: STEP - 1, 0: STEP, 1: None}
    assert step_of(SEED, codes[-1], NOW - 1) == STEP - 1
    assert step_of(SEED, codes[0], NOW - 1) is None, "a clock of ours that is behind lets nobody in early"


@pytest.mark.parametrize("written", ["{0}", " {0} ", "{1} {2}"])
def test_blanks_do_not_count(written: str) -> None:
    code = pyotp.HOTP(SEED).at(STEP)
    assert step_of(SEED, written.format(code, code[:3], code[3:]), NOW) == STEP


@given(st.text(max_size=60))
def test_what_is_no_code_is_wrong_and_nothing_more(text: str) -> None:
    if not re.fullmatch(r"\d{6}", "".join(text.split()), re.ASCII):
        assert step_of(SEED, text, NOW) is None
    plain = "".join(text.split()).replace("-", "")
    assert (recovery_hash("p", text) is None) == (re.fullmatch(r"[0-9a-hj-km-np-tv-z]{16}", plain.lower()) is None)


def test_an_app_is_told_what_it_needs() -> None:
    seed = new_seed()
    uri = urlsplit(enrolment_uri(seed, "ada+cron@example.com"))
    assert (uri.scheme, uri.netloc, unquote(uri.path)) == ("otpauth", "totp", "/0cron:ada+cron@example.com")
    assert parse_qs(uri.query) == {"secret": [seed], "issuer": ["0cron"]}
    assert len({new_seed() for _ in range(100)}) == 100


def test_the_qr_code_is_an_image_by_itself() -> None:
    svg = qr_svg(enrolment_uri(SEED, "ada@example.com"))
    assert svg.startswith("<svg")
    assert 'xmlns="http://www.w3.org/2000/svg"' in svg
    assert not re.search(r"<script|href|style=|class=", svg)
    assert SEED not in svg


def test_recovery_codes_are_random_and_bound_to_their_person() -> None:
    codes = new_recovery_codes()
    assert len(set(codes)) == len(codes) == RECOVERY_CODES
    assert all(re.fullmatch(r"(?:[0-9a-z]{4}-){3}[0-9a-z]{4}", code) for code in codes)
    hashed = recovery_hash("ada", codes[0])
    assert hashed is not None
    assert len(hashed) == 64
    assert hashed == recovery_hash("ada", f" {codes[0].upper().replace('-', ' ')} ")
    assert hashed != recovery_hash("bob", codes[0])
