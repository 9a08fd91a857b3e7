"""docs/coming-from.md says what is so of options and parameters of Open MPI."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import pytest
from ompy.cli.launch.command_line import CommandError
from ompy.cli.options import arities, usual_spelling
from ompy.frameworks.catalog import CATALOG
from ompy.mca.registry import Registry

PAGE = Path(__file__).resolve().parents[3] / "docs" / "coming-from.md"
SAME = "the same"
ABSENT = ("leave out", "is not there", "redirect")
# `name`, `name value`, `framework component`
PARAMETER = re.compile(r"[a-z]+(_[a-z0-9*]+)+")


class Row(NamedTuple):
    """One line of a table: what people write, and what the page says of it."""

    theirs: tuple[str, ...]
    here: str


def rows(section: str) -> list[Row]:
    """The tables behind a heading."""
    text = PAGE.read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?`) \| (.*?) \|$", text, re.MULTILINE)
    assert len(cells) > 5
    return [Row(tuple(re.findall(r"`([^`]+)`", theirs)), here) for theirs, here in cells]


OPTIONS = rows("Options of `mpirun` (Open MPI)")
PARAMETERS = [row for row in rows("Parameters") if PARAMETER.match(row.theirs[0])]


def has_option(text: str) -> bool:
    try:
        usual_spelling(text.split(maxsplit=1)[0], arities())
    except CommandError:
        return False
    return True


@pytest.mark.parametrize("row", OPTIONS, ids=lambda row: row.theirs[0])
def test_an_option_is_as_the_page_says(row: Row) -> None:
    theirs = [text for text in row.theirs if text.startswith("-")]
    said = re.findall(r"`(--?[a-z][^`]*)`", row.here)
    assert [text for text in said if not has_option(text)] == []
    if row.here.startswith(SAME):
        assert [text for text in theirs if not has_option(text)] == []
    elif row.here.startswith(ABSENT):
        assert [text for text in theirs if has_option(text)] == []


@pytest.mark.parametrize("row", PARAMETERS, ids=lambda row: row.theirs[0])
def test_a_parameter_is_as_the_page_says(row: Row) -> None:
    names = Registry(CATALOG, [])._all_names()
    for text in row.theirs:
        pattern = text.split()[0]
        found = [name for name in names if fnmatch(name, pattern)]
        if row.here.startswith(SAME):
            assert found, pattern
        elif row.here.startswith(ABSENT):
            assert found == [], pattern
