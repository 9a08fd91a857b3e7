"""What acknowledging costs: frames of a ping-pong, who waits, what a link that is down does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from ompy.conformance.btl.driver import TAGS, Driver
from ompy.frameworks.btl import (
    BTL_OWNERSHIP,
    COMPLETED,
    NO_ORDER,
    QUEUED,
    RETURNABLE,
    UNHURRIED,
    BtlModule,
    ErrorCallback,
)
from ompy.frameworks.pml import STANDARD
from ompy.frameworks.proc import Proc
from ompy.net.base import Stream
from ompy.net.faults.scripted_sockets import ScriptedStream
from ompy.net.virtual.virtual_network import Rail, VirtualStream
from ompy.runtime.simulation.virtual_job import VirtualJob
from ompy_components.btl.tcp.framing import ASKS, FRAME, FRAME_SIZE, JOIN_MAX
from ompy_components.btl.tcp.link import Link

from tests.sim.p2p import programs
from tests.support.worlds import registry

from .test_failover import SECOND, endpoint, module, scripted

TURNS, WARM = 20, 3


def frames(monkeypatch: pytest.MonkeyPatch, pml: str, size: int) -> int:
    """Pieces of which streams took something while two ranks played ping-pong."""
    sent = [0]
    begun: dict[int, int] = {}
    take = VirtualStream.send

    def counting(stream: VirtualStream, pieces: Sequence[memoryview]) -> int:
        taken = take(stream, pieces)
        sent[0] += taken > 0
        return taken

    def player(process: Any) -> int:
        comm, layer = programs.world(process), process.pml
        other = 1 - comm.rank
        for turn in range(TURNS + WARM):
            if turn == WARM and comm.rank == 0:
                begun[0] = sent[0]
            data = programs.pattern(size, turn)
            for mine in (comm.rank == 0, comm.rank == 1):
                if mine:
                    message = programs.send(data)
                    layer.wait(comm, layer.isend(comm, message, other, 7, STANDARD))
                else:
                    memory, room = programs.buffer(size)
                    layer.wait(comm, layer.irecv(comm, room, other, 7))
                    assert bytes(memory) == data
        return sent[0] - begun.get(0, 0)

    with monkeypatch.context() as patch:
        patch.setattr(VirtualStream, "send", counting)
        wire = Rail("only", window=1 << 24)
        settings = registry(pml=pml, btl="self,tcp", btl_base_seal="none")  # which adds none
        job = VirtualJob(2, settings, rails=(wire,), hosts=[0, 1])
        found: int = job.run(player)[0]
    return found


# of a larger message this world tells less: its ranks sleep whenever they wait, and say all before
@pytest.mark.parametrize("size", [8, 1024, 20_000])
def test_a_ping_pong_has_as_many_frames_as_without(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    plain, acknowledged = frames(monkeypatch, "ob1", size), frames(monkeypatch, "bfo", size)
    assert plain >= 2 * TURNS
    # ranks end one turn apart, so that a few belong to the last message or to BYE
    assert abs(acknowledged - plain) <= 4


class Back(ErrorCallback):
    """What one module returned, in order."""

    def __init__(self) -> None:
        self.told = 0
        self.returned_bytes: list[bytes] = []

    def failed(self, module: BtlModule, flags: int, proc: Proc | None, reason: str) -> None:
        self.told += 1

    def returned(self, module: BtlModule, proc: Proc, tag: int, fragment: memoryview) -> None:
        assert self.told, "returned before the error"
        self.returned_bytes.append(bytes(fragment))


@pytest.mark.parametrize("flags", [BTL_OWNERSHIP, BTL_OWNERSHIP | RETURNABLE])
@pytest.mark.parametrize("size", [300, JOIN_MAX])
def test_a_small_fragment_that_may_be_returned_waits_for_nobody(flags: int, size: int) -> None:
    """It is complete at once, and comes back when the path breaks before the peer has it."""
    early = bool(flags & RETURNABLE) and size < JOIN_MAX
    back = Back()

    def program(driver: Driver) -> None:
        driver.send(1 - driver.rank, driver.data(100))
        driver.quiesce()
        if driver.rank == 1:
            driver.compute(SECOND)
            driver.idle(SECOND)
            return
        own, there = module(driver), endpoint(driver)
        own.register_error(back)
        data = [bytes([number + 1]) * size for number in range(3)]
        for one in data:
            descriptor = own.alloc(there, NO_ORDER, size, flags)
            assert descriptor is not None
            descriptor.segment[:] = one
            assert own.send(there, descriptor, TAGS[0]) == (COMPLETED if early else QUEUED)
        there.lose("the cable was pulled")
        assert back.returned_bytes == (data if early else [])
        driver.idle(2 * SECOND)

    scripted().run(program)
    assert back.told


@pytest.mark.parametrize("unhurried", [False, True])
def test_an_unhurried_fragment_asks_for_nothing(
    monkeypatch: pytest.MonkeyPatch, unhurried: bool
) -> None:
    """It is acknowledged all the same, when the time of those that nobody asked for has come."""
    size, asked = JOIN_MAX, list[bool]()
    take = ScriptedStream.send

    def looking(stream: ScriptedStream, pieces: Sequence[memoryview]) -> int:
        if len(pieces[0]) >= FRAME_SIZE:  # not the rest of a frame that went in part
            _, _, counted, length = FRAME.unpack(pieces[0][:FRAME_SIZE])
            if length == size:
                asked.append(counted & ASKS != 0)
        return take(stream, pieces)

    monkeypatch.setattr(ScriptedStream, "send", looking)

    def program(driver: Driver) -> None:
        driver.send(1 - driver.rank, driver.data(100))
        driver.quiesce()
        if driver.rank == 0:
            own, there = module(driver), endpoint(driver)
            flags = BTL_OWNERSHIP | (UNHURRIED if unhurried else 0)
            descriptor = own.alloc(there, NO_ORDER, size, flags)
            assert descriptor is not None
            descriptor.segment[:] = bytes(size)
            descriptor.payload_size = size - 14
            before = there.kept.acknowledged
            assert own.send(there, descriptor, TAGS[0]) == QUEUED
            driver.wait(
                lambda: there.kept.acknowledged > before, "the acknowledgement", SECOND // 10
            )
        driver.quiesce()

    scripted(btl_base_seal="none").run(program)  # or the header is inside a record
    assert asked == [not unhurried]


@pytest.mark.parametrize("unplugged", [True, False])
def test_nothing_goes_out_over_a_link_that_is_down(
    monkeypatch: pytest.MonkeyPatch, unplugged: bool
) -> None:
    """A reset would have the kernel look for the neighbour, and look again when it suits it."""
    calls: Counter[str] = Counter()
    order: list[str] = []

    def noting(name: str) -> Any:
        inner = getattr(ScriptedStream, name)

        def noted(stream: Stream) -> None:
            calls[name] += 1
            order.append(name)
            inner(stream)

        return noted

    for name in ("block_output", "abandon"):
        monkeypatch.setattr(ScriptedStream, name, noting(name))

    def program(driver: Driver) -> None:
        driver.send(1 - driver.rank, driver.data(100))
        driver.quiesce()
        if driver.rank == 0:
            with monkeypatch.context() as patch:
                patch.setattr(Link, "unplugged", lambda _: unplugged)
                endpoint(driver).lose("the link is down")
            assert order == ["block_output", "abandon"] if unplugged else ["abandon"]
        driver.wait(lambda: bool(driver.healed), "the path to be healed", 5 * SECOND)

    scripted().run(program)
    assert calls["abandon"]
