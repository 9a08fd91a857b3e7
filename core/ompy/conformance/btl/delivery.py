"""Delivery: every size by every way to send, in order, to and from everybody."""

from __future__ import annotations

from typing import ClassVar, Final

import pytest

from ompy.conformance.btl.driver import HEADER, TAGS, Driver
from ompy.conformance.btl.fragment import Fragment
from ompy.conformance.btl.suite import Suite, Worlds, requires, sizes
from ompy.data.convertor import ContiguousConvertor
from ompy.frameworks.btl import BTL_OWNERSHIP, NO_ORDER
from ompy.net.virtual.virtual_network import Rail

WAYS: Final = ("alloc", "prepare", "gather")
ODD_LIMITS: Final = {"eager_limit": 1001, "rndv_eager_limit": 333, "max_send_size": 3001}
# arbitrary, but no multiple of 2: what is laid out in words or lines must round


class DeliverySuite(Suite):
    """What is sent arrives, once, unaltered, in order."""

    title: ClassVar[str] = "delivery"

    @pytest.mark.parametrize("via", WAYS)
    def test_every_size(self, worlds: Worlds, via: str) -> None:
        """0, 1, powers of two and the limits, each also more and less by one."""
        worlds.make().run(lambda driver: _grid(driver, via))

    @pytest.mark.parametrize("via", WAYS)
    def test_every_size_with_odd_limits(self, worlds: Worlds, via: str) -> None:
        """The same with limits that are no multiple of anything."""
        prefix = f"btl_{worlds.component.name}_"
        odd = {prefix + name: value for name, value in ODD_LIMITS.items()}
        worlds.make(settings=odd).run(lambda driver: _grid(driver, via))

    def test_immediate_sizes(self, worlds: Worlds) -> None:
        """Every size up to the eager limit by sendi, where that is available."""

        def program(driver: Driver) -> int:
            taken = 0
            for rank in driver.peers:
                driver.send(rank, driver.data(1))  # a connection is up before
            driver.quiesce()
            for rank in driver.peers:
                module, _ = driver.rails(rank)[0]
                for size in sizes(module, module.eager_limit):
                    taken += driver.send(rank, driver.data(size), via="sendi").via == "sendi"
            driver.quiesce()
            driver.check_inbox(ordered=worlds.component.capabilities.ordered)
            return taken

        if not any(worlds.make().run(program)):
            pytest.skip("capability off: sendi")

    def test_prepare_takes_no_more_than_fits(self, worlds: Worlds) -> None:
        """A long message is cut into fragments of max_send_size at most, none of them empty."""

        def program(driver: Driver) -> None:
            for rank in driver.peers:
                _send_long(driver, rank)
            driver.quiesce()
            driver.check_inbox(ordered=False)

        worlds.make().run(program)

    @requires("ordered")
    def test_order(self, worlds: Worlds, seed: int) -> None:
        """Fragments of one endpoint arrive in the order they were sent, small among large."""
        worlds.make(3, seed=seed).run(lambda driver: _mixture(driver, 60, ordered=True))

    @requires("ordered")
    def test_order_on_a_narrow_rail(self, worlds: Worlds, seed: int) -> None:
        """The same where a wire takes only pieces of a fragment at a time."""
        rails = (Rail("narrow", latency=200_000, jitter=150_000, bandwidth=50, window=500),)

        def program(driver: Driver) -> None:
            _mixture(driver, 30, ordered=True, largest=4000)

        worlds.make(seed=seed, rails=rails).run(program)

    def test_everybody_to_everybody(self, worlds: Worlds, seed: int) -> None:
        """Sender and tag of each fragment are right in a crowd."""

        def program(driver: Driver) -> None:
            _mixture(driver, 20, ordered=False)
            assert {arrival.tag for arrival in driver.inbox} == set(TAGS)

        worlds.make(5, seed=seed).run(program)


def _grid(driver: Driver, via: str) -> None:
    for rank in driver.peers:
        module, _ = driver.rails(rank)[0]
        for size in sizes(module):
            driver.send(rank, driver.data(size), via=via)
    driver.quiesce()
    driver.check_inbox(ordered=driver.world.component.capabilities.ordered)


def _mixture(driver: Driver, count: int, *, ordered: bool, largest: int = 1 << 30) -> None:
    """Fragments of random sizes by random ways, to every peer in turn."""
    random = driver.engine.random
    for _ in range(count):
        for rank in driver.peers:
            module, _ = driver.rails(rank)[0]
            via = random.choice((*WAYS, "sendi"))
            most = module.eager_limit if via == "sendi" else module.max_send_size
            size = random.choice((0, 1, 30, 200, 3000, module.eager_limit, most))
            driver.send(rank, driver.data(min(size, most, largest)), via=via)
        if random.random() < 0.1:
            driver.idle(20_000)
    driver.quiesce()
    driver.check_inbox(ordered=ordered)


def _send_long(driver: Driver, rank: int) -> None:
    """A message of three fragments and a bit, as a PML sends one."""
    module, endpoint = driver.rails(rank)[0]
    message = driver.data(3 * module.max_send_size + 123)
    convertor = ContiguousConvertor(memoryview(message))
    offset = 0
    while offset < len(message):
        with driver.calling("prepare"):
            descriptor = module.prepare_src(
                endpoint, convertor, offset, NO_ORDER, HEADER, len(message) - offset, BTL_OWNERSHIP
            )
        if descriptor is None:
            driver.idle(10_000)
            continue
        count = descriptor.payload_size
        assert 0 < count <= module.max_send_size - HEADER, f"it took {count} bytes"
        header = driver.data(HEADER)
        descriptor.segment[:HEADER] = header
        data = header + message[offset : offset + count]
        fragment = Fragment(
            driver.rank,
            rank,
            len(driver.sent),
            data,
            TAGS[0],
            "prepare",
            BTL_OWNERSHIP,
            module,
            endpoint,
        )
        if driver.offer(fragment, descriptor) is None:
            driver.idle(10_000)
            continue
        assert fragment.accepted, f"{fragment} was rejected with {fragment.result}"
        offset += count
