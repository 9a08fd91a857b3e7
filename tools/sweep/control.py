#!/usr/bin/env python3
"""100,000 jobs of the control plane in virtual worlds: processes killed, hosts down, silent wires.

    python tools/sweep control             all of them: some twelve minutes of one core
    python tools/sweep control --worlds N  the first N
    python tools/sweep control --world N   one again

What a world is stands in `tests/support/control_world.py`, what a sweep does in `worlds.py`.
When all have passed, `docs/control-sweep.md` is written.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Final

from tests.support.control_processes import Fault
from tests.support.control_world import Shape, World, depth_of, faults, judge, shape_of
from tools.sweep.worlds import Sums, WorldSweep, main

HEADING: Final = """\
# The sweep of the control plane

`tests/support/control_world.py` says what a world is: two to five hosts, a tree of agents, one to two ranks a host; up to two faults, each at one act of a process or at one message. The machines of launcher, relays and agents are the product's.
Each job ended, with the code and the report of what happened first at the launcher; nobody was left waiting, and no process was left."""  # noqa: E501 - a paragraph of Markdown
COLUMNS: Final = {  # heading: counters that are summed
    "worlds": ("worlds",),
    "faults that struck": ("struck",),
    "went well": ("outcome well",),
    "rank killed": ("outcome rank killed",),
    "its own end": ("outcome exit", "outcome abort", "outcome crash"),
    "agent killed": ("outcome agent kill", "outcome relay kill"),
    "host down": ("outcome agent down", "outcome relay down"),
    "connection cut": ("outcome wire cut",),
    "connection silent": (
        "outcome wire dumb up",
        "outcome wire dumb down",
        "outcome wire dumb both",
    ),
    "launcher killed": ("outcome launcher killed",),
}


def design(number: int) -> tuple[Shape, list[Fault]]:
    """What the world of a number is."""
    shape, chance = shape_of(number), Random(number)  # noqa: S311 - it repeats a world
    every = list(faults(shape))
    return shape, [chance.choice(every) for _ in range(chance.choice((0, 1, 1, 2)))]


def run(number: int) -> tuple[str, Counter[str]]:
    """One world: its class, and what it counted."""
    shape, chosen = design(number)
    world = World(shape, *chosen).run()
    counted = Counter({f"outcome {judge(world)}": 1, "struck": len(world.struck)})
    return f"{shape.hosts} hosts, depth {depth_of(shape)}", counted


def show(number: int) -> None:
    """Run one world and show it."""
    shape, chosen = design(number)
    print(shape, *chosen, sep="\n")
    world = World(shape, *chosen).run()
    print(f"code {world.launcher.code} after {world.clock.now:.3f} s: {judge(world)}")
    for failure in world.failures:
        print(dict(failure))


def silent(sums: Sums) -> list[str]:
    """Outcomes that should have been seen and were not."""
    total = sum(sums.values(), Counter[str]())
    wanted = [name for names in COLUMNS.values() for name in names]
    few = total["worlds"] < 1000  # arbitrary: then each outcome has come dozens of times
    return [] if few else [f"{name} stayed 0" for name in wanted if not total[name]]


CONTROL: Final = WorldSweep(
    name="control",
    worlds=100_000,  # arbitrary: as the other sweeps of the release
    shard=500,  # arbitrary: some ten seconds
    run=run,
    show=show,
    silent=silent,
    heading=HEADING,
    columns=COLUMNS,
)

if __name__ == "__main__":
    main(CONTROL, __doc__ or "")
