"""No pattern takes time that grows with the square of what strangers send: a target's answer must not stop a node."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import zerocron

CHARACTERS = 100_000
SECONDS_MAX = 0.7
"""What is linear takes milliseconds; of what is quadratic the quickest took three seconds."""

ROOMS = ("core", "engine", "api", "outbound", "actions")
ATOMS = [
    *(
        " ",
        "\t",
        "\n",
        " \n",
        "\r",
        "a",
        "A",
        "0",
        "é",
        ".",
        ",",
        ":",
        ";",
        "-",
        "%",
        "%2",
        "\\",
        "\\u",
        "&",
        "&a",
        "&#",
    ),
    *(
        "$",
        "{",
        "{{",
        "${",
        "${secrets",
        "${secrets.",
        "$secrets.",
        "${ ",
        "secret",
        "[",
        "(",
        '"',
        "'",
        "`",
        "=",
        "; ",
        "a =",
    ),
    *("1 ", "* ", "0,", "a=", "+", "/", "//", "http:", "@", "max-age", "_", "#", "[Errno ", "1-", "T", "…", "..", "{a"),
]
BOUNDED = {
    # Only ever given a schedule, which the API bounds.
    "zerocron.core.schedule",
    "zerocron.core.phrases",
    "zerocron.core.understanding",
    # Our own documents.
    "zerocron.api.docs_examples",
    "zerocron.api.docs_schema",
}


def patterns() -> Iterator[tuple[str, re.Pattern[str], bool]]:
    """(name, pattern, whether it is looked for everywhere in a text) of each one at the top of a module."""
    for room in ROOMS:
        package = importlib.import_module(f"zerocron.{room}")
        for found in pkgutil.walk_packages(package.__path__, f"zerocron.{room}."):
            if any(found.name == name or found.name.startswith(name + ".") for name in BOUNDED):
                continue
            module = importlib.import_module(found.name)
            source = Path(str(module.__file__)).read_text(encoding="utf-8")
            for name, value in vars(module).items():
                if isinstance(value, re.Pattern) and isinstance(value.pattern, str) and f"{name} = re." in source:
                    everywhere = re.search(rf"\b{name}\.(search|finditer|findall|sub|split)\(|, {name},", source)
                    yield f"{found.name}.{name}", value, everywhere is not None


FOUND = list(patterns())


def test_there_are_some() -> None:
    names = {name for name, _, everywhere in FOUND if everywhere}
    assert {"zerocron.core.redaction._LINE_END", "zerocron.core.placeholders._LOOKALIKE"} <= names
    assert zerocron.__version__


@pytest.mark.parametrize(("name", "pattern", "everywhere"), FOUND, ids=[name for name, _, _ in FOUND])
def test_a_pattern_takes_linear_time(name: str, pattern: re.Pattern[str], everywhere: bool) -> None:
    ways: list[Callable[[str], object]] = [pattern.match, pattern.fullmatch]
    if everywhere:
        ways.append(lambda text: sum(1 for _ in pattern.finditer(text)))
    for atom in ATOMS:
        run = atom * (CHARACTERS // len(atom))
        for text in (run, run + "\0", f"{ATOMS[0]}a{run}\0"):
            for way in ways:
                began = time.process_time()
                way(text)
                assert time.process_time() - began < SECONDS_MAX, (name, atom)
