"""Telegram, by a bot: https://core.telegram.org/bots/api#sendmessage.

Owns the form of a message in Telegram's HTML and what the Bot API's answers mean. The token is the credential and goes
to `BASE_URL` only. Other people's texts are escaped; an `@` in them is cut off from the name behind it by an invisible
sign, because Telegram makes a mention of any that it finds outside of code.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

import orjson

from zerocron.channels.configuration import texts, wrong
from zerocron.channels.contract import Again, ConfigField, Delivery, Envelope, Refused, Ways
from zerocron.channels.exchange import accepted, again, echo, json_of, may_pass, post, said, seconds_ms
from zerocron.channels.text import cut, units
from zerocron.channels.wording import SIGNS, Entry, Message, kept, word
from zerocron.core.exchange import Response

BASE_URL = "https://api.telegram.org"
TEXT_UNITS_MAX = 4_096
"""Behind the parsing of entities: what people see."""

_TOKEN = re.compile(r"[0-9]{5,20}:[A-Za-z0-9_-]{30,64}")
_CHAT = re.compile(r"-?[0-9]{1,20}|@[A-Za-z][A-Za-z0-9_]{3,31}")
_TOPIC = re.compile(r"[0-9]{1,18}")
_WORD_JOINER = "\u2060"


def escape(text: str) -> str:
    """As text of Telegram's HTML, in which nothing acts."""
    return html.escape(text, quote=True).replace("@", "@" + _WORD_JOINER)


class Telegram:
    name = "telegram"
    label = "Telegram"
    fields: tuple[ConfigField, ...] = (
        ConfigField("token", "The token of a bot, from @BotFather.", secret=True, example="123456789:XXXXXXXX"),
        ConfigField(
            "chat_id",
            "The chat: a number (groups begin with -), or @name of a public channel. The bot has to be in it.",
            example="-1001234567890",
        ),
        ConfigField("topic_id", "The topic of a group that has topics: a number.", required=False, example="42"),
    )

    def check(self, config: Mapping[str, object]) -> dict[str, object]:
        numbers = {name: str(config[name]) for name in ("chat_id", "topic_id") if type(config.get(name)) is int}
        given = texts({**config, **numbers}, self.fields)
        if not _TOKEN.fullmatch(given["token"]):
            raise wrong("token", "This is not the token of a bot: digits, a colon, and 35 letters, digits, - or _.")
        if not _CHAT.fullmatch(given["chat_id"]):
            raise wrong("chat_id", "A chat is a number such as -1001234567890, or the @name of a public channel.")
        if not _TOPIC.fullmatch(given.get("topic_id", "0")):
            raise wrong("topic_id", "A topic is a number.")
        return {**given}

    def destination(self, config: Mapping[str, object]) -> str:
        topic = f", topic {config['topic_id']}" if config.get("topic_id") else ""
        return f"{config['chat_id']}{topic}"

    async def deliver(self, config: Mapping[str, object], envelope: Envelope, ways: Ways) -> Delivery:
        token = str(config["token"])
        payload: dict[str, object] = {
            "chat_id": config["chat_id"],
            "text": render(word(envelope)),
            "parse_mode": "HTML",
            "link_preview_options": {"is_disabled": True},
        }
        if config.get("topic_id"):
            payload["message_thread_id"] = int(str(config["topic_id"]))
        answer = await post(ways, f"{BASE_URL}/bot{token}/sendMessage", orjson.dumps(payload), who=self.label)
        return self._judge(answer, token, ways) if isinstance(answer, Response) else answer

    def _judge(self, answer: Response, token: str, ways: Ways) -> Delivery:
        found = json_of(answer)
        words = echo(str(found.get("description") or "") or answer.body, (token, token.partition(":")[2]))
        result = found.get("result")
        number = result.get("message_id") if isinstance(result, dict) else None
        if found.get("ok") is True and (done := accepted(answer, f"message {number}" if number else "")):
            return done
        reason = said(self.label, answer, words)
        parameters = found.get("parameters")
        asked = parameters if isinstance(parameters, dict) else {}
        if answer.status == 429:
            waits = seconds_ms(asked.get("retry_after"))
            return Again(reason, waits) if waits is not None else again(answer, reason, ways)
        if isinstance(moved := asked.get("migrate_to_chat_id"), int):
            return Refused(f"{reason} The group has become a supergroup: set chat_id to {moved}.", disables=True)
        is_gone = answer.status == 400 and "chat not found" in words.lower()
        if answer.status in (401, 403, 404) or is_gone:  # the token is void; blocked, kicked, or no such chat
            return Refused(f"{reason} The bot is gone, or may not write to this chat.", disables=True)
        if may_pass(answer.status):
            return again(answer, reason, ways)
        return Refused(reason)


def render(message: Message) -> str:
    """The text of a message in Telegram's HTML."""
    if not message.is_digest:
        return _single(message, message.entries[0])
    for count in range(len(message.entries), 1, -1):
        shown, text = _digest(kept(message, count))
        if shown <= TEXT_UNITS_MAX:
            return text
    return _digest(kept(message, 1))[1]


def _single(message: Message, entry: Entry) -> str:
    """The output gets the room that the rest leaves."""
    lines = [f"{SIGNS[message.tone]} <b>{escape(entry.title)}</b>"]
    if entry.lead:
        lines.append(escape(entry.lead))
    colon = message.words.colon
    facts = [f"<b>{escape(label)}</b>{colon}{escape(value)}" for label, value in entry.facts]
    link = f'<a href="{html.escape(entry.url)}">{escape(message.words.open)}</a>' if entry.url else ""
    head, foot = "\n".join(lines), "\n".join([*facts, *([link] if link else [])])
    room = TEXT_UNITS_MAX - _shown(head) - _shown(foot) - 8
    # Within <pre> there are no mentions, so the output keeps its signs as they are.
    output = f"<pre>{html.escape(cut(entry.output, room))}</pre>" if entry.output and room > 20 else ""
    return "\n\n".join(part for part in (head, output, foot) if part)


def _digest(message: Message) -> tuple[int, str]:
    """How long it is as shown, and the text."""
    parts = [f"{SIGNS[message.tone]} <b>{escape(message.title)}</b>"]
    for entry in message.entries:
        title = escape(entry.title)
        linked = f'<a href="{html.escape(entry.url)}">{title}</a>' if entry.url else title
        lines = [f"{SIGNS[entry.tone]} {linked}", escape(entry.lead)]
        lines += [escape(f"{label}{message.words.colon}{value}") for label, value in entry.facts]
        parts.append("\n".join(line for line in lines if line))
    text = "\n\n".join([*parts, escape(message.more)] if message.more else parts)
    return _shown(text), text


_TAG = re.compile(r"<[^>]*>")


def _shown(text: str) -> int:
    """The length of what people see of text with tags."""
    return units(html.unescape(_TAG.sub("", text)))
