"""Jobs over four hosts with two rails, started by ssh."""

import sys

import pytest

from tests.support.effort import THOROUGH

pytestmark = [pytest.mark.proc, pytest.mark.netns]

FOUR = ("--host", "h1:2,h2:2,h3:2,h4:2")
RAILS = ("--mca", "btl_tcp_if_include", "10.77.0.0/16")
SIZE = 4_000_000

PROGRAM = f"""
import os, sys
from ompy import MPI
c = MPI.COMM_WORLD
token = c.sendrecv(c.rank, dest=(c.rank + 1) % c.size, source=(c.rank - 1) % c.size)
assert token == (c.rank - 1) % c.size
assert c.allreduce(c.rank) == c.size * (c.size - 1) // 2
big = bytearray([c.rank]) * {SIZE}
there = bytearray({SIZE})
c.Sendrecv(big, (c.rank + 2) % c.size, recvbuf=there, source=(c.rank - 2) % c.size)
assert set(there) == {{(c.rank - 2) % c.size}}
here = c.Split_type(MPI.COMM_TYPE_SHARED)
print(os.uname().nodename, c.rank, here.size, flush=True)
"""


def test_ring_and_allreduce_over_four_hosts_and_two_rails(lab):
    """Between hosts both rails carry, and the management network nothing of it."""
    links = ("rail1", "rail2", "management")
    before = {link: lab.sent("h2", link) for link in links}
    code, out, err = lab.run(*FOUR, *RAILS, sys.executable, "-c", PROGRAM)
    assert code == 0, err
    assert sorted(out.splitlines()) == [f"h{1 + rank // 2} {rank} 2" for rank in range(8)]
    sent = {link: lab.sent("h2", link) - before[link] for link in links}
    assert 2 * SIZE < sent["rail1"] + sent["rail2"] < 3 * SIZE, sent
    assert min(sent["rail1"], sent["rail2"]) > SIZE / 2, sent
    assert sent["management"] < SIZE / 10, sent
    lab.assert_empty()


@pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
def test_neighbours_on_a_host_use_shared_memory(lab):
    """Nothing but the start of the job is on any wire, as long as ranks 2 k and 2 k + 1 talk."""
    program = (
        "from ompy import MPI\n"
        "c = MPI.COMM_WORLD\n"
        f"big, there = bytearray({SIZE}), bytearray({SIZE})\n"
        "c.Sendrecv(big, c.rank ^ 1, recvbuf=there, source=c.rank ^ 1)\n"
    )
    links = ("rail1", "rail2", "management", "lo")
    before = {link: lab.sent("h2", link) for link in links}
    code, _, err = lab.run("--host", "h1:2,h2:2", sys.executable, "-c", program)
    assert code == 0, err
    sent = {link: lab.sent("h2", link) - before[link] for link in links}
    assert sum(sent.values()) < SIZE / 10, sent


@pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
def test_one_rail_by_name_and_a_bridge_that_leads_nowhere(lab):
    """docker0 has the same address on every host."""
    for host in ("h3", "h4"):
        lab("exec", host, "--", "sh", "-c",
            "ip link add docker0 type bridge && ip addr add 172.17.0.1/16 dev docker0"
            " && ip link set docker0 up")  # fmt: skip
    program = (
        "from ompy import MPI\nc = MPI.COMM_WORLD\n"
        f"print(len(c.sendrecv(bytes({SIZE}), dest=1 - c.rank, source=1 - c.rank)))"
    )
    try:
        before = lab.sent("h3", "rail1")
        command = (sys.executable, "-c", program)
        code, out, err = lab.run("--host", "h3,h4", *command)
        assert (code, out) == (0, f"{SIZE}\n" * 2), err
        assert lab.sent("h3", "rail1") > before
        before = lab.sent("h3", "rail1")
        code, out, err = lab.run(
            "--host", "h3,h4", "--mca", "btl_tcp_if_include", "rail2", *command
        )
        assert (code, out) == (0, f"{SIZE}\n" * 2), err
        assert lab.sent("h3", "rail1") - before < SIZE / 10
    finally:
        for host in ("h3", "h4"):
            lab("exec", host, "--", "ip", "link", "delete", "docker0")


@pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
def test_a_cable_that_is_out_at_the_start_is_done_without(lab):
    lab("cut", "h3", "rail2")
    try:
        command = (sys.executable, "-c", PROGRAM)
        code, out, err = lab.run(*FOUR, *RAILS, *command)
        assert code == 0, err
        assert len(out.splitlines()) == 8
        only = ("--mca", "btl_tcp_if_include", "rail2")
        code, _, err = lab.run(*FOUR, *only, *command)
        assert code == 1
        assert "names rail2, which is not here or has no cable" in err
        assert "host        h3" in err
    finally:
        lab("heal", "h3", "rail2")


@pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
def test_usnic_between_hosts_over_a_rail_that_loses(lab):
    lab("loss", "h2", "rail1", 2)
    rails = ("--mca", "btl", "self,sm,usnic", "--mca", "btl_usnic_if_include", "rail1,rail2")
    try:
        code, out, err = lab.run(*FOUR, *rails, sys.executable, "-c", PROGRAM)
        assert code == 0, err
        assert len(out.splitlines()) == 8
    finally:
        lab("loss", "h2", "rail1", 0)


def test_a_rail_that_takes_nothing_is_done_without_and_the_table_shows_the_others(lab):
    """It looks like any other at both ends; a connection is tried before it is used."""
    lab("loss", "h2", "rail2", 100)
    program = (
        "from ompy import MPI\nc = MPI.COMM_WORLD\n"
        f"print(len(c.sendrecv(bytes({SIZE}), dest=c.rank ^ 1, source=c.rank ^ 1)))"
    )
    try:
        where = ("--host", "h1,h2", "--display-comm")
        code, out, err = lab.run(*where, *RAILS, sys.executable, "-c", program)
        assert (code, out) == (0, f"{SIZE}\n" * 2), err
        assert "does without rail2 (10.77.2.1 - 10.77.2.2): host h2 does not answer" in err
        rows = [line.split() for line in err.splitlines() if "tcp rail" in line]
        ways = [("h1", "h2", 1, 2), ("h2", "h1", 2, 1)]
        assert rows == [
            [a, b, "tcp", "rail1", f"10.77.1.{m}", "-", f"10.77.1.{n}"] for a, b, m, n in ways
        ]
    finally:
        lab("loss", "h2", "rail2", 0)


@pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
def test_a_rail_that_takes_nothing_is_an_error_that_names_it(lab):
    """No failover here: the message fails in bounded time, and says which rail it was."""
    lab("loss", "h2", "rail2", 100)
    program = (
        "from ompy import MPI\nc = MPI.COMM_WORLD\n"
        "b = bytearray(1000000)\n"
        "c.Send(b, 1) if c.rank == 0 else c.Recv(b, 0)"
    )
    soon = ("--mca", "btl_tcp_handshake_timeout_ms", "500", "--mca", "btl_tcp_connect_tries", "3")
    soon += ("--mca", "btl_tcp_probe_timeout_ms", "0")  # or it would be done without
    try:
        code, _, err = lab.run("--host", "h1,h2", *RAILS, *soon, sys.executable, "-c", program)
        assert code == 1
        assert "MPI_ERR_PROC_FAILED" in err
        assert "from rail2 (10.77.2." in " ".join(err.split())
    finally:
        lab("loss", "h2", "rail2", 0)
