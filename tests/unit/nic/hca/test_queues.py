"""Queues, their limits and their events, on simulated sockets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ompy.frameworks.nic.base import EventKind, LinkState, NicError, NicEvent
from ompy.frameworks.nic.verbs import Access, Opcode, SendWork, State, Timing
from ompy.net.base import Address, Datagram, DeviceGone
from ompy.net.faults.middleware import BlackHole, Cut, FaultCounter
from ompy_components.nic.hca import queue_pair

from tests.support.hca_pair import TIMING, End, contexts, ends, join, remote, send, until
from tests.support.networks import World, two_networks


@pytest.fixture
def world() -> Iterator[World]:
    with two_networks("virtual") as made:
        yield made


def test_full_queues(world: World) -> None:
    near, far = ends(world)
    pair = near.pair(send_depth=2, receive_depth=2)
    join(pair, far.pair())
    for _ in range(2):
        pair.post_send(send(near, 0, 1))
        pair.post_receive(near.span(0, 1), 0)
    with pytest.raises(NicError, match="send queue is full: 2 entries"):
        pair.post_send(send(near, 0, 1))
    with pytest.raises(NicError, match="receive queue is full: 2 entries"):
        pair.post_receive(near.span(0, 1), 0)


def test_an_entry_is_free_when_a_later_completion_is_polled(world: World) -> None:
    near, far = ends(world)
    pair, other = near.pair(send_depth=3), far.pair()
    join(pair, other)
    for _ in range(6):
        other.post_receive(far.span(0, 8), 0)
    pair.post_send(send(near, 0, 1, signaled=False))
    pair.post_send(send(near, 0, 1, signaled=False))
    until(world, (near, far), lambda: len(far.done) == 2)
    pair.post_send(send(near, 0, 1, "told"))
    with pytest.raises(NicError, match="full"):
        pair.post_send(send(near, 0, 1))
    until(world, (near, far), lambda: bool(near.done))
    assert [one.context for one in near.done] == ["told"]
    for _ in range(3):
        pair.post_send(send(near, 0, 1))


def test_inline_bytes_are_copied_at_once(world: World) -> None:
    near, far = ends(world)
    near.memory[:8] = b"original"
    far.pairs[0].post_receive(far.span(0, 100), 0)
    # the first is lost on the way: what is sent again are the old bytes too
    near.nic.port.put = lambda *_: near.nic.port.__dict__.pop("put")  # type: ignore[method-assign]
    span = near.span(0, 8)._replace(lkey=0)
    near.pairs[0].post_send(SendWork(Opcode.SEND, [span], 0, inline=True))
    assert "put" not in near.nic.port.__dict__, "nothing was lost"
    near.memory[:8] = b"replaced"
    until(world, (near, far), lambda: bool(near.done and far.done))
    assert far.memory[:8] == b"original"
    with pytest.raises(NicError, match="65 bytes inline, where 64 have room"):
        near.pairs[0].post_send(send(near, 0, 65, inline=True))
    with pytest.raises(NicError, match="RDMA read cannot be inline"):
        near.pairs[0].post_send(remote(Opcode.RDMA_READ, near, 0, 8, far.region, inline=True))


def test_several_spans(world: World) -> None:
    near, far = ends(world)
    near.memory[:10_000] = bytes(index % 251 for index in range(10_000))
    spans = [near.span(0, 10), near.span(100, 0), near.span(500, 9_000), near.span(3, 3)]
    far.pairs[0].post_receive(far.span(0, 20_000), 0)
    near.pairs[0].post_send(SendWork(Opcode.SEND, spans, 0))
    until(world, (near, far), lambda: bool(far.done))
    whole = b"".join(span.memory for span in spans)
    assert far.memory[: len(whole)] == whole
    back = [far.span(30_000, 13), far.span(40_000, 9_000)]
    far.pairs[0].post_send(
        SendWork(
            Opcode.RDMA_READ, back, 0, remote_address=near.region.address, rkey=near.region.rkey
        )
    )
    until(world, (near, far), lambda: len(far.done) == 2)
    assert b"".join(span.memory for span in back) == near.memory[:9_013]


def test_a_completion_queue_overflows(world: World) -> None:
    here, there = contexts(world)
    near, far = End(here, depth=3), End(there)
    join(near.pair(), far.pair())
    other, its_peer = near.pair(), far.pair()
    join(other, its_peer)
    for _ in range(4):
        far.pairs[0].post_receive(far.span(0, 1), 0)
        near.pairs[0].post_send(send(near, 0, 1))

    def told() -> bool:
        near.nic.progress()
        far.poll()
        return near.nic.eventful

    world.until(told)
    assert near.queue.ready()
    with pytest.raises(NicError, match="has overflowed"):
        near.queue.poll(1)
    (event,) = near.nic.events()
    assert (event.kind, event.subject) == (EventKind.CQ_ERROR, near.queue)
    assert near.pairs[0].state is other.state is State.ERR
    near.nic.close()
    far.nic.close()


def test_a_shared_queue_and_its_limit(world: World) -> None:
    near, far = ends(world)
    shared = far.domain.shared_queue(4)
    pairs = []
    for _ in range(2):
        pairs.append((near.pair(), far.pair(shared=shared)))
        join(*pairs[-1])
    for index in range(4):
        shared.post_receive(far.span(10 * index, 10), index)
    assert (shared.depth, shared.posted) == (4, 4)
    with pytest.raises(NicError, match="full"):
        shared.post_receive(far.span(0, 1), 0)
    shared.arm(2)
    for mine, _ in (*pairs, pairs[0]):
        assert not far.nic.events()
        mine.post_send(send(near, 0, 3))
        count = len(far.done) + 1
        until(world, (near, far), lambda count=count: len(far.done) == count)
    (event,) = far.nic.events()
    assert (event.kind, event.subject) == (EventKind.SRQ_LIMIT_REACHED, shared)
    assert [(one.context, one.number) for one in far.done] == [
        (0, pairs[0][1].number),
        (1, pairs[1][1].number),
        (2, pairs[0][1].number),
    ]
    pairs[1][0].post_send(send(near, 0, 3))
    until(world, (near, far), lambda: len(far.done) == 4)
    assert not far.nic.events(), "it reports once"
    shared.arm(1)
    assert [event.kind for event in far.nic.events()] == [EventKind.SRQ_LIMIT_REACHED]
    pairs[0][1].modify(State.ERR)
    assert shared.posted == 0
    with pytest.raises(NicError, match="posted to a shared queue"):
        pairs[0][1].post_receive(far.span(0, 1), 0)


def test_buffers_of_a_shared_queue_are_not_flushed(world: World) -> None:
    _, far = ends(world)
    shared = far.domain.shared_queue(4)
    pair = far.pair(shared=shared)
    shared.post_receive(far.span(0, 10), 0)
    pair.modify(State.ERR)
    far.poll()
    assert (far.done, shared.posted) == ([], 1)
    with pytest.raises(NicError, match="a limit of 5"):
        shared.arm(5)
    shared.close()
    with pytest.raises(NicError, match="closed"):
        shared.post_receive(far.span(0, 10), 0)


def test_what_cannot_be_made(world: World) -> None:
    near, far = ends(world, queue_depth=10, queue_pairs=2)
    queue, domain = near.queue, near.domain
    shared = domain.shared_queue(5)
    for arguments, why in (
        ({"send_depth": 11}, "at most 10 entries"),
        ({"send_depth": 1, "receive_depth": 11}, "at most 10 entries"),
        ({"send_depth": 1, "inline_max": 257}, "256 bytes can be inline"),
        ({"send_depth": 1, "receive_depth": 1, "shared": shared}, "not both"),
        ({"send_depth": 1, "shared": far.domain.shared_queue(1)}, "no open shared queue"),
        ({"send_depth": 1, "shared": near.nic.domain().shared_queue(1)}, "of this domain"),
    ):
        with pytest.raises(NicError, match=why):
            domain.queue_pair(queue, queue, **arguments)  # type: ignore[arg-type]
    with pytest.raises(NicError, match="no open completion queue"):
        domain.queue_pair(queue, far.queue, send_depth=1)
    with pytest.raises(NicError, match="at most 10"):
        domain.shared_queue(11)
    with pytest.raises(NicError, match="1 to 4194303"):
        near.nic.completion_queue(0)
    near.pair(send_depth=1, receive_depth=1)
    with pytest.raises(NicError, match="2 queue pairs, none is left"):
        near.pair(send_depth=1, receive_depth=1)


@pytest.fixture(autouse=True)
def shallow(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Where a device has short queues, those of `ends` are too."""
    if request.function is test_what_cannot_be_made:
        whole = End.pair

        def pair(self: End, **more: Any) -> Any:
            return whole(self, **{"send_depth": 5, "receive_depth": 5, **more})

        monkeypatch.setattr(End, "pair", pair)


