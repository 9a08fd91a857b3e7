"""The reliability machine of usnic: one peer's packets out and in, without any I/O.

It numbers segments, keeps them until they are acknowledged, says which are to be sent again and
when, takes each of the peer's packets once, and says when an ACK is due. Whoever owns it has the
NIC and the clock: he tells it what he posted, what arrived and what time it is.

Sender. A segment that is posted is in flight. An ACK acknowledges its number and all
before. A second ACK of one number says that the segment behind it is missing, so that goes to the
resend list at once; so does the one behind an ACK that ends in the middle of what was under way
when that happened, as losses come in bursts. A segment that times out goes there too, and its
next timeout is twice as long, up to a limit, until an ACK shows that it is long enough: one of a
segment that was sent once, or one that comes a round trip after a resend, so that it was needed.
Timeouts are also longer where round trips are, so that a slow link is not taken for a lost packet.

An ACK that comes alone also says which numbers behind the first missing one have arrived
(*selective*). These are *held*: they wait for those before them, and are not sent again. What was
sent before one of them and has not arrived is lost (`deliveries.py`), so all losses of a round trip
are known one round trip later, and a lost resend is found as any other. Duplicate ACKs say nothing
more then. Without congestion control, as in the seed, nothing of this is said or heard.

How many segments are under way is limited by what gets through (`congestion_window.py`). Under way
are those in flight, less one for each duplicate ACK, which some packet has caused that did arrive,
where nothing says which.
What is to be sent again goes before anything new, the lowest number first, and beyond that one only
within the limit: when all timers of a window run out at once, a few segments are sent, and the ACK
that answers tells which of the others are needed at all.

The receiver's half is `receiver.py`.

End. A rank that computes answers nothing and is well, so silence alone ends nothing: while the
oldest segment waits in vain the path is in doubt, and the owner finds out what is known of it.
Where the tries are limited, too many timeouts of the oldest segment, while nothing at all gets
through, end the connection, but only when nobody knows that the path is alive.

Source: seed usnic (reliability); reference usnic.md 9 to 11. Ours: back-off,
limit, the rule about bursts, the age a segment must have before an ACK resends it. RFC 6298 (how
long a timeout is), RFC 6582 (losses of one window, duplicate ACKs), RFC 2018 (selective ACKs).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ompy.compiled import Shown, ccall, cclass, cfunc
from ompy.frameworks.paths.path_watch import PathVerdict

from ompy_components.btl.usnic.reliability.congestion_window import CongestionWindow, Unlimited
from ompy_components.btl.usnic.reliability.deliveries import Deliveries
from ompy_components.btl.usnic.reliability.in_flight import InFlight
from ompy_components.btl.usnic.reliability.limits import Limits
from ompy_components.btl.usnic.reliability.numbers import (
    DUPLICATES_MAX,
    PROBE_LEAST,
    PROBE_TRIPS,
    PROBES_EVEN,
    REORDERING_SHARE,
)
from ompy_components.btl.usnic.reliability.receiver import Receiver
from ompy_components.btl.usnic.reliability.round_trips import RoundTrips
from ompy_components.btl.usnic.reliability.segments import NO_SLOT, ResendList, SendSegment
from ompy_components.btl.usnic.reliability.sequence import WINDOW, after, distance, window_slot
from ompy_components.btl.usnic.reliability.states import (
    ACKED,
    HELD,
    IN_FLIGHT,
    POSTED,
    TO_RESEND,
    SegmentEvent,
)
from ompy_components.btl.usnic.statistics import Statistics

Bits: TypeAlias = int  # of any length


@cclass
class Reliability(Receiver):
    """The state of one endpoint's two streams of packets.

    Attributes:
        failure: why the connection has ended; empty while it has not.
        next_sequence: number of the next segment.
        outstanding: segments that are not acknowledged.
        first_look: how soon after a segment was posted `expire` may have something to do, ns.
        acked: the highest number the peer has acknowledged.
        leaving: the end is near, so nothing waits longer than it must.
        suspect_at: when segments may turn out to be lost, ns; None: not without news.
        in_flight: segments that await their ACK.
        round_trips: how long answers take.
    """

    _backoff: int
    _congestion: Shown[CongestionWindow]
    _deliveries: Deliveries
    _duplicates: int
    _first_timeout: int
    _held: int
    _known: Bits
    _last_trip: int
    _news_at: int
    _probe_after: int
    _probes: int
    _progress_at: int
    _recover: int
    _reduced_at: int
    _resends: ResendList
    _selective: bool
    _sent: Shown[list[SendSegment | None]]
    _tries: Shown[int]
    _verdict: Callable[[], PathVerdict]
    _window: int
    acked: int
    failure: str
    first_look: int
    in_flight: InFlight
    leaving: bool
    limits: Limits
    next_sequence: int
    outstanding: int
    round_trips: RoundTrips
    suspect_at: int | None
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        limits: Limits,
        statistics: Statistics,
        resends: ResendList,
        *,
        first: int,
        expected: int,
        verdict: Callable[[], PathVerdict],
    ) -> None:
        """Begin.

        Args:
            limits: numbers of the protocol.
            statistics: of the module.
            resends: of the module.
            first: number of the first segment.
            expected: number of the peer's first segment.
            verdict: says what is known of the path, when a peer has been silent for too long.
        """
        super().__init__(limits, statistics, expected)
        self.limits = limits
        self._window = limits.window
        self._first_timeout = limits.timeout(1)
        self.failure = ""
        self.next_sequence = first
        self.outstanding = 0
        self.first_look = limits.retrans_timeout
        self.acked = after(first, -1)
        self.leaving = False
        self.in_flight = InFlight(limits.window)
        self._resends = resends
        self._verdict = verdict
        self._sent = [None] * WINDOW
        self._congestion = Unlimited(limits.window - 1)
        if self._controls:
            most, begin = limits.window - 1, limits.initial_window
            self._congestion = CongestionWindow(most, first, begin, limits.chance_loss)
        self._backoff = 0  # timers that ran out since a segment got through at its first try
        self._tries = 0  # timeouts of the oldest segment since anything got through
        self._duplicates = 0  # ACKs of one number: packets behind the missing one that arrived
        self.round_trips = RoundTrips(limits.ack_delay)
        self._news_at = 0  # when something was posted or acknowledged last
        self._progress_at = 0  # when what is acknowledged was last more than before
        self._probe_after = 0  # ns without news; 0 while no round trip is known
        self._probes = 0  # since then
        self._begin_selective()
        self._recover = first  # what was sent before this may have been lost along with others

    def _begin_selective(self) -> None:
        """Nothing is known yet of what has arrived behind a gap."""
        self._selective = False  # the peer has said what it has behind a gap, so it always will
        self._known = 0  # what the peer has behind the first missing number: bits as on the wire
        self._held = 0  # segments of those
        self._deliveries = Deliveries()
        self.suspect_at = None
        self._reduced_at = -1  # when a loss last made the congestion window smaller
        self._last_trip = 0  # ns until the last segment before the first missing one was answered

    # -- sending

    @ccall
    def idle(self) -> bool:
        """Whether no timer runs: all is acknowledged, both ways."""
        return not (self.ack_needed or self.outstanding)

    @ccall
    def under_way(self) -> int:
        """Segments that may still be on the wire, as far as one can tell."""
        return max(0, self.in_flight.count - self._duplicates)

    @ccall
    def window_open(self) -> bool:
        """Whether one more segment may be sent."""
        flying: int = self.in_flight.count
        if self.outstanding >= self._window - 1 or self.failure:
            return False
        if flying + self._held < self.outstanding and self._controls:
            return False  # some are to be sent again, and those go first
        return flying - self._duplicates < self._congestion.segments

    @ccall
    def may_repost(self, segment: SendSegment) -> bool:
        """Whether a segment of the resend list may go now."""
        if segment.sequence == after(self.acked):
            return True  # all others wait for its ACK
        return self.under_way() < self._congestion.segments

    @ccall
    def post(self, segment: SendSegment, now: int) -> None:
        """A segment is being sent for the first time: number it and start its timer."""
        assert self.window_open(), "the window is full"
        if not self.outstanding:
            self._progress_at, self._probes = now, 0
        sequence: int = self.next_sequence
        segment.sequence = sequence
        segment.connection = self
        self.next_sequence = after(sequence)
        self.outstanding += 1
        assert self._sent[window_slot(sequence)] is None, "the slot is in use"
        self._sent[window_slot(sequence)] = segment
        self._start_timer(segment, now)
        most: int = self._statistics.max_sent_window_size
        self._statistics.max_sent_window_size = max(most, self.outstanding)

    @ccall
    def repost(self, segment: SendSegment, now: int) -> None:
        """A segment of the resend list is being sent: take it off and start its timer."""
        self._resends.remove(segment)
        self._start_timer(segment, now)
        self._statistics.num_resends += 1

    @cfunc
    def _start_timer(self, segment: SendSegment, now: int) -> None:
        segment.become(POSTED)
        segment.attempts += 1
        segment.posted_at = self._news_at = now
        # an early resend changes nothing about when the segment times out
        if not (segment.early and segment.until > now):
            segment.until = now + self._timeout()
        segment.early = False
        segment.slot = self.in_flight.add_segment(segment, segment.until)
        self._deliveries.posted(segment)

    # -- whether the peer is there

    @ccall
    def in_doubt(self, now: int) -> bool:
        """Whether segments have waited for their ACKs in vain for as long as the first one may."""
        if not self.outstanding or self.leaving:
            return False
        return now - self._progress_at >= self.limits.retrans_timeout

    @property
    def progress(self) -> tuple[int, int]:
        """What has got through both ways; another pair when something else has."""
        return self.acked, self.arrived.acknowledgement

    # -- how long an ACK is waited for

    @cfunc
    def _timeout(self) -> int:
        least: int = self.round_trips.longest() if self._controls else 0
        if least <= self._first_timeout and (self.leaving or not self._backoff):
            return self._first_timeout
        return self.limits.timeout(1 if self.leaving else self._backoff + 1, least)

    @ccall
    def acknowledge(self, sequence: int, now: int, behind: bytes = b"") -> list[SendSegment]:
        """The peer acknowledges a number and all before it, and some `behind` the next one.

        Returns:
            The segments that are done now, in the order of their numbers; they are free.
        """
        ahead: int = distance(sequence, self.acked)
        bits: Bits = int.from_bytes(behind, "little") if behind else 0
        if ahead > self.outstanding or (
            bits and ahead >= 0 and bits >> max(0, self.outstanding - ahead - 1)
        ):
            self._statistics.num_bad_acks += 1
            return []
        if ahead < 0:
            self._statistics.num_old_dup_acks += 1
            return []
        self._selective = self._selective or bool(bits)
        under_way: int = self.under_way()
        self._news_at = now
        done: list[SendSegment] = self._advance(sequence, ahead, now) if ahead else []
        if not ahead:
            self._statistics.num_dup_acks += 1
            if not self._selective:
                self._duplicates = min(self._duplicates + 1, DUPLICATES_MAX)
        fresh: int = self._release(done)
        if bits:
            fresh += self._hold(bits, now)
        if done or fresh:
            self._tries = 0
        if fresh:
            self._congestion.acked(fresh, under_way)
        if self._selective:
            self._find_lost(now)
        elif not ahead or distance(self.acked, self._recover) < -1:
            self._resend_missing(now)
        return done

    @cfunc
    def _release(self, done: list[SendSegment]) -> int:
        """These are acknowledged; returns how many of them were not held."""
        fresh: int = 0
        segment: SendSegment
        for segment in done:
            if segment.state is HELD:
                self._held -= 1
            else:
                fresh += 1
            self._leave(segment)
            segment.become(ACKED)
        return fresh

    @cfunc
    def _advance(self, sequence: int, ahead: int, now: int) -> list[SendSegment]:
        """All up to a number is acknowledged: `ahead` segments, which are taken out."""
        head: SendSegment | None = self._sent[window_slot(after(self.acked))]
        last: SendSegment | None = self._sent[window_slot(sequence)]
        assert head is not None, f"nothing was sent as {after(self.acked)}"
        assert last is not None, f"nothing was sent as {sequence}"
        proven: bool = last.attempts == 1 and last.state is IN_FLIGHT
        done = [self._take_out(after(self.acked, count), now) for count in range(1, ahead + 1)]
        self.acked = sequence
        self.outstanding -= ahead
        if self._known:
            self._known >>= ahead
        self._progress_at = now
        self._probes = 0
        self._last_trip = now - last.posted_at if proven else 0
        # of what is acknowledged now all but the first arrived earlier, and caused duplicate ACKs
        self._duplicates = max(0, self._duplicates - ahead + 1) if self.outstanding else 0
        # of a segment sent twice nobody knows which one is answered, and one that was sent before
        # a loss was found may have waited for what was lost
        if proven or (self._controls and not self.round_trips.smoothed):
            self._sample(now - last.posted_at, now, distance(sequence, self._recover) >= 0)
        if proven or (
            self.round_trips.smoothed and now - head.posted_at <= self.round_trips.longest()
        ):
            self._backoff = 0
        return done

    @cfunc
    def _take_out(self, sequence: int, now: int) -> SendSegment:
        segment: SendSegment | None = self._sent[window_slot(sequence)]
        assert segment is not None, f"nothing was sent as {sequence}"
        self._sent[window_slot(sequence)] = None
        if segment.state is not HELD:
            self._deliveries.arrived(segment, now, self.round_trips.least)
        return segment

    @cfunc
    def _hold(self, bits: Bits, now: int) -> int:
        """The peer has these behind the first missing one; returns how many of them are news."""
        news: Bits = bits & ~self._known
        self._known |= bits
        count: int = 0
        newest: SendSegment | None = None
        while news:
            lowest: Bits = news & -news
            news ^= lowest
            segment: SendSegment | None = self._sent[
                window_slot(after(self.acked, 1 + lowest.bit_length()))
            ]
            assert segment is not None, "what the peer has was sent"
            self._deliveries.arrived(segment, now, self.round_trips.least)
            if segment.attempts == 1 and (newest is None or segment.posted_at > newest.posted_at):
                newest = segment
            self._leave(segment)
            segment.become(SegmentEvent.ARRIVED)
            count += 1
        self._held += count
        assert self._held < self.outstanding, "the first missing segment is not held"
        if newest is not None:
            self._backoff = 0
            self._sample(now - newest.posted_at, now, True)
        return count

    @cfunc
    def _find_lost(self, now: int) -> None:
        """Send again what was sent before something that has arrived."""
        # while a queue grows, the smoothed time is short: the segment before the first missing one
        # waited in the same queue, and was answered only so late
        age: int = max(self.round_trips.smoothed, min(self._last_trip, self.round_trips.longest()))
        age = age or self._timeout()
        # in times of posting: what waits for the link gets nearer to each other than it was posted
        reordering: int = max(self.round_trips.least // REORDERING_SHARE, self.round_trips.spread)
        lost, self.suspect_at = self._deliveries.lost(now, age + reordering, reordering)
        segment: SendSegment
        for segment in lost:
            self._leave(segment)
            self._again(segment, SegmentEvent.MISSED)
            again: bool = segment.attempts > 1 and segment.posted_at > self._reduced_at
            queued: bool = self.round_trips.queued()
            if self._congestion.lost(segment.sequence, self.next_sequence, queued, again):
                self._reduced_at = now
            self._statistics.num_fast_retrans += 1

    @cfunc
    def _leave(self, segment: SendSegment) -> None:
        """Take a segment off whatever waits for its ACK."""
        self._deliveries.left(segment)
        if segment.state is TO_RESEND:
            self._resends.remove(segment)
        elif segment.state is IN_FLIGHT:
            self.in_flight.remove(segment.slot)
            segment.slot = NO_SLOT

    @cfunc
    def _sample(self, time: int, now: int, clean: bool) -> None:
        """A segment was acknowledged so long after it was posted.

        Unless it is `clean` the segment may have waited for one that was lost, or have been sent
        twice: that is better than to know nothing, or a longer round trip.
        """
        known: int = self.round_trips.smoothed
        if clean or time < known or not known:
            self.round_trips.add(time, now, self._timeout())
            self._look_after()

    @cfunc
    def _look_after(self) -> None:
        """How long after a segment was posted its ACK should be here, now that more is known."""
        if self._controls:
            usual: int = max(
                PROBE_TRIPS * self.round_trips.smoothed + self._ack_delay,
                self.round_trips.longest(),
            )
            self._probe_after = max(usual, PROBE_LEAST)
            self.first_look = min(self._probe_after, self.limits.retrans_timeout)

    @cfunc
    def _resend_missing(self, now: int) -> None:
        """The segment behind the last ACK is missing: send it again, unless that is about to be."""
        segment: SendSegment | None = None
        if self.outstanding:
            segment = self._sent[window_slot(after(self.acked))]
        if segment is None:
            return
        if segment.state is TO_RESEND:
            segment.become(SegmentEvent.MISSED)
        elif now - segment.posted_at >= (self.round_trips.smoothed or self._timeout()):
            # else the ACK may be older than the segment
            self._leave(segment)
            self._again(segment, SegmentEvent.MISSED)
            self._congestion.lost(segment.sequence, self.next_sequence, self.round_trips.queued())
            self._statistics.num_fast_retrans += 1

    @cfunc
    def _again(self, segment: SendSegment, event: SegmentEvent) -> None:
        segment.become(event)
        self._resends.append(segment)
        self._recover = self.next_sequence

    # -- time

    @cfunc
    def _probe_at(self) -> int | None:
        """When the oldest segment is sent again to find out what has become of the others.

        Long before it times out, where round trips are short: it may be that nothing is under
        way any more that could make a duplicate ACK. The first ones go in even steps, as one of
        them or its answer may be lost too; then twice as long each time, up to that timeout.
        """
        if not (self.round_trips.smoothed and self.outstanding and self._controls):
            return None
        head: SendSegment | None = self._sent[window_slot(after(self.acked))]
        if head is None or head.state is not IN_FLIGHT:
            return None
        wait: int = self._probe_after << max(0, self._probes - PROBES_EVEN)
        return self._news_at + wait if wait < self._timeout() else None

    @cfunc
    def _probe(self, now: int) -> None:
        at = self._probe_at()
        if at is None or at > now:
            return
        head: SendSegment | None = self._sent[window_slot(after(self.acked))]
        assert head is not None, "there is something to probe with"
        self._leave(head)
        self._again(head, SegmentEvent.MISSED)
        head.early = True
        self._probes += 1
        self._statistics.num_timeout_retrans += 1
        self._statistics.num_tail_probes += 1

    @ccall
    def expire(self, now: int) -> None:
        """Move segments that time out to the resend list, or end the connection."""
        if self.suspect_at is not None and self.suspect_at <= now:
            self._find_lost(now)
        expired: list[SendSegment] = self.in_flight.expire(now)
        if expired:
            self._have_expired(expired)
        self._probe(now)

    def _have_expired(self, expired: list[SendSegment]) -> None:
        self._duplicates = 0  # whatever they told of is among what is sent again now
        # the highest number first, as each goes before those that are on the list already
        expired.sort(key=lambda segment: distance(segment.sequence, self.acked), reverse=True)
        for segment in expired:
            self._deliveries.left(segment)
            segment.slot = NO_SLOT
            self._again(segment, SegmentEvent.EXPIRED)
            self._congestion.expired(segment.sequence, self.next_sequence)
            self._statistics.num_timeout_retrans += 1
            if segment.sequence == after(self.acked):
                self._timed_out(segment)

    def _timed_out(self, segment: SendSegment) -> None:
        """The oldest segment has timed out without any news: that is a try.

        Only the oldest one's timeouts double in step with the tries. Another may be sent again
        before the oldest has timed out at all, and be one try ahead: the last one, the longest.
        """
        self._backoff += 1
        self._tries += 1
        retries_max = self.limits.retries_max
        if retries_max and self._tries > retries_max and not self.failure:
            self._doubt(segment)

    def _doubt(self, segment: SendSegment) -> None:
        verdict = self._verdict()
        if verdict is PathVerdict.ALIVE:
            self._statistics.num_silent_extensions += 1
            return
        self.failure = (
            f"packet {segment.sequence} was tried {self._tries} times without an answer (sent "
            f"{segment.attempts} times, early resends included), and the path is {verdict.value}"
        )

    @ccall
    def deadline(self) -> int | None:
        """When `expire` will find something, or an ACK is due; None when nothing will happen."""
        timeout, probe = self.in_flight.deadline(), self._probe_at()
        for at in (probe, self.suspect_at):
            if at is not None:
                timeout = at if timeout is None else min(timeout, at)
        if not self.ack_needed:
            return timeout
        return self.ack_at if timeout is None else min(timeout, self.ack_at)

    def flush(self) -> list[SendSegment]:
        """Give up everything that is not acknowledged; it is free, in the order of its numbers."""
        given_up = []
        for count in range(1, self.outstanding + 1):
            segment = self._sent[window_slot(after(self.acked, count))]
            assert segment is not None, "a segment that is not acknowledged is kept"
            self._sent[window_slot(segment.sequence)] = None
            self._leave(segment)
            segment.become(SegmentEvent.FLUSHED)
            given_up.append(segment)
        self.acked = after(self.next_sequence, -1)
        assert not len(self.in_flight), "what is given up is not in flight"
        self.outstanding = self._held = self._known = 0
        self.suspect_at = None
        return given_up

    def check_invariants(self) -> None:
        """See that everything here fits together; for tests."""
        kept = [segment for segment in self._sent if segment is not None]
        assert len(kept) == self.outstanding <= self.limits.window - 1
        assert self.outstanding == distance(self.next_sequence, self.acked) - 1
        for segment in kept:
            assert segment.state in (IN_FLIGHT, TO_RESEND, HELD), segment
            assert (segment.state is IN_FLIGHT) is (segment.slot != NO_SLOT)
            assert (segment.state is TO_RESEND) is (segment in set(self._resends))
            assert 0 < distance(segment.sequence, self.acked) <= self.outstanding
        assert self._held == sum(s.state is HELD for s in kept) == self._known.bit_count()
        assert len(self.in_flight) == sum(s.state is IN_FLIGHT for s in kept)
        assert (self.in_flight.deadline() is None) is (len(self.in_flight) == 0)
