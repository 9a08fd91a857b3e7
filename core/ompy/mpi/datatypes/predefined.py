"""The predefined datatypes and their type codes.

Sizes are those of LP64 machines with 16-byte long double; where a language's type has no
counterpart here its datatype is DATATYPE_NULL.
"""

from __future__ import annotations

from typing import Final

from ompy.data.layout import Layout
from ompy.mpi.datatypes.datatype import Datatype
from ompy.mpi.datatypes.typestate import TypeState
from ompy.mpi.handles import CONSTANTS

# name: NumPy's character of what it holds. The order matters: the first type of a character is
# what the character stands for.
_C: Final = {
    "CHAR": "c",
    "SIGNED_CHAR": "b",
    "SHORT": "h",
    "INT": "i",
    "LONG": "l",
    "LONG_LONG": "q",
    "UNSIGNED_CHAR": "B",
    "UNSIGNED_SHORT": "H",
    "UNSIGNED": "I",
    "UNSIGNED_LONG": "L",
    "UNSIGNED_LONG_LONG": "Q",
    "FLOAT": "f",
    "DOUBLE": "d",
    "LONG_DOUBLE": "g",
    "C_BOOL": "?",
    "C_FLOAT_COMPLEX": "F",
    "C_DOUBLE_COMPLEX": "D",
    "C_LONG_DOUBLE_COMPLEX": "G",
    "WCHAR": "U",
    "FLOAT16_T": "e",
    "INT8_T": "b",
    "INT16_T": "h",
    "INT32_T": "i",
    "INT64_T": "l",
    "UINT8_T": "B",
    "UINT16_T": "H",
    "UINT32_T": "I",
    "UINT64_T": "L",
    "FLOAT32_T": "f",
    "FLOAT64_T": "d",
    "AINT": "l",
    "OFFSET": "l",
    "COUNT": "l",
    "CXX_BOOL": "?",
    "CXX_FLOAT_COMPLEX": "F",
    "CXX_DOUBLE_COMPLEX": "D",
    "CXX_LONG_DOUBLE_COMPLEX": "G",
}
_FORTRAN: Final = {
    "CHARACTER": "c",
    "LOGICAL": "i",
    "INTEGER": "i",
    "REAL": "f",
    "DOUBLE_PRECISION": "d",
    "COMPLEX": "F",
    "DOUBLE_COMPLEX": "D",
    "LOGICAL1": "b",
    "LOGICAL2": "h",
    "LOGICAL4": "i",
    "LOGICAL8": "l",
    "INTEGER1": "b",
    "INTEGER2": "h",
    "INTEGER4": "i",
    "INTEGER8": "l",
    "REAL2": "e",
    "REAL4": "f",
    "REAL8": "d",
    "REAL16": "g",
    "COMPLEX8": "F",
    "COMPLEX16": "D",
    "COMPLEX32": "G",
}
_PAIRS: Final = {
    "SHORT_INT": "hi",
    "INT_INT": "ii",
    "LONG_INT": "li",
    "FLOAT_INT": "fi",
    "DOUBLE_INT": "di",
    "LONG_DOUBLE_INT": "gi",
}
_ABSENT: Final = ("LOGICAL16", "INTEGER16", "COMPLEX4")
_ALIASES: Final = {
    "UNSIGNED_INT": "UNSIGNED",
    "SIGNED_SHORT": "SHORT",
    "SIGNED_INT": "INT",
    "SIGNED_LONG": "LONG",
    "SIGNED_LONG_LONG": "LONG_LONG",
    "BOOL": "C_BOOL",
    "C_COMPLEX": "C_FLOAT_COMPLEX",
    "TWOINT": "INT_INT",
    "SINT8_T": "INT8_T",
    "SINT16_T": "INT16_T",
    "SINT32_T": "INT32_T",
    "SINT64_T": "INT64_T",
    "F_BOOL": "LOGICAL",
    "F_INT": "INTEGER",
    "F_FLOAT": "REAL",
    "F_DOUBLE": "DOUBLE_PRECISION",
    "F_COMPLEX": "COMPLEX",
    "F_FLOAT_COMPLEX": "COMPLEX",
    "F_DOUBLE_COMPLEX": "DOUBLE_COMPLEX",
}
# type codes of types whose names have sizes, and of others whose code is no character of NumPy
_CODES: Final = {
    "C_BOOL": "b1",
    **dict.fromkeys(("AINT", "OFFSET", "COUNT"), "p"),
    **{
        f"{name}{8 * size}_T": f"{kind}{size}"
        for name, kind in (("INT", "i"), ("UINT", "u"))
        for size in (1, 2, 4, 8)
    },
    "LOGICAL1": "b1",
    **{f"LOGICAL{size}": f"i{size}" for size in (2, 4, 8)},
    **{f"INTEGER{size}": f"i{size}" for size in (1, 2, 4, 8)},
    **{f"REAL{size}": f"f{size}" for size in (2, 4, 8, 16)},
    **{f"COMPLEX{size}": f"c{size}" for size in (8, 16, 32)},
}
_SIZES: Final = {
    **dict.fromkeys("cbB?", 1),
    **dict.fromkeys("hHe", 2),
    **dict.fromkeys("iIfU", 4),
    **dict.fromkeys("lLqQdF", 8),
    **dict.fromkeys("gD", 16),
    "G": 32,
}
_ALIGNMENTS: Final = {**_SIZES, "F": 4, "D": 8, "G": 16}


