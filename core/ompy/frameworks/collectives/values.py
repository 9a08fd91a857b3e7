"""Small values of any length: several in one message, and from every member to every other."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from struct import Struct
from typing import Final

from ompy.data.convertor import GrowingConvertor
from ompy.frameworks.collectives.exchange import Exchange

_LENGTH: Final = Struct("<I")


def pack_values(values: Sequence[bytes]) -> bytes:
    """Values, each with its length before it."""
    return b"".join(part for value in values for part in (_LENGTH.pack(len(value)), value))


def unpack_values(data: memoryview | bytes) -> list[bytes]:
    """What `pack_values` was given."""
    values = []
    at = 0
    while at < len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        values.append(bytes(data[at : at + length]))
        at += length
    return values


def tell_all(exchange: Exchange, said: bytes) -> Generator[None, None, list[bytes]]:
    """Steps of a schedule: every member hears what each has said, by rank.

    The dissemination of `coll_base.allgather.bruck`, for values whose lengths nobody knows yet.
    """
    rank, size = exchange.rank, exchange.size
    values = [said]  # of this member and those after it
    while len(values) < size:
        have = len(values)
        out = pack_values(values[: size - have])
        room = GrowingConvertor()
        exchange.receive_into(room, (rank + have) % size)
        exchange.send(memoryview(out), (rank - have) % size)
        yield
        assert room.view is not None, "a received message has its memory"
        values += unpack_values(room.view)
    return [values[(other - rank) % size] for other in range(size)]
