"""All kinds of channels. A new one is a file beside this one and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from zerocron.channels.apprise import Apprise
from zerocron.channels.contract import Kind
from zerocron.channels.discord import Discord
from zerocron.channels.email import Email
from zerocron.channels.slack import Slack
from zerocron.channels.telegram import Telegram
from zerocron.channels.webhook import Webhook

KINDS: Mapping[str, Kind] = {
    kind.name: kind for kind in (Email(), Slack(), Discord(), Telegram(), Webhook(), Apprise())
}
