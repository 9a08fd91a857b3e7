"""Windows: what is done in which epoch, for `analysis/windows.py`."""

# ruff: noqa: SLF001 - states are private to users, not to us

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import signature as parameters_of
from typing import Any, Final
from zlib import crc32

from ompy.check.checker import Checker
from ompy.check.interposing import interpose_class
from ompy.check.signatures import differing_sides
from ompy.check.under_way import Entry
from ompy.check.window_memory import Parts, Twin
from ompy.data.constants import PROC_NULL
from ompy.data.layout import Layout
from ompy.mpi.constants import LOCK_EXCLUSIVE, MODE_NOPRECEDE, MODE_NOSUCCEED, WIN_FLAVOR_SHARED
from ompy.mpi.processes.life import COMM_SELF
from ompy.mpi.windows.window_messages import read_access

Handler = Callable[..., Any]
RUNS: Final = 4096  # ranges of an access; arbitrary: of what has more nothing is known
LARGEST: Final = 1 << 20  # bytes of an element with gaps; arbitrary, likewise
ORIGINS: Final = 256  # buffers of one window's open accesses that are looked at; arbitrary
_MAKING: Final = ("Create", "Allocate", "Allocate_shared", "Create_dynamic")
_OPEN: Final = "MPI 4.1, 12.5: every epoch that a program begins it also ends"
_REQUESTS: Final = (
    "{call}: operations with requests are for passive targets only, and there is no lock of rank "
    "{target} (MPI 4.1, 12.3.5). Use the call without a request, or Lock first"
)
_NOPRECEDE: Final = (
    "{call} says MODE_NOPRECEDE, but {before} was called since the last fence, and is not complete "
    "by this one. MPI 4.1, 12.5.5: leave the assertion out"
)
_UNLIKE: Final = (
    "{call}: {sides}. MPI 4.1, 12.3: the types have to agree, as those of a send and its receive"
)
_FREED: Final = (
    "{call} while {before} is not complete: the last fence was before it. MPI 4.1, 12.2.5: a "
    "window may be freed only when its epochs have ended; call Fence once more first"
)


class _Handle:
    """A communicator's state, as `Checker.comm` takes it."""

    def __init__(self, state: Any) -> None:
        self._inner = state


class Window:
    """One window of this rank.

    Attributes:
        number: in the record.
        state: of its handles.
        at, call: where it was made.
        comm: number of its communicator.
        begun: where epochs that are open were begun, by what they are and rank: (site, call).
        unfenced: the first access since the last fence, if there is one: (site, call).
        origins: buffers of open accesses: entry, target, whether it is read only here.
        twin: a copy of its memory, to see what changes it.
        local: lines that load from and store into its memory.
        looked: names of its memory were looked for since the last synchronization.
    """

    def __init__(self, checker: Checker, state: Any, at: int, call: str) -> None:
        self.number = checker.number()
        self.state = state
        self.at = at
        self.call = call
        self.comm = checker.comm(_Handle(state.comm))
        self.begun: dict[tuple[str, int], tuple[int, str]] = {}
        self.unfenced: tuple[int, str] | None = None
        self.origins: list[tuple[Entry, int, bool]] = []
        memory, shared = state.window.memory, state.window.flavor == WIN_FLAVOR_SHARED
        self.twin = Twin(memoryview(b"") if shared else memory)  # others may store there, too
        self.local = Parts(checker, self.number, state.rank, memory, shared)
        self.looked = False

    def is_passive(self, target: int) -> bool:
        """Whether a lock is held."""
        return ("Lock", target) in self.begun or ("Lock_all", -1) in self.begun

    def is_fenced(self) -> bool:
        """Whether an access now is in an epoch of fences."""
        kinds = {what for what, _ in self.begun}
        return not kinds & {"Lock", "Lock_all", "Start"}


