"""A circuit breaker: who has just found a server away does not let everybody else wait for it too.

Owns the decision whether a call is tried. Must never be asked by somebody who does not report how the call ended.
"""

from __future__ import annotations

from collections.abc import Callable

PAUSE_SECONDS_MIN = 0.2
PAUSE_SECONDS_MAX = 2.0


class Breaker:
    """Lets calls through until one fails; then none for a while, then one to try, and so on with a growing while."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._pause_seconds = 0.0  # of the present outage; 0 when there is none
        self._refuses_until = 0.0
        self._trying = False

    @property
    def is_open(self) -> bool:
        """Whether the last call that was tried has failed."""
        return self._pause_seconds > 0

    def admits(self) -> bool:
        """Whether a call may be made now; one that may must end in `succeeded`, `failed` or `abandoned`."""
        if not self.is_open:
            return True
        if self._trying or self._monotonic() < self._refuses_until:
            return False
        self._trying = True
        return True

    def succeeded(self) -> None:
        self._pause_seconds = 0.0
        self._trying = False

    def failed(self) -> None:
        if self.is_open and not self._trying:
            return  # it was under way when the outage began, which is counted already
        self._pause_seconds = min(max(2 * self._pause_seconds, PAUSE_SECONDS_MIN), PAUSE_SECONDS_MAX)
        self._refuses_until = self._monotonic() + self._pause_seconds
        self._trying = False

    def abandoned(self) -> None:
        """The call was given up by its caller: it says nothing about the server."""
        self._trying = False
