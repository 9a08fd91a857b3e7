"""Which way a put or get goes: by FMA or BTE, and where its local bytes are for that.

Source: seed gasnet (Recognized environment variables, RDMA); reference gasnet.md 6.3, 6.4.
"""

from __future__ import annotations

from enum import Enum
from types import SimpleNamespace
from typing import Final

from ompy.frameworks.nic.gni import GniNic
from ompy.mca.parameter import Values

IMMEDIATE_SIZE: Final = 128  # seed gasnet: bytes of a post descriptor's own buffer


class Place(Enum):
    """Where the local bytes of a post are."""

    DIRECT = "direct"  # where the caller has them, not registered: puts by FMA
    SEGMENT = "segment"  # where the caller has them, in the registered segment
    IMMEDIATE = "immediate"  # in the descriptor's own buffer
    BOUNCE = "bounce"  # in a bounce buffer
    REGISTER = "register"  # where the caller has them, registered for this post alone


BUFFERED: Final = frozenset({Place.IMMEDIATE, Place.BOUNCE})


class Ways:
    """The rules, with one rank's cutovers.

    Attributes:
        put_fma, get_fma: largest transfers by FMA.
        put_bounce, get_bounce: largest transfers by bounce buffers.
        local_get_aligned: a get wants an aligned local address.
        max_put_local: largest put that can let go of its memory at once.
    """

    def __init__(self, values: Values | SimpleNamespace, nic: GniNic) -> None:
        self.put_fma: int = values.put_fma_rdma_cutover
        self.get_fma: int = values.get_fma_rdma_cutover
        self.put_bounce: int = values.put_bounce_register_cutover
        self.get_bounce: int = values.get_bounce_register_cutover
        self.local_get_aligned = nic.local_get_aligned
        self._fma_is_local = nic.fma_put_is_local
        direct = self.put_fma if nic.fma_put_is_local else 0
        self.max_put_local = max(direct, self.put_bounce, IMMEDIATE_SIZE)

    def put(self, size: int, *, inside: bool, bulk: bool) -> Place:
        """Where a put's bytes are for the NIC.

        Args:
            size: of the put.
            inside: the local memory lies in the own segment.
            bulk: it stays as it is until the put is done. If not, `size` is up to `max_put_local`.
        """
        if size <= self.put_fma and (bulk or self._fma_is_local):
            return Place.DIRECT
        if inside and bulk:
            return Place.SEGMENT
        if size <= IMMEDIATE_SIZE:
            return Place.IMMEDIATE
        if size <= self.put_bounce:
            return Place.BOUNCE
        assert bulk, f"a put of {size} bytes cannot let go of its memory at once"
        return Place.REGISTER

    def get(self, size: int, *, inside: bool) -> Place:
        """Where what an aligned get reads goes."""
        if inside:
            return Place.SEGMENT
        if size <= IMMEDIATE_SIZE:
            return Place.IMMEDIATE
        return Place.BOUNCE if size <= self.get_bounce else Place.REGISTER