class Windows:
    """A rank's windows, and the handlers of their calls."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._windows: dict[int, Window] = {}
        self._keys: dict[tuple[Any, ...], int] = {}

    def handlers(self) -> dict[str, Handler]:
        """By method of `MPI.Win`."""
        found: dict[str, Handler] = dict.fromkeys(_MAKING, self._make)
        found |= {name: self._access(name) for name in _PLACES}
        found |= {
            "Fence": self._fence,
            "Start": self._begin_general,
            "Post": self._begin_general,
            "Complete": self._complete,
            "Wait": self._wait,
            "Test": self._wait,
            "Lock": self._lock,
            "Unlock": self._unlock,
            "Lock_all": self._lock_all,
            "Unlock_all": self._unlock_all,
            "Sync": self._sync,
            "Shared_query": self._shared_query,
            **dict.fromkeys(("Flush", "Flush_local"), self._flush),
            **dict.fromkeys(("Flush_all", "Flush_local_all"), self._flush_all),
            **dict.fromkeys(("Free", "free"), self._free),
        }
        return found

    def _of(self, handle: Any) -> Window | None:
        return self._windows.get(id(handle._inner))

    # making and freeing

    def _make(
        self, check: Checker, at: int, call: str, original: Any, kind: Any, *args: Any, **named: Any
    ) -> Any:
        try:
            bound = parameters_of(original).bind(kind, *args, **named).arguments
        except TypeError:
            bound = {}
        parent = check.comm(bound.get("comm", COMM_SELF))
        name = call.rpartition(".")[2]
        check.write_event("coll", at, call, parent, f"Win.{name}", -1, "", None, None, 0)
        result = original(kind, *args, **named)
        window = self._windows[id(result._inner)] = Window(check, result._inner, at, call)
        self._tell(window)
        self._unshare(window)
        check.hold("window", at, call, result._inner)
        window.local.look_for_arrays()
        window.local.follow_maker()
        return result

    def _tell(self, window: Window) -> None:
        state = window.state
        communicator = state.comm.communicator
        members = [proc.rank for proc in communicator.procs]
        base = (communicator.context_id, *members)
        count = self._keys[base] = self._keys.get(base, 0) + 1
        digest = crc32(",".join(map(str, members)).encode())
        one_job = len({proc.world for proc in communicator.procs}) == 1
        key = f"{communicator.context_id}:{digest}:{count}" if one_job else ""
        event = (window.at, window.call, window.number, key, window.comm, state.rank)
        self._checker.write_event("win", *event)

    def _unshare(self, new: Window) -> None:
        """Of memory in two windows it is not known through which it is changed."""
        for window in self._windows.values():
            if window is not new and window.twin.overlaps(new.twin):
                for each in (window, new):
                    each.twin.drop()
                    each.local.drop()

    def _free(self, check: Checker, at: int, call: str, original: Any, win: Any) -> Any:
        window, state = self._of(win), win._inner
        if window is None:
            return original(win)
        if window.unfenced is not None:
            text = _FREED.format(call=call, before=window.unfenced[1])
            check.add_finding("epoch", text, (at, call), window.unfenced)
            window.unfenced = None
        self._look(window, at, call)
        self._write_sync(window, at, call, "free")
        check.write_event("coll", at, call, window.comm, "Win.Free", -1, "", None, None, 0)
        result = original(win)
        self._end_origins(window, lambda _target, _reads: True)
        window.twin.drop()
        window.local.drop()
        self._windows.pop(id(state), None)
        check.release(state)
        check.forget_comm(state.comm)
        return result

    # accesses

    def _access(self, name: str) -> Handler:
        """The handler of an operation."""
        what, origin_is_written = _PLACES[name]
        names: list[str] = []

        def handler(
            check: Checker, at: int, call: str, original: Any, win: Any, *args: Any, **named: Any
        ) -> Any:
            if not names:
                names.extend(list(parameters_of(original).parameters)[1:])
            given = {**dict(zip(names, args, strict=False)), **named}
            for part in ("origin", "compare", "result"):
                if part in given and check.buffers.busy:
                    writes = part == "result" or origin_is_written
                    check.buffers.used(at, call, given[part], writes=writes)
            result = original(win, *args, **named)
            window = self._of(win)
            if window is not None:
                self._accessed(window, at, call, what, given, result)
            return result

        return handler

    def _accessed(
        self, window: Window, at: int, call: str, what: str, given: dict[str, Any], result: Any
    ) -> None:
        """An operation was begun: write it down, and look after its buffers."""
        state, check = window.state, self._checker
        if not window.looked:  # once in an epoch: a program may make many accesses
            window.looked = True
            window.local.look_for_arrays()
        place = given.get("target", given.get("target_disp"))
        entry = self._entry(at, call, result)
        try:
            access = read_access(given["origin"], given["target_rank"], place, writable=False)
            if access.target == PROC_NULL:
                return
            where = state.reach.place(access)
            ranges = ranges_of(where.displacement, where.number, where.layout)
            op = _operation(given, where.layout) if what == "acc" else ""
            unlike = differing_sides(given["origin"], place)
        except Exception:
            return  # the call took what is not known here
        if unlike:
            check.add_finding("type-mismatch", _UNLIKE.format(call=call, sides=unlike), (at, call))
        if window.is_fenced():
            window.unfenced = window.unfenced or (at, call)
        if entry.kind == "rma" and not window.is_passive(access.target):
            text = _REQUESTS.format(call=call, target=access.target)
            check.add_finding("epoch", text, (at, call))
        reads = what == "get" or "result" in given
        request = entry.number if entry.kind == "rma" and reads else 0
        check.write_event("rma", at, call, window.number, what, access.target, ranges, op, request)
        if len(window.origins) >= ORIGINS:
            return
        check.buffers.begin_use(entry, given["origin"], writes=what == "get")
        if "result" in given:
            check.buffers.begin_use(entry, given["result"], writes=True)
        window.origins.append((entry, access.target, reads))

    def _entry(self, at: int, call: str, result: Any) -> Entry:
        """What an operation's buffers belong to: its request, or something like it."""
        if result is not None and getattr(result, "_inner", None) is not None:
            return self._checker.requests.begun(result, at, call, "rma")
        return Entry(self._checker.number(), at, call, "access", None)

    def _end_origins(self, window: Window, ends: Callable[[int, bool], bool]) -> None:
        """The buffers of some accesses may be used again."""
        left = []
        for each in window.origins:
            entry, target, reads = each
            if ends(target, reads):
                self._checker.buffers.end_use(entry)
            else:
                left.append(each)
        window.origins = left

    # epochs

    def _write_sync(
        self, window: Window, at: int, call: str, what: str, targets: Iterable[int] = (),
        mode: int = 0,
    ) -> None:  # fmt: skip
        window.looked = False
        self._checker.write_event("sync", at, call, window.number, what, list(targets), mode)

    def _look(self, window: Window, at: int, call: str) -> None:
        """An exposure epoch ends: what has changed in it?"""
        changed = window.twin.changes()
        if changed:
            rank = window.state.rank
            self._checker.write_event("rma", at, call, window.number, "store", rank, changed, "", 0)

    def _fence(
        self, check: Checker, at: int, call: str, original: Any, win: Any, assertion: Any = 0
    ) -> Any:
        window = self._of(win)
        if window is None or not window.state.epochs.may_fence():
            return original(win, assertion)
        mode = int(assertion)
        if mode & MODE_NOPRECEDE and window.unfenced is not None:
            text = _NOPRECEDE.format(call=call, before=window.unfenced[1])
            check.add_finding("epoch", text, (at, call), window.unfenced)
        window.unfenced = None
        self._look(window, at, call)
        # before the call: who waits in it has come to it
        self._write_sync(window, at, call, "fence", (), mode)
        check.write_event("coll", at, call, window.comm, "Win.Fence", -1, "", None, None, 0)
        result = original(win, assertion)
        self._end_origins(window, lambda _target, _reads: True)
        window.begun.pop(("Fence", -1), None)
        window.twin.end_epoch()
        if not mode & MODE_NOSUCCEED:
            window.begun["Fence", -1] = (at, call)
            window.twin.begin_epoch()
        window.local.look_for_arrays()
        return result

    def _begin_general(
        self, check: Checker, at: int, call: str, original: Any, win: Any, group: Any,
        assertion: Any = 0,
    ) -> Any:  # fmt: skip
        """The handler of `Start` and `Post`."""
        window = self._of(win)
        result = original(win, group, assertion)
        if window is not None:
            from ompy.mpi.communicators.communicators import ranks_of

            name = call.rpartition(".")[2]
            window.begun.pop(("Fence", -1), None)
            window.begun[name, -1] = (at, call)
            ranks = ranks_of(window.state.comm, group)
            self._write_sync(window, at, call, name.lower(), ranks, int(assertion))
            if name == "Post":
                window.twin.begin_epoch()
            window.local.look_for_arrays()
        return result

    def _complete(self, check: Checker, at: int, call: str, original: Any, win: Any) -> Any:
        result = original(win)
        window = self._of(win)
        if window is not None:
            window.begun.pop(("Start", -1), None)
            self._write_sync(window, at, call, "complete")
            self._end_origins(window, lambda _target, _reads: True)
        return result

    def _wait(self, check: Checker, at: int, call: str, original: Any, win: Any) -> Any:
        """The handler of `Wait` and `Test`."""
        window = self._of(win)
        result = original(win)
        if window is not None and result:
            self._look(window, at, call)
            window.begun.pop(("Post", -1), None)
            self._write_sync(window, at, call, "wait")
            window.twin.end_epoch()
            window.local.look_for_arrays()
        return result

    def _lock(
        self, check: Checker, at: int, call: str, original: Any, win: Any, rank: Any,
        lock_type: Any = LOCK_EXCLUSIVE, assertion: Any = 0,
    ) -> Any:  # fmt: skip
        result = original(win, rank, lock_type, assertion)
        window = self._of(win)
        if window is not None and int(rank) != PROC_NULL:
            window.begun["Lock", int(rank)] = (at, call)
            mode = int(lock_type) | int(assertion) << 8
            self._write_sync(window, at, call, "lock", [int(rank)], mode)
            window.local.look_for_arrays()
        return result

    def _unlock(
        self, check: Checker, at: int, call: str, original: Any, win: Any, rank: Any
    ) -> Any:
        result = original(win, rank)
        window = self._of(win)
        if window is not None and int(rank) != PROC_NULL:
            window.begun.pop(("Lock", int(rank)), None)
            self._write_sync(window, at, call, "unlock", [int(rank)])
            self._end_origins(window, lambda target, _reads: target == int(rank))
        return result

    def _lock_all(
        self, check: Checker, at: int, call: str, original: Any, win: Any, assertion: Any = 0
    ) -> Any:
        result = original(win, assertion)
        window = self._of(win)
        if window is not None:
            window.begun["Lock_all", -1] = (at, call)
            self._write_sync(window, at, call, "lock_all", (), int(assertion) << 8)
            window.local.look_for_arrays()
        return result

    def _unlock_all(self, check: Checker, at: int, call: str, original: Any, win: Any) -> Any:
        result = original(win)
        window = self._of(win)
        if window is not None:
            window.begun.pop(("Lock_all", -1), None)
            self._write_sync(window, at, call, "unlock_all")
            self._end_origins(window, lambda _target, _reads: True)
        return result

    def _flush(self, check: Checker, at: int, call: str, original: Any, win: Any, rank: Any) -> Any:
        """The handler of `Flush` and `Flush_local`."""
        result = original(win, rank)
        window = self._of(win)
        if window is not None and int(rank) != PROC_NULL:
            what = call.rpartition(".")[2].lower()
            self._write_sync(window, at, call, what, [int(rank)])
            self._end_origins(window, lambda target, _reads: target == int(rank))
        return result

    def _flush_all(self, check: Checker, at: int, call: str, original: Any, win: Any) -> Any:
        """The handler of `Flush_all` and `Flush_local_all`."""
        result = original(win)
        window = self._of(win)
        if window is not None:
            what = call.rpartition(".")[2].removesuffix("_all").lower()
            self._write_sync(window, at, call, what)
            self._end_origins(window, lambda _target, _reads: True)
        return result

    def _sync(self, check: Checker, at: int, call: str, original: Any, win: Any) -> Any:
        result = original(win)
        window = self._of(win)
        if window is not None:
            self._write_sync(window, at, call, "sync")
            window.local.look_for_arrays()
        return result

    def _shared_query(
        self, check: Checker, at: int, call: str, original: Any, win: Any, rank: Any
    ) -> Any:
        """Whoever asks for another one's memory may store there."""
        result = original(win, rank)
        window = self._of(win)
        if window is not None:
            sizes, owner = window.state.reach.sizes, int(rank)
            if owner == PROC_NULL:
                owner = next((each for each, size in enumerate(sizes) if size), 0)
            if owner != window.state.rank:
                self._write_sync(window, at, call, "shared", [owner])
            if window.state.window.flavor == WIN_FLAVOR_SHARED:
                window.local.add_part(owner, memoryview(result[0]))
                window.local.follow_maker()
        return result

    def forget_all(self) -> None:
        """Know of none any more."""
        for window in self._windows.values():
            window.local.drop()
        self._windows.clear()
        self._keys.clear()

    def finish(self) -> None:
        """The rank begins to finalize: what is open stays so."""
        for window in self._windows.values():
            window.local.drop()
            self._end_origins(window, lambda _target, _reads: True)
            for (what, target), (at, call) in window.begun.items():
                if what == "Fence":
                    continue
                of = f" of rank {target}" if target >= 0 else ""
                text = (
                    f"the epoch that {call}{of} begins has not ended when the program does. "
                    f"{_OPEN}; call {_CLOSING[what]}"
                )
                self._checker.add_finding("epoch", text, (at, call))
            if window.unfenced is not None:
                text = (
                    f"{window.unfenced[1]} is never complete: no fence comes after it. {_OPEN}; "
                    "call Fence once more"
                )
                self._checker.add_finding("epoch", text, window.unfenced)


