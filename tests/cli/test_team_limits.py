"""`0cron teams limits`: beside a running server, and by itself."""

from __future__ import annotations

from tests.cli.support import Cli, serving, stop

from zerocron.core.model import DEFAULT_TEAM_ID


def test_a_running_server_keeps_to_a_new_limit_at_once(home: Cli) -> None:
    number = len(home.api.pages("/v1/jobs", limit=None)["items"])
    shown = home("teams", "limits", DEFAULT_TEAM_ID, "--jobs", str(number or 1)).out
    assert f"{number} of {number or 1}" in shown
    try:
        if not number:
            home.make("the one that it may have")
        refused = home("jobs", "create", "--name", "more", "--schedule", "@yearly", "--url", "http://x.test", code=5)
        assert "as many jobs as it may" in refused.err
    finally:
        home("teams", "limits", DEFAULT_TEAM_ID, "--jobs", "default")
    home.make("one more after that")


def test_limits_are_shown_and_kept_as_they_are_given(home: Cli) -> None:
    given = ("--runs-per-minute", "500", "--history-bytes", "none")
    state = home.here("teams", "limits", "Team", *given, "--json").json["items"][0]
    assert state["own_limits"] == {"jobs_max": None, "runs_per_minute_max": 500, "history_bytes_max": 0}
    assert state["limits"] == {"jobs_max": None, "runs_per_minute_max": 500, "history_bytes_max": None}
    shown = home.here("teams", "limits").out
    assert shown.startswith(f"Team  {DEFAULT_TEAM_ID}\n")
    assert "0 of 500\n" in shown
    home.here("teams", "limits", "Team", "--runs-per-minute", "default", "--history-bytes", "default")


def test_the_limits_of_the_server_are_shown_and_not_those_of_the_commands_environment(cli: Cli) -> None:
    def shown(limit: str) -> str:
        beside = cli.with_environment(ZEROCRON_TEAM_JOBS_MAX=limit)
        return next(line for line in beside.here("teams", "limits").out.splitlines() if "jobs  " in line).strip()

    assert shown("7") == "jobs              0 of 7 (server's)", "there was no server yet"
    with serving(cli.with_environment(ZEROCRON_TEAM_JOBS_MAX="1000000")) as (process, _banner):
        assert shown("7") == "jobs              0 of 1,000,000 (server's)"
        assert stop(process) == 0
    assert shown("7") == "jobs              0 of 1,000,000 (server's)", "of the server that ran last"
    with serving(cli) as (process, _banner):
        assert shown("7") == "jobs              no limit"
        assert stop(process) == 0


def test_what_makes_no_sense_is_refused(home: Cli, cli: Cli) -> None:
    assert "no team with the name" in home.here("teams", "limits", "nobody", "--jobs", "1", code=4).err
    assert "Name the team" in home.here("teams", "limits", "--jobs", "1", code=2).err
    for number in ("-1", "x", "100000001", "1.5"):
        assert "no number from 0" in home.here("teams", "limits", "Team", f"--jobs={number}", code=2).err
    assert "jobs              no limit" in cli.here("teams", "limits").out
