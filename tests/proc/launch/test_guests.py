"""Programs that join a job which runs: a server, clients, and the ends of both."""

from __future__ import annotations

import signal
import sys

import pytest

pytestmark = pytest.mark.proc

SERVER = """
import sys
from mpi4py import MPI
world = MPI.COMM_WORLD
port = None
if world.rank == 0:
    port = MPI.Open_port()
    MPI.Publish_name("sums", port)
    print("server up", flush=True)
for _ in range(int(sys.argv[1])):
    clients = world.Accept(port)
    if world.rank == 0:
        told = [clients.recv(source=rank) for rank in range(clients.remote_size)]
        for rank in range(clients.remote_size):
            clients.send(sum(told), dest=rank)
    clients.Disconnect()
"""
CLIENT = """
import sys, time
from mpi4py import MPI
world = MPI.COMM_WORLD
server = world.Connect(MPI.Lookup_name("sums") if world.rank == 0 else None)
server.send(world.rank + 10, dest=0)
print("client", world.rank, "has", server.recv(source=0), flush=True)
if len(sys.argv) > 1:
    time.sleep(float(sys.argv[1]))
server.Disconnect()
"""


@pytest.fixture
def server(launch, tmp_path):
    """Starts a job of two ranks that may be joined; waits until it is up."""
    ticket = tmp_path / "ticket"

    def call(clients):
        words = ["--joinable", ticket, "-n", 2, sys.executable, "-c", SERVER, clients]
        job = launch.start(*words)
        assert job.line() == "server up"
        return job

    call.ticket = ticket
    return call


def join(launch, server, ranks, *program):
    return launch("--join", server.ticket, "-n", ranks, sys.executable, "-c", *program)


def test_clients_come_one_after_the_other(launch, server):
    job = server(2)
    for ranks in (1, 2):
        done = join(launch, server, ranks, CLIENT)
        total = sum(range(10, 10 + ranks))
        lines = sorted(f"client {rank} has {total}" for rank in range(ranks))
        assert sorted(done.out.splitlines()) == lines, done.err
        assert done.code == 0
    ended = job.end()
    assert ended.code == 0, ended.err
    assert "client" not in ended.out
    assert not server.ticket.exists()


def test_one_that_fails_before_it_meets_anybody_fails_alone(launch, server):
    job = server(1)
    failed = join(launch, server, 1, "from mpi4py import MPI; raise SystemExit(3)")
    assert failed.code == 3
    assert "Rank 0 ended with exit code 3" in failed.err
    assert join(launch, server, 2, "print('no MPI at all')").code == 0
    assert join(launch, server, 1, CLIENT).code == 0
    assert job.end().code == 0


def test_one_that_fails_later_ends_the_job_and_the_job_all_others(launch, server):
    job = server(2)
    idle = launch.start(
        *("--join", server.ticket, "-n", 1, sys.executable, "-c"),
        "from mpi4py import MPI; import time; time.sleep(60)",
    )
    client = launch.start("--join", server.ticket, "-n", 1, sys.executable, "-c", CLIENT, 60)
    assert "has 10" in client.line()
    client.signal(signal.SIGKILL)
    ended = job.end()
    assert ended.code == 1
    assert "is gone" in ended.err
    other = idle.end()
    assert other.code == 1
    assert "has been ended" in other.err or "is gone" in other.err


def test_without_the_key_nobody_joins(launch, server, tmp_path):
    job = server(1)
    other = tmp_path / "other"
    other.write_text(server.ticket.read_text().replace('"secret": "', '"secret": "0'))
    other.chmod(0o600)
    refused = launch("--join", other, "-n", 1, "true")
    assert refused.code == 1
    assert "does not have this ticket" in refused.err
    server.ticket.chmod(0o644)
    refused = launch("--join", server.ticket, "-n", 1, "true")
    assert refused.code == 1
    assert "chmod 600" in refused.err
    server.ticket.chmod(0o600)
    refused = launch("--join", server.ticket, "--mca", "pml", "bfo", "-n", 1, "true")
    assert refused.code == 2
    assert "decides about mca" in refused.err
    assert join(launch, server, 1, CLIENT).code == 0
    assert job.end().code == 0
