"""`0cron monitors ...`: the life of a monitor from the command line."""

from __future__ import annotations

import re
from typing import Any

from tests.cli.support import Cli


def make(home: Cli, name: str, *more: str) -> dict[str, Any]:
    made: dict[str, Any] = home.here(
        "monitors", "create", "--name", name, "--schedule", "every hour", *more, "--json"
    ).json
    return made


def test_create_shows_how_to_report(home: Cli) -> None:
    shown = home("monitors", "create", "--name", "shown", "--schedule", "every day at 2am", "--tz", "Europe/Paris").out

    assert 'Created "shown".' in shown
    assert "every day at 02:00 (Europe/Paris)" in shown
    assert len(re.findall(r"  in \d+ (?:min|h|d)$", shown[shown.index("next slots") :], re.MULTILINE)) == 3
    assert "curl -fsS -m 10 --retry 5 -o /dev/null http://127.0.0.1:" in shown
    assert "exec http://127.0.0.1:" in shown


def test_the_life_of_a_monitor(home: Cli) -> None:
    made = make(home, "life", "--grace", "10m", "--max-duration", "2h", "--tag", "x")
    assert (made["grace_period_seconds"], made["max_duration_seconds"], made["tags"]) == (600, 7200, ["x"])
    assert home.here("ping", made["ping_url"], "-m", "done").out == "Taken.\n"
    shown = home.here("monitors", "show", "life").out
    assert "up since" in shown
    assert made["ping_url"] in shown
    edited = home.here("monitors", "edit", "life", "--grace", "1h", "--clear", "max-duration", "--json").json
    assert (edited["grace_period_seconds"], edited["max_duration_seconds"]) == (3600, None)
    assert 'Paused "life" until you resume it' in home.here("monitors", "pause", "life").out
    assert "paused" in home.here("monitors", "list", "--search", "life").out
    assert 'Resumed "life". Next ping expected: in ' in home.here("monitors", "resume", "life").out
    until = home.here("monitors", "pause", "life", "--until", "2999-01-01T00:00:00Z", code=2)
    assert "within a year" in until.err
    rotated = home.here("monitors", "rotate", made["id"][:18], "--json").json
    assert rotated["ping_token"] != made["ping_token"]
    assert home.here("ping", made["ping_url"], code=4).err.startswith("error: The server at http://127.0.0.1")
    pings = home.here("monitors", "pings", "life").out
    assert "success" in pings
    assert "done" in pings
    flips = home.here("monitors", "flips", "life").out
    assert "A ping said that the job is well." in flips
    assert home.here("monitors", "delete", "life", "--yes").out == 'Deleted "life".\n'
    assert home.here("monitors", "show", "life", code=4).err.startswith("error: There is no monitor")


def test_a_list_fits_a_narrow_terminal_and_loses_nothing(home: Cli) -> None:
    made = make(home, "narrow with a name that is rather long, as names of jobs tend to be", "--tag", "narrow")
    home.here("ping", made["ping_token"])
    listed = home.here("monitors", "list", "--tag", "narrow").out.splitlines()
    assert max(map(len, listed)) <= 80
    assert listed[0].split("  ")[-1].strip() == "EXPECTED / SCHEDULE"
    for shown in ("up", "now", "every hour", made["id"]):
        assert any(shown in line for line in listed), shown
    assert any(re.search(r"in (1|59|60) \w+$", line) for line in listed), listed


def test_ping_says_what_it_is_told(home: Cli) -> None:
    made = make(home, "told")
    home.here("ping", made["ping_token"], "--start", "--rid", "7b0f3a52-5d6e-4c1a-9c88-2f4b6d8e0a13")
    home.here("ping", made["ping_token"], "--exit-code", "3", "--rid", "7b0f3a52-5d6e-4c1a-9c88-2f4b6d8e0a13")
    home.here("ping", made["ping_token"], "--fail", "--json")
    home.here("ping", made["ping_token"], "--log", "-m", "a note")
    page = home.here("monitors", "pings", "told", "--json").json
    assert [(one["kind"], one["exit_code"], one["body"]) for one in page["items"]] == [
        ("log", None, "a note"),
        ("fail", None, None),
        ("fail", 3, None),
        ("start", None, None),
    ]
    assert page["items"][2]["duration_ms"] is not None


def test_what_makes_no_sense_is_refused(home: Cli) -> None:
    made = make(home, "sense")
    assert "Give one of" in home.here("ping", made["ping_token"], "--fail", "--start", code=2).err
    assert "Give a ping URL" in home.here("ping", "nonsense", code=2).err
    assert "UUID" in home.here("ping", made["ping_token"], "--rid", "x", code=2).err
    assert "nothing to change" in home.here("monitors", "edit", "sense", code=2).err
    refused = home.here("monitors", "create", "--name", "x", "--schedule", "0 0 31 2 *", code=2).err
    assert made["ping_token"] not in refused
    assert "did you mean: sense" in home.here("monitors", "show", "sensee", code=4).err


def test_ping_tells_when_nobody_answers(cli: Cli) -> None:
    refused = cli.here("ping", "http://127.0.0.1:9/v1/ping/" + "0" * 64, code=6).err
    assert "cannot be reached" in refused
    assert "0" * 64 not in refused
