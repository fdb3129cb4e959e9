"""The examples in docs/notifications.md, made by the code that sends: what stands between their marks is replaced."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import orjson

from docs.specimens import ALERT_ID, BASE_URL, DOWN, FAILED
from zerocron.channels import discord, slack, telegram
from zerocron.channels.contract import Envelope
from zerocron.channels.email import compose
from zerocron.channels.payload import PLACEHOLDERS, body_of
from zerocron.channels.wording import word
from zerocron.core.mail import read_mail
from zerocron.core.notice import Notice

PAGE = Path(__file__).parent / "notifications.md"
_BLOCK = re.compile(r"<!-- made: (?P<name>[a-z. ]+) -->\n.*?<!-- end -->", re.DOTALL)
_MAIL = read_mail("smtp://mail.example.com", "0cron <0cron@example.com>")
_SHOWN_HEADERS = ("From", "To", "Subject", "Message-ID", "List-Unsubscribe")


def notifications_page() -> str:
    """The page with its examples renewed."""
    return _BLOCK.sub(lambda found: _made(found["name"]), PAGE.read_text(encoding="utf-8"))


def examples() -> dict[str, str]:
    """What each channel shows of a failing job and of a silent monitor, as text."""
    made: dict[str, str] = {}
    for name, notice in (("failed", FAILED), ("down", DOWN)):
        envelope = _envelope(notice)
        made[f"email {name}"] = _email(envelope)
        made[f"slack {name}"] = _slack(slack.render(word(envelope)))
        made[f"discord {name}"] = _discord(discord.render(word(envelope)))
        made[f"telegram {name}"] = _telegram(telegram.render(word(envelope)))
    return made


def _made(name: str) -> str:
    if name == "placeholders":
        text = ", ".join(f"`${{{each}}}`" for each in PLACEHOLDERS) + "."
    elif name == "webhook json":
        text = f"```json\n{json.dumps(body_of(_envelope(FAILED)), indent=2, ensure_ascii=False)}\n```"
    elif name == "webhook digest":
        digest = json.loads(orjson.dumps(body_of(_envelope(FAILED, DOWN, more=4))))
        digest["data"]["events"] = ["..."]
        text = f"```json\n{json.dumps(digest, indent=2, ensure_ascii=False)}\n```"
    else:
        text = f"```text\n{examples()[name]}\n```"
    lines = "\n".join(line.rstrip() for line in text.split("\n"))
    return f"<!-- made: {name} -->\n{lines}\n<!-- end -->"


def _envelope(*notices: Notice, more: int = 0) -> Envelope:
    return Envelope(ALERT_ID, notices, BASE_URL, more=more)


def _email(envelope: Envelope) -> str:
    mail = compose(_MAIL, "ops@example.com", envelope, envelope.notices[-1].at)
    head = "\n".join(f"{name}: {mail[name]}" for name in _SHOWN_HEADERS)
    body = mail.get_body(("plain",))
    return f"{head}\n\n{'' if body is None else body.get_content().strip()}"


def _slack(payload: dict[str, Any]) -> str:
    parts: list[str] = []
    for block in payload["blocks"]:
        if "fields" in block:
            parts.append("\n".join(each["text"].replace("\n", ": ", 1) for each in block["fields"]))
        elif "elements" in block:
            parts.append(re.sub(r"<([^|]*)\|([^>]*)>", r"\2 (\1)", block["elements"][0]["text"]))
        else:
            parts.append(re.sub(r"^```(.*)```$", r"| \1", block["text"]["text"], flags=re.DOTALL))
    return html.unescape("\n\n".join(parts))


def _discord(payload: dict[str, Any]) -> str:
    [embed] = payload["embeds"]
    text = re.sub(r"```\n(.*?)\n```", r"\n| \1\n", embed.get("description", ""), flags=re.DOTALL)
    text = re.sub(r"\[([^]]*)\]\(<([^>]*)>\)", r"\1 (\2)", text)
    fields = "\n".join(f"{field['name']}: {field['value']}" for field in embed["fields"])
    return "\n\n".join(re.sub(r"\\([^A-Za-z0-9\s])", r"\1", part) for part in (embed["title"], text, fields))


def _telegram(text: str) -> str:
    text = re.sub(r"<pre>(.*?)</pre>", r"| \1", text, flags=re.DOTALL)
    text = re.sub(r'<a href="([^"]*)">([^<]*)</a>', r"\2 (\1)", text)
    return html.unescape(re.sub(r"</?b>", "", text))
