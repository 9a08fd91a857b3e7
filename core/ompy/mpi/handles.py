"""Handles: the API objects that stand for something MPI keeps.

A handle refers to a *state* (what MPI keeps) or to nothing (a null handle). Several handles may
refer to one state; they are equal then. Freeing makes one handle null.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package
from __future__ import annotations

import _thread
from _weakref import ref
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Final, Self, TypeVar

from ompy import raw
from ompy.compiled import Shown, ccall, cclass, cfunc
from ompy.data.errors import ERR_ARG
from ompy.mpi.errors import MPIException
from ompy.mpi.integers import whole_number


@cclass
class State:
    """What a handle refers to.

    Attributes:
        number: of its handle as an integer; 0 before anybody asked for it.
    """

    number: int
    __slots__ = (*__annotations__, "__weakref__")

    def __init__(self) -> None:
        self.number = 0


class _Numbers:
    """States by the integers given out for them; a state that is gone has none."""

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._last = 0

    def of(self, state: State) -> int:
        with self._lock:
            if not state.number:
                number = self._last = self._last + 1
                _living[number] = ref(state, partial(self._forget, number))
                state.number = number  # at last: others look at it without the lock
            return state.number

    def _forget(self, number: int, _: object) -> None:
        _living.pop(number, None)


_living: Final[dict[int, Callable[[], State | None]]] = {}
_numbers: Final = _Numbers()

# predefined handles by name, as pickles know them
CONSTANTS: Final[dict[str, Handle]] = {}


@cclass
class Handle:
    """Base of all handle classes.

    A class names its `_kind`: handles are equal only within one kind. `_inner` is the state,
    `_name` the name of a predefined handle and else empty.
    """

    _inner: Shown[Any]
    _name: Shown[str]
    __slots__ = (*__annotations__, "__weakref__")

    _kind: ClassVar[str] = ""

    @classmethod
    def _make(cls, other: object = None) -> Self:
        """A handle that refers to what `other` refers to.

        Raises:
            TypeError: `other` is not a handle this class can stand for.
        """
        made: Self = handle_for(cls, other)
        return made

    @classmethod
    def _takes(cls, state: Any) -> bool:
        """Whether a handle of this class may refer to `state`."""
        return state is not None

    @classmethod
    def _adopt(cls, state: Any) -> Self:
        """A new handle of this class, or of the user's subclass, for a state."""
        if cls in _PLAIN:
            found: Self = plain_handle(cls, state)
            return found
        self = cls.__new__(cls)
        self._inner = state
        return self

    @classmethod
    def _wrap(cls, state: Any) -> Self:
        """The handle that `fromhandle` gives for a state."""
        return cls._adopt(state)

    def _constant(self, name: str) -> Self:
        """Make this a predefined handle."""
        self._name = name
        CONSTANTS[name] = self
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Handle):
            return NotImplemented
        one: Handle = other
        if self._inner is not one._inner:
            return False
        return self.__class__ is one.__class__ or self._kind == one._kind

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return self._inner is not None

    def __reduce__(self) -> Any:
        if self._name:
            return constant, (self._name,)
        for known in CONSTANTS.values():
            if known == self:
                return type(self), (known,)
        raise ValueError(f"only predefined handles can be pickled, not this {type(self).__name__}")

    @property
    def handle(self) -> int:
        """The handle as an integer; 0 for a null handle."""
        return number_of(self)

    def toint(self) -> int:
        """The handle as an integer."""
        return number_of(self)

    def py2f(self) -> int:
        """The handle as a Fortran integer."""
        return number_of(self)

    @classmethod
    def fromhandle(cls, handle: int) -> Self:
        """The handle an integer from `handle` stands for."""
        made: Self = _handle_of_number(cls, handle)
        return made

    @classmethod
    def fromint(cls, arg: int, /) -> Self:
        """The handle an integer from `toint` stands for."""
        made: Self = _handle_of_number(cls, arg)
        return made

    @classmethod
    def f2py(cls, arg: int) -> Self:
        """The handle an integer from `py2f` stands for."""
        made: Self = _handle_of_number(cls, arg)
        return made

    def free(self) -> None:
        """Free, if there is something to free that is not predefined; never an error."""
        if self._name or self._inner is None:
            return
        self._release()
        self._inner = None

    def _release(self) -> None:
        """Give back the state, if it is not predefined."""


_PLAIN: Final[set[type]] = set()
Kind = TypeVar("Kind", bound=type)


def made_plainly(kind: Kind) -> Kind:
    """Mark a class of handles of which the constructor does no more than `_make`."""
    _PLAIN.add(kind)
    return kind


@ccall
def number_of(handle: Handle) -> int:
    """The handle as an integer; 0 for a null handle."""
    state: State | None = handle._inner
    if state is None:
        return 0
    return state.number if state.number else _numbers.of(state)


@cfunc
def _handle_of_number(kind: Any, number: Any) -> Any:
    """What `fromhandle` gives."""
    wanted = number if type(number) is int else whole_number(number)
    if wanted == 0:
        return kind.__new__(kind)
    known = _living.get(wanted)
    state = None if known is None else known()
    if state is None or not kind._takes(state):
        raise MPIException(ERR_ARG, f"{wanted} is no handle of a living {kind.__name__}")
    return kind._wrap(state)


@ccall
def handle_for(kind: Any, other: Any) -> Any:
    """A handle of a class that refers to what another one does, or is null: for its `__new__`.

    Raises:
        TypeError: the other is not a handle that this class can stand for.
    """
    if other is None:
        return plain_handle(kind, None)
    if not isinstance(other, Handle):
        raise TypeError(f"{kind.__name__} cannot be made of {type(other).__name__}")
    known: Handle = other
    if other.__class__ is not kind and not isinstance(other, kind):
        if other._kind != kind._kind:
            raise TypeError(f"{kind.__name__} cannot be made of {type(other).__name__}")
        if known._inner is not None and not kind._takes(known._inner):
            raise TypeError(f"this {type(other).__name__} is not a {kind.__name__}")
    return plain_handle(kind, known._inner)


@ccall
def plain_handle(kind: Any, state: Any) -> Any:
    """A handle of such a class, without its constructor's cost."""
    found: Any = raw.instance(Handle, kind)
    made: Handle = found
    made._name = ""
    made._inner = state
    return found


@ccall
def handle_like(known: Handle, state: Any) -> Any:
    """A new handle of the class of another one."""
    kind = known.__class__
    return plain_handle(kind, state) if kind in _PLAIN else kind._adopt(state)


def constant(name: str) -> Handle:
    """The predefined handle of a name: how pickles are read."""
    found = CONSTANTS.get(name)
    if found is None:
        import ompy.MPI

        found = getattr(ompy.MPI, name)
    assert isinstance(found, Handle)
    return found
