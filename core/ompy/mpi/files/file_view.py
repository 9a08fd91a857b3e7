"""A file's view as the API has it: datatypes, a representation, and offsets in etypes."""

from __future__ import annotations

from typing import Any, Final

from ompy.compiled import ccall, cclass
from ompy.data.errors import ERR_ARG, ERR_DISP, ERR_TYPE, MPIError
from ompy.data.layout import Layout
from ompy.frameworks.io_base.view import FileView
from ompy.mpi.datatypes.predefined import BYTE
from ompy.mpi.datatypes.typestate import TypeState
from ompy.mpi.files.representations import find_representation, mark_of

NATIVE: Final = "native"
LAST: Final = (1 << 63) - 1  # MPI-4.1 chapter 14: an offset has 64 bits; so has POSIX' off_t


@cclass
class TypedView:
    """What a rank sees of a file, in its datatypes.

    Attributes:
        displacement: byte where it begins.
        etype: what offsets count.
        filetype: what is repeated.
        datarep: name of the representation.
        representation: of the data; None when bytes are as in memory.
        mark: `mark_of` the representation.
        unit: bytes of an etype in the file.
        seen: the bytes, as io components have it.
        most: etypes from its beginning that a file can have.
        end: bytes that those are.
    """

    datarep: str
    displacement: int
    end: int
    etype: TypeState
    filetype: TypeState
    mark: int
    most: int
    representation: Any
    seen: FileView
    unit: int
    __slots__ = tuple(__annotations__)

    def __init__(
        self, displacement: int, etype: TypeState, filetype: TypeState, datarep: str
    ) -> None:
        """Make a view.

        Raises:
            MPIError: ERR_DISP, ERR_TYPE, ERR_ARG or ERR_UNSUPPORTED_DATAREP.
        """
        if displacement < 0:
            raise MPIError(ERR_DISP, f"a view from byte {displacement} on")
        self.displacement = displacement
        self.etype = etype
        self.filetype = filetype
        self.datarep = datarep
        self.representation = find_representation(datarep)
        self.mark = mark_of(self.representation)
        if not etype.committed or not filetype.committed:
            raise MPIError(ERR_TYPE, "a datatype of the view was never committed: call Commit()")
        layout = filetype.layout
        self.unit = etype.layout.size
        if self.representation is not None:
            layout = self.representation.layout(filetype)
            self.unit = self.representation.layout(etype).size
        if self.unit < 1:
            raise MPIError(ERR_TYPE, "the etype has no bytes")
        if layout.size % self.unit:
            text = f"a filetype of {layout.size} bytes is not made of etypes of {self.unit}"
            raise MPIError(ERR_ARG, text)
        self.seen = FileView(displacement, layout)
        if layout.size and displacement + min(0, layout.true_lower) < 0:
            raise MPIError(ERR_TYPE, "the filetype reaches before the file's beginning")
        self.most = _most_etypes(displacement, layout, self.unit)
        self.end = self.most * self.unit

    @ccall
    def check_room(self, place: int, size: int) -> None:
        """See that a file can have so many bytes from an etype on.

        Raises:
            MPIError: ERR_ARG, it ends before.
        """
        if place < 0 or place > self.most:
            raise beyond(place, self.most)
        self.check_end(place * self.unit, size)

    @ccall
    def check_end(self, position: int, size: int) -> None:
        """The same from a byte on that is seen, which a file has."""
        if size > self.end - position:
            raise beyond(position // self.unit, self.most)

    def etypes_in(self, size: int) -> int:
        """Etypes that a file of so many bytes has in this view, begun ones too."""
        view = self.seen
        if not view.size:
            return 0
        if view.ordered:
            return -(-view.position_at(size) // self.unit)
        tiles = max(0, -(-(size - view.displacement) // max(1, view.layout.extent)))
        return tiles * view.size // self.unit

    @ccall
    def byte_at(self, offset: int) -> int:
        """Where in the file an etype is.

        Raises:
            MPIError: ERR_ARG, no file has so many.
        """
        self.check_room(offset, 0)
        return self.seen.byte_at(offset * self.unit) if self.seen.size else self.displacement


def beyond(place: Any, most: int) -> MPIError:
    """The error of a place that no file has."""
    return MPIError(
        ERR_ARG, f"offset {place}: a file ends at 64 bits, so this view has {most} etypes at most"
    )


def _most_etypes(displacement: int, layout: Layout, unit: int) -> int:
    """How many etypes a view has in a file that is as long as any can be."""
    if not layout.size:
        return LAST // unit
    room: Any = LAST - displacement - max(0, layout.true_lower + layout.true_extent)
    step: Any = layout.extent
    if step < 0:
        room, step = displacement, -step
    tiles: Any = room // step + 1 if step else LAST
    return int(min(tiles * layout.size, LAST)) // unit if room >= 0 else 0


def view_of_bytes() -> TypedView:
    """The view of a file that was just opened."""
    state = BYTE._inner  # noqa: SLF001 - ours
    assert isinstance(state, TypeState)
    return TypedView(0, state, state, NATIVE)
