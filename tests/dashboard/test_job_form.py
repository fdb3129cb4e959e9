"""Making and editing a job: what is sent, what is shown, and that nothing typed is lost."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from tests.dashboard.support import HOSTILE, Pages

from zerocron.core.understanding import understand
from zerocron.dashboard.forms import FORM_BYTES_MAX
from zerocron.dashboard.job_draft import DEFAULTS, Draft
from zerocron.dashboard.specimens.job_form import CHANNELS, JOB, JOB_ID, PREVIEW, SECRETS, TRIED, typed
from zerocron.dashboard.specimens.kinds import SESSION, session
from zerocron.dashboard.words import LANGUAGES, words_of

OFFERED = {"GET /v1/channels": CHANNELS, "GET /v1/secrets": SECRETS, "POST /v1/schedules/preview": PREVIEW}
EDITED = {**OFFERED, f"GET /v1/jobs/{JOB_ID}": JOB, f"PATCH /v1/jobs/{JOB_ID}": JOB}
NEW = {**DEFAULTS, "name": "Order flour", "schedule": "every weekday at 9am", "url": "https://mill.example.com/orders"}


def refusal(*errors: tuple[str, str], status: int = 422, **more: Any) -> tuple[int, dict[str, Any]]:
    told = [{"field": field, "message": message} for field, message in errors]
    return status, {"title": "No", "status": status, "detail": "It cannot be so.", "errors": told, **more}


def value_of(text: str, name: str) -> str:
    """What the input of that name holds."""
    found = re.search(rf'<input[^>]*name="{re.escape(name)}"[^>]*>', text)
    assert found is not None, name
    value = re.search(r'value="([^"]*)"', found[0])
    assert value is not None, name
    return html.unescape(value[1])


def error_of(text: str, place: str) -> str:
    """The words beside an input, which has to refer to them."""
    found = re.search(rf'id="{re.escape(place)}-error">([^<]*)<', text)
    assert found is not None, place
    assert re.search(rf'aria-invalid="true"[^>]*aria-describedby="[^"]*{re.escape(place)}-error"', text), place
    return html.unescape(found[1])


# --- a new job


async def test_a_new_job_is_sent_as_what_was_said_and_nothing_else() -> None:
    pages = Pages.over({**OFFERED, "POST /v1/jobs": (201, JOB)})
    answer = await pages.post("/jobs/new", typed(NEW))
    assert (answer.status, answer.headers["location"]) == (303, f"/jobs/{JOB_ID}?done=created")
    assert pages.api.bodies("POST", "/v1/jobs") == [
        {name: NEW[name] for name in ("name", "schedule", "url")} | {"language": "en"}
    ]


async def test_all_that_was_said_is_sent_in_the_shape_of_the_api() -> None:
    pages = Pages.over({**OFFERED, "POST /v1/jobs": (201, JOB)})
    await pages.post("/jobs/new", typed(JOB))
    (sent,) = pages.api.bodies("POST", "/v1/jobs")
    assert sent == {
        "name": "Order flour",
        "schedule": "every weekday at 9am",
        "timezone": "Europe/Paris",
        "language": "en",
        "url": "https://mill.example.com/orders",
        "method": "POST",
        "headers": JOB["headers"],
        "body": JOB["body"],
        "retry": {"attempts": 5, "delay": 10},
        "overlap": "queue",
        "success": {
            "status": ["2xx", "409"],
            "json": [{"path": "$.order.state", "equals": "accepted"}],
            "max_duration_ms": 2_000,
        },
        "notify": {
            "channels": [CHANNELS["items"][0]["id"]],
            "after_failures": 3,
            "out_of": 5,
            "remind_every": 14_400,
        },
        "tags": ["purchasing", "mill"],
    }


async def test_a_form_of_the_page_itself_makes_the_same_job() -> None:
    """Every input of the page is one that the view reads: a browser sends what the page has."""
    pages = Pages.over({**EDITED, "POST /v1/jobs": (201, JOB)})
    text = (await pages.get(f"/jobs/{JOB_ID}/edit")).html
    names = set(re.findall(r'<(?:input|select|textarea)[^>]* name="([^"]+)"', text))
    groups = {
        f"{group}.{part}" for group in ("headers", "success.headers", "success.json") for part in ("name", "value")
    }
    assert names - {"team_id"} == {
        *Draft.of_job(JOB).texts,
        *groups,
        "notify.told",
        "notify.channels",
        "notify.on",
        "seen",
        "copied",
    }


async def test_what_the_api_refuses_is_told_beside_its_field_and_all_that_was_typed_is_kept() -> None:
    errors = [
        ("url", "No scheme."),
        ("retry.attempts", "At most 10."),
        ("headers.X Team", "No blanks."),
        ("success.status.0", "No such status."),
        ("success.json.0.path", "No path."),
        ("tags.1", "Too long."),
        ("language", "Unknown."),
    ]
    pages = Pages.over({**OFFERED, "POST /v1/jobs": refusal(*errors)})
    job = {**JOB, "headers": {"X-A": "1", "X Team": HOSTILE}}
    answer = await pages.post("/jobs/new", typed(job, ("notify.on", "late"), **{"retry.attempts": "50"}))
    assert answer.status == 422
    places = ["url", "retry.attempts", "headers.1", "success.status", "success.json.0", "tags"]
    assert [error_of(answer.html, place) for place in places] == [message for _, message in errors[:-1]]
    assert "<code>language</code>: Unknown." in answer.html  # it has no input, so it is told above
    assert "<code>url</code>" not in answer.html
    assert value_of(answer.html, "retry.attempts") == "50"
    assert html.escape(HOSTILE, quote=False)[:12] in answer.html
    for section in ("request", "retry", "success", "tags", "collide", "notify"):
        assert re.search(rf'id="section-{section}" open', answer.html), section


async def test_sections_are_folded_while_they_say_nothing() -> None:
    text = (await Pages.over(OFFERED).get("/jobs/new")).html
    assert " open>" not in text
    assert value_of(text, "timezone") == SESSION["person"]["timezone"]


async def test_a_header_that_is_there_twice_is_no_dictionary() -> None:
    pages = Pages.over(OFFERED)
    pair = [("headers.name", "A"), ("headers.value", "1")]
    answer = await pages.post("/jobs/new", [*typed(NEW), *pair, *pair])
    assert answer.status == 422
    assert "twice" in error_of(answer.html, "headers.1")
    assert pages.api.bodies("POST", "/v1/jobs") == []


async def test_some_channels_and_none_chosen_is_not_nobody() -> None:
    pages = Pages.over({**OFFERED, "POST /v1/jobs": (201, JOB)})
    answer = await pages.post("/jobs/new", typed(NEW, **{"notify.told": "some"}))
    assert answer.status == 422
    assert 'id="notify.channels-error"' in answer.html
    await pages.post("/jobs/new", typed(NEW, **{"notify.told": "none"}))
    assert [sent["notify"] for sent in pages.api.bodies("POST", "/v1/jobs")] == [{"channels": []}]


async def test_who_may_not_write_gets_no_form() -> None:
    pages = Pages.over({**EDITED, "GET /v1/session": session(permissions=["read"])})
    for path in ("/jobs/new", f"/jobs/{JOB_ID}/edit"):
        answer = await pages.get(path)
        assert answer.status == 403
        assert "<form id=" not in answer.html


async def test_a_refusal_for_want_of_a_right_is_no_fault_of_a_field() -> None:
    pages = Pages.over(
        {**OFFERED, "POST /v1/jobs": (401, {"title": "Unauthorized", "status": 401, "detail": "Sign in."})}
    )
    answer = await pages.post("/jobs/new", typed(NEW))
    assert (answer.status, answer.headers["location"]) == (303, "/sign-in")


async def test_a_copy_is_as_its_original_and_not_saved() -> None:
    pages = Pages.over({**EDITED, "POST /v1/jobs": (201, JOB)})
    text = (await pages.get(f"/jobs/new?clone={JOB_ID}")).html
    assert value_of(text, "name") == "Copy of Order flour"
    assert value_of(text, "retry.attempts") == "5"
    assert value_of(text, "seen") == ""
    assert [each.method for each in pages.api.asked if each.path.startswith("/v1/jobs")] == ["GET"]


@pytest.mark.parametrize("original", ["../api-keys", "a/b", "%2e%2e%2fapi-keys", "é"])
async def test_an_id_is_never_more_than_one_part_of_a_path(original: str) -> None:
    pages = Pages.over(OFFERED)
    assert (await pages.get(f"/jobs/new?clone={original}")).status == 404
    assert all(re.fullmatch(r"/v1/(session|jobs/[^/]+)", each.path) for each in pages.api.asked)


async def test_a_curl_command_fills_the_request_and_leaves_the_rest() -> None:
    found = {
        "url": "https://a.example/x",
        "method": "PUT",
        "headers": {"X-A": "1"},
        "body": None,
        "timeout": 5.0,
        "redirects": 3,
        "verify_tls": False,
        "warnings": ["--compressed?"],
    }
    pages = Pages.over({**OFFERED, "POST /v1/requests/curl": found})
    answer = await pages.post("/jobs/new", typed(NEW, ("do", "curl"), ("curl", "curl -k\r\n 'x'")))
    assert pages.api.bodies("POST", "/v1/requests/curl") == [{"command": "curl -k\n 'x'"}]
    assert value_of(answer.html, "url") == "https://a.example/x"
    assert value_of(answer.html, "headers.name") == "X-A"
    assert value_of(answer.html, "name") == "Order flour"
    assert (value_of(answer.html, "timeout"), value_of(answer.html, "redirects")) == ("5 s", "3")
    assert not re.search(r'<input[^>]*name="verify_tls"[^>]* checked', answer.html)
    assert "--compressed?" in answer.html
    assert pages.api.bodies("POST", "/v1/jobs") == []


async def test_a_curl_command_that_cannot_be_read_is_kept() -> None:
    pages = Pages.over({**OFFERED, "POST /v1/requests/curl": refusal(("command", "No URL is in it."))})
    answer = await pages.post("/jobs/new", typed(NEW, ("do", "curl"), ("curl", HOSTILE)))
    assert error_of(answer.html, "curl") == "No URL is in it."
    assert html.escape(HOSTILE).replace("&#x27;", "&#39;").replace("&quot;", "&#34;") in answer.html


# --- an old job


async def test_an_edit_sends_what_was_changed_and_nothing_else() -> None:
    pages = Pages.over(EDITED)
    answer = await pages.post(
        f"/jobs/{JOB_ID}/edit", typed(JOB, name="Order rye", **{"retry.attempts": "3", "success.max_duration_ms": ""})
    )
    assert (answer.status, answer.headers["location"]) == (303, f"/jobs/{JOB_ID}?done=saved")
    assert pages.api.bodies("PATCH", f"/v1/jobs/{JOB_ID}") == [
        {"name": "Order rye", "retry": {"attempts": 3}, "success": {"max_duration_ms": None}}
    ]


async def test_a_new_schedule_goes_with_the_language_that_it_was_shown_in() -> None:
    pages = Pages.over(EDITED)
    await pages.post(f"/jobs/{JOB_ID}/edit", typed(JOB, schedule="every day at 8am"))
    assert pages.api.bodies("PATCH", f"/v1/jobs/{JOB_ID}") == [{"schedule": "every day at 8am", "language": "en"}]


async def test_saving_what_is_as_it_was_changes_nothing() -> None:
    pages = Pages.over(EDITED)
    answer = await pages.post(f"/jobs/{JOB_ID}/edit", typed(JOB))
    assert answer.status == 303
    assert pages.api.bodies("PATCH", f"/v1/jobs/{JOB_ID}") == []


async def test_what_somebody_else_changed_meanwhile_is_told_before_it_is_overwritten() -> None:
    theirs = {**JOB, "schedule": "every day at 8am", "version": 4}
    pages = Pages.over({**EDITED, f"GET /v1/jobs/{JOB_ID}": theirs})
    first = await pages.post(f"/jobs/{JOB_ID}/edit", typed(JOB, name="Order rye"))
    assert first.status == 409
    assert pages.api.bodies("PATCH", f"/v1/jobs/{JOB_ID}") == []
    assert re.findall(r"<strong>(\w+)</strong>", first.html) == ["Name", "Schedule"]
    assert value_of(first.html, "name") == "Order rye"
    again = typed(JOB, name="Order rye", seen=value_of(first.html, "seen"))
    assert (await pages.post(f"/jobs/{JOB_ID}/edit", again)).status == 303
    assert pages.api.bodies("PATCH", f"/v1/jobs/{JOB_ID}") == [
        {"name": "Order rye", "schedule": "every weekday at 9am", "language": "en"}
    ]


async def test_a_conflict_that_the_api_found_keeps_what_was_typed() -> None:
    pages = Pages.over({**EDITED, f"PATCH /v1/jobs/{JOB_ID}": refusal(status=409)})
    answer = await pages.post(f"/jobs/{JOB_ID}/edit", typed(JOB, name="Order rye"))
    assert answer.status == 409
    assert "It cannot be so." in answer.html
    assert value_of(answer.html, "name") == "Order rye"


# --- before anything is saved


async def test_a_schedule_is_shown_as_one_types_in_the_language_and_zone_of_the_reader() -> None:
    french = {**SESSION, "person": {**SESSION["person"], "language": "fr", "timezone": "Asia/Tokyo"}}
    pages = Pages.over({**OFFERED, "GET /v1/session": french})
    answer = await pages.post("/jobs/new/preview", typed(NEW, timezone="Europe/Paris"), is_fragment=True)
    assert pages.api.bodies("POST", "/v1/schedules/preview") == [
        {
            "schedule": "every weekday at 9am",
            "timezone": "Europe/Paris",
            "dst": "run_once",
            "day_match": "either",
            "language": "fr",
        }
    ]
    assert "<html" not in answer.html
    assert "jeu. 11 mars 2027" in answer.html
    assert ">09:00<" in answer.html
    assert "17:00 JST" in answer.html


async def test_an_interval_that_is_saved_shows_its_own_next_time() -> None:
    """Read anew, it would count from now."""
    job = {**JOB, "schedule": "every 90 minutes", "schedule_kind": "interval", "schedule_cron": None}
    job |= {"description": "every 90 minutes", "next_run_at": "2027-03-10T15:12:00Z"}
    pages = Pages.over({**EDITED, f"GET /v1/jobs/{JOB_ID}": job})
    text = (await pages.get(f"/jobs/{JOB_ID}/edit")).html
    assert 'datetime="2027-03-10T15:12:00Z"' in text
    assert pages.api.bodies("POST", "/v1/schedules/preview") == []
    await pages.post(f"/jobs/{JOB_ID}/edit", typed(job, ("do", "preview"), schedule="every 2 hours"))
    assert len(pages.api.bodies("POST", "/v1/schedules/preview")) == 1


async def test_utc_is_nobodys_choice_so_the_text_may_name_a_zone() -> None:
    pages = Pages.over(OFFERED)
    await pages.post("/jobs/new/preview", typed(NEW, timezone="UTC"))
    assert "timezone" not in pages.api.bodies("POST", "/v1/schedules/preview")[0]


async def test_a_refused_schedule_comes_with_suggestions_that_fill_the_field() -> None:
    pages = Pages.over(
        {**OFFERED, "POST /v1/schedules/preview": refusal(("schedule", "No."), suggestions=[HOSTILE, "@daily"])}
    )
    answer = await pages.post("/jobs/new", typed(NEW, ("do", "preview")))
    assert answer.status == 200
    assert '<button class="chip" name="use.schedule" value="@daily"' in answer.html
    await pages.post("/jobs/new", typed(NEW, ("use.schedule", "@daily")))
    assert pages.api.bodies("POST", "/v1/schedules/preview")[-1]["schedule"] == "@daily"
    assert "<script>alert" not in answer.html
    assert pages.api.bodies("POST", "/v1/jobs") == []


async def test_a_suggestion_about_the_zone_fills_the_zone() -> None:
    pages = Pages.over(
        {**OFFERED, "POST /v1/schedules/preview": refusal(("timezone", "No."), suggestions=["Asia/Tokyo"])}
    )
    answer = await pages.post("/jobs/new/preview", typed(NEW))
    assert 'name="use.timezone" value="Asia/Tokyo"' in answer.html


async def test_policies_about_days_and_clocks_are_asked_where_they_matter() -> None:
    change = {"at": "2027-03-28T01:00:00Z", "kind": "gap", "effect": "There is no 02:30."}
    matters = {**PREVIEW, "schedule_cron": "30 2 13 * 5", "clock_changes": [change]}
    plain = (await Pages.over(OFFERED).post("/jobs/new/preview", typed(NEW))).html
    asked = (
        await Pages.over({**OFFERED, "POST /v1/schedules/preview": matters}).post("/jobs/new/preview", typed(NEW))
    ).html
    for name in ("dst", "day_match"):
        assert f'<input type="hidden" name="{name}"' in plain
        assert f'<select id="{name}"' in asked
    kept = (await Pages.over(OFFERED).post("/jobs/new/preview", typed(NEW, dst="skip", day_match="both"))).html
    assert kept.count("<select") == 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_examples_of_a_language_are_schedules_in_it(language: str) -> None:
    for text in ("every weekday at 9am", "every 15 minutes", "on the 1st at 8am"):
        understood = understand(words_of(language).gettext(text), now=0, language=language)
        assert (understood.language, understood.warnings) == (language, ())


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"retry.attempts": "4"}, "5 s, 10 s, 20 s between its attempts: 35 s in all"),
        ({"retry.attempts": "4", "retry.jitter": "full"}, "a random part"),
        ({"retry.attempts": "2", "retry.delay": "1 min"}, "It waits 1 min before"),
        ({"retry.attempts": "3", "retry.backoff": "linear"}, "5 s, 10 s between"),
        ({}, "is not tried again"),
        ({"retry.attempts": "many"}, "once the numbers can be read"),
        ({"retry.attempts": "1000000"}, "once the numbers can be read"),
    ],
)
async def test_the_waits_of_retries_are_shown(fields: dict[str, str], words: str) -> None:
    answer = await Pages.over({}).post("/jobs/new/waits", typed(NEW, **fields))
    assert answer.status == 200
    assert words in answer.html


async def test_the_request_is_sent_once_with_what_it_needs() -> None:
    pages = Pages.over({**OFFERED, "POST /v1/requests/try": TRIED})
    answer = await pages.post("/jobs/new", typed(JOB, ("do", "try")))
    (sent,) = pages.api.bodies("POST", "/v1/requests/try")
    assert set(sent) == {"url", "method", "headers", "body", "success"}
    assert pages.api.bodies("POST", "/v1/jobs") == []
    assert "422 Unprocessable" in answer.html
    assert "kilograms is missing" in answer.html
    assert value_of(answer.html, "name") == "Order flour"


async def test_why_nothing_was_sent_is_told_where_the_answer_would_be() -> None:
    pages = Pages.over({**OFFERED, "POST /v1/requests/try": refusal(("url", "Not this host."))})
    answer = await pages.post("/jobs/new/try", typed(NEW), is_fragment=True)
    assert answer.status == 200
    assert "Not this host." in answer.html
    assert "<html" not in answer.html


async def test_rows_can_be_added_without_scripts() -> None:
    pages = Pages.over(OFFERED)
    first = (await pages.get("/jobs/new")).html
    more = (await pages.post("/jobs/new", typed(NEW, ("do", "row headers")))).html
    assert (first.count('name="headers.name"'), more.count('name="headers.name"')) == (1, 3)
    assert 'id="section-request" open' in more


async def test_nothing_that_somebody_typed_becomes_markup() -> None:
    texts = {name: HOSTILE for name in Draft.of_job(JOB).texts if name not in ("sign", "verify_tls")}
    job = {**JOB, "headers": {HOSTILE: HOSTILE}, "tags": [HOSTILE]}
    secret = {**SECRETS["items"][0], "name": HOSTILE}
    channel = {**CHANNELS["items"][0], "name": HOSTILE, "destination": HOSTILE, "kind": HOSTILE}
    offered = {"GET /v1/channels": {"items": [channel], "next_cursor": None}, "GET /v1/secrets": {"items": [secret]}}
    told = {**PREVIEW, "description": HOSTILE, "schedule_cron": HOSTILE, "timezone": HOSTILE, "warnings": [HOSTILE]}
    answers = {
        **offered,
        "POST /v1/schedules/preview": told,
        f"GET /v1/jobs/{JOB_ID}": {**job, "name": HOSTILE},
        "POST /v1/jobs": refusal((HOSTILE, HOSTILE), ("headers." + HOSTILE, HOSTILE), suggestions=[HOSTILE]),
    }
    pages = Pages.over(answers)
    copied = [("copied", HOSTILE), ("curl", HOSTILE)]
    for answer in (
        await pages.get(f"/jobs/{JOB_ID}/edit"),
        await pages.get(f"/jobs/new?clone={JOB_ID}"),
        await pages.post("/jobs/new", typed(job, *copied, **texts)),
    ):
        assert "alert(1)" in answer.html
        assert "<script>alert" not in answer.html
        assert not re.search(r'="[^"]*<script', answer.html)
        assert "{{7*7}}" in answer.html


@pytest.mark.parametrize("path", ["/jobs/new/preview", "/jobs/new/waits"])
async def test_a_part_takes_no_more_than_any_form(path: str) -> None:
    """Scripts send it the few fields that it is about."""
    pages = Pages.over(OFFERED)
    assert (await pages.post_long(path, [("body", "x" * FORM_BYTES_MAX)])).status == 413
    assert pages.api.bodies("POST", "/v1/schedules/preview") == []
    assert (await pages.post_long("/jobs/new/try", [("body", "x" * FORM_BYTES_MAX)])).status == 200
