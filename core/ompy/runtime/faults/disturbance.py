"""A fault script put to work in one rank: what it disturbs, and how the job hears of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ompy.net.faults.fault_rules import FaultRule
from ompy.net.faults.scripted import ScriptedFaults

if TYPE_CHECKING:
    from ompy.frameworks.context import RankContext
    from ompy.runtime.ranks.process import RankProcess

TELL_AFTER: Final = 100_000_000  # ns; arbitrary: a rank that is killed has told all but the last
BEGINS: Final = "> send"  # what the flight recorder notes when a message begins


class Disturbance:
    """The faults of one rank.

    Attributes:
        faults: the middleware.
        process: the rank, once it is brought up; before that it begins no message.
    """

    def __init__(
        self,
        script: Sequence[Mapping[str, Any]],
        context: RankContext,
        tell: Callable[[Sequence[int]], object] | None,
        *,
        seed: int = 0,
    ) -> None:
        """Install a script in a rank's network; call before anything uses that.

        Args:
            script: the rules, as `FaultRule._asdict` has them.
            context: of the rank.
            tell: is told how often each rule has struck, now and then and by `tell_now`; None when
                nobody wants to know before the end, which sets no timer.
            seed: of the world.
        """
        rules = [FaultRule.from_dict(dict(values)) for values in script]
        self.process: RankProcess | None = None
        self._context = context
        self._tell = tell
        self._told: list[int] = [0] * len(rules)
        self._due = False
        self.faults = ScriptedFaults(
            rules,
            context.rank,
            context.size,
            engine=context.engine,
            network=context.network,
            trace=context.trace,
            seed=seed,
        )
        if tell is not None:
            self.faults.on_delivered = self._delivered
        context.network.install(self.faults)
        if any(rule.message for rule in rules):
            context.trace.listen(self._note)

    def tell_outages_to(self, tell: Callable[[int, Mapping[int, int]], object]) -> None:
        """Have somebody told which lasting faults there are here, now and whenever one begins."""
        outages = self.faults.outages
        if outages:
            self.faults.on_outage = lambda: tell(outages.began, outages.fired)
            tell(outages.began, outages.fired)

    def tell_now(self) -> None:
        """Say what has not been said."""
        self._due = False
        if self._tell is not None and self._told != self.faults.delivered:
            self._told = list(self.faults.delivered)
            self._tell(self._told)

    def _delivered(self) -> None:
        now = self.faults.delivered
        if any(count and not told for count, told in zip(now, self._told, strict=True)):
            self.tell_now()  # it may be the end of this rank
        elif not self._due:
            self._due = True
            self._context.engine.call_later(TELL_AFTER, self.tell_now)

    def _note(
        self, what: str, context_id: int, target: int, tag: int, sequence: int, size: int
    ) -> None:
        """An entry of the flight recorder, which tells when a message begins."""
        del sequence, size
        if what == BEGINS and tag >= 0 and self.process is not None:
            communicator = self.process.communicators.get(context_id)
            if communicator is not None:
                self.faults.message_begins(communicator.procs[target].rank)
