"""Every single and every double fault on every packet of small exchanges, and longer lossy runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from random import Random

import pytest
from ompy_components.btl.usnic.headers import FRAG, HEADER_SIZE, SEAL_SIZE, Header, pack_into
from ompy_components.btl.usnic.reliability.limits import Limits
from ompy_components.btl.usnic.reliability.machine import PathVerdict
from ompy_components.btl.usnic.reliability.receive_window import Arrival
from ompy_components.btl.usnic.seal import Seal, recipient

from tests.support.effort import THOROUGH, effort
from tests.support.usnic_pair import (
    FAULTS,
    LATENCY,
    MS,
    US,
    Deliver,
    Fault,
    Message,
    Side,
    Wire,
    corrupt,
    delay,
    drop,
    duplicate,
    fine,
)

DOUBLES_MAX = 5  # packets of the exchanges whose double faults CI tries; nightly tries all
NEAR_THE_END = (65533, 65535)  # first numbers, so that even the smallest exchange wraps
# name: texts each side sends, gap between sends in us, entries of the window
EXCHANGES: Mapping[str, tuple[int, int, int, int]] = {
    "one": (1, 0, 0, 4096),
    "two at once": (2, 0, 0, 4096),
    "four at once": (4, 0, 0, 4096),
    "one each": (1, 1, 0, 4096),
    "three each": (3, 3, 0, 4096),
    "four, through a window of two": (4, 0, 0, 3),
    "three, far apart": (3, 0, 200, 4096),
    "three each, far apart": (3, 3, 200, 4096),
    "two each, window of one": (2, 2, 0, 2),
}


def exchange(name: str, faults: Mapping[int, Fault]) -> Wire:
    left, right, gap, window = EXCHANGES[name]
    wire = Wire(Limits(window=window), first=NEAR_THE_END, faults=faults)
    for number in range(max(left, right)):
        for side, count in zip(wire.sides, (left, right), strict=True):
            if number < count:
                side.send(b"%d of %d" % (number, side.rank))
        if gap:
            until = wire.now + gap * US
            while wire.now < until:
                for side in wire.sides:
                    side.progress(wire.now)
                deadlines = [side.deadline() for side in wire.sides]
                times = [at for at in deadlines if at is not None and at > wire.now]
                times += [at for at, *_ in wire._under_way[:1]]
                if not times or min(times) > until:
                    wire.now = until
                    break
                wire.step()
    wire.settle()
    return wire


def check(name: str, wire: Wire, faults: Mapping[int, Fault]) -> None:
    left, right, _, _ = EXCHANGES[name]
    sent = [[b"%d of %d" % (n, rank) for n in range(c)] for rank, c in enumerate((left, right))]
    for side in wire.sides:
        assert sorted(side.got) == sent[1 - side.rank]
        assert side.done == sent[side.rank]
        assert not side.machine.failure
    assert wire.hit == dict(faults), "a fault was not delivered"


@pytest.mark.parametrize("name", EXCHANGES)
def test_single_and_double_faults(name: str) -> None:
    wire = exchange(name, {})
    check(name, wire, {})
    packets = wire.sent
    assert packets <= 12
    doubles = THOROUGH or packets <= DOUBLES_MAX
    runs = 0
    for index, fault in product(range(packets), FAULTS.values()):
        once = {index: fault}
        wire = exchange(name, once)
        check(name, wire, once)
        runs += 1
        if not doubles:
            continue
        # the second fault may strike what was sent because of the first
        for other, second in product(range(index + 1, wire.sent), FAULTS.values()):
            both = {**once, other: second}
            check(name, exchange(name, both), both)
            runs += 1
    assert runs >= 4 * packets + doubles * 16 * packets * (packets - 1) // 2


def mixed(rate: float) -> object:
    def chance(random: Random) -> Fault:
        if random.random() < rate:
            return drop
        return random.choices((fine, duplicate, delay, corrupt), (70, 10, 10, 10))[0]

    return chance


@pytest.mark.parametrize("seed", range(effort(1)))
@pytest.mark.parametrize("selective", [True, False])
@pytest.mark.parametrize("loss", [0.02, 0.3])
def test_lossy_runs_across_65535(loss: float, selective: bool, seed: int) -> None:
    messages = 4000 if THOROUGH else 650
    wire = Wire(
        Limits(window=64, selective=selective),
        first=(65000, 64950),
        chance=mixed(loss),  # type: ignore[arg-type]
        seed=seed,
    )
    texts = [[b"%d:%d" % (rank, number) for number in range(messages)] for rank in range(2)]
    for rank, side in enumerate(wire.sides):
        for text in texts[rank]:
            side.send(text)
    wire.settle()
    for rank, side in enumerate(wire.sides):
        assert sorted(side.got) == sorted(texts[1 - rank])
        assert side.done == texts[rank]
        assert side.machine.next_sequence < 64950 - 64, "the numbers have not wrapped"
        counted = side.statistics
        assert side.stalls, "the window was never full"
        assert min(
            counted.num_resends,
            counted.num_timeout_retrans or (selective and loss < 0.1),
            counted.num_fast_retrans,
            counted.num_dup_acks,
            counted.num_old_dup_acks,
            counted.num_dup_recvs,
            counted.num_oow_low_recvs,
        ), counted
        assert side.seal.refused
    assert set(wire.hit.values()) == {drop, duplicate, delay, corrupt}


def test_more_than_a_window() -> None:
    """Thoroughly 70,000 packets one way: every number is used, some twice."""
    messages = 70_000 if THOROUGH else 5_000

    def chance(random: Random) -> Fault:
        return drop if random.random() < 0.001 else fine

    wire = Wire(first=(62_000, 7), chance=chance)
    left, right = wire.sides
    for number in range(messages):
        left.send(number.to_bytes(4))
    while wire.step():
        pass
    left.machine.check_invariants()
    assert sorted(right.got) == [number.to_bytes(4) for number in range(messages)]
    assert left.statistics.num_fast_retrans
    assert left.machine.next_sequence == (62_000 + messages) % 65536


def outage(until: int) -> Sequence[object]:
    """A wire on which nothing gets through before `until`."""
    wire = Wire()

    def hole(packet: bytes, now: int) -> Deliver:
        return [] if now < until else fine(packet, now)

    wire._chance = lambda _: hole
    wire.sides[0].send(b"through")
    wire.settle()
    return [wire, *wire.sides]


def test_the_longest_outage_and_the_shortest_that_is_too_long() -> None:
    """The last try leaves 25.1 - 2 s after the first; an outage is survived if it ends before."""
    limits = Limits()
    last_try = limits.patience - limits.timeout(limits.retries_max + 1)
    _, near, far = outage(last_try)
    assert (far.got, near.done, near.machine.failure) == ([b"through"], [b"through"], "")
    _, near, far = outage(last_try + 1)
    assert (far.got, near.done, near.given_up) == ([], [], [b"through"])
    assert near.machine.failure == (
        "packet 0 was tried 16 times without an answer (sent 16 times, early resends included), "
        "and the path is unknown"
    )
    assert near.wire.now == limits.patience


@pytest.mark.parametrize("verdict", PathVerdict)
def test_a_silent_peer(verdict: PathVerdict) -> None:
    """Who is alive and silent for an hour is not given up; who is dead, or may be, is."""
    hour = 3_600_000 * MS
    wire = Wire()

    def busy(packet: bytes, now: int) -> Deliver:
        return [(max(now, hour), packet)]  # the socket keeps it until the rank looks

    wire._chance = lambda _: busy
    near, far = wire.sides
    near.verdict = verdict
    near.send(b"are you there")
    wire.settle(until=2 * hour)
    assert near.verdicts
    if verdict is PathVerdict.ALIVE:
        assert (near.done, near.machine.failure) == ([b"are you there"], "")
        assert near.statistics.num_silent_extensions > 1000
        assert far.statistics.num_oow_low_recvs > 1000
    else:
        assert near.given_up == [b"are you there"]
        assert f"the path is {verdict.value}" in near.machine.failure
    assert far.got == [b"are you there"], "once, and not more often"


def test_resends_back_off() -> None:
    wire = Wire(Limits(retries_max=6))
    times: list[int] = []

    def note(packet: bytes, now: int) -> Deliver:
        times.append(now)
        return []

    wire._chance = lambda _: note
    wire.sides[0].send(b"x")
    wire.settle()
    gaps = [(late - early) // MS for early, late in zip(times, times[1:], strict=False)]
    assert gaps == [100, 200, 400, 800, 1600, 2000]


def test_no_more_back_off_once_a_resend_is_answered() -> None:
    """The timeouts double while it is not known that they are long enough."""
    machine = Wire(first=(0, 0)).sides[0].machine
    first, second, third = Message(b"1"), Message(b"2"), Message(b"3")
    machine.post(first, 0)
    assert machine.acknowledge(0, MS) == [first]  # a round trip takes a millisecond
    machine.post(second, MS)
    for now in (101, 301):
        machine.expire(now * MS)
        machine.repost(second, now * MS)
    assert machine.in_flight.deadline() == 701 * MS
    assert machine.acknowledge(0, 302 * MS) == []  # a duplicate ACK: it may be of an older one
    machine.repost(second, 302 * MS)
    assert machine.in_flight.deadline() == 702 * MS
    assert machine.acknowledge(1, 303 * MS) == [second]  # a round trip later: that was needed
    machine.post(third, 303 * MS)
    assert machine.in_flight.deadline() == 403 * MS
    machine.check_invariants()


def test_an_answer_that_comes_late_does_not_end_the_back_off() -> None:
    """The first one may be answered: 100 ms are too short then."""
    machine = Wire(first=(0, 0)).sides[0].machine
    first, second, third = Message(b"1"), Message(b"2"), Message(b"3")
    machine.post(first, 0)
    machine.acknowledge(0, MS)
    machine.post(second, MS)
    machine.expire(101 * MS)
    machine.repost(second, 101 * MS)
    assert machine.acknowledge(1, 201 * MS) == [second]
    machine.post(third, 201 * MS)
    assert machine.in_flight.deadline() == 401 * MS
    machine.acknowledge(2, 390 * MS)
    machine.post(Message(b"4"), 390 * MS)
    assert (machine.in_flight.deadline() or 0) > 390 * MS + 189 * MS, (
        "as long as that took, and more"
    )


def test_a_forged_packet_with_a_valid_number_is_ignored() -> None:
    wire = Wire()
    near, far = wire.sides
    near.send(b"true")
    forged = memoryview(bytearray(SEAL_SIZE + HEADER_SIZE + 4))
    pack_into(Header(0, FRAG, 0, 0, 4), forged[SEAL_SIZE:])
    forged[-4:] = b"lies"
    far.arrive(bytes(forged), 0)
    Seal(b"another job's secret".ljust(32), 0, 0).close(forged, recipient(1, 0))
    far.arrive(bytes(forged), 0)
    assert (far.got, far.seal.refused) == ([], 2)
    assert not far.machine.ack_needed, "no answer either"
    wire.settle()
    assert (far.got, near.done) == ([b"true"], [b"true"])


@pytest.mark.parametrize("sealed", [False, True])
def test_a_replayed_packet_is_taken_once(sealed: bool) -> None:
    """By the machine, which answers it, and by the seal, behind which nobody sees it."""
    wire = Wire(faults={0: duplicate}, sealed=sealed)
    near, far = wire.sides
    near.send(b"pay 100")
    wire.settle()
    assert far.got == [b"pay 100"]
    assert far.statistics.num_replayed_recvs == 1
    assert far.statistics.num_oow_low_recvs == (not sealed)


@pytest.mark.parametrize("later", [0, 1, 4095, 65_536])
def test_a_recorded_packet_is_not_taken_when_its_number_comes_again(later: int) -> None:
    """The sequence number is right again, as it is every 65,536 packets; the seal's is not."""
    wire = Wire(sealed=True, first=(65_535, 0))
    near, far = wire.sides
    recorded: list[bytes] = []
    carry = wire.carry

    def spy(sender: Side, packet: bytes) -> None:
        recorded.append(packet)
        carry(sender, packet)

    wire.carry = spy  # type: ignore[method-assign]
    near.send(b"pay 100")
    wire.settle()
    again = Wire(sealed=True, first=(65_535, 0))  # as the machines are after as many packets
    for side, before in zip(again.sides, wire.sides, strict=True):
        side.seal = before.seal
    packet = memoryview(bytearray(recorded[0]))
    for _ in range(later):
        near.seal.close(packet, recipient(1, 0))
        far.seal.open(packet)
    near, far = again.sides
    far.arrive(recorded[0], again.now)
    assert (far.got, far.statistics.num_replayed_recvs) == ([], 1)
    assert far.machine.receive(65_535, 0) is Arrival.NEW, "the machine alone would take it"


