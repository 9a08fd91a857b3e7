"""`MPI.Datatype`."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, ClassVar, Final, Self

from ompy.data.constants import UNDEFINED
from ompy.data.errors import ERR_ARG, ERR_COUNT, ERR_TYPE
from ompy.data.layout import Layout, resize
from ompy.mpi import constants, typestate
from ompy.mpi.attributes import Attributed, copied, delete_all
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import CONSTANTS, constant
from ompy.mpi.typestate import TypeState, consecutive, placed, vector

# NumPy's kind of each character
_KINDS: Final = {
    **dict.fromkeys("bhilq", "i"),
    **dict.fromkeys("BHILQ", "u"),
    **dict.fromkeys("efdg", "f"),
    **dict.fromkeys("FDG", "c"),
    "?": "b",
}
_STRINGS: Final = {"c": "S1", "U": "U1"}


class Datatype(Attributed):
    """Where the data of an element lie in memory, and what they are."""

    __slots__ = ()
    _kind: ClassVar[str] = "Datatype"

    def __new__(cls, datatype: Datatype | None = None) -> Self:
        """A null handle, or another one for the same datatype."""
        return cls._make(datatype)

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return isinstance(state, TypeState)

    def _state(self) -> TypeState:
        state: TypeState | None = self._inner
        if state is None:
            raise MPIException(ERR_TYPE, "the datatype is null (DATATYPE_NULL, or freed)")
        return state

    def _attributes(self) -> TypeState:
        return self._state()

    def _release(self) -> None:
        if not self._inner.predefined:
            delete_all(self)

    def _derived(
        self,
        combiner: str,
        params: dict[str, Any],
        layout: Layout,
        *,
        bounded: bool = False,
    ) -> Self:
        """A new type made of elements of this one."""
        base = self._state()
        made = TypeState(
            layout, base.align, combiner, params, base, bounded=bounded or base.bounded
        )
        return type(self)._adopt(made)

    def __reduce__(self) -> Any:
        if self._name or self._inner is None or self._inner.symbol:
            return super().__reduce__()
        base, combiner, params = self.decode()
        return _recreate, (type(self), base, combiner, params, self._inner.committed)

    # --- sizes

    def Get_size(self) -> int:
        """Bytes of data in an element."""
        return self._state().layout.size

    def Get_extent(self) -> tuple[int, int]:
        """Lower bound and extent, in bytes."""
        layout = self._state().layout
        return layout.lower, layout.extent

    def Get_true_extent(self) -> tuple[int, int]:
        """Displacement of the first data byte, and bytes from it to the last."""
        layout = self._state().layout
        return layout.true_lower, layout.true_extent

    @property
    def size(self) -> int:
        """Bytes of data in an element."""
        return self.Get_size()

    @property
    def extent(self) -> int:
        """Bytes from one element to the next."""
        return self.Get_extent()[1]

    @property
    def lb(self) -> int:
        """Lower bound."""
        return self.Get_extent()[0]

    @property
    def ub(self) -> int:
        """Upper bound."""
        return sum(self.Get_extent())

    @property
    def true_extent(self) -> int:
        """Bytes from the first data byte to the last."""
        return self.Get_true_extent()[1]

    @property
    def true_lb(self) -> int:
        """Displacement of the first data byte."""
        return self.Get_true_extent()[0]

    @property
    def true_ub(self) -> int:
        """Displacement of the byte after the last data byte."""
        return sum(self.Get_true_extent())

    # --- constructors

    def Dup(self) -> Self:
        """A duplicate, with its attributes as their keys want it."""
        state = self._state()
        attributes = copied(self)
        made = self._derived("DUP", {}, state.layout, bounded=True)
        made._inner.bounded = state.bounded
        made._inner.committed = state.committed
        made._inner.code = state.code
        made._inner.attributes = attributes
        return made

    Create_dup = Dup

    def Create_contiguous(self, count: int) -> Self:
        """`count` elements one after the other."""
        layout = self._state().layout
        number = _count(count)
        return self._derived("CONTIGUOUS", {"count": number}, consecutive(layout, number))

    def Create_vector(self, count: int, blocklength: int, stride: int) -> Self:
        """Equal blocks, `stride` elements apart."""
        layout = self._state().layout
        number, length, step = _count(count), _count(blocklength), index(stride)
        params = {"count": number, "blocklength": length, "stride": step}
        made = vector(layout, number, length, step * layout.extent)
        return self._derived("VECTOR", params, made)

    def Create_hvector(self, count: int, blocklength: int, stride: int) -> Self:
        """Equal blocks, `stride` bytes apart."""
        layout = self._state().layout
        number, length, step = _count(count), _count(blocklength), index(stride)
        params = {"count": number, "blocklength": length, "stride": step}
        return self._derived("HVECTOR", params, vector(layout, number, length, step))

    def Create_indexed(self, blocklengths: Sequence[int], displacements: Sequence[int]) -> Self:
        """Blocks at displacements given in elements."""
        layout = self._state().layout
        lengths, at = _blocks(blocklengths, displacements)
        params = {"blocklengths": lengths, "displacements": at}
        scaled = [i * layout.extent for i in at]
        return self._derived("INDEXED", params, placed(layout, lengths, scaled))

    def Create_hindexed(self, blocklengths: Sequence[int], displacements: Sequence[int]) -> Self:
        """Blocks at displacements given in bytes."""
        layout = self._state().layout
        lengths, at = _blocks(blocklengths, displacements)
        params = {"blocklengths": lengths, "displacements": at}
        return self._derived("HINDEXED", params, placed(layout, lengths, at))

    def Create_indexed_block(self, blocklength: int, displacements: Sequence[int]) -> Self:
        """Equal blocks at displacements given in elements."""
        layout = self._state().layout
        length, at = _count(blocklength), [index(i) for i in displacements]
        params = {"blocklength": length, "displacements": at}
        scaled = [i * layout.extent for i in at]
        return self._derived("INDEXED_BLOCK", params, placed(layout, [length] * len(at), scaled))

    def Create_hindexed_block(self, blocklength: int, displacements: Sequence[int]) -> Self:
        """Equal blocks at displacements given in bytes."""
        layout = self._state().layout
        length, at = _count(blocklength), [index(i) for i in displacements]
        params = {"blocklength": length, "displacements": at}
        return self._derived("HINDEXED_BLOCK", params, placed(layout, [length] * len(at), at))

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
        parts = [datatype._state() for datatype in datatypes]
        layout = typestate.structured(lengths, at, [part.layout for part in parts])
        params = {"blocklengths": lengths, "displacements": at, "datatypes": parts}
        align = max((part.align for part in parts), default=1)
        bounded = any(part.bounded for part in parts)
        return cls._adopt(TypeState(layout, align, "STRUCT", params, bounded=bounded))

    def Create_subarray(
        self,
        sizes: Sequence[int],
        subsizes: Sequence[int],
        starts: Sequence[int],
        order: int = constants.ORDER_C,
    ) -> Self:
        """A box in an array, with the whole array's extent."""
        state = self._state()
        whole, part, first = ([_count(i) for i in these] for these in (sizes, subsizes, starts))
        if not len(whole) == len(part) == len(first):
            raise ValueError("sizes, subsizes and starts differ in length")
        if not whole or any(i + k > n for i, k, n in zip(first, part, whole, strict=True)):
            raise MPIException(ERR_ARG, f"no box of {part} from {first} in an array of {whole}")
        fortran = order == constants.ORDER_FORTRAN
        layout = typestate.subarray(state.layout, whole, part, first, fortran=fortran)
        params = {"sizes": whole, "subsizes": part, "starts": first, "order": order}
        return self._derived("SUBARRAY", params, layout, bounded=True)

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
        from ompy.mpi.distributed import darray_layout

        params = {
            "size": index(size),
            "rank": index(rank),
            "gsizes": [_count(i) for i in gsizes],
            "distribs": [index(i) for i in distribs],
            "dargs": [index(i) for i in dargs],
            "psizes": [_count(i) for i in psizes],
            "order": order,
        }
        layout = darray_layout(self._state().layout, params)
        return self._derived("DARRAY", params, layout, bounded=True)

    def Create_resized(self, lb: int, extent: int) -> Self:
        """The same data with other bounds."""
        params = {"lb": index(lb), "extent": index(extent)}
        layout = resize(self._state().layout, params["lb"], params["extent"])
        return self._derived("RESIZED", params, layout, bounded=True)

    Resized = Create_resized

    @classmethod
    def Get_value_index(cls, value: Datatype, index: Datatype) -> Self:
        """The predefined type of a value and its index; DATATYPE_NULL if there is none."""
        pair = CONSTANTS.get(f"{value._state().symbol}_INT")
        # UNSIGNED_INT is no pair
        if index._state().symbol != "INT" or pair is None or pair._inner.code:
            return cls.__new__(cls)
        return cls._make(pair)

    @classmethod
    def Create_f90_integer(cls, r: int) -> Self:
        """The integer type of at least `r` decimal digits."""
        from ompy.mpi.distributed import f90_integer

        return cls._adopt(f90_integer(r))

    @classmethod
    def Create_f90_real(cls, p: int, r: int) -> Self:
        """The real type of at least `p` digits and a decimal exponent up to `r`."""
        from ompy.mpi.distributed import f90_float

        return cls._adopt(f90_float("F90_REAL", p, r))

    @classmethod
    def Create_f90_complex(cls, p: int, r: int) -> Self:
        """The complex type of at least `p` digits and a decimal exponent up to `r`."""
        from ompy.mpi.distributed import f90_float

        return cls._adopt(f90_float("F90_COMPLEX", p, r))

    @classmethod
    def Match_size(cls, typeclass: int, size: int) -> Self:
        """The predefined Fortran type of a class and a size in bytes."""
        names = {
            constants.TYPECLASS_LOGICAL: "LOGICAL",
            constants.TYPECLASS_INTEGER: "INTEGER",
            constants.TYPECLASS_REAL: "REAL",
            constants.TYPECLASS_COMPLEX: "COMPLEX",
        }
        found = CONSTANTS.get(f"{names.get(typeclass, '')}{size}")
        if not found:
            raise MPIException(ERR_ARG, f"no type of class {typeclass} has {size} bytes")
        return cls._make(found)

    def Commit(self) -> Self:
        """Make it ready for messages. Returns itself."""
        self._state().committed = True
        return self

    def Free(self) -> None:
        """Free it; types made of it and messages under way keep it as long as they need it."""
        if self._state().predefined:
            raise MPIException(ERR_TYPE, f"{self.Get_name() or 'this type'} is predefined")
        delete_all(self)
        self._inner = None

    # --- how it was made

    def Get_envelope(self) -> tuple[int, int, int, int, int]:
        """How many integers, addresses, counts and datatypes its constructor took; the combiner."""
        from ompy.mpi.contents import contents_of

        state = self._state()
        combiner: int = getattr(constants, f"COMBINER_{state.combiner}")
        integers, addresses, datatypes = contents_of(state)
        return len(integers), len(addresses), 0, len(datatypes), combiner

    def Get_contents(self) -> tuple[list[int], list[int], list[int], list[Datatype]]:
        """The arguments of the constructor's call: integers, addresses, counts, datatypes."""
        from ompy.mpi.contents import contents_of

        state = self._state()
        if state.combiner == "NAMED":
            raise MPIException(ERR_TYPE, f"{self.Get_name()} is predefined: it has no contents")
        integers, addresses, datatypes = contents_of(state)
        return integers, addresses, [], [handle_of(part) for part in datatypes]

    def decode(self) -> tuple[Datatype, str, dict[str, Any]]:
        """What it was made of: a datatype, the constructor's name, its keyword arguments."""
        state = self._state()
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
        return self.Get_envelope()[4]

    @property
    def is_named(self) -> bool:
        """It is one of the predefined constants."""
        return self._inner is None or self._inner.combiner == "NAMED"

    @property
    def is_predefined(self) -> bool:
        """It cannot be freed."""
        return self._inner is None or self._inner.predefined

    # --- packing

    def Pack(self, inbuf: Any, outbuf: Any, position: int, comm: Any) -> int:
        """Pack elements of this type into `outbuf` from byte `position`; the next position."""
        from ompy.mpi.packing import pack_elements

        _check_communicator(comm)
        return pack_elements(self, inbuf, outbuf, position)

    def Unpack(self, inbuf: Any, position: int, outbuf: Any, comm: Any) -> int:
        """Unpack elements of this type from byte `position` of `inbuf`; the next position."""
        from ompy.mpi.packing import unpack_elements

        _check_communicator(comm)
        return unpack_elements(self, inbuf, position, outbuf)

    def Pack_size(self, count: int, comm: Any) -> int:
        """Bytes that `count` packed elements need."""
        _check_communicator(comm)
        return _count(count) * self._state().layout.size

    def Pack_external(self, datarep: str, inbuf: Any, outbuf: Any, position: int) -> int:
        """Pack in the portable representation `external32`."""
        from ompy.mpi.packing import pack_external

        return pack_external(self, datarep, inbuf, outbuf, position)

    def Unpack_external(self, datarep: str, inbuf: Any, position: int, outbuf: Any) -> int:
        """Unpack from the portable representation `external32`."""
        from ompy.mpi.packing import unpack_external

        return unpack_external(self, datarep, inbuf, position, outbuf)

    def Pack_external_size(self, datarep: str, count: int) -> int:
        """Bytes that `count` elements need in the portable representation `external32`."""
        from ompy.mpi.packing import external_size

        return external_size(self, datarep, _count(count))

    # --- names and codes

    def Get_name(self) -> str:
        """Its name; empty if it has none."""
        return "MPI_DATATYPE_NULL" if self._inner is None else self._state().name

    def Set_name(self, name: str) -> None:
        """Name it."""
        self._state().name = name

    @property
    def name(self) -> str:
        """Its name."""
        return self.Get_name()

    @name.setter
    def name(self, value: str) -> None:
        self.Set_name(value)

    def tocode(self) -> str:
        """Its type code, as `fromcode` takes it.

        Raises:
            ValueError: it has none.
        """
        code = "" if self._inner is None else self._state().code
        if not code:
            raise ValueError(f"datatype {self.Get_name() or 'without a name'} has no type code")
        return code

    @classmethod
    def fromcode(cls, code: str) -> Datatype:
        """The predefined type of a code: NumPy's character (`d`) or kind and size (`f8`).

        Raises:
            ValueError: there is none.
        """
        from ompy.mpi.predefined import typedict

        known = typedict.get(code) or typedict.get(code.lstrip("=|@"))
        if known is None:
            raise ValueError(f"no MPI datatype has the type code {code!r}")
        return known

    @property
    def typechar(self) -> str:
        """NumPy's character of it; V for structures."""
        return "V" if self._inner is None else self._state().code[:1] or "V"

    @property
    def typestr(self) -> str:
        """NumPy's kind and size of it."""
        if self._inner is None:
            return "V0"
        state = self._state()
        kind = _KINDS.get(state.code)
        if kind is None:
            return _STRINGS.get(state.code, f"V{state.layout.extent}")
        return f"{kind}{state.layout.size}"


