"""Messages between the controller and one rank, and how a rank makes itself known.

The registration socket is a pair made by the controller; its other end is inherited by every
process of the job, so nothing has a name that a stranger could open. Through it each rank sends the
end of a socket pair of its own: when the rank dies, that one is closed, and no other process has
it.
"""

from __future__ import annotations

import json
import os
import socket
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple

REGISTRATION: Final = (
    "PYTEST_OMPY_REGISTRATION"  # environment variable: number of the inherited descriptor
)
_REGISTRATION_MAX: Final = 4096  # bytes; arbitrary: one is two numbers in JSON

Message = dict[str, Any]


class GoneError(ConnectionError):
    """There is nobody at the other end any more."""


class Channel:
    """Messages both ways, each a dictionary that JSON can hold."""

    def __init__(self, connection: socket.socket) -> None:
        """Take over a stream socket."""
        self._connection = Connection(connection.detach())

    def send(self, what: str, **body: Any) -> None:
        """Send a message of the kind `what`. What JSON does not know is sent as its `repr`.

        Raises:
            GoneError: nobody is there.
        """
        text = json.dumps({"what": what, **body}, default=repr)
        try:
            self._connection.send_bytes(text.encode(errors="surrogatepass"))
        except OSError as problem:
            raise GoneError(str(problem)) from None

    def receive(self) -> Message:
        """Wait for a message.

        Raises:
            GoneError: none will come.
        """
        try:
            data = self._connection.recv_bytes()
        except (EOFError, OSError) as problem:
            raise GoneError(str(problem)) from None
        message: Message = json.loads(data.decode(errors="surrogatepass"))
        return message

    def poll(self, seconds: float) -> bool:
        """Whether a message, or the end, comes within so many seconds."""
        return self._connection.poll(seconds)

    def fileno(self) -> int:
        """The descriptor, to wait on."""
        return self._connection.fileno()

    def close(self) -> None:
        """Say no more."""
        self._connection.close()


class Registration(NamedTuple):
    """What a rank says first.

    Attributes:
        rank: its number.
        pid: its process.
        channel: to it.
        stacks: descriptor of the anonymous file it writes its stack to when asked.
    """

    rank: int
    pid: int
    channel: Channel
    stacks: int


def make_registration_sockets() -> tuple[socket.socket, socket.socket]:
    """The controller's end and the one for the ranks. It keeps the knocks of several apart."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def register_rank(rank: int, stacks: int) -> Channel:
    """Make this process known to the controller as a rank; closes what was inherited for it.

    Raises:
        RuntimeError: this process was not started by a controller.
    """
    number = os.environ.pop(REGISTRATION, "")
    if not number.isdecimal():
        raise RuntimeError(
            f"{REGISTRATION} is not set: the plugin starts this program, nobody else"
        )
    ours, theirs = socket.socketpair()
    with socket.socket(fileno=int(number)) as registration_socket, theirs:
        said = json.dumps({"rank": rank, "pid": os.getpid()}).encode()
        socket.send_fds(registration_socket, [said], [theirs.fileno(), stacks])
    return Channel(ours)


def receive_registration(registration_socket: socket.socket) -> Registration:
    """Receive one registration.

    Raises:
        GoneError: all processes that had the other end have gone.
    """
    data, descriptors, _, _ = socket.recv_fds(registration_socket, _REGISTRATION_MAX, 2)
    if not data:
        raise GoneError("every process of the job has gone")
    said = json.loads(data)
    channel = Channel(socket.socket(fileno=descriptors[0]))
    return Registration(said["rank"], said["pid"], channel, descriptors[1])
