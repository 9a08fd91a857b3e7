"""The clock of emulated devices, its parameters, and the links of devices."""

from __future__ import annotations

import pytest
from ompy.engine.virtual_engine import Scheduler
from ompy.frameworks.nic.clock import Cost, DeviceClock, Stage
from ompy.frameworks.nic.clock_parameters import Timing, clock_parameters, timed
from ompy.net.base import Link, LinkError
from ompy.net.virtual.virtual_network import Fabric, Rail, VirtualNetwork

from tests.support.networks import two_networks

PUT = Timing("put", "a put", Cost(200, 4_000, 10, 64), "a source")
WIRE = Timing("link", "the link", Link(1_000, 40_000), "another")


@pytest.mark.parametrize(
    ("cost", "size", "ns"),
    [
        (Cost(200), 1 << 20, 200),
        (Cost(200, 1_000), 5_000, 5_200),
        (Cost(0, 10_000), 5_000, 500),
        (Cost(100, 0, 10, 64), 0, 110),  # a message of no bytes is a packet, too
        (Cost(100, 0, 10, 64), 64, 110),
        (Cost(100, 0, 10, 64), 65, 120),
    ],
)
def test_costs(cost: Cost, size: int, ns: int) -> None:
    assert cost.of(size) == ns


def test_a_stage_does_one_thing_after_another() -> None:
    stage = Stage()
    assert [
        stage.schedule_work(0, 10),
        stage.schedule_work(5, 10),
        stage.schedule_work(100, 10),
    ] == [10, 20, 110]
    assert stage.busy == 30


def test_parameters_say_what_work_takes() -> None:
    declared = clock_parameters(PUT, WIRE)
    units = {one.name: (one.default, one.unit) for one in declared if one.unit}
    assert units == {
        "put_ns": (200, "ns"),
        "put_rate": (4_000, "MB/s"),
        "put_packet_ns": (10, "ns"),
        "put_packet": (64, "bytes"),
        "link_ns": (1_000, "ns"),
        "link_mbits": (40_000, "Mbit/s"),
    }
    values = {one.name: one.default for one in declared}
    assert timed(values, [PUT, WIRE]) == {"put": PUT.takes, "link": WIRE.takes}
    changed = timed({**values, "put_ns": 7, "link_mbits": 8}, [PUT, WIRE])
    assert changed == {"put": Cost(7, 4_000, 10, 64), "link": Link(1_000, 8)}
    assert all("(a source)" in one.help for one in declared if one.name.startswith("put"))


def world(*, chosen: bool) -> tuple[Scheduler, list[VirtualNetwork]]:
    scheduler = Scheduler(1)
    engines = [scheduler.engine(), scheduler.engine()]
    fabric = Fabric(scheduler, [Rail("rail0", 10_000, 0, 10_000, chosen=chosen)], [0, 1])
    return scheduler, [VirtualNetwork(fabric, n, engine) for n, engine in enumerate(engines)]


@pytest.mark.parametrize(("chosen", "took"), [(False, 1_000 + 200), (True, 10_000 + 800)])
def test_a_device_has_a_link_of_its_own(chosen: bool, took: int) -> None:
    scheduler, (left, right) = world(chosen=chosen)
    link = Link(1_000, 40_000)
    sender = left.datagram("rail0/0", link=link)
    receiver = right.datagram("rail0/1", link=link)
    times: list[int] = []

    def send() -> None:
        sender.send(memoryview(bytes(1_000)), receiver.address)

    def receive() -> None:
        engine = right._engine
        room = memoryview(bytearray(1_000))
        engine.wait_until(lambda: receiver.receive_into(room) is not None)
        times.append(engine.now())

    readiness = right.readiness()
    readiness.add(receiver, receiver)
    scheduler.run_engines([send, receive])
    assert times[0] - took in range(500)  # and the polls


@pytest.mark.parametrize("chosen", [False, True])
def test_streams_take_a_link_too(chosen: bool) -> None:
    scheduler, (left, right) = world(chosen=chosen)
    link = Link(1_000, 40_000)
    listener = right.listen("rail0/1", link=link)
    times: list[int] = []

    def call() -> None:
        stream = left.connect(listener.address, link=link)
        engine = left._engine

        def up() -> bool:
            try:
                return stream.send([memoryview(b"x")]) > 0
            except LinkError:
                return False

        engine.wait_until(up)
        times.append(engine.now())

    scheduler.run_engines([call, lambda: None])
    assert times[0] // 1_000 == (20 if chosen else 2)  # there and back


def test_simulated_ranks_have_links_of_devices_too() -> None:
    """What they ask for goes over a line to the scheduler's process."""
    link = Link(1_000, 40_000)
    with two_networks("simulated") as made:
        sender = made.left.datagram(made.hosts[0], link=link)
        receiver = made.right.datagram(made.hosts[1], link=link)
        assert sender.send(memoryview(b"x"), receiver.address)
        made.until(lambda: receiver.receive_into(memoryview(bytearray(9))) is not None)
        listener = made.right.listen(made.hosts[1], link=link)
        made.left.connect(listener.address, link=link)
        made.until(lambda: listener.accept() is not None)


def test_effects_happen_when_the_clock_says() -> None:
    scheduler, (left, _) = world(chosen=True)
    engine = left._engine
    seen: list[int] = []

    def program() -> None:
        clock = DeviceClock(engine, left, wanted=True)
        clock.at(500, lambda: seen.append(engine.now()))
        clock.at(0, lambda: seen.append(engine.now()))
        still = DeviceClock(engine, left, wanted=False)
        still.at(10_000, lambda: seen.append(engine.now()))
        engine.spend(1_000)

    scheduler.run_engines([program, lambda: None])
    assert seen == [0, 0, 500]
