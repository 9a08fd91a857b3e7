"""What goes wrong with devices, paths and peers: one completion for each piece of work, in time."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from ompy.frameworks.nic.base import EventKind
from ompy.frameworks.nic.fabric import Completion, FabricError
from ompy.frameworks.paths.path_watch import MS, PATIENCE_MS, TIMEOUT_MS
from ompy.net.faults.fault_rules import FaultRule
from ompy.net.virtual.virtual_network import Rail
from ompy_components.nic.ofi_emulated.errors import EOVERRUN
from ompy_components.nic.ofi_emulated.links.link import State

from tests.support.fabric_job import Rank, run
from tests.support.fabric_programs import SECOND, Side

# reference ofi.md A6: what a BTL takes for the end of a path
ERRORS = (
    errno.EREMOTEIO,
    errno.EHOSTUNREACH,
    errno.ECONNABORTED,
    errno.ECONNRESET,
    errno.ENOTCONN,
    errno.EHOSTDOWN,
    errno.EIO,
)
CUT = 100 * MS
SILENCE_MS = 100  # the device's ack_timeout_ms


def drain(side: Side, count: int, seconds: float = 10) -> list[Completion]:
    """Wait for so many completions."""
    side.seconds = seconds
    side.wait(lambda: len(side.done) >= count, f"{count} completions")
    found, side.done = side.done, []
    return found


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.get)
def test_the_nth_work_ends_with_an_error(number: int) -> None:
    def program(rank: Rank) -> list[int]:
        side = rank.side()
        side.meet()
        found: list[int] = []
        if rank.rank == 0:
            side.memory[:80] = bytes([1]) * 80
            for index in range(6):
                side.write(8 * index, 8, 8 * index, index)
            found = [one.error for one in sorted(drain(side, 6), key=lambda one: str(one.context))]
            assert rank.script is not None
        side.meet()
        if rank.rank == 1:
            written = [side.memory[8 * index] for index in range(6)]
            assert written == [1, 1, 0, 1, 1, 1], "what ended with an error was not done"
        side.close()
        return found

    rule = FaultRule("work_error", ranks=(0,), peers=(1,), nth=(4,), error=number)
    job, counter = run(program, rules=[rule])
    assert job.results[0] == [0, 0, number, 0, 0, 0]  # type: ignore[attr-defined]
    counter.require("work_error")


def test_work_that_is_refused_at_random() -> None:
    """EAGAIN of a fault script is no error completion: the post has to be repeated."""

    def program(rank: Rank) -> int:
        side = rank.side()
        side.meet()
        before = side.again
        for index in range(50):
            side.write(8 * index, 8, 8 * index, index)
        assert [one.error for one in drain(side, 50)] == [0] * 50
        again = side.again - before
        side.meet()
        side.close()
        return again

    rule = FaultRule("work_error", ranks=(0,), probability=0.3, error=errno.EAGAIN)
    job, counter = run(program, rules=[rule])
    counter.require("work_error", "again")
    assert job.results[0] >= 5  # type: ignore[attr-defined]
    assert job.results[1] == 0  # type: ignore[attr-defined]


def test_a_queue_that_overflows() -> None:
    def program(rank: Rank) -> None:
        side = rank.side()
        side.meet()
        if rank.rank == 0:
            rank.engine.remove_poller(side)
            for index in range(9):
                side.write(8 * index, 8, 8 * index, index)
            domain = side.domain

            def overflown() -> bool:
                domain.progress()  # type: ignore[attr-defined]
                return side.queue.arm() is False

            rank.engine.wait_until(lambda: overflown() and side.queue.lost, SECOND)  # type: ignore[attr-defined]
            for _ in range(2):
                with pytest.raises(FabricError) as told:
                    side.queue.read(10)
                assert told.value.errno == EOVERRUN
            side.queue.close()
        else:
            rank.engine.wait_until(lambda: side.memory[64] == 0 and False, 10 * MS)

    _, counter = run(program, cq_depth=8)
    counter.require("overruns")


def test_completions_that_come_late() -> None:
    def program(rank: Rank) -> None:
        side = rank.side()
        side.meet()
        if rank.rank == 0:
            begun = rank.engine.now()
            side.write(0, 8, 0, "write")
            side.good("write")
            assert 5 * MS <= rank.engine.now() - begun < 6 * MS
        side.meet()
        side.close()

    _, counter = run(program, completion_delay_us=5000)
    counter.require("delayed")


def test_a_peer_that_ends_in_the_middle() -> None:
    """All under way completes with an error, in order; the next attempt to connect is told."""

    def program(rank: Rank) -> Any:
        side = rank.side()
        side.meet()
        if rank.rank == 1:
            side.wait(lambda: side.memory[0] == 7, "the first write")
            rank.nic.close()  # as the kernel closes what a process has
            rank.engine.remove_poller(side)
            return None
        side.memory[:] = bytes([7]) * len(side.memory)
        begun = rank.engine.now()
        for index in range(20):
            side.write(0, 20_000, 0, index)
        found = drain(side, 20)
        took = rank.engine.now() - begun
        assert [one.context for one in found] == list(range(20))
        codes = [one.error for one in found]
        with pytest.raises(FabricError) as told:
            side.write(0, 8, 0, "more")
        with pytest.raises(FabricError) as again:
            side.write(0, 8, 0, "more")
        side.close()
        return codes, took, told.value.errno, again.value.errno

    job, _ = run(program)
    codes, took, told, again = job.results[0]  # type: ignore[attr-defined]
    assert codes == sorted(codes)
    assert set(codes) <= {0, errno.ECONNRESET}
    assert codes[-1] == errno.ECONNRESET
    assert took < SECOND
    assert (told, again) == (errno.EHOSTUNREACH,) * 2


@pytest.mark.parametrize("failover", [True, False])
def test_a_black_hole(failover: bool) -> None:
    """The hosts' agents find out, in bounded time; after it the link is made again."""

    def program(rank: Rank) -> Any:
        rank.nic.failover = failover
        side = rank.side()
        side.meet()
        rank.engine.wait_until(lambda: False, CUT - rank.engine.now())
        found = None
        if rank.rank == 0:
            begun = rank.engine.now()
            for index in range(3):
                side.write(0, 8, 0, index)
            codes = [one.error for one in drain(side, 3)]
            found = codes, (rank.engine.now() - begun) // MS
        rank.engine.wait_until(lambda: False, 2 * SECOND - rank.engine.now())
        if rank.rank == 0:
            side.write(0, 8, 0, "after")
            side.good("after")
        side.meet()
        side.close()
        return found

    until = CUT + 1_800 * MS
    hole = FaultRule("black_hole", direction="both", since=CUT, until=until, gives_up=60 * SECOND)
    job, counter = run(program, rules=[hole])
    counter.require("black_hole")
    codes, took = job.results[0]  # type: ignore[attr-defined]
    assert codes == [errno.EHOSTUNREACH] * 3
    bound = SILENCE_MS + (TIMEOUT_MS if failover else PATIENCE_MS)
    assert bound <= took < bound + 50


