"""What goes out when and on which channel, and who is told when: rules a lossless run hides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import pytest
from ompy.conformance.btl.driver import TAGS, Driver
from ompy.data.convertor import ContiguousConvertor
from ompy.frameworks.btl import BTL_OWNERSHIP, COMPLETED, NO_ORDER, QUEUED, UNREACHABLE
from ompy.frameworks.btl_base.registration import identity_of
from ompy.net.faults.middleware import BlackHole, Fault
from ompy_components.btl.usnic.channel import DATA, PRIORITY, Channel
from ompy_components.btl.usnic.endpoint import UsnicEndpoint
from ompy_components.btl.usnic.headers import CHUNK, FRAG, HEADER_SIZE, SEAL_SIZE
from ompy_components.btl.usnic.module import UsnicModule
from ompy_components.btl.usnic.packets import Packet
from ompy_components.btl.usnic.reliability.limits import US
from ompy_components.btl.usnic.reliability.sequence import WINDOW
from ompy_components.btl.usnic.reliability.states import SegmentState
from ompy_components.btl.usnic.send_engine import SendEngine
from ompy_components.nic.vic.queues import VicQueuePair

from tests.sim.usnic.test_module import MS, SECOND, TINY, usnic, world
from tests.sim.usnic.test_put import movers
from tests.support.forms import interpreted_only
from tests.support.instance_methods import replaceable

SMALL = 800  # bytes: more than tiny, so it waits for its turn
LARGEST = 1423  # bytes that fit a packet of 1472
LARGE = 30_000  # bytes: 22 chunks


class Posted(NamedTuple):
    """A packet as it was posted."""

    target: int
    channel: int
    kind: int
    sequence: int
    again: bool
    acknowledges: bool
    inline: bool
    put_address: int
    place: int


WATCHED: dict[SendEngine, list[Posted]] = {}  # those whose packets somebody wants to see


@pytest.fixture
def watching(monkeypatch: pytest.MonkeyPatch) -> None:
    """`watched` sees what is posted, at any of the ranks."""
    post = SendEngine._post

    def noting(
        engine: SendEngine,
        endpoint: UsnicEndpoint,
        packet: Packet,
        channel: Channel,
        acknowledged: int | None,
        inline: bool,
    ) -> None:
        fragment = packet.fragment
        assert fragment is not None
        if engine in WATCHED:
            WATCHED[engine].append(
                Posted(
                    endpoint.proc.rank,
                    channel.index,
                    packet.kind,
                    packet.sequence,
                    packet.attempts > 1,
                    acknowledged is not None,
                    inline,
                    fragment.put_address,
                    fragment.place + packet.offset,
                )
            )
        post(engine, endpoint, packet, channel, acknowledged, inline)

    monkeypatch.setattr(SendEngine, "_post", noting)


@contextmanager
def watched(module: UsnicModule) -> Iterator[list[Posted]]:
    """Packets with a number that are posted meanwhile."""
    try:
        yield WATCHED.setdefault(module.sending, [])
    finally:
        del WATCHED[module.sending]


def path(driver: Driver, rank: int = 1) -> tuple[UsnicModule, UsnicEndpoint]:
    """The module of a rank, and the peer as it has it."""
    ((_, endpoint),) = driver.rails(rank)
    assert isinstance(endpoint, UsnicEndpoint)
    return usnic(driver), endpoint


def progress(driver: Driver) -> int:
    """One round of sending, without any receiving."""
    return usnic(driver).sending.progress(driver.engine.now())


def sender(work: Callable[[Driver], None]) -> Callable[[Driver], None]:
    """A program in which rank 0 does this, and all of it arrives."""

    def program(driver: Driver) -> None:
        if driver.rank == 0:
            work(driver)
        driver.quiesce()
        driver.check_inbox(ordered=False)

    return program


def test_the_two_channels() -> None:
    """Queues of their own each; one is short and has small packets."""

    def program(driver: Driver) -> None:
        module = usnic(driver)
        priority, data = module._channels
        assert (priority.index, data.index) == (PRIORITY, DATA)
        assert priority._queue is not data._queue
        assert priority.address != data.address
        depths = [
            (channel._pair.send_depth, channel._pair.receive_depth) for channel in (priority, data)
        ]
        assert depths == [(127, 127), (1024, 1024)]
        assert [channel.credits for channel in (priority, data)] == [127, 1024]
        assert [channel.max_message for channel in (priority, data)] == [768, 1472]
        assert module.record.addresses == (priority.address, data.address)

    world().run(program)


def test_the_seeds_numbers() -> None:
    """As the parameters have them when nobody says anything."""

    def program(driver: Driver) -> None:
        limits = usnic(driver)._limits
        assert (limits.retrans_timeout, limits.ack_delay) == (100 * MS, 50 * US)
        assert limits.window == WINDOW == 4096

    world().run(program)


def test_memory_of_packets() -> None:
    """Each has room for the largest of its channel, which the device may use."""

    def program(driver: Driver) -> None:
        module = usnic(driver)
        check = module.nic.domain().check_registered  # type: ignore[attr-defined]
        packet = module.sending.pool.take_packet()
        assert len(packet.buffer) == module.max_packet == 1472
        check(packet.buffer)
        module.sending.pool.give_back(packet)
        for channel, size in zip(module._channels, (768, 1472), strict=True):
            buffers = [buffer for buffer, _ in channel._pair._buffers]  # type: ignore[attr-defined]
            assert {len(buffer) for buffer in buffers} == {size}
            for buffer in buffers:
                check(buffer)

    world().run(program)


def test_which_fragments_own_a_packet() -> None:
    """Those that fit one; the others take packets when it is their turn, and give them back."""

    def work(driver: Driver) -> None:
        module, endpoint = path(driver)
        pool = module.sending.pool
        small = module.alloc(endpoint, NO_ORDER, LARGEST, 0)
        large = module.alloc(endpoint, NO_ORDER, LARGEST + 1, 0)
        assert small is not None
        assert large is not None
        assert small.packet.fragment is small  # type: ignore[attr-defined]
        assert large.packet is None  # type: ignore[attr-defined]
        assert (len(small.segment), len(large.segment), pool.out) == (LARGEST, LARGEST + 1, 1)
        module.free(small)
        module.free(large)
        assert pool.out == 0
        driver.post(1, driver.data(LARGE))
        (waiting,) = endpoint.queue
        assert (pool.out, waiting.number) == (0, 0), "nothing of it has been sent"
        progress(driver)
        assert (pool.out, waiting.number) == (22, 1)
        under_way = [packet for packet in endpoint.reliability._sent if packet is not None]
        assert len(under_way) == 22
        assert all(packet.fragment is waiting for packet in under_way)  # type: ignore[attr-defined]
        driver.wait(lambda: not endpoint.reliability.outstanding, "ACKs")
        driver.wait(lambda: not pool.out, "its packets")

    world().run(sender(work))


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_what_is_queued_goes_out_in_the_next_round(size: int) -> None:
    """It is complete when it is posted, for whoever does not want to know more."""

    def work(driver: Driver) -> None:
        module, endpoint = path(driver)
        _, data = module._channels
        owned = driver.post(1, driver.data(size), flags=BTL_OWNERSHIP)
        kept = driver.post(1, driver.data(size), flags=0)
        assert owned is not None
        assert kept is not None
        assert (owned.result, kept.result) == (QUEUED, QUEUED)
        assert (data.sends, endpoint.ready) == (0, True)
        assert [one.context for one in endpoint.queue] == [owned, kept]
        packets = 2 if size == SMALL else 44
        assert progress(driver) == packets == data.sends == endpoint.reliability.outstanding
        assert (owned.done, kept.done) == (True, False)
        assert (len(endpoint.queue), endpoint.ready) == (0, False)
        driver.wait(lambda: kept.done, "ACKs")
        assert endpoint.reliability.outstanding == 0

    world().run(sender(work))


def test_a_large_fragment_is_complete_with_its_last_chunk() -> None:
    def work(driver: Driver) -> None:
        _, endpoint = path(driver)
        fragment = driver.post(1, driver.data(LARGE))
        assert fragment is not None
        assert progress(driver) == 15, "the last credit is never used"
        assert not fragment.done
        assert len(endpoint.queue) == 1
        driver.wait(lambda: fragment.done, "the rest")
        assert not endpoint.queue

    world(sd_num=16).run(sender(work))


@interpreted_only
@pytest.mark.usefixtures("watching")
def test_the_first_endpoint_is_served_until_it_has_nothing_more() -> None:
    def work(driver: Driver) -> None:
        for rank in (2, 1, 2, 1, 2):
            driver.post(rank, driver.data(SMALL))
        with watched(usnic(driver)) as posted:
            progress(driver)
        assert [one.target for one in posted] == [2, 2, 2, 1, 1]

    world(3).run(sender(work))


def test_an_endpoint_without_credits_waits() -> None:
    """A packet that is posted takes one, a completion gives it back."""

    def work(driver: Driver) -> None:
        module, endpoint = path(driver)
        _, data = module._channels
        all_of_them = endpoint.credits
        assert all_of_them == data.credits == 1024
        endpoint.credits = 2
        for _ in range(5):
            driver.post(1, driver.data(SMALL))
        assert progress(driver) == 2
        assert (endpoint.credits, endpoint.ready, len(endpoint.queue)) == (0, False, 3)
        assert progress(driver) == 0
        driver.wait(lambda: not endpoint.queue, "credits")
        driver.wait(lambda: endpoint.credits == 2, "the last ones")
        endpoint.credits = all_of_them

    world().run(sender(work))


def test_an_endpoint_with_a_full_window_waits() -> None:
    def work(driver: Driver) -> None:
        module, endpoint = path(driver)
        endpoint.reliability._congestion.segments = 2
        for _ in range(5):
            driver.post(1, driver.data(SMALL))
        assert progress(driver) == 2
        assert (endpoint.ready, len(endpoint.queue)) == (False, 3)
        assert module.statistics.num_window_full == 1
        driver.post(1, driver.data(SMALL))
        assert not endpoint.ready, "nor is it made ready by another fragment"
        driver.wait(lambda: not endpoint.queue, "ACKs")

    world().run(sender(work))


def holed(driver: Driver) -> Sequence[Fault]:
    """A hole that the program opens."""
    return [BlackHole(driver.engine, driver.world.counter, gives_up=SECOND)]


def test_the_states_of_a_segment() -> None:
    """Its timer runs in one of them only."""

    def work(driver: Driver) -> None:
        module, endpoint = path(driver)
        (hole,) = driver.faults
        assert isinstance(hole, BlackHole)
        made = module.alloc(endpoint, NO_ORDER, SMALL, BTL_OWNERSHIP)
        assert made is not None
        packet = made.packet  # type: ignore[attr-defined]
        found = [packet.state]
        module.free(made)
        hole.open()
        driver.post(1, driver.data(SMALL))  # in the packet that is free again
        found.append(packet.state)
        progress(driver)
        found.append(packet.state)
        assert list(endpoint.reliability.in_flight._items).count(packet) == 1
        driver.idle(MS)  # it is off the send queue
        driver.compute(150 * MS)
        endpoint.reliability.expire(driver.engine.now())
        found.append(packet.state)
        assert list(module.sending.resends) == [packet]
        assert packet not in endpoint.reliability.in_flight._items
        hole.close()
        progress(driver)
        found.append(packet.state)
        driver.wait(lambda: not endpoint.reliability.outstanding, "the ACK")
        found.append(packet.state)
        free, to_send, flying, to_resend, *_ = SegmentState
        assert found == [free, to_send, flying, to_resend, flying, free]

    world(plan=holed).run(sender(work))


def test_segments_that_wait_when_the_path_fails_are_free() -> None:
    def program(driver: Driver) -> None:
        if driver.rank == 0:
            module, endpoint = path(driver)
            fragments = [driver.post(1, driver.data(SMALL)) for _ in range(3)]
            packets = [one.packet for one in endpoint.queue]
            endpoint.path.broke("it is a test")
            assert [packet.state for packet in packets if packet] == 3 * [SegmentState.FREE]
            assert module.sending.pool.out == 0
            assert [one.completions[0][1] for one in fragments if one] == 3 * [UNREACHABLE]

    world().run(program)


@interpreted_only
@pytest.mark.usefixtures("watching")
def test_resends_of_tiny_fragments_leave_the_priority_channel_alone() -> None:
    def work(driver: Driver) -> None:
        module, endpoint = path(driver)
        (hole,) = driver.faults
        assert isinstance(hole, BlackHole)
        hole.open()
        with watched(module) as posted:
            driver.post(1, driver.data(100))
            driver.idle(MS)
            hole.close()
            driver.wait(lambda: not endpoint.reliability.outstanding, "the ACK")
        assert [(one.channel, one.again) for one in posted] == [(PRIORITY, False), (DATA, True)]

    world(plan=holed).run(sender(work))


@interpreted_only
@pytest.mark.usefixtures("watching")
@pytest.mark.parametrize(("size", "fast"), [(TINY, 11), (TINY + 1, 0)])
def test_fast_sends_want_nearly_all_credits(size: int, fast: int) -> None:
    """They go inline and at once; the others wait for the next round."""

    def work(driver: Driver) -> None:
        path(driver)
        with watched(usnic(driver)) as posted:
            sent = [driver.post(1, driver.data(size)) for _ in range(13)]
            assert [one.result for one in sent if one] == [COMPLETED] * fast + [QUEUED] * (
                13 - fast
            )
            assert [(one.channel, one.inline) for one in posted] == [(PRIORITY, True)] * fast
            del posted[:]
            progress(driver)
            assert [(one.channel, one.inline) for one in posted] == [(DATA, False)] * (13 - fast)

    world().run(sender(work))


@pytest.mark.parametrize("size", [100, SMALL])
def test_a_small_fragment_is_in_its_packet_once_it_is_sent(size: int) -> None:
    """The user's memory was referred to until then; now it is one piece, sent fast or waiting."""

    def work(driver: Driver) -> None:
        module, endpoint = path(driver)
        memory = bytearray(driver.data(size))
        message = ContiguousConvertor(memoryview(memory))
        made = module.prepare_src(endpoint, message, 0, NO_ORDER, 0, size, BTL_OWNERSHIP)
        assert made is not None
        packet = made.packet  # type: ignore[attr-defined]
        assert (bytes(made.segment), made.payload) == (b"", memory)
        assert module.send(endpoint, made, TAGS[0]) == (COMPLETED if size <= TINY else QUEUED)
        assert (made.segment, made.payload) == (memory, None)
        assert made.segment.obj is packet.buffer.obj
        assert packet.whole()[-size:] == memory

    def program(driver: Driver) -> None:
        if driver.rank == 0:
            work(driver)
        driver.wait(lambda: driver.rank == 0 or len(driver.inbox) == 1, "it")
        driver.world.meet(driver)

    world().run(program)


