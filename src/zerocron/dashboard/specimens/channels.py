"""Specimens of the area `channels`: what works, what does not and why, and the form of each kind."""

from __future__ import annotations

from typing import Any

from zerocron.dashboard.specimens.kinds import Specimen, page_of
from zerocron.dashboard.specimens.monitors import CHANNELS, HOSTILE, VIEWER

SLACK, EMAIL = CHANNELS["items"]
PAGER: dict[str, Any] = {
    **SLACK,
    "id": "01a2f3c0-0000-7000-8000-000000000003",
    "kind": "webhook",
    "name": "Pager",
    "status": "disabled",
    "status_reason": "The webhook answered 410. It wants no more messages.",
    "warning": None,
    "destination": "pager.example.com/…",
    "failures": 4,
    "last_sent_at": "2027-02-27T11:04:00Z",
}
PHONE: dict[str, Any] = {
    **SLACK,
    "id": "01a2f3c0-0000-7000-8000-000000000004",
    "kind": "telegram",
    "name": "Phone of whoever is on call this week, and of nobody else",
    "status": "paused",
    "warning": None,
    "destination": "-1001234567890, topic 42",
    "last_sent_at": None,
}
ALL = page_of([SLACK, EMAIL, PAGER, PHONE])


def field(name: str, text: str, *, required: bool = True, secret: bool = False, example: str = "") -> dict[str, Any]:
    """A setting of a kind as the API shows it."""
    return {"name": name, "help": text, "required": required, "secret": secret, "example": example}


_POST = "Where messages are posted to."
KINDS: dict[str, Any] = {
    "items": [
        {
            "kind": "discord",
            "label": "Discord",
            "fields": [field("url", "A webhook.", secret=True, example="https://discord.com/api/webhooks/...")],
        },
        {"kind": "email", "label": "Email", "fields": [field("to", "The address.", example="ops@example.com")]},
        {
            "kind": "slack",
            "label": "Slack",
            "fields": [field("url", "A webhook.", secret=True, example="https://hooks.slack.com/services/...")],
        },
        {
            "kind": "telegram",
            "label": "Telegram",
            "fields": [
                field("token", "The token of a bot.", secret=True, example="123456789:XXXXXXXX"),
                field("chat_id", "The chat.", example="-1001234567890"),
                field("topic_id", "The topic.", required=False, example="42"),
            ],
        },
        {
            "kind": "webhook",
            "label": "Webhook",
            "fields": [
                field("url", _POST, secret=True, example="https://example.com/alerts"),
                field("key", "The key that signs.", required=False, secret=True, example="whsec_..."),
                field("headers", "One a line.", required=False, secret=True, example="Authorization: Bearer ..."),
                field("template", "JSON to send.", required=False, example='{"text": "${title}"}'),
            ],
        },
    ]
}


def alert(number: int, event: str, status: str, **changes: Any) -> dict[str, Any]:
    """An alert as the API shows it."""
    return {
        "id": f"01a2f3d0-0000-7000-8000-0000000000{number:02d}",
        "event_id": f"7d0a1f56-5b0c-5a1e-8f0a-2f6f0a3c9d{number:02d}",
        "event": event,
        "reminder": False,
        "subject_id": "01a2f3b0-0000-7000-8000-000000000003",
        "subject_name": "CRM export to the warehouse",
        "happened_at": "2027-03-10T09:05:00Z",
        "reason": "No ping came when one was expected.",
        "channel_id": SLACK["id"],
        "channel_name": "ops",
        "channel_kind": "slack",
        "status": status,
        "tries": 1,
        "next_attempt_at": None,
        "digest_id": None,
        "detail": None,
        "last_error": None,
        "created_at": "2027-03-10T09:05:00Z",
        "finished_at": "2027-03-10T09:05:01Z",
        **changes,
    }


_JOB = {"subject_id": "01a2f3a0-0000-7000-8000-000000000001", "subject_name": "nightly report"}
_PAGER = {"channel_id": PAGER["id"], "channel_name": "Pager", "channel_kind": "webhook"}
ALERTS = page_of(
    [
        alert(
            6,
            "job.failed",
            "pending",
            **_JOB,
            **_PAGER,
            tries=3,
            reason="The status was 500; the job accepts 2xx.",
            last_error="The webhook answered 503.",
            next_attempt_at="2027-03-10T14:34:20Z",
            happened_at="2027-03-10T14:30:02Z",
            finished_at=None,
        ),
        alert(5, "job.failed", "sent", **_JOB, detail="ok", happened_at="2027-03-10T14:30:02Z"),
        alert(4, "monitor.down", "sent", detail="ok", reminder=True),
        alert(3, "monitor.down", "folded", digest_id="01a2f3d0-0000-7000-8000-000000000004"),
        alert(
            2,
            "monitor.down",
            "dead",
            **_PAGER,
            last_error="The webhook answered 410. It wants no more messages.",
            tries=1,
        ),
        alert(
            1,
            "channel.disabled",
            "sent",
            subject_id=PAGER["id"],
            subject_name="Pager",
            reason="The webhook answered 410. It wants no more messages.",
        ),
    ],
    "more",
)


