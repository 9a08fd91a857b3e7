"""Starting the agents of other hosts and waiting until all are ready, before any is told its job.

So a host that cannot be reached is an error before anything has run anywhere.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ompy import __version__
from ompy.frameworks.plm import AgentLink
from ompy.mca.component import NotAvailable
from ompy.runtime.agents.agent_command import start_by
from ompy.runtime.agents.agent_tree import Branch, Tree, to_plain
from ompy.runtime.connections.control import READ_SIZE, ControlError, Decoder, Frame, Kind, encode
from ompy.runtime.connections.frame_io import send_all
from ompy.runtime.connections.pipes import Connection, connection_of

if TYPE_CHECKING:
    from ompy.runtime.agents.agent_proof import AgentProof, Invitation

BANNER: Final = b"\0ompy-agent\0"  # arbitrary: what no login script prints
PREFACE_LIMIT: Final = 1024 * 1024  # bytes; arbitrary: far more than any login script prints
_SHOWN: Final = 200  # characters; arbitrary: the first lines of what was said instead
_EXIT_PATIENCE: Final = 1.0  # s; arbitrary: a process that has closed its output ends at once
_POLL: Final = 0.01  # s; arbitrary: seldom needed


class ParentGone(Exception):
    """Who wanted these agents has gone meanwhile."""


class ReadyAgent(NamedTuple):
    """What an agent said before its job.

    Attributes:
        decoder: holds what came after it; of agents further down nothing comes by itself.
        pid: of the agent, on its own host.
        cores: it may use.
    """

    decoder: Decoder
    pid: int
    cores: int


class _StartingAgent:
    """An agent that is being started, and those it is to start.

    Attributes:
        missing: nodes of its subtree, its own first, that are not ready.
    """

    def __init__(
        self,
        node: int,
        link: AgentLink,
        below: Sequence[Branch],
        invitation: Invitation | None = None,
    ) -> None:
        self._invitation = invitation  # of one that has to prove itself
        self.node = node
        self.link = link
        self.below = below
        expected = {node: link.host} if link.remote else {}
        self.missing = expected | {branch.node: branch.host for branch in below}
        self.said = b""
        self.decoder = Decoder()
        self.found = not link.remote

    @property
    def starting(self) -> bool:
        """Whether it has not said its first word."""
        return self.node in self.missing

    def read(self) -> list[Frame]:
        """What it says now.

        Raises:
            NotAvailable: there will be nothing; the text says why.
        """
        try:
            data = connection_of(self.link).recvmsg(READ_SIZE)[0]
        except BlockingIOError:  # half a record
            return []
        except ConnectionError:
            data = b""
        except ControlError as problem:
            raise NotAvailable(self._story(str(problem))) from None
        if not data:
            raise NotAvailable(self._story(_how_it_ended(self.link)))
        frames = []
        try:
            if self.found:
                self.decoder.feed(data)
            else:
                self._look_for_banner(data)
            while self.missing and (frame := self.decoder.next()) is not None:
                frames.append(frame)
                self._became_ready(frame)
        except ControlError as problem:
            raise NotAvailable(self._story(f"its agent talks nonsense: {problem}")) from None
        return frames

    def _became_ready(self, frame: Frame) -> None:
        """One that is missing is here.

        Raises:
            NotAvailable: it is not, or is of no use.
        """
        if frame.kind is Kind.UNREADY:
            raise NotAvailable(frame.body.decode(errors="replace"))
        host = self.missing.pop(frame.header.get("node", self.node), None)
        if frame.kind is not Kind.READY or host is None:
            said = f"it said {frame.kind.name} instead of READY"
            raise NotAvailable(f"no agent on host {host or self.link.host}: {said}")
        if frame.header["version"] != __version__:
            raise NotAvailable(
                f"ompy is {frame.header['version']} on host {host} and {__version__} here; install "
                "the same on all hosts"
            )

    def _look_for_banner(self, data: bytes) -> None:
        """Login scripts may print before the agent says its first word."""
        self.said += data
        before, banner, rest = self.said.partition(BANNER)
        if banner:
            if self._invitation is not None:
                sealed = self._invitation.accepted(self.link.channel, rest)
                if sealed is None:  # not all of it is here
                    return
                self.link.sealed, rest = sealed
            self.found, self.said = True, before
            self.decoder.feed(rest)
        elif len(self.said) > PREFACE_LIMIT:
            raise NotAvailable(self._story("no agent was started, only this was said"))

    def _story(self, what: str) -> str:
        text = f"no agent on host {self.link.host}: {what}"
        said = self.said.decode(errors="replace").strip()
        return f"{text}; it said: {said[:_SHOWN]}" if said else text

    def is_late(self, seconds: float) -> NotAvailable:
        """It has taken too long, or one of those below."""
        late = f"it was not ready within {seconds:g} s"
        if self.starting:
            return NotAvailable(self._story(late))
        return NotAvailable(f"no agent on host {next(iter(self.missing.values()))}: {late}")


class AgentStart:
    """Starts the agents below this process and waits until all of them are ready.

    Attributes:
        ready_agents: of those that are, by node.
    """

    def __init__(
        self,
        tree: Tree,
        links: dict[int, AgentLink],
        concurrent: int,
        told: Callable[[int, Mapping[str, Any]], object] = lambda _node, _facts: None,
        parent: Connection | None = None,
        proof: AgentProof | None = None,
    ) -> None:
        """Prepare; `run` runs.

        Args:
            tree: the agents below.
            links: agents that have been started in other ways, of which local ones say nothing;
                those that are started now come in.
            concurrent: how many may be on their way at the same time.
            told: gets node and READY of each that is ready.
            parent: where nothing is to come from until all are ready.
            proof: of agents that have to prove themselves; None if none has.
        """
        self._tree = tree
        self._links = links
        self._concurrent = concurrent
        self._told = told
        self._parent = parent
        self._proof = proof
        self._timeout = 0.0
        self._unstarted = tree.children()
        self._starting_agents: dict[int, _StartingAgent] = {}  # by descriptor
        self._watch = select.poll()
        self.ready_agents: dict[int, ReadyAgent] = {}
        for node, link in links.items():
            self._expect(node, link)
        if parent is not None:
            self._watch.register(parent.fileno(), select.POLLIN)

    def _expect(self, node: int, link: AgentLink, invitation: Invitation | None = None) -> None:
        below = self._tree.below(node) if link.remote else []  # a fork starts nobody
        self._starting_agents[link.channel.fileno()] = _StartingAgent(node, link, below, invitation)
        self._watch.register(link.channel.fileno(), select.POLLIN)

    def run(self, timeout_s: float) -> Mapping[int, ReadyAgent]:
        """Wait until all are ready. They, by node.

        Args:
            timeout_s: seconds they have.

        Raises:
            NotAvailable: one is not; the text says which and why.
            ParentGone: nobody wants them any longer.
        """
        self._timeout = timeout_s
        deadline = time.monotonic() + timeout_s
        self._start_more()
        while self._unstarted or any(new.missing for new in self._starting_agents.values()):
            left = deadline - time.monotonic()
            ready = self._watch.poll(max(left, 0) * 1000)
            if not ready and left <= 0:
                late = next(new for new in self._starting_agents.values() if new.missing)
                raise late.is_late(timeout_s)
            for descriptor, _ in ready:
                if descriptor not in self._starting_agents:
                    raise ParentGone
                self._hear(self._starting_agents[descriptor])
            self._start_more()
        return self.ready_agents

    def _start_more(self) -> None:
        """As many at a time as may be: each is a process here, and one more login there."""
        starting = sum(agent.starting for agent in self._starting_agents.values())
        while self._unstarted and starting < self._concurrent:
            self._start(self._unstarted.pop(0))
            starting += 1

    def _start(self, branch: Branch) -> None:
        invitation = self._proof.invite() if branch.proven and self._proof is not None else None
        words = () if invitation is None else invitation.words
        link = self._links[branch.node] = start_by((*branch.command, *words), branch.host)
        self._expect(branch.node, link, invitation)
        if invitation is None:
            return
        from ompy.runtime.connections.credentials import CredentialError  # few agents have to

        try:
            send_all(link.channel, invitation.letter())
        except CredentialError as problem:
            raise NotAvailable(f"no agent on host {branch.host}: {problem}") from None
        except OSError:  # it has ended already: its channel will say so
            pass

    def _hear(self, agent: _StartingAgent) -> None:
        for frame in agent.read():
            facts = frame.header
            node = facts.get("node", agent.node)
            decoder = agent.decoder if node == agent.node else Decoder()
            self.ready_agents[node] = ReadyAgent(decoder, facts["pid"], facts["cores"])
            self._told(node, facts)
            if node == agent.node and agent.below:
                self._tell_below(agent)

    def _tell_below(self, agent: _StartingAgent) -> None:
        """Have it start its own."""
        header = {
            "node": agent.node,
            "timeout_s": self._timeout,
            "concurrent": self._concurrent,
        }
        body = json.dumps(to_plain(agent.below), separators=(",", ":")).encode()
        agent.link.channel.settimeout(self._timeout)
        try:
            send_all(connection_of(agent.link), encode(Kind.BRANCH, header, body))
        except TimeoutError:
            text = f"the agent on host {agent.link.host} does not take what it is to start"
            raise NotAvailable(text) from None
        except OSError:  # it has ended already: its channel will say so
            pass


def _how_it_ended(link: AgentLink) -> str:
    """What became of the process that is an agent here, or should have started one elsewhere."""
    deadline = time.monotonic() + _EXIT_PATIENCE
    while time.monotonic() < deadline:
        with suppress(ChildProcessError):
            process, status = os.waitpid(link.pid, os.WNOHANG)
            if process:
                who = "the remote shell" if link.remote else "its process"
                return _ended_by(who, os.waitstatus_to_exitcode(status))
        time.sleep(_POLL)
    return "the connection ended"


def _ended_by(who: str, code: int) -> str:
    if code < 0:
        return f"{who} was killed by signal {-code} ({signal.strsignal(-code)})"
    return f"{who} ended with exit code {code}; a message above may say why"
