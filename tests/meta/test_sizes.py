"""Files and functions stay readable."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE_LINES_MAX = 600
FOLDER_MODULES_MAX = 25
README_LINES_MAX = 90
ARCHITECTURE_WORDS_MAX = 1500
DEVIATIONS_MAX = 60  # what a user can meet; all others are in the READMEs of components
FUNCTION_LINES_MAX = 45  # "about 40", without the docstring


def sources() -> list[Path]:
    roots = ("core/ompy", "components/ompy_components", "tools", "examples", "plugins-contrib")
    every = sorted(path for root in roots for path in (ROOT / root).rglob("*.py"))
    return [path for path in every if "tests" not in path.parts]


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = node.end_lineno - node.lineno + 1
            if ast.get_docstring(node) is not None:
                doc = node.body[0]
                lines -= doc.end_lineno - doc.lineno + 1
            yield node.name, lines


def test_sizes() -> None:
    lines = {path: len(path.read_text().splitlines()) for path in sources()}
    assert lines
    long = {str(path): length for path, length in lines.items() if length > FILE_LINES_MAX}
    assert not long, f"files over {FILE_LINES_MAX} lines"


def test_sizes_of_functions() -> None:
    long = [
        f"{path}: {name}: {lines}"
        for path in sources()
        for name, lines in functions(path)
        if lines > FUNCTION_LINES_MAX
    ]
    assert not long, f"functions over {FUNCTION_LINES_MAX} lines"


def test_pages_that_people_read_first_stay_short() -> None:
    """The README, the architecture, and the page of differences."""
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES_MAX
    assert len((ROOT / "ARCHITECTURE.md").read_text().split()) < ARCHITECTURE_WORDS_MAX
    lines = (ROOT / "docs" / "deviations.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ") and line != "| what | why |"]
    assert len(rows) <= DEVIATIONS_MAX


def test_folders_are_divided_by_subject() -> None:
    count = Counter(path.parent for path in sources())
    large = {
        str(path.relative_to(ROOT))
        for path, modules in count.items()
        if modules > FOLDER_MODULES_MAX and "examples" not in path.parts
    }
    assert not large, "sub-folders by what the modules are about"
