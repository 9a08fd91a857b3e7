"""NumPy's datatypes as MPI's and back: `mpi4py.util.dtlib`.

Where there is no NumPy, `to_numpy_dtype` gives what `numpy.dtype` would be called with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from ompy import MPI

if TYPE_CHECKING:
    from numpy import dtype
    from numpy.typing import DTypeLike

try:
    from numpy import dtype as _np_dtype
except ImportError:
    _np_dtype = None  # type: ignore[assignment,misc]

__all__ = ["from_numpy_dtype", "to_numpy_dtype"]

_Info = Mapping[str, Any]
_PAIRS: Final = ("SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "LONG_DOUBLE")
_FORTRAN: Final = (
    MPI.COMBINER_F90_INTEGER,
    MPI.COMBINER_F90_REAL,
    MPI.COMBINER_F90_COMPLEX,
)


def from_numpy_dtype(dtype: DTypeLike) -> MPI.Datatype:
    """The MPI datatype of NumPy's; the caller frees it.

    Args:
        dtype: what `numpy.dtype` takes.

    Raises:
        RuntimeError: there is no NumPy.
        ValueError: it has Python objects in it, or another byte order than this machine.
    """
    if _np_dtype is None:
        raise RuntimeError("NumPy is not available")
    found = _np_dtype(dtype)
    if found.hasobject:
        raise ValueError(f"{found} has Python objects in it")
    if not found.isnative:
        raise ValueError(f"{found} has not this machine's byte order")
    if found.fields:
        return _struct_of(found)
    if found.subdtype is not None:
        return _array_of(*found.subdtype)
    return MPI.Datatype.fromcode(found.char).Dup()


def to_numpy_dtype(datatype: MPI.Datatype) -> Any:
    """NumPy's datatype of MPI's.

    Args:
        datatype: basic, or made of such.

    Raises:
        ValueError: it is null, or NumPy has nothing like it.
    """
    if datatype == MPI.DATATYPE_NULL:
        raise ValueError("the null datatype is none of NumPy's")
    combiner = datatype.combiner
    if combiner == MPI.COMBINER_NAMED:
        return _named(datatype)
    if combiner in _FORTRAN:
        return _made(MPI._typecode(datatype))
    convert = _CONVERSIONS.get(combiner)
    if convert is None:
        raise ValueError(f"NumPy has nothing like {datatype}")
    with _decoded(datatype) as (base, info):
        return convert(datatype, base, info)


# --- NumPy's to MPI's


def _struct_of(found: dtype[Any]) -> MPI.Datatype:
    places = [found.fields[name][:2] for name in found.names or ()] if found.fields else []
    members: list[MPI.Datatype] = []
    try:
        members += (from_numpy_dtype(each) for each, _ in places)
        offsets = [offset for _, offset in places]
        whole = MPI.Datatype.Create_struct([1] * len(members), offsets, members)
    finally:
        for each in members:
            each.Free()
    try:
        return whole.Create_resized(0, found.itemsize)
    finally:
        whole.Free()


def _array_of(element: dtype[Any], shape: tuple[int, ...]) -> MPI.Datatype:
    base = from_numpy_dtype(element)
    try:
        if len(shape) == 1:
            return base.Create_contiguous(shape[0])
        return base.Create_subarray(shape, shape, [0] * len(shape))
    finally:
        base.Free()


# --- MPI's to NumPy's


def _made(description: Any, **options: Any) -> Any:
    """NumPy's datatype; where there is no NumPy, what describes it."""
    if _np_dtype is None:
        return (description, options) if options else description
    return _np_dtype(description, **options)


@contextmanager
def _decoded(datatype: MPI.Datatype) -> Iterator[tuple[MPI.Datatype, _Info]]:
    """What a datatype is made of, which is freed in the end."""
    base, _, info = datatype.decode()
    try:
        yield base, info
    finally:
        parts = [base, *info.get("datatypes", ()), info.get("value"), info.get("index")]
        for part in parts:
            if isinstance(part, MPI.Datatype) and part and not part.is_predefined:
                part.Free()


def _named(datatype: MPI.Datatype) -> Any:
    code = MPI._typecode(datatype)
    if code is not None:
        return _made(code)
    for name in _PAIRS:  # of a value and an int, for MINLOC and MAXLOC
        if datatype == getattr(MPI, f"{name}_INT"):
            value = MPI._typecode(getattr(MPI, name))
            return _made(f"{value},i", align=True)
    raise ValueError(f"NumPy has nothing like {datatype}")


def _duplicate(_: MPI.Datatype, base: MPI.Datatype, __: _Info) -> Any:
    return to_numpy_dtype(base)


def _contiguous(_: MPI.Datatype, base: MPI.Datatype, info: _Info) -> Any:
    return _made((to_numpy_dtype(base), (info["count"],)))


def _subarray(datatype: MPI.Datatype, base: MPI.Datatype, info: _Info) -> Any:
    sizes = info["sizes"]
    if info["subsizes"] != sizes or any(info["starts"]):
        raise ValueError(f"{datatype} is a part of an array: NumPy has no datatype for that")
    shape = sizes[::-1] if info["order"] == MPI.ORDER_FORTRAN else sizes
    return _made((to_numpy_dtype(base), tuple(shape)))