@interpreted_only
def test_inline_means_that_the_packet_is_free_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    own, post = replaceable(monkeypatch, VicQueuePair, "post_send")

    def work(driver: Driver) -> None:
        module, _ = path(driver)
        pair = module._channels[PRIORITY]._pair
        inline = []

        def noting(*args: object, **options: object) -> None:
            inline.append(options["inline"])
            post(pair, *args, **options)

        own[pair] = noting
        driver.post(1, driver.data(100))
        assert inline == [True]
        own.clear()

    world().run(sender(work))


def test_a_fast_send_wants_an_open_window() -> None:
    def work(driver: Driver) -> None:
        _, endpoint = path(driver)
        endpoint.reliability._congestion.segments = 1
        results = [driver.post(1, driver.data(10)) for _ in range(2)]
        assert [one.result for one in results if one] == [COMPLETED, QUEUED]

    world().run(sender(work))


@interpreted_only
@pytest.mark.usefixtures("watching")
def test_a_tiny_fragment_overtakes_what_waits() -> None:
    """Its number is lower, too: numbers are those of packets, in the order they are posted."""
    arrived: list[int] = []

    def program(driver: Driver) -> None:
        if driver.rank == 0:
            path(driver)
            with watched(usnic(driver)) as posted:
                driver.post(1, driver.data(LARGE))
                driver.post(1, driver.data(10))
                progress(driver)
            assert [one.kind for one in posted] == [FRAG] + [CHUNK] * 22
            first = usnic(driver).isn
            assert [one.sequence for one in posted] == [(first + n) % 65536 for n in range(23)]
        driver.quiesce()
        driver.check_inbox(ordered=False)
        arrived.extend(len(one.data) for one in driver.inbox)

    world().run(program)
    assert arrived == [10, LARGE]


