"""`MPI.Info`: hints as pairs of strings."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final, Self

from ompy.data.errors import ERR_ARG, ERR_INFO, ERR_INFO_KEY, ERR_INFO_NOKEY, ERR_INFO_VALUE
from ompy.mpi.constants import MAX_INFO_KEY, MAX_INFO_VAL
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import Handle, State, handle_like, made_plainly, plain_handle
from ompy.mpi.integers import whole_number
from ompy.mpi.strings import c_string

Pairs = Mapping[str, str] | Iterable[tuple[str, str]]


class InfoState(State):
    """Pairs of an info object.

    Attributes:
        pairs: in the order they were set.
    """

    __slots__ = ("pairs",)

    def __init__(self, pairs: dict[str, str] | None = None) -> None:
        self.number = 0
        self.pairs = {} if pairs is None else pairs


@made_plainly
class Info(Handle):
    """An ordered dictionary of strings."""

    __slots__ = ()
    _kind: ClassVar[str] = "Info"

    def __new__(cls, info: Info | None = None) -> Self:
        """A null handle, or another one for the same info object."""
        return cls._make(info)

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return isinstance(state, InfoState)

    def _pairs(self) -> dict[str, str]:
        if self._inner is None:
            raise MPIException(ERR_INFO, "the info object is null (INFO_NULL, or freed)")
        pairs: dict[str, str] = self._inner.pairs
        return pairs

    def __reduce__(self) -> Any:
        try:
            return super().__reduce__()
        except ValueError:
            return _recreate, (type(self), self.items())

    @classmethod
    def Create(cls, items: Info | Pairs | None = None) -> Self:
        """A new info object, with these pairs in it."""
        self: Self = plain_handle(cls, InfoState()) if cls is Info else cls._adopt(InfoState())
        if items is not None:
            self.update(items)
        return self

    @classmethod
    def Create_env(cls, args: Any = None) -> Self:
        """A new info object about how the program was started."""
        arguments = [args] if isinstance(args, str) else list(args or sys.argv)
        return cls._adopt(InfoState(environment(arguments)))

    def Free(self) -> None:
        """Free it."""
        if self._inner is None:
            self._pairs()
        if self._name:
            raise MPIException(ERR_INFO, f"{self._name} is predefined")
        self._inner = None

    def Dup(self) -> Self:
        """A copy."""
        copied: Self = handle_like(self, InfoState({**self._pairs()}))
        return copied

    def Get(self, key: str) -> str | None:
        """The value of a key, or None."""
        inner = self._inner
        pairs = self._pairs() if inner is None else inner.pairs
        return pairs.get(c_string(key))

    def Set(self, key: str, value: str) -> None:
        """Set the value of a key."""
        key, value = c_string(key), c_string(value)
        inner = self._inner
        pairs = self._pairs() if inner is None else inner.pairs
        if not 0 < len(key) <= MAX_INFO_KEY:
            raise MPIException(ERR_INFO_KEY, f"a key has 1 to {MAX_INFO_KEY} characters")
        if not 0 < len(value) <= MAX_INFO_VAL:
            raise MPIException(ERR_INFO_VALUE, f"a value has 1 to {MAX_INFO_VAL} characters")
        pairs[key] = value

    def Delete(self, key: str) -> None:
        """Delete a key."""
        if self._pairs().pop(c_string(key), None) is None:
            raise MPIException(ERR_INFO_NOKEY, f"there is no key {key!r}")

    def Get_nkeys(self) -> int:
        """How many keys there are."""
        inner = self._inner
        return len(self._pairs() if inner is None else inner.pairs)

    def Get_nthkey(self, n: int) -> str:
        """The n-th key, in the order they were set."""
        if type(n) is not int:
            n = whole_number(n)
        inner = self._inner
        keys: list[str] = [*(self._pairs() if inner is None else inner.pairs)]
        if not 0 <= n < len(keys):
            raise MPIException(ERR_ARG, f"there is no key number {n}, there are {len(keys)}")
        return keys[n]

    # --- as a dictionary; a null info object is an empty one

    def _readable(self) -> dict[str, str]:
        return {} if self._inner is None else self._pairs()

    def _writable(self) -> dict[str, str]:
        if self._inner is None:
            raise KeyError("the info object is null")
        return self._pairs()

    def __len__(self) -> int:
        return len(self._readable())

    def __contains__(self, value: object, /) -> bool:
        return c_string(value) in self._readable()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __getitem__(self, item: str, /) -> str:
        return self._readable()[c_string(item)]

    def __setitem__(self, item: str, value: str, /) -> None:
        self._writable()
        self.Set(item, value)

    def __delitem__(self, item: str, /) -> None:
        del self._writable()[c_string(item)]

    def get(self, key: str, default: str | None = None) -> str | None:
        """The value of a key, or `default`."""
        return self._readable().get(c_string(key), default)

    def keys(self) -> list[str]:
        """The keys."""
        return list(self._readable())

    def values(self) -> list[str]:
        """The values."""
        return list(self._readable().values())

    def items(self) -> list[tuple[str, str]]:
        """The pairs."""
        return list(self._readable().items())

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


class _EnvironmentState(InfoState):
    """INFO_ENV's pairs, gathered when first looked at."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        State.__init__(self)
        self._known: dict[str, str] | None = None

    @property
    def pairs(self) -> dict[str, str]:  # type: ignore[override]
        if self._known is None:
            self._known = environment(list(sys.argv))
        return self._known


INFO_NULL: Final = Info()._constant("INFO_NULL")
INFO_ENV: Final = Info._adopt(_EnvironmentState())._constant("INFO_ENV")
