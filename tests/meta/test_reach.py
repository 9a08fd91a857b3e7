"""No part reaches through another: `a._b._c` is nobody's business but `_b`'s."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("core/ompy", "components/ompy_components", "plugins-contrib")
OF_TUPLES = {"_replace", "_asdict", "_fields", "_make"}  # public, of every NamedTuple


def sources() -> list[Path]:
    every = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return [path for path in every if "tests" not in path.parts]


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in OF_TUPLES


def reaches(text: str) -> Iterator[str]:
    """Attributes of a private attribute that are private themselves, with their lines.

    Not those that ruff is told of: of a library that has no other way.
    """
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and private(node.attr):
            if "SLF001" in lines[node.lineno - 1]:
                continue
            owner = node.value
            through = owner.attr if isinstance(owner, ast.Attribute) else ""
            if isinstance(owner, ast.Name) and owner.id != "_":
                through = owner.id if private(owner.id) else ""
            if private(through):
                yield f"line {node.lineno}: {through}.{node.attr}"


def test_what_is_found() -> None:
    assert list(reaches("self._a._b\nself._a.b\nself.a._b\nx._replace(a=1)")) == ["line 1: _a._b"]
    assert list(reaches("_here._process")) == ["line 1: _here._process"]
    assert not list(reaches("self._limits._replace(a=1)"))


def test_nobody_reaches_through() -> None:
    found = {path: list(reaches(path.read_text())) for path in sources()}
    assert found
    assert not {str(path): lines for path, lines in found.items() if lines}