def ranges_of(begin: int, number: int, layout: Layout) -> list[tuple[int, int]] | None:
    """The bytes of some elements, without those between; None if there are too many pieces.

    Args:
        begin: byte of the first element's origin.
        number: of elements.
        layout: of each.
    """
    if not number or not layout.size:
        return []
    if layout.contiguous:
        return [(begin, begin + number * layout.size)]
    if layout.size > LARGEST or number > RUNS:
        return None
    blocks = layout.blocks
    if number * len(blocks) > RUNS:
        return None
    starts = [begin + place * layout.extent for place in range(number)]
    found: list[tuple[int, int]] = []
    for low, high in sorted((start + at, start + at + n) for start in starts for at, n in blocks):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found


def _operation(given: dict[str, Any], layout: Layout) -> str:
    """An accumulate's operation, and the basic type of its elements."""
    if "compare" in given:
        name = "CAS"
    else:
        op = given.get("op")
        name = "SUM" if op is None else str(op._state().name).removeprefix("MPI_")
    kind = layout.format if len(layout.format) == 1 else ""
    sizes = {"b": 1, "h": 2, "i": 4, "l": 8, "q": 8, "e": 2, "f": 4, "d": 8, "g": 16, "x": 1}
    if kind in "lLqQ" and kind:
        kind = "q" if kind.islower() else "Q"
    size = sizes.get(kind.lower(), 0) * (2 if kind in {"F", "D", "G"} else 1)
    return f"{name}/{kind}{size or ''}"


# what each operation does, and whether it writes into its origin buffer
_PLACES: Final = {
    **dict.fromkeys(("Put", "Rput"), ("put", False)),
    **dict.fromkeys(("Get", "Rget"), ("get", True)),
    **dict.fromkeys(
        (
            "Accumulate", "Raccumulate", "Get_accumulate", "Rget_accumulate", "Fetch_and_op",
            "Compare_and_swap",
        ),
        ("acc", False),
    ),
}  # fmt: skip
_CLOSING: Final = {
    "Lock": "Unlock",
    "Lock_all": "Unlock_all",
    "Start": "Complete",
    "Post": "Wait",
}
_of_checker: Final[dict[Checker, Windows]] = {}


def begin(checker: Checker) -> None:
    """Put handlers in front of the calls of windows."""
    import ompy.MPI as MPI  # noqa: PLR0402 - as programs name it

    windows = _of_checker[checker] = Windows(checker)
    interpose_class(checker, MPI.Win, "win.", windows.handlers())


def forget_all(checker: Checker) -> None:
    """Know of no window any more."""
    _of_checker[checker].forget_all()


def finish(checker: Checker) -> None:
    """The rank begins to finalize."""
    windows = _of_checker.pop(checker, None)
    if windows is not None:
        windows.finish()
