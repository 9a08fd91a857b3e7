#!/usr/bin/env python3
"""10,000 jobs of random programs whose every result is compared with a model in NumPy.

    python tools/sweep differential             all of them: some hours of two cores
    python tools/sweep differential --worlds N  the first N jobs
    python tools/sweep differential --world N   one again, and what it says

The programs are those of `tests/support/differential/`; what a sweep does is in `worlds.py`. When
all have passed, `docs/differential-sweep.md` is written.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from itertools import chain
from pathlib import Path
from random import Random
from typing import Final

from tests.support.differential.kinds import KINDS
from tests.support.differential.settings import draw_settings
from tools.repository import ROOT
from tools.sweep.worlds import Sums, WorldSweep, main, stayed_zero

HEADING: Final = """\
# The sweep of random programs beside a model

A job of 2 to 4 ranks runs 10 random programs of one kind (`tests/support/differential/`): reductions of every type and operation, mixtures of collective calls and messages with derived datatypes, also with ranks that others have spawned, accesses to windows, files, objects, many of these in several threads; streams of messages whose order counts, partitioned messages, requests that are freed, cancelled or too short, and pools of workers. A sixth of the jobs have random parameters. Each rank compares all that it gets, the memory around it and what it lent with what MPI's text says, computed in NumPy."""  # noqa: E501 - a paragraph of Markdown
PROGRAMS: Final = 10  # of a job; arbitrary: some seconds
PATIENCE_S: Final = (
    600  # arbitrary: threads over bfo took 75 s beside a load of 7, which waited for a core
)
ENOUGH: Final = 20  # jobs of a class that have to have compared something; arbitrary
WAYS: Final = (  # options of ompy-run
    (),
    ("--mca", "coll_sm_fragment_size", "4096"),
    ("--mca", "btl", "self,tcp"),
    ("--mca", "pml", "bfo"),
    ("--mca", "coll", "basic,inter"),
)
WORDS_MOST: Final = max(map(len, WAYS))  # of a way that has a name
COLUMNS: Final = {  # heading: counters that are summed
    "jobs": ("worlds",),
    "programs": ("programs",),
    "results compared": ("compared",),
}


def draw_way(chance: Random) -> tuple[str, ...]:
    """One of the ways, or any parameters."""
    if chance.random() < len(WAYS) / (len(WAYS) + 1):
        return chance.choice(WAYS)
    settings = draw_settings(chance)
    return tuple(chain(*(("--mca", name, str(value)) for name, value in settings.items())))


def command(number: int) -> tuple[str, list[str]]:
    """The class of a job, and its command line."""
    chance = Random(f"job {number}")  # noqa: S311 - it repeats a job
    kind, ranks, way = chance.choice(KINDS), chance.randint(2, 4), draw_way(chance)
    words = [str(Path(sys.executable).with_name("ompy-run")), "-n", str(ranks), "--oversubscribe"]
    words += [*way, sys.executable, "-m", "tests.support.differential"]
    words += [str(number * PROGRAMS), str(PROGRAMS), kind]
    name = "any parameters" if len(way) > WORDS_MOST else " ".join(way[1:]) or "as it is"
    return f"{kind}, {name}", words


def environment() -> dict[str, str]:
    """Programs import what they need from the root of the tree, after what is named already."""
    paths = [os.environ.get("PYTHONPATH", ""), str(ROOT)]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def run(number: int) -> tuple[str, Counter[str]]:
    """One job: its class, and what it counted."""
    what, words = command(number)
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        cwd=ROOT,
        env=environment(),
    )
    counts = re.search(r": (\d+) programs, (\d+) results compared$", done.stdout, re.MULTILINE)
    assert counts, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
    assert not done.returncode, done
    assert int(counts[1]) == PROGRAMS, counts
    return what, Counter({"programs": PROGRAMS, "compared": int(counts[2])})


def show(number: int) -> None:
    """Run one job and show what it says."""
    what, words = command(number)
    print(what, " ".join(words), sep="\n", flush=True)
    subprocess.run(words, check=False, cwd=ROOT, env=environment())


def silent(sums: Sums) -> list[str]:
    """Every class has to compare something."""
    return stayed_zero(sums, ("compared",), ENOUGH)


DIFFERENTIAL: Final = WorldSweep(
    name="differential",
    worlds=10_000,  # arbitrary: those that found the last defects were some thousands
    shard=20,  # arbitrary: about a minute
    run=run,
    show=show,
    silent=silent,
    heading=HEADING,
    columns=COLUMNS,
)

if __name__ == "__main__":
    main(DIFFERENTIAL, __doc__ or "")
