"""Coming in and going out: what is sent for each form, what is told when it is refused, and what no page may hold."""

from __future__ import annotations

import orjson
import pytest
from starlette.requests import Request
from starlette.types import Receive, Scope, Send
from tests.dashboard.support import Pages

from zerocron.core.single_sign_on import Refusal
from zerocron.dashboard.asking import Api
from zerocron.dashboard.specimens.kinds import SESSION, UNSIGNED
from zerocron.dashboard.specimens.sign_in import INVITATION, WAYS
from zerocron.dashboard.views.sign_in import REFUSALS
from zerocron.dashboard.visit import back_to

TOKEN = "Xn2r5u8x_A-D4GbKePhVmYq3t6w9z0C1F7J2NcRfUjX"
PASSWORD = "four words in a row"
NOBODY = {"GET /v1/session": UNSIGNED, "GET /v1/sign-in": WAYS}
WRONG = (401, {"title": "Unauthorized", "detail": "No."})
CODE_NEEDED = (401, {"title": "Unauthorized", "detail": "A code.", "code": "code_needed"})
GONE = (404, {"title": "Not Found", "detail": "Used."})
ELSEWHERE = ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "jobs", "/a\nb"]


async def test_signing_in_leads_to_where_one_wanted_to_go() -> None:
    site = Pages.over({**NOBODY, "POST /v1/sign-in": SESSION})
    form = (await site.get("/sign-in?next=/jobs%3Fstate%3Dfailing")).tree.one("form", id="sign-in")
    fields = [*form.fields()[:1], ("email", " ada@example.com"), ("password", f" {PASSWORD} ")]

    answer = await site.post("/sign-in", fields)

    assert (answer.status, answer.location) == (303, "/jobs?state=failing")
    [sent] = site.api.sent()
    assert sent.body == {"email": "ada@example.com", "password": f" {PASSWORD} ", "code": None}


@pytest.mark.parametrize("elsewhere", ELSEWHERE)
async def test_no_link_leads_away_from_here(elsewhere: str) -> None:
    site = Pages.over({**NOBODY, "POST /v1/sign-in": SESSION, "POST /v1/session/elevate": SESSION})

    assert (await site.post("/sign-in", [("email", "a@example.com"), ("next", elsewhere)])).location == "/"
    site.api.answers["GET /v1/session"] = SESSION
    assert (await site.get(f"/sign-in?next={back_to('/')}")).location == "/"
    assert (await site.post("/confirm", [("password", PASSWORD), ("next", elsewhere)])).location == "/"
    appearance = await site.post("/appearance", [("theme", "dark"), ("next", elsewhere)])
    assert appearance.location == "/sign-in"


async def test_a_wrong_password_is_never_written_into_the_page() -> None:
    site = Pages.over({**NOBODY, "POST /v1/sign-in": WRONG})

    answer = await site.post("/sign-in", [("email", "ada@example.com"), ("password", PASSWORD), ("next", "/jobs")])

    assert answer.status == 401
    form = answer.tree.one("form", id="sign-in")
    assert form.fields() == [("next", "/jobs"), ("email", "ada@example.com"), ("password", "")]
    assert "not right" in form.one(role="alert").text
    assert PASSWORD not in answer.html


async def test_a_code_is_asked_for_when_it_is_needed_and_from_then_on() -> None:
    site = Pages.over({**NOBODY, "POST /v1/sign-in": CODE_NEEDED})
    typed = [("email", "ada@example.com"), ("password", PASSWORD)]

    asked = await site.post("/sign-in", typed)
    assert "code" in dict(asked.tree.one("form", id="sign-in").fields())
    assert asked.tree.one(role="status").text.endswith("second factor.")
    assert PASSWORD not in asked.html

    site.api.answers["POST /v1/sign-in"] = WRONG
    again = await site.post("/sign-in", [*typed, ("code", "000000")])
    assert "code" in dict(again.tree.one("form", id="sign-in").fields())
    assert site.api.sent()[-1].body["code"] == "000000"


