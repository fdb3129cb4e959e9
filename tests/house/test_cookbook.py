"""The recipes work: the verifier that people copy accepts what 0cron signs, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from zerocron.clock import SystemClock
from zerocron.core.signing import key_text, signed_headers

PAGE = Path(__file__).parents[2] / "docs" / "cookbook.md"
KEY, OLD = b"n" * 32, b"o" * 32


@pytest.fixture(scope="module")
def is_genuine() -> Any:
    """The function as the page has it."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    [source] = [block for block in blocks if "def is_genuine" in block]
    assert len(source.split("def is_genuine")[1].splitlines()) <= 10, "ten lines, as promised"
    names: dict[str, Any] = {}
    exec(compile(source, str(PAGE), "exec"), names)
    return names["is_genuine"]


def signed(*keys: bytes, body: bytes = b"{}", late_seconds: int = 0) -> dict[str, str]:
    now = SystemClock().now() // 1000 - late_seconds
    return dict(signed_headers(keys, message_id="run", timestamp_seconds=now, body=body))


def test_it_accepts_what_is_genuine_also_in_the_middle_of_a_rotation(is_genuine: Any) -> None:
    for headers in (signed(KEY), signed(KEY, OLD), signed(OLD, KEY)):
        assert is_genuine(key_text(KEY), headers, b"{}")


def test_it_refuses_everything_else(is_genuine: Any) -> None:
    good = signed(KEY)
    for headers, body in (
        (signed(OLD), b"{}"),
        (good, b"{} "),
        (good | {"webhook-id": "other"}, b"{}"),
        (good | {"webhook-timestamp": "soon"}, b"{}"),
        (good | {"webhook-signature": ""}, b"{}"),
        (good | {"webhook-signature": "v1,é v1a,x"}, b"{}"),
        (signed(KEY, late_seconds=310), b"{}"),
        (signed(KEY, late_seconds=-310), b"{}"),
        ({}, b"{}"),
    ):
        assert not is_genuine(key_text(KEY), headers, body)
