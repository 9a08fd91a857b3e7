"""An agent that was started before its launcher calls: what `ompy agent` is.

It listens, lets in who proves to be of this user, listens no more, and becomes the parent of an
agent as a remote shell would start it: the connection is that agent's standard input and output.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import Final, NamedTuple, NoReturn

from ompy.runtime.agents.agent_command import agent_words, start_over
from ompy.runtime.connections.credentials import CredentialError, Credentials
from ompy.runtime.dialing.greeting import (
    HELLO,
    NONCE_SIZE,
    missing_of_call,
    name_of_call,
)

PROOF_PATIENCE: Final = 10.0  # s; arbitrary: a proof takes milliseconds
STRANGERS_MAX: Final = 16  # arbitrary: who come at the same time and have proven nothing
BACKLOG: Final = 64  # arbitrary: more than will call at once
SIGNALLED: Final = 128  # as a shell has it: 128 and the signal's number


class Call(NamedTuple):
    """A launcher that has proven itself.

    Attributes:
        connection: to it.
        name: of its invitation.
    """

    connection: socket.socket
    name: str


class _Stranger:
    """Somebody who has come and proven nothing yet."""

    __slots__ = ("connection", "deadline", "nonce", "said")

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.deadline = time.monotonic() + PROOF_PATIENCE
        self.nonce = os.urandom(NONCE_SIZE)
        self.said = b""
        connection.setblocking(False)
        connection.sendall(HELLO + self.nonce)  # a few bytes fit its buffer at once

    def read_name(self, known: Credentials) -> str | None:
        """The name of its call, once that is whole. What comes behind it is not touched.

        Raises:
            OSError: it has gone.
            CredentialError: it proves nothing.
        """
        while missing := missing_of_call(self.said):
            try:
                more = self.connection.recv(missing)
            except BlockingIOError:
                return None
            if not more:
                raise BrokenPipeError
            self.said += more
        return name_of_call(known, self.said, self.nonce)


def listen_for_call(address: str, port: int) -> socket.socket:
    """Listen where a launcher will call.

    Args:
        address: numeric; empty for all addresses of this host.
        port: to listen at.

    Raises:
        OSError: it cannot be listened there.
    """
    if not address and socket.has_dualstack_ipv6():
        where = ("", port)
        return socket.create_server(
            where, family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True
        )
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family, backlog=BACKLOG)


def wait_for_call(listener: socket.socket, known: Credentials, patience_s: float) -> Call | None:
    """Wait until somebody calls who is of this user. Everybody else is sent away.

    Args:
        listener: is closed in the end.
        known: opens seals.
        patience_s: for so many seconds.

    Returns:
        Who calls; None if nobody did.
    """
    until = time.monotonic() + patience_s
    strangers: dict[int, _Stranger] = {}
    try:
        while (now := time.monotonic()) < until:
            for late in [one for one in strangers.values() if one.deadline < now]:
                strangers.pop(late.connection.fileno()).connection.close()
            watched = [*strangers]
            if len(strangers) < STRANGERS_MAX:
                watched.append(listener.fileno())
            soonest = min([until, *(one.deadline for one in strangers.values())])
            ready, _, _ = select.select(watched, [], [], max(soonest - now, 0))
            for descriptor in ready:
                if descriptor == listener.fileno():
                    _let_in(listener, strangers)
                elif call := _heard(strangers, descriptor, known):
                    return call
        return None
    finally:
        listener.close()
        for stranger in strangers.values():
            stranger.connection.close()


def _let_in(listener: socket.socket, strangers: dict[int, _Stranger]) -> None:
    with suppress(OSError):  # it has gone again
        connection, _ = listener.accept()
        try:
            strangers[connection.fileno()] = _Stranger(connection)
        except OSError:
            connection.close()


def _heard(strangers: dict[int, _Stranger], descriptor: int, known: Credentials) -> Call | None:
    stranger = strangers[descriptor]
    try:
        name = stranger.read_name(known)
    except (OSError, CredentialError):
        strangers.pop(descriptor).connection.close()
        return None
    if name is None:
        return None
    del strangers[descriptor]
    stranger.connection.setblocking(True)
    stranger.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Call(stranger.connection, name)


def run_agent(call: Call, secret: str) -> int:
    """Be the parent of the agent until it ends, as a container's first process, too.

    SIGTERM ends the agent as the end of its launcher does: its ranks get SIGTERM, and some time.

    Args:
        call: of its launcher.
        secret: path of the file that proves it; empty for MUNGE.

    Returns:
        Its exit code; 128 and the signal's number if a signal ended it, or us.
    """
    ended_by: list[int] = []

    def end_in_peace(number: int, _frame: object) -> None:
        ended_by.append(number)
        with suppress(OSError):
            call.connection.shutdown(socket.SHUT_RD)

    signal.signal(signal.SIGTERM, end_in_peace)
    words = agent_words()
    words[0] = "/bin/sh"
    agent = start_over([*words, call.name, secret], call.connection)
    while True:
        process, status = os.waitpid(-1, 0)  # the first process of a container buries orphans
        if process == agent:
            call.connection.close()
            code = -ended_by[0] if ended_by else os.waitstatus_to_exitcode(status)
            return code if code >= 0 else SIGNALLED - code


def end_while_waiting(number: int, _frame: object) -> NoReturn:
    """A handler: nothing has been begun. The first process of a container has no other."""
    sys.exit(SIGNALLED + number)