async def test_a_script_puts_the_code_into_the_form_that_is_there() -> None:
    """What was typed stays where it is: in the browser."""
    site = Pages.over({**NOBODY, "POST /v1/sign-in": CODE_NEEDED})
    site_post = {"sec-fetch-site": "same-origin", "hx-request": "true"}

    answer = await site._ask("POST", "/sign-in", b"email=ada%40example.com&password=x", site_post)

    assert (answer.status, answer.headers["hx-retarget"]) == (200, "#second-factor")
    assert [each.get("name") for each in answer.tree.all("input")] == ["code"]
    assert answer.tree.one(id="sign-in-trouble").get("hx-swap-oob") == "true"  # what was wrong before is taken away

    site.api.answers["POST /v1/sign-in"] = WRONG
    answer = await site._ask("POST", "/sign-in", b"email=ada%40example.com&password=x", site_post)
    assert answer.status == 200
    assert "hx-retarget" not in answer.headers
    answer.tree.one("form", id="sign-in").one(role="alert")

    site.api.answers["POST /v1/sign-in"] = SESSION
    answer = await site._ask("POST", "/sign-in", b"email=ada%40example.com&password=x&next=%2Fjobs", site_post)
    assert (answer.status, answer.headers["hx-redirect"]) == (204, "/jobs")


async def test_who_tries_too_often_is_told_to_wait() -> None:
    site = Pages.over({**NOBODY, "POST /v1/sign-in": (429, {"title": "Too Many Requests", "detail": "Often."})})

    answer = await site.post("/sign-in", [("email", "ada@example.com"), ("password", "x")])

    assert answer.status == 429
    assert "Wait a few minutes" in answer.tree.one(role="alert").text


async def test_the_ways_in_are_those_that_the_server_has() -> None:
    plain = (await Pages.over(NOBODY).get("/sign-in")).tree
    assert plain.all("a", href="/auth/oidc/start?next=%2F") == []
    assert plain.all(class_="note-warn") == []

    ways = {**WAYS, "oidc": {"name": "Google"}, "is_secure": False}
    site = Pages.over({**NOBODY, "GET /v1/sign-in": ways})
    tree = (await site.get("/sign-in?next=/jobs")).tree
    assert "Google" in tree.one("a", href="/auth/oidc/start?next=%2Fjobs").text
    assert "not encrypted" in tree.one(class_="note-warn").text

    site.api.answers["GET /v1/sign-in"] = {**WAYS, "trusted_header": True}
    tree = (await site.get("/sign-in?next=/jobs")).tree
    tree.one("a", href="/auth/header?next=%2Fjobs")

    site.api.answers["GET /v1/sign-in"] = {**WAYS, "setup_open": True}
    tree = (await site.get("/sign-in")).tree
    assert tree.all("input", name="password") == []
    assert "0cron setup-link" in tree.text


async def test_why_an_issuer_let_nobody_in_is_said_in_our_words_only() -> None:
    site = Pages.over(NOBODY)
    refused = await site.get("/sign-in?refused=unknown")
    assert "Ask an owner or admin" in refused.tree.one(role="alert").text

    assert (await site.get("/sign-in?refused=Call+this+number")).tree.all(role="alert") == []


@pytest.mark.parametrize(
    ("method", "way"), [("oidc", "/auth/oidc/start?prove=true&next=%2F"), ("trusted-header", "/reset")]
)
async def test_who_has_no_password_proves_it_elsewhere(method: str, way: str) -> None:
    person = {**SESSION["person"], "has_password": False, "has_totp": False}
    site = Pages.over({"GET /v1/session": {**SESSION, "person": person, "method": method}})

    tree = (await site.get("/confirm")).tree

    tree.one("a", href=way)
    assert [each for each in tree.all("form") if each.get("action") == "/confirm"] == []


async def test_the_first_owner_is_made_with_what_they_typed() -> None:
    site = Pages.over({**NOBODY, "GET /v1/sign-in": {**WAYS, "setup_open": True}, "POST /v1/setup": (201, SESSION)})
    shown = await site.get(f"/setup/{TOKEN}")
    form = next(each for each in shown.tree.all("form") if each.get("method") == "post")
    assert [name for name, _ in form.fields()] == ["name", "email", "password", "language", "timezone"]

    answer = await site.post(
        f"/setup/{TOKEN}",
        [
            ("name", "Ada"),
            ("email", "ada@example.com"),
            ("password", PASSWORD),
            ("language", "fr"),
            ("timezone", "Europe/Paris"),
        ],
    )

    assert answer.location == "/"
    assert site.api.sent()[0].body == {
        "token": TOKEN,
        "name": "Ada",
        "email": "ada@example.com",
        "password": PASSWORD,
        "language": "fr",
        "timezone": "Europe/Paris",
    }


