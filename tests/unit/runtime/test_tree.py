"""Who starts whose agent."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.runtime.agents.agent_tree import LAUNCHER, Branch, Tree, from_plain, parents, to_plain

nodes = st.lists(st.integers(0, 999), unique=True, max_size=200)


def branches(found):
    return [Branch(node, parent, f"h{node}", ("/bin/ssh", f"h{node}")) for node, parent in found]


@given(nodes, st.integers(1, 9))
def test_nobody_starts_more_than_the_radix_and_parents_come_first(nodes, radix):
    found = parents(nodes, radix)
    assert list(found) == nodes
    assert all(list(found.values()).count(parent) <= radix for parent in found.values())
    known = {LAUNCHER}
    for node, parent in found.items():
        assert parent in known
        known.add(node)


@given(nodes, st.integers(2, 9))
def test_it_is_no_deeper_than_it_has_to_be(nodes, radix):
    found = parents(nodes, radix)
    depth = {LAUNCHER: 0}
    for node, parent in found.items():
        depth[node] = depth[parent] + 1
    deepest, room, level = max(depth.values()), 0, 0
    while room < len(nodes):
        level += 1
        room += radix**level
    assert deepest == level


@pytest.mark.parametrize("radix", [0, 5, 64])
def test_few_hosts_are_all_the_launchers_own(radix):
    assert set(parents(range(5), radix).values()) == {LAUNCHER}


def test_radix_one_is_a_chain():
    assert parents([4, 2, 7], 1) == {4: LAUNCHER, 2: 4, 7: 2}


@given(nodes.filter(bool), st.integers(1, 5))
def test_every_node_is_reached_by_its_own_child_of_each_root(nodes, radix):
    tree = Tree(branches(parents(nodes, radix).items()))
    starters = [child.node for child in tree.children()]
    assert starters == nodes[:radix]
    assert sorted(node for child in starters for node in tree.subtree(child)) == sorted(nodes)
    for child in starters:
        for node in tree.subtree(child):
            assert tree.child_towards(node) == child
        inner = Tree(tree.below(child), child)
        for branch in inner:
            step = inner.child_towards(branch.node)
            assert step in [below.node for below in inner.children()]
            assert branch.node in inner.subtree(step)


def test_what_is_not_of_the_tree_is_reached_directly():
    assert Tree([]).child_towards(3) == 3
    assert Tree([]).subtree(3) == [3]


@given(nodes, st.integers(1, 5))
def test_it_travels_as_json(nodes, radix):
    made = branches(parents(nodes, radix).items())
    assert from_plain(json.loads(json.dumps(to_plain(made)))) == made
