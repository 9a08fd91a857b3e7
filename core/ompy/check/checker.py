"""What is known of one rank while it is checked, and how its handlers write it down."""

# ruff: noqa: SLF001 - states are private to users, not to us

from __future__ import annotations

import sys
import threading
from collections import Counter
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from ompy.check.again.places import Places
from ompy.check.callees import enters_program
from ompy.check.interposing import Within
from ompy.check.lines import names_memory, place_of_write
from ompy.check.record import MET, program_frame
from ompy.check.recorder import Recorder
from ompy.data import errors
from ompy.mpi.errors import MPIException

if TYPE_CHECKING:
    from ompy.check.buffers import Buffers, Pending
    from ompy.check.under_way import Requests

# partitioned messages prepared: by source, target, tag, and whether as the sender's end
Prepared = Counter[tuple[int, int, int, bool]]
# the class of finding of an error class; what is not here says nothing of the program
CLASSES: Final = {
    **dict.fromkeys(
        (
            "BUFFER", "COUNT", "TYPE", "TAG", "COMM", "RANK", "ROOT", "GROUP", "OP", "TOPOLOGY",
            "DIMS", "ARG", "REQUEST", "WIN", "INFO", "KEYVAL", "BASE", "SIZE", "DISP", "LOCKTYPE",
            "RMA_RANGE", "RMA_ATTACH", "RMA_SHARED", "RMA_FLAVOR", "ASSERT", "NOT_SAME", "AMODE",
            "INFO_KEY", "INFO_VALUE", "SESSION", "ERRHANDLER", "FILE", "BAD_FILE", "READ_ONLY",
            "UNSUPPORTED_OPERATION", "UNSUPPORTED_DATAREP", "DUP_DATAREP",
        ),
        "invalid-argument",
    ),
    "RMA_SYNC": "epoch",
    "RMA_CONFLICT": "rma-race",
    "TRUNCATE": "count-mismatch",
}  # fmt: skip
BY_CODE: Final = {
    getattr(errors, f"ERR_{name}"): found
    for name, found in CLASSES.items()
    if hasattr(errors, f"ERR_{name}")
}
CHAPTERS: Final = {
    "invalid-argument": "MPI 4.1, 2.4: arguments have to be valid",
    "epoch": "MPI 4.1, 12.5: accesses need an epoch, and epochs begin and end in pairs",
    "rma-race": "MPI 4.1, 12.7",
    "count-mismatch": "MPI 4.1, 3.2.4: a message may not be longer than the receive",
    "type-mismatch": "MPI 4.1, 12.3: the types of both sides have to agree",
    "request-lifecycle": "MPI 4.1, 3.7 and 3.9",
    "deadlock": "MPI 4.1, 11.2.2: who has ended does nothing that others could wait for",
}


