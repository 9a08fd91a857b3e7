"""usnic's `prepare_src`: which memory is referred to, when bytes are copied, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from ompy.conformance.btl.driver import HEADER, TAGS, Driver
from ompy.data.convertor import ContiguousConvertor, Convertor, GatherConvertor
from ompy.frameworks.btl import (
    BTL_OWNERSHIP,
    COMPLETED,
    NO_ORDER,
    UNREACHABLE,
    BtlModule,
    CompletionCallback,
    Descriptor,
    Endpoint,
)
from ompy.net.faults.middleware import BlackHole, Fault
from ompy_components.btl.usnic.module import UsnicModule

from tests.sim.usnic.test_module import SECOND, lossy, usnic, world
from tests.support.effort import effort

TAG = TAGS[0]
SMALL, SHORT, LONG = 900, 9_000, 60_000  # bytes: one packet, below the threshold, above
HEADED = bytes(range(HEADER))


class Counting(GatherConvertor):
    """A message in three pieces that remembers what was packed, and into which memory."""

    __slots__ = ("packed",)

    def __init__(self, memory: bytearray) -> None:
        view = memoryview(memory)
        super().__init__([view[:5], view[5 : len(view) // 2], view[len(view) // 2 :]])
        self.packed: list[tuple[int, int, object]] = []

    def pack(self, offset: int, target: memoryview) -> int:
        self.packed.append((offset, len(target), target.obj))
        return super().pack(offset, target)


class Told(CompletionCallback):
    """Remembers statuses; `act` is called with each descriptor."""

    def __init__(self, act: Any = lambda descriptor: None) -> None:
        self.statuses: list[int] = []
        self.act = act

    def completed(
        self, module: BtlModule, endpoint: Endpoint, descriptor: Descriptor, status: int
    ) -> None:
        self.statuses.append(status)
        self.act(descriptor)


def pattern(size: int, salt: int = 0) -> bytearray:
    return bytearray((7 * n + salt + n // 251) % 256 for n in range(size))


def prepared(driver: Driver, convertor: Convertor, flags: int = BTL_OWNERSHIP) -> Descriptor:
    module, endpoint = driver.rails(1)[0]
    made = module.prepare_src(endpoint, convertor, 0, NO_ORDER, HEADER, convertor.size, flags)
    assert made is not None
    assert made.payload_size == convertor.size
    made.segment[:HEADER] = HEADED
    return made


def send(driver: Driver, descriptor: Descriptor, told: Told) -> None:
    module, endpoint = driver.rails(1)[0]
    descriptor.callback = told
    if module.send(endpoint, descriptor, TAG) == COMPLETED:
        told.completed(module, endpoint, descriptor, 0)


def registered(module: UsnicModule, memory: object) -> bool:
    """Whether it is memory of packets."""
    return any(slab.memory.obj is memory for slab in module.sending.pool._slabs)


@pytest.mark.parametrize("size", [SMALL, SHORT, LONG])
def test_contiguous_memory_is_not_copied_before_it_is_sent(size: int) -> None:
    def program(driver: Driver) -> None:
        driver.rails(driver.peers[0])
        if driver.rank == 0:
            memory = pattern(size)
            fragment = prepared(driver, ContiguousConvertor(memoryview(memory)))
            assert fragment.payload is not None
            assert fragment.payload.obj is memory
            memory[:] = pattern(size, 1)
            told = Told(lambda _: memory.extend(b"the user's again, who may resize it"))
            send(driver, fragment, told)
            driver.wait(lambda: told.statuses == [0], "completion")
            memory[:] = bytes(len(memory))
        else:
            driver.wait(lambda: bool(driver.inbox), "the fragment")
            assert driver.inbox[0].data == HEADED + pattern(size, 1)
        driver.world.meet(driver)

    world().run(program)


def test_tiny_ones_go_at_once() -> None:
    """Contiguous or not: when `send` returns they are complete, and the memory is the user's."""

    def program(driver: Driver) -> None:
        driver.rails(driver.peers[0])
        for via in ("prepare", "gather") if driver.rank == 0 else ():
            sent = driver.send(1, driver.data(300), via=via)
            assert sent.result == COMPLETED
        driver.quiesce()
        driver.check_inbox(ordered=False)

    world().run(program)


