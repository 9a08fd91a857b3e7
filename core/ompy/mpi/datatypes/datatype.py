"""`MPI.Datatype`."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final, Self, TypeVar

from ompy.compiled import ccall, cfunc
from ompy.data.errors import ERR_ARG, ERR_COUNT, ERR_TYPE
from ompy.data.loops import NOT_COMMON
from ompy.mpi import constants
from ompy.mpi.communicators.attributes import Attributed, copied, delete_all
from ompy.mpi.datatypes.contents import COMBINERS, contents_of, numbers_of_contents
from ompy.mpi.datatypes.type_codes import SIZED_CODES, kind_and_size
from ompy.mpi.datatypes.typestate import (
    TypeState,
    derived_state,
    packed_end,
    portable_pattern,
    structured_state,
    unpacked_end,
)
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import CONSTANTS, Handle, constant, handle_for, made_plainly, plain_handle
from ompy.mpi.integers import whole_number, whole_numbers
from ompy.mpi.kinds import check_kind
from ompy.mpi.strings import c_string

# NumPy's kind of each character
EXTERNAL32: Final = "external32"
Made = TypeVar("Made", bound="Datatype")


@made_plainly
class Datatype(Attributed):
    """Where the data of an element lie in memory, and what they are."""

    __slots__ = ()
    _kind: ClassVar[str] = "Datatype"

    def __new__(cls, datatype: Datatype | None = None) -> Self:
        """A null handle, or another one for the same datatype."""
        made: Self = handle_for(cls, datatype)
        return made

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return isinstance(state, TypeState)

    def _state(self) -> TypeState:
        return state_of(self)

    def _attributes(self) -> TypeState:
        return state_of(self)

    def _release(self) -> None:
        if not self._inner.predefined:
            delete_all(self)

    def __reduce__(self) -> Any:
        if self._name or self._inner is None or self._inner.symbol:
            return super().__reduce__()
        from ompy.mpi.datatypes.pickled_types import recipe, recreate

        return recreate, recipe(self)

    # --- sizes

    def Get_size(self) -> int:
        """Bytes of data in an element."""
        return state_of(self).described().size

    def Get_extent(self) -> tuple[int, int]:
        """Lower bound and extent, in bytes."""
        layout = state_of(self).described()
        return layout.lower, layout.extent

    def Get_true_extent(self) -> tuple[int, int]:
        """Displacement of the first data byte, and bytes from it to the last."""
        return state_of(self).described().true_bounds()

    @property
    def size(self) -> int:
        """Bytes of data in an element."""
        return state_of(self).described().size

    @property
    def extent(self) -> int:
        """Bytes from one element to the next."""
        return state_of(self).described().extent

    @property
    def lb(self) -> int:
        """Lower bound."""
        return state_of(self).described().lower

    @property
    def ub(self) -> int:
        """Upper bound."""
        layout = state_of(self).described()
        return layout.lower + layout.extent

    @property
    def true_extent(self) -> int:
        """Bytes from the first data byte to the last."""
        return state_of(self).described().true_bounds()[1]

    @property
    def true_lb(self) -> int:
        """Displacement of the first data byte."""
        return state_of(self).described().true_bounds()[0]

    @property
    def true_ub(self) -> int:
        """Displacement of the byte after the last data byte."""
        return sum(state_of(self).described().true_bounds())

    # --- constructors

    def Dup(self) -> Self:
        """A duplicate, with its attributes as their keys want it."""
        state = state_of(self)
        attributes = copied(self) if state.attributes else None
        made: Self = derived(self, "DUP", (), False)
        inner: TypeState = made._inner
        inner.committed = state.committed
        inner.code = state.code
        inner.attributes = attributes
        return made

    Create_dup = Dup

    def Create_contiguous(self, count: int) -> Self:
        """`count` elements one after the other."""
        return derived(self, "CONTIGUOUS", (_count(count),), False)

    def Create_vector(self, count: int, blocklength: int, stride: int) -> Self:
        """Equal blocks, `stride` elements apart."""
        numbers = _count(count), _count(blocklength), whole_number(stride)
        return derived(self, "VECTOR", numbers, False)

    def Create_hvector(self, count: int, blocklength: int, stride: int) -> Self:
        """Equal blocks, `stride` bytes apart."""
        numbers = _count(count), _count(blocklength), whole_number(stride)
        return derived(self, "HVECTOR", numbers, False)

    def Create_indexed(self, blocklengths: Sequence[int], displacements: Sequence[int]) -> Self:
        """Blocks at displacements given in elements."""
        return derived(self, "INDEXED", _blocks(blocklengths, displacements), False)

    def Create_hindexed(self, blocklengths: Sequence[int], displacements: Sequence[int]) -> Self:
        """Blocks at displacements given in bytes."""
        return derived(self, "HINDEXED", _blocks(blocklengths, displacements), False)

    def Create_indexed_block(self, blocklength: int, displacements: Sequence[int]) -> Self:
        """Equal blocks at displacements given in elements."""
        arguments = _count(blocklength), whole_numbers(displacements)
        return derived(self, "INDEXED_BLOCK", arguments, False)

    def Create_hindexed_block(self, blocklength: int, displacements: Sequence[int]) -> Self:
        """Equal blocks at displacements given in bytes."""
        arguments = _count(blocklength), whole_numbers(displacements)
        return derived(self, "HINDEXED_BLOCK", arguments, False)

    @classmethod
    def Create_struct(
        cls,
        blocklengths: Sequence[int],
        displacements: Sequence[int],
        datatypes: Sequence[Datatype],
    ) -> Self:
        """Blocks of different types at displacements given in bytes."""
        lengths, at = _blocks(blocklengths, displacements)
        if len(datatypes) != len(lengths):
            raise ValueError(f"expecting {len(lengths)} datatypes, got {len(datatypes)}")
        for datatype in datatypes:
            check_kind(datatype, "Datatype", "datatypes")
        parts = [state_of(datatype) for datatype in datatypes]
        return cls._adopt(structured_state(lengths, at, parts))

    def Create_subarray(
        self,
        sizes: Sequence[int],
        subsizes: Sequence[int],
        starts: Sequence[int],
        order: int = constants.ORDER_C,
    ) -> Self:
        """A box in an array, with the whole array's extent."""
        order = whole_number(order)
        whole, part, first = whole_numbers(sizes), whole_numbers(subsizes), whole_numbers(starts)
        if not len(whole) == len(part) == len(first):
            raise ValueError("sizes, subsizes and starts differ in length")
        ordered = order in (constants.ORDER_C, constants.ORDER_FORTRAN)
        if not (whole and ordered and _contains(whole, part, first)):
            said = f"no box of {part} from {first} in an array of {whole}, order {order}"
            raise MPIException(ERR_ARG, said)
        return derived(self, "SUBARRAY", (whole, part, first, order), True)

    def Create_darray(
        self,
        size: int,
        rank: int,
        gsizes: Sequence[int],
        distribs: Sequence[int],
        dargs: Sequence[int],
        psizes: Sequence[int],
        order: int = constants.ORDER_C,
    ) -> Self:
        """The part of a distributed array that belongs to a process of a grid."""
        arguments = (
            whole_number(size),
            whole_number(rank),
            _counts(gsizes),
            whole_numbers(distribs),
            whole_numbers(dargs),
            _counts(psizes),
            whole_number(order),
        )
        _seldom().check_darray(*arguments)
        return derived(self, "DARRAY", arguments, True)

    def Create_resized(self, lb: int, extent: int) -> Self:
        """The same data with other bounds."""
        return derived(self, "RESIZED", (whole_number(lb), whole_number(extent)), True)

    Resized = Create_resized

    @classmethod
    def Get_value_index(cls, value: Datatype, index: Datatype) -> Self:
        """The predefined type of a value and its index; DATATYPE_NULL if there is none."""
        check_kind(value, "Datatype", "value")
        check_kind(index, "Datatype", "index")
        pair = CONSTANTS.get(f"{value._state().symbol}_INT")
        # UNSIGNED_INT is no pair
        if index._state().symbol != "INT" or pair is None or pair._inner.code:
            return cls.__new__(cls)
        return cls._make(pair)

    @classmethod
    def Create_f90_integer(cls, r: int) -> Self:
        """The integer type of at least `r` decimal digits."""
        return cls._adopt(_seldom().f90_integer(whole_number(r)))

    @classmethod
    def Create_f90_real(cls, p: int, r: int) -> Self:
        """The real type of at least `p` digits and a decimal exponent up to `r`."""
        return cls._adopt(_seldom().f90_float("F90_REAL", whole_number(p), whole_number(r)))

    @classmethod
    def Create_f90_complex(cls, p: int, r: int) -> Self:
        """The complex type of at least `p` digits and a decimal exponent up to `r`."""
        return cls._adopt(_seldom().f90_float("F90_COMPLEX", whole_number(p), whole_number(r)))

    @classmethod
    def Match_size(cls, typeclass: int, size: int) -> Self:
        """The predefined Fortran type of a class and a size in bytes."""
        typeclass, size = whole_number(typeclass), whole_number(size)
        made: Self = handle_for(cls, _seldom().matching_size(typeclass, size))
        return made

    def Commit(self) -> Self:
        """Make it ready for messages. Returns itself."""
        state_of(self).committed = True
        return self

    def Free(self) -> None:
        """Free it; types made of it and messages under way keep it as long as they need it."""
        if not freed(self):
            raise MPIException(ERR_TYPE, f"{self.Get_name() or 'this type'} is predefined")

    # --- how it was made

    def Get_envelope(self) -> tuple[int, int, int, int, int]:
        """How many integers, addresses, counts and datatypes its constructor took; the combiner."""
        state = state_of(self)
        integers, addresses, datatypes = numbers_of_contents(state)
        return integers, addresses, 0, datatypes, COMBINERS[state.combiner]

    def Get_contents(self) -> tuple[list[int], list[int], list[int], list[Datatype]]:
        """The arguments of the constructor's call: integers, addresses, counts, datatypes."""
        state: TypeState = state_of(self)
        if state.combiner == "NAMED":
            raise MPIException(ERR_TYPE, f"{self.Get_name()} is predefined: it has no contents")
        integers, addresses, datatypes = contents_of(state)
        return integers, addresses, [], [handle_of(part) for part in datatypes]

    def decode(self) -> tuple[Datatype, str, dict[str, Any]]:
        """What it was made of: a datatype, the constructor's name, its keyword arguments."""
        state: TypeState = state_of(self)
        if state.combiner == "NAMED":
            return self, "NAMED", {}
        params = dict(state.params)
        if "datatypes" in params:
            params["datatypes"] = [handle_of(part) for part in params["datatypes"]]
        base = handle_of(state.base) if state.base is not None else constant("DATATYPE_NULL")
        assert isinstance(base, Datatype)
        return base, state.combiner, params

    @property
    def envelope(self) -> tuple[int, int, int, int, int]:
        """As `Get_envelope`."""
        return self.Get_envelope()

    @property
    def contents(self) -> tuple[list[int], list[int], list[int], list[Datatype]]:
        """As `Get_contents`."""
        return self.Get_contents()

    @property
    def combiner(self) -> int:
        """How it was made: one of the COMBINER constants."""
        state: TypeState = state_of(self)
        return COMBINERS[state.combiner]

    @property
    def is_named(self) -> bool:
        """It is one of the predefined constants."""
        return state_of(self).combiner == "NAMED"

    @property
    def is_predefined(self) -> bool:
        """It cannot be freed."""
        handle: Handle = self
        state: TypeState | None = handle._inner
        return state is None or state.predefined

    # --- packing

    def Pack(self, inbuf: Any, outbuf: Any, position: int, comm: Any) -> int:
        """Pack elements of this type into `outbuf` from byte `position`; the next position."""
        position = position if type(position) is int else whole_number(position)
        check_communicator(comm)
        end = packed_end(state_of(self), inbuf, outbuf, position, False)
        if end == NOT_COMMON:
            from ompy.mpi.datatypes import packing

            end = packing.pack_buffer(self, inbuf, outbuf, position)
        return end

    def Unpack(self, inbuf: Any, position: int, outbuf: Any, comm: Any) -> int:
        """Unpack elements of this type from byte `position` of `inbuf`; the next position."""
        position = position if type(position) is int else whole_number(position)
        check_communicator(comm)
        end = unpacked_end(state_of(self), inbuf, position, outbuf, False)
        if end == NOT_COMMON:
            from ompy.mpi.datatypes import packing

            end = packing.unpack_buffer(self, inbuf, position, outbuf)
        return end

    def Pack_size(self, count: int, comm: Any) -> int:
        """Bytes that `count` packed elements need."""
        check_communicator(comm)
        size: int = _count(count) * state_of(self).described().size
        return size

    def Pack_external(self, datarep: str, inbuf: Any, outbuf: Any, position: int) -> int:
        """Pack in the portable representation `external32`."""
        position = position if type(position) is int else whole_number(position)
        end = NOT_COMMON
        if datarep == EXTERNAL32:
            end = packed_end(state_of(self), inbuf, outbuf, position, True)
        if end == NOT_COMMON:
            from ompy.mpi.datatypes import packing

            end = packing.pack_external(self, datarep, inbuf, outbuf, position)
        return end

    def Unpack_external(self, datarep: str, inbuf: Any, position: int, outbuf: Any) -> int:
        """Unpack from the portable representation `external32`."""
        position = position if type(position) is int else whole_number(position)
        end = NOT_COMMON
        if datarep == EXTERNAL32:
            end = unpacked_end(state_of(self), inbuf, position, outbuf, True)
        if end == NOT_COMMON:
            from ompy.mpi.datatypes import packing

            end = packing.unpack_external(self, datarep, inbuf, position, outbuf)
        return end

    def Pack_external_size(self, datarep: str, count: int) -> int:
        """Bytes that `count` elements need in the portable representation `external32`."""
        number: int = _count(count)
        if datarep == EXTERNAL32 and portable_pattern(state_of(self)) is not None:
            return number * state_of(self).described().size  # only the order of bytes differs
        from ompy.mpi.datatypes import packing

        return packing.external_size(self, datarep, number)

    # --- names and codes

    def Get_name(self) -> str:
        """Its name; empty if it has none."""
        return _name_of(self)

    def Set_name(self, name: str) -> None:
        """Name it."""
        state: TypeState = state_of(self)
        state.name = c_string(name)

    @property
    def name(self) -> str:
        """Its name."""
        return _name_of(self)

    @name.setter
    def name(self, value: str) -> None:
        self.Set_name(value)

    def tocode(self) -> str:
        """Its type code, as `fromcode` takes it: kind and size of a type whose name has one.

        Raises:
            ValueError: it has none.
        """
        handle: Handle = self
        state: TypeState | None = handle._inner
        code = "" if state is None else state.code
        if not code:
            raise ValueError("cannot map to character code or type string")
        return code

    @classmethod
    def fromcode(cls, code: str) -> Datatype:
        """The predefined type of a code: NumPy's character (`d`) or kind and size (`f8`).

        Raises:
            ValueError: there is none.
        """
        known = _by_code(code)
        if known is None:
            raise ValueError(f"cannot map code {code!r} to MPI datatype")
        return known

    @property
    def typechar(self) -> str:
        """NumPy's character of it; V for structures, and none for a null type."""
        handle: Handle = self
        state: TypeState | None = handle._inner
        if state is None:
            return ""
        return SIZED_CODES.get(state.code) or state.code or "V"

    @property
    def typestr(self) -> str:
        """NumPy's kind and size of it; none for a null type."""
        handle: Handle = self
        state: TypeState | None = handle._inner
        if state is None:
            return ""
        found: str = kind_and_size(state)
        return found


