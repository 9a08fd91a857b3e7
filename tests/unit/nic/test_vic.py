"""The emulated VIC, on real sockets and on simulated ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ompy.engine.base import Engine
from ompy.engine.virtual_engine import Scheduler
from ompy.frameworks.nic.base import EventKind, LinkState, NicError, NicEvent
from ompy.frameworks.nic.datagram import Completion, CompletionQueue, QueuePair, Status, Work
from ompy.mca.parameter import Values
from ompy.net.base import Network
from ompy.net.faults.middleware import Corrupt, Cut, Drop, Fault, FaultCounter
from ompy.net.virtual.virtual_network import Fabric, Rail, VirtualNetwork
from ompy_components.nic.vic.component import COMPONENT
from ompy_components.nic.vic.device import Vic
from ompy_components.nic.vic.timings import DEVICE, READ, SWITCH, WHOLE, WRITE

from tests.support.networks import World, two_networks

DEFAULTS = {parameter.name: parameter.default for parameter in COMPONENT.parameters}
DEPTH = 100


def engine_of(network: Network) -> Engine:
    engine = network._engine  # type: ignore[attr-defined]
    assert isinstance(engine, Engine)
    return engine


class Card:
    """A device in use: one queue pair, whose completion queue is read into `done`."""

    def __init__(self, network: Network, *, depth: int = DEPTH, **settings: int) -> None:
        values = Values({**DEFAULTS, **settings})
        self.nic = Vic(network, 0, network.interfaces()[0], values, engine_of(network))
        self.nic.open()
        self.domain = self.nic.domain()
        self.queue: CompletionQueue = self.domain.completion_queue(2 * depth)
        self.pair: QueuePair = self.domain.queue_pair(
            self.queue, depth, depth, self.nic.max_message
        )
        self.memory = memoryview(bytearray(1 << 20))
        self.registration = self.domain.register(self.memory)
        self.done: list[Completion] = []

    def buffers(self, count: int, size: int) -> None:
        for index in range(count):
            self.pair.post_receive(self.memory[index * size : (index + 1) * size], index)

    def read(self, most: int = 500) -> int:
        found = self.queue.read(most)
        self.done += found
        return len(found)

    def bytes_of(self, completion: Completion, size: int) -> bytes:
        index = completion.context
        assert isinstance(index, int)
        return bytes(self.memory[index * size : index * size + completion.size])


@pytest.fixture(params=["real", "virtual"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with two_networks(request.param) as made:
        yield made


def card(world: World, network: Network, **settings: int) -> Card:
    made = Card(network, **settings)
    world.at_end(made.nic.close)
    return made


def received(world: World, receiver: Card, count: int) -> list[Completion]:
    """Let time pass until so many completions are there, of whatever work."""

    def all_here() -> bool:
        receiver.read()
        return len(receiver.done) >= count

    world.until(all_here)
    return receiver.done


def test_messages_arrive_in_posted_buffers(world: World) -> None:
    near, far = card(world, world.left), card(world, world.right)
    far.buffers(40, 1472)
    sizes = [0, 1, 700, 1472, 1472, 1472, 1472, 3, 3, 1000, 1000, 999]
    sent = [bytes([number]) * size for number, size in enumerate(sizes)]
    source = memoryview(b"".join(sent))
    near.domain.register(source)
    at = 0
    for number, data in enumerate(sent):
        near.pair.post_send(source[at : at + len(data)], far.pair.address, number, more=True)
        at += len(data)
    near.pair.ring()
    got = received(world, far, len(sent))
    assert sorted(far.bytes_of(done, 1472) for done in got) == sorted(sent)
    assert {(done.work, done.status) for done in got} == {(Work.RECEIVE, Status.OK)}
    assert {done.source for done in got} == {near.pair.address}
    near.read()
    assert [done.context for done in near.done] == list(range(len(sent)))
    assert {(done.work, done.status) for done in near.done} == {(Work.SEND, Status.OK)}


def test_inline_sends_leave_the_memory_free(world: World) -> None:
    near, far = card(world, world.left), card(world, world.right)
    far.buffers(2, 800)
    private = bytearray(b"x" * 768)
    near.pair.post_send(memoryview(private), far.pair.address, 0, inline=True, more=True)
    private[:] = b"y" * 768
    near.pair.ring()
    (done,) = received(world, far, 1)
    assert far.bytes_of(done, 800) == b"x" * 768


def test_packets_without_a_buffer_are_dropped_and_counted(world: World) -> None:
    near, far = card(world, world.left), card(world, world.right)
    for number in range(20):
        near.memory[100 * number] = number
        near.pair.post_send(near.memory[100 * number : 100 * number + 100], far.pair.address, 0)
    far.buffers(5, 100)
    world.until(lambda: far.read() + far.pair.dropped > 0)
    world.until(lambda: far.read() >= 0 and len(far.done) + far.pair.dropped == 20)
    assert len({far.bytes_of(done, 100)[0] for done in far.done}) == 5
    far.buffers(5, 100)
    assert far.read() == 0, "what has been dropped does not come when there is room"
    near.pair.post_send(near.memory[1900:2000], far.pair.address, 0)
    (*_, last) = received(world, far, 6)
    assert far.bytes_of(last, 100)[0] == 19
    assert far.pair.dropped == 15


def test_buffers_posted_later_are_not_for_what_has_arrived() -> None:
    """In the virtual world, whose device knows what has arrived."""
    with two_networks("virtual") as world:
        near, far = card(world, world.left), card(world, world.right)
        far.buffers(3, 100)
        for _ in range(20):
            near.pair.post_send(near.memory[:100], far.pair.address, 0)
        socket = far.pair._socket  # type: ignore[attr-defined]
        world.until(lambda: len(socket._arrived) == 20)
        assert far.read(1) == 1
        far.buffers(10, 100)
        assert far.read() == 2
        assert far.pair.dropped == 17


def test_too_long_a_message_is_cut_and_said_to_be(world: World) -> None:
    near, far = card(world, world.left), card(world, world.right)
    far.buffers(1, 10)
    near.pair.post_send(near.memory[:11], far.pair.address, 0)
    (done,) = received(world, far, 1)
    assert (done.status, done.size) == (Status.TRUNCATED, 10)


def test_what_the_device_refuses(world: World) -> None:
    it = card(world, world.left, depth=2, mtu=1500)
    to = it.pair.address
    with pytest.raises(NicError, match="not registered"):
        it.pair.post_send(memoryview(bytes(10)), to, 0)
    with pytest.raises(NicError, match="1473 bytes, where a message has 1472"):
        it.pair.post_send(it.memory[:1473], to, 0)
    with pytest.raises(NicError, match="769 bytes inline, where 768"):
        it.pair.post_send(it.memory[:769], to, 0, inline=True)
    it.pair.post_send(it.memory[:1], to, 0, more=True)
    it.pair.post_send(it.memory[:1], to, 0, more=True)
    with pytest.raises(NicError, match="the send queue is full: 2 entries"):
        it.pair.post_send(it.memory[:1], to, 0, more=True)
    it.buffers(2, 10)
    with pytest.raises(NicError, match="the receive queue is full: 2 entries"):
        it.buffers(1, 10)


def test_memory_that_was_given_back(world: World) -> None:
    it = card(world, world.left)
    it.registration.close()
    it.registration.close()
    with pytest.raises(NicError, match="not registered"):
        it.pair.post_receive(it.memory[:1], 0)


def test_a_virtual_function_has_so_many_queues(world: World) -> None:
    it = card(world, world.left, queue_pairs=1)
    with pytest.raises(NicError, match="no completion queue is left"):
        it.domain.completion_queue(1)
    with pytest.raises(NicError, match="no queue pair is left"):
        it.domain.queue_pair(it.queue, 1, 1, 100)
    it.pair.close()
    with pytest.raises(NicError, match="at most 1024 work entries"):
        it.domain.queue_pair(it.queue, 1025, 1, 100)
    with pytest.raises(NicError, match="too few"):
        it.domain.queue_pair(it.queue, DEPTH + 1, DEPTH, 100)
    with pytest.raises(NicError, match="closed"):
        it.pair.ring()


def test_closing_flushes(world: World) -> None:
    it = card(world, world.left)
    it.buffers(3, 10)
    it.pair.post_send(it.memory[:1], it.pair.address, "unsent", more=True)
    it.pair.close()
    it.pair.close()
    it.read()
    assert [(done.work, done.status) for done in it.done] == [
        (Work.SEND, Status.FLUSHED),
        *3 * [(Work.RECEIVE, Status.FLUSHED)],
    ]


def test_mtu(world: World) -> None:
    own = world.left.interfaces()[0].mtu
    assert card(world, world.left).nic.mtu == min(own, 9000)
    given = card(world, world.right, mtu=4000).nic
    assert (given.mtu, given.max_message) == (4000, 3972)


def _faulty(world: World, fault: Fault) -> Card:
    world.left.install(fault)
    return card(world, world.left)


def test_link_down_and_up(world: World) -> None:
    counter = FaultCounter()
    cut = Cut(world.engines[0], counter)
    near, far = _faulty(world, cut), card(world, world.right)
    far.buffers(5, 10)
    cut.cut()
    near.pair.post_send(near.memory[:1], far.pair.address, 0)
    near.pair.post_send(near.memory[:1], far.pair.address, 1)
    assert [done.status for done in received(world, near, 2)] == 2 * [Status.LINK_DOWN]
    assert near.nic.link is LinkState.DOWN
    assert near.nic.eventful
    assert [event.kind for event in near.nic.events()] == [EventKind.LINK_DOWN]
    cut.restore()
    near.pair.post_send(near.memory[:1], far.pair.address, 2)
    assert len(received(world, far, 1)) == 1
    assert [event.kind for event in near.nic.events()] == [EventKind.LINK_UP]
    assert not near.nic.eventful
    counter.require("cut")


def test_faults_hit_single_packets_of_a_run(world: World) -> None:
    counter = FaultCounter()
    near, far = _faulty(world, Drop(world.engines[0], counter, rate=0.5)), card(world, world.right)
    far.buffers(DEPTH, 10)
    for number in range(DEPTH):
        near.pair.post_send(near.memory[:10], far.pair.address, number, more=True)
    near.pair.ring()
    received(world, near, DEPTH)  # all have left
    lost = counter.delivered["drop"]
    assert 20 < lost < 80
    assert len(received(world, far, DEPTH - lost)) == DEPTH - lost


def test_a_device_that_is_gone(world: World) -> None:
    it = card(world, world.left)
    it.nic.report_fatal("pulled out")
    it.nic.report_fatal("twice")
    it.nic.report_link(LinkState.UP, "never again")
    assert it.nic.events() == [NicEvent(EventKind.DEVICE_FATAL, "pulled out")]
    for use in (
        lambda: it.queue.read(1),
        lambda: it.pair.post_send(it.memory[:1], it.pair.address, 0),
        lambda: it.pair.post_receive(it.memory[:1], 0),
        lambda: it.domain.completion_queue(1),
    ):
        with pytest.raises(NicError, match="pulled out"):
            use()


def test_nothing_is_left_open(world: World) -> None:
    made = Card(world.left)
    made.nic.close()
    made.nic.close()
    with pytest.raises(NicError, match="not open"):
        made.nic.domain()
    with pytest.raises(NicError, match="closed"):
        made.pair.ring()


def test_corruption_is_not_the_devices_to_notice(world: World) -> None:
    counter = FaultCounter()
    near, far = _faulty(world, Corrupt(world.engines[0], counter, rate=1)), card(world, world.right)
    far.buffers(1, 10)
    near.pair.post_send(near.memory[:10], far.pair.address, 0)
    (done,) = received(world, far, 1)
    assert done.status is Status.OK
    assert far.bytes_of(done, 10) != bytes(10)


def timed_run(packets: int, size: int, *, inline: bool, chosen: bool = False) -> list[int]:
    """When packets that are rung together are there, on a device's own link without jitter."""
    scheduler = Scheduler(1)
    engines = [scheduler.engine(), scheduler.engine()]
    fabric = Fabric(scheduler, [Rail("rail0", 10_000, 0, 10_000, chosen=chosen)], [0, 1])
    networks = [VirtualNetwork(fabric, rank, engine) for rank, engine in enumerate(engines)]
    near, far = (Card(network, clock=1) for network in networks)
    times: list[int] = []

    def send() -> None:
        for number in range(packets):
            near.pair.post_send(
                near.memory[:size], far.pair.address, number, inline=inline, more=True
            )
        near.pair.ring()
        assert near.read() == 0, "nothing has left yet"
        engines[0].wait_until(lambda: near.read() >= 0 and len(near.done) == packets)

    def receive() -> None:
        far.buffers(packets, size)

        def looked() -> bool:
            times.extend(far.read() * [engines[1].now()])
            return len(times) == packets

        engines[1].wait_until(looked)

    scheduler.run_engines([send, receive])
    return times


