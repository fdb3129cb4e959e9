"""What holds for every page and state: the specimens stand for all of them."""

from __future__ import annotations

import itertools
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from docs import screenshots
from tests.dashboard.support import Element, Pages, read

from zerocron.dashboard import gallery
from zerocron.dashboard.asking import call
from zerocron.dashboard.specimens import SPECIMENS
from zerocron.dashboard.words import LANGUAGES

DOCUMENT = json.loads((Path(__file__).parents[2] / "docs" / "openapi.json").read_text(encoding="utf-8"))
HEADINGS = ("h1", "h2", "h3", "h4")


async def shown(name: str, language: str = "en") -> str:
    """The page of a specimen, for a reader of a language."""
    answer = await Pages.of(name).specimen(name, language)
    assert answer.headers["content-type"].startswith("text/html"), answer.content[:300]
    return answer.html


@pytest.mark.parametrize("name", SPECIMENS)
async def test_a_page_is_well_made(name: str) -> None:
    tree = read(await shown(name))

    assert len(tree.all("h1")) == 1
    levels = [HEADINGS.index(each.tag) for each in tree.all() if each.tag in HEADINGS]
    assert levels[0] == 0
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), levels
    ids = [each.get("id") for each in tree.all() if each.get("id")]
    assert sorted(ids) == sorted(set(ids))
    for each in tree.all():
        for reference in ("aria-labelledby", "aria-describedby", "for"):
            assert set(each.get(reference).split()) <= set(ids), each.attributes
    labelled = {each.get("for") for each in tree.all("label")} | {
        field.get("id") for label in tree.all("label") for field in label.all("input")
    }
    fields = [each for each in tree.all() if each.tag in ("input", "select", "textarea")]
    for field in fields:
        is_named = field.get("type") == "hidden" or field.get("aria-label") or field.get("id") in labelled
        assert is_named or _is_within_a_label(tree, field), field.attributes
    for table in tree.all("table"):
        assert table.all("caption") or table.get("aria-label") or table.get("aria-labelledby")
    for button in tree.all("button"):
        assert button.text or button.get("aria-label")


def _is_within_a_label(tree: Element, field: Element) -> bool:
    return any(field in label.all(field.tag) for label in tree.all("label"))


@pytest.mark.parametrize("name", SPECIMENS)
async def test_a_page_needs_no_script_or_style_of_its_own(name: str) -> None:
    """The policy for content forbids them; a browser would leave them out."""
    tree = read(await shown(name))

    for each in tree.all():
        assert "style" not in each.attributes, each.attributes
        assert not [key for key in each.attributes if key.startswith(("on", "hx-on"))], each.attributes
        assert each.tag != "style"
        if each.tag == "script":
            assert each.get("src").startswith("/static/")
        # A picture or a file that is in the page itself can do nothing.
        is_kept_here = each.get("src").startswith("data:image/") or "download" in each.attributes
        for address in (each.get("href"), each.get("src"), each.get("action")):
            assert is_kept_here or not re.match(r"(?i)\s*(javascript|data|//)", address)


@pytest.mark.parametrize("name", SPECIMENS)
@pytest.mark.parametrize("language", sorted(set(LANGUAGES) - {"en"}))
async def test_a_page_is_there_in_every_language(name: str, language: str) -> None:
    tree = read(await shown(name, language))

    assert tree.one("html").get("lang") == language
    assert tree.one("h1").text


async def test_the_gallery_shows_what_comes_of_a_form() -> None:
    """Its address is opened by hand, and a form comes from a page."""
    headers = [(b"host", b"t"), (b"sec-fetch-site", b"none")]
    scope = {
        **{"type": "http", "method": "GET", "scheme": "http", "root_path": "", "query_string": b"language=fr"},
        **{"path": "/-/specimens/job-new-refused", "raw_path": b"", "headers": headers, "client": ("127.0.0.1", 1)},
    }

    answer = await call(gallery.application(), scope, b"")

    assert read(answer.content.decode()).one("html").get("lang") == "fr"
    assert answer.status == 422


@pytest.mark.parametrize("name", [name for name in SPECIMENS if name.endswith("-hostile")])
async def test_what_people_wrote_is_text(name: str) -> None:
    tree = read(await shown(name))

    assert not [each for each in tree.all("script") if not each.get("src")]
    assert "<script>alert(1)</script>" in tree.text


def test_only_texts_of_ours_are_translated_in_templates() -> None:
    """What `_()` gives to a template is taken for safe HTML: for another's there is the filter `said`."""
    templates = files("zerocron.dashboard").joinpath("templates")
    found = [
        f"{path.name}: {line.strip()}"
        for path in sorted(Path(str(templates)).rglob("*.html"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"""\b(?:_|gettext|ngettext)\(\s*(?!["'\s])""", line)
    ]
    assert not found


def _templates() -> list[tuple[re.Pattern[str], str]]:
    """What fills a place in a path is an id or a name with a capital or a digit, never a word of a path."""
    return [(re.compile(re.sub(r"\{[^}]*\}", "[^/]*[0-9A-Z][^/]*", path)), path) for path in DOCUMENT["paths"]]


def _schema_of(key: str) -> dict[str, Any] | None:
    """Of the answer to "GET /v1/jobs"; None when the document does not have it."""
    method, _, asked = key.partition(" ")
    exact = [path for _, path in _templates() if path == asked]
    fitting = exact or [path for pattern, path in _templates() if pattern.fullmatch(asked)]
    for path in fitting:
        responses = DOCUMENT["paths"][path].get(method.lower(), {}).get("responses", {})
        for status in ("200", "201", "202"):
            content = responses.get(status, {}).get("content", {})
            if "application/json" in content:
                schema: dict[str, Any] = content["application/json"]["schema"]
                return schema
    return None


@pytest.mark.parametrize("name", SPECIMENS)
def test_a_specimen_shows_what_the_api_would_answer(name: str) -> None:
    for key, answer in SPECIMENS[name].answers.items():
        schema = _schema_of(key)
        if schema is None or isinstance(answer, tuple):
            continue
        whole = {**schema, "components": DOCUMENT["components"]}
        faults = [
            f"{fault.instance_path} {fault.message}" for fault in jsonschema_rs.validator_for(whole).iter_errors(answer)
        ]
        assert not faults, (key, faults[:3])


def test_the_check_of_answers_finds_faults() -> None:
    schema = _schema_of("GET /v1/jobs/01999b6e-0c1d-7a52-9c07-1f6d6f0a4c11")
    assert schema is not None
    assert not jsonschema_rs.validator_for({**schema, "components": DOCUMENT["components"]}).is_valid({"id": "x"})


def test_a_picture_of_what_is_not_there_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("docs.screenshots.take", None)  # not even a browser is started
    monkeypatch.setattr("sys.argv", ["screenshots", "jobs", "nobody", "nothing"])

    with pytest.raises(SystemExit, match="2"):
        screenshots.main()
    assert "there is no specimen nobody, nothing; those there are: " in capsys.readouterr().err
