"""The small structures of usnic: numbers, states, windows, the list of resends, headers, MACs."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ompy_components.btl.usnic import headers
from ompy_components.btl.usnic.headers import ACK, CHUNK, FRAG, OPEN, BadPacket, Header
from ompy_components.btl.usnic.reliability.congestion_window import (
    FIRST,
    LEAST,
    CongestionWindow,
    Unlimited,
)
from ompy_components.btl.usnic.reliability.limits import Limits
from ompy_components.btl.usnic.reliability.machine import PathVerdict, Reliability
from ompy_components.btl.usnic.reliability.receive_window import Arrival, ReceiveWindow
from ompy_components.btl.usnic.reliability.segments import NO_SLOT, ResendList, SendSegment
from ompy_components.btl.usnic.reliability.sequence import (
    SPACE,
    WINDOW,
    after,
    distance,
    window_slot,
)
from ompy_components.btl.usnic.reliability.states import (
    TABLE,
    SegmentEvent,
    SegmentState,
    WrongState,
    follow,
)
from ompy_components.btl.usnic.seal import Replayed, Seal, recipient
from ompy_components.btl.usnic.statistics import Statistics

MS = 1_000_000
numbers = st.integers(0, SPACE - 1)

# every pair of state and event: `.` cannot happen
SNAPSHOT = """
            enqueued   posted     expired    missed     arrived    acked      flushed
free        to-send    in flight  .          .          .          .          .
to-send     .          in flight  .          .          .          .          free
in flight   .          .          to-resend  to-resend  held       free       free
to-resend   .          in flight  .          to-resend  held       free       free
held        .          .          .          .          .          free       free
"""


@settings(deadline=None)
@given(numbers, st.integers(-WINDOW, WINDOW))
def test_distance_undoes_after(number: int, count: int) -> None:
    assert distance(after(number, count), number) == count


@pytest.mark.parametrize(
    ("sequence", "base", "expected"),
    [(0, 65535, 1), (65535, 0, -1), (5, 5, 0), (32767, 0, 32767), (32768, 0, -32768)],
)
def test_distance(sequence: int, base: int, expected: int) -> None:
    assert distance(sequence, base) == expected


@settings(deadline=None)
@given(numbers)
def test_slots_follow_each_other(number: int) -> None:
    assert window_slot(after(number)) == (window_slot(number) + 1) % WINDOW


def test_states() -> None:
    lines = [f"{'':12}" + "".join(f"{event.value:11}" for event in SegmentEvent)]
    for state in SegmentState:
        ends = [TABLE.get((state, event)) for event in SegmentEvent]
        cells = "".join(f"{end.value if end else '.':11}" for end in ends)
        lines.append(f"{state.value:12}{cells}")
    assert "\n".join(line.rstrip() for line in lines) == SNAPSHOT.strip("\n")


@pytest.mark.parametrize(("state", "event"), list(product(SegmentState, SegmentEvent)))
def test_follow(state: SegmentState, event: SegmentEvent) -> None:
    if (state, event) in TABLE:
        assert follow(state, event) is TABLE[state, event]
    else:
        with pytest.raises(WrongState, match=f"{state.value} cannot be {event.value}"):
            follow(state, event)


@settings(deadline=None)
@given(numbers, st.permutations(range(12)))
def test_receive_window_takes_each_once(first: int, order: list[int]) -> None:
    window = ReceiveWindow(first)
    taken: set[int] = set()
    for ahead in order:
        number = after(first, ahead)
        assert window.judge(number) is Arrival.NEW
        window.record(number)
        taken.add(ahead)
        gap = min(set(range(13)) - taken)
        assert window.expected == after(first, gap)
        assert window.acknowledgement == after(first, gap - 1)
        assert window.judge(number) is (Arrival.LOW if ahead < gap else Arrival.DUPLICATE)


@settings(deadline=None)
@given(numbers, st.sets(st.integers(0, 60)), st.integers(0, 9))
def test_what_has_arrived_behind_a_gap(first: int, taken: set[int], most: int) -> None:
    window = ReceiveWindow(first)
    for ahead in sorted(taken, reverse=True):
        window.record(after(first, ahead))
    missing = min(set(range(62)) - taken)
    behind = [ahead - missing - 1 for ahead in sorted(taken) if ahead > missing]
    assert window.has_gap() is bool(behind)
    told = window.behind_gap(most)
    assert len(told) == min(most, (behind[-1] + 8) // 8 if behind else 0)
    bits = [8 * n + bit for n, byte in enumerate(told) for bit in range(8) if byte >> bit & 1]
    assert bits == [bit for bit in behind if bit < 8 * most]


def test_a_whole_window_behind_a_gap() -> None:
    window = ReceiveWindow(65_000)
    for ahead in range(1, WINDOW):
        window.record(after(65_000, ahead))
    assert window.behind_gap(headers.GAPS_MAX) == b"\xff" * 511 + b"\x7f"  # 4095 numbers
    window.record(65_000)
    assert not window.has_gap()
    assert window.behind_gap(headers.GAPS_MAX) == b""


def bits_of(*numbers: int) -> bytes:
    """An ACK's payload: these, from the one behind the missing one on."""
    return sum(1 << number for number in numbers).to_bytes(8, "little")


