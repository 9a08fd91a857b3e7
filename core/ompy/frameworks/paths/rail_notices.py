"""Telling the other end, over a surviving rail, that a path has failed.

Who notices that a path is dead is often one end alone: the other one sends nothing, or waits for
what will not come. So a module that gives a path up says so over every other rail of that peer,
*before* its PML is told. What the PML then sends over these rails comes behind the notice wherever
a rail keeps its order. Where no PML fails over the loss of the path is the end of its peer here;
without the notice the other end might wait for ever for the answer to what it has sent.

    0 number u64 | 8 length of the name u8 | 9 name of the BTL | path

The number says which connection, or generation, of that path is meant; a notice about an earlier
one is about nothing. It goes under `TAG_NOTICE` (Open MPI's openib has a control message like it:
reference openmpi.md 5.7, EP_BROKEN).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ompy.data.header_layout import HeaderLayout
from ompy.frameworks.bml import BmlEndpoint
from ompy.frameworks.btl import (
    BTL_OWNERSHIP,
    NO_ORDER,
    PRIORITY,
    TAG_NOTICE,
    BtlModule,
    Endpoint,
    ReceiveCallback,
)

if TYPE_CHECKING:
    from ompy.frameworks.bml import Rail
    from ompy.frameworks.context import RankContext

NOTICE_LAYOUT: Final = HeaderLayout("notice.head", "number u64, name_length u8")
_HEAD: Final = NOTICE_LAYOUT.struct
RETRY: Final = 1_000_000  # ns; arbitrary: a rail that has no room for a notice has none for a PML
TRIES: Final = 1_000  # arbitrary: by then the peer knows by other means, or nothing gets through


def tell_of_failure(
    module: BtlModule, endpoint: Endpoint, number: int, *, opening: bool = True
) -> None:
    """Send the notice over the other rails of a peer; where there is no room, a little later.

    Args:
        module: whose path has failed.
        endpoint: which.
        number: of the connection or generation that has.
        opening: also over those that have to be opened for it. Where the peer is lost with the
            path that would only leave it waiting for a connection that is not made.
    """
    peer = endpoint.proc.bml_endpoint
    if not isinstance(peer, BmlEndpoint):
        return
    name = module.name.encode()
    notice = _HEAD.pack(number, len(name)) + name + module.path(endpoint)
    for rail in list(peer.send.rails):
        if rail.module is not module and (opening or rail.module.is_up(rail.endpoint)):
            _tell(rail, notice, TRIES)


def _tell(rail: Rail, notice: bytes, tries: int) -> None:
    module = rail.module
    made = module.alloc(rail.endpoint, NO_ORDER, len(notice), BTL_OWNERSHIP | PRIORITY)
    if made is None:
        if tries and not rail.endpoint.proc.departed:
            module.context.engine.call_later(RETRY, partial(_tell, rail, notice, tries - 1))
        return
    made.segment[:] = notice
    if module.send(rail.endpoint, made, TAG_NOTICE) < 0:
        module.free(made)


class RailNotices(ReceiveCallback):
    """Hands notices to the module that they are about."""

    __slots__ = ("_context",)

    def __init__(self, context: RankContext) -> None:
        self._context = context

    def received(self, module: BtlModule, endpoint: Endpoint, tag: int, data: memoryview) -> None:
        """A notice is here; one that is about none of our paths is dropped."""
        if len(data) < _HEAD.size:
            return
        number, length = _HEAD.unpack_from(data)
        name = bytes(data[_HEAD.size : _HEAD.size + length]).decode(errors="replace")
        path = bytes(data[_HEAD.size + length :])
        for other in self._context.btls:
            if other.name == name:
                other.peer_gave_up(endpoint.proc, path, number)


def listen_for_notices(context: RankContext) -> None:
    """Hear what peers say about broken paths; a module that can be told calls it."""
    handlers = context.active_messages.handlers
    if not isinstance(handlers[TAG_NOTICE], RailNotices):
        context.active_messages.register(TAG_NOTICE, RailNotices(context))
