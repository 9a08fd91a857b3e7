"""Put and get of every BTL: the bytes, the order, the refusals, the ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ompy.net.virtual.virtual_network import Rail

from tests.sim.rdma import programs
from tests.sim.rdma.peer import Peer, run
from tests.support.effort import effort

WAYS: dict[str, tuple[str, dict[str, object]]] = {
    "self": ("self", {}),
    "single copy": ("sm", {}),
    "fragments": ("sm", {"btl_sm_single_copy_mechanism": "emulated"}),
    "tcp": ("tcp", {}),
}
SCARCE: dict[str, dict[str, object]] = {
    "single copy": {"btl_sm_free_list_max": 1, "btl_sm_ring_slots": 2},
    "fragments": {"btl_sm_free_list_max": 1, "btl_sm_ring_slots": 2},
    "tcp": {"btl_tcp_free_list_max": 1},
}
NARROW = (Rail("rail0", jitter=100_000, window=3000, bandwidth=2000),)


def play(way: str, program: Callable[[Peer], Any], ranks: int = 2, **more: Any) -> Any:
    name, settings = WAYS[way]
    ranks = 1 if way == "self" else ranks
    return run(name, program, ranks=ranks, **{**settings, **more})


@pytest.mark.parametrize("way", WAYS)
def test_all_sizes(way: str) -> None:
    assert min(play(way, programs.all_sizes).results) > 20


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(effort(3)))
def test_many_at_once(way: str, seed: int) -> None:
    play(way, programs.many_at_once, ranks=3, seed=seed)


@pytest.mark.parametrize("way", SCARCE)
@pytest.mark.parametrize("seed", range(effort(2)))
def test_scarce_resources(way: str, seed: int) -> None:
    play(way, programs.many_at_once, seed=seed, rails=NARROW, **SCARCE[way])


@pytest.mark.parametrize("way", SCARCE)
@pytest.mark.parametrize("seed", range(effort(4)))
def test_a_completed_put_comes_before_later_fragments(way: str, seed: int) -> None:
    assert play(way, programs.put_then_tell, seed=seed, rails=NARROW).results == [0, 6]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ranks", [2, 3])
def test_refusals(way: str, ranks: int) -> None:
    for wrong in play(way, programs.refusals, ranks=ranks).results:
        assert not wrong


@pytest.mark.parametrize("way", WAYS)
def test_limits_and_alignment(way: str) -> None:
    name = WAYS[way][0]
    settings = {
        f"btl_{name}_{how}_{what}": value
        for how in ("put", "get")
        for what, value in (("limit", 1024), ("alignment", 4))
    }
    play(way, programs.limits, **settings)


@pytest.mark.parametrize("way", WAYS)
def test_large(way: str) -> None:
    when = play(way, programs.large).results
    assert set(when) == {"at once" if way in ("self", "single copy") else "later"}