def _page(of: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {f"GET /v1/channels/{of['id']}": of, "GET /v1/alerts": ALERTS, "GET /v1/channel-kinds": KINDS, **more}


def _test(of: dict[str, Any], answer: Any) -> dict[str, Any]:
    return {**_page(of), f"POST /v1/channels/{of['id']}/test": answer}


_ODD = {**PAGER, "name": HOSTILE, "destination": HOSTILE, "status_reason": HOSTILE}
ODD_ALERTS = page_of(
    [
        alert(number, event, status, **dict.fromkeys(("subject_name", "reason", "detail", "last_error"), HOSTILE))
        | {"channel_name": HOSTILE}
        for number, (event, status) in enumerate(
            [("job.failed", "dead"), ("monitor.down", "pending"), ("server.outage", "sent"), ("some.thing", "sent")]
        )
    ]
)
_ODD_PAGE = {
    **_page(_ODD),
    "GET /v1/channels": page_of([_ODD]),
    "GET /v1/alerts": ODD_ALERTS,
    f"POST /v1/channels/{_ODD['id']}/test": {"accepted": False, "detail": None, "reason": HOSTILE},
}
_BUSY = {"title": "Conflict", "status": 409, "detail": "It was tested a moment ago. Wait 10 seconds."}
_NAMED = {
    "title": "Conflict",
    "status": 409,
    "detail": 'It is named by the job "nightly report", the monitor "Nightly backup", which would fall silent. '
    "Change their `notify` first, or pause the channel.",
}
_WRONG = {
    "title": "Unprocessable Content",
    "status": 422,
    "detail": "This is not the token of a bot: digits, a colon, and 35 letters, digits, - or _.",
    "errors": [
        {
            "field": "config.token",
            "message": "This is not the token of a bot: digits, a colon, and 35 letters, digits, - or _.",
        },
        {
            "field": "config.chat_id",
            "message": "A chat is a number such as -1001234567890, or the @name of a public channel.",
        },
    ],
}
_FORM = {"GET /v1/channel-kinds": KINDS}
_NO_SERVER = {"warning": "This server has no mail server: its operator sets ZEROCRON_MAIL_URL."}


SPECIMENS: tuple[Specimen, ...] = (
    Specimen("channels", "Channels", "/channels", {"GET /v1/channels": ALL}),
    Specimen("channels-empty", "No channel yet", "/channels", {"GET /v1/channels": page_of([]), **_FORM}),
    Specimen(
        "channels-empty-viewer",
        "No channel yet, for a viewer",
        "/channels",
        {"GET /v1/channels": page_of([]), **_FORM, "GET /v1/session": VIEWER},
    ),
    Specimen("channel", "A channel", f"/channels/{SLACK['id']}", _page(SLACK)),
    Specimen("channel-warned", "A channel that cannot send", f"/channels/{SLACK['id']}", _page(SLACK | _NO_SERVER)),
    Specimen("channel-disabled", "A channel that was switched off", f"/channels/{PAGER['id']}", _page(PAGER)),
    Specimen(
        "channel-viewer",
        "A channel for a viewer",
        f"/channels/{PAGER['id']}",
        _page(PAGER) | {"GET /v1/session": VIEWER},
    ),
    Specimen(
        "channel-tested",
        "A channel that works",
        f"/channels/{SLACK['id']}/test",
        _test(SLACK, {"accepted": True, "detail": "ok", "reason": None}),
        form=(),
        is_shown=True,
    ),
    Specimen(
        "channel-refused",
        "A channel that does not work",
        f"/channels/{EMAIL['id']}/test",
        _test(
            EMAIL,
            {
                "accepted": False,
                "detail": None,
                "reason": "This server has no mail server: its operator sets ZEROCRON_MAIL_URL.",
            },
        ),
        form=(),
    ),
    Specimen("channel-busy", "Tested too soon", f"/channels/{SLACK['id']}/test", _test(SLACK, (409, _BUSY)), form=()),
    Specimen("channel-kinds", "Which kind of channel", "/channels/new", _FORM),
    *(
        Specimen(
            f"channel-form-{kind['kind']}",
            f"A new channel: {kind['label']}",
            f"/channels/new?kind={kind['kind']}",
            _FORM,
        )
        for kind in KINDS["items"]
    ),
    Specimen(
        "channel-form-refused",
        "A new channel, refused",
        "/channels/new",
        {**_FORM, "POST /v1/channels": (422, _WRONG)},
        form=(
            ("kind", "telegram"),
            ("name", "Phone"),
            ("config.token", "a token that must not come back"),
            ("config.chat_id", "the phone"),
        ),
    ),
    Specimen("channels-hostile", "Channels with odd texts", "/channels", _ODD_PAGE),
    Specimen("channel-hostile", "A channel with odd texts", f"/channels/{_ODD['id']}/test", _ODD_PAGE, form=()),
    Specimen("channel-form-edit", "A channel, changed", f"/channels/{SLACK['id']}/edit", _page(SLACK)),
    Specimen("channel-delete", "The end of a channel", f"/channels/{SLACK['id']}/delete", _page(SLACK)),
    Specimen(
        "channel-delete-refused",
        "A channel that is named",
        f"/channels/{SLACK['id']}/delete",
        {**_page(SLACK), f"DELETE /v1/channels/{SLACK['id']}": (409, _NAMED)},
        form=(),
    ),
)
