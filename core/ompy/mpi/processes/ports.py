"""Ports: how groups of a job that have no communicator in common find each other.

The launcher pairs who accepts with who connects (`runtime/machines/launcher/ports.py`), and keeps
the names that ports are published under.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

import json
import os
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from ompy.data.errors import ERR_ARG, ERR_INFO_VALUE, ERR_OTHER, MPIError
from ompy.frameworks.needs import PORT, Need
from ompy.mpi.communicators.between import Leaders, create_by
from ompy.mpi.info import INFO_NULL, Info
from ompy.mpi.kinds import check_kind
from ompy.mpi.point_to_point.peers import check_root
from ompy.mpi.processes.life import COMM_SELF, COMM_WORLD, current
from ompy.mpi.processes.spawning import answered, decided, joined
from ompy.mpi.state import CommState
from ompy.mpi.strings import c_string

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from ompy.mpi.communicators.intercomm import Intercomm

TIMEOUT: Final = "timeout"  # reference: MPICH's info key of MPI_Comm_connect
LONGEST: Final = 1e9  # s; arbitrary: thirty years, in nanoseconds less than 64 bits
_LENGTH: Final = Struct("<I")
_OTHER_SIDE: Final = {"accept": "a Connect to", "connect": "an Accept at"}
_JOINING: Final = b"ompy"  # arbitrary: what each side says first over a socket, before its job


def Open_port(info: Info = INFO_NULL) -> str:
    """A name under which other groups of this job find this process, by `Connect`."""
    check_kind(info, "Info", "info")
    return _asked("open")


def Close_port(port_name: str) -> None:
    """Give such a name back; who waits there gets ERR_PORT."""
    _asked("close", port=c_string(port_name))


def Publish_name(service_name: str, port_name: str, info: Info = INFO_NULL) -> None:
    """Have all processes of this job find a port by the name of a service."""
    check_kind(info, "Info", "info")
    _await_turn(service_name, changes=True)
    _asked("publish", service=c_string(service_name), port=c_string(port_name))


def Unpublish_name(service_name: str, port_name: str, info: Info = INFO_NULL) -> None:
    """Have them find it no longer."""
    check_kind(info, "Info", "info")
    _await_turn(service_name, changes=True)
    _asked("unpublish", service=c_string(service_name), port=c_string(port_name))


def Lookup_name(service_name: str, info: Info = INFO_NULL) -> str:
    """The port of a service."""
    check_kind(info, "Info", "info")
    _await_turn(service_name, changes=False)
    return _asked("lookup", service=c_string(service_name))


def _await_turn(service: str, *, changes: bool) -> None:
    """Where all orders are tried, the world says who publishes, looks up or removes first."""
    world = current()
    line = world.context.direct
    if line is not None and line.explores:
        world.engine.wait(line.ask_turn(c_string(service), changes=changes))


def _asked(what: str, **header: Any) -> str:
    world = current()
    return bytes(COMM_WORLD._state().call(_answered, world, what, header)).decode()


def _answered(world: Any, what: str, header: dict[str, Any]) -> bytes:
    return answered(world, what, header)


def meet_at_port(state: CommState, what: str, port: str, info: Info, root: int) -> CommState:
    """Accept at a port, or connect to it; all members of a communicator call it.

    Args:
        state: the communicator; the call has begun in it.
        what: `accept` or `connect`.
        port: its name; looked at by the root alone, as the next.
        info: `timeout` says how many seconds who connects waits for somebody who accepts.
        root: who leads this group.

    Raises:
        MPIException: ERR_PORT, there is no such port, it was closed meanwhile, or nobody has
            accepted there in time; ERR_INFO_VALUE, that is no time.
    """
    check_root(state, root)
    if state.communicator.rank == root:
        port = c_string(port)
    ranks = [proc.rank for proc in state.communicator.procs]
    awaited = f"{_OTHER_SIDE[what]} port {port}"
    need = Need(PORT, state.communicator, (), word=state.communicator.order.word, detail=awaited)
    body = json.dumps(ranks).encode()

    def make() -> bytes:
        patience = _patience_of(info) if what == "connect" else -1
        return answered(state.world, what, {"port": port}, body, need, patience)

    told = json.loads(decided(state, root, make))
    context = state.world.context
    procs = [context.proc(rank) for rank in told["ranks"]]
    other = context.proc(told["root"])
    made: CommState = state.call(joined, state, root, told["bridge"], procs, other)
    return made


def _patience_of(info: Info) -> int:
    """The info key `timeout`, which MPICH has, in nanoseconds; -1 where it is not there.

    Raises:
        MPIError: ERR_INFO_VALUE, it is no time.
    """
    said = info.get(TIMEOUT) if info else None
    if said is None:
        return -1
    try:
        seconds = float(said)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= LONGEST:
        raise MPIError(ERR_INFO_VALUE, f"info key {TIMEOUT}: {said!r} is no number of seconds")
    return int(seconds * 1e9)


def join_by_socket(descriptor: int) -> Intercomm:
    """A communicator with the process of this job at the other end of a connected socket.

    Args:
        descriptor: of the socket, which is the caller's and quiet: both call this.

    Raises:
        MPIException: ERR_OTHER, a process of another job is there, or none.
    """
    from ompy.mpi.communicators.intercomm import Intercomm

    state = COMM_SELF._state()
    return Intercomm._adopt(state.call(_join, state, descriptor))


def _join(state: CommState, descriptor: int) -> CommState:
    import socket  # late: few ranks need it

    world = state.world
    world.process.expect_others()
    try:
        connection = socket.socket(fileno=os.dup(descriptor))
    except OSError as problem:
        raise MPIError(ERR_ARG, f"{descriptor} is no socket: {problem.strerror}") from None
    with connection:
        swap = partial(_swap, connection)
        theirs = swap(_JOINING + world.context.job_id)
        if theirs != _JOINING + world.context.job_id:
            raise MPIError(ERR_OTHER, "a process of another job is at the other end of the socket")
        return create_by(state, Leaders(state, 0, state.communicator.order.tag(), swap))


def _swap(connection: socket.socket, data: bytes) -> bytes:
    """Say something over a socket, and hear the same."""
    try:
        connection.sendall(_LENGTH.pack(len(data)) + data)
        (length,) = _LENGTH.unpack(_exactly(connection.recv, _LENGTH.size))
        return _exactly(connection.recv, length)
    except OSError as problem:
        text = f"the socket cannot be used: {problem.strerror or problem}"
        raise MPIError(ERR_OTHER, text) from None


def _exactly(receive: Callable[[int], bytes], size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = receive(size - len(data))
        if not more:
            raise OSError("the other end has gone")
        data += more
    return data
