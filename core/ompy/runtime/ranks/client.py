"""The rank's side of its agent: attach, wire-up, shared descriptors, abort.

Calls block. Notices that arrive meanwhile are kept and handed out when the call is over.
"""

from __future__ import annotations

import _thread
import fcntl
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

from ompy.data.errors import ERR_OTHER, ERR_RANK, MPIError
from ompy.frameworks.fault_tolerance.departures import ranges_of
from ompy.frameworks.job import Job
from ompy.frameworks.proc import Modex, Proc
from ompy.frameworks.wireup import Inquiry, WireUp
from ompy.runtime.connections.control import (
    AGENT_FD,
    AGENT_NAME,
    ATTACH_MS,
    KEY_SIZE,
    ControlError,
    Decoder,
    Frame,
    Kind,
    encode,
)
from ompy.runtime.connections.frame_io import receive_frames, send_all
from ompy.runtime.connections.modex import pack, unpack

ATTACH_PATIENCE: Final = 300.0  # s; arbitrary: the default of plm_base_attach_timeout_ms
UNANSWERED: Final = 1  # arbitrary: what an uncaught exception of Python ends with
ABORT_PATIENCE: Final = 30.0  # s; arbitrary: far longer than ranks are given to end
AGENT_GONE: Final = 1  # exit code nobody is left to read
_SETSIG: Final = 10  # Linux F_SETSIG
_INT: Final = 4  # bytes; Linux: of a pid_t, the first of three in struct ucred


def attach() -> AgentClient | None:
    """Make this process the MPI process of its rank. None if `ompy-run` did not launch it.

    The environment then no longer names the descriptor, and it is closed: what this process
    starts are plain programs.

    Raises:
        MPIError: ERR_OTHER: the rank has an MPI process already, or there is no agent behind
            the descriptor.
        SystemExit: the agent does not answer in time; it has been left a word why.
    """
    number = os.environ.pop(AGENT_FD, None)
    patience = _patience(os.environ.pop(ATTACH_MS, ""))
    if number is None:
        return None
    ours, theirs = socket.socketpair()
    try:
        _send_registration(number, theirs)
        theirs.close()
        ours.settimeout(patience)
        decoder = Decoder()
        answer = _first_frame(ours, decoder)
        ours.settimeout(None)
    except (OSError, ValueError, ControlError) as problem:
        theirs.close()
        ours.close()
        if isinstance(problem, TimeoutError) and _leave_word(int(number), patience):
            raise SystemExit(UNANSWERED) from None
        text = (
            f"{AGENT_FD}={number} does not lead to an agent: {problem}. Start the program directly "
            "under ompy-run; a program in between must pass on its open descriptors"
        )
        raise MPIError(ERR_OTHER, text) from None
    if answer.kind is not Kind.ADMITTED:
        ours.close()
        raise MPIError(ERR_OTHER, answer.body.decode())
    os.close(int(number))
    return AgentClient(ours, decoder, answer)


def _patience(text: str) -> float:
    """Seconds to wait for the first answer."""
    return int(text) / 1000 if text.isdecimal() and int(text) else ATTACH_PATIENCE


def _leave_word(number: int, patience: float) -> bool:
    """Tell a busy agent that its rank has given it up, which it hears when it gets there.

    So the launcher says once, for all such ranks, what otherwise each would with a traceback.

    Returns:
        False where there is no agent that would hear it.
    """
    with socket.socket(fileno=os.dup(number)) as registration:
        credentials = registration.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 3 * _INT)
        agent = int.from_bytes(credentials[:_INT], sys.byteorder)
        try:
            with open(f"/proc/{agent}/comm") as file:
                if file.read().strip() != AGENT_NAME:
                    return False
            reason = (
                f"the agent (process {agent}) has not answered within {patience:g} s. It starts "
                "all ranks of its host before it answers any, and the machine is too busy for so "
                "many. Start fewer, or raise plm_base_attach_timeout_ms"
            )
            send_all(registration, encode(Kind.UNEXECUTABLE, {"code": UNANSWERED}, reason.encode()))
        except OSError:
            return False
    return True


