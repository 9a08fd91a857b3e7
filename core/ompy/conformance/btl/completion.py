"""Completion: each accepted descriptor is completed exactly once, and what that means."""

from __future__ import annotations

from typing import ClassVar, Final

import pytest

from ompy.conformance.btl.driver import SECOND, Driver
from ompy.conformance.btl.fragment import Arrival
from ompy.conformance.btl.suite import Suite, Worlds, sizes
from ompy.frameworks.btl import BTL_OWNERSHIP, PRIORITY, SEND_ALWAYS_CALLBACK, SIGNAL
from ompy.net.virtual.virtual_network import Rail

CHAIN: Final = 200  # fragments; arbitrary: more than rings and windows hold
NARROW: Final = (Rail("narrow", latency=300_000, jitter=100_000, bandwidth=20, window=800),)


class CompletionSuite(Suite):
    """Results, callbacks, ownership, user memory."""

    title: ClassVar[str] = "completion"

    @pytest.mark.parametrize(
        "flags",
        [
            0,
            BTL_OWNERSHIP,
            SEND_ALWAYS_CALLBACK,
            BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK,
            BTL_OWNERSHIP | PRIORITY | SIGNAL,
        ],
        ids=["caller frees", "owned", "always, caller frees", "always, owned", "urgent"],
    )
    def test_exactly_once(self, worlds: Worlds, flags: int) -> None:
        """COMPLETED means done, QUEUED means a callback, SEND_ALWAYS_CALLBACK means one anyhow."""

        def program(driver: Driver) -> None:
            for via in ("alloc", "prepare", "gather"):
                for rank in driver.peers:
                    module, _ = driver.rails(rank)[0]
                    for size in sizes(module)[::3]:
                        driver.send(rank, driver.data(size), via=via, flags=flags)
            driver.quiesce()
            driver.check_inbox(ordered=False)
            for fragment in driver.sent:
                assert fragment.good, f"{fragment}: {fragment.completions}"
                if flags & SEND_ALWAYS_CALLBACK:
                    assert len(fragment.completions) == 1, f"{fragment} had no callback"

        worlds.make().run(program)

    def test_nobody_to_tell(self, worlds: Worlds) -> None:
        """A descriptor without a callback is sent like any other."""

        def program(driver: Driver) -> None:
            for flags in (BTL_OWNERSHIP, BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK):
                for rank in driver.peers:
                    for size in (0, 100, driver.rails(rank)[0][0].max_send_size):
                        driver.send(rank, driver.data(size), flags=flags, told=False)
            driver.quiesce()
            driver.check_inbox(ordered=False)

        worlds.make().run(program)

    @pytest.mark.parametrize("via", ["prepare", "gather", "sendi"])
    def test_user_memory(self, worlds: Worlds, via: str, seed: int) -> None:
        """Sending alters no user memory, and once it is completed nobody looks there again.

        The driver overwrites a fragment's memory within its completion, so that a module which
        completes it too soon delivers something else.
        """

        def program(driver: Driver) -> None:
            for rank in driver.peers:
                driver.send(rank, driver.data(1))
            driver.quiesce()
            for number in range(16):
                for rank in driver.peers:
                    module, _ = driver.rails(rank)[0]
                    most = module.eager_limit if via == "sendi" else module.max_send_size
                    size = most if number == 8 else min(most, (20, 700, 6000)[number % 3])
                    driver.send(rank, driver.data(size), via=via)
            driver.quiesce()
            driver.check_inbox(ordered=False)

        worlds.make(seed=seed, rails=NARROW).run(program)

    def test_nothing_arrives_from_within_send(self, worlds: Worlds) -> None:
        """A rank that sends is not called back with arrivals before it polls."""

        def program(driver: Driver) -> None:
            for rank in driver.peers:
                driver.send(rank, driver.data(10))
            driver.quiesce()
            for via in ("alloc", "prepare", "sendi"):
                for rank in driver.peers:
                    driver.post(rank, driver.data(90))
                driver.world.meet(driver)
                driver.compute(SECOND // 100)  # what the peer has sent is here, and not polled
                before = len(driver.inbox)
                for rank in driver.peers:
                    driver.post(rank, driver.data(100), via=via)
                assert len(driver.inbox) == before, "delivered before the next poll"
            driver.quiesce()
            driver.check_inbox(ordered=False)

        worlds.make().run(program)

    def test_receive_callbacks_may_send(self, worlds: Worlds, seed: int) -> None:
        """An answer can be sent from within the callback that delivers the question."""
        refused: list[int] = []

        def program(driver: Driver) -> None:
            def answer(arrival: Arrival) -> None:
                if len(driver.inbox) < CHAIN:
                    size = len(driver.inbox) * 37 % 900
                    if driver.post(arrival.source, driver.data(size)) is None:
                        refused.append(arrival.source)

            driver.on_arrival = answer
            if driver.rank == 0:
                driver.send(driver.peers[0], driver.data(8))
            driver.wait(lambda: bool(refused) or len(driver.inbox) >= CHAIN - 1, "answers")
            driver.world.meet(driver)
            driver.on_arrival = None
            driver.quiesce()
            driver.check_inbox(ordered=False)

        worlds.make(seed=seed).run(program)

    def test_completion_callbacks_may_send(self, worlds: Worlds, seed: int) -> None:
        """The next fragment can be sent from within the completion of the last."""

        def program(driver: Driver) -> None:
            chains = [_Chain(driver, rank) for rank in driver.peers]
            driver.on_completion = lambda fragment: chains[
                driver.peers.index(fragment.target)
            ].completed()
            for chain in chains:
                chain.completed()
            driver.wait(lambda: all(chain.over for chain in chains), "fragments sent one by one")
            driver.on_completion = None
            driver.quiesce()
            driver.check_inbox(ordered=False)

        worlds.make(seed=seed).run(program)


class _Chain:
    """Fragments to one peer, each sent from within the completion of the one before.

    A completion within `send` does not send another within that one, as it would without end, but
    lets the first one go on: a PML does the same.
    """

    def __init__(self, driver: Driver, target: int) -> None:
        self._driver = driver
        self._target = target
        self._left = CHAIN
        self._due = 0
        self._sending = False
        self.over = False

    def completed(self) -> None:
        """Send the next one."""
        self._due += 1
        if self._sending:
            return
        self._sending = True
        while self._due and not self.over:
            self._due -= 1
            self._left -= 1
            flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK
            offered = self._driver.post(self._target, self._driver.data(300), flags=flags)
            self.over = not self._left or offered is None
        self._sending = False
