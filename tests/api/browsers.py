"""A browser in front of the application: it keeps the cookie, and says from where its requests come."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any

from tests.api.support import Answer, exchange, scope_of

from zerocron.actions.one_time_links import new_setup_link
from zerocron.app import Node

FOR_BROWSERS = ("/v1/sign-", "/v1/session/", "/v1/me", "/v1/setup", "/v1/password-resets", "/v1/invitations/")
"""Where no API key helps: a person has to have signed in, or is about to."""

HOST = "cron.example.com"
PASSWORD = "four words in a row"


@dataclass
class Browser:
    """Requests as pages of ours make them. `cookies` is its jar."""

    application: Any
    address: str = "203.0.113.7"
    scheme: str = "https"
    cookies: dict[str, str] = field(default_factory=dict)
    set_cookies: list[str] = field(default_factory=list)

    async def __call__(
        self,
        method: str,
        path: str,
        document: Any = None,
        *,
        headers: Mapping[str, str | None] | None = None,
        body: bytes = b"",
    ) -> Answer:
        """`headers` with None are left out."""
        given: dict[str, str | None] = {"host": HOST, "sec-fetch-site": "same-origin", "user-agent": "Testfox/1.0"}
        if self.cookies:
            given["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if document is not None:
            body = json.dumps(document).encode()
            given["content-type"] = "application/json"
        given |= {name.lower(): value for name, value in (headers or {}).items()}
        sent = {name: value for name, value in given.items() if value is not None}
        path, _, query = path.partition("?")
        scope = scope_of(method, path, query, sent, self.scheme)
        scope["client"] = (self.address, 50_000)
        answer = await exchange(self.application, scope, [body])
        self._keep(answer)
        return answer

    def _keep(self, answer: Answer) -> None:
        for text in answer.headers.get("set-cookie", "").splitlines():
            self.set_cookies.append(text)
            for name, morsel in SimpleCookie(text).items():
                if morsel["max-age"] == "0":
                    self.cookies.pop(name, None)
                else:
                    self.cookies[name] = morsel.value

    async def sign_in(self, email: str, password: str = PASSWORD, code: str | None = None) -> Answer:
        return await self("POST", "/v1/sign-in", {"email": email, "password": password, "code": code})

    async def get(self, path: str) -> Any:
        answer = await self("GET", path)
        assert answer.status == 200, answer.body
        return answer.json


async def setup_token(node: Node) -> str:
    path = await node.ledger.write(lambda connection: new_setup_link(connection, node.clock.now()))
    return path.rpartition("/")[2]
