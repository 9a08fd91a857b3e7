"""`ompy-run --fault` with real processes: what strikes, what is said, how the job ends."""

import re

import pytest
from ompy.runtime.faults.fault_report import NEVER_FIRED

pytestmark = pytest.mark.proc

TRAFFIC = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
data = bytes(range(256)) * 400
for i in range(10):
    assert comm.allreduce(i) == i * comm.size
    if comm.rank == 0:
        comm.Send(data, dest=1)
    else:
        room = bytearray(len(data))
        comm.Recv(room, source=0)
        assert room == data
"""


def counts(result):
    """Deliveries as reported, by rule."""
    found = re.findall(r"^ompy-run: +(\d+)  (\S+)", result.err, re.MULTILINE)
    return {text: int(count) for count, text in found}


def test_a_lossy_network_is_hidden(launch):
    drop, late = "drop:probability=0.05,seed=1", "reorder:probability=0.05,seed=2,rank=0,peer=1"
    cut = "drop:message=3,byte=50000,rank=0"
    arguments = ["--mca", "btl", "self,usnic", "--fault", f"{drop};{late}", "--fault", cut]
    result = launch.python(2, TRAFFIC, *arguments, "--fault-strict")
    assert result.code == 0, result
    found = counts(result)
    assert set(found) == {drop, late, cut}
    assert found[drop] > 1
    assert found[cut] == 1


def test_connections_and_strictness(launch):
    late, never = "drop:nth=2,peer=1", "duplicate:probability=1"
    arguments = ["--mca", "btl", "self,tcp", "--fault", f"{late};{never}"]
    result = launch.python(2, TRAFFIC, *arguments)
    assert result.code == 0, result
    assert counts(result) == {late: 1, never: 0}
    result = launch.python(2, TRAFFIC, *arguments, "--fault-strict", "-q")
    assert result.code == NEVER_FIRED
    assert "NEVER FIRED" in result.err
    assert "1 fault(s) never fired" in result.err


def test_a_link_that_goes_down_is_told_of(launch):
    rule = "link_down:rank=0,message=5,byte=3000"
    result = launch.python(2, TRAFFIC, "--mca", "btl", "self,tcp", "--fault", rule)
    assert result.code == 1
    assert "MPI_ERR_PROC_FAILED" in result.err
    assert counts(result)[rule] >= 1


def test_memory_is_no_wire(launch):
    result = launch.python(2, TRAFFIC, "--fault", "drop:probability=1")
    assert result.code == 0
    assert "where there is no wire for a fault to strike" in result.err
    assert counts(result) == {"drop:probability=1": 0}
    result = launch("-n", 2, "--fault-strict", "true")
    assert result.code == 2
    assert "there is no --fault" in result.err


def test_mistakes_start_nothing(launch, tmp_path):
    script = tmp_path / "bad.toml"
    script.write_text("[[fault]]\nwhat = 'drop'\nprobabilty = 0.1\n")
    result = launch("-n", 2, "--fault", script, "true")
    assert result.code == 2
    assert f"{script}:3: there is no key probabilty; did you mean probability?" in result.err


HALF_WAY = """
import time
from mpi4py import MPI
comm = MPI.COMM_WORLD
room = bytearray(10_000_000)  # takes longer than the first looks at it
if comm.rank == 0:
    comm.Send(room, dest=1)
else:
    request = comm.Irecv(room, source=0)
    until = time.monotonic() + 0.02
    while time.monotonic() < until:
        assert not request.Test()
    time.sleep(1.5)
    request.Wait()
"""


def test_a_rank_that_sleeps_in_mid_transfer_is_no_dead_rail(launch):
    """The agent is asked, and answers; nothing else happens."""
    arguments = ["--mca", "btl", "self,usnic", "--mca", "btl_base_probe_patience_ms", "350"]
    result = launch.python(2, HALF_WAY, *arguments, "--mca", "btl_usnic_stats", "100")
    assert result.code == 0, result
    assert sum(int(found) for found in re.findall(r"(\d+) doubts", result.err)) > 0, result


def test_a_silent_rail_is_dead_for_the_agents_too(launch):
    """On one host there is one agent, which loses what the script's black hole would."""
    rule = "black_hole:rank=0,message=1,byte=500000"
    arguments = ["--mca", "btl", "self,usnic", "--fault", rule, "--fault-strict"]
    result = launch.python(2, HALF_WAY, *arguments)
    assert result.code == 1
    assert "MPI_ERR_PROC_FAILED" in result.err
    assert "reach each other in 126 attempts" in " ".join(result.err.split())
    assert counts(result)[rule] >= 1
