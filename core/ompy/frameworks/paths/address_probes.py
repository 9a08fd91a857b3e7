"""Which addresses of other hosts answer: asked once for each host.

Virtual bridges and rails that are not connected look like any other interface. The kernel of the
other host answers, whatever the rank there does. The ranks of a host have the same addresses, so
what one of them answers holds for all.
"""

from __future__ import annotations

from collections.abc import Mapping

from ompy import outputs
from ompy.frameworks.context import RankContext
from ompy.frameworks.proc import Proc
from ompy.net.base import Address

Ends = tuple[str, str]  # this rank's address, and the peer's


class AddressProbes:
    """Of one component.

    Attributes:
        timeout_ms: how long an address may take to answer; 0 takes all for good.
    """

    def __init__(self, context: RankContext, timeout_ms: int, *, by: str = "") -> None:
        """Ask nothing yet.

        Args:
            context: the rank.
            timeout_ms: how long an address may take to answer; 0 takes all for good.
            by: who says in the warning that addresses do not answer.
        """
        self.timeout_ms = timeout_ms
        self._context = context
        self._by = f"{by}: " if by else ""
        self._silent: dict[int, frozenset[Ends]] = {}

    def silent(self, proc: Proc, ways: Mapping[Ends, tuple[int, str]]) -> frozenset[Ends]:
        """The ways to a host that nobody answers over, as the first rank of it was asked.

        The first rank of this host warns of them, if others are left.

        Args:
            proc: a rank of the host.
            ways: with the port to ask at, 0 for a way that is not asked, and what it is called.
        """
        if proc.node not in self._silent:
            self._silent[proc.node] = self._ask(proc, ways)
        return self._silent[proc.node]

    def _ask(self, proc: Proc, ways: Mapping[Ends, tuple[int, str]]) -> frozenset[Ends]:
        me, answers = self._context.me, self._context.network.answers
        silent = {
            (own, there): name
            for (own, there), (port, name) in ways.items()
            if port and not answers(Address(there, port), own, self.timeout_ms)
        }
        if silent and len(silent) < len(ways) and me.local_rank == 0:
            outputs.tell(
                f"ompy: {self._by}{me} does without {', '.join(sorted(silent.values()))}: host "
                f"{proc.hostname} does not answer there within {self.timeout_ms} ms\n",
                "ways left out",
                "warning",
            )
        return frozenset(silent)
