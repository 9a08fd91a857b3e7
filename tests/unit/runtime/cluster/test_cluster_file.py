"""Cluster files: what they say, and what is said of wrong ones."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from ompy.mca.errors import UsageError
from ompy.runtime.cluster.cluster_file import cluster_of, read_cluster
from ompy.runtime.cluster.model import CROSSINGS
from ompy.runtime.cluster.topology import FatTree, Switch, Torus

ROOT = Path(__file__).resolve().parents[4]
SHIPPED = sorted((ROOT / "configs" / "clusters").glob("*.toml"))
GOOD = """
hosts = 4
[network]
bandwidth = "8Gbit/s"
messages = [{latency = "1us", bandwidth = "8Gbit/s"}]
[memory]
bandwidth = "80Gbit/s"
messages = [
    {latency = "100ns", overhead = "50ns", gap = "10ns", bandwidth = "8Gbit/s"},
    {from = 1000, latency = "200ns", bandwidth = "16Gbit/s", rendezvous = true},
]
"""


def values(change: Any = None) -> dict[str, Any]:
    found = tomllib.loads(GOOD)
    if change is not None:
        change(found)
    return found


def test_a_good_one() -> None:
    cluster = cluster_of(values(), "good.toml")
    assert cluster.topology == Switch(4)
    assert cluster.link_bandwidth == 1.0  # bytes per ns
    assert cluster.memory.costs(999).latency == 100
    assert cluster.memory.costs(1000) == (1000, 200, 0, 0, 2.0, True, CROSSINGS)
    assert cluster.memory.port == 2.0
    assert cluster.network.costs(10**9).overhead == 0


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_those_that_come_with_ompy(path: Path) -> None:
    here, there = read_cluster(path.stem), read_cluster(str(path))  # of this installation
    assert here == there._replace(name=here.name)


def test_there_is_one_of_each_topology() -> None:
    kinds = {type(read_cluster(str(path)).topology) for path in SHIPPED}
    assert kinds == {Switch, FatTree, Torus}


def change(place: str, value: Any):
    def make(found: dict[str, Any]) -> None:
        *way, last = place.split(".")
        for part in way:
            found = found[int(part) if part.isdigit() else part]
        if value is None:
            del found[last]
        else:
            found[last] = value

    return make


WRONG = {
    "unknown key": (change("network.latncy", "1us"), "network.latncy: there is no such key"),
    "near": (change("memory.messages.0.latancy", 1), "did you mean latency"),
    "keys are named": (change("speed", 1), "hosts, memory, network, ranks_per_host, validated"),
    "missing": (change("network.bandwidth", None), "network.bandwidth: it is missing"),
    "no hosts": (change("hosts", 0), "hosts = 0: input should be greater than or equal to 1"),
    "hosts": (change("hosts", "four"), "hosts = four: "),
    "no unit": (change("network.messages.0.latency", "10"), "as 10ms"),
    "a rate": (change("memory.bandwidth", "10GB"), "bit/s, kbit/s, Mbit/s, Gbit/s"),
    "nothing moves": (change("memory.bandwidth", "0bit/s"), "greater than 0"),
    "topology": (change("network.topology", "mesh"), "'switch', 'fat-tree' or 'torus'"),
    "arity": (change("network.topology", "fat-tree"), "network.arity: it is missing"),
    "foreign": (change("network.arity", 4), "network.arity: it is of a fat-tree"),
    "first": (change("network.messages.0.from", 8), "the first begins at 0"),
    "order": (change("memory.messages.1.from", 0), "memory.messages[1].from = 0"),
    "none": (change("memory.messages", []), "memory.messages = []"),
    "rendezvous": (change("memory.messages.1.rendezvous", "yes"), "rendezvous = yes"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_ones(name: str) -> None:
    make, text = WRONG[name]
    with pytest.raises(UsageError) as caught:
        cluster_of(values(make), "wrong.toml")
    assert all(line.startswith("wrong.toml: ") for line in caught.value.problems)
    assert text in "\n".join(caught.value.problems)
    assert caught.value.exit_code == 2


def test_all_mistakes_are_told() -> None:
    def make(found: dict[str, Any]) -> None:
        change("hosts", -1)(found)
        change("network.bandwidth", "fast")(found)

    with pytest.raises(UsageError) as caught:
        cluster_of(values(make), "wrong.toml")
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize(
    ("topology", "keys", "room"),
    [("fat-tree", {"arity": 2, "levels": 2}, 4), ("torus", {"dimensions": [2, 3]}, 6)],
)
def test_more_hosts_than_there_is_room_for(topology: str, keys: dict[str, Any], room: int) -> None:
    def make(found: dict[str, Any]) -> None:
        found["network"] |= {"topology": topology, **keys}
        found["hosts"] = room + 1

    with pytest.raises(UsageError, match=f"this {topology} has {room} at most"):
        cluster_of(values(make), "wrong.toml")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_cluster(str(tmp_path / "none.toml"))
    broken = tmp_path / "broken.toml"
    broken.write_text("hosts = ")
    with pytest.raises(UsageError, match="it is no TOML: Invalid value"):
        read_cluster(str(broken))
    broken.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="UTF-8"):
        read_cluster(str(broken))
    with pytest.raises(UsageError, match="did you mean torus"):
        read_cluster("toros")
    with pytest.raises(UsageError):
        read_cluster(str(tmp_path) + "/")
