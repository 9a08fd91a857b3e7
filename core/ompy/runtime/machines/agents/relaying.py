"""A relay's rows: an agent that has agents below it, and only passes messages on.

What comes from above goes to all below or to the one that is meant, and what comes from below goes
up. Some of it becomes less on the way: a fence is one message, when all below have come, and so are
news of ranks that leave, after a moment. Its own host's ranks have an agent of their own, which is
its fork.
"""

from __future__ import annotations

from typing import ClassVar, Final

from ompy.runtime.agents.agent_tree import Tree
from ompy.runtime.connections.control import Kind
from ompy.runtime.machines.acts import Send, Sweep
from ompy.runtime.machines.agents.agent import ALL, RETRY, AgentMachine, Beat, Moment
from ompy.runtime.machines.agents.agent_table import RELAY, TO_ALL, AgentPhase, Table
from ompy.runtime.machines.children import Child, Children
from ompy.runtime.machines.events import Event, Seen
from ompy.runtime.machines.leave_news import COLLECTING, NewsOfHosts

# ends of which others have to hear after they have heard of the ranks that leave
ENDS: Final = frozenset({Kind.EXITED, Kind.AGENT_GONE})
START_PATIENCE: Final = 600.0  # s; arbitrary: as that of other agents


class RelayMachine(AgentMachine):
    """An inner node of the tree of agents, once all below it are ready."""

    table: ClassVar[Table] = RELAY
    first: ClassVar[AgentPhase] = AgentPhase.READY

    def __init__(self, node: int, tree: Tree, children: list[Child], key: bytes) -> None:
        """Nobody has been told the job.

        Args:
            node: index of this host.
            tree: the agents below.
            children: this host's agent, and those that were started from here.
            key: of the job, where it does not come with START.
        """
        super().__init__(node, Beat(0, 0))
        self._tree = tree
        self._children = Children(children)
        self._key = key
        self._leaving = NewsOfHosts()

    @property
    def _other_due(self) -> float | None:
        return self._children.due

    def _happened(self, event: Event) -> None:
        match event.what:
            case Seen.BEGUN:
                self._later(Moment.START, START_PATIENCE)
            case Seen.ABOVE:
                self._from_above(event)
            case Seen.BELOW:
                self._from_below(event)
            case Seen.CHILD_GONE:
                if self._children.gone(event.who):
                    self._gone(event.who, event.body)
            case _:
                super()._happened(event)

    def _check(self) -> None:
        super()._check()
        passing = self.phase is AgentPhase.PASSING
        started = (Moment.START, ALL) not in self._agenda
        assert not passing or started, "the job is there, and all are alive"
        swept = (Moment.KILL, ALL) in self._agenda
        assert swept is (self.phase is AgentPhase.SWEEPING), "what an agent has left is ended"

    def _from_above(self, event: Event) -> None:
        kind, header = event.kind, event.header
        if kind is Kind.START:
            self._start(event)
        elif kind in TO_ALL:
            assert kind is not None
            self._acts += self._children.tell(kind, header, event.body)
            if kind is Kind.SIGNAL:
                self._signalled(header["signal"])
        elif kind is not Kind.ALIVE:
            assert kind is not None
            self._do(Send(self._tree.child_towards(header["to"]), kind, header, event.body))

    def _start(self, event: Event) -> None:
        """The job: all below get it, and from now on heartbeats tell who is there."""
        if self.phase is AgentPhase.READY:
            self.phase = AgentPhase.PASSING
        self._agenda.drop((Moment.START, -1))
        header = event.header
        interval_ms, misses = header["heartbeat_ms"], header["agent_misses"]
        for child in self._children.nodes:
            own = child == self._node
            theirs = {
                **header,
                "node": child,
                "heartbeat_ms": 0 if own else interval_ms,
                "heartbeat_misses": misses,  # a relay is no launcher: no debugger
            }
            self._do(Send(child, Kind.START, theirs, self._key + event.body if own else event.body))
            patience_s = header["start_timeout_ms"] / 1000
            self._children.watch(child, self._now, interval_ms / 1000, misses, patience_s)
        self._beat = Beat(interval_ms / 1000, header["heartbeat_misses"])
        self._begin_heartbeats()

    def _from_below(self, event: Event) -> None:
        self._children.heard(event)
        kind = event.kind
        if kind is Kind.FENCED:
            if self._children.fenced(event.who):
                self._up(Kind.FENCED)
        elif kind is Kind.LEFT:
            if self._leaving.add_news(event.who, event.body) and self.phase is not AgentPhase.OVER:
                self._later(Moment.NEWS, COLLECTING)
        elif kind is not Kind.ALIVE:
            assert kind is not None
            if kind in ENDS and not event.header.get("known"):
                self._pass_leaving_on()
            self._up(kind, event.body, **event.header)

    def _pass_leaving_on(self) -> None:
        """The moment is over, or something comes that has to be heard after them."""
        self._agenda.drop((Moment.NEWS, ALL))
        body, _ = self._leaving.take_news()
        if body:
            self._up(Kind.LEFT, body)

    def _gone(self, node: int, reason: bytes) -> None:
        """Tell the launcher. Those below it end with it; below our own agent there are ranks."""
        own = node == self._node
        self._pass_leaving_on()
        self._up(Kind.AGENT_GONE, reason, node=node, pid=self._children.pid(node), alone=own)
        if own:
            self._sweep()

    def _sweep(self) -> None:
        """What our agent has left is ours now. The job ends, so it goes on until we do."""
        self.phase = AgentPhase.SWEEPING
        self._do(Sweep())
        self._later(Moment.KILL, RETRY)

    def _time(self) -> None:
        acts, silent = self._children.time(self._now)
        self._acts += acts
        for node, reason in silent:
            self._gone(node, reason.encode())
        super()._time()

    def _come(self, moment: Moment, rank: int) -> None:
        if moment is Moment.START:
            self._stop()
        elif moment is Moment.NEWS:
            self._pass_leaving_on()
        else:
            self._sweep()
