#!/usr/bin/env python3
"""100,000 generated GASNet programs in virtual worlds, over both conduits, under random faults.

    python tools/sweep gasnet             all of them: three to four hours of one core
    python tools/sweep gasnet --worlds N  the first N; --jobs 2: two at a time
    python tools/sweep gasnet --world N   one again

What a world is stands in `tests/support/gasnet_random.py`, what a sweep does in `worlds.py`.
When all have passed, `docs/gasnet-sweep.md` is written.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from ompy.cli.simulating.sim import prepare_interpreter

from tests.support import gasnet_random
from tools.sweep.worlds import Sums, WorldSweep, main, stayed_zero

HEADING: Final = """\
# Generated GASNet programs

`tests/support/gasnet_random.py` says what a world is: a generated program (`tests/support/gasnet_generated.py`) on two to four ranks of one host or several. Conduit, way of messages, parameters, NIC and rails are random. Between hosts there are one or two faults.
The program puts and gets in every form and with sizes around the cut-overs, sends every kind of message, has messages passed on, keeps a shared table, goes through barriers of every kind, and ends by a return or an exit.
Every byte was right. Every message came once, with its bytes and arguments. Barriers failed only where they had to, and every job ended with its code. After a fault that may cost a connection, the program may have ended with GASNet's error for that (*lost*).
One world in 50 was run twice and came out the same. One in 250 was run by `ompy sim`, too."""  # noqa: E501 - paragraphs of Markdown
COLUMNS: Final = {  # heading: counters that are summed
    "worlds": ("worlds",),
    "puts": ("puts", "fills"),
    "gets": ("gets", "finds", "compared"),
    "in pieces": ("vectors", "regions"),
    "values": ("values",),
    "messages": ("short", "medium", "long", "long_async", "inserts"),
    "relays": ("relays",),
    "barriers": ("barriers",),
    "waits for a credit": ("am_credit_stalls",),
    "for a descriptor, buffer, registration": ("alloc_pd_stall", "alloc_bb_stall", "mem_reg_stall"),
    "faults that struck": ("struck",),
    "lost": ("lost",),
    "by ompy sim": ("simulated",),
}
KINDS: Final = {"faults delivered": "fault ", "ends of programs": "end "}
ENOUGH: Final = 100  # worlds of a class; arbitrary: so many see each of these
WANTED: Final = ("puts", "gets", "vectors", "values", "short", "medium", "long", "long_async")
MORE: Final = ("relays", "inserts", "barriers", "am_credit_stalls", "end return", "end handler")


def run(number: int) -> tuple[str, Counter[str]]:
    """One world: its class, and what it counted."""
    made, counted = gasnet_random.world(number)
    return made.name, counted


def show(number: int) -> None:
    """Run one world and show it."""
    made = gasnet_random.draw(number)
    print(made)
    print(*gasnet_random.once(made))
    if not number % gasnet_random.SIMULATED:
        gasnet_random.simulate(made)


def silent(sums: Sums) -> list[str]:
    """What classes of worlds have not seen of what they are there for."""
    faults = {name: counts for name, counts in sums.items() if name.endswith("faults")}
    found = stayed_zero(sums, (*WANTED, *MORE), ENOUGH)
    return [*found, *stayed_zero(faults, ("struck", "lost"), ENOUGH)]


GASNET: Final = WorldSweep(
    name="gasnet",
    worlds=100_000,  # arbitrary: what the project promises
    shard=140,  # arbitrary: ten turns of all classes
    run=run,
    show=show,
    silent=silent,
    heading=HEADING,
    columns=COLUMNS,
    kinds=KINDS,
)

if __name__ == "__main__":
    prepare_interpreter()
    main(GASNET, __doc__ or "")
