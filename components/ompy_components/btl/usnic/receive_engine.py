"""The receive side of a module: packets in, fragments out to the PML.

Each packet that is what it seems may carry an ACK, which is handled first. A FRAG is handed to the
PML where it lies, and its buffer posted again afterwards. A CHUNK goes into the memory of its
fragment, which is handed over when it is whole.

The fast path takes one packet from the priority channel and hands it over before anything is noted
about it; the bookkeeping is done in the next round, and that one is never fast.

Source: seed usnic (receive dataflow, fast receive optimization).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from ompy import outputs
from ompy.compiled import DECLARING, ccall, cclass, cfunc, recycled
from ompy.frameworks.nic.datagram import OK, SENT, Completion

from ompy_components.btl.usnic.channel import Channel, ReceiveSegment
from ompy_components.btl.usnic.endpoint import UsnicEndpoint
from ompy_components.btl.usnic.headers import (
    ACK,
    BYE,
    CHUNK,
    DONE,
    FRAG,
    HEADER_SIZE,
    OPEN,
    PING,
    PONG,
    SEAL_SIZE,
    BadPacket,
    Header,
    parse_packet,
)
from ompy_components.btl.usnic.packets import Packet
from ompy_components.btl.usnic.reassembly import Incoming
from ompy_components.btl.usnic.reliability.receive_window import NEW, ReceiveWindow
from ompy_components.btl.usnic.seal import Replayed, Seal
from ompy_components.btl.usnic.statistics import Statistics

if TYPE_CHECKING:
    from collections.abc import Callable

    from ompy.frameworks.proc import Proc

    from ompy_components.btl.usnic.path import UsnicPaths

if DECLARING:
    from ompy_components.btl.usnic.module import UsnicModule
    from ompy_components.btl.usnic.reliability.machine import Reliability
    from ompy_components.btl.usnic.send_engine import SendEngine

SHORTEST: Final = SEAL_SIZE + HEADER_SIZE
BATCH: Final = 64  # completions of a channel in one round; arbitrary: some ms of work (500 in C)


@recycled
@cclass
class Opened:
    """A packet that is what it seems.

    Attributes:
        endpoint: who sent it.
        header: of it.
        data: its payload.
    """

    data: memoryview[int]
    endpoint: UsnicEndpoint
    header: Header
    __slots__ = tuple(__annotations__)


@cclass
class ReceiveEngine:
    """Receives for one module."""

    _channels: tuple[Channel, Channel]
    _data: Channel
    _deferred: tuple[UsnicEndpoint, Header] | None
    _dropped: list[int]
    _endpoints: dict[int, UsnicEndpoint]
    _fast_allowed: bool
    _module: UsnicModule
    _paths: UsnicPaths
    _priority: Channel
    _proc: Callable[[int], Proc]
    _seal: Seal
    _sending: SendEngine
    _shorts_told: int
    _statistics: Statistics
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        module: UsnicModule,
        channels: tuple[Channel, Channel],
        seal: Seal,
        statistics: Statistics,
        shorts_told: int,
    ) -> None:
        self._module = module
        self._channels = channels
        self._priority, self._data = channels
        self._sending = module.sending
        self._endpoints = module.endpoints
        self._paths = module.paths
        self._seal = seal
        self._statistics = statistics
        self._fast_allowed = True
        self._deferred = None
        self._proc = module.context.proc
        self._dropped = [0, 0]  # packets that found no buffer, by channel
        self._shorts_told = shorts_told  # packets too short for a header before that is said

    @ccall
    def ready(self) -> bool:
        """Whether there is something to do."""
        if self._deferred is not None:
            return True
        return self._priority.ready() or self._data.ready()

    @ccall
    def repost(self) -> None:
        """Post the buffers again that have been read."""
        self._statistics.num_recv_reposts += self._priority.repost() + self._data.repost()

    @ccall
    def progress(self, now: int) -> int:
        """Handle what has arrived; returns how many events, or -1 after one fast receive."""
        events: int = 0
        both: bool = True
        completion: Completion
        if self._deferred is not None:
            endpoint, header = self._deferred
            self._deferred = None
            if self._admits(endpoint, header):
                self._take(endpoint, header, now)
        elif self._fast_allowed:
            found: list[Completion] = self._priority.read_completions(1)
            both = len(found) > 0  # otherwise there will hardly be anything a moment later
            for completion in found:
                events += 1
                if self._is_fast(completion, now):
                    self._fast_allowed = False
                    return -1
        self._fast_allowed = True
        if both:
            events += self._read(self._priority, now)
        return events + self._read(self._data, now)

    @cfunc
    def _read(self, channel: Channel, now: int) -> int:
        """Handle the completions of a channel; returns how many."""
        events: int = 0
        completion: Completion
        for completion in channel.read_completions(BATCH):
            events += 1
            self._handle(channel, completion, now)
        if channel.dropped() != self._dropped[channel.index]:
            self._overrun(channel)
        return events

    def _overrun(self, channel: Channel) -> None:
        """The device has dropped packets for which no buffer was posted: they will come again."""
        count = channel.dropped() - self._dropped[channel.index]
        self._dropped[channel.index] = channel.dropped()
        self._statistics.num_overruns += count
        self._module.note("OVERRUN", channel=channel.index, packets=count)

    # -- completions

    @cfunc
    def _handle(self, channel: Channel, completion: Completion, now: int) -> None:
        if completion.work is SENT:
            channel.credits += 1
            packet = completion.context
            assert packet is None or isinstance(packet, Packet)
            self._sending.sent(packet)
            return
        opened: Opened | None = self._open(channel, completion)
        if opened is not None:
            self._receive(opened.endpoint, opened.header, opened.data, now)

    @cfunc
    def _is_fast(self, completion: Completion, now: int) -> bool:
        """Handle a completion of the priority channel, fast if it is a fragment that is new."""
        channel: Channel = self._priority
        if completion.work is SENT:
            self._handle(channel, completion, now)
            return False
        opened: Opened | None = self._open(channel, completion)
        if opened is None:
            return False
        endpoint: UsnicEndpoint = opened.endpoint
        header: Header = opened.header
        arrived: ReceiveWindow = endpoint.reliability.arrived
        if header.kind != FRAG or arrived.judge(header.sequence) is not NEW:
            self._receive(endpoint, header, opened.data, now)
            return False
        self._deferred = endpoint, header
        self._deliver(endpoint, header.tag, opened.data)
        return True

    @cfunc
    def _open(self, channel: Channel, completion: Completion) -> Opened | None:
        """Who sent what, or None if that is nothing to go on with."""
        segment = completion.context
        assert isinstance(segment, ReceiveSegment)
        channel.used(segment)
        self._statistics.num_total_recvs += 1
        try:
            if completion.status is not OK:
                raise BadPacket(completion.status.value)
            if completion.size < SHORTEST:
                self._short(channel)
            body = self._seal.open(segment.buffer[: completion.size])
            header: Header = parse_packet(body)
        except Replayed:
            self._statistics.num_replayed_recvs += 1
            return None
        except BadPacket:
            self._statistics.num_crc_errors += 1
            return None
        endpoint: UsnicEndpoint | None = self._endpoints.get(header.sender)
        if endpoint is None:
            endpoint = self._module.reach(self._proc(header.sender))
        if endpoint is None:
            self._statistics.num_unk_recvs += 1
            return None
        if not self._admits(endpoint, header):
            return None
        opened: Opened = Opened.__new__(Opened)
        opened.endpoint = endpoint
        opened.header = header
        opened.data = body[header.size : header.size + header.length]
        return opened

    def _short(self, channel: Channel) -> NoReturn:
        """A packet is too short to be one of usnic's."""
        self._statistics.num_short_recvs += 1
        if self._statistics.num_short_recvs == self._shorts_told:
            context, interface = self._module.context, self._module.nic.identity.interface
            outputs.tell(
                f"ompy: rank {context.rank} has got {self._shorts_told} packets by usnic over "
                f"{interface} that are too short for a header: something else sends to "
                f"{channel.address.host}:{channel.address.port}, or packets are cut on the way\n",
                "warning",
                "warning",
            )
        raise BadPacket("too short for a header")

    @cfunc
    def _admits(self, endpoint: UsnicEndpoint, header: Header) -> bool:
        """Whether a packet is of the path as it is now.

        That somebody leaves may be heard of one that was given up, too.
        """
        if header.kind == PING or header.kind == PONG or header.kind == OPEN:  # noqa: PLR1714 - in C
            return True
        path = endpoint.path
        if header.epoch != path.life.number:
            self._statistics.num_old_epoch_recvs += 1
            return False
        if path.up or self._paths.admits(endpoint) or (header.kind == FRAG and header.tag == BYE):
            return True
        self._statistics.num_given_up_recvs += 1
        return False

    # -- packets

    @cfunc
    def _receive(self, endpoint: UsnicEndpoint, header: Header, data: memoryview, now: int) -> None:
        if header.kind == FRAG:
            if self._take(endpoint, header, now):
                self._deliver(endpoint, header.tag, data)
        elif header.kind == CHUNK:
            self._receive_chunk(endpoint, header, data, now)
        elif header.kind == ACK:
            self._statistics.num_ack_recvs += 1
            self._take_ack(endpoint, header, now, bytes(data))
        elif header.kind == OPEN:
            self._paths.open_arrived(endpoint, header)
        else:
            self._statistics.num_probe_recvs += 1
            self._module.connectivity.receive(endpoint, header)

    @cfunc
    def _take(self, endpoint: UsnicEndpoint, header: Header, now: int) -> bool:
        """The bookkeeping for a packet with a number; whether it is new."""
        self._take_ack(endpoint, header, now)
        new: bool = endpoint.reliability.receive(header.sequence, now) is NEW
        self._owe(endpoint)
        if new and header.kind == FRAG:
            self._statistics.num_frag_recvs += 1
        elif new:
            self._statistics.num_chunk_recvs += 1
        return new

    @cfunc
    def _owe(self, endpoint: UsnicEndpoint) -> None:
        self._sending.owe(endpoint)
        self._module.timer_at(endpoint.reliability.ack_at)

    @cfunc
    def _take_ack(
        self, endpoint: UsnicEndpoint, header: Header, now: int, behind: bytes = b""
    ) -> None:
        if header.acknowledged is None:
            return
        reliability: Reliability = endpoint.reliability
        for segment in reliability.acknowledge(header.acknowledged, now, behind):
            packet = segment
            assert isinstance(packet, Packet)
            self._sending.acknowledged(endpoint, packet)
        if reliability.suspect_at is not None:
            self._module.timer_at(reliability.suspect_at)
        self._sending.check_ready(endpoint)

    @cfunc
    def _receive_chunk(
        self, endpoint: UsnicEndpoint, header: Header, data: memoryview, now: int
    ) -> None:
        if endpoint.reliability.arrived.judge(header.sequence) is not NEW:
            self._take(endpoint, header, now)
            return
        if header.put_address:
            self._take(endpoint, header, now)
            self._module.puts.land(endpoint, header, data)
            return
        incoming: Incoming | None = endpoint.reassembly.claim(header)
        if incoming is None:  # not taken, not acknowledged: it will come again
            self._statistics.num_badfrag_recvs += 1
            self._take_ack(endpoint, header, now)
            return
        self._take(endpoint, header, now)
        if endpoint.reassembly.add_chunk(incoming, header, data):
            endpoint.reliability.acknowledge_now(now)
            self._deliver(endpoint, header.tag, incoming.memory)

    @cfunc
    def _deliver(self, endpoint: UsnicEndpoint, tag: int, data: memoryview) -> None:
        if tag == BYE:
            endpoint.path.left()
            endpoint.path.broke("it has left", told=True)
        elif tag == DONE:
            self._module.puts.answered(endpoint, data)
        elif endpoint.path.up:
            self._module.dispatch(endpoint, tag, data)
