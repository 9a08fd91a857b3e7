#!/usr/bin/env python3
"""1,000 jobs of programs that nothing determines: recorded, replayed, each rank replayed alone.

    python tools/sweep replay             all of them: some hours of two cores
    python tools/sweep replay --worlds N  the first N jobs
    python tools/sweep replay --world N   one again: its program, and what it says

The programs are drawn from `tests/support/recorded_programs.py`; what a sweep does is in
`worlds.py`. Every third job is recorded without received bytes, over the collectives of any other
job. When all have passed, `docs/replay-sweep.md` is written.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from ompy.replay.job_file import read_job
from ompy.replay.recording import read_rank

from tests.support.recorded_programs import ACTS, draw_program
from tools.sweep.worlds import Sums, WorldSweep, main, stayed_zero

HEADING: Final = """\
# The sweep of replays

A job of 2 to 4 ranks runs a program of 3 to 7 random acts (`tests/support/recorded_programs.py`) whose ranks are told what nothing determines: sources of wildcards, places of Waitany and Waitsome, how often tests and probes said no, who had the lock of a window, whether a Cancel was in time, times. Ranks are late by chance. The job is recorded, then replayed on real processes: each rank has to be told the same, to the last poll.
Where the received bytes were recorded, too, each rank is replayed alone as well."""  # noqa: E501 - a paragraph of Markdown
PATIENCE_S: Final = 120  # arbitrary: far longer than any takes
BTLS: Final = ("self,sm", "self,tcp", "self,sm,tcp")
COLUMNS: Final = {  # heading: counters that are summed
    "jobs": ("worlds",),
    "replayed": ("replayed",),
    "ranks alone": ("alone",),
    "events": ("events",),
    "bytes of events": ("bytes",),
}


class Drawn(NamedTuple):
    """A job.

    Attributes:
        what: its class.
        ranks: how many.
        options: of `ompy-run`.
        data: received bytes are recorded.
        program: its source.
    """

    what: str
    ranks: int
    options: list[str]
    data: bool
    program: str


def draw_job(number: int) -> Drawn:
    """The job of a number."""
    chance = Random(f"replay {number}")  # noqa: S311 - it repeats a job
    ranks, btl, data = chance.randint(2, 4), chance.choice(BTLS), bool(number % 3)
    options = ["-n", str(ranks), "--oversubscribe", "--mca", "btl", btl]
    what = f"{btl}, {'with' if data else 'without'} bytes"
    return Drawn(what, ranks, options, data, draw_program(chance, alone=data))


def run_command(folder: Path, *words: str) -> list[str]:
    """The sorted lines that a command writes; AssertionError if it fails."""
    bin_folder = Path(sys.executable).parent
    done = subprocess.run(
        [str(bin_folder / words[0]), *words[1:]], capture_output=True, text=True, cwd=folder,
        timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return sorted(done.stdout.splitlines())


def run(number: int) -> tuple[str, Counter[str]]:
    """One job: its class, and what it counted."""
    drawn, counts = draw_job(number), Counter({"replayed": 1})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "program.py").write_text(drawn.program)
        record = ["--record", "recording", *(["--record-data"] if drawn.data else [])]
        words = ["ompy-run", *drawn.options, *record, sys.executable, "program.py"]
        told = run_command(folder, *words)
        assert len(told) == drawn.ranks, told
        again = run_command(folder, "ompy", "replay", "recording")
        assert again == told, f"{told}\n{again}"
        recorded = read_job(str(folder / "recording"))
        for rank in range(drawn.ranks):
            counts["events"] += len(read_rank(recorded, rank).events)
            counts["bytes"] += (folder / "recording" / f"rank-{rank}.events").stat().st_size
            if drawn.data:
                alone = run_command(folder, "ompy", "replay", "recording", "--rank", str(rank))
                assert alone == [told[rank]], f"{told[rank]}\n{alone}"
                counts["alone"] += 1
    counts.update(f"act {name}" for name in ACTS if f"# {name}\n" in drawn.program)
    return drawn.what, counts


def show(number: int) -> None:
    """Run one job and show what it says."""
    drawn = draw_job(number)
    print(drawn.program, drawn.what, " ".join(drawn.options), sep="\n")
    print(run(number))


def silent(sums: Sums) -> list[str]:
    """Each class has to have events, and to be replayed."""
    return stayed_zero(sums, ("replayed", "events"), enough=10)


REPLAYS: Final = WorldSweep(
    name="replay",
    worlds=1000,
    shard=10,  # arbitrary: a minute or two
    run=run,
    show=show,
    silent=silent,
    heading=HEADING,
    columns=COLUMNS,
    kinds={"jobs with it": "act "},
)

if __name__ == "__main__":
    main(REPLAYS, __doc__ or "")
