"""Messages that arrive: a ring of posted buffers, and what becomes of each.

There are as many buffers as all peers together may send numbered messages, and some for each peer
for the others; so there is always one. Whose message it is says its header, once that is proven.

Source: reference ofi.md A7; the count is ours.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from ompy.compiled import DECLARING, U64, ccall, cclass, cfunc
from ompy.data.errors import MPIError
from ompy.frameworks.btl import TAGS
from ompy.frameworks.nic.fabric import Completion

from ompy_components.btl.ofi.headers import HEADER_SIZE, BadMessage, Header, Kind, Seal
from ompy_components.btl.ofi.work_records import ReceiveBuffer

if DECLARING:
    from ompy.engine.base import Engine
    from ompy.frameworks.btl import BtlModule
    from ompy.frameworks.nic.fabric import FabricEndpoint
    from ompy.frameworks.proc import Proc

    from ompy_components.btl.ofi.endpoint import OfiEndpoint
    from ompy_components.btl.ofi.path import Words
    from ompy_components.btl.ofi.peers import Peers
    from ompy_components.btl.ofi.sending import SendEngine

# arbitrary: of a peer, outside the window, that may be on the way at once: two ACKs, each for half
# of a window, six that ask, two words, GONE and BYE. Who says more words sends no fragments
# meanwhile, and who asks more often has had no answer for minutes
UNNUMBERED: Final = 12
# ns; arbitrary: far longer than a provider that keeps no order takes from one message to the next
OVERTAKEN: Final = 100_000_000
_FRAGMENT: Final[int] = int(Kind.FRAGMENT)
_ACK: Final[int] = int(Kind.ACK)
_BYE: Final[int] = int(Kind.BYE)
ROUND_MAX: Final = 256  # arbitrary: messages one poll hands out


def window_size(wanted: int, most: int, peers: int) -> int:
    """Fragments one peer may send before they are acknowledged.

    Args:
        wanted: `rd_num`.
        most: `rd_max`, of all peers.
        peers: how many there are.
    """
    return max(1, min(wanted, most // max(1, peers)))


def buffers_needed(window: int, peers: int) -> int:
    """Buffers to be posted."""
    return peers * (window + UNNUMBERED)


@cclass
class ReceiveEngine:
    """Of one module.

    Attributes:
        refused: messages that no peer of the job has sent, or of another generation.
        replayed: messages of peers that came before.
        failed: receives that ended with an error.
    """

    _arrived: deque[ReceiveBuffer]
    _endpoints: dict[int, OfiEndpoint]
    _engine: Engine
    _first: FabricEndpoint
    _idle: list[ReceiveBuffer]
    _module: BtlModule
    _peers: Peers
    _procs: list[Proc]
    _seal: Seal
    _sending: SendEngine
    _size: U64
    _stale: int
    _words: Words
    failed: int
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        module: BtlModule,
        first: FabricEndpoint,
        peers: Peers,
        words: Words,
        sending: SendEngine,
        seal: Seal,
        count: int,
    ) -> None:
        """Post buffers for messages with as many bytes behind the header as the module may send.

        Args:
            module: hands fragments out.
            first: the context that receives.
            peers: know their endpoints.
            words: takes HELLO and GONE.
            sending: takes acknowledgements.
            seal: opens messages.
            count: of buffers.

        Raises:
            NicError: the device has no room for them.
        """
        self._module = module
        self._first = first
        self._peers = peers
        self._endpoints = peers.endpoints
        self._words = words
        self._sending = sending
        self._procs = module.context.procs
        self._engine = module.context.engine
        self._size = module.context.size
        size = module.max_send_size
        self._seal = seal
        self._arrived = deque()
        self._idle = [ReceiveBuffer(HEADER_SIZE + size) for _ in range(count)]
        self._stale = 0
        self.failed = 0
        self.repost()

    @property
    def refused(self) -> int:
        """Messages that were not proven, or are of another generation or window."""
        return self._seal.refused + self._stale

    @property
    def replayed(self) -> int:
        """Messages of peers that came before."""
        return self._seal.replayed

    @property
    def pressing(self) -> bool:
        """Something is to be done with the next poll."""
        return bool(self._arrived or self._idle)

    @ccall
    def done(self, buffer: ReceiveBuffer, completion: Completion) -> None:
        """A buffer has a message, or never will have one."""
        if completion.error:
            self.failed += 1
            self._idle.append(buffer)
        else:
            buffer.filled = completion.size
            self._arrived.append(buffer)

    @ccall
    def repost(self) -> None:
        """Post the buffers that have been read. Raises NicError when the device is lost."""
        while self._idle:
            buffer: ReceiveBuffer = self._idle[-1]
            if not self._first.receive(buffer.memory, None, buffer):
                return
            self._idle.pop()

    @ccall
    def deliver(self) -> int:
        """Hand out what has arrived, a bounded amount of it. Returns how many messages."""
        count: int = min(len(self._arrived), ROUND_MAX)
        for _ in range(count):
            buffer: ReceiveBuffer = self._arrived.popleft()
            try:
                self._take(buffer.memory[: buffer.filled])
            finally:
                self._idle.append(buffer)
        return count

    @cfunc
    def _take(self, message: memoryview) -> None:
        try:
            header: Header = self._seal.open(message, self._size)
            endpoint: OfiEndpoint | None = self._endpoints.get(header.rank)
            if endpoint is None:
                endpoint = self._peers.reach(self._procs[header.rank], proven=True)
        except (BadMessage, MPIError):
            return  # a stranger, or a rank that has ended
        if endpoint is None:
            return
        kind: U64 = header.kind
        if kind != _FRAGMENT and kind in (Kind.HELLO, Kind.GONE):
            self._words.heard(endpoint, header)
            return
        if (header.generation != endpoint.generation or endpoint.broken) and not endpoint.admits(
            header.generation
        ):
            self._stale += 1
            return
        self._hear(endpoint, header, message[HEADER_SIZE:])

    @cfunc
    def _hear(self, endpoint: OfiEndpoint, header: Header, fragment: memoryview) -> None:
        """A message of the generation that is."""
        endpoint.heard += 1
        try:
            self._sending.acknowledged(endpoint, header.acknowledged)
        except ValueError as problem:
            endpoint.path.broke(f"the peer confuses numbers: {problem}")
            return
        kind: U64 = header.kind
        if kind == _ACK:
            if header.number:
                self._compare(endpoint, header.number)
            return
        if not endpoint.window.accept(header.number):
            self._stale += 1
            return
        pressing: bool = False
        if (
            kind == _BYE
            or endpoint.bye_number
            or 2 * endpoint.window.owed() >= endpoint.window.size
        ):
            pressing = True
        self._sending.owes(endpoint, pressing)
        if kind == _BYE:
            endpoint.bye_number = header.number
            endpoint.path.left()
        elif kind == _FRAGMENT and header.tag < TAGS:
            self._module.dispatch(endpoint, header.tag, fragment)

    @cfunc
    def _compare(self, endpoint: OfiEndpoint, sent: int) -> None:
        """A peer that hears nothing says up to which it has sent fragments.

        A provider may keep no order, so one that is missing may be overtaken; not for long.
        """
        if endpoint.window.lacks(sent) and endpoint.is_late(self._engine.now(), OVERTAKEN):
            endpoint.path.broke("a connection has taken fragments along")

    def close(self) -> None:
        """The module ends."""
        self._idle.clear()
        self._arrived.clear()
