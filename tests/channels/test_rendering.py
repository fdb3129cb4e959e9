"""What a service gets is within its limits, reads well, and does nothing that a name asks for."""

from __future__ import annotations

import email
import email.policy
import html
import json
import re
from collections.abc import Iterator
from email.message import EmailMessage
from html.parser import HTMLParser
from typing import Any

import pytest
from tests.channels.specimens import ALERT_ID, BASE_URL, DOWN, FAILED, HOSTILE_NAMES, SLOT, hostile, of

from zerocron.channels import discord, slack, telegram
from zerocron.channels.contract import Envelope
from zerocron.channels.email import compose
from zerocron.channels.payload import PLACEHOLDERS, body_of, check_template, fill_template
from zerocron.channels.text import units
from zerocron.channels.wording import word
from zerocron.core.mail import read_mail
from zerocron.core.notice import EventKind, Notice

MAIL = read_mail("smtp://mail.example.com", "0cron <0cron@example.com>")


def envelopes() -> list[Envelope]:
    singles = [of(hostile(name)) for name in HOSTILE_NAMES]
    digests = [of(*[hostile(name)] * 12, more=3) for name in HOSTILE_NAMES]
    return [*singles, *digests, of(FAILED), of(DOWN), of(FAILED, DOWN)]


ENVELOPES = envelopes()
every_envelope = pytest.mark.parametrize("envelope", ENVELOPES, ids=range(len(ENVELOPES)))


# ---- Slack -----------------------------------------------------------------------------------------------------------


def text_objects(found: Any) -> Iterator[dict[str, Any]]:
    if isinstance(found, dict):
        if found.get("type") in ("plain_text", "mrkdwn"):
            yield found
        for value in found.values():
            yield from text_objects(value)
    elif isinstance(found, list):
        for value in found:
            yield from text_objects(value)


OUR_LINK = re.compile(r"<https://cron\.example\.com/[^<>|]*\|[^<>|]*>")


@every_envelope
def test_slack(envelope: Envelope) -> None:
    payload = slack.render(word(envelope))
    blocks = payload["blocks"]
    assert isinstance(blocks, list)
    assert len(blocks) <= 50
    assert payload["mrkdwn"] is False
    for block in blocks:
        limit = 150 if block["type"] == "header" else 2_000 if "fields" in block else 3_000
        for found in text_objects(block):
            text = found["text"]
            assert 0 < units(text) <= limit
            if found["type"] == "mrkdwn":
                text = OUR_LINK.sub("", text)
                if text.startswith("```"):
                    assert text.endswith("```")
                    assert "``" not in text[3:-3]
                else:
                    assert text == "", "markup is for our own link and for code"
                assert found["verbatim"] is True
            else:
                assert found["emoji"] is False
            assert not re.search("[<>]", text)
            assert not re.search(r"&(?!amp;|lt;|gt;)", text)
        assert len(block.get("fields", ())) <= 10
    assert not re.search("[<>]", str(payload["text"]))
    assert units(str(payload["text"])) <= 3_000


# ---- Discord ---------------------------------------------------------------------------------------------------------

ESCAPED = re.compile(r"\\[^A-Za-z0-9\s]")


@every_envelope
def test_discord(envelope: Envelope) -> None:
    payload: dict[str, Any] = discord.render(word(envelope))
    assert payload["allowed_mentions"] == {"parse": []}
    assert "content" not in payload
    [embed] = payload["embeds"]
    fields = embed.get("fields", [])
    assert 0 < units(embed["title"]) <= 256
    description = embed.get("description", "")
    assert "description" not in embed or 0 < units(description) <= 4_096
    assert len(fields) <= 25
    assert all(0 < units(field["name"]) <= 256 and 0 < units(field["value"]) <= 1_024 for field in fields)
    texts = [embed["title"], description, *(field["name"] + field["value"] for field in fields)]
    assert sum(map(units, texts)) <= 6_000
    description = re.sub(
        r"\n?\[Open in 0cron\]\(<https://cron\.example\.com/(?:jobs|monitors)/[0-9a-f-]*>\)$", "", description
    )
    head, fence, code = description.partition("```\n")
    if fence:
        assert code.endswith("\n```")
        assert "``" not in code[:-4]
    if not envelope.notices[1:]:
        for text in (embed["title"], head, *(field["value"] for field in fields)):
            plain = ESCAPED.sub("", text)
            assert not re.search(r"[`*_~|<>\[\]@#]", plain), text


# ---- Telegram --------------------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """The tags of a text, which must be closed in order, and the text outside and inside of <pre>."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.outside = self.inside = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "pre" in self.open:
            self.inside += data
        else:
            self.outside += data


@every_envelope
def test_telegram(envelope: Envelope) -> None:
    tags = Tags(telegram.render(word(envelope)))
    assert units(tags.inside + tags.outside) <= 4_096
    assert {tag for tag, _ in tags.tags} <= {"b", "a", "pre"}
    assert all(str(attributes["href"]).startswith(BASE_URL) for tag, attributes in tags.tags if tag == "a")
    assert not re.search(r"@\w", tags.outside), "a mention"


