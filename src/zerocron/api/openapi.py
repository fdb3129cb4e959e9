"""The OpenAPI document: what FastAPI knows of the routes, and what only we know.

Owns the words at its top, the security schemes, and the errors: every operation says which problems it answers with, so
that a client's author meets none of them in production first.
"""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import iter_route_contexts

from zerocron.api import samples
from zerocron.api.access import Need, need_of
from zerocron.api.cookies import PLAIN_NAME, SECURE_NAME
from zerocron.api.problems import MEDIA_TYPE, Problem

SUMMARY = "The scheduler that calls your HTTP endpoints at the right second, once, with proof."
DESCRIPTION = """
0cron calls HTTP endpoints on schedule and keeps a record of every slot: the request as it was sent, the answer as it
came, or the reason why there was none.

**Keys.** Send your API key as `Authorization: Bearer 0c_...`. A missing and a wrong key get the same answer. What a key
may do are its scopes, what a person may do comes with their role; what each operation needs stands with its 403.

**Form.** JSON in, JSON out. Instants are RFC 3339 in UTC; durations are seconds unless a name ends in `_ms`. Fields and
query parameters that do not exist are refused rather than passed over.

**Lists** take `limit` and `cursor` and answer `{"items": [...], "next_cursor": null}`. Give `next_cursor` as `cursor`
to go on. What is created meanwhile makes no item come twice or get lost.

**Once.** `POST` that creates takes an `Idempotency-Key`. Repeat a request with the same key when you do not know what
came of it: it is done once.

**Errors** are `application/problem+json` (RFC 9457). `detail` says what to do, `errors` names the fields. A request has
at most 1,572,864 bytes, an address 8,192, and JSON at most 32 levels.
"""
TAGS = [
    {"name": "jobs", "description": "What is called, and when."},
    {"name": "overview", "description": "All jobs and monitors of a team at a glance."},
    {"name": "runs", "description": "What happened: one run for each slot or trigger, one execution for each attempt."},
    {
        "name": "monitors",
        "description": "People's own jobs, which report by pings; silence means that something is wrong. A ping is "
        "`GET`, `HEAD` or `POST /v1/ping/{token}`, without a key: `/start` behind it says that a run begins, `/fail` "
        "that it failed, `/log` keeps the body alone, and an exit code (0 to 255) says how it ended. `?rid=<uuid>` "
        "names a run where several overlap. The answer is `200 OK` once the ping is durable.",
    },
    {"name": "channels", "description": "The ways out to people, who are told when something fails and recovers."},
    {"name": "alerts", "description": "What people were told, through which channel, and what came of it."},
    {"name": "requests", "description": "What a request would do, before it becomes a job."},
    {"name": "schedules", "description": "What a schedule would mean."},
    {"name": "secrets", "description": "Values that jobs send and nobody sees."},
    {"name": "signing", "description": "With what requests are signed, so that receivers can tell that they are ours."},
    {"name": "api keys", "description": "Which programs may use the API, and for what."},
    {"name": "teams", "description": "Who works together, and as what: teams, their members, invitations."},
    {"name": "audit", "description": "What was done in the team, and by whom. Nobody can change it."},
    {
        "name": "people",
        "description": "Who uses the pages: signing in, second factors, passwords. For browsers, with the cookie of a "
        "sign-in in place of a key; what changes something has to come from a page of this server.",
    },
    {"name": "operation", "description": "For those who run the server. No key is needed."},
]

