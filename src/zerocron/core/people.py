"""What may be said of a person: address, name, language, time zone.

Owns the one form of an address by which a person is known. Must never look anything up.
"""

from __future__ import annotations

from enum import StrEnum

from zerocron.core.errors import Invalid
from zerocron.core.mail import check_address

LANGUAGES = ("en", "fr", "es")
NAME_CHARACTERS_MAX = 200
DEFAULT_TIMEZONE = "UTC"


class PersonStatus(StrEnum):
    ACTIVE = "active"
    DISABLED = "disabled"  # may not sign in; what they made stays theirs


class Method(StrEnum):
    """How somebody signed in."""

    PASSWORD = "password"
    SETUP = "setup"
    INVITATION = "invitation"
    OIDC = "oidc"
    TRUSTED_HEADER = "trusted-header"


def check_email(text: str, field: str = "email") -> str:
    """The address as it is kept and compared: in lower case, as mail servers compare them. Raises Invalid."""
    return check_address(text, field).lower()


def known_email(text: str) -> str:
    """The same of what somebody gives to sign in; what is no address is nobody's."""
    try:
        return check_email(text)
    except Invalid:
        return ""
