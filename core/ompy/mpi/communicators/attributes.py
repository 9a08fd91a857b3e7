"""Attributes of communicators, datatypes and windows, and their keys.

An attribute keeps its key alive: a key may be freed while attributes under it exist.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

import _thread
from collections.abc import Callable
from typing import Any, Final

from ompy.data.errors import ERR_KEYVAL
from ompy.mpi.callbacks import guarded
from ompy.mpi.constants import KEYVAL_INVALID
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import Handle
from ompy.mpi.integers import whole_number

FIRST_KEYVAL: Final = 100  # arbitrary: above the predefined ones


class Keyval:
    """A key.

    Attributes:
        kind: of the handles it is for.
        copy: what happens when a handle is duplicated: a function, True to copy, else nothing.
        delete: called when an attribute goes, or None.
        integers: the attributes are integers.
    """

    __slots__ = ("copy", "delete", "integers", "kind")

    def __init__(
        self,
        kind: str,
        copy: Callable[..., Any] | bool | None,
        delete: Callable[..., Any] | None,
        *,
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


class Attributed(Handle):
    """A handle with attributes. Its state has a dict `attributes`, or None there."""

    __slots__ = ()

    def _attributes(self) -> Any:
        """The state, with `attributes`; raises MPIException for a null handle."""
        raise NotImplementedError

    def _predefined_attribute(self, keyval: int) -> Any:
        """The value of a predefined attribute; raises MPIException when there is no such key."""
        return _find(self._kind, keyval) and None

    def Get_attr(self, keyval: int) -> Any:
        """The value of an attribute, or None."""
        if type(keyval) is not int:
            keyval = whole_number(keyval)
        state = self._attributes()
        if state.attributes is not None and keyval in state.attributes:
            return state.attributes[keyval][1]
        return self._predefined_attribute(keyval)

    def Set_attr(self, keyval: int, attrval: Any) -> None:
        """Set an attribute; one that is there is deleted first."""
        if type(keyval) is not int:
            keyval = whole_number(keyval)
        state = self._attributes()
        known = _find(self._kind, keyval)
        if known.integers:
            attrval = whole_number(attrval)
        if state.attributes is None:
            state.attributes = {}
        elif keyval in state.attributes:
            self.Delete_attr(keyval)
        state.attributes[keyval] = (known, attrval)

    def Delete_attr(self, keyval: int) -> None:
        """Delete an attribute; where there is none this does nothing, as in MPICH."""
        if type(keyval) is not int:
            keyval = whole_number(keyval)
        state = self._attributes()
        if state.attributes is None or keyval not in state.attributes:
            _find(self._kind, keyval)
            return
        known, value = state.attributes.pop(keyval)
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
        return _new(Keyval(cls._kind, copy_fn, delete_fn or None, integers=bool(nopython)))

    @classmethod
    def Free_keyval(cls, keyval: int) -> int:
        """Free a key; attributes under it stay. Returns KEYVAL_INVALID."""
        if type(keyval) is not int:
            keyval = whole_number(keyval)
        _find(cls._kind, keyval)
        with _lock:
            _keyval_registry[cls._kind].pop(keyval, None)
        return KEYVAL_INVALID


def copied(handle: Attributed) -> dict[int, Any] | None:
    """The attributes of a duplicate of a handle.

    Raises:
        MPIException: a copy function raised.
    """
    attributes = handle._attributes().attributes
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
    attributes = handle._attributes().attributes
    for keyval in list(attributes or ())[::-1]:
        handle.Delete_attr(keyval)
