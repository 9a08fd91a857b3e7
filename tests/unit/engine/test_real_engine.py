"""The real engine waits in every way it can, and is woken from each."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from ompy.data.errors import MPIError
from ompy.data.request import Waitable
from ompy.engine.asyncio_loops import new_loop
from ompy.engine.base import Poller
from ompy.engine.real import RealEngine
from ompy.engine.wakeup import Wakeup

MS = 1_000_000


@pytest.fixture(params=["auto", "asyncio"])
def engine(request: pytest.FixtureRequest) -> Iterator[RealEngine]:
    made = RealEngine(1, loop=request.param)
    yield made
    made.close()


class Countdown(Poller):
    """Completes a waitable after so many polls."""

    def __init__(self, polls: int) -> None:
        self.left = polls
        self.done = Waitable()

    def poll(self) -> int:
        self.left -= 1
        if self.left == 0:
            self.done.finish()
            return 1
        return 0

    def arm(self) -> bool:
        return False  # there is always more to poll: never park


def test_polls_until_complete(engine: RealEngine) -> None:
    poller = Countdown(1000)
    engine.add_poller(poller)
    assert engine.wait(poller.done)
    assert poller.left == 0
    engine.remove_poller(poller)
    engine.progress()
    assert poller.left == 0


class Teller(Poller):
    """Has others polled once."""

    def __init__(self, engine: RealEngine, others: list[Poller]) -> None:
        self._engine = engine
        self._others = others

    def poll(self) -> int:
        for other in self._others:
            self._engine.poll_soon(other)
        return len(self._others)


def test_what_is_polled_once_follows_in_the_same_round(engine: RealEngine) -> None:
    one, two = Countdown(1), Countdown(2)
    teller = Teller(engine, [one, two])
    engine.add_poller(teller)
    assert engine.progress() == 3
    engine.remove_poller(teller)
    assert (one.left, two.left) == (0, 1)
    assert engine.arm_pollers()
    engine.progress()
    engine.poll_soon(two)
    assert not engine.arm_pollers(), "it must not sleep now"
    assert engine.progress() == 1
    assert (one.left, two.left) == (0, 0)
    assert engine.arm_pollers()
    engine.disarm_pollers()


def test_timeout(engine: RealEngine) -> None:
    begun = time.monotonic()
    assert not engine.wait(Waitable(), 30 * MS)
    assert time.monotonic() - begun >= 0.03
    assert not engine.wait_until(lambda: False, 5 * MS)
    assert engine.wait_until(lambda: True)


def test_a_long_wait_leaves_the_core_now_and_then() -> None:
    """Yielding alone does not: the kernel may go on with the rank that yields.

    How often within 100 ms depends on the turns that a busy machine gives us.
    """
    engine = RealEngine(1, park_ms=10_000)
    slept = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
    for _ in range(30):
        assert not engine.wait(Waitable(), 100 * MS)
        if resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - slept >= 5:
            break
    else:
        pytest.fail("it has not slept five times in 3 s")
    engine.close()


@pytest.mark.parametrize("delay", [0, 5, 300])
def test_timer_wakes(engine: RealEngine, delay: int) -> None:
    waitable = Waitable()
    engine.call_later(delay * MS, waitable.finish)
    assert engine.wait(waitable, 5000 * MS)


@pytest.mark.parametrize("idle", [0.005, 0.2])
def test_descriptor_wakes(engine: RealEngine, idle: float) -> None:
    """From the bare epoll (short idle) and from the hub (long idle)."""
    bell = os.eventfd(0, os.EFD_NONBLOCK)
    waitable = Waitable()
    engine.wakeup.watch_descriptor(bell, waitable.finish)
    thread = threading.Timer(idle, lambda: os.eventfd_write(bell, 1))
    thread.start()
    assert engine.wait(waitable, 5000 * MS)
    thread.join()
    engine.wakeup.remove(bell)
    os.close(bell)


def test_completion_by_another_thread(engine: RealEngine) -> None:
    waitable = Waitable()

    def complete() -> None:
        time.sleep(0.05)
        with engine.lock:
            waitable.finish()

    thread = threading.Thread(target=complete)
    thread.start()
    assert engine.wait(waitable, 5000 * MS)
    thread.join()


def test_many_threads_wait_at_once(engine: RealEngine) -> None:
    waitables = [Waitable() for _ in range(6)]
    threads = [threading.Thread(target=engine.wait, args=(w, 5000 * MS)) for w in waitables]
    for thread in threads:
        thread.start()
    for number, waitable in enumerate(waitables):
        engine.call_later((number + 1) * 10 * MS, waitable.finish)
    for waitable in waitables:
        assert engine.wait(waitable, 5000 * MS)
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()


@pytest.mark.parametrize("idle", [0.02, 0.25])
def test_signal_reaches_the_waiting_caller(engine: RealEngine, idle: float) -> None:
    class Alarm(Exception):
        pass

    def ring(*_: object) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, idle)
        with pytest.raises(Alarm):
            engine.wait(Waitable(), 5000 * MS)
    finally:
        signal.signal(signal.SIGALRM, before)
    later = Waitable()
    engine.call_later(200 * MS, later.finish)
    assert engine.wait(later, 5000 * MS), "the engine works on after the signal"


def test_users_own_asyncio_run_works_beside_the_hub(engine: RealEngine) -> None:
    slow = Waitable()
    engine.call_later(150 * MS, slow.finish)
    engine.wait(slow)
    engine.hub().turn()

    async def users() -> int:
        await asyncio.sleep(0.001)
        return 7

    assert asyncio.run(users()) == 7
    again = Waitable()
    engine.call_later(150 * MS, again.finish)
    assert engine.wait(again, 5000 * MS)


def test_hub_gives_the_loop_turns(engine: RealEngine) -> None:
    said: list[int] = []
    engine.hub().loop.call_soon(said.append, 1)
    engine.hub().turn()
    assert said == [1]


@pytest.mark.parametrize("delay", [0, 1, 30])
def test_awaiting_beside_other_coroutines(engine: RealEngine, delay: int) -> None:
    async def main() -> list[str]:
        said: list[str] = []
        waitable = Waitable()
        engine.call_later(delay * MS, waitable.finish)

        async def other() -> None:
            await asyncio.sleep(0)
            said.append("other")

        await asyncio.gather(engine.completed(waitable), other())
        said.append("done")
        # a blocking wait inside a coroutine polls and never enters the hub
        blocking = Waitable()
        engine.call_later(delay * MS, blocking.finish)
        assert engine.wait(blocking, 5000 * MS)
        return said

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(main()) == ["other", "done"]


def test_cancelled_await_leaves_the_waitable(engine: RealEngine) -> None:
    async def main() -> None:
        waitable = Waitable()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(engine.completed(waitable), 0.02)
        assert not waitable.complete
        engine.call_later(MS, waitable.finish)
        await engine.completed(waitable)

    asyncio.run(main())


def test_callbacks_do_not_poll(engine: RealEngine) -> None:
    depth: list[int] = []

    class Nosy(Poller):
        def poll(self) -> int:
            depth.append(engine.progress())
            return 1

    engine.add_poller(Nosy())
    assert engine.progress() == 1
    assert depth == [0]


@pytest.mark.parametrize("use_epoll", [True, False])
def test_wakeup_kinds(use_epoll: bool) -> None:
    wakeup = Wakeup(use_epoll=use_epoll)
    bell = os.eventfd(0, os.EFD_NONBLOCK)
    said: list[int] = []
    assert wakeup.ready(0) == []
    wakeup.watch_descriptor(bell, lambda: said.append(os.eventfd_read(bell)))
    assert wakeup.ready(0.001) == []
    os.eventfd_write(bell, 3)
    assert wakeup.dispatch(wakeup.ready(1)) == 1
    assert said == [3]
    assert wakeup.fileno() >= 0
    wakeup.remove(bell)
    wakeup.remove(bell)
    os.eventfd_write(bell, 3)
    assert wakeup.ready(0) == []
    wakeup.close()
    os.close(bell)


def test_loop_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, module in (("uvloop", "uvloop"), ("asyncio", "asyncio")):
        loop = new_loop(kind)
        assert type(loop).__module__.startswith(module)
        loop.close()
    monkeypatch.setitem(__import__("sys").modules, "uvloop", None)
    with pytest.raises(MPIError, match="uvloop"):
        new_loop("uvloop")
    loop = new_loop("auto")
    assert type(loop).__module__.startswith("asyncio")
    loop.close()


def test_a_long_wait_in_an_exit_hook_needs_no_loop() -> None:
    """As in MPI_Finalize at the end of a program: nothing can import uvloop any more."""
    code = (
        "import atexit\n"
        "from ompy.data.request import Waitable\n"
        "from ompy.engine.real import RealEngine\n"
        "engine = RealEngine()\n"
        "atexit.register(lambda: print(engine.wait(Waitable(), 300_000_000)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


class Rung(Exception):
    pass


@pytest.mark.parametrize("how", ["sleep", "turn"])
def test_a_signal_that_hits_the_way_out_of_the_loop(engine: RealEngine, how: str) -> None:
    """Its handler raises where `_leave` begins: once nobody left the loop any more."""
    hub = engine.hub()
    leave, struck = hub._leave, []

    def interrupted() -> None:
        if not struck:
            struck.append(1)
            raise Rung
        leave()

    hub._leave = interrupted
    with pytest.raises(Rung):
        hub.sleep(0.01) if how == "sleep" else hub.turn()
    hub._leave = leave
    hub.sleep(0.01)
    hub.turn()


def test_what_a_callback_of_the_loop_raises_comes_out(engine: RealEngine) -> None:
    def broken() -> None:
        raise Rung

    engine.hub().loop.call_later(0.01, broken)
    with pytest.raises(Rung):
        engine.hub().sleep(60)
    engine.hub().sleep(0.01)


@pytest.mark.parametrize("has_core", [True, False])
def test_a_word_is_looked_for_while_others_are_polled(engine: RealEngine, has_core: bool) -> None:
    """It gives up after a bounded number of looks: then the rank waits like for anything else."""
    engine.has_core = has_core

    class Writer(Poller):
        polls = 0

        def poll(self) -> int:
            self.polls += 1
            if self.polls == 5:
                memory[8] = 7
            return 0

    memory = memoryview(bytearray(16))
    writer = Writer()
    engine.add_poller(writer)
    assert engine.look_for(memory, 8, 0)
    assert writer.polls == 0  # it was there
    assert engine.look_for(memory, 8, 7)
    assert writer.polls == 5
    assert not engine.look_for(memory, 8, 8)
    assert 5 < writer.polls < 1000
    assert not engine.look_for(memory, 0, 1)
    engine.remove_poller(writer)
