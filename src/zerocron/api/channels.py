"""/v1/channels: the ways out to people. /v1/channel-kinds: what kinds there are, and what each asks for."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

import orjson
from fastapi import APIRouter, Path, Response
from pydantic import AfterValidator, ConfigDict, Field

from zerocron.actions.channels import ChannelSpec
from zerocron.api.access import needs
from zerocron.api.fields import (
    NAME_CHARACTERS_MAX,
    Cursor,
    Identifier,
    Input,
    InstantText,
    Limit,
    NextCursor,
    Output,
    instant,
    maybe_instant,
    page_of,
    read_cursor,
    unset,
    visible_text,
)
from zerocron.api.services import KEY_REUSED, OnceKey, Use, Who, note_replay
from zerocron.api.wording import worded
from zerocron.channels.contract import Accepted
from zerocron.core.access import Permission
from zerocron.storage.ledger.channels import ChannelRow

router = APIRouter(tags=["channels"])

CONFIG_BYTES_MAX = 16_384
_NO_KEY = "The server has no master key with which to seal the configuration"

ChannelId = Annotated[str, Path(description="The channel's `id`.")]
Name = Annotated[str, *visible_text(NAME_CHARACTERS_MAX, "What people call the channel.", "On call")]


def _bounded(given: dict[str, Any]) -> dict[str, Any]:
    if len(orjson.dumps(given)) > CONFIG_BYTES_MAX:
        raise worded(f"A configuration has at most {CONFIG_BYTES_MAX:,} bytes.")
    return given


Config = Annotated[
    dict[str, Any],
    Field(
        max_length=50,
        description="What the kind asks for; `GET /v1/channel-kinds` says what that is. It is sealed, and never shown.",
        examples=[{"url": "https://example.com/hooks/alerts"}],
    ),
    AfterValidator(_bounded),
]


class ChannelIn(Input):
    """A channel to create."""

    model_config = ConfigDict(
        hide_input_in_errors=True,
        json_schema_extra={
            "examples": [{"kind": "webhook", "name": "On call", "config": {"url": "https://example.com/hooks/alerts"}}]
        },
    )

    kind: Annotated[str, Field(min_length=1, max_length=32, description="Which kind of channel.", examples=["webhook"])]
    name: Name
    config: Config


class ChannelChange(Input):
    """What to change. Fields left out stay; `config` is replaced as a whole."""

    model_config = ConfigDict(hide_input_in_errors=True, json_schema_extra={"examples": [{"name": "Second line"}]})

    name: Name = unset()
    config: Config = unset()


class ChannelOut(Output):
    """A channel, without its configuration, which nobody is shown."""

    id: Identifier
    kind: str = Field(examples=["webhook"])
    name: str
    status: Literal["active", "paused", "disabled"] = Field(
        description="`disabled`: it was refused for good; nothing is sent by it until somebody mends and resumes it."
    )
    status_reason: str | None = Field(description="Why it is disabled; null while it is not.")
    warning: str | None = Field(description="Why nothing can be sent by it on this server now; null when it can.")
    destination: str = Field(description="Where it leads, for people to recognise; no secret is in it.")
    failures: int = Field(description="Messages in a row that it did not take.")
    last_sent_at: InstantText | None = Field(description="When it last took an alert; null when it never did.")
    created_at: InstantText
    updated_at: InstantText


class ChannelPage(Output):
    """Some of the channels."""

    items: list[ChannelOut]
    next_cursor: NextCursor


class TestOut(Output):
    """What came of a test message."""

    accepted: bool = Field(description="Whether the service took it.")
    detail: str | None = Field(description="What the service said to a message it took.")
    reason: str | None = Field(description="Why it did not take it; null when it did.")


class KindFieldOut(Output):
    """One field of a configuration."""

    name: str
    help: str
    required: bool
    secret: bool
    example: str


class KindOut(Output):
    """A kind of channel."""

    kind: str
    label: str
    fields: list[KindFieldOut]


class KindsOut(Output):
    """The kinds of channels."""

    items: list[KindOut]


@router.get("/v1/channel-kinds", response_model=KindsOut)
@needs(Permission.READ)
async def list_channel_kinds(who: Who, services: Use) -> KindsOut:
    """The kinds of channels there are on this server, and what each has to be told."""
    kinds = []
    for name, kind in sorted(services.channels.kinds.items()):
        fields = [
            KindFieldOut(name=one.name, help=one.help, required=one.required, secret=one.secret, example=one.example)
            for one in kind.fields
        ]
        kinds.append(KindOut(kind=name, label=kind.label, fields=fields))
    return KindsOut(items=kinds)


@router.post(
    "/v1/channels",
    status_code=201,
    response_model=ChannelOut,
    responses={409: {"description": f"{_NO_KEY}, the team has as many channels as it may have, or: {KEY_REUSED}"}},
)
@needs(Permission.WRITE)
async def create_channel(
    given: ChannelIn, who: Who, services: Use, response: Response, key: OnceKey = None
) -> ChannelOut:
    """Create a channel. From now on it is told of everything whose `notify` does not name others.

    Send a test message through it before you rely on it.
    """
    spec = ChannelSpec(given.name, given.kind, given.config)
    made, is_new = await services.channels.create(who.team_id, spec, key, by=who.actor)
    response.headers["Location"] = f"/v1/channels/{made.id}"
    note_replay(response, is_new=is_new)
    return _out(services, made)


@router.get("/v1/channels", response_model=ChannelPage)
@needs(Permission.READ)
async def list_channels(who: Who, services: Use, limit: Limit = 50, cursor: Cursor = None) -> ChannelPage:
    """Channels, newest first."""
    found = await services.channels.page(who.team_id, before=read_cursor(cursor, int, str), limit=limit + 1)
    shown, more = page_of(found, limit, lambda channel: (channel.created_at, channel.id))
    return ChannelPage(items=[_out(services, channel) for channel in shown], next_cursor=more)


@router.get("/v1/channels/{channel_id}", response_model=ChannelOut)
@needs(Permission.READ)
async def show_channel(channel_id: ChannelId, who: Who, services: Use) -> ChannelOut:
    """One channel."""
    return _out(services, await services.channels.get(who.team_id, channel_id))


@router.patch("/v1/channels/{channel_id}", response_model=ChannelOut, responses={409: {"description": f"{_NO_KEY}."}})
@needs(Permission.WRITE)
async def edit_channel(channel_id: ChannelId, change: ChannelChange, who: Who, services: Use) -> ChannelOut:
    """Rename a channel, or give it another configuration as a whole. Its kind stays."""
    return _out(
        services,
        await services.channels.edit(who.team_id, channel_id, name=change.name, config=change.config, by=who.actor),
    )


@router.delete(
    "/v1/channels/{channel_id}",
    status_code=204,
    responses={409: {"description": "A job or monitor names this channel, and would fall silent."}},
)
@needs(Permission.WRITE)
async def delete_channel(channel_id: ChannelId, who: Who, services: Use) -> None:
    """Delete a channel with its configuration. Alerts that wait for it are not sent any more."""
    await services.channels.delete(who.team_id, channel_id, by=who.actor)


@router.post("/v1/channels/{channel_id}/pause", response_model=ChannelOut)
@needs(Permission.WRITE)
async def pause_channel(channel_id: ChannelId, who: Who, services: Use) -> ChannelOut:
    """Tell nothing through a channel until it is resumed; what waits for it is not sent either.

    Pausing twice is no error.
    """
    return _out(services, await services.channels.pause(who.team_id, channel_id, by=who.actor))


@router.post("/v1/channels/{channel_id}/resume", response_model=ChannelOut)
@needs(Permission.WRITE)
async def resume_channel(channel_id: ChannelId, who: Who, services: Use) -> ChannelOut:
    """Tell what happens from now on through a channel that was paused or disabled.

    Resuming twice is no error.
    """
    return _out(services, await services.channels.resume(who.team_id, channel_id, by=who.actor))


@router.post(
    "/v1/channels/{channel_id}/test",
    response_model=TestOut,
    responses={409: {"description": "It was tested a moment ago, or this node cannot open its configuration."}},
)
@needs(Permission.WRITE)
async def send_test_message(channel_id: ChannelId, who: Who, services: Use) -> TestOut:
    """Send a test message at once, and say what came of it: one attempt, of at most 20 seconds.

    That the service did not take the message is no error of this request.
    """
    delivery = await services.channels.test(who.team_id, channel_id, by=who.actor)
    if isinstance(delivery, Accepted):
        return TestOut(accepted=True, detail=delivery.detail or None, reason=None)
    return TestOut(accepted=False, detail=None, reason=delivery.reason)


def _out(services: Use, channel: ChannelRow) -> ChannelOut:
    return ChannelOut(
        id=channel.id,
        kind=channel.kind,
        name=channel.name,
        status=cast(Any, str(channel.status)),
        status_reason=channel.reason,
        warning=services.channels.warning(channel),
        destination=channel.destination,
        failures=channel.failures,
        last_sent_at=maybe_instant(channel.last_sent_at),
        created_at=instant(channel.created_at),
        updated_at=instant(channel.updated_at),
    )
