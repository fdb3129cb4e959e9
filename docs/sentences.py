"""The sentences that the API says, taken from the source: what `words/<language>/said.po` has to have words for.

Owns what counts as one. A sentence is a string that is written like one (it has several words, begins like a sentence
and ends like one), wherever it stands: in a refusal, a table, a constant, a default. An f-string is one with places for
its values. So a new refusal is found without anybody having to remember it. Left out are docstrings, descriptions,
log lines, what fails only by a fault of ours, and the modules of `LEFT_OUT`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

from zerocron.api.problems import STATUSES, title_of
from zerocron.core.model import JobStatus, RunStatus

SOURCE = Path(__file__).parents[1] / "src" / "zerocron"
ROOMS = ("core", "actions", "api", "storage", "engine", "channels", "outbound")
OF_PAGES = ("dashboard/visit.py",)
"""Modules of the dashboard that refuse in the API's place."""

LEFT_OUT = {
    "core/phrases/": "plain language has tables of its own for each language, and said.py takes them from there",
    "core/schedule/": "as core/phrases; what parses and describes has no sentences of its own",
    "core/proxies.py": "settings, read at start; a node operator's",
    "core/sealing.py": "settings, read at start, and faults of ours",
    "core/single_sign_on.py": "settings; a refused sign-in is told by its code",
    "core/id_tokens.py": "for the log; a refused sign-in is told by its code",
    "core/spans.py": "an option of commands",
    "core/signing.py": "faults of ours",
    "core/histogram.py": "faults of ours",
    "actions/resume.py": "a command of a node operator",
    "actions/team_limits.py": "a command of a node operator",
    "actions/oidc.py": "for the log; a refused sign-in is told by its code",
    "actions/entrance.py": "a line at the server's start",
    "api/docs": "the reference of the API, which is in English",
    "api/openapi.py": "the reference of the API, which is in English",
    "api/samples.py": "the reference of the API, which is in English",
    "api/reference.py": "the reference of the API, which is in English",
    "api/pings.py": "answered to machines that ping",
    "api/signing.py": "descriptions of the reference",
    "channels/words.py": "messages have their own words in each language",
    "channels/wording.py": "as channels/words.py",
    "channels/email_html.py": "as channels/words.py",
    "channels/letters.py": "as channels/words.py",
    "engine/zonedata.py": "a line at the server's start",
    "storage/": "faults that the API answers with one sentence of its own (api/problems.py), and node operators'",
}
"""What a person on a page never reads, and why. A name that ends in / is a folder; any other begins a name."""

IN_PARTS = (
    "actions/channels.py",
    "api/access.py",
    "api/wording.py",
    "channels/webhook.py",
    "core/curl.py",
    "core/success.py",
    "outbound/failures.py",
)
"""Modules that put sentences together from parts; their parts are taken as well."""

_UNREAD_KEYWORDS = frozenset(
    (
        "description",
        "summary",
        "help",
        "examples",
        "response_description",
        "openapi_extra",
        "pattern",
        "json_schema_extra",
    )
)
_DESCRIBED_BY = frozenset(("visible_text", "secret_text"))
"""Functions of the API whose texts are descriptions for its reference."""

_FAULTS_OF_OURS = frozenset(("AssertionError", "RuntimeError", "TypeError", "NotImplementedError", "SystemExit"))
"""What is raised with these is for the log or the terminal: no reader of a page meets it."""

_SENTENCE = re.compile(r"[A-Z0-9{'\"-].*[.?!}]", re.DOTALL)
_PART = re.compile(r"(?:[a-z;{]|The )[^\\|()^$_=<>]*")
_WORDS = re.compile(r"[A-Za-z]+[^A-Za-z]+(?:.*[^A-Za-z])?[A-Za-z]{2,}|[a-z]{2,} \{|\} [a-z]{2,}", re.DOTALL)
_NO_SENTENCES = frozenset(("Basic {0}", "Bearer {0}", "Authorization: Bearer ...", '{"text": "${title}"}'))
_PLACE = re.compile(r"\{\d+\}")


def sentences() -> list[str]:
    """All of them, each once."""
    found = {text for path in _modules() for text in of_source(path.read_text(), has_parts=_name(path) in IN_PARTS)}
    found |= {title_of(status) for status in {*STATUSES.values(), *_OTHER_STATUSES}}
    found |= {str(status) for status in (*JobStatus, *RunStatus)}  # "The job was paused from …"
    return sorted(found)


_OTHER_STATUSES = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.METHOD_NOT_ALLOWED,
    HTTPStatus.REQUEST_URI_TOO_LONG,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.INTERNAL_SERVER_ERROR,
)


def _modules() -> Iterator[Path]:
    for room in ROOMS:
        for path in sorted((SOURCE / room).rglob("*.py")):
            if not _name(path).startswith(tuple(LEFT_OUT)):
                yield path
    yield from (SOURCE / name for name in OF_PAGES)


def _name(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def of_source(source: str, *, has_parts: bool = False) -> list[str]:
    """The sentences in a module, with `{0}` and so on in the places of values."""
    return [text for given in _strings(ast.parse(source)) if (text := _sentence(given, has_parts=has_parts))]


def _sentence(given: str, *, has_parts: bool) -> str:
    text = given.strip()
    is_one = _SENTENCE.fullmatch(text) or (has_parts and _PART.fullmatch(text))
    if text in _NO_SENTENCES or not is_one or " " not in text or not _WORDS.search(text) or "\n" in text:
        return ""
    return text


def _strings(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # a docstring
    if isinstance(node, ast.Assert):
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        node.decorator_list = []  # what describes a route
    if isinstance(node, ast.Call):
        yield from _of_call(node)
        return
    text = _template(node)
    if text is None:
        inner = [*(_read_values(node) if isinstance(node, ast.Dict) else ast.iter_child_nodes(node))]
    else:
        yield _numbered(text)
        inner = [each.value for each in ast.walk(node) if isinstance(each, ast.FormattedValue)]
    for each in inner:
        yield from _strings(each)


def _read_values(node: ast.Dict) -> Iterator[ast.expr]:
    for key, value in zip(node.keys, node.values, strict=True):
        if not (isinstance(key, ast.Constant) and key.value in _UNREAD_KEYWORDS):
            yield value


def _of_call(node: ast.Call) -> Iterator[str]:
    called = ast.unparse(node.func)
    if called.startswith("log.") or called in _FAULTS_OF_OURS | _DESCRIBED_BY:
        return
    for each in (node.func, *node.args, *(word.value for word in node.keywords if word.arg not in _UNREAD_KEYWORDS)):
        yield from _strings(each)


def _template(node: ast.AST) -> str | None:
    """A string with a place, `{0}`, for each value in it; None for what is no string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(each.value) if isinstance(each, ast.Constant) else "{0}" for each in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _template(node.left), _template(node.right)
        return None if left is None or right is None else left + right
    return None


def _numbered(template: str) -> str:
    """With its places counted. Two places side by side are one: nobody could tell where the second begins."""
    count = iter(range(100))
    return _PLACE.sub(lambda _: f"{{{next(count)}}}", re.sub(r"(?:\{0\}){2,}", "{0}", template))
