"""Files: who has which open, what is done with each, for `analysis/files.py`.

The calls that all members make together are collective calls of the file's own communicator, as
`record.py` has them; a split call is one that begins there, and that its `_end` waits for.
"""

# ruff: noqa: SLF001 - states are private to users, not to us

from __future__ import annotations

import os
from collections.abc import Callable
from inspect import signature as parameters_of
from typing import Any, Final

from ompy.check.buffers import region_of
from ompy.check.checker import Checker
from ompy.check.interposing import interpose_class
from ompy.check.signatures import first_difference, of_message, of_type, text
from ompy.check.under_way import Entry
from ompy.mpi import constants
from ompy.mpi.buffers.spec import message
from ompy.mpi.constants import MODE_RDONLY

Handler = Callable[..., Any]
Ranges = list[tuple[int, int]]
RUNS: Final = 4096  # ranges of an access; arbitrary: of what has more nothing is known
_OPAQUE: Final = ("BYTE", "PACKED")  # what goes with any etype, and as which any data go
_SHARED: Final = ("shared", "ordered")  # at a pointer of all: where that is, is not known
_MODES: Final = (
    "MODE_RDONLY", "MODE_WRONLY", "MODE_RDWR", "MODE_CREATE", "MODE_EXCL", "MODE_DELETE_ON_CLOSE",
    "MODE_UNIQUE_OPEN", "MODE_SEQUENTIAL", "MODE_APPEND",
)  # fmt: skip
BEGUN_TWICE: Final = (
    "{call} while {before} has not ended. MPI 4.1, 14.4.5: a file has one split collective call at "
    "a time; call {name}_end first"
)
BETWEEN: Final = (
    "{call} while {before} has not ended. MPI 4.1, 14.4.5: no other collective call is made on a "
    "file while a split one has begun; call {name}_end first"
)
CLOSED: Final = (
    "{call} while {before} has not ended. MPI 4.1, 14.2.2: all that was begun on a file is "
    "complete before it is closed; call {name}_end first"
)
PENDING: Final = (
    "{call} while {before} is not complete. MPI 4.1, 14.2.2, 14.2.4, 14.3 and 14.6.1: all that was "
    "begun on a file is complete before Close, Set_size, Set_view and Sync; wait for it first"
)
ENDED_OTHER: Final = (
    "{call} ends {other}. MPI 4.1, 14.4.5: it ends what {name}_begin has begun, and nothing else; "
    "each begin has its own end"
)
NEVER_ENDED: Final = (
    "{call}: the split collective call was never ended. MPI 4.1, 14.4.5: call {name}_end; until "
    "then its buffer is in use"
)
OTHER_BUFFER: Final = (
    "{call} names another buffer than {before}. MPI 4.1, 14.4.5: both name the same one"
)
ETYPE: Final = (
    "{call} {does} {data} through a view whose etype is {etype}. MPI 4.1, 14.6.6: data are whole "
    "etypes of the view, or bytes; set the view with the type of the data"
)


def amode_text(amode: Any) -> str:
    """How a file is opened, as programs write it."""
    if not isinstance(amode, int):
        return str(amode)
    names = [name for name in _MODES if amode & getattr(constants, name)]
    return " | ".join(names) or str(amode)


class _Handle:
    """A communicator's state, as `Checker.comm` takes it."""

    def __init__(self, state: Any) -> None:
        self._inner = state


class OpenFile:
    """One open file of this rank.

    Attributes:
        number: in the record.
        state: of its handles.
        comm: number of its communicator.
        begun: operations with requests that may be under way.
        split: the split call that has begun, its name without `_begin`; None if there is none.
        buffer: of that.
        viewed: where the view was set; None for the one of bytes.
    """

    def __init__(self, checker: Checker, state: Any) -> None:
        self.number = checker.number()
        self.state = state
        self.comm = checker.comm(_Handle(state.comm))
        self.begun: list[Entry] = []
        self.split: tuple[str, Entry] | None = None
        self.buffer: Any = None
        self.viewed: tuple[int, str] | None = None


