"""The house is kept tidy by a test: what ruff and mypy do not look at."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path

import pytest
from tests.faults.checker import INVARIANTS
from tests.faults.cluster_faults import CASES
from tests.faults.mutants import CLUSTER_MUTANTS, MUTANTS

from zerocron.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PYTHON = [path for folder in ("src", "tests", "bench") for path in sorted((ROOT / folder).rglob("*.py"))]
FILE_LINES_MAX = 700
FUNCTION_LINES_MAX = 70


def of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


@pytest.mark.parametrize("path", SOURCES, ids=of)
def test_a_module_says_what_it_is(path: Path) -> None:
    if path.stat().st_size > 0:
        assert ast.get_docstring(parsed(path)), f"{of(path)} begins without a docstring"


def test_no_file_is_too_long_to_be_read_at_once() -> None:
    long = {of(path): lines for path in SOURCES if (lines := _lines(path)) > FILE_LINES_MAX}
    assert not long, f"more than {FILE_LINES_MAX} lines: {long}"


def _lines(path: Path) -> int:
    return path.read_text(encoding="utf-8").count("\n")


def test_no_function_is_too_long_to_be_seen_at_once() -> None:
    long = [
        f"{of(path)}:{node.lineno} {node.name} ({length})"
        for path in SOURCES
        if "migrations/versions" not in of(path)  # a migration is a list
        for node in functions(parsed(path))
        if (length := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES_MAX
    ]
    assert not long, f"more than {FUNCTION_LINES_MAX} lines: {long}"


def test_nothing_is_left_to_be_done_later_without_saying_what() -> None:
    """A mark is allowed with an address behind it, as in `TODO(#12)`; without one nobody comes back to it."""
    marks = re.compile(r"#.*\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3, "HA" + "CK")) + r")\b(?!\(#\d+\))")
    found = [
        f"{of(path)}:{number}"
        for path in PYTHON
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if marks.search(line)
    ]
    assert not found


def test_every_setting_says_why_one_would_turn_it() -> None:
    for knob in dataclasses.fields(Settings):
        why = knob.metadata["why"]
        assert why.endswith("."), knob.name
        assert len(why) > 15, knob.name


def test_every_setting_is_documented_with_its_reason() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    for knob in dataclasses.fields(Settings):
        assert f"`{PREFIX}{knob.name.upper()}`" in page, knob.name
        assert knob.metadata["why"] in page, knob.name


def test_no_setting_is_documented_that_does_not_exist() -> None:
    known = {PREFIX + knob.name.upper() for knob in dataclasses.fields(Settings)}
    known |= {f"{name}_FILE" for name in known}
    known |= {PREFIX + name for name in ("API_URL", "API_KEY", "NAME_FILE")}
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert set(re.findall(PREFIX + "[A-Z_]+", page)) <= known


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_path_that_a_guide_names_exists(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    paths = re.findall(r"`((?:src|tests|docs|bench)/[^`\s]*)`", text)
    assert paths or name != "ARCHITECTURE.md"
    missing = [path for path in paths if not _found(path)]
    assert not missing


def test_the_table_of_faults_has_every_fault_and_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    table = page.partition("| fault | what is asserted beside | where |\n")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()[1:]]
    in_cluster = [fault for fault, _, where in rows if where == "`tests/faults/test_cluster_faults.py`"]
    assert in_cluster == [case.name for case in CASES if not case.is_variant]
    for _, _, where in rows:
        path, *names = re.findall(r"`([^`]+)`", where)
        assert set(names) <= {node.name for node in functions(parsed(ROOT / path))}, where
    mutants = len(MUTANTS | CLUSTER_MUTANTS)
    assert f"reject {mutants} versions" in " ".join(page.split())


def test_every_guard_that_the_architecture_names_is_there() -> None:
    """Files are looked for above; these are the checker's invariants."""
    named = re.findall(r"\bI\d+\b", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    assert named
    assert set(named) <= set(INVARIANTS)


def _found(path: str) -> bool:
    """A path, or a pattern of one such as `docs/decisions/*.md`; `<name>` stands for any."""
    return any(ROOT.glob(re.sub(r"<[^>]*>", "*", path.rstrip("/"))))
