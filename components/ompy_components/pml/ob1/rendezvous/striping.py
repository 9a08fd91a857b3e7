"""Which rails carry a large message, and how many of its bytes each.

Source: reference openmpi.md 3.5.2 and 3.5.3.
"""

from __future__ import annotations

from typing import Final

from ompy.compiled import ccall, cclass, cfunc
from ompy.frameworks.bml import BmlEndpoint, Rail, RailArray
from ompy.frameworks.btl import GET, PUT, BtlModule
from ompy.frameworks.pml import SYNCHRONOUS

from ompy_components.pml.ob1.headers import UNION_SIZE
from ompy_components.pml.ob1.selection import suits_direct, whole_max

# Of the bandwidth to a peer, what direct RDMA has to have (reference openmpi.md 3.5.2)
WEIGHT_LEAST: Final = 0.5


@cclass
class Share:
    """One rail's part of a message.

    Attributes:
        rail: the rail.
        left: bytes it has still to carry.
        handle: registration of the whole message with its module, or None.
        remote: the peer's registration, to get with; empty where there is none.
    """

    handle: object | None
    left: int
    rail: Rail
    remote: bytes
    __slots__ = tuple(__annotations__)

    def __init__(self, rail: Rail, left: int, handle: object | None = None) -> None:
        self.rail = rail
        self.left = left
        self.handle = handle
        self.remote = b""


@ccall
def share_of(rail: Rail, left: int, handle: object | None) -> Share:
    """A share, made without `__init__`, which costs compiled callers the most."""
    made: Share = Share.__new__(Share)
    made.rail = rail
    made.left = left
    made.handle = handle
    made.remote = b""
    return made


def name_of(rail: Rail) -> bytes:
    """Names a rail in messages between its two ends."""
    return rail.module.name.encode() + b" " + rail.module.path(rail.endpoint)


def named_rail(array: RailArray, name: bytes) -> Rail | None:
    """The rail with this name; None when there is none, or more than one."""
    rails = [rail for rail in array.rails if name_of(rail) == name]
    return rails[0] if len(rails) == 1 else None


@ccall
def find_rail(array: RailArray, module: BtlModule) -> Rail | None:
    """The rail of a module, or None when the peer's array has lost it."""
    rail: Rail
    for rail in array.rails:
        if rail.module is module:
            return rail
    return None


@ccall
def heaviest_first(rails: list[Rail]) -> list[Rail]:
    """Rails in the order they are given their parts: light ones must not take all of a rest."""
    return sorted(rails, key=_by_weight) if len(rails) > 1 else rails


def shares_by_weight(shares: list[Share]) -> list[Share]:
    """Shares in the order of `heaviest_first`."""
    return sorted(shares, key=_weight_of_share) if len(shares) > 1 else shares


def _weight_of_share(share: Share) -> float:
    return -share.rail.weight


def _by_weight(rail: Rail) -> float:
    return -rail.weight


@ccall
def share_out(rails: list[Rail], length: int, alignment: int = 1) -> list[int]:
    """Bytes for each rail by weight.

    Args:
        rails: heaviest first, at least one.
        length: bytes there are.
        alignment: of every part but the first, which also gets the rest.
    """
    if len(rails) == 1:
        return [length]
    total: float = sum([rail.weight for rail in rails])
    left: int = length
    parts: list[int] = []
    rail: Rail
    for rail in rails:
        if left <= rail.module.eager_limit or total <= 0:
            part: int = left  # not worth a second rail
        else:
            part = min(left, int(length * rail.weight / total))
        if alignment > 1:
            part -= part % alignment
        parts.append(part)
        left -= part
    parts[0] += left
    return parts


@ccall
def get_alignment(shares: list[Share]) -> int:
    """What pieces got over any of these rails have to be aligned to."""
    most: int = 1
    share: Share
    for share in shares:
        most = max(most, share.rail.module.get_alignment)
    return most


@ccall
def put_alignment(shares: list[Share]) -> int:
    """What pieces put over any of these rails have to be aligned to."""
    most: int = 1
    share: Share
    for share in shares:
        most = max(most, share.rail.module.put_alignment)
    return most


