"""Specimens of the area `team`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zerocron.dashboard.specimens.account import ELEVATED
from zerocron.dashboard.specimens.kinds import SESSION, Specimen, page_of, session
from zerocron.dashboard.specimens.overview import HOSTILE

_ADA = SESSION["person"]["id"]
_GRACE = "01a22a0b-0af8-7952-bb7c-f148bfd7b711"
_VIEWER = session(permissions=["read"], team={**SESSION["team"], "role": "viewer"})


def _member(person_id: str, name: str, email: str, role: str, **changes: Any) -> dict[str, Any]:
    made = {
        "person_id": person_id,
        "email": email,
        "name": name,
        "role": role,
        "has_totp": True,
        "joined_at": "2026-12-01T08:00:00Z",
        "last_seen_at": "2027-03-10T14:32:01Z",
    }
    return {**made, **changes}


MEMBERS: Mapping[str, Any] = page_of(
    [
        _member(_ADA, "Ada Moreau", "ada@example.com", "owner"),
        _member(_GRACE, "Grace Ndiaye", "grace@example.com", "admin", last_seen_at="2027-03-10T11:05:00Z"),
        _member(
            "01a22a0b-0af8-7952-bb7c-f148bfd7b712",
            "Linus Okafor",
            "linus@example.com",
            "editor",
            has_totp=False,
            last_seen_at="2027-03-02T09:00:00Z",
        ),
        _member(
            "01a22a0b-0af8-7952-bb7c-f148bfd7b713",
            "Night watch",
            "watch@example.com",
            "viewer",
            has_totp=False,
            last_seen_at=None,
        ),
    ]
)
INVITATION: Mapping[str, Any] = {
    "id": "01a22a0b-0af8-7952-bb7c-f148bfd7b721",
    "email": "edsger@example.com",
    "role": "editor",
    "invited_by": "Ada Moreau",
    "created_at": "2027-03-09T10:00:00Z",
    "expires_at": "2027-03-16T10:00:00Z",
}
INVITED: Mapping[str, Any] = {
    **INVITATION,
    "url": "https://cron.example.com/invitation/Xn2r5u8x_A-D4GbKePhVmYq3t6w9z0C1F7J2NcRfUjX",
    "is_mailed": False,
}


def _key(key_id: str, name: str, **changes: Any) -> dict[str, Any]:
    made = {
        "id": key_id,
        "name": name,
        "status": "active",
        "scopes": ["read", "trigger"],
        "created_at": "2027-01-12T09:14:00Z",
        "created_by": "Ada Moreau",
        "expires_at": "2027-04-12T09:14:00Z",
        "last_used_at": "2027-03-10T14:31:40Z",
    }
    return {**made, **changes}


KEYS: Mapping[str, Any] = page_of(
    [
        _key("k3v9q0x2m1za", "Deployment pipeline"),
        _key(
            "m7c2w5e8r1tb",
            "Ada's notebook",
            scopes=["read", "write", "trigger", "ping-admin"],
            expires_at=None,
            last_used_at="2027-03-08T20:11:00Z",
        ),
        _key(
            "p0d4f6h8j2ks", "local command line", created_by=None, expires_at=None, last_used_at=None, scopes=["read"]
        ),
        _key(
            "z9x7v5n3b1qw",
            "Migration of last autumn",
            status="expired",
            expires_at="2027-01-31T00:00:00Z",
            last_used_at="2027-01-30T02:00:00Z",
        ),
    ],
    next_cursor="more",
)
MADE_KEY: Mapping[str, Any] = {
    **_key("k3v9q0x2m1za", "Deployment pipeline", last_used_at=None),
    "key": "0c_k3v9q0x2m1za_4Zq8t1Yw6Rk3Vb9Nc2Xd7Hf5Jg0Ls",
}
_NO_SCOPE = (
    422,
    {
        "title": "Unprocessable Content",
        "status": 422,
        "detail": "scopes: Give at least 1.",
        "errors": [{"field": "scopes", "message": "Give at least 1."}],
    },
)


def _entry(number: int, at: str, action: str, subject: tuple[str, str, str], **changes: Any) -> dict[str, Any]:
    kind, subject_id, name = subject
    made = {
        "id": f"01a22a0b-0af8-7952-bb7c-f148bfd7b8{number:02}",
        "at": at,
        "actor": {"kind": "person", "id": _ADA, "name": "Ada Moreau"},
        "address": "203.0.113.7",
        "action": action,
        "subject": {"kind": kind, "id": subject_id, "name": name},
        "before": None,
        "after": None,
    }
    return {**made, **changes}


_JOB = ("job", "01a22a0b-0af8-7952-bb7c-f148bfd7b731", "Nightly report")
AUDIT: Mapping[str, Any] = page_of(
    [
        _entry(
            1,
            "2027-03-10T14:20:11Z",
            "job.edit",
            _JOB,
            before={"schedule": "every day at 7am", "timeout": 30.0},
            after={"schedule": "every weekday at 7am", "timeout": 60.0},
        ),
        _entry(
            2,
            "2027-03-10T13:02:40Z",
            "job.trigger",
            _JOB,
            actor={"kind": "key", "id": "k3v9q0x2m1za", "name": "Deployment pipeline"},
            address="198.51.100.23",
        ),
        _entry(
            3,
            "2027-03-10T09:41:03Z",
            "secret.put",
            ("secret", "BILLING_TOKEN", "BILLING_TOKEN"),
            before={"value": "(not recorded)", "allowed_hosts": []},
            after={"value": "(not recorded)", "allowed_hosts": ["billing.example.com"]},
        ),
        _entry(
            4,
            "2027-03-09T18:00:00Z",
            "member.edit",
            ("person", _GRACE, "grace@example.com"),
            before={"role": "editor"},
            after={"role": "admin"},
        ),
        _entry(
            5,
            "2027-03-09T17:55:21Z",
            "job.create",
            _JOB,
            after={
                "name": "Nightly report",
                "schedule": "every day at 7am",
                "url": "https://reports.example.com/nightly?format=pdf&recipients=everybody-who-reads-them",
                "tags": ["billing", "prod"],
            },
        ),
        _entry(
            6,
            "2027-03-08T06:00:12Z",
            "channel.disable",
            ("channel", "01a22a0b-0af8-7952-bb7c-f148bfd7b741", "On call"),
            actor={"kind": "server", "id": "", "name": "0cron"},
            address="",
            before={"status": "active"},
            after={"status": "disabled"},
        ),
        _entry(7, "2027-03-07T07:12:00Z", "weather.change", ("sky", "sky", "")),
    ],
    next_cursor="more",
)
TEAM: Mapping[str, Any] = {
    "id": "01a22a0b-0af8-7952-bb7c-f148bfd7b702",
    "name": "Bakery",
    "created_at": "2026-12-01T08:00:00Z",
    "limits": {"jobs_max": 500, "runs_per_minute_max": 600, "history_bytes_max": 5_000_000_000},
    "usage": {"jobs": 137, "runs_this_minute": 42, "history_bytes": 4_310_000_000},
}
_FREE = {
    **TEAM,
    "limits": {"jobs_max": 137, "runs_per_minute_max": None, "history_bytes_max": None},
    "usage": {**TEAM["usage"], "history_bytes": None},
}
SIGNING_KEY: Mapping[str, Any] = {
    "id": "01a22a0b-0af8-7952-bb7c-f148bfd7b751",
    "created_at": "2027-03-10T08:00:00Z",
    "previous_expires_at": "2027-03-11T08:00:00Z",
}
_ACTORS = {"GET /v1/members": MEMBERS, "GET /v1/api-keys": page_of(KEYS["items"])}
_SETTINGS = {"GET /v1/team": TEAM, "GET /v1/signing-key": SIGNING_KEY}
_ILL_NAMED = session(team={**SESSION["team"], "name": HOSTILE}, elevated_until="2027-03-10T14:41:00Z")
_CERTAIN = {"GET /v1/session": ELEVATED}

SPECIMENS: tuple[Specimen, ...] = (
    Specimen(
        "members",
        "Members",
        "/members",
        {"GET /v1/members": MEMBERS, "GET /v1/invitations": page_of([INVITATION])},
        is_shown=True,
    ),
    Specimen(
        "members-seen", "Members: as a viewer", "/members", {"GET /v1/session": _VIEWER, "GET /v1/members": MEMBERS}
    ),
    Specimen(
        "members-alone",
        "Members: alone",
        "/members",
        {"GET /v1/members": page_of(MEMBERS["items"][:1]), "GET /v1/invitations": page_of([])},
    ),
    Specimen("invite", "Invite somebody", "/members/invite", _CERTAIN),
    Specimen(
        "invited",
        "An invitation without mail",
        "/members/invite",
        {**_CERTAIN, "POST /v1/invitations": (201, INVITED)},
        (("email", "edsger@example.com"), ("role", "editor")),
    ),
    Specimen(
        "invitation-withdraw",
        "Withdraw an invitation?",
        f"/members/invitations/{INVITATION['id']}/withdraw",
        {**_CERTAIN, "GET /v1/invitations": page_of([INVITATION])},
    ),
    Specimen("member", "A member", f"/members/{_GRACE}", {**_CERTAIN, "GET /v1/members": MEMBERS}),
    Specimen("team-leave", "Leave the team?", "/members/leave"),
    Specimen("keys", "API keys", "/keys", {"GET /v1/api-keys": KEYS}),
    Specimen("keys-none", "API keys: none yet", "/keys", {"GET /v1/api-keys": page_of([])}),
    Specimen("key-asked", "A new key: who are you?", "/keys/new"),
    Specimen("key-new", "A new key", "/keys/new", _CERTAIN),
    Specimen(
        "key-refused",
        "A new key: refused",
        "/keys/new",
        {**_CERTAIN, "POST /v1/api-keys": _NO_SCOPE},
        (("name", "Pipeline"), ("days", "30")),
    ),
    Specimen(
        "key-made",
        "A new key: made",
        "/keys/new",
        {**_CERTAIN, "POST /v1/api-keys": (201, MADE_KEY)},
        (("name", "Deployment pipeline"), ("scopes", "read"), ("scopes", "trigger"), ("days", "90")),
    ),
    Specimen(
        "key-revoke",
        "Revoke a key?",
        "/keys/k3v9q0x2m1za/revoke",
        {**_CERTAIN, "GET /v1/api-keys": page_of(KEYS["items"])},
    ),
    Specimen("audit", "The audit log", "/audit", {**_ACTORS, "GET /v1/audit": AUDIT}, is_shown=True),
    Specimen(
        "audit-only",
        "The audit log of one job",
        f"/audit?action=job.edit&actor_id={_ADA}&subject_id={_JOB[1]}",
        {**_ACTORS, "GET /v1/audit": page_of(AUDIT["items"][:1])},
    ),
    Specimen(
        "audit-none",
        "The audit log: nothing of the kind",
        "/audit?action=job.delete&actor_id=k0gone000000",
        {**_ACTORS, "GET /v1/audit": page_of([])},
    ),
    Specimen("settings", "Settings", "/settings", _SETTINGS, is_shown=True),
    Specimen(
        "settings-seen",
        "Settings: as a viewer, at a limit",
        "/settings",
        {"GET /v1/session": _VIEWER, "GET /v1/team": _FREE},
    ),
    Specimen("signing-key", "Renew the signing key?", "/settings/signing-key", {**_CERTAIN, **_SETTINGS}),
    Specimen(
        "signing-key-made",
        "The new signing key",
        "/settings/signing-key",
        {
            **_CERTAIN,
            "POST /v1/signing-key/rotate": {**SIGNING_KEY, "key": "whsec_QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="},
        },
        (),
    ),
    Specimen("team-delete", "Delete the team?", "/settings/delete", {**_CERTAIN, **_SETTINGS}),
    Specimen(
        "team-delete-refused",
        "Delete the team: another name",
        "/settings/delete",
        {**_CERTAIN, **_SETTINGS},
        (("name", "Bakerie"),),
    ),
    Specimen(
        "members-hostile",
        "Members: names that would act",
        "/members",
        {
            "GET /v1/session": _ILL_NAMED,
            "GET /v1/members": page_of([_member(_GRACE, HOSTILE, f"{HOSTILE}@example.com", "admin")]),
            "GET /v1/invitations": page_of([{**INVITATION, "email": HOSTILE, "invited_by": HOSTILE}]),
        },
    ),
    Specimen(
        "member-hostile",
        "A member: names that would act",
        f"/members/{_GRACE}",
        {
            "GET /v1/session": _ILL_NAMED,
            "GET /v1/members": page_of([_member(_GRACE, HOSTILE, f"{HOSTILE}@example.com", "admin")]),
        },
    ),
    Specimen(
        "keys-hostile",
        "API keys: names that would act",
        "/keys",
        {"GET /v1/api-keys": page_of([_key("k3v9q0x2m1za", HOSTILE, created_by=HOSTILE)])},
    ),
    Specimen(
        "audit-hostile",
        "The audit log: texts that would act",
        "/audit",
        {
            "GET /v1/members": page_of([_member(_GRACE, HOSTILE, f"{HOSTILE}@example.com", "admin")]),
            "GET /v1/api-keys": page_of([_key("k3v9q0x2m1za", HOSTILE, created_by=HOSTILE)]),
            "GET /v1/audit": page_of(
                [
                    _entry(
                        1,
                        "2027-03-10T14:20:11Z",
                        HOSTILE,
                        (HOSTILE, HOSTILE, HOSTILE),
                        actor={"kind": "key", "id": HOSTILE, "name": HOSTILE},
                        address=HOSTILE,
                        before={HOSTILE: HOSTILE},
                        after={HOSTILE: [HOSTILE, {HOSTILE: HOSTILE}]},
                    )
                ]
            ),
        },
    ),
    Specimen(
        "settings-hostile",
        "Settings: a name that would act",
        "/settings",
        {"GET /v1/session": _ILL_NAMED, "GET /v1/team": {**TEAM, "name": HOSTILE}, "GET /v1/signing-key": SIGNING_KEY},
    ),
)
