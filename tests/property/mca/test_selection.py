"""Selection strings built from what they mean, and arbitrary ones against a grammar."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.mca.errors import UsageError
from ompy.mca.groups import FrameworkInfo
from ompy.mca.parameters.settings import gather_settings
from ompy.mca.plugins.component_records import ComponentRecord, State
from ompy.mca.registry import Registry
from ompy.mca.selection import parse_selection

CATALOG = (FrameworkInfo("wire", "Help.", (1, 0), ()),)
NAMES = ["self", "sm", "tcp", "ofi", "a_b"]
spaces = st.sampled_from(["", " ", "  "])


@st.composite
def selections(draw: st.DrawFn) -> tuple[str, list[str], bool]:
    """A selection string, the names in it and whether it is negated."""
    names = draw(st.lists(st.sampled_from(NAMES)))
    carets = draw(st.sampled_from(["", "^", "^^"]))
    items = [draw(spaces) + name + draw(spaces) for name in names]
    return draw(spaces) + carets + ",".join(items) + draw(spaces), names, bool(carets)


@given(selections(), st.sets(st.sampled_from(NAMES)))
def test_components_are_blocked_and_missed_as_the_string_says(selection, offered: set[str]) -> None:
    raw, names, negated = selection
    records = [ComponentRecord("wire", name, "d", "1", "no_such:X") for name in sorted(offered)]
    registry = Registry(CATALOG, gather_settings([("wire", raw)], {}, []), records)
    allowed = {record.name for record in registry.records if record.state is State.FOUND}
    missing: set[str] = set()
    if not names:
        assert allowed == offered
    elif negated:
        assert allowed == offered - set(names)
    else:
        assert allowed == offered & set(names)
        missing = set(names) - offered
    if missing:
        with pytest.raises(UsageError) as caught:
            registry.open("wire")
        assert len(caught.value.problems) == len(missing)
        for name in missing:
            assert any(f"no wire component {name}" in text for text in caught.value.problems)


@given(st.text("ab^, \t", max_size=12))
def test_any_text_is_a_selection_or_an_error(raw: str) -> None:
    if re.fullmatch(r"\s*\^*[^^]*", raw):
        selection = parse_selection(raw)
        assert all("^" not in name and name == name.strip() != "" for name in selection.names)
        assert len(set(selection.names)) == len(selection.names)
        assert [n for n in selection.names if selection.allows(n) is selection.excludes] == []
    else:
        with pytest.raises(ValueError, match="negates"):
            parse_selection(raw)