def test_4095_packets_and_no_more() -> None:
    """The window is open while fewer than its entries less one are unacknowledged."""
    wire = Wire(first=(65000, 0))
    near, far = wire.sides
    near.machine._congestion.segments = 4095  # the window alone counts
    for number in range(4100):
        near.send(b"%d" % number)
    near.progress(0)
    assert (near.machine.outstanding, wire.sent, len(near.waiting)) == (4095, 4095, 5)
    assert not near.machine.window_open()
    wire.settle()
    assert len(far.got) == 4100
    assert wire.now < 100 * MS, "nothing was lost, so nothing had to be sent again"


def test_a_burst_of_losses_costs_no_timeout() -> None:
    """The ACK that ends at the next gap resends what is missing there, while others are sent."""
    lost = range(8, 16)
    wire = Wire(Limits(window=33), faults=dict.fromkeys(lost, drop))
    near, far = wire.sides
    for number in range(200):
        near.send(b"%d" % number)
    wire.settle()
    assert len(far.got) == 200
    assert set(wire.hit) == set(lost)
    assert near.statistics.num_timeout_retrans == 0
    assert near.statistics.num_fast_retrans >= len(lost)
    assert wire.now < 10 * MS


def test_duplicates_do_not_start_chains_of_resends() -> None:
    """A late duplicate makes a duplicate ACK; the packet behind that is under way, not missing."""

    def late_twin(packet: bytes, now: int) -> Deliver:
        return [(now + LATENCY, packet), (now + 7 * LATENCY, packet)]

    def chance(random: Random) -> Fault:
        return late_twin if random.random() < 0.1 else fine

    wire = Wire(Limits(window=3), chance=chance)
    near, far = wire.sides
    for number in range(1000):
        near.send(b"%d" % number)
    wire.settle()
    assert len(far.got) == 1000
    twins = len(wire.hit)
    assert twins > 50
    assert near.statistics.num_dup_acks > 10
    assert near.statistics.num_resends == 0, "nothing was lost"
