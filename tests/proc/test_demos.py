"""mpi4py's own demo programs, unmodified, on our drop-in.

Fetched by pip at test time; nothing of them is kept in this project. Without a package index
the tests are skipped, and say so.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.effort import THOROUGH
from tools.bench.peer.peer_sources import Unavailable, fetch

pytestmark = [pytest.mark.proc, pytest.mark.network]

# program below demo/, ranks, standard input, a part of what it writes
DEMOS = [
    ("helloworld.py", 4, "", "I am process 3 of 4"),
    ("osu_barrier.py", 2, "", "MPI Barrier Latency Test"),
    ("compute-pi/cpi-cco.py", 3, "1000\n2000\n0\n", "pi is approximately 3.14159"),
    ("mandelbrot/mandelbrot.py", 3, "", "all tasks, sum:"),
    ("mpi-ref-v1/ex-2.01.py", 2, "", ""),
    ("mpi-ref-v1/ex-2.08.py", 2, "", ""),
    ("mpi-ref-v1/ex-2.16.py", 2, "", ""),
    ("mpi-ref-v1/ex-2.29.py", 3, "", ""),
    ("mpi-ref-v1/ex-2.32.py", 2, "", ""),
    ("mpi-ref-v1/ex-2.34.py", 2, "", ""),
    ("mpi-ref-v1/ex-2.35.py", 2, "", ""),
    ("mpi-ref-v1/ex-3.01.py", 2, "", ""),
    ("mpi-ref-v1/ex-3.02.py", 2, "", ""),
    ("mpi-ref-v1/ex-3.03.py", 2, "", ""),
    ("mpi-ref-v1/ex-3.04.py", 2, "", ""),
    ("mpi-ref-v1/ex-3.05.py", 2, "", ""),
    ("mpi-ref-v1/ex-3.06.py", 2, "", ""),
    ("mpi-ref-v1/ex-3.07.py", 2, "", ""),
    ("mpi-ref-v1/ex-3.08.py", 2, "", ""),
    ("mpi-ref-v1/ex-3.09.py", 2, "", ""),
    ("mpi-ref-v1/ex-3.11.py", 2, "", ""),
    ("mpi-ref-v1/ex-3.12.py", 2, "", ""),
    ("mpi-ref-v1/ex-3.13.py", 2, "", ""),
    ("nxtval/nxtval-threads.py", 3, "", ""),
    ("profiling/ring.py", 3, "", ""),
    ("profiling/threads.py", 2, "", ""),
    ("reductions/test_reductions.py", 3, "", ""),
    ("sequential/test_seq.py", 3, "", "I am process 2 of 3"),
    ("threads/sendrecv.py", 2, "", ""),
    ("init-fini/test_1.py", 1, "", ""),
    ("init-fini/test_2.py", 1, "", ""),
    ("init-fini/test_3.py", 1, "", ""),
    ("init-fini/test_4.py", 1, "", ""),
    ("init-fini/test_5.py", 1, "", ""),
    ("init-fini/test_6.py", 1, "", ""),
]
# the loops that take 5 to 40 s each when the hot modules are interpreted: tools/nightly runs them
LONG = [
    ("osu_bw.py", 2, "", "4194304"),
    ("osu_alltoall.py", 2, "", "1048576"),
    ("osu_latency.py", 2, "", "4194304"),
    ("osu_bibw.py", 2, "", "4194304"),
    ("osu_multi_lat.py", 2, "", "4194304"),
    ("osu_alltoallv.py", 2, "", "1048576"),
    ("osu_bcast.py", 2, "", "1048576"),
    ("osu_gather.py", 2, "", "1048576"),
    ("osu_scatter.py", 2, "", "1048576"),
    ("osu_allgather.py", 2, "", "1048576"),
]


SHORT = DEMOS if THOROUGH else DEMOS[::2]


@pytest.fixture(scope="session")
def demos() -> Path:
    """The demo folder of mpi4py's source distribution."""
    try:
        return fetch() / "demo"
    except Unavailable as problem:
        pytest.skip(f"no package index here: {problem}")


def run_demo(demos: Path, program: str, ranks: int, stdin: str, expected: str) -> None:
    path = demos / program
    done = subprocess.run(
        [sys.executable, "-m", "ompy.cli.run", "-n", str(ranks), sys.executable, path.name],
        cwd=path.parent,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=110,
        env={**os.environ, "MPLBACKEND": "Agg"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert expected in done.stdout
    assert "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("program", "ranks", "stdin", "expected"), SHORT, ids=[demo[0] for demo in SHORT]
)
def test_demo(demos: Path, program: str, ranks: int, stdin: str, expected: str) -> None:
    run_demo(demos, program, ranks, stdin, expected)


@pytest.mark.skipif(not os.environ.get("OMPY_NIGHTLY"), reason="a long loop: part of tools/nightly")
@pytest.mark.parametrize(
    ("program", "ranks", "stdin", "expected"), LONG, ids=[demo[0] for demo in LONG]
)
def test_long_demo(demos: Path, program: str, ranks: int, stdin: str, expected: str) -> None:
    run_demo(demos, program, ranks, stdin, expected)