def test_transitions(world: World) -> None:
    near, far = ends(world)
    pair, other = near.pair(), far.pair()
    with pytest.raises(NicError, match="no way from INIT to RTS"):
        pair.modify(State.RTS, timing=TIMING)
    with pytest.raises(NicError, match="RTR needs"):
        pair.modify(State.RTR, there=other.here())
    with pytest.raises(NicError, match="RTR needs"):
        pair.modify(State.RTR, timing=TIMING)
    with pytest.raises(NicError, match="timeout is 32"):
        pair.modify(State.RTR, there=other.here(), timing=Timing(32, 0, 0, 0))
    for wrong in ({"lid": 0}, {"lid": 1 << 16}, {"number": 1 << 24}, {"first_packet": 1 << 24}):
        with pytest.raises(NicError, match="no end of a connection|24 bits"):
            pair.modify(State.RTR, there=other.here()._replace(**wrong), timing=TIMING)
    assert pair.state is State.INIT
    with pytest.raises(NicError, match="nothing can be sent in INIT"):
        pair.post_send(send(near, 0, 1))
    pair.modify(State.RTR, there=other.here(), timing=TIMING)
    with pytest.raises(NicError, match="nothing can be sent in RTR"):
        pair.post_send(send(near, 0, 1))
    with pytest.raises(NicError, match="RTS needs"):
        pair.modify(State.RTS)
    pair.modify(State.RTS, timing=TIMING)
    pair.modify(State.RTS)
    with pytest.raises(NicError, match="a receive is no work"):
        pair.post_send(SendWork(Opcode.RECEIVE, [near.span(0, 1)], 0))
    pair.close()
    pair.close()
    with pytest.raises(NicError, match="closed"):
        pair.modify(State.RESET)


