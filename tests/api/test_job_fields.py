"""Every field of a job: its bounds, its type, and what is said when they are not kept."""

from __future__ import annotations

from typing import Any

import pytest
from tests.api.support import JOB, NOWHERE, Client

LONG_URL = "https://example.com/" + "a" * 1_981

REFUSED: list[tuple[dict[str, Any], str, str]] = [
    # name
    ({"name": ""}, "name", "This cannot be empty."),
    ({"name": "a" * 201}, "name", "At most 200 characters; this has 201."),
    ({"name": "   "}, "name", "Give at least one visible character"),
    ({"name": "two\nlines"}, "name", "no line breaks or control characters"),
    ({"name": "\x7f"}, "name", "no line breaks or control characters"),
    ({"name": 5}, "name", "This has to be text; this is a number."),
    ({"name": None}, "name", "This has to be text; this is null."),
    ({"name": ["a"]}, "name", "This has to be text; this is a list."),
    # schedule
    ({"schedule": ""}, "schedule", "This cannot be empty."),
    ({"schedule": "a" * 1_001}, "schedule", "At most 1,000 characters; this has 1,001."),
    ({"schedule": "0 0 31 2 *"}, "schedule", "can never fire"),
    ({"schedule": "0 0 30 2 *"}, "schedule", "can never fire"),
    ({"schedule": "0 0 0 1 1 * 1999"}, "schedule", "will not fire again"),
    ({"schedule": "2001-01-01 09:00"}, "schedule", "is in the past"),
    ({"schedule": "* * * *"}, "schedule", ""),
    ({"schedule": "61 * * * *"}, "schedule", ""),
    ({"schedule": "* * * * *\n* * * * *"}, "schedule", "line"),
    ({"schedule": 60}, "schedule", "This has to be text; this is a number."),
    # timezone
    ({"timezone": "Mars/Olympus"}, "timezone", "There is no time zone 'Mars/Olympus'."),
    ({"timezone": ""}, "timezone", "This cannot be empty."),
    ({"timezone": "../../etc/passwd"}, "timezone", "There is no time zone"),
    ({"timezone": "a" * 65}, "timezone", "At most 64 characters; this has 65."),
    ({"timezone": 1}, "timezone", "This has to be text; this is a number."),
    # url
    ({"url": LONG_URL}, "url", "At most 2,000 characters; this has 2,001."),
    ({"url": "ftp://example.com/"}, "url", "0cron calls http:// and https:// only, not 'ftp'."),
    ({"url": "file:///etc/passwd"}, "url", "http://"),
    ({"url": "javascript:alert(1)"}, "url", "http://"),
    ({"url": "example.com"}, "url", "http://"),
    ({"url": "http://"}, "url", "no host"),
    ({"url": "http://a:b@example.com/"}, "url", "user name"),
    ({"url": "http://example.com/a b"}, "url", "blanks"),
    ({"url": "http://example.com/\r\nX: y"}, "url", "control characters"),
    ({"url": "http://exa\\mple.com/"}, "url", "backslashes"),
    ({"url": "http://example.com:0/"}, "url", "port"),
    ({"url": "http://example.com:65536/"}, "url", "port"),
    ({"url": "http://0x7f000001/"}, "url", "IPv4"),
    ({"url": "http://[::1%lo]/"}, "url", "zone"),
    ({"url": ""}, "url", "This cannot be empty."),
    # method
    ({"method": "TRACE"}, "method", "TRACE"),
    ({"method": "connect"}, "method", "CONNECT"),
    ({"method": "GET /"}, "method", "such as GET or POST"),
    ({"method": "GET\r\n"}, "method", "such as GET or POST"),
    ({"method": "É"}, "method", "such as GET or POST"),
    ({"method": "A" * 33}, "method", "At most 32 characters; this has 33."),
    ({"method": ""}, "method", "This cannot be empty."),
    # headers
    ({"headers": {"X-A": "a\r\nX-B: b"}}, "headers.X-A", "line break"),
    ({"headers": {"X-A": "a\nb"}}, "headers.X-A", "line break"),
    ({"headers": {"X-A": "日本"}}, "headers.X-A", "outside of Latin-1"),
    ({"headers": {"X A": "b"}}, "headers.X A", "without blanks"),
    ({"headers": {"X-A\r\n": "b"}}, "headers.X-A\r\n", "without blanks"),
    ({"headers": {"X-A:": "b"}}, "headers.X-A:", "without blanks"),
    ({"headers": {"": "b"}}, "headers.", "This cannot be empty."),
    ({"headers": {"X-A": "b" * 8_193}}, "headers.X-A", "At most 8,192 characters; this has 8,193."),
    ({"headers": {"A" * 257: "b"}}, "headers." + "A" * 59 + "…", "At most 256 characters; this has 257."),
    ({"headers": {f"X-{n}": "b" for n in range(51)}}, "headers", "At most 50 items; these are 51."),
    ({"headers": {"X-A": 1}}, "headers.X-A", "This has to be text; this is a number."),
    ({"headers": {"X-A": None}}, "headers.X-A", "This has to be text; this is null."),
    ({"headers": [["X-A", "b"]]}, "headers", "This has to be an object; this is a list."),
    ({"headers": {"Host": "evil"}}, "headers.Host", "set by 0cron itself"),
    ({"headers": {"content-LENGTH": "5"}}, "headers.content-LENGTH", "set by 0cron itself"),
    ({"headers": {"X-0cron-Run-Id": "1"}}, "headers.X-0cron-Run-Id", "set by 0cron itself"),
    ({"headers": {"X-A": "1", "x-a": "2"}}, "headers", "twice in different capitals"),
    # body
    ({"body": 5}, "body", "Give text, an object, a list or null."),
    ({"body": True}, "body", "Give text, an object, a list or null."),
    ({"body": 1.5}, "body", "Give text, an object, a list or null."),
    # timeout
    ({"timeout": 0.99}, "timeout", "This has to be at least 1; this is 0.99."),
    ({"timeout": 901}, "timeout", "This has to be at most 900; this is 901."),
    ({"timeout": 1e300}, "timeout", "This has to be at most 900; this is "),
    ({"timeout": 2**63}, "timeout", "This has to be at most 900; this is "),
    ({"timeout": "30"}, "timeout", "This has to be a number; this is text."),
    ({"timeout": True}, "timeout", "This has to be a number; this is true."),
    ({"timeout": None}, "timeout", "This has to be a number; this is null."),
    # retry
    ({"retry": {"attempts": 0}}, "retry.attempts", "This has to be at least 1; this is 0."),
    ({"retry": {"attempts": 11}}, "retry.attempts", "This has to be at most 10; this is 11."),
    ({"retry": {"attempts": 1.5}}, "retry.attempts", "This has to be a whole number; this is 1.5."),
    ({"retry": {"attempts": 1.0}}, "retry.attempts", "This has to be a whole number; this is 1.0."),
    ({"retry": {"attempts": True}}, "retry.attempts", "This has to be a whole number; this is true."),
    ({"retry": {"attempts": "3"}}, "retry.attempts", "This has to be a whole number; this is text."),
    ({"retry": {"delay": -1}}, "retry.delay", "This has to be at least 0; this is -1."),
    ({"retry": {"delay": 86_401}}, "retry.delay", "This has to be at most 86,400; this is 86,401."),
    ({"retry": {"backoff": ""}}, "retry.backoff", "This cannot be empty."),
    ({"retry": {"backoff": "a" * 33}}, "retry.backoff", "At most 32 characters; this has 33."),
    ({"retry": {"backoff": "a\nb"}}, "retry.backoff", "control characters"),
    ({"retry": {"tries": 3}}, "retry.tries", "There is no such field. Leave it out."),
    ({"retry": 3}, "retry", "This has to be an object; this is a number."),
    ({"retry": None}, "retry", "This has to be an object; this is null."),
    # policies
    ({"language": "de"}, "language", "This has to be 'en', 'fr' or 'es'; this is 'de'."),
    ({"dst": "twice"}, "dst", "This has to be 'run_once', 'skip' or 'run_both'; this is 'twice'."),
    ({"day_match": "any"}, "day_match", "This has to be 'either' or 'both'; this is 'any'."),
    ({"overlap": "both"}, "overlap", "This has to be 'skip', 'queue' or 'allow'; this is 'both'."),
    ({"catchup": "some"}, "catchup", "This has to be 'latest', 'all' or 'none'; this is 'some'."),
    ({"catchup": None}, "catchup", "This has to be 'latest', 'all' or 'none'; this is null."),
    ({"on_lost": "panic"}, "on_lost", "This has to be 'rerun' or 'give_up'; this is 'panic'."),
    ({"catchup_window": -1}, "catchup_window", "This has to be at least 0; this is -1."),
    ({"catchup_window": 31_622_401}, "catchup_window", "This has to be at most 31,622,400; this is 31,622,401."),
    ({"catchup_window": 1.5}, "catchup_window", "This has to be a whole number; this is 1.5."),
    # success
    ({"success": {"status": []}}, "success.status", "Give at least 1."),
    ({"success": {"status": ["2xx"] * 21}}, "success.status", "At most 20 items; these are 21."),
    ({"success": {"status": ["9xx"]}}, "success.status", "is not a status rule"),
    ({"success": {"status": ["299-200"]}}, "success.status", "smaller status first"),
    ({"success": {"status": ["２xx"]}}, "success.status", "is not a status rule"),
    ({"success": {"status": [200]}}, "success.status.0", "This has to be text; this is a number."),
    ({"success": {"status": "2xx"}}, "success.status", "This has to be a list; this is text."),
    ({"success": {"body_contains": ""}}, "success.body_contains", "This cannot be empty."),
    ({"success": {"body_contains": "a" * 1_001}}, "success.body_contains", "At most 1,000 characters"),
    ({"success": {"body_not_contains": 1}}, "success.body_not_contains", "This has to be text; this is a number."),
    ({"success": {"body_matches": ""}}, "success.body_matches", "This cannot be empty."),
    ({"success": {"body_matches": "a" * 1_001}}, "success.body_matches", "At most 1,000 characters"),
    ({"success": {"body_matches": "(?=a)"}}, "success.body_matches", "invalid perl operator: (?="),
    ({"success": {"body_matches": "("}}, "success.body_matches", "The syntax is that of RE2"),
    ({"success": {"json": [{}] * 21}}, "success.json", "At most 20 items; these are 21."),
    ({"success": {"json": [{"path": "$.a"}]}}, "success.json.0.equals", ""),
    ({"success": {"json": [{"path": "a", "equals": 1}]}}, "success.json", "is not a JSON path"),
    ({"success": {"json": [{"path": "$" + ".a" * 21, "equals": 1}]}}, "success.json", "At most 20 steps"[3:]),
    ({"success": {"json": [{"path": "$" + "a" * 200, "equals": 1}]}}, "success.json.0.path", "At most 200 characters"),
    ({"success": {"json": [{"path": "$.a", "equals": []}]}}, "success.json.0.equals", "Give text of at most"),
    ({"success": {"json": [{"path": "$.a", "equals": "a" * 1_001}]}}, "success.json.0.equals", "Give text of at most"),
    ({"success": {"json": [{"path": "$.a", "equals": 2**53 + 1}]}}, "success.json.0.equals", "at most 53 bits"),
    ({"success": {"json": [{"path": "$.a", "equals": 1, "or": 2}]}}, "success.json.0.or", "There is no such field."),
    ({"success": {"json": None}}, "success.json", "This has to be a list; this is null."),
    ({"success": {"headers": {f"X-{n}": "b" for n in range(21)}}}, "success.headers", "At most 20 items"),
    ({"success": {"headers": {"X-A": "1", "x-a": "2"}}}, "success.headers", "twice in different capitals"),
    ({"success": {"headers": {"X-A": 1}}}, "success.headers.X-A", "This has to be text; this is a number."),
    ({"success": {"headers": None}}, "success.headers", "This has to be an object; this is null."),
    ({"success": {"max_duration_ms": 0}}, "success.max_duration_ms", "This has to be at least 1; this is 0."),
    ({"success": {"max_duration_ms": 900_001}}, "success.max_duration_ms", "This has to be at most 900,000"),
    # delivery
    ({"redirects": 6}, "redirects", "This has to be at most 5; this is 6."),
    ({"redirects": -1}, "redirects", "This has to be at least 0; this is -1."),
    ({"redirects": True}, "redirects", "This has to be a whole number; this is true."),
    ({"verify_tls": None}, "verify_tls", "This has to be true or false; this is null."),
    ({"verify_tls": False}, "verify_tls", "ZEROCRON_ALLOW_INSECURE_TLS"),
    ({"sign": 1}, "sign", "This has to be true or false; this is a number."),
    ({"sign": True}, "sign", "There is no signing key yet."),
    ({"retry": {"jitter": "half"}}, "retry.jitter", "This has to be 'none' or 'full'; this is 'half'."),
    ({"disable_after": -1}, "disable_after", "This has to be at least 0; this is -1."),
    ({"disable_after": 1_001}, "disable_after", "This has to be at most 1,000; this is 1,001."),
    # notify, tags
    ({"notify": {"email": "a@b"}}, "notify.email", "There is no such field. Leave it out."),
    ({"notify": {"on": ["recovered"]}}, "notify.on", "'recovered' is told only after 'failed' was"),
    ({"notify": {"after_failures": 3, "out_of": 2}}, "notify.out_of", "at least as many"),
    ({"notify": {"remind_every": 10}}, "notify.remind_every", "300"),
    ({"notify": {"channels": ["pager"]}}, "notify.channels", "by its id"),
    ({"notify": {"channels": [NOWHERE]}}, "notify.channels", "There is no channel"),
    ({"tags": ["a"] * 21}, "tags", "At most 20 items; these are 21."),
    ({"tags": [""]}, "tags.0", "This cannot be empty."),
    ({"tags": ["ok", "a" * 51]}, "tags.1", "At most 50 characters; this has 51."),
    ({"tags": ["a\tb"]}, "tags.0", "control characters"),
    ({"tags": [1]}, "tags.0", "This has to be text; this is a number."),
    ({"tags": "demo"}, "tags", "This has to be a list; this is text."),
    # what a client must not set (mass assignment)
    *(
        ({name: "x"}, name, "There is no such field. Leave it out.")
        for name in ("id", "team_id", "version", "status", "next_run_at", "state", "stats", "created_at", "cursor")
    ),
]


