"""Waiting until the agents of other hosts are ready, before any of them is told its job.

So a host that cannot be reached is an error before anything has run anywhere.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from ompy import __version__
from ompy.frameworks.plm import AgentLink
from ompy.mca.component import NotAvailable
from ompy.runtime.control import READ_SIZE, ControlError, Decoder, Frame, Kind

BANNER: Final = b"\0ompy-agent\0"  # arbitrary: what no login script prints
PREFACE_LIMIT: Final = 1024 * 1024  # bytes; arbitrary: far more than any login script prints
_SHOWN: Final = 200  # characters; arbitrary: the first lines of what was said instead
_EXIT_PATIENCE: Final = 1.0  # s; arbitrary: a process that has closed its output ends at once
_POLL: Final = 0.01  # s; arbitrary: seldom needed


class Greeting(NamedTuple):
    """What an agent said before its job.

    Attributes:
        decoder: holds what came after it.
        pid: of the agent, on its own host.
        cores: it may use.
    """

    decoder: Decoder
    pid: int
    cores: int


class _Newcomer:
    """An agent that is being started."""

    def __init__(self, link: AgentLink) -> None:
        self.link = link
        self.said = b""
        self.decoder = Decoder()
        self.found = False

    def read(self) -> Frame | None:
        """Its first message, if it is here.

        Raises:
            NotAvailable: there will be none; the text says why.
        """
        try:
            data = self.link.channel.recv(READ_SIZE)
        except ConnectionError:
            data = b""
        if not data:
            raise NotAvailable(self._story(_how_it_ended(self.link.pid)))
        if self.found:
            self.decoder.feed(data)
        else:
            self._look_for_banner(data)
        try:
            return self.decoder.next()
        except ControlError as problem:
            raise NotAvailable(self._story(f"its agent talks nonsense: {problem}")) from None

    def _look_for_banner(self, data: bytes) -> None:
        """Login scripts may print before the agent says its first word."""
        self.said += data
        before, banner, rest = self.said.partition(BANNER)
        if banner:
            self.found, self.said = True, before
            self.decoder.feed(rest)
        elif len(self.said) > PREFACE_LIMIT:
            raise NotAvailable(self._story("no agent was started, only this was said"))

    def _story(self, what: str) -> str:
        text = f"no agent on host {self.link.host}: {what}"
        said = self.said.decode(errors="replace").strip()
        return f"{text}; it said: {said[:_SHOWN]}" if said else text

    def is_late(self, seconds: float) -> NotAvailable:
        """It has taken too long."""
        return NotAvailable(self._story(f"it was not ready within {seconds:g} s"))


def await_agents(links: Sequence[AgentLink], timeout_s: float) -> Mapping[int, Greeting]:
    """Wait until all remote agents are ready. Their greetings, by position.

    Args:
        links: agents; those that are forks of the launcher need not say anything.
        timeout_s: seconds they have.

    Raises:
        NotAvailable: one is not; the text says which and why.
    """
    waiting = {node: _Newcomer(link) for node, link in enumerate(links) if link.remote}
    by_descriptor = {new.link.channel.fileno(): node for node, new in waiting.items()}
    watch = select.poll()
    for descriptor in by_descriptor:
        watch.register(descriptor, select.POLLIN)
    deadline = time.monotonic() + timeout_s
    greetings: dict[int, Greeting] = {}
    while waiting:
        left = deadline - time.monotonic()
        ready = watch.poll(max(left, 0) * 1000)
        if not ready and left <= 0:
            raise next(iter(waiting.values())).is_late(timeout_s)
        for descriptor, _ in ready:
            node = by_descriptor[descriptor]
            frame = waiting[node].read()
            if frame is not None:
                greetings[node] = _greeting(waiting.pop(node), frame)
                watch.unregister(descriptor)
    return greetings


def _greeting(new: _Newcomer, frame: Frame) -> Greeting:
    host = new.link.host
    if frame.kind is not Kind.READY:
        raise NotAvailable(f"no agent on host {host}: it said {frame.kind.name} instead of READY")
    if frame.header["version"] != __version__:
        raise NotAvailable(
            f"ompy is {frame.header['version']} on host {host} and {__version__} here; install the "
            "same on all hosts"
        )
    return Greeting(new.decoder, frame.header["pid"], frame.header["cores"])


def _how_it_ended(pid: int) -> str:
    """What became of the process that should have started an agent."""
    deadline = time.monotonic() + _EXIT_PATIENCE
    while time.monotonic() < deadline:
        with suppress(ChildProcessError):
            process, status = os.waitpid(pid, os.WNOHANG)
            if process:
                return _ended_by(os.waitstatus_to_exitcode(status))
        time.sleep(_POLL)
    return "the connection ended"


def _ended_by(code: int) -> str:
    if code < 0:
        return f"the remote shell was killed by signal {-code} ({signal.strsignal(-code)})"
    return f"the remote shell ended with exit code {code}; a message above may say why"
