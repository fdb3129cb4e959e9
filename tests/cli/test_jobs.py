"""`0cron jobs ...` against a running server: what is printed, what is changed, and how each command ends."""

from __future__ import annotations

from tests.cli.support import NEVER, Cli


def test_create_prints_the_job_with_its_meaning_its_next_times_and_warnings(home: Cli) -> None:
    done = home(
        *("jobs", "create", "--name", "nightly report", "--schedule", "0 9 1 * 1", "--tz", "Europe/Paris"),
        *("--url", "https://example.com/hook", "--attempts", "3", "--delay", "5m", "--backoff", "steep"),
    )
    assert done.out.startswith('Created "nightly report".\n')
    assert "0 9 1 * 1 (Europe/Paris)" in done.out
    assert "on day 1 of the month or every Monday at 09:00 (0 9 1 * 1, Europe/Paris)" in " ".join(done.out.split())
    assert done.out.count(":00:00 UTC  in ") == 3
    assert "up to 3 attempts, steep back-off from 5 min" in done.out
    assert "warning: Unknown retry back-off 'steep'" in done.out
    assert "warning: Day of month and day of week are both restricted" in done.out
    assert max(len(line) for line in done.out.splitlines() if "warning" not in line) <= 80
    assert done.err == ""


def test_every_option_of_create_reaches_the_server(home: Cli) -> None:
    made = home(
        *("jobs", "create", "--name", "everything", "--schedule", NEVER, "--timezone", "Asia/Kathmandu"),
        *("--url", "https://example.com/x", "--method", "put", "-H", "X-One: 1", "--header", "x-two:a:b"),
        *("--body", "hello", "--timeout", "1.5", "--attempts", "4", "--backoff", "linear", "--delay", "30s"),
        *("--overlap", "queue", "--catchup", "all", "--catchup-window", "2h", "--on-lost", "give_up"),
        *("--success-status", "200", "--success-status", "404", "--body-contains", "yes", "--body-not-contains", "no"),
        *(
            "--body-matches",
            "y.s",
            "--json-equals",
            "$.n=1",
            "--json-equals",
            '$["a=b"].s=so = it',
            "--max-duration",
            "2s",
        ),
        *("--header-equals", "X-State: done", "--redirects", "2", "--jitter", "full", "--disable-after", "9"),
        *("--tag", "one", "--tag", "two", "--json"),
    ).json
    assert (
        made
        | {
            "timezone": "Asia/Kathmandu",
            "method": "PUT",
            "headers": {"X-One": "1", "x-two": "a:b"},
            "body": "hello",
            "timeout": 1.5,
            "retry": {"attempts": 4, "backoff": "linear", "delay": 30, "jitter": "full"},
            "redirects": 2,
            "disable_after": 9,
            "overlap": "queue",
            "catchup": "all",
            "catchup_window": 7200,
            "on_lost": "give_up",
            "success": {
                "status": ["200", "404"],
                "body_contains": "yes",
                "body_not_contains": "no",
                "body_matches": "y.s",
                "json": [{"path": "$.n", "equals": 1}, {"path": '$["a=b"].s', "equals": "so = it"}],
                "headers": {"X-State": "done"},
                "max_duration_ms": 2_000,
            },
            "tags": ["one", "two"],
        }
        == made
    )


def test_a_body_comes_from_a_file_or_from_standard_input(home: Cli) -> None:
    (home.directory / "body.json").write_text('{"from": "file"}')
    arguments = ("jobs", "create", "--name", "body", "--schedule", NEVER, "--url", "http://127.0.0.1:9/", "--body")
    assert home(*arguments, "@body.json", "--json").json["body"] == '{"from": "file"}'
    assert home(*arguments, "@-", "--json", stdin="from stdin\n").json["body"] == "from stdin\n"


def test_an_idempotency_key_makes_one_job_of_two_creations(home: Cli) -> None:
    arguments = ("jobs", "create", "--schedule", NEVER, "--url", "http://127.0.0.1:9/", "--idempotency-key", "k1")
    first, again = (home.here(*arguments, "--name", "once", "--json").json for _ in range(2))
    assert first["id"] == again["id"]
    assert home.here(*arguments, "--name", "other", code=5).err.startswith("error: ")


