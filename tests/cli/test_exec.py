"""`0cron exec`: the command does not notice, and the monitor knows."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.support import PROGRAM, Cli, read_line, stop

from zerocron.cli.pings import _Execution
from zerocron.clock import SystemClock

CLOCK = SystemClock()
NOWHERE = "http://127.0.0.1:9/v1/ping/" + "0" * 64


def monitor(home: Cli, name: str) -> dict[str, Any]:
    return home.api.send("POST", "/v1/monitors", {"name": name, "schedule": "every hour"})


def pings(home: Cli, made: dict[str, Any]) -> list[dict[str, Any]]:
    """The oldest first."""
    items: list[dict[str, Any]] = home.api.get(f"/v1/monitors/{made['id']}/pings")["items"]
    return items[::-1]


def test_start_end_exit_code_duration_and_output_are_reported(home: Cli) -> None:
    made = monitor(home, "exec ok")
    script = "import sys; print('out', flush=True); print(sys.stdin.read(), file=sys.stderr)"
    result = home("exec", made["ping_url"], "--", sys.executable, "-c", script, stdin="given")

    assert (result.out, result.err) == ("out\n", "given\n")
    start, end = pings(home, made)
    assert (start["kind"], end["kind"], end["exit_code"]) == ("start", "success", 0)
    assert start["rid"] == end["rid"] is not None
    assert end["duration_ms"] is not None
    assert sorted((end["body"] or "").split()) == ["given", "out"]


def test_the_exit_code_goes_through(home: Cli) -> None:
    made = monitor(home, "exec fails")
    home("exec", made["ping_token"], "sh", "-c", "echo no space left >&2; exit 7", code=7)

    end = pings(home, made)[-1]
    assert (end["kind"], end["exit_code"], end["body"]) == ("fail", 7, "no space left\n")


def test_a_signal_goes_through(home: Cli) -> None:
    made = monitor(home, "exec signal")
    script = "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    with home.start("exec", made["ping_url"], "--", "sh", "-c", script) as process:
        assert read_line(process.stdout) == "ready"
        assert stop(process, signal.SIGTERM) == 5
    assert pings(home, made)[-1]["exit_code"] == 5


def test_a_command_that_a_signal_ends_has_the_exit_code_of_a_shell(home: Cli) -> None:
    made = monitor(home, "exec killed")
    home("exec", made["ping_url"], "--", "sh", "-c", "kill -9 $$", code=137)

    assert pings(home, made)[-1]["exit_code"] == 137


def test_a_command_that_is_not_there(home: Cli) -> None:
    made = monitor(home, "exec missing")
    result = home("exec", made["ping_url"], "--", "no-such-command-here", code=127)

    assert "no-such-command-here" in result.err
    end = pings(home, made)[-1]
    assert (end["kind"], end["exit_code"]) == ("fail", 127)
    assert "no-such-command-here" in end["body"]


def test_only_the_end_of_the_output_is_sent(home: Cli) -> None:
    made = monitor(home, "exec much")
    script = "print('a' * 200_000 + 'the end')"
    result = home("exec", made["ping_url"], "--", sys.executable, "-c", script)

    assert len(result.out) == 200_008
    end = pings(home, made)[-1]
    assert end["body_bytes"] == 10_000
    assert end["body"].endswith("athe end\n")
    quiet = home("exec", "--no-output", made["ping_url"], "--", "echo", "secret")
    assert quiet.out == "secret\n"
    assert pings(home, made)[-1]["body"] is None


def test_a_server_that_is_away_changes_nothing_for_the_command(cli: Cli) -> None:
    result = cli("exec", NOWHERE, "--", "sh", "-c", "echo done; exit 3", code=3)

    assert result.out == "done\n"
    assert "0cron exec: The server at http://127.0.0.1:9 cannot be reached" in result.err
    assert "0" * 64 not in result.err


def test_a_bad_token_changes_nothing_for_the_command(cli: Cli, home: Cli) -> None:
    result = cli("exec", "nonsense", "--", "sh", "-c", "exit 4", code=4)
    assert "The command runs all the same." in result.err
    assert home("exec", "0" * 64, "--", "echo", "ok").out == "ok\n"


def test_a_daemon_that_keeps_the_output_open_is_not_waited_for(home: Cli) -> None:
    made = monitor(home, "exec daemon")
    result = home("exec", made["ping_url"], "--", "sh", "-c", "sleep 60 >&1 & echo $!")
    try:
        assert pings(home, made)[-1]["kind"] == "success"
    finally:
        os.kill(int(result.out), signal.SIGKILL)


def test_a_daemon_that_never_stops_talking_is_not_waited_for(home: Cli) -> None:
    made = monitor(home, "exec loud daemon")
    loud = "while :; do echo x; sleep 0.05; done >&2 & echo $!"
    result = home("exec", made["ping_url"], "--", "sh", "-c", loud)
    try:
        assert pings(home, made)[-1]["kind"] == "success"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(result.out), signal.SIGKILL)


def test_a_reader_who_leaves_ends_the_command_as_it_would_without_us(home: Cli) -> None:
    made = monitor(home, "exec reader leaves")
    with home.start("exec", made["ping_url"], "--", "yes") as process:
        assert read_line(process.stdout) == "y"
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(20) == 141
    assert pings(home, made)[-1]["exit_code"] == 141


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_outputs_that_are_closed_from_the_start_change_nothing(home: Cli, closed: str) -> None:
    made = monitor(home, f"exec closed {closed}")
    script = "import sys; print('x' * 200_000); print('y' * 200_000, file=sys.stderr); sys.exit(3)"
    done = subprocess.run(
        [
            "sh",
            "-c",
            f'exec "$0" exec "$1" -- "$2" -c "$3" {closed}',
            PROGRAM,
            made["ping_url"],
            sys.executable,
            script,
        ],
        env=home.full_environment,
        cwd=home.directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 3
    assert pings(home, made)[-1]["exit_code"] == 3


@pytest.fixture
def silent_server() -> Iterator[str]:
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1/ping/" + "0" * 64


def test_a_server_that_never_answers_costs_some_ten_seconds(cli: Cli, silent_server: str) -> None:
    begun = CLOCK.monotonic()
    result = cli("exec", silent_server, "--", "sh", "-c", "echo done; exit 3", code=3)

    assert result.out == "done\n"
    assert CLOCK.monotonic() - begun < 25, "three tries of ten seconds each and the start would be forty"
    assert "could not be reported" in result.err or "no answer within" in result.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_the_end_is_reported_ends_it_at_once(
    cli: Cli, silent_server: str, number: signal.Signals
) -> None:
    with cli.start("exec", silent_server, "--", "sh", "-c", "echo done; exec >&- 2>&-; exit 3") as process:
        assert read_line(process.stdout) == "done"
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        begun = CLOCK.monotonic()
        while children.read_text():
            assert CLOCK.monotonic() - begun < 10
        begun = CLOCK.monotonic()
        assert stop(process, number) == 3
        assert CLOCK.monotonic() - begun < 2


def test_a_signal_in_the_moment_in_which_the_command_ends_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system has forgotten the command, and its exit code is not known yet."""
    left: list[int] = []
    monkeypatch.setattr(os, "_exit", left.append)
    execution = _Execution(None, ["true"], keep_output=False)
    with subprocess.Popen(["true"]) as process:
        os.waitpid(process.pid, 0)
        execution._process = process
        execution._pass_on(signal.SIGTERM, None)
        assert left == []
        execution._end_with(3)
    assert left == [3]


def test_all_output_arrives_however_slowly_it_is_read(home: Cli) -> None:
    made = monitor(home, "exec slow reader")
    script = "import sys; sys.stdout.write('a' * 100_000)"
    with home.start("exec", made["ping_url"], "--", sys.executable, "-c", script) as process:
        assert process.stdout is not None
        seen = 0
        while part := os.read(process.stdout.fileno(), 1_000):
            seen += len(part)
        assert seen == 100_000
        assert process.wait(20) == 0


def test_what_is_ignored_stays_ignored(home: Cli) -> None:
    made = monitor(home, "exec nohup")
    script = "trap '' HUP; exec \"$0\" exec \"$1\" -- sh -c 'kill -HUP $$; echo alive'"
    done = subprocess.run(
        ["sh", "-c", script, PROGRAM, made["ping_url"]],
        env=home.full_environment,
        cwd=home.directory,
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"alive\n")
