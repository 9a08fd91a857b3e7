"""A rank's BTLs where its job has more worlds than its own (README.md, "started later").

Most ranks never meet another world, and pay for it with one comparison when they make a
communicator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ompy.data.errors import ERR_UNSUPPORTED_OPERATION, MPIError
from ompy.frameworks.btl import BtlComponent, BtlModule
from ompy.frameworks.proc import Proc
from ompy.runtime.ranks.isolation import expect, isolated

if TYPE_CHECKING:
    from ompy.runtime.ranks.process import RankProcess


class OtherWorlds:
    """What reaches processes of other worlds."""

    def __init__(self, process: RankProcess, btls: Sequence[tuple[BtlComponent, bool]]) -> None:
        """Nobody is met yet.

        Args:
            process: the rank.
            btls: the components that it uses, and whether they have modules.
        """
        self._process = process
        self._context = process.context
        self._btls = btls
        self._met = {self._context.me.world}
        self._bridges: dict[int, tuple[list[BtlModule], list[Proc]]] = {}

    def expect_others(self) -> None:
        """Bring up what had nobody to reach, and tell the others of it.

        Raises:
            MPIError: ERR_UNSUPPORTED_OPERATION, no BTL in use reaches processes of other worlds.
        """
        context = self._context
        if not context.expects_others:
            context.wireup.found_job()
            context.expects_others = True
            for component, has_modules in self._btls:
                if component.grows and not has_modules:
                    self._use(component, partial(component.init, context))
            others = any(one.grows for one, _ in self._btls if one.name != "self")
            if not others and context.direct is None:  # else the world carries messages
                names = ",".join(component.name for component, _ in self._btls)
                raise MPIError(
                    ERR_UNSUPPORTED_OPERATION,
                    f"no BTL in use reaches processes that are started later: add sm, tcp or usnic "
                    f"to the parameter btl, which leaves {names}",
                )
            context.wireup.commit()

    def meet_worlds_of(self, procs: Sequence[Proc]) -> None:
        """A communicator of these processes is about to be made.

        Raises:
            MPIError: what leads to them cannot be used.
        """
        met = self._met
        for proc in procs:
            if proc.world not in met:
                self._met.add(proc.world)
                self._meet_world(proc.world)

    def _meet_world(self, world: int) -> None:
        context = self._context
        self.expect_others()
        others = [proc for proc in context.procs if proc.world == world]
        made: list[BtlModule] = []
        for component, _ in self._btls:
            if component.grows:
                made += self._use(component, partial(component.bridge, context, others))
        if made:
            self._bridges[world] = made, others
            if self._leave not in context.departures.listeners:
                context.departures.listeners.append(self._leave)

    def _use(
        self, component: BtlComponent, make: Callable[..., list[BtlModule]]
    ) -> list[BtlModule]:
        registry, context = self._process.registry, self._context
        found = partial(btl_modules, lambda _: make(), component, context)
        modules = isolated(registry, component, "init", found) or []
        for module in modules:
            self._process.pml.add_btl(module)
            context.btls.append(module)
            context.growing_btls.append(module)
            context.engine.add_poller(module)
        if modules:
            registry.select(component)
        return modules

    def _leave(self, proc: Proc, _silent: bool) -> None:
        """When nobody of a world is left, nor is what was made for it."""
        found = self._bridges.get(proc.world)
        if found is not None and all(other.departed for other in found[1]):
            del self._bridges[proc.world]
            # not now: this may be inside a module's own poll
            self._context.engine.call_later(0, partial(self._give_back, *found))

    def _give_back(self, modules: Sequence[BtlModule], others: Sequence[Proc]) -> None:
        """Take in what they sent before they ended, fail what was for them."""
        context = self._context
        for module in modules:
            while module.poll():
                pass
            context.engine.remove_poller(module)
            context.engine.beside_polling(module.finalize)
            context.btls.remove(module)
            context.growing_btls.remove(module)
        for proc in others:
            proc.bml_endpoint = None


def btl_modules(
    make: Callable[..., list[BtlModule]], component: BtlComponent, *arguments: object
) -> list[BtlModule]:
    """What a component makes, if it is what the contract says."""
    modules: list[BtlModule] = expect(make(*arguments), list, component)
    return [expect(module, BtlModule, component) for module in modules]
