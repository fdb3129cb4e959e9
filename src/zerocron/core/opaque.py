"""Tokens that mean something to the ledger alone: the cookie of a sign-in, and links that work once.

Owns their form: 256 random bits as 43 characters of base64url, without a sign that any program would escape. Must never
store anything: what is kept is `tokens.digest` of one.
"""

from __future__ import annotations

import re
import secrets

TOKEN_BYTES = 32
_FORM = re.compile(r"[0-9A-Za-z_-]{43}", re.ASCII)


def new_opaque() -> str:
    """One that nobody has."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def is_opaque(text: str) -> bool:
    """Whether it could be one; what is not is never looked up."""
    return _FORM.fullmatch(text) is not None