def _define(symbol: str, layout: Layout, align: int, code: str) -> Datatype:
    state = TypeState(layout, align, "NAMED", ())
    state.committed = True
    state.symbol = symbol
    state.name = "MPI_2INT" if symbol == "INT_INT" else f"MPI_{symbol}"
    state.code = code
    return Datatype._adopt(state)._constant(symbol)  # noqa: SLF001 - ours to make


def _basic(symbol: str, code: str) -> Datatype:
    size = _SIZES[code]
    # a wide character is no number: no operation is defined for it
    layout = Layout(((0, size),), 0, size, "" if code == "U" else code)
    return _define(symbol, layout, _ALIGNMENTS[code], _CODES.get(symbol, code))


def _pair(symbol: str, code: str) -> Datatype:
    """A value and its index, as a C structure."""
    value, place = _SIZES[code[0]], _SIZES[code[1]]
    align = max(_ALIGNMENTS[code[0]], _ALIGNMENTS[code[1]])
    at = max(value, place)
    layout = Layout(((0, value), (at, place)), 0, at + place, code)
    return _define(symbol, layout, align, "")


DATATYPE_NULL: Final = Datatype()._constant("DATATYPE_NULL")  # noqa: SLF001 - ours to make
BYTE: Final = _define("BYTE", Layout(((0, 1),), 0, 1, "x"), 1, "B")
PACKED: Final = _define("PACKED", Layout(((0, 1),), 0, 1, "x"), 1, "B")
BFLOAT16_T: Final = _define("BFLOAT16_T", Layout(((0, 2),), 0, 2), 2, "")

DATATYPES: Final[dict[str, Datatype]] = {
    "DATATYPE_NULL": DATATYPE_NULL,
    "PACKED": PACKED,
    "BYTE": BYTE,
    "BFLOAT16_T": BFLOAT16_T,
    **{symbol: _basic(symbol, code) for symbol, code in (_C | _FORTRAN).items()},
    **{symbol: _pair(symbol, code) for symbol, code in _PAIRS.items()},
    **dict.fromkeys(_ABSENT, DATATYPE_NULL),
}
DATATYPES.update((alias, DATATYPES[name]) for alias, name in _ALIASES.items())
CONSTANTS.update(DATATYPES)


def _codes(names: dict[str, str]) -> dict[str, Datatype]:
    """Types by character (`d`) and by kind and size (`f8`)."""
    found: dict[str, Datatype] = {}
    for symbol, code in names.items():
        if symbol not in {"AINT", "OFFSET", "COUNT"}:
            found.setdefault(code, DATATYPES[symbol])
            found.setdefault(DATATYPES[symbol].typestr, DATATYPES[symbol])
    return found


