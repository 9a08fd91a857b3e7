"""The ways to a peer: a pair of modules each, and whether it was seen to work.

Where a job has several hosts, and a rank several modules, each module has a listener at its
interface, and each pair of addresses is tried once (`ompy.frameworks.paths.address_probes`).
"""

from __future__ import annotations

from ompy.frameworks.context import RankContext
from ompy.frameworks.paths.address_probes import AddressProbes
from ompy.frameworks.proc import Proc
from ompy.net.base import Interface, LinkError, Listener

from ompy_components.btl.ofi import modex
from ompy_components.btl.ofi.modex import PeerRecord
from ompy_components.btl.ofi.selection.pairing import Pair, pairs


class Ways:
    """Of all modules of one rank."""

    def __init__(self, context: RankContext, timeout_ms: int) -> None:
        """Ask nothing yet; the rest is as for `AddressProbes`."""
        self._context = context
        self._probes = AddressProbes(context, timeout_ms, by="btl_ofi")
        self._listeners: list[Listener] = []

    def listen(self, interface: Interface) -> int:
        """Show by a listener that an interface can be reached. Its port; 0 where there is none."""
        if not interface.address:
            return 0
        try:
            self._listeners.append(self._context.network.listen(interface.address))
        except LinkError:
            return 0
        return self._listeners[-1].address.port

    def answer_connects(self) -> None:
        """They want to see whether there is a way, and wait for nothing: make room for others."""
        for listener in self._listeners:
            stream = listener.accept()
            while stream is not None:
                stream.close()
                stream = listener.accept()

    def close(self) -> None:
        """The rank ends; harmless the second time."""
        while self._listeners:
            self._listeners.pop().close()

    def partner(self, proc: Proc, index: int, *, proven: bool) -> tuple[int, PeerRecord] | None:
        """The module of `proc` that our module `index` talks to: its position and record, or None.

        With `proven` a message has come over it, so the way works whatever it looked like.
        """
        context = self._context
        ours = modex.unpack(context.modex(context.me).get(modex.KEY, b""))
        theirs = modex.unpack(context.modex(proc).get(modex.KEY, b""))
        swapped = proc.rank < context.rank  # both sides have to solve the same problem
        left, right = (theirs, ours) if swapped else (ours, theirs)
        same_host = proc.node == context.me.node
        found = pairs(context.network, left, right, same_host=same_host)
        if swapped:
            found = [Pair(right, left, near) for left, right, near in found]
        if not same_host and not proven:
            found = self._usable(proc, found, ours, theirs)
        return next(((one.right, theirs[one.right]) for one in found if one.left == index), None)

    def _usable(
        self, proc: Proc, found: list[Pair], ours: list[PeerRecord], theirs: list[PeerRecord]
    ) -> list[Pair]:
        """The pairs over which a connection was seen to work; all of them if none was.

        The first use of a pair that does not work then is the error that says why.
        """
        leading = [one for one in found if one.near or self._leads(ours, theirs, one)]
        if not self._probes.timeout_ms or len(leading) < 2:
            return leading or found
        ways = {}
        for one in leading:
            own, there = ours[one.left].address, theirs[one.right].address
            ways[own, there] = (theirs[one.right].port, f"{own} - {there}")
        silent = self._probes.silent(proc, ways)
        kept = [
            one
            for one in leading
            if (ours[one.left].address, theirs[one.right].address) not in silent
        ]
        return kept or leading

    def _leads(self, ours: list[PeerRecord], theirs: list[PeerRecord], pair: Pair) -> bool:
        """Whether packets to the peer's address would leave by our interface."""
        network, address = self._context.network, ours[pair.left].address
        return any(
            network.leads_to(interface, theirs[pair.right].address)
            for interface in network.interfaces()
            if interface.address == address
        )
