"""What becomes of what was under way over a path that has broken.

When a path has broken (`ompy.frameworks.paths.path_keeper` says in which order) fragments are
completed badly at once, in the order they were sent, and what the device still has of puts, gets
and atomics when it says so, or a while later. When nothing of it is left the path may be taken
back. What breaks paths is the business of `detection.py`.

Source: reference ofi.md A6, openmpi.md 4.15; seed bfo (9).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.compiled import ccall, cclass
from ompy.frameworks.btl import UNREACHABLE, BtlModule

from ompy_components.btl.ofi.headers import Kind

if TYPE_CHECKING:
    from ompy.engine.base import Engine
    from ompy.frameworks.paths.path_keeper import PathKeeper

    from ompy_components.btl.ofi.endpoint import OfiEndpoint
    from ompy_components.btl.ofi.failures.detection import Failures
    from ompy_components.btl.ofi.sending import SendEngine
    from ompy_components.btl.ofi.transfers import TransferEngine

MS: Final = 1_000_000  # ns; Linux counts so
ABANDON: Final = 500 * MS  # arbitrary: far more than a device needs to report what it has


@cclass
class Failover:
    """The broken paths of one module.

    Attributes:
        unsettled: `settle` may have something to do.
        counted: paths broken so far, and healed.
    """

    _draining: dict[OfiEndpoint, None]
    _engine: Engine
    _failures: Failures
    _keeper: PathKeeper
    _module: BtlModule
    _sending: SendEngine
    _transfers: TransferEngine
    counted: dict[str, int]
    unsettled: bool
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        module: BtlModule,
        keeper: PathKeeper,
        failures: Failures,
        sending: SendEngine,
        transfers: TransferEngine,
    ) -> None:
        """Look after what the two engines have under way.

        Args:
            module: whose error callback is told what comes back.
            keeper: knows whether anybody wants to have it back.
            failures: need not fail what is stopped.
            sending: has fragments.
            transfers: has puts, gets and atomics.
        """
        self._module = module
        self._engine = module.context.engine
        self._keeper = keeper
        self._failures = failures
        self._sending = sending
        self._transfers = transfers
        self._draining = {}
        self.unsettled = False
        self.counted = {"paths_broken": 0, "paths_healed": 0}

    def stop(self, endpoint: OfiEndpoint, reason: str) -> None:
        """Nothing of a generation is used any more."""
        self.counted["paths_broken"] += not endpoint.broken
        endpoint.stop(reason, self._engine.now() + ABANDON)
        self._failures.forget(endpoint)
        self._draining[endpoint] = None
        self.unsettled = True

    def end_fragments(self, endpoint: OfiEndpoint) -> None:
        """Complete what was sent: what the peer has not acknowledged, badly."""
        module, sending = self._module, self._sending
        waiting = list(endpoint.posted) if not sending.keeping else []
        lost = [*endpoint.kept, *waiting]
        endpoint.kept.clear()
        for fragment in list(endpoint.posted):
            if fragment.acknowledged:
                sending.complete(fragment, 0)
        for fragment in lost:
            if fragment.told or fragment.kind != Kind.FRAGMENT:
                continue
            told = module.error_callback
            if fragment.immediate and told is not None and self._keeper.begun:
                told.returned(module, endpoint.proc, fragment.tag, fragment.segment)
            sending.complete(fragment, UNREACHABLE)

    def drained(self, endpoint: OfiEndpoint) -> bool:
        """Whether the device has nothing of a path any more."""
        if endpoint.operations or endpoint.posted:
            return False
        self._draining.pop(endpoint, None)
        return True

    @ccall
    def settle(self) -> int:
        """Give up what the device does not report. Returns of how many paths."""
        events = 0
        now = self._engine.now()
        for endpoint in list(self._draining):
            if now >= endpoint.abandon_at and not self.drained(endpoint):
                self._abandon(endpoint)
                events += 1
            if self.drained(endpoint):
                endpoint.path.drained()
        self.unsettled = bool(self._draining)
        return events

    def healed(self) -> None:
        """A path is taken back."""
        self.counted["paths_healed"] += 1

    @property
    def due(self) -> int | None:
        """When `settle` has something to give up, ns; None: nothing."""
        times = [endpoint.abandon_at for endpoint in self._draining]
        return min(times) if times else None

    def _abandon(self, endpoint: OfiEndpoint) -> None:
        """The device will not say how these end, or says it too late."""
        for operation in list(endpoint.operations):
            self._transfers.complete(operation, UNREACHABLE)
        for fragment in list(endpoint.posted):
            self._sending.complete(fragment, UNREACHABLE)
            self._sending.abandon(endpoint, fragment)

    def give_up_all(self) -> None:
        """The module ends: complete what nothing will be heard of."""
        for endpoint in list(self._draining):
            self._abandon(endpoint)
        self._draining.clear()
