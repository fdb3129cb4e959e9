"""A bounded memory of what was met."""

from __future__ import annotations

from zerocron.core.recent import Recent


def test_a_key_is_new_once_until_it_is_forgotten() -> None:
    recent = Recent(kept_max=2)
    assert [recent.is_new("a", 1), recent.is_new("a", 1), recent.is_new("a", 2)] == [True, False, True]
    assert recent.is_new("b")
    assert recent.is_new("a", 1), "the oldest was forgotten"
