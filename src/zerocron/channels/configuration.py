"""What the kinds share when they read a configuration: texts of bounded length, no field that nobody knows, URLs that
lead to the one service and nowhere else.

A field that is at fault is named `config.<name>`; no message repeats a value, for it may be a secret. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from zerocron.channels.contract import ConfigField
from zerocron.core.errors import FieldError, Invalid
from zerocron.core.requests import URL_CHARACTERS_MAX, SplitUrl, check_url, split_url


def texts(config: Mapping[str, object], fields: Collection[ConfigField], characters_max: int = 4_000) -> dict[str, str]:
    """The fields that are given, as text without blanks around it. Raises Invalid that names every one at fault."""
    known = {field.name for field in fields}
    faults = [
        FieldError(f"config.{name[:60]}", f"There is no such field; there are {', '.join(sorted(known))}.")
        for name in config
        if name not in known
    ]
    found: dict[str, str] = {}
    for field in fields:
        value = config.get(field.name)
        if value is not None and not isinstance(value, str):
            faults.append(FieldError(f"config.{field.name}", "This has to be a text."))
        elif value is None or not value.strip():
            if field.required:
                example = f" Such as {field.example}" if field.example else ""
                faults.append(FieldError(f"config.{field.name}", f"This is needed: {field.help}{example}"))
        elif len(value) > characters_max:
            faults.append(FieldError(f"config.{field.name}", f"This has at most {characters_max:,} characters."))
        else:
            found[field.name] = value.strip()
    if faults:
        raise Invalid(" ".join(f"{fault.field}: {fault.message}" for fault in faults), fields=faults)
    return found


def url(text: str, name: str) -> SplitUrl:
    """A URL that may be called, in parts. Raises Invalid that names the field."""
    try:
        return split_url(check_url(text))
    except Invalid as error:
        raise wrong(name, error.message) from None


def pinned(text: str, name: str, hosts: Collection[str], path: re.Pattern[str], example: str) -> re.Match[str]:
    """The match of `path` in a URL of a service: https, one of its hosts exactly, its port, its form of path."""
    split = url(text, name) if len(text) <= URL_CHARACTERS_MAX else None
    found = path.fullmatch(split.rest) if split is not None else None
    if split is None or found is None or split.scheme != "https" or split.port is not None or split.host not in hosts:
        raise wrong(name, f"This is not a URL of that service. It looks like {example}")
    return found


def wrong(name: str, message: str) -> Invalid:
    return Invalid(message, field=f"config.{name}")
