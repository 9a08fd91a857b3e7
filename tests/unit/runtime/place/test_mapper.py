"""Which threads ranks get: by hand on machines with two packages, by chance on all kinds."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.runtime.place.host_place import HostPlace, drawn
from ompy.runtime.place.listed import join_slots, parse_slots, slot_threads
from ompy.runtime.place.mapper import FILL, NODE, NONE, SLOT, Mapper, Rule
from ompy.runtime.place.synthetic import parse_synthetic
from ompy.runtime.place.topology import LEVELS, PlaceError, cpu_list, topology_of

from tests.support.sys_trees import (
    four_packages_out_of_order,
    two_packages_in_turn,
    two_packages_of_clusters,
    write_tree,
)

DUAL = "pack:2 numa:1 l3:2 core:2 pu:2"  # 16 threads, 8 cores, 4 caches

DESCRIPTIONS = st.builds(
    "pack:{} numa:{} l3:{} core:{} pu:{}".format, *[st.integers(1, 3) for _ in range(5)]
)


def threads(count: int, text: str = DUAL, **rule) -> list[str]:
    spots = Mapper(parse_synthetic(text), Rule(**rule)).give_spots(count)
    return [cpu_list(spot.threads) for spot in spots]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"bind": "core"}, "0-1 2-3 4-5 6-7"),
        ({"bind": "hwthread"}, "0 1 2 3"),
        ({"bind": "core", "map": "package"}, "0-1 8-9 2-3 10-11"),
        ({"bind": "core", "map": "l3cache"}, "0-1 4-5 8-9 12-13"),
        ({"bind": "l3cache"}, "0-3 0-3 4-7 4-7"),
        ({"bind": "numa", "map": "numa"}, "0-7 8-15 0-7 8-15"),
        ({"bind": "package", "map": "core"}, "0-7 0-7 0-7 0-7"),
        ({"bind": "core", "elements": 2}, "0-3 4-7 8-11 12-15"),
        ({"bind": "core", "elements": 2, "map": "numa"}, "0-3 8-11 4-7 12-15"),
        ({"bind": "hwthread", "elements": 3}, "0-2 3-5 6-8 9-11"),
        ({"bind": "core", "map": "package", "rank": "core"}, "0-1 2-3 8-9 10-11"),
        ({"bind": "core", "map": "package", "rank": FILL}, "0-1 2-3 8-9 10-11"),
        ({"bind": "core", "rank": "package"}, "0-1 2-3 4-5 6-7"),
        ({"bind": "core", "map": "l3cache", "rank": "package"}, "0-1 8-9 4-5 12-13"),
        ({"bind": "core", "map": "hwthread"}, "0-1 0-1 2-3 2-3"),
        ({"bind": "core", "map": NODE, "rank": NODE}, "0-1 2-3 4-5 6-7"),
        ({"bind": "hwthread", "map": "package"}, "0 8 1 9"),
    ],
)
def test_four_ranks_on_two_packages(rule, expected) -> None:
    assert " ".join(threads(4, **rule)) == expected


@pytest.mark.parametrize(
    ("count", "rule", "expected"),
    [
        (4, {"bind": "core", "map": "package", "per_object": 2}, "0-1 2-3 8-9 10-11"),
        (3, {"bind": "core", "map": "package", "per_object": 2}, "0-1 2-3 8-9"),
        (4, {"bind": "core", "map": "l3cache", "per_object": 1}, "0-1 4-5 8-9 12-13"),
        (4, {"bind": "hwthread", "map": "core", "per_object": 2}, "0 1 2 3"),
        (3, {"bind": "core", "map": "core", "per_object": 1}, "0-1 2-3 4-5"),
        (2, {"bind": "numa", "map": "numa", "per_object": 1}, "0-7 8-15"),
        (2, {"bind": "core", "map": "numa", "per_object": 1, "elements": 2}, "0-3 8-11"),
        (4, {"bind": "core", "map": "numa", "per_object": 2, "rank": "numa"}, "0-1 8-9 2-3 10-11"),
        (16, {"bind": "core", "map": "core", "per_object": 2, "overload": True},
         " ".join(f"{n}-{n + 1} {n}-{n + 1}" for n in range(0, 16, 2))),
    ],
)  # fmt: skip
def test_so_many_ranks_on_each_object(count, rule, expected) -> None:
    if rule["map"] == "core" and rule["bind"] == "hwthread":
        rule = {**rule, "hwthreads": True}
    assert " ".join(threads(count, **rule)) == expected


def test_objects_take_no_more_ranks_than_was_said() -> None:
    rule = Rule(bind="core", map="package", per_object=2)
    mapper = Mapper(parse_synthetic(DUAL), rule)
    spots = mapper.give_spots(4)
    with pytest.raises(PlaceError, match=r"2 rank\(s\) on each of 2 package\(s\)"):
        mapper.give_spots(1)
    mapper.release(spots[1])
    assert mapper.give_spots(1) == [spots[1]]
    with pytest.raises(PlaceError, match="at most 4 in one package"):
        Mapper(parse_synthetic(DUAL), rule._replace(per_object=5)).give_spots(10)


@given(DESCRIPTIONS, st.sampled_from(["l3cache", "numa", "package", "core"]), st.integers(1, 3))
def test_objects_are_filled_one_after_the_other(text, level, most) -> None:
    topology = parse_synthetic(text)
    objects = topology.objects(level)
    rule = Rule(bind="core", map=level, per_object=most, overload=True)
    spots = Mapper(topology, rule).give_spots(most * len(objects))
    for index, spot in enumerate(spots):
        assert spot.threads <= objects[index // most]


@pytest.mark.parametrize(
    ("slots", "unit", "expected"),
    [
        ("0:1", "core", "2-3"),
        ("1:0", "core", "8-9"),
        ("1:0-1", "core", "8-11"),
        ("0:0,2", "core", "0-1,4-5"),
        ("1:*", "core", "8-15"),
        ("0:1;1:1", "core", "2-3,10-11"),
        ("1,3", "core", "2-3,6-7"),
        ("0-2", "core", "0-5"),
        ("*", "core", "0-15"),
        ("1:3", "hwthread", "11"),
        ("0-2,15", "hwthread", "0-2,15"),
    ],
)
def test_processors_of_a_rank_file(slots, unit, expected) -> None:
    assert cpu_list(slot_threads(parse_synthetic(DUAL), unit, slots)) == expected


@pytest.mark.parametrize(
    ("slots", "said"),
    [
        ("2:0", "slot=2:0: there is no package 2, but 0-1"),
        ("0:4", "slot=0:4: package 0 has cores 0-3, and no 4"),
        ("8", "slot=8: this host has cores 0-7, and no 8"),
    ],
)
def test_processors_that_are_not_there(slots, said) -> None:
    with pytest.raises(PlaceError, match=said):
        slot_threads(parse_synthetic(DUAL), "core", slots)


@pytest.mark.parametrize(
    "wrong", ["", ":", "0:", "a", "1:b", "0-", "3-1", "0:1:2", "0,1:0", "1;", "-1"]
)
def test_what_is_no_list_of_processors(wrong: str) -> None:
    with pytest.raises(ValueError, match="expected 0:1"):
        parse_slots(wrong)


def test_a_host_binds_the_ranks_that_the_rank_file_lists() -> None:
    listed = join_slots({0: "1:0", 2: "0-1", 5: "0:*"})
    rule = Rule("core", topology=DUAL, listed=listed, report=True)
    made = HostPlace(Rule.from_dict(rule._asdict()))
    made.place_ranks([0, 1, 2])
    assert [cpu_list(made.threads_of(rank)) for rank in range(3)] == ["8-9", "", "0-3"]
    assert "is bound to package 1, numa 1, core 4, cpus 8-9" in made.report_of(0)
    assert "is not bound" in made.report_of(1)
    made.forget_rank(0)
    assert made.threads_of(0) == frozenset()
    wrong = HostPlace(rule._replace(listed="3=4:0"))
    with pytest.raises(PlaceError, match="the rank file, rank 3: slot=4:0: there is no package 4"):
        wrong.place_ranks([3])


def test_open_mpis_example_of_ranking() -> None:
    """Two nodes with two packages: here one of them, as each orders its own (mpirun's manual)."""
    on = "pack:2 core:4"
    mapped = {"bind": "core", "map": "package"}
    assert threads(4, on, **mapped, rank="core") == ["0", "1", "4", "5"]
    assert threads(4, on, **mapped, rank="package") == ["0", "4", "1", "5"]


@pytest.mark.parametrize(
    ("count", "rule", "why"),
    [
        (9, {"bind": "core"}, "9 .* were to be bound on this host, and it has 8 cores"),
        (5, {"bind": "core", "elements": 2}, "5 .*, 2 cores each, .* it has 8 cores"),
        (1, {"bind": "core", "elements": 5, "map": "numa"}, "at most 4 in one numa"),
        (17, {"bind": "numa", "hwthreads": True}, "it has 16 hwthreads"),
        (9, {"bind": "numa"}, "it has 8 cores"),
        (1, {"bind": "core", "elements": 9, "overload": True}, "9 cores each"),
    ],
)
def test_what_there_is_no_room_for(count, rule, why) -> None:
    with pytest.raises(PlaceError, match=why):
        threads(count, **rule)


@pytest.mark.parametrize("field", ["bind", "map", "rank"])
def test_a_level_that_is_not_there(field: str) -> None:
    rule = {"bind": "core", field: "l2cache"}
    with pytest.raises(PlaceError, match="no l2cache"):
        threads(1, **rule)


def test_overload_takes_the_least_used() -> None:
    given_out = threads(20, bind="core", overload=True)
    assert sorted(map(given_out.count, set(given_out))) == [2, 2, 2, 2, 3, 3, 3, 3]


def test_what_was_given_back_is_given_again() -> None:
    mapper = Mapper(parse_synthetic(DUAL), Rule(bind="core"))
    spots = mapper.give_spots(8)
    with pytest.raises(PlaceError, match="0 of its 8 cores are free"):
        mapper.give_spots(1)
    mapper.release(spots[5])
    assert mapper.give_spots(1) == [spots[5]]


RULES = st.builds(
    Rule,
    bind=st.sampled_from(["hwthread", "core", "l3cache", "numa", "package"]),
    map=st.sampled_from([SLOT, NODE, "hwthread", "core", "l3cache", "numa", "package"]),
    rank=st.sampled_from([SLOT, NODE, FILL, "core", "l3cache", "numa", "package"]),
    elements=st.integers(1, 4),
    hwthreads=st.booleans(),
    overload=st.booleans(),
    per_object=st.just(0),
    listed=st.just(""),
)


@given(DESCRIPTIONS, st.data(), RULES, st.integers(1, 30))
def test_every_rank_gets_what_it_may(text, data, rule, count) -> None:
    whole = parse_synthetic(text)
    allowed = data.draw(st.frozensets(st.sampled_from(sorted(whole.threads)), min_size=1))
    topology = topology_of(whole.levels, allowed)
    units, targets = topology.objects(rule.unit), topology.objects(rule.bind)
    mapper = Mapper(topology, rule)
    try:
        spots = mapper.give_spots(count)
    except PlaceError:
        deals = [topology.objects(rule.map)] if rule.map in LEVELS[2:] else [(allowed,)]
        sizes = [sum(unit <= each for unit in units) for each in deals[0]]
        rooms = sum(size // rule.elements for size in sizes)
        assert rooms < count if not rule.overload else max(sizes) < rule.elements
        assert not any(mapper._used), "nobody has got anything"
        return
    assert len(spots) == count
    for spot in spots:
        own = frozenset().union(*(units[unit] for unit in spot.units))
        assert len(set(spot.units)) == rule.elements
        assert own <= spot.threads <= allowed
        assert spot.threads == frozenset().union(*(each for each in targets if each & own))
    taken = [unit for spot in spots for unit in spot.units]
    if not rule.overload:
        assert len(taken) == len(set(taken)), "no unit is taken twice"
        if rule.bind == rule.unit:
            assert sum(len(spot.threads) for spot in spots) == len(
                frozenset().union(*(spot.threads for spot in spots))
            ), "ranks that are bound to their units share none"


@given(DESCRIPTIONS, RULES, st.integers(1, 12), st.randoms())
def test_places_that_come_and_go(text, rule, count, chance) -> None:
    rule = rule._replace(elements=1, overload=False)
    mapper = Mapper(parse_synthetic(text), rule)
    held = []
    for _ in range(6):
        with suppress(PlaceError):
            held += mapper.give_spots(chance.randint(0, count))
        taken = [unit for spot in held for unit in spot.units]
        assert len(taken) == len(set(taken))
        chance.shuffle(held)
        for spot in held[: len(held) // 2]:
            mapper.release(spot)
        held = held[len(held) // 2 :]


def place(count: int, **rule) -> HostPlace:
    made = HostPlace(Rule(topology=DUAL, **rule))
    made.place_ranks(range(count))
    return made


def test_reports() -> None:
    made = place(4, bind="core", map="numa", report=True)
    assert made.report_of(1) == (
        "is bound to package 1, numa 1, core 4, cpus 8-9: [../../../..][BB/../../..]"
    )
    assert place(2, bind="numa").report_of(1) == "", "nobody wants to know"
    assert place(1, bind="core", elements=8).describe_rank(0) == (
        "is bound to packages 0-1, numa 0-1, cores 0-7, cpus 0-15: [BB/BB/BB/BB][BB/BB/BB/BB]"
    )
    assert place(1, bind=NONE, report=True).report_of(0) == (
        "is not bound; it may run on cpus 0-15"
    )
    assert drawn(parse_synthetic("core:3"), frozenset({1})) == "[./B/.]"


def test_ranks_are_told_who_shares_their_threads() -> None:
    alone = place(3, bind="core")
    assert [alone.variables_of(rank)["OMPY_PLACE"] for rank in range(3)] == ["0/1"] * 3
    made = place(5, bind="numa", map="numa")
    told = [made.variables_of(rank)["OMPY_PLACE"] for rank in range(5)]
    assert told == ["0/3", "0/2", "1/3", "1/2", "2/3"]
    assert place(1, bind=NONE).variables_of(0) == {}


def test_if_supported() -> None:
    with pytest.raises(PlaceError, match="9 .*: fewer ranks, --use-hwthread-cpus, or --bind-to"):
        place(9, bind="core")
    assert place(9, bind="core", if_supported=True).threads_of(0) == frozenset()
    assert place(2, bind="l2cache", if_supported=True).threads_of(0) == frozenset()


def test_only_some_processors() -> None:
    made = place(2, bind="core", cpus="6-9,12")
    assert [cpu_list(made.threads_of(rank)) for rank in range(2)] == ["6-7", "8-9"]
    with pytest.raises(PlaceError, match="none of the processors 99 may be used"):
        place(1, bind="core", cpus="99")
    with pytest.raises(PlaceError, match="set of processors: 'x' is no list"):
        place(1, bind="core", cpus="x")


def test_a_topology_that_is_no_tree(tmp_path) -> None:
    with pytest.raises(PlaceError, match=r"cpu/online: No such file or directory; a topology is"):
        HostPlace(Rule(bind="core", topology=str(tmp_path)))


TREES = {
    "two Xeons numbered in turn": (two_packages_in_turn, "numa", 1, "0 1 2 3"),
    "a package each": (two_packages_in_turn, "slot", 6, "0,2,4,6,8,10 1,3,5,7,9,11"),
    "four Xeons, their nodes out of order": (four_packages_out_of_order, "numa", 1, "0 1 2 3"),
    "clusters in packages": (two_packages_of_clusters, "numa", 2, "0-1,96-97 24-25,120-121"),
    "caches": (two_packages_in_turn, "l3cache", 2, "0,2 1,3 4,6 5,7"),
}


@pytest.mark.parametrize("name", TREES)
def test_cores_of_machines_that_are_not_here(name: str, tmp_path) -> None:
    machine, by, elements, expected = TREES[name]
    root = write_tree(tmp_path, machine())
    made = HostPlace(Rule("core", map=by, elements=elements, topology=root))
    ranks = range(len(expected.split()))
    made.place_ranks(ranks)
    assert " ".join(cpu_list(made.threads_of(rank)) for rank in ranks) == expected