IDS = [f"{field}-{n}" for n, (_, field, _) in enumerate(REFUSED)]


@pytest.mark.parametrize(("fields", "field", "words"), REFUSED, ids=IDS)
async def test_a_bound_that_is_not_kept(api: Client, fields: dict[str, Any], field: str, words: str) -> None:
    created = await api("POST", "/v1/jobs", JOB | fields)

    assert words in created.problem(422, field)
    assert (await api.get("/v1/jobs"))["items"] == []


@pytest.mark.parametrize(("fields", "field", "words"), REFUSED, ids=IDS)
async def test_an_edit_keeps_the_same_bounds(api: Client, fields: dict[str, Any], field: str, words: str) -> None:
    job = await api.job()

    changed = await api("PATCH", f"/v1/jobs/{job['id']}", fields)

    assert words in changed.problem(422, field)
    assert await api.get(f"/v1/jobs/{job['id']}") == job


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "a" * 200},
        {"name": "é"},
        {"schedule": "*/5 * * * * *"},
        {"schedule": "tous les jours à 9h", "language": "fr"},
        {"dst": "skip", "timezone": "Europe/Paris", "schedule": "30 2 * * *"},
        {"day_match": "both", "schedule": "0 0 13 * 5"},
        {"schedule": "every 90 minutes"},
        {"schedule": "0 0 29 2 *"},
        {"schedule": "2450-01-01 09:00"},
        {"schedule": "@daily"},
        {"schedule": "0 0 12 1 1 ? 2400"},
        {"timezone": "America/Argentina/ComodRivadavia"},
        {"url": LONG_URL[:-1]},
        {"url": "https://[2001:db8::1]:65535/?q=%00#x"},
        {"method": "A" * 32},
        {"method": "PURGE"},
        {"headers": {f"X-{n}": "v" for n in range(50)}},
        {"headers": {"A" * 256: "b" * 8_192}},
        {"headers": {"X-A": "", "X-B": "caf\xe9"}},
        {"body": ""},
        {"body": []},
        {"body": {}},
        {"body": None},
        {"timeout": 1},
        {"timeout": 900},
        {"timeout": 1.5},
        {"retry": {}},
        {"retry": {"attempts": 10, "delay": 86_400, "backoff": "linear"}},
        {"retry": {"delay": 0}},
        {"catchup_window": 0},
        {"success": {"status": ["2XX", "404", "300-399"], "body_contains": "ok", "body_not_contains": None}},
        {"notify": {}},
        {"notify": {"after_failures": 100, "out_of": 100, "remind_every": 604_800, "late_after": 86_400}},
        {"notify": {"channels": [], "on": []}},
        {"tags": []},
        {"tags": ["a" * 50, "b"]},
    ],
)
async def test_what_is_just_within_the_bounds(api: Client, fields: dict[str, Any]) -> None:
    made = await api.job(**fields)

    assert await api.get(f"/v1/jobs/{made['id']}") == made
    changed = await api("PATCH", f"/v1/jobs/{made['id']}", fields)
    assert changed.status == 200
    for name, value in fields.items():
        if name not in ("body", "retry", "success", "notify"):
            assert changed.json[name] == value


