"""r2: makes a peer's rail arrays from the BTL modules that reach it.

Source: reference openmpi.md 3.14. Two defects named there are not carried over: when the last
rail of least latency goes, the eager array is refilled from the survivors (3.14.6), and a
rail can be taken back (3.14.7).
"""

from __future__ import annotations

from typing import Final

from ompy.data.errors import ERR_OTHER, MPIError
from ompy.frameworks.bml import Bml, BmlEndpoint, Rail, RailArray
from ompy.frameworks.btl import GET, PUT, SEND, BtlModule
from ompy.frameworks.context import RankContext
from ompy.frameworks.proc import Proc

EXCLUSIVITY_ANY: Final = 1 << 62  # arbitrary: above what any module has


class R2(Bml):
    """The BML of one rank."""

    def __init__(self, context: RankContext) -> None:
        self._context = context
        self._removed: dict[tuple[int, BtlModule], Rail] = {}
        self._lowest: dict[int, int] = {}  # exclusivity that is used for a peer, by rank

    def endpoint(self, proc: Proc) -> BmlEndpoint:
        """The peer's endpoint; on first use every BTL module is asked whether it reaches it."""
        made = proc.bml_endpoint
        if isinstance(made, BmlEndpoint):
            return made
        rails = self._rails(proc, EXCLUSIVITY_ANY)
        if not rails:
            raise MPIError(ERR_OTHER, self._unreachable(proc))
        endpoint = BmlEndpoint(proc)
        _arrange(endpoint, rails)
        proc.bml_endpoint = endpoint
        trace = self._context.trace
        if trace.active:
            names = ",".join(rail.module.name for rail in rails)
            trace.record("bml.r2", "ADD_PROC", peer=proc.rank, rails=names)
        return endpoint

    def _rails(self, proc: Proc, below: int) -> list[Rail]:
        """Rails of the highest exclusivity below this one that reaches the peer.

        One that cannot send takes nobody's place: it is a rail for put and get beside the others.
        """
        rails: list[Rail] = []
        context = self._context
        able = context.btls if proc.world == context.me.world else context.growing_btls
        modules = [module for module in able if module.exclusivity < below]
        modules.sort(key=lambda module: -module.exclusivity)
        highest = -1  # of those that send
        for module in modules:
            if module.exclusivity < highest:
                break
            endpoint = module.add_procs([proc])[0]
            if endpoint is not None:
                rails.append(Rail(module, endpoint))
                if module.flags & SEND:
                    highest = self._lowest[proc.rank] = module.exclusivity
        return rails if highest >= 0 else []

    def _unreachable(self, proc: Proc) -> str:
        tried = ", ".join(sorted({module.name for module in self._context.btls})) or "none"
        if proc is self._context.me and "self" not in tried:
            hint = "a rank reaches itself through self only: add self to the parameter btl"
        else:
            hint = "add another to the parameter btl, such as tcp, or leave btl to its default"
        return f"{self._context.me} cannot reach {proc}; BTLs tried: {tried}; {hint}"

    def remove_rail(self, proc: Proc, module: BtlModule) -> None:
        """Take a rail out of the peer's arrays."""
        endpoint = proc.bml_endpoint
        if not isinstance(endpoint, BmlEndpoint):
            return
        every = _every(endpoint)
        kept = [rail for rail in every if rail.module is not module]
        for rail in every:
            if rail.module is module:
                self._removed[proc.rank, module] = rail
        _arrange(endpoint, kept)

    def add_rail(self, proc: Proc, module: BtlModule) -> None:
        """Put a rail that was removed back into the peer's arrays."""
        endpoint = proc.bml_endpoint
        rail = self._removed.pop((proc.rank, module), None)
        if rail is not None and isinstance(endpoint, BmlEndpoint):
            _arrange(endpoint, [*_every(endpoint), rail])

    def stand_in(self, proc: Proc) -> bool:
        """Take in the rails of the next lower exclusivity that reaches the peer; they stay."""
        endpoint = proc.bml_endpoint
        if not isinstance(endpoint, BmlEndpoint):
            return False
        rails = self._rails(proc, self._lowest[proc.rank])
        _arrange(endpoint, [*_every(endpoint), *rails])
        trace = self._context.trace
        if trace.active and rails:
            names = ",".join(rail.module.name for rail in rails)
            trace.record("bml.r2", "STAND_IN", peer=proc.rank, rails=names)
        return bool(rails)

    def finalize(self) -> None:
        """Finalize every module, the most exclusive last: what is urgent may still need it."""
        for module in sorted(self._context.btls, key=lambda module: module.exclusivity):
            module.finalize()


def _every(endpoint: BmlEndpoint) -> list[Rail]:
    """All rails of a peer: those that send, and those that only put and get."""
    silent = [rail for rail in endpoint.rdma.rails if not rail.module.flags & SEND]
    return [*endpoint.send.rails, *silent]


def _arrange(endpoint: BmlEndpoint, rails: list[Rail]) -> None:
    """Fill a peer's arrays and limits from its rails."""
    rails = sorted(rails, key=lambda rail: -rail.module.bandwidth)
    senders = [rail for rail in rails if rail.module.flags & SEND]
    _weigh(senders)
    least = min((rail.module.latency for rail in senders), default=0)
    endpoint.send = RailArray(senders)
    endpoint.eager = RailArray(
        [rail for rail in endpoint.send.rails if rail.module.latency == least]
        or endpoint.send.rails
    )
    # weighed apart: of put and get a rail may carry another share than of fragments
    able = [rail for rail in rails if rail.module.flags & (PUT | GET)]
    endpoint.rdma = RailArray([Rail(rail.module, rail.endpoint) for rail in able])
    _weigh(endpoint.rdma.rails)
    endpoint.max_send_size = min((rail.module.max_send_size for rail in senders), default=0)
    endpoint.pipeline_send_length = max(
        (rail.module.rdma_pipeline_send_length for rail in rails), default=0
    )
    endpoint.send_limit = max((rail.module.min_rdma_pipeline_size for rail in able), default=0)
    endpoint.flags = 0
    for rail in rails:
        endpoint.flags |= rail.module.flags


def _weigh(rails: list[Rail]) -> None:
    """Give each rail its share of the bandwidth of all."""
    total = sum(rail.module.bandwidth for rail in rails)
    for rail in rails:
        rail.weight = rail.module.bandwidth / total if total else 1 / len(rails)
