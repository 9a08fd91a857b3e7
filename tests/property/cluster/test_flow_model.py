"""Flows that share links: no link has more than it can carry, and none of it is wasted."""

from __future__ import annotations

from math import isclose

from hypothesis import given
from hypothesis import strategies as st
from ompy.runtime.cluster.fair_rates import fair_rates
from ompy.runtime.cluster.flow_network import FlowNetwork

CLOSE = 1 + 1e-6
BANDWIDTHS = st.sampled_from([0.25, 0.5, 1.0, 1.5, 2.0, 8.0])


@st.composite
def networks(draw: st.DrawFn):
    """Capacities of links, and flows: begin in ns, links, bytes, limit."""
    capacities = draw(st.lists(BANDWIDTHS, min_size=1, max_size=6))
    flow = st.tuples(
        st.integers(0, 2000),
        st.lists(st.integers(0, len(capacities) - 1), unique=True, max_size=4),
        st.integers(1, 5000),
        BANDWIDTHS,
    )
    return capacities, draw(st.lists(flow, min_size=1, max_size=12))


def is_fair(ways, limits, rates, capacities) -> None:
    """Bertsekas and Gallager 6.5.2: max-min fair if and only if each flow has a bottleneck."""
    load = dict.fromkeys(range(len(capacities)), 0.0)
    for way, rate in zip(ways, rates, strict=True):
        for link in way:
            load[link] += rate
    assert all(load[link] <= capacities[link] * CLOSE for link in load)
    for way, limit, rate in zip(ways, limits, rates, strict=True):
        assert 0 < rate <= limit * CLOSE
        bottlenecks = [
            link
            for link in way
            if load[link] * CLOSE >= capacities[link]
            and all(
                other <= rate * CLOSE for at, other in zip(ways, rates, strict=True) if link in at
            )
        ]
        assert bottlenecks or isclose(rate, limit, rel_tol=1e-6)


@given(networks())
def test_progressive_filling_is_max_min_fair(network) -> None:
    capacities, flows = network
    ways, limits = [one[1] for one in flows], [one[3] for one in flows]
    rates = fair_rates(ways, limits, dict(enumerate(capacities)))
    is_fair(ways, limits, rates, capacities)


def run_flows(capacities, flows, look=lambda _network, _now: None):
    """When each flow ends; `look` at the network whenever rates are new."""
    network = FlowNetwork()
    for capacity in capacities:
        network.add_link(capacity)
    begins = sorted(range(len(flows)), key=lambda one: flows[one][0])
    ended, now = {}, 0
    while begins or network.under_way():
        due = network.next_due()
        times = [due] if due is not None else []
        times += [flows[begins[0]][0]] if begins else []
        now = max(now, min(times))
        for one in network.take_ended(now):
            ended[one] = now
        while begins and flows[begins[0]][0] <= now:
            one = begins.pop(0)
            _, way, size, limit = flows[one]
            network.begin_flow(now, way, size, limit, one)
        network.share_links(now)
        look(network, now)
    return ended


@given(networks())
def test_rates_that_are_computed_in_parts_are_fair_as_a_whole(network) -> None:
    capacities, flows = network

    def look(made: FlowNetwork, _now: int) -> None:
        under_way = made.under_way()
        ways, limits = [one.way for one in under_way], [one.limit for one in under_way]
        is_fair(ways, limits, [one.rate for one in under_way], capacities)

    ended = run_flows(capacities, flows, look)
    assert ended.keys() == set(range(len(flows)))


@given(networks())
def test_no_flow_ends_before_its_bytes_can_have_gone(network) -> None:
    capacities, flows = network
    ended = run_flows(capacities, flows)
    for one, (begin, way, size, limit) in enumerate(flows):
        most = min([limit, *(capacities[link] for link in way)])
        assert ended[one] >= begin + int(size / most)
    for link, capacity in enumerate(capacities):
        sizes = [size for _, way, size, _ in flows if link in way]
        if sizes:
            first = min(begin for begin, way, _, _ in flows if link in way)
            last = max(ended[one] for one, flow in enumerate(flows) if link in flow[1])
            assert (last - first + 1) * capacity * CLOSE + len(sizes) >= sum(sizes)


@given(networks())
def test_the_same_flows_end_at_the_same_times(network) -> None:
    assert run_flows(*network) == run_flows(*network)


def test_two_flows_over_one_link_take_twice_as_long() -> None:
    assert run_flows([1.0], [(0, [0], 1000, 9.0)]) == {0: 1000}
    assert run_flows([1.0], [(0, [0], 1000, 9.0), (0, [0], 1000, 9.0)]) == {0: 2000, 1: 2000}


def test_what_one_flow_does_not_take_is_the_others() -> None:
    # 0.25 of the link for the first, the rest for the second until it has gone
    ended = run_flows([1.0], [(0, [0], 1000, 0.25), (0, [0], 750, 9.0)])
    assert ended == {0: 4000, 1: 1000}


def test_links_have_carried_what_was_sent() -> None:
    seen = {}

    def look(network: FlowNetwork, _now: int) -> None:
        seen["carried"] = [link.carried for link in network.links]

    run_flows([1.0, 2.0], [(0, [0], 100, 1.0), (5, [0, 1], 30, 1.0)], look)
    assert seen["carried"] == [130, 30]
