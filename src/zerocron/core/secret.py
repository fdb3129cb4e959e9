"""A secret: what one may be, and the value of one that hides itself.

Owns the bounds of names, values and host rules, and the type in which a value travels through the process. Whatever
prints, formats, copies into a log or serialises a `Secret` gets its name; only `reveal` gives the value, and it is
called where a request is rendered, sealed or masked, nowhere else. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NoReturn

from zerocron.core.errors import Invalid
from zerocron.core.requests import split_url

NAME = r"[A-Z_][A-Z0-9_]{0,63}"
VALUE_CHARACTERS_MIN = 8
"""A shorter value would be masked in every other word of an answer, and is guessed as fast."""

VALUE_BYTES_MAX = 16_384
ALLOWED_HOSTS_MAX = 20
SECRETS_MAX = 500
"""Of one team: they are sealed anew in one transaction."""

SECRETS_A_REQUEST_MAX = 50
"""Each is looked for in all of the answer, in every spelling."""

_NAME = re.compile(NAME)


class Secret:
    """A value and the hosts it may be sent to; empty `allowed_hosts`: to any."""

    __slots__ = ("_value", "allowed_hosts", "name")

    def __init__(self, name: str, value: str, allowed_hosts: Sequence[str] = ()) -> None:
        self.name = name
        self.allowed_hosts = tuple(allowed_hosts)
        self._value = value

    def reveal(self) -> str:
        """The value itself."""
        return self._value

    def __repr__(self) -> str:
        return f"<secret {self.name}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A secret is not copied or serialised.")


def check_name(name: str) -> str:
    """Raises Invalid."""
    if _NAME.fullmatch(name) is None:
        raise Invalid(
            "The name of a secret has capitals, digits and underscores, at most 64, and does not begin with a digit: "
            "STRIPE_KEY.",
            field="name",
        )
    return name


def check_value(value: str) -> str:
    """Raises Invalid, whose text tells nothing of the value."""
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise Invalid("The value is not valid Unicode text.", field="value") from None
    if len(value) < VALUE_CHARACTERS_MIN:
        raise Invalid(
            f"The value of a secret has at least {VALUE_CHARACTERS_MIN} characters: a shorter one could not be told "
            "from ordinary text in what targets answer, and so not be masked.",
            field="value",
        )
    if size > VALUE_BYTES_MAX:
        raise Invalid(f"The value of a secret has at most {VALUE_BYTES_MAX:,} bytes.", field="value")
    if "\0" in value:
        raise Invalid("The value of a secret holds no NUL character.", field="value")
    return value


def check_allowed_hosts(hosts: Iterable[str]) -> tuple[str, ...]:
    """The hosts in the form they are compared in. Raises Invalid."""
    checked = dict.fromkeys(_checked_host(host) for host in hosts)
    if len(checked) > ALLOWED_HOSTS_MAX:
        raise Invalid(f"A secret has at most {ALLOWED_HOSTS_MAX} allowed hosts.", field="allowed_hosts")
    return tuple(checked)


def _checked_host(text: str) -> str:
    wildcard = "*." if text.startswith("*.") else ""
    host = text.removeprefix("*.")
    try:
        split = split_url(f"https://[{host}]/" if host.count(":") > 1 and "[" not in host else f"https://{host}/")
    except Invalid:
        split = None
    if split is None or split.port is not None or split.rest != "/" or (wildcard and split.literal):
        raise Invalid(
            "An allowed host is a name or an address without scheme, port or path, such as api.example.com, or "
            "*.example.com for every host below that.",
            field="allowed_hosts",
        )
    return wildcard + split.host.removesuffix(".")


def may_go_to(host: str, allowed_hosts: Sequence[str]) -> bool:
    """Whether one of the rules fits the host, which is ASCII and lower-case."""
    host = host.removesuffix(".")
    return any(
        host.endswith(rule[1:]) and len(host) >= len(rule) if rule.startswith("*.") else host == rule
        for rule in allowed_hosts
    )
