"""Slack, by an incoming webhook: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks.

Owns Block Kit's form of a message and what Slack's short answers mean. The URL is the credential, and its host is
pinned. Everything of other people's is plain text with `&`, `<` and `>` escaped, which is all that mentions and links
are made of; the output is a code block, whose fence it cannot close.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import orjson

from zerocron.channels.configuration import pinned, texts
from zerocron.channels.contract import ConfigField, Delivery, Envelope, Refused, Ways
from zerocron.channels.exchange import accepted, again, echo, may_pass, post, said
from zerocron.channels.text import cut_escaped, units
from zerocron.channels.wording import SIGNS, Entry, Message, word
from zerocron.core.exchange import Response

HOSTS = ("hooks.slack.com", "hooks.slack-gov.com")
_PATH = re.compile(r"/services/(?P<team>T[A-Za-z0-9_]{1,32})/(?P<app>B[A-Za-z0-9_]{1,32})/(?P<token>[A-Za-z0-9]{8,64})")
EXAMPLE = "https://hooks.slack.com/services/T0000/B0000/XXXXXXXX"

HEADER_UNITS_MAX = 150
SECTION_UNITS_MAX = 3_000
FIELD_UNITS_MAX = 2_000
FIELDS_MAX = 10
TEXT_UNITS_MAX = 3_000

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def escape(text: str) -> str:
    """As Slack asks for it; without `<` there is neither a mention nor a link."""
    return text.translate(_ESCAPES)


class Slack:
    name = "slack"
    label = "Slack"
    fields: tuple[ConfigField, ...] = (
        ConfigField(
            "url", "The URL of an incoming webhook, from the settings of a Slack app.", secret=True, example=EXAMPLE
        ),
    )

    def check(self, config: Mapping[str, object]) -> dict[str, object]:
        given = texts(config, self.fields)
        pinned(given["url"], "url", HOSTS, _PATH, EXAMPLE)
        return {**given}

    def destination(self, config: Mapping[str, object]) -> str:
        found = pinned(str(config["url"]), "url", HOSTS, _PATH, EXAMPLE)
        return f"hooks.slack.com/services/{found['team']}/{found['app']}/…"

    async def deliver(self, config: Mapping[str, object], envelope: Envelope, ways: Ways) -> Delivery:
        url = str(config["url"])
        answer = await post(ways, url, orjson.dumps(render(word(envelope))), who=self.label)
        return self._judge(answer, url, ways) if isinstance(answer, Response) else answer

    def _judge(self, answer: Response, url: str, ways: Ways) -> Delivery:
        words = echo(answer.body, (url, url.rpartition("/")[2]))
        if done := accepted(answer, words):
            return done
        reason = said(self.label, answer, words)
        # no_service, no_team, channel_not_found; invalid_token, action_prohibited; channel_is_archived
        if answer.status in (403, 404, 410):
            return Refused(f"{reason} The webhook is gone or its channel takes no messages.", disables=True)
        if may_pass(answer.status):
            return again(answer, reason, ways)
        return Refused(reason)


def render(message: Message) -> dict[str, object]:
    """The payload of a message."""
    blocks = [_header(message)]
    for entry in message.entries:
        blocks += _digest_blocks(entry, message) if message.is_digest else _entry_blocks(entry, message)
    if message.more:
        blocks.append(_section(message.more))
    # `text` is what notifications and screen readers show.
    text = cut_escaped(message.title, TEXT_UNITS_MAX, escape)
    return {"text": text, "mrkdwn": False, "unfurl_links": False, "unfurl_media": False, "blocks": blocks}


def _header(message: Message) -> dict[str, object]:
    sign = SIGNS[message.tone] + " "
    text = sign + cut_escaped(message.title, HEADER_UNITS_MAX - units(sign), escape)
    return {"type": "header", "text": {"type": "plain_text", "text": text, "emoji": False}}


def _entry_blocks(entry: Entry, message: Message) -> list[dict[str, object]]:
    blocks: list[dict[str, object]] = []
    if entry.lead:
        blocks.append(_section(entry.lead))
    if entry.facts:
        fields = [_plain(f"{label}\n{value}", FIELD_UNITS_MAX) for label, value in entry.facts[:FIELDS_MAX]]
        blocks.append({"type": "section", "fields": fields})
    if entry.output:
        code = cut_escaped(entry.output, SECTION_UNITS_MAX - 6, _escape_code)
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": f"```{code}```", "verbatim": True}})
    if entry.url:
        blocks.append({"type": "context", "elements": [_link(entry.url, message.words.open)]})
    return blocks


def _digest_blocks(entry: Entry, message: Message) -> list[dict[str, object]]:
    lines = [f"{SIGNS[entry.tone]} {entry.title}", *([entry.lead] if entry.lead else [])]
    lines += [f"{label}{message.words.colon}{value}" for label, value in entry.facts]
    blocks = [_section("\n".join(lines))]
    if entry.url:
        blocks.append({"type": "context", "elements": [_link(entry.url, message.words.open)]})
    return blocks


def _section(text: str) -> dict[str, object]:
    return {"type": "section", "text": _plain(text, SECTION_UNITS_MAX)}


def _plain(text: str, units_max: int) -> dict[str, object]:
    return {"type": "plain_text", "text": cut_escaped(text, units_max, escape), "emoji": False}


def _link(url: str, label: str) -> dict[str, object]:
    return {"type": "mrkdwn", "text": f"<{escape(url).replace('|', '%7C')}|{escape(label)}>", "verbatim": True}


def _escape_code(text: str) -> str:
    """Nothing acts within a block of code but what ends it: signs that could get an invisible blank behind them."""
    return escape(text).replace("`", "`\u200b")
