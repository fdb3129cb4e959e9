"""The errors of the house: what can go wrong, in words a person can act on.

    ZerocronError
    ├── Invalid        the input cannot be accepted; names the fields          (API 422, CLI exit 2)
    ├── NotFound       there is no such thing, or it is another team's         (API 404, CLI exit 4)
    ├── Conflict       the thing is in a state that does not allow this        (API 409, CLI exit 5)
    ├── Unauthorized   no key, or not a good one; one text for both            (API 401, CLI exit 3)
    ├── Forbidden      a good key or sign-in that may not do this              (API 403, CLI exit 3)
    ├── TooLarge       the input is bigger than the published bound            (API 413, CLI exit 2)
    ├── TooMany        this was tried too often; says when to try again        (API 429, CLI exit 6)
    └── Unavailable    a part we need is away; try again later                 (API 503, CLI exit 6)
        ├── Unclear          the same, and nobody knows whether the change was made
        └── TimetableAway    the index of what is due does not answer; the ledger does its work, later

Messages are shown to users as they are: no stack, no secret, no internal address.
The one table that maps them to HTTP is in zerocron.api.problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class ZerocronError(Exception):
    """Something went wrong that a person can be told about."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True)
class FieldError:
    """One field of an input, and what to do about it."""

    field: str
    message: str


class Invalid(ZerocronError):
    """The input cannot be accepted.

    `fields` names each fault; `suggestions` are inputs that would be accepted instead.
    """

    def __init__(
        self,
        message: str,
        *,
        field: str | None = None,
        fields: Sequence[FieldError] = (),
        suggestions: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.fields = tuple(fields) or ((FieldError(field, message),) if field else ())
        self.suggestions = tuple(suggestions)


class NotFound(ZerocronError):
    """There is no such thing, or it belongs to another team: the two are told apart by nobody."""


class Conflict(ZerocronError):
    """The thing is in a state that does not allow this. `code` is for programs: of some, what it is."""

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class Unauthorized(ZerocronError):
    """No API key, or not a good one; or what a person gave to sign in. `code` is for programs: what is missing."""

    def __init__(
        self, message: str = "Send a valid API key as 'Authorization: Bearer 0c_...'.", code: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code


class Forbidden(ZerocronError):
    """Who asks is known, and may not do this. `code` is for programs: what would help, where something would."""

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class TooLarge(ZerocronError):
    """The input is bigger than the published bound."""


class TooMany(ZerocronError):
    """This was tried too often. `retry_after_seconds`: a whole number, at least 1."""

    def __init__(self, message: str, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class Unavailable(ZerocronError):
    """A part that is needed for this does not answer; the same request may succeed later."""


class Unclear(Unavailable):
    """The answer to a commit was lost: what was written is looked up by its id, never written again blindly."""


class TimetableAway(Unavailable):
    """The timetable does not answer: nothing is lost, and what is due is found in the ledger."""
