"""The table of nic/gni's numbers says what its parameters are."""

from __future__ import annotations

from pathlib import Path

import ompy_components.nic.gni as gni
import pytest
from ompy.frameworks.nic.clock import Cost
from ompy.frameworks.nic.clock_parameters import Timing
from ompy_components.nic.gni.component import GniComponent
from ompy_components.nic.gni.timings import TIMINGS

README = Path(gni.__file__).with_name("README.md").read_text()
PAIRS = list(zip(*TIMINGS.values(), strict=True))


def shown(timing: Timing) -> str:
    """What one takes, in the words of the table."""
    takes = timing.takes
    if not isinstance(takes, Cost):
        return f"{takes.latency} ns, {takes.bandwidth:,} Mbit/s"
    parts = [f"{takes.fixed} ns"] if takes.fixed else []
    parts += [f"{takes.rate:,} MB/s"] if takes.rate else []
    parts += [f"{takes.per_packet} ns for each {takes.packet:,} bytes"] * bool(takes.per_packet)
    return ", ".join(parts)


@pytest.mark.parametrize(("gemini", "aries"), PAIRS, ids=[pair[0].name for pair in PAIRS])
def test_the_table_has_each_number_and_its_source(gemini: Timing, aries: Timing) -> None:
    name = gemini.name.removeprefix("gemini_")
    assert aries.name == f"aries_{name}"
    (row,) = (line for line in README.splitlines() if line.startswith(f"| `{name}` |"))
    cells = row.split(" | ")
    assert cells[2:4] == [shown(gemini), shown(aries)]
    for source in {gemini.source, aries.source}:
        assert source in cells[4]


def test_each_number_is_a_parameter() -> None:
    names = {parameter.name for parameter in GniComponent.parameters}
    assert {"clock", "gemini_fma_put_ns", "aries_bte_put_rate", "gemini_link_mbits"} <= names
    for timings in TIMINGS.values():
        for timing in timings:
            assert any(name.startswith(timing.name) for name in names)
