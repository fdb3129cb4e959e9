"""Renews the catalogs of the pages: `python -m docs.words`; with `--check` it says what lacks words.

Owns which text belongs to which file: that of a view or template to the area of its name, what the API says to `said`
(docs/sentences.py has it from the source), all others to `shared`.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_file
from babel.messages.pofile import read_po, write_po

from docs.sentences import sentences

DASHBOARD = Path(__file__).parents[1] / "src" / "zerocron" / "dashboard"
KEYWORDS = {"_": None, "gettext": None, "ngettext": (1, 2), "N_": None}
_CHANGING = ('"POT-Creation', '"PO-Revision', '"Last-Translator', '"Generated-By', '"Project-Id', '"Report-Msgid')
"""Headers that say when and by whom; spelt out, or they would take lines of texts that begin like one."""
OPTIONS = {
    "extensions": "jinja2.ext.i18n,jinja2.ext.do",
    "trim_blocks": "true",
    "lstrip_blocks": "true",
    "newstyle_gettext": "true",
}


def templates() -> dict[str, Catalog]:
    """The texts of each area, without words in any language."""
    areas = {path.stem for path in (DASHBOARD / "views").glob("*.py") if path.stem != "__init__"}
    found: dict[str, Catalog] = {}
    for path in sorted([*DASHBOARD.rglob("*.py"), *(DASHBOARD / "templates").rglob("*.html")]):
        area = path.stem if path.suffix == ".py" else path.parent.name
        area = area if area in areas else "shared"
        catalog = found.setdefault(area, Catalog(charset="utf-8"))
        for message in _messages(path):
            catalog.add(message)
    found["said"] = Catalog(charset="utf-8")
    for text in sentences():
        found["said"].add(text)
    return found


def _messages(path: Path) -> Iterator[str | tuple[str, ...]]:
    method = "python" if path.suffix == ".py" else "jinja2"
    options = OPTIONS if method == "jinja2" else {}
    for _line, message, _comments, _context in extract_from_file(method, path, KEYWORDS, (), options):
        yield message


def renew(language: str, area: str, template: Catalog) -> tuple[bytes, list[str]]:
    """The file of an area in a language, and the texts in it that lack words."""
    path = file_of(language, area)
    catalog = read_po(path.open("rb"), locale=language) if path.exists() else Catalog(locale=language)
    catalog.update(template, no_fuzzy_matching=True)
    catalog.obsolete.clear()
    whole = Catalog(locale=language, header_comment="", fuzzy=False)
    for message in sorted((each for each in catalog if each.id), key=lambda each: str(each.id)):
        whole.add(message.id, message.string)
    lacking = [str(each.id) for each in whole if each.id and not all(_strings(each.string))]
    return _written(whole), lacking


def clashes(language: str) -> Iterator[str]:
    """The texts that two areas say in different words: all areas are one catalog, and one of them would win."""
    said: dict[str, dict[str, str]] = {}
    for area in templates():
        path = file_of(language, area)
        for message in read_po(io.BytesIO(path.read_bytes()), locale=language) if path.exists() else ():
            if message.id:
                said.setdefault(str(message.id), {}).setdefault(str(message.string), area)
    for text, words in said.items():
        if len(words) > 1:
            yield f"{text!r} is said differently in {', '.join(words.values())}"


def _strings(given: object) -> list[str]:
    return [str(each) for each in given] if isinstance(given, (tuple, list)) else [str(given or "")]


def _written(catalog: Catalog) -> bytes:
    out = io.BytesIO()
    write_po(out, catalog, width=100, omit_header=False, no_location=True)
    lines = out.getvalue().decode().splitlines()
    kept = [line for line in lines if not line.startswith(_CHANGING)]
    return ("\n".join(kept).strip() + "\n").encode()


def file_of(language: str, area: str) -> Path:
    return DASHBOARD / "words" / language / f"{area}.po"


def main(arguments: list[str]) -> int:
    faults = []
    for area, template in templates().items():
        for language in ("fr", "es"):
            content, lacking = renew(language, area, template)
            path = file_of(language, area)
            faults += [f"{path.name} ({language}): no words for {text!r}" for text in lacking]
            if "--check" not in arguments:
                if any(each.id for each in template):
                    path.write_bytes(content)
            elif any(each.id for each in template) and (not path.exists() or path.read_bytes() != content):
                faults.append(f"{path.name} ({language}): not as `python -m docs.words` writes it")
    faults += [f"({language}): {fault}" for language in ("fr", "es") for fault in clashes(language)]
    for fault in faults:
        print(fault)  # noqa: T201
    return 1 if faults and "--check" in arguments else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
