"""Reading JSON Schema for people: types, bounds and defaults in words, and an example of each shape.

Works on the OpenAPI document alone, so that the page cannot say anything else than the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from zerocron.api.wording import number

Schema = Mapping[str, Any]
NESTED_MAX = 3
_REFERENCE = re.compile(r"#/components/schemas/(\w+)")


@dataclass(frozen=True, slots=True)
class Field:
    """One row of a table of fields."""

    name: str
    type: str
    shape: str | None  # the name of the component it is made of, where that has a table of its own
    required: bool
    notes: tuple[str, ...]
    description: str


class Shapes:
    """The components of a document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._components: dict[str, Schema] = document["components"]["schemas"]
        answered = [
            answer
            for methods in document["paths"].values()
            for one in methods.values()
            for answer in one["responses"].values()
        ]
        self._answers = self._reached(answered)

    def names(self) -> list[str]:
        """Those that answers are made of; what requests are made of is shown where it is sent."""
        return sorted(name for name in self._answers if "properties" in self._components[name])

    def _reached(self, start: Any) -> set[str]:
        """The names of all components that something refers to, directly or through others."""
        found: set[str] = set()
        ahead = set(_REFERENCE.findall(str(start)))
        while ahead:
            found |= ahead
            ahead = {name for known in ahead for name in _REFERENCE.findall(str(self._components[known]))} - found
        return found

    def schema(self, name: str) -> Schema:
        return self._components[name]

    def resolve(self, schema: Schema) -> tuple[Schema, str | None]:
        """The schema behind a reference, and its name."""
        name = _ref_name(schema)
        return (schema, None) if name is None else (self._components[name], name)

    def fields(self, schema: Schema, *, nested: bool, prefix: str = "", depth: int = 0) -> Iterator[Field]:
        """Its fields; with `nested`, those of the objects in it too, by dotted names."""
        required = schema.get("required", [])
        for name, given in schema.get("properties", {}).items():
            inner, optional = self._without_null(given)
            resolved, shape = self.resolve(inner)
            is_object = "properties" in resolved
            yield Field(
                name=prefix + name,
                type=self.type_of(given),
                shape=None if nested else shape if is_object else self._item_shape(resolved),
                required=name in required,
                notes=tuple(_notes(given, resolved, optional=optional)),
                description=given.get("description") or resolved.get("description", ""),
            )
            if nested and is_object and depth < NESTED_MAX:
                yield from self.fields(resolved, nested=True, prefix=f"{prefix}{name}.", depth=depth + 1)

    def type_of(self, given: Schema) -> str:
        """`text`, `whole number`, `list of text`, `object or null`..."""
        if "anyOf" in given:
            *most, last = dict.fromkeys(self.type_of(option) for option in given["anyOf"])
            return f"{', '.join(most)} or {last}" if most else last
        schema, _ = self.resolve(given)
        kind = schema.get("type", "")
        if kind == "array":
            return f"list of {self.type_of(schema['items'])}" if schema.get("items") else "list"
        if kind == "string" and schema.get("format") == "date-time":
            return "instant"
        return _TYPES.get(kind, kind or "anything")

    def example(self, given: Schema, depth: int = 0) -> Any:
        """A value that fits the schema and looks like a real one."""
        inner, _ = self._without_null(given)
        schema, _ = self.resolve(inner)
        examples = given.get("examples") or inner.get("examples") or schema.get("examples")
        if examples:
            return _in_order(examples[0], schema)
        for source in (given, inner, schema):
            if source.get("default") is not None:
                return source["default"]
        if "enum" in schema:
            return schema["enum"][0]
        if "const" in schema:
            return schema["const"]
        if "anyOf" in schema:
            return self.example(schema["anyOf"][0], depth)
        return self._made_up(schema, depth)

    def _made_up(self, schema: Schema, depth: int) -> Any:
        kind = schema.get("type")
        if kind == "object" or "properties" in schema:
            properties = schema.get("properties", {})
            return {} if depth > 6 else {name: self.example(part, depth + 1) for name, part in properties.items()}
        if kind == "array":
            return [self.example(schema["items"], depth + 1)] if schema.get("items") else []
        return {"string": "text", "integer": 1, "number": 12.5, "boolean": False}.get(str(kind))

    def _without_null(self, given: Schema) -> tuple[Schema, bool]:
        options = given.get("anyOf")
        if not options:
            return given, False
        kept = [option for option in options if option.get("type") != "null"]
        return (kept[0] if len(kept) == 1 else given), len(kept) < len(options)

    def _item_shape(self, schema: Schema) -> str | None:
        items = schema.get("items")
        if not items:
            return None
        resolved, name = self.resolve(items)
        return name if "properties" in resolved else None


_TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "object",
    "null": "null",
}


def _in_order(example: Any, schema: Schema) -> Any:
    """The example with its members in the order of the fields: the document has them by name."""
    if not isinstance(example, dict) or "properties" not in schema:
        return example
    return {name: example[name] for name in schema["properties"] if name in example}


def _ref_name(schema: Schema) -> str | None:
    reference = schema.get("$ref")
    if reference is None and len(schema.get("allOf", ())) == 1:
        reference = schema["allOf"][0].get("$ref")
    return None if reference is None else str(reference).rpartition("/")[2]


def _notes(given: Schema, resolved: Schema, *, optional: bool) -> Iterator[str]:
    """Bounds, choices and the default, each in a few words."""
    bounds = {**resolved, **given}
    if "enum" in bounds:
        yield "one of " + ", ".join(f"`{choice}`" for choice in bounds["enum"])
    if "const" in bounds:
        yield f"always `{bounds['const']}`"
    low, high = bounds.get("minimum"), bounds.get("maximum")
    if low is not None and high is not None:
        yield f"{number(low)} to {number(high)}"
    elif low is not None:
        yield f"at least {number(low)}"
    elif high is not None:
        yield f"at most {number(high)}"
    yield from _sizes(bounds)
    if given.get("default") not in (None, {}, []) and "properties" not in resolved:
        yield f"default `{_json(given['default'])}`"
    elif optional and "default" in given:
        yield "default `null`"


def _sizes(bounds: Schema) -> Iterator[str]:
    if "maxLength" in bounds:
        least, most = bounds.get("minLength", 0), bounds["maxLength"]
        yield f"{least:,} to {most:,} characters" if least else f"at most {most:,} characters"
    if "maxItems" in bounds:
        yield f"at most {bounds['maxItems']:,} items"
    if "maxProperties" in bounds:
        yield f"at most {bounds['maxProperties']:,} members"


def _json(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
