"""The pages for people, built from the OpenAPI document: no script, no style but our sheet, nothing from elsewhere.

Owns the HTML. Every text of the document passes `text` or `prose`, which escape it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from zerocron.api.docs_examples import curl, json_markup
from zerocron.api.docs_schema import Field, Shapes
from zerocron.api.problems import title_of

GETTING_STARTED = """\
export ZEROCRON_API_URL=$(cat data/local-url)
export ZEROCRON_API_KEY=$(cat data/local-key)"""

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the document, with what is needed to show it."""

    method: str
    path: str
    raw: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.raw["operationId"])

    @property
    def summary(self) -> str:
        return str(self.raw["summary"])


def reference_page(document: Document) -> str:
    """The whole reference."""
    shapes = Shapes(document)
    groups = [(tag, list(_operations(document, tag["name"]))) for tag in document["tags"]]
    sections = "".join(_group(tag, operations, shapes) for tag, operations in groups)
    body = (
        f'<div class="frame"><aside>{_brand(document)}{_contents(groups, shapes, "Contents")}</aside>'
        f'<details class="menu"><summary>Contents</summary>{_contents(groups, shapes, "Contents, folded")}</details>'
        f'<main id="content" tabindex="-1">{_introduction(document)}{sections}{_shapes(shapes)}</main></div>'
    )
    return _page("0cron API reference", body)


def text(value: object) -> str:
    """A text of the document, harmless."""
    return html.escape(str(value))


def prose(source: str) -> str:
    """The little of Markdown that our descriptions use: `code`, **strong**, links to nothing."""
    safe = html.escape(source, quote=False)
    safe = re.sub(r"`([^`]+)`", r"<code>\1</code>", safe)
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", safe)


def _paragraphs(source: str) -> str:
    return "".join(f"<p>{prose(part)}</p>" for part in source.strip().split("\n\n"))


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{text(title)}</title>'
        '<link rel="icon" type="image/svg+xml" href="/docs/icon.svg">'
        '<link rel="stylesheet" href="/docs/style.css"></head>'
        f'<body><a class="skip" href="#content">Skip to the content</a>{body}</body></html>'
    )


def _operations(document: Document, tag: str) -> Iterator[Operation]:
    for path, methods in document["paths"].items():
        for method, raw in methods.items():
            if tag in raw.get("tags", ()):
                yield Operation(method.upper(), path, raw)


def _brand(document: Document) -> str:
    info = document["info"]
    return f'<p class="brand"><a href="/">{text(info["title"])}</a> <span>API {text(info["version"])}</span></p>'


def _contents(groups: list[tuple[Any, list[Operation]]], shapes: Shapes, label: str) -> str:
    parts = ['<h2><a href="#content">Introduction</a></h2>']
    for tag, operations in groups:
        links = "".join(
            f'<li><a href="#{one.id}"><span>{text(one.summary)}</span>{_method(one.method)}</a></li>'
            for one in operations
        )
        parts.append(f"<h2>{text(tag['name'].capitalize().replace('Api', 'API'))}</h2><ul>{links}</ul>")
    links = "".join(f'<li><a href="#shape-{name}">{text(name)}</a></li>' for name in shapes.names())
    parts.append(f"<h2>Shapes</h2><ul>{links}</ul>")
    return f'<nav aria-label="{label}">{"".join(parts)}</nav>'


def _method(name: str) -> str:
    return f'<span class="method {name.lower()}">{name}</span>'


def _introduction(document: Document) -> str:
    info = document["info"]
    return (
        f'<section class="intro"><h1>{text(info["title"])} API</h1><p class="lead">{prose(info["summary"])}</p>'
        f"<div>{_paragraphs(info['description'])}</div>"
        "<h2>Before you start</h2>"
        "<p>The examples read two variables, as the command line does. Beside a server on your own machine:</p>"
        f"{_code(GETTING_STARTED)}"
        "<p>For another server, set them to its address and to a key made with <code>0cron keys create</code>. "
        "A click into an example selects it whole.</p></section>"
    )


def _group(tag: Mapping[str, str], operations: Iterable[Operation], shapes: Shapes) -> str:
    name = tag["name"].capitalize().replace("Api", "API")
    articles = "".join(_article(operation, shapes) for operation in operations)
    return f'<section class="group"><h2>{text(name)}</h2><p>{prose(tag["description"])}</p>{articles}</section>'


def _article(operation: Operation, shapes: Shapes) -> str:
    raw = operation.raw
    heading = f'<h3><a href="#{operation.id}">{text(operation.summary)}</a></h3>'
    path = re.sub(r"(\{\w+\})", r"<em>\1</em>", text(operation.path))
    line = f'<p class="line">{_method(operation.method)} <code>{path}</code></p>'
    about = _paragraphs(raw.get("description", "").replace("\n", " ").replace("  ", "\n\n"))
    told = "".join([heading, line, about, _parameters(raw, shapes), _request(raw, shapes), _responses(raw, shapes)])
    shown = _example(operation, shapes)
    return (
        f'<article id="{operation.id}" aria-label="{text(operation.summary)}">'
        f'<div class="told">{told}</div><div class="shown">{shown}</div></article>'
    )