@ccall
def next_share(shares: list[Share], alignment: int, full: list[Share]) -> Share | None:
    """The share to take the next piece from; None when all are used up or have no room.

    The one that has most left of its part: equal turns would make the fast rails wait for the
    slow ones, since the pieces under way are counted over all rails. What is shorter than the
    alignment comes last, so that no other piece begins behind it.

    Args:
        shares: the rails with what is left for each.
        alignment: of the pieces, 1 for fragments.
        full: shares whose rails have no room now.
    """
    if len(shares) == 1:  # what nearly every message has: nothing to weigh
        only: Share = shares[0]
        return None if not only.left or only in full else only
    found: Share | None = None
    most: float = -1.0
    share: Share
    for share in shares:
        if not share.left or share in full:
            continue
        due: float = share.left / share.rail.weight if share.rail.weight else float(share.left)
        if share.left < alignment:
            due = 0.0
        if due > most:
            found, most = share, due
    return found


@ccall
def piece_of(left: int, limit: int, alignment: int) -> int:
    """Bytes of the next piece: at most `limit` (0: any number), aligned when there are enough."""
    size = min(left, limit) if limit else left
    if alignment > 1 and size > alignment:
        size -= size % alignment
    return size


@cclass
class RdmaRails:
    """Chooses rails for put and get.

    Attributes:
        leave_pinned: registrations are kept, so that registering whole messages is cheap.
    """

    _most: int
    _use_all: bool
    leave_pinned: bool
    __slots__ = tuple(__annotations__)

    def __init__(self, most: int, use_all: bool, leave_pinned: bool) -> None:
        self._most = most
        self._use_all = use_all
        self.leave_pinned = leave_pinned

    @ccall
    def direct(self, endpoint: BmlEndpoint, size: int, need: int) -> list[Rail]:
        """Rails that move a whole message of `size` bytes; none when others do it better.

        Args:
            endpoint: the peer.
            size: bytes of the message.
            need: flags of which a rail must have one.
        """
        rails: list[Rail] = []
        weight: float = 0.0
        rail: Rail
        for rail in self._usable(endpoint, need):
            if len(rails) < self._most and self._suits(rail.module, size):
                rails.append(rail)
                weight += rail.weight
        return rails if self.leave_pinned or weight >= WEIGHT_LEAST else []

    @ccall
    def only(self, endpoint: BmlEndpoint, size: int) -> Rail | None:
        """The rail that `direct` would give alone, for a get by the peer; None where it is another.

        Args:
            endpoint: the peer.
            size: bytes of the message: none that fits an eager fragment.
        """
        rails: list[Rail] = endpoint.rdma.rails
        if len(rails) != 1 or not self._most:
            return None
        rail: Rail = rails[0]
        module: BtlModule = rail.module
        if not (rail.immediate and module.flags & GET):
            return None
        if size <= whole_max(SYNCHRONOUS, module.eager_limit - UNION_SIZE, module.lend_least):
            return None
        return rail if self._may_use(endpoint, module) and self._suits(module, size) else None

    @cfunc
    def _may_use(self, endpoint: BmlEndpoint, module: BtlModule) -> bool:
        """Whether large messages go over a rail, or only over rails that are eager, too."""
        return self._use_all or find_rail(endpoint.eager, module) is not None

    @cfunc
    def _suits(self, module: BtlModule, size: int) -> bool:
        """Whether a rail moves a whole message of `size` bytes, rather than in a pipeline."""
        least: int = module.min_rdma_pipeline_size
        cheap: bool = self.leave_pinned or module.registration_free
        return suits_direct(module.flags, least, cheap, size)

    @ccall
    def pipeline(self, endpoint: BmlEndpoint) -> list[Rail]:
        """Rails that move parts of a message by put."""
        return self._usable(endpoint, PUT)[: self._most]

    @cfunc
    def _usable(self, endpoint: BmlEndpoint, need: int) -> list[Rail]:
        """Rails of the peer that can do one of `need`, from the next in turn on."""
        usable: list[Rail] = []
        rail: Rail
        for rail in endpoint.rdma.in_turn():
            module = rail.module
            if module.flags & need and self._may_use(endpoint, module):
                usable.append(rail)
        return usable
