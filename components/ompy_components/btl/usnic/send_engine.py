"""The send side of a module: what goes out, on which channel, in which order.

`progress` is the only place where queued work is sent. It sends, in this order,

1. packets of the resend list, always on the data channel: when much is lost, ACKs matter most,
   and resends must not stand in their way;
2. fragments of the endpoints that are ready, the first endpoint until it is not ready any more;
   an ACK that is owed goes with them;
3. ACKs whose time has come, alone, on the priority channel.

A fast send does not wait for that: a tiny fragment goes inline when nearly all credits are there.

Source: seed usnic (sending); reference usnic.md 7, 8.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from ompy import raw
from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.frameworks.btl import BTL_OWNERSHIP
from ompy.frameworks.btl import PRIORITY as PRIORITY_FLAG

from ompy_components.btl.usnic.channel import Channel
from ompy_components.btl.usnic.endpoint import UsnicEndpoint
from ompy_components.btl.usnic.headers import (
    ACK,
    BYE,
    CHUNK,
    CHUNK_HEADER_SIZE,
    GAPS_MAX,
    HEADER_SIZE,
    SEAL_SIZE,
    Header,
    pack_into,
)
from ompy_components.btl.usnic.packets import CHUNK_PAYLOAD, Fragment, Packet, PacketPool
from ompy_components.btl.usnic.reliability.machine import Reliability
from ompy_components.btl.usnic.reliability.segments import ResendList
from ompy_components.btl.usnic.reliability.states import SegmentEvent
from ompy_components.btl.usnic.seal import Seal
from ompy_components.btl.usnic.statistics import Statistics

NOTHING: Final = memoryview(b"")
NEVER: Final = 1 << 62  # ns; arbitrary: after the end of all clocks
CREDITS_KEPT: Final = 1  # reference usnic.md 8: one credit of a channel is never used


class Options(NamedTuple):
    """What the parameters say about sending.

    Attributes:
        max_tiny: bytes of a fragment that is tiny at most.
        max_frag: bytes of a small fragment at most.
        max_chunk: bytes of a chunk at most.
        lazy_from: bytes of a large fragment's payload from which on what is in pieces is packed
            when it is sent, not before; -1 for never.
        resends_max: packets sent again in one go.
        data_only: fragments never use the priority channel.
        ack_rounds: rounds of progress an ACK waits at most; 0: for its time.
        wait_for_ack: a fragment is complete when the peer has it, not before.
    """

    max_tiny: int
    max_frag: int
    max_chunk: int
    lazy_from: int
    resends_max: int
    data_only: bool
    ack_rounds: int
    wait_for_ack: bool


@cclass
class SendEngine:
    """Sends for one module.

    Attributes:
        pool: of packets.
        resends: packets that are to be sent again.
        owing: endpoints that are owed an ACK, with the round of progress at which it is due.
        active: endpoints whose timers may run.
        due: when the first timer of what has been sent since `take_due` may run out.
    """

    _ack: memoryview[int]
    _ack_rounds: int
    _data: Channel
    _data_only: bool
    _gaps_max: int
    _header: Header
    _max_chunk: int
    _max_tiny: int
    _priority: Channel
    _rank: U64
    _ready: deque[UsnicEndpoint]
    _resends_max: int
    _rounds: int
    _seal: Seal
    _statistics: Statistics
    _wait_for_ack: bool
    active: dict[UsnicEndpoint, None]
    due: int
    owing: dict[UsnicEndpoint, int]
    pool: PacketPool
    resends: ResendList
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        rank: int,
        channels: tuple[Channel, Channel],
        pool: PacketPool,
        seal: Seal,
        statistics: Statistics,
        options: Options,
    ) -> None:
        self.pool = pool
        self.resends = ResendList()
        self.owing = {}
        self.active = {}
        self.due = NEVER
        self._rank = rank
        self._priority, self._data = channels
        self._seal = seal
        self._statistics = statistics
        self._max_tiny = options.max_tiny
        self._max_chunk = options.max_chunk
        self._resends_max = options.resends_max
        self._data_only = options.data_only
        self._ack_rounds = options.ack_rounds
        self._wait_for_ack = options.wait_for_ack
        self._header = Header(rank, ACK)  # of the packet that is being written
        self._ready = deque()
        self._rounds = 0
        bare = SEAL_SIZE + HEADER_SIZE
        room = min(self._priority.max_message, self._priority.inline_max) - bare
        self._gaps_max = max(0, min(GAPS_MAX, room))  # bytes of an ACK that say what has arrived
        self._ack = memoryview(bytearray(bare + self._gaps_max))

    def wait_for_acks(self) -> None:
        """From now on a fragment is complete when the peer has it, not before."""
        self._wait_for_ack = True

    @ccall
    def take_due(self) -> int:
        """When the first timer of what has been sent since the last call may run out."""
        due: int = self.due
        self.due = NEVER
        return due

    # -- taking fragments

    @ccall
    def may_send_fast(self, endpoint: UsnicEndpoint, fragment: Fragment) -> bool:
        """Whether a fragment can go at once: tiny, an open window, nearly no packet posted."""
        channel: Channel = self._data if self._data_only else self._priority
        return (
            fragment.packet is not None
            and fragment.size <= self._max_tiny
            and channel.credits >= channel.fastsend_threshold
            and endpoint.reliability.window_open()
            and not self._wait_for_ack
        )

    @ccall
    def send_fast(self, endpoint: UsnicEndpoint, fragment: Fragment, now: int) -> None:
        """Send a fragment at once, inline."""
        channel: Channel = self._data if self._data_only else self._priority
        packet: Packet | None = fragment.packet
        assert packet is not None, "a tiny fragment has a packet"
        self._first(endpoint, packet, channel, now, True)
        self._statistics.num_frag_sends += 1

    @ccall
    def enqueue(self, endpoint: UsnicEndpoint, fragment: Fragment) -> None:
        """Send a fragment when its turn comes."""
        if fragment.packet is not None:
            fragment.packet.become(SegmentEvent.ENQUEUED)
        endpoint.queue.append(fragment)
        self.check_ready(endpoint)

    @ccall
    def check_ready(self, endpoint: UsnicEndpoint) -> None:
        """Put an endpoint on the list of those that are ready to send, if it is."""
        if not endpoint.ready and endpoint.sendable():
            endpoint.ready = True
            self._ready.append(endpoint)

    @ccall
    def pressing(self) -> bool:
        """Whether `progress` would send something, other than ACKs whose time has not come."""
        if self._data.credits <= CREDITS_KEPT:
            return False
        return bool(self._ready) or self.resends.first() is not None

    # -- sending

    @ccall
    def progress(self, now: int) -> int:
        """Send what can be sent; returns the number of packets."""
        before: int = self._priority.sends + self._data.sends
        if self.resends:
            self._send_again(now)
        if self._ready:
            self._send_new(now)
        if self.owing:
            self._rounds += 1
            self._send_acks(now)
        sent: int = self._priority.sends + self._data.sends - before
        if sent:
            self._data.ring()
            self._priority.ring()
        return sent

    @cfunc
    def _send_again(self, now: int) -> None:
        for _ in range(self._resends_max):
            packet = self.resends.first()
            if packet is None or self._data.credits <= CREDITS_KEPT:
                return
            assert isinstance(packet, Packet)
            endpoint: UsnicEndpoint | None = packet.endpoint
            assert endpoint is not None, "what was sent went somewhere"
            endpoint.reliability.repost(packet, now)
            self.due = min(self.due, now + endpoint.reliability.first_look)
            self.check_ready(endpoint)
            if not packet.posted:  # else the first one is still on the send queue
                self._post(endpoint, packet, self._data, None, False)

    @cfunc
    def _send_new(self, now: int) -> None:
        while self._ready and self._data.credits > CREDITS_KEPT:
            endpoint: UsnicEndpoint = self._ready[0]
            sendable: bool = endpoint.sendable()
            while sendable and self._data.credits > CREDITS_KEPT:
                fragment: Fragment = endpoint.queue[0]
                if fragment.packet is not None:
                    self._send_small(endpoint, fragment, now)
                else:
                    self._send_chunk(endpoint, fragment, now)
                sendable = endpoint.sendable()
            if not sendable:
                if endpoint.queue and not endpoint.reliability.window_open():
                    self._statistics.num_window_full += 1
                if self._ready and self._ready[0] is endpoint:
                    self._ready.popleft()
                endpoint.ready = False

    @cfunc
    def _send_small(self, endpoint: UsnicEndpoint, fragment: Fragment, now: int) -> None:
        endpoint.queue.popleft()
        packet: Packet | None = fragment.packet
        assert packet is not None, "a small fragment has a packet"
        urgent: bool = fragment.flags & PRIORITY_FLAG != 0 and fragment.size <= self._max_tiny
        channel: Channel = self._data
        if urgent and not self._data_only and self._priority.credits > CREDITS_KEPT:
            channel = self._priority
        self._first(endpoint, packet, channel, now, False)
        self._statistics.num_frag_sends += 1
        self._posted_whole(endpoint, fragment)

    @cfunc
    def _send_chunk(self, endpoint: UsnicEndpoint, fragment: Fragment, now: int) -> None:
        if not fragment.number:
            fragment.number = endpoint.next_number()
        if fragment.filled:
            packet: Packet = fragment.filled.popleft()
        else:
            packet = self.pool.take_packet()
            packet.kind = CHUNK
            packet.fragment = fragment
            packet.offset = fragment.cut
            packet.length = min(self._max_chunk, fragment.size - fragment.cut)
            fragment.fill(fragment.cut, packet.buffer, CHUNK_PAYLOAD, packet.length)
        fragment.cut += packet.length
        whole: bool = fragment.cut == fragment.size
        if whole:
            endpoint.queue.popleft()
        self._first(endpoint, packet, self._data, now, False)
        self._statistics.num_chunk_sends += 1
        if whole:
            self._posted_whole(endpoint, fragment)

    @cfunc
    def _first(
        self, endpoint: UsnicEndpoint, packet: Packet, channel: Channel, now: int, inline: bool
    ) -> None:
        """Send a packet for the first time (opal_btl_usnic_endpoint_send_segment)."""
        packet.endpoint = endpoint
        self.active[endpoint] = None
        reliability: Reliability = endpoint.reliability
        reliability.post(packet, now)
        self.due = min(self.due, now + reliability.first_look)
        self._post(endpoint, packet, channel, self._take_ack(endpoint), inline)

    @ccall
    def owe(self, endpoint: UsnicEndpoint) -> None:
        """An endpoint is owed an ACK, which may wait for company."""
        self.active[endpoint] = None
        wait: int = self._ack_rounds
        self.owing.setdefault(endpoint, self._rounds + wait if wait else NEVER)

    @cfunc
    def _take_ack(self, endpoint: UsnicEndpoint) -> int | None:
        """The ACK that is owed, to go with a packet."""
        acknowledged = endpoint.reliability.take_ack()
        if not endpoint.reliability.ack_needed:
            self.owing.pop(endpoint, None)
        return acknowledged

    @ccall
    def _post(
        self,
        endpoint: UsnicEndpoint,
        packet: Packet,
        channel: Channel,
        acknowledged: int | None,
        inline: bool,
    ) -> None:
        fragment: Fragment | None = packet.fragment
        assert fragment is not None, "a packet carries something"
        if fragment.tag == BYE:  # it may overtake the ACKs before it
            acknowledged = endpoint.reliability.arrived.acknowledgement
        header: Header = self._header
        header.kind = packet.kind
        header.size = CHUNK_HEADER_SIZE if packet.kind == CHUNK else HEADER_SIZE
        header.sequence = packet.sequence
        header.acknowledged = acknowledged
        header.length = packet.length
        header.put_address = fragment.put_address
        header.tag = fragment.tag
        header.fragment = fragment.number
        header.total = fragment.size
        header.offset = fragment.place + packet.offset
        header.epoch = endpoint.path.life.number
        pack_into(header, packet.buffer, SEAL_SIZE)
        whole = packet.whole()
        self._seal.close(whole, endpoint.recipient)
        packet.posted += 1
        endpoint.credits -= 1
        self._count(channel)
        fits: bool = inline and raw.size(whole) <= channel.inline_max
        channel.post(whole, endpoint.addresses[channel.index], packet, fits)
        if inline and not fits:
            channel.ring()

    @cfunc
    def _send_acks(self, now: int) -> None:
        endpoint: UsnicEndpoint
        for endpoint in list(self.owing):
            if self._priority.credits <= CREDITS_KEPT:
                return
            reliability: Reliability = endpoint.reliability
            in_time: bool = reliability.ack_at <= now or self.owing[endpoint] <= self._rounds
            if reliability.ack_needed and in_time:
                self.send_ack(endpoint, now)

    @ccall
    def send_ack(self, endpoint: UsnicEndpoint, now: int) -> None:
        """Send an ACK alone. It has no number, no timer, and is never sent again."""
        self.owing.pop(endpoint, None)
        reliability: Reliability = endpoint.reliability
        acknowledged, behind = reliability.take_whole_ack(self._gaps_max, now)
        if reliability.ack_needed:  # to be told again
            self.owe(endpoint)
            self.due = min(self.due, reliability.ack_at)
        number = endpoint.path.life.number
        header = Header(self._rank, ACK, 0, acknowledged, len(behind), epoch=number)
        packet = self._ack[: SEAL_SIZE + HEADER_SIZE + len(behind)]
        pack_into(header, packet[SEAL_SIZE:])
        packet[SEAL_SIZE + HEADER_SIZE :] = behind
        self._seal.close(packet, endpoint.recipient)
        self._statistics.num_ack_sends += 1
        self._statistics.num_selective_acks += bool(behind)
        self._count(self._priority)
        self._priority.post(packet, endpoint.addresses[0], None, True)

    @ccall
    def send_probe(self, endpoint: UsnicEndpoint, kind: int, which: int, length: int) -> None:
        """Send a PING, PONG or OPEN with so many bytes of padding, if there is a credit for it.

        It has no number, no timer, and is never sent again.
        """
        if self._data.credits <= CREDITS_KEPT:
            return
        packet = self.pool.take_packet()
        packet.endpoint = endpoint
        packet.length = length
        packet.retired = True
        packet.posted = 1
        header = Header(self._rank, kind, which, None, length, epoch=endpoint.path.life.number)
        pack_into(header, packet.buffer[SEAL_SIZE:])
        self._seal.close(packet.whole(), endpoint.recipient)
        endpoint.credits -= 1
        self._statistics.num_probe_sends += 1
        self._count(self._data)
        self._data.post(packet.whole(), endpoint.addresses[self._data.index], packet, False)
        self._data.ring()

    @cfunc
    def _count(self, channel: Channel) -> None:
        self._statistics.num_total_sends += 1
        if channel is self._priority:
            self._statistics.num_priority_sends += 1
        else:
            self._statistics.num_data_sends += 1

    def forget_ack(self, endpoint: UsnicEndpoint) -> None:
        """Whatever is owed to a peer will not be paid."""
        self.owing.pop(endpoint, None)
        endpoint.reliability.ack_needed = False

    # -- completions

    @ccall
    def sent(self, packet: Packet | None) -> None:
        """A work entry of a send queue is done; its channel's credit is given back already."""
        if packet is None:
            return
        packet.posted -= 1
        endpoint: UsnicEndpoint | None = packet.endpoint
        assert endpoint is not None, "what was sent went somewhere"
        endpoint.credits += 1
        if packet.retired and not packet.posted:
            self.pool.give_back(packet)
        self.check_ready(endpoint)

    @ccall
    def retire(self, packet: Packet) -> Fragment:
        """A packet is not kept any more; returns what it carried."""
        fragment: Fragment | None = packet.fragment
        assert fragment is not None, "a packet carries something"
        packet.retired = True
        if fragment.packet is packet:
            fragment.packet = None
        if not packet.posted:
            self.pool.give_back(packet)
        return fragment

    @ccall
    def acknowledged(self, endpoint: UsnicEndpoint, packet: Packet) -> None:
        """The peer has a packet."""
        length: int = packet.length
        fragment: Fragment = self.retire(packet)
        fragment.unacknowledged -= length
        if not fragment.unacknowledged and not fragment.put_address:
            self.complete(endpoint, fragment, 0)

    @cfunc
    def _posted_whole(self, endpoint: UsnicEndpoint, fragment: Fragment) -> None:
        """All of a queued fragment is on its way: complete, for whoever does not wait for more.

        Source: reference usnic.md 7 (callback matrix).
        """
        if fragment.put_address or self._wait_for_ack:
            return
        if fragment.flags & BTL_OWNERSHIP:
            self.complete(endpoint, fragment, 0)

    @ccall
    def complete(self, endpoint: UsnicEndpoint, fragment: Fragment, status: int) -> None:
        """Tell whoever wants to be told, once."""
        if fragment.told:
            return
        fragment.told = True
        if not status:
            fragment.let_go()  # the user may do with it what he likes from the callback on
        if fragment.callback is not None:
            self._statistics.pml_send_callbacks += 1
            fragment.callback.completed(endpoint.module, endpoint, fragment, status)
        fragment.let_go()
        if fragment.put_address:  # the user's; packets that are not acknowledged refer to it still
            fragment.segment = NOTHING

    def abandon(self, endpoint: UsnicEndpoint) -> list[Fragment]:
        """Forget everything that is under way to a peer.

        Returns:
            The fragments that are not complete, oldest first; they are for the caller to complete.
        """
        if endpoint.ready:
            endpoint.ready = False
            self._ready.remove(endpoint)
        fragments: dict[Fragment, None] = {}
        packets: list[Packet] = []
        for packet in endpoint.reliability.flush():
            assert isinstance(packet, Packet)
            assert packet.fragment is not None, "a packet carries something"
            fragments[packet.fragment] = None
            packets.append(packet)
        while endpoint.queue:
            fragment = endpoint.queue.popleft()
            fragments[fragment] = None
            if fragment.packet is not None:
                fragment.packet.become(SegmentEvent.FLUSHED)
            packets += fragment.unsent
        fragments.update(dict.fromkeys(endpoint.asked.values()))
        endpoint.asked.clear()
        lost = [fragment for fragment in fragments if not fragment.told]
        for fragment in lost:
            fragment.secure()  # before its packets are free: who hears of the first loss may send
        for packet in packets:
            self.retire(packet)
        return lost