class Files:
    """A rank's open files, and the handlers of their calls."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._files: dict[int, OpenFile] = {}

    def handlers(self) -> dict[str, Handler]:
        """By method of `MPI.File`."""
        found: dict[str, Handler] = {name: self._access(name) for name in ACCESSES}
        found |= {f"{name}_begin": self._access(name, split=True) for name in SPLIT}
        found |= {f"{name}_end": self._end for name in SPLIT}
        found |= dict.fromkeys(("Sync", "Set_info", *_AGREED), self._together)
        found |= {"Open": self._open, "Set_view": self._view}
        found |= dict.fromkeys(("Close", "free"), self._close)
        return found

    def _of(self, handle: Any) -> OpenFile | None:
        return self._files.get(id(handle._inner))

    def _coll(self, comm: int, at: int, call: str, name: str, request: int = 0) -> None:
        """Write down a call that all members of a communicator, by its number, make together."""
        event = (at, call, comm, f"File.{name}", -1, "", None, None, request)
        self._checker.write_event("coll", *event)

    # opening and closing

    def _open(
        self, check: Checker, at: int, call: str, original: Any, kind: Any, *args: Any, **named: Any
    ) -> Any:
        given = _given(original, (kind, *args), named)
        comm = given.get("comm")
        path = _path_of(given.get("filename"))
        if hasattr(comm, "_inner") and path:
            parent, amode = check.comm(comm), given.get("amode", MODE_RDONLY)
            self._coll(parent, at, call, "Open")
            said = (("file", path, path), ("amode", amode, amode_text(amode)))
            check.write_event("said", at, call, parent, "File.Open", said)
        result = original(kind, *args, **named)
        state = result._inner
        file = self._files[id(state)] = OpenFile(check, state)
        check.write_event("file", at, call, file.number, file.comm, path, _identity(path))
        check.hold("file", at, call, state)
        return result

    def _close(self, check: Checker, at: int, call: str, original: Any, fh: Any) -> Any:
        file, state = self._of(fh), fh._inner
        if file is None:
            return original(fh)
        self._see_nothing_pending(file, at, call)
        for entry in file.begun:  # it was told of
            check.requests.forget(entry)
        self._coll(file.comm, at, call, "Close")
        result = original(fh)
        self._files.pop(id(state), None)
        check.release(state)
        check.forget_comm(state.comm)
        return result

    def _see_nothing_pending(self, file: OpenFile, at: int, call: str) -> None:
        """What is under way has to be complete before some calls."""
        if file.split is not None and call in _CLOSING:
            self._refuse(file, at, call, CLOSED)
        else:
            self._see_no_split(file, at, call)
        file.begun = [entry for entry in file.begun if entry.active]
        for entry in file.begun:
            said = PENDING.format(call=call, before=entry.call)
            sites = ((at, call), (entry.at, entry.call))
            self._checker.add_finding("request-lifecycle", said, *sites)

    def _refuse(self, file: OpenFile, at: int, call: str, said: str) -> None:
        """The call will raise: it is a finding if the program ends by it."""
        assert file.split is not None, "it is about a split call"
        name, entry = file.split
        sites = ((at, call), (entry.at, entry.call))
        text_of = said.format(call=call, before=entry.call, name=name)
        self._checker.write_event("raised", "request-lifecycle", text_of, sites)

    def _see_no_split(self, file: OpenFile, at: int, call: str) -> None:
        """No other call of all members is made while a split one has begun."""
        if file.split is not None:
            name, entry = file.split
            said = BETWEEN.format(call=call, before=entry.call, name=name)
            sites = ((at, call), (entry.at, entry.call))
            self._checker.add_finding("request-lifecycle", said, *sites)

    # what all members say together

    def _together(
        self, check: Checker, at: int, call: str, original: Any, fh: Any, *args: Any, **named: Any
    ) -> Any:
        file, name = self._of(fh), call.rpartition(".")[2]
        if file is not None:
            given = _given(original, (fh, *args), named)
            if name in _QUIET:
                self._see_nothing_pending(file, at, call)
            self._coll(file.comm, at, call, name)
            self._say(file, at, call, [(each, given.get(each)) for each in _AGREED.get(name, ())])
        return original(fh, *args, **named)

    def _say(self, file: OpenFile, at: int, call: str, values: list[tuple[str, Any]]) -> None:
        """Write down what all members have to say alike."""
        said = tuple((name, value, str(value)) for name, value in values if _plain(value))
        if said:
            kind = f"File.{call.rpartition('.')[2]}"
            self._checker.write_event("said", at, call, file.comm, kind, said)

    def _view(
        self, check: Checker, at: int, call: str, original: Any, fh: Any, *args: Any, **named: Any
    ) -> Any:
        file = self._of(fh)
        if file is None:
            return original(fh, *args, **named)
        given = _given(original, (fh, *args), named)
        self._see_nothing_pending(file, at, call)
        self._coll(file.comm, at, call, "Set_view")
        etype, datarep = getattr(given.get("etype"), "_inner", None), given.get("datarep", "native")
        said: tuple[tuple[str, Any, str], ...] = (("datarep", str(datarep), str(datarep)),)
        if etype is not None:
            extent = f"{text(of_type(etype))} ({etype.layout.extent} bytes)"
            said += (("etype", etype.layout.extent, extent),)
        check.write_event("said", at, call, file.comm, "File.Set_view", said)
        result = original(fh, *args, **named)
        file.viewed = (at, call)
        return result

    # accesses

    def _access(self, name: str, *, split: bool = False) -> Handler:
        """The handler of a call that reads or writes."""
        base = name.removeprefix("I").capitalize() if name[0] == "I" else name
        reads, together = base.startswith("Read"), base.endswith(("all", "ordered"))
        called, later = f"{name}_begin" if split else name, split or name[0] == "I"
        names: list[str] = []

        def handler(
            check: Checker, at: int, call: str, original: Any, fh: Any, *args: Any, **named: Any
        ) -> Any:
            file = self._of(fh)
            if file is None:
                return original(fh, *args, **named)
            if not names:
                names.extend(list(parameters_of(original).parameters)[1:])
            given = {**dict(zip(names, args, strict=False)), **named}
            buffer, request = given.get("buf"), check.number() if later else 0
            check.buffers.used(at, call, buffer, writes=reads)
            if together:
                if split and file.split is not None:
                    self._refuse(file, at, call, BEGUN_TWICE)
                else:
                    self._see_no_split(file, at, call)
                self._coll(file.comm, at, call, called, request)
            self._compare_types(file, at, call, buffer, reads=reads)
            unknown = base.endswith(_SHARED)
            ranges = None if unknown else _ranges(file.state, given.get("offset"), buffer)
            result = original(fh, *args, **named)
            what, atomic = "read" if reads else "write", file.state.module.atomic
            check.write_event("access", at, call, file.number, what, ranges, atomic, request)
            if later:
                self._begun(file, at, call, result, request, base if split else "", buffer, reads)
            return result

        return handler

    def _begun(
        self, file: OpenFile, at: int, call: str, result: Any, request: int, split: str,
        buffer: Any, reads: bool,
    ) -> None:  # fmt: skip
        """An operation was begun that something else ends."""
        check = self._checker
        if split:
            entry = Entry(request, at, call, "file", None)
            file.split, file.buffer = (split, entry), buffer
        else:
            entry = check.requests.begun(result, at, call, "file")
            entry.number = request
            file.begun = [each for each in file.begun if each.active]
            file.begun.append(entry)
        check.buffers.begin_use(entry, buffer, writes=reads)

    def _end(
        self, check: Checker, at: int, call: str, original: Any, fh: Any, *args: Any, **named: Any
    ) -> Any:
        """The handler of what ends a split call."""
        file = self._of(fh)
        if file is None:
            return original(fh, *args, **named)
        name = call.rpartition(".")[2].removesuffix("_end")
        begun = file.split
        if begun is None or begun[0] != name:
            said = ENDED_OTHER.format(
                call=call, name=name, other="nothing" if begun is None else begun[1].call
            )
            sites = [(at, call)] + ([(begun[1].at, begun[1].call)] if begun is not None else [])
            check.write_event("raised", "request-lifecycle", said, tuple(sites))
            return original(fh, *args, **named)
        entry = begun[1]
        self._coll(file.comm, at, call, f"{name}_end")
        given = _given(original, (fh, *args), named)
        if not _is_same_memory(file.buffer, given.get("buf")):
            said = OTHER_BUFFER.format(call=call, before=entry.call)
            check.add_finding("invalid-argument", said, (at, call), (entry.at, entry.call))
        file.split = file.buffer = None
        try:
            return original(fh, *args, **named)
        finally:
            check.buffers.end_use(entry)
            check.write_event("wait", at, call, [entry.number], [entry.number], "all")

    def _compare_types(self, file: OpenFile, at: int, call: str, buffer: Any, reads: bool) -> None:
        """Data are whole etypes (MPI 4.1, 14.6.6); bytes go with anything."""
        etype = file.state.view.etype
        if file.viewed is None or etype.symbol in _OPAQUE:
            return
        data = of_message(buffer)
        if data is None or _is_opaque(data) or _is_opaque(of_type(etype)):
            return
        runs, times = of_type(etype)
        many = sum(number for _, number in data[0]) * data[1]
        if first_difference(data, (runs, times * max(1, many))) is not None:
            does = "reads" if reads else "writes"
            said = ETYPE.format(call=call, does=does, data=text(data), etype=text((runs, times)))
            self._checker.add_finding("type-mismatch", said, (at, call), file.viewed)

    # the rank

    def forget_all(self) -> None:
        """Know of none any more."""
        self._files.clear()

    def finish(self) -> None:
        """The rank begins to finalize: what has begun stays so."""
        for file in self._files.values():
            if file.split is not None:
                name, entry = file.split
                said = NEVER_ENDED.format(call=entry.call, name=name)
                self._checker.add_finding("request-lifecycle", said, (entry.at, entry.call))
                self._checker.buffers.end_use(entry, quietly=True)
                self._checker.release(file.state)


def _given(original: Any, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """A call's arguments by name; what is left out as the call has it."""
    try:
        bound = parameters_of(original).bind(*args, **named)
    except TypeError:
        return {}  # the call itself says what is wrong
    bound.apply_defaults()
    return bound.arguments