_distributed: Any = None
_typedict: Any = None


def _seldom() -> Any:
    """The module of constructors that few programs ask for."""
    global _distributed  # noqa: PLW0603 - it is imported when it is first asked for
    if _distributed is None:
        from ompy.mpi.datatypes import distributed

        _distributed = distributed
    return _distributed


def _by_code(code: object) -> Datatype | None:
    """The predefined type of a code, or None."""
    global _typedict  # noqa: PLW0603 - it is above this module
    if _typedict is None:
        from ompy.mpi.datatypes.predefined import typedict

        _typedict = typedict
    if not isinstance(code, str):
        return None
    known: Datatype | None = _typedict.get(code)
    return known if known is not None else _typedict.get(code.lstrip("=|@"))


@cfunc
def _name_of(datatype: Handle) -> str:
    state: TypeState | None = datatype._inner
    return "MPI_DATATYPE_NULL" if state is None else state.name


@ccall
def state_of(datatype: Handle) -> TypeState:
    """What a handle refers to.

    Raises:
        MPIException: ERR_TYPE, it is null.
    """
    state: TypeState | None = datatype._inner
    if state is None:
        raise MPIException(ERR_TYPE, "the datatype is null (DATATYPE_NULL, or freed)")
    return state


@ccall
def derived(base: Made, combiner: str, arguments: tuple[Any, ...], bounded: bool) -> Made:
    """A handle, of the base's class, of a new type made of elements of another one.

    Args:
        base: the other type.
        combiner: the constructor's name.
        arguments: of it, in the order of `typestate.ARGUMENTS`.
        bounded: the constructor sets bounds.
    """
    state = derived_state(state_of(base), combiner, arguments, bounded)
    kind = base.__class__
    made: Made = plain_handle(Datatype, state) if kind is Datatype else kind._adopt(state)
    return made


