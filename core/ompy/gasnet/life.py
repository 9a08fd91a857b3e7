"""The life of GASNet in a rank: init, attach, exit; and what a rank can ask about its job.

Source: reference gasnet.md 1 (Init / exit), 8.
"""

from __future__ import annotations

import mmap
import os
import sys
from _thread import get_ident
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from ompy.data.errors import MPIError
from ompy.frameworks.conduit import (
    EXTENDED_HANDLERS,
    Category,
    SegmentInfo,
    ThreadMode,
    Token,
)
from ompy.gasnet.atomics import ATOMIC, ATOMIC_DONE
from ompy.gasnet.barriers import ROUND
from ompy.gasnet.collective.coll_engine import COLLECTIVE, TEAM_ROUND
from ompy.gasnet.collective.team_calls import TEAM_CREATE, TeamCalls
from ompy.gasnet.dissemination import ANONYMOUS, Dissemination, Knowledge
from ompy.gasnet.errors import BadArgument, GasnetError, NotInitialised
from ompy.gasnet.fill import FILL, FILLED
from ompy.gasnet.rank import LAYER, FindConduit, check_integers
from ompy.gasnet.segment import Segment
from ompy.gasnet.table import Entry, assign
from ompy.gasnet.waiting import WaitMode, wait_so
from ompy.runtime.diagnosis.call_account import Group

if TYPE_CHECKING:
    from ompy.frameworks.explanation import Explanation, OperationAsked

EXIT_BARRIER: Final = EXTENDED_HANDLERS[3]
PAGE_SIZE: Final = mmap.PAGESIZE
# what the API's own handlers are called in a trace
OWN_NAMES: Final = {
    FILL: "memset",
    FILLED: "memset done",
    ROUND: "barrier",
    EXIT_BARRIER: "exit barrier",
    ATOMIC: "atomic",
    ATOMIC_DONE: "atomic done",
    COLLECTIVE: "collective",
    TEAM_ROUND: "barrier of a team",
    TEAM_CREATE: "making a team",
}
_CODE: Final = 0xFF  # POSIX: a process ends with 8 bits
_LAST: Final = 4  # arbitrary: a fourth of the exit's timeout is for telling those who only poll


class NodeInfo(NamedTuple):
    """Where a rank runs.

    Attributes:
        host: index of its host in the job.
        hostname: of that.
    """

    host: int
    hostname: str


def _nothing() -> None:
    """There is nothing else to end."""


