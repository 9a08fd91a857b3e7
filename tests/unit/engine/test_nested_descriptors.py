"""A library's descriptor may be poll sets in poll sets: nothing of ours makes them one too many."""

from __future__ import annotations

import asyncio
import errno
import os
import select
import threading

import pytest
from ompy.data.request import Waitable
from ompy.engine.real import RealEngine
from ompy.engine.wakeup import Wakeup
from ompy.net.base import LinkError
from ompy.net.real import RealNetwork
from ompy.net.virtual.virtual_network import VirtualNetwork
from ompy.runtime.launching.singleton import SingletonWireUp

from tests.support.nesting import LIMIT, deepest, depth

MS = 1_000_000
LONG = 10**12  # ns of idling: the engine then sleeps in its event loop
loops = pytest.mark.parametrize("loop", ["uvloop", "asyncio"])


class Library:
    """What a provider hands out: so many poll sets in each other, the innermost with a bell."""

    def __init__(self, levels: int) -> None:
        self.bell = os.eventfd(0, os.EFD_NONBLOCK)
        self.sets: list[select.epoll] = []
        for _ in range(levels):
            self.wrap()

    @property
    def descriptor(self) -> int:
        return self.sets[-1].fileno() if self.sets else self.bell

    def wrap(self) -> None:
        """One more set around all."""
        outer = select.epoll()
        outer.register(self.descriptor, select.EPOLLIN)
        self.sets.append(outer)

    def ring(self) -> None:
        os.eventfd_write(self.bell, 1)

    def silence(self) -> None:
        os.eventfd_read(self.bell)

    def close(self) -> None:
        for one in self.sets:
            one.close()
        os.close(self.bell)


def test_the_kernel_takes_no_more_than_we_think() -> None:
    library = Library(LIMIT)
    assert depth(library.descriptor) == LIMIT
    with pytest.raises(OSError, match="symbolic links") as caught:
        library.wrap()
    assert caught.value.errno == errno.ELOOP
    library.close()


@loops
@pytest.mark.parametrize("levels", range(LIMIT))
def test_only_the_loop_itself_is_around_a_library(loop: str, levels: int) -> None:
    """Asleep in the loop, the longest chain of this process is the library's and the loop's set."""
    library = Library(levels)
    engine = RealEngine(1, loop=loop)
    engine.wakeup.add_apart(library.descriptor)
    expected = max(levels + 1, 2)  # our own set in the loop's has two
    while deepest() < expected:  # the loop asks the kernel when it first waits
        engine._sleep(0.001, LONG)
    engine._sleep(0.001, LONG)
    assert deepest() == expected
    _check_that_it_wakes(engine, library)
    engine.close()
    library.close()


def _check_that_it_wakes(engine: RealEngine, library: Library) -> None:
    """From the bare set and from the loop; the test's own time limit ends one that sleeps on."""
    for idle in (0, LONG):
        ringing = threading.Timer(0.02, library.ring)
        ringing.start()
        while library.descriptor not in engine.wakeup.ready(0):
            engine._sleep(60.0, idle)
        ringing.join()
        library.silence()
        assert library.descriptor not in engine.wakeup.ready(0)


@loops
def test_one_that_fills_the_kernels_limit_is_slept_on_without_the_loop(loop: str) -> None:
    """The last line: our own sleep is no poll set, so it takes whatever the kernel let be made."""
    library = Library(LIMIT)
    engine = RealEngine(1, loop=loop)
    engine.wakeup.add_apart(library.descriptor)
    with pytest.warns(RuntimeWarning, match="sleeps without its event loop"):
        engine._sleep(0.0, LONG)
    _check_that_it_wakes(engine, library)  # no second warning: it would be an error here
    assert deepest() == LIMIT
    engine.close()
    library.close()


@loops
def test_descriptors_come_and_go_while_the_loop_is_there(loop: str) -> None:
    """The number of one that was closed may be another's at once."""
    before = len(os.listdir("/proc/self/fd"))
    engine = RealEngine(1, loop=loop)
    engine._sleep(0.001, LONG)
    for levels in (1, 4, 2):
        library = Library(levels)
        engine.wakeup.add_apart(library.descriptor)
        engine.wakeup.add_apart(library.descriptor)
        engine.wakeup.remove_apart(library.descriptor)  # it was added twice
        _check_that_it_wakes(engine, library)
        engine.wakeup.remove_apart(library.descriptor)
        library.ring()
        assert engine.wakeup.ready(0) == []
        library.close()
        engine.wakeup.remove_apart(12345)
    engine._sleep(0.001, LONG)
    engine.close()
    assert len(os.listdir("/proc/self/fd")) == before