def test_a_small_message_takes_what_was_published() -> None:
    """Half a round trip back to back, and the switch; the bytes' own time on the link on top."""
    (took,) = timed_run(1, 8, inline=True)
    assert took - (WHOLE + SWITCH) in range(-2, 60)  # 6 ns of bytes, and a poll


def test_a_packet_that_is_not_inline_is_read_by_itself() -> None:
    (short,), (longer,) = timed_run(1, 700, inline=True), timed_run(1, 700, inline=False)
    inline = 5 + 700 // 4  # the processor's copy
    assert longer - short - (READ + 700 // 8 - inline) in range(-60, 60)


def test_packets_rung_together_go_as_fast_as_the_link() -> None:
    times = timed_run(50, 1472, inline=False)
    assert times[-1] - times[0] - 49 * 1472 * 8 // 10 in range(-100, 100)


def test_a_rail_that_was_chosen_keeps_its_times() -> None:
    (took,) = timed_run(1, 8, inline=True, chosen=True)
    assert took - (10_000 + WRITE + READ + DEVICE) in range(-2, 60)


def test_closing_sends_what_was_rung() -> None:
    scheduler = Scheduler(1)
    engines = [scheduler.engine(), scheduler.engine()]
    fabric = Fabric(scheduler, [Rail("rail0", chosen=False)], [0, 1])
    networks = [VirtualNetwork(fabric, rank, engine) for rank, engine in enumerate(engines)]
    near, far = (Card(network, clock=1) for network in networks)

    def send() -> None:
        near.pair.post_send(near.memory[:9], far.pair.address, 0)
        near.pair.close()

    def receive() -> None:
        far.buffers(1, 9)
        engines[1].wait_until(lambda: far.read() > 0)

    scheduler.run_engines([send, receive])


@pytest.mark.parametrize("computes", [True, False])
def test_a_device_keeps_what_its_buffers_hold_while_its_rank_computes(computes: bool) -> None:
    """More than a socket of the virtual world holds."""
    scheduler = Scheduler(1)
    engines = [scheduler.engine(), scheduler.engine()]
    fabric = Fabric(scheduler, [Rail("rail0", chosen=False)], [0, 1])
    networks = [VirtualNetwork(fabric, rank, engine) for rank, engine in enumerate(engines)]
    near, far = (Card(network, depth=500, clock=1) for network in networks)

    def send() -> None:
        for _ in range(500):
            near.pair.post_send(near.memory[:100], far.pair.address, 0, more=True)
        near.pair.ring()
        engines[0].wait_until(lambda: near.read() >= 0 and len(near.done) == 500)

    def receive() -> None:
        far.buffers(400, 100)
        if computes:
            engines[1].spend(1_000_000)
        engines[1].wait_until(lambda: far.read() >= 0 and len(far.done) + far.pair.dropped == 500)

    scheduler.run_engines([send, receive])
    assert (len(far.done), far.pair.dropped) == (400, 100)
