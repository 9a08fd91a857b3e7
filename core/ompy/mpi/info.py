"""`MPI.Info`: hints as pairs of strings."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final, Self

from ompy.compiled import ccall, cclass, cfunc
from ompy.data.errors import ERR_ARG, ERR_INFO, ERR_INFO_KEY, ERR_INFO_NOKEY, ERR_INFO_VALUE
from ompy.mpi.constants import MAX_INFO_KEY, MAX_INFO_VAL
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import Handle, State, handle_for, handle_like, made_plainly, plain_handle
from ompy.mpi.integers import whole_number
from ompy.mpi.strings import c_string

Pairs = Mapping[str, str] | Iterable[tuple[str, str]]


@cclass
class InfoState(State):
    """Pairs of an info object.

    Attributes:
        pairs: in the order they were set; None for those of INFO_ENV before they are looked at.
    """

    pairs: dict[str, str] | None
    __slots__ = tuple(__annotations__)


@ccall
def info_of(pairs: dict[str, str]) -> Info:
    """A new info object with these pairs, which are its own from now on."""
    made: Info = plain_handle(Info, _state_of(pairs))
    return made


@ccall
def hints_of(kept: dict[str, str] | None) -> Info:
    """A new info object with a copy of the hints that something has; None stands for none."""
    return info_of({} if kept is None else kept.copy())


@cfunc
def _state_of(pairs: dict[str, str] | None) -> InfoState:
    made: InfoState = InfoState.__new__(InfoState)
    made.number = 0
    made.pairs = pairs
    return made


@ccall
def readable_pairs(info: Handle) -> dict[str, str]:
    """Those of an info object as a dictionary, which a null one is an empty of."""
    return {} if info._inner is None else pairs_of(info)


@ccall
def pairs_of(info: Handle) -> dict[str, str]:
    """The pairs of an info object, its own.

    Raises:
        MPIException: ERR_INFO, it is null.
    """
    state: InfoState | None = info._inner
    if state is None:
        raise MPIException(ERR_INFO, "the info object is null (INFO_NULL, or freed)")
    pairs: dict[str, str] | None = state.pairs
    if pairs is None:
        pairs = environment(list(sys.argv))
        state.pairs = pairs
    return pairs


@made_plainly
class Info(Handle):
    """An ordered dictionary of strings."""

    __slots__ = ()
    _kind: ClassVar[str] = "Info"

    def __new__(cls, info: Info | None = None) -> Self:
        """A null handle, or another one for the same info object."""
        made: Self = handle_for(cls, info)
        return made

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return isinstance(state, InfoState)

    def _pairs(self) -> dict[str, str]:
        return pairs_of(self)

    def __reduce__(self) -> Any:
        try:
            return super().__reduce__()
        except ValueError:
            return _recreate, (type(self), self.items())

    @classmethod
    def Create(cls, items: Info | Pairs | None = None) -> Self:
        """A new info object, with these pairs in it."""
        state = _state_of({})
        self: Self = plain_handle(cls, state) if cls is Info else cls._adopt(state)
        if items is not None:
            self.update(items)
        return self

    @classmethod
    def Create_env(cls, args: Any = None) -> Self:
        """A new info object about how the program was started."""
        arguments = [args] if isinstance(args, str) else list(args or sys.argv)
        return cls._adopt(_state_of(environment(arguments)))

    def Free(self) -> None:
        """Free it."""
        handle: Handle = self
        if handle._inner is None:
            pairs_of(self)
        if handle._name:
            raise MPIException(ERR_INFO, f"{handle._name} is predefined")
        handle._inner = None

    def Dup(self) -> Self:
        """A copy."""
        copied: Self = handle_like(self, _state_of(pairs_of(self).copy()))
        return copied

    def Get(self, key: str) -> str | None:
        """The value of a key, or None."""
        return pairs_of(self).get(c_string(key))

    def Set(self, key: str, value: str) -> None:
        """Set the value of a key."""
        key, value = c_string(key), c_string(value)
        pairs = pairs_of(self)
        if not 0 < len(key) <= MAX_INFO_KEY:
            raise MPIException(ERR_INFO_KEY, f"a key has 1 to {MAX_INFO_KEY} characters")
        if not 0 < len(value) <= MAX_INFO_VAL:
            raise MPIException(ERR_INFO_VALUE, f"a value has 1 to {MAX_INFO_VAL} characters")
        pairs[key] = value

    def Delete(self, key: str) -> None:
        """Delete a key."""
        if pairs_of(self).pop(c_string(key), None) is None:
            raise MPIException(ERR_INFO_NOKEY, f"there is no key {key!r}")

    def Get_nkeys(self) -> int:
        """How many keys there are."""
        return len(pairs_of(self))

    def Get_nthkey(self, n: int) -> str:
        """The n-th key, in the order they were set."""
        if type(n) is not int:
            n = whole_number(n)
        keys = list(pairs_of(self))
        if not 0 <= n < len(keys):
            raise MPIException(ERR_ARG, f"there is no key number {n}, there are {len(keys)}")
        return keys[n]

    # --- as a dictionary; a null info object is an empty one

    def _readable(self) -> dict[str, str]:
        return readable_pairs(self)

    def _writable(self) -> dict[str, str]:
        if self._inner is None:
            raise KeyError("the info object is null")
        return self._pairs()

    def __len__(self) -> int:
        return len(readable_pairs(self))

    def __contains__(self, value: object, /) -> bool:
        return c_string(value) in readable_pairs(self)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __getitem__(self, item: str, /) -> str:
        return readable_pairs(self)[c_string(item)]

    def __setitem__(self, item: str, value: str, /) -> None:
        self._writable()
        self.Set(item, value)

    def __delitem__(self, item: str, /) -> None:
        del self._writable()[c_string(item)]

    def get(self, key: str, default: str | None = None) -> str | None:
        """The value of a key, or `default`."""
        return readable_pairs(self).get(c_string(key), default)

    def keys(self) -> list[str]:
        """The keys."""
        return list(readable_pairs(self))

    def values(self) -> list[str]:
        """The values."""
        return list(readable_pairs(self).values())

    def items(self) -> list[tuple[str, str]]:
        """The pairs."""
        return list(readable_pairs(self).items())

    def update(self, items: Info | Pairs = (), **kwds: str) -> None:
        """Set several pairs."""
        self._writable()
        pairs = items.items() if isinstance(items, (Info, Mapping)) else items
        for key, value in (*pairs, *kwds.items()):
            self.Set(key, value)

    def pop(self, key: str, *default: str) -> str:
        """Delete a key; its value, or `default` if there is no such key."""
        return self._readable().pop(c_string(key), *default)

    def popitem(self) -> tuple[str, str]:
        """Delete the last pair."""
        return self._writable().popitem()

    def copy(self) -> Self:
        """A copy; of a null object a null one."""
        return type(self)() if self._inner is None else self.Dup()

    def clear(self) -> None:
        """Delete all pairs."""
        self._readable().clear()


def _recreate(cls: type[Info], items: list[tuple[str, str]]) -> Info:
    return cls.Create(items)


def environment(arguments: list[str]) -> dict[str, str]:
    """What INFO_ENV says: how this process was started.

    A world's size comes from the launcher's variables; what does not apply is left out.
    """
    said = {
        "command": arguments[0] if arguments else "",
        "argv": " ".join(arguments[1:]),
        "maxprocs": os.environ.get("OMPI_COMM_WORLD_SIZE", "1"),
        "wdir": os.getcwd(),
        "thread_level": "MPI_THREAD_MULTIPLE",
    }
    return {key: value for key, value in said.items() if value}


INFO_NULL: Final = Info()._constant("INFO_NULL")
INFO_ENV: Final = Info._adopt(_state_of(None))._constant("INFO_ENV")
