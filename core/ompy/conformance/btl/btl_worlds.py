"""Virtual worlds around one BTL: its ranks, without a PML, on one seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ompy.conformance.btl.driver import Driver
from ompy.conformance.btl.fragment import sample
from ompy.conformance.registries import Settings, registry_with
from ompy.engine.virtual_engine import Deadlock, RankFailed, VirtualEngine
from ompy.net.faults.middleware import FaultCounter
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.simulation.virtual_job import VirtualJob

if TYPE_CHECKING:
    from ompy.conformance.btl.fragment import Fragment
    from ompy.frameworks.btl import BtlComponent
    from ompy.frameworks.context import RankContext
    from ompy.mca.registry import Registry
    from ompy.net.faults.middleware import Fault

SECOND: Final = 1_000_000_000  # ns; Linux counts so
TIME_MAX: Final = 1_000 * SECOND  # arbitrary: ten times what any wait of the kit takes
NEWS: Final = SECOND // 1000  # ns; arbitrary: the way through two agents

Program = Callable[[Driver], Any]
Plan = Callable[[Driver], "Sequence[Fault]"]


def registry(component: BtlComponent, settings: Settings, btl: str) -> Registry:
    """A registry of ompy's own components and this one, which replaces one of its name.

    Args:
        component: the BTL.
        settings: values of parameters by full name; nothing comes from files or environment.
        btl: value of the parameter `btl`.

    Raises:
        UsageError: a setting is not valid.
    """
    told = {"btl": btl, **settings}
    return registry_with(component.framework, component.name, component.version, component, told)


class World:
    """Ranks that have the BTL under test and nothing above it.

    Attributes:
        component: the BTL.
        ranks: how many.
        drivers: of the ranks that have begun, by rank.
        plan: the faults each rank is to suffer.
        counter: of the faults delivered.
        accepted: fragments that modules took, by the rank they go to.
        complaints: breaches of the contract so far.
        failover: each module is asked to keep the failover obligations, as some PMLs do.
        shared: what the programs of a test hand each other.
        job: the virtual job.
    """

    def __init__(
        self,
        component: BtlComponent,
        ranks: int,
        *,
        seed: int,
        hosts: Sequence[int],
        rails: Sequence[Rail] = (Rail("rail0"),),
        settings: Settings | None = None,
        without: Sequence[int] = (),
        plan: Plan = lambda _: (),
        failover: bool = False,
    ) -> None:
        """Describe it; `run` makes it happen.

        Args:
            component: the BTL.
            ranks: how many.
            seed: decides everything the programs do not.
            hosts: host number of each rank.
            rails: the networks.
            settings: parameters by full name.
            without: ranks that do not use the BTL.
            plan: the faults each rank is to suffer, made when it begins.
            failover: whether modules are asked to keep the failover obligations.
        """
        self.failover = failover
        self.component = component
        self.ranks = ranks
        self.drivers: dict[int, Driver] = {}
        self.plan = plan
        self.counter = FaultCounter()
        self.accepted: Counter[int] = Counter()
        self.complaints: list[str] = []
        self.shared: dict[int, Any] = {}
        self._seed = seed
        self._without = without
        self._registry = registry(component, settings or {}, component.name)
        self.job = VirtualJob(
            ranks,
            self._registry,
            seed=seed,
            rails=rails,
            hosts=hosts[:ranks],
            bring_up=self._bring_up,
        )
        self._met = 0
        self._round = 0

    def run(self, program: Program | Sequence[Program], *, trace: bool = False) -> list[Any]:
        """Run a program on every rank, or one for each, and see that the contract was kept.

        Returns:
            What the programs returned, by rank.

        Raises:
            AssertionError: a program found something wrong, or a breach was noted.
        """
        self.job.scheduler.after(TIME_MAX, self._out_of_time)
        try:
            results = self.job.run(program, trace=trace)
        except RankFailed as failure:
            cause = failure.__cause__
            assert cause is not None
            cause.add_note(f"on rank {failure.rank}, seed {self._seed}{self.said()}")
            raise cause from cause.__cause__
        except Deadlock as problem:
            raise AssertionError(f"nobody can go on: {problem}{self.said()}") from None
        finally:
            self._registry.close()
        assert not self.complaints, f"the contract was broken, seed {self._seed}{self.said()}"
        return results

    def meet(self, driver: Driver) -> None:
        """Return when every rank has called this; the ranks poll meanwhile."""
        goal = self._round + 1
        self._met += 1
        if self._met == self.ranks:
            self._met = 0
            self._round = goal
        driver.wait(lambda: self._round >= goal, "the other ranks")

    def departs(self, rank: int, reason: str) -> None:
        """The other ranks hear, a little later, that a rank can no longer be reached."""

        def tell() -> None:
            for other, driver in self.drivers.items():
                if other != rank:
                    driver.context.procs[rank].departed = reason
                    assert isinstance(driver.engine, VirtualEngine)
                    driver.engine.wake()

        self.job.scheduler.after(NEWS, tell)

    def sent_to(self, rank: int) -> list[Fragment]:
        """What modules accepted for a rank, by sender and in the order it was sent."""
        return [
            fragment
            for _, driver in sorted(self.drivers.items())
            for fragment in driver.sent
            if fragment.target == rank and fragment.accepted
        ]

    def complain(self, text: str) -> None:
        """Note a breach of the contract; the run goes on and fails at its end."""
        self.complaints.append(text)

    def _bring_up(self, context: RankContext, registry: Registry) -> Driver:
        driver = self.drivers[context.rank] = Driver(self, context)
        driver.open(registry, used=context.rank not in self._without)
        return driver

    def _out_of_time(self) -> None:
        reasons = "; ".join(driver.state() for driver in self.drivers.values())
        raise AssertionError(
            f"not over after {TIME_MAX // SECOND} s of virtual time, seed {self._seed}: {reasons}"
            f"{self.said()}"
        )

    def open_ends(self) -> str:
        """What is not completed and what has not arrived, for messages."""
        ends = []
        for rank, driver in sorted(self.drivers.items()):
            waiting = [fragment for fragment in driver.sent if not fragment.done]
            if waiting:
                ends.append(f"{len(waiting)} not completed, the first is {waiting[0]}")
            due = Counter((item.tag, item.data) for item in self.sent_to(rank))
            lost = due - Counter((item.tag, item.data) for item in driver.inbox)
            if lost:
                ends.append(f"{lost.total()} have not arrived at rank {rank}: {sample(lost)}")
        return "; ".join(ends) or "nothing is missing"

    def said(self) -> str:
        """The breaches so far, for the end of a message."""
        if not self.complaints:
            return ""
        first = self.complaints[:5]
        more = len(self.complaints) - len(first)
        return "\n" + "\n".join([*first, *([f"and {more} more"] if more else [])])
