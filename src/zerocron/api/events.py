"""/v1/events: a word when something has changed, as server-sent events."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Header, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from zerocron.actions.changes import KINDS, Changes, Listener
from zerocron.api.access import needs
from zerocron.api.services import IS_HEAD, STILL, Use, Who
from zerocron.core.access import Permission

COMMENT_SECONDS = 15.0
"""So often a comment is sent when there is nothing to say: what stands between would take the connection for dead."""

SLOW_SECONDS = 20.0
"""A client that takes nothing for so long is let go."""

EVENT_STREAM = "text/event-stream"
router = APIRouter(prefix="/v1", tags=["overview"])


class EventStream(Response):
    """The answer that goes on until one of the two ends it."""

    media_type = EVENT_STREAM

    def __init__(self, changes: Changes, listener: Listener) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._changes = changes
        self._listener = listener

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.create_task(_until_gone(receive))
        try:
            async with asyncio.timeout(SLOW_SECONDS):
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._speak(gone, send)
        except TimeoutError:
            return  # too slow: the server cuts the connection
        finally:
            self._changes.leave(self._listener)
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _speak(self, gone: asyncio.Task[None], send: Send) -> None:
        text: bytes | None = b"retry: 5000\n\n"
        while not self._listener.is_over and not gone.done():
            if text is not None:
                async with asyncio.timeout(SLOW_SECONDS):
                    await send({"type": "http.response.body", "body": text, "more_body": True})
            woken = asyncio.create_task(self._listener.woken.wait())
            try:
                await asyncio.wait({gone, woken}, timeout=COMMENT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                text = self._news() if woken.done() else b": nothing new\n\n"
            finally:
                woken.cancel()

    def _news(self) -> bytes | None:
        taken = self._listener.take()
        if taken is None:
            return None
        state, changed = taken
        if not changed:
            return f"id: {state.id}\nevent: hello\ndata: {{}}\n\n".encode()
        data = orjson.dumps({kind: kind in changed for kind in KINDS}).decode()
        return f"id: {state.id}\nevent: change\ndata: {data}\n\n".encode()


async def _until_gone(receive: Receive) -> None:
    message: Any = {}
    while message.get("type") != "http.disconnect":
        message = await receive()


@router.get(
    "/events",
    response_class=Response,
    responses={
        200: {
            "description": "At most once a second `event: change` with `data: "
            '{"jobs": true, "monitors": false, "alerts": false}`; `event: hello` at the begin; a comment every 15 s.',
            "content": {EVENT_STREAM: {"schema": {"type": "string"}}},
        },
        429: {"description": "Too many are listening already, to this server or with this key."},
    },
)
@needs(Permission.READ)
async def listen_to_events(
    request: Request,
    who: Who,
    services: Use,
    seen: Annotated[
        str,
        Header(
            alias="Last-Event-ID",
            max_length=100,
            description="The id of the event seen last, as browsers send it: what has changed since is told at once.",
        ),
    ] = "",
) -> Response:
    """Hear when jobs with their runs, monitors with their pings, or alerts with their channels have changed.

    What has changed is for the other routes to say. That time passes (a monitor becomes late) is no change. A key that
    is revoked is cut off within seconds.
    """
    if request.scope[IS_HEAD]:
        return Response(media_type=EVENT_STREAM)
    return EventStream(services.changes, services.changes.listen(who, request.scope[STILL], seen))