class Checker:
    """One rank's.

    Attributes:
        recorder: the record.
        rank: of the job.
        inside: whether this thread is in a call.
        mark: of methods that have a handler in front.
        sees_callbacks: what the program calls in a callback of a call is a call, too.
        places: of the program's calls.
        requests: those under way.
        buffers: memory in use by them.
        comms: by state's id, a communicator's number and its state, kept as long as it lives.
        synchronous: standard sends wait for their receives.
        handles: what has to be freed: by state's id, (what it is, site, call, state).
        duplicates: communicators that `Idup` or `Ishrink` has begun to make: (handle, site, call).
    """

    requests: Requests
    buffers: Buffers
    sees_callbacks = True

    def __init__(self, recorder: Recorder, rank: int) -> None:
        self.recorder = recorder
        self.rank = rank
        self.inside = Within()
        self.mark = "ompy_checked"
        self.places = Places()
        self.synchronous = False
        self.comms: dict[int, tuple[int, Any]] = {}
        self.handles: dict[int, tuple[str, int, str, Any]] = {}
        self.duplicates: list[tuple[Any, int, str]] = []
        self._keys: dict[tuple[Any, ...], int] = {}
        self._called: set[int] = set()
        self._last_refused: dict[int, tuple[int, tuple[Any, ...]]] = {}  # by thread
        self._partitioned: dict[int, tuple[Prepared, dict[str, int]]] = {}  # by state's id

    def number(self) -> int:
        """A number that nothing else has here."""
        return self.recorder.number()

    def site(self, frame: FrameType | None) -> int:
        """The number of the line of a call that a handler is about to make."""
        if self.requests.again:
            self.requests.guard_all()
        found = self.recorder.site(frame)
        if found not in self._called:
            self._called.add(found)
            caller = program_frame(frame)
            if caller is not None:
                self.places.add_place(caller)
        return found

    def write_event(self, *event: Any) -> None:
        """Add to the record."""
        self.recorder.write_event(event)

    def write_again(self, event: tuple[Any, ...], first: int, second: int = 0) -> None:
        """Add an entry whose like may have come before, with the numbers of its requests."""
        self.recorder.write_again(event, first, second)

    def add_finding(self, kind: str, message: str, *sites: tuple[int, str]) -> None:
        """Something is wrong.

        Args:
            kind: its class.
            message: what, why, and what would be right.
            sites: lines with the call made there.
        """
        self.recorder.write_event(("find", kind, message, sites))

    def comm(self, handle: Any) -> int:
        """The number of a communicator; 0 for a null handle."""
        state = handle._inner
        if state is None:
            return 0
        known = self.comms.get(id(state))
        if known is None:
            known = self.comms[id(state)] = (self.number(), state)
            self._tell_comm(known[0], state.communicator)
        return known[0]

    def comm_of_partitions(self, handle: Any, peer: int, tag: int, *, sends: bool) -> int:
        """The number that a partitioned message has: it matches one of the other end alone.

        Those between two ranks with one tag match in the order in which they are prepared.

        Args:
            handle: of the communicator.
            peer: the other end's rank in it.
            tag: of the message.
            sends: this is the sender's end.
        """
        if not self.comm(handle):
            return 0
        communicator = handle._inner.communicator
        ends = (communicator.context.me.rank, communicator.procs[peer].rank)
        source, target = ends if sends else ends[::-1]
        prepared, known = self._partitioned.setdefault(id(handle._inner), (Counter(), {}))
        prepared[source, target, tag, sends] += 1
        part = f"partitions {source} {target} {tag} {prepared[source, target, tag, sends]}"
        if part not in known:  # both ends of one to itself have one number
            known[part] = self.number()
            self._tell_comm(known[part], communicator, part)
        return known[part]

    def _tell_comm(self, number: int, communicator: Any, part: str = "") -> None:
        members = [proc.rank for proc in communicator.procs]
        own = [proc.rank for proc in communicator.own]
        every = sorted({*members, *own})
        worlds = {proc.world for proc in (*communicator.procs, *communicator.own)}
        base = (communicator.context_id, tuple(every), len(worlds), part)
        count = self._keys[base] = self._keys.get(base, 0) + 1
        digest = crc32(",".join(map(str, every)).encode())
        met = MET if len(worlds) > 1 else ""
        key = f"{met}{communicator.context_id}{part}:{digest}:{count}"
        self.write_event("comm", number, key, communicator.name, communicator.rank, members, own)

    def forget_comm(self, state: Any) -> None:
        """It is freed."""
        self.comms.pop(id(state), None)
        self._partitioned.pop(id(state), None)

    def hold(self, what: str, at: int, call: str, state: Any) -> None:
        """Something that has to be freed was made."""
        if state is not None:
            self.handles.setdefault(id(state), (what, at, call, state))

    def release(self, state: Any) -> None:
        """It was freed."""
        self.handles.pop(id(state), None)

    # a process that runs one program after the other, as a notebook's

    def begin_anew(self) -> None:
        """Begin the record again, as if nothing had been; `rank.begin_anew` has the rest."""
        self.requests.forget_all()
        self.buffers.forget_all()
        self.comms.clear()
        self._partitioned.clear()
        self.handles.clear()
        self.duplicates.clear()
        self._keys.clear()
        self._called.clear()
        self.recorder.begin_anew()

    def is_idle(self) -> bool:
        """Whether nothing is there that a new record would have to know of."""
        kept = any(what in {"window", "file"} for what, *_ in self.handles.values())
        return self.requests.are_none() and not kept

    # errors

    def failed(self, at: int, call: str, problem: MPIException) -> None:
        """A call has ended with an error."""
        code = problem.Get_error_class()
        kind = BY_CODE.get(code)
        if code == errors.ERR_REQUEST and "active" in problem.detail:
            kind = "request-lifecycle"
        if code == errors.ERR_ARG and "is ready already" in problem.detail:
            kind = "request-lifecycle"  # a partition, as of a request that is started twice
        if code == errors.ERR_ACCESS and "open for writing only" in problem.detail:
            kind = "invalid-argument"  # else the system refuses it
        if code == errors.ERR_COUNT and "at the origin" in problem.detail:
            kind = "count-mismatch"
        if code == errors.ERR_TYPE and "of origin and target" in problem.detail:
            kind = "type-mismatch"
        if errors.waits_for_ended(problem):
            kind = "deadlock"  # elsewhere this waits for ever
        if kind is not None:
            why = CHAPTERS.get(kind, "")
            self._refused(kind, f"{call}: {problem.detail or problem}. {why}", at, call, problem)

    def raised(self, at: int, call: str, problem: Exception) -> None:
        """A call has raised an error of Python's."""
        if "read-only" in str(problem) and self.buffers.has_told(at):
            return  # the array is so only because it is being sent: that is told already
        text = f"{call}: {type(problem).__name__}: {problem}. {CHAPTERS['invalid-argument']}"
        self._refused("invalid-argument", text, at, call, problem)

    def _refused(self, kind: str, text: str, at: int, call: str, problem: Exception) -> None:
        """It is a finding if the program ends by it: a program may also try, and go on."""
        event = (kind, text, ((at, call),))
        self.write_event("raised", *event)
        self._last_refused[threading.get_ident()] = (id(problem), event)

    def uncaught(self, problem: BaseException, traceback: TracebackType | None) -> None:
        """An exception ends the program."""
        where = place_of_write(problem, traceback)
        if where is not None:
            self.buffers.written_while_locked(self._site_of(where))
        elif isinstance(problem, MPIException):
            self._refused_elsewhere(problem, traceback)

    def _refused_elsewhere(self, problem: MPIException, traceback: TracebackType | None) -> None:
        """An error may be of a call that has no handler: a function of the module, a property."""
        if self._last_refused.get(threading.get_ident(), (0, ()))[0] == id(problem):
            return
        where = None
        while traceback is not None:  # without our own functions
            where = traceback if enters_program(traceback.tb_frame) else where
            traceback = traceback.tb_next
        if where is not None:
            self.failed(self._site_of(where), "MPI", problem)

    def thread_ended(self, problem: BaseException, traceback: TracebackType | None) -> None:
        """An exception ends a thread, which is all that becomes of it: the job may end well."""
        self.uncaught(problem, traceback)
        refused, event = self._last_refused.pop(threading.get_ident(), (0, ()))
        if refused == id(problem):
            self.write_event("find", *event)

    def leaves(self, pending: Pending) -> None:
        """A send is complete: perhaps only because an exception leaves a `with` or a `try`."""
        problem = sys.exc_info()[1]
        where = place_of_write(problem, problem.__traceback__) if problem is not None else None
        if where is not None and names_memory(where, pending.locked):
            self.buffers.written_while_locked(self._site_of(where), pending)

    def _site_of(self, where: TracebackType) -> int:
        """The line where it was raised: the frame may be at another one since."""
        return self.recorder.line_site(where.tb_frame.f_code, where.tb_lineno)


def watch_uncaught(checker: Checker) -> None:
    """Have an exception that ends the program, or a thread of it, looked at first."""
    previous = sys.excepthook

    def hook(kind: Any, value: Any, traceback: Any) -> None:
        checker.uncaught(value, traceback)
        previous(kind, value, traceback)

    before = threading.excepthook

    def thread_hook(args: Any) -> None:
        if args.exc_value is not None:
            checker.thread_ended(args.exc_value, args.exc_traceback)
        before(args)

    sys.excepthook = hook
    threading.excepthook = thread_hook
