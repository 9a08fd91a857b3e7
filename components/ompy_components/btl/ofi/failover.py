"""What breaks the paths of a module, and what becomes of what was under way over them.

When a path has broken (`ompy.frameworks.path_keeper` says in which order) fragments are completed
badly at once, in the order they were sent, and what the device still has of puts, gets and atomics
when it says so, or a while later. When nothing of it is left the path may be taken back.

Source: reference ofi.md A6, openmpi.md 4.15; seed bfo (9).
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from ompy.compiled import ccall, cclass
from ompy.frameworks.btl import UNREACHABLE
from ompy.frameworks.nic.fabric import Completion, FabricError
from ompy.frameworks.path_life import DOWN, TRYING, Stage

from ompy_components.btl.ofi.blame import Blame, blame
from ompy_components.btl.ofi.headers import GENERATIONS, Kind

if TYPE_CHECKING:
    from ompy_components.btl.ofi.endpoint import OfiEndpoint
    from ompy_components.btl.ofi.headers import Header
    from ompy_components.btl.ofi.module import OfiModule

MS: Final = 1_000_000  # ns; Linux counts so
ABANDON: Final = 500 * MS  # arbitrary: far more than a device needs to report what it has
_HALF: Final = GENERATIONS // 2


@cclass
class Failover:
    """The broken paths of one module.

    Attributes:
        unsettled: `settle` may have something to do.
        counted: paths broken so far, and healed.
    """

    _doomed: str
    _draining: dict[OfiEndpoint, None]
    _module: OfiModule
    _to_fail: dict[OfiEndpoint, str]
    counted: dict[str, int]
    unsettled: bool
    __slots__ = tuple(__annotations__)

    def __init__(self, module: OfiModule) -> None:
        self._module = module
        self._to_fail = {}
        self._doomed = ""
        self._draining = {}
        self.unsettled = False
        self.counted = {"paths_broken": 0, "paths_healed": 0}

    # -- how it begins

    def post_failed(self, endpoint: OfiEndpoint, problem: FabricError) -> None:
        """Posting was refused: have it fail with the next poll, not within a call of the PML."""
        if blame(problem.errno) is Blame.DEVICE:
            self.doom(str(problem))
        elif endpoint.path.life.life not in DOWN:
            self._to_fail.setdefault(endpoint, str(problem))
            self.unsettled = True

    def doom(self, reason: str) -> None:
        """The device has failed: have all fail with the next poll."""
        self._doomed = self._doomed or reason
        self.unsettled = True

    def work_failed(self, endpoint: OfiEndpoint, completion: Completion, fault: Blame) -> None:
        """Work to a peer has ended badly."""
        reason = completion.detail or errno.errorcode.get(completion.error, str(completion.error))
        if fault is Blame.DEVICE:
            self.device_failed(reason)
        else:
            endpoint.path.broke(reason)

    def suspect(self, reason: str) -> None:
        """A connection has broken, and the device cannot say whose: try all that are idle.

        Where there is one path only, and that in order until now, it is known.
        """
        module = self._module
        peers = module.peers()
        idle = [one for one in peers if one.usable() and not one.farewell and not one.busy()]
        if len(peers) == len(idle) == 1:
            idle[0].path.broke(reason)
            return
        if module.two_sided:
            for endpoint in idle:
                module.words.refused(endpoint)
            for endpoint in peers:
                if endpoint.path.life.life in TRYING:
                    module.words.say(endpoint)
            module.words.look_soon()

    def fail_all(self, reason: str) -> None:
        """The link is down: so are all paths, and may heal."""
        for endpoint in self._module.peers():
            endpoint.path.broke(reason)

    def device_failed(self, reason: str) -> None:
        """Nothing of the device can be trusted any more: all paths fail, for good."""
        module = self._module
        if module.dead:
            return
        module.dead = reason
        module.note("DEVICE_FAILED", reason=reason)
        for endpoint in module.peers():
            endpoint.path.end()
            endpoint.path.broke(reason)

    # -- what peers say

    def told(self, endpoint: OfiEndpoint, header: Header) -> None:
        """HELLO or GONE of the peer."""
        path = endpoint.path
        # a generation's number only grows; the wire has the last bits of it
        ahead = (header.generation - path.life.number + _HALF) % GENERATIONS - _HALF
        number = path.life.number + ahead
        if header.kind == Kind.GONE:
            path.gave_up(number)
        elif self._module.keeper.begun and not self._module.dead and header.tag < len(Stage):
            path.word(number, Stage(header.tag))

    def admits(self, endpoint: OfiEndpoint, generation: int) -> bool:
        """Whether a message belongs to the generation that a path is in.

        A peer that sends in one that is being opened here knows of it: its word was overtaken.
        """
        if generation != endpoint.generation:
            return False
        endpoint.path.data()
        return not endpoint.broken

    # -- until nothing is left of it

    def stop(self, endpoint: OfiEndpoint, reason: str) -> None:
        """Nothing of a generation is used any more."""
        self.counted["paths_broken"] += not endpoint.broken
        endpoint.broken = endpoint.broken or reason
        self._to_fail.pop(endpoint, None)
        endpoint.abandon_at = self._module.context.engine.now() + ABANDON
        self._draining[endpoint] = None
        self.unsettled = True

    def end_fragments(self, endpoint: OfiEndpoint) -> None:
        """Complete what was sent: what the peer has not acknowledged, badly."""
        module = self._module
        waiting = list(endpoint.posted) if not module.sending.keeping else []
        lost = [*endpoint.kept, *waiting]
        endpoint.kept.clear()
        for fragment in list(endpoint.posted):
            if fragment.acknowledged:
                module.sending.complete(fragment, 0)
        for fragment in lost:
            if fragment.told or fragment.kind != Kind.FRAGMENT:
                continue
            told = module.error_callback
            if fragment.immediate and told is not None and module.keeper.begun:
                told.returned(module, endpoint.proc, fragment.tag, fragment.segment)
            module.sending.complete(fragment, UNREACHABLE)

    def drained(self, endpoint: OfiEndpoint) -> bool:
        """Whether the device has nothing of a path any more."""
        if endpoint.operations or endpoint.posted:
            return False
        self._draining.pop(endpoint, None)
        return True

    @property
    def pressing(self) -> bool:
        """Something is to be done with the next poll."""
        return bool(self._to_fail or self._doomed)

    @ccall
    def settle(self) -> int:
        """Fail what is to fail, give up what the device does not report. Returns how many."""
        events = 0
        if self._doomed:
            self.device_failed(self._doomed)
            self._doomed = ""
            events += 1
        while self._to_fail:
            endpoint, reason = self._to_fail.popitem()
            endpoint.path.broke(reason)
            events += 1
        if self._draining:
            now = self._module.context.engine.now()
            for endpoint in list(self._draining):
                if now >= endpoint.abandon_at and not self.drained(endpoint):
                    self._abandon(endpoint)
                    events += 1
                if self.drained(endpoint):
                    endpoint.path.drained()
        self.unsettled = self.pressing or bool(self._draining)
        return events

    @property
    def due(self) -> int | None:
        """When `settle` has something to give up, ns; None: nothing."""
        times = [endpoint.abandon_at for endpoint in self._draining]
        return min(times) if times else None

    def _abandon(self, endpoint: OfiEndpoint) -> None:
        """The device will not say how these end, or says it too late."""
        module = self._module
        for operation in list(endpoint.operations):
            module.transfers.complete(operation, UNREACHABLE)
        for fragment in list(endpoint.posted):
            module.sending.complete(fragment, UNREACHABLE)
            module.sending.abandon(endpoint, fragment)

    def give_up_all(self) -> None:
        """The module ends: complete what nothing will be heard of."""
        for endpoint in list(self._draining):
            self._abandon(endpoint)
        self._draining.clear()