_sized: Final = {
    f"{kind}{size}": DATATYPES[f"{name}{8 * size}_T"]
    for kind, name in (("i", "INT"), ("u", "UINT"))
    for size in (1, 2, 4, 8)
}
_plain: Final = _codes(_C)
_plain.update(
    {
        "p": DATATYPES["AINT"],
        "P": DATATYPES["UNSIGNED_LONG"],
        "n": DATATYPES["COUNT"],
        "N": DATATYPES["UNSIGNED_LONG"],
        "Zf": DATATYPES["C_FLOAT_COMPLEX"],
        "Zd": DATATYPES["C_DOUBLE_COMPLEX"],
        "Zg": DATATYPES["C_LONG_DOUBLE_COMPLEX"],
    }
)
_WITHOUT: Final = {"P", "p", "N", "n", "Zf", "Zd", "Zg", "c", "S1", "U", "U1", "e"}
typedict_c: Final = {
    code: datatype for code, datatype in (_plain | _sized).items() if code not in _WITHOUT
}
# a letter is that of Fortran's own names for precisions
typedict_f: Final = {
    **{
        letter: DATATYPES[symbol]
        for letter, symbol in (
            ("l", "LOGICAL"),
            ("i", "INTEGER"),
            ("r", "REAL"),
            ("s", "REAL"),
            ("d", "DOUBLE_PRECISION"),
            ("c", "COMPLEX"),
            ("z", "DOUBLE_COMPLEX"),
        )
    },
    **{
        f"{letter}{size}": DATATYPES[f"{name}{size}"]
        for letter, name, sizes in (
            ("l", "LOGICAL", (1, 2, 4, 8)),
            ("i", "INTEGER", (1, 2, 4, 8)),
            ("r", "REAL", (4, 8, 16)),
            ("c", "COMPLEX", (8, 16, 32)),
        )
        for size in sizes
    },
}
_TEXTS: Final = {  # one character is `1s` and `1w` with NumPy
    "1s": DATATYPES["CHAR"],
    "1w": DATATYPES["WCHAR"],
    "w": DATATYPES["WCHAR"],
    "u": DATATYPES["WCHAR"],  # ctypes
}
typedict: Final = {
    **_codes(_FORTRAN),
    **_plain,
    **_sized,
    **_TEXTS,
    **dict.fromkeys(("u", "1u"), DATATYPES["UINT16_T"]),
    **dict.fromkeys("Sas", DATATYPES["CHAR"]),
    **dict.fromkeys(("M", "M8", "m", "m8"), DATATYPES["INT64_T"]),
}

# what the items of a buffer are, by its format
FORMATS: Final[dict[str, Datatype]] = {**_plain, **_TEXTS}
_PREFIXED: Final = {
    **dict.fromkeys("bhilqn", "i"),
    **dict.fromkeys("BHILQN", "u"),
    **dict.fromkeys("efdg", "f"),
    "?": "b",
    "c": "S",
}


def of_format(form: str, itemsize: int) -> Datatype | None:
    """The datatype of a buffer's items, or None for structures, objects and the like.

    Raises:
        BufferError: the byte order is not this machine's.
    """
    known = FORMATS.get(form)
    if known is not None:
        return known
    if not form:
        return BYTE
    order, rest = form[0], form[1:]
    if order in "<>=!@^|" and rest:
        if order in _FOREIGN and itemsize > 1:
            raise BufferError(f"message: the byte order of format {form!r} is not this machine's")
        if rest in _PREFIXED:  # of standard size: C's long may be 4 bytes here
            return FORMATS.get(f"{_PREFIXED[rest]}{itemsize}")
        return FORMATS.get(rest)
    return None


def _foreign_orders() -> str:
    import sys

    return ">!" if sys.byteorder == "little" else "<"


_FOREIGN: Final = _foreign_orders()
