"""What is posted with the device: each record is the context that its completion brings back."""

from __future__ import annotations

from typing import Final

from ompy.compiled import DECLARING, ccall, cclass
from ompy.frameworks.btl import BTL_OWNERSHIP, NO_ORDER, CompletionCallback, Descriptor

from ompy_components.btl.ofi.headers import HEADER_SIZE, Kind

if DECLARING:
    from ompy_components.btl.ofi.endpoint import OfiEndpoint

_FRAGMENT: Final[int] = int(Kind.FRAGMENT)
_KEPT_MAX: Final = 64  # arbitrary: large buffers that wait for their next use


@cclass
class OfiFragment(Descriptor):
    """A message: header and segment in one piece of memory.

    Attributes:
        message: header and segment.
        endpoint: it is sent to; None before.
        kind: a number of `Kind`; only FRAGMENT is somebody else's than ours.
        number: on the wire.
        posted: the device has it.
        acknowledged: the peer has taken it.
        immediate: of `sendi`: nobody is told when it is done, but what is lost is returned.
        told: its completion was.
        freed: nobody needs it but the device.
    """

    acknowledged: bool
    endpoint: OfiEndpoint | None
    freed: bool
    immediate: bool
    kind: int
    message: memoryview[int]
    number: int
    posted: bool
    told: bool
    __slots__ = tuple(__annotations__)

    def __init__(self, message: memoryview, flags: int, order: int) -> None:
        self.begin(message, flags, order)

    @ccall
    def begin(self, message: memoryview, flags: int, order: int) -> None:
        """Set what it begins with."""
        self.prepare(message[HEADER_SIZE:], flags, order)
        self.message = message
        self.endpoint = None
        self.kind = _FRAGMENT
        self.number = 0
        self.posted = self.acknowledged = self.immediate = self.told = self.freed = False


@ccall
def fragment_in(message: memoryview, flags: int, order: int) -> OfiFragment:
    """A fragment of the PML's in memory for header and segment."""
    made: OfiFragment = OfiFragment.__new__(OfiFragment)
    made.begin(message, flags, order)
    return made


def own_message(kind: Kind) -> OfiFragment:
    """A message of this BTL, without payload."""
    made = fragment_in(memoryview(bytearray(HEADER_SIZE)), BTL_OWNERSHIP, NO_ORDER)
    made.kind = int(kind)
    return made


@cclass
class Operation(Descriptor):
    """A put, get or atomic. The segment is the local memory.

    Attributes:
        endpoint: the peer.
        words: operand and compare of an atomic, in memory of their own.
        told: its completion was.
    """

    endpoint: OfiEndpoint
    told: bool
    words: tuple[memoryview[int], ...]
    __slots__ = tuple(__annotations__)

    def __init__(self, endpoint: OfiEndpoint, local: memoryview, flags: int, order: int) -> None:
        self.begin(endpoint, local, flags, order)

    @ccall
    def begin(self, endpoint: OfiEndpoint, local: memoryview, flags: int, order: int) -> None:
        """Set what it begins with."""
        self.prepare(local, flags, order)
        self.endpoint = endpoint
        self.payload_size = len(local)
        self.words = ()
        self.told = False


@ccall
def operation_on(
    endpoint: OfiEndpoint,
    local: memoryview,
    flags: int,
    order: int,
    callback: CompletionCallback,
    context: object,
) -> Operation:
    """An operation that is about to be posted, and whom to tell when it is done."""
    made: Operation = Operation.__new__(Operation)
    made.begin(endpoint, local, flags, order)
    made.callback = callback
    made.context = context
    return made


@cclass
class ReceiveBuffer:
    """Memory for one message, posted again and again.

    Attributes:
        memory: of it.
        filled: bytes of the message that is in it.
    """

    filled: int
    memory: memoryview[int]
    __slots__ = tuple(__annotations__)

    def __init__(self, size: int) -> None:
        self.memory = memoryview(bytearray(size))
        self.filled = 0


@cclass
class MessagePool:
    """Memory for messages: large pieces are used again, small ones are cheaper to make."""

    _free: list[bytearray]
    _largest: int
    _small: int
    __slots__ = tuple(__annotations__)

    def __init__(self, small: int, largest: int) -> None:
        """Pieces of up to `small` bytes are made each time, others have `largest`."""
        self._small = small
        self._largest = largest
        self._free = []

    @ccall
    def take(self, size: int) -> memoryview:
        """Memory of `size` bytes."""
        if size <= self._small or size > self._largest:
            return memoryview(bytearray(size))
        whole = self._free.pop() if self._free else bytearray(self._largest)
        return memoryview(whole)[:size]

    @ccall
    def give_back(self, memory: memoryview) -> None:
        """Nobody uses it any more."""
        whole = memory.obj
        assert isinstance(whole, bytearray), "all of it was made here"
        if len(self._free) < _KEPT_MAX and len(whole) == self._largest > self._small:
            self._free.append(whole)
