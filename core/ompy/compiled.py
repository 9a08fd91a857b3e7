"""What the annotations of a compiled module mean in C, and the words they lack.

A module that `ompy/cli/hot.py` names is compiled. What Cython has to know of it is derived from its
source when it is (`ompy/cli/building/declaring.py`); interpreted, these words do nothing.

- `@cclass`: a class whose attributes are those annotated in its body, and lie in a C structure.
  If its name begins with `_` only compiled modules know one, unless it is `Shown[...]`.
- `@recycled`, before `@cclass` or alone: memory of some instances that went is kept for the next
  ones (`recycling.py`).
- `@ccall`: a function or method that compiled modules call as C does, and all others as Python
  does. `@cfunc`: the same, but of this module, or class and those derived from it, alone.
- In signatures, attributes and annotated local variables `int` is 64 bits with a sign, `U64` the
  same without, `bool` and `float` are numbers; `list`, `dict`, `set`, `tuple`, `bytes` and
  `bytearray` are those types themselves and no subclass; classes with `@cclass` are known; all
  else is an object. So is what a module imports under `TYPE_CHECKING`; under `DECLARING` it is
  known, and not imported. A variable of which the next line asserts the class,
  `assert isinstance(found, Known)`, is of that class. In functions without a mark that is so for
  variables of classes with `@cclass`; their numbers are Python's.
- Whole numbers that a module imports, or gives a name once, are numbers in C; what is annotated
  with `Final[int]` or `Final[dict[...]]` is of that type, whatever makes it.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias, TypeVar

Marked = TypeVar("Marked")
Type = TypeVar("Type")

DECLARING: Final = False  # mypy takes it for true
U64: TypeAlias = int
U64View: TypeAlias = memoryview  # of format Q
Shown = Annotated[Type, "others have it, too"]


def cclass(marked: Marked) -> Marked:
    """Mark a class whose instances are C structures."""
    return marked


def recycled(marked: Marked) -> Marked:
    """Mark a class of which many instances are made and soon go."""
    return marked


def ccall(marked: Marked) -> Marked:
    """Mark a function that compiled modules call as C does, and others as Python does."""
    return marked


def cfunc(marked: Marked) -> Marked:
    """Mark a function that only its module calls, or a method that only its class and heirs do."""
    return marked
