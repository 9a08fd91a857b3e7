#!/usr/bin/env python3
"""The diagrams of docs/protocols.md and failover.md: `ompy trace` draws them from simulated jobs.

    python tools/package protocol_figures            write docs/figures/protocol-*.svg anew
    python tools/package protocol_figures --check    say which are not what would be written

A world is decided by its seed, so a figure changes only when a protocol or the drawing does.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
FIGURES: Final = ROOT / "docs" / "figures"
TOOLS: Final = (sys.executable, "-m", "ompy.cli.main")
PROGRAM: Final = """
import sys
from mpi4py import MPI

comm, size = MPI.COMM_WORLD, int(sys.argv[1])
if comm.rank == 0:
    comm.Send(bytearray(size), dest=1, tag=5)
else:
    comm.Recv(bytearray(size), source=0, tag=5)
"""


class World(NamedTuple):
    """A simulated job of one message."""

    size: int
    options: tuple[str, ...]


def parameters(**values: object) -> tuple[str, ...]:
    """Options that set parameters."""
    return tuple(word for name, value in values.items() for word in ("--mca", name, str(value)))


LIMITS: Final = {"btl_tcp_eager_limit": 4096, "btl_tcp_max_send_size": 8192}
WORLDS: Final = {
    "eager": World(100, parameters(btl="self,tcp")),
    "pipeline": World(30_000, parameters(btl="self,tcp", btl_tcp_flags="send", **LIMITS)),
    "rdma-pipeline": World(
        60_000,
        parameters(
            btl="self,tcp",
            btl_tcp_flags="send,put,inplace,failover",  # else it is put at once
            btl_tcp_rdma_pipeline_send_length=12_000,
            btl_tcp_rdma_pipeline_frag_size=20_000,
            btl_tcp_min_rdma_pipeline_size=20_000,
            **LIMITS,
        ),
    ),
    "put": World(100_000, parameters(btl="self,openib", btl_openib_flags="send,put")),
    "get": World(100_000, parameters(btl="self,openib")),
    "failover": World(
        60_000,
        (
            *parameters(pml="bfo", btl="self,tcp", btl_tcp_flags="send", **LIMITS),
            *("--rails", "2", "--fault", "link_down:rank=0,rail=rail1,message=1,byte=20000"),
        ),
    ),
}


def drawn(world: World, folder: Path) -> str:
    """The diagram of a world."""
    program, trace, figure = folder / "message.py", folder / "trace", folder / "figure.svg"
    program.write_text(PROGRAM)
    simulate = [*TOOLS, "sim", "-q", "-n", "2", "--seed", "1", "--trace", str(trace)]
    subprocess.run([*simulate, *world.options, str(program), str(world.size)], check=True)
    draw = [*TOOLS, "trace", str(trace), "--message", "1", "--sequence", str(figure)]
    subprocess.run(draw, check=True, capture_output=True)
    return figure.read_text()


def main() -> None:
    """Do it; exit 1 when a figure is not what it was."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    given = parser.parse_args()
    other = []
    for name, world in WORLDS.items():
        path = FIGURES / f"protocol-{name}.svg"
        with tempfile.TemporaryDirectory(prefix="ompy-figure-") as folder:
            text = drawn(world, Path(folder))
        if not path.exists() or path.read_text() != text:
            other.append(path.name)
            if not given.check:
                path.write_text(text)
    print(f"other than before: {', '.join(other)}" if other else "all figures are as they were")
    sys.exit(1 if given.check and other else 0)


if __name__ == "__main__":
    main()
