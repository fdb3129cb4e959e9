"""`0cron signing ...`: the key is made, shown once, and used by jobs that ask for it."""

from __future__ import annotations

from tests.cli.support import Cli


def test_the_first_rotation_makes_the_first_key_and_the_next_one_keeps_it_for_a_day(home: Cli) -> None:
    missing = home.here("signing", "show", code=4).err
    assert "0cron signing rotate" in missing
    first = home("signing", "rotate", "--json").json
    assert first["key"].startswith("whsec_")
    assert first["previous_expires_at"] is None

    told = home("signing", "rotate", "--yes").out
    assert "whsec_" in told
    assert first["key"] not in told
    assert "it is not shown again" in told
    assert "The key before signs too until" in told

    shown = home.here("signing", "show").out
    assert "whsec_" not in shown
    assert "signs too until" in shown
    assert "key" not in home.here("signing", "show", "--json").json

    home.make("signed")
    assert "signed" in " ".join(home.here("jobs", "edit", "signed", "--sign").out.split())
