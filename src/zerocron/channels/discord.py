"""Discord, by a webhook of a channel: https://docs.discord.com/developers/resources/webhook.

Owns the form of an embed and what Discord's answers mean. The URL is the credential, and its hosts are pinned. Markdown
in other people's texts is escaped, and `allowed_mentions` lets no mention reach anybody.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import orjson

from zerocron.channels.configuration import pinned, texts
from zerocron.channels.contract import Again, ConfigField, Delivery, Envelope, Refused, Ways
from zerocron.channels.exchange import accepted, again, echo, json_of, may_pass, post, said, seconds_ms
from zerocron.channels.text import cut_escaped, units
from zerocron.channels.wording import COLOURS, SIGNS, Entry, Message, kept, word
from zerocron.core.exchange import Response

HOSTS = ("discord.com", "discordapp.com", "ptb.discord.com", "canary.discord.com")
_PATH = re.compile(
    r"/api/(?:v[0-9]{1,2}/)?webhooks/(?P<id>[0-9]{5,25})/(?P<token>[A-Za-z0-9_-]{20,100})(?:\?thread_id=(?P<thread>[0-9]{5,25}))?"
)
EXAMPLE = "https://discord.com/api/webhooks/1234567890/XXXXXXXX"

TITLE_UNITS_MAX = 256
DESCRIPTION_UNITS_MAX = 4_096
FIELD_NAME_UNITS_MAX = 256
FIELD_VALUE_UNITS_MAX = 1_024
FIELDS_MAX = 25
EMBED_UNITS_MAX = 6_000
"""Of all texts of a message's embeds together."""

OUTPUT_UNITS_MIN = 20
"""With less room the output is left out."""

# Every sign that Markdown may read as one, and the beginnings of mentions, links, timestamps and custom emoji.
_SIGNS = re.compile(r"([\\`*_~|>#\[\]()<:@+.-])")


def escape(text: str) -> str:
    """Every sign is shown as it is."""
    return _SIGNS.sub(r"\\\1", text)


class Discord:
    name = "discord"
    label = "Discord"
    fields: tuple[ConfigField, ...] = (
        ConfigField(
            "url",
            "The URL of a webhook, from a channel's settings under Integrations; ?thread_id=... posts into a thread.",
            secret=True,
            example=EXAMPLE,
        ),
    )

    def check(self, config: Mapping[str, object]) -> dict[str, object]:
        given = texts(config, self.fields)
        pinned(given["url"], "url", HOSTS, _PATH, EXAMPLE)
        return {**given}

    def destination(self, config: Mapping[str, object]) -> str:
        return f"discord.com/api/webhooks/{pinned(str(config['url']), 'url', HOSTS, _PATH, EXAMPLE)['id']}/…"

    async def deliver(self, config: Mapping[str, object], envelope: Envelope, ways: Ways) -> Delivery:
        url = str(config["url"])
        # With `wait` the answer comes when the message is there, rather than when it is queued.
        to = f"{url}{'&' if '?' in url else '?'}wait=true"
        answer = await post(ways, to, orjson.dumps(render(word(envelope))), who=self.label)
        return self._judge(answer, url, ways) if isinstance(answer, Response) else answer

    def _judge(self, answer: Response, url: str, ways: Ways) -> Delivery:
        found = json_of(answer)
        if done := accepted(answer, f"as {found['id']}" if str(found.get("id")).isdigit() else ""):
            return done
        token = pinned(url, "url", HOSTS, _PATH, EXAMPLE)["token"]
        words = echo(str(found.get("message") or "") or answer.body, (url, token))
        if isinstance(found.get("code"), int) and found["code"]:
            words = f"{words}, code {found['code']}"
        reason = said(self.label, answer, words)
        if answer.status in (401, 404):  # 10015: the webhook is unknown; 10003: its thread is
            return Refused(f"{reason} The webhook or its thread is gone.", disables=True)
        if answer.status == 429:
            waits = seconds_ms(found.get("retry_after"))
            return Again(reason, waits) if waits is not None else again(answer, reason, ways)
        # 403 comes from the network in front of Discord, too, and then passes.
        if answer.status == 403 or may_pass(answer.status):
            return again(answer, reason, ways)
        return Refused(reason)


def render(message: Message) -> dict[str, object]:
    """The payload of a message: one embed."""
    sign = SIGNS[message.tone] + " "
    title = sign + cut_escaped(message.title, TITLE_UNITS_MAX - units(sign), escape)
    embed: dict[str, object] = {"title": title, "color": int(COLOURS[message.tone][1:], 16)}
    room = EMBED_UNITS_MAX - units(title)
    if message.is_digest:
        embed["description"] = _digest(message, min(room, DESCRIPTION_UNITS_MAX))
    else:
        [entry] = message.entries
        fields = [_field(label, value) for label, value in entry.facts[:FIELDS_MAX]]
        room -= sum(units(field["name"]) + units(field["value"]) for field in fields)
        embed["description"] = _description(entry, message, min(room, DESCRIPTION_UNITS_MAX))
        embed["fields"] = [{**field, "inline": False} for field in fields]
    if not embed["description"]:
        del embed["description"]
    return {"username": "0cron", "embeds": [embed], "allowed_mentions": {"parse": []}}


def _field(label: str, value: str) -> dict[str, str]:
    return {
        "name": cut_escaped(label, FIELD_NAME_UNITS_MAX, escape),
        "value": cut_escaped(value, FIELD_VALUE_UNITS_MAX, escape),
    }


def _description(entry: Entry, message: Message, room: int) -> str:
    """Lead, output and link. The link stands here because the embed's own `url` is refused for hosts without a dot."""
    link = f"[{escape(message.words.open)}](<{entry.url}>)" if entry.url else ""
    lead = cut_escaped(entry.lead, room - units(link), escape)
    room -= units(lead) + units(link) + len("\n```\n\n```\n")
    has_room = entry.output is not None and room >= OUTPUT_UNITS_MIN
    output = f"```\n{cut_escaped(entry.output or '', room, _escape_code)}\n```" if has_room else ""
    return "\n".join(part for part in (lead, output, link) if part)


def _digest(message: Message, room: int) -> str:
    """As many of the entries as there is room for; the others are counted."""
    for count in range(len(message.entries), 1, -1):
        text = _digest_text(kept(message, count))
        if units(text) <= room:
            return text
    return _digest_text(kept(message, 1))


def _digest_text(message: Message) -> str:
    parts = []
    for entry in message.entries:
        lines = [f"{SIGNS[entry.tone]} **{escape(entry.title)}**", escape(entry.lead)]
        lines += [escape(f"{label}{message.words.colon}{value}") for label, value in entry.facts]
        parts.append("\n".join(line for line in lines if line))
    return "\n\n".join([*parts, escape(message.more)] if message.more else parts)


def _escape_code(text: str) -> str:
    """Within a block of code nothing acts but its end: signs that could be one get an invisible blank behind them."""
    return text.replace("`", "`\u200b")
