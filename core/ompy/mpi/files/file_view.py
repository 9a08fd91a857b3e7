"""A file's view as the API has it: datatypes, a representation, and offsets in etypes."""

from __future__ import annotations

from typing import Any, Final

from ompy.compiled import ccall, cclass
from ompy.data.errors import ERR_ARG, ERR_DISP, ERR_TYPE, MPIError
from ompy.frameworks.io_base.view import FileView
from ompy.mpi.datatypes.predefined import BYTE
from ompy.mpi.datatypes.typestate import TypeState
from ompy.mpi.files.representations import find_representation

NATIVE: Final = "native"


@cclass
class TypedView:
    """What a rank sees of a file, in its datatypes.

    Attributes:
        displacement: byte where it begins.
        etype: what offsets count.
        filetype: what is repeated.
        datarep: name of the representation.
        representation: of the data; None when bytes are as in memory.
        unit: bytes of an etype in the file.
        seen: the bytes, as io components have it.
    """

    datarep: str
    displacement: int
    etype: TypeState
    filetype: TypeState
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
        """Where in the file an etype is."""
        return self.seen.byte_at(offset * self.unit) if self.seen.size else self.displacement


def view_of_bytes() -> TypedView:
    """The view of a file that was just opened."""
    state = BYTE._inner  # noqa: SLF001 - ours
    assert isinstance(state, TypeState)
    return TypedView(0, state, state, NATIVE)
