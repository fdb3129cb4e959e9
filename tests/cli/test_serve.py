"""`0cron serve`: the banner, the ways it refuses to start, the ways it stops, and its log."""

from __future__ import annotations

import json
import signal

import pytest
from tests.cli.support import PROGRAM, Cli, read_until, serving, stop

from zerocron.cli.main import run


def test_the_demo_says_what_runs_and_what_to_try_and_what_it_says_works(cli: Cli) -> None:
    with serving(cli, "--demo") as (process, banner):
        url = (cli.directory / "data" / "local-url").read_text().strip()
        assert banner.startswith(f"0cron 0.1.0 is running at {url}\nData: {cli.directory}/data\n")
        assert "5 sample jobs call a small target on this machine:" in banner
        assert "Demo: say hello                         every 10 seconds\n" in banner
        assert f"  {PROGRAM} jobs list\n" in banner
        assert f"  {PROGRAM} jobs runs 'Demo: say hello' --follow\n" in banner
        assert "--url https://example.com\n" in banner
        assert "Demo: say hello" in cli("jobs", "list").out
        assert cli("jobs", "trigger", "Demo: say hello", "--wait", "--json").json["status"] == "succeeded"
        assert stop(process) == 0
        assert read_until(process.stdout, "stopped") == "0cron has stopped.\n"
    log = [json.loads(line) for line in (cli.directory / "stderr").read_text().splitlines()]
    assert [line["event"] for line in log] == ["serving", "stopping", "draining"]
    assert log[0].keys() == {"timestamp", "level", "event", "url", "data_dir"}


def test_commands_in_the_banner_name_a_data_directory_that_is_not_the_default(cli: Cli) -> None:
    with serving(cli, "--data-dir", "my data") as (process, banner):
        assert "jobs create --name hello" in banner
        assert f"  {PROGRAM} jobs list --data-dir 'my data'\n" in banner
        assert cli("jobs", "list", "--data-dir", "my data").out.startswith("There are no jobs yet. Make one: ")
        assert stop(process, signal.SIGINT) == 0


def test_it_refuses_data_and_addresses_that_are_in_use(home: Cli, cli: Cli) -> None:
    data = home.directory / "data"
    refused = cli("serve", "--port", "0", "--data-dir", str(data), code=5)
    assert f"already uses {data}." in refused.err
    port = (data / "local-url").read_text().strip().rpartition(":")[2]
    assert f"error: Cannot listen on 127.0.0.1:{port}: " in cli("serve", "--port", port, code=5).err


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"ZEROCRON_PORT": "abc"}, "error: ZEROCRON_PORT: 'abc' is not a number"),
        ({"ZEROCRON_POTR": "1"}, "error: ZEROCRON_POTR: there is no such setting"),
        ({"ZEROCRON_STOP_AT": "name:x"}, "error: ZEROCRON_STOP_AT: 'name:x' is neither a name nor name:n."),
    ],
)
def test_it_names_the_setting_that_is_wrong(
    environment: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert run(["serve", "--port", "0"]) == 2
    assert told in capsys.readouterr().err


def test_data_that_cannot_be_used_is_told_in_words(cli: Cli) -> None:
    (cli.directory / "file").write_text("")
    assert "error: " in cli("serve", "--port", "0", "--data-dir", "file", code=1).err
    (cli.directory / "data").mkdir()
    (cli.directory / "data" / "zerocron.db").write_bytes(b"junk" * 4096)
    broken = cli("serve", "--port", "0", code=6)
    assert "zerocron.db cannot be used: file is not a database." in broken.err
    assert "doctor" in broken.err


def test_a_fault_test_can_kill_it_at_a_named_point(cli: Cli) -> None:
    armed = cli.with_environment(ZEROCRON_STOP_AT="started:2", ZEROCRON_OUTBOUND_ALLOW="127.0.0.0/8")
    with serving(armed, "--log-format", "text") as (process, _banner):
        job = cli.make("x")
        cli.trigger(job)
        cli.api.send("POST", f"/v1/jobs/{job['id']}/trigger")
        assert process.wait(20) == -signal.SIGKILL
    assert "info     serving  url=http://127.0.0.1:" in (cli.directory / "stderr").read_text()
