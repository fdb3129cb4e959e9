"""`0cron jobs explain`: why a job did or did not run."""

from __future__ import annotations

from tests.cli.support import Cli


def test_explain_says_why_and_shows_the_evidence(home: Cli, target: str) -> None:
    job = home.make("explained", f"{target}/status/500")
    run = home.here("runs", "show", home.trigger(job), "--json").json
    shown = home.here("jobs", "explain", "explained", "--at", run["scheduled_for"]).out
    assert shown.startswith("It ran and failed. The status was 500")
    assert "Attempt 1 failed." in shown
    found = home.here("jobs", "explain", "explained", "--at", run["scheduled_for"], "--json").json
    assert (found["verdict"], found["run"]["id"]) == ("ran", run["id"])
    early = home.here("jobs", "explain", "explained", "--at", "2020-01-01T00:00:00Z")
    assert early.out.startswith("There was no such job yet: it was made on ")


def test_explain_refuses_what_is_no_instant(home: Cli, target: str) -> None:
    home.make("asked-at-noon", f"{target}/ok")
    done = home.here("jobs", "explain", "asked-at-noon", "--at", "noon", code=2)
    assert "Write --at" in done.err or "'at'" in done.err