@pytest.mark.parametrize(
    ("size", "threshold", "lazy"),
    [
        (SMALL, 0, False),
        (SHORT, 16_384, False),
        (SHORT, SHORT, True),
        (LONG, 16_384, True),
        (LONG, 0, True),
        (LONG, -1, False),
    ],
)
def test_each_byte_is_packed_once_into_its_packet(size: int, threshold: int, lazy: bool) -> None:
    """At once or when it is sent; what is sent again is not packed again."""

    def program(driver: Driver) -> None:
        driver.rails(driver.peers[0])
        if driver.rank == 0:
            memory = pattern(size)
            message = Counting(memory)
            fragment = prepared(driver, message)
            assert bool(message.packed) is not lazy
            told = Told()
            send(driver, fragment, told)
            driver.wait(lambda: bool(told.statuses), "completion")
            memory[:] = bytes(len(memory))
            endpoint = usnic(driver).endpoints[1]
            driver.wait(lambda: endpoint.drained(), "the last ACK")
            at = 0
            for offset, length, where in sorted(message.packed, key=lambda one: one[:2]):
                assert (offset, registered(usnic(driver), where)) == (at, True)
                at += length
            assert at == size
            assert usnic(driver).statistics.num_resends
        else:
            driver.wait(lambda: bool(driver.inbox), "the fragment")
            assert driver.inbox[0].data == HEADED + pattern(size)
        driver.world.meet(driver)

    def plan(driver: Driver) -> Sequence[Fault]:
        """Nothing gets through at first, and a third of the rest does not."""
        hole = BlackHole(driver.engine, driver.world.counter, gives_up=SECOND, active=True)
        driver.engine.call_later(SECOND // 20, hole.close)
        return [hole, *lossy(0.3)(driver)]

    world(plan=plan, pack_lazy_threshold=threshold).run(program)


@pytest.mark.parametrize("flags", ["send,inplace", "send,inplace,failover"])
@pytest.mark.parametrize("seed", range(effort(1)))
def test_the_user_overwrites_what_is_complete(seed: int, flags: str) -> None:
    """At once (the driver does), while half of the packets are still to be sent again."""

    def program(driver: Driver) -> None:
        random = driver.engine.random
        for _ in range(40):
            size = random.choice((random.randrange(700), random.randrange(60_000)))
            ownership = random.choice((0, BTL_OWNERSHIP))
            via = random.choice(("prepare", "gather"))
            driver.send(driver.peers[0], driver.data(size), via=via, flags=ownership)
        driver.quiesce()
        driver.check_inbox(ordered=False)
        assert usnic(driver).statistics.num_resends

    made = world(seed=seed, plan=lossy(0.2), flags=flags)
    made.run(program)
    made.counter.require("drop", "duplicate", "reorder")


def test_what_is_given_back_unsent() -> None:
    """Its packets are free again, and the user's memory is."""

    def program(driver: Driver) -> None:
        driver.rails(driver.peers[0])
        (module,) = driver.modules
        out = usnic(driver).sending.pool.out
        for size in (SMALL, SHORT, LONG) if driver.rank == 0 else ():
            memory = pattern(size)
            for message in (ContiguousConvertor(memoryview(memory)), Counting(memory)):
                module.free(prepared(driver, message))
                assert usnic(driver).sending.pool.out == out
        driver.world.meet(driver)

    world().run(program)


@pytest.mark.parametrize("held", [True, False])
def test_what_is_lost_has_its_bytes_while_its_callback_runs(held: bool) -> None:
    """Whatever callbacks before it have sent: its packets are free by then."""

    def plan(driver: Driver) -> Sequence[Fault]:
        return [BlackHole(driver.engine, driver.world.counter, gives_up=SECOND, active=True)]

    def program(driver: Driver) -> None:
        if driver.rank == 1:
            driver.idle(4 * SECOND)
            return
        module, endpoint = driver.rails(1)[0]
        taken: list[Descriptor | None] = []

        def look(descriptor: Descriptor) -> None:
            found.append(bytes(descriptor.segment) + bytes(descriptor.payload or b""))
            for _ in range(200):
                made = usnic(driver).small_fragment(1_000, 0)
                made.segment[:] = b"x" * 1_000
                taken.append(made)

        told, found, sent = Told(look), [], []
        first = () if held else (LONG, LONG)  # the others never leave
        for size in (*first, SMALL, SHORT, LONG):
            memory = pattern(size, len(sent))
            for message in (ContiguousConvertor(memoryview(memory)), Counting(memory)):
                send(driver, prepared(driver, message, 0), told)
                sent.append(HEADED + memory)
            made = module.alloc(endpoint, NO_ORDER, size, 0)
            assert made is not None
            made.segment[:] = memory
            send(driver, made, told)
            sent.append(bytes(memory))
        driver.wait(lambda: len(told.statuses) == len(sent), "completions", 9 * SECOND)
        assert set(told.statuses) == {UNREACHABLE}
        assert sorted(found) == sorted(map(bytes, sent))
        for fragment in taken:
            assert fragment is not None
            module.free(fragment)
        assert usnic(driver).sending.pool.out == 0

    settings: dict[str, Any] = {"btl_base_probe_timeout_ms": 0, "retries_max": 2}
    world(plan=plan, flags="send,inplace,failover", **settings).run(program)
