"""The rank's side: its paths, watched by its agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from ompy.engine.base import Poller
from ompy.frameworks.paths.path_watch import Paths, PathVerdict, PathWatch, Probing

if TYPE_CHECKING:
    from ompy.frameworks.context import RankContext
    from ompy.frameworks.proc import Proc

KEY: Final = "probes"  # in the modex: the port of a rank's agent


class Agent(Protocol):
    """What is asked of the connection to the agent."""

    def watch_path(self, header: dict[str, Any]) -> None:
        """Have the agent watch a path."""

    def unwatch_path(self, watch: int) -> None:
        """Have it do so no more."""


class _News(Poller):
    """Has a rank that never sleeps hear its agent all the same.

    A parked rank is woken by what its agent says. One whose waits are all too short to park would
    never look, and a rail that works again would stay unused as long as the program is busy.
    """

    __slots__ = ("_look",)

    def __init__(self, look: Callable[[], object]) -> None:
        self._look = look

    def poll(self) -> int:
        self._look()
        return 0  # what follows from it is done by timers


class AgentPaths(Paths):
    """The paths of one rank."""

    def __init__(
        self,
        agent: Agent,
        context: RankContext,
        probing: Probing,
        look: Callable[[], object] | None = None,
    ) -> None:
        """The rank's way to its agent.

        Args:
            agent: the connection.
            context: of the rank.
            probing: how paths are asked about.
            look: takes what the agent has said, without waiting; called now and then from the
                rank's polling as long as a path is watched. None where that is not needed.
        """
        self._agent = agent
        self._news = _News(look) if look is not None else None
        self._context = context
        self._probing = probing
        self._watches: dict[int, AgentWatch] = {}
        self._last = 0

    def watch(
        self,
        proc: Proc,
        source: str,
        target: str,
        rail: str,
        changed: Callable[[], object],
        *,
        failover: bool = False,
        least: int = 0,
    ) -> PathWatch:
        """Have the agent ask the peer's, which may be the same one."""
        if not self._probing.timeout:
            return PathWatch()
        port = 0  # our own agent's
        if proc.node != self._context.me.node:
            port = int(self._context.modex(proc).get(KEY, b"0"))
        self._last += 1
        made = AgentWatch(self, self._last, changed)
        if self._news is not None and not self._watches:
            self._context.engine.add_poller(self._news)
            self._context.engine.poll_seldom(self._news, seldom=True)
        self._watches[self._last] = made
        self._agent.watch_path(
            {
                "watch": self._last,
                "peer": proc.rank,
                "source": source,
                "target": target,
                "port": port,
                "rail": rail,
                "interval": self._probing.interval,
                "turns": self._probing.turns(failover=failover, least=least),
            }
        )
        return made

    def told(self, watch: int, verdict: str, unanswered: int) -> None:
        """What the agent, or whoever asks for it, has found out."""
        made = self._watches.get(watch)
        if made is not None:
            made.told(PathVerdict(verdict), unanswered)

    def forget(self, watch: int) -> None:
        """Of no more interest."""
        if self._watches.pop(watch, None) is not None:
            self._agent.unwatch_path(watch)
            if self._news is not None and not self._watches:
                self._context.engine.remove_poller(self._news)


class AgentWatch(PathWatch):
    """One path that the agent watches."""

    asked = True

    def __init__(self, paths: AgentPaths, number: int, changed: Callable[[], object]) -> None:
        super().__init__()
        self._paths = paths
        self._number = number
        self._changed = changed
        self._unanswered = 0

    def told(self, verdict: PathVerdict, unanswered: int) -> None:
        """The verdict is another one."""
        self.verdict = verdict
        self._unanswered = unanswered
        self._changed()

    @property
    def why(self) -> str:
        """In words."""
        from ompy.runtime.probes.machine import because

        return because(self.verdict, self._unanswered)

    def end(self) -> None:
        """Nobody needs to know any more."""
        self._paths.forget(self._number)