def _send_registration(number: str, connection: socket.socket) -> None:
    """Send the agent the other end of our connection through the inherited socket."""
    with socket.socket(
        fileno=os.dup(int(number))
    ) as registration:  # not ours until it has proved so
        if registration.family != socket.AF_UNIX or registration.type != socket.SOCK_STREAM:
            raise ValueError("it is another kind of socket")
        send_all(registration, encode(Kind.HELLO, descriptors=1), (connection.fileno(),))


def _first_frame(connection: socket.socket, decoder: Decoder) -> Frame:
    while (frame := decoder.next()) is None:
        if not receive_frames(connection, decoder):
            raise ValueError("nobody answers")
    return frame


class AgentClient(WireUp):
    """The connection of this rank to its agent.

    Not for several threads at once, `abort` excepted. After a fork the child cannot use it.

    Attributes:
        job: what runs.
        rank: of this process in the world.
        job_key: 32 secret bytes only processes of the job know.
        on_departure: told rank and reason when another rank has ended after finalizing.
            Called from within `on_readable`, or at the end of another call.
        on_death: told the same of one that has died while the job goes on without it; where there
            is none, `on_departure` is told.
        on_left: told a rank that finalizes, whether it is done with that, and whether it is known
            never to have sent this one anything; called as `on_departure` is.
        on_path: told watch, verdict and questions without an answer, as `watch_path` asked for;
            called as `on_departure` is.
        on_stand: called with the number of the question when the launcher asks how this rank
            stands; called as `on_departure` is.
        agent_port: where agents of other hosts ask this rank's about paths; 0 if they do not.
        on_abort: called when this rank ends the job, before it does.
        before_end: called when this rank has finalized or ends the job: the last chance to tell.
    """

    def __init__(self, connection: socket.socket, decoder: Decoder, admission: Frame) -> None:
        self.job = Job.from_dict(json.loads(admission.body[KEY_SIZE:]))
        self.rank: int = admission.header["rank"]
        self.job_key = admission.body[:KEY_SIZE]
        self.on_departure: Callable[[int, str], None] | None = None
        self.on_death: Callable[[int, str], None] | None = None
        self.on_left: Callable[[int, bool, bool], object] | None = None
        self.on_path: Callable[[int, str, int], None] | None = None
        self.on_stand: Callable[[int], object] | None = None
        self.agent_port: int = admission.header.get("probes", 0)
        self.on_abort: Callable[[], object] | None = None
        self.before_end: Callable[[], object] | None = None
        self._connection = connection
        self._decoder = decoder
        self._departures: list[tuple[int, str, bool]] = []
        self._leavers: list[tuple[int, bool, bool]] = []
        self._paths: list[tuple[int, str, int]] = []
        self._questions: list[int] = []
        self._asked: dict[int, Inquiry] = {}
        self._answers: list[Frame] = []
        self._published: dict[str, bytes] = {}
        self._calls = 0
        self._asks = 0
        self._sending = _thread.allocate_lock()
        self._reading = _thread.allocate_lock()  # by a call it is held until it has its answer
        self._why_closed = ""
        (self._lifeline,) = admission.descriptors
        _die_with_writer(self._lifeline)
        os.register_at_fork(after_in_child=self._forked)

    def publish(self, key: str, value: bytes) -> None:
        """Add to what others can look up about this process after `commit`."""
        self._published[key] = bytes(value)

    def commit(self) -> None:
        """Make everything published visible, at once. From now on the rank has to finalize."""
        self._call(Kind.COMMIT, {}, pack(self._published))

    def lookup(self, rank: int) -> Modex:
        """What process `rank` has committed; waits until it has.

        Raises:
            MPIError: ERR_PROC_FAILED, when that process has ended without committing;
                ERR_RANK, when there is no such rank.
        """
        return unpack(self._call(Kind.LOOKUP, {"rank": rank}).body)

    def fence(self) -> None:
        """Return when every process of the job has called it.

        Raises:
            MPIError: ERR_PROC_FAILED, when one has ended and never will.
        """
        self._call(Kind.FENCE, {})

    def memory(self, name: str, size: int) -> int:
        """A descriptor of `size` zeroed bytes that all ranks of this host share by `name`.

        The caller closes it.

        Raises:
            MPIError: ERR_ARG, when the name has another size; ERR_NO_MEM.
        """
        (descriptor,) = self._call(Kind.MEMORY, {"name": name, "size": size}).descriptors
        return descriptor

    def doorbell(self, local_rank: int) -> int:
        """A descriptor of the eventfd of a rank of this host. The caller closes it.

        Raises:
            MPIError: ERR_RANK, when there is no such rank on this host.
        """
        (descriptor,) = self._call(Kind.DOORBELL, {"local_rank": local_rank}).descriptors
        return descriptor

    def leaving(self, told: Sequence[int]) -> None:
        """This rank has begun to finalize; waits for nothing."""
        self._tell(Kind.LEAVING, {"told": ranges_of(told)})

    def finalized(self, calls: dict[str, Any] | None = None) -> None:
        """This rank has finalized MPI: it may end, and others are told when it does.

        Args:
            calls: the account of its collective calls (`call_account.py`).
        """
        if self.before_end is not None:
            self.before_end()
        self._call(Kind.FINALIZED, {"calls": calls or {}})

    def tell_faults(self, delivered: Sequence[int]) -> None:
        """Say how often each fault of the job's script has struck at this rank; waits for nothing.

        An agent that has gone is none of its business: the next call finds out.
        """
        self._tell(Kind.FAULTS, {"delivered": list(delivered)})

    def tell_outages(self, began: int, fired: Mapping[int, int]) -> None:
        """Say which lasting faults have begun at this rank, and when; waits for nothing."""
        self._tell(Kind.OUTAGES, {"began": began, "fired": dict(fired)})

    def watch_path(self, header: Mapping[str, Any]) -> None:
        """Have the agent ask over a path (`runtime/probes`); `on_path` is told later."""
        self._tell(Kind.WATCH, header)

    def unwatch_path(self, watch: int) -> None:
        """Have it ask no more."""
        self._tell(Kind.UNWATCH, {"watch": watch})

    def tell_lost_path(self, what: Mapping[str, Any], rows: Sequence[Any]) -> None:
        """Say that a path is lost, and which rails there were; waits for nothing."""
        self._tell(Kind.PATHS, what, json.dumps(rows, separators=(",", ":")).encode())

    def tell_rail(self, event: Mapping[str, Any]) -> None:
        """Say what became of a rail (`rail_report.py`); waits for nothing."""
        self._tell(Kind.RAIL, event)

    def tell_carried(self, before: int, at: int, rows: Sequence[Any]) -> None:
        """Say what rails have carried (`rail_samples.py`); waits for nothing."""
        body = json.dumps(rows, separators=(",", ":")).encode()
        self._tell(Kind.CARRIED, {"before": before, "at": at}, body)

    def procs_from(self, rank: int) -> list[Proc]:
        """Those that the agent knows of; a rank hears of no other before its agent does."""
        rows = json.loads(self._call(Kind.PLACED, {"rank": rank}).body)
        if not rows:
            raise MPIError(ERR_RANK, f"there is no rank {rank} in this job")
        return [Proc(*row) for row in rows]

    def ask_launcher(self, what: str, header: Mapping[str, Any], body: bytes = b"") -> Inquiry:
        """Ask the launcher; the answer is taken in as news are."""
        self._check_open()
        self._asks += 1
        inquiry = self._asked[self._asks] = Inquiry(self._asks)
        try:
            self._send(encode(Kind.ASK, {**header, "what": what, "ask": self._asks}, body))
        except ControlError as problem:
            raise MPIError(ERR_OTHER, str(problem)) from None
        except ConnectionError:
            os._exit(AGENT_GONE)
        return inquiry

    def tell_standing(self, question: int, said: bytes) -> None:
        """Say how this rank stands, which sleeps for long (`standing.py`); waits for nothing."""
        self._tell(Kind.STILL, {"question": question}, said)

    def tell_counted(self, values: Mapping[str, int]) -> None:
        """Say what performance variables are at the end; waits for nothing."""
        self._tell(Kind.COUNTED, {"values": dict(values)})

    def set_expendable(self, on: bool) -> None:
        """Whether the job goes on if this rank ends before it has finalized; waits for nothing."""
        self._tell(Kind.EXPENDABLE, {"on": on})

    def tell_unreachable(self, rank: int) -> None:
        """Say that no path leads to a rank any more; waits for nothing."""
        self._tell(Kind.UNREACHABLE, {"peer": rank})

    def leaves_shared_memory(self) -> None:
        """Have the agent remove it if this rank is killed (`leftovers.py`); waits for nothing."""
        self._tell(Kind.LEAVES, {})

    def tell_where(self, line: str, waits: str, more: bytes = b"") -> None:
        """Say which line this rank is at, for what it waits there, and more for who watches.

        For signal handlers: who was interrupted while it spoke to the agent says nothing.
        """
        if self._sending.acquire(blocking=False):
            try:
                if not self._why_closed:
                    said = encode(Kind.WHERE, {"line": line, "waits": waits}, more)
                    send_all(self._connection, said)
            except OSError:
                pass
            finally:
                self._sending.release()

    def _tell(self, kind: Kind, header: Mapping[str, Any], body: bytes = b"") -> None:
        if self._why_closed:
            return
        try:  # noqa: SIM105 - contextlib is not worth its import in a rank
            self._send(encode(kind, header, body))
        except OSError:
            pass

    def abort(self, code: int, reason: str) -> NoReturn:
        """End the whole job with exit code `code` modulo 256; any thread may call it.

        Raises:
            MPIError: ERR_OTHER, in a process that this rank has forked, or after `close`.
        """
        self._check_open()
        if self.on_abort is not None:
            self.on_abort()
        if self.before_end is not None:
            self.before_end()
        for stream in (sys.stdout, sys.stderr):
            try:  # noqa: SIM105 - contextlib is not worth its import in a rank
                stream.flush()
            except (OSError, ValueError, AttributeError):  # closed, or there is none
                pass
        try:
            self._send(encode(Kind.ABORT, {"code": code}, reason.encode(errors="replace")))
            watch = select.poll()  # to be ended, or let go; a handler of SIGTERM may still run
            watch.register(self._connection, 0)
            watch.poll(ABORT_PATIENCE * 1000)
        except (OSError, ControlError):
            pass
        finally:
            os._exit(code % 256)

    def fileno(self) -> int:
        """The descriptor that is readable when there is a notice; -1 after `close`."""
        return self._connection.fileno()

    def on_readable(self) -> None:
        """Handle the notices that have come, without waiting."""
        if self._why_closed or not self._reading.acquire(False):
            return  # another thread's call takes the notices along
        try:
            while self._receive(socket.MSG_DONTWAIT):
                pass
        except BlockingIOError:
            pass
        finally:
            self._take_notices()
            self._reading.release()
        self._hand_out()

    def close(self) -> None:
        """Give the connection back. The process still ends when its agent does."""
        self._close("the connection to the agent has been closed")

    @property
    def usable(self) -> bool:
        """Whether this process may still use it."""
        return not self._why_closed

    def _close(self, why: str) -> None:
        if not self._why_closed:
            self._why_closed = why
            self._connection.close()
            self._decoder.close()

    def _forked(self) -> None:
        """In a child of this process: leave the parent's connection, keep the lifeline."""
        if self._lifeline >= 0:
            self._lifeline = _own_lifeline(self._lifeline)
        self._close(f"only rank {self.rank} itself may use MPI, not a process it forked")

    def _check_open(self) -> None:
        if self._why_closed:
            raise MPIError(ERR_OTHER, self._why_closed)

    def _send(self, data: bytes) -> None:
        with self._sending:
            send_all(self._connection, data)

    def _receive(self, flags: int = 0) -> bool:
        """Read once. Without an agent there is no job and this process ends."""
        try:
            there = receive_frames(self._connection, self._decoder, flags)
        except ConnectionError:
            there = False
        if not there:
            os._exit(AGENT_GONE)
        return there

    def _call(self, kind: Kind, header: Mapping[str, Any], body: bytes = b"") -> Frame:
        """Ask the agent and wait for its answer.

        Raises:
            MPIError: as the agent says.
        """
        self._check_open()
        with self._reading:
            self._calls += 1
            try:
                self._send(encode(kind, {**header, "call": self._calls}, body))
            except ControlError as problem:
                raise MPIError(ERR_OTHER, str(problem)) from None
            except ConnectionError:
                os._exit(AGENT_GONE)
            answer = self._answer(self._calls)
            self._take_notices()  # it would not be readable any more
        self._hand_out()
        if answer.kind is Kind.REFUSED:
            raise MPIError(answer.header["code"], answer.body.decode())
        return answer

    def _answer(self, call: int) -> Frame:
        """The answer to a call; those to earlier ones, left by an exception, are dropped."""
        while True:
            while (frame := self._decoder.next()) is None:
                self._receive()
            if frame.header.get("call") == call:
                return frame
            self._notice(frame)

    def _take_notices(self) -> None:
        while (frame := self._decoder.next()) is not None:
            self._notice(frame)

    def _notice(self, frame: Frame) -> None:
        if frame.kind is Kind.DEPARTED:
            dead = frame.header.get("dead", False)
            self._departures.append((frame.header["rank"], frame.body.decode(), dead))
        elif frame.kind is Kind.LEFT:
            self._leavers += json.loads(frame.body)
        elif frame.kind is Kind.ANSWER:
            self._answers.append(frame)
        elif frame.kind is Kind.PATH:
            said = frame.header
            self._paths.append((said["watch"], said["verdict"], said["unanswered"]))
        elif frame.kind is Kind.STAND:
            self._questions.append(frame.header["question"])
        for descriptor in frame.descriptors:
            os.close(descriptor)

    def _hand_out(self) -> None:
        while self._leavers and self.on_left is not None:
            self.on_left(*self._leavers.pop(0))
        while self._departures and self.on_departure is not None:
            rank, reason, dead = self._departures.pop(0)
            told = self.on_death if dead and self.on_death is not None else self.on_departure
            told(rank, reason)
        while self._paths and self.on_path is not None:
            self.on_path(*self._paths.pop(0))
        while self._questions and self.on_stand is not None:
            self.on_stand(self._questions.pop(0))
        while self._answers:
            answer = self._answers.pop(0)
            inquiry = self._asked.pop(answer.header["ask"], None)
            if inquiry is None:  # who asked was interrupted
                continue
            if answer.header["code"]:
                inquiry.fail(answer.header["code"], answer.body.decode())
            else:
                inquiry.answer = answer.body
                inquiry.finish()


def _die_with_writer(lifeline: int) -> None:
    """Have the kernel kill this process when the last writer of a pipe has gone.

    Works in the middle of a computation and below any wrapper, where the parent's death means
    nothing. Outside Linux the end of the connection has to do.
    """
    if sys.platform == "linux":
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(lifeline, _SETSIG, signal.SIGKILL)
        flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC)
    watch = select.poll()
    watch.register(lifeline, select.POLLIN)
    if watch.poll(0):  # it had gone before
        os._exit(AGENT_GONE)


def _own_lifeline(inherited: int) -> int:
    """A forked child's own lifeline: who is killed belongs to the open file, not to a process."""
    try:
        own = os.open(f"/proc/self/fd/{inherited}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # no /proc: the agent finds the child by its parents
        return -1
    os.close(inherited)
    _die_with_writer(own)
    return own