_KEY = "apiKey"
_COOKIE = "signIn"
_SCHEMES = {
    _KEY: {"type": "http", "scheme": "bearer", "description": "An API key: `0c_`, its id, `_`, its secret."},
    _COOKIE: {
        "type": "apiKey",
        "in": "cookie",
        "name": SECURE_NAME,
        "description": f"The cookie of a sign-in, for browsers; it is called `{PLAIN_NAME}` where there is no TLS. "
        "What changes something has to come from a page of this server. Send a key or the cookie, never both.",
    },
}
_OF_KEYS_TOO = {("get", "/v1/session"), ("get", "/v1/teams")}
"""What else needs no permission is a person's own, and answers no key."""
_BODY = "JSON in UTF-8. It is read as such whatever `Content-Type` says, and also where there is none."
_REF = "#/components/schemas/"
_MEANINGS = {
    HTTPStatus.UNAUTHORIZED: "There is no API key, or not a good one.",
    HTTPStatus.FORBIDDEN: "This did not come from a page of this server, or is for who has signed in and not for keys.",
    HTTPStatus.NOT_FOUND: "There is no such thing, or it is another team's.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The request is too large.",
    HTTPStatus.REQUEST_URI_TOO_LONG: "The address is too long, its query included.",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The body is compressed; send it as it is, without a `Content-Encoding`.",
    HTTPStatus.UNPROCESSABLE_ENTITY: "The input cannot be accepted; `errors` names the fields.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "0cron failed; its log has the details under the `error_id`.",
    HTTPStatus.SERVICE_UNAVAILABLE: "The database cannot be used now. The same request may succeed later.",
}
_HEADERS: dict[str, dict[str, str]] = {
    "401": {"WWW-Authenticate": "`Bearer`"},
    "415": {"Accept-Encoding": "`identity`"},
    "500": {"X-Error-Id": "The `error_id`."},
    "429": {"Retry-After": "Seconds to wait."},
    "503": {"Retry-After": "Seconds to wait."},
}
_HEADERS_OF = {
    "create_job": {"201": {"Location": "Where the job is.", "Idempotent-Replay": "`true` when it was made before."}},
    "create_monitor": {
        "201": {"Location": "Where the monitor is.", "Idempotent-Replay": "`true` when it was made before."}
    },
    "create_channel": {
        "201": {"Location": "Where the channel is.", "Idempotent-Replay": "`true` when it was made before."}
    },
    "trigger_job": {"202": {"Location": "Where the run is.", "Idempotent-Replay": "`true` when it was made before."}},
}


_EXAMPLES = {
    "JobOut": samples.JOB,
    "RunOut": samples.RUN,
    "RunWithExecutions": samples.RUN | {"executions": [samples.EXECUTION]},
    "ExecutionOut": samples.EXECUTION,
    "MonitorOut": samples.MONITOR,
    "PingOut": samples.PING,
    "FlipOut": samples.FLIP,
    "ChannelOut": samples.CHANNEL,
    "AlertOut": samples.ALERT,
    "ApiKeyOut": samples.API_KEY,
    "AuditEntryOut": samples.AUDIT_ENTRY,
}
"""Set here because FastAPI takes every null out of what the models say."""


def document(app: FastAPI) -> dict[str, Any]:
    """The whole document. It is made once."""
    made = get_openapi(
        title=app.title,
        version=app.version,
        summary=SUMMARY,
        description=DESCRIPTION.strip(),
        tags=TAGS,
        routes=app.routes,
        servers=[{"url": "/", "description": "This server."}],
    )
    needed = _needs(app)
    for path, method, operation in _operations(made):
        _complete(path, method, operation, needed.get((path, method)))
    components = made["components"]
    components["securitySchemes"] = _SCHEMES
    schemas = components["schemas"] | _problem_schemas()
    for unused in ("HTTPValidationError", "ValidationError"):  # FastAPI's own form of errors
        schemas.pop(unused, None)
    for schema in schemas.values():
        _tidy(schema)
    for name, example in _EXAMPLES.items():
        schemas[name]["examples"] = [example]
    components["schemas"] = schemas
    renamed: dict[str, Any] = _renamed(made)
    return renamed


