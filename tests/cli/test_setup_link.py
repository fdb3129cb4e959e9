"""`0cron setup-link`: the first owner, and lost passwords, by who may read the data directory (D 57)."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from http.client import HTTPResponse
from typing import Any

from tests.cli.support import PROGRAM, Cli, serving, stop

OWNER = {"email": "ada@example.com", "name": "Ada", "password": "four words in a row"}


def post(url: str, path: str, document: Any) -> int:
    """As a page of the server would."""
    headers = {"Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"}
    request = urllib.request.Request(url + path, json.dumps(document).encode(), headers)
    response: HTTPResponse
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


def token_of(line: str, url: str, kind: str) -> str:
    found = re.fullmatch(rf"{re.escape(url)}/{kind}/([0-9A-Za-z_-]{{43}})", line.strip())
    assert found is not None, line
    return found[1]


def test_a_server_with_nobody_prints_the_link_and_one_with_an_owner_does_not(cli: Cli) -> None:
    with serving(cli) as (process, banner):
        url = (cli.directory / "data" / "local-url").read_text().strip()
        lines = banner.splitlines()
        at = lines.index("Nobody is here yet. Become the owner, by this link, which works once and for an hour:")
        printed = token_of(lines[at + 1], url, "setup")
        assert lines[at + 2] == f"Later: {PROGRAM} setup-link"
        made = token_of(cli("setup-link").out, url, "setup")
        assert post(url, "/v1/setup", OWNER | {"token": "x" * 43}) == 404
        assert post(url, "/v1/setup", OWNER | {"token": made}) == 201
        assert post(url, "/v1/setup", OWNER | {"token": printed}) == 404
        refused = cli("setup-link", code=5)
        assert "has its owner already" in refused.err
        reset = token_of(
            cli("setup-link", "--reset", "Ada@example.com", "--remove-second-factor", "--json").json["url"],
            url,
            "reset",
        )
        new = {"token": reset, "new_password": "other words in a row"}
        assert post(url, "/v1/password-resets/use", new) == 204
        assert post(url, "/v1/password-resets/use", new) == 404
        sign_in = {"email": "ada@example.com", "password": "other words in a row"}
        assert post(url, "/v1/sign-in", sign_in) == 200
        assert stop(process) == 0
    log = (cli.directory / "stderr").read_text()
    assert not {printed, made, reset} & set(re.split(r"[^0-9A-Za-z_-]", log)), "no log has a link"
    with serving(cli) as (process, banner):
        assert "Nobody is here yet" not in banner
        assert stop(process) == 0


def test_it_works_while_no_server_runs(cli: Cli) -> None:
    link = cli.here("setup-link").out
    token = token_of(link, "http://127.0.0.1:8000", "setup")
    with serving(cli) as (process, _banner):
        url = (cli.directory / "data" / "local-url").read_text().strip()
        assert post(url, "/v1/setup", OWNER | {"token": token}) == 201
        assert stop(process) == 0
    assert "needs --reset" in cli.here("setup-link", "--remove-second-factor", code=2).err
    missing = cli.here("setup-link", "--reset", "nobody@example.com", code=4)
    assert "Nobody with this address may sign in" in missing.err
    assert "error: " in cli.here("setup-link", "--reset", "nonsense", code=2).err


def test_it_names_the_address_at_which_the_server_is_reached(cli: Cli) -> None:
    named = cli.with_environment(ZEROCRON_BASE_URL="https://cron.example.com/0cron/")
    assert named.here("setup-link").out.startswith("https://cron.example.com/0cron/setup/")
