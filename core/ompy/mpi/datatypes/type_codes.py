"""Type codes of datatypes: NumPy's characters, and kinds with sizes.

Source: mpi4py 4.1.2, which gives a type whose name has a size the code with the size.
"""

from __future__ import annotations

from typing import Final

from ompy.mpi.datatypes.typestate import TypeState

_KINDS: Final = {
    **dict.fromkeys("bhilq", "i"),
    **dict.fromkeys("BHILQ", "u"),
    **dict.fromkeys("efdg", "f"),
    **dict.fromkeys("FDG", "c"),
    "?": "b",
}
_STRINGS: Final = {"c": "S1", "U": "U1", "p": "i8"}
# type codes that are kind and size, and NumPy's character of them
SIZED_CODES: Final = {
    "b1": "?",
    **{
        f"{kind}{size}": code
        for kind, codes in (("i", "bhil"), ("u", "BHIL"))
        for size, code in zip((1, 2, 4, 8), codes, strict=True)
    },
    "f2": "e",
    "f4": "f",
    "f8": "d",
    "f16": "g",
    "c8": "F",
    "c16": "D",
    "c32": "G",
}


def kind_and_size(state: TypeState) -> str:
    """NumPy's kind and size of a datatype, as in `f8`; V and the extent of a structure."""
    code = state.code
    if code in SIZED_CODES:
        return code
    kind = _KINDS.get(code)
    if kind is not None:
        return f"{kind}{state.described().size}"
    return _STRINGS.get(code) or f"V{state.described().extent}"
