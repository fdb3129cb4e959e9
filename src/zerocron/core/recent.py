"""What was met lately, so that a complaint about the same thing is made once and not with every look.

Owns nothing but a bounded memory. Must never decide what is worth telling.
"""

from __future__ import annotations

KEPT_MAX = 10_000


class Recent:
    """The last `kept_max` keys."""

    def __init__(self, kept_max: int = KEPT_MAX) -> None:
        self._kept_max = kept_max
        self._keys: dict[object, None] = {}

    def is_new(self, *key: object) -> bool:
        """Whether this key was not met yet, or so long ago that it is forgotten; from now on it was."""
        if key in self._keys:
            return False
        self._keys[key] = None
        if len(self._keys) > self._kept_max:
            del self._keys[next(iter(self._keys))]
        return True
