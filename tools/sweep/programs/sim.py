#!/usr/bin/env python3
"""10,000 generated programs in simulated worlds, over every mixture of BTLs, under random faults.

    python tools/sweep sim             all of them: two hours of one core
    python tools/sweep sim --worlds N  the first N; --jobs 2: two at a time
    python tools/sweep sim --world N   one again, after its command and its program

What a world is stands in `tests/support/simulated_worlds.py`, what a sweep does in
`worlds.py`. When all have passed, `docs/sim-sweep.md` is written.
"""

from __future__ import annotations

import shlex
from collections import Counter
from typing import Final

from ompy.cli.simulating.sim import prepare_interpreter

from tests.support import simulated_worlds
from tools.repository import ROOT
from tools.sweep.worlds import Sums, WorldSweep, main, stayed_zero

KEPT: Final = ROOT / "build" / "sim-sweep"  # programs of worlds that run or failed
HEADING: Final = """\
# User programs under random faults

A world of `ompy sim` (`tests/support/simulated_worlds.py`) is a generated program on two to four ranks, with one to three rails, a mixture of BTLs, and up to three faults. In every
fifth round of the mixtures bfo loses one of two or three rails for good. The simulator never failed, and no world was stuck. Every program ended well, with all its bytes, with one
exception: if faults may have taken the last path between two ranks, the program may have ended with `MPI_ERR_PROC_FAILED` (*raised*), or *waited for ever* for ranks whose paths it had
not lost. In *spared* worlds it may not."""  # noqa: E501 - paragraphs of Markdown
COLUMNS: Final = {  # heading: counters that are summed
    "worlds": ("worlds",),
    "messages": ("messages",),
    "faults that struck": ("struck",),
    "retransmissions": ("retransmissions",),
    "rail events": ("broke",),
    "spared": ("spared",),
    "raised": ("raised",),
    "waited for ever": ("waits",),
}
KINDS: Final = {"faults delivered": "fault ", "worlds in which it struck": "worlds with "}
ENOUGH: Final = 40  # worlds of a class; arbitrary: so many see each of these
WANTED: Final = ("messages", "struck", "broke", "spared")


def run(number: int) -> tuple[str, Counter[str]]:
    """One world: its class, and what it counted."""
    KEPT.mkdir(parents=True, exist_ok=True)
    made, counted = simulated_worlds.world(number, KEPT)
    simulated_worlds.source(KEPT, number).unlink()
    return made.mixture, counted


def show(number: int) -> None:
    """Run one world and show it; its program stays."""
    made = simulated_worlds.draw(number)
    KEPT.mkdir(parents=True, exist_ok=True)
    path = simulated_worlds.source(KEPT, number)
    print(shlex.join(["ompy", "sim", *made.options, str(path)]))
    print(made.program)
    trial = simulated_worlds.run(made, path)
    print(trial.output)
    print(f"{trial.outcome.messages} messages, {trial.outcome.kind}: {trial.outcome.text}")


def silent(sums: Sums) -> list[str]:
    """What classes of worlds have not seen of what they are there for."""
    return stayed_zero(sums, WANTED, ENOUGH)


SIM: Final = WorldSweep(
    name="sim",
    worlds=10_000,  # arbitrary: what the project promises
    shard=150,  # arbitrary: ten turns of all classes
    run=run,
    show=show,
    silent=silent,
    heading=HEADING,
    columns=COLUMNS,
    kinds=KINDS,
)

if __name__ == "__main__":
    prepare_interpreter()
    main(SIM, __doc__ or "")
