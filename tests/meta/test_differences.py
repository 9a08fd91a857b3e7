"""The tables "Where it differs": each row says what, why, and names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.meta.test_readme_paths import READMES, ROOT
from tests.meta.test_seed_tables import DIFFERS

CELL = re.compile(r"(?<!\\)\|")
CELLS = 4  # number, what, why, shown by
NAME = re.compile(r"`([^`]+)`")
TABLES = [page for page in READMES if f"\n{DIFFERS}\n" in page.read_text()]


class Row(NamedTuple):
    """One difference."""

    number: str
    cells: list[str]


def rows(text: str) -> list[Row]:
    """The rows of a page's table."""
    table = text.partition(f"\n{DIFFERS}\n")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if re.match(r"\| \d+ \|", line)]
    cells = [[cell.strip() for cell in CELL.split(line)[1:-1]] for line in lines]
    return [Row(each[0], each) for each in cells]


def holds(place: Path, name: str) -> bool:
    """Whether a file, or some file of a folder, has the name."""
    files = place.rglob("*.py") if place.is_dir() else [place]
    return any(name in path.read_text() for path in files)


def problems(row: Row) -> list[str]:
    """What is wrong with a row."""
    if len(row.cells) != CELLS or not all(row.cells):
        return [f"row {row.number} has not {CELLS} cells"]
    found, place = [], ROOT
    for name in NAME.findall(row.cells[3]):
        if name.startswith(("tools/", "ompy ")):  # a command
            continue
        if "/" in name:
            place = ROOT / name
            here = place.exists()
        elif name.endswith(".py"):
            here = (place.parent / name).exists()
        else:
            here = place != ROOT and place.exists() and holds(place, name)
        if not here:
            found.append(f"row {row.number}: no {name}")
    return found


@pytest.mark.parametrize("page", TABLES, ids=lambda page: str(page.parent.relative_to(ROOT)))
def test_what_shows_a_difference_is_there(page: Path) -> None:
    assert not [one for row in rows(page.read_text()) for one in problems(row)]


def test_some_page_has_a_table() -> None:
    assert len(TABLES) > 20
    assert all(rows(page.read_text()) for page in TABLES)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("`tests/meta/test_differences.py` (`test_some_page_has_a_table`)", []),
        ("`tests/meta` (`test_some_page_has_a_table`), `tools/sweep bfo`", []),
        ("`tests/meta/test_gone.py`", ["row 1: no tests/meta/test_gone.py"]),
        ("`tests/meta/test_words.py` (`test_nothing_like_it`)", ["row 1: no test_nothing_like_it"]),
        ("`tests/meta/test_words.py`, `test_gone.py`", ["row 1: no test_gone.py"]),
        ("`test_some_page_has_a_table`", ["row 1: no test_some_page_has_a_table"]),
        ("", ["row 1 has not 4 cells"]),
    ],
)
def test_problems_are_found(shown: str, expected: list[str]) -> None:
    assert problems(Row("1", ["1", "what", "why", shown])) == expected