@ccall
def freed(datatype: Handle) -> bool:
    """Make a handle null, after its attributes have gone; false for a predefined type."""
    state = state_of(datatype)
    if state.predefined:
        return False
    if state.attributes:
        delete_all(datatype)  # type: ignore[arg-type]
    datatype._inner = None
    return True


@ccall
def check_communicator(comm: Any) -> None:
    """See that there is one.

    Raises:
        MPIException: ERR_COMM, it is null.
    """
    if isinstance(comm, Handle):
        handle: Handle = comm
        if handle._inner is not None:
            return
    check_kind(comm, "Comm", "comm")
    comm.Get_size()


@cfunc
def _count(value: Any) -> int:
    """A number of elements, which is not negative."""
    found: int = whole_number(value)
    if found < 0:
        raise MPIException(ERR_COUNT, f"{found} is negative")
    return found


@cfunc
def _counts(values: Sequence[int]) -> list[int]:
    found = whole_numbers(values)
    for value in found:
        if value < 0:
            raise MPIException(ERR_COUNT, f"{value} is negative")
    return found


@cfunc
def _blocks(lengths: Any, displacements: Sequence[int]) -> tuple[list[int], list[int]]:
    """Block lengths and displacements, as many of one as of the other."""
    if isinstance(lengths, int):
        lengths = [lengths] * len(displacements)
    if len(lengths) != len(displacements):
        raise ValueError(f"expecting {len(lengths)} displacements, got {len(displacements)}")
    return _counts(lengths), whole_numbers(displacements)


@cfunc
def _contains(sizes: list[int], subsizes: list[int], starts: list[int]) -> bool:
    """Whether a box lies in an array; one with nothing in it is none (MPI standard, 5.1.3)."""
    for place, size in enumerate(sizes):
        if subsizes[place] < 1 or starts[place] < 0 or starts[place] + subsizes[place] > size:
            return False
    return True


@ccall
def handle_of(state: TypeState) -> Datatype:
    """A handle of a datatype: the predefined one if there is one."""
    if not state.symbol:
        made: Datatype = plain_handle(Datatype, state)
        return made
    known = CONSTANTS.get(state.symbol)
    found = constant(state.symbol) if known is None else known
    assert isinstance(found, Datatype)
    return found
