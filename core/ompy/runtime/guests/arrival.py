"""The launcher of a guest: asks to be let into a job, starts its ranks, shows what they write."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from ompy import __version__, outputs
from ompy.engine.reactor import Reactor
from ompy.frameworks.job import App, Job
from ompy.frameworks.plm import AgentLink
from ompy.runtime.agents.agent_proof import accept
from ompy.runtime.agents.agent_start import BANNER
from ompy.runtime.agents.relay import fork_agent
from ompy.runtime.connections.control import ControlError, Decoder, Frame, Kind, encode
from ompy.runtime.connections.credentials import CredentialError
from ompy.runtime.connections.driver import ENDING, Driver
from ompy.runtime.connections.frame_io import receive_frames, send_all
from ompy.runtime.connections.pipes import PipePair
from ompy.runtime.connections.sealed_connection import SealedConnection
from ompy.runtime.guests.job_key import hide_key
from ompy.runtime.guests.listener import GREETING
from ompy.runtime.guests.ticket import Ticket, TicketError, read_ticket
from ompy.runtime.launching.printer import Printer
from ompy.runtime.machines.acts import PARENT, Act, Find, Show, Sweep
from ompy.runtime.machines.agents.guest_relay import GuestMachine
from ompy.runtime.machines.children import Child
from ompy.runtime.machines.events import Seen
from ompy.runtime.machines.launcher.guests import placed_together
from ompy.runtime.ranks.descendants import become_subreaper, kill_descendants

PATIENCE: Final = 10.0  # s; arbitrary: who listens answers within milliseconds
KILL_PATIENCE: Final = 5.0  # s; arbitrary: killed processes go at once unless the kernel holds them
_NAME_MAX: Final = 128  # bytes; arbitrary: the greeting and a name


class NotLetIn(Exception):
    """The job cannot be joined; the text says why."""


class Terminal(NamedTuple):
    """How the launcher of a guest shows things.

    Attributes:
        tag: mark each line of output with its rank and stream.
        timestamp: mark each line of output with the time.
        quiet: say nothing about how it ended.
    """

    tag: bool
    timestamp: bool
    quiet: bool


class _Place(NamedTuple):
    """What a guest is given.

    Attributes:
        connection: to the launcher of the job.
        decoder: what came after the answer.
        node: index of this host.
        key: of the job.
    """

    connection: SealedConnection
    decoder: Decoder
    node: int
    key: bytes


def join_job(path: str, apps: Sequence[App], terminal: Terminal) -> int:
    """Run programs as a guest of another job. Returns the exit code.

    For a process of its own, as `launch` is.

    Args:
        path: of the ticket.
        apps: the programs.
        terminal: how to show what they write.

    Raises:
        NotLetIn: the job cannot be joined.
    """
    become_subreaper()
    try:
        ticket = read_ticket(path)
    except TicketError as problem:
        raise NotLetIn(f"{path}: {problem}") from None
    place = _ask_to_join(path, ticket, apps)
    try:
        link = fork_agent(place.connection)
        return _GuestLauncher(place, link, _alone(ticket, apps), terminal).run()
    finally:
        kill_descendants(KILL_PATIENCE)


def _alone(ticket: Ticket, apps: Sequence[App]) -> Job:
    """The guest as if it were a job."""
    placements = tuple(placed_together(apps, node=0))
    return Job(ticket.job_id, tuple(apps), (os.uname().nodename,), placements)


def _ask_to_join(path: str, ticket: Ticket, apps: Sequence[App]) -> _Place:
    """Prove ourselves, and be given a place in the job.

    Raises:
        NotLetIn: there is none for us.
    """
    connection = _connect(path, ticket)
    where = f"{connection.getpeername()[0]} port {ticket.port}"
    try:
        name = _read_name(connection)
        connection.settimeout(None)
        channel = PipePair(os.dup(connection.fileno()), os.dup(connection.fileno()))
        sealed, proof = accept(channel, name, path, BANNER)
        send_all(sealed, encode(Kind.READY, _facts(), _packed(apps)))
        decoder = Decoder()
        answer = _first(sealed, decoder)
    except CredentialError:
        raise NotLetIn(f"{path}: whoever is at {where} does not have this ticket") from None
    except (OSError, ControlError):
        raise NotLetIn(f"{path}: whoever is at {where} lets nobody in") from None
    finally:
        connection.close()
    if answer.kind is not Kind.BRANCH:
        raise NotLetIn(answer.body.decode(errors="replace"))
    key = hide_key(answer.body, proof.key, name)
    return _Place(sealed, decoder, answer.header["node"], key)


def _connect(path: str, ticket: Ticket) -> socket.socket:
    """To the launcher of the job, at the first of its addresses that answers."""
    why = "it names no address"
    for address in ticket.addresses:
        try:
            return socket.create_connection((address, ticket.port), PATIENCE)
        except OSError as problem:
            why = problem.strerror or str(problem)
    places = ", ".join(ticket.addresses)
    text = f"nothing answers at {places} port {ticket.port}: {why}; job {ticket.job_id} may be over"
    raise NotLetIn(f"{path}: {text}")


def _read_name(connection: socket.socket) -> str:
    said = b""
    while not said.endswith(b"\n"):
        more = connection.recv(1)
        if not more or len(said) > _NAME_MAX:
            raise BrokenPipeError
        said += more
    if not said.startswith(GREETING):
        raise ControlError("it is no launcher")
    return said[len(GREETING) : -1].decode(errors="replace")


def _facts() -> dict[str, Any]:
    return {"version": __version__, "pid": os.getpid(), "host": os.uname().nodename}


def _packed(apps: Sequence[App]) -> bytes:
    return json.dumps([app._asdict() for app in apps], separators=(",", ":")).encode()


def _first(connection: SealedConnection, decoder: Decoder) -> Frame:
    while (frame := decoder.next()) is None:
        with suppress(BlockingIOError):  # half a record
            if not receive_frames(connection, decoder):
                raise BrokenPipeError
    return frame


class _GuestLauncher(Driver):
    """Drives the machine of a guest's launcher."""

    machine: GuestMachine

    def __init__(self, place: _Place, link: AgentLink, job: Job, terminal: Terminal) -> None:
        """Take over; `run` runs.

        Args:
            place: in the job.
            link: to the agent of the ranks here.
            job: the guest alone.
            terminal: how to show what they write.
        """
        self._reactor = Reactor()
        super().__init__(self._reactor)
        self._printer = Printer(
            self._loop,
            tag=terminal.tag,
            timestamp=terminal.timestamp,
            on_written=lambda _node, count: self.see(Seen.WRITTEN, bytes=count),
            on_change=self._output_changed,
        )
        child = Child(place.node, link.pid, remote=False)
        self.machine = GuestMachine(place.node, job, child, place.key, quiet=terminal.quiet)
        self.connect(PARENT, place.connection, place.decoder)
        self.connect_agent(place.node, link, None)

    def run(self) -> int:
        """Run until nothing is left, or the job has gone. Returns the exit code."""
        for number in ENDING:
            if signal.getsignal(number) != signal.SIG_IGN:
                self._reactor.add_signal_handler(number, self.see, Seen.TOLD_TO_END, number)
        self.see(Seen.BEGUN)
        self._reactor.run_forever()
        for find in self.machine.failure_report():
            outputs.tell(find.finding.text, "job failed", "error")
        return self.machine.exit_code

    def tell(self, event: Any) -> None:
        """Something has happened: when nothing is left, and all is written, it is the end."""
        super().tell(event)
        self._see_done()

    def _see_done(self) -> None:
        if self.machine.done and self._printer.idle:
            self._loop.stop()

    def _output_changed(self, stream: int, broken: str | None) -> None:
        if broken is not None:
            self.see(Seen.BROKEN, stream, broken.encode())
        self._see_done()

    def perform(self, act: Act) -> None:
        """Do one thing."""
        match act:
            case Show():
                self._printer.show(act.node, act.rank, act.stream, act.data)
            case Sweep():
                kill_descendants(KILL_PATIENCE)
            case Find():
                outputs.tell(act.finding.text, act.finding.name, act.finding.level)
            case _:
                super().perform(act)
