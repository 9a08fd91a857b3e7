#!/usr/bin/env python3
"""100,000 small worlds of messages over wires that lose, double, reorder and damage packets.

    python tools/sweep lossy             all of them: under an hour of one core
    python tools/sweep lossy --worlds N  the first N
    python tools/sweep lossy --world N   one again, with its script

What a world is stands in `tests/support/lossy_worlds.py`, what a sweep does in `worlds.py`.
When all have passed, `docs/lossy-sweep.md` is written.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from tests.support import lossy_worlds
from tools.sweep.worlds import Sums, WorldSweep, main, stayed_zero

HEADING: Final = """\
# The lossy sweep

`tests/support/lossy_worlds.py` says what a world is. None lost, doubled, reordered or altered a message, and each single fault struck.
The numbers in the name of a class are the loss; duplicates, reordering and damage go up to 10 % beside it. Every world has some single
faults as well."""  # noqa: E501 - a paragraph of Markdown
COLUMNS: Final = {  # heading: counters that are summed
    "worlds": ("worlds",),
    "messages": ("messages",),
    "packets": ("num_total_sends",),
    "dropped": ("drop",),
    "doubled": ("duplicate",),
    "reordered": ("reorder",),
    "damaged": ("corrupt",),
    "resent": ("num_resends",),
    "by time": ("num_timeout_retrans",),
    "by ACK": ("num_fast_retrans",),
    "duplicates": ("num_dup_recvs", "num_oow_low_recvs", "num_replayed_recvs"),
    "duplicate ACKs": ("num_dup_acks",),
    "window full": ("num_window_full",),
    "refused": ("num_crc_errors",),
    "past 65535": ("wraps",),
}


def run(number: int) -> tuple[str, Counter[str]]:
    """One world: its class, and what it counted and suffered."""
    design, outcome = lossy_worlds.world(number)
    return f"{design.traffic}, {design.wire}", outcome.counted + outcome.faults


def show(number: int) -> None:
    """Run one world and show it, with its faults as they are drawn first."""
    design, dry = lossy_worlds.dry_run(number // lossy_worlds.GROUP)
    print(design)
    for rule in lossy_worlds.script(number, design, dry):
        print(rule)
    _, outcome = lossy_worlds.world(number)
    print(dict(outcome.faults), dict(outcome.counted))


def silent(sums: Sums) -> list[str]:
    """What classes of worlds have not seen of what they are there for."""
    return stayed_zero(sums, (*lossy_worlds.COUNTERS, *lossy_worlds.KINDS, "wraps"))


LOSSY: Final = WorldSweep(
    name="lossy",
    worlds=100_000,  # arbitrary: what the project promises
    shard=600,  # a turn of all classes
    run=run,
    show=show,
    silent=silent,
    heading=HEADING,
    columns=COLUMNS,
)

if __name__ == "__main__":
    main(LOSSY, __doc__ or "")
