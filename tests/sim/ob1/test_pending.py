"""Thousands of messages to ranks that take none: what trying again costs."""

from __future__ import annotations

from collections.abc import Callable

from ompy.frameworks.pml import STANDARD
from ompy.runtime.ranks.process import RankProcess
from ompy_components.pml.ob1.pending import PendingQueue

from tests.sim.p2p.programs import buffer, pattern, send, world
from tests.support.worlds import virtual

MESSAGES = 1500
ROUNDS = 40


class CountingQueue(PendingQueue):
    """Counts how often messages are tried again."""

    tries = 0

    def start(self, attempt: Callable[[], bool], room_on: object) -> None:
        def counted() -> bool:
            self.tries += 1
            return attempt()

        super().start(counted, room_on)


def flood(process: RankProcess) -> tuple[int, int, int]:
    """Rank 0 sends to all and polls; nobody else runs until it waits.

    Returns:
        Of rank 0: messages that waited, tries, and messages that went out meanwhile.
    """
    comm, pml = world(process), process.pml
    if comm.rank:
        for number in range(MESSAGES):
            memory, room = buffer(8)
            pml.recv(comm, room, 0, 0)
            assert bytes(memory) == pattern(8, number % 100), f"message {number}"
        return 0, 0, 0
    queue = pml.pending = CountingQueue(process.context.engine, process.context.trace)
    requests = [
        pml.isend(comm, send(pattern(8, number % 100)), peer, 0, STANDARD)
        for number in range(MESSAGES)
        for peer in range(1, comm.size)
    ]
    waiting, queue.tries = len(queue), 0
    for _ in range(ROUNDS):
        process.context.engine.progress()
    tries, went = queue.tries, waiting - len(queue)
    for request in requests:
        pml.wait(comm, request)
    return waiting, tries, went


def test_a_round_costs_a_try_a_peer() -> None:
    waiting, tries, went = virtual(3, flood, btl="self,sm", btl_sm_ring_slots=32).results[0]
    assert waiting > 2 * (MESSAGES - 100), "the rings have room for a few only"
    assert ROUNDS <= tries <= went + 2 * ROUNDS
