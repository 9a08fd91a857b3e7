"""Looking for the coordinator of a job: its host may be slower than ours, or never come."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ompy.engine.reactor import Cancellable, Loop
from ompy.runtime.connections.blocking_calls import BlockingCalls
from ompy.runtime.connections.credentials import CredentialError, Credentials
from ompy.runtime.connections.sealed_connection import SealedConnection
from ompy.runtime.machines.agents.joining import OVERDUE
from ompy.runtime.passive.coordinator_address import addresses, ports
from ompy.runtime.passive.handshake_driver import HandshakeDriver
from ompy.runtime.passive.meeting import NONCE_SIZE, Met, prove_as_agent

if TYPE_CHECKING:
    from concurrent.futures import Future

CONNECT_TIMEOUT: Final = 3.0  # s; arbitrary: a packet lost twice
RETRY: Final = 0.1  # s; arbitrary: how often the coordinator is looked for


class Found(NamedTuple):
    """The coordinator.

    Attributes:
        key: of the job.
        connection: what both say from now on, sealed.
    """

    key: bytes
    connection: SealedConnection


class CoordinatorSearch:
    """Rounds over its addresses and ports, one at a time, until what answers can prove itself.

    One at a time, as a host may have several addresses: a coordinator that was reached over two of
    them would have two agents.
    """

    def __init__(
        self,
        loop: Loop,
        calls: BlockingCalls,
        credentials: Credentials,
        where: tuple[str, str],
        part: Mapping[str, Any],
        on_found: Callable[[Found], object],
        on_unusable: Callable[[CredentialError], object],
        on_overdue: Callable[[str], object],
    ) -> None:
        """Begin.

        Args:
            loop: watches connections.
            calls: for names and seals, which wait.
            credentials: of this agent.
            where: name of the host, and of the job.
            part: the ranks of this host.
            on_found: called once, after which the search is over.
            on_unusable: called once if no proof can be made here, after which it is over, too.
            on_overdue: called once with a reason when it takes long; the search goes on.
        """
        self._loop = loop
        self._calls = calls
        self._credentials = credentials
        self._host, self._job = where
        self._part = part
        self._on_found = on_found
        self._on_unusable = on_unusable
        self._on_overdue = on_overdue
        self._told_at = loop.time() + OVERDUE
        self._told = self._over = False
        self._why = "nobody listens there"
        self._places: list[tuple[str, int]] = []
        self._connecting: socket.socket | None = None
        self._handshake: HandshakeDriver[Met] | None = None
        self._timer: Cancellable | None = None
        self._start_round()

    def cancel(self) -> None:
        """Look no further, and tell nobody; harmless when it is over."""
        self._over = True
        self._drop_timer()
        if self._connecting is not None:
            self._drop_connecting().close()
        if self._handshake is not None:
            self._handshake.cancel()

    def _start_round(self) -> None:
        self._timer = None
        self._calls.start_call(self._resolved, addresses, self._host)

    def _resolved(self, future: Future[list[str]]) -> None:
        self._places = [(address, port) for address in future.result() for port in ports(self._job)]
        self._try_next()

    def _try_next(self) -> None:
        """Connect to the next place; after the last one wait, and begin anew."""
        if self._over:
            return
        if not self._places:
            self._tell_overdue()
            self._timer = self._loop.call_later(RETRY, self._start_round)
            return
        connection = self._connecting = socket.socket()
        connection.setblocking(False)
        self._timer = self._loop.call_later(CONNECT_TIMEOUT, self._not_connected)
        if connection.connect_ex(self._places.pop(0)) not in {0, errno.EINPROGRESS}:
            self._not_connected()
        else:
            self._loop.add_writer(connection, self._connected)

    def _connected(self) -> None:
        """The kernel knows whether it is."""
        assert self._connecting is not None, "no other connection is watched"
        if self._connecting.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._not_connected()
            return
        self._drop_timer()
        nonce = os.urandom(NONCE_SIZE)
        self._handshake = HandshakeDriver(
            self._loop,
            self._calls,
            self._drop_connecting(),
            prove_as_agent(self._credentials, self._job, self._part, nonce),
            self._proven,
            self._unproven,
        )

    def _not_connected(self) -> None:
        self._drop_timer()
        self._drop_connecting().close()
        self._try_next()

    def _drop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _drop_connecting(self) -> socket.socket:
        connection, self._connecting = self._connecting, None
        assert connection is not None, "only while one is under way"
        self._loop.remove_writer(connection)
        return connection

    def _proven(self, connection: socket.socket, met: Met) -> None:
        self._over = True
        self._on_found(Found(met.key, SealedConnection(connection, met.keys)))

    def _unproven(self, problem: Exception) -> None:
        if isinstance(problem, CredentialError):
            self._over = True
            self._on_unusable(problem)
            return
        self._why = str(problem) or "it does not answer"
        self._try_next()

    def _tell_overdue(self) -> None:
        if not self._told and self._loop.time() > self._told_at:
            self._told = True
            self._on_overdue(self._why)