def test_what_cannot_be_accepted_is_told_in_the_words_of_the_command_line(home: Cli) -> None:
    arguments = ("jobs", "create", "--name", "x", "--url", "https://example.com")
    two = home(*arguments, "--schedule", NEVER, "--attempts", "99", "--timeout", "10000", code=2).err.splitlines()
    assert [line.partition(": ")[0] for line in two] == ["error", "  --attempts"]
    assert two[0].startswith("error: --timeout: ")
    assert "900" in two[0]
    assert "\n  try: Europe/Paris\n" in home.here(*arguments, "--schedule", NEVER, "--tz", "Europe/Pariss", code=2).err


def test_list_shows_what_matters_within_eighty_columns(home: Cli) -> None:
    made = home.make("a job with quite a long name, so that it must be cut at the end")
    home.api.send("POST", f"/v1/jobs/{made['id']}/pause")
    shown = home("jobs", "list", "-q", "quite a long name")
    assert max(map(len, shown.out.splitlines())) <= 80
    assert shown.out.splitlines()[0].split("  ")[0] == "NAME / ID"
    assert made["id"] in shown.out
    assert "paused" in shown.out
    wide = home.with_environment(COLUMNS="200").here("jobs", "list", "--search", "quite a long name")
    assert len(wide.out.splitlines()) == 2
    assert f"{made['name']}  paused  {NEVER}" in wide.out


def test_list_filters_and_pages(home: Cli) -> None:
    for number in range(3):
        job = home.make(f"listed {number}", tags=["listed"])
        if number == 1:
            home.api.send("POST", f"/v1/jobs/{job['id']}/pause")
    page = home.here("jobs", "list", "--tag", "listed", "--json").json
    assert [job["name"] for job in page["items"]] == ["listed 2", "listed 1", "listed 0"]
    assert page["next_cursor"] is None
    paused = home.here("jobs", "list", "--tag", "listed", "--status", "paused", "--json").json
    assert [job["name"] for job in paused["items"]] == ["listed 1"]
    two = home.here("jobs", "list", "--tag", "listed", "--limit", "2")
    assert "There are more than these 2 jobs: --all shows all" in two.err
    assert "listed 0" not in two.out
    assert home.here("jobs", "list", "--tag", "nobody has it").out == "No job matches.\n"


def test_a_job_is_named_by_id_by_the_beginning_of_its_id_or_by_its_name(home: Cli) -> None:
    made = home.make("findable")
    for name in (made["id"].upper(), made["id"][:-1], "findable"):
        assert home.here("jobs", "show", name, "--json").json["id"] == made["id"]


def test_an_ambiguous_name_lists_the_candidates(home: Cli) -> None:
    one, two = home.make("twin"), home.make("twin")
    refused = home("jobs", "pause", "twin", code=2)
    assert "error: 2 jobs answer to 'twin'." in refused.err
    assert one["id"] in refused.err
    assert two["id"] in refused.err


def test_an_unknown_name_suggests_what_is_there(home: Cli) -> None:
    home.make("Weekly cleaning")
    assert "did you mean: Weekly cleaning" in home("jobs", "show", "weekly claening", code=4).err
    assert "did you mean: Weekly cleaning" in home.here("jobs", "show", "cleaning", code=4).err


def test_show_has_all_that_was_set(home: Cli) -> None:
    home.make("shown", "https://example.com/y", headers={"X-A": "b"}, body='{"a": 1}', tags=["t"])
    shown = home("jobs", "show", "shown").out
    for text in ("GET https://example.com/y", "X-A: b", '{"a": 1}', "30 s", "none (1 attempt)", "0 succeeded"):
        assert text in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_edit_changes_what_is_given_and_clears_what_is_named(home: Cli) -> None:
    home.make("editable", "https://example.com/z", body="b", tags=["t"], retry={"attempts": 3})
    done = home("jobs", "edit", "editable", "--schedule", "every 90 minutes", "--delay", "1m")
    assert done.out.startswith('Changed "editable".')
    edited = home.here(
        "jobs", "edit", "editable", "--clear", "body", "--clear", "tags", "--name", "edited", "--json"
    ).json
    assert (edited["name"], edited["body"], edited["tags"]) == ("edited", None, [])
    assert edited["retry"] == {"attempts": 3, "backoff": "exponential", "delay": 60, "jitter": "none"}
    assert edited["schedule"] == "every 90 minutes"
    assert "error: There is nothing to change." in home.here("jobs", "edit", "edited", code=2).err
    assert "error: --url: " in home.here("jobs", "edit", "edited", "--url", "", code=2).err


