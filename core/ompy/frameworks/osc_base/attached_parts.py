"""The parts of a dynamic window on one host: what each member has attached, by address.

    pieces    a word per member: behind so many places for pieces there is none
    places    three words each: bytes of the piece, or 0 for none; its address for users; and that
              for copies

Only their owner changes these words. A piece is there with its first word, which is stored last and
taken back first. So who looks while it comes or goes finds all of it or nothing.
"""

from __future__ import annotations

from typing import Any, Final

from ompy import raw
from ompy.compiled import U64, U64View, ccall, cclass, cfunc
from ompy.data.errors import ERR_RMA_ATTACH, MPIError
from ompy.frameworks.osc import Place
from ompy.frameworks.osc_base.exposed import unattached
from ompy.frameworks.osc_base.lent_parts import (
    WORD,
    LentMessage,
    LentParts,
    Piece,
    lent_message,
    room_for_parts,
)
from ompy.net.memory.process_copy import ProcessCopy

PIECE: Final = 3  # words; arbitrary: as above


def room_for_pieces(members: int, most: int) -> int:
    """Bytes of all these words, and of those of `LentParts`.

    Args:
        members: how many there are.
        most: pieces that one of them has at a time.
    """
    return room_for_parts(members) + WORD * members * (1 + PIECE * most)


@cclass
class AttachedParts(LentParts):
    """The members' pieces, as one of them reaches them. Bytes in a part are those of a process."""

    _attached: list[Any]
    _most: int
    _pieces: U64View
    __slots__ = tuple(__annotations__)

    def __init__(
        self, copy: ProcessCopy, view: memoryview, first: int, rank: int, members: int, most: int
    ) -> None:
        """The words in a byte view that begin at byte `first`, a multiple of 8; all 0 at first.

        Args:
            copy: between the members' processes.
            view: memory that all members have mapped.
            first: of its bytes.
            rank: of this member.
            members: how many there are.
            most: pieces that one of them has at a time.
        """
        LentParts.__init__(self, copy, view, first, rank, [0] * members)
        start = first + room_for_parts(members)
        self._pieces = view[start : first + room_for_pieces(members, most)].cast("Q")
        self._most = most
        self._attached = []
        self.by_address = True

    @cfunc
    def _table(self, rank: int) -> int:
        """The word of a member's that says how many places there are."""
        return rank * (1 + PIECE * self._most)

    def attach(self, address: int, memory: memoryview) -> None:
        """Have the others reach a piece of this member's memory, which is no part of another.

        Args:
            address: its first byte, for users.
            memory: the piece.

        Raises:
            MPIError: ERR_RMA_ATTACH, there are too many.
        """
        table, words = self._table(self._rank), self._pieces
        places = words[table]
        free = next((n for n in range(places) if not words[table + 1 + PIECE * n]), places)
        if free == self._most:
            detail = f"{free} pieces of memory are attached already: see osc_sm_max_attach"
            raise MPIError(ERR_RMA_ATTACH, detail)
        at = table + 1 + PIECE * free
        words[at + 1], words[at + 2] = address, self._copy.address_of(memory)
        self._attached.append(Piece(words[at + 2], memory))
        words[table] = max(places, free + 1)
        raw.fence()
        words[at] = len(memory)

    def detach(self, address: int) -> None:
        """Nobody reaches the piece that begins at an address any more."""
        table, words = self._table(self._rank), self._pieces
        for number in range(words[table]):
            at = table + 1 + PIECE * number
            if words[at] and words[at + 1] == address:
                words[at] = 0
                raw.fence()
                there = words[at + 2]
                self._attached = [piece for piece in self._attached if piece.first != there]
                self._copy.forget(words[at + 2])
                return

    @ccall
    def own_piece(self, at: U64, size: int) -> Piece | None:
        """The piece of this member's that has bytes which another one's `find_bytes` found."""
        for found in self._attached:
            piece: Piece = found
            first: U64 = piece.first
            if first <= at and at + size <= first + raw.size(piece.memory):
                return piece
        return None

    @ccall
    def find_bytes(self, rank: int, first: int, size: int) -> int:
        """The byte in a member's process where bytes from an address on are; -1 if in no piece."""
        table: int = self._table(rank)
        places: int = self._pieces[table]
        number: int
        for number in range(places):
            at: int = table + 1 + PIECE * number
            length: int = self._pieces[at]
            start: int = self._pieces[at + 1]
            if length and start <= first and first + size <= start + length:
                there: int = self._pieces[at + 2]
                return there + first - start
        return -1

    def message(self, rank: int, place: Place) -> LentMessage:
        """The elements at an address of another member.

        Raises:
            MPIError: ERR_RMA_RANGE, they are not all in one piece that is attached there.
        """
        first, size = place.layout.span(place.number)
        if not size:
            return lent_message(self, rank, 0, 0, place.layout)
        there = self.find_bytes(rank, place.displacement + first, size)
        if there < 0:
            raise unattached(place.displacement + first, size)
        return lent_message(self, rank, there - first, place.number, place.layout)

    def close(self) -> None:
        """Nobody copies from this member any more."""
        table, words = self._table(self._rank), self._pieces
        for number in range(words[table]):
            at = table + 1 + PIECE * number
            if words[at]:
                self.detach(words[at + 1])
        self._pieces = memoryview(bytearray(WORD * len(self.sizes) * (1 + PIECE))).cast("Q")
        self._most = 1
        LentParts.close(self)