async def test_all_faults_are_told_at_once(api: Client) -> None:
    answer = await api("POST", "/v1/jobs", {"name": "", "timeout": 0, "retry": {"attempts": 0}, "colour": "red"})

    fields = [fault["field"] for fault in answer.json["errors"]]
    assert fields == ["name", "schedule", "url", "timeout", "retry.attempts", "colour"]
    assert answer.problem(422, "url") == "This field is needed."


async def test_a_schedule_that_almost_works_comes_with_a_suggestion(api: Client) -> None:
    answer = await api("POST", "/v1/jobs", JOB | {"schedule": "0 0 31 2 *"})

    (suggestion,) = answer.json["suggestions"]
    assert (await api.job(schedule=suggestion))["schedule_cron"] == suggestion


async def test_a_strategy_we_do_not_know_is_a_warning(api: Client) -> None:
    made = await api.job(retry={"attempts": 2, "backoff": "fibonacci"})

    assert made["retry"]["backoff"] == "fibonacci"
    assert any("fibonacci" in warning for warning in made["warnings"])


@pytest.mark.parametrize(
    "name",
    ["name", "schedule", "url", "timezone", "method", "headers", "timeout", "retry", "overlap", "catchup", "tags"],
)
async def test_null_takes_nothing_away_from_a_job(api: Client, name: str) -> None:
    job = await api.job()

    assert "this is null" in (await api("PATCH", f"/v1/jobs/{job['id']}", {name: None})).problem(422, name)
