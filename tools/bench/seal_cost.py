"""What the seal of tcp's connections costs: none, mac and encrypt in turns, between two namespaces.

    .venv/bin/python tools/bench/seal_cost.py --rounds 10
    .venv/bin/python tools/bench/seal_cost.py --layer

Needs root and iproute2. Each round runs a job for each value of `btl_base_seal`, in turns, so that
what else the machine does meets all of them. A job takes the best of several batches; shown are the
medians of the rounds. `--layer` takes the processor time of the records alone, without any network:
what else runs does not count there.
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

ROOT = Path(__file__).resolve().parents[2]
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


def layer() -> None:
    """Processor time of making and of checking records, the least of 15 batches."""
    from time import thread_time_ns

    from ompy.net.seals.handshake import SealLevel
    from ompy.net.seals.records import Opener, Sealer, Writer

    print("| bytes | seal | sending, us | receiving, us |\n|---|---|---|---|")
    for size, turns in ((30, 500), (64 << 10, 20), (1 << 20, 3)):
        for level in (SealLevel.MAC, SealLevel.ENCRYPT):
            sent: list[bytes] = []
            body = memoryview(bytes(size))
            opener = Opener(bytes(32), level)

            def transmit(pieces: list[memoryview], sent: list[bytes] = sent) -> int:
                sent.append(b"".join(pieces))
                return len(sent[-1])

            writer = Writer(Sealer(bytes(32), level), transmit)  # type: ignore[arg-type]
            best = [float("inf"), float("inf")]
            for _ in range(15):
                begun = thread_time_ns()
                for _ in range(turns):
                    writer.write([body])
                middle = thread_time_ns()
                arrived = memoryview(b"".join(sent))
                begun_again = thread_time_ns()
                while arrived:
                    room = opener.room()
                    count = min(len(room), len(arrived))
                    room[:count] = arrived[:count]
                    opener.received(count)
                    arrived = arrived[count:]
                    while opener.next():
                        pass
                end = thread_time_ns()
                sent.clear()
                best = [min(best[0], middle - begun), min(best[1], end - begun_again)]
            each = " | ".join(f"{ns / turns / 1000:.1f}" for ns in best)
            print(f"| {size:,} | {level.name.lower()} | {each} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--tree", default="", help="a compiled copy, by tools/package compile_hot")
    parser.add_argument("--layer", action="store_true", help="the records alone")
    options = parser.parse_args()
    if options.layer:
        layer()
        return
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
