"""A webhook of one's own: a POST with JSON, signed as Standard Webhooks 1.0.0 says. docs/notifications.md documents it.

Owns what a configuration may hold (a URL that passes the address guard when it is called, keys, headers, a template)
and what an answer means. 2xx is success and nothing else is: a redirect is not followed, because it would carry a
signed message to where nobody configured it. Everything but 410 is tried again for as long as the notifier cares to: a
receiver that is being deployed answers 404, 401 or 302 for some minutes, and a lost alert is worse than a late one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from zerocron.channels.configuration import texts, url, wrong
from zerocron.channels.contract import ConfigField, Delivery, Envelope, Refused, Ways
from zerocron.channels.exchange import JSON_HEADERS, accepted, again, echo, post, said
from zerocron.channels.payload import body_of, check_template, fill_template
from zerocron.core.errors import Invalid
from zerocron.core.exchange import Response
from zerocron.core.requests import check_header, split_url
from zerocron.core.signing import read_key, signed_headers

KEYS_MAX = 2
HEADERS_MAX = 20
HEADERS_CHARACTERS_MAX = 10_000


class Webhook:
    name = "webhook"
    label = "Webhook"
    fields: tuple[ConfigField, ...] = (
        ConfigField("url", "Where messages are posted to.", secret=True, example="https://example.com/alerts"),
        ConfigField(
            "key",
            "The key that signs: whsec_ and 24 to 64 random bytes in base64. During a rotation two, the new one first, "
            "with a blank between them. Without any, messages are not signed.",
            required=False,
            secret=True,
            example="whsec_...",
        ),
        ConfigField(
            "headers",
            "Headers to send, one a line, such as 'Authorization: Bearer ...'.",
            required=False,
            secret=True,
            example="Authorization: Bearer ...",
        ),
        ConfigField(
            "template",
            "JSON to send in place of 0cron's own, with placeholders such as ${title} in its texts.",
            required=False,
            example='{"text": "${title}"}',
        ),
    )

    def check(self, config: Mapping[str, object]) -> dict[str, object]:
        given = texts(config, self.fields, characters_max=HEADERS_CHARACTERS_MAX)
        url(given["url"], "url")
        try:
            keys = [read_key(key) for key in given.get("key", "").split()]
        except ValueError:
            raise wrong("key", "A key is written whsec_ and 24 to 64 random bytes in base64.") from None
        if len(keys) > KEYS_MAX:
            raise wrong("key", "There are at most two keys, the new one first.")
        _headers(given.get("headers", ""))
        try:
            check_template(given.get("template", "{}"))
        except ValueError as error:
            raise wrong("template", str(error)) from None
        return {**given}

    def destination(self, config: Mapping[str, object]) -> str:
        split = split_url(str(config["url"]))
        return split.host + ("" if split.port is None else f":{split.port}") + "/…"

    async def deliver(self, config: Mapping[str, object], envelope: Envelope, ways: Ways) -> Delivery:
        to = str(config["url"])
        template = config.get("template")
        body = fill_template(str(template), envelope) if template else orjson.dumps(body_of(envelope))
        keys = [read_key(key) for key in str(config.get("key") or "").split()]
        given = _headers(str(config.get("headers") or ""))
        own = {name.lower() for name, _ in given}
        headers = [*(header for header in JSON_HEADERS if header[0].lower() not in own), *given]
        signed = signed_headers(keys, message_id=envelope.alert_id, timestamp_seconds=ways.now() // 1000, body=body)
        headers += [header for header in signed if keys or header[0] != "webhook-signature"]
        answer = await post(ways, to, body, headers, who="The webhook")
        if not isinstance(answer, Response):
            return answer
        words = echo(answer.body, _secrets(to, given, str(config.get("key") or "").split()))
        if done := accepted(answer, words):
            return done
        reason = said("The webhook", answer, words)
        if answer.status == 410:
            return Refused(f"{reason} It wants no more messages.", disables=True)
        if 300 <= answer.status <= 399:
            reason += " Redirects are not followed: configure the URL that it leads to."
        return again(answer, reason, ways)


def _headers(text: str) -> list[tuple[str, str]]:
    """The headers in lines of `Name: value`. Raises Invalid."""
    headers: list[tuple[str, str]] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        name, colon, value = line.partition(":")
        try:
            if not colon:
                raise Invalid("A header is written on a line of its own, as in 'X-Team: ops'.")
            check_header(name.strip(), value.strip())
        except Invalid as error:
            raise wrong("headers", error.message) from None
        headers.append((name.strip(), value.strip()))
    names = [name.lower() for name, _ in headers]
    if len(headers) > HEADERS_MAX or len(set(names)) < len(names):
        raise wrong("headers", f"There are at most {HEADERS_MAX} headers, each of them once.")
    return headers


def _secrets(to: str, headers: Sequence[tuple[str, str]], keys: Sequence[str]) -> list[str]:
    """What an answer might echo: the URL and the parts of it that tell, the values of headers, the keys."""
    path, _, query = split_url(to).rest.partition("?")
    parts = [to, path, query, *path.split("/"), *(pair.partition("=")[2] for pair in query.split("&"))]
    values = [value for _, value in headers]
    return [*parts, *values, *(value.rpartition(" ")[2] for value in values), *keys]
