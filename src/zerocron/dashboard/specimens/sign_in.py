"""Specimens of the area `sign_in`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zerocron.dashboard.specimens.kinds import SESSION, UNSIGNED, Specimen, session
from zerocron.dashboard.specimens.overview import HOSTILE

WAYS: Mapping[str, Any] = {
    "password": True,
    "oidc": None,
    "trusted_header": False,
    "setup_open": False,
    "mail": True,
    "is_secure": True,
}
INVITATION: Mapping[str, Any] = {
    "team": "Bakery",
    "email": "grace@example.com",
    "role": "editor",
    "has_account": False,
    "invited_by": "Ada Lovelace",
    "expires_at": "2027-03-17T14:32:07Z",
}
_NOBODY: Mapping[str, Any] = {"GET /v1/session": UNSIGNED, "GET /v1/sign-in": WAYS}
_TOKEN = "Xn2r5u8x_A-D4GbKePhVmYq3t6w9z0C1F7J2NcRfUjX"


def _ways(**changes: Any) -> dict[str, Any]:
    return {**_NOBODY, "GET /v1/sign-in": {**WAYS, **changes}}


def _refusal(status: int, title: str, detail: str, **more: Any) -> tuple[int, dict[str, Any]]:
    return status, {"title": title, "status": status, "detail": detail, **more}


_WRONG = _refusal(401, "Unauthorized", "This address, password or code is not right.")
_CODE = _refusal(401, "Unauthorized", "A code of your second factor is needed, too.", code="code_needed")
_GONE = _refusal(
    404, "Not Found", "This link does not work (any more): it was used, it expired, or a newer one was made."
)
_COMMON = _refusal(
    422,
    "Unprocessable Content",
    "This is among the first passwords that anybody tries. Take another one.",
    errors=[
        {"field": "password", "message": "This is among the first passwords that anybody tries. Take another one."}
    ],
)
_TYPED = (("email", "ada@example.com"), ("password", "not the one"), ("next", "/jobs"))
_INVITED = {**_NOBODY, "POST /v1/invitations/look": INVITATION}
_KNOWN = {**_NOBODY, "POST /v1/invitations/look": {**INVITATION, "has_account": True}}
_ADA_IS_INVITED = {**INVITATION, "has_account": True, "email": SESSION["person"]["email"], "team": "Night shift"}

SPECIMENS: tuple[Specimen, ...] = (
    Specimen("sign-in", "Sign in", "/sign-in?next=/jobs", _NOBODY, is_shown=True),
    Specimen(
        "sign-in-ways",
        "Sign in: with an issuer, without TLS",
        "/sign-in?refused=unknown",
        _ways(oidc={"name": "Google"}, trusted_header=True, is_secure=False),
    ),
    Specimen("sign-in-wrong", "Sign in: refused", "/sign-in", {**_NOBODY, "POST /v1/sign-in": _WRONG}, _TYPED),
    Specimen("sign-in-code", "Sign in: a code is needed", "/sign-in", {**_NOBODY, "POST /v1/sign-in": _CODE}, _TYPED),
    Specimen("sign-in-first", "Sign in: nobody is there yet", "/sign-in", _ways(setup_open=True)),
    Specimen("setup", "The first owner", f"/setup/{_TOKEN}", _ways(setup_open=True)),
    Specimen(
        "setup-refused",
        "The first owner: a poor password",
        f"/setup/{_TOKEN}",
        {**_ways(setup_open=True), "POST /v1/setup": _COMMON},
        (("email", "ada@example.com"), ("name", "Ada"), ("password", "password1"), ("timezone", "Europe/Paris")),
    ),
    Specimen("setup-closed", "The first owner is there already", f"/setup/{_TOKEN}", _NOBODY),
    Specimen("reset", "A link for a new password", "/reset", _NOBODY),
    Specimen("reset-no-mail", "A link for a new password: no mail", "/reset", _ways(mail=False)),
    Specimen("new-password", "A new password", f"/reset/{_TOKEN}", _NOBODY),
    Specimen("invitation", "An invitation: a new account", f"/invitation/{_TOKEN}", _INVITED),
    Specimen("invitation-known", "An invitation: an account is there", f"/invitation/{_TOKEN}", _KNOWN),
    Specimen(
        "invitation-elsewhere",
        "An invitation: an account, and an issuer",
        f"/invitation/{_TOKEN}",
        {**_KNOWN, **_ways(oidc={"name": "Google"})},
    ),
    Specimen(
        "invitation-signed-in",
        "An invitation: signed in",
        f"/invitation/{_TOKEN}",
        {"GET /v1/sign-in": WAYS, "POST /v1/invitations/look": _ADA_IS_INVITED},
    ),
    Specimen(
        "invitation-other",
        "An invitation: signed in as somebody else",
        f"/invitation/{_TOKEN}",
        {**_KNOWN, "GET /v1/session": session()},
    ),
    Specimen(
        "invitation-gone",
        "An invitation that does not work any more",
        f"/invitation/{_TOKEN}",
        {**_NOBODY, "POST /v1/invitations/look": _GONE},
    ),
    Specimen(
        "invitation-hostile",
        "An invitation: names that would act",
        f"/invitation/{_TOKEN}",
        {
            **_NOBODY,
            "POST /v1/invitations/look": {**INVITATION, "team": HOSTILE, "email": HOSTILE, "invited_by": HOSTILE},
        },
    ),
    Specimen(
        "sign-in-hostile",
        "Sign in: an issuer's name that would act",
        "/sign-in",
        {**_ways(oidc={"name": HOSTILE}), "POST /v1/sign-in": _refusal(422, HOSTILE, HOSTILE)},
        (("email", HOSTILE), ("password", HOSTILE), ("next", HOSTILE)),
    ),
)
