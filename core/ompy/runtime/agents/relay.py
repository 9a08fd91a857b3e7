"""The relay: what an agent becomes that has agents below it.

It starts them, and its own host's ranks get an agent of their own, which is its fork and cannot
tell it from the launcher. From then on it only passes messages on (`machines/agents/relaying.py`).
"""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ompy.engine.reactor import Reactor
from ompy.frameworks.plm import AgentLink
from ompy.mca.component import NotAvailable
from ompy.runtime.agents.agent_start import AgentStart, ParentGone, ReadyAgent
from ompy.runtime.agents.agent_tree import Tree, from_plain
from ompy.runtime.connections.control import Decoder, Frame, Kind, encode
from ompy.runtime.connections.driver import ENDING, Driver
from ompy.runtime.connections.frame_io import send_all
from ompy.runtime.connections.pipes import Connection
from ompy.runtime.machines.acts import PARENT, Act, Sweep
from ompy.runtime.machines.agents.relaying import RelayMachine
from ompy.runtime.machines.children import Child
from ompy.runtime.machines.events import Seen
from ompy.runtime.ranks.descendants import control_process, signal_descendants

if TYPE_CHECKING:
    from ompy.runtime.agents.agent_proof import AgentProof

_SET_NAME: Final = 15  # Linux PR_SET_NAME


def relay(
    connection: Connection, decoder: Decoder, branch: Frame, proof: AgentProof | None = None
) -> int:
    """Start the agents below and pass messages on until the parent goes. The exit code.

    Args:
        connection: to the parent: the launcher or another relay.
        decoder: what was read from it.
        branch: which agents there are below.
        proof: of this agent, if it had to prove itself: those below have to likewise.
    """
    control_process(_SET_NAME, b"ompy-relay")
    node = int(branch.header["node"])
    tree = Tree(from_plain(json.loads(branch.body)), node)
    links = {node: fork_agent(connection)}

    def tell(ready: int, facts: Mapping[str, Any]) -> None:
        send_all(connection, encode(Kind.READY, {**facts, "node": ready}))

    start = AgentStart(tree, links, branch.header["concurrent"], tell, connection, proof)
    try:
        ready_agents = start.run(branch.header["timeout_s"])
    except NotAvailable as problem:
        text = f"{problem}; host {os.uname().nodename} was to start it, as plm_base_radix has it"
        send_all(connection, encode(Kind.UNREADY, None, text.encode()))
        return 1
    except ParentGone:
        return 1
    key = proof.key if proof is not None else b""
    return Relay(connection, decoder, node, tree, links, ready_agents, key).run()


def fork_agent(connection: Connection) -> AgentLink:
    """The agent of this host's ranks."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        _be_agent(connection, ours, theirs)
    theirs.close()
    return AgentLink(os.uname().nodename, ours, pid)


def _be_agent(
    parents: Connection, relays_end: socket.socket, connection: socket.socket
) -> NoReturn:
    """What the forked process does; it keeps nothing that would hide the relay's end."""
    try:
        from ompy.runtime.agents.agent import serve

        parents.close()
        relays_end.close()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        serve(connection)
    finally:
        os._exit(1)


class Relay(Driver):
    """An inner node of the tree of agents, once all below it are ready."""

    def __init__(
        self,
        connection: Connection,
        decoder: Decoder,
        node: int,
        tree: Tree,
        links: Mapping[int, AgentLink],
        ready_agents: Mapping[int, ReadyAgent],
        key: bytes,
    ) -> None:
        """Take over; `run` runs.

        Args:
            connection: to the parent.
            decoder: what was read from it.
            node: index of this host.
            tree: the agents below.
            links: to this host's agent and to those that were started from here, by node.
            ready_agents: what these have said.
            key: of the job, where it does not come with START.
        """
        self._reactor = Reactor()
        super().__init__(self._reactor)
        self._reactor.set_exception_handler(self._failed)
        self._node = node
        children = [
            Child(
                child,
                ready_agents[child].pid if child in ready_agents else link.pid,
                remote=link.remote,
            )
            for child, link in links.items()
        ]
        self.machine = RelayMachine(node, tree, children, key)
        self.connect(PARENT, connection, decoder)
        for child, link in links.items():
            ready = ready_agents.get(child)
            self.connect_agent(child, link, ready.decoder if ready else None)

    def run(self) -> int:
        """Run until the parent has gone. Who called kills what is left."""
        for number in ENDING:
            self._reactor.add_signal_handler(number, self.see, Seen.TOLD_TO_END)
        self.see(Seen.BEGUN)
        self._reactor.run_forever()
        return 0

    def _failed(self, loop: Reactor, context: dict[str, Any]) -> None:
        """A mistake of ours: say it and end, both sides see the end."""
        loop.default_exception_handler(context)
        self._loop.stop()

    def perform(self, act: Act) -> None:
        """Do one thing."""
        if isinstance(act, Sweep):
            shells = frozenset(pid for node, pid in self.shells.items() if node != self._node)
            signal_descendants(signal.SIGKILL, but_groups=shells)
        else:
            super().perform(act)
