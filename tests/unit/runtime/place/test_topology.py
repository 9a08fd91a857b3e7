"""Topologies: of `/sys` trees, of descriptions, and what is left of them in a cpuset."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.runtime.place.synthetic import parse_synthetic
from ompy.runtime.place.topology import (
    CORE,
    HWTHREAD,
    LEVELS,
    NUMA,
    PACKAGE,
    PlaceError,
    cpu_list,
    parse_cpu_list,
    read_topology,
    topology_of,
)

from tests.support.sys_trees import (
    four_packages_out_of_order,
    two_packages_in_turn,
    two_packages_of_clusters,
    write_tree,
)


def lists(topology, level):
    return [cpu_list(each) for each in topology.objects(level)]


def test_packages_numbered_in_turn(tmp_path: Path) -> None:
    found = read_topology(range(12), write_tree(tmp_path, two_packages_in_turn()))
    assert lists(found, PACKAGE) == ["0,2,4,6,8,10", "1,3,5,7,9,11"]
    assert lists(found, NUMA) == lists(found, "l3cache") == lists(found, PACKAGE)
    assert lists(found, CORE) == ["0", "2", "4", "6", "8", "10", "1", "3", "5", "7", "9", "11"]
    assert lists(found, HWTHREAD) == lists(found, "l2cache") == lists(found, CORE)


def test_nodes_come_in_the_order_of_their_threads(tmp_path: Path) -> None:
    found = read_topology(range(40), write_tree(tmp_path, four_packages_out_of_order()))
    assert [min(node) for node in found.objects(NUMA)] == [0, 1, 2, 3]


def test_siblings_far_apart_and_nodes_within_packages(tmp_path: Path) -> None:
    found = read_topology(range(192), write_tree(tmp_path, two_packages_of_clusters()))
    assert lists(found, PACKAGE) == ["0-47,96-143", "48-95,144-191"]
    assert lists(found, NUMA)[:2] == ["0-23,96-119", "24-47,120-143"]
    assert lists(found, CORE)[:2] == ["0,96", "1,97"]
    assert lists(found, HWTHREAD)[:3] == ["0", "96", "1"]
    with pytest.raises(PlaceError, match="no l3cache; it has hwthread, core, numa, package"):
        found.objects("l3cache")


def test_a_cpuset_leaves_a_part(tmp_path: Path) -> None:
    root = write_tree(tmp_path, two_packages_of_clusters())
    found = read_topology({22, 23, 24, 118, 150}, root)
    assert lists(found, CORE) == ["22,118", "23", "24", "150"]
    assert lists(found, NUMA) == ["22-23,118", "24", "150"]
    assert lists(found, PACKAGE) == ["22-24,118", "150"]
    with pytest.raises(PlaceError, match="no hardware thread"):
        read_topology((), root)


def test_a_tree_that_says_nothing(tmp_path: Path) -> None:
    found = read_topology({3, 1}, str(tmp_path))
    assert lists(found, CORE) == ["1", "3"]
    assert lists(found, NUMA) == lists(found, PACKAGE) == ["1,3"]


def test_a_damaged_tree(tmp_path: Path) -> None:
    root = write_tree(tmp_path, two_packages_in_turn())
    (tmp_path / "devices/system/cpu/cpu4/topology/core_cpus_list").write_text("4-x\n")
    with pytest.raises(PlaceError, match=r"cpu4/topology/core_cpus_list: '4-x' is no list"):
        read_topology(range(12), root)


def test_older_names_of_files(tmp_path: Path) -> None:
    root = write_tree(tmp_path, two_packages_of_clusters())
    for old, new in (
        ("thread_siblings_list", "core_cpus_list"),
        ("core_siblings_list", "package_cpus_list"),
    ):
        for path in tmp_path.glob(f"devices/system/cpu/cpu*/topology/{new}"):
            path.rename(path.parent / old)
    found = read_topology(range(192), root)
    assert (len(found.objects(CORE)), len(found.objects(PACKAGE))) == (96, 2)


def test_this_machine() -> None:
    allowed = os.sched_getaffinity(0)
    found = read_topology(allowed)
    assert found.threads == allowed
    assert {level for level in LEVELS if level in found.levels} >= {HWTHREAD, CORE, NUMA, PACKAGE}


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("pack:2 numa:1 core:4 pu:2", (16, 8, 2, 2)),
        ("Package:2 NUMANode:2 L3Cache:2 Core:2 PU:1", (16, 16, 4, 2)),
        ("machine:1 pack:2(memory=1GB) [numa(memory=64GB)] l2:2 core:1 pu:2", (8, 4, 2, 2)),
        ("core:3", (3, 3, 1, 1)),
        ("numa:2 socket:2 core:2 pu:2", (16, 8, 2, 4)),
    ],
)
def test_descriptions(text: str, counts: tuple[int, ...]) -> None:
    found = parse_synthetic(text)
    assert tuple(len(found.objects(level)) for level in (HWTHREAD, CORE, NUMA, PACKAGE)) == counts


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        ("pack:2 cores:4", "'cores:4' is no word of a topology"),
        ("pack core", "'pack' is no word"),
        ("pack:0 core:2", "has 0 objects"),
        ("pack:99999 core:99999", "objects; 1 to 65536"),
        ("pack:-1", "is no word"),
    ],
)
def test_what_describes_nothing(text: str, why: str) -> None:
    with pytest.raises(PlaceError, match=why):
        parse_synthetic(text)


@given(st.frozensets(st.integers(0, 300), min_size=1))
def test_lists_of_processors(numbers: frozenset[int]) -> None:
    assert parse_cpu_list(cpu_list(numbers)) == numbers


@pytest.mark.parametrize("text", ["", "a", "3-1", "1,,2", "0x1", "1-", "-1", "99999999999", "²"])
def test_what_is_no_list_of_processors(text: str) -> None:
    with pytest.raises(ValueError, match="is no list of processors"):
        parse_cpu_list(text)


GROUPS = st.dictionaries(
    st.sampled_from([CORE, NUMA, PACKAGE, "l3cache"]),
    st.lists(st.frozensets(st.integers(0, 15)), max_size=6),
)


@given(GROUPS, st.frozensets(st.integers(0, 15), min_size=1))
def test_whatever_a_kernel_says_levels_hold_each_thread_once(groups, allowed) -> None:
    found = topology_of(groups, allowed)
    for level in (HWTHREAD, CORE, NUMA, PACKAGE):
        objects = found.objects(level)
        assert sorted(n for each in objects for n in each) == sorted(allowed)
    for objects in found.levels.values():
        assert all(each <= allowed for each in objects)