@loops
def test_a_library_may_close_what_the_loop_was_about_to_watch(loop: str) -> None:
    """Libuv would end the process: the kernel knows no such descriptor any more."""
    engine = RealEngine(1, loop=loop)
    library = Library(1)
    engine._sleep(0.001, LONG)  # else it has descriptors to make, which take the free number
    engine.wakeup.add_apart(library.descriptor)
    assert engine._hub_watches(LONG)  # the loop has not asked the kernel yet
    engine.wakeup.remove_apart(library.descriptor)
    library.close()
    engine.hub().sleep(0.001)
    engine.close()


@pytest.mark.parametrize("levels", [0, 1, LIMIT - 1])
@pytest.mark.parametrize("factory", ["uvloop", "asyncio"])
def test_awaiting_beside_a_library(levels: int, factory: str) -> None:
    """The user's loop is woken by it, too, with no set of ours between."""
    from ompy.engine.asyncio_loops import new_loop

    library = Library(levels)
    engine = RealEngine(1)
    engine.wakeup.add_apart(library.descriptor)
    done = Waitable()
    seen: list[int] = []
    expected = max(levels + 1, 2)

    async def main() -> None:
        waiting = asyncio.ensure_future(engine.completed(done))
        while deepest() < expected:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)  # it has gone to sleep
        seen.append(deepest())
        done.finish()
        await waiting

    loop = new_loop(factory)
    loop.run_until_complete(main())
    loop.close()
    assert seen == [expected]
    engine.close()
    library.close()


@pytest.mark.parametrize("factory", ["uvloop", "asyncio"])
def test_awaiting_beside_one_that_fills_the_limit(factory: str) -> None:
    """Then the rank looks every so often, and says so once."""
    from ompy.engine.asyncio_loops import new_loop

    library = Library(LIMIT)
    engine = RealEngine(1)
    engine.wakeup.add_apart(library.descriptor)
    loop = new_loop(factory)
    for round_ in range(2):
        done = Waitable()
        engine.call_later(20 * MS, done.finish)
        if round_:
            loop.run_until_complete(engine.completed(done))
        else:
            with pytest.warns(RuntimeWarning, match="looks for news every 10 ms"):
                loop.run_until_complete(engine.completed(done))
    loop.close()
    engine.close()
    library.close()


@pytest.mark.parametrize("use_epoll", [True, False])
def test_what_is_ready_among_both_kinds(use_epoll: bool) -> None:
    wakeup = Wakeup(use_epoll=use_epoll)
    library = Library(2)
    bell = os.eventfd(0, os.EFD_NONBLOCK)
    said: list[int] = []
    wakeup.add_apart(library.descriptor)
    assert wakeup.ready(0.001) == []
    wakeup.watch_descriptor(bell, lambda: said.append(os.eventfd_read(bell)))
    assert wakeup.ready(0) == []
    os.eventfd_write(bell, 3)
    assert wakeup.ready(1) == [bell]
    library.ring()
    assert sorted(wakeup.ready(1)) == sorted([bell, library.descriptor])
    assert wakeup.dispatch(wakeup.ready(1)) == 1
    assert said == [3]
    assert wakeup.ready(1) == [library.descriptor]
    assert wakeup.apart == [library.descriptor]
    wakeup.close()
    library.close()
    os.close(bell)


def test_networks_hand_libraries_descriptors_on() -> None:
    engine = RealEngine(1)
    network = RealNetwork(engine, 0, SingletonWireUp())
    library = Library(1)
    network.watch(library.descriptor)
    library.ring()
    assert engine.wakeup.ready(1) == [library.descriptor]
    network.unwatch(library.descriptor)
    assert engine.wakeup.ready(0) == []
    with pytest.raises(LinkError, match="no descriptors"):
        VirtualNetwork.watch(object.__new__(VirtualNetwork), 0)
    network.close()
    engine.close()
    library.close()
