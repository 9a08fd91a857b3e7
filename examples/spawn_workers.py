"""Start workers while the program runs, have them work together, and let them go.

ompy-run -n 1 python examples/spawn_workers.py
python examples/spawn_workers.py 3
"""

import sys

from ompy import MPI


def work(parent):
    """What a worker does: its share of an integral that gives pi."""
    workers = MPI.COMM_WORLD
    steps = parent.bcast(None, root=0)
    share = range(workers.rank, steps, workers.size)
    part = sum(4.0 / (1.0 + ((step + 0.5) / steps) ** 2) for step in share) / steps
    parent.reduce(part, op=MPI.SUM, root=0)
    parent.Disconnect()


def main():
    """Start the workers and add up what they send."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    workers = MPI.COMM_SELF.Spawn(sys.executable, [__file__], maxprocs=count)
    workers.bcast(100_000, root=MPI.ROOT)
    total = workers.reduce(None, op=MPI.SUM, root=MPI.ROOT)
    workers.Disconnect()
    print(f"{count} workers: pi is {total:.6f}")


if __name__ == "__main__":
    PARENT = MPI.Comm.Get_parent()
    if PARENT == MPI.COMM_NULL:
        main()
    else:
        work(PARENT)