@interpreted_only
def test_an_ack_alone_is_a_header_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is missing. It has no number, and nobody keeps it."""
    posted: list[tuple[Channel, int]] = []
    post = Channel.post

    def noting(channel: Channel, packet: memoryview, *args: object) -> None:
        posted.append((channel, len(packet)))
        post(channel, packet, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Channel, "post", noting)

    def program(driver: Driver) -> None:
        module = usnic(driver)
        if driver.rank == 0:
            driver.send(1, driver.data(LARGE))
        driver.quiesce()
        driver.idle(MS)
        if driver.rank == 1:
            sizes = [size for channel, size in posted if channel is module._channels[PRIORITY]]
            assert sizes == [SEAL_SIZE + HEADER_SIZE] * module.statistics.num_ack_sends
            assert sizes
            (endpoint,) = module.endpoints.values()
            assert endpoint.reliability.outstanding == 0
            assert module.sending.pool.out == 0

    world().run(program)


@interpreted_only
@pytest.mark.usefixtures("watching")
@pytest.mark.parametrize("size", [1, LARGE])
def test_a_put_goes_out_of_the_users_memory_as_chunks(size: int) -> None:
    """Each says where in the peer's memory it belongs, that of one byte too."""

    def program(driver: Driver) -> None:
        mine, theirs = movers(driver)
        if driver.rank == 0:
            module, endpoint = path(driver)
            local = bytearray(driver.data(size))
            with watched(module) as posted:
                transfer = mine.offer(False, local, 7, theirs.key)
                (waiting,) = endpoint.queue
                assert waiting.segment.obj is local
                assert (transfer.result, posted) == (QUEUED, [])
                progress(driver)
            assert {one.kind for one in posted} == {CHUNK}
            assert {one.put_address for one in posted} == {identity_of(theirs.key, 1)}
            assert [one.place for one in posted] == list(range(7, 7 + size, 1408))
            driver.wait(lambda: transfer.done, "the answer")
            assert theirs.exposed[7 : 7 + size] == local
        driver.quiesce()

    world().run(program)
