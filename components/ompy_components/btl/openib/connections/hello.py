"""HELLOs: what the two ends of a path say to each other while it is opened. No I/O, no clock.

A HELLO says the generation that its sender is in, where it is there
(`ompy.frameworks.paths.path_life`), and all the queue pairs that it has made for it.

    version u8 | stage u8 | queue pairs u16 | generation u32 | port u16 | length u8 | host
    for each queue pair: lid u16, number u32, first packet u32

Source: reference openmpi.md 5.6 (udcm: connections are made by datagrams).
"""

from __future__ import annotations

from struct import error
from typing import Final, NamedTuple

from ompy.data.header_layout import HeaderLayout
from ompy.frameworks.nic.verbs import Destination
from ompy.frameworks.paths.path_life import Stage

VERSION: Final = 2  # arbitrary: counts changes of what goes over the wire
HELLO_LAYOUT: Final = HeaderLayout(
    "openib.hello", "version u8, stage u8, pairs u16, generation u32, port u16, host_length u8"
)
PAIR_LAYOUT: Final = HeaderLayout("openib.pair", "lid u16, number u32, first_packet u32")
_HELLO: Final = HELLO_LAYOUT.struct
_PAIR: Final = PAIR_LAYOUT.struct


class BadHello(Exception):
    """Bytes that are no HELLO of this version."""


class Hello(NamedTuple):
    """What one end says of a path.

    Attributes:
        generation: of the path, from 1.
        stage: where the sender is in it.
        pairs: the sender's queue pairs.
    """

    generation: int
    stage: Stage
    pairs: tuple[Destination, ...]


def pack_hello(hello: Hello) -> bytes:
    """A HELLO as it is sent. All queue pairs are of one device."""
    first = hello.pairs[0]
    host = first.host.encode()
    head = _HELLO.pack(
        VERSION, hello.stage.value, len(hello.pairs), hello.generation, first.port, len(host)
    )
    pairs = (_PAIR.pack(pair.lid, pair.number, pair.first_packet) for pair in hello.pairs)
    return b"".join((head, host, *pairs))


def unpack_hello(data: memoryview) -> Hello:
    """Read a HELLO.

    Raises:
        BadHello: it is none.
    """
    try:
        version, stage, count, generation, port, length = _HELLO.unpack_from(data)
        if version != VERSION:
            raise BadHello(f"version {version}, not {VERSION}")
        at = _HELLO.size + length
        host = bytes(data[_HELLO.size : at]).decode()
        if len(data) != at + count * _PAIR.size or not count:
            raise BadHello(f"{len(data)} bytes for {count} queue pairs")
        pairs = tuple(
            Destination(lid, number, host, port, first)
            for lid, number, first in _PAIR.iter_unpack(data[at:])
        )
        return Hello(generation, Stage(stage), pairs)
    except (error, ValueError) as problem:  # a text that is none is a ValueError, too
        raise BadHello(str(problem)) from None
