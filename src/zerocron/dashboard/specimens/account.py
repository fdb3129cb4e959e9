"""Specimens of the area `account`."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import segno

from zerocron.dashboard.specimens.kinds import SESSION, Specimen, page_of, session
from zerocron.dashboard.specimens.overview import HOSTILE

_FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:136.0) Gecko/20100101 Firefox/136.0"
_SAFARI = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_3 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.3 "
    "Mobile/15E148 Safari/604.1"
)
ELEVATED = session(elevated_until="2027-03-10T14:41:00Z")
"""Ada has just proved who she is."""

SIGN_INS: Mapping[str, Any] = page_of(
    [
        {
            "id": "01a22a0b-0af8-7952-bb7c-f148bfd7b7a1",
            "method": "password",
            "address": "203.0.113.7",
            "user_agent": _FIREFOX,
            "created_at": "2027-03-10T07:58:11Z",
            "last_seen_at": "2027-03-10T14:32:01Z",
            "expires_at": "2027-03-24T14:32:01Z",
            "is_current": True,
        },
        {
            "id": "01a22a0b-0af8-7952-bb7c-f148bfd7b7a2",
            "method": "oidc",
            "address": "198.51.100.23",
            "user_agent": _SAFARI,
            "created_at": "2027-02-26T18:04:40Z",
            "last_seen_at": "2027-03-09T21:15:00Z",
            "expires_at": "2027-03-23T21:15:00Z",
            "is_current": False,
        },
        {
            "id": "01a22a0b-0af8-7952-bb7c-f148bfd7b7a3",
            "method": "password",
            "address": "2001:db8::17",
            "user_agent": "",
            "created_at": "2027-01-04T09:30:00Z",
            "last_seen_at": "2027-02-28T09:30:00Z",
            "expires_at": "2027-03-14T09:30:00Z",
            "is_current": False,
        },
    ]
)
_ISSUER = "https://accounts.google.com"
IDENTITIES: Mapping[str, Any] = {
    "items": [
        {
            "id": "6f1d0c5b2a7e4f8893b1c0d2e4f6a8b0",
            "issuer": _ISSUER,
            "subject": "110169484474386276334",
            "created_at": "2027-02-26T18:04:40Z",
            "is_in_use": True,
            "is_last_way_in": False,
        },
        {
            "id": "0a1b2c3d4e5f60718293a4b5c6d7e8f9",
            "issuer": "https://login.old.example.com/realms/bakery",
            "subject": "a-moreau",
            "created_at": "2026-12-03T10:00:00Z",
            "is_in_use": False,
            "is_last_way_in": False,
        },
    ]
}
_ONE = IDENTITIES["items"][0]
WAYS_IN: Mapping[str, Any] = {
    "password": True,
    "oidc": {"name": "Google"},
    "trusted_header": False,
    "setup_open": False,
    "mail": True,
    "is_secure": True,
}
_NO_IDENTITIES = {"GET /v1/me/identities": {"items": []}, "GET /v1/sign-in": {**WAYS_IN, "oidc": None}}
_LINKED = {"GET /v1/me/identities": IDENTITIES, "GET /v1/sign-in": WAYS_IN}
_LAST_WAY = (
    409,
    {
        "title": "Conflict",
        "status": 409,
        "detail": "This is the only way by which you come in. Set a password first, or link another identity.",
    },
)
_URI = "otpauth://totp/0cron:ada%40example.com?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=0cron"


def _qr_svg(text: str) -> str:
    image = io.BytesIO()
    segno.make(text, error="m", micro=False).save(image, kind="svg", border=4, light="#fff", xmldecl=False)
    return image.getvalue().decode()


ENROLMENT: Mapping[str, Any] = {
    "secret": "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP",
    "uri": _URI,
    "qr_svg": _qr_svg(_URI),
}
CODES: Mapping[str, Any] = {
    "recovery_codes": [
        "4kd8-w2pn-7xq3-hm5t",
        "9vbc-3rte-m2ks-8dnp",
        "h6qx-z4jw-5nfa-t7ye",
        "2mgu-k8sd-qv3x-c9rb",
        "xw7p-6tjh-4ern-3kfz",
        "n5ya-d2mc-8gqv-w4ts",
        "b3kr-7zxe-hp6u-2qjn",
        "t8fw-5cvm-9ady-k6gx",
        "q4ns-e7hb-3rzj-m5wp",
        "6dxt-v9gk-c2uf-8ybn",
    ]
}
_WRONG_CODE = {
    "title": "Unprocessable Content",
    "status": 422,
    "detail": "This code is wrong, or it was used before. Wait for the next one and try that.",
    "errors": [
        {"field": "code", "message": "This code is wrong, or it was used before. Wait for the next one and try that."}
    ],
}
_ALONE = session(
    person={**SESSION["person"], "has_totp": False, "has_password": False, "name": "Ada"},
    teams=[SESSION["teams"][0]],
    elevated_until="2027-03-10T14:41:00Z",
)

_NO_ZONE = "There is no time zone 'Europe/Pariss'. Did you mean Europe/Paris or Europe/Warsaw?"

SPECIMENS: tuple[Specimen, ...] = (
    Specimen("account", "Your account", "/account", {**_LINKED, "GET /v1/me/sign-ins": SIGN_INS}, is_shown=True),
    Specimen(
        "account-plain",
        "Your account: no password, one team, one browser",
        "/account",
        {
            "GET /v1/session": _ALONE,
            "GET /v1/me/sign-ins": page_of(SIGN_INS["items"][:1]),
            "GET /v1/me/identities": {"items": [{**_ONE, "is_last_way_in": True}]},
            "GET /v1/sign-in": WAYS_IN,
        },
    ),
    Specimen(
        "account-taken",
        "Your account: somebody else's identity",
        "/account?refused=taken",
        {**_LINKED, "GET /v1/me/sign-ins": SIGN_INS},
    ),
    Specimen("link", "Link an identity", "/account/identities/new", {**_LINKED, "GET /v1/session": ELEVATED}),
    Specimen(
        "link-begun",
        "Link an identity: on to the issuer",
        "/account/identities/new",
        {
            **_LINKED,
            "GET /v1/session": ELEVATED,
            "POST /v1/me/identities": {"url": f"{_ISSUER}/o/oauth2/v2/auth?response_type=code&state=x"},
        },
        (),
    ),
    Specimen(
        "unlink",
        "Take an identity off?",
        f"/account/identities/{_ONE['id']}/remove",
        {**_LINKED, "GET /v1/session": ELEVATED},
    ),
    Specimen(
        "unlink-last",
        "Take an identity off: it is the last way in",
        f"/account/identities/{_ONE['id']}/remove",
        {**_LINKED, "GET /v1/session": ELEVATED, f"DELETE /v1/me/identities/{_ONE['id']}": _LAST_WAY},
        (),
    ),
    Specimen(
        "confirm-not-proved",
        "Who are you, again: the issuer proves nothing",
        "/confirm?refused=no_proof&next=/account/password",
        {"GET /v1/session": session(person={**_ALONE["person"], "has_password": False}, method="oidc")},
    ),
    Specimen(
        "account-refused",
        "Your account: a time zone that is not there",
        "/account",
        {
            **_NO_IDENTITIES,
            "GET /v1/me/sign-ins": SIGN_INS,
            "PATCH /v1/me": (
                422,
                {
                    "title": "Unprocessable Content",
                    "status": 422,
                    "detail": f"timezone: {_NO_ZONE}",
                    "errors": [
                        {
                            "field": "timezone",
                            "message": _NO_ZONE,
                        }
                    ],
                    "suggestions": ["Europe/Paris"],
                },
            ),
        },
        (("name", "Ada"), ("language", "en"), ("timezone", "Europe/Pariss"), ("theme", "auto")),
    ),
    Specimen("password", "Change the password", "/account/password"),
    Specimen("second-factor", "A second factor: what it is", "/account/second-factor", {"GET /v1/session": _ALONE}),
    Specimen(
        "second-factor-scan",
        "A second factor: scan it",
        "/account/second-factor",
        {"GET /v1/session": _ALONE, "POST /v1/me/totp": ENROLMENT},
        (),
    ),
    Specimen(
        "second-factor-wrong",
        "A second factor: a wrong code",
        "/account/second-factor/code",
        {"GET /v1/session": _ALONE, "POST /v1/me/totp/confirm": (422, _WRONG_CODE)},
        (("code", "000000"),),
    ),
    Specimen(
        "recovery-codes",
        "Recovery codes",
        "/account/second-factor/code",
        {"GET /v1/session": _ALONE, "POST /v1/me/totp/confirm": CODES},
        (("code", "123456"),),
    ),
    Specimen("second-factor-off", "No second factor?", "/account/second-factor/off", {"GET /v1/session": ELEVATED}),
    Specimen("new-codes", "New recovery codes?", "/account/recovery-codes", {"GET /v1/session": ELEVATED}),
    Specimen("new-team", "A new team", "/account/teams/new"),
    Specimen(
        "account-hostile",
        "Your account: texts that would act",
        "/account",
        {
            "GET /v1/session": session(
                person={**SESSION["person"], "name": HOSTILE, "email": HOSTILE},
                teams=[{**SESSION["teams"][0], "name": HOSTILE}],
            ),
            "GET /v1/me/identities": {"items": [{**_ONE, "issuer": HOSTILE, "subject": HOSTILE, "is_in_use": False}]},
            "GET /v1/sign-in": {**WAYS_IN, "oidc": {"name": HOSTILE}},
            "GET /v1/me/sign-ins": page_of(
                [{**SIGN_INS["items"][1], "address": HOSTILE, "user_agent": HOSTILE, "method": HOSTILE}]
            ),
        },
    ),
)
