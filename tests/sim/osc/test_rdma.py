"""osc/rdma: random one-sided programs over the puts and gets of every BTL that has them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from ompy.runtime.process import RankProcess
from ompy_components.osc.rdma import transfers
from ompy_components.osc.rdma.transfers import Transfer, Transfers
from ompy_components.osc.rdma.ways import Way

from tests.sim.osc import programs
from tests.support import window_programs
from tests.support.effort import effort
from tests.support.worlds import virtual

SEEDS = effort(2)
BTLS: dict[str, dict[str, object]] = {
    "sm": {},
    "ofi": {"btl_ofi_nic": "ofi_emulated"},
    "openib": {},
    "usnic": {},
}


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every transfer that was begun: over which BTL, and what."""
    found: list[str] = []
    plain = Transfers.begin

    def begin(self: Transfers, transfer: Transfer, way: Way) -> None:
        found.append(f"{way.module.name} {'put' if transfer.puts else 'get'}")
        plain(self, transfer, way)

    monkeypatch.setattr(transfers.Transfers, "begin", begin)
    return found


def run(btl: str, ranks: int, program: Callable[[RankProcess], Any], seed: int) -> list[Any]:
    settings = {"btl": f"self,{btl}", "osc": "rdma,pt2pt", **BTLS[btl]}
    return virtual(ranks, program, seed=seed, **settings).results


@pytest.mark.parametrize("btl", BTLS)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_programs(btl: str, seed: int, begun: list[str]) -> None:
    ranks = 2 + seed % 3
    allocate = bool(seed % 2)
    program = partial(window_programs.run, seed=seed, allocate=allocate)
    assert sum(run(btl, ranks, program, seed)) > ranks
    assert f"{btl} put" in begun
    assert (f"{btl} get" in begun) is (btl != "usnic")  # which only puts


@pytest.mark.parametrize("btl", BTLS)
@pytest.mark.parametrize("name", ["large", "requests", "wrong_calls", "active_targets"])
def test_promises(btl: str, name: str, begun: list[str]) -> None:
    run(btl, 2, getattr(programs, name), 1)
    assert f"{btl} put" in begun or name == "wrong_calls"


def test_tcp_is_left_to_messages(begun: list[str]) -> None:
    program = partial(window_programs.run, seed=1)
    virtual(2, program, btl="self,tcp", osc="rdma,pt2pt")
    assert not begun
