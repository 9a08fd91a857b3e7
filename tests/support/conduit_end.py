"""A rank of a real job that ranks end at random, as programs with GASNet do.

python -m tests.support.conduit_end SEED CONDUIT
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from random import Random

from ompy.data.errors import MPIError
from ompy.frameworks.conduit import Category, Token
from ompy.runtime.ranks import rank_start
from ompy.runtime.ranks.process import RankProcess

from tests.sim.conduit.programs import EMPTY, REQUEST, joined

CODES = range(1, 120)


def plan(seed: int, rank: int, size: int) -> tuple[int, int, bool]:
    """When a rank ends the job, with which code, whether from a handler; never, if 0."""
    random = Random(seed * 100 + rank)
    ends = rank == seed % size or random.randrange(4) == 0
    when = random.choice((1, 2, 10, 50, 200)) if ends else 0
    return when, random.choice(CODES), bool(random.randrange(2))


def flood(process: RankProcess, seed: int) -> None:
    """Requests between all ranks, until the job ends."""
    rank, size = process.context.rank, process.context.size
    when, code, in_handler = plan(seed, rank, size)
    heard = sent = 0

    def asked(token: Token, payload: memoryview, arguments: Sequence[int]) -> None:
        nonlocal heard
        heard += 1
        if in_handler and heard == when:
            raise SystemExit(conduit.exit(code))

    conduit = joined(process, {REQUEST: asked})
    if rank == 0:
        print("up", flush=True)
    while True:
        sent += 1
        for node in range(size):
            if node != rank:
                conduit.request(Category.SHORT, node, REQUEST, [sent], EMPTY, 0)
        if not in_handler and sent == when:
            raise SystemExit(conduit.exit(code))


def main() -> None:
    seed = int(sys.argv[1])
    process = rank_start.start()
    try:
        flood(process, seed)
    except MPIError as problem:  # a peer has gone first
        print(problem, file=sys.stderr)
        time.sleep(60)
        os._exit(120)
    finally:
        process.finalize()
        process.context.wireup.finalized()


if __name__ == "__main__":
    main()
