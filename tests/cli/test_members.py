"""`0cron members ...` and `0cron teams list`."""

from __future__ import annotations

from tests.cli.support import Cli


def test_the_team_and_who_is_invited(home: Cli) -> None:
    assert "Team" in home("teams", "list").out
    assert home.here("members", "list").out == "Nobody is in the team; programs use it by their keys.\n"
    shown = home.here("members", "invite", "ada@example.com", "--role", "viewer").out
    assert shown.startswith("Give this link to ada@example.com. It works once, until ")
    assert "/invitation/" in shown
    made = home.here("members", "invite", "bob@example.com", "--json").json
    assert (made["role"], made["is_mailed"]) == ("editor", False)
    assert "plain mail address" in home.here("members", "invite", "nobody", code=2).err
