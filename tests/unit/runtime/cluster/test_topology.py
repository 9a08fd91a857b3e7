"""Routes: every host reaches every other one, by as many links as the topology has on the way."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import pytest
from ompy.runtime.cluster.topology import FatTree, Switch, Torus, link_text


def links_of(topology):
    return {
        link for pair in permutations(range(topology.hosts), 2) for link in topology.route(*pair)
    }


def test_a_switch_has_two_links_for_each_pair() -> None:
    topology = Switch(5)
    assert all(len(topology.route(*pair)) == 2 for pair in permutations(range(5), 2))
    assert len(links_of(topology)) == 10  # up and down of each host


@pytest.mark.parametrize(("arity", "levels"), [(2, 1), (2, 3), (3, 2), (4, 2), (2, 4)])
def test_a_fat_tree_has_the_links_of_a_k_ary_n_tree(arity: int, levels: int) -> None:
    topology = FatTree(arity, levels)
    hosts = arity**levels
    assert topology.hosts == hosts
    # Petrini and Vanneschi: n k^n links, each in two directions
    assert len(links_of(topology)) == 2 * levels * hosts


def test_a_fat_tree_goes_up_to_the_nearest_switch_above_both() -> None:
    topology = FatTree(4, 3)
    lengths = Counter(len(topology.route(0, other)) for other in range(1, 64))
    assert lengths == {2: 3, 4: 12, 6: 48}
    for one, other in permutations(range(64), 2):
        assert len(topology.route(one, other)) == len(topology.route(other, one))


def test_links_of_a_fat_tree_meet() -> None:
    """What goes up to a switch by a port comes down from that switch."""
    for one, other in permutations(range(27), 2):
        route = FatTree(3, 3).route(one, other)
        inner = route[1:-1]
        for up, down in zip(
            inner[: len(inner) // 2], reversed(inner[len(inner) // 2 :]), strict=True
        ):
            assert up[1] == down[1]  # the level
            assert (up[-2], down[-2]) == ("up", "down")
            assert up[-1] == down[-1]  # the switch above is the same


def test_receivers_below_one_switch_are_reached_over_different_ones() -> None:
    topology = FatTree(4, 2)
    ports = [topology.route(0, other)[1] for other in range(4, 8)]
    assert len(set(ports)) == 4


@pytest.mark.parametrize("dimensions", [(4,), (5,), (4, 4), (3, 4, 5), (2, 2), (1, 6)])
def test_a_torus_takes_the_shorter_way_round(dimensions: tuple[int, ...]) -> None:
    topology = Torus(dimensions)
    for one, other in permutations(range(topology.hosts), 2):
        here, there = topology.place(one), topology.place(other)
        least = sum(
            min((a - b) % size, (b - a) % size)
            for a, b, size in zip(here, there, dimensions, strict=True)
        )
        assert len(topology.route(one, other)) == len(topology.route(other, one)) == least


def test_a_torus_has_two_links_of_a_host_for_each_dimension() -> None:
    assert len(links_of(Torus((4, 4, 4)))) == 64 * 6
    assert len(links_of(Torus((3, 3)))) == 9 * 4
    # of two hosts in a row one direction is enough: a tie goes upwards
    assert len(links_of(Torus((2, 2)))) == 4 * 2


@pytest.mark.parametrize("topology", [Switch(4), FatTree(2, 2), Torus((2, 2))])
def test_a_host_needs_no_link_to_itself(topology) -> None:
    assert topology.route(3, 3) == ()


def test_links_have_words() -> None:
    assert link_text(FatTree(2, 2).route(0, 3)[1]) == "switch 0 of level 0, up, port 1"
    assert link_text(Torus((3, 3)).route(0, 1)[0]) == "node 0.0, axis 0, up"
    assert link_text(("memory", 3)) == "memory of host 3"
    assert link_text(("sends (network)", 7)) == "rank 7, sends (network)"
