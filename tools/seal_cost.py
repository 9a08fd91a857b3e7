"""What the seal of tcp's connections costs: none, mac and encrypt in turns, between two namespaces.

    .venv/bin/python tools/seal_cost.py --tree build/compiled --rounds 10

Needs root and iproute2. Each round runs a job for each value of `btl_base_seal`, in turns, so that
what else the machine does meets all of them. A job takes the best of several batches; shown are the
medians of the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.two_hosts import TwoHosts, why_not  # noqa: E402

SEALS = ("none", "mac", "encrypt")
PROGRAM = """
import json
from time import perf_counter
from ompy import MPI
comm = MPI.COMM_WORLD
other = 1 - comm.rank

def best(batch, batches):
    found = []
    for _ in range(batches):
        comm.Barrier()
        begun = perf_counter()
        batch()
        found.append(perf_counter() - begun)
    return min(found)

def ping_pong(size, turns):
    data, room = bytearray(size), bytearray(size)
    def batch():
        for _ in range(turns):
            if comm.rank == 0:
                comm.Send(data, other)
                comm.Recv(room, other)
            else:
                comm.Recv(room, other)
                comm.Send(data, other)
    return best(batch, 8) / turns / 2 * 1e6

def rate(window, turns):
    data, rooms = bytearray(8), [bytearray(8) for _ in range(window)]
    def batch():
        for _ in range(turns):
            if comm.rank == 0:
                MPI.Request.Waitall([comm.Isend(data, other) for _ in range(window)])
                comm.Recv(rooms[0], other)
            else:
                MPI.Request.Waitall([comm.Irecv(room, other) for room in rooms])
                comm.Send(data, other)
    return window * turns / best(batch, 8)

found = {
    "8 B, us one way": ping_pong(8, 200),
    "64 KiB, us one way": ping_pong(65536, 40),
    "1 MiB, us one way": ping_pong(1 << 20, 8),
    "8 B, messages/s": rate(64, 5),
}
if comm.rank == 0:
    print(json.dumps(found))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--tree", default="", help="a compiled copy, as tools/compile_hot.py makes")
    options = parser.parse_args()
    if why := why_not():
        sys.exit(f"no namespaces: {why}")
    if options.tree:
        os.environ["PYTHONPATH"] = str(Path(options.tree).resolve())
    measured: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with TwoHosts(how="") as hosts, tempfile.TemporaryDirectory() as folder:
        for turn in range(options.rounds):
            for place in range(len(SEALS)):
                seal = SEALS[(turn + place) % len(SEALS)]
                settings = {"btl": "self,sm,tcp", "btl_base_seal": seal}
                codes, outs, errs = hosts.run(Path(folder, "secret"), PROGRAM, **settings)
                if any(codes):
                    sys.exit(f"{seal}: {errs}")
                for what, value in json.loads(outs[0]).items():
                    measured[what][seal].append(value)
            print(f"round {turn + 1}, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
    print(f"| what | {' | '.join(SEALS)} | mac / none | encrypt / none |")
    print("|---|---|---|---|---|---|")
    for what, by_seal in measured.items():
        middle = {seal: statistics.median(values) for seal, values in by_seal.items()}
        cells = [f"{middle[seal]:,.{0 if middle[seal] > 1000 else 1}f}" for seal in SEALS]
        cells += [f"{middle[seal] / middle['none']:.2f}" for seal in SEALS[1:]]
        print(f"| {what} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
