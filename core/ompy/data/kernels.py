"""The predefined reduction operations: which there are, what they are defined for.

The work is done by one of two modules with identical results: `kernels_numpy` where NumPy is
at hand and there is enough to do, `kernels_plain` elsewhere. A rank never imports NumPy
before that pays.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Final

from ompy.data import kernels_plain
from ompy.data.elements import LOOPS
from ompy.data.errors import ERR_OP, MPIError
from ompy.data.layout import Layout
from ompy.data.operation import Operation

Combine = Callable[[memoryview, memoryview, str], None]  # left, right (gets the result), format

# Measured (Python 3.11, NumPy 2.4, sum of doubles): the plain loop takes 0.6 us and 45 ns an
# element, NumPy 1.3 us and next to nothing an element.
NUMPY_FROM: Final = 16  # elements
# Measured: `import numpy` takes 50 to 100 ms, as much as 1 to 2 million elements of the plain
# loop; arbitrary: whoever reduces 65536 (3 ms) at once will do so 17 times and more.
IMPORT_NUMPY_FROM: Final = 65536  # elements
# Many small calls earn the import as well: after as much plain work as the import takes, whatever
# comes then, at most twice the least time has been spent. Ring and Rabenseifner's algorithm hand
# over pieces only.
IMPORT_NUMPY_AFTER: Final = 1 << 20  # elements; measured: 50 ms, the lower end of what it takes
assert NUMPY_FROM <= IMPORT_NUMPY_FROM <= IMPORT_NUMPY_AFTER

INTEGERS: Final = frozenset("bhilqBHILQ")
FLOATS: Final = frozenset("efdg")
COMPLEX: Final = frozenset("FDG")
LOGICAL: Final = frozenset("?")
BYTE: Final = frozenset("x")
PAIRS: Final = frozenset(("fi", "di", "li", "ii", "hi", "gi"))

# MPI 4.0, 6.9.2 and 6.9.4: which operation is defined for which kind of data
_ORDERED: Final = INTEGERS | FLOATS
_ARITHMETIC: Final = INTEGERS | FLOATS | COMPLEX
_TRUTH: Final = INTEGERS | LOGICAL
_BITS: Final = INTEGERS | BYTE
DEFINED: Final[Mapping[str, frozenset[str]]] = {
    "MPI_MAX": _ORDERED,
    "MPI_MIN": _ORDERED,
    "MPI_SUM": _ARITHMETIC,
    "MPI_PROD": _ARITHMETIC,
    "MPI_LAND": _TRUTH,
    "MPI_BAND": _BITS,
    "MPI_LOR": _TRUTH,
    "MPI_BOR": _BITS,
    "MPI_LXOR": _TRUTH,
    "MPI_BXOR": _BITS,
    "MPI_MAXLOC": PAIRS,
    "MPI_MINLOC": PAIRS,
}

# for messages to people
NAMES: Final[Mapping[str, str]] = {
    "b": "MPI_SIGNED_CHAR",
    "h": "MPI_SHORT",
    "i": "MPI_INT",
    "l": "MPI_LONG",
    "q": "MPI_LONG_LONG",
    "B": "MPI_UNSIGNED_CHAR",
    "H": "MPI_UNSIGNED_SHORT",
    "I": "MPI_UNSIGNED",
    "L": "MPI_UNSIGNED_LONG",
    "Q": "MPI_UNSIGNED_LONG_LONG",
    "e": "MPI_FLOAT16_T",
    "f": "MPI_FLOAT",
    "d": "MPI_DOUBLE",
    "g": "MPI_LONG_DOUBLE",
    "?": "MPI_C_BOOL",
    "F": "MPI_C_FLOAT_COMPLEX",
    "D": "MPI_C_DOUBLE_COMPLEX",
    "G": "MPI_C_LONG_DOUBLE_COMPLEX",
    "x": "MPI_BYTE",
    "c": "MPI_CHAR",
    "fi": "MPI_FLOAT_INT",
    "di": "MPI_DOUBLE_INT",
    "li": "MPI_LONG_INT",
    "ii": "MPI_2INT",
    "hi": "MPI_SHORT_INT",
    "gi": "MPI_LONG_DOUBLE_INT",
}


class _PlainWork:
    """Elements the plain loop had to do with in this process, where NumPy would have been better.

    A process knows or does not know NumPy, so this is the process's, not a rank's. The results
    are the same either way.
    """

    elements = 0


def _wants_numpy(elements: int) -> bool:
    if elements < NUMPY_FROM:
        return False
    if sys.modules.get("numpy") is not None or elements >= IMPORT_NUMPY_FROM:
        return True
    _PlainWork.elements += elements
    return _PlainWork.elements >= IMPORT_NUMPY_AFTER


def combine_of(name: str, elements: int, format: str) -> Combine:  # noqa: A002 - Layout's word
    """The function that combines so many elements."""
    only_numpy = "g" in format or format in {"G", "e"}
    if only_numpy or _wants_numpy(elements):
        try:
            from ompy.data import kernels_numpy
        except ImportError as problem:
            _PlainWork.elements = 0  # not to be asked for at every call
            if only_numpy:
                detail = f"{name} on {NAMES[format]} needs NumPy: {problem}"
                raise MPIError(ERR_OP, detail) from problem
        else:
            return kernels_numpy.COMBINE[name]
    return kernels_plain.COMBINE[name]


def _operation(name: str) -> Operation:
    """An operation of the table above."""
    defined = DEFINED[name]

    def check(layout: Layout) -> None:
        if layout.format not in defined and layout.size:
            kind = NAMES.get(layout.format, "a datatype of mixed contents")
            raise MPIError(ERR_OP, f"{name} is not defined for {kind}")

    def kernel(left: memoryview, right: memoryview, layout: Layout, count: int) -> None:
        check(layout)
        size = count * layout.size
        if size:
            kind = layout.format
            combine = combine_of(name, size // kernels_plain.SIZES.get(kind, size), kind)
            combine(left[:size], right[:size], kind)

    return Operation(name, kernel, commutative=True, check=check, loops=LOOPS.get(name))


def _replace(left: memoryview, right: memoryview, layout: Layout, count: int) -> None:
    """f(a, b) = b (MPI 4.0, 12.3.4): what is in `right` stays."""


def _no_op(left: memoryview, right: memoryview, layout: Layout, count: int) -> None:
    """f(a, b) = a (MPI 4.0, 12.3.4)."""
    size = count * layout.size
    right[:size] = left[:size]


# of windows only (MPI 4.1, 12.3.4)
OF_WINDOWS: Final = frozenset({"MPI_REPLACE", "MPI_NO_OP"})

PREDEFINED: Final[Mapping[str, Operation]] = {
    **{name: _operation(name) for name in DEFINED},
    "MPI_REPLACE": Operation("MPI_REPLACE", _replace, commutative=True),
    "MPI_NO_OP": Operation("MPI_NO_OP", _no_op, commutative=True),
}
