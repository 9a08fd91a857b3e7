"""Nobody who does not know the job key gets anywhere, and a peer that writes nonsense loses."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.net.base import WOULD_BLOCK, Address, LinkError, Stream
from ompy.net.seals.handshake import HELLO
from ompy_components.nic.ofi_emulated.links.accepting import HALF_OPEN_MAX, MAGIC
from ompy_components.nic.ofi_emulated.vector import parse_name

from tests.support.fabric_job import Rank, run
from tests.support.fabric_programs import SECOND, Side


def door_of(side: Side) -> Address:
    """Where the peer's domain listens."""
    return side.vector.find(side.to).listener  # type: ignore[attr-defined, no-any-return]


def say(rank: Rank, stream: Stream, data: bytes) -> None:
    left = memoryview(data)

    def said() -> bool:
        nonlocal left
        left = left[stream.send([left]) :]
        return not left

    assert rank.engine.wait_until(said, SECOND)


def closed(rank: Rank, stream: Stream, seconds: float) -> bool:
    """Whether the other end closes the connection within a time."""
    room = memoryview(bytearray(1000))

    def over() -> bool:
        try:
            return stream.receive_into(room) == 0
        except LinkError:
            return True

    return rank.engine.wait_until(over, round(seconds * SECOND))


NONSENSE = {
    "no magic": b"GET / HTTP/1.0\r\n\r\n" + bytes(60),
    "another protocol": HELLO.pack(b"ompytcp2", bytes(8), 0, 1, 0, bytes(16)),
    "another job": HELLO.pack(MAGIC, b"stranger", 0, 1, 0, bytes(16)),
    "a rank there is not": HELLO.pack(MAGIC, bytes(8), 77, 1, 0, bytes(16)),
}


@pytest.mark.parametrize("what", NONSENSE)
def test_a_stranger_is_sent_away_at_once(what: str) -> None:
    def program(rank: Rank) -> None:
        side = rank.side()
        side.meet()
        if rank.rank == 0:
            stream = rank.context.network.connect(door_of(side))
            say(rank, stream, NONSENSE[what])
            assert closed(rank, stream, 0.01)
            stream.close()
        side.meet()
        side.close()

    run(program)


def test_one_that_proves_nothing_is_sent_away_in_time() -> None:
    """It says who it is, hears what it has to prove, and cannot."""

    def program(rank: Rank) -> None:
        side = rank.side()
        side.meet()
        if rank.rank == 0:
            hello = HELLO.pack(MAGIC, rank.context.job_id, 0, 1, 0, bytes(16))
            lame = rank.context.network.connect(door_of(side))
            say(rank, lame, hello)
            room = memoryview(bytearray(100))
            assert rank.engine.wait_until(lambda: lame.receive_into(room) != WOULD_BLOCK, SECOND)
            say(rank, lame, bytes(32))
            assert closed(rank, lame, 0.01), "the proof is wrong"
            silent = rank.context.network.connect(door_of(side))
            say(rank, silent, hello[:20])
            assert not closed(rank, silent, 0.05)
            assert closed(rank, silent, 0.2), "its time is up"
        side.meet()
        side.close()

    run(program, handshake_timeout_ms=100)


def test_the_oldest_goes_when_there_are_too_many() -> None:
    def program(rank: Rank) -> None:
        side = rank.side()
        side.meet()
        if rank.rank == 0:
            network = rank.context.network
            streams = []
            for _ in range(HALF_OPEN_MAX + 1):
                streams.append(network.connect(door_of(side)))
                say(rank, streams[-1], MAGIC)
            assert closed(rank, streams[0], 0.01)
            assert not closed(rank, streams[1], 0.01)
            for stream in streams:
                stream.close()
        side.meet()
        side.close()

    run(program)


def test_a_peer_that_writes_nonsense_loses_its_connection() -> None:
    def program(rank: Rank) -> Any:
        side = rank.side()
        side.meet()
        if rank.rank == 0:
            (link,) = side.domain.peers.links  # type: ignore[attr-defined]
            say(rank, link._stream, b"\xff" * 48)
        rank.engine.wait_until(lambda: False, SECOND)
        told = len(side.done)
        side.done.clear()
        side.meet()
        side.close()
        return told

    job, _ = run(program)
    assert job.results == [1, 1]  # type: ignore[attr-defined]


def test_names_tell_no_secret() -> None:
    """A name is where a domain listens; the key of the job is not in it."""

    def program(rank: Rank) -> None:
        side = rank.side()
        name = side.endpoint.name()
        assert parse_name(name, 2).rank == rank.rank
        assert rank.context.job_key not in name
        side.meet()
        side.close()

    run(program)
