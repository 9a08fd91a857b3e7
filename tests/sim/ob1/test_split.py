"""A message that both ranks copy, half each: who does what, and when it is left to one of them."""

from __future__ import annotations

import pytest
from ompy.frameworks.pml import STANDARD
from ompy.runtime.ranks.process import RankProcess

from tests.sim.p2p.programs import buffer, pattern, send, world
from tests.support.effort import effort
from tests.support.worlds import virtual

SIZE = 1_000_003
UPPER = SIZE // 2 // 4096 * 4096  # whole pages
LEAST = 256 * 1024  # btl_sm_split_least


def message(size: int = SIZE, *, blocking: bool = True, has_core: bool = True):
    """One message from rank 0 to rank 1, the sender waiting or not."""

    def program(process: RankProcess) -> None:
        comm, pml = world(process), process.pml
        process.context.engine.has_core = has_core
        if comm.rank == 1:
            memory, room = buffer(size)
            got = pml.recv(comm, room, 0, 5)
            assert bytes(memory) == pattern(size, 3)
            assert (got.length, got.received) == (size, size)
        elif blocking:
            pml.send(comm, send(pattern(size, 3)), 1, 5, STANDARD)
        else:
            pml.wait(comm, pml.isend(comm, send(pattern(size, 3)), 1, 5, STANDARD))

    return program


def moved(program, seed: int = 0, **settings: object) -> list[tuple[str, int, int]]:
    """Who moved which bytes: event, offset and size, 0 for what a FRAG has."""
    job = virtual(2, program, seed=seed, trace=True, btl="self,sm", **settings)
    found = []
    for event in job.events():
        if event.layer == "pml.ob1" and event.name in ("READ", "WRITE", "FRAG"):
            fields = dict(event.fields)
            found.append((event.name, fields["offset"], fields.get("size", 0)))
    return sorted(found)


@pytest.mark.parametrize("seed", range(effort(2)))
def test_the_sender_puts_the_upper_half(seed: int) -> None:
    expected = [("READ", 0, SIZE - UPPER), ("WRITE", SIZE - UPPER, UPPER)]
    assert moved(message(), seed) == expected


@pytest.mark.parametrize(
    ("program", "settings"),
    [
        (message(blocking=False), {}),
        (message(has_core=False), {}),
        (message(), {"btl_sm_split_least": 0}),
        (message(), {"btl_sm_split_least": SIZE + 1}),
        (message(), {"btl_sm_flags": "send,get"}),
        (message(), {"btl_sm_put_alignment": 8}),
        (message(), {"btl_sm_put_limit": 1000}),
        (message(), {"btl_sm_single_copy_mechanism": "emulated"}),
    ],
    ids=["not waiting", "no core", "never", "too small", "no put", "aligned", "limited", "no copy"],
)
def test_one_rank_moves_all(program, settings) -> None:
    assert moved(program, **settings) == [("READ", 0, SIZE)]


def test_without_put_and_get_a_large_message_is_sent() -> None:
    found = moved(message(), btl_sm_single_copy_mechanism="none")
    assert {name for name, *_ in found} == {"FRAG"}


def test_from_the_least_size_on() -> None:
    assert len(moved(message(LEAST - 1))) == 1
    assert len(moved(message(LEAST))) == 2


def test_a_put_that_cannot_be_done_comes_as_fragments() -> None:
    """The sender's own limit is lower than the receiver knows."""

    def program(process: RankProcess) -> None:
        if process.context.rank == 0:
            process.context.btls[-1].put_limit = 10
        message()(process)

    first, *others = sorted(moved(program), reverse=True)
    assert first == ("READ", 0, SIZE - UPPER)
    assert others
    assert {name for name, *_ in others} == {"FRAG"}
    assert min(offset for _, offset, _ in others) == SIZE - UPPER
