"""A world that is run up to its first choice, and from there as often as is wanted.

All processes of the world fork there: each rank, and who conducts them. So what a program does
before its first choice (its imports too) is done once. The trunk waits at the choice; each branch
goes on with a script of its own, and says at its end what happened.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, NoReturn

from ompy.runtime.exploration.boxes import Operation
from ompy.runtime.exploration.call_journal import Call
from ompy.runtime.exploration.events import Diverged, Event, Impossible, Meeting, Race, Value
from ompy.runtime.exploration.fence import UNNOTICED
from ompy.runtime.exploration.races import find_races
from ompy.runtime.exploration.windows.parts import Learnt
from ompy.runtime.simulation.simulated_world import UNFIT, Scenario, World
from ompy.runtime.simulation.twins import die_with_parent

_SIZE: Final = struct.Struct("!I")
DIVERGED: Final = "diverged"  # kind of a world whose program did not do the same again
IMPOSSIBLE: Final = "impossible"  # kind of a world that cannot be as it is to be
LEARNT: Final = "learnt"  # kind of one that has shown that other operations need an order


THREADS: Final = "a rank has more than one thread: a world of threads is not explored"


class Result(NamedTuple):
    """What a world came to.

    Attributes:
        kind, code, text: as of an `Outcome`; DIVERGED where a script could not be followed.
        events: the choices that were made, in their order.
        races: what they could have been instead.
        bounded: a poll might have found nothing more often than the bound allows.
        meetings: of the program's messages and receives, in order.
        recorded: of each rank the record of its calls, where the program is checked.
        calls: what each rank has begun.
        parts: what is known of windows, as `Parts.plain` has it.
    """

    kind: str
    code: int
    text: str
    events: list[Event]
    races: list[Race]
    bounded: bool = False
    meetings: Sequence[Meeting] = ()
    recorded: Sequence[list[tuple[Any, ...]]] = ()
    calls: Sequence[Sequence[Call]] = ()
    parts: Sequence[Any] = ()


class Trunk:
    """The process that waits at the first choice."""

    def __init__(self, scenario: Scenario) -> None:
        """Run the world up to there.

        Args:
            scenario: with `exploring`; its script is not looked at.
        """
        assert scenario.exploring is not None, "it is a world that is explored"
        ours, theirs = socket.socketpair()
        self._process = os.fork()
        if not self._process:
            ours.close()
            _Grown(scenario, theirs).grow_branches()
        theirs.close()
        self._socket = ours
        self._whole: Result | None = None
        first = _received(ours)
        if first is None:
            self._whole = Result("failed", 1, "the world's process has gone", [], [])
        elif isinstance(first, Result):
            self._whole = first

    def begin_world(self, script: Mapping[Operation, Value]) -> socket.socket:
        """Let a world go on from there; its result comes over what is returned (`result_of`)."""
        ours, theirs = socket.socketpair()
        if self._whole is not None:  # there is no choice: each world is the same one
            _send(theirs, self._whole)
        else:
            _send(self._socket, dict(script))
            socket.send_fds(self._socket, [b"r"], [theirs.fileno()])
            self._socket.recv(1)  # so that the descriptor is there before more is sent
        theirs.close()
        return ours

    def close(self) -> None:
        """End it, with its ranks."""
        self._socket.close()
        os.waitpid(self._process, 0)


def result_of(branch: socket.socket) -> Result:
    """Wait for the result of a world."""
    found = _received(branch)
    branch.close()
    return found if found is not None else Result("failed", 1, "its process has gone", [], [])


class _Grown:
    """The trunk, in its own process."""

    def __init__(self, scenario: Scenario, line: socket.socket) -> None:
        self._world = World(scenario)
        self._line = line

    def grow_branches(self) -> NoReturn:
        """Run it to the first choice, and be there; or to its end."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it ends it
        world = self._world
        world.at_first_choice = self._wait
        result = result_of_world(world)
        _send(self._line, result)  # which is another one in a branch
        os._exit(0)

    def _wait(self) -> None:
        """Fork for each script; returns in the branches, and never in the trunk."""
        _send(self._line, "here")
        while True:
            script = _received(self._line)
            if script is None:
                self._world.kill_ranks()
                os._exit(0)
            _, (wanted, *_), _, _ = socket.recv_fds(self._line, 1, 1)
            lines = self._world.fork_ranks()
            if lines is None:
                with socket.socket(fileno=wanted) as line:
                    _send(line, Result(UNFIT, 1, THREADS, [], []))
                self._line.send(b"r")
                continue
            if not os.fork():
                self._branch(script, socket.socket(fileno=wanted), lines)
                return
            os.close(wanted)
            for line, _ in lines:
                line.close()
            self._line.send(b"r")
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass

    def _branch(
        self, script: Any, line: socket.socket, lines: list[tuple[socket.socket, int]]
    ) -> None:
        die_with_parent()
        self._line.close()
        self._line = line
        self._world.adopt(lines, script)


def result_of_world(world: World) -> Result:
    """Run a world to its end."""
    exchange = world.exchange
    assert exchange is not None, "the world is explored"
    try:
        outcome = world.run()
        kind, code, text = outcome.kind, outcome.code, outcome.text
        if kind == "deadlock":
            exchange.see_it_can_be()
        if kind == "deadlock" and exchange.deaths:
            kind, code, text = UNFIT, 1, UNNOTICED
    except Learnt:
        kind, code, text = LEARNT, 1, ""
    except Impossible:
        kind, code, text = IMPOSSIBLE, 1, ""
    except Diverged as problem:
        kind, code, text = DIVERGED, 1, str(problem)
    recorded = [stub.checked for stub in world.stubs]
    races, meetings = find_races(exchange), exchange.meetings()
    calls = exchange.journal.calls if exchange.journal is not None else ()
    choices, known = exchange.events, exchange.parts.plain()
    return Result(
        kind, code, text, choices, races, exchange.bounded, meetings, recorded, calls, known
    )


def _send(line: socket.socket, value: Any) -> None:
    data = pickle.dumps(value)
    with suppress(BrokenPipeError):
        line.sendall(_SIZE.pack(len(data)) + data)


def _received(line: socket.socket) -> Any:
    """The next value; None at the end."""
    head = _read(line, _SIZE.size)
    if len(head) < _SIZE.size:
        return None
    (size,) = _SIZE.unpack(head)
    data = _read(line, size)
    return pickle.loads(data) if len(data) == size else None  # noqa: S301 - from our own fork


def _read(line: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = line.recv(size - len(data))
        if not more:
            break
        data += more
    return data
