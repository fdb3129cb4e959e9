"""Second factors: codes of an authenticator app (TOTP, RFC 6238), and recovery codes for when it is lost.

Owns which codes count. A code is good in its step of 30 s and in the one after it, because people type slowly and
clocks differ; ASVS 6.5.5 would rather have no more than 30 s in all, which refuses every code that was read in its last
seconds. One of a step ahead of ours is never taken. That each works once is the ledger's to see to: it keeps the last
step that was used. Pure but for the system's random numbers; the time comes from the caller.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import re
import secrets

import pyotp
import segno

from zerocron.core.model import Instant

STEP_MS = 30_000
STEPS_BACK = 1
DIGITS = 6
ISSUER = "0cron"
SEED_CHARACTERS = 32
"""Of base 32: 160 bits, as RFC 4226 recommends."""

RECOVERY_CODES = 10
_RECOVERY_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # without letters that look like digits
_RECOVERY_GROUPS = 4
_RECOVERY_FORM = re.compile(f"[{_RECOVERY_ALPHABET}]{{16}}", re.ASCII)
_TOTP_FORM = re.compile(r"[0-9]{6}", re.ASCII)


def new_seed() -> str:
    """A seed in base 32, as apps take it."""
    return pyotp.random_base32(SEED_CHARACTERS)


def enrolment_uri(seed: str, email: str) -> str:
    """What an app reads from the QR code."""
    return pyotp.TOTP(seed).provisioning_uri(name=email, issuer_name=ISSUER)


def qr_svg(text: str) -> str:
    """A QR code as an SVG image of its own, dark on white with its quiet zone, so that it can be read on any page."""
    image = io.BytesIO()
    segno.make(text, error="m", micro=False).save(
        image, kind="svg", scale=4, border=4, dark="#000", light="#fff", xmldecl=False, svgclass=None, lineclass=None
    )
    return image.getvalue().decode()


def step_of(seed: str, code: str, now: Instant) -> int | None:
    """The step that a code belongs to, of those that count at `now`; None when it is wrong or not a code."""
    code = "".join(code.split())
    if _TOTP_FORM.fullmatch(code) is None:
        return None
    current = now // STEP_MS
    codes = pyotp.HOTP(seed, digits=DIGITS)
    found = None
    for step in range(current - STEPS_BACK, current + 1):
        if hmac.compare_digest(codes.at(step), code):
            found = step
    return found


def new_recovery_codes() -> list[str]:
    """Ten codes of 80 random bits, in groups that can be read out."""
    return [
        "-".join("".join(secrets.choice(_RECOVERY_ALPHABET) for _ in range(4)) for _ in range(_RECOVERY_GROUPS))
        for _ in range(RECOVERY_CODES)
    ]


def recovery_hash(person_id: str, code: str) -> str | None:
    """What is kept of a recovery code; None for what is none. Capitals, blanks and hyphens do not count."""
    plain = "".join(code.split()).replace("-", "").lower()
    if _RECOVERY_FORM.fullmatch(plain) is None:
        return None
    return hashlib.sha256(f"{person_id} {plain}".encode()).hexdigest()
