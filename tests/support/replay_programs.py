"""Programs of real ranks: a packet is recorded, and sent again when its number is right again."""

from __future__ import annotations

import socket
from typing import Any

from ompy.frameworks.pml import STANDARD
from ompy.runtime.ranks.process import RankProcess
from ompy_components.btl.usnic.channel import Channel
from ompy_components.btl.usnic.module import UsnicModule
from ompy_components.btl.usnic.reliability.sequence import SPACE

from tests.sim.p2p.programs import buffer, send, world

TEXT = b"recorded"
S = 1_000_000_000


def replay(process: RankProcess) -> Any:
    """Of rank 1: packets that were refused as replayed, by the last count before and after."""
    comm, pml = world(process), process.pml
    (module,) = [one for one in process.context.btls if isinstance(one, UsnicModule)]
    if comm.rank:
        for _ in range(SPACE):
            pml.recv(comm, buffer(len(TEXT))[1], 0, 0)
        before = module.statistics.num_replayed_recvs
        pml.send(comm, send(TEXT), 0, 1, STANDARD)
        count = module.statistics
        process.context.engine.wait_until(lambda: count.num_replayed_recvs > before, 5 * S)
        pml.send(comm, send(TEXT), 0, 2, STANDARD)
        return [before, count.num_replayed_recvs]
    recorded: list[tuple[bytes, Any]] = []
    post = Channel.post

    def spy(self: Channel, packet: memoryview, to: Any, context: object, *, inline: bool) -> None:
        if not recorded and bytes(packet).endswith(TEXT):
            recorded.append((bytes(packet), to))
        post(self, packet, to, context, inline=inline)

    Channel.post = spy  # type: ignore[method-assign]
    for _ in range(SPACE):
        pml.send(comm, send(TEXT), 1, 0, STANDARD)
    pml.recv(comm, buffer(len(TEXT))[1], 1, 1)
    packet, to = recorded[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(packet, tuple(to))
    pml.recv(comm, buffer(len(TEXT))[1], 1, 2)
    return []
