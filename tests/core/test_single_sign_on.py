"""Where a browser may be sent, what it may bring back, and which domains are ours."""

from __future__ import annotations

import dataclasses
from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.errors import Invalid
from zerocron.core.sealing import Keyring, MasterKey
from zerocron.core.single_sign_on import (
    FLOW_SECONDS_MAX,
    FLOWS_REMEMBERED_MAX,
    Flow,
    Purpose,
    Refusal,
    SignInRefused,
    UsedFlows,
    check_issuer,
    parse_domains,
    read_flow,
    safe_path,
)

NOW = 1_800_000_000_000
OLD, NEW = MasterKey(bytes(range(32))), MasterKey(bytes(range(32, 64)))
FLOW = Flow("s", "n", "v", "/jobs", Purpose.LINK, "a sign-in", expires_at=NOW + FLOW_SECONDS_MAX * 1000)


@given(st.text(st.sampled_from("/\\.:@ab%?#\t\n é"), max_size=12))
def test_a_safe_path_stays_on_this_server(text: str) -> None:
    led_to = urlsplit(urljoin("https://cron.example.com/sign-in", safe_path(text)))
    assert (led_to.scheme, led_to.netloc) == ("https", "cron.example.com")


def test_a_path_of_ours_is_kept_whole() -> None:
    assert safe_path("/jobs?state=failing&q=a%20b#top") == "/jobs?state=failing&q=a%20b#top"
    assert safe_path("/" + "a" * 1_000) == safe_path(None) == "/"


def test_a_flow_comes_back_as_it_went_also_after_a_change_of_keys() -> None:
    kept = FLOW.signed(Keyring([OLD]))
    assert read_flow(kept, Keyring([NEW, OLD]), NOW) == FLOW


@pytest.mark.parametrize(
    ("kept", "now"),
    [
        (None, NOW),
        ("", NOW),
        ("a.b", NOW),
        (FLOW.signed(Keyring([NEW])), NOW),
        (FLOW.signed(Keyring([OLD])).replace(".", ".0"), NOW),
        (FLOW.signed(Keyring([OLD])), FLOW.expires_at),
        (FLOW.signed(Keyring([OLD])), NOW - 1),
    ],
)
def test_what_is_old_or_not_ours_is_refused(kept: str | None, now: int) -> None:
    with pytest.raises(SignInRefused) as refused:
        read_flow(kept, Keyring([OLD]), now)
    assert refused.value.refusal == Refusal.EXPIRED


def test_a_signature_is_for_one_purpose() -> None:
    content, _, signature = FLOW.signed(Keyring([OLD])).partition(".")
    assert OLD.sign(content, "another purpose") != signature
    other = dataclasses.replace(FLOW, path="/else").signed(Keyring([OLD])).partition(".")[0]
    with pytest.raises(SignInRefused):
        read_flow(f"{other}.{signature}", Keyring([OLD]), NOW)


def test_domains_are_read_in_one_form() -> None:
    assert parse_domains(" Example.COM ,bücher.example,") == {"example.com", "xn--bcher-kva.example"}
    for text in ("example", "a@example.com", "*.example.com", "exa mple.com"):
        with pytest.raises(Invalid, match="is no domain"):
            parse_domains(text)


def test_an_issuer_is_kept_as_it_calls_itself() -> None:
    assert check_issuer("https://issuer.example/realms/a/", "X") == "https://issuer.example/realms/a/"


def test_a_flow_is_used_once_and_remembered_no_longer_than_it_is_good() -> None:
    used = UsedFlows()
    used.use(FLOW, NOW)
    with pytest.raises(SignInRefused):
        used.use(FLOW, FLOW.expires_at - 1)
    used.use(dataclasses.replace(FLOW, state="another"), FLOW.expires_at)
    assert len(used) == 1


def test_the_memory_of_used_flows_is_bounded() -> None:
    used = UsedFlows()
    for number in range(FLOWS_REMEMBERED_MAX + 10):
        used.use(dataclasses.replace(FLOW, state=str(number)), NOW)
    assert len(used) == FLOWS_REMEMBERED_MAX
