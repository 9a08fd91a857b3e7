#!/usr/bin/env python3
"""A million small worlds of bfo whose rails die in the middle of everything.

    python tools/sweep bfo               all of them: some hours of one core
    python tools/sweep bfo --worlds N    the first N
    python tools/sweep bfo --world N     one again, with what strikes it

What a world is stands in `tests/support/failing_worlds.py`, what a sweep does in `worlds.py`.
When all have passed, `docs/bfo-sweep.md` is written.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from tests.support import failing_worlds
from tests.support.failing_rails import KINDS
from tools.sweep.worlds import Sums, WorldSweep, main

SHARD: Final = len(failing_worlds.CLASSES) * failing_worlds.GROUP * 10  # between two notes
HEADING: Final = """\
# bfo under random faults

Every message arrived once, in order, with all its bytes; no rank hung, and nothing was left behind.
`tests/support/failing_worlds.py` says what a world is. Faults that struck: *lost*, a fragment did
not arrive and completed with an error when the path broke; *error but delivered*, it arrived and
completed with an error all the same; *late*, it completed with an error and arrived long
afterwards; *twice*, it arrived two times; *refused*, the path broke while it was offered. What
followed: *rail events*, times that a rank noticed a rail break; *NOTIFY*, *RECVERRNOTIFY*, *NACK*,
messages of the dance that were sent (README of pml/bfo); *dropped*, fragments that came for what
was over, or a second time, and changed nothing; *all rails gone*, worlds in which ranks lost each
other for good, with an error."""
COLUMNS: Final = {  # heading: counters that are summed
    "worlds": ("worlds",),
    "messages": ("messages",),
    "lost": ("lost",),
    "error but delivered": ("error",),
    "late": ("late",),
    "twice": ("twice",),
    "refused": ("refused",),
    "rail events": ("rail events",),
    "NOTIFY": ("> RNDVRESTARTNOTIFY",),
    "RECVERRNOTIFY": ("> RECVERRNOTIFY",),
    "NACK": ("> RNDVRESTARTNACK",),
    "dropped": ("MATCH", "RNDV", "RGET", "FIN", "FRAG", "ACK", "PUT"),
    "all rails gone": ("all rails gone",),
}


def run(number: int) -> tuple[str, Counter[str]]:
    """One world: its class, and what it counted."""
    design, outcome = failing_worlds.world(number)
    return f"{design.traffic}, {design.kind}", outcome.counted


def show(number: int) -> None:
    """Run one world and show it."""
    design, transfers = failing_worlds.dry_run(number // failing_worlds.GROUP)
    for rail in design.rails:
        print(rail)
    for program in design.programs:
        print(program)
    for fault in failing_worlds.script(number, design, transfers):
        print(fault)
    print(dict(failing_worlds.world(number)[1].counted))


def silent(sums: Sums) -> list[str]:
    """Kinds of faults that never struck in some class of worlds, once there are enough of it."""
    return [
        f"{name}: {kind} never struck"
        for name, counts in sums.items()
        for kind in KINDS
        if counts["worlds"] >= SHARD // len(failing_worlds.CLASSES) and not counts[kind]
    ]


BFO: Final = WorldSweep(
    name="bfo",
    worlds=1_000_000,  # arbitrary: what the project promises
    shard=SHARD,
    run=run,
    show=show,
    silent=silent,
    heading=HEADING,
    columns=COLUMNS,
)

if __name__ == "__main__":
    main(BFO, __doc__ or "")