async def test_a_time_zone_that_no_script_guessed_is_left_to_the_server() -> None:
    site = Pages.over({**NOBODY, "GET /v1/sign-in": {**WAYS, "setup_open": True}, "POST /v1/setup": (201, SESSION)})
    await site.post(f"/setup/{TOKEN}", [("name", "Ada"), ("timezone", "")])

    assert "timezone" not in site.api.sent()[0].body


async def test_what_was_wrong_with_a_new_account_is_beside_the_field() -> None:
    answer = await Pages.of("setup-refused").specimen("setup-refused")

    assert answer.status == 422
    tree = answer.tree
    assert tree.one("input", name="password").get("aria-invalid") == "true"
    assert "first passwords" in tree.one(id="password-error").text
    assert tree.one("input", name="email").get("value") == "ada@example.com"
    assert tree.one("input", name="password").get("value") == ""


@pytest.mark.parametrize("name", ["setup", "new-password", "invitation", "invitation-known", "invitation-signed-in"])
async def test_a_token_is_never_in_the_page(name: str) -> None:
    """Neither in a link or title nor where a form goes: it is sent to the address that it is shown at."""
    answer = await Pages.of(name).specimen(name)

    assert answer.status == 200
    assert TOKEN not in answer.html
    assert any("action" not in each.attributes for each in answer.tree.all("form"))


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        (f"/setup/{TOKEN}", "POST /v1/setup"),
        (f"/reset/{TOKEN}", "POST /v1/password-resets/use"),
        (f"/invitation/{TOKEN}", "POST /v1/invitations/accept"),
    ],
)
async def test_a_link_that_does_not_work_is_told_so(path: str, asked: str) -> None:
    ways = {**WAYS, "setup_open": True}
    site = Pages.over({**NOBODY, "GET /v1/sign-in": ways, asked: GONE, "POST /v1/invitations/look": GONE})

    answer = await site.post(path, [("name", "Ada"), ("password", PASSWORD)])

    assert answer.status == 404
    assert "does not work any more" in answer.tree.one("h1").text
    assert TOKEN not in answer.html


async def test_a_new_password_is_set_with_a_code_where_one_is_needed() -> None:
    site = Pages.over({**NOBODY, "POST /v1/password-resets/use": CODE_NEEDED})
    asked = await site.post(f"/reset/{TOKEN}", [("new_password", PASSWORD)])
    assert asked.status == 401
    asked.tree.one("input", name="code")
    assert PASSWORD not in asked.html

    site.api.answers["POST /v1/password-resets/use"] = {}
    done = await site.post(f"/reset/{TOKEN}", [("new_password", PASSWORD), ("code", "123 456")])
    assert done.location == "/sign-in?done=password_reset"
    assert site.api.sent()[-1].body == {"token": TOKEN, "new_password": PASSWORD, "code": "123 456"}


async def test_asking_for_a_link_tells_nobody_who_is_there() -> None:
    site = Pages.over({**NOBODY, "POST /v1/password-resets": (202, None)})

    answer = await site.post("/reset", [("email", "nobody@example.com")])

    assert answer.location == "/sign-in?done=reset_sent"
    assert site.api.sent()[0].body == {"email": "nobody@example.com"}
    assert "If there is such a person" in (await site.get(answer.location)).tree.one(role="status").text


async def test_an_invitation_says_who_invites_unless_that_is_a_key() -> None:
    for name in ("Grace Hopper", None):
        site = Pages.over({**NOBODY, "POST /v1/invitations/look": {**INVITATION, "invited_by": name}})
        text = (await site.get(f"/invitation/{TOKEN}")).tree.one("dl").text
        assert ("Invited by" in text, "Grace Hopper" in text) == (name is not None, name is not None), text


