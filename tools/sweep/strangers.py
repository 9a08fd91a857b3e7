"""What another user of the host can do to ranks: junk for every socket they listen at.

    sudo python tools/sweep strangers -- --mca btl self,ofi --mca btl_ofi_provider_include sockets

starts two ranks that send each other messages, with these settings, becomes `nobody`, sends junk to
every TCP and UDP socket of them, their agent and the launcher, and says how the job ended: `fine`,
`crashed` with the exit code, or `hangs`. Half of what goes to TCP begins as the connection requests
of libfabric's tcp provider do. Only loopback is a target. It is what nic/libfabric's list of
exposed providers rests on.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from typing import Final

from tests.support.listening import Socket, children, listening

NOBODY: Final = 65534  # Linux: the overflow user
HELD: Final = 50  # arbitrary: connections that are left open, below what a process may have
BOUND: Final = 20  # s; arbitrary: a start on a busy machine, and an end
SIZES: Final = (1, 4, 7, 8, 16, 24, 40, 64, 100, 200, 500, 1200, 1400)  # arbitrary: around headers
LOOP: Final = """
import sys, time
from mpi4py import MPI
comm, end = MPI.COMM_WORLD, time.time() + float(sys.argv[1])
while comm.bcast(time.time() < end, root=0):
    comm.sendrecv(b"x" * 5000, 1 - comm.rank, source=1 - comm.rank)
"""


def junk(chance: random.Random, kind: str) -> bytes:
    """Some bytes that mean nothing, or next to nothing."""
    size = chance.choice(SIZES)
    small = bytes(
        chance.choice((0, 0, 0, 1, 2, 3, 4, 5, 8, chance.getrandbits(8))) for _ in range(size)
    )
    data = chance.choice((bytes(size), b"\xff" * size, chance.randbytes(size), small))
    if kind == "tcp" and chance.random() < 0.5:  # libfabric ofi_ctrl_hdr: version, type, size
        size = chance.choice((0, 8, 16, 60, 256, 60_000))
        head = bytes((chance.choice((2, 3, 3, 4)), chance.choice((1, 1, 2, 3)))) + size.to_bytes(2)
        data = head + bytes(chance.choice((4, 8))) + chance.randbytes(size)
    return data


def disturb(targets: list[Socket], seconds: float, seed: int) -> int:
    """As nobody, send junk to all of them. Returns how much was sent."""
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    chance = random.Random(seed)  # noqa: S311 - no secret
    held, sent = list[socket.socket](), 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for kind, host, port in targets:
            data = junk(chance, kind)
            stream = kind == "tcp"
            made = socket.socket(type=socket.SOCK_STREAM if stream else socket.SOCK_DGRAM)
            made.settimeout(0.5)
            with suppress(OSError):  # refused, or the job is gone
                made.connect((host, port))
                made.sendall(data)
                sent += 1
            if stream and chance.random() < 0.3:
                held.append(made)
            else:
                made.close()
            if len(held) > HELD:
                held.pop(0).close()
        time.sleep(0.0005)  # arbitrary: so that the ranks get their turn
    return sent


def targets_of(job: subprocess.Popen[str]) -> list[Socket]:
    """Where the job listens, once it does."""
    end = time.monotonic() + BOUND
    while not (found := listening(children(job.pid))) and time.monotonic() < end:
        time.sleep(0.2)
    time.sleep(1)  # arbitrary: all have begun by then
    found = listening(children(job.pid))
    print("listens at", ", ".join(sorted({f"{one.kind} {one.host}" for one in found})) or "nothing")
    return sorted(one for one in found if one.on_loopback and "." in one.host)


def attack(settings: list[str], seconds: float, seed: int) -> str:
    """How a job with these settings takes it."""
    command = [sys.executable, "-m", "ompy.cli.run", "-n", "2", *settings]
    job = subprocess.Popen(
        [*command, sys.executable, "-c", LOOP, str(2 * seconds + 4)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    targets = targets_of(job)
    stranger = os.fork()
    if not stranger:
        print("sent", disturb(targets, seconds, seed), flush=True)
        os._exit(0)
    os.waitpid(stranger, 0)
    try:
        said, _ = job.communicate(timeout=2 * seconds + BOUND)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            job.communicate(timeout=BOUND)
        os.killpg(job.pid, signal.SIGKILL) if job.poll() is None else None
        return "hangs"
    if job.returncode:
        print(said[-1000:])
        return f"crashed: exit code {job.returncode}"
    return "fine"


def main() -> int:
    """Exit code 0 when the job was fine."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("settings", nargs="*", help="what ompy-run is to be told, behind --")
    asked = parser.parse_args()
    if os.geteuid():
        sys.exit("strangers: run it as root, so that it can become nobody")
    verdict = attack(asked.settings, asked.seconds, asked.seed)
    print(verdict)
    return verdict != "fine"


if __name__ == "__main__":
    sys.exit(main())
