"""Whether an answer is a success, by the job's rule.

Owns the reading of status patterns ("2xx", "200-299", "404") and of the body conditions. Must never see more of the
answer than was kept of it: a rule over a truncated body judges the kept part.
"""

from __future__ import annotations

import re
from functools import lru_cache

from zerocron.core.errors import Invalid
from zerocron.core.model import SuccessRule

_PATTERN = re.compile(r"(?P<class>[1-5])xx|(?P<low>[1-5]\d\d)(?:-(?P<high>[1-5]\d\d))?", re.ASCII | re.IGNORECASE)


def check_status_pattern(text: str) -> str:
    """The pattern, lower case. Raises Invalid when it is none of "2xx", "200-299", "404"."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise Invalid(f"{text!r} is not a status rule. Use '2xx', '200-299' or '404'.", field="success.status")
    if match["high"] is not None and match["high"] < match["low"]:
        raise Invalid(f"{text!r} is empty: write the smaller status first.", field="success.status")
    return text.lower()


@lru_cache(maxsize=1024)
def _accepted(patterns: tuple[str, ...]) -> frozenset[int]:
    accepted: set[int] = set()
    for text in patterns:
        match = _PATTERN.fullmatch(text)
        if match is None:
            continue
        if match["class"] is not None:
            low = int(match["class"]) * 100
            high = low + 99
        else:
            low = int(match["low"])
            high = int(match["high"] or low)
        accepted.update(range(low, high + 1))
    return frozenset(accepted)


def broken_rule(rule: SuccessRule, status: int, body: str | None) -> str | None:
    """The sentence that says which rule the answer breaks and what was seen; None when it is a success."""
    if status not in _accepted(rule.status):
        return f"The status was {status}; the job accepts {', '.join(rule.status)}."
    if rule.body_contains is not None and rule.body_contains not in (body or ""):
        return f"The body does not contain {_shown(rule.body_contains)}."
    if rule.body_not_contains is not None and rule.body_not_contains in (body or ""):
        return f"The body contains {_shown(rule.body_not_contains)}."
    return None


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:79] + "…")
