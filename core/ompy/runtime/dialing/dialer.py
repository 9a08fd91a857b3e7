"""A remote shell for agents that wait; its words are HOST PORT NAME SECRET.

Calls the agent of a host, proves who calls, and passes its own standard input and output on. It
tries until it is ended: a host may be slower than this one. Whoever started it ends it.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from typing import Final, NoReturn

from ompy import outputs
from ompy.runtime.connections.credentials import CredentialError, credentials
from ompy.runtime.dialing.greeting import HELLO_SIZE, make_call, nonce_of

CONNECT_TIMEOUT: Final = 3.0  # s; arbitrary: a packet lost twice
RETRY: Final = 0.25  # s; arbitrary: how often a host is called
OVERDUE: Final = 10.0  # s; arbitrary: when a user wants to know what is waited for
BLOCK: Final = 1 << 16  # arbitrary: bytes passed on at a time
UNREACHED: Final = 1  # exit code: there is no agent, and it has been said why


def main() -> NoReturn:
    """Be that shell."""
    host, port, name, secret = sys.argv[1:]
    try:
        known = credentials(secret)
        connection, nonce = reach_agent(host, int(port))
        connection.sendall(make_call(known, nonce, name))
    except (CredentialError, OSError) as problem:
        tell_user(f"host {host}, port {port}: {problem}")
        os._exit(UNREACHED)
    if not carry_bytes(connection):
        tell_user(f"host {host}, port {port}: the agent hung up; has it the same OMPY_SECRET_FILE?")
        os._exit(UNREACHED)
    os._exit(0)


def carry_bytes(connection: socket.socket) -> bool:
    """Pass on what comes, both ways, until the agent's end. Whether it said anything."""
    threading.Thread(target=_give_input, args=(connection,), daemon=True).start()
    return _take_output(connection)


def reach_agent(host: str, port: int) -> tuple[socket.socket, bytes]:
    """A connection to the agent of a host, and the nonce that it says first.

    Args:
        host: name or address.
        port: where it listens.

    Raises:
        CredentialError: it is no agent.
    """
    overdue = time.monotonic() + OVERDUE
    while True:
        try:
            connection = socket.create_connection((host, port), CONNECT_TIMEOUT)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            hello = _read(connection, HELLO_SIZE)
        except OSError as problem:  # its name or the agent itself may not be there yet
            if time.monotonic() > overdue:
                overdue = float("inf")
                tell_user(f"host {host}, port {port}: {problem.strerror or problem}; still trying")
            time.sleep(RETRY)
            continue
        connection.settimeout(None)
        return connection, nonce_of(hello)


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionResetError(0, "the connection ended")
        data += more
    return data


def _give_input(connection: socket.socket) -> None:
    """Our standard input is the agent's; its end is, too."""
    try:
        while block := os.read(0, BLOCK):
            connection.sendall(block)
        connection.shutdown(socket.SHUT_WR)
    except OSError:  # the agent is gone: the other direction says so
        pass


def _take_output(connection: socket.socket) -> bool:
    """The agent's standard output is ours. Whether there was any."""
    said = False
    try:
        while block := connection.recv(BLOCK):
            said, view = True, memoryview(block)
            while view:
                view = view[os.write(1, view) :]
    except OSError:  # either end is gone
        pass
    return said


def tell_user(text: str) -> None:
    """Tell the user."""
    outputs.tell(f"ompy-run: {text}\n", "error", "error")


if __name__ == "__main__":
    main()
