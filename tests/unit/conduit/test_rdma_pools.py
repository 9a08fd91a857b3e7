"""Descriptors, buffers, registrations; what follows a completion, in order."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest
from ompy.data.errors import MPIError
from ompy.frameworks.conduit import Transfer
from ompy.frameworks.nic.gni import Event, EventKind, MemoryHandle, ReturnCode
from ompy_components.conduit.gni.rdma.buffers import BouncePool
from ompy_components.conduit.gni.rdma.completion import Completions, Joined
from ompy_components.conduit.gni.rdma.descriptors import NOTHING, DescriptorPool, Flag
from ompy_components.conduit.gni.rdma.flags import EXCLUSIVE, ORDER, PostFlag
from ompy_components.conduit.gni.rdma.registrations import TemporaryRegistrations

from tests.support.conduit_parameters import values

HANDLE = MemoryHandle(1, 2)
DONE = [False, True]


def memory(size: int) -> memoryview:
    return memoryview(bytearray(size))


def test_the_descriptor_that_came_back_last_goes_out_first() -> None:
    pool = DescriptorPool(memory(DescriptorPool.size(3)), 3)
    taken = [pool.take_descriptor() for _ in range(3)]
    assert pool.take_descriptor() is None
    assert all(one is not None and len(one.immediate) == 128 for one in taken)
    one, other = taken[0], taken[2]
    assert one is not None
    assert other is not None
    one.immediate[:], other.immediate[:] = b"\1" * 128, b"\2" * 128
    assert one.immediate[127] == 1, "each has its own"
    for back in (one, other):
        pool.give(back)
    assert len(pool) == 2
    assert [pool.take_descriptor(), pool.take_descriptor(), pool.take_descriptor()] == [
        other,
        one,
        None,
    ]


def test_bounce_buffers_are_as_many_as_the_seed_computes() -> None:
    assert BouncePool(memory(BouncePool.size(values())), values()).count == 32
    odd = values(put_bounce_register_cutover=10_001, bounce_size=30_000)
    pool = BouncePool(memory(BouncePool.size(odd)), odd)
    assert pool.count == 2
    one, other = pool.take_bounce_buffer(), pool.take_bounce_buffer()
    assert one is not None
    assert other is not None
    assert min(len(one), len(other)) >= 10_001
    assert pool.take_bounce_buffer() is None
    pool.give(one)
    assert pool.take_bounce_buffer() is one
    none = values(put_bounce_register_cutover=0, get_bounce_register_cutover=0)
    assert BouncePool(memory(0), none).count == BouncePool.size(none) == 0


class Domain:
    """Has so many registrations."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.log: list[str] = []

    def register(self, _memory: memoryview) -> tuple[ReturnCode, MemoryHandle | None]:
        if not self.left:
            return ReturnCode.ERROR_RESOURCE, None
        self.left -= 1
        return ReturnCode.SUCCESS, HANDLE

    def deregister(self, _handle: MemoryHandle) -> ReturnCode:
        self.left += 1
        self.log.append("UNREGISTER")
        return ReturnCode.SUCCESS


@pytest.mark.parametrize(("bound", "left", "got"), [(2, 9, 2), (1, 9, 1), (0, 3, 3), (5, 3, 3)])
def test_registrations_have_a_bound_and_the_nic_has_one(bound: int, left: int, got: int) -> None:
    known = TemporaryRegistrations(cast("Any", Domain(left)), bound)
    while known.register_temporarily(memory(8)) is not None:
        pass
    assert known.held == got
    assert known.refused is (got == left), "the NIC said no, not the bound"
    known.give(HANDLE)
    assert known.register_temporarily(memory(8)) is not None
    assert not known.refused


