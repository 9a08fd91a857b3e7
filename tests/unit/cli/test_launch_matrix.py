"""docs/launch-options.md says of each option of mpirun and mpiexec what is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from ompy.cli.launch.command_line import CommandError
from ompy.cli.launch.foreign_options import OPTIONS, translate_line
from ompy.cli.options import ABSENT, ALIASES, INSTEAD, arities, parse_by_click, usual_spelling

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "launch-options.md"
WORDS = {
    "--hostfile": "hosts", "--host": "h1", "--map-by": "node", "--bind-to": "none", "--stdin": "0",
    "--rank-by": "slot", "--output": "tag", "--display": "map", "--timeout": "9", "--debug": "0",
    "--debugger": "pdb", "--mca": "btl", "--log-format": "text", "--with-ft": "ulfm", "-s": "0",
}  # fmt: skip


class Row(NamedTuple):
    """One line of the matrix."""

    options: tuple[str, ...]
    status: str
    how: str


def rows() -> list[Row]:
    text = PAGE.read_text().partition("## The matrix")[2]
    cells = re.findall(r"^\| (`-.*?) \| (\w+) \| (.*?) ?\|$", text, re.MULTILINE)
    return [Row(tuple(re.findall(r"`(-[^`]+)`", named)), *rest) for named, *rest in cells]


ROWS = rows()
BY_OPTION = {option: row for row in ROWS for option in row.options}


def reference_options() -> set[str]:
    """Those that the table of the reference names."""
    text = (ROOT / "docs" / "reference" / "openmpi.md").read_text()
    section = text.partition("### 2.4 ")[2].partition("\n2.4.1 ")[0]
    found = set()
    for cell in re.findall(r"^\| (`-.*?`) \|", section, re.MULTILINE):
        found |= set(re.findall(r"--?[a-zA-Z][\w-]*", cell))
    return found | set(re.findall(r"`(--[a-z-]+)", section.partition("[5/PRRTE]")[2]))


def is_ours(option: str) -> bool:
    try:
        usual_spelling(option, arities())
    except CommandError:
        return False
    return True


def is_foreign(option: str) -> bool:
    return option in OPTIONS or (len(option) > 2 and f"-{option}" in OPTIONS)


def test_the_rows_are_found() -> None:
    assert len(ROWS) > 60
    assert len(BY_OPTION) == sum(len(row.options) for row in ROWS), "each option once"
    assert {row.status for row in ROWS} == {"yes", "mpiexec", "no"}


def test_every_option_is_there() -> None:
    known = reference_options()
    assert len(known) > 50
    assert known - set(BY_OPTION) == set()
    assert {option for option in OPTIONS if not is_named(option)} == set()
    assert {option for option in ABSENT.split() if not is_named(option)} == set()
    assert {option for option in ALIASES if not is_named(option)} == set()


def is_named(option: str) -> bool:
    return option in BY_OPTION or option[1:] in BY_OPTION


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.options[0])
def test_a_row_is_true(row: Row) -> None:
    for option in row.options:
        if row.status == "yes":
            assert is_ours(option), option
        elif row.status == "mpiexec":
            assert is_foreign(option), option
        else:
            assert not is_ours(option), option
            assert not is_foreign(option), option
    assert row.how or row.status == "yes", "what mpiexec makes of it, or why not"


@pytest.mark.parametrize("option", [o for o, row in BY_OPTION.items() if row.status == "no"])
def test_what_is_not_there_is_an_error(option: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse_by_click(translate_line([option, "value", "program"]).words)
    assert caught.value.exit_code == 2
    assert option.lstrip("-") in str(caught.value)


@pytest.mark.parametrize("option", [o for o, row in BY_OPTION.items() if row.status == "mpiexec"])
def test_what_mpiexec_takes_is_understood(option: str) -> None:
    foreign = OPTIONS.get(option) or OPTIONS[f"-{option}"]
    word = WORDS.get(option, "1" if option in {"-ppn", "-perhost"} else "w")
    words = translate_line([option, *[word] * foreign.values, "program"]).words
    (group,) = parse_by_click(words)
    assert group.argv == ("program",)


@pytest.mark.parametrize("option", INSTEAD)
def test_who_writes_an_option_of_another_launcher_is_told_ours(option: str) -> None:
    assert not is_ours(option)
    with pytest.raises(CommandError, match=f"write {re.escape(INSTEAD[option])}$"):
        parse_by_click([option, "value", "program"])
    named = re.findall(r"(?<!\S)--?[a-z][\w-]*", INSTEAD[option])
    assert named
    assert all(is_ours(each) for each in named), named


@pytest.mark.parametrize("option", ["-ppn", "-genv", "--ppn"])
def test_options_of_hydra_have_one_dash_or_two(option: str) -> None:
    with pytest.raises(CommandError, match="is an option of other launchers; write -"):
        parse_by_click([option, "2", "program"])
