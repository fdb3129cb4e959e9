"""A hundred more services, through the library Apprise: https://appriseit.com. Off unless the operator allows it.

Apprise dials by itself, in a thread, so **nothing of it passes the guard of addresses**: a channel of this kind can
reach whatever this server can, private networks included. That is why ZEROCRON_APPRISE is off by default, and why it is
for servers whose users are trusted like their operator. What acts on the server's own machine is refused even then.

The library is optional (`pip install 0cron[apprise]`) and imported when it is needed first. A thread cannot be stopped:
the time-out lets go of it, and at most THREADS_MAX hang at once.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec

from zerocron.channels.configuration import texts, wrong
from zerocron.channels.contract import (
    SEND_TIMEOUT_SECONDS,
    Accepted,
    Again,
    ConfigField,
    Delivery,
    Envelope,
    Refused,
    Ways,
)
from zerocron.channels.wording import Message, Tone, text_of, word

SETTING = "ZEROCRON_APPRISE"
THREADS_MAX = 4

_SCHEME = re.compile(r"([a-z][a-z0-9]{0,31})://\S+", re.IGNORECASE)
# These show or write something on the machine of the server itself.
_LOCAL = frozenset(("dbus", "qt", "kde", "glib", "gnome", "macosx", "windows", "syslog", "file", "exec"))
_TYPES = {Tone.BAD: "failure", Tone.WARNING: "warning", Tone.GOOD: "success", Tone.PLAIN: "info"}


class Apprise:
    name = "apprise"
    label = "Apprise"
    fields: tuple[ConfigField, ...] = (
        ConfigField(
            "url",
            "An Apprise URL, as its documentation shows for each service. Only where the operator has allowed it.",
            secret=True,
            example="ntfys://ntfy.sh/my-topic",
        ),
    )

    def check(self, config: Mapping[str, object]) -> dict[str, object]:
        given = texts(config, self.fields)
        found = _SCHEME.fullmatch(given["url"])
        if found is None or found[1].lower() in _LOCAL:
            raise wrong("url", "An Apprise URL begins with the name of a service, such as ntfys://ntfy.sh/my-topic.")
        if find_spec("apprise") is None:
            raise wrong("url", "This server has no Apprise; its operator can install it: pip install '0cron[apprise]'.")
        return {**given}  # what Apprise makes of the rest is seen by a test: to load all it knows takes seconds

    def destination(self, config: Mapping[str, object]) -> str:
        return f"{str(config['url']).partition(':')[0].lower()}://…"

    async def deliver(self, config: Mapping[str, object], envelope: Envelope, ways: Ways) -> Delivery:
        if not ways.apprise_allowed:
            return Refused(f"The operator of this server does not allow Apprise ({SETTING}).")
        url, message = str(config["url"]), word(envelope)
        sending = asyncio.get_running_loop().run_in_executor(_threads(), _send, url, message)
        try:
            is_sent = await asyncio.wait_for(sending, SEND_TIMEOUT_SECONDS)
        except TimeoutError:
            return Again(f"Apprise did not finish within {SEND_TIMEOUT_SECONDS:g} s.")
        except ImportError:
            return Again("This server has no Apprise; its operator can install it: pip install '0cron[apprise]'.")
        except Exception:  # a hundred plug-ins of others; their texts may hold the URL
            return Again("Apprise failed in a way of its own.")
        if is_sent is None:
            return Refused("Apprise does not know this service, or cannot read its URL.")
        return Accepted("by Apprise") if is_sent else Again("Apprise could not deliver it; it does not say why.")


def _send(url: str, message: Message) -> bool | None:
    """In a thread. None: there is no such service. Raises ImportError without the library, and whatever it raises."""
    import apprise

    asset = apprise.AppriseAsset(app_id="0cron", app_desc="0cron", secure_logging=True, interpret_escapes=False)
    service = apprise.Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
    if service is None:
        return None
    body = text_of(message).removeprefix(message.title).strip()
    return bool(service.notify(title=message.title, body=body or message.title, notify_type=_TYPES[message.tone]))


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="zerocron-apprise")