class Gasnet(TeamCalls):
    """GASNet for one rank."""

    def __init__(self, find: FindConduit, leave: Callable[[], object] = _nothing) -> None:
        """Describe a rank that `init` brings up.

        Args:
            find: makes its conduit.
            leave: called when the rank has left GASNet.
        """
        super().__init__(find)
        self._leave_job = leave
        self._owner = 0
        self._code = 0
        self._ended = False
        self._met = False  # all ranks have come to their end

    def _calls_at_end(self) -> tuple[int, list[Group]] | None:
        """As `RankProcess.other_calls`: nothing to compare where another rank ended this one."""
        return self._calls_made() if self._met or not self._teams else None

    # --- the beginning

    def init(self, mode: ThreadMode | str = ThreadMode.SEQ) -> None:
        """Join the job. Ranks are known then, and `exit` works; all else comes with `attach`.

        Args:
            mode: `seq`: this rank has one thread; `parsync`: several, of which one at a time
                calls; `par`: several call.

        Raises:
            BadArgument: it was called already, or there is no such mode.
            ResourceError: no conduit can be used.
        """
        if self._me >= 0:
            raise BadArgument("init was called already")
        try:
            mode = ThreadMode(mode)
        except ValueError as problem:
            raise BadArgument(f"{problem}: modes are seq, parsync and par") from None
        try:
            conduit = self._find(mode)
        except MPIError as problem:
            raise self._failed(problem) from problem
        self._conduit = conduit
        self._engine = conduit.context.engine
        self._trace = conduit.context.trace
        if mode is not ThreadMode.PAR:
            self._guard = self._engine.lock
        self._owner = get_ident()
        self._me = conduit.context.rank
        conduit.on_exit = self._end

    def attach(self, handlers: Iterable[Entry] = (), segment_size: int = PAGE_SIZE) -> list[int]:
        """Register handlers, and make the segment. All ranks call it, with their own arguments.

        Args:
            handlers: functions, or pairs of an index of 128 to 255 and a function; with index 0,
                or without one, the lowest that is free.
            segment_size: bytes, a multiple of `PAGE_SIZE`, not more than
                `get_max_local_segment_size`.

        Returns:
            The handlers' indices, in their order.

        Raises:
            NotInitialised: `init` was not called.
            BadArgument: it was called already, or an argument is wrong.
            ResourceError: there is no such memory.
        """
        self._need_init()
        if self._attached:
            raise BadArgument("attach was called already")
        chosen = assign(handlers)
        limit = self._conduit.max_segment()[0]
        if segment_size < 0 or segment_size % PAGE_SIZE or segment_size > limit:
            raise BadArgument(
                f"a segment has a multiple of {PAGE_SIZE} bytes and {limit} at most, "
                f"not {segment_size}"
            )
        self._fill_table(chosen)
        self._prepare_fills()
        self._prepare_barriers()
        self._prepare_exit_barrier()
        self._prepare_atomics()
        self._prepare_collectives()
        try:
            with self._guard:
                self._conduit.attach(self._table, segment_size)
        except MPIError as problem:
            raise self._failed(problem) from problem
        self._infos = self._conduit.segments
        self._segment = Segment(self._conduit.segment, self._infos[self._me].address)
        self._mapped = self._conduit.mapped
        self._attached = True
        if self._trace.active:
            self._tell_names()
        return [index for index, _ in chosen]

    def _tell_names(self) -> None:
        """What the handlers are called, for the trace."""
        names = {
            index: getattr(name, "__name__", str(name)) for name, index in self._indices.items()
        }
        for index, name in sorted((names | OWN_NAMES).items()):
            self._trace.record(LAYER, "NAME", handler=index, function=name)

    # --- the end

    def exit(self, code: int = 0) -> NoReturn:
        """End the whole job with a code; one rank's call is enough.

        With code 0 the others have time to call it too, as long as the conduit says
        (`exit_timeout`); then they are ended, by a SystemExit out of whatever call polls.

        In the thread that called `init` this raises SystemExit with the job's code, the largest
        that was given, so that Python's own exit hooks run; another thread ends the process. A
        program that ends with `sys.exit(code)` does the same.

        Raises:
            NotInitialised: `init` was not called.
            BadArgument: the code is no integer.
        """
        self._need_init()
        check_integers(code)
        self._code = code & _CODE
        if get_ident() in self._handling:  # the job is ended once the poll has been left
            raise SystemExit(self._code)
        self.finish()
        if get_ident() != self._owner:
            _end_process(self._code)
        raise SystemExit(self._code)

    def finish(self) -> None:
        """Leave the job as `exit` does, unless this rank has: called when the interpreter ends."""
        if self._me < 0 or self._over:
            return
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        try:
            if self._attached and not self._code and not self._ended:
                self._part()
            if not self._ended:
                self._code = self._conduit.exit(self._code)
        except SystemExit:  # another rank has ended the job meanwhile, and `_end` has its code
            pass
        except (GasnetError, MPIError) as problem:
            self._fail_to_end(problem)
        self._over = True
        self._attached = False
        self._leave_job()

    def _fail_to_end(self, problem: Exception) -> None:
        """The others cannot be reached: the job ends as if the program had raised this.

        An exception that has ended the program already is told, and the job ends by that one.
        """
        self._code = self._code or 1
        if getattr(sys, "last_value", None) is None:
            error = self._failed(problem) if isinstance(problem, MPIError) else problem
            sys.excepthook(type(error), error, problem.__traceback__)
            text = f"uncaught {type(error).__name__}: {error}"
            self._conduit.context.wireup.abort(self._code, text)

    def _ends_with(self, code: object) -> None:
        """The interpreter ends with what a SystemExit was given, and `finish` has yet to run."""
        if code is not None:
            self._code = code & _CODE if isinstance(code, int) else 1  # as Python itself does

    def _end(self, code: int) -> NoReturn:
        """Another rank has ended the job: whatever this one waits for does not come."""
        if not code:
            self._tell_unfinished()
        self._ended = True
        self._code = code
        raise SystemExit(code)

    def _tell_unfinished(self) -> None:
        """Say what this rank has begun and never gets; the job's code 0 would hide it.

        Who waits for a condition of its own, or has come to its end, may well mean to be ended.
        """
        if not self._attached or self._exit_barrier.entered:
            return
        lines = self._begun()
        if lines:
            from ompy import outputs

            more = f", and {len(lines) - 1} more" if len(lines) > 1 else ""
            text = f"another rank's exit(0) ends this one in the middle of {lines[0]}{more}"
            outputs.warn(text, ("ompy", f"rank {self._me}"))

    def _part(self) -> None:
        """Wait for the others to come here, as long as the conduit says."""
        machine, engine = self._exit_barrier, self._engine
        machine.enter(Knowledge(ANONYMOUS, 0))
        timeout = self._conduit.exit_timeout()
        end = engine.now() + timeout - timeout // _LAST
        while True:
            while (message := machine.next_round()) is not None:
                words = [message.parity, message.number]
                self._send_request(Category.SHORT, message.peer, EXIT_BARRIER, words)
            left = end - engine.now()
            if machine.complete():
                self._met = True
                return
            if left <= 0 or not engine.wait_until(machine.has_news, left):
                self._conduit.exit_limit = timeout // _LAST
                return

    def _prepare_exit_barrier(self) -> None:
        """Have the handler in the table."""
        self._exit_barrier = Dissemination(self._me, self._conduit.context.size)
        self._add_handler(EXIT_BARRIER, self._on_exit_barrier)

    def _on_exit_barrier(self, _token: Token, _payload: memoryview, words: Sequence[int]) -> None:
        parity, number = words
        self._exit_barrier.take_round(parity, number, Knowledge(ANONYMOUS, 0))

    # --- how it waits

    def set_waitmode(self, mode: WaitMode | int) -> None:
        """Say how this rank waits from now on, for MPI of the same program too.

        Until then it waits as the parameters `engine_spin_us` and `engine_park_ms` say.

        Args:
            mode: `WAIT_SPIN`, `WAIT_BLOCK` or `WAIT_SPINBLOCK`.

        Raises:
            NotInitialised: `init` was not called.
            BadArgument: there is no such mode.
        """
        self._need_init()
        check_integers(mode)
        try:
            chosen = WaitMode(mode)
        except ValueError:
            raise BadArgument(f"{mode} is no mode of waiting: they are 0, 1 and 2") from None
        wait_so(self._engine, chosen)

    # --- questions

    def is_init(self) -> bool:
        """Whether this rank takes part in a job."""
        return self._me >= 0 and not self._over

    def mynode(self) -> int:
        """This rank.

        Raises:
            NotInitialised: `init` was not called.
        """
        if self._me < 0:
            raise NotInitialised("call init first")
        return self._me

    def nodes(self) -> int:
        """Ranks of the job. Raises as `mynode`."""
        if self._me < 0:
            raise NotInitialised("call init first")
        return self._conduit.context.size

    def get_max_local_segment_size(self) -> int:
        """Bytes of the largest segment this rank could have; before `attach`."""
        self._need_init()
        return self._conduit.max_segment()[0]

    def get_max_global_segment_size(self) -> int:
        """Bytes of the largest segment every rank could have; before `attach`."""
        self._need_init()
        return self._conduit.max_segment()[1]

    def get_segment_info(self) -> Sequence[SegmentInfo]:
        """Address and size of all ranks' segments, by rank.

        Raises:
            NotInitialised: `attach` was not called.
        """
        if not self._attached:
            self._refuse_early()
        return self._infos

    def segment(self) -> Segment:
        """The own segment. Raises as `get_segment_info`."""
        if not self._attached:
            self._refuse_early()
        return self._segment

    def get_node_info(self) -> list[NodeInfo]:
        """Where all ranks run, by rank."""
        self._need_init()
        return [NodeInfo(proc.node, proc.hostname) for proc in self._conduit.context.world]

    def neighbours(self) -> Sequence[int]:
        """Ranks of this host, this one among them."""
        self._need_init()
        return self._conduit.neighbours()

    def conduit_name(self) -> str:
        """Name of the conduit in use."""
        self._need_init()
        return self._conduit.name

    def waiting(self) -> list[str]:
        """What is not complete, a line each for people to read. As `Conduit.waiting`."""
        if self._me < 0 or self._over:
            return []
        lines = ["the condition of a block_until"] * self._blocked
        if not self._attached:
            return [*lines, *self._conduit.waiting()]
        return [*lines, *self._awaited("the end of all", self._exit_barrier), *self._begun()]

    def _begun(self) -> list[str]:
        """Barriers and transfers that are not over."""
        name, flags = self._barrier_given
        which = "an anonymous barrier" if flags & ANONYMOUS else f"barrier {name}"
        lines = self._awaited(which, self._barrier) + self._begun_collectives()
        for state in [*self._states.values()]:
            lines += state.waiting()
        return [*lines, *self._conduit.waiting()]

    def _awaited(self, what: str, machine: Dissemination) -> list[str]:
        missing = machine.awaited()
        return [] if missing is None else [f"{what}: nothing has come from rank {missing} yet"]

    def explain(self, asked: OperationAsked) -> Explanation:
        """Which way an operation would take, and why; for `ompy explain`.

        Raises:
            NotInitialised: before `attach`.
            ResourceError: the conduit cannot say.
        """
        if not self._attached:
            self._refuse_early()
        try:
            return self._conduit.explain(asked)
        except MPIError as problem:
            raise self._failed(problem) from problem

    def counters(self) -> dict[str, int]:
        """What the conduit has counted: messages, stalls, retries."""
        self._need_init()
        return self._conduit.counters()

    def getenv(self, name: str) -> str | None:
        """A variable of the job's environment, or None."""
        return os.environ.get(name)


def _end_process(code: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
