"""Eager messages of sm that do not fit a slot of the ring lie in blocks, which are used again."""

from __future__ import annotations

from functools import partial

import pytest
from ompy.frameworks.btl import (
    BTL_OWNERSHIP,
    NO_ORDER,
    SEND_ALWAYS_CALLBACK,
    BtlModule,
    CompletionCallback,
    Descriptor,
    Endpoint,
    ReceiveCallback,
)
from ompy.frameworks.pml import STANDARD
from ompy.runtime.ranks.process import RankProcess

from tests.sim.p2p.programs import buffer, pattern, send, world
from tests.support.effort import effort
from tests.support.worlds import virtual

SIZES = (4000, 4056, 4057, 5000, 65_535, 65_536)  # around the slot's room; up to the eager limit
TAG = 200  # nobody else's
FLAGS = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK


def module_of(process: RankProcess):
    return next(module for module in process.context.btls if module.name == "sm")


def stream(process: RankProcess, *, sizes: tuple[int, ...], rounds: int) -> tuple[int, int]:
    """Rank 0 sends to all others, who check; blocks it has and had, and messages in blocks."""
    comm, pml = world(process), process.pml
    if comm.rank:
        for each in range(rounds):
            for size in sizes:
                memory, room = buffer(size)
                pml.wait(comm, pml.irecv(comm, room, 0, 1))
                assert memory == pattern(size, size + each), f"{size} bytes, round {each}"
        return 0, 0
    in_blocks = 0
    for each in range(rounds):
        for size in sizes:
            for target in range(1, comm.size):
                data = pattern(size, size + each)
                done = pml.isend(comm, send(data), target, 1, STANDARD)
                in_blocks += done.complete and size > 4080
                pml.wait(comm, done)
    return len(module_of(process)._pool._free) + len(module_of(process)._pool._unread), in_blocks


@pytest.mark.parametrize("blocks", [1, 2, 16])
@pytest.mark.parametrize("seed", range(effort(3)))
def test_all_arrive_whatever_there_is_of_blocks(blocks: int, seed: int) -> None:
    program = partial(stream, sizes=SIZES, rounds=10)
    job = virtual(3, program, seed=seed, btl="self,sm", btl_sm_free_list_max=blocks)
    kept, in_blocks = job.results[0]
    assert kept == blocks, "a block was lost, or is there twice"
    assert in_blocks >= blocks, "the others waited for room"


@pytest.mark.parametrize("seed", range(effort(3)))
def test_a_block_that_was_read_is_the_next_to_be_used(seed: int) -> None:
    """Ping-pong stays in one block, so that it stays in the cache."""
    places: set[int] = set()

    def program(process: RankProcess) -> None:
        comm, pml = world(process), process.pml
        for each in range(20):
            memory, room = buffer(30_000)
            receive = pml.irecv(comm, room, 1 - comm.rank, 1)
            if comm.rank == 0:
                pml.send(comm, send(pattern(30_000, each)), 1, 1, STANDARD)
                places.update(one.block for one in module_of(process)._pool._unread)
            pml.wait(comm, receive)
            if comm.rank:
                pml.send(comm, send(bytes(memory)), 0, 1, STANDARD)
            else:
                assert memory == pattern(30_000, each)

    virtual(2, program, seed=seed, btl="self,sm")
    assert len(places) == 1


def test_blocks_of_a_rank_that_has_ended_come_back() -> None:
    def program(process: RankProcess) -> int:
        comm, pml = world(process), process.pml
        if comm.rank == 1:
            return 0
        for _ in range(4):
            pml.isend(comm, send(bytes(9000)), 1, 1, STANDARD)
        process.context.engine.wait_until(lambda: bool(process.context.procs[1].departed))
        module = module_of(process)
        assert len(module._pool._unread) == 4
        _, room = buffer(9000)
        receive = pml.irecv(comm, room, 2, 1) if comm.rank == 0 else None
        if receive is not None:
            pml.send(comm, send(bytes(9000)), 2, 1, STANDARD)
            pml.wait(comm, receive)
        return len(module._pool._unread)

    def both(process: RankProcess) -> int:
        comm, pml = world(process), process.pml
        if comm.rank == 2:
            _, room = buffer(9000)
            pml.wait(comm, pml.irecv(comm, room, 0, 1))
            pml.send(comm, send(bytes(9000)), 0, 1, STANDARD)
            return 0
        return program(process)

    job = virtual(3, both, btl="self,sm", btl_sm_free_list_max=4)
    assert job.results[0] == 1, "only the message to the rank that lives is still in a block"


class Sender(CompletionCallback):
    """Sends the next fragment when one is complete."""

    def __init__(self, endpoint: Endpoint, left: list[bytes]) -> None:
        self.endpoint, self.left = endpoint, left

    def send(self, module: BtlModule) -> None:
        made = module.alloc(self.endpoint, NO_ORDER, len(self.left[0]), FLAGS)
        assert made is not None
        made.segment[:] = self.left.pop(0)
        made.callback = self
        module.send(self.endpoint, made, TAG)

    def completed(
        self, module: BtlModule, endpoint: Endpoint, descriptor: Descriptor, status: int
    ) -> None:
        if self.left:
            self.send(module)


class Inbox(ReceiveCallback):
    """Keeps what has come."""

    def __init__(self) -> None:
        self.came: list[bytes] = []

    def received(self, module: BtlModule, endpoint: Endpoint, tag: int, data: memoryview) -> None:
        self.came.append(bytes(data))


def test_a_block_that_is_complete_at_the_end_is_not_used_again_unread() -> None:
    """A completion within `finalize` may send: the peer has not read the fragment before."""
    every = [pattern(SIZES[-2], number) for number in range(3)]

    def program(process: RankProcess) -> None:
        inbox, module, comm = Inbox(), module_of(process), world(process)
        process.context.active_messages.register(TAG, inbox)
        for target in (1, 0):  # both have come
            message, (_, room) = send(b"1"), buffer(1)
            if comm.rank == target:
                process.pml.wait(comm, process.pml.irecv(comm, room, 1 - target, 1))
            else:
                process.pml.wait(comm, process.pml.isend(comm, message, target, 1, STANDARD))
        if comm.rank == 0:
            endpoint = module.reach(process.context.procs[1])
            Sender(endpoint, list(every)).send(module)
            module.finalize()
        else:
            process.context.engine.wait_until(lambda: len(inbox.came) == len(every))
            assert inbox.came == every

    virtual(2, program, btl="self,sm")