def _operations(made: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in made["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _needs(app: FastAPI) -> dict[tuple[str, str], Need]:
    found: dict[tuple[str, str], Need] = {}
    for route in iter_route_contexts(app.routes):
        need = need_of(route.endpoint) if route.endpoint is not None else None
        if need is not None:
            found |= {(str(route.path), method.lower()): need for method in route.methods or ()}
    return found


def _refusal(need: Need) -> str:
    proof = "a person has to have proved a moment ago who they are (`code`: `reauthenticate`)"
    if need.permission is None:
        return proof[0].upper() + proof[1:] + "."
    return f"It needs the permission `{need.permission}`" + (f", and {proof}." if need.is_elevated else ".")


def _complete(path: str, method: str, operation: dict[str, Any], need: Need | None) -> None:
    """Its name, its key, its problems and the headers of its answers. `need` None: it is not below `/v1/`."""
    operation["summary"] = operation["operationId"].replace("_", " ").replace("api key", "API key").capitalize()
    operation["summary"] = operation["summary"].replace("api key", "API key")
    if need is not None:
        operation["security"] = [{scheme: []} for scheme in _schemes(path, method, need)]
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = _without_null(parameter["schema"])
    responses = operation["responses"]
    responses.pop("422", None)  # FastAPI's own; ours has another form
    if "requestBody" in operation:
        operation["requestBody"]["description"] = _BODY
    for status in _problems_of(path, method, need) + ([HTTPStatus.FORBIDDEN] if "people" in operation["tags"] else []):
        responses.setdefault(str(int(status)), {"description": _MEANINGS[status]})
    if need is not None and (need.permission is not None or need.is_elevated):
        responses["403"] = {"description": " ".join(filter(None, (_refusal(need), _described(responses.get("403")))))}
    for code, response in responses.items():
        if code[0] in "45" and "content" not in response:
            response["content"] = {MEDIA_TYPE: {"schema": {"$ref": f"{_REF}Problem"}}}
        headers = _HEADERS.get(code, {}) | _HEADERS_OF.get(operation["operationId"], {}).get(code, {})
        if headers:
            response["headers"] = {
                name: {"description": text, "schema": {"type": "string"}} for name, text in headers.items()
            }
    operation["responses"] = dict(sorted(responses.items()))


def _schemes(path: str, method: str, need: Need) -> list[str]:
    """With which of them the operation may be asked: any one will do."""
    if need.is_public:
        return []
    return [_COOKIE] if need.permission is None and (method, path) not in _OF_KEYS_TOO else [_KEY, _COOKIE]


def _described(response: dict[str, Any] | None) -> str:
    """What the route itself says of such an answer."""
    return "" if response is None else str(response["description"])


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter can be left out; there is no way to write null in an address."""
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) != 1:
        return schema
    return {**{key: value for key, value in schema.items() if key != "anyOf"}, **options[0]}


def _problems_of(path: str, method: str, need: Need | None) -> list[HTTPStatus]:
    found = [HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.REQUEST_URI_TOO_LONG]
    if path.startswith("/v1/"):
        found += [HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE]
    if need is not None and not need.is_public:
        found.append(HTTPStatus.UNAUTHORIZED)
    if "{" in path:
        found.append(HTTPStatus.NOT_FOUND)
    if path.startswith("/v1/") and method != "get":  # a body is looked at also where none is needed
        found += [HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE]
    return found


def _problem_schemas() -> dict[str, Any]:
    schema = Problem.model_json_schema(ref_template=f"{_REF}{{model}}")
    parts: dict[str, Any] = schema.pop("$defs")
    return {**parts, "Problem": schema}


def _renamed(value: Any) -> Any:
    """The document with the names of its shapes as a client's author would have them: `Job`, not `JobOut`."""
    if isinstance(value, list):
        return [_renamed(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {name: _renamed(item) for name, item in value.items()}
    if isinstance(made.get("$ref"), str):
        made["$ref"] = _REF + _public_name(made["$ref"].removeprefix(_REF))
    if isinstance(made.get("schemas"), dict):
        made["schemas"] = dict(sorted((_public_name(name), schema) for name, schema in made["schemas"].items()))
    return made


def _public_name(name: str) -> str:
    return name.removesuffix("Out") if not name.endswith("In") else f"{name}put"


def _tidy(schema: dict[str, Any]) -> None:
    """Leave out what pydantic adds and nobody needs: a title for each field, the docstring of an enum in our code."""
    schema.pop("title", None)
    if "enum" in schema:
        schema.pop("description", None)
    for field in schema.get("properties", {}).values():
        field.pop("title", None)
