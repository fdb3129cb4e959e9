"""Sending pings from this machine: one short request, which never makes the caller wait or fail for long.

Owns where a ping goes (a ping URL, or a token and the server that other commands use) and how long it may take. A token
is a secret: it is in no message of ours.
"""

from __future__ import annotations

import http.client
import re
import urllib.error
import urllib.request
from urllib.parse import urlsplit

from zerocron import __version__
from zerocron.cli.client import Client, Server, find_server
from zerocron.core.errors import Invalid, NotFound, Unavailable

TIMEOUT_SECONDS = 10
BODY_BYTES_MAX = 10_000
_TOKEN = re.compile(r"[0-9a-f]{64}", re.ASCII)
_PATH = re.compile(r"(?P<prefix>.*)/v1/ping/(?P<token>[0-9a-f]{64})/?", re.ASCII)


class Reporter:
    """Reports for one monitor."""

    def __init__(self, target: str, api_url: str | None = None) -> None:
        """`target` is a ping URL, or a token. Raises Invalid for anything else."""
        if _TOKEN.fullmatch(target):
            self._server = find_server(api_url)
            self._path = f"/v1/ping/{target}"
            return
        try:
            parts = urlsplit(target)
            match = _PATH.fullmatch(parts.path)
            is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query
        except ValueError:
            is_url, match = False, None
        if match is None or not is_url:
            raise Invalid("Give a ping URL (https://.../v1/ping/ and 64 digits), or the token alone.", field="TOKEN")
        self._server = Server(f"{parts.scheme}://{parts.netloc}{match['prefix']}", "the ping URL", None, "")
        self._path = f"/v1/ping/{match['token']}"

    def send(
        self,
        word: str = "",
        *,
        rid: str | None = None,
        body: bytes = b"",
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        """One ping. Raises NotFound for a token that no monitor has, Unavailable for everything else."""
        url = self._server.url + self._path + (f"/{word}" if word else "") + (f"?rid={rid}" if rid else "")
        request = urllib.request.Request(
            url, method="POST", data=body, headers={"User-Agent": f"0cron-cli/{__version__}"}
        )
        request.add_header("Content-Type", "text/plain")
        try:
            with Client(self._server).opener.open(request, timeout=timeout_seconds) as answer:
                status = answer.status
                answer.read(1_000)
        except (OSError, http.client.HTTPException) as error:
            reason = _reason(error, timeout_seconds)
            raise Unavailable(f"The server at {self._server.url} cannot be reached: {reason}.") from None
        if status == 404:
            raise NotFound(f"The server at {self._server.url} has no monitor with this token.")
        if status != 200:
            raise Unavailable(f"The server at {self._server.url} did not take the ping: status {status}.")


def _reason(error: Exception, timeout_seconds: float) -> str:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError):
        return f"no answer within {timeout_seconds:g} seconds"
    return getattr(reason, "strerror", None) or type(reason).__name__
