"""CREDIT, LEAVE and ABANDON under bfo: lost, late, doubled, refused or told to have failed.

They are control messages of ob1 that bfo sends again as they are. So each has to mean the same when
it comes twice, late, or after one that was said later.
"""

from __future__ import annotations

from typing import Any

import pytest
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.frameworks.pml import STANDARD
from ompy_components.pml.ob1.headers import SEQUENCES

from tests.sim.p2p.programs import buffer, pattern, send, world
from tests.support.failing_rails import KINDS, US, FailingRail, Fault, failing_world

RAILS = [FailingRail(flags=0, sendi=True), FailingRail(flags=0)]
SIZES = [0, 100, 700, 3000, 0, 260, 5000, 1, 900, 40, 2000, 10]
TIGHT = {"message_window": 2, "unexpected_bytes": 900}
INTERNAL = -77  # a tag that ANY_TAG does not take
assert len(SIZES) > 2 * TIGHT["message_window"]


def begin_at(process: Any, first: int) -> Any:
    """The world, its pairs' numbers going on from `first`."""
    comm = world(process)
    for place in range(comm.size):
        queue = process.pml.matching(comm).peer(place)
        queue.sent, queue.expected = (first - 1) % SEQUENCES, first % SEQUENCES
    return comm


@pytest.mark.parametrize("first", [1, SEQUENCES - 3])
@pytest.mark.parametrize("nth", [1, 3])
@pytest.mark.parametrize("what", KINDS)
def test_a_sender_that_waits_for_credit_goes_on(what: str, nth: int, first: int) -> None:
    def sends(process: Any) -> None:
        comm, pml = begin_at(process, first), process.pml
        todo = [
            pml.isend(comm, send(pattern(size, turn)), 1, turn, STANDARD)
            for turn, size in enumerate(SIZES)
        ]
        for request in todo:
            pml.wait(comm, request)

    def receives(process: Any) -> list[bytes]:
        comm, pml = begin_at(process, first), process.pml
        found = []
        for turn, size in enumerate(SIZES):
            room, convertor = buffer(size)
            pml.recv(comm, convertor, 0, turn)
            found.append(bytes(room))
        return found

    fault = Fault(what, "CREDIT", nth)
    job = failing_world([sends, receives], RAILS, [fault], seed=nth, parameters=TIGHT)
    assert job.results[1] == [bytes(pattern(size, turn)) for turn, size in enumerate(SIZES)]
    assert job.net.delivered[what] == 1


@pytest.mark.parametrize("struck", ["LEAVE", "MATCH via sendi", "RNDV"])
@pytest.mark.parametrize("what", KINDS)
def test_what_was_sent_before_leaving_arrives_and_then_nothing_does(what: str, struck: str) -> None:
    def leaves(process: Any) -> None:
        comm, pml = begin_at(process, SEQUENCES - 1), process.pml
        todo = [pml.isend(comm, send(pattern(size, 7)), 1, 5, STANDARD) for size in (10, 3000, 200)]
        for request in todo:
            pml.wait(comm, request)

    def waits(process: Any) -> tuple[list[bytes], int]:
        comm, pml = begin_at(process, SEQUENCES - 1), process.pml
        found = []
        for size in (10, 3000, 200):
            room, convertor = buffer(size)
            pml.recv(comm, convertor, 0, 5)
            found.append(bytes(room))
        begun = process.context.engine.now()
        with pytest.raises(MPIError) as raised:
            pml.recv(comm, buffer(10)[1], 0, 5)
        assert raised.value.code == ERR_PROC_FAILED
        return found, process.context.engine.now() - begun

    parameters = {"leave_patience_ms": 5000}
    job = failing_world([leaves, waits], RAILS, [Fault(what, struck)], parameters=parameters)
    found, took = job.results[1]
    assert found == [bytes(pattern(size, 7)) for size in (10, 3000, 200)]
    assert took < 5_000_000_000, "LEAVE is here: nobody has to be patient"
    assert job.net.delivered[what] == 1


@pytest.mark.parametrize("struck", ["LEAVE", "MATCH", "RNDV"])
@pytest.mark.parametrize("what", KINDS)
def test_who_waits_for_an_abandoned_call_is_told_behind_its_messages(
    what: str, struck: str
) -> None:
    """The ABANDON may overtake messages that the dead rail has lost: these arrive first."""

    def gives_up(process: Any) -> None:
        comm, pml = begin_at(process, SEQUENCES - 1), process.pml
        todo = [
            pml.isend(comm, send(pattern(size, 3)), 1, INTERNAL, STANDARD) for size in (10, 3000)
        ]
        todo.append(pml.isend(comm, send(pattern(20, 4)), 1, 6, STANDARD))
        pml.abandon(comm, INTERNAL)
        for request in todo:
            pml.wait(comm, request)
        pml.recv(comm, buffer(4)[1], 1, 9)

    def waits(process: Any) -> list[bytes]:
        comm, pml = begin_at(process, SEQUENCES - 1), process.pml
        found = []
        for size in (10, 3000):
            room, convertor = buffer(size)
            pml.recv(comm, convertor, 0, INTERNAL)
            found.append(bytes(room))
        with pytest.raises(MPIError) as raised:
            pml.recv(comm, buffer(10)[1], 0, INTERNAL)
        assert raised.value.code == ERR_PROC_FAILED
        room, convertor = buffer(20)
        pml.recv(comm, convertor, 0, 6)  # users' messages are not touched
        pml.send(comm, send(pattern(4, 1)), 0, 9, STANDARD)
        return [*found, bytes(room)]

    # without sendi a MATCH has a request, and ABANDON is the first LEAVE that rank 0 says
    rails = [FailingRail(flags=0)] * 2
    job = failing_world([gives_up, waits], rails, [Fault(what, struck)])
    assert job.results[1] == [
        bytes(pattern(10, 3)),
        bytes(pattern(3000, 3)),
        bytes(pattern(20, 4)),
    ]
    assert job.net.delivered[what] == 1


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("notice", [0, 20, 200])
@pytest.mark.parametrize("what", KINDS)
def test_a_message_that_is_begun_anew_to_a_rank_that_leaves_fails_at_once(
    what: str, notice: int, nth: int
) -> None:
    """Its LEAVE may name the message's first request, which is not what it is called now."""

    def sends(process: Any) -> int:
        comm, pml = begin_at(process, 1), process.pml
        begun = process.context.engine.now()
        todo = [pml.isend(comm, send(pattern(3000, 1)), 1, 5, STANDARD) for _ in range(2)]
        for request in todo:
            with pytest.raises(MPIError) as raised:
                pml.wait(comm, request)
            assert raised.value.code == ERR_PROC_FAILED
        return process.context.engine.now() - begun

    def leaves(process: Any) -> None:
        comm, pml = begin_at(process, 1), process.pml
        while pml.iprobe(comm, 0, 5) is None:
            process.context.engine.spend(1000)
        pml.send(comm, send(pattern(4, 1)), 0, 9, STANDARD)  # so a LEAVE is said

    rails = [FailingRail(flags=0, notice=notice * US)] * 2
    parameters = {"leave_patience_ms": 5000}
    fault = Fault(what, "RNDV", nth)
    job = failing_world([sends, leaves], rails, [fault], parameters=parameters)
    assert job.results[0] < 1_000_000_000
    assert job.net.delivered[what] == 1