def test_pause_resume_and_what_a_paused_job_does_not_allow(home: Cli) -> None:
    home.make("resting")
    assert 'Paused "resting".' in home("jobs", "pause", "resting").out
    assert "error: The job is paused. Resume it" in home.here("jobs", "trigger", "resting", code=5).err
    assert 'Resumed "resting". Next run: in ' in home("jobs", "resume", "resting").out
    assert home.here("jobs", "pause", "resting", "--json").json["status"] == "paused"
    assert home.here("jobs", "resume", "resting", "--json").json["status"] == "active"


def test_delete_goes_ahead_where_nobody_can_be_asked(home: Cli) -> None:
    made = home.make("doomed")
    assert home("jobs", "delete", "doomed", "--json").json == {"id": made["id"], "name": "doomed", "deleted": True}
    home.here("jobs", "delete", "doomed", code=4)


def test_delete_asks_on_a_terminal(home: Cli) -> None:
    home.make("precious")
    kept = home.on_terminal("jobs", "delete", "precious", typed="n\n")
    assert kept.code == 1
    assert 'Delete "precious"?' in kept.out
    assert "Nothing was deleted." in kept.out
    assert 'Deleted "precious".' in home.on_terminal("jobs", "delete", "precious", typed="y\n").out


def test_trigger_tells_how_to_see_the_run_and_waits_when_asked(home: Cli, target: str) -> None:
    home.make("good", f"{target}/ok", overlap="allow")
    assert "runs show " in home.here("jobs", "trigger", "good").out
    assert "It succeeded: 200 in " in home.here("jobs", "trigger", "good", "--wait").out
    run = home("jobs", "trigger", "good", "--wait", "--json").json
    assert run["status"] == "succeeded"
    assert run["executions"][0]["response"]["status"] == 200


def test_trigger_and_wait_fails_when_the_run_fails_and_says_why(home: Cli, target: str) -> None:
    home.make("bad", f"{target}/status/500")
    failed = home("jobs", "trigger", "bad", "--wait", code=1)
    assert "The status was 500; the job accepts 2xx." in failed.out
    assert home.here("jobs", "trigger", "bad", "--wait", "--json", code=1).json["status"] == "failed"


def test_show_tells_how_a_request_is_sent_and_judged(home: Cli) -> None:
    rules = {
        "body_matches": "^ok",
        "json": [{"path": "$.state", "equals": "done"}, {"path": "$.ok", "equals": True}],
        "headers": {"X-State": "done"},
        "max_duration_ms": 1_500,
    }
    home.make("judged", success=rules, redirects=1, disable_after=3, retry={"attempts": 2, "jitter": "full"})
    shown = " ".join(home.here("jobs", "show", "judged").out.split())
    for words in (
        "sent 1 redirect followed at most",
        "status 2xx, body matches '^ok', $.state is \"done\", $.ok is true, header X-State is 'done', within 1.50 s",
        "up to 2 attempts, exponential back-off with full jitter from 5 s; disabled after 3 failed runs in a row",
    ):
        assert words in shown, shown
    cleared = ("body-matches", "json-equals", "header-equals", "max-duration")
    edited = home.here(
        "jobs", "edit", "judged", *(word for part in cleared for word in ("--clear", part)), "--json"
    ).json
    assert edited["success"] == {
        "status": ["2xx"],
        "body_contains": None,
        "body_not_contains": None,
        "body_matches": None,
        "json": [],
        "headers": {},
        "max_duration_ms": None,
    }


def test_flags_can_be_said_both_ways(home: Cli) -> None:
    home.make("flagged")
    assert home.here("jobs", "edit", "flagged", "--no-sign", "--verify-tls", "--json").json["sign"] is False
    refused = home.here("jobs", "edit", "flagged", "--no-verify-tls", code=2).err
    assert refused.startswith("error: This server does not let jobs switch the verification")
    assert "write it as '$.path=value'" in home.here("jobs", "edit", "flagged", "--json-equals", "a", code=2).err


def test_a_disabled_job_is_listed_and_shown_with_its_reason(home: Cli) -> None:
    job = home.make("broken down", disable_after=1, timeout=1)
    home.trigger(job)
    listed = home.here("jobs", "list", "--status", "disabled", "--json").json["items"]
    assert [each["name"] for each in listed] == ["broken down"]
    shown = " ".join(home.here("jobs", "show", "broken down").out.split())
    assert "status disabled The last run failed, and `disable_after` is 1." in shown
    assert "is disabled" in home.here("jobs", "trigger", "broken down", code=5).err
    assert home.here("jobs", "resume", "broken down").out.startswith('Resumed "broken down".')
