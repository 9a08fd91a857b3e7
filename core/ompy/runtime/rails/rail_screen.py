"""The rails of a job as a table on a terminal. Imported where somebody watches, for it has rich."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ompy.runtime.rails.rail_watch import HISTORY, Rail, RailWatch, State
from ompy.trace.amounts import rate

LEVELS: Final = " ▁▂▃▄▅▆▇█"  # of a sparkline, from nothing to the most
PLAIN_LEVELS: Final = " .:-=+*#@"  # the same where there are only letters
assert len(LEVELS) == len(PLAIN_LEVELS)
STYLES: Final = {State.UP: "green", State.BROKEN: "bold red", State.MENDING: "yellow"}
OTHER_LINES: Final = 3  # arbitrary layout: head, what is hidden, and the line with the cursor
SPARK: Final = (8, HISTORY)  # rates in a sparkline, least and most; arbitrary least
OTHER_COLUMNS: Final = 46  # arbitrary layout: all but names and sparkline, with gaps
LEAST_ROWS: Final = 1  # arbitrary: however small a terminal says it is


def sparkline(rates: Iterable[float], most: float, levels: str = LEVELS) -> str:
    """Rates as a row of bars; anything above nothing is seen."""
    top = len(levels) - 1
    found = [1 + min(int((top - 1) * one / most + 0.5), top - 1) if one else 0 for one in rates]
    return "".join(levels[level] for level in found)


def rendered(
    watch: RailWatch, time: float, *, width: int, height: int, colour: bool, letters: bool = False
) -> str:
    """The table, in lines.

    Args:
        watch: the rails.
        time: s since the job began.
        width: of the terminal, in columns.
        height: of it, in lines; rails that find no room are counted.
        colour: with the terminal's colours.
        letters: ASCII only.
    """
    # rails that are not well come first: those have to be seen
    rails = sorted(watch.rails.values(), key=lambda rail: rail.state is State.UP)
    room = max(LEAST_ROWS, height - OTHER_LINES)
    shown, hidden = rails[:room], len(rails) - room
    names = max([len(rail.name) for rail in shown] or [0])
    spark = min(max(SPARK[0], width - OTHER_COLUMNS - max(names, 18)), SPARK[1])
    table = Table(box=None, header_style="bold")
    table.add_column(f"rails after {time:.1f} s", no_wrap=True, overflow="crop", min_width=18)
    table.add_column("state", no_wrap=True, overflow="crop", min_width=16)
    table.add_column("carries", no_wrap=True, overflow="crop", justify="right", min_width=10)
    table.add_column(
        f"last {spark * watch.interval:.1f} s", no_wrap=True, overflow="crop", min_width=spark
    )
    table.add_column("resent", no_wrap=True, overflow="crop", justify="right")
    most = max((one for rail in rails for one in rail.history), default=0.0) or 1.0
    for rail in shown:
        bars = sparkline(list(rail.history)[-spark:], most, PLAIN_LEVELS if letters else LEVELS)
        table.add_row(
            rail.name,
            Text(_state(rail, time), STYLES[rail.state]),
            rate(rail.rate),
            Text(bars.rjust(spark), STYLES[rail.state]),
            f"{rail.resent}",
        )
    if hidden > 0:
        table.add_row(f"and {hidden} more")
    out = StringIO()
    console = Console(
        file=out, width=width, force_terminal=colour, no_color=not colour, safe_box=True
    )
    console.print(table)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def _state(rail: Rail, time: float) -> str:
    if rail.state is not State.UP:
        return f"{rail.state.value} for {time - rail.since:.1f} s"
    if not rail.breaks:
        return "up"
    return "up, healed" if rail.breaks == 1 else f"up, healed {rail.breaks}x"