def _count(value: int) -> int:
    number = index(value)
    if number < 0:
        raise MPIException(ERR_COUNT, f"{number} is negative")
    return number


def _blocks(lengths: Sequence[int], displacements: Sequence[int]) -> tuple[list[int], list[int]]:
    """Block lengths and displacements, as many of one as of the other."""
    if isinstance(lengths, int):
        lengths = [lengths] * len(displacements)
    if len(lengths) != len(displacements):
        raise ValueError(f"expecting {len(lengths)} displacements, got {len(displacements)}")
    return [_count(i) for i in lengths], [index(i) for i in displacements]


def _check_communicator(comm: Any) -> None:
    comm.Get_size()  # raises for a null communicator


def handle_of(state: TypeState) -> Datatype:
    """A handle of a datatype: the predefined one if there is one."""
    if state.symbol:
        found = constant(state.symbol)
        assert isinstance(found, Datatype)
        return found
    return Datatype._adopt(state)


def _recreate(
    cls: type[Datatype], base: Datatype, combiner: str, params: dict[str, Any], committed: bool
) -> Datatype:
    """A datatype as its pickle describes it."""
    maker = base if base else cls
    made: Datatype = getattr(maker, f"Create_{combiner.lower()}")(**params)
    handle = cls._adopt(made._inner)
    return handle.Commit() if committed else handle


def elements_in(state: TypeState, size: int) -> int:
    """Basic elements in `size` bytes of elements of a datatype; UNDEFINED if they do not fit."""
    whole = state.layout.size
    if not whole:
        return 0 if not size else UNDEFINED
    runs, times = typestate.signature(state)
    found = size // whole * times * sum(run.number for run in runs)
    period = whole // times
    found += size % whole // period * sum(run.number for run in runs)
    rest = size % whole % period
    for run in runs:
        fitting = min(run.number, rest // run.length)
        found += fitting
        rest -= fitting * run.length
        if fitting < run.number:
            break
    return found if not rest else UNDEFINED
