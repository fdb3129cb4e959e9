"""The pages of secrets: which there are, where they may go and who uses them, and the forms that set them.

Must never show a value, and never put one back into a form: not what the API holds, and not what was just typed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from zerocron.dashboard.asking import Answer, Problem
from zerocron.dashboard.forms import Form
from zerocron.dashboard.notices import N_
from zerocron.dashboard.reading import refusal
from zerocron.dashboard.rights import unable
from zerocron.dashboard.routes import Page, act, page
from zerocron.dashboard.visit import Visit, lines_of
from zerocron.dashboard.words import words_of

API = "/v1/secrets"
PAGE = 200
SECRETS_MAX = 500
TAKEN = N_("There is a secret of this name already. Replace its value on its own page.")
JOBS_LOOKED_AT_MAX = 1_000
"""So many jobs are searched for a secret's name, newest first: the API has no list of who uses one."""


@dataclass(frozen=True, slots=True)
class _Users:
    """The jobs that name a secret. `is_whole`: all jobs of the team were looked at, `looked_at` of them."""

    jobs: Sequence[Mapping[str, Any]]
    looked_at: int
    is_whole: bool


async def show_all(visit: Visit) -> Response:
    """GET /secrets."""
    items, cursor = await lines_of(visit.api, API, {"cursor": visit.query.get("cursor")})
    return visit.page("secrets/secrets.html", secrets=items, cursor=cursor, is_first="cursor" not in visit.query)


async def show(visit: Visit) -> Response:
    """GET /secrets/{name}."""
    secret = await _secret(visit, visit.path["name"])
    return visit.page("secrets/secret.html", secret=secret, users=await _users(visit, secret["name"]))


async def show_new(visit: Visit) -> Response:
    """GET /secrets/new."""
    if (instead := unable(visit, "write") or visit.confirm_first()) is not None:
        return instead
    return visit.page("secrets/form.html", secret=None, fields={"name": "", "allowed_hosts": ""})


async def create(visit: Visit) -> Response:
    """POST /secrets/new. Refused for a name that is taken: to replace a value is another form, which says what for."""
    form = await visit.form()
    name = form.get("name")
    fields = {"name": name, "allowed_hosts": form.raw("allowed_hosts")}
    try:
        if await _find(visit, name) is not None:
            told = words_of(visit.language).gettext(TAKEN)
            raise refusal(told, "name", told)
        await visit.api.send("PUT", f"{API}/{_segment(name)}", _document(form))
    except Problem as problem:
        return visit.refused(problem, "secrets/form.html", secret=None, fields=fields)
    return visit.go(f"/secrets/{name}", done="saved")


async def show_replace(visit: Visit) -> Response:
    """GET /secrets/{name}/replace."""
    if (instead := unable(visit, "write") or visit.confirm_first()) is not None:
        return instead
    secret = await _secret(visit, visit.path["name"])
    fields = {"name": secret["name"], "allowed_hosts": "\n".join(secret["allowed_hosts"])}
    return visit.page("secrets/form.html", secret=secret, fields=fields)


async def replace(visit: Visit) -> Response:
    """POST /secrets/{name}/replace."""
    form = await visit.form()
    secret = await _secret(visit, visit.path["name"])
    fields = {"name": secret["name"], "allowed_hosts": form.raw("allowed_hosts")}
    try:
        await visit.api.send("PUT", f"{API}/{secret['name']}", _document(form))
    except Problem as problem:
        return visit.refused(problem, "secrets/form.html", secret=secret, fields=fields)
    return visit.go(f"/secrets/{secret['name']}", done="saved")


async def ask_delete(visit: Visit) -> Response:
    """GET /secrets/{name}/delete."""
    if (instead := unable(visit, "write") or visit.confirm_first()) is not None:
        return instead
    return visit.page("secrets/delete.html", **await _sure(visit))


async def delete(visit: Visit) -> Response:
    """POST /secrets/{name}/delete."""
    try:
        await visit.api.send("DELETE", f"{API}/{visit.path['name']}")
    except Problem as problem:
        return visit.refused(problem, "secrets/delete.html", **await _sure(visit))
    return visit.go("/secrets", done="deleted")


async def ask_rotate(visit: Visit) -> Response:
    """GET /secrets/rotate."""
    if (instead := unable(visit, "admin")) is not None:
        return instead
    if visit.signed is None or not visit.signed.runs_server:
        return visit.go("/secrets")
    if (instead := visit.confirm_first()) is not None:
        return instead
    return visit.page("secrets/rotate.html", back="/secrets", sealed=None)


async def rotate(visit: Visit) -> Response:
    """POST /secrets/rotate."""
    try:
        done = await visit.api.send("POST", f"{API}/rotate")
    except Problem as problem:
        return visit.refused(problem, "secrets/rotate.html", back="/secrets", sealed=None)
    return visit.page("secrets/rotate.html", back="/secrets", sealed=done["secrets"])


async def _sure(visit: Visit) -> dict[str, Any]:
    secret = await _secret(visit, visit.path["name"])
    name = secret["name"]
    return {"secret": secret, "users": await _users(visit, name), "back": f"/secrets/{name}"}


async def _find(visit: Visit, name: str) -> Mapping[str, Any] | None:
    """The secret of this name, from the list: there is no route for one alone."""
    cursor: str | None = None
    for _ in range(-(-SECRETS_MAX // PAGE)):
        items, cursor = await lines_of(visit.api, API, {"limit": PAGE, "cursor": cursor})
        found: Mapping[str, Any] | None = next((each for each in items if each["name"] == name), None)
        if found is not None or cursor is None:
            return found
    return None


async def _secret(visit: Visit, name: str) -> Mapping[str, Any]:
    """The secret of this name. Raises Problem (404)."""
    found = await _find(visit, name)
    if found is None:
        raise Problem(Answer(404, {"title": "Not Found", "detail": "There is no such secret."}))
    return found


async def _users(visit: Visit, name: str) -> _Users:
    """Who names the secret, as far as it can be told with a bounded number of questions."""
    placeholder = f"${{secrets.{name}}}"
    jobs: list[Mapping[str, Any]] = []
    looked_at = 0
    cursor: str | None = None
    while looked_at < JOBS_LOOKED_AT_MAX:
        items, cursor = await lines_of(visit.api, "/v1/jobs", {"limit": PAGE, "cursor": cursor})
        looked_at += len(items)
        jobs += [job for job in items if _names(job, placeholder)]
        if cursor is None or not items:
            return _Users(jobs, looked_at, True)
    return _Users(jobs, looked_at, False)


def _names(job: Mapping[str, Any], placeholder: str) -> bool:
    return any(placeholder in text for text in (job["url"], job["body"] or "", *job["headers"].values()))


def _segment(name: str) -> str:
    """A name that was typed, as one part of a path: what can be none becomes one that the API refuses."""
    return name if name and "/" not in name else " "


def _document(form: Form) -> dict[str, Any]:
    hosts = [host for host in form.raw("allowed_hosts").replace(",", "\n").split() if host]
    return {"value": form.raw("value"), "allowed_hosts": hosts}


PAGES: tuple[Page, ...] = (
    page("/secrets", show_all),
    page("/secrets/new", show_new),
    act("/secrets/new", create),
    page("/secrets/rotate", ask_rotate),
    act("/secrets/rotate", rotate),
    page("/secrets/{name}", show),
    page("/secrets/{name}/replace", show_replace),
    act("/secrets/{name}/replace", replace),
    page("/secrets/{name}/delete", ask_delete),
    act("/secrets/{name}/delete", delete),
)
