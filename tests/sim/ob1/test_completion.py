"""When requests are complete, and what goes on with a completion: not a moment before it.

These rails keep every completion of either rank back, until the sender's program lets them go, one
after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from ompy.data.buffered import BufferedConvertor
from ompy.data.convertor import ContiguousConvertor
from ompy.data.errors import ERR_INTERN, MPIError
from ompy.frameworks.btl import GET, PUT
from ompy.frameworks.pml import BUFFERED, STANDARD, SYNCHRONOUS
from ompy_components.pml.ob1.states import SendState

from tests.sim.ob1.programs import one_message, pieces
from tests.sim.p2p.programs import buffer, pattern, send, world
from tests.support.btl_journal import HEADERS, ImmediateJournalModule, btl_words, header
from tests.support.rdma_btl import RdmaModule, RdmaRail, rdma_world
from tests.support.worlds import virtual

MS = 1_000_000
Moment = tuple[int, bool, bool]  # completions kept back, the send is complete, the receive is


def moments(
    size: int, rails: Sequence[RdmaRail], gather: bool, *, latest: bool = False, **settings: object
) -> list[Moment]:
    """How a message stands when nothing goes on: at first, and after each completion.

    They go in the order they came, or the latest that is kept back first.
    """
    kept: list[tuple[RdmaModule, Any]] = []
    holding = [True]
    received: list[bool] = []
    found: list[Moment] = []

    class Keeping(RdmaModule):
        """A rail that tells of completions when it is allowed to."""

        __slots__ = ()

        def _schedule(self, endpoint: Any, size: int, there: Any, arrive: Any, done: Any) -> None:
            def over() -> None:
                if holding[0]:
                    kept.append((self, done))
                else:
                    done()

            super()._schedule(endpoint, size, there, arrive, over)

    def program(process: Any) -> None:
        comm, pml = world(process), process.pml
        if comm.rank:
            memory, room = buffer(size)
            pml.recv(comm, room, 0, 5)
            received.append(bytes(memory) == pattern(size, 1))
            while holding[0]:  # what it says as it ends is kept back, too
                process.context.engine.wait_until(lambda: False, MS)
            return
        data = pattern(size, 1)
        request = pml.isend(comm, pieces(data) if gather else send(data), 1, 5, STANDARD)
        while True:
            process.context.engine.wait_until(lambda: False, MS)
            found.append((len(kept), request.complete, received == [True]))
            if not kept:
                break
            module, done = kept.pop(-1 if latest else 0)
            module.events.append(done)
            module.context.engine.wake()
        holding[0] = False

    rdma_world(2, program, rails, module=Keeping, **settings)
    return found


EAGER = [(1, False, True), (0, True, True)]
CASES: dict[str, tuple[int, list[RdmaRail], bool, list[Moment]]] = {
    "Eager Send (Prepared)": (900, [RdmaRail()], False, EAGER),
    "Eager Send (Allocated)": (900, [RdmaRail(inplace=False)], False, EAGER),
    # RNDV, ACK and two FRAGs: with the RNDV three are under way. There are four FRAGs
    "Send/Receive Pipeline": (
        8000,
        [RdmaRail(flags=0)],
        True,
        [
            (4, False, False),
            (4, False, False),  # RNDV: the third FRAG goes
            (3, False, False),  # ACK
            (3, False, True),  # FRAG: the fourth, and last
            (2, False, True),
            (1, False, True),
            (0, True, True),
        ],
    ),
    # RNDV, two PUTs, two puts. Each put ends with its FIN, and both with the message
    "RDMA Direct Put": (
        12_000,
        [RdmaRail(flags=PUT)] * 2,
        False,
        [
            (5, False, False),
            (4, False, False),
            (3, False, False),
            (2, False, False),
            (2, False, False),  # the first put: its FIN
            (2, True, True),  # the second
            (1, True, True),
            (0, True, True),
        ],
    ),
    "RDMA Direct Get": (
        12_000,
        [RdmaRail(flags=GET)] * 2,
        False,
        [
            (3, False, False),
            (2, False, False),  # RGET
            (2, False, False),  # the first get: its FIN
            (2, True, True),  # the second
            (1, True, True),
            (0, True, True),
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_nothing_goes_on_before_its_completion(name: str) -> None:
    size, rails, gather, expected = CASES[name]
    assert moments(size, rails, gather) == expected


@pytest.mark.parametrize("flags", [PUT, GET])
def test_a_send_waits_for_its_first_fragment(flags: int) -> None:
    """Though all of the message was put or got before the RNDV or RGET is complete."""
    *before, end = moments(12_000, [RdmaRail(flags=flags)] * 2, False, latest=True)
    assert any(received for _, _, received in before)
    assert not any(sent for _, sent, _ in before)
    assert end == (0, True, True)


@pytest.mark.parametrize("depth", [1, 2])
def test_a_pipeline_that_the_first_fragment_fills_goes_on(depth: int) -> None:
    """The ACK is here before the RNDV is complete: its completion has the first FRAGs go."""
    found = moments(8000, [RdmaRail(flags=0)], True, pml_ob1_send_pipeline_depth=depth)
    assert found[0] == (1 + depth, False, False)  # the ACK, and no more than may be under way
    assert found[-1] == (0, True, True)
    assert len(found) == 1 + len(["RNDV", "ACK"]) + len(["FRAG"] * 4)


def test_an_immediate_send_is_complete_when_it_returns() -> None:
    """With a trace and without: that is another way through the code, by the same call."""
    asked: dict[bool, list[tuple[str, str, int]]] = {True: [], False: []}

    class Noting(ImmediateJournalModule):
        """Writes down what it is asked, traced or not."""

        __slots__ = ()

        def sendi(self, *arguments: Any) -> Any:
            _, _, head, size, _, flags, tag = arguments
            about = btl_words(flags), header(tag, bytes(head)), size
            asked[self.context.trace.active].append(about)
            return super().sendi(*arguments)

    def program(process: Any) -> None:
        comm, pml = world(process), process.pml
        if comm.rank == 0:
            assert pml.isend(comm, send(pattern(100, 1)), 1, 5, STANDARD).complete
        else:
            one_message(100)(process)

    for trace in (True, False):
        rdma_world(2, program, module=Noting, trace=trace)
    assert (
        asked[False]
        == asked[True]
        == [("PRIORITY | BTL_OWNERSHIP", "tag = MATCH, pml_flags = 0", 100)]
    )


@pytest.mark.parametrize("posted", [True, False])
def test_a_small_synchronous_send_is_complete_when_its_receive_has_begun(posted: bool) -> None:
    """It goes in one call and is answered in one, whether its receive was posted or not."""
    asked: list[str] = []

    class Noting(ImmediateJournalModule):
        """Writes down what it is asked to send at once but what ranks say as they leave."""

        __slots__ = ()

        def sendi(self, *arguments: Any) -> Any:
            _, _, head, size, _, _, tag = arguments
            if tag in HEADERS:
                asked.append(f"{header(tag, bytes(head))}, {size} bytes")
            return super().sendi(*arguments)

    def program(process: Any) -> None:
        comm, pml, engine = world(process), process.pml, process.context.engine
        if comm.rank == 0:
            if posted:
                engine.wait_until(lambda: False, MS)
            request = pml.isend(comm, send(pattern(100, 1)), 1, 5, SYNCHRONOUS)
            assert not request.complete
            if not posted:
                engine.wait_until(lambda: False, MS)
                assert not request.complete, "nobody has asked for it"
                pml.wait(comm, pml.isend(comm, send(b""), 1, 6, STANDARD))
            pml.wait(comm, request)
            assert not pml.sending.requests
            return
        if not posted:
            pml.recv(comm, buffer(0)[1], 0, 6)
        memory, room = buffer(100)
        done = pml.recv(comm, room, 0, 5)
        assert (bytes(memory), done.source, done.tag, done.length) == (pattern(100, 1), 0, 5, 100)

    rdma_world(2, program, module=Noting, trace=False)
    assert [line for line in asked if "MATCH" not in line] == [
        "tag = RNDV, pml_flags = ACK | SIGNAL, length = 100, 100 bytes",
        "tag = ACK, pml_flags = NORDMA, offset = 100, size = 0, 0 bytes",
    ]


def test_a_buffered_message_is_kept_but_for_its_first_fragment() -> None:
    """At once, when nobody has received anything: the user's memory is free again."""
    lent: list[int] = []

    def lend(count: int) -> memoryview:
        lent.append(count)
        return memoryview(bytearray(count))

    def program(process: Any) -> None:
        comm, pml = world(process), process.pml
        if comm.rank:
            one_message(8000)(process)
            return
        data = bytearray(pattern(8000, 1))
        convertor = BufferedConvertor(ContiguousConvertor(memoryview(data)), lend)
        request = pml.isend(comm, convertor, 1, 5, BUFFERED)
        assert lent == [8000 - 512]
        data[:] = bytes(8000)
        pml.wait(comm, request)

    rdma_world(2, program)