def _value_and_index(_: MPI.Datatype, __: MPI.Datatype, info: _Info) -> Any:
    members = [("f0", to_numpy_dtype(info["value"])), ("f1", to_numpy_dtype(info["index"]))]
    return _made(members, align=True)


def _struct(datatype: MPI.Datatype, _: MPI.Datatype, info: _Info) -> Any:
    return _members(datatype, info, aligned=True)


def _resized(datatype: MPI.Datatype, base: MPI.Datatype, info: _Info) -> Any:
    if base.combiner != MPI.COMBINER_STRUCT:
        raise ValueError(f"{datatype} has gaps: NumPy has those in structs only")
    with _decoded(base) as (_, inside):
        return _members(datatype, inside, aligned=_is_aligned(base, info["extent"]))


def _members(datatype: MPI.Datatype, info: _Info, aligned: bool) -> Any:
    """A struct of NumPy, as large as a datatype."""
    members, offsets = info["datatypes"], info["displacements"]
    formats = [
        to_numpy_dtype(each) if count == 1 else (to_numpy_dtype(each), count)
        for each, count in zip(members, info["blocklengths"], strict=True)
    ]
    aligned = aligned and all(map(_is_aligned, members, offsets))
    return _fields(formats, offsets, aligned, datatype.extent)


def _vector(datatype: MPI.Datatype, base: MPI.Datatype, info: _Info) -> Any:
    return _evenly(datatype, base, info, info["stride"] * base.extent)


def _vector_in_bytes(datatype: MPI.Datatype, base: MPI.Datatype, info: _Info) -> Any:
    return _evenly(datatype, base, info, info["stride"])


def _evenly(datatype: MPI.Datatype, base: MPI.Datatype, info: _Info, stride: int) -> Any:
    count = info["count"]
    offsets = [place * stride for place in range(count)]
    return _blocks(base, [info["blocklength"]] * count, offsets, datatype.extent)


def _indexed(_: MPI.Datatype, base: MPI.Datatype, info: _Info) -> Any:
    return _blocks(base, _lengths(info), [at * base.extent for at in info["displacements"]])


def _indexed_in_bytes(_: MPI.Datatype, base: MPI.Datatype, info: _Info) -> Any:
    return _blocks(base, _lengths(info), info["displacements"])


def _lengths(info: _Info) -> list[int]:
    """How long each block is, all alike or not."""
    if "blocklength" in info:
        return [info["blocklength"]] * len(info["displacements"])
    return list(info["blocklengths"])


def _blocks(base: MPI.Datatype, lengths: Any, offsets: Any, size: int | None = None) -> Any:
    """Blocks of one datatype as the fields of a struct."""
    element = to_numpy_dtype(base)
    aligned = all(_is_aligned(base, offset) for offset in offsets)
    return _fields([(element, (length,)) for length in lengths], list(offsets), aligned, size)


def _fields(formats: list[Any], offsets: list[int], aligned: bool, size: int | None) -> Any:
    names = [f"f{place}" for place in range(len(formats))]
    described = {"names": names, "formats": formats, "offsets": offsets, "aligned": aligned}
    if size is not None:
        described["itemsize"] = size
    return _made(described)


_CONVERSIONS: Final[dict[int, Callable[[MPI.Datatype, MPI.Datatype, _Info], Any]]] = {
    MPI.COMBINER_DUP: _duplicate,
    MPI.COMBINER_CONTIGUOUS: _contiguous,
    MPI.COMBINER_SUBARRAY: _subarray,
    MPI.COMBINER_VALUE_INDEX: _value_and_index,
    MPI.COMBINER_STRUCT: _struct,
    MPI.COMBINER_RESIZED: _resized,
    MPI.COMBINER_VECTOR: _vector,
    MPI.COMBINER_HVECTOR: _vector_in_bytes,
    MPI.COMBINER_INDEXED: _indexed,
    MPI.COMBINER_HINDEXED: _indexed_in_bytes,
    MPI.COMBINER_INDEXED_BLOCK: _indexed,
    MPI.COMBINER_HINDEXED_BLOCK: _indexed_in_bytes,
}


# --- alignment


def _is_aligned(datatype: MPI.Datatype, offset: int = 0) -> bool:
    """Whether all that a datatype is made of lies where the machine likes it to.

    Args:
        datatype: basic or not.
        offset: bytes from where everything would be aligned.
    """
    if datatype.is_predefined:
        return not offset or offset % (MPI._typealign(datatype) or 1) == 0
    combiner = datatype.combiner
    with _decoded(datatype) as (base, info):
        members = info["datatypes"] if combiner == MPI.COMBINER_STRUCT else None
        places = _places_in_bytes(combiner, info)
        inside = members or [base] * len(places)
        return all(_is_aligned(each, offset + at) for each, at in zip(inside, places, strict=True))


def _places_in_bytes(combiner: int, info: _Info) -> list[int]:
    """Where parts of a datatype begin, as far as that is said in bytes."""
    if combiner == MPI.COMBINER_RESIZED:
        return [0, info["extent"]]
    if combiner == MPI.COMBINER_HVECTOR and info["count"] > 1:
        return [0, info["stride"]]
    if combiner in (
        MPI.COMBINER_STRUCT,
        MPI.COMBINER_HINDEXED,
        MPI.COMBINER_HINDEXED_BLOCK,
    ):
        return list(info["displacements"])
    return [0]