def posted(count: int, **limits: Any) -> tuple[Reliability, ResendList, list[SendSegment]]:
    """A machine that knows a round trip of 1 ms and has segments under way, one each 100 us."""
    resends = ResendList()
    made = machine(resends, **limits)
    first, *segments = [SendSegment() for _ in range(count + 1)]
    made.post(first, 0)
    made.acknowledge(0, MS)
    for index, segment in enumerate(segments):
        made.post(segment, MS + index * MS // 10)
    return made, resends, segments


def test_what_was_sent_before_something_that_arrived_is_lost() -> None:
    made, resends, segments = posted(20)
    now = segments[10].posted_at + MS
    assert made.acknowledge(0, now, bits_of(8, 9)) == []
    held = [segments[9], segments[10]]
    assert [segment.state for segment in held] == 2 * [SegmentState.HELD]
    newest = held[1].posted_at - made.round_trips.spread  # packets may overtake each other by that
    lost = [segment for segment in segments[:9] if segment.posted_at <= newest]
    assert list(resends) == lost
    assert 3 < len(lost) < 9
    assert made.under_way() == 20 - 2 - len(lost)
    made.check_invariants()
    for segment in lost:
        made.repost(segment, now)
    assert made.acknowledge(20, 5 * MS) == segments
    assert made.outstanding == 0
    made.check_invariants()


def test_a_lost_resend_is_lost_as_any_other() -> None:
    made, resends, segments = posted(20)
    made.acknowledge(0, segments[10].posted_at + MS, bits_of(9))
    (first, *others) = list(resends)
    made.repost(first, 4 * MS)
    for segment in others:
        made.repost(segment, 5 * MS)
    made.acknowledge(0, 6 * MS, bits_of(*range(19)))
    assert made.suspect_at is not None
    made.expire(made.suspect_at)
    assert list(resends) == [first], "the others went later, and have arrived"
    assert made.acknowledge(20, 9 * MS) == segments


def test_they_turn_out_to_be_lost_without_more_news() -> None:
    """The newest arrived quicker than answers usually do: the others may still come."""
    made, resends, segments = posted(12)
    made.acknowledge(0, segments[11].posted_at + 7 * MS // 10, bits_of(10))
    early = list(resends)
    assert early
    at = made.suspect_at
    assert at is not None
    assert made.deadline() == at
    made.expire(at)
    assert len(list(resends)) > len(early)
    made.check_invariants()


def test_a_queue_that_grows_is_no_loss() -> None:
    """What was posted along with it was answered only now, whatever round trips were before."""
    resends = ResendList()
    made = machine(resends)
    first, *burst = [SendSegment() for _ in range(40)]
    made.post(first, 0)
    made.acknowledge(0, MS)
    for segment in burst[:20]:
        made.post(segment, MS)
    for segment in burst[20:]:
        made.post(segment, 3 * MS)
    assert made.acknowledge(18, 4 * MS, bits_of(0, 1)) == burst[:18]  # 21 has overtaken 19
    assert list(resends) == [], "19 waited 3 ms for the link, as 18 did"
    assert made.suspect_at is not None
    made.expire(made.suspect_at)
    assert list(resends) == [burst[18]], "it has had the time"


@pytest.mark.parametrize("number", [19, 20, 63])
def test_an_ack_of_what_was_never_sent(number: int) -> None:
    """Nothing of it is believed."""
    made, resends, _ = posted(20)
    before = made._statistics.num_bad_acks
    assert made.acknowledge(3, 4 * MS, bits_of(number)) == []
    assert made._statistics.num_bad_acks == before + 1
    assert (made.acked, list(resends)) == (0, [])
    made.check_invariants()


def test_an_ack_about_a_gap_is_told_three_times() -> None:
    """Unless something else arrives; nobody misses it if it is lost."""
    made = machine(ResendList(), 0)
    now = 0
    for round_ in range(2):
        made.receive(4 + round_, now)
        for _ in range(3):
            assert made.ack_needed
            now = made.ack_at
            assert made.take_ack() is not None, "with a packet, which does not say all"
            assert made.ack_needed
            assert made.take_whole_ack(9, now)[1]
        assert not made.ack_needed
    made.receive(0, now)
    made.receive(1, now)
    made.receive(2, now)
    made.receive(3, now)
    assert made.take_whole_ack(9, now) == (5, b"")
    assert not made.ack_needed


def test_when_an_ack_is_due() -> None:
    """50 us after what is new, or when one is due already; at once for what was here before."""
    made = machine(ResendList(), 0, selective=False)
    assert made.receive(0, 1_000) is Arrival.NEW
    assert (made.ack_needed, made.ack_at, made.deadline()) == (True, 51_000, 51_000)
    made.receive(1, 20_000)
    assert made.ack_at == 51_000
    assert made.take_whole_ack(9, 51_000) == (1, b"")
    assert not made.ack_needed
    made.receive(3, 100_000)
    assert made.ack_at == 150_000
    assert made.receive(1, 120_000) is Arrival.LOW
    assert made.ack_at == 120_000
    assert made.take_ack() == 1, "3 is here, 2 is not"
    assert not made.ack_needed
    assert made.receive(3, 130_000) is Arrival.DUPLICATE
    assert (made.ack_needed, made.ack_at) == (True, 130_000)


def test_a_second_ack_of_one_number_resends_what_is_behind_it_once() -> None:
    made, resends, segments = posted(3, selective=False)
    assert made.acknowledge(0, 10 * MS) == []
    assert list(resends) == [segments[0]]
    assert segments[0].slot == NO_SLOT, "its timer has stopped"
    assert made.acknowledge(0, 11 * MS) == []
    assert list(resends) == [segments[0]]
    assert made._statistics.num_fast_retrans == 1
    assert made.acknowledge(SPACE - 1, 12 * MS) == [], "an old one says nothing"
    assert made._statistics.num_old_dup_acks == 1
    made.repost(segments[0], 12 * MS)
    assert segments[0].slot != NO_SLOT
    made.check_invariants()


@pytest.mark.parametrize("limits", [{"selective": False}, {"congestion_control": False}])
def test_without_selective_acks_nothing_is_said_of_gaps(limits: dict[str, bool]) -> None:
    made = machine(ResendList(), 0, **limits)
    made.receive(4, 0)
    assert made.take_ack() is not None
    assert not made.ack_needed
    assert made.take_whole_ack(9, 0)[1] == b""
    assert not made.ack_needed


@settings(deadline=None)
@given(numbers)
def test_ends_of_the_receive_window(first: int) -> None:
    window = ReceiveWindow(first)
    assert window.judge(after(first, -1)) is Arrival.LOW
    assert window.judge(after(first, WINDOW)) is Arrival.HIGH
    last = after(first, WINDOW - 1)
    window.record(last)
    assert window.judge(last) is Arrival.DUPLICATE
    window.record(first)
    assert window.judge(after(first, WINDOW)) is Arrival.NEW
    with pytest.raises(AssertionError, match="taken before"):
        window.record(first)


def machine(resends: ResendList, first: int = 0, **limits: Any) -> Reliability:
    return Reliability(
        Limits(**limits),
        Statistics(),
        resends,
        first=first,
        expected=0,
        verdict=lambda: PathVerdict.ALIVE,
    )


def test_resends_come_in_turn() -> None:
    """Connections take turns; of each the lowest number comes first, and alone if need be."""
    resends = ResendList()
    near, far = machine(resends, 65535), machine(resends, 7)
    segments = {}
    for connection in (near, far):
        for number in range(3):
            segments[connection, number] = SendSegment()
            connection.post(segments[connection, number], 0)
    far.expire(100 * MS)
    near.expire(100 * MS)
    order = [segments[connection, number] for connection in (far, near) for number in range(3)]
    assert list(resends) == order
    assert len(resends) == 6
    assert resends.first() is order[0]
    far.repost(order[0], 100 * MS)
    assert resends.first() is order[1]
    far._congestion.segments = 1  # as much as is under way, so the others of `far` wait
    assert resends.first() is order[3]
    near.acknowledge(1, 101 * MS)
    assert list(resends) == order[1:3]
    assert resends.first() is None
    far.acknowledge(7, 101 * MS)
    assert resends.first() is order[1], "the one all others wait for is never held back"
    far.acknowledge(9, 102 * MS)
    assert not resends


def test_a_lower_number_goes_before_those_that_wait() -> None:
    resends = ResendList()
    only = machine(resends)
    segments = [SendSegment() for _ in range(4)]
    for segment in segments:
        only.post(segment, 0)
    only.expire(100 * MS)
    only.repost(segments[0], 100 * MS)
    only.expire(300 * MS)
    assert list(resends) == segments
    only.check_invariants()


def test_nothing_new_before_what_is_to_be_sent_again() -> None:
    for controlled in (True, False):
        resends = ResendList()
        only = machine(resends, congestion_control=controlled)
        segments = [SendSegment() for _ in range(50)]
        for segment in segments:
            only.post(segment, 0)
        assert only.window_open()
        only.expire(100 * MS)
        assert only.window_open() is not controlled
        again = 0
        while (segment := resends.first()) is not None:
            assert isinstance(segment, SendSegment)
            only.repost(segment, 100 * MS)
            again += 1
        assert again == (LEAST if controlled else 50)
        only.acknowledge(48, 101 * MS)  # nearly all had arrived: one is left to be sent again
        assert len(resends) == controlled
        only.check_invariants()


def test_a_slow_way_is_learnt() -> None:
    """Rounds of 300 ms: the timer of 100 ms runs out, and no other."""
    resends = ResendList()
    only = machine(resends)
    now, expired = 0, []
    for _ in range(5):
        segment = SendSegment()
        only.post(segment, now)
        for passed in range(0, 300, 10):
            only.expire(now + passed * MS)
            if resends.first() is segment:
                only.repost(segment, now + passed * MS)
        now += 299 * MS
        expired.append(segment.attempts - 1)
        assert only.acknowledge(segment.sequence, now) == [segment]
    assert expired == [1, 0, 0, 0, 0]


def test_congestion_window_grows_and_is_halved_once_a_window() -> None:
    window = CongestionWindow(4095, 100)
    assert window.segments == FIRST
    window.acked(FIRST, FIRST)
    assert window.segments == 2 * FIRST
    window.lost(120, 228, queued=True)
    assert window.segments == FIRST
    window.lost(130, 260, queued=True)  # of the same window
    assert window.segments == FIRST
    window.acked(FIRST - 1, FIRST)
    assert window.segments == FIRST
    window.acked(1, FIRST // 2 - 1)
    assert window.segments == FIRST
    window.acked(1, FIRST)
    assert window.segments == FIRST + 1
    for sequence in range(300, 400):
        window.lost(sequence, sequence + 1, queued=True)
    assert window.segments == LEAST
    assert CongestionWindow(2, 0).segments == 2
    for window in (CongestionWindow(4095, 100), CongestionWindow(4095, 100, 4000)):
        window.expired(120, 200)
        assert window.segments == LEAST, "nothing may be under way any more"
        window.acked(LEAST, LEAST)
        assert window.segments == 2 * LEAST
    unlimited = Unlimited(4095)
    unlimited.lost(0, 10, queued=True)
    unlimited.expired(20, 30)
    assert unlimited.segments == 4095


@pytest.mark.parametrize(("share", "queued", "halved"), [
    (0.01, False, False), (0.01, True, True), (0.05, False, True), (0.05, True, True),
])  # fmt: skip
def test_loss_by_chance_and_loss_in_a_queue(share: float, queued: bool, halved: bool) -> None:
    """At 2 % and without a queue it is chance; more, or one behind a queue, is too much traffic."""
    window = CongestionWindow(4095, 0, 1000)
    every = round(1 / share)
    least = window.segments
    for sequence in range(every, 10_000, every):
        window.acked(every - 1, 1000)
        window.lost(sequence, sequence + 1000, queued=queued)
        least = min(least, window.segments)
    assert (least <= 500) is halved


def test_without_a_share_for_chance_every_loss_counts() -> None:
    window = CongestionWindow(4095, 0, 1000, 0.0)
    window.acked(999, 1000)
    window.lost(1000, 2000, queued=False)
    window.acked(999, 1000)
    before = window.segments
    window.lost(3000, 4000, queued=False)
    assert window.segments == before // 2


def test_a_probe_finds_out_what_became_of_the_last_packets() -> None:
    """Two round trips after the last news the oldest goes again; later twice as long each time."""
    resends = ResendList()
    only = machine(resends)
    first, *others = [SendSegment() for _ in range(4)]
    only.post(first, 0)
    assert only.deadline() == 100 * MS, "nothing is known of round trips"
    assert only.acknowledge(0, MS) == [first]
    for segment in others:
        only.post(segment, 2 * MS)
    times, now = [], 2 * MS
    while len(times) < 11:
        at = only.deadline()
        assert at is not None
        only.expire(at)
        assert list(resends) == [others[0]], "it alone"
        only.repost(others[0], at)
        times.append((at - now) // MS)
        now = at
    assert times == 8 * [3] + [6, 12, 24], "a round trip and what it may take longer, doubled"
    assert only._tries == 0, "these are none"
    at = only.deadline()
    assert at is not None
    only.expire(at)
    assert at == 102 * MS
    assert list(resends) == others, "they have timed out, as if no probe was"
    assert only._tries == 1
    assert only.acknowledge(3, at + MS) == others
    assert only._tries == 0
    only.check_invariants()


def test_congestion_window_never_exceeds_the_window() -> None:
    window = CongestionWindow(70, 0)
    for _ in range(100):
        window.acked(50, 70)
    assert window.segments == 70


def test_stays_double_up_to_the_limit() -> None:
    limits = Limits(retrans_timeout=100_000, retrans_timeout_max=500_000, retries_max=3)
    assert [limits.timeout(attempts) for attempts in range(1, 6)] == [
        100_000,
        200_000,
        400_000,
        500_000,
        500_000,
    ]
    assert limits.patience == 1_200_000
    assert Limits().patience == 25_100_000_000
    assert Limits(retries_max=0).patience == 0


HEADERS = [
    # recorded: what the layout of the reference makes of these fields
    (
        Header(0x05060708, FRAG, 0xBEEF, 0xCAFE, 3, 0, 0x41, epoch=0x01020304),
        "0807060504030201" "efbe" "feca" "0300" "02" "01" "0000000000000000" "41",
    ),
    (
        Header(5, ACK, 0, 65535),
        "0500000000000000" "0000" "ffff" "0000" "01" "01" "0000000000000000" "00",
    ),
    (
        Header(5, ACK, 0, 0x0102, 3),
        "0500000000000000" "0000" "0201" "0300" "01" "01" "0000000000000000" "00",
    ),
    (
        Header(5, OPEN, 1, epoch=9),
        "0500000009000000" "0100" "0000" "0000" "06" "00" "0000000000000000" "00",
    ),
    (
        Header(5, CHUNK, 7, None, 9, 0x1122334455667788, 0xFF, 6, 20, 11),
        "0500000000000000" "0700" "0000" "0900" "03" "00" "8877665544332211" "ff"
        "000000" "06000000" "14000000" "0b000000",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("header", "wire"), HEADERS)
def test_headers(header: Header, wire: str) -> None:
    room = memoryview(bytearray(64))
    size = headers.pack_into(header, room)
    assert (bytes(room[:size]).hex(), size) == (wire, header.size)
    packet = memoryview(bytes(room[:size]) + b"p" * header.length)
    assert headers.parse_packet(packet) == header
    assert headers.parse_packet(memoryview(bytes(packet) + bytes(9))) == header, "a wire may pad"
    for cut in range(len(packet)):
        with pytest.raises(BadPacket):
            headers.parse_packet(packet[:cut])


@pytest.mark.parametrize(
    "header",
    [
        Header(1, 7),
        Header(1, 0),
        Header(1, ACK),
        Header(1, ACK, 0, None, 1),
        Header(1, ACK, 0, 1, headers.GAPS_MAX + 1),
        Header(1, CHUNK, 1, None, 5, 0, 0, 0, 10, 0),
        Header(1, CHUNK, 1, None, 5, 0, 0, 1, 10, 6),
        Header(1, CHUNK, 1, None, 0, 0, 0, 1, 10, 6),
    ],
)
def test_headers_that_make_no_sense(header: Header) -> None:
    room = memoryview(bytearray(64 + header.length))
    headers.pack_into(header, room)
    with pytest.raises(BadPacket):
        headers.parse_packet(room)


@settings(deadline=None)
@given(st.binary(max_size=80))
def test_the_parser_raises_one_error_only(data: bytes) -> None:
    try:
        header = headers.parse_packet(memoryview(data))
    except BadPacket:
        return
    assert header.size + header.length <= len(data)


def sealed(seal: Seal, body: bytes, to: bytes) -> bytes:
    packet = memoryview(bytearray(24) + body)
    seal.close(packet, to)
    return bytes(packet)


def test_seal() -> None:
    key = b"j" * 32
    ours, theirs = Seal(key, 0, 0), Seal(key, 1, 2)
    packet = sealed(ours, b"body", recipient(1, 2))
    assert bytes(theirs.open(memoryview(packet))) == b"body"
    refused = [
        packet[:10],
        b"",
        sealed(ours, b"body", recipient(1, 1)),
        sealed(ours, b"body", recipient(2, 2)),
        sealed(Seal(b"x" * 32, 0, 0), b"body", recipient(1, 2)),
        *(
            bytes(
                byte ^ (1 << bit % 8 if index == bit // 8 else 0)
                for index, byte in enumerate(packet)
            )
            for bit in range(8 * len(packet))
        ),
    ]
    for bad in refused:
        with pytest.raises(BadPacket, match="MAC"):
            theirs.open(memoryview(bad))
    assert theirs.refused == len(refused)
    with pytest.raises(Replayed, match="here before"):
        theirs.open(memoryview(packet))
