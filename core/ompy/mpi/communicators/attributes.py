"""Attributes of communicators, datatypes and windows, and their keys.

An attribute keeps its key alive: a key may be freed while attributes under it exist.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

import _thread
from collections.abc import Callable
from typing import Any, Final

from ompy.compiled import ccall, cclass
from ompy.data.errors import ERR_KEYVAL
from ompy.mpi.callbacks import guarded
from ompy.mpi.constants import KEYVAL_INVALID
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import Handle, State
from ompy.mpi.integers import whole_number

FIRST_KEYVAL: Final = 100  # arbitrary: above the predefined ones


@cclass
class Keyval:
    """A key.

    Attributes:
        kind: of the handles it is for.
        copy: what happens when a handle is duplicated: a function, True to copy, else nothing.
        delete: called when an attribute goes, or None.
        integers: the attributes are integers.
    """

    copy: Any
    delete: Any
    integers: bool
    kind: str
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        kind: str,
        copy: Callable[..., Any] | bool | None,
        delete: Callable[..., Any] | None,
        integers: bool,
    ) -> None:
        self.kind = kind
        self.integers = integers
        self.copy = copy
        self.delete = delete


_lock = _thread.allocate_lock()
# by kind of handle, the keys by their numbers; mpi4py's name
_keyval_registry: Final[dict[str, dict[int, Keyval]]] = {"Datatype": {}, "Comm": {}, "Win": {}}
_last = FIRST_KEYVAL


def _new(keyval: Keyval) -> int:
    global _last  # noqa: PLW0603 - keys are the process's
    with _lock:
        _last += 1
        _keyval_registry[keyval.kind][_last] = keyval
        return _last


def _find(kind: str, number: int) -> Keyval:
    known = _keyval_registry[kind].get(number)
    if known is None:
        raise MPIException(ERR_KEYVAL, f"{number} is no attribute key for a {kind}")
    return known


@cclass
class AttributedState(State):
    """What a handle with attributes refers to.

    Attributes:
        attributes: by key, the key's description and the value; or None.
    """

    attributes: dict[int, tuple[Keyval, Any]] | None
    __slots__ = tuple(__annotations__)


class Attributed(Handle):
    """A handle with attributes. What it refers to is an `AttributedState`."""

    __slots__ = ()

    def _attributes(self) -> Any:
        """The state; raises MPIException for a null handle."""
        raise NotImplementedError

    def _predefined_attribute(self, keyval: int) -> Any:
        """The value of a predefined attribute; raises MPIException when there is no such key."""
        return _find(self._kind, keyval) and None

    def Get_attr(self, keyval: int) -> Any:
        """The value of an attribute, or None."""
        if type(keyval) is not int:
            keyval = whole_number(keyval)
        attributes = state_with_attributes(self).attributes
        found = None if attributes is None else attributes.get(keyval)
        return self._predefined_attribute(keyval) if found is None else found[1]

    def Set_attr(self, keyval: int, attrval: Any) -> None:
        """Set an attribute; one that is there is deleted first."""
        if type(keyval) is not int:
            keyval = whole_number(keyval)
        state: AttributedState = state_with_attributes(self)
        known: Keyval = _find(self._kind, keyval)
        if known.integers:
            attrval = whole_number(attrval)
        attributes = state.attributes
        if attributes is None:
            attributes = state.attributes = {}
        elif keyval in attributes:
            self.Delete_attr(keyval)
        attributes[keyval] = (known, attrval)

    def Delete_attr(self, keyval: int) -> None:
        """Delete an attribute; where there is none this does nothing, as in MPICH."""
        if type(keyval) is not int:
            keyval = whole_number(keyval)
        state: AttributedState = state_with_attributes(self)
        found = None if state.attributes is None else state.attributes.pop(keyval, None)
        if found is None:
            _find(self._kind, keyval)
            return
        known: Keyval = found[0]
        value = found[1]
        if known.delete is not None:
            guarded(known.delete, self, keyval, value)

    @classmethod
    def Create_keyval(
        cls,
        copy_fn: Callable[..., Any] | bool | None = None,
        delete_fn: Callable[..., Any] | None = None,
        nopython: bool = False,
    ) -> int:
        """A new attribute key.

        Args:
            copy_fn: `f(handle, keyval, value)` gives the duplicate's value, or NotImplemented
                for none; True copies, False or None does not.
            delete_fn: `f(handle, keyval, value)` is told that an attribute goes.
            nopython: the values are integers.

        Raises:
            TypeError: what is to be called cannot be.
        """
        for function in (copy_fn, delete_fn):
            if not (callable(function) or function is None or isinstance(function, bool)):
                raise TypeError(f"expecting a function, not {type(function).__name__}")
        return _new(Keyval(cls._kind, copy_fn, delete_fn or None, bool(nopython)))

    @classmethod
    def Free_keyval(cls, keyval: int) -> int:
        """Free a key; attributes under it stay. Returns KEYVAL_INVALID."""
        if type(keyval) is not int:
            keyval = whole_number(keyval)
        _find(cls._kind, keyval)
        with _lock:
            _keyval_registry[cls._kind].pop(keyval, None)
        return KEYVAL_INVALID


@ccall
def state_with_attributes(handle: Handle) -> AttributedState:
    """What a handle with attributes refers to; raises MPIException for a null one."""
    state: AttributedState | None = handle._inner
    if state is None:
        nobody: Any = handle
        state = nobody._attributes()
        assert state is not None, "null handles have raised"
    return state


def copied(handle: Attributed) -> dict[int, Any] | None:
    """The attributes of a duplicate of a handle.

    Raises:
        MPIException: a copy function raised.
    """
    attributes = state_with_attributes(handle).attributes
    if not attributes:
        return None
    made = {}
    for keyval, (known, value) in attributes.items():
        copy = known.copy
        if copy is True:
            made[keyval] = (known, value)
        elif callable(copy):
            new = guarded(copy, handle, keyval, value)
            if new is not NotImplemented:
                made[keyval] = (known, new)
    return made or None


def delete_all(handle: Attributed) -> None:
    """The handle's object is going: delete its attributes, the last one first."""
    attributes = state_with_attributes(handle).attributes
    for keyval in list(attributes or ())[::-1]:
        handle.Delete_attr(keyval)