class Story(Transfer):
    """Everything that is done when a post is complete, in its order."""

    def __init__(self, burst: int = 10) -> None:
        self.domain = Domain(1)
        self.log = self.domain.log
        story = self

        class Bounce(BouncePool):
            def give(self, buffer: memoryview) -> None:
                story.log.append("UNBOUNCE")

        class Descriptors(DescriptorPool):
            def give(self, descriptor: Any) -> None:
                story.log.append("descriptor")
                super().give(descriptor)

        class Raised(Flag):
            def __setattr__(self, name: str, value: object) -> None:
                story.log.append("COMPLETION_FLAG")

        self.flag_class = Raised
        self.pool = Descriptors(memory(DescriptorPool.size(16)), 16)
        self.registrations = TemporaryRegistrations(cast("Any", self.domain), 1)
        self.events: list[tuple[ReturnCode, Event | None]] = []
        resources = SimpleNamespace(
            domain=SimpleNamespace(processor_copies=lambda _: None),
            local_queue=self,
            lock=nullcontext(),
            parameters=values(poll_burst=burst),
            tracing=SimpleNamespace(trace=SimpleNamespace(active=False)),
        )
        self.completions = Completions(
            cast("Any", resources),
            self.pool,
            Bounce(NOTHING, values(bounce_size=0)),
            self.registrations,
        )

    def get_event(self) -> tuple[ReturnCode, Event | None]:
        return self.events.pop(0) if self.events else (ReturnCode.NOT_DONE, None)

    def count(self) -> int:
        return len(self.events)

    def done(self, *, is_get: bool) -> None:
        self.log.append("COMPLETION_OP")

    def post(self, flags: PostFlag, status: ReturnCode = ReturnCode.SUCCESS) -> memoryview:
        made = self.pool.take_descriptor()
        assert made is not None
        made.post.local = memoryview(b"...wanted.")
        target = memoryview(bytearray(6))
        made.target, made.lead, made.flags = target, 3, int(flags)
        if flags & PostFlag.UNREGISTER:
            made.registration = self.registrations.register_temporarily(target)
        made.after = lambda: self.log.append("SEND")
        made.flag = self.flag_class.__new__(self.flag_class)
        made.transfer = self
        event = Event(EventKind.POST, 1, post=made.post, status=status)
        self.events.append((ReturnCode.SUCCESS, event))
        return target


COMBINATIONS = [
    flags
    for flags in map(PostFlag, range(sum(PostFlag) + 1))
    if not flags & ~sum(PostFlag)
    and not any(flags & one and flags & other for one, other in EXCLUSIVE)
]


@pytest.mark.parametrize("flags", COMBINATIONS)
def test_what_follows_a_completion_comes_in_its_order(flags: PostFlag) -> None:
    story = Story()
    target = story.post(flags)
    assert story.completions.poll() == 1
    expected = [flag.name for flag in ORDER if flags & flag]
    copied = bytes(target) == b"wanted"
    assert copied is ("COPY" in expected)
    before = [name for name in expected if name in ("UNREGISTER", "UNBOUNCE")]
    after = [name for name in expected if name not in ("COPY", *before)]
    assert story.log == [*before, "descriptor", *after]
    assert len(story.pool) == 16
    assert not story.registrations.held


def test_a_poll_takes_a_burst_and_a_failure_does_not_stop_it() -> None:
    story = Story(burst=3)
    op = PostFlag.COMPLETION_OP
    bad = ReturnCode.TRANSACTION_ERROR
    for status in (bad, ReturnCode.SUCCESS, bad, ReturnCode.SUCCESS, ReturnCode.SUCCESS):
        story.post(op | PostFlag.UNBOUNCE, status)
    with pytest.raises(MPIError, match="rank -1, flags 0x120 failed: transaction failed"):
        story.completions.poll()
    back = ["UNBOUNCE", "descriptor"]
    assert story.log == [*back, *back, "COMPLETION_OP", *back]
    assert [story.completions.poll() for _ in range(2)] == [2, 0]
    assert len(story.pool) == 16


def test_posts_of_other_parts_are_told_themselves_and_an_overrun_is_fatal() -> None:
    story = Story()
    post: Any = SimpleNamespace(context=lambda event: story.log.append(event.status.name))
    story.events.append((ReturnCode.SUCCESS, Event(EventKind.POST, 1, post=post)))
    assert story.completions.poll() == 1
    assert story.log == ["SUCCESS"]
    story.events.append((ReturnCode.ERROR_RESOURCE, Event(EventKind.POST, 1, post=post)))
    with pytest.raises(MPIError, match="overrun"):
        story.completions.poll()


def test_several_posts_are_one_transfer() -> None:
    story = Story()
    joined = Joined(story, 3)
    told = []
    for _ in range(3):
        joined.done(is_get=True)
        told.append(len(story.log))
    assert told == [0, 0, 1]
