"""One rank of a real job that runs a program over the module's own rank, and says that it did."""

from __future__ import annotations

import sys

from ompy import gasnet

from tests.support.gasnet_atomics import ATOMICS
from tests.support.gasnet_collectives import COLLECTIVES
from tests.support.gasnet_programs import PROGRAMS
from tests.support.gasnet_real_programs import REAL


def main() -> None:
    name = sys.argv[1]
    run = PROGRAMS[name].run if name in PROGRAMS else (ATOMICS | COLLECTIVES | REAL)[name]
    run(gasnet)
    sys.stdout.write(f"rank {gasnet.mynode()} of {gasnet.nodes()} did {name}\n")


main()
