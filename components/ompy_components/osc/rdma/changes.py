"""Accumulates of single numbers as atomics of a BTL.

Only over a BTL whose atomics the owner's processor makes (`SUPPORTS_OWNER`): it executes the
messages of others and its own accumulates too, one after the other under the rank's lock, so it
does not matter which way which origin takes.

An atomic is handed to a BTL once. If that does not take it, it is a message. If it ends badly
nobody knows whether it was done, and it is not done again: the operation fails.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ompy.data.errors import ERR_OTHER, ERR_PROC_FAILED
from ompy.data.message import Message
from ompy.data.packed import to_send
from ompy.data.request import Request
from ompy.frameworks.btl import (
    COMPLETED,
    BtlModule,
    CompletionCallback,
    Descriptor,
    Endpoint,
)
from ompy.frameworks.btl_base.atomics import FORMATS, WIDTH, AtomicOp, AtomicOperation, AtomicType
from ompy.frameworks.osc import Place
from ompy.frameworks.osc_base.pending import Peer, Pending

from ompy_components.osc.rdma.reachable_btls import Way

OPS: Final = {
    "MPI_SUM": AtomicOp.ADD,
    "MPI_BAND": AtomicOp.AND,
    "MPI_BOR": AtomicOp.OR,
    "MPI_BXOR": AtomicOp.XOR,
    "MPI_LAND": AtomicOp.LAND,
    "MPI_LOR": AtomicOp.LOR,
    "MPI_LXOR": AtomicOp.LXOR,
    "MPI_REPLACE": AtomicOp.SWAP,
    "MPI_MIN": AtomicOp.MIN,
    "MPI_MAX": AtomicOp.MAX,
    "MPI_NO_OP": AtomicOp.ADD,  # of 0
}
# by format and bytes; a C long is as wide as the machine has it
TYPES: Final = {
    **{(form, 4): AtomicType.INT32 for form in "il"},
    **{(form, 8): AtomicType.INT64 for form in "lq"},
    **{(form, 4): AtomicType.UINT32 for form in "IL"},
    **{(form, 8): AtomicType.UINT64 for form in "LQ"},
}


class Change(NamedTuple):
    """What an atomic is to do.

    Attributes:
        op, kind: which, on what.
        operand, compare: numbers.
        at: byte of the target's part.
    """

    op: AtomicOp
    kind: AtomicType
    operand: int
    compare: int
    at: int


def change_of(
    source: Message | None, compare: Message | None, place: Place, at: int, operation: str
) -> Change | None:
    """An accumulate as an atomic, or None if it is none.

    Args:
        source: what is combined; None for MPI_NO_OP.
        compare: of a compare-and-swap, else None.
        place: at the target.
        at: where that begins, or -1 if it is not in one piece.
        operation: which; of no meaning with `compare`.
    """
    layout = place.layout
    kind = TYPES.get((layout.format, place.size))
    op = AtomicOp.CSWAP if compare is not None else OPS.get(operation)
    if kind is None or op is None or at < 0 or at % WIDTH[kind]:
        return None
    width = WIDTH[kind]
    given = bytes(width) if source is None or operation == "MPI_NO_OP" else to_send(source)
    than = bytes(width) if compare is None else to_send(compare)
    if len(given) != width or len(than) != width:
        return None
    number = FORMATS[kind]
    return Change(op, kind, number.unpack(given)[0], number.unpack(than)[0], at)


class Changing(CompletionCallback):
    """One atomic under way.

    Attributes:
        done: when it has been made, or has failed.
    """

    __slots__ = ("_into", "_local", "_peer", "done")

    def __init__(self, peer: Peer, into: Message | None) -> None:
        self.done = Request()
        self._peer = peer
        self._into = into
        self._local: memoryview | None = None

    def begin_change(self, pending: Pending, change: Change, way: Way) -> bool:
        """Hand it to a BTL; false if that does not take it. The rank's lock is held."""
        if self._into is not None:
            self._local = memoryview(bytearray(WIDTH[change.kind]))
        asked = AtomicOperation(
            change.op,
            change.kind,
            change.operand,
            change.at,
            way.handle,
            compare=change.compare,
            local=self._local,
        )
        result = way.module.atomic(way.endpoint, asked, self, None)
        if result < 0:
            return False
        pending.follow(self.done)
        if result == COMPLETED:
            self._end()
        return True

    def completed(
        self, module: BtlModule, endpoint: Endpoint, descriptor: Descriptor, status: int
    ) -> None:
        """It was made, or nobody knows."""
        if self.done.complete:
            return
        if status >= 0:
            self._end()
            return
        proc = self._peer.proc
        if proc.departed:
            self.done.fail(ERR_PROC_FAILED, f"{proc} has ended: {proc.departed}")
        else:
            text = f"the path to {proc} over {module.name} broke; whether it was done is not known"
            self.done.fail(ERR_OTHER, f"an atomic operation on a window: {text}")

    def _end(self) -> None:
        if self._into is not None and self._local is not None:
            self._into.store(self._local)
        self.done.finish()
