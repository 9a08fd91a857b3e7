"""Messages in pieces, in order over the first rail to each peer; kept until they are asked for.

Simple before fast: every byte is copied twice, and nothing limits what a receiver has to keep.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable

from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.data.convertor import Convertor
from ompy.data.errors import ERR_TRUNCATE
from ompy.data.request import Request
from ompy.engine.base import Poller
from ompy.frameworks.bml import Bml
from ompy.frameworks.btl import BTL_OWNERSHIP, NO_ORDER, BtlModule, Endpoint, ReceiveCallback
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.context import RankContext
from ompy.frameworks.pml import SYNCHRONOUS, MatchedMessage, Pml
from ompy.frameworks.proc import Proc

PIECE_TAG, MATCHED_TAG = 0x50, 0x51  # active message tags
# context id, synchronous, source, tag, number of the message, its length, offset of the piece
PIECE = struct.Struct("<HBxiiQQQ")
MATCHED = struct.Struct("<Q")  # number of the message


class Send(Request):
    """A message on its way out."""

    __slots__ = ("context_id", "convertor", "mode", "number", "offset", "proc", "sender")

    def piece(self, room: int) -> tuple[bytes, int]:
        """The header of the next piece and the bytes of payload that follow it."""
        size = min(room - PIECE.size, self.convertor.size - self.offset)
        synchronous = self.mode == SYNCHRONOUS
        fields = (self.context_id, synchronous, self.sender, self.tag, self.number)
        return PIECE.pack(*fields, self.convertor.size, self.offset), size


class Receive(Request):
    """A posted receive."""

    __slots__ = ("convertor", "wanted_source", "wanted_tag")

    def __init__(self, convertor: Convertor, source: int, tag: int) -> None:
        super().__init__()
        self.convertor = convertor
        self.wanted_source = source
        self.wanted_tag = tag


class Incoming(MatchedMessage):
    """A message of which at least the first piece is here."""

    __slots__ = ("arrived", "communicator", "data", "number", "receive", "synchronous")

    def __init__(self, communicator: Communicator, fields: tuple[int, ...]) -> None:
        _, self.synchronous, self.source, self.tag, self.number, self.length, _ = fields
        self.communicator = communicator
        self.data = bytearray(self.length)
        self.arrived = 0
        self.receive: Receive | None = None


class Matching:
    """Of one communicator: what was posted, and what came before it was asked for."""

    def __init__(self) -> None:
        self.posted: list[Receive] = []
        self.unexpected: list[Incoming] = []

    def find(self, source: int, tag: int) -> Incoming | None:
        return next((m for m in self.unexpected if fits(source, tag, m)), None)


def fits(source: int, tag: int, message: Incoming) -> bool:
    if source not in (ANY_SOURCE, message.source):
        return False
    return message.tag >= 0 if tag == ANY_TAG else message.tag == tag


class Arrivals(ReceiveCallback):
    """Takes what the BTLs deliver."""

    def __init__(self, pml: GoodPml) -> None:
        self._pml = pml

    def received(self, module: BtlModule, endpoint: Endpoint, tag: int, data: memoryview) -> None:
        if tag == MATCHED_TAG:
            self._pml.matched(*MATCHED.unpack(data))
        else:
            self._pml.arrived(PIECE.unpack_from(data), bytes(data[PIECE.size :]))


class Outbox(Poller):
    """What the rails have not taken yet, in order for each peer.

    A rank may sleep over it: the BTL that refused wakes it when it has room.
    """

    def __init__(self, bml: Bml) -> None:
        self._bml = bml
        self.queues: dict[Proc, deque[Callable[[BtlModule, Endpoint], bool]]] = {}

    def put(self, proc: Proc, work: Callable[[BtlModule, Endpoint], bool]) -> None:
        """Do `work` on the rail to `proc`, again and again until it returns true."""
        self._bml.endpoint(proc)  # raises now if nobody reaches it
        self.queues.setdefault(proc, deque()).append(work)
        self.poll()

    def poll(self) -> int:
        done = 0
        for proc, queue in self.queues.items():
            rail = self._bml.endpoint(proc).eager.rails[0]
            while queue and queue[0](rail.module, rail.endpoint):
                queue.popleft()
                done += 1
        return done

    def empty(self) -> bool:
        return not any(self.queues.values())


def push(module: BtlModule, endpoint: Endpoint, tag: int, header: bytes, fill: Send | None) -> bool:
    """Send one fragment if the rail takes it; `fill` packs its payload."""
    size = 0
    if fill is not None:
        header, size = fill.piece(min(module.eager_limit, module.max_send_size))
    descriptor = module.alloc(endpoint, NO_ORDER, len(header) + size, BTL_OWNERSHIP)
    if descriptor is None:
        return False
    descriptor.segment[: len(header)] = header
    if fill is not None and size:
        fill.convertor.pack(fill.offset, descriptor.segment[len(header) :])
    if module.send(endpoint, descriptor, tag) < 0:
        module.free(descriptor)
        return False
    if fill is not None:
        fill.offset += size
    return True


class GoodPml(Pml):
    """The PML of one rank."""

    def __init__(self, context: RankContext, bml: Bml) -> None:
        self._context = context
        self._lock = context.engine.lock
        self._outbox = Outbox(bml)
        self._numbers = 0
        self._synchronous: dict[int, Send] = {}
        self._communicators: dict[int, Communicator] = {}
        self._early: dict[int, list[tuple[tuple[int, ...], bytes]]] = {}
        self._open: dict[tuple[int, int, int], Incoming] = {}
        for tag in (PIECE_TAG, MATCHED_TAG):
            context.active_messages.register(tag, Arrivals(self))
        context.engine.add_poller(self._outbox)

    def add_communicator(self, communicator: Communicator) -> None:
        with self._lock:
            communicator.pml_state = Matching()
            self._communicators[communicator.context_id] = communicator
            for fields, payload in self._early.pop(communicator.context_id, []):
                self.arrived(fields, payload)

    def remove_communicator(self, communicator: Communicator) -> None:
        with self._lock:
            self._communicators.pop(communicator.context_id, None)

    # -- sending

    def isend(
        self, communicator: Communicator, convertor: Convertor, target: int, tag: int, mode: int
    ) -> Request:
        with self._lock:
            self._numbers += 1
            send = Send()
            send.source, send.tag, send.mode, send.offset = target, tag, mode, 0
            send.context_id, send.convertor = communicator.context_id, convertor
            send.number, send.sender = self._numbers, communicator.rank
            send.proc = communicator.procs[target]
            if mode == SYNCHRONOUS:
                self._synchronous[send.number] = send
            self._outbox.put(send.proc, lambda *rail: self._progress(send, *rail))
            return send

    def _progress(self, send: Send, module: BtlModule, endpoint: Endpoint) -> bool:
        """Send pieces while the rail takes them; whether the last has gone."""
        while push(module, endpoint, PIECE_TAG, b"", send):
            if send.offset == send.convertor.size:
                send.length = send.received = send.offset
                if send.mode != SYNCHRONOUS:
                    send.finish()
                return True
        return False

    def matched(self, number: int) -> None:
        """The receiver of a synchronous send has matched it."""
        self._synchronous.pop(number).finish()

    # -- receiving

    def arrived(self, fields: tuple[int, ...], payload: bytes) -> None:
        context_id, _, source, _, number, _, offset = fields
        communicator = self._communicators.get(context_id)
        if communicator is None:
            self._early.setdefault(context_id, []).append((fields, payload))
            return
        key = (context_id, source, number)
        message = self._open.get(key)
        if message is None:
            message = self._open[key] = Incoming(communicator, fields)
            self._match(message)
        message.data[offset : offset + len(payload)] = payload
        message.arrived += len(payload)
        if message.arrived == message.length:
            del self._open[key]
            self._finish(message)

    def _match(self, message: Incoming) -> None:
        matching = self._matching(message.communicator)
        for receive in matching.posted:
            if fits(receive.wanted_source, receive.wanted_tag, message):
                matching.posted.remove(receive)
                self._join(receive, message)
                return
        matching.unexpected.append(message)

    def _join(self, receive: Receive, message: Incoming) -> None:
        message.receive = receive
        if message.synchronous:
            header = MATCHED.pack(message.number)
            proc = message.communicator.procs[message.source]
            self._outbox.put(proc, lambda *rail: push(*rail, MATCHED_TAG, header, None))

    def _finish(self, message: Incoming) -> None:
        """All of a message is here; it is handed over as soon as it is matched."""
        receive = message.receive
        if receive is None or receive.complete:
            return
        receive.source, receive.tag, receive.length = message.source, message.tag, message.length
        receive.convertor.bind(message.length)
        receive.received = receive.convertor.unpack(0, memoryview(message.data))
        if message.length > receive.convertor.size:
            receive.error = ERR_TRUNCATE
            receive.detail = f"{message.length} bytes came, there is room for {receive.received}"
        receive.finish()

    def irecv(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int
    ) -> Request:
        receive = Receive(convertor, source, tag)
        with self._lock:
            matching = self._matching(communicator)
            message = matching.find(source, tag)
            if message is None:
                matching.posted.append(receive)
            else:
                matching.unexpected.remove(message)
                self._deliver(receive, message)
        return receive

    def _deliver(self, receive: Receive, message: Incoming) -> None:
        self._join(receive, message)
        if message.arrived == message.length:
            self._finish(message)

    def imrecv(self, message: MatchedMessage, convertor: Convertor) -> Request:
        assert isinstance(message, Incoming)
        receive = Receive(convertor, message.source, message.tag)
        with self._lock:
            self._deliver(receive, message)
        return receive

    def cancel(self, request: Request) -> None:
        with self._lock:
            for communicator in self._communicators.values():
                matching = self._matching(communicator)
                if request in matching.posted:
                    matching.posted.remove(request)
                    request.cancelled = True
                    request.finish()

    # -- probing

    def iprobe(self, communicator: Communicator, source: int, tag: int) -> Request | None:
        self._context.engine.progress()
        with self._lock:
            message = self._matching(communicator).find(source, tag)
        if message is None:
            return None
        found = Request()
        found.source, found.tag = message.source, message.tag
        found.length = found.received = message.length
        found.finish()
        return found

    def probe(self, communicator: Communicator, source: int, tag: int) -> Request:
        while (found := self.iprobe(communicator, source, tag)) is None:
            self._await(communicator, source, tag)
        return found

    def improbe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage | None:
        self._context.engine.progress()
        with self._lock:
            matching = self._matching(communicator)
            message = matching.find(source, tag)
            if message is not None:
                matching.unexpected.remove(message)
        return message

    def mprobe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage:
        while (message := self.improbe(communicator, source, tag)) is None:
            self._await(communicator, source, tag)
        return message

    def _await(self, communicator: Communicator, source: int, tag: int) -> None:
        matching = self._matching(communicator)
        self._context.engine.wait_until(lambda: matching.find(source, tag) is not None)

    def _matching(self, communicator: Communicator) -> Matching:
        assert isinstance(communicator.pml_state, Matching), "it was never added"
        return communicator.pml_state

    def finalize(self) -> None:
        self._context.engine.wait_until(self._outbox.empty)
        self._context.engine.remove_poller(self._outbox)