def test_a_busy_peer_is_no_dead_one() -> None:
    def program(rank: Rank) -> None:
        side = rank.side()
        side.meet()
        if rank.rank == 1:
            rank.compute(5)
        else:
            side.write(0, 8, 0, "write")
            side.read(0, 100_000, 0, "read")
            assert [one.error for one in drain(side, 2)] == [0, 0]
            assert rank.engine.now() >= 5 * SECOND
        side.meet()
        side.close()

    run(program)


@pytest.mark.parametrize("what", ["link_down", "nic_gone"])
def test_the_link_goes_down(what: str) -> None:
    def program(rank: Rank) -> Any:
        side = rank.side()
        side.meet()
        if rank.rank == 1:
            rank.engine.wait_until(lambda: False, SECOND)
            return None
        for _ in range(200):
            side.post(lambda: side.endpoint.write(*work(side), 1))
            rank.engine.wait_until(lambda: any(one.error for one in side.done), MS)
            codes = {one.error for one in side.done if one.error}
            if codes:
                break
        rank.engine.remove_poller(side)
        if what == "nic_gone":
            with pytest.raises(FabricError) as told:
                side.queue.read(1)
            assert told.value.errno == errno.ENODEV
        return codes, [event.kind for event in rank.nic.events()]

    def work(side: Side) -> tuple[Any, ...]:
        view = side.memory[:1000]
        return view, side.here, side.to, side.there.base, side.there.key

    rule = FaultRule(what, ranks=(0,), nth=(20,))
    job, counter = run(program, rules=[rule])
    counter.require(what)
    codes, events = job.results[0]  # type: ignore[attr-defined]
    if what == "nic_gone":
        assert codes == {errno.ENODEV}
        assert events == [EventKind.DEVICE_FATAL]
    else:
        assert codes == {errno.ECONNRESET}


def test_an_endpoint_that_is_closed_with_work_under_way() -> None:
    """Its work completes nowhere, and its memory is its owner's at once."""

    def program(rank: Rank) -> None:
        side = rank.side()
        side.meet()
        if rank.rank == 0:
            domain: Any = side.domain
            other = domain.endpoint(side.vector, side.queue)
            other.enable()
            room = memoryview(bytearray(100_000))
            theirs = (side.to, side.there.base, side.there.key)
            assert other.read(room, side.here, *theirs, "lost")
            assert other.receive(room, None, "lost too")
            assert other.write(room, side.here, *theirs, "and this")
            rank.engine.wait_until(lambda: bytes(room).count(7) > 0, SECOND)
            assert bytes(room).count(7) < len(room)
            other.close()
            landed = bytes(room)
            side.read(0, 100, 0, "mine")
            side.good("mine")
            assert not side.done
            assert bytes(room) == landed
        else:
            side.memory[:100_000] = bytes([7]) * 100_000
        side.meet()
        side.close()

    run(program)


def test_a_message_of_which_the_rest_never_comes() -> None:
    """The receive that it had taken is there for the next message."""

    def program(rank: Rank) -> None:
        side = rank.side()
        side.meet()
        if rank.rank == 0:
            side.send(0, 200_000, "long")
            rank.engine.wait_until(lambda: False, MS // 5)
            (link,) = side.domain.peers.links  # type: ignore[attr-defined]
            assert link.state is State.CONNECTED
            link.broken(errno.EIO, "as the test wants it")
            assert side.finished("long").error == errno.EIO
            side.memory[:5] = b"short"
            side.send(0, 5, "short")
            side.good("short")
        else:
            side.receive(0, 250_000, "message")
            assert side.good("message").size == 5
            assert bytes(side.memory[:5]) == b"short"
        side.meet()
        side.close()

    run(program, rail=Rail("rail0", window=1000))