async def test_a_new_person_joins_with_a_name_a_password_and_their_zone() -> None:
    site = Pages.over(
        {
            **NOBODY,
            "POST /v1/invitations/look": INVITATION,
            "POST /v1/invitations/accept": SESSION,
            "PATCH /v1/me": SESSION["person"],
        }
    )

    answer = await site.post(
        f"/invitation/{TOKEN}", [("name", "Grace"), ("password", PASSWORD), ("timezone", "Africa/Dakar")]
    )

    assert answer.location == "/?done=joined"
    accepted, edited = site.api.sent()
    assert accepted.body == {"token": TOKEN, "name": "Grace", "password": PASSWORD, "code": None}
    assert edited.body == {"language": "en", "timezone": "Africa/Dakar"}


async def test_who_has_an_account_proves_that_it_is_theirs() -> None:
    known = {**INVITATION, "has_account": True}
    site = Pages.over({**NOBODY, "POST /v1/invitations/look": known, "POST /v1/invitations/accept": CODE_NEEDED})

    asked = await site.post(f"/invitation/{TOKEN}", [("password", PASSWORD)])

    assert asked.status == 401
    assert [name for name, _ in asked.tree.one("form").fields()] == ["username", "password", "code"]
    assert PASSWORD not in asked.html
    assert site.api.questions("/v1/invitations/accept")[0].body == {
        "token": TOKEN,
        "password": PASSWORD,
        "code": None,
    }


async def test_who_has_no_password_signs_in_elsewhere_and_comes_back_to_the_invitation() -> None:
    ways = {**WAYS, "oidc": {"name": "Google"}, "trusted_header": True}
    known = {**INVITATION, "has_account": True}
    site = Pages.over({**NOBODY, "GET /v1/sign-in": ways, "POST /v1/invitations/look": known})

    shown = await site.get(f"/invitation/{TOKEN}")
    assert TOKEN not in shown.html
    led = {}
    for link in shown.tree.all("a", class_="button"):
        led[link.text] = (await site.get(f"/invitation/{TOKEN}{link.get('href')}")).location
    assert led == {
        "Go on through the proxy": f"/auth/header?next=%2Finvitation%2F{TOKEN}",
        "Sign in with Google": f"/auth/oidc/start?next=%2Finvitation%2F{TOKEN}",
    }
    assert (await site.get(f"/invitation/{TOKEN}?by=https://evil.example")).status == 200

    site.api.answers["POST /v1/invitations/look"] = INVITATION
    links = [link.get("href") for link in (await site.get(f"/invitation/{TOKEN}")).tree.all("a", class_="button")]
    assert links == ["/auth/header", "/auth/oidc/start"], "who is new joins by coming in, and that uses the link up"
    site.api.answers["GET /v1/sign-in"] = WAYS
    assert not (await site.get(f"/invitation/{TOKEN}")).tree.all("a", class_="button")


async def test_who_is_signed_in_already_needs_one_click() -> None:
    shown = await Pages.of("invitation-signed-in").specimen("invitation-signed-in")
    assert shown.tree.one("form").fields() == []

    site = Pages.of("invitation-signed-in", **{"POST /v1/invitations/accept": SESSION})
    answer = await site.post(f"/invitation/{TOKEN}", [])
    assert answer.location == "/?done=joined"
    assert site.api.sent()[0].body == {"token": TOKEN}


async def test_proving_again_who_one_is() -> None:
    site = Pages.over({"POST /v1/session/elevate": SESSION})
    answer = await site.post("/confirm", [("password", PASSWORD), ("next", "/keys/new")])
    assert answer.location == "/keys/new"
    assert site.api.sent()[0].body == {"password": PASSWORD, "code": None}

    site.api.answers["POST /v1/session/elevate"] = WRONG
    refused = await site.post("/confirm", [("password", PASSWORD), ("code", " 123456"), ("next", "/keys/new")])
    assert refused.status == 401
    assert site.api.sent()[1].body == {"password": PASSWORD, "code": "123456"}
    form = next(each for each in refused.tree.all("form") if each.get("action") == "/confirm")
    assert dict(form.fields())["next"] == "/keys/new"
    assert "not right" in form.one(role="alert").text
    assert PASSWORD not in refused.html


async def test_signing_out_works_also_for_who_is_signed_out() -> None:
    site = Pages.over({**NOBODY, "POST /v1/sign-out": UNSIGNED})

    assert (await site.post("/sign-out")).location == "/sign-in?done=signed_out"


