"""What is counted, against an independent model and against the other side."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess
from random_programs import Plan
from worlds import monitored, run

from ompy_pml_monitoring.counts import KINDS, Counts

SEEDS = 12  # of each BTL; together they use every way of receiving, in the world and in groups


def pairs(matrix: list[list[int]]) -> Counter[tuple[int, int]]:
    """The cells that are not zero."""
    cells = {(i, j): n for i, row in enumerate(matrix) for j, n in enumerate(row) if n}
    return Counter(cells)


def check(plan: Plan, told: dict[str, Any]) -> None:
    """Both sides counted what the plan says."""
    for kind in KINDS:
        messages, volume = plan.expected(kind)
        for side in ("sent", "received"):
            counted = told[kind][side]
            assert pairs(counted["messages"]) == messages, (kind, side)
            assert +pairs(counted["bytes"]) == +volume, (kind, side)
        assert Counter(told[kind]["sizes"]) == plan.expected_sizes(kind)
    assert told["missing"] == {}


@pytest.mark.parametrize("btl", ["self,sm", "self,tcp"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_programs(tmp_path: Path, seed: int, btl: str) -> None:
    ranks = 2 + seed % 4
    plan = Plan(1000 * len(btl) + seed, ranks)
    check(plan, monitored(tmp_path, ranks, plan.program, seed=seed, btl=btl))


def test_the_model_notices_a_message_that_is_not_counted(tmp_path: Path) -> None:
    plan = Plan(5, 3)
    told = monitored(tmp_path, 3, plan.program)
    check(plan, told)
    plan.messages.append(plan.messages[0])
    with pytest.raises(AssertionError, match="sent"):
        check(plan, told)


def library(process: RankProcess) -> None:
    """The MPI floor, on everything the PML offers it."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    right, left = (rank + 1) % size, (rank - 1) % size
    low = comm.Split(rank % 2, -rank)
    low.allreduce(rank)
    comm.alltoall([bytes(100 * target) for target in range(size)])
    buffer = bytearray(50)
    comm.Sendrecv(bytes(50), right, 3, buffer, left, 3)
    send, receive = comm.Send_init(bytes(20), right, 4), comm.Recv_init(bytearray(20), left, 4)
    for _ in range(3):
        receive.Start()
        send.Start()
        receive.Wait()
        send.Wait()
    comm.Attach_buffer(bytearray(10_000))
    comm.Bsend(bytes(10), right, 5)
    comm.mprobe(left, 5).Recv(bytearray(10)) if rank else comm.Recv(bytearray(10), left, 5)
    comm.Detach_buffer()
    request = comm.isend("an object", right, 6)
    comm.recv(source=left, tag=6)
    request.wait()
    comm.Barrier()
    low.Free()


@pytest.mark.parametrize("ranks", [1, 2, 5])
@pytest.mark.parametrize("btl", ["self,sm", "self,tcp"])
def test_what_is_sent_is_received(tmp_path: Path, ranks: int, btl: str) -> None:
    """The conservation law, for users' messages and for those of collectives."""
    told = monitored(tmp_path, ranks, library, seed=ranks, btl=btl)
    for kind in KINDS:
        assert told[kind]["sent"] == told[kind]["received"]
    messages = [[0] * ranks for _ in range(ranks)]
    for rank in range(ranks):
        messages[rank][(rank + 1) % ranks] += 6  # Sendrecv, 3 persistent, Bsend, isend
    assert told["user"]["sent"]["messages"] == messages
    internal = sum(map(sum, told["internal"]["sent"]["messages"]))
    assert internal >= 2 * (ranks - 1)
    assert sum(told["internal"]["sizes"].values()) == internal


def test_what_is_not_received_is_listed(tmp_path: Path) -> None:
    def program(process: RankProcess) -> None:
        comm = world_of(process)
        if comm.rank == 0:
            comm.Send(bytes(30), 1, 1)
            comm.Send(bytes(12), 1, 2)
        if comm.rank == 1:
            comm.Recv(bytearray(30), 0, 1)

    file = tmp_path / "traffic.txt"
    run(2, program, pml_monitoring_output=file)
    (line,) = [line for line in file.read_text().splitlines() if "not received" in line]
    assert line == "sent and not received: 1 user message(s) of 12 bytes from rank 0 to rank 1"


def test_what_the_pml_refuses_is_not_counted(tmp_path: Path) -> None:
    def program(process: RankProcess) -> None:
        comm = world_of(process)
        if comm.rank == 0:
            with pytest.raises(Exception, match="cannot reach"):
                comm.Send(bytes(30), 1)
        comm.Send(bytes(5), comm.rank)
        comm.Recv(bytearray(5), comm.rank)

    told = monitored(tmp_path, 2, program, btl="self", pml_monitoring_patience=0)
    assert told["user"]["sent"]["messages"][0] == [1, 0]


def test_counts_survive_their_journey() -> None:
    counts = Counts(300)
    counts.note_sent(299, 5, 1 << 40)
    counts.note_sent(0, -3, 0)
    counts.note_received(7, -3, 17)
    arrived = Counts.unpack(counts.pack(), 300)
    for before, after in zip((counts, arrived), (arrived, counts), strict=True):
        for column, same in zip(before._columns(), after._columns(), strict=True):
            assert column == same
    assert arrived.sizes == counts.sizes
    assert arrived.sent[0].bytes[299] == 1 << 40
    assert len(counts.pack()) < 200, "peers without messages take no room"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"format": 99, "peers": [], "sizes": [[], []]}',
        b'{"format": 1, "peers": [[3, 1, 1, 1, 1, 1, 1, 1, 1]], "sizes": [[], []]}',
        b'{"format": 1, "peers": [[0, 1]], "sizes": [[], []]}',
        b'{"format": 1, "peers": [], "sizes": [[[65, 1]], []]}',
        b'{"format": 1, "peers": [], "sizes": []}',
        b'{"format": 1, "peers": [["0", 1, 1, 1, 1, 1, 1, 1, 1]], "sizes": [[], []]}',
        b"\xff\xfe",
    ],
)
def test_a_report_that_cannot_be_read_raises_one_kind_of_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="its counts cannot be read: "):
        Counts.unpack(data, 3)
