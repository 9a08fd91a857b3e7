"""What the seed says of bursts, queues, locks and the size of a segment, part by part."""

from __future__ import annotations

import _thread
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from ompy.frameworks.conduit import ThreadMode
from ompy.frameworks.nic.gni import Event, EventKind, ReturnCode
from ompy.net.base import LinkError
from ompy_components.conduit.gni import attaching, headers, segment
from ompy_components.conduit.gni.locking import NoLock, SpinLock, nic_lock, queue_lock
from ompy_components.conduit.gni.rdma.descriptors import DescriptorPool
from ompy_components.conduit.gni.smsg import SmsgTransport, WorkQueue

from tests.support.conduit_parameters import values


def test_settings_of_compile_time_are_the_seeds_by_default() -> None:
    chosen = values()
    found = (chosen.poll_burst, chosen.smsg_burst, chosen.smsg_peer_burst, chosen.use_spinlock)
    assert found == (10, 20, 4, False)


class Watched:
    """A lock that knows whether it is held, and which others must not be when it is taken."""

    def __init__(self, *others: Watched) -> None:
        self.held = 0
        self.taken = 0
        self.others = others

    def __enter__(self) -> None:
        assert not any(other.held for other in self.others), "two locks at a time"
        self.held += 1
        self.taken += 1

    def __exit__(self, *_problem: object) -> None:
        self.held -= 1


class Nic:
    """Messages that have come, an event each, and what of it the conduit asks for."""

    def __init__(self, messages: dict[int, int], events: Sequence[int], **bursts: int) -> None:
        self.lock = Watched()
        self.lost = False
        self.depth = 100
        self.left = messages
        self.events = list(events)
        self.said: list[str] = []
        self.reads = 0
        endpoints = [None, *(self.endpoint(node) for node in range(1, 9))]
        resources = SimpleNamespace(lock=self.lock, endpoints=endpoints, counters={})
        self.queued = Watched(self.lock)
        self.lock.others = (self.queued,)
        work = WorkQueue(9, self.queued)
        chosen = {"burst": 20, "peer_burst": 4} | bursts
        self.transport = SmsgTransport(cast("Any", resources), cast("Any", self), work, **chosen)
        self.transport.deliver = self.deliver
        self.deep = 0

    def get_event(self) -> tuple[ReturnCode, Event | None]:
        assert self.lock.held, "the NIC stands no call beside another"
        if not self.events:
            return ReturnCode.NOT_DONE, None
        self.reads += 1
        return ReturnCode.SUCCESS, Event(EventKind.SMSG, self.events.pop(0))

    def endpoint(self, node: int) -> Any:
        def following() -> tuple[ReturnCode, memoryview | None]:
            assert self.lock.held
            if not self.left.get(node):
                return ReturnCode.NOT_DONE, None
            self.said.append(f"next {node}")
            self.memory = bytearray(headers.credit_message())
            return ReturnCode.SUCCESS, memoryview(self.memory)

        def release() -> None:
            self.said.append(f"release {node}")
            self.left[node] -= 1
            self.memory[:] = bytes(len(self.memory))  # the peer may send into it again

        return SimpleNamespace(smsg_next=following, smsg_release=release)

    def deliver(self, node: int, message: memoryview) -> None:
        assert not self.lock.held, "a handler may take as long as it likes"
        assert bytes(message) == bytes(headers.credit_message()), "it is no copy"
        self.said.append(f"handle {node}")


def test_a_message_is_copied_and_released_before_its_handler_runs() -> None:
    nic = Nic({3: 2}, [3, 3])
    assert nic.transport.poll() == 2
    assert nic.said == ["next 3", "release 3", "handle 3"] * 2


def test_all_messages_of_a_peer_are_taken_at_one_event() -> None:
    """Two came in the wrong order: the first event found none, the second finds both."""
    nic = Nic({2: 0}, [2])
    assert nic.transport.poll() == 0
    nic.left[2], nic.events = 2, [2]
    assert nic.transport.poll() == 2


def test_a_burst_of_events_is_read_at_once_and_again_after_each_message() -> None:
    nic = Nic({1: 3}, [1] * 200)
    nic.transport.poll()
    assert nic.reads == 20 * (1 + 3)
    few = Nic({1: 1}, [1] * 200, burst=5)
    few.transport.poll()
    assert few.reads == 5 * (1 + 1)