async def test_another_team_is_looked_at_from_its_overview() -> None:
    site = Pages.over({"POST /v1/session/team": SESSION})

    assert (await site.post("/team", [("team_id", "a-team")])).location == "/"
    assert site.api.sent()[0].body == {"team_id": "a-team"}


async def test_how_pages_look_is_kept_for_who_is_not_signed_in() -> None:
    site = Pages.over(NOBODY)

    chosen = await site.post("/appearance", [("theme", "dark"), ("language", "xx"), ("next", "/reset")])

    assert chosen.location == "/reset"
    assert chosen.headers["set-cookie"].startswith("0cron-theme=dark;")
    assert "HttpOnly" in chosen.headers["set-cookie"]
    dark = await site.get("/sign-in", headers={"cookie": "0cron-theme=dark; 0cron-language=es"})
    assert (dark.tree.one("html").get("data-theme"), dark.tree.one("html").get("lang")) == ("dark", "es")


async def test_what_a_proxy_said_is_read_once() -> None:
    """It was read when the page was asked for: told again, it would be believed of whoever it names."""
    seen: list[Scope] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    scope = {
        "type": "http",
        "scheme": "https",
        "client": ("203.0.113.7", 0),
        "headers": [(b"x-forwarded-for", b"10.0.0.1"), (b"x-forwarded-proto", b"http"), (b"remote-email", b"a@b.c")],
        "zerocron.signed_in_as": "ada@example.com",
        "zerocron.bearer": "somebody else",
    }
    await Api(application, Request(scope)).get("/v1/session")

    [inner] = seen
    assert inner["headers"] == []
    assert (inner["client"], inner["scheme"]) == (("203.0.113.7", 0), "https")
    assert inner["zerocron.signed_in_as"] == "ada@example.com"
    assert "zerocron.bearer" not in inner


async def test_a_link_from_a_mail_is_looked_at_in_the_name_of_nobody() -> None:
    """A browser that follows it says that it comes from another site, and no cookie is needed to look."""
    seen: list[dict[bytes, bytes]] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(dict(scope["headers"]))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    headers = [(b"host", b"t"), (b"cookie", b"0cron=x"), (b"sec-fetch-site", b"cross-site"), (b"origin", b"null")]
    api = Api(application, Request({"type": "http", "headers": headers}))
    await api.look("/v1/invitations/look", {"token": TOKEN})
    await api.send("POST", "/v1/sign-out")

    looked, sent = seen
    assert set(looked) == {b"host", b"sec-fetch-site", b"content-type", b"content-length"}
    assert looked[b"sec-fetch-site"] == b"same-origin"
    assert (sent[b"sec-fetch-site"], sent[b"cookie"], sent[b"origin"]) == (b"cross-site", b"0cron=x", b"null")


async def test_what_is_asked_after_a_new_cookie_shows_it() -> None:
    """The API gives a sign-in another token when somebody proves again who they are: the one before is dead."""
    cookies: list[str] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        cookies.append("; ".join(value.decode() for name, value in scope["headers"] if name == b"cookie"))
        headers = [(b"content-type", b"application/json")]
        if scope["path"] == "/v1/session/elevate":
            headers += [(b"set-cookie", b"0cron=second; Path=/; HttpOnly"), (b"set-cookie", b"gone=; Max-Age=0")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": orjson.dumps({})})

    scope = {"type": "http", "headers": [(b"cookie", b"0cron=first; gone=x; 0cron-theme=dark"), (b"accept", b"*/*")]}
    api = Api(application, Request(scope))
    await api.get("/v1/session")
    await api.send("POST", "/v1/session/elevate", {})
    await api.send("PUT", "/v1/me/password", {})

    assert cookies == [
        "0cron=first; gone=x; 0cron-theme=dark",
        "0cron=first; gone=x; 0cron-theme=dark",
        "0cron=second; 0cron-theme=dark",
    ]
    assert api.cookies == [b"0cron=second; Path=/; HttpOnly", b"gone=; Max-Age=0"]


def test_every_refusal_of_single_sign_on_has_its_sentence() -> None:
    assert set(REFUSALS) == set(Refusal)
