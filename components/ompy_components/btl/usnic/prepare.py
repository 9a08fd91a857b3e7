"""What `prepare_src` makes: room for the PML's header, and the user's memory behind it.

Contiguous memory is referred to, and copied into packets when these are sent. Other memory is
packed: into the packet at once where one is enough, into several at once below the threshold, and
from there on into each when it is sent. No byte is copied twice.

Source: seed usnic (send dataflow); reference usnic.md 7.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from ompy import raw
from ompy.compiled import ccall, cfunc
from ompy.data.convertor import Convertor

from ompy_components.btl.usnic.headers import CHUNK
from ompy_components.btl.usnic.packets import (
    CHUNK_PAYLOAD,
    FRAG_PAYLOAD,
    Fragment,
    Packet,
    PacketPool,
)


class Span(NamedTuple):
    """A part of a message.

    Attributes:
        convertor: the message.
        offset: its first byte.
        size: bytes.
    """

    convertor: Convertor
    offset: int
    size: int


@ccall
def small(
    pool: PacketPool,
    convertor: Convertor,
    offset: int,
    size: int,
    order: int,
    reserve: int,
    flags: int,
) -> Fragment:
    """A fragment that fits a packet. Made for every short message, so it takes few steps."""
    packet: Packet = pool.take_packet()
    whole: int = reserve + size
    packet.length = whole
    view = convertor.whole() if size else None
    if view is None:
        room = packet.buffer[FRAG_PAYLOAD : FRAG_PAYLOAD + whole]
        fragment: Fragment = Fragment(room, flags, order, packet)
        packet.fragment = fragment
        if size:
            fragment.payload_size = convertor.pack(offset, room[reserve:])
        return fragment
    header = packet.buffer[FRAG_PAYLOAD : FRAG_PAYLOAD + reserve]
    fragment = Fragment(header, flags, order, packet)
    packet.fragment = fragment
    fragment.size = fragment.unacknowledged = whole
    fragment.payload_size = size
    fragment.payload = view if size == raw.size(view) else view[offset : offset + size]
    return fragment


@ccall
def large(
    pool: PacketPool,
    span: Span,
    order: int,
    reserve: int,
    flags: int,
    max_chunk: int,
    lazy_from: int,
) -> Fragment:
    """A fragment that goes in chunks of `max_chunk` bytes at most.

    Args:
        pool: of packets.
        span: what it carries.
        order: ordering tag.
        reserve: bytes for the PML's header.
        flags: descriptor flags.
        max_chunk: bytes of one at most.
        lazy_from: bytes of payload from which on what is not contiguous is packed when it is
            sent; -1 for never.
    """
    convertor, offset, size = span
    view = convertor.whole() if size else None
    lazy = 0 <= lazy_from <= size or reserve > max_chunk
    if size and view is None and not lazy:
        return _filled(pool, span, order, reserve, flags, max_chunk)
    fragment = Fragment(memoryview(bytearray(reserve)), flags, order, None)
    fragment.lengthen(size)
    if view is not None:
        fragment.payload = view[offset : offset + size]
    elif size:
        fragment.convertor, fragment.origin = convertor, offset
    return fragment


@cfunc
def _filled(
    pool: PacketPool, span: Span, order: int, reserve: int, flags: int, max_chunk: int
) -> Fragment:
    """A fragment whose chunks are in their packets, the first one behind the PML's header."""
    convertor, offset, size = span
    first = pool.take_packet()
    header = first.buffer[CHUNK_PAYLOAD : CHUNK_PAYLOAD + reserve]
    fragment = Fragment(header, flags, order, None)
    fragment.lengthen(size)
    fragment.convertor, fragment.origin = convertor, offset  # for who wants to know what is lost
    fragment.filled = deque()
    for start in range(0, reserve + size, max_chunk):
        packet = pool.take_packet() if start else first
        packet.kind, packet.fragment, packet.offset = CHUNK, fragment, start
        packet.length = min(max_chunk, reserve + size - start)
        own = max(0, reserve - start)  # the PML's header
        room = packet.buffer[CHUNK_PAYLOAD + own : CHUNK_PAYLOAD + packet.length]
        convertor.pack(offset + start + own - reserve, room)
        fragment.filled.append(packet)
    return fragment
