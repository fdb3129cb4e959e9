"""What goes wrong where a browser goes to itself is a page; a program gets a problem there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.api.browsers import Browser
from tests.dashboard.support import read

from zerocron.app import Node, run_node
from zerocron.core.errors import Unavailable, Unclear
from zerocron.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")
SEEN = {"accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", "accept-language": "fr"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def node(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Node]:
    folder: Path = tmp_path_factory.mktemp("pages")
    async with run_node(Settings(data_dir=folder, drain_seconds=0)) as it:
        yield it


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (Unavailable("at 10.0.0.1"), 503, "Pas pour l'instant"),
        (Unclear("at 10.0.0.1"), 503, "Pas pour l'instant"),
        (ZeroDivisionError("secret"), 500, "Quelque chose s'est mal passé"),
    ],
)
@pytest.mark.parametrize("path", ["/auth/oidc/callback", "/auth/oidc/start", "/auth/header", "/sign-in"])
async def test_who_comes_by_while_the_server_fails_sees_a_page(
    node: Node, monkeypatch: pytest.MonkeyPatch, path: str, error: Exception, status: int, said: str
) -> None:
    async def fail(*_given: Any, **_named: Any) -> Any:
        raise error

    for name in ("start", "finish", "enter"):
        monkeypatch.setattr(node.application.state.services.single_sign_on, name, fail)
    monkeypatch.setattr("zerocron.dashboard.site.Site._answer", fail)  # of /sign-in
    browser = Browser(node.application)

    shown = await browser("GET", path, headers=SEEN)
    assert (shown.status, shown.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert said in read(shown.body.decode()).one("h1").text
    assert "10.0.0.1" not in shown.body.decode()
    assert "secret" not in shown.body.decode()
    assert shown.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
    assert shown.headers["x-content-type-options"] == "nosniff"
    if status == 500:
        assert shown.headers["x-error-id"] in shown.body.decode()
    (await browser("GET", path, headers={"accept": "*/*"})).problem(status)


async def test_an_address_where_nothing_is_shows_so(node: Node) -> None:
    browser = Browser(node.application)

    shown = await browser("GET", "/nowhere", headers=SEEN)
    assert (shown.status, read(shown.body.decode()).one("h1").text) == (404, "Il n'y a rien ici")
    for path, headers in (("/nowhere", {}), ("/v1/nowhere", SEEN)):
        assert (await browser("GET", path, headers=headers)).headers["content-type"] == "application/problem+json"
    assert (await browser("HEAD", "/nowhere", headers=SEEN)).status == 404
