"""How a get is made of posts that are aligned as the NIC wants it.

Source: reference gasnet.md 6.4; seed gasnet (RDMA).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ompy.frameworks.nic.gni import GET_ALIGNMENT

from ompy_components.conduit.gni.rdma.transfer_choice import BUFFERED, IMMEDIATE_SIZE, Place, Ways

REST: Final = GET_ALIGNMENT - 1
assert not GET_ALIGNMENT & REST, "a power of two"
assert not IMMEDIATE_SIZE & REST


class Piece(NamedTuple):
    """One post of a get.

    Attributes:
        start: what is read begins here in the peer's segment; aligned.
        length: bytes read; aligned.
        lead: of those, bytes before what is wanted.
        at: where what is wanted goes in the local memory.
        size: bytes wanted.
        place: where what is read goes first.
    """

    start: int
    length: int
    lead: int
    at: int
    size: int
    place: Place


def get_pieces(offset: int, size: int, address: int, *, inside: bool, ways: Ways) -> list[Piece]:
    """The posts of a get of up to the largest size that is not cut.

    Args:
        offset: of the bytes in the peer's segment.
        size: how many, at least one.
        address: of the local memory.
        inside: that lies in the own segment.
        ways: the rules.
    """
    fits = not (ways.local_get_aligned and address & REST)
    if not (offset | size) & REST:
        place = ways.get(size, inside=inside)
        if fits or place in BUFFERED:
            return [Piece(offset, size, 0, 0, size, place)]
    around = _around(offset, size, 0, ways)
    return [around] if around is not None else _split(offset, size, address, inside, ways)


def _around(offset: int, size: int, at: int, ways: Ways) -> Piece | None:
    """The aligned bytes around some, by a buffer; None where they have no room in one."""
    start = offset & ~REST
    length = (offset + size + REST & ~REST) - start
    if length > max(IMMEDIATE_SIZE, ways.get_bounce):
        return None
    place = Place.IMMEDIATE if length <= IMMEDIATE_SIZE else Place.BOUNCE
    return Piece(start, length, offset - start, at, size, place)


def _split(offset: int, size: int, address: int, inside: bool, ways: Ways) -> list[Piece]:
    """First and last bytes by buffers, the middle where it is wanted, if it can be."""
    first, last = -offset & REST, (offset + size) & REST
    middle = size - first - last
    ends = [(offset, first, 0), (offset + size - last, last, size - last)]
    pieces = [_around(begin, count, at, ways) for begin, count, at in ends if count]
    fits = not (ways.local_get_aligned and (address + first) & REST)
    place = ways.get(middle, inside=inside)
    most = middle
    if not fits and place not in BUFFERED:
        most = max(IMMEDIATE_SIZE, ways.get_bounce & ~REST)
        place = Place.BOUNCE if most > IMMEDIATE_SIZE else Place.IMMEDIATE
    for at in range(first, first + middle, most):
        count = min(most, first + middle - at)
        pieces.append(Piece(offset + at, count, 0, at, count, place))
    return [piece for piece in pieces if piece is not None]