def _plain(value: Any) -> bool:
    """Whether a value can be compared, and written down."""
    return isinstance(value, (int, str))


def _path_of(filename: Any) -> str:
    try:
        return os.path.realpath(os.fsdecode(filename))
    except (TypeError, ValueError, OSError):
        return ""


def _identity(path: str) -> str:
    """What tells two files apart where their paths do not; empty where that is not known."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return ""
    return f"{found.st_dev}:{found.st_ino}"


def _is_opaque(signature: Any) -> bool:
    """Whether it is bytes: also numbers of one byte, as those of a `bytearray`."""
    letters = [letter for letter, _ in signature[0]]
    return all(letter.startswith(_OPAQUE) or letter[1:] == "1" for letter in letters)


def _is_same_memory(one: Any, other: Any) -> bool:
    """Whether two buffers begin at one place; also where that is not known."""
    ours, theirs = region_of(one), region_of(other)
    if ours is None or theirs is None or not ours.runs or not theirs.runs:
        return True
    return ours.base + ours.runs[0][0] == theirs.base + theirs.runs[0][0]


def _ranges(state: Any, offset: Any, buffer: Any) -> Ranges | None:
    """The bytes of the file that an access is about to move; None where that is not known.

    Args:
        state: of the file.
        offset: in etypes; None for the rank's own pointer.
        buffer: of the call.
    """
    view = state.view
    try:
        typed = message(buffer, writable=False)
        count, form = typed.message.count, view.representation
        size = count * typed.message.layout.size
        if form is not None:
            size = form.size(typed.datatype, count)
        begin = state.position if offset is None else int(offset) * view.unit
        if not view.seen.size or begin < 0:
            return []
        found: Ranges = []
        for at, _, length in view.seen.runs(begin, begin + size):
            found.append((at, at + length))
            if len(found) > RUNS:
                return None
    except Exception:
        return None  # the call itself says what is wrong
    return found


SPLIT: Final = (
    "Read_at_all", "Read_all", "Read_ordered", "Write_at_all", "Write_all", "Write_ordered",
)  # fmt: skip
ACCESSES: Final = (
    *SPLIT, "Read", "Read_at", "Read_shared", "Write", "Write_at", "Write_shared",
    "Iread", "Iread_at", "Iread_at_all", "Iread_all", "Iread_shared",
    "Iwrite", "Iwrite_at", "Iwrite_at_all", "Iwrite_all", "Iwrite_shared",
)  # fmt: skip
# arguments that all members say alike
_AGREED: Final[dict[str, tuple[str, ...]]] = {
    "Set_size": ("size",),
    "Preallocate": ("size",),
    "Set_atomicity": ("flag",),
    "Seek_shared": ("offset", "whence"),
}
_QUIET: Final = frozenset({"Set_size", "Sync"})  # nothing may be under way meanwhile
_CLOSING: Final = frozenset({"file.Close", "file.free"})
_of_checker: Final[dict[Checker, Files]] = {}


def watch_files(checker: Checker) -> None:
    """Put handlers in front of the calls of files."""
    import ompy.MPI as MPI  # noqa: PLR0402 - as programs name it

    files = _of_checker[checker] = Files(checker)
    interpose_class(checker, MPI.File, "file.", files.handlers())


def forget_all(checker: Checker) -> None:
    """Know of no file any more."""
    _of_checker[checker].forget_all()


def finish(checker: Checker) -> None:
    """The rank begins to finalize."""
    files = _of_checker.pop(checker, None)
    if files is not None:
        files.finish()