def test_numbers_of_queue_pairs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    near, _ = ends(world)
    first = near.pairs[0].number
    pair = near.pair()
    pair.close()
    assert near.pair().number not in (first, pair.number)
    near.nic.pairs._last = 0xFFFFFD
    assert [near.pair().number for _ in range(2)] == [0xFFFFFE, 3], "2 is taken"
    assert near.pairs[0].number == first == 2
    assert queue_pair.SPACE == 1 << 24


def test_closing_a_queue_pair_takes_its_completions_along(world: World) -> None:
    near, far = ends(world)
    far.pairs[0].post_receive(far.span(0, 10), 0)
    near.pairs[0].post_send(send(near, 0, 1))

    def arrived() -> bool:
        near.nic.progress()
        far.nic.progress()
        return bool(far.queue.ready())

    world.until(arrived)
    far.nic.progress()
    far.pairs[0].close()
    far.poll()
    assert far.done == []


def test_link_down_and_up(world: World) -> None:
    """The device finds out by itself that the link is up again."""
    counter = FaultCounter()
    cut = Cut(world.engines[0], counter)
    world.left.install(cut)
    near, far = ends(world)
    far.pairs[0].post_receive(far.span(0, 10), 0)
    cut.cut()
    near.pairs[0].post_send(send(near, 0, 1))
    until(world, (near,), lambda: near.nic.link is LinkState.DOWN)
    assert [event.kind for event in near.nic.events()] == [EventKind.LINK_DOWN]
    until(world, (near, far), lambda: bool(near.done))
    assert near.done[0].status.name == "RETRY_EXC_ERR"
    cut.restore()
    until(world, (near, far), lambda: near.nic.link is LinkState.UP)
    assert [event.kind for event in near.nic.events()] == [EventKind.LINK_UP]
    counter.require("cut")


def test_a_cable_that_is_pulled(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The socket takes what nobody gets; the device looks when nothing comes back."""
    near, far = ends(world)
    hole = BlackHole(world.engines[0], FaultCounter(), gives_up=1, active=True)
    near.nic.port._socket = hole.datagram(near.nic.port._socket)
    there = world.left.interfaces()
    monkeypatch.setattr(world.left, "interfaces", list)
    near.pairs[0].post_send(send(near, 0, 1))
    assert near.nic.events() == []
    until(world, (near, far), lambda: bool(near.done))
    assert hole.counter.delivered["black hole"]
    (event,) = near.nic.events()
    assert event == NicEvent(EventKind.LINK_DOWN, "rail0: it has no carrier")
    monkeypatch.setattr(world.left, "interfaces", lambda: there)
    until(world, (near, far), lambda: near.nic.eventful)
    (event,) = near.nic.events()
    assert event == NicEvent(EventKind.LINK_UP, "rail0 has a carrier again")


def test_a_device_that_is_gone(world: World) -> None:
    near, far = ends(world)
    near.pairs[0].post_receive(near.span(0, 10), 0)

    class Gone(Datagram):
        def send(self, packet: memoryview, address: Address) -> bool:
            raise DeviceGone("pulled out")

    socket = near.nic.port._socket
    near.nic.port._socket = Gone()
    near.pairs[0].post_send(send(near, 0, 1))
    world.until(lambda: bool(near.nic.gone))
    assert near.nic.events() == [NicEvent(EventKind.DEVICE_FATAL, "rail0: pulled out")]
    for use in (
        lambda: near.queue.poll(1),
        lambda: near.pairs[0].post_send(send(near, 0, 1)),
        lambda: near.pairs[0].post_receive(near.span(0, 1), 0),
        lambda: near.pairs[0].modify(State.ERR),
        lambda: near.domain.register(near.memory, Access(0)),
        lambda: near.domain.shared_queue(1),
        lambda: near.nic.completion_queue(1),
        lambda: near.nic.domain(),
    ):
        with pytest.raises(NicError, match="pulled out"):
            use()
    near.nic.port._socket = socket
    near.nic.close()
    assert far.nic.events() == []


def test_nothing_is_left_open(world: World) -> None:
    near, _ = (End(context) for context in contexts(world))
    near.nic.open()
    near.nic.close()
    near.nic.close()
    with pytest.raises(NicError, match="not open"):
        near.nic.domain()
    with pytest.raises(NicError, match="not open"):
        near.queue.poll(1)


def test_identity(world: World) -> None:
    near, far = ends(world)
    assert near.nic.identity.name == "hca_0"
    assert near.nic.identity.emulated
    assert (near.nic.lid, far.nic.lid) == (1, 2)
    assert near.nic.subnet == far.nic.subnet
    assert near.nic.mtu == 1500 - 28 - 64
    assert far.pairs[0].here()[:2] == (2, far.pairs[0].number)
