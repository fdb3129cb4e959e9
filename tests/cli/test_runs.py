"""`0cron jobs runs` and `0cron runs show`: what happened, as tables, as details, as a stream."""

from __future__ import annotations

import json
import signal

from tests.cli.support import Cli, read_line, stop


def test_runs_lists_what_came_of_each_run_within_eighty_columns(home: Cli, target: str) -> None:
    job = home.make("flaky", f"{target}/fail-then-ok/1?key=flaky")
    assert home.here("jobs", "runs", "flaky").out == 'No run of "flaky" is there yet.\n'
    failed, good = home.trigger(job), home.trigger(job)
    shown = home("jobs", "runs", "flaky").out
    heading, first, second = shown.splitlines()
    assert heading.split() == ["SLOT", "(UTC)", "STATUS", "RESULT", "RUN", "ID"]
    assert first.split()[2:4] == ["succeeded", "200"]
    assert first.endswith(good)
    assert second.split()[2:4] == ["failed", "500"]
    assert second.endswith(failed)
    assert max(map(len, shown.splitlines())) <= 80
    page = home.here("jobs", "runs", "flaky", "--status", "failed", "--json").json
    assert [run["id"] for run in page["items"]] == [failed]
    assert "There are more" in home.here("jobs", "runs", "flaky", "--limit", "1").err


def test_show_has_the_request_the_response_the_error_and_the_timings_of_each_attempt(home: Cli, target: str) -> None:
    retry = {"attempts": 2, "delay": 0}
    job = home.make("retried", f"{target}/fail-then-ok/1?key=retried", retry=retry, method="POST", body='{"a": 1}')
    run_id = home.trigger(job)
    shown = home("runs", "show", run_id).out
    assert shown.startswith(f"Run {run_id} succeeded\n")
    for text in (
        "Attempt 1 of 2 failed at ",
        "The status was 500; the job accepts 2xx.",
        "Attempt 2 of 2 succeeded at ",
        "timings: ",
        f"> POST {target}/fail-then-ok/1?key=retried",
        '> {"a": 1}',
        "< 500 Internal Server Error",
        "< not yet",
        "< 200 OK",
        "by the API",
        "and 2 attempts",
    ):
        assert text in shown
    assert len(home.here("runs", "show", run_id, "--json").json["executions"]) == 2
    assert "200 ×2 in " in home.here("jobs", "runs", "retried").out


def test_what_a_target_answers_cannot_act_on_the_terminal(home: Cli, target: str) -> None:
    binary = home.make("binary", f"{target}/binary")
    assert "(1,024 bytes that are no text" in home.here("runs", "show", home.trigger(binary)).out
    body = "\033]0;owned\007\033[31mred\n\u202eback"
    hostile = home.make("hostile", f"{target}/echo", method="POST", body=body)
    shown = home("runs", "show", home.trigger(hostile)).out
    assert "\033" not in shown
    assert "\007" not in shown
    assert "\u202e" not in shown
    assert r"> \x1b]0;owned\x07\x1b[31mred" in shown


def test_why_there_was_no_answer(home: Cli) -> None:
    run_id = home.trigger(home.make("refused"))
    assert "connection refused" in home.here("jobs", "runs", "refused").out
    assert "refused the connection" in home.here("runs", "show", run_id).out


def test_the_runs_of_a_deleted_job_are_still_there(home: Cli, target: str) -> None:
    job = home.make("short-lived", f"{target}/ok")
    run_id = home.trigger(job)
    home.api.send("DELETE", f"/v1/jobs/{job['id']}")
    assert "(deleted)" in home.here("runs", "show", run_id).out


def test_the_way_of_redirects_is_shown(home: Cli, target: str) -> None:
    run_id = home.trigger(home.make("moved", f"{target}/redirect?to=/ok", redirects=1))
    lines = [" ".join(line.split()) for line in home.here("runs", "show", run_id).out.splitlines()]
    assert f"~ GET {target}/redirect?to=/ok: 302 Found" in lines
    assert f"~ GET {target}/ok: 200 OK" in lines


def test_an_unknown_run_is_not_found(home: Cli) -> None:
    assert "error: 'nonsense/../x' is not the id of a run." in home.here("runs", "show", "nonsense/../x", code=4).err
    unknown = "00000000-0000-7000-8000-000000000000"
    assert home.here("runs", "show", unknown, code=4).err == "error: There is no such run.\n"


def test_follow_prints_each_run_as_it_ends_until_ctrl_c(home: Cli, target: str) -> None:
    job = home.make("followed", f"{target}/ok")
    before = home.trigger(job)
    with home.start("jobs", "runs", "followed", "--follow") as process:
        assert read_line(process.stdout).split() == ["SLOT", "(UTC)", "STATUS", "RESULT", "RUN", "ID"]
        assert read_line(process.stdout).endswith(before)
        after = home.trigger(job)
        line = read_line(process.stdout)
        assert line.endswith(after)
        assert line.split()[2:4] == ["succeeded", "200"]
        assert len(line) == 80
        assert stop(process, signal.SIGINT) == 130
    assert (home.directory / "stderr").read_text() == ""


def test_follow_as_json_has_one_object_a_line(home: Cli, target: str) -> None:
    job = home.make("streamed", f"{target}/slow/0.3")
    with home.start("jobs", "runs", "streamed", "-f", "--json", "--status", "succeeded") as process:
        ids = [home.trigger(job), home.trigger(job)]
        lines = [json.loads(read_line(process.stdout)) for _ in ids]
        assert [(line["id"], line["status"]) for line in lines] == [(run_id, "succeeded") for run_id in ids]
        assert stop(process, signal.SIGINT) == 130
