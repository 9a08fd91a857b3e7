"""The tool that measures who knows whom, on a folder where that can be counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.package.who_knows_whom import Folder, draw, measure, members, table

HOUSE = """
from __future__ import annotations

from village.below.cellar import Cellar, Kind
from village.guest import Guest


class House:
    def __init__(self) -> None:
        self.cellar = Cellar()
        self.guests: dict[int, Guest] = {}
        self.address = "here"

    def open(self) -> None:
        for guest in self.guests.values():
            guest.greet()
            guest.hungry = False
        self.cellar.bottles -= 1
        assert self.cellar.kind is Kind.WINE


def build() -> House:
    made = House()
    made.open()
    return made
"""
GUEST = """
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from village.house import House


class Guest:
    hungry = True

    def __init__(self, house: House) -> None:
        self._house = house

    def greet(self) -> None:
        house = self._house
        house.cellar.drink()
        house.address = self._house.address.upper()  # type: ignore[unused-ignore]


class Friend(Guest):
    def greet(self) -> None:
        super().greet()
        self.hungry = not self._house.guests
"""
CELLAR = """
from enum import Enum


class Kind(Enum):
    WINE = 1


class Cellar:
    def __init__(self) -> None:
        self.bottles = 3
        self.kind = Kind.WINE

    def drink(self) -> None:
        self.bottles -= 1
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    village = tmp_path_factory.mktemp("root") / "village"
    (village / "below").mkdir(parents=True)
    texts = {"__init__": "", "house": HOUSE, "guest": GUEST}
    for name, text in {**texts, "below/__init__": "", "below/cellar": CELLAR}.items():
        (village / f"{name}.py").write_text(text)
    return measure(village, village.parent)


def test_members_are_counted_by_type_whatever_the_expression(found: Folder) -> None:
    assert found.pairs["House", "Guest"].members == {"greet", "hungry"}
    assert found.pairs["House", "Guest"].held == {"guests"}
    assert found.pairs["House", "Cellar"].members == {"bottles", "kind"}
    assert found.pairs["Guest", "House"].members == {"address", "cellar"}
    assert found.pairs["Guest", "Cellar"].members == {"drink"}
    assert found.pairs["house.py", "House"].members == {"open"}
    assert not any("Kind" in pair for pair in found.pairs), "an enum is a value"


def test_a_base_class_is_known_by_what_self_takes_of_it(found: Folder) -> None:
    assert found.pairs["Friend", "Guest"].members == {"greet", "hungry", "_house"}
    assert found.pairs["Friend", "Guest"].held == {"(base)"}


def test_what_is_set_and_what_comes_through_a_third_class(found: Folder) -> None:
    assert found.pairs["House", "Guest"].written == {"hungry"}
    assert found.pairs["House", "Cellar"].written == {"bottles"}
    assert found.pairs["Guest", "House"].written == {"address"}
    assert found.pairs["Guest", "Cellar"].through == 1
    assert found.pairs["House", "Cellar"].through == 0


def test_circles_and_imports_for_types(found: Folder) -> None:
    assert {pair for pair, one in found.pairs.items() if one.circle} == {
        ("House", "Guest"),
        ("Guest", "House"),
    }
    assert found.pairs["Guest", "House"].types_only
    assert not found.pairs["House", "Guest"].types_only
    assert found.circles == [["guest", "house"]]
    assert found.ignored == 1


def test_what_is_printed(found: Folder) -> None:
    lines = table(found, 2).splitlines()
    assert lines[1].split() == ["Friend", "->", "Guest", "3", "1", "0", "(base)"]
    (guest,) = (line for line in lines if line.startswith("Guest -> House"))
    assert guest.split()[3:] == ["2", "1", "0", "_house", "(types)", "circle"]
    assert not any("house.py" in line for line in lines), "one member is fewer than two"
    assert "Guest -> House: address=, cellar" in members(found, "House").splitlines()


def test_the_drawing_has_every_name_and_is_the_same_again(found: Folder, tmp_path: Path) -> None:
    for name in ("igraph", "matplotlib"):
        pytest.importorskip(name, reason="the extra `drawings` is not installed")
    path = tmp_path / "village.svg"
    draw(found, path, 1)
    first = path.read_text()
    assert all(name in first for name in ("House", "Guest", "Friend", "Cellar"))
    draw(found, path, 1)
    assert path.read_text() == first


def test_an_error_in_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("number: int = 'no number'\n")
    with pytest.raises(SystemExit, match="Incompatible types"):
        measure(tmp_path, tmp_path.parent)
