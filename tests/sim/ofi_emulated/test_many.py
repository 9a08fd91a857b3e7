"""Several peers, several interfaces, and messages for which there is no receive."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from ompy.frameworks.nic.fabric import Hints

from tests.support.effort import effort
from tests.support.fabric_job import Rank, both, run
from tests.support.fabric_programs import (
    ALL,
    FREE,
    NEEDED,
    OFFERED,
    PLACE,
    PROGRAMS,
    SECOND,
    Remote,
    Side,
    best,
)

MS = 1_000_000  # ns


@pytest.mark.parametrize("seed", range(effort(3)))
def test_everybody_with_everybody(seed: int) -> None:
    """Four ranks, themselves included, write to and send each other at once."""
    ranks, size = 4, 30_000

    def program(rank: Rank) -> None:
        domain: Any = rank.nic.domain(best(rank.nic))
        vector, queue = domain.address_vector(), domain.completion_queue()
        endpoint = domain.endpoint(vector, queue)
        endpoint.enable()
        memory = memoryview(bytearray(ranks * size))
        region = domain.register(memory, ALL, 7)
        room = memoryview(bytearray(ranks * 8))
        done: list[Any] = []

        def until(count: int) -> None:
            def enough() -> bool:
                done.extend(queue.read(100))
                return len(done) >= count

            assert rank.engine.wait_until(enough, 10 * SECOND), (count, done)

        for peer in range(ranks):
            assert endpoint.receive(room[8 * peer : 8 * peer + 8], None, ("receive", peer))
        names = rank.gather(PLACE.pack(region.base, region.key) + endpoint.name())
        there = [Remote(*PLACE.unpack_from(name)) for name in names]
        peers = [vector.insert(name[PLACE.size :]) for name in names]
        mine = memoryview(bytearray([rank.rank + 1]) * size)
        for peer in range(ranks):
            at = there[peer].base + rank.rank * size
            while not endpoint.write(mine, None, peers[peer], at, there[peer].key, ("write", peer)):
                until(0)
                rank.engine.wait_until(lambda: False, 10_000)
            assert endpoint.send(mine[:8], None, peers[peer], ("send", peer))
        until(3 * ranks)
        rank.context.wireup.fence()
        until(3 * ranks)
        assert sorted(one.context for one in done) == sorted(
            (what, peer) for what in ("receive", "write", "send") for peer in range(ranks)
        )
        assert not any(one.error for one in done)
        assert sorted(room[::8]) == [1, 2, 3, 4], "a message of each"
        for peer in range(ranks):
            assert set(memory[peer * size : (peer + 1) * size]) == {peer + 1}
        domain.close()

    run(program, seed=seed, hosts=range(ranks))


def test_each_interface_is_a_domain() -> None:
    def program(rank: Rank) -> list[str]:
        infos = rank.nic.infos(Hints(NEEDED, mr_mode=OFFERED, provider="emulated"))
        for info in infos:
            engine = rank.engine
            side = Side(engine, rank.rank, rank.nic, info, rank.swap)
            interface = side.vector.find(side.to).listener.host  # type: ignore[attr-defined]
            assert interface == f"{info.domain}/{1 - rank.rank}"
            PROGRAMS["writes and reads"](side)
            side.close()
            rank.context.wireup.fence()
        return [info.domain for info in infos]

    job, _ = run(program, rails=2)
    assert job.results == [["rail0", "rail1"]] * 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("count", [3, 20])
def test_messages_wait_for_receives(count: int) -> None:
    """Some at the receiver, the others in the sender; none is lost, and order holds."""

    def program(rank: Rank) -> None:
        side = rank.side()
        side.meet()
        if rank.rank == 0:
            for index in range(count):
                side.memory[index] = index
                side.send(index, 1, index)
            rank.engine.wait_until(lambda: False, 5 * MS)
            assert not side.done, "delivered is what is in a receive"
            for index in range(count):
                side.good(index)
        else:
            rank.engine.wait_until(lambda: False, 10 * MS)
            for index in range(count):
                side.receive(index, 1, index)
                rank.engine.wait_until(lambda: False, 50_000 * (index % 3))
            for index in range(count):
                side.good(index)
            assert bytes(side.memory[:count]) == bytes(range(count))
        side.meet()
        side.close()

    _, counter = run(program, rx_size=4)
    assert (counter.delivered["stalled"] > 0) is (count > 4)


def test_who_waits_for_a_receive_hears_when_the_endpoint_closes() -> None:
    def program(rank: Rank) -> None:
        side = rank.side()
        side.meet()
        if rank.rank == 0:
            for index in range(4):
                side.send(0, 8, index)
            # what waits at the peer is never received; what waits here is refused
            found = [side.finished(index).error for index in (2, 3)]
            assert found == [errno.ENOTCONN] * 2
            side.read(0, 8, 0, "read")
            assert side.finished("read").error == errno.ENOTCONN
            rank.engine.remove_poller(side)
        else:
            rank.engine.wait_until(lambda: False, 5 * MS)
            side.endpoint.close()
            rank.engine.wait_until(lambda: False, 5 * MS)

    _, counter = run(program, rx_size=2)
    counter.require("stalled", "refused")


def test_the_last_bytes_of_a_region() -> None:
    """Nothing at the end of memory is out of bounds, and zero bytes are allowed there too."""

    def program(side: Side) -> None:
        side.meet()
        if side.rank == 0:
            size = len(side.memory)
            side.read(0, 16, size - 16, "last")
            side.good("last")
            side.write(0, 0, size, "none")
            side.good("none")
            side.read(0, 0, size, "none")
            side.good("none")
            side.write(0, FREE, 0, "most")
            side.good("most")
        side.meet()

    run(both(program))
