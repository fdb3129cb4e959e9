"""How the client finds its server, and what it makes of every kind of answer and of none."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio.to_thread
import pytest
from tests.cli.support import Cli
from tests.support.target import Exchange, Target

from zerocron.cli import client as client_module
from zerocron.cli.client import Client, Server, find_server
from zerocron.cli.errors import report
from zerocron.core.errors import (
    Conflict,
    Invalid,
    NotFound,
    TooLarge,
    Unauthorized,
    Unavailable,
    ZerocronError,
)


@pytest.fixture
async def stranger() -> AsyncIterator[Target]:
    async with Target() as target:
        yield target


def beside(path: Path, url: str | None = None, key: str | None = None) -> Path:
    if url is not None:
        (path / "local-url").write_text(f"{url}\n")
    if key is not None:
        (path / "local-key").write_text(f"{key}\n")
    return path


def test_options_come_before_the_environment_and_that_before_local_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_server() == Server("http://127.0.0.1:8000", "the default", None, "")
    (tmp_path / "data").mkdir()
    beside(tmp_path / "data", "http://127.0.0.1:1", "local")
    assert find_server() == Server("http://127.0.0.1:1", "data/local-url", "local", "data/local-key")
    monkeypatch.setenv("ZEROCRON_API_URL", "http://127.0.0.1:2/")
    monkeypatch.setenv("ZEROCRON_API_KEY", "environment")
    assert find_server() == Server("http://127.0.0.1:2", "ZEROCRON_API_URL", "environment", "ZEROCRON_API_KEY")
    assert find_server("http://127.0.0.1:3", "option") == Server(
        "http://127.0.0.1:3", "--api-url", "option", "--api-key"
    )
    named = find_server(data_dir=tmp_path / "data")
    assert (named.url, named.key) == ("http://127.0.0.1:1", "local")


def test_the_local_key_is_sent_to_this_machine_only(tmp_path: Path) -> None:
    beside(tmp_path, "http://127.0.0.1:1", "local")
    assert find_server("https://0cron.example.com", data_dir=tmp_path).key is None
    for url in ("http://localhost:2", "http://127.9.9.9", "http://[::1]:3"):
        assert find_server(url, data_dir=tmp_path).key == "local"


@pytest.mark.parametrize(
    "url", ["example.com", "ftp://example.com", "http://", "http://a b", "http://x?y=1", "http://x:99999", "http://é"]
)
def test_what_is_no_url_of_a_server_is_bad_input(tmp_path: Path, url: str) -> None:
    with pytest.raises(Invalid, match=r"--api-url: .* is not the URL of a server"):
        find_server(url, data_dir=tmp_path)


def test_secrets_in_the_url_and_keys_that_are_none_are_bad_input(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="leave the user name out"):
        find_server("http://me:secret@example.com", data_dir=tmp_path)
    with pytest.raises(Invalid, match="--api-key: this is not an API key"):
        find_server("http://127.0.0.1:1", "0c_a\nb", tmp_path)


async def ask(target: Target, tmp_path: Path, handler: Callable[[Exchange], None]) -> ZerocronError:
    """The error that an answer becomes."""
    target.on("/v1/jobs", handler)
    client = Client(find_server(target.url, "0c_key", tmp_path))
    with pytest.raises(ZerocronError) as caught:
        await anyio.to_thread.run_sync(lambda: client.get("/v1/jobs"))
    return caught.value


PROBLEMS = [(401, Unauthorized), (404, NotFound), (409, Conflict), (413, TooLarge), (400, Invalid), (422, Invalid)]


@pytest.mark.parametrize(("status", "kind"), [*PROBLEMS, (429, Unavailable), (503, Unavailable), (500, ZerocronError)])
async def test_a_problem_becomes_the_error_of_its_kind(
    stranger: Target, tmp_path: Path, status: int, kind: type[ZerocronError]
) -> None:
    document = {"detail": "a: no.", "errors": [{"field": "a", "message": "no."}], "suggestions": ["b"], "error_id": "7"}
    error = await ask(stranger, tmp_path, lambda exchange: exchange.answer(status, json.dumps(document).encode()))
    assert type(error) is kind
    assert status == 401 or error.message == "a: no."
    if isinstance(error, Invalid):
        assert (error.fields[0].field, error.suggestions) == ("a", ("b",))
    assert status != 500 or error.__notes__ == ["error_id: 7"]
    assert stranger.requests[-1].headers["authorization"] == "Bearer 0c_key"


@pytest.mark.parametrize("status", [200, 404, 502])
async def test_what_is_no_json_is_no_0cron(stranger: Target, tmp_path: Path, status: int) -> None:
    error = await ask(stranger, tmp_path, lambda exchange: exchange.answer(status, b"<html>"))
    assert isinstance(error, Unavailable)
    assert "is not a 0cron server." in error.message


async def test_a_redirect_is_not_followed_because_it_would_take_the_key_along(stranger: Target, tmp_path: Path) -> None:
    error = await ask(
        stranger, tmp_path, lambda exchange: exchange.answer(302, b"", [("Location", "http://evil.example/v1/jobs")])
    )
    assert isinstance(error, Invalid)
    assert "redirects to http://evil.example/v1/jobs" in error.message
    assert len(stranger.requests) == 1


async def test_an_answer_that_breaks_off_or_does_not_come_is_unavailable(
    stranger: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(await ask(stranger, tmp_path, lambda exchange: exchange.reset()), Unavailable)
    assert isinstance(await ask(stranger, tmp_path, lambda exchange: exchange.raw(b"junk\r\n\r\n")), Unavailable)
    monkeypatch.setattr(client_module, "TIMEOUT_SECONDS", 0.1)
    error = await ask(stranger, tmp_path, lambda _exchange: None)
    assert error.message == f"The server at {stranger.url} did not answer within 0.1 seconds."


def test_no_proxy_stands_between_this_machine_and_itself(home: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert home.api.get("/healthz")["status"] == "ok"


def test_pages_are_joined_up_to_the_limit(home: Cli) -> None:
    jobs = [home.make(f"paged {number}", tags=["paged"])["id"] for number in range(3)]
    monkey = home.api.pages("/v1/jobs", limit=2, tag="paged")
    assert [job["id"] for job in monkey["items"]] == jobs[:0:-1]
    assert monkey["next_cursor"] is not None


def test_a_server_that_is_not_there_is_told_with_its_url_and_what_to_do(cli: Cli) -> None:
    cli_with_file = cli.directory / "data"
    cli_with_file.mkdir()
    beside(cli_with_file, "http://127.0.0.1:9")
    refused = cli("jobs", "list", code=6)
    assert refused.err.startswith("error: No server answers at http://127.0.0.1:9 (from data/local-url).\n  Start one")
    assert " serve\n" in refused.err
    assert "ZEROCRON_API_URL" in refused.err


def test_errors_that_nobody_foresaw_are_one_line_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(RuntimeError("two\nlines\033[31m")) == 1
    first, *_ = capsys.readouterr().err.splitlines()
    assert first == r"error: 0cron has a bug here: RuntimeError: two lines\x1b[31m"
    assert report(PermissionError(13, "Permission denied", "/x")) == 1
    assert capsys.readouterr().err == "error: /x: Permission denied.\n"