def test_a_poll_looks_after_some_peers_each_queued_once() -> None:
    nic = Nic(dict.fromkeys(range(1, 9), 1), [1, 1, 2, 3, 4, 5, 6, 7, 8])
    assert nic.transport.poll() == 4
    assert [word for word in nic.said if word.startswith("handle")] == [
        f"handle {node}" for node in range(1, 5)
    ]
    assert nic.transport.poll() == 4
    assert nic.transport.poll() == 0
    assert nic.queued.taken, "the queue has a lock of its own"


class EngineLock:
    """The rank's, which somebody else has for a while."""

    def __init__(self, busy: int) -> None:
        self.busy = busy
        self.tries = 0

    def acquire(self, blocking: bool) -> bool:
        assert not blocking
        self.tries += 1
        return self.tries > self.busy

    def release(self) -> None:
        self.tries = -1


def test_the_nics_lock_is_a_mutex_or_a_spinlock_and_none_for_one_thread() -> None:
    lock = EngineLock(3)
    engine = cast("Any", SimpleNamespace(lock=lock))
    for mode in (ThreadMode.SEQ, ThreadMode.PARSYNC):
        assert isinstance(nic_lock(engine, mode, spin=True), NoLock)
        assert isinstance(queue_lock(mode), NoLock)
    assert nic_lock(engine, ThreadMode.PAR, spin=False) is lock
    spin = nic_lock(engine, ThreadMode.PAR, spin=True)
    assert isinstance(spin, SpinLock)
    with spin:
        assert lock.tries == 4
    assert lock.tries == -1
    assert isinstance(queue_lock(ThreadMode.PAR), _thread.LockType)


class Host:
    """Has memory for so many bytes in one piece."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.asked: list[int] = []

    def region(self, size: int) -> memoryview:
        self.asked.append(size)
        if size > self.room:
            raise LinkError("there is no memory")
        return memoryview(bytearray(size))

    def release_region(self, _address: int) -> None:
        return


@pytest.mark.parametrize("room", [0, 4096, 1_000_000, 8 << 20, 1 << 30])
def test_the_computed_segment_is_tried(room: int) -> None:
    most = 16 << 20
    host = Host(room)
    found = segment.probe_segment(cast("Any", host), most)
    assert host.asked[0] == most
    assert not found % 4096
    assert found <= min(room, most)
    assert found >= min(room, most) - most / 256 - 4096


@pytest.mark.parametrize(("noprobe", "asked"), [(True, []), (False, [2000 << 12])])
def test_all_checks_of_the_segment_can_be_passed_by(noprobe: bool, asked: list[int]) -> None:
    """A ratio of 1, a size of one's own, and no probe: that size it is."""
    host: Any = Host(1 << 30)
    host.memory_size = lambda: 1 << 20
    chosen = values(physmem_pinnable_ratio=1.0, physmem_max=2000 << 12, physmem_noprobe=noprobe)
    context = SimpleNamespace(network=host)
    resources = cast("Any", SimpleNamespace(parameters=chosen, context=context))
    assert attaching._limit(resources, 1, 0) == 2000 << 12
    assert host.asked == asked


@pytest.mark.parametrize("code", [ReturnCode.SUCCESS, ReturnCode.NOT_DONE])
def test_a_short_message_has_a_descriptor_while_the_nic_takes_it_over(code: ReturnCode) -> None:
    """With none left nothing is sent, and it is tried again later."""
    pool = DescriptorPool(memoryview(bytearray(DescriptorPool.size(1))), 1)
    free: list[int] = []

    def sent(message: memoryview, _data: memoryview) -> ReturnCode:
        free.append(len(pool))
        return code

    endpoints = [None, SimpleNamespace(smsg_send=sent)]
    known = {"endpoints": endpoints, "counters": Counter(), "descriptors": pool}
    resources, queue = cast("Any", SimpleNamespace(**known)), cast("Any", None)
    transport = SmsgTransport(resources, queue, WorkQueue(2, NoLock()), 20, 4)
    assert transport.send(1, headers.credit_message()) is (code is ReturnCode.SUCCESS)
    assert (free, len(pool)) == ([0], 1), "it was the message's meanwhile, and is free again"
    taken = pool.take_descriptor()
    assert taken is not None
    assert not transport.send(1, headers.credit_message())
    assert len(free) == 1, "sent without a descriptor"