def test_telegram_gives_the_output_the_room_that_is_left() -> None:
    long = hostile("<&>" * 5_000)
    tags = Tags(telegram.render(word(of(long))))
    assert 1_500 < units(tags.inside) <= 2_000
    assert tags.inside.endswith("…")


# ---- mail ------------------------------------------------------------------------------------------------------------


def parsed(envelope: Envelope) -> EmailMessage:
    raw = compose(MAIL, "ops@example.com", envelope, SLOT).as_bytes()
    assert max(map(len, raw.split(b"\r\n"))) <= 998
    assert b"\n" not in raw.replace(b"\r\n", b"")
    assert raw.isascii()
    message = email.message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    assert not message.defects
    return message


HEADERS = [
    "From",
    "To",
    "Subject",
    "Date",
    "Message-ID",
    "Auto-Submitted",
    "X-Auto-Response-Suppress",
    "List-Unsubscribe",
    "X-0cron-Event",
    "MIME-Version",
    "Content-Type",
]


TAGS = {
    *("html", "head", "meta", "title", "style", "body"),
    *("table", "tr", "td", "h1", "p", "pre", "a", "strong", "span", "br"),
}


def part(message: EmailMessage, subtype: str) -> str:
    found = message.get_body((subtype,))
    assert isinstance(found, EmailMessage)
    return str(found.get_content())


@every_envelope
def test_mail(envelope: Envelope) -> None:
    message = parsed(envelope)
    assert message.keys() == HEADERS, "no header was injected"
    assert str(message["To"]) == "ops@example.com"
    assert units(str(message["Subject"])) <= 200
    said = word(envelope)
    assert str(message["Subject"]).split() == said.title.split()
    text, page = part(message, "plain"), part(message, "html")
    tags = Tags(page)
    assert {tag for tag, _ in tags.tags} <= TAGS
    for tag, attributes in tags.tags:
        assert not {"src", "background", "onclick", "onload"} & set(attributes), "nothing remote, nothing that acts"
        assert tag != "a" or str(attributes["href"]).startswith(BASE_URL)
    assert "url(" not in page
    shown = " ".join((tags.outside + tags.inside).split())
    for entry in said.entries:
        for each in (entry.title, entry.lead, *(value for _, value in entry.facts)):
            assert " ".join(each.split()) in shown
            assert " ".join(each.split()) in " ".join(text.split())
        for line in (entry.output or "").split("\n"):
            assert line.strip() in text
            assert line.strip() in tags.inside


def test_the_headers_of_a_mail() -> None:
    message = parsed(of(FAILED))
    assert str(message["From"]) == "0cron <0cron@example.com>"
    assert str(message["Subject"]) == "nightly report failed 3 times in a row"
    assert str(message["Message-ID"]) == f"<{ALERT_ID}@example.com>"
    assert str(message["Date"]) == "Fri, 15 Jan 2027 07:00:00 +0000"
    assert str(message["List-Unsubscribe"]) == "<mailto:0cron@example.com?subject=unsubscribe>"
    assert str(message["X-0cron-Event"]) == "job.failed"
    assert str(parsed(of(FAILED, DOWN))["X-0cron-Event"]) == "digest"


def test_short_lines_are_encoded_like_long_ones() -> None:
    """Some servers take seven bits only, and a mail must not depend on which one it meets."""
    text = parsed(of(Notice("event", EventKind.TEST, "team", SLOT, "id", "é", "fr")))
    assert "é" in part(text, "plain")


def test_a_repeated_mail_is_the_same_mail() -> None:
    first, second = (compose(MAIL, "ops@example.com", of(FAILED), SLOT + late) for late in (0, 60_000))
    assert first["Message-ID"] == second["Message-ID"]


# ---- webhook ---------------------------------------------------------------------------------------------------------


@every_envelope
def test_webhook(envelope: Envelope) -> None:
    body = json.loads(json.dumps(body_of(envelope)))
    assert set(body) == {"type", "timestamp", "data"}
    template = json.dumps({name: f"<${{{name}}}>" for name in PLACEHOLDERS})
    check_template(template)
    filled = json.loads(fill_template(template, envelope))
    assert set(filled) == set(PLACEHOLDERS), "no value left its place"
    assert filled["title"] == f"<{word(envelope).title}>"
    assert filled["type"] == f"<{body['type']}>"


def test_a_template_is_filled_once() -> None:
    named = hostile('${title} ${count} "}')
    filled = json.loads(fill_template('{"n": "${subject_name}", "c": ${count}}', of(named)))
    assert filled == {"n": '${title} ${count} "}', "c": 3}


def test_a_digest_as_data() -> None:
    body = body_of(of(FAILED, DOWN, more=4))
    data = body["data"]
    assert isinstance(data, dict)
    assert (body["type"], data["more"], len(data["events"])) == ("digest", 4, 2)
    assert data["events"][0] == body_of(of(FAILED))
    many = body_of(of(*[FAILED] * 150))["data"]
    assert isinstance(many, dict)
    assert (len(many["events"]), many["more"]) == (100, 50)


def test_entities_are_not_escaped_twice() -> None:
    assert html.unescape(telegram.escape("a & b")) == "a & b"
    assert slack.escape("&amp;") == "&amp;amp;"
