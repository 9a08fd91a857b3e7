"""The stations of an adapter's clock, and what comes of the figures of hca and ofi_emulated."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.engine.virtual_engine import Scheduler
from ompy.frameworks.nic.clock import Cost, DeviceClock
from ompy.frameworks.nic.clock_parameters import Timing
from ompy.frameworks.nic.stations import NAMES, Stations
from ompy.net.base import Link
from ompy.net.virtual.virtual_network import Fabric, Rail, VirtualNetwork
from ompy_components.nic.hca import timings as hca
from ompy_components.nic.ofi_emulated import timings as ofi_emulated

BEGIN = 1_000_000  # ns
COSTS: dict[str, Cost | Link] = {
    "post": Cost(40),
    "inline": Cost(5, 1_000),
    "fetch": Cost(300),
    "send": Cost(0, 1_000, 20, 100),
    "receive": Cost(0, 2_000, 10, 100),
    "complete": Cost(7),
    "register": Cost(1_000, 0, 100, 4_000),
    "deregister": Cost(900),
    "link": Link(500, 1_000),
}


def stations(costs: Any = COSTS, *, wanted: bool = True) -> Stations:
    scheduler = Scheduler(1)
    engine = scheduler.engine()
    scheduler.time = BEGIN
    network = VirtualNetwork(Fabric(scheduler, [Rail("rail0")], [0]), 0, engine)
    return Stations(DeviceClock(engine, network, wanted=wanted), costs)


def test_the_processor_does_one_thing_after_another_and_fetches_overlap() -> None:
    made = stations()
    assert made.posted(100, inline=False) == BEGIN + 40 + 300
    assert made.posted(100, inline=False) == BEGIN + 80 + 300
    assert made.posted(100, inline=True) == BEGIN + 120 + 5 + 100
    made.registered(8_000)
    assert made.posted(0, inline=False) == BEGIN + 225 + 1_000 + 2 * 100 + 40 + 300
    made.deregistered()
    assert made.posted(0, inline=False) == BEGIN + 1_425 + 40 + 900 + 40 + 300


def test_a_long_message_leaves_packet_by_packet() -> None:
    made = stations()
    assert made.sent(BEGIN + 50, 1_000) == BEGIN + 50 + 20 + 100, "the first packet"
    whole = BEGIN + 50 + 10 * 20 + 1_000
    assert made.sent(0, 10) == whole + 20 + 10, "behind all of it"


def test_what_arrives_was_taken_in_as_it_came() -> None:
    made = stations()
    assert made.taken() == BEGIN
    made.arrived(1_000)
    assert made.taken() == BEGIN + 10 + 50, "only the last packet is left to do"
    made.arrived(1_000)
    assert made.taken() == BEGIN + 60 + 10 * 10 + 500, "the engine is slower than the link"
    assert made.completed() == made.taken() + 7


def test_without_a_clock_all_is_at_once() -> None:
    made = stations(wanted=False)
    made.registered(1 << 20)
    made.arrived(1 << 20)
    seen: list[int] = []
    made.at(10_000, lambda: seen.append(1))
    assert made.link is None
    assert made.posted(9, inline=False) == made.sent(500, 9) == made.completed() == BEGIN
    assert seen == [1]


@pytest.mark.parametrize("device", [hca, ofi_emulated])
def test_small_messages_take_what_was_published(device: Any) -> None:
    costs = {timing.name: timing.takes for timing in device.TIMINGS}
    assert set(costs) == {*NAMES, "link"}
    near, far = stations(costs), stations(costs)
    leaves = near.sent(near.posted(8, inline=True), 8)
    far.arrived(8)
    took = leaves + costs["link"].latency + far.completed() - 2 * BEGIN
    assert took in range(device.SMALL - 2, device.SMALL + 3)


@pytest.mark.parametrize("device", [hca, ofi_emulated])
def test_every_number_says_where_it_is_from(device: Any) -> None:
    for timing in device.TIMINGS:
        assert isinstance(timing, Timing)
        assert any(mark in timing.source for mark in ("openucx", "20", "brief")), timing
