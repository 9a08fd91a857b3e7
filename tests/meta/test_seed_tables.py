"""Every SEED.md: a row for everything its seed has, and what rows name is there.

`tests/data/seeds/FRAMEWORK-COMPONENT.txt` lists the seed: a line for each heading, with what stands
below it. Who writes a SEED.md writes that list first.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.meta.test_citations import headings

ROOT = Path(__file__).resolve().parents[2]
COMPONENTS = ROOT / "components" / "ompy_components"
LISTS = ROOT / "tests" / "data" / "seeds"
TABLES = sorted(COMPONENTS.glob("*/*/SEED.md"))
SEEDS = headings((ROOT / "docs" / "reference" / "README.md").read_text())
SEED_OF = {"gni": "gasnet"}  # where the component has another name
COLUMNS = ["seed", "requires", "where", "test", "differs"]
DIFFERS = "## Where it differs"
NAME = re.compile(r"`([^`]+)`")
# a definition, or a constant that is set
DEFINED = r"^\s*(?:async def|def|class) {0}\b|^{0}\b.*="


class Row(NamedTuple):
    """One row of a table."""

    seed: str
    requires: str
    where: str
    test: str
    differs: str


def name(table: Path) -> str:
    return f"{table.parent.parent.name}-{table.parent.name}"


def listed(text: str) -> list[str]:
    """Heading and place, of everything in a list."""
    found = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            heading, _, places = line.partition(": ")
            found += [f"{heading}, {place}" for place in places.split(", ")]
    return found


def rows(text: str) -> list[Row]:
    """The rows of all tables."""
    found = []
    for line in text.splitlines():
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            assert len(cells) == len(COLUMNS), f"{len(cells)} columns: {line}"
            if cells != COLUMNS and set("".join(cells)) != {"-"}:
                found.append(Row(*cells))
    return found


@cache
def source(path: Path) -> str:
    return path.read_text()


@cache
def deviations() -> Counter[str]:
    """The numbers of all rows of "Where it differs" in the READMEs of folders."""
    found: Counter[str] = Counter()
    for root in ("core", "components"):
        for path in (ROOT / root).rglob("README.md"):
            _, heading, table = path.read_text().partition(f"\n{DIFFERS}\n")
            assert not heading or "| # |" in table, path
            found.update(re.findall(r"^\| (\d+) \|", table.partition("\n## ")[0], re.MULTILINE))
    return found


def problem(folder: Path, named: str, *, test: bool) -> str:
    """What is wrong with `path::name[case]`, the last two of which may be left out."""
    file, _, rest = named.partition("::")
    function, _, case = rest.partition("[")
    path = ROOT / file if test or (ROOT / file).exists() else folder / file
    if not path.is_file():
        return f"there is no {file}"
    text = source(path)
    if function and not re.search(DEFINED.format(re.escape(function)), text, re.MULTILINE):
        return f"{file} has no {function}"
    if test and not function.startswith("test_"):
        return f"{named} is no test"
    if case and f'"{case.removesuffix("]")}"' not in text:
        return f"{file} has no case {case.removesuffix(']')}"
    return ""


def problems(folder: Path, row: Row) -> list[str]:
    """What is wrong with a row."""
    wrong = []
    for cell, test in ((row.where, False), (row.test, True)):
        named = NAME.findall(cell)
        wrong += [problem(folder, one, test=test) for one in named]
        if not named and not row.differs:
            wrong.append(f"{COLUMNS[3 if test else 2]} is empty, and it does not differ")
    numbers = re.findall(r"\d+", row.differs.partition(":")[0])
    if row.differs and not (row.differs.startswith("row") and numbers):
        wrong.append(f"no row of a README in {row.differs!r}")
    wrong += [f"no README has row {one}" for one in numbers if one not in deviations()]
    if row.differs and not row.differs.partition(": ")[2]:
        wrong.append("it differs, and does not say how")
    if not row.requires:
        wrong.append("it does not say what is required")
    return [f"{row.seed}: {one}" for one in wrong if one]


def test_every_table_has_a_list_and_every_list_a_table() -> None:
    assert {name(table) for table in TABLES} == {path.stem for path in LISTS.glob("*.txt")}
    assert len(TABLES) >= 2


@pytest.mark.parametrize("table", TABLES, ids=name)
def test_nothing_of_the_seed_is_left_out(table: Path) -> None:
    """Its rows are those of the list, in their order."""
    expected = listed((LISTS / f"{name(table)}.txt").read_text())
    assert [row.seed for row in rows(table.read_text())] == expected
    assert len(set(expected)) == len(expected)


@pytest.mark.parametrize("table", TABLES, ids=name)
def test_the_list_has_every_heading(table: Path) -> None:
    """Those that docs/reference/README.md says the seed has; one with a number counts by it."""
    lines = (LISTS / f"{name(table)}.txt").read_text().splitlines()
    found = {line.partition(": ")[0].lower() for line in lines if not line.startswith("#")}
    found = {re.sub(r"^(\d+) .*", r"\1", heading) for heading in found}
    assert SEEDS[SEED_OF.get(table.parent.name, table.parent.name)] <= found


def test_deviations_have_one_row_each() -> None:
    assert [number for number, count in deviations().items() if count > 1] == []


@pytest.mark.parametrize("table", TABLES, ids=name)
def test_what_rows_name_is_there(table: Path) -> None:
    assert not [one for row in rows(table.read_text()) for one in problems(table.parent, row)]


@pytest.mark.parametrize("table", TABLES, ids=name)
def test_its_readme_ends_with_it(table: Path) -> None:
    assert "(SEED.md)" in (table.parent / "README.md").read_text().splitlines()[-1]


GOOD = Row(
    "Opening, paragraph 1",
    "rows name what is there",
    "`component.py::Ob1Component`",
    "`tests/meta/test_seed_tables.py::test_a_wrong_row_is_found`",
    "rows 1, 2: it is an example",
)
WRONG = [
    ({"where": "`nowhere.py`"}, "there is no nowhere.py"),
    ({"where": "`component.py::nothing`"}, "component.py has no nothing"),
    ({"where": "`component.py::Ob1Comp`"}, "component.py has no Ob1Comp"),
    ({"test": "`tests/meta/nowhere.py::test_it`"}, "there is no tests/meta/nowhere.py"),
    ({"test": "`tests/meta/test_seed_tables.py`"}, "is no test"),
    ({"test": "`tests/meta/test_seed_tables.py::rows`"}, "is no test"),
    (
        {"test": "`tests/meta/test_seed_tables.py::test_a_wrong_row_is_found" + "[no case]`"},
        "has no case no case",
    ),
    ({"test": "-", "differs": ""}, "test is empty"),
    ({"where": "-", "differs": ""}, "where is empty"),
    ({"differs": "rows 1, 99999: it is an example"}, "no README has row 99999"),
    ({"differs": "it is an example: row 1"}, "no row of a README"),
    ({"differs": "row 1"}, "does not say how"),
    ({"requires": ""}, "does not say what is required"),
]


@pytest.mark.parametrize(("changed", "said"), WRONG, ids=[said for _, said in WRONG])
def test_a_wrong_row_is_found(changed: dict[str, str], said: str) -> None:
    folder = COMPONENTS / "pml" / "ob1"
    assert not problems(folder, GOOD)
    (one,) = problems(folder, GOOD._replace(**changed))
    assert said in one


def test_a_row_that_is_missing_or_doubled_is_found() -> None:
    text = "| seed | requires | where | test | differs |\n|---|---|---|---|---|\n"
    lines = [f"| {place} | x | y | z | |\n" for place in listed("A: B, C (of D)\n# E\nF: G\n")]
    assert [row.seed for row in rows(text + "".join(lines))] == ["A, B", "A, C (of D)", "F, G"]
    with pytest.raises(AssertionError, match="4 columns"):
        rows(text + "| A, B | x | y | |\n")
