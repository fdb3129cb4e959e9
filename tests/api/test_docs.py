"""/ and /docs: pages that need no script, name everything, and whose examples work."""

from __future__ import annotations

import html
import re
import shlex
from html.parser import HTMLParser

import pytest
from tests.api.browsers import is_for_browsers
from tests.api.support import NOWHERE, Client
from tests.api.teams import join, make_team
from tests.api.test_openapi import OPERATIONS
from tests.support.target import Target

from zerocron.api.docs_page import reference_page
from zerocron.app import Node
from zerocron.core.access import Role

NOT_BY_SUCH_A_KEY = (
    ("POST", "/v1/teams"),
    ("DELETE", "/v1/team?name=Operations"),
    ("POST", "/v1/secrets/rotate"),
    ("GET", "/v1/system"),
)
"""What is for people, or for the server's first team."""

VOID = {"meta", "link", "br", "img"}


class Page(HTMLParser):
    """Checks that tags close in order, and gathers what the tests ask for."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def values(self, name: str) -> list[str]:
        return [value for _, attributes in self.tags if (value := attributes.get(name)) is not None]


async def page(api: Client, path: str) -> Page:
    answer = await api.with_key(None)("GET", path)
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return Page(answer.body.decode())


@pytest.mark.parametrize("path", ["/docs"])
async def test_a_page_keeps_the_policy_that_it_is_sent_with(api: Client, path: str) -> None:
    found = await page(api, path)

    names = {tag for tag, _ in found.tags}
    assert not names & {"script", "style", "iframe", "object", "embed", "form", "base", "img"}
    assert found.values("style") == []
    assert not [name for _, attributes in found.tags for name in attributes if name.startswith("on")]
    for address in found.values("href") + found.values("src"):
        assert address.startswith(("/", "#")), address
        assert not address.startswith("//")


@pytest.mark.parametrize("path", ["/docs"])
async def test_every_link_leads_somewhere(api: Client, path: str) -> None:
    found = await page(api, path)
    ids = found.values("id")

    assert len(ids) == len(set(ids))
    for address in set(found.values("href")):
        if address.startswith("#"):
            assert address[1:] in ids
        else:
            expected = 303 if address == "/" else 200  # the overview is for those who are signed in
            assert (await api.with_key(None)("GET", address)).status == expected, address


@pytest.mark.parametrize("path", ["/docs"])
async def test_a_page_can_be_used_by_everybody(api: Client, path: str) -> None:
    found = await page(api, path)
    attributes = dict(found.tags)

    assert attributes["html"] == {"lang": "en"}
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in found.tags
    assert ("meta", {"name": "color-scheme", "content": "light dark"}) in found.tags
    assert [tag for tag, _ in found.tags].count("h1") == 1
    assert [tag for tag, _ in found.tags].count("main") == 1
    first_link = next(given for tag, given in found.tags if tag == "a")
    assert first_link == {"class": "skip", "href": "#content"}
    for tag, given in found.tags:
        assert tag != "nav" or given.get("aria-label")
        assert tag != "pre" or given.get("tabindex") == "0"  # what scrolls can be reached by keyboard


async def test_the_reference_names_everything(api: Client) -> None:
    text = (await api("GET", "/docs")).body.decode()
    document = (await api("GET", "/openapi.json")).json

    for name in OPERATIONS:
        assert text.count(f'id="{name}"') == 1
    for name in document["components"]["schemas"]["JobInput"]["properties"]:
        assert f"<code>{name}</code>" in text
    for nested in ("attempts", "backoff", "delay"):
        assert f"<code><span>retry.</span>{nested}</code>" in text
    for words in ("1 to 900", "1 to 2,000 characters", "at most 50 members", "default <code>UTC</code>", "required"):
        assert words in text
    assert "422" in text
    assert "Unprocessable Content" in text
    assert "None" not in re.sub(r"<[^>]+>", " ", text)


async def test_the_style_sheet_comes_from_here_and_knows_the_dark(api: Client) -> None:
    answer = await api.with_key(None)("GET", "/docs/style.css")
    text = answer.body.decode()

    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    assert "prefers-color-scheme: dark" in text
    assert ":focus-visible" in text
    assert "max-width" in text
    assert "url(" not in text
    assert "@import" not in text
    assert text.count("{") == text.count("}")
    icon = await api.with_key(None)("GET", "/docs/icon.svg")
    assert icon.headers["content-type"] == "image/svg+xml"


async def test_every_class_of_the_pages_is_in_the_style_sheet(api: Client) -> None:
    css = (await api("GET", "/docs/style.css")).body.decode()
    named = set(re.findall(r"\.([a-z][\w-]*)", css))
    used = {name for path in ("/docs",) for value in (await page(api, path)).values("class") for name in value.split()}

    assert used - named <= {"depth-0", "told", "answer", "intro"}
    assert named - used - {"j-word", "j-number", "depth-2", "example"} == set()


async def test_whatever_stands_in_the_document_is_text(api: Client) -> None:
    canary = '<script>alert("x")</script>'
    document = (await api("GET", "/openapi.json")).json
    document["info"]["title"] = document["info"]["description"] = document["info"]["summary"] = canary
    operation = document["paths"]["/v1/jobs"]["post"]
    operation["summary"] = operation["description"] = canary
    operation["responses"]["201"]["description"] = canary
    operation["parameters"][0]["description"] = canary
    schema = document["components"]["schemas"]["JobInput"]
    schema["properties"][canary] = {"type": "string", "description": canary, "default": canary}
    schema["examples"] = [{canary: canary}]

    made = reference_page(document)

    Page(made)
    assert "<script" not in made
    assert made.count("&lt;script&gt;") >= 6


async def test_every_example_works_as_it_is(node: Node, api: Client, target: Target) -> None:
    """Read the commands off the page and run them, with the two variables and the ids that the page names."""
    text = (await api("GET", "/docs")).body.decode()
    commands = [
        html.unescape(found) for found in re.findall(r'<pre class="copy"[^>]*><code>(curl .*?)</code>', text, re.S)
    ]
    job = await api.job(url=f"{target.url}/ok")
    run = await api.post(f"/v1/jobs/{job['id']}/trigger")
    await api.run_that(run["id"], "succeeded")
    key = (await api("POST", "/v1/api-keys", {"name": "x"})).json
    await api.post("/v1/signing-key/rotate")
    await make_team(node, api.team_id)
    invitation = (await api("POST", "/v1/invitations", {"email": "x@docs.example", "role": "viewer"})).json
    known = {
        "$ZEROCRON_API_URL": "",
        "$ZEROCRON_API_KEY": api.key or "",
        "$JOB_ID": job["id"],
        "$RUN_ID": run["id"],
        "$EXECUTION_ID": f"{run['id']}.1",
        "$CHANNEL_ID": (await api.channel())["id"],
        "$MONITOR_ID": (await api.monitor())["id"],
        "$KEY_ID": key["id"],
        "$NAME": "STRIPE_KEY",
        "$SIGN_IN_ID": NOWHERE,
        "$IDENTITY_ID": NOWHERE,
        "$PERSON_ID": (await join(node, api.team_id, "ada@docs.example", Role.EDITOR))[0],
        "$INVITATION_ID": invitation["id"],
    }

    assert len(commands) == len(OPERATIONS)
    for command in sorted(commands, key=lambda command: "DELETE" in command):  # what destroys comes last
        for variable, value in known.items():
            command = command.replace(variable, value)
        assert "$" not in command
        if "/v1/events" in command:
            continue  # goes on for ever; tests/api/test_events.py listens to it
        method, path, headers, body = parsed(command)
        answer = await api.with_key(None)(method, path, body=body.encode(), headers=headers)
        is_refused = is_for_browsers(path) and (method, path) != ("GET", "/v1/sign-in")
        if is_refused or (method, path) in NOT_BY_SUCH_A_KEY:
            assert answer.status == 403, (command, answer.body)
        else:
            assert 200 <= answer.status < 300, (command, answer.body)


def parsed(command: str) -> tuple[str, str, dict[str, str], str]:
    """What a shell and curl would make of the command."""
    program, *words = shlex.split(command.replace("\\\n", " "))
    assert program == "curl"
    method, path, headers, body = "", "", {}, ""
    while words:
        word = words.pop(0)
        if word == "-X":
            method = words.pop(0)
        elif word == "-H":
            name, _, value = words.pop(0).partition(": ")
            headers[name] = value
        elif word == "-d":
            body = words.pop(0)
        else:
            path = word
    return method or ("POST" if body else "GET"), path, headers, body
