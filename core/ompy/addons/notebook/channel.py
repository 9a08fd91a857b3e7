"""Messages between a notebook's kernel and one rank, and how a rank makes itself known.

The kernel makes a pair of sockets; every process of the job inherits one end. Through it each rank
sends descriptors of its own: a socket for messages, the ends of pipes that its output comes out of,
and an anonymous file for its call record. None has a name, so nothing is left in a file system.
"""

from __future__ import annotations

import json
import os
import socket
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple

REGISTRATION: Final = "OMPY_NOTEBOOK_REGISTRATION"  # number of the inherited descriptor
_REGISTRATION_MAX: Final = 4096  # bytes; arbitrary: one is two numbers in JSON
DESCRIPTORS: Final = 4  # the parts of `Registration` that are descriptors

Message = dict[str, Any]


class GoneError(ConnectionError):
    """There is nobody at the other end any more."""


class Channel:
    """Messages both ways, each a dictionary that JSON can hold."""

    def __init__(self, connection: socket.socket) -> None:
        """Take over a stream socket."""
        self._connection = Connection(connection.detach())

    def send_message(self, what: str, **body: Any) -> None:
        """Send a message of the kind `what`.

        Raises:
            GoneError: nobody is there.
        """
        try:
            self._connection.send_bytes(json.dumps({"what": what, **body}).encode())
        except OSError as problem:
            raise GoneError(str(problem)) from None

    def receive_message(self) -> Message:
        """Wait for a message.

        Raises:
            GoneError: none will come.
        """
        try:
            message: Message = json.loads(self._connection.recv_bytes())
        except (EOFError, OSError) as problem:
            raise GoneError(str(problem)) from None
        return message

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
        process: its number for the kernel.
        channel: to it.
        output, errors: descriptors that its standard output and error come out of.
        record: descriptor of the file of its calls.
    """

    rank: int
    process: int
    channel: Channel
    output: int
    errors: int
    record: int


def register_rank(rank: int, record: int) -> Channel:
    """Make this process known to the kernel, which gets its output from now on.

    Args:
        rank: its number.
        record: descriptor of the file of its calls.

    Raises:
        RuntimeError: this process was not started by a notebook.
    """
    number = os.environ.pop(REGISTRATION, "")
    if not number.isdecimal():
        raise RuntimeError(f"{REGISTRATION} is not set: %%ompy starts this program, nobody else")
    ours, theirs = socket.socketpair()
    outputs = [_own_output(descriptor) for descriptor in (1, 2)]
    with socket.socket(fileno=int(number)) as registration, theirs:
        said = json.dumps({"rank": rank, "process": os.getpid()}).encode()
        socket.send_fds(registration, [said], [theirs.fileno(), *outputs, record])
    for each in outputs:
        os.close(each)
    return Channel(ours)


def _own_output(descriptor: int) -> int:
    """Give a descriptor a pipe of its own. Returns the pipe's other end."""
    reader, writer = os.pipe()
    os.dup2(writer, descriptor)
    os.close(writer)
    return reader


def receive_registration(registration: socket.socket) -> Registration:
    """Receive one registration.

    Raises:
        GoneError: all processes that had the other end have gone.
    """
    data, descriptors, _, _ = socket.recv_fds(registration, _REGISTRATION_MAX, DESCRIPTORS)
    if not data:
        raise GoneError("every process of the job has gone")
    said = json.loads(data)
    channel = Channel(socket.socket(fileno=descriptors[0]))
    return Registration(said["rank"], said["process"], channel, *descriptors[1:])
