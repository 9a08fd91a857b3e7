"""What becomes of packets that arrive: whose memory they are in, when their buffers are posted."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.conformance.btl.driver import Driver
from ompy.frameworks.btl import Endpoint
from ompy_components.btl.usnic.channel import DATA, PRIORITY
from ompy_components.btl.usnic.endpoint import UsnicEndpoint
from ompy_components.btl.usnic.headers import Header
from ompy_components.btl.usnic.module import UsnicModule
from ompy_components.btl.usnic.packets import Packet
from ompy_components.btl.usnic.reassembly import Reassembly
from ompy_components.btl.usnic.reliability.machine import Reliability
from ompy_components.btl.usnic.send_engine import SendEngine

from tests.sim.usnic.test_module import MS, TINY, usnic, world
from tests.sim.usnic.test_put import movers
from tests.sim.usnic.test_rules_of_sending import LARGE, SMALL
from tests.support.forms import interpreted_only
from tests.support.instance_methods import replaceable


def peer(driver: Driver) -> UsnicEndpoint:
    """The other rank, as this one's module has it."""
    ((_, endpoint),) = driver.rails(driver.peers[0])
    assert isinstance(endpoint, UsnicEndpoint)
    return endpoint


@interpreted_only
@pytest.mark.parametrize("size", [TINY, SMALL, LARGE])
def test_a_fragment_is_handed_over_where_it_lies(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A buffer is posted again once the callback is over. What came in chunks has other memory."""
    seen: list[tuple[bool, int]] = []
    own, dispatch = replaceable(monkeypatch, UsnicModule, "dispatch")

    def program(driver: Driver) -> None:
        module = usnic(driver)
        channel = module._channels[PRIORITY if size <= TINY else DATA]
        pair, depth = channel._pair, channel._pair.receive_depth

        def noting(endpoint: Endpoint, tag: int, data: memoryview) -> None:
            in_place = data.obj is channel._registration.memory.obj
            seen.append((in_place, depth - len(pair._buffers)))  # type: ignore[attr-defined]
            dispatch(module, endpoint, tag, data)

        own[module] = noting
        if driver.rank == 0:
            driver.send(1, driver.data(size))
        driver.quiesce()
        driver.idle(MS)
        driver.check_inbox(ordered=False)
        assert len(pair._buffers) == depth  # type: ignore[attr-defined]

    world().run(program)
    ((in_place, taken),) = seen
    assert in_place is (size <= SMALL)
    assert taken >= 1


@interpreted_only
def test_only_one_of_two_rounds_receives_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bookkeeping of the first packet is done before another one is looked at."""
    own, receive = replaceable(monkeypatch, Reliability, "receive")

    def program(driver: Driver) -> None:
        endpoint = peer(driver)
        driver.world.meet(driver)
        events: list[str] = []
        machine = endpoint.reliability

        def noting(sequence: int, now: int) -> Any:
            events.append("noted")
            return receive(machine, sequence, now)

        own[machine] = noting
        driver.on_arrival = lambda _: events.append("handed over")
        if driver.rank == 0:
            for _ in range(3):
                driver.post(1, driver.data(50))
        else:
            driver.compute(MS)  # all are here when it looks
            driver.wait(lambda: len(events) == 6, "three fragments")
            fast, usual = ["handed over", "noted"], ["noted", "handed over"]
            assert events == fast + usual + usual
        driver.world.meet(driver)
        driver.idle(MS)
        del events[:]
        driver.world.meet(driver)
        if driver.rank == 0:
            driver.post(1, driver.data(50))
            driver.idle(MS)
            driver.post(1, driver.data(SMALL))
        driver.quiesce()
        if driver.rank == 1:
            assert events == fast + usual, "by the data channel nothing comes fast"

    world().run(program)


@interpreted_only
def test_what_is_here_already_is_not_received_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """The peer sends it again over the priority channel; it is answered, and not handed over."""
    own, _ = replaceable(monkeypatch, Reliability, "acknowledge")

    def program(driver: Driver) -> None:
        endpoint, module = peer(driver), usnic(driver)
        driver.world.meet(driver)
        if driver.rank == 0:
            driver.post(1, driver.data(50))
            (packet,) = [one for one in endpoint.reliability._sent if one is not None]
            assert isinstance(packet, Packet)
            driver.world.meet(driver)
            own[endpoint.reliability] = lambda *_: []
            module.sending._post(endpoint, packet, module._channels[PRIORITY], None, True)
            driver.idle(MS)
            own.clear()
        else:
            driver.world.meet(driver)
            driver.idle(MS)
            counted = module.statistics
            assert counted.num_dup_recvs + counted.num_oow_low_recvs == 1
        driver.quiesce()
        driver.check_inbox(ordered=False)

    world().run(program)


@interpreted_only
@pytest.mark.parametrize("size", [TINY, SMALL, LARGE])
def test_an_ack_that_goes_with_a_packet_counts(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    own, _ = replaceable(monkeypatch, SendEngine, "send_ack")

    def program(driver: Driver) -> None:
        endpoint, module = peer(driver), usnic(driver)
        driver.world.meet(driver)
        if driver.rank == 1:
            own[module.sending] = lambda *_: None
            driver.wait(lambda: bool(driver.inbox), "the question")
            driver.post(0, driver.data(size))
            driver.idle(50 * MS)
            own.clear()
        else:
            driver.post(1, driver.data(SMALL))
            driver.wait(lambda: not endpoint.reliability.outstanding, "its ACK", 40 * MS)
            assert module.statistics.num_resends == 0
        driver.quiesce()
        driver.check_inbox(ordered=False)
        assert module.statistics.num_ack_recvs == 0 or driver.rank == 1

    world().run(program)


def test_a_fragment_in_chunks_is_forgotten_when_it_is_whole() -> None:
    def program(driver: Driver) -> None:
        endpoint = peer(driver)
        waiting: list[int] = []
        driver.on_arrival = lambda _: waiting.append(len(endpoint.reassembly._incoming))
        if driver.rank == 0:
            for _ in range(3):
                driver.send(1, driver.data(LARGE))
        driver.quiesce()
        driver.check_inbox(ordered=False)
        if driver.rank == 1:
            assert len(waiting) == 3
            assert not endpoint.reassembly._incoming

    world().run(program)


@interpreted_only
def test_a_put_needs_no_memory_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is called back at the target either, but for the answer, which is usnic's own."""
    claimed: list[Header] = []
    monkeypatch.setattr(Reassembly, "claim", lambda _, header: claimed.append(header))

    def program(driver: Driver) -> None:
        mine, theirs = movers(driver)
        if driver.rank == 0:
            transfer = mine.offer(False, bytearray(LARGE), 0, theirs.key)
            driver.wait(lambda: transfer.done, "the answer")
            assert transfer.good
        else:
            counted = usnic(driver).statistics
            driver.wait(lambda: counted.num_chunk_recvs == 22, "all chunks")
            assert mine.exposed.count(0) == LARGE
        driver.quiesce()
        assert not driver.inbox

    world().run(program)
    assert not claimed
