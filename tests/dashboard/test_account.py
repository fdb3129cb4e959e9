"""What a person changes about themselves: what is sent for it, and what is shown but once."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.dashboard.support import Element, Pages

from zerocron.dashboard.specimens.account import CODES, ELEVATED, ENROLMENT, IDENTITIES, SIGN_INS, WAYS_IN
from zerocron.dashboard.specimens.kinds import SESSION, session
from zerocron.dashboard.views.account import browser_of

LINKED = {"GET /v1/me/identities": IDENTITIES, "GET /v1/sign-in": WAYS_IN}
ACCOUNT = {**LINKED, "GET /v1/me/sign-ins": SIGN_INS}
PLAIN = session(
    person={**SESSION["person"], "has_password": False, "has_totp": False}, elevated_until="2027-03-10T14:41:00Z"
)
WRONG = (401, {"title": "Unauthorized", "detail": "No."})


def form_of(tree: Element, action: str) -> Element:
    return next(each for each in tree.all("form") if each.get("action") == action)


async def test_a_person_is_saved_as_they_are_shown() -> None:
    site = Pages.over({**ACCOUNT, "PATCH /v1/me": SESSION["person"]})
    fields = form_of((await site.get("/account")).tree, "/account").fields()

    answer = await site.post("/account", fields)

    assert answer.location == "/account?done=saved"
    assert [each.body for each in site.api.sent()] == [
        {"name": "Ada Moreau", "language": "en", "timezone": "Europe/Paris"}
    ]


async def test_a_theme_is_a_matter_of_the_browser() -> None:
    site = Pages.over({**ACCOUNT, "PATCH /v1/me": SESSION["person"]})

    answer = await site.post("/account", [("name", "Ada"), ("theme", "dark"), ("language", "fr"), ("timezone", "UTC")])

    assert site.api.sent()[0].body == {"name": "Ada", "language": "fr", "timezone": "UTC"}
    assert "0cron-language=fr" in answer.headers["set-cookie"]  # the last of two


async def test_what_was_wrong_is_beside_its_field_and_what_was_typed_is_kept() -> None:
    answer = await Pages.of("account-refused").specimen("account-refused")

    assert answer.status == 422
    tree = answer.tree
    assert tree.one("input", name="timezone").get("value") == "Europe/Pariss"
    assert "no time zone" in tree.one(id="timezone-error").text
    assert tree.one("input", name="name").get("value") == "Ada"


async def test_the_password_of_now_is_the_proof_and_is_asked_for_once() -> None:
    site = Pages.over({"POST /v1/session/elevate": SESSION, "PUT /v1/me/password": (204, None)})

    answer = await site.post("/account/password", [("current_password", " old one "), ("new_password", "new words")])

    assert answer.location == "/account?done=password_changed"
    proof, change = site.api.sent()
    assert proof.body == {"password": " old one ", "code": None}
    assert change.body == {"current_password": " old one ", "new_password": "new words"}


async def test_a_wrong_password_of_now_changes_nothing_and_is_not_shown() -> None:
    site = Pages.over({"POST /v1/session/elevate": WRONG})

    answer = await site.post("/account/password", [("current_password", "guess-4711"), ("new_password", "new-4711")])

    assert answer.status == 422
    assert "password of now" in answer.tree.one(id="current_password-error").text
    assert "4711" not in answer.html
    assert [each.path for each in site.api.sent()] == ["/v1/session/elevate"]


async def test_who_has_no_password_sets_one() -> None:
    site = Pages.over({"GET /v1/session": PLAIN, "PUT /v1/me/password": (204, None)})
    assert (await site.get("/account/password")).tree.all("input", name="current_password") == []

    await site.post("/account/password", [("current_password", "x"), ("new_password", "new words")])

    assert [each.body for each in site.api.sent()] == [{"current_password": None, "new_password": "new words"}]


async def test_who_has_no_password_proves_who_they_are_before_they_type_one() -> None:
    person = {**SESSION["person"], "has_password": False, "has_totp": False}
    site = Pages.over({"GET /v1/session": session(person=person, method="oidc")})
    asked = await site.get("/account/password")
    assert asked.status == 403
    way = "/auth/oidc/start?prove=true&next=%2Faccount%2Fpassword"
    asked.tree.one("a", href=way)
    told = (await site.get("/confirm?refused=no_proof&next=/account/password")).tree
    assert "it proves nothing" in told.one(role="alert").text
    assert (told.one("a", href=way).text, told.one("a", href="/reset").text) == (
        "Sign in again",
        "Get a link that sets a password",
    )
    assert told.all("form", action="/confirm") == []


async def test_who_one_is_elsewhere_is_listed_and_the_last_way_in_stays() -> None:
    first, old = IDENTITIES["items"]
    items = [{**first, "is_last_way_in": True}, old]
    tree = (await Pages.over({**ACCOUNT, "GET /v1/me/identities": {"items": items}}).get("/account")).tree
    links = [each.get("href") for each in tree.all("a") if "/identities/" in each.get("href")]
    assert links == [f"/account/identities/{old['id']}/remove", "/account/identities/new"]
    assert "your only way in" in tree.one(id="signing-in-ways").text
    none = {"GET /v1/me/identities": {"items": []}, "GET /v1/sign-in": {**WAYS_IN, "oidc": None}}
    tree = (await Pages.over({**ACCOUNT, **none}).get("/account")).tree
    assert [each for each in tree.all("a") if "/identities/" in each.get("href")] == []


async def test_linking_goes_on_to_the_issuer_by_a_link() -> None:
    """No form of ours leads to another site: the policy for content forbids it."""
    url = "https://accounts.google.com/o/oauth2/v2/auth?state=x&nonce=y"
    site = Pages.over({**LINKED, "GET /v1/session": ELEVATED, "POST /v1/me/identities": {"url": url}})
    form = form_of((await site.get("/account/identities/new")).tree, "/account/identities/new")
    assert site.api.sent() == [], "a page that is only looked at begins nothing"
    made = await site.post("/account/identities/new", form.fields())
    assert (made.status, made.tree.one("a", href=url).text) == (200, "Sign in at Google")
    away = (409, {"title": "Conflict", "status": 409, "detail": "The issuer cannot be used now."})
    site = Pages.over({**LINKED, "GET /v1/session": ELEVATED, "POST /v1/me/identities": away})
    assert (await site.post("/account/identities/new", [])).location == "/account?refused=issuer"
    nobody = {**LINKED, "GET /v1/session": ELEVATED, "GET /v1/sign-in": {**WAYS_IN, "oidc": None}}
    assert (await Pages.over(nobody).get("/account/identities/new")).location == "/account"


async def test_why_nothing_was_linked_is_told_on_the_account_page() -> None:
    site = Pages.over(ACCOUNT)
    back = (await site.get("/sign-in?refused=taken")).location
    assert back == "/account?refused=taken"
    assert "belongs to somebody else here" in (await site.get(back)).tree.one(role="alert").text
    assert (await site.get("/sign-in?refused=%3Cscript%3E")).location == "/"
    assert (await site.get("/account?refused=nonsense")).tree.all(role="alert") == []


async def test_an_identity_is_taken_off_after_one_question_also_when_it_is_gone() -> None:
    identity = IDENTITIES["items"][0]
    place = f"/account/identities/{identity['id']}/remove"
    gone = (404, {"title": "Not Found", "status": 404, "detail": "There is no such identity."})
    for answer in ((204, None), gone):
        site = Pages.over({**LINKED, "GET /v1/session": ELEVATED, f"DELETE /v1/me/identities/{identity['id']}": answer})
        tree = (await site.get(place)).tree
        assert identity["subject"] in tree.one("dl").text
        assert (await site.post(place, form_of(tree, place).fields())).location == "/account?done=unlinked"
    assert (await Pages.over({**LINKED, "GET /v1/session": ELEVATED}).get("/account/identities/x/remove")).location == (
        "/account"
    )
    refused = await Pages.of("unlink-last").specimen("unlink-last")
    assert (refused.status, "only way" in refused.tree.one(role="alert").text) == (409, True)


ASKED_FIRST = [
    "/account/identities/new",
    f"/account/identities/{IDENTITIES['items'][0]['id']}/remove",
    "/account/second-factor",
    "/account/second-factor/code",
    "/account/second-factor/off",
    "/account/recovery-codes",
]


@pytest.mark.parametrize("path", ASKED_FIRST)
async def test_who_one_is_is_asked_before_anything_is_done(path: str) -> None:
    asked = await Pages.over({}).get(path)
    assert asked.status == 403
    assert ("next", path) in form_of(asked.tree, "/confirm").fields()

    nearly_over = session(elevated_until="2027-03-10T14:33:00Z")
    assert (await Pages.over({"GET /v1/session": nearly_over}).get(path)).status == 403
    assert (await Pages.over({**LINKED, "GET /v1/session": ELEVATED}).get(path)).status == 200


async def test_the_code_to_scan_is_a_picture_that_can_do_nothing() -> None:
    made = {**ENROLMENT, "qr_svg": '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'}
    site = Pages.over({"GET /v1/session": PLAIN, "POST /v1/me/totp": made})

    answer = await site.post("/account/second-factor")

    picture = answer.tree.one("img", class_="qr").get("src")
    head, _, content = picture.partition(",")
    assert head == "data:image/svg+xml;base64"
    assert base64.b64decode(content).decode() == made["qr_svg"]
    assert "alert(1)" not in answer.html
    assert ENROLMENT["secret"] in answer.tree.text
    assert "img-src 'self' data:" in answer.headers["content-security-policy"]


async def test_recovery_codes_are_shown_once_and_can_be_kept_without_a_script() -> None:
    site = Pages.over({"GET /v1/session": PLAIN, "POST /v1/me/totp/confirm": CODES})

    answer = await site.post("/account/second-factor/code", [("code", " 123 456 ")])

    assert site.api.sent()[0].body == {"code": "123 456"}
    assert answer.tree.one("code").text.split() == CODES["recovery_codes"]
    file = answer.tree.one("a", download="0cron-recovery-codes.txt").get("href")
    kept = base64.b64decode(file.partition(",")[2]).decode().splitlines()
    assert kept == ["0cron", *CODES["recovery_codes"]]


async def test_a_wrong_code_is_typed_again() -> None:
    answer = await Pages.of("second-factor-wrong").specimen("second-factor-wrong")

    assert answer.status == 422
    form = form_of(answer.tree, "/account/second-factor/code")
    form.one(id="code-error")
    assert form.all("a", href="/account/second-factor")


async def test_the_second_factor_is_turned_off_and_codes_are_renewed() -> None:
    site = Pages.over(
        {"GET /v1/session": ELEVATED, "DELETE /v1/me/totp": (204, None), "POST /v1/me/recovery-codes": CODES}
    )

    off = await site.post("/account/second-factor/off")
    assert off.location == "/account?done=second_factor_off"
    renewed = await site.post("/account/recovery-codes")
    assert renewed.tree.one("code").text.split() == CODES["recovery_codes"]


async def test_browsers_are_signed_out_one_by_one_or_all_but_this() -> None:
    other = SIGN_INS["items"][1]["id"]
    site = Pages.over(
        {**ACCOUNT, "DELETE /v1/me/sign-ins": (204, None), f"DELETE /v1/me/sign-ins/{other}": (204, None)}
    )
    tree = (await site.get("/account")).tree
    assert tree.all("form", action=f"/account/browsers/{SIGN_INS['items'][0]['id']}/end") == []
    tree.one("form", action=f"/account/browsers/{other}/end")

    assert (await site.post(f"/account/browsers/{other}/end")).location == "/account?done=ended"
    assert (await site.post("/account/browsers/gone-meanwhile/end")).location == "/account?done=ended"
    assert (await site.post("/account/browsers/end-others")).location == "/account?done=ended_others"
    assert [each.path for each in site.api.sent()][::2] == [f"/v1/me/sign-ins/{other}", "/v1/me/sign-ins"]


async def test_a_new_team_is_looked_at_once_it_is_there() -> None:
    site = Pages.over({"POST /v1/teams": (201, {"id": "new-team", "name": "Data"}), "POST /v1/session/team": SESSION})

    answer = await site.post("/account/teams/new", [("name", "Data")])

    assert answer.location == "/?done=team_made"
    assert [each.body for each in site.api.sent()] == [{"name": "Data"}, {"team_id": "new-team"}]


@pytest.mark.parametrize(
    ("user_agent", "shown"),
    [
        (SIGN_INS["items"][0]["user_agent"], ("Firefox 136", "Linux")),
        (SIGN_INS["items"][1]["user_agent"], ("Safari 18", "iPhone")),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/133.0.0.0 "
            "Safari/537.36 Edg/133.0.0.0",
            ("Edge 133", "Windows"),
        ),
        (
            "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/133.0.0.0 Mobile "
            "Safari/537.36",
            ("Chrome 133", "Android"),
        ),
        ("curl/8.5.0", ("", "")),
        ("", ("", "")),
        ("Version/1 " * 100_000, ("", "")),
    ],
)
def test_a_browser_is_called_by_its_name(user_agent: str, shown: tuple[str, str]) -> None:
    found: Any = browser_of(user_agent)
    assert found == shown
