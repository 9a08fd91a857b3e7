"""One rank of a real job that runs a program of `gasnet_programs` over the module's own rank."""

from __future__ import annotations

import sys

from ompy import gasnet

from tests.support.gasnet_programs import PROGRAMS


def main() -> None:
    for name in sys.argv[1:]:
        PROGRAMS[name].run(gasnet)
    print(f"rank {gasnet.mynode()} of {gasnet.nodes()} over {gasnet.conduit_name()}")


main()