@pytest.mark.parametrize("excess", [1, 4096])
def test_more_bytes_than_a_message_has_are_an_error_with_its_story(excess: int) -> None:
    """A piece that is counted twice would complete a message that lacks another."""
    size = 1 << 20

    def sender(process: Any) -> None:
        pml, engine = process.pml, process.context.engine
        request = pml.isend(world(process), send(pattern(size, 1)), 1, 5, STANDARD)
        engine.wait_until(lambda: request.state is SendState.STREAMING)
        before = request.delivered, request.in_flight
        request.delivered, request.in_flight = size + excess, 0
        with pytest.raises(
            MPIError, match=f"{size + excess} bytes were delivered: send 1"
        ) as caught:
            pml.sending.finish_if_delivered(request)
        assert caught.value.code == ERR_INTERN
        request.delivered, request.in_flight = before
        engine.wait_until(lambda: request.complete)

    def receiver(process: Any) -> None:
        pml, engine = process.pml, process.context.engine
        memory, room = buffer(size)
        request = pml.irecv(world(process), room, 0, 5)
        engine.wait_until(lambda: bool(pml.receiving.requests))
        before, request.arrived = request.arrived, size + excess
        with pytest.raises(MPIError, match=f"{size + excess} bytes of {size} arrived") as caught:
            pml.receiving.finish_if_here(request)
        assert caught.value.code == ERR_INTERN
        request.arrived = before
        engine.wait_until(lambda: request.complete)
        assert bytes(memory) == pattern(size, 1)

    def program(process: Any) -> None:
        (sender, receiver)[process.context.rank](process)

    virtual(2, program, pml="ob1", btl="self,tcp", btl_tcp_flags="send")
