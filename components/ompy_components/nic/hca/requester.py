"""The requester: a send queue, sent as numbered packets until they are acknowledged or answered.

    una            cursor          end
     |  under way    |   waiting    |
    -+---------------+--------------+->  numbers of packets

`una` is the oldest packet that is not acknowledged, `cursor` the next one to send. Going back is
putting the cursor on `una`, in a new round. A packet of a read stands for a packet of its answer:
asked for in pieces, each of which is one packet that takes as many numbers as its answer has.

Numbers are counted without end here; 24 bits of them are sent. Source: InfiniBand specification 1,
9.7 (reliable service), 9.9.2 (errors of the requester).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from ompy.frameworks.nic.verbs import Access, Completion, Opcode, SendWork, Status, Timing
from ompy.frameworks.paths.path_watch import MS, PathVerdict

from ompy_components.nic.hca import headers
from ompy_components.nic.hca.congestion_window import CongestionWindow
from ompy_components.nic.hca.gather import Pieces
from ompy_components.nic.hca.headers import (
    LENGTH_MAX,
    WORD,
    Answer,
    Operands,
    Packet,
    Refusal,
    Remote,
    unwrapped,
)
from ompy_components.nic.hca.round_trips import RoundTrips
from ompy_components.nic.hca.timing import FOR_EVER, rnr_ns, timeout_ns

if TYPE_CHECKING:
    from ompy_components.nic.hca.queue_pair import HcaQueuePair
    from ompy_components.nic.hca.resources import Resources

PATIENCE_MAX: Final = 5  # arbitrary: a peer that computes is asked up to 32 times as seldom
# ns; arbitrary: but so often, as what it was sent may be lost when it is back
QUIET_MAX: Final = 250 * MS
_LOCAL_WRITE: Final = int(Access.LOCAL_WRITE)
# what follows from a NAK
STATUSES: Final = {
    Refusal.INVALID: Status.REM_INV_REQ_ERR,
    Refusal.ACCESS: Status.REM_ACCESS_ERR,
    Refusal.OPERATION: Status.REM_OP_ERR,
}
# opcodes of the first, a middle, the last and the only packet
_SENDS: Final = (
    headers.SEND_FIRST,
    headers.SEND_MIDDLE,
    headers.SEND_LAST,
    headers.SEND_ONLY,
)
_WRITES: Final = (
    headers.WRITE_FIRST,
    headers.WRITE_MIDDLE,
    headers.WRITE_LAST,
    headers.WRITE_ONLY,
)


class Request:
    """One entry of the send queue.

    Attributes:
        work: what was posted.
        pieces: its local memory, one piece after the other.
        first: number of its first packet.
        count: how many it has.
        answered: it is a read or an atomic: acknowledged by its answer only.
        checked: its local memory was found to be in order.
        ready: when the device has it, ns.
    """

    __slots__ = ("answered", "checked", "count", "first", "pieces", "ready", "work")

    def __init__(self, work: SendWork, first: int, mtu: int) -> None:
        self.work = work
        self.ready = 0
        self.pieces = Pieces([span.memory for span in work.spans])
        if work.inline:
            self.pieces = Pieces([memoryview(self.pieces.copy())])
        self.first = first
        atomic = work.opcode in (Opcode.FETCH_AND_ADD, Opcode.COMPARE_AND_SWAP)
        self.answered = atomic or work.opcode is Opcode.RDMA_READ
        self.count = 1 if atomic else max(1, -(-self.pieces.size // mtu))
        self.checked = False

    @property
    def end(self) -> int:
        """Number of the packet behind it."""
        return self.first + self.count


class Requester:
    """Of one queue pair.

    Attributes:
        una: oldest packet that is not acknowledged.
        cursor: next packet to send.
        round: how often it went back.
    """

    def __init__(self, pair: HcaQueuePair, first: int, resources: Resources) -> None:
        """Send what is posted to `pair`, beginning with the packet `first`."""
        window = resources.window
        self.una = self.cursor = first
        self.round = 0
        self._deadline: int | None = None
        self._probe_at: int | None = None  # when the oldest packet goes again early
        self._trips = RoundTrips()
        self.timing = Timing(0, 0, 0, 0)
        self._pair = pair
        self._schedule = resources.schedule
        self._port = resources.port
        self._doubts = resources.doubts
        self._stations = resources.stations
        self._reordering = resources.reordering
        self._mtu = resources.mtu
        self._chunk = max(1, window // 2)
        self._window = window
        self._reads_max = resources.reads_max
        self._requests: deque[Request] = deque()
        self._at = 0  # index of the request the cursor is in
        self._end = first
        self._sent = first  # packet behind the last one that was ever sent
        self._asked = first  # packet behind the last one that asked for an ACK
        self._read_end = first  # packet behind the last one of a read that was asked for
        self._heard = first  # packet behind the last one the peer has, as far as is known
        self._early: dict[int, Packet] = {}  # answers behind one that is missing
        self._missing_at: int | None = None  # when that is taken for lost
        self._reads: deque[int] = deque()  # last packets of reads and atomics under way
        self._congestion = CongestionWindow(window)
        self._resume_at: int | None = None  # the peer was not ready: when to go on
        self._silent_for_good = False  # the peer's device has been closed
        self._unreported = 0  # entries that are done, of which no completion tells
        self.begin_counting()

    def begin_counting(self) -> None:
        """Something got through: all tries begin anew."""
        self._tries = 0
        self._refusals = 0  # tries the peer's device has seen and would not have answered
        self._rnr_tries = 0
        self._patience = 0
        self._told_silent = self._silent_for_good
        self._exhausted = False

    # -- posting and sending

    def post(self, work: SendWork) -> None:
        """Put an entry behind the others."""
        request = Request(work, self._end, self._mtu)
        if self._stations.runs:
            request.ready = self._stations.posted(request.pieces.size, inline=work.inline)
        self._end = request.end
        self._requests.append(request)

    def transmit(self) -> None:
        """Send what the window and the peer allow."""
        while self._at < len(self._requests) and self._resume_at is None:
            if self._port.blocked:
                self._schedule.stall(self._pair)
                return
            request = self._requests[self._at]
            if not request.checked:
                problem = self._unsuitable(request)
                if problem:
                    if self._at == 0:
                        self._fail(*problem)
                    return
                request.checked = True
            taken = self._send_one(request)
            if not taken:
                return
            self.cursor += taken
            self._sent = max(self._sent, self.cursor)
            if self.cursor >= request.end:
                self._at += 1
            if self._deadline is None:
                self._watch()

    def _unsuitable(self, request: Request) -> tuple[Status, str] | None:
        work = request.work
        size = request.pieces.size
        if size > LENGTH_MAX:
            return Status.LOC_LEN_ERR, f"{size} bytes, where a message has {LENGTH_MAX} at most"
        if work.inline:
            return None
        if request.answered and work.opcode is not Opcode.RDMA_READ and size != WORD.size:
            return Status.LOC_LEN_ERR, f"an atomic has {WORD.size} bytes, not {size}"
        access = _LOCAL_WRITE if request.answered else 0
        problem = self._pair.unsuitable(work.spans, access)
        return (Status.LOC_PROT_ERR, problem) if problem else None

    def _send_one(self, request: Request) -> int:
        """Send the packet at the cursor; returns how many numbers it took, 0 for no room."""
        room = self._congestion.packets - (self.cursor - self.una)
        if request.work.opcode is not Opcode.RDMA_READ and self._read_end > self.una:
            return 0  # were the read asked for again, it would find what this one has changed
        if request.answered:
            return self._send_answered(request, room)
        if room <= 0:
            return 0
        work = request.work
        index = self.cursor - request.first
        first, last = index == 0, index == request.count - 1
        opcodes = _SENDS if work.opcode is Opcode.SEND else _WRITES
        opcode = opcodes[3 if first and last else 0 if first else 2 if last else 1]
        size = request.pieces.size
        remote = None
        if first and opcodes is _WRITES:
            remote = Remote(work.remote_address, work.rkey, size, self._mtu)
        asks = last or room == 1 or self.cursor - self._asked + 1 >= self._chunk
        if asks:
            self._asks_until(self.cursor + 1)
        begin = index * self._mtu
        payload = request.pieces.views(begin, min(begin + self._mtu, size))
        ready = request.ready
        self._pair.send(opcode, self.cursor, self.round, remote, payload, asks=asks, ready=ready)
        return 1

    def _send_answered(self, request: Request, room: int) -> int:
        """Ask for the next piece of a read, or for an atomic.

        Pieces begin at the same packets however often they are asked for, so that none is partly
        new to the peer.
        """
        index = self.cursor - request.first
        count = min(request.count, (index // self._chunk + 1) * self._chunk) - index
        # one may always be under way, however little is allowed
        if self.cursor > self.una and (room < count or len(self._reads) >= self._reads_max):
            return 0
        work = request.work
        extension: Remote | Operands
        if work.opcode is Opcode.RDMA_READ:
            begin = index * self._mtu
            size = min(request.pieces.size - begin, count * self._mtu)
            extension = Remote(work.remote_address + begin, work.rkey, size, self._mtu)
            opcode = headers.READ_REQUEST
            self._read_end = self.cursor + count
        else:
            extension = Operands(work.remote_address, work.rkey, work.swap, work.compare)
            compares = work.opcode is Opcode.COMPARE_AND_SWAP
            opcode = headers.COMPARE_SWAP if compares else headers.FETCH_ADD
        self._reads.append(self.cursor + count - 1)
        self._asks_until(self.cursor + count)
        ready = request.ready
        self._pair.send(opcode, self.cursor, self.round, extension, (), asks=True, ready=ready)
        return count

    def _asks_until(self, end: int) -> None:
        """The next packet asks for an answer to all before `end`."""
        self._asked = end
        if self.cursor >= self._sent:
            self._trips.asked(end, self._schedule.now())

    def _go_back(self) -> None:
        self._trips.went_back()
        self.cursor = self._asked = self._read_end = self.una
        self._at = 0
        self._reads.clear()
        self._missing_at = None
        self.round = (self.round + 1) % 256

    # -- answers

    def answer(self, packet: Packet) -> None:
        """The peer's responder has said something."""
        number = unwrapped(packet.sequence, self.una)
        if number >= self._sent or not self._requests:
            return
        extension = packet.extension
        if packet.opcode != headers.ACKNOWLEDGE:
            # the peer has all requests before this one
            self._heard = max(self._heard, number)
            if number >= self.una:
                self._early.setdefault(number, packet)
            self._advance(packet.round)
            held = self._early.get(number)
            if held is packet:  # what was received into is used again
                self._early[number] = packet._replace(payload=memoryview(bytes(packet.payload)))
        else:
            assert isinstance(extension, Answer)
            is_ack = extension.kind == headers.ACK
            self._heard = max(self._heard, number + is_ack)
            self._advance(packet.round)
            if not is_ack:
                self._refused(number, packet.round, extension)
        if self._pair.sending:
            self.transmit()

    def _advance(self, round_: int) -> None:
        """Complete in order what was heard of. Answers that are missing are waited for a moment."""
        una = self.una
        while self._requests and self._pair.sending:
            request = self._requests[0]
            if request.answered:
                packet = self._early.pop(self.una, None)
                if packet is None or not self._store(request, packet):
                    break
                self.una += 1
            elif self.una < self._heard:
                self.una = min(self._heard, request.end)
            else:
                break
            if self.una == request.end:
                self._complete(request)
        if self.una > una:
            self._missing_at = None
            self._progressed(self.una - una)
        missing = self.una < self._heard
        if missing and self._missing_at is None and round_ == self.round and self._pair.sending:
            self._missing_at = self._schedule.now() + self._reordering
            self._watch()

    def _store(self, request: Request, packet: Packet) -> bool:
        """Put an answer into local memory; whether it is one, and that may be written."""
        begin = (self.una - request.first) * self._mtu
        data = packet.payload
        if request.work.opcode is Opcode.RDMA_READ:
            if packet.opcode not in headers.READ_RESPONSES:
                return False
            if len(data) != min(self._mtu, request.pieces.size - begin):
                return False
        elif packet.opcode == headers.ATOMIC_ACKNOWLEDGE:
            assert isinstance(packet.extension, Answer)
            data = memoryview(WORD.pack(packet.extension.original))
        else:
            return False
        problem = self._pair.unsuitable(request.work.spans, _LOCAL_WRITE)
        if problem:
            self._fail(Status.LOC_PROT_ERR, problem)
            return False
        request.pieces.store(begin, data)
        return True

    def _refused(self, number: int, round_: int, answer: Answer) -> None:
        """A NAK: what comes before its packet has arrived."""
        if self.una != number or not self._requests or not self._pair.sending:
            return
        if answer.kind == headers.RNR_NAK:
            if round_ == self.round:
                self._not_ready(answer.value)
            return
        if answer.kind != headers.NAK or answer.value > Refusal.OPERATION.value:
            return
        refusal = Refusal(answer.value)
        if refusal is not Refusal.SEQUENCE:
            self._fail(STATUSES[refusal], "the peer's device has refused it")
        elif round_ == self.round:
            self._congestion.lost()
            self._pair.note("GO_BACK", number=self.una)
            self._go_back()
            self._watch()

    def _not_ready(self, code: int) -> None:
        timing = self.timing
        if timing.rnr_retry != FOR_EVER:
            if self._rnr_tries >= timing.rnr_retry:
                tries = f"{self._rnr_tries} retries" if self._rnr_tries else "no retry"
                self._fail(
                    Status.RNR_RETRY_EXC_ERR, f"the peer has posted no receive buffer, {tries}"
                )
                return
            self._rnr_tries += 1
        self._go_back()
        self._resume_at = self._schedule.now() + rnr_ns(code)
        self._pair.note("NOT_READY", number=self.una, code=code)
        self._watch()

    def silent(self, *, for_good: bool) -> None:
        """The peer's device is awake, and would not answer: this try counts, or all of them do."""
        self._told_silent = True
        self._silent_for_good = self._silent_for_good or for_good

    def _complete(self, request: Request) -> None:
        self._requests.popleft()
        self._at = max(0, self._at - 1)
        self._unreported += 1
        if request.work.signaled:
            self._tell(request, Status.SUCCESS, "")

    def _tell(self, request: Request, status: Status, detail: str) -> None:
        work = request.work
        size = request.pieces.size if status is Status.SUCCESS else 0
        done = Completion(work.opcode, status, work.context, size, self._pair.number, detail)
        released, self._unreported = self._unreported, 0
        self._pair.send_queue.add(done, self._pair, released)

    def _progressed(self, count: int) -> None:
        if not self._pair.sending:
            return  # what completed has broken it
        assert self.una <= self._sent, f"packet {self.una - 1} is acknowledged, and was never sent"
        if self.cursor < self.una:
            self.cursor = self.una
            self._at = 0
        self._asked = max(self._asked, self.una)
        while self._reads and self._reads[0] < self.una:
            self._reads.popleft()
        self._congestion.gained(count)
        self._trips.answered(self.una, self._schedule.now())
        self.begin_counting()
        self._resume_at = None
        self._doubts.settle(self._pair)
        self._watch()

    # -- time

    def _watch(self) -> None:
        """Say when to look again."""
        self._probe_at = None
        if self._resume_at is not None:
            self._deadline = self._resume_at
        elif self.una == self._sent or not self.timing.timeout:
            self._deadline = None
        else:
            timeout = timeout_ns(self.timing.timeout)
            pause = min(timeout << self._patience, max(timeout, QUIET_MAX))
            self._deadline = self._schedule.now() + pause
            self._plan_probe()
        self._schedule.watch(self._pair)

    def _plan_probe(self) -> None:
        now, deadline = self._schedule.now(), self._deadline
        assert deadline is not None, "something is under way"
        wait = self._trips.probe_after(deadline - now)
        self._probe_at = None if wait is None else now + wait

    @property
    def deadline(self) -> int | None:
        """When `expire` has something to do, or None."""
        times = (self._deadline, self._missing_at, self._probe_at)
        return min((at for at in times if at is not None), default=None)

    def expire(self, now: int) -> None:
        """Look whether it is time to try again, or to give up."""
        if self._exhausted and self._verdict() is PathVerdict.DEAD:
            self._give_up()
            return
        if self._missing_at is not None and now >= self._missing_at:
            self._congestion.lost()
            self._pair.note("ANSWER_LOST", number=self.una)
            self._go_back()
            self._watch()
            self.transmit()
            return
        if self._deadline is None or now < self._deadline:
            if self._probe_at is not None and now >= self._probe_at:
                self._probe()
            return
        if self._resume_at is not None:
            self._resume_at = None
            self._watch()
            self.transmit()
            return
        self._count()
        if self._pair.sending:
            self._congestion.expired()
            self._pair.note("TIMEOUT", number=self.una, tries=self._tries)
            self._go_back()
            self._watch()
            self.transmit()

    def _probe(self) -> None:
        """Send the oldest packet again, long before its time is up, which stays as it is."""
        self._trips.probes += 1
        self._congestion.probing()
        self._pair.note("PROBE", number=self.una)
        self._go_back()
        self._plan_probe()
        self._schedule.watch(self._pair)
        self.transmit()

    def _count(self) -> None:
        """A try was in vain: whether it counts, and whether it was the last."""
        self._doubts.unanswered()
        told, self._told_silent = self._told_silent, self._silent_for_good
        if told:
            self._refusals += 1
            self._patience = 0
            if self._refusals > self.timing.retry_count:
                self._give_up()
            return
        verdict = self._verdict()
        if verdict is PathVerdict.ALIVE:
            self._tries = 0
            self._exhausted = False
            self._patience = min(self._patience + 1, PATIENCE_MAX)
            return
        self._tries += 1
        if self._tries <= self.timing.retry_count:
            return
        self._tries = self.timing.retry_count + 1
        if verdict is PathVerdict.DEAD or not self._doubts.asked(self._pair):
            self._give_up()
        else:
            self._exhausted = True  # the verdict will say

    def _verdict(self) -> PathVerdict:
        return self._doubts.verdict(self._pair)

    def _give_up(self) -> None:
        why = self._doubts.departed(self._pair)
        if not why and self._refusals > self.timing.retry_count:
            why = "the peer's queue pair is not there, not ready or has failed"
        why = why or self._doubts.why(self._pair)
        tries = self.timing.retry_count + 1
        detail = f"packet {self.una} was sent {tries} times or more without an answer"
        self._fail(Status.RETRY_EXC_ERR, f"{detail}: {why}" if why else detail)

    # -- the end

    def _fail(self, status: Status, detail: str) -> None:
        self._pair.note("FAILED", status=status.name, reason=detail)
        failed = self._requests.popleft()
        self._unreported += 1
        self._tell(failed, status, detail)
        self._pair.fail()

    def flush(self) -> None:
        """Tell all that is left, in order."""
        self.stop()
        while self._requests:
            request = self._requests.popleft()
            self._unreported += 1
            self._tell(request, Status.WR_FLUSH_ERR, "")

    def stop(self) -> None:
        """Nothing is sent any more."""
        self._resume_at = None
        self._missing_at = None
        self._deadline = self._probe_at = None
        self._early.clear()
        self._at = 0
        self._reads.clear()
        self._doubts.settle(self._pair)
        self._schedule.watch(self._pair)
