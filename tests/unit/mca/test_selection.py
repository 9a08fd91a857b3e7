from __future__ import annotations

import pytest
from ompy.mca.plugins.component_records import ComponentRecord
from ompy.mca.selection import LoadErrors, parse_selection


@pytest.mark.parametrize("raw", ["", "  ", "^", "^^", ",", "^ ,"])
def test_nothing_named_allows_everything(raw: str) -> None:
    selection = parse_selection(raw)
    assert selection.allows("tcp")
    assert not selection.asks_for("tcp")


@pytest.mark.parametrize("raw", ["self,tcp", " self , tcp ", "tcp,self,tcp", "self,,tcp,"])
def test_a_list_allows_and_asks_for_its_names(raw: str) -> None:
    selection = parse_selection(raw)
    assert [selection.allows(name) for name in ("self", "tcp", "sm", "")] == [
        True,
        True,
        False,
        False,
    ]
    assert [selection.asks_for(name) for name in ("self", "tcp", "sm")] == [True, True, False]


@pytest.mark.parametrize("raw", ["^self,tcp", "^^self,tcp", " ^ self, tcp"])
def test_a_negated_list_allows_everything_else(raw: str) -> None:
    selection = parse_selection(raw)
    assert [selection.allows(name) for name in ("self", "tcp", "sm")] == [False, False, True]
    assert not any(selection.asks_for(name) for name in ("self", "tcp", "sm"))


@pytest.mark.parametrize("raw", ["a,^b", "^a,^b", "a^b", "a^", "^ ^a"])
def test_negation_elsewhere_than_in_front_is_an_error(raw: str) -> None:
    with pytest.raises(ValueError, match=r"\^ negates the whole list"):
        parse_selection(raw)


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ("all", ["btl/a", "btl/b", "pml/a"]),
        ("yes", ["btl/a", "btl/b", "pml/a"]),
        ("", ["btl/a", "btl/b", "pml/a"]),
        ("none", []),
        ("0", []),
        ("btl", ["btl/a", "btl/b"]),
        ("btl/a, pml", ["btl/a", "pml/a"]),
        ("^btl/a", ["btl/b", "pml/a"]),
        ("^btl,pml/a", []),
    ],
)
def test_whose_failure_to_load_is_told(raw: str, told: list[str]) -> None:
    wanted = LoadErrors(raw)
    records = [
        ComponentRecord(framework, name, "d", "1", "m:C")
        for framework, name in [("btl", "a"), ("btl", "b"), ("pml", "a")]
    ]
    assert [f"{r.framework}/{r.name}" for r in records if wanted(r)] == told
