"""`0cron audit list`: what was done, in a table, as JSON and as CSV."""

from __future__ import annotations

import csv
import io

from tests.cli.support import NEVER, Cli


def test_what_was_done_is_listed(home: Cli) -> None:
    job = home.api.send("POST", "/v1/jobs", {"name": "told of", "schedule": NEVER, "url": "http://127.0.0.1:9/"})
    home.api.send("PATCH", f"/v1/jobs/{job['id']}", {"timeout": 60})

    shown = " ".join(home.here("audit", "list", "--subject", job["id"]).out.split())
    assert "local command line" in shown
    assert "127.0.0.1" in shown
    assert "job.edit told of" in shown
    assert "timeout: 30.0 → 60.0" in shown

    found = home.here("audit", "list", "--subject", job["id"], "--action", "job.create", "--json").json["items"]
    assert [entry["after"]["name"] for entry in found] == ["told of"]
    actor = found[0]["actor"]["id"]
    filters = ("--subject", job["id"], "--json")
    assert len(home.here("audit", "list", "--actor", actor, *filters).json["items"]) == 2
    assert home.here("audit", "list", "--actor", "server", *filters).json["items"] == []
    assert home.here("audit", "list", "--actor", "nobody").out == "Nothing matches.\n"
    assert home.here("audit", "list", "--action", "job.nothing").out == "Nothing matches.\n"


def test_all_of_it_is_printed_as_csv(home: Cli) -> None:
    job = home.api.send("POST", "/v1/jobs", {"name": "=1+1", "schedule": NEVER, "url": "http://127.0.0.1:9/"})

    rows = list(csv.DictReader(io.StringIO(home("audit", "list", "--csv").out)))

    (row,) = [row for row in rows if row["subject_id"] == job["id"]]
    assert (row["action"], row["subject_name"]) == ("job.create", "'=1+1")
    assert "=1+1" not in home.here("audit", "list", "--csv", "--actor", "server").out
    (row,) = csv.DictReader(io.StringIO(home.here("audit", "list", "--csv", "--subject", job["id"]).out))
    assert row["subject_id"] == job["id"]
    assert "contradict" in home.here("audit", "list", "--csv", "--json", code=2).err
