"""`0cron channels` and `0cron alerts`, on a server that has one kind of channel, which sends nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.support import REPOSITORY, Cli, serving, stop


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A command line beside that server."""
    server = (sys.executable, "-m", "tests.support.channels")
    environment = {"ZEROCRON_OUTBOUND_ALLOW": "127.0.0.0/8", "PYTHONPATH": str(REPOSITORY)}
    cli = Cli(tmp_path_factory.mktemp("desk"), environment, server)
    with serving(cli) as (process, _banner):
        yield cli
        assert stop(process) == 0


def test_a_channel_from_its_making_to_its_end(desk: Cli) -> None:
    made = desk.here("channels", "create", "fake", "--name", "on-call", "--set", "place=a drawer")
    assert 'Created "on-call".' in made.out
    assert "the a drawer" in made.out
    assert "channels test " in made.out
    assert desk.here("channels", "test", "on-call").out == '"on-call" took the message. It said: put there\n'
    assert "Wait 10 seconds" in desk.here("channels", "test", "on-call", code=5).err
    assert "paused" in desk.here("channels", "pause", "on-call", "--json").out
    assert desk.here("channels", "resume", "on-call").out == 'Resumed "on-call".\n'
    edited = desk.here("channels", "edit", "on-call", "--name", "second", "--set", "place=a shelf", "--json").json
    assert (edited["name"], edited["destination"]) == ("second", "the a shelf")
    listed = desk.here("channels", "list").out
    assert "second" in listed
    assert "a shelf" in listed
    assert desk.here("channels", "show", edited["id"][:13], "--json").json == edited
    assert desk.here("channels", "delete", "second", "--yes").out == 'Deleted "second".\n'
    assert "There is no channel with the name" in desk.here("channels", "show", "second", code=4).err


def test_the_kinds_and_what_they_ask_for(desk: Cli) -> None:
    shown = desk.here("channels", "kinds").out
    assert "place" in shown
    assert "optional, secret" in shown


def test_a_secret_setting_comes_from_a_file_or_standard_input(desk: Cli) -> None:
    file = desk.directory / "token"
    file.write_text("a token that nobody sees\n")
    for source, stdin in ((f"@{file}", ""), ("@-", "another that nobody sees\n")):
        arguments = ("channels", "create", "fake", "--name", "t", "--set", "place=x", "--set", f"token={source}")
        made = desk(*arguments, "--json", stdin=stdin)
        assert "nobody sees" not in made.out
        desk.here("channels", "delete", made.json["id"], "--yes")
    missing = desk.here("channels", "create", "fake", "--name", "t", "--set", "token=@nowhere", code=2)
    assert "--set token: nowhere cannot be read" in missing.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("pigeon", "--name", "x"), "There is no kind of channel 'pigeon'. There are: fake."),
        (("fake", "--name", "x"), "Say where messages go."),
        (("fake", "--name", "x", "--set", "place"), "--set: write it as KEY=VALUE."),
        (("fake", "--name", "x", "--set", "place=y", "--set", "colour=red"), "--set colour: There is no such field."),
    ],
)
def test_what_is_refused(desk: Cli, arguments: tuple[str, ...], words: str) -> None:
    assert words in desk.here("channels", "create", *arguments, code=2).err


def test_whom_a_job_tells_of_what(desk: Cli) -> None:
    channel = desk.here("channels", "create", "fake", "--name", "pager", "--set", "place=x", "--json").json
    job = desk.here(
        *("jobs", "create", "--name", "j", "--schedule", "0 0 1 1 *", "--url", "http://127.0.0.1:9/"),
        *("--notify-channel", "pager", "--notify-on", "failed", "--after-failures", "2", "--out-of", "5"),
        *("--remind-every", "1h", "--json"),
    ).json
    assert job["notify"] == {
        "channels": [channel["id"]],
        "on": ["failed"],
        "after_failures": 2,
        "out_of": 5,
        "remind_every": 3600,
        "late_after": 60,
    }
    assert "failed to 1 channel, after 2 failures of 5, again every 1 h" in desk.here("jobs", "show", "j").out
    assert 'named by the job "j"' in desk.here("channels", "delete", "pager", "--yes", code=5).err
    cleared = desk.here(
        "jobs", "edit", "j", "--clear", "notify-channels", "--clear", "out-of", "--clear", "remind-every", "--json"
    ).json
    assert (cleared["notify"]["channels"], cleared["notify"]["out_of"]) == (None, None)
    assert "There is no channel with the name" in desk.here("jobs", "edit", "j", "--notify-channel", "p", code=4).err
    refused = desk.here("jobs", "edit", "j", "--notify-on", "recovered", code=2).err
    assert "'recovered' is told" in refused


def test_a_job_and_a_monitor_that_tell_nobody(desk: Cli) -> None:
    place = ("--schedule", "0 0 1 1 *", "--name", "quiet", "--notify-nobody", "--json")
    job = desk.here("jobs", "create", "--url", "http://127.0.0.1:9/", *place).json
    monitor = desk.here("monitors", "create", *place).json
    assert (job["notify"]["channels"], monitor["notify"]["channels"]) == ([], [])
    assert "nobody" in desk.here("jobs", "show", "quiet").out
    both = ("--notify-nobody", "--notify-channel", "pager")
    assert "exclude each other" in desk.here("jobs", "edit", "quiet", *both, code=2).err
    again = desk.here("jobs", "edit", "quiet", "--clear", "notify-channels", "--json").json
    assert again["notify"]["channels"] is None


def test_whom_a_monitor_tells_of_what(desk: Cli) -> None:
    made = desk.here("monitors", "create", "--name", "m", "--schedule", "every hour", "--notify-on", "down", "--json")
    assert made.json["notify"] == {"channels": None, "on": ["down"], "remind_every": None}
    assert "down to all channels" in desk.here("monitors", "show", "m").out
    edited = desk.here("monitors", "edit", "m", "--remind-every", "30m", "--json").json
    assert edited["notify"]["remind_every"] == 1800


def test_what_people_were_told(desk: Cli, tmp_path: Path) -> None:
    desk.here("channels", "create", "fake", "--name", "logbook", "--set", "place=x")
    job = desk.make("failing")
    desk.trigger(job)
    for _ in range(200):
        if desk.here("alerts", "list", "--job", "failing", "--status", "sent", "--json").json["items"]:
            break
    shown = desk.here("alerts", "list", "--channel", "logbook").out
    assert "failing" in shown
    assert "job.failed" in shown
    assert "sent" in shown
    assert desk.here("alerts", "list", "--status", "dead").out == "No alert matches.\n"
    assert "contradict" in desk.here("alerts", "list", "--job", "failing", "--monitor", "m", code=2).err
