"""Reads a curl command that somebody pasted, and says which request it makes.

Owns what curl's options mean for a request. Nothing is passed over in silence: what has no counterpart here is a
warning. Files are never read. Pure.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from zerocron.core import shell_words
from zerocron.core.errors import Invalid
from zerocron.core.exchange import REDIRECTS_MAX
from zerocron.core.requests import check_header

COMMAND_CHARACTERS_MAX = 20_000
SHOWN_CHARACTERS = 60
WARNINGS_MAX = 40
HEADERS_MAX = 50
REDIRECTS_OF_L = REDIRECTS_MAX
"""curl follows fifty with -L; a job as many as it may."""

_CREDENTIAL = re.compile(r"(?i)authorization|cookie|token|secret|api-?key|password")


@dataclass(slots=True)
class CurlRequest:
    """The request of a command. `timeout_seconds` None: the command has none; headers have distinct names."""

    url: str = ""
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    redirects: int = 0
    verify_tls: bool = True
    timeout_seconds: float | None = None
    warnings: list[str] = field(default_factory=list)


def parse(command: str) -> CurlRequest:
    """Raises Invalid for what is no curl command, names no address, or would read a file."""
    if len(command) > COMMAND_CHARACTERS_MAX:
        raise _refused(f"A command has at most {COMMAND_CHARACTERS_MAX:,} characters.")
    found = shell_words.split(command)
    reader = _Reader(_arguments(found.words))
    made = reader.run()
    for shown in found.expansions[:5]:
        what = (
            "a command that your shell would run"
            if shown in ("`", "$(")
            else f"{shown}, which your shell would fill in"
        )
        made.warnings.append(f"There is {what}. Put the value in its place; for a credential make a secret of it.")
    if found.has_bare_ampersand:
        made.warnings.append("There is a & outside of quotes, where a shell would end the command. It was taken along.")
    if found.rest:
        made.warnings.append(f"What follows the command was left out: {_shown(found.rest)}")
    return made


def _arguments(words: list[str]) -> list[str]:
    """The words behind `curl`."""
    for index, word in enumerate(words):
        name = re.split(r"[/\\]", word)[-1].lower()
        if name in ("curl", "curl.exe"):
            return words[index + 1 :]
        if word not in ("$", "sudo", "time", "env") and not re.fullmatch(r"[A-Za-z_]\w*=.*", word, re.DOTALL):
            break
    raise _refused("This is no curl command: it has to begin with `curl`.")


class _Reader:
    """Goes through the arguments of one command."""

    def __init__(self, arguments: list[str]) -> None:
        self._left = list(reversed(arguments))
        self._made = CurlRequest()
        self._urls: list[str] = []
        self._method: str | None = None
        self._data: list[str] = []
        self._json: list[str] = []
        self._is_get = self._is_head = self._follows = False
        self._redirects_max: int | None = None
        self._user: str | None = None

    def run(self) -> CurlRequest:
        only_urls = False
        while self._left:
            word = self._left.pop()
            if word == "--" and not only_urls:
                only_urls = True
            elif only_urls or not word.startswith("-") or word == "-":
                self._urls.append(word)
            elif word.startswith("--"):
                self._long(word)
            else:
                self._short(word)
        self._finish()
        return self._made

    def _long(self, word: str) -> None:
        name, is_joined, joined = word[2:].partition("=")
        name = _SAME.get(name, name)
        if is_joined:
            self._left.append(joined)
        if name in _VALUED:
            self._valued(name, word if not is_joined else f"--{name}")
        elif name in _FLAGS:
            self._flag(name)
            if is_joined:
                self._left.pop()
        elif name in _WITHOUT_COUNTERPART:
            self._warn_option(f"--{name}", self._value(f"--{name}"))
        else:
            value = self._left.pop() if is_joined else None
            self._warn_option(f"--{name}", value)

    def _short(self, word: str) -> None:
        """One word of short options: flags may stand together, and a value may follow at once."""
        letters = word[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            name = _SHORT.get(letter)
            if name is None:
                self._warn_option(f"-{letter}")
            elif name in _FLAGS:
                self._flag(name)
            else:
                if letters:
                    self._left.append(letters)
                    letters = ""
                if name in _VALUED:
                    self._valued(name, f"-{letter}")
                else:
                    self._warn_option(f"-{letter}", self._value(f"-{letter}"))

    def _value(self, option: str) -> str:
        if not self._left:
            raise _refused(f"The option {option} needs a value. Paste the whole command.")
        return self._left.pop()

    def _valued(self, name: str, option: str) -> None:
        getattr(self, _VALUED[name])(self._value(option), option)

    def _flag(self, name: str) -> None:
        if name == "get":
            self._is_get = True
        elif name == "head":
            self._is_head = True
        elif name == "location":
            self._follows = True
        elif name == "insecure":
            self._made.verify_tls = False
            self._warn("-k switches the verification of certificates off. Your operator has to allow that to jobs.")

    def _warn(self, text: str) -> None:
        warnings = self._made.warnings
        if len(warnings) < WARNINGS_MAX and text not in warnings:
            warnings.append(text if len(warnings) < WARNINGS_MAX - 1 else "There is more that was left out.")

    def _warn_option(self, option: str, value: str | None = None) -> None:
        whole = option if value is None else f"{option} {value}"
        self._warn(f"This was left out, as it has no counterpart here: {_shown(whole)}")

    # what options with a value do

    def _take_url(self, value: str, _option: str) -> None:
        self._urls.append(value)

    def _take_method(self, value: str, _option: str) -> None:
        self._method = value

    def _take_header(self, value: str, option: str) -> None:
        if value.startswith("@"):
            raise _file(option, value)
        name, colon, content = value.partition(":")
        if not colon and value.endswith(";"):
            self._set_header(value[:-1].strip(), "")
        elif not colon:
            self._warn(f"This is no header, and was left out: {_shown(value)}")
        elif not content.strip():
            self._warn(f"-H {_shown(value)} takes a header away that curl sends of itself. It was left out.")
        else:
            self._set_header(name.strip(), content.strip())

    def _take_data(self, value: str, option: str) -> None:
        if value.startswith("@"):
            raise _file(option, value)
        self._data.append(value)

    def _take_raw(self, value: str, _option: str) -> None:
        self._data.append(value)

    def _take_encoded(self, value: str, option: str) -> None:
        name, mark, content = re.fullmatch(r"([^=@]*)([=@]?)(.*)", value, re.DOTALL).groups()  # type: ignore[union-attr]
        if mark == "@":
            raise _file(option, f"@{content}")
        if not mark:
            name, content = "", value
        encoded = quote(content, safe="")
        self._data.append(f"{name}={encoded}" if name else encoded)

    def _take_json(self, value: str, option: str) -> None:
        if value.startswith("@"):
            raise _file(option, value)
        self._json.append(value)

    def _take_user(self, value: str, _option: str) -> None:
        self._user = value

    def _take_bearer(self, value: str, _option: str) -> None:
        self._set_header("Authorization", f"Bearer {value}")

    def _take_agent(self, value: str, _option: str) -> None:
        self._set_header("User-Agent", value)

    def _take_referer(self, value: str, _option: str) -> None:
        self._set_header("Referer", value.removesuffix(";auto"))

    def _take_cookie(self, value: str, option: str) -> None:
        if "=" not in value:
            raise _file(option, value)
        self._set_header("Cookie", value)

    def _take_time(self, value: str, option: str) -> None:
        if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", value) and float(value) > 0:
            self._made.timeout_seconds = float(value)
        else:
            self._warn_option(option, value)

    def _take_redirects(self, value: str, option: str) -> None:
        if re.fullmatch(r"\d{1,6}", value):
            self._redirects_max = int(value)
        else:
            self._warn_option(option, value)

    def _take_file(self, value: str, option: str) -> None:
        raise _file(option, value)

    def _set_header(self, name: str, value: str) -> None:
        try:
            check_header(name, value)
        except Invalid as refusal:
            self._warn(f"The header {_shown(name)} was left out: {refusal.message}")
            return
        if len(self._made.headers) >= HEADERS_MAX:
            self._warn(f"More than {HEADERS_MAX} headers were left out.")
            return
        for other in list(self._made.headers):
            if other.lower() == name.lower():
                del self._made.headers[other]
                self._warn(f"The header {_shown(name)} is there twice; the last one was taken.")
        self._made.headers[name] = value

    # what the whole comes to

    def _finish(self) -> None:
        if not self._urls:
            raise _refused("The command names no address.")
        if len(self._urls) > 1:
            others = _shown(", ".join(self._urls[1:]))
            self._warn(f"Only the first of {len(self._urls)} addresses was taken; make a job for each other: {others}")
        self._made.url = self._address(self._urls[0])
        self._authorise()
        has_data = bool(self._data or self._json)
        body = "".join(self._json) if self._json else "&".join(self._data)
        if self._json and self._data:
            self._warn("There are --json and other data; the JSON was taken.")
        if has_data and self._is_get:
            base, mark, fragment = self._made.url.partition("#")
            self._made.url = base + ("&" if "?" in base else "?") + body + mark + fragment
        elif has_data:
            self._made.body = body
            self._default_header("Content-Type", "application/json" if self._json else _FORM)
            if self._json:
                self._default_header("Accept", "application/json")
        sends = has_data and not self._is_get
        self._made.method = self._method or ("HEAD" if self._is_head else "POST" if sends else "GET")
        if self._follows:
            most = REDIRECTS_OF_L if self._redirects_max is None else self._redirects_max
            self._made.redirects = min(most, REDIRECTS_MAX)
            if self._redirects_max is not None and most > REDIRECTS_MAX:
                self._warn(f"A job follows at most {REDIRECTS_MAX} redirects.")
        if any(_CREDENTIAL.search(name) and "${secrets." not in value for name, value in self._made.headers.items()):
            self._warn("A header seems to hold a credential. Make a secret of it and write ${secrets.NAME} instead.")

    def _address(self, url: str) -> str:
        if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", url):
            url = f"http://{url}"
            self._warn(
                "The address names no scheme; curl takes http:// then, and so was done. Use https:// if you can."
            )
        scheme, _, rest = url.partition("://")
        authority = re.match(r"[^/?#]*", rest)[0]  # type: ignore[index]
        if "@" in authority:
            who, _, host = authority.rpartition("@")
            self._user = self._user if self._user is not None else unquote(who)
            url = f"{scheme}://{host}{rest[len(authority) :]}"
        if re.search(r"\{[^}$]*,[^}]*\}|\[\w+-\w+", url.replace("${", "")):
            self._warn("curl would make several addresses of the {} or [] in this one. They were left as they are.")
        return url

    def _authorise(self) -> None:
        if self._user is None:
            return
        if ":" not in self._user:
            self._warn("-u names no password, for which curl would ask. It was taken to be empty.")
            self._user += ":"
        self._default_header("Authorization", f"Basic {base64.b64encode(self._user.encode()).decode()}")

    def _default_header(self, name: str, value: str) -> None:
        """A header that curl sends unless another of its name is given."""
        if name.lower() not in {other.lower() for other in self._made.headers}:
            self._set_header(name, value)


_FORM = "application/x-www-form-urlencoded"
_VALUED: Mapping[str, str] = {
    "url": "_take_url",
    "request": "_take_method",
    "header": "_take_header",
    "data": "_take_data",
    "data-binary": "_take_data",
    "data-raw": "_take_raw",
    "data-urlencode": "_take_encoded",
    "json": "_take_json",
    "user": "_take_user",
    "oauth2-bearer": "_take_bearer",
    "user-agent": "_take_agent",
    "referer": "_take_referer",
    "cookie": "_take_cookie",
    "max-time": "_take_time",
    "max-redirs": "_take_redirects",
    "upload-file": "_take_file",
    "config": "_take_file",
    "variable": "_take_file",
}
_SAME = {"data-ascii": "data", "location-trusted": "location"}
_FLAGS = frozenset(
    [
        "get",
        "head",
        "location",
        "insecure",
        "compressed",
        "silent",
        "show-error",
        "verbose",
        "include",
        "fail",
        "fail-with-body",
        "no-buffer",
        "globoff",
        "progress-bar",
        "no-progress-meter",
        "basic",
        "path-as-is",
        "disable",
        "no-keepalive",
        "tcp-nodelay",
        "remote-name",
        "remote-header-name",
        "create-dirs",
        "parallel",
        "styled-output",
        "no-styled-output",
        "tlsv1.2",
        "http1.1",
    ]
)
"""Those that change the request, and those that only change what curl shows, keeps, or how it connects."""

_WITHOUT_COUNTERPART = frozenset(
    [
        "form",
        "form-string",
        "output",
        "write-out",
        "connect-timeout",
        "retry",
        "retry-delay",
        "retry-max-time",
        "proxy",
        "proxy-user",
        "proxy-header",
        "resolve",
        "connect-to",
        "cert",
        "cert-type",
        "key",
        "key-type",
        "cacert",
        "capath",
        "ciphers",
        "tls-max",
        "interface",
        "limit-rate",
        "speed-limit",
        "speed-time",
        "cookie-jar",
        "range",
        "continue-at",
        "time-cond",
        "dump-header",
        "trace",
        "trace-ascii",
        "stderr",
        "noproxy",
        "unix-socket",
        "abstract-unix-socket",
        "aws-sigv4",
        "local-port",
        "max-filesize",
        "proto",
        "proto-default",
        "proto-redir",
        "dns-servers",
        "doh-url",
        "pass",
        "pinnedpubkey",
        "netrc-file",
        "keepalive-time",
        "expect100-timeout",
        "happy-eyeballs-timeout-ms",
        "request-target",
        "rate",
        "url-query",
        "output-dir",
        "socks5",
        "socks5-hostname",
        "socks4",
        "preproxy",
        "login-options",
        "quote",
    ]
)
"""They take a value, and nothing here does what they do."""

_SHORT = {
    "X": "request", "H": "header", "d": "data", "u": "user", "A": "user-agent", "e": "referer", "b": "cookie",
    "m": "max-time", "T": "upload-file", "K": "config", "G": "get", "I": "head", "L": "location", "k": "insecure",
    "s": "silent", "S": "show-error", "v": "verbose", "i": "include", "f": "fail", "N": "no-buffer", "g": "globoff",
    "#": "progress-bar", "q": "disable", "O": "remote-name", "J": "remote-header-name", "Z": "parallel",
    "F": "form", "o": "output", "w": "write-out", "x": "proxy", "U": "proxy-user", "E": "cert", "c": "cookie-jar",
    "r": "range", "C": "continue-at", "z": "time-cond", "D": "dump-header", "Y": "speed-limit", "y": "speed-time",
    "Q": "quote",
}  # fmt: skip


def _shown(text: str) -> str:
    """In quotes: a sentence of ours keeps what is somebody's to the letter, in any language."""
    one_line = " ".join(text.split())
    return repr(one_line if len(one_line) <= SHOWN_CHARACTERS else one_line[: SHOWN_CHARACTERS - 1] + "…")


def _refused(message: str) -> Invalid:
    return Invalid(message, field="command")


def _file(option: str, value: str) -> Invalid:
    return _refused(
        f"{option} {_shown(value)} reads a file on your machine, which is not here. Paste its content instead."
    )
