"""Where guests come in: the launcher listens, and proves the job to who comes and the reverse."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address
from typing import Any, Final, NamedTuple

from ompy import __version__
from ompy.engine.reactor import Cancellable, Loop
from ompy.net.real import host_interfaces
from ompy.runtime.agents.agent_proof import AgentProof
from ompy.runtime.agents.agent_start import BANNER
from ompy.runtime.connections.control import READ_SIZE, ControlError, Decoder, Frame, Kind, encode
from ompy.runtime.connections.credentials import CredentialError
from ompy.runtime.connections.frame_io import send_all
from ompy.runtime.connections.sealed_connection import SealedConnection
from ompy.runtime.guests.job_key import hide_key
from ompy.runtime.guests.ticket import Ticket, TicketError, write_ticket

GREETING: Final = b"ompy-join "  # arbitrary: the first word, before the name that is used once
PROOF_PATIENCE: Final = 10.0  # s; arbitrary: a proof takes milliseconds
STRANGERS_MAX: Final = 16  # arbitrary: who come at the same time and have proven nothing
UNPROVEN_MAX: Final = 4096  # bytes; arbitrary: a banner, a nonce and the first record are fewer


class Guest(NamedTuple):
    """One that has proven itself, and waits for the job.

    Attributes:
        connection: to its launcher.
        decoder: what came after its first word.
        header: of that word: version, host, pid, cores.
        apps: its programs, as JSON.
        hidden_key: the job key, for it alone.
    """

    connection: SealedConnection
    decoder: Decoder
    header: dict[str, Any]
    apps: bytes
    hidden_key: bytes


def turn_away(guest: Guest, reason: str) -> None:
    """Tell a guest that it cannot join."""
    with suppress(OSError):
        send_all(guest.connection, encode(Kind.UNREADY, None, reason.encode()))
    guest.connection.close()


class GuestListener:
    """One job's, with its ticket."""

    def __init__(
        self,
        path: str,
        job_id: str,
        address: str,
        key: bytes,
    ) -> None:
        """Listen, and write the ticket.

        Args:
            path: of the ticket, which must not exist.
            job_id: of the job.
            address: numeric, to listen at.
            key: of the job.

        Raises:
            TicketError: it cannot be written.
            OSError: that address is none of this host.
        """
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listener = socket.create_server((address, 0), family=family)
        self._listener.setblocking(False)
        self._path = path
        self._key = key
        try:
            port = self._listener.getsockname()[1]
            write_ticket(path, Ticket(job_id, _addresses(address), port))
        except TicketError:
            self._listener.close()
            raise
        self._proof = AgentProof(path)
        self._strangers: list[_Stranger] = []

    def begin_accepting(self, loop: Loop, admit: Callable[[Guest], object]) -> None:
        """Let guests in from now on.

        Args:
            loop: the launcher's.
            admit: is told of each guest that has proven itself.
        """
        self._loop = loop
        self._admit_guest = admit
        loop.add_reader(self._listener, self._accept)

    def stop_accepting(self) -> None:
        """Nobody can join any longer; the ticket goes."""
        with suppress(AttributeError, KeyError, ValueError):  # it was never opened
            self._loop.remove_reader(self._listener)
        self._listener.close()
        for stranger in list(self._strangers):
            self._drop(stranger)
        with suppress(OSError):
            os.unlink(self._path)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # it has gone again, or there are too few descriptors: it comes again
            return
        if len(self._strangers) >= STRANGERS_MAX:
            connection.close()
            return
        try:
            stranger = _Stranger(connection, self._proof)
        except (OSError, CredentialError):
            connection.close()
            return
        self._strangers.append(stranger)
        stranger.timer = self._loop.call_later(PROOF_PATIENCE, self._drop, stranger)
        self._loop.add_reader(connection, self._read, stranger)

    def _drop(self, stranger: _Stranger) -> None:
        self._forget(stranger)
        stranger.connection.close()

    def _forget(self, stranger: _Stranger) -> None:
        self._strangers.remove(stranger)
        self._loop.remove_reader(stranger.connection)
        if stranger.timer is not None:
            stranger.timer.cancel()

    def _read(self, stranger: _Stranger) -> None:
        try:
            first = stranger.read_first_word()
        except BlockingIOError:
            return
        except (OSError, ControlError):
            self._drop(stranger)
            return
        if first is None:
            return
        self._forget(stranger)
        assert stranger.sealed is not None, "it has said something under a seal"
        hidden = hide_key(self._key, self._proof.key, stranger.name)
        guest = Guest(stranger.sealed, stranger.decoder, first.header, first.body, hidden)
        theirs = str(first.header.get("version"))
        if first.kind is not Kind.READY or theirs != __version__:
            why = f"ompy is {theirs} there and {__version__} here; install the same"
            turn_away(guest, why)
            return
        self._admit_guest(guest)


def _addresses(address: str) -> tuple[str, ...]:
    """Where others find who listens at an address: if at all, then at each this host has."""
    if not ip_address(address).is_unspecified:
        return (address,)
    found = [one.address for one in host_interfaces()]
    return tuple(sorted(found, key=lambda one: ip_address(one).is_loopback))


class _Stranger:
    """Somebody who has come.

    Attributes:
        connection: to it.
        name: which nobody else has.
        sealed: the connection, once it has proven itself.
        decoder: of what comes under the seal.
        timer: when it is dropped.
    """

    def __init__(self, connection: socket.socket, proof: AgentProof) -> None:
        self.connection = connection
        self._invitation = proof.invite()
        self.name = self._invitation.words[0]
        self.sealed: SealedConnection | None = None
        self.decoder = Decoder()
        self.timer: Cancellable | None = None
        self._said = b""
        hello = GREETING + self.name.encode() + b"\n" + self._invitation.letter()
        connection.settimeout(1)  # a few hundred bytes fit its buffer at once
        connection.sendall(hello)
        connection.setblocking(False)

    def read_first_word(self) -> Frame | None:
        """Its first word, if that has come.

        Raises:
            OSError: it has gone.
            ControlError: what it says proves nothing.
        """
        if self.sealed is None:
            data = self.connection.recv(READ_SIZE)
            self._said += data
            if not data:
                raise BrokenPipeError
            if not self._said.startswith(BANNER[: len(self._said)]):
                raise ControlError("it is no guest")
            found = self._invitation.accepted(self.connection, self._said[len(BANNER) :])
            if found is None:
                if len(self._said) > UNPROVEN_MAX:
                    raise ControlError("it proves nothing")
                return None
            self.sealed, data = found
        else:
            data = self.sealed.recvmsg(READ_SIZE)[0]
            if not data:
                raise BrokenPipeError
        self.decoder.feed(data)
        return self.decoder.next()
