"""The connectivity map: which interface of each peer is reached by which of ours, as a file.

    rank=0,hostname=h1
    device=vic_0,interface=rail1,ip=10.77.1.1/24,mss=1472
    peer=1,hostname=h2,interface=rail1,ip=10.77.1.1,peer_ip=10.77.1.2,mss=1472

One file for each rank, one line for each of its devices, then one for each pair with each peer; a
peer without any has a line that says so. It is written when the rank finalizes, when all peers have
published what they have, whether there was traffic or not.

Source: reference usnic.md 14 (device lines, then peers by rank); the words of the lines are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ompy import outputs
from ompy.data.errors import MPIError

from ompy_components.btl.usnic import interfaces

if TYPE_CHECKING:
    from ompy.frameworks.context import RankContext
    from ompy.frameworks.proc import Proc

    from ompy_components.btl.usnic.module import UsnicModule


class ConnectivityMap:
    """The map of one rank; the last of its modules to be finalized writes it."""

    def __init__(self, prefix: str) -> None:
        """It will be in the file `PREFIX-HOST.rankN.txt`."""
        self._prefix = prefix
        self._modules: list[UsnicModule] = []
        self._left = 0

    def add_module(self, module: UsnicModule) -> None:
        """One more module of the rank, in the order of their indices."""
        self._modules.append(module)
        self._left += 1

    def finalizing(self) -> None:
        """A module finalizes.

        Raises:
            OSError: the file cannot be written.
        """
        self._left -= 1
        if not self._left:
            context = self._modules[0].context
            path = f"{self._prefix}-{context.me.hostname}.rank{context.rank}.txt"
            text = "".join(f"{line}\n" for line in map_lines(context, self._modules))
            outputs.write_text(path, text)


def map_lines(context: RankContext, modules: Sequence[UsnicModule]) -> list[str]:
    """The map as text."""
    found = [f"rank={context.rank},hostname={context.me.hostname}"]
    for module in modules:
        identity = module.nic.identity
        found.append(
            f"device={identity.name},interface={identity.interface},"
            f"ip={identity.address}/{identity.prefix},mss={module.max_packet}"
        )
    for proc in context.procs:
        if proc is not context.me:
            found += _pairs(context, modules, proc)
    return found


def _pairs(context: RankContext, modules: Sequence[UsnicModule], proc: Proc) -> list[str]:
    head = f"peer={proc.rank},hostname={proc.hostname}"
    found = []
    for module in modules:
        identity = module.nic.identity
        try:
            partner = interfaces.find_partner(context, proc, module.index)
        except MPIError:  # it has ended without a word, or runs another PML
            return [f"{head},unreachable"]
        if partner is not None:
            record = partner[1]
            mss = min(module.max_packet, record.max_message)
            found.append(
                f"{head},interface={identity.interface},ip={identity.address},"
                f"peer_ip={record.host},mss={mss}"
            )
    return found or [f"{head},unreachable"]
