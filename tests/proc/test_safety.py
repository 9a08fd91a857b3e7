"""Strangers at the listeners of a running job: they learn nothing and disturb nobody."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.proc

VICTIM = Path(__file__).with_name("victim.py")
RANKS = 3
PATIENCE = 30  # s


class Job:
    """A job that passes messages around until it is told to stop."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "ompy.cli.run", "-n", str(RANKS)]
        command += ["--mca", "btl", "self,tcp"]
        self.process = subprocess.Popen(
            [*command, *arguments, sys.executable, str(VICTIM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        said = json.loads(self.process.stdout.readline())
        self.addresses = [tuple(address) for address in said["addresses"]]
        self.job_id = bytes.fromhex(said["job_id"])

    def stop(self) -> dict[str, int]:
        out, err = self.process.communicate("stop\n", timeout=60)
        assert self.process.returncode == 0, out + err
        assert err == ""
        return json.loads(out.splitlines()[-1])


@contextlib.contextmanager
def attack(job: Job, act: Callable[[tuple[str, int]], None]) -> Iterator[list[int]]:
    """Repeat `act` against every listener until the body ends; counts what was done."""
    over = threading.Event()
    done = [0]

    def body(address: tuple[str, int]) -> None:
        while not over.is_set():
            with contextlib.suppress(OSError):
                act(address)
            done[0] += 1

    threads = [threading.Thread(target=body, args=(address,)) for address in job.addresses]
    for thread in threads:
        thread.start()
    try:
        yield done
    finally:
        over.set()
        for thread in threads:
            thread.join()


def dial(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, timeout=1)


def scan(address: tuple[str, int]) -> None:
    dial(address).close()


def garbage(address: tuple[str, int]) -> None:
    with dial(address) as connection:
        connection.sendall(random.randbytes(random.choice([1, 7, 8, 40, 72, 5000])))
        connection.recv(100)


def forged_hello(address: tuple[str, int], job_id: bytes, rank: int) -> None:
    from ompy.net.seals.handshake import HELLO, MAGIC

    with dial(address) as connection:
        connection.sendall(HELLO.pack(MAGIC, job_id, (rank + 1) % RANKS, rank, 0, os.urandom(16)))
        challenge = connection.recv(100)
        assert len(challenge) in (0, 48)
        connection.sendall(os.urandom(32))  # no proof
        assert connection.recv(100) == b"", "an impostor hears nothing more"


def slow(address: tuple[str, int]) -> None:
    with dial(address) as connection:
        for byte in b"ompytcp2" + bytes(30):
            connection.sendall(bytes([byte]))
            time.sleep(0.02)


@pytest.mark.parametrize("name", ["scan", "garbage", "forged", "slow"])
def test_attack_on_a_running_job(name: str) -> None:
    job = Job()

    def forge(address: tuple[str, int]) -> None:
        forged_hello(address, job.job_id, job.addresses.index(address))

    act = {"scan": scan, "garbage": garbage, "forged": forge, "slow": slow}[name]
    with attack(job, act) as done:
        begin = time.monotonic()
        time.sleep(1.5)
        while done[0] <= 5 and time.monotonic() - begin < PATIENCE:  # the machine may be busy
            time.sleep(0.05)
    report = job.stop()
    assert done[0] > 5, "the attack did happen"
    assert report["rounds"] > 5, "and the job went on"
    assert report["half_open"] <= 64


def test_a_crowd_of_half_open_connections() -> None:
    """More than the job holds at a time: the oldest are dropped, the job's own get through."""
    job = Job("--mca", "btl_tcp_half_open_max", "8")
    held = []
    for address in job.addresses:
        for _ in range(40):
            held.append(dial(address))
    time.sleep(0.5)
    report = job.stop()
    assert report["half_open"] <= 8
    closed = 0
    for connection in held:
        connection.settimeout(1)
        with contextlib.suppress(OSError):
            closed += connection.recv(10) == b""
        connection.close()
    assert closed >= len(held) - 3 * 8


def test_doors_are_on_loopback_only() -> None:
    job = Job()
    try:
        assert {host for host, _ in job.addresses} == {"127.0.0.1"}
    finally:
        job.stop()