def _parameters(raw: Mapping[str, Any], shapes: Shapes) -> str:
    titles = {"path": "In the path", "query": "In the query", "header": "Headers"}
    made = ""
    for place, title in titles.items():
        found = [parameter for parameter in raw.get("parameters", ()) if parameter["in"] == place]
        if found:
            schema = {
                "properties": {
                    one["name"]: {**one["schema"], "description": one.get("description", "")} for one in found
                },
                "required": [one["name"] for one in found if one.get("required")],
            }
            made += f"<h4>{title}</h4>{_table(shapes.fields(schema, nested=False))}"
    return made


def _request(raw: Mapping[str, Any], shapes: Shapes) -> str:
    schema = _body_schema(raw)
    if schema is None:
        return ""
    resolved, _ = shapes.resolve(schema)
    return f"<h4>Body</h4>{_table(shapes.fields(resolved, nested=True))}"


def _body_schema(raw: Mapping[str, Any]) -> Mapping[str, Any] | None:
    content = raw.get("requestBody", {}).get("content", {})
    found: Mapping[str, Any] | None = content.get("application/json", {}).get("schema")
    return found


def _responses(raw: Mapping[str, Any], shapes: Shapes) -> str:
    rows = []
    for code, response in raw["responses"].items():
        phrase = title_of(int(code))
        about = response["description"]
        if about == "Successful Response":
            about = "Done." if code == "204" else ""
        shape = _shape_link(_answer_schema(response), shapes) if code[0] == "2" else ""
        headers = "".join(
            f'<p class="header"><code>{text(name)}</code> {prose(header["description"])}</p>'
            for name, header in response.get("headers", {}).items()
        )
        kind = "good" if code[0] == "2" else "bad"
        rows.append(
            f'<div class="answer {kind}"><dt><b>{code}</b> <span>{text(phrase)}</span></dt>'
            f"<dd>{shape}<p>{prose(about)}</p>{headers}</dd></div>"
        )
    errors = '<p class="quiet">Errors are a <a href="#shape-Problem">Problem</a>.</p>'
    return f'<h4>Answers</h4>{errors}<dl class="answers">{"".join(rows)}</dl>'


def _answer_schema(response: Mapping[str, Any]) -> Mapping[str, Any] | None:
    for media in response.get("content", {}).values():
        found: Mapping[str, Any] | None = media.get("schema")
        return found
    return None


def _shape_link(schema: Mapping[str, Any] | None, shapes: Shapes) -> str:
    if schema is None:
        return ""
    _, name = shapes.resolve(schema)
    return f'<a class="shape" href="#shape-{name}">{text(name)}</a>' if name else ""


def _example(operation: Operation, shapes: Shapes) -> str:
    raw = operation.raw
    schema = _body_schema(raw)
    body = None if schema is None else shapes.example(schema)
    needed = [one for one in raw.get("parameters", ()) if one["in"] == "query" and one.get("required")]
    query = {one["name"]: str(one["schema"]["examples"][0]) for one in needed}
    command = curl(operation.method, operation.path, needs_key="security" in raw, body=body, query=query)
    made = f"<h4>Request</h4>{_code(command)}"
    code, response = next((code, answer) for code, answer in raw["responses"].items() if code[0] == "2")
    answer = _answer_schema(response)
    if answer is not None and "application/json" in response["content"]:
        example = json_markup(shapes.example(answer))
        made += f'<h4>Answer <span class="quiet">{code}</span></h4><pre tabindex="0"><code>{example}</code></pre>'
    return made


def _code(source: str) -> str:
    return f'<pre class="copy" tabindex="0"><code>{text(source)}</code></pre>'


def _table(fields: Iterable[Field]) -> str:
    rows = "".join(_row(field) for field in fields)
    return f'<dl class="fields">{rows}</dl>' if rows else '<p class="quiet">No fields yet.</p>'


def _row(field: Field) -> str:
    *parents, last = field.name.split(".")
    prefix = "".join(f"<span>{text(parent)}.</span>" for parent in parents)
    kind = text(field.type)
    if field.shape is not None:
        kind += f' <a class="shape" href="#shape-{field.shape}">{text(field.shape)}</a>'
    needed = '<span class="needed">required</span>' if field.required else ""
    notes = "".join(f"<li>{prose(note)}</li>" for note in field.notes)
    description = prose(field.description.replace("\n", " "))
    return (
        f'<div class="depth-{len(parents)}"><dt><code>{prefix}{text(last)}</code><span class="type">{kind}</span>'
        f"{needed}</dt><dd>{f'<p>{description}</p>' if description else ''}"
        f"{f'<ul>{notes}</ul>' if notes else ''}</dd></div>"
    )


def _shapes(shapes: Shapes) -> str:
    made = "".join(
        f'<article id="shape-{name}" class="whole"><h3><a href="#shape-{name}">{text(name)}</a></h3>'
        f"{_paragraphs(shapes.schema(name).get('description', ''))}"
        f"{_table(shapes.fields(shapes.schema(name), nested=False))}</article>"
        for name in shapes.names()
    )
    return f'<section class="group"><h2>Shapes</h2><p>What requests and answers are made of.</p>{made}</section>'
