"""Monitors through the API: what is written, what is shown, and the verbs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.api.support import MONITOR, NOWHERE, Answer, Client, until

from zerocron.api.samples import FLIP, PING
from zerocron.api.samples import MONITOR as SAMPLE


async def ping(api: Client, monitor: dict[str, Any], word: str = "", **given: Any) -> Answer:
    path = f"/v1/ping/{monitor['ping_token']}" + (f"/{word}" if word else "")
    return await api.with_key(None)(given.pop("method", "GET"), path, **given)


async def test_a_new_monitor_waits_for_its_first_ping(api: Client) -> None:
    monitor = await api.monitor(name="nightly", timezone="Europe/Paris", tags=["a", "a", "b"])

    assert monitor.keys() == SAMPLE.keys()
    assert (monitor["status"], monitor["health"], monitor["schedule_kind"]) == ("active", "new", "interval")
    assert (monitor["grace_period_seconds"], monitor["description"]) == (300, "every hour")
    assert monitor["expected_at"] is None
    assert monitor["down_at"] is None
    assert monitor["notify"] == {"channels": None, "on": ["down", "up"], "remind_every": None}
    assert (monitor["tags"], monitor["pings"]) == (["a", "b"], 0)
    assert len(bytes.fromhex(monitor["ping_token"])) == 32
    assert monitor["ping_url"].endswith(f"/v1/ping/{monitor['ping_token']}")
    assert await api.get(f"/v1/monitors/{monitor['id']}") == monitor


async def test_its_first_ping_brings_it_up(api: Client) -> None:
    monitor = await api.monitor(schedule="0 3 * * *")
    answer = await ping(api, monitor)

    assert (answer.status, answer.body) == (200, b"OK\n")
    seen = await api.get(f"/v1/monitors/{monitor['id']}")
    assert (seen["health"], seen["reason"], seen["pings"]) == ("up", "ping", 1)
    assert seen["expected_at"] is not None
    assert seen["expected_at"] < seen["down_at"]
    (flip,) = (await api.get(f"/v1/monitors/{monitor['id']}/flips"))["items"]
    assert flip.keys() == FLIP.keys()
    assert (flip["before"], flip["after"], flip["at"]) == ("new", "up", seen["last_ping_at"])


async def test_the_history_of_a_run(api: Client) -> None:
    monitor = await api.monitor()
    rid = "7b0f3a52-5d6e-4c1a-9c88-2f4b6d8e0a13"
    await ping(api, monitor, "start", query={"rid": rid})
    assert (await api.get(f"/v1/monitors/{monitor['id']}"))["running"] == 1
    await ping(api, monitor, "3", method="POST", body=b"no space left", query={"rid": rid})
    await ping(api, monitor, "log", method="POST", body=b"\xff\x00ok")

    page = await api.get(f"/v1/monitors/{monitor['id']}/pings")
    log, end, start = page["items"]
    assert log.keys() == PING.keys()
    assert (start["kind"], start["rid"], start["duration_ms"]) == ("start", rid, None)
    assert (end["kind"], end["exit_code"], end["body"], end["body_bytes"]) == ("fail", 3, "no space left", 13)
    assert end["duration_ms"] >= 0
    assert log["body"] == "\ufffd\ufffdok"
    seen = await api.get(f"/v1/monitors/{monitor['id']}")
    assert (seen["health"], seen["reason"], seen["running"]) == ("down", "exit_code", 0)
    assert [one["number"] for one in await api.walk(f"/v1/monitors/{monitor['id']}/pings", 2)] == [3, 2, 1]
    fails = await api.get(f"/v1/monitors/{monitor['id']}/pings", kind="fail")
    assert [one["number"] for one in fails["items"]] == [2]
    (flip,) = (await api.get(f"/v1/monitors/{monitor['id']}/flips"))["items"]
    assert (flip["after"], flip["exit_code"]) == ("down", 3)


async def test_an_edit_judges_anew_and_leaves_the_rest(api: Client) -> None:
    monitor = await api.monitor(tags=["x"])
    await ping(api, monitor)
    edited = (await api("PATCH", f"/v1/monitors/{monitor['id']}", {"grace_period_seconds": 60, "post_only": True})).json

    assert (edited["grace_period_seconds"], edited["post_only"], edited["tags"]) == (60, True, ["x"])
    assert edited["version"] == 2
    assert edited["health"] == "up"
    same = (await api("PATCH", f"/v1/monitors/{monitor['id']}", {"grace_period_seconds": 60})).json
    assert same["version"] == 2
    again = (await api("PATCH", f"/v1/monitors/{monitor['id']}", {"schedule": "0 3 * * *"})).json
    assert (again["schedule_kind"], again["ping_token"]) == ("cron", monitor["ping_token"])


async def test_pause_resume_and_a_pause_that_ends_itself(api: Client) -> None:
    monitor = await api.monitor()
    path = f"/v1/monitors/{monitor['id']}"
    await ping(api, monitor)
    paused = (await api("POST", f"{path}/pause", {"until": "2999-01-01T00:00:00Z"})).problem(422, "until")
    assert "still to come" in paused
    assert (await api.post(f"{path}/pause"))["status"] == "paused"
    assert (await api.post(f"{path}/pause"))["status"] == "paused"
    # hb-040: an edit of the name does not resume
    assert (await api("PATCH", path, {"name": "other"})).json["status"] == "paused"
    # hb-041: a failure of a paused monitor is kept, and that is all
    assert (await ping(api, monitor, "fail")).status == 200
    assert (await api.get(path))["status"] == "paused"
    assert (await api.post(f"{path}/resume"))["health"] == "up"
    flips = (await api.get(f"{path}/flips"))["items"]
    assert [flip["after"] for flip in flips] == ["up", "paused", "up"]
    assert (await api.get(path))["pings"] == 2


async def test_a_rotated_token_opens_nothing_any_more(api: Client) -> None:
    monitor = await api.monitor()
    rotated = await api.post(f"/v1/monitors/{monitor['id']}/rotate-token")

    assert rotated["ping_token"] != monitor["ping_token"]
    assert (await ping(api, monitor)).status == 404
    assert (await ping(api, rotated)).status == 200


async def test_a_deleted_monitor_takes_no_pings(api: Client) -> None:
    monitor = await api.monitor()

    assert (await api("DELETE", f"/v1/monitors/{monitor['id']}")).status == 204
    assert (await ping(api, monitor)).status == 404
    for path in ("", "/pings", "/flips", "/uptime"):
        (await api("GET", f"/v1/monitors/{monitor['id']}{path}")).problem(404)
    (await api("DELETE", f"/v1/monitors/{monitor['id']}")).problem(404)


async def test_another_team_sees_nothing(api: Client, stranger: Client) -> None:
    path = f"/v1/monitors/{(await api.monitor())['id']}"

    for method, rest in (
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("POST", "/pause"),
        ("POST", "/resume"),
        ("POST", "/rotate-token"),
        ("GET", "/pings"),
        ("GET", "/flips"),
        ("GET", "/uptime"),
    ):
        (await stranger(method, path + rest, {} if method == "PATCH" else None)).problem(404)
    assert (await stranger.get("/v1/monitors"))["items"] == []
    (await api("GET", f"/v1/monitors/{NOWHERE}")).problem(404)
    (await api("GET", "/v1/monitors/x")).problem(404)


async def test_lists_find_by_status_health_tag_and_name(api: Client) -> None:
    first = await api.monitor(name="alpha", tags=["one"])
    second = await api.monitor(name="Beta")
    await ping(api, first)
    await api.post(f"/v1/monitors/{second['id']}/pause")

    async def names(**query: Any) -> list[str]:
        return [one["name"] for one in (await api.get("/v1/monitors", **query))["items"]]

    assert await names() == ["Beta", "alpha"]
    assert await names(status="paused") == ["Beta"]
    assert await names(health="up") == ["alpha"]
    assert await names(health="new") == []
    assert await names(tag="one") == ["alpha"]
    assert await names(q="bet") == ["Beta"]
    assert [one["name"] for one in await api.walk("/v1/monitors", 1)] == ["Beta", "alpha"]


async def test_the_same_key_makes_one_monitor(api: Client) -> None:
    headers = {"Idempotency-Key": "m"}
    one = await api("POST", "/v1/monitors", MONITOR, headers=headers)
    two = await api("POST", "/v1/monitors", MONITOR, headers=headers)

    assert (one.status, two.status) == (201, 201)
    assert one.json["id"] == two.json["id"]
    assert two.headers["idempotent-replay"] == "true"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"schedule": "0 0 31 2 *"}, "schedule"),
    ({"schedule": "2001-01-01 00:00"}, "schedule"),
    ({"timezone": "Europe/Nowhere"}, "timezone"),
    ({"grace_period_seconds": -1}, "grace_period_seconds"),
    ({"max_duration_seconds": 5, "min_duration_seconds": 6}, "min_duration_seconds"),
    ({"notify": {"channels": [NOWHERE]}}, "notify.channels"),
    ({"notify": {"on": ["up"]}}, "notify.on"),
    ({"notify": {"after_failures": 2}}, "notify.after_failures"),
    ({"name": " "}, "name"),
    ({"surprise": 1}, "surprise"),
]


@pytest.mark.parametrize(("fields", "field"), REFUSED)
async def test_what_cannot_be_meant_is_refused(api: Client, fields: dict[str, Any], field: str) -> None:
    (await api("POST", "/v1/monitors", MONITOR | fields)).problem(422, field)


async def test_uptime_of_a_monitor_that_began_today(api: Client) -> None:
    monitor = await api.monitor(timezone="Asia/Tokyo")
    await ping(api, monitor)
    answer = await api.get(f"/v1/monitors/{monitor['id']}/uptime", days=7)

    assert answer["timezone"] == "Asia/Tokyo"
    assert 1 <= len(answer["items"]) <= 2
    assert answer["items"][-1]["downs"] == 0
    (today,) = (await api.get(f"/v1/monitors/{monitor['id']}/uptime", days=1))["items"]
    assert today["date"] == answer["items"][-1]["date"]
    assert today["up_seconds"] > 0
    assert (answer["up_ratio"], answer["downs"], answer["down_seconds"]) == (1, 0, 0)


async def test_uptimes_of_several_monitors_are_theirs(api: Client) -> None:
    one = await api.monitor(timezone="Asia/Tokyo")
    other = await api.monitor(name="never heard of")
    await ping(api, one)
    unknown = "01999b6e-0c1d-7a52-9c07-1f6d6f0a4c11"
    found = (await api.get("/v1/monitors/uptimes", ids=f"{other['id']}, {one['id']},{unknown},x", days=7))["items"]

    assert {each["monitor_id"] for each in found} == {one["id"], other["id"]}
    for each in found:
        alone = await api.get(f"/v1/monitors/{each['monitor_id']}/uptime", days=7)
        assert each["timezone"] == alone["timezone"]
        assert each["up_ratio"] == alone["up_ratio"] == (1 if each["monitor_id"] == one["id"] else None)
        assert [day["date"] for day in each["items"]] == [day["date"] for day in alone["items"]]
    assert (await api.get("/v1/monitors/uptimes", ids=""))["items"] == []
    (await api("GET", "/v1/monitors/uptimes?ids=" + ",".join("x" * 101))).problem(422, "ids")


async def test_uptime_of_all_the_days_together(api: Client) -> None:
    monitor = await api.monitor()
    path = f"/v1/monitors/{monitor['id']}/uptime"
    assert (await api.get(path))["up_ratio"] is None
    assert (await api("POST", f"/v1/ping/{monitor['ping_token']}/fail")).status == 200

    async def is_down() -> bool:
        return bool((await api.get(path))["down_seconds"] > 0)

    await until(is_down, "some time down")
    seen = await api.get(path, days=90)
    assert (seen["up_ratio"], seen["downs"]) == (0, 1)
    assert seen["down_seconds"] == sum(day["down_seconds"] for day in seen["items"])
