"""The memory that a rank exposes in a window, and what is done in it."""

from __future__ import annotations

from ompy.data.errors import ERR_RMA_ATTACH, ERR_RMA_RANGE, ERR_TYPE, MPIError
from ompy.data.kernels import PREDEFINED
from ompy.data.message import Message
from ompy.data.packed import combine_packed
from ompy.frameworks.osc import Place

REPLACE = "MPI_REPLACE"
NO_OP = "MPI_NO_OP"


def beyond_part(first: int, size: int, room: int) -> MPIError:
    """The error of an access to bytes that are not all in a part of so many bytes."""
    return MPIError(ERR_RMA_RANGE, f"bytes {first} to {first + size} of a window of {room} bytes")


def unattached(first: int, size: int) -> MPIError:
    """The error of an access to bytes at an address that are not all in one attached piece."""
    return MPIError(
        ERR_RMA_RANGE, f"the {size} bytes at {first:#x} are not all in one attached piece"
    )


class Exposed:
    """One piece of memory from byte 0 on."""

    def __init__(self, memory: memoryview) -> None:
        self._memory = memory

    def message(self, place: Place) -> Message:
        """The elements at a place.

        Raises:
            MPIError: ERR_RMA_RANGE, some of them are not exposed.
        """
        first, size = place.layout.span(place.number)
        first += place.displacement
        if size and (first < 0 or first + size > len(self._memory)):
            raise beyond_part(first, size, len(self._memory))
        return Message(self._memory, place.displacement, place.number, place.layout)


class Attached(Exposed):
    """Any number of pieces, by address: a dynamic window."""

    def __init__(self) -> None:
        super().__init__(memoryview(b""))
        self._pieces: dict[int, memoryview] = {}

    def attach(self, address: int, memory: memoryview) -> None:
        """Expose a piece.

        Raises:
            MPIError: ERR_RMA_ATTACH, some of it is exposed already.
        """
        end = address + len(memory)
        for start, piece in self._pieces.items():
            if address == start or (address < start + len(piece) and start < end):
                raise MPIError(
                    ERR_RMA_ATTACH,
                    f"the memory from {address:#x} to {end:#x} overlaps what is attached at "
                    f"{start:#x}",
                )
        self._pieces[address] = memory

    def detach(self, address: int) -> None:
        """Expose a piece no longer.

        Raises:
            MPIError: ERR_RMA_ATTACH, none begins there.
        """
        if self._pieces.pop(address, None) is None:
            raise MPIError(ERR_RMA_ATTACH, f"no memory is attached at {address:#x}")

    def message(self, place: Place) -> Message:
        """The elements at an address."""
        first, size = place.layout.span(place.number)
        first += place.displacement
        for start, piece in self._pieces.items():
            if start <= first and first + size <= start + len(piece):
                return Message(piece, place.displacement - start, place.number, place.layout)
        if not size:
            return Message(memoryview(bytearray()), 0, 0, place.layout)
        raise unattached(first, size)


def combine_elements(target: Message, data: memoryview, operation: str) -> None:
    """Combine packed elements of the same kind into those of a window.

    Raises:
        MPIError: ERR_OP or ERR_TYPE, the operation is not defined for them.
    """
    if operation == NO_OP or not target.size:
        return
    if operation == REPLACE:
        target.store(data)
        return
    layout = target.layout
    if not layout.format:
        raise MPIError(ERR_TYPE, f"{operation} on a datatype of mixed contents")
    known = PREDEFINED[operation]
    known.check_layout(layout)
    combine_packed(target, data, known)


def swap_element(target: Message, new: memoryview, compare: memoryview) -> bytearray:
    """Store an element if what is there equals `compare`; what was there."""
    before = target.packed()
    if before == compare:
        target.store(new)
    return before
