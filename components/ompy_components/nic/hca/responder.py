"""The responder: what the peer's requests do here.

Packets are taken in their order only. One that is early waits a moment for those before it, which
it may have overtaken; then what is missing is NAKed, once in each round of the requester. One that
was taken before is acknowledged again, a read is read again, and an atomic gets the answer it got.
What is refused is refused before memory was touched, and stays refused.

Source: InfiniBand specification 1, 9.7.4 (responder: duplicates, atomics), 9.7.5 (ACKs and NAKs),
9.9.3 (errors of the responder).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.frameworks.nic.verbs import Access, Completion, Opcode, Status

from ompy_components.nic.hca import headers
from ompy_components.nic.hca.gather import Pieces
from ompy_components.nic.hca.headers import (
    LENGTH_MAX,
    SPACE,
    WORD,
    Answer,
    Operands,
    Packet,
    Refusal,
    Remote,
    unwrapped,
)

if TYPE_CHECKING:
    from ompy_components.nic.hca.queue_pair import HcaQueuePair
    from ompy_components.nic.hca.receives import Buffer
    from ompy_components.nic.hca.resources import Resources

READS_MAX: Final = 64  # arbitrary: reads and atomics a requester may ever have under way
ANSWER_MAX: Final = 1024  # packets of a read's answer; arbitrary: half of the largest window
_ROUNDS: Final = 256  # values of the header's field
_NEWER: Final = range(1, _ROUNDS // 2)
_LOCAL_WRITE: Final = int(Access.LOCAL_WRITE)
_REMOTE_WRITE: Final = int(Access.REMOTE_WRITE)
_REMOTE_READ: Final = int(Access.REMOTE_READ)
_REMOTE_ATOMIC: Final = int(Access.REMOTE_ATOMIC)
_MODULUS: Final = 1 << 64  # InfiniBand specification 1, 9.4.5, reference: words of 64 bits
_BEGINS: Final = {
    headers.SEND_FIRST,
    headers.SEND_ONLY,
    headers.WRITE_FIRST,
    headers.WRITE_ONLY,
}
_ENDS: Final = {headers.SEND_LAST, headers.SEND_ONLY, headers.WRITE_LAST, headers.WRITE_ONLY}
_SENDS: Final = {
    headers.SEND_FIRST,
    headers.SEND_MIDDLE,
    headers.SEND_LAST,
    headers.SEND_ONLY,
}
_READ_RESPONSES: Final = (
    headers.READ_RESPONSE_FIRST,
    headers.READ_RESPONSE_MIDDLE,
    headers.READ_RESPONSE_LAST,
    headers.READ_RESPONSE_ONLY,
)


class _Refused(Exception):
    """A request cannot be done.

    Attributes:
        refusal: what the peer is told.
        status: how the receive ends whose buffer it went into, if any.
    """

    def __init__(self, refusal: Refusal, why: str, status: Status = Status.WR_FLUSH_ERR) -> None:
        super().__init__(why)
        self.refusal = refusal
        self.status = status


class _Message:
    """A message of several packets that is arriving.

    Attributes:
        arrived: bytes that are here.
        buffer: a send's, or None.
        pieces: of the buffer.
        remote: a write's memory, or None.
    """

    __slots__ = ("arrived", "buffer", "pieces", "remote")

    def __init__(self, buffer: Buffer | None, remote: Remote | None) -> None:
        self.arrived = 0
        self.buffer = buffer
        self.pieces = Pieces([buffer.span.memory] if buffer is not None else [])
        self.remote = remote


class Responder:
    """Of one queue pair.

    Attributes:
        expected: number of the next packet to take.
        messages: requests that were done.
        deadline: when what is missing will be NAKed, or None.
    """

    def __init__(self, pair: HcaQueuePair, first: int, resources: Resources) -> None:
        """Do what is asked of `pair`, beginning with the packet `first`."""
        self._schedule = resources.schedule
        self._window = resources.window
        self._reordering = resources.reordering
        self.expected = first
        self.messages = 0
        self._pair = pair
        self.deadline: int | None = None
        self._message: _Message | None = None
        self._early: dict[int, Packet] = {}
        self._missed_in: int | None = None  # round in which the peer was told what is missing
        self._round = 0  # of the last request, for the ACK
        self._refusal: tuple[int, Refusal] | None = None
        self._atomics: dict[int, int] = {}  # old values by packet, the last ones

    def request(self, packet: Packet) -> None:
        """Do what a packet asks for."""
        number = unwrapped(packet.sequence, self.expected)
        if number < self.expected:
            self._repeated(number, packet)
            return
        if number > self.expected:
            self._hold(number, packet)
            return
        self._do(packet)
        while self._early and self._pair.receiving:
            following = self._early.pop(self.expected, None)
            if following is None:
                break
            self._do(following)
        if self._early or self.deadline is not None:
            self._await()

    def _do(self, packet: Packet) -> None:
        """Do what the next packet asks for."""
        self._round = packet.round
        try:
            ready = self._take(packet)
        except _Refused as refused:
            self._refuse(refused, packet.round)
            return
        if not ready:
            self._missed_in = packet.round
            code = self._pair.timing.rnr_timer
            self._nak(self.expected, headers.RNR_NAK | code, packet.round)
            return
        self._missed_in = None
        if packet.asks and self._pair.receiving:
            self._schedule.owe(self._pair)

    def _hold(self, number: int, packet: Packet) -> None:
        """Keep an early packet; wait for those before it, if the peer was not told already."""
        if len(self._early) < self._window and number not in self._early:
            # what was received into is used again
            self._early[number] = packet._replace(payload=memoryview(bytes(packet.payload)))
        self._round = packet.round
        if self.deadline is None and self._news(packet.round):
            self._await()

    def _news(self, round_: int) -> bool:
        """Whether the peer was not told in this round what is missing."""
        return self._missed_in is None or (round_ - self._missed_in) % _ROUNDS in _NEWER

    def _await(self) -> None:
        """Look again in a moment, if something is missing then."""
        self.deadline = self._schedule.now() + self._reordering if self._early else None
        if self.deadline is not None and not self._reordering:
            self.expire(self.deadline)
        self._schedule.watch(self._pair)

    def expire(self, now: int) -> None:
        """Tell the peer what is missing, if it is still."""
        if self.deadline is None or now < self.deadline:
            return
        self.deadline = None
        if self._early and self._news(self._round):
            self._missed_in = self._round
            self._pair.note("MISSED", number=self.expected)
            self._nak(self.expected, headers.NAK | Refusal.SEQUENCE.value, self._round)

    def repeat(self, packet: Packet) -> bool:
        """The queue pair has failed: say again why, if it was a request of the peer's."""
        if self._refusal is None:
            return False
        number, refusal = self._refusal
        self._nak(number, headers.NAK | refusal.value, packet.round)
        return True

    def acknowledge(self) -> None:
        """Say what has arrived."""
        answer = Answer(headers.ACK, self.messages)
        self._pair.send(headers.ACKNOWLEDGE, self.expected - 1, self._round, answer, ())

    def _nak(self, number: int, syndrome: int, round_: int) -> None:
        self._pair.send(headers.ACKNOWLEDGE, number, round_, Answer(syndrome, self.messages), ())

    def _refuse(self, refused: _Refused, round_: int) -> None:
        """Answer, and fail: what is being received first, then all else."""
        pair = self._pair
        pair.note("REFUSED", number=self.expected, refusal=refused.refusal.name, reason=refused)
        self._refusal = self.expected, refused.refusal
        self._nak(self.expected, headers.NAK | refused.refusal.value, round_)
        self.abandon(refused.status, str(refused))
        pair.fail()

    def abandon(self, status: Status, detail: str = "") -> None:
        """The message that is arriving will not be complete."""
        self._early.clear()
        self.deadline = None
        message, self._message = self._message, None
        if message is not None and message.buffer is not None:
            self._tell(message.buffer, status, 0, detail)

    def forget(self) -> None:
        """It is not told either."""
        self._early.clear()
        self.deadline = None
        self._message = None

    def _tell(self, buffer: Buffer, status: Status, size: int, detail: str = "") -> None:
        pair = self._pair
        done = Completion(Opcode.RECEIVE, status, buffer.context, size, pair.number, detail)
        pair.receive_queue.add(done, pair, 0)

    # -- requests in their order

    def _take(self, packet: Packet) -> bool:
        """Do it; false when a receive buffer is missing."""
        extension = packet.extension
        if packet.opcode in (headers.COMPARE_SWAP, headers.FETCH_ADD, headers.READ_REQUEST):
            if self._message is not None:
                raise _Refused(Refusal.INVALID, "a request within a message")
            if isinstance(extension, Operands):
                self._atomic(packet, extension)
            else:
                assert isinstance(extension, Remote)
                self._read(packet, extension)
            return True
        assert extension is None or isinstance(extension, Remote)
        if packet.opcode in _BEGINS:
            if self._message is not None:
                raise _Refused(Refusal.INVALID, "a message within a message")
            if not self._begin(packet, extension):
                return False
        message = self._message
        sends = packet.opcode in _SENDS
        if message is None or sends is not (message.remote is None):
            raise _Refused(Refusal.INVALID, "the middle of no message")
        if sends:
            self._receive(message, packet.payload)
        else:
            self._write(message, packet.payload)
        message.arrived += len(packet.payload)
        self.expected += 1
        if packet.opcode in _ENDS:
            self._end(message)
        return True

    def _begin(self, packet: Packet, remote: Remote | None) -> bool:
        if remote is not None:
            if remote.length > LENGTH_MAX:
                raise _Refused(Refusal.INVALID, f"a write of {remote.length} bytes")
            self._reach(remote.address, remote.rkey, remote.length, _REMOTE_WRITE)
            self._message = _Message(None, remote)
            return True
        buffer = self._pair.take_buffer()
        if buffer is None:
            return False
        self._message = _Message(buffer, None)
        return True

    def _receive(self, message: _Message, payload: memoryview) -> None:
        buffer = message.buffer
        assert buffer is not None
        if problem := self._pair.unsuitable((buffer.span,), _LOCAL_WRITE):
            raise _Refused(Refusal.OPERATION, problem, Status.LOC_PROT_ERR)
        room = message.pieces.size
        if message.arrived + len(payload) > room:
            why = f"a message longer than the buffer, which has {room} bytes"
            raise _Refused(Refusal.INVALID, why, Status.LOC_LEN_ERR)
        message.pieces.store(message.arrived, payload)

    def _write(self, message: _Message, payload: memoryview) -> None:
        remote = message.remote
        assert remote is not None
        if message.arrived + len(payload) > remote.length:
            raise _Refused(Refusal.INVALID, f"more than the {remote.length} bytes of a write")
        place = remote.address + message.arrived
        # asked anew for each packet: the region may have been closed meanwhile
        memory = self._reach(place, remote.rkey, len(payload), _REMOTE_WRITE)
        memory[:] = payload

    def _end(self, message: _Message) -> None:
        if message.remote is not None and message.arrived != message.remote.length:
            self.expected -= 1
            raise _Refused(
                Refusal.INVALID, f"{message.arrived} of {message.remote.length} bytes written"
            )
        self._message = None
        self.messages += 1
        if message.buffer is not None:
            self._tell(message.buffer, Status.SUCCESS, message.arrived)

    def _reach(self, address: int, rkey: int, size: int, access: int) -> memoryview:
        """Memory a request has named.

        An empty request names none, whatever it says (InfiniBand specification 1, 9.4.3).
        """
        if not size:
            return memoryview(bytearray())
        found = self._pair.reach(rkey, address, size, access)
        if found is None:
            raise _Refused(
                Refusal.ACCESS, f"rkey {rkey:#x} does not allow {size} bytes at {address:#x}"
            )
        return found

    def _read(self, packet: Packet, remote: Remote) -> None:
        count = _packets(remote)
        memory = self._reach(remote.address, remote.rkey, remote.length, _REMOTE_READ)
        number = self.expected
        self.expected += count
        self.messages += 1
        self._answer(number, packet.round, memory, remote, count)

    def _answer(
        self, number: int, round_: int, memory: memoryview, remote: Remote, count: int
    ) -> None:
        answer = Answer(headers.ACK, self.messages)
        for index in range(count):
            first, last = index == 0, index == count - 1
            opcode = _READ_RESPONSES[3 if first and last else 0 if first else 2 if last else 1]
            begin = index * remote.segment
            payload = memory[begin : begin + remote.segment]
            extension = answer if first or last else None
            self._pair.send(opcode, number + index, round_, extension, (payload,))

    def _atomic(self, packet: Packet, operands: Operands) -> None:
        if operands.address % WORD.size:
            raise _Refused(Refusal.INVALID, f"an atomic at {operands.address:#x}")
        memory = self._reach(operands.address, operands.rkey, WORD.size, _REMOTE_ATOMIC)
        (old,) = WORD.unpack(memory)
        if packet.opcode == headers.FETCH_ADD:
            WORD.pack_into(memory, 0, (old + operands.swap) % _MODULUS)
        elif old == operands.compare:
            WORD.pack_into(memory, 0, operands.swap)
        number = self.expected
        self.expected += 1
        self.messages += 1
        self._atomics[number] = old
        if len(self._atomics) > READS_MAX:
            del self._atomics[next(iter(self._atomics))]
        self._answer_atomic(number, packet.round, old)

    def _answer_atomic(self, number: int, round_: int, old: int) -> None:
        answer = Answer(headers.ACK, self.messages, old)
        self._pair.send(headers.ATOMIC_ACKNOWLEDGE, number, round_, answer, ())

    # -- requests that came before

    def _repeated(self, number: int, packet: Packet) -> None:
        """Answer again. What is refused by now fails the peer, and nothing here."""
        self._round = packet.round
        extension = packet.extension
        if packet.opcode == headers.READ_REQUEST:
            assert isinstance(extension, Remote)
            try:
                count = _packets(extension)
                memory = self._reach(
                    extension.address, extension.rkey, extension.length, _REMOTE_READ
                )
            except _Refused as refused:
                self._nak(number, headers.NAK | refused.refusal.value, packet.round)
                return
            if number + count <= self.expected:
                self._answer(number, packet.round, memory, extension, count)
        elif isinstance(extension, Operands):
            old = self._atomics.get(number)
            if old is not None:
                self._answer_atomic(number, packet.round, old)
        else:
            self._schedule.owe(self._pair)


def _packets(remote: Remote) -> int:
    """How many packets a read's answer has."""
    if not 0 < remote.segment < SPACE or remote.length > LENGTH_MAX:
        raise _Refused(Refusal.INVALID, f"a read of {remote.length} bytes")
    count = max(1, -(-remote.length // remote.segment))
    if count > ANSWER_MAX:
        raise _Refused(Refusal.INVALID, f"a read of {count} packets")
    return count
