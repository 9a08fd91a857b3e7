"""Leaks: what is left when a rank has ended."""

from __future__ import annotations

import gc
import os
import threading
from collections import Counter
from typing import ClassVar

from ompy.conformance.btl.driver import Driver
from ompy.conformance.btl.suite import Suite, Worlds
from ompy.frameworks.btl import BtlModule, Descriptor, Endpoint


class LeakSuite(Suite):
    """Pollers, timers, sockets, objects, threads, file descriptors."""

    title: ClassVar[str] = "leaks"

    def test_pollers(self, worlds: Worlds) -> None:
        """The engine polls nothing of it any more."""

        def program(driver: Driver) -> None:
            engine = driver.engine
            _use(driver)
            driver.finalize()
            left = [type(poller).__name__ for poller in engine._pollers]
            assert not left, f"still polled: {left}"

        worlds.make(3).run(program)

    def test_timers(self, worlds: Worlds) -> None:
        """No timer of it is pending: finalize cancels what has not come."""

        def program(driver: Driver) -> None:
            _use(driver)
            driver.finalize()
            left = driver.engine._timers.pending()
            assert not left, f"{len(left)} timers are pending, such as {left[0].callback}"

        worlds.make(3).run(program)

    def test_sockets(self, worlds: Worlds) -> None:
        """Every stream, listener, datagram socket and readiness set is closed."""

        def program(driver: Driver) -> None:
            _use(driver)
            driver.finalize()
            assert not driver.wire.sources, f"still open: {list(driver.wire.sources.values())}"
            assert not driver.wire.watches, "a readiness set is still open"

        worlds.make(3).run(program)

    def test_objects(self, worlds: Worlds) -> None:
        """Modules, endpoints and descriptors die with their job."""
        before = _alive()
        worlds.make(3).run(_use)
        gc.collect()
        left = _alive() - before
        assert not left, f"alive after their job: {dict(left)}"

    def test_system(self, worlds: Worlds) -> None:
        """In the virtual world it starts no thread and opens no file descriptor."""

        def program(driver: Driver) -> None:
            before = _held()
            _use(driver)
            driver.world.meet(driver)
            assert _held() == before

        worlds.make(3).run(program)


def _use(driver: Driver) -> None:
    """Some of everything, so that what is made when needed is made."""
    for rank in driver.peers:
        largest = driver.rails(rank)[0][0].max_send_size
        for size in (0, 100, largest):
            driver.send(rank, driver.data(size))
    driver.quiesce()


def _alive() -> Counter[str]:
    """How many modules, endpoints and descriptors there are, by class."""
    kinds = (BtlModule, Endpoint, Descriptor)
    return Counter(type(found).__name__ for found in gc.get_objects() if isinstance(found, kinds))


def _held() -> tuple[int, int]:
    """Threads and file descriptors of this process."""
    return threading.active_count(), len(os.listdir("/proc/self/fd"))
