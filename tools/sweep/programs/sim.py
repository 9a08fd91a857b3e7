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

`tests/support/simulated_worlds.py` says what a world of `ompy sim` is: a generated program, two to four ranks, one to three rails, a mixture of BTLs, and up to three faults; in every
fifth round of the mixtures bfo loses one of two or three rails for good. The simulator never failed, no world was stuck, and every program ended well, with all its bytes. Where faults
that struck may have taken the last path between two ranks, the program may have ended with `MPI_ERR_PROC_FAILED` instead (*raised*), or *waited for ever* for ranks whose paths it had
not lost; *spared* worlds are those in which it may not.

What the sweep has found, each mended with a test that failed before: a packet that was held back until its socket was closed ended the simulator (bfo, a rail that dies); with ob1 a
probe or receive that was begun after the path was lost waited for ever (world 34); a rank that had only put and got over ofi ended without BYE, an error for a peer that waited for its message over usnic (world 371); what was sent first over a path of usnic made after its device had gone ended in a traceback (world 671); a peer that began a generation anew before the last was agreed on ended an openib rank with an AssertionError (world 748); a rank of ofi that looks again and again made a timer each time, and each woke it (world 5081: 375,000 turns, 6,000 now), and one whose message had been refused looked for ever for a peer that had gone (world 2615); over ob1 a sender waited for ever for a receiver that had lost the rail of half of a message, as nobody told it (world 8617); a message of a rank that was finalizing already came later than the patience with it, as its first connection over a rail that had gone took nine seconds (world 377); what was said of ranks that wait named process ids, and was not the same twice (world 1220).
Its rule was too strict twice: over btl/ofi alone there is one rail, whatever `--rails` says (world 0); and world 287's only exception came of a black hole around a rank over both rails, so it may raise; and too lax once: a wait for ever was taken for right over ob1 whatever it waited for."""  # noqa: E501 - paragraphs of Markdown
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
