"""The relay: what an agent becomes that has agents below it.

It starts them, and its own host's ranks get an agent of their own, which is its fork and cannot
tell it from the launcher. From then on the relay only passes messages on: what comes from above
to all below or to the one that is meant, what comes from below up, and news that every host needs
up and to all others at once. A fence is one message from it, when all below have come.
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
from ompy.runtime.agent_connection import AgentConnection, departure
from ompy.runtime.channel import Channel
from ompy.runtime.control import Decoder, Frame, Kind, encode, send_all
from ompy.runtime.descendants import control_process, signal_descendants
from ompy.runtime.greeting import Gathering, Greeting, ParentGone
from ompy.runtime.heartbeat import Heartbeat
from ompy.runtime.pipes import Connection
from ompy.runtime.tree import Tree, from_plain

if TYPE_CHECKING:
    from ompy.runtime.agent_proof import AgentProof

RETRY: Final = 0.02  # s; arbitrary: how often what a killed agent has left is killed again
START_PATIENCE: Final = 600.0  # s; arbitrary: as that of other agents
_SET_NAME: Final = 15  # Linux PR_SET_NAME
_TO_ALL: Final = frozenset(
    {Kind.MODEX, Kind.FENCED, Kind.LEFT, Kind.DEPARTED, Kind.END, Kind.SIGNAL, Kind.REPORT}
)


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
    links = {node: _fork_agent(connection)}

    def tell(ready: int, facts: Mapping[str, Any]) -> None:
        send_all(connection, encode(Kind.READY, {**facts, "node": ready}))

    gathering = Gathering(tree, links, branch.header["concurrent"], tell, connection, proof)
    try:
        greetings = gathering.run(branch.header["timeout_s"])
    except NotAvailable as problem:
        text = f"{problem}; host {os.uname().nodename} was to start it, as plm_base_radix has it"
        send_all(connection, encode(Kind.UNREADY, None, text.encode()))
        return 1
    except ParentGone:
        return 1
    key = proof.key if proof is not None else b""
    return Relay(connection, decoder, node, tree, links, greetings, key).run()


def _fork_agent(connection: Connection) -> AgentLink:
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
        from ompy.runtime.agent import serve

        parents.close()
        relays_end.close()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        serve(connection)
    finally:
        os._exit(1)


class Relay:
    """An inner node of the tree of agents, once all below it are ready."""

    def __init__(
        self,
        connection: Connection,
        decoder: Decoder,
        node: int,
        tree: Tree,
        links: Mapping[int, AgentLink],
        greetings: Mapping[int, Greeting],
        key: bytes,
    ) -> None:
        """Take over; `run` runs.

        Args:
            connection: to the parent.
            decoder: what was read from it.
            node: index of this host.
            tree: the agents below.
            links: to this host's agent and to those that were started from here, by node.
            greetings: what these have said.
            key: of the job, where it does not come with START.
        """
        self._key = key
        self._node = node
        self._tree = tree
        self._loop = Reactor()
        self._loop.set_exception_handler(self._failed)
        self._started = False
        self._heartbeat: Heartbeat | None = None
        self._parent = Channel(
            self._loop, connection, self._from_above, lambda _reason: self._loop.stop(), decoder
        )
        self._children: dict[int, AgentConnection] = {}
        for child, link in links.items():
            greeting = greetings.get(child)
            self._children[child] = AgentConnection(
                self._loop,
                child,
                link,
                self._from_below,
                self._gone,
                pid=greeting.pid if greeting else 0,
                decoder=greeting.decoder if greeting else None,
            )
        self._shells = frozenset(c.shell for c in self._children.values() if c.node != node)
        self._fenced: set[int] = set()

    def run(self) -> int:
        """Run until the parent has gone. Who called kills what is left."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self._loop.add_signal_handler(number, self._loop.stop)
        self._loop.call_later(START_PATIENCE, self._see_whether_started)
        self._loop.run_forever()
        return 0

    def _failed(self, loop: Reactor, context: dict[str, Any]) -> None:
        """A mistake of ours: say it and end, both sides see the end."""
        loop.default_exception_handler(context)
        self._loop.stop()

    def _see_whether_started(self) -> None:
        if not self._started:
            self._loop.stop()

    # from above

    def _from_above(self, frame: Frame) -> None:
        if self._heartbeat is not None:
            self._heartbeat.heard()
        match frame.kind:
            case Kind.ALIVE:
                pass
            case Kind.START:
                self._start(frame)
            case kind if kind in _TO_ALL:
                self._tell_others(None, frame.kind, frame.header, frame.body)
                if frame.kind is Kind.SIGNAL:
                    self._signalled(frame.header["signal"])
            case _:
                self._route(frame)

    def _route(self, frame: Frame) -> None:
        """To the one it is for."""
        child = self._children.get(self._tree.child_towards(frame.header["to"]))
        if child is not None:
            child.send(frame.kind, frame.header, frame.body)

    def _start(self, frame: Frame) -> None:
        """The job: all below get it, and from now on heartbeats tell who is there."""
        self._started = True
        header = frame.header
        interval_s = header["heartbeat_ms"] / 1000
        for child in self._children.values():
            own = child.node == self._node
            theirs = {
                **header,
                "node": child.node,
                "heartbeat_ms": 0 if own else header["heartbeat_ms"],
                "heartbeat_misses": header["agent_misses"],  # a relay is no launcher: no debugger
            }
            child.send(Kind.START, theirs, self._key + frame.body if own else frame.body)
            patience_s = header["start_timeout_ms"] / 1000
            child.begin_heartbeats(interval_s, header["agent_misses"], patience_s)
        if interval_s:
            self._heartbeat = Heartbeat(
                self._loop,
                interval_s,
                header["heartbeat_misses"],
                lambda: self._parent.send(Kind.ALIVE),
                self._loop.stop,
            )
            self._heartbeat.watch(on=True)
            self._heartbeat.begin()

    def _signalled(self, number: int) -> None:
        """After SIGTSTP the launcher stops, and says nothing for a while."""
        if self._heartbeat is not None and number in {signal.SIGTSTP, signal.SIGCONT}:
            self._heartbeat.watch(on=number == signal.SIGCONT)

    # from below

    def _from_below(self, child: AgentConnection, frame: Frame) -> None:
        if frame.kind is Kind.FENCED:
            self._fenced.add(child.node)
            if len(self._fenced) == len(self._children):
                self._fenced.clear()
                self._parent.send(Kind.FENCED)
            return
        self._parent.send(frame.kind, frame.header, frame.body)
        if frame.kind in {Kind.MODEX, Kind.LEFT}:
            self._tell_others(child, frame.kind, frame.header, frame.body)
        elif frame.kind is Kind.EXITED:
            header, reason = departure(frame)
            self._tell_others(child, Kind.DEPARTED, header, reason)

    def _tell_others(
        self, but: AgentConnection | None, kind: Kind, header: Mapping[str, Any], body: bytes
    ) -> None:
        for child in self._children.values():
            if child is not but:
                child.send(kind, header, body)

    def _gone(self, child: AgentConnection, reason: str) -> None:
        """Tell the launcher. Those below it end with it; below our own agent there are ranks."""
        own = child.node == self._node
        header = {"node": child.node, "pid": child.pid, "alone": own}
        self._parent.send(Kind.AGENT_GONE, header, reason.encode())
        if own:
            self._kill_ranks()

    def _kill_ranks(self) -> None:
        """What our agent has left is ours now. The job ends, so it goes on until we do."""
        signal_descendants(signal.SIGKILL, but_groups=self._shells)
        self._loop.call_later(RETRY, self._kill_ranks)
