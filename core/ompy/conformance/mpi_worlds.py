"""Virtual worlds in which ranks run MPI programs over the component under test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from ompy.conformance.registries import Settings, registry_with
from ompy.engine.virtual_engine import Deadlock, RankFailed, VirtualEngine
from ompy.frameworks.context import RankContext
from ompy.mca.component import Component
from ompy.mca.plugins.component_records import State
from ompy.mca.registry import Registry
from ompy.mpi.communicators.intracomm import Intracomm
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob

SECOND: Final = 1_000_000_000  # ns; Linux counts so
TIME_MAX: Final = 600 * SECOND  # arbitrary: a hundred times what any program of the kits takes
HIGHEST: Final = 1000  # points; arbitrary: above the priority of all components of ours


class Rank(NamedTuple):
    """What a program gets.

    Attributes:
        comm: COMM_WORLD.
        process: of the rank, for what MPI does not show.
        candidate: name of the component under test.
    """

    comm: Intracomm
    process: RankProcess
    candidate: str

    @property
    def engine(self) -> VirtualEngine:
        """Its clock and chance."""
        engine = self.process.context.engine
        assert isinstance(engine, VirtualEngine)
        return engine

    def compute(self, most: int) -> None:
        """Be busy for up to so many ns of virtual time, without any progress."""
        self.engine.spend(self.engine.random.randrange(most))

    def pass_time(self, duration: int) -> None:
        """Progress for so many ns of virtual time."""
        self.engine.wait_until(lambda: False, duration)

    def serves(self, operation: str, *, blocking: bool = True) -> bool:
        """Whether the component under test serves a collective operation of COMM_WORLD."""
        coll = self.process.communicators[0].coll
        assert coll is not None, "COMM_WORLD has its collectives"
        row = next(row for row in coll.table() if row.operation == operation)
        return (row.blocking if blocking else row.nonblocking) == self.candidate


Program = Callable[[Rank], Any]


class MpiWorlds:
    """Makes worlds that have one component, in use wherever it may be.

    Attributes:
        component: under test.
        settings: parameters by full name, in every world.
    """

    def __init__(self, component: Component, settings: Settings) -> None:
        self.component = component
        self.settings = settings

    def play(
        self,
        program: Program,
        ranks: int = 3,
        *,
        seed: int = 0,
        hosts: Sequence[int] | None = None,
        trace: bool = False,
        without: Sequence[int] = (),
        failing: Sequence[int] = (),
        settings: Settings | None = None,
    ) -> Played:
        """Run a program on every rank of a world.

        Args:
            program: gets its rank.
            ranks: how many.
            seed: decides everything that the program does not.
            hosts: host number of each rank; all on one by default.
            trace: keep the events.
            without: ranks that do not use the component.
            failing: ranks that are taken for failed when their program ends.
            settings: more parameters, by full name.

        Raises:
            AssertionError: a program found something wrong, raised, or never ended.
        """
        told = {**self.chosen(), **self.settings, **(settings or {})}
        registry = self._registry(told)
        others = self._registry({**told, **self.not_chosen()}) if without else registry

        def bring_up(context: RankContext, using: Registry) -> RankProcess:
            return RankProcess(context, others if context.rank in without else using)

        job = VirtualJob(
            ranks, registry, seed=seed, rails=(Rail("rail0"),), hosts=hosts, bring_up=bring_up
        )
        job.failed.update(failing)
        job.scheduler.after(TIME_MAX, _out_of_time)
        try:
            results = job.run(self._body(program), trace=trace)
        except RankFailed as failure:
            cause = failure.__cause__ or failure
            where = f"rank {failure.rank} of {ranks}, seed {seed}"
            raise AssertionError(f"{where}: {_text(cause)}") from cause
        except Deadlock as problem:
            raise AssertionError(f"seed {seed}: nobody can go on: {problem}") from None
        finally:
            used = self._is_used(registry)
            registry.close()
        return Played(results, used, job)

    def _body(self, program: Program) -> Callable[[RankProcess], Any]:
        name = self.component.name
        return lambda process: program(Rank(world_of(process), process, name))

    def chosen(self) -> dict[str, object]:
        """The settings by which the component is used."""
        component = self.component
        names = dict.fromkeys((component.name, *FALLBACKS.get(component.framework, ())))
        found: dict[str, object] = {component.framework: ",".join(names)}
        for parameter in component.parameters:
            if parameter.name == "priority":
                most = HIGHEST if parameter.maximum is None else parameter.maximum
                name = f"{component.framework}_{component.name}_priority"
                found[name] = int(min(HIGHEST, most))
        return found

    def not_chosen(self) -> dict[str, object]:
        """The settings by which it is not used."""
        names = [one for one in FALLBACKS[self.component.framework] if one != self.component.name]
        return {self.component.framework: ",".join(names)}

    def _registry(self, settings: Settings) -> Registry:
        component = self.component
        about = component.framework, component.name, component.version
        return registry_with(*about, component, settings)

    def _is_used(self, registry: Registry) -> bool:
        name = self.component.name
        found = registry.records_of(self.component.framework)
        return any(one.name == name and one.state is State.SELECTED for one in found)


# what serves what the component under test does not
FALLBACKS: Final = {
    "pml": ("ob1",),
    "coll": ("tuned", "basic", "inter"),
    "osc": ("pt2pt",),
}


class Played(NamedTuple):
    """What came of a world.

    Attributes:
        results: of the programs, by rank.
        used: the component was selected, by a rank, a communicator or a window.
        job: it ran in.
    """

    results: list[Any]
    used: bool
    job: VirtualJob

    def lines(self) -> list[str]:
        """The events, if they were kept."""
        return [event.line() for event in self.job.events()]


def _text(problem: BaseException) -> str:
    if isinstance(problem, AssertionError):
        return str(problem) or "an assertion failed"
    return f"{type(problem).__name__}: {problem}"


def _out_of_time() -> None:
    raise AssertionError(f"not over after {TIME_MAX // SECOND} s of virtual time")
