"""The loop of launcher and agents does what asyncio's does, as far as it goes."""

import asyncio
import os
import signal
import socket

import pytest
from ompy.engine.reactor import Reactor


@pytest.fixture(params=[Reactor, asyncio.new_event_loop], ids=["reactor", "asyncio"])
def loop(request):
    made = request.param()
    yield made
    made.close()


@pytest.fixture
def pair():
    ends = socket.socketpair()
    for end in ends:
        end.setblocking(False)
    yield ends
    for end in ends:
        end.close()


def test_calls_come_in_their_order(loop):
    seen = []
    loop.call_later(0.02, lambda: (seen.append("late"), loop.stop()))
    loop.call_later(0.01, seen.append, "early")
    loop.call_later(0, seen.append, "now").cancel()
    loop.call_soon(seen.append, 1)
    loop.call_soon(seen.append, 2)
    loop.run_forever()
    assert seen == [1, 2, "early", "late"]


def test_stop_ends_after_the_turn(loop):
    seen = []
    loop.call_soon(loop.stop)
    loop.call_soon(lambda: (seen.append("same turn"), loop.call_soon(seen.append, "next")))
    loop.run_forever()
    assert seen == ["same turn"]
    loop.stop()
    loop.run_forever()
    assert seen == ["same turn", "next"]


def test_readers_and_writers(loop, pair):
    seen = []
    near, far = pair

    def readable():
        seen.append(near.recv(100))
        if not seen[-1]:
            loop.stop()

    def writable():
        seen.append("writable")
        assert loop.remove_writer(far)
        assert not loop.remove_writer(far)
        far.send(b"data")
        far.close()

    loop.add_reader(near, pytest.fail, "replaced")
    loop.add_reader(near.fileno(), readable)
    loop.add_writer(far, writable)
    loop.run_forever()
    assert seen == ["writable", b"data", b""]
    assert loop.remove_reader(near)


def test_who_is_removed_in_a_turn_is_not_called_in_it(loop, pair):
    seen = []
    for end, other in (pair, pair[::-1]):
        end.send(b"x")
        loop.add_reader(end, lambda other=other: (seen.append(1), loop.remove_reader(other)))
    loop.call_later(0.02, loop.stop)
    loop.run_forever()
    assert seen
    assert len(seen) != 2  # one goes on being readable; the other was called off before its turn


def test_a_file_cannot_be_waited_for(loop, tmp_path):
    with (tmp_path / "file").open("w") as file, pytest.raises(PermissionError):
        loop.add_reader(file, pytest.fail)


def test_signals_are_callbacks(loop):
    seen = []
    loop.add_signal_handler(signal.SIGUSR1, lambda: (seen.append("one"), loop.stop()))
    loop.add_signal_handler(signal.SIGUSR2, seen.append, "two")
    for number in (signal.SIGUSR2, signal.SIGUSR1):
        loop.call_soon(os.kill, os.getpid(), number)
    loop.run_forever()
    assert sorted(seen) == ["one", "two"]
    assert loop.remove_signal_handler(signal.SIGUSR1)
    assert not loop.remove_signal_handler(signal.SIGUSR1)
    assert loop.remove_signal_handler(signal.SIGUSR2)
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


def test_what_callbacks_raise_is_told(loop, capfd):
    told = []
    loop.set_exception_handler(lambda where, context: told.append((where, context["exception"])))
    loop.call_soon(lambda: 1 / 0)
    loop.call_soon(loop.stop)
    loop.run_forever()
    ((where, problem),) = told
    assert where is loop
    assert isinstance(problem, ZeroDivisionError)
    if isinstance(loop, Reactor):
        loop.default_exception_handler({"message": "a mistake", "exception": problem})
        assert "a mistake\nTraceback" in capfd.readouterr().err


def test_closing_gives_everything_back(pair):
    before = len(os.listdir("/proc/self/fd"))
    loop = Reactor()
    loop.add_signal_handler(signal.SIGUSR1, pytest.fail)
    loop.add_reader(pair[0], pytest.fail)
    loop.close()
    assert len(os.listdir("/proc/self/fd")) == before
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
    assert signal.set_wakeup_fd(-1) == -1
