"""What each rule of a fault script does to packets and connections, under both readinesses."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from ompy.net.base import DeviceGone, LinkError, Stream
from ompy.net.faults.fault_rules import NEVER, FaultRule
from ompy.net.faults.scripted import RETRANSMISSION, ScriptedFaults
from ompy.net.faults.work import OTHER, READ, SHORT, UNTOUCHED, WRITE, Work
from ompy.trace.sink import Trace

from tests.support.networks import World, pump, two_networks

MS = 10**6
LONG = 500 * MS  # in which a busy machine has sent a few packets
PACKETS = [bytes([number]) * 20 for number in range(120)]


@pytest.fixture(params=["real", "virtual"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with two_networks(request.param) as made:
        yield made


def faults(world: World, *rules: FaultRule, rank: int = 0, size: int = 2) -> ScriptedFaults:
    """A script at work in the left network, which is that of `rank`."""
    trace = Trace(rank, world.engines[0].now)
    made = ScriptedFaults(
        rules, rank, size, engine=world.engines[0], network=world.left, trace=trace
    )
    made.record = True
    world.left.install(made)
    return made


def pause(world: World, duration: int) -> None:
    over: list[bool] = []
    world.engines[0].call_later(duration, lambda: over.append(True))
    if hasattr(world.engines[0], "scheduler"):
        world.engines[0].scheduler.after(duration, lambda: None)
    world.until(lambda: bool(over))


def arrivals(world: World, packets: Sequence[bytes], after: int = 30 * MS) -> list[bytes]:
    """Send from left to right; what has come a while later."""
    target = world.right.datagram(world.hosts[1])
    world.left.introduce(1, [target.address])
    source = world.left.datagram(world.hosts[0])
    for packet in packets:
        source.send(memoryview(packet), target.address)
    pause(world, after)
    got, room = [], memoryview(bytearray(100))
    while (found := target.receive_into(room)) is not None:
        got.append(bytes(room[: found[0]]))
    source.close()
    target.close()
    return got


def test_the_nth_packets_are_dropped(world: World) -> None:
    made = faults(world, FaultRule("drop", nth=(1, 3, 120)))
    assert sorted(arrivals(world, PACKETS)) == [PACKETS[1], *PACKETS[3:119]]
    assert made.delivered == [3]
    assert [(one.receiver, one.nth) for one in made.injections] == [
        (1, 1),
        (1, 3),
        (1, 120),
    ]


def test_probability_is_the_rules_own(world: World) -> None:
    drop = FaultRule("drop", probability=0.3, seed=5)
    alone = faults(world, drop)
    arrivals(world, PACKETS)
    # behind another rule that draws, the same packets
    other = ScriptedFaults(
        [drop, FaultRule("delay", delay=1, jitter=10)],
        0,
        2,
        engine=world.engines[0],
        network=world.left,
        trace=Trace(0, world.engines[0].now),
    )
    other.record = True
    flow = other.flow(1, alone.injections[0].rail)
    for packet in PACKETS:
        other.judge(flow, [memoryview(packet)], 20, ordered=False)
    assert [s.nth for s in other.injections if s.rule == 0] == [s.nth for s in alone.injections]
    assert 15 < alone.delivered[0] < 60


def test_what_strikes_one_flow_hangs_on_no_other_flow_and_no_other_rule(world: World) -> None:
    engine, network = world.engines[0], world.left
    drop = FaultRule("corrupt", probability=0.3)
    struck = []
    for rules, others in (((drop,), 0), ((FaultRule("delay", jitter=9), drop, drop), 3)):
        made = ScriptedFaults(
            rules, 0, 3, engine=engine, network=network, trace=Trace(0, engine.now), seed=4
        )
        made.record = True
        for packet in PACKETS:
            for _ in range(others):
                made.judge(made.flow(2, "rail0"), [memoryview(packet)], 20, ordered=False)
            made.judge(made.flow(1, "rail0"), [memoryview(packet)], 20, ordered=False)
        mine = [one for one in made.injections if one.receiver == 1 and rules[one.rule] is drop]
        struck.append([[(s.nth, s.detail) for s in mine if s.rule == n] for n in range(3)])
    (first, *_), (_, second, twin) = struck
    assert len(first) > 20
    assert first == second
    assert first != twin  # the same said twice strikes twice, not the same packets


def test_times_window_and_message(world: World) -> None:
    made = faults(
        world,
        FaultRule("drop", times=2),
        FaultRule("drop", since=10**12),
        FaultRule("drop", message=2, byte=41),
    )
    source, flow = [memoryview(bytes(20))], made.flow(1, "")

    def send() -> int:
        before = sum(made.delivered)
        made.judge(flow, source, 20, ordered=False)
        return sum(made.delivered) - before

    assert [send() for _ in range(3)] == [1, 1, 0]
    made.message_begins(1)
    assert [send() for _ in range(4)] == [0] * 4
    made.message_begins(1)
    assert [send() for _ in range(4)] == [0, 0, 1, 0]  # bytes 41 to 60
    assert made.delivered == [2, 0, 1]


def test_duplicate_and_delay_and_reorder(world: World) -> None:
    made = faults(world, FaultRule("duplicate", nth=(2,)), FaultRule("reorder", nth=(1,), delay=MS))
    got = arrivals(world, PACKETS[:5])
    assert sorted(got) == sorted([*PACKETS[:5], PACKETS[1]])
    assert got[-1] == PACKETS[0]
    assert made.delivered == [1, 1]


def test_corruption_leaves_the_senders_memory(world: World) -> None:
    made = faults(
        world,
        FaultRule("corrupt", nth=(1,)),
        FaultRule("corrupt", nth=(2,), mode="byte", bit=20),
    )
    mine = [bytearray(20), bytearray(20)]
    got = sorted(arrivals(world, mine), key=lambda packet: packet[2])
    assert int.from_bytes(got[0], "big").bit_count() == 1
    assert got[1] == bytes([0, 0, 0xFF]) + bytes(17)
    assert mine == [bytes(20)] * 2
    assert made.delivered == [1, 1]


def test_the_other_peers_and_rails_are_left_alone(world: World) -> None:
    rail = world.left.interfaces()[0].name
    made = faults(
        world,
        FaultRule("drop", ranks=(1,)),
        FaultRule("drop", peers=(0,)),
        FaultRule("drop", rails=("other",)),
        FaultRule("drop", ranks=(1,), direction="in", rails=(rail,), nth=(4,)),
    )
    assert len(arrivals(world, PACKETS)) == 119
    assert made.delivered == [0, 0, 0, 1]


def test_large_packets_alone(world: World) -> None:
    made = faults(world, FaultRule("black_hole", above=20))
    assert sorted(arrivals(world, [bytes(20), bytes(21), bytes(19)])) == [bytes(19), bytes(20)]
    assert made.delivered == [1]


def test_pacing_loses_what_finds_no_room(world: World, request: pytest.FixtureRequest) -> None:
    made = faults(world, FaultRule("rate_limit", rate=1_000_000, buffer=200))
    # 20 bytes take 160 us; while more than 200 bytes wait, there is no room
    got = arrivals(world, PACKETS[:30])
    # a real sender that is held up among them finds room again
    most = 13 if "virtual" in request.node.name else 29
    assert 11 <= len(got) <= most
    assert made.delivered == [30]


def test_black_hole_and_window(world: World) -> None:
    made = faults(world, FaultRule("black_hole", until=LONG))
    assert arrivals(world, PACKETS[:5], LONG + 30 * MS) == []
    assert len(arrivals(world, PACKETS[:5])) == 5
    assert made.delivered == [5]


def test_black_hole_that_a_packet_opens(world: World) -> None:
    made = faults(world, FaultRule("black_hole", nth=(3,), lasts=LONG))
    assert sorted(arrivals(world, PACKETS[:5], LONG + 30 * MS)) == PACKETS[:2]
    assert len(arrivals(world, PACKETS[:5])) == 5
    assert made.delivered == [3]


@pytest.mark.parametrize("what", ["link_down", "nic_gone"])
def test_the_link(world: World, what: str) -> None:
    """Nothing out and nothing in; it fires at its own rank alone."""
    made = faults(world, FaultRule(what, ranks=(0,)), FaultRule(what, ranks=(1,)))
    socket = world.left.datagram(world.hosts[0])
    with pytest.raises(DeviceGone if what == "nic_gone" else LinkError):
        socket.send(memoryview(b"x"), socket.address)
    source = world.right.datagram(world.hosts[1])
    source.send(memoryview(b"x"), socket.address)
    pause(world, MS)
    assert socket.receive_into(memoryview(bytearray(9))) is None
    assert made.delivered == [2, 0]
    socket.close()
    source.close()


def connected(world: World, *rules: FaultRule) -> tuple[ScriptedFaults, Stream, Stream]:
    made = faults(world, *rules)
    accepted, near = world.pair()
    accepted.belongs_to(1)
    world.at_end(accepted.close)
    world.at_end(near.close)
    return made, accepted, near


@pytest.mark.parametrize(
    "rule",
    [
        FaultRule("drop", nth=(1,)),
        FaultRule("corrupt", nth=(1,)),
        FaultRule("delay", nth=(1,), delay=RETRANSMISSION, peers=(1,)),
        FaultRule("black_hole", nth=(1,), lasts=RETRANSMISSION, gives_up=RETRANSMISSION * 2),
        FaultRule("rate_limit", rate=12_000_000),  # 300000 bytes take 0.2 s
    ],
    ids=lambda rule: rule.what,
)
def test_a_connection_comes_late_but_whole(world: World, rule: FaultRule) -> None:
    made, accepted, near = connected(world, rule)
    begun = world.engines[0].now()
    data = bytes(range(256)) * 1200
    assert pump(world, accepted, near, data) == data
    assert made.delivered[0] >= 1
    assert world.engines[0].now() - begun >= RETRANSMISSION


def test_a_connection_has_no_duplicates(world: World) -> None:
    made, accepted, near = connected(world, FaultRule("duplicate"))
    data = bytes(range(256))
    assert pump(world, accepted, near, data) == data
    assert made.delivered == [0]


def test_a_connection_in_a_black_hole_times_out(world: World) -> None:
    made, accepted, _ = connected(world, FaultRule("black_hole", gives_up=MS))
    assert accepted.send([memoryview(b"lost")]) == 4
    pause(world, 5 * MS)
    with pytest.raises(LinkError, match="timed out"):
        accepted.send([memoryview(b"more")])
    assert made.delivered == [1]


@pytest.mark.parametrize("since", [0, LONG], ids=["at once", "later"])
def test_the_link_resets_connections(world: World, since: int) -> None:
    made, accepted, near = connected(world, FaultRule("link_down", since=since))
    if since:
        assert pump(world, accepted, near, b"before") == b"before"
    pause(world, since + MS)
    with pytest.raises(LinkError, match="down"):
        accepted.send([memoryview(b"more")])
    assert made.delivered == [1]

    def ended() -> bool:
        try:
            return near.receive_into(memoryview(bytearray(9))) == 0
        except LinkError:
            return True

    if not hasattr(world.engines[0], "scheduler"):
        world.until(ended)


def test_what_is_held_leaves_when_the_connection_is_closed(world: World) -> None:
    _, accepted, near = connected(world, FaultRule("delay", delay=10**12))
    accepted.send([memoryview(b"good"), memoryview(b"bye")])
    accepted.close()
    got = bytearray()

    def ended() -> bool:
        room: Any = bytearray(9)
        while (count := near.receive_into(memoryview(room))) > 0:
            got.extend(room[:count])
        return count == 0

    world.until(ended)
    assert got == b"goodbye"


def test_rules_sit_where_they_act() -> None:
    one_way = FaultRule("black_hole", ranks=(1,), peers=(2,), direction="in")
    assert [rank for rank in range(4) if one_way.sits_at(rank)] == [2]
    assert one_way.concerns(2, 1, "x")
    assert not one_way.concerns(1, 2, "x")
    both = one_way._replace(direction="both")
    assert both.concerns(1, 2, "x")
    assert both.concerns(2, 1, "x")
    assert not both.concerns(2, 3, "x")
    assert not FaultRule("drop", peers=(1,)).concerns(0, -1, "x"), "nobody knows who that is"
    assert NEVER < 0


def test_work_that_is_posted_ends_with_the_error_of_its_rule(world: World) -> None:
    made = faults(
        world,
        FaultRule("work_error", ranks=(0,), peers=(1,), nth=(2, 4), error=5),
        FaultRule("work_error", rails=("other",), nth=(1,), error=6),
        FaultRule("drop", nth=(1,)),
    )
    assert [world.left.work(1, "rail0").error for _ in range(5)] == [0, 5, 0, 5, 0]
    assert world.left.work(2, "rail0").error == 0
    assert [(one.receiver, one.nth, one.detail) for one in made.injections] == [
        (1, 2, 5),
        (1, 4, 5),
    ]
    assert made.delivered == [2, 0, 0]
    arrivals(world, PACKETS[:2])
    assert made.delivered == [2, 0, 1], "packets and work are counted apart"


def test_work_at_a_nic_whose_links_send_again(world: World) -> None:
    """It is held up or ends with an error; what such links hide strikes nothing."""
    rules = (
        FaultRule("delay", nth=(1, 2), delay=7),
        FaultRule("reorder", nth=(2,), delay=5, jitter=0),
        FaultRule("work_error", nth=(3,), error=11),
        FaultRule("drop", nth=(1,)),
        FaultRule("corrupt", nth=(1,)),
        FaultRule("black_hole"),
        FaultRule("link_down", nth=(5,), lasts=10**18),
    )
    made = faults(world, *rules)
    seen = [world.left.work(1, "aries_0", retries=True) for _ in range(6)]
    down = Work(errno.ENETDOWN, 0)
    assert seen == [Work(0, 7), Work(0, 12), Work(11, 0), UNTOUCHED, down, down]
    assert made.delivered == [2, 1, 1, 0, 0, 0, 2]
    assert world.left.work(1, "rail0") is UNTOUCHED, "where packets are struck work is not held up"


def test_calls_to_files_are_counted_by_those_that_are_about_them(world: World) -> None:
    rules = (
        FaultRule("io_error", nth=(2,), error=5),
        FaultRule("enospc", ranks=(0,), nth=(2,), error=28),
        FaultRule("short_write", nth=(3,)),
        FaultRule("short_write", ranks=(1,), nth=(1,)),
        FaultRule("drop", nth=(1,)),
    )
    made = faults(world, *rules)
    calls = (WRITE, READ, WRITE, OTHER, WRITE)
    assert [world.left.work(-1, kind).error for kind in calls] == [0, 5, 28, 0, SHORT]
    assert made.delivered == [1, 1, 1, 0, 0]
    assert [one.nth for one in made.injections] == [2, 2, 3]
    arrivals(world, PACKETS[:1])
    assert made.delivered[4] == 1, "packets and calls are counted apart"
