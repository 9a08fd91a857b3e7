"""Large messages in pieces: where each of their numbers comes, and by which protocol."""

from __future__ import annotations

from array import array
from random import Random
from typing import Any

import pytest
from ompy import MPI
from ompy.data.errors import ERR_TRUNCATE
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.errors import MPIException
from ompy.runtime.ranks.process import RankProcess

from tests.sim.ob1.test_split import LEAST as SPLIT_LEAST
from tests.sim.ob1.test_split import moved
from tests.support.effort import effort
from tests.support.worlds import virtual

EAGER = 20_000  # btl_sm_eager_limit: less than all of these messages, but the first
UNTOUCHED = -5
WAYS = {"whole": 1, "every second": 2, "every third": 3}
MODES = ("Send", "Ssend", "Bsend", "Isend", "Issend")


def spread(numbers: list[int], step: int) -> tuple[array[int], list[Any]]:
    """Numbers of 8 bytes in every `step`-th place, and the message that they are."""
    memory = array("q", [UNTOUCHED] * (step * len(numbers)))
    memory[::step] = array("q", numbers)
    kind = MPI.INT64_T.Create_vector(len(numbers), 1, step).Commit()
    return memory, [memory, 1, kind]


def exchange(given: str, taken: str, count: int, mode: str = "Send"):
    """One message from rank 0 to rank 1, in pieces here or there or on both sides."""

    def program(process: RankProcess) -> None:
        process.context.engine.has_core = True
        comm = world_of(process)
        numbers = list(range(count))
        if comm.rank == 0:
            memory, message = spread(numbers, WAYS[given])
            if mode == "Bsend":
                comm.Attach_buffer(bytearray(8 * count + 4096))
            made = getattr(comm, mode)(message, 1, 3)
            if mode.startswith("I"):
                made.Wait()
            memory[:] = array("q", [-1] * len(memory))  # it is the user's again
            if mode == "Bsend":
                comm.Detach_buffer()
            return
        memory, message = spread([0] * count, WAYS[taken])
        status = MPI.Status()
        comm.Recv(message, 0, 3, status)
        assert status.Get_count(MPI.BYTE) == 8 * count
        assert memory[:: WAYS[taken]].tolist() == numbers
        rest = memory.tolist()
        del rest[:: WAYS[taken]]
        assert set(rest) <= {UNTOUCHED}

    return program


@pytest.mark.parametrize("taken", WAYS)
@pytest.mark.parametrize("given", WAYS)
@pytest.mark.parametrize("count", [2000, 8192, 70_000])
def test_every_number_has_its_place(count: int, given: str, taken: str) -> None:
    for seed in range(effort(2)):
        found = moved(exchange(given, taken, count), seed, btl_sm_eager_limit=EAGER)
        names = {name for name, *_ in found}
        if 8 * count < EAGER:
            assert names == set()
        elif given == taken == "whole":
            assert names == ({"READ", "WRITE"} if 8 * count > SPLIT_LEAST else {"READ"})
        else:
            assert names == {"FRAG"}


@pytest.mark.parametrize("mode", MODES)
def test_in_every_mode(mode: str) -> None:
    found = moved(exchange("every third", "every second", 20_000, mode))
    assert {name for name, *_ in found} == {"FRAG"}


@pytest.mark.parametrize(
    "settings",
    [
        {"btl_sm_stream_least": 0},
        {"btl_sm_single_copy_mechanism": "none"},
        {"btl_sm_single_copy_mechanism": "emulated"},
        {"btl_sm_flags": "send,put"},
        {"btl_sm_free_list_max": 1},
        {"btl_sm_max_send_size": 30_000},
    ],
    ids=str,
)
def test_whatever_the_rail_does(settings: dict[str, Any]) -> None:
    found = moved(exchange("every second", "every third", 20_001), **settings)
    assert {name for name, *_ in found} == {"FRAG"}


def test_over_another_rail() -> None:
    virtual(2, exchange("every second", "every third", 20_001), btl="self,tcp")


def test_what_is_too_much_is_cut_off() -> None:
    def program(process: RankProcess) -> None:
        comm = world_of(process)
        if comm.rank == 0:
            comm.Send(spread(list(range(20_000)), 2)[1], 1)
            return
        memory, message = spread([0] * 15_000, 3)
        with pytest.raises(MPIException) as caught:
            comm.Recv(message, 0)
        assert caught.value.Get_error_class() == ERR_TRUNCATE
        assert memory[::3].tolist() == list(range(15_000))

    virtual(2, program, btl="self,sm")


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_many_at_a_time(ranks: int) -> None:
    """Sizes on both sides of the eager limit, waited for in any order."""

    def program(process: RankProcess, seed: int) -> None:
        comm = world_of(process)
        alike, own = Random(seed), Random(f"{seed}, {comm.rank}")
        requests, rooms = [], []
        for tag in range(24):
            count, given, taken = alike.choice((40, 700, 2000)), 1 + tag % 3, 1 + tag % 2
            memory, room = spread([0] * count, taken)
            rooms.append((memory, taken, count, tag))
            requests.append(comm.Irecv(room, (comm.rank - 1) % ranks, tag))
            data = [1000 * comm.rank + tag + place for place in range(count)]
            requests.append(comm.Isend(spread(data, given)[1], (comm.rank + 1) % ranks, tag))
        own.shuffle(requests)
        MPI.Request.Waitall(requests)
        before = (comm.rank - 1) % ranks
        for memory, taken, count, tag in rooms:
            assert memory[::taken].tolist() == [
                1000 * before + tag + place for place in range(count)
            ]
        assert not process.pml.sending.requests
        assert not len(process.pml.rdma)

    for seed in range(effort(3)):
        virtual(
            ranks,
            lambda process, seed=seed: program(process, seed),
            seed=seed,
            btl="self,sm",
            btl_sm_eager_limit=1000,
        )
