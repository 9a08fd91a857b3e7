"""One rank of a job, brought up from its parts: the frameworks opened and selected.

A `RankProcess` is an object, never a module global: the virtual world has many of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ompy.data.errors import ERR_OTHER, MPIError
from ompy.frameworks.bml import Bml, BmlComponent
from ompy.frameworks.btl import BtlComponent
from ompy.frameworks.btl_base.sealing import insist_on_seal
from ompy.frameworks.coll import CollComponent
from ompy.frameworks.collectives.coll_selection import Offer, SelectedColl
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.context import RankContext
from ompy.frameworks.proc import Proc
from ompy.mca.component import NotAvailable
from ompy.mca.hooks import hook_caller
from ompy.runtime.diagnosis.call_account import Group
from ompy.runtime.ranks import ending
from ompy.runtime.ranks.isolation import expect, isolated
from ompy.runtime.ranks.nic_selection import find_nics
from ompy.runtime.ranks.other_worlds import OtherWorlds, btl_modules
from ompy.runtime.ranks.pml_selection import select_pml

if TYPE_CHECKING:
    from ompy.frameworks.conduit import Conduit
    from ompy.frameworks.paths.healing import HealingLimits
    from ompy.mca.registry import Registry

AnswersInFront = Callable[[str, dict[str, Any], Callable[[dict[str, Any]], bytes]], bytes]
# what a coll component serves, by its `serves_groups`
_GROUPS: Final = {False: "communicators of one group", True: "communicators between two groups"}


class RankProcess:
    """The MPI process of one rank.

    Attributes:
        context: what its components work with.
        registry: where they come from.
        pml: its point-to-point messaging, wrappers included.
        communicators: live ones, by context id.
        finalized: true after `finalize`.
        calls_ended: balance of the communicators that were freed (`call_account.py`).
        other_calls: of an API besides MPI, its balance and its groups, when the rank leaves; None
            where ranks may have been stopped before they made all their calls.
        api: what the API above keeps about it.
        answers_in_front: asked instead of the launcher, with what is asked, what belongs to it, and
            what asks; None where nobody stands in front of it.
        before_finalize: called when `finalize` begins, the last one first.
        others_waiting: as `Pml.waiting`, of what else the rank does.
        conduit: GASNet's, once it was selected.
        unexpected_most: unexpected messages at a time, where somebody looks (`performance.py`).
    """

    def __init__(
        self, context: RankContext, registry: Registry, warn: Callable[[str], object] | None = None
    ) -> None:
        """Open and select everything.

        Args:
            context: what its components will work with.
            registry: where they come from.
            warn: told of each component that the rank goes on without.

        Raises:
            MPIError: something cannot be brought up without which there is no rank.
            ComponentError: the user asked by name for a component that cannot be used.
            ComponentsFailed: strict plug-ins do not tolerate what has failed.
        """
        self.context = context
        self.registry = registry
        self.communicators = context.communicators
        self.finalized = False
        self.calls_ended = 0
        self.other_calls: Callable[[], tuple[int, list[Group]] | None] = _no_others
        self.api: Any = None
        self.before_finalize: list[Callable[[], object]] = []
        self.answers_in_front: AnswersInFront | None = None
        self.others_waiting: Callable[[], list[str]] = list
        self.conduit: Conduit | None = None
        self.unexpected_most = 0
        context.find_healing = partial(_healing, registry)
        insist_on_seal(registry)
        context.seal = registry.values("btl").seal
        self._btls: list[tuple[BtlComponent, bool]] = []  # in use, and whether they have modules
        self._open_btls()
        self._bml = context.bml = self._select_bml()
        self.pml = select_pml(registry, context, self._bml)
        self._worlds = OtherWorlds(self, self._btls)
        for module in context.btls:
            context.engine.add_poller(module)
        self._colls: list[CollComponent] = []
        self._priorities: dict[str, float] = {}  # of those; they stay what they are
        for component in registry.open("coll"):
            assert isinstance(component, CollComponent)
            registry.select(component)
            self._colls.append(component)
        context.wireup.publish("pml", context.pml_name.encode())
        self._hooks = hook_caller(registry, tell=context.rank == 0)
        context.wireup.commit()
        if registry.values("pml").ft_enable:
            self._expect_deaths()
        self._hooks.ompy_rank_started(context.rank, context.size)
        registry.insist()
        self._warn = warn
        self._tell()

    def _expect_deaths(self) -> None:
        """The job goes on when a rank dies, and the program is told."""
        from ompy.frameworks.fault_tolerance.recovery import Recovery

        self.context.recovery = Recovery(self.context)
        self.context.wireup.set_expendable(True)

    def _tell(self) -> None:
        if self._warn is not None:
            self.registry.tell_warnings(self._warn)

    def _open_btls(self) -> None:
        """Every BTL that yields a module is used (reference openmpi.md 1.4.7)."""
        self.context.find_nics = partial(find_nics, self.registry, self.context)
        for component in self.registry.open("btl"):
            assert isinstance(component, BtlComponent)
            reserved = component.emulated or component.on_request
            if reserved and not self.registry.is_asked_for(component):
                what = "it is an emulation, used" if component.emulated else "it is used"
                self.registry.pass_over(component, f"{what} when asked for by name")
                continue
            modules = isolated(
                self.registry,
                component,
                "init",
                partial(btl_modules, component.init, component, self.context),
            )
            if modules is None:
                continue
            self._btls.append((component, bool(modules)))
            if modules:
                self.registry.select(component)
                self.context.btls += modules
                self.context.growing_btls += modules if component.grows else ()
            else:
                self.registry.pass_over(component, "there is nobody it could reach")
        if not self.context.btls:
            raise MPIError(ERR_OTHER, "no BTL can be used: see ompy-info --plugins for the reasons")

    def _select_bml(self) -> Bml:
        for component in self.registry.open("bml"):
            assert isinstance(component, BmlComponent)
            made = isolated(
                self.registry, component, "init", partial(_bml, component, self.context)
            )
            if made is not None:
                self.registry.select(component)
                return made
        raise MPIError(ERR_OTHER, "no BML can be used: see ompy-info --plugins for the reasons")

    def communicator(
        self,
        context_id: int,
        procs: Sequence[Proc],
        name: str,
        own: Sequence[Proc] | None = None,
        line_id: int = -1,
    ) -> Communicator:
        """Make a communicator with a context id its members have agreed on.

        Args:
            context_id: the id.
            procs: its members, or those of the other group.
            name: for messages to people; empty for the usual one.
            own: this process's group, where that is another one.
            line_id: an id for the messages that survive a revocation, where there are two groups
                and ranks may die; -1 for none.
        """
        self._worlds.meet_worlds_of(procs)
        if own is not None:
            self._worlds.meet_worlds_of(own)
        made = Communicator(self.context, self.pml, context_id, procs, name, own)
        self.pml.add_communicator(made)
        self.communicators[context_id] = made
        made.selecting = self._select_colls
        if self.context.recovery is not None:
            line = made if line_id < 0 else self._line(line_id, made)
            self.context.recovery.add_communicator(made, line)
        return made

    def _select_colls(self, communicator: Communicator) -> SelectedColl:
        offers = [self._offer(component, communicator) for component in list(self._colls)]
        excluded = partial(_excluded_with, self.registry, communicator)
        made = SelectedColl(communicator, offers, excluded)
        line = self.context.direct
        if line is not None and line.explores:
            line.watch_calls(made)
        return made

    def _line(self, context_id: int, between: Communicator) -> Communicator:
        """A communicator of both groups of another one, for messages of the PML alone."""
        procs = sorted((*between.procs, *between.own), key=lambda proc: proc.rank)
        return self._beneath(context_id, between, procs)

    def _beneath(
        self, context_id: int, between: Communicator, procs: Sequence[Proc]
    ) -> Communicator:
        """A communicator of both groups of another one, which no program knows of."""
        made = Communicator(self.context, self.pml, context_id, procs, between.name)
        self.pml.add_communicator(made)
        self.communicators[context_id] = made
        return made

    def unite(self, context_id: int, between: Communicator) -> Communicator:
        """A communicator of both groups of another one, the first group before the second.

        Its collective calls are those of the other one, and it goes with that.

        Args:
            context_id: the id.
            between: the other.
        """
        own, procs = between.own, between.procs
        members = [*own, *procs] if between.leads() else [*procs, *own]
        made = self._beneath(context_id, between, members)
        made.order = between.order
        made.selecting = self._select_colls
        between.united = made
        return made

    def _offer(self, component: CollComponent, communicator: Communicator) -> Offer:
        """A component's coll module; one that fails once is not asked again."""
        module, reason = None, "it has nothing to offer for this communicator"
        try:
            if component.serves_groups is not communicator.between:
                raise NotAvailable(f"it serves {_GROUPS[component.serves_groups]}")
            module = component.query(communicator)
        except NotAvailable as why:
            reason = str(why) or reason
        except (Exception, SystemExit) as error:
            if self.registry.is_in_tree(component):
                raise
            self._colls.remove(component)
            self.registry.fail(component, "query", error)
            self.registry.insist()
            self._tell()
            reason = f"its query raised {type(error).__name__}"
        priority = self._priorities.get(component.name)
        if priority is None:
            priority = self.registry.priority("coll", component.name)
            self._priorities[component.name] = priority
        return Offer(component.name, priority, module, "" if module is not None else reason)

    def expect_others(self) -> None:
        """Be ready for processes of other worlds: they may look up what this one publishes now.

        Raises:
            MPIError: nothing here reaches them.
        """
        self._worlds.expect_others()

    def bridge(self, context_id: int, procs: Sequence[Proc]) -> Communicator:
        """A communicator for messages of the PML alone, between the leaders of two groups.

        Args:
            context_id: as the launcher has given it to both.
            procs: the two, the same at both.
        """
        self._worlds.meet_worlds_of(procs)
        made = Communicator(self.context, self.pml, context_id, procs, f"bridge {context_id}")
        self.pml.add_communicator(made)
        return made

    def rails(self, proc: Proc) -> list[str]:
        """The rails to a process in a few words each, the best first.

        Raises:
            MPIError: nothing reaches it.
        """
        return [rail.endpoint.describe() for rail in self._bml.endpoint(proc).send.rails]

    def release(self, communicator: Communicator) -> None:
        """Forget a communicator; its context id may be used again.

        Where ranks may die that is later: others may still have something to ask in it.
        """
        if self.context.recovery is None:
            self._release_now(communicator)
        else:
            self.context.recovery.release(communicator, self._release_now)

    def _release_now(self, communicator: Communicator) -> None:
        """End all of it, and then give its id back: another thread may make one at any moment."""
        if communicator.chosen is not None:
            communicator.chosen.close()
        with self.context.engine.lock:
            self.calls_ended += communicator.balance()
            self.pml.remove_communicator(communicator)
            self.communicators.pop(communicator.context_id, None)
        if communicator.united is not None:
            self._release_now(communicator.united)

    def finalize(self) -> None:
        """Deliver what was accepted and close everything. Harmless the second time.

        A rank that fails delivers nothing: others may not take it before they are ended. One of
        many worlds has nothing to deliver, as its world has had all of it, and ends at once.
        """
        if self.finalized:
            return
        if self.context.recovery is not None and not self.context.fails:
            if self.context.leaves:
                self.pml.say_leave()  # who waits for this rank waits for no third one
            self.context.recovery.finalize()
        self._hooks.ompy_rank_finalizing(self.context.rank)
        self.finalized = True
        while self.before_finalize:
            self.before_finalize.pop()()
        if ending.twin:
            return
        if not self.context.fails:
            self.pml.finalize()
            self._bml.finalize()
        for module in self.context.btls:
            self.context.engine.remove_poller(module)
        self.context.network.close()
        self.context.trace.finish("finalize")


def _no_others() -> tuple[int, list[Group]]:
    """There is no API besides MPI."""
    return 0, []


def _healing(registry: Registry) -> HealingLimits:
    from ompy.runtime.probes.parameters import healing_of

    return healing_of(registry)


def _bml(component: BmlComponent, context: RankContext) -> Bml:
    return expect(component.init(context), Bml, component)


def _excluded_with(registry: Registry, communicator: Communicator, name: str) -> list[str]:
    """Which of ompy's own components that the selection leaves out have a collective operation.

    For an error: they are opened in a registry of their own, and closed.
    """
    from ompy.mca.plugins.excluded import ExcludedComponents

    excluded, found = ExcludedComponents(registry), []
    for component in excluded.opened("coll"):
        assert isinstance(component, CollComponent)
        with contextlib.suppress(NotAvailable):
            if component.serves_groups is not communicator.between:
                continue
            module = component.query(communicator)
            if module is not None and module.has(name):
                found.append(component.name)
    excluded.close()
    return found
