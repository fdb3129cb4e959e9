"""`0cron secrets ...`: a value is taken from a pipe, a file or a prompt, and shown by nothing."""

from __future__ import annotations

import dataclasses
import json
import os
import pty
import select
import subprocess
from pathlib import Path

import pytest
from tests.cli.support import DEADLINE_SECONDS, PROGRAM, Cli

from zerocron.core.sealing import read_master_keys
from zerocron.settings import Settings

CANARY = "canary-77aa-value"


@pytest.fixture(autouse=True)
def no_secrets(home: Cli) -> None:
    for secret in home.api.pages("/v1/secrets", limit=None)["items"]:
        home.api.send("DELETE", f"/v1/secrets/{secret['name']}")


def sent_by(home: Cli, target: str, name: str) -> str:
    """What a job that names the secret sends, and shows of it: the target echoes the body's length."""
    job = home.make(f"uses {name}", f"{target}/echo", method="POST", body=f"${{secrets.{name}}}")
    run = home.api.get(f"/v1/runs/{home.trigger(job)}")
    [execution] = run["executions"]
    assert execution["error"] is None, execution
    return str(execution["response"]["body"])


def test_the_life_of_a_secret(home: Cli, target: str) -> None:
    made = home("secrets", "set", "API_KEY", "--allow-host", "127.0.0.1", stdin=CANARY + "\n")
    assert made.out == "Set API_KEY, for 127.0.0.1 only.\nJobs use it as   ${secrets.API_KEY}\n"
    assert '"Content-Length", "17"' in sent_by(home, target, "API_KEY"), "without the line end"
    assert "[secret API_KEY]" in sent_by(home, target, "API_KEY")
    listed = home.here("secrets", "list")
    assert "API_KEY  127.0.0.1" in listed.out
    as_json = home.here("secrets", "list", "--json").json
    assert [secret["name"] for secret in as_json["items"]] == ["API_KEY"]
    lifted = home("secrets", "set", "API_KEY", "--any-host", "--json", stdin="another value").json
    assert lifted["allowed_hosts"] == []
    rotated = home.here("secrets", "rotate")
    assert rotated.out == "Sealed 1 secret anew. No older master key is needed any more.\n"
    assert home.here("secrets", "rotate", "--json").json == {"secrets": 1}
    assert home.here("secrets", "delete", "API_KEY", "--yes").out == "Deleted API_KEY.\n"
    assert home.here("secrets", "delete", "API_KEY", "--yes", code=4).err.startswith("error: There is no such secret.")
    everything = made.out + made.err + listed.out + json.dumps(as_json) + json.dumps(lifted) + rotated.out
    assert CANARY not in everything
    assert "another value" not in everything


def test_a_value_comes_from_a_file(home: Cli, target: str, tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    file.write_bytes(b"-----BEGIN-----\r\n\r\nabc\r\n-----END-----\r\n")
    home.here("secrets", "set", "PEM", "--from-file", str(file))
    assert '"Content-Length", "37"' in sent_by(home, target, "PEM"), "one line end is left out, and no other"
    assert "nowhere" in home.here("secrets", "set", "PEM", "--from-file", "nowhere", code=1).err
    file.write_bytes(b"\xff\xfe\xff\xfe\xff\xfe\xff\xfe\xff")
    assert "not text in UTF-8" in home.here("secrets", "set", "PEM", "--from-file", str(file), code=2).err


def test_on_a_terminal_it_is_asked_for_and_not_shown(home: Cli) -> None:
    """What is typed before a prompt is thrown away by it, so each answer waits for its question."""
    ours, theirs = pty.openpty()
    shown = b""

    def shown_up_to(words: bytes) -> None:
        nonlocal shown
        while words not in shown:
            ready, _, _ = select.select([ours], [], [], DEADLINE_SECONDS)
            assert ready, shown
            shown += os.read(ours, 65_536)

    with subprocess.Popen(
        [PROGRAM, "secrets", "set", "TYPED"],
        cwd=home.directory,
        env={"TERM": "dumb", **home.full_environment},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        try:
            for question in (b"Value of TYPED: ", b"Repeat for confirmation: "):
                shown_up_to(question)
                os.write(ours, f"{CANARY}\n".encode())
            shown_up_to(b"Set TYPED.")
            assert process.wait(DEADLINE_SECONDS) == 0
        finally:
            process.kill()
            os.close(theirs)
            os.close(ours)
    assert CANARY.encode() not in shown
    assert [secret["name"] for secret in home.api.get("/v1/secrets")["items"]] == ["TYPED"]


def test_a_value_is_never_an_argument(home: Cli) -> None:
    refused = home.here("secrets", "set", "API_KEY", CANARY, code=2)
    assert "unexpected extra argument" in refused.err
    assert "--value" not in home.here("secrets", "set", "--help").out


@pytest.mark.parametrize(
    ("arguments", "value", "words"),
    [
        (("lower",), CANARY, "capitals, digits and underscores"),
        (("API_KEY",), "tiny-1", "at least 8 characters"),
        (("API_KEY",), "", "at least 8 characters"),
        (("API_KEY",), "x" * 20_000, "at most 16,384 bytes"),
        (("API_KEY", "--allow-host", "https://a.example"), CANARY, "An allowed host is a name"),
        (("API_KEY", "--allow-host", "a.example", "--any-host"), CANARY, "contradict each other"),
    ],
)
def test_what_is_refused(home: Cli, arguments: tuple[str, ...], value: str, words: str) -> None:
    refused = home("secrets", "set", *arguments, stdin=value, code=2)
    assert words in refused.err
    assert not value or value not in refused.err + refused.out


def test_a_new_key_is_made_without_a_server(cli: Cli) -> None:
    made = cli("secrets", "new-key")
    assert made.err == ""
    assert read_master_keys(made.out, source="it")
    other = cli.here("secrets", "new-key", "--json").json["key"]
    assert other != made.out.strip()
    assert read_master_keys(other, source="it")


def test_settings_show_no_secret_when_they_are_printed() -> None:
    """Neither what is one nor what may hold one: a knob that speaks of keys or passwords, or of a URL to a service."""
    texts = [knob for knob in dataclasses.fields(Settings) if isinstance(knob.default, str)]
    secret = [
        knob.name
        for knob in texts
        if knob.name != "base_url" and (knob.name.endswith(("_key", "_url")) or "password" in knob.metadata["why"])
    ]
    assert {"secret_key", "database_url", "redis_url"} <= set(secret)
    settings = Settings(**{name: f"scheme://user:hunter2@host/{name}" for name in secret})  # type: ignore[arg-type]
    assert "hunter2" not in f"{settings} {settings!r}"


def test_a_bad_key_is_told_of_at_the_start(cli: Cli) -> None:
    refused = cli.with_environment(ZEROCRON_SECRET_KEY="hunter2")("serve", "--port", "0", code=2)
    assert "ZEROCRON_SECRET_KEY: The key is not 32 bytes" in refused.err
    assert "hunter2" not in refused.err + refused.out
