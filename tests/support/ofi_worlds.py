"""Worlds of ofi over the emulated fabric, and a hand in its completions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ompy.conformance.btl.btl_worlds import World
from ompy.conformance.btl.driver import SECOND, Driver
from ompy.conformance.btl.remote_memory import EXPOSED, Mover, expose
from ompy.conformance.btl.suite import Worlds
from ompy.frameworks.nic.fabric import Completion, CompletionQueue, FabricError
from ompy.net.faults.fault_rules import FaultRule
from ompy.net.virtual.virtual_network import Rail
from ompy_components.btl.ofi.component import COMPONENT
from ompy_components.btl.ofi.module import OfiModule

from tests.support.scripted_world import plan_of

RAIL: Final = (Rail("rail0"),)


def ofi(driver: Driver) -> OfiModule:
    """A rank's module."""
    (module,) = driver.modules
    assert isinstance(module, OfiModule)
    return module


def world(
    ranks: int = 2,
    *,
    seed: int = 0,
    failover: bool = False,
    rules: Sequence[FaultRule] = (),
    scripts: list[Any] | None = None,
    rails: Sequence[Rail] = RAIL,
    **settings: object,
) -> World:
    """A world of ranks with ofi.

    Args:
        ranks: how many.
        seed: of the world.
        failover: whether modules are asked to keep the failover obligations.
        rules: of a fault script.
        scripts: gets each rank's.
        rails: the networks.
        settings: `btl_ofi_` parameters by short name; of the device with `nic_` in front.
    """
    full = {
        f"nic_ofi_emulated_{name[4:]}" if name.startswith("nic_") else f"btl_ofi_{name}": value
        for name, value in settings.items()
    }
    more: dict[str, Any] = {}
    if rules:
        more["plan"] = plan_of(rules, scripts if scripts is not None else [])
    return Worlds(COMPONENT, {}).make(
        ranks, seed=seed, failover=failover, settings=full, rails=rails, **more
    )


Reading = Callable[[int], list[Completion]]


class Between(CompletionQueue):
    """In the place of a module's first completion queue, which it gives to reading.

    Attributes:
        queue: it stands in front of.
    """

    def __init__(self, module: OfiModule, read: Callable[[Reading, int], list[Completion]]) -> None:
        """From now on `read` is asked, with the queue's own reading and how many are wanted."""
        self._places = module.contexts.queues
        self.queue = self._places[0]
        self._asked = read
        self._places[0] = self

    def read(self, most: int) -> list[Completion]:
        """What the test makes of it."""
        return self._asked(self.queue.read, most)

    def arm(self) -> bool | None:
        """As the queue."""
        return self.queue.arm()

    def undo(self) -> None:
        """The queue takes its place again."""
        self._places[0] = self.queue


class Hand:
    """Between a module and its contexts: fails completions, or reading them.

    Attributes:
        errors: errno by number of the completion, counted from 1 among those of `kind`.
        kind: of the records whose completions are counted.
        lost: errno that reading raises from now on; 0: it does not.
        delivered: faults so far.
    """

    def __init__(self, module: OfiModule, kind: type, errors: dict[int, int]) -> None:
        self.errors = errors
        self.kind = kind
        self.lost = 0
        self.delivered = 0
        self._seen = 0
        Between(module, self._read)

    def _read(self, read: Reading, most: int) -> list[Completion]:
        """What the device has, some of it turned into errors."""
        if self.lost:
            self.delivered += 1
            raise FabricError(self.lost, "the test says so")
        return [self._pass(done) for done in read(most)]

    def _pass(self, done: Completion) -> Completion:
        if not isinstance(done.context, self.kind):
            return done
        self._seen += 1
        number = self.errors.get(self._seen, 0)
        if not number:
            return done
        self.delivered += 1
        return Completion(done.context, done.size, number, "the test says so")


__all__ = [
    "EXPOSED",
    "SECOND",
    "Between",
    "Driver",
    "Hand",
    "Mover",
    "Reading",
    "expose",
    "ofi",
    "world",
]
