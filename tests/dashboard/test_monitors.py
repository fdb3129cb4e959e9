"""The pages of monitors: what they ask, what their forms send, and what they keep from whom."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from tests.dashboard.support import Asked, Pages, read

from zerocron.dashboard import gallery
from zerocron.dashboard.asking import call
from zerocron.dashboard.forms import Form
from zerocron.dashboard.reading import length_fields, seconds, tags
from zerocron.dashboard.snippets import snippets
from zerocron.dashboard.specimens.monitors import BACKUP, CHANNELS, EXPORT, PREVIEW, REFUSED, SENSOR, VIEWER

HERE = f"/monitors/{BACKUP['id']}"
API = f"/v1/monitors/{BACKUP['id']}"
SLACK = CHANNELS["items"][0]["id"]
TYPED = [
    ("name", "Nightly backup"),
    ("schedule", "every day at 2am"),
    ("timezone", "Europe/Paris"),
    ("grace_period_seconds", "1.5"),
    ("grace_period_seconds_unit", "h"),
    ("max_duration_seconds", "50"),
    ("max_duration_seconds_unit", "min"),
    ("min_duration_seconds", ""),
    ("min_duration_seconds_unit", "s"),
    ("whom", "some"),
    ("notify.channels", SLACK),
    ("notify.on", "down"),
    ("notify.on", "late"),
    ("notify.remind_every", "1"),
    ("notify.remind_every_unit", "d"),
    ("tags", " prod, backup ,, "),
    ("resume_on_ping", "true"),
    ("dst", "run_once"),
    ("day_match", "both"),
    ("language", ""),
]
SENT = {
    "name": "Nightly backup",
    "schedule": "every day at 2am",
    "timezone": "Europe/Paris",
    "grace_period_seconds": 5400,
    "max_duration_seconds": 3000,
    "min_duration_seconds": None,
    "post_only": False,
    "resume_on_ping": True,
    "notify": {"channels": [SLACK], "on": ["down", "late"], "remind_every": 86_400},
    "tags": ["prod", "backup"],
    "dst": "run_once",
    "day_match": "both",
}


def changed(**fields: str | None) -> list[tuple[str, str]]:
    """What is typed, with some fields otherwise; None leaves one out."""
    kept = [(name, value) for name, value in TYPED if name.replace(".", "_") not in fields]
    return kept + [(name.replace("notify_", "notify."), value) for name, value in fields.items() if value is not None]


async def test_the_list_asks_for_what_was_chosen_and_no_more() -> None:
    pages = Pages.of("monitors")
    await pages.get("/monitors")
    await pages.get("/monitors?q=back&state=down&sort=name&tag=prod")
    await pages.get("/monitors?sort=nonsense")

    asked = [each.query for each in pages.api.questions("/v1/monitors")]
    assert asked == [{}, {"q": "back", "state": "down", "sort": "name", "tag": "prod"}, {}]


async def test_how_a_page_of_monitors_did_is_asked_for_at_once() -> None:
    pages = Pages.of("monitors")
    shown = await pages.get("/monitors?part=rows", is_fragment=True)

    assert [each.path for each in pages.api.asked] == ["/v1/session", "/v1/monitors", "/v1/monitors/uptimes"]
    ids = [each["id"] for each in pages.api.answers["GET /v1/monitors"]["items"]]
    assert pages.api.asked[-1].query == {"ids": ",".join(ids), "days": "30"}
    assert not shown.tree.all("h1")
    down, up = shown.tree.all("svg", class_="uptime-days")[:2]
    assert (down.get("aria-label"), up.get("aria-label")) == ("3 outages", "no outage")
    assert sorted(each.get("class") for each in down.all("path")) == ["day-down", "day-up"]


async def test_a_list_without_monitors_asks_for_no_uptime() -> None:
    pages = Pages.of("monitors-empty")
    await pages.get("/monitors")

    assert not pages.api.questions("/v1/monitors/uptimes")


async def test_a_monitor_that_was_deleted_meanwhile_does_not_spoil_the_list() -> None:
    pages = Pages.of("monitors", **{"GET /v1/monitors/uptimes": {"items": []}})

    assert (await pages.get("/monitors")).status == 200


async def test_the_form_sends_what_was_typed() -> None:
    pages = Pages.over({"POST /v1/monitors": (201, BACKUP)})
    answer = await pages.post("/monitors/new", TYPED)

    assert pages.api.sent() == [Asked("POST", "/v1/monitors", {}, SENT)]
    assert (answer.status, answer.location) == (303, f"{HERE}?done=created")


@pytest.mark.parametrize(
    ("whom", "channels"), [("all", None), ("nobody", []), ("some", [SLACK])], ids=["all", "nobody", "some"]
)
async def test_whom_to_tell(whom: str, channels: list[str] | None) -> None:
    pages = Pages.over({"POST /v1/monitors": (201, BACKUP)})
    await pages.post("/monitors/new", changed(whom=whom))

    assert pages.api.sent()[0].body["notify"]["channels"] == channels


async def test_some_channels_are_at_least_one() -> None:
    """Or an oversight would make a monitor that tells nobody."""
    pages = Pages.over({"POST /v1/monitors": (201, BACKUP), "GET /v1/channels": CHANNELS})
    answer = await pages.post("/monitors/new", changed(notify_channels=None))

    assert (answer.status, pages.api.sent()) == (422, [])
    assert answer.tree.one("span", id="notify.channels-error").text == "Choose at least one channel, or nobody."


async def test_a_refusal_is_beside_the_fields_and_what_was_typed_stays() -> None:
    pages = Pages.over({"POST /v1/monitors": (422, REFUSED), "GET /v1/channels": CHANNELS})
    answer = await pages.post("/monitors/new", changed(grace_period_seconds="soon"))
    form = answer.tree.one("form", id="monitor-form")

    assert answer.status == 422
    schedule = form.one("input", id="schedule")
    assert (schedule.get("aria-invalid"), schedule.get("value")) == ("true", "every day at 2am")
    assert "fortnight" in form.one("span", id="schedule-error").text
    assert form.one("input", id="grace_period_seconds").get("value") == "soon"
    assert sorted(form.typed()) == sorted(changed(grace_period_seconds="soon"))
    assert "every 14 days" in form.one("div", role="alert").text


async def test_the_form_of_a_monitor_left_as_it_is_changes_nothing() -> None:
    for monitor in (
        BACKUP,
        SENSOR,
        {**BACKUP, "post_only": True, "min_duration_seconds": 90, "grace_period_seconds": 0},
    ):
        here = f"/monitors/{monitor['id']}"
        pages = Pages.over({f"GET /v1{here}": monitor, f"PATCH /v1{here}": monitor, "GET /v1/channels": CHANNELS})
        form = (await pages.get(f"{here}/edit")).tree.one("form", id="monitor-form")
        answer = await pages.post(f"{here}/edit", form.fields())

        assert (answer.status, answer.location) == (303, f"{here}?done=saved")
        sent: dict[str, Any] = pages.api.sent()[0].body
        assert sent == {name: monitor[name] for name in sent}
        assert set(SENT) < set(sent)


async def test_a_preview_is_of_what_a_monitor_makes_of_the_words() -> None:
    pages = Pages.over({"POST /v1/schedules/preview": PREVIEW})
    shown = await pages.post("/monitors/preview", TYPED)

    assert pages.api.sent()[0].body == {
        "schedule": "every day at 2am",
        "timezone": "Europe/Paris",
        "language": "en",
        "count": 5,
        "subject": "monitor",
        "dst": "run_once",
        "day_match": "both",
    }
    assert len(shown.tree.all("li")) == 5
    assert "Every day at 02:00" in shown.tree.text


async def test_a_preview_without_scripts_is_the_form_again() -> None:
    pages = Pages.over({"POST /v1/schedules/preview": PREVIEW, "GET /v1/channels": CHANNELS})
    shown = await pages.post("/monitors/new", [*TYPED, ("preview", "1")])

    assert [each.path for each in pages.api.sent()] == ["/v1/schedules/preview"]
    assert "Every day at 02:00" in shown.tree.one("div", id="preview").text
    assert sorted(shown.tree.one("form", id="monitor-form").typed()) == sorted(TYPED)


async def test_a_pause_may_end_by_itself() -> None:
    pages = Pages.over({f"POST {API}/pause": BACKUP})
    await pages.post(f"{HERE}/pause", [("for", "3600")])
    await pages.post(f"{HERE}/pause", [("for", "99999999999")])
    await pages.post(f"{HERE}/pause")

    assert [each.body for each in pages.api.sent()] == [
        {"until": "2027-03-10T15:32:07+00:00"},
        {"until": None},
        {"until": None},
    ]


@pytest.mark.parametrize(
    ("act", "asked", "to"),
    [
        ("resume", f"POST {API}/resume", f"{HERE}?done=resumed"),
        ("rotate", f"POST {API}/rotate-token", f"{HERE}?done=saved"),
        ("delete", f"DELETE {API}", "/monitors?done=deleted"),
    ],
    ids=["resume", "rotate", "delete"],
)
async def test_what_can_be_done_to_a_monitor(act: str, asked: str, to: str) -> None:
    pages = Pages.over({asked: BACKUP, f"GET {API}": BACKUP})
    answer = await pages.post(f"{HERE}/{act}")

    assert [f"{each.method} {each.path}" for each in pages.api.sent()] == [asked]
    assert (answer.status, answer.location) == (303, to)


@pytest.mark.parametrize("act", ["rotate", "delete"])
async def test_what_cannot_be_undone_is_asked_first(act: str) -> None:
    pages = Pages.of("monitor")
    tree = (await pages.get(HERE)).tree

    assert tree.all("a", href=f"{HERE}/{act}")
    assert not tree.all("form", action=f"{HERE}/{act}")
    assert (await pages.get(f"{HERE}/{act}")).tree.all("form", action=f"{HERE}/{act}")


@pytest.mark.parametrize("hidden", [None, ""])
async def test_a_viewer_sees_no_address_and_no_button(hidden: str | None) -> None:
    monitor = {**BACKUP, "ping_token": hidden, "ping_url": hidden}
    pages = Pages.of("monitor-viewer", **{f"GET {API}": monitor})
    shown = await pages.get(HERE)

    assert "/v1/ping/" not in shown.html
    assert [each.get("action") for each in shown.tree.one("main").all("form")] == []
    assert not [each for each in shown.tree.all("a") if each.get("href").endswith(("/edit", "/rotate", "/delete"))]


@pytest.mark.parametrize("path", ["/monitors/new", f"{HERE}/edit", f"{HERE}/rotate", f"{HERE}/delete"])
async def test_who_lacks_the_right_is_told_calmly(path: str) -> None:
    pages = Pages.of("monitor", **{"GET /v1/session": VIEWER})
    shown = await pages.get(path)

    assert shown.status == 403
    assert shown.tree.one("h1").text == "Not yours to change"
    assert [each.path for each in pages.api.asked] == ["/v1/session"]


async def test_uptime_is_what_was_judged() -> None:
    tree = (await Pages.of("monitor").get(HERE)).tree
    figures = [each.text for each in tree.all("div", class_="figure")]
    kinds = [each.get("class") for each in tree.one("svg", class_="days").all("rect")]

    assert figures[0].startswith("100%")
    assert figures[1].startswith("97.53%")
    assert figures[3].endswith("2 outages")
    assert (kinds.count("day-down"), kinds.count("day-up"), len(kinds)) == (2, 88, 90)


async def test_time_that_was_not_judged_counts_as_neither() -> None:
    rows = (await Pages.of("monitors").get("/monitors")).tree.one("tbody", id="rows-1").all("tr")
    told = {row.one("a", class_="name").text: row.all("td")[-1].text for row in rows}

    assert told["Old mail gateway"] == "100%"  # known for 12 of 30 days
    assert told["Invoice run"] == "no data yet"


@pytest.mark.parametrize(("part", "asked"), [("standing", 2), ("history", 5)])
async def test_parts_of_a_page_refresh_themselves(part: str, asked: int) -> None:
    pages = Pages.of("monitor-down")
    whole = (await pages.get(f"/monitors/{EXPORT['id']}")).tree.one("div", id=part)
    pages.api.asked.clear()
    shown = await pages.get(whole.get("hx-get"), is_fragment=True)

    assert shown.tree.one("div", id=part).text == whole.text
    assert len(pages.api.asked) == asked


@pytest.mark.parametrize(
    ("typed", "unit", "read"),
    [
        ("", "min", None),
        ("5", "min", 300),
        ("1.5", "h", 5400),
        ("1,5", "h", 5400),
        ("0", "d", 0),
        ("5", "fortnight", 5),
        ("soon", "s", "soon"),
        ("nan", "s", "nan"),
        ("1e999", "s", "1e999"),
    ],
)
def test_a_length_is_read_or_left_to_the_api(typed: str, unit: str, read: int | str | None) -> None:
    assert seconds(Form([("grace", typed), ("grace_unit", unit)]), "grace") == read


@pytest.mark.parametrize("length", [None, 0, 1, 59, 60, 90, 3_600, 5_400, 86_400, 31_622_400])
def test_a_length_comes_back_as_it_was(length: int | None) -> None:
    assert seconds(Form(list(length_fields("grace", length).items())), "grace") == length


def test_tags_are_words_with_commas_between() -> None:
    assert tags(Form([("tags", " a b,, c ,")])) == ["a b", "c"]


@pytest.mark.parametrize("post_only", [False, True])
def test_snippets_are_code_that_can_be_read(post_only: bool) -> None:
    url = "https://cron.example.com/v1/ping/" + "0f" * 32
    made = {each.key: each.text for each in snippets(url, cron="0 2 * * *", post_only=post_only)}

    compile(made["python"], "job.py", "exec")
    for shell in (made["curl"], made["shell"]):
        subprocess.run(["/bin/sh", "-n"], input=shell.encode(), check=True, timeout=10)
    assert all(url in text for key, text in made.items() if key != "github")
    assert made["crontab"].startswith("0 2 * * *  ")
    assert all("POST" in made[key] or 'data=b""' in made[key] for key in made if key != "exec") is post_only


def test_a_crontab_gets_five_fields() -> None:
    for cron in (None, "*/5 * * * * *", "0 0 1 1 * * 2027"):
        assert snippets("u", cron=cron, post_only=False)[1].text.startswith("30 2 * * *  ")


async def test_a_specimen_can_be_seen_in_every_language() -> None:
    for language, title in (("en", "Monitors"), ("fr", "Moniteurs"), ("es", "Monitores")):
        page = f"/-/specimens/monitors?language={language}"
        scope = {"type": "http", "method": "GET", "path": page.partition("?")[0], "raw_path": b"", "root_path": ""}
        query = page.partition("?")[2].encode()
        answer = await call(gallery.application(), {**scope, "query_string": query, "headers": []}, b"")

        assert read(answer.content.decode()).one("h1").text == title
