"""Rails that were lost and found again, and what users are told of them.

Source: seed bfo (2, 4); reference openmpi.md 4.10.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ompy.compiled import ccall, cclass
from ompy.data.errors import MPIError
from ompy.frameworks.bml import BmlEndpoint, Rail
from ompy.frameworks.btl import (
    ERROR_FATAL,
    ERROR_NONFATAL,
    FAILOVER_SUPPORT,
    BtlModule,
    ErrorCallback,
)
from ompy.frameworks.paths.rail_events import RailEvent
from ompy.frameworks.proc import Proc

if TYPE_CHECKING:
    from ompy_components.pml.bfo.module import Bfo


@cclass
class Rails(ErrorCallback):
    """The rails of one rank: what the BTLs say of them."""

    _latest: dict[int, RailEvent]
    _lost: dict[tuple[int, BtlModule], RailEvent]
    bfo: Bfo
    __slots__ = tuple(__annotations__)

    def __init__(self, bfo: Bfo) -> None:
        self.bfo = bfo
        self._lost = {}
        self._latest = {}

    @ccall
    def is_lost(self, proc: Proc, module: BtlModule) -> bool:
        """Whether a path cannot be used now."""
        return bool(self._lost) and (proc.rank, module) in self._lost

    @ccall
    def several(self, proc: Proc) -> bool:
        """Whether there is more than one rail to a peer, or was until one was lost."""
        made = proc.bml_endpoint
        endpoint: BmlEndpoint | None = made if isinstance(made, BmlEndpoint) else None
        if endpoint is not None and len(endpoint.send.rails) > 1:
            return True
        return bool(self._lost) and proc.rank in [rank for rank, _ in self._lost]

    @ccall
    def failed(self, module: BtlModule, flags: int, proc: Proc | None, reason: str) -> None:
        """A path failed: to `proc`, or to everybody. The rail is taken out at once."""
        for peer in [proc] if proc is not None else self._reached(module):
            if flags & ERROR_FATAL and not module.flags & FAILOVER_SUPPORT:
                self.bfo.fail_peer(peer, f"BTL {module.name} lost its path: {reason}")
            else:
                self.lose(module, peer, reason)

    @ccall
    def returned(self, module: BtlModule, proc: Proc, tag: int, fragment: memoryview) -> None:
        """What `sendi` took and may not have arrived: MATCH."""
        again = partial(self.bfo.sending.returned, proc, bytes(fragment))
        self.bfo.recovery.later(again)

    @ccall
    def healed(self, module: BtlModule, proc: Proc) -> None:
        """A path can be used again."""
        event = self._lost.pop((proc.rank, module), None)
        if event is None or proc.rank in self.bfo.lost:
            return
        self.bfo.bml.add_rail(proc, module)
        self.bfo.recovery.later(partial(self.bfo.rail_back, proc))
        event.healed = self.bfo.engine.now()
        self.bfo.trace_rail("healed", module, proc)
        self.bfo.context.tell_rail(event)

    def refused(self, rail: Rail) -> None:
        """A rail does not take a fragment, whatever its BTL has said."""
        self.failed(rail.module, ERROR_NONFATAL, rail.endpoint.proc, "it refused a fragment")

    def lose(self, module: BtlModule, proc: Proc, reason: str) -> None:
        """Take a rail out, unless it is out; the last one ends everything with the peer."""
        if self.is_lost(proc, module) or proc.rank in self.bfo.lost or self.bfo.parted:
            return
        try:  # who has only received from a peer has not asked for it yet
            rails = self.bfo.endpoint(proc).send.rails
        except MPIError:
            return
        mine = [rail for rail in rails if rail.module is module]
        if not mine:
            return
        event = RailEvent(
            self.bfo.context.rank,
            proc.rank,
            mine[0].endpoint.describe(),
            reason,
            self.bfo.engine.now(),
        )
        self._lost[proc.rank, module] = self._latest[proc.rank] = event
        self.bfo.context.rail_events.append(event)
        self.bfo.trace_rail("broke", module, proc)
        self.bfo.context.tell_rail(event)
        if len(rails) > 1:
            self.bfo.bml.remove_rail(proc, module)
            self.bfo.recovery.later(partial(self.bfo.rail_gone, proc, module))
        else:
            # the arrays stay as they are: somebody may be walking through them
            self.bfo.recovery.later(partial(self._all_gone, proc, module, reason))

    def _all_gone(self, proc: Proc, module: BtlModule, reason: str) -> None:
        made = proc.bml_endpoint
        assert isinstance(made, BmlEndpoint)
        if not self.is_lost(proc, module):  # it was healed itself, before anybody was told
            return
        others = [rail for rail in made.send.rails if rail.module is not module]  # healed meanwhile
        if others or (not proc.departed and self.bfo.bml.stand_in(proc)):
            self.bfo.bml.remove_rail(proc, module)
            self.bfo.rail_gone(proc, module)
            return
        event = self._lost[proc.rank, module]
        event.last, event.messages, event.bytes, event.pause = True, 0, 0, 0  # they only wanted to
        self._latest.pop(proc.rank, None)
        self.bfo.context.tell_rail(event)
        self.bfo.bml.remove_rail(proc, module)
        self.bfo.fail_peer(proc, f"the last rail, BTL {module.name}, lost its path: {reason}")

    def _reached(self, module: BtlModule) -> list[Proc]:
        """The peers that a module carries something to."""
        return [
            proc
            for proc in self.bfo.context.procs
            if isinstance(proc.bml_endpoint, BmlEndpoint)
            and any(rail.module is module for rail in proc.bml_endpoint.send.rails)
        ]

    @ccall
    def note_bytes(self, proc: Proc, count: int) -> None:
        """So many bytes that were sent, or may have been, go again."""
        event = self._latest.get(proc.rank)
        if event is not None:
            event.bytes += count

    def note_message(self, proc: Proc) -> None:
        """A message goes on over other rails, in whole or in part."""
        event = self._latest.get(proc.rank)
        if event is not None:
            event.messages += 1
            event.pause = event.pause or max(self.bfo.engine.now() - event.noticed, 1)
