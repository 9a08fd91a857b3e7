"""osc/rdma: random one-sided programs over the puts and gets of every BTL that has them."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest
from ompy.frameworks.btl import (
    BAD_PARAM,
    NOT_AVAILABLE,
    OUT_OF_RESOURCE,
    RESOURCE_BUSY,
    UNREACHABLE,
)
from ompy.frameworks.btl_base.atomics import AtomicOp
from ompy.frameworks.osc_base.headers import Kind
from ompy.frameworks.osc_base.module import MessageOsc
from ompy.frameworks.osc_base.pending import Pending
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.errors import MPIException
from ompy.mpi.windows.windows import Win
from ompy.runtime.ranks.process import RankProcess
from ompy_components.osc.rdma import transfers
from ompy_components.osc.rdma.changes import Change, Changing
from ompy_components.osc.rdma.reachable_btls import Way
from ompy_components.osc.rdma.transfers import Transfer, Transfers

from tests.sim.osc import programs
from tests.support import window_programs
from tests.support.effort import THOROUGH, effort
from tests.support.worlds import virtual

SEEDS = effort(1)
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
    plain = Transfers.begin_move

    def begin(self: Transfers, transfer: Transfer, way: Way) -> None:
        found.append(f"{way.module.name} {'put' if transfer.puts else 'get'}")
        plain(self, transfer, way)

    monkeypatch.setattr(transfers.Transfers, "begin_move", begin)
    return found


def run(btl: str, ranks: int, program: Callable[[RankProcess], Any], seed: int) -> list[Any]:
    settings = {"btl": f"self,{btl}", "osc": "rdma,pt2pt", **BTLS[btl]}
    return virtual(ranks, program, seed=seed, **settings).results


@pytest.mark.parametrize("btl", BTLS)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_programs(btl: str, seed: int, begun: list[str]) -> None:
    ranks = 2 + seed % 3
    memory = "allocated" if seed % 2 else "created"
    program = partial(window_programs.run, seed=seed, memory=memory)
    assert sum(run(btl, ranks, program, seed)) > ranks
    assert f"{btl} put" in begun
    assert (f"{btl} get" in begun) is (btl != "usnic")  # which only puts


PROMISES = [("sm", "requests"), ("sm", "active_targets"), ("ofi", "wrong_calls")]
if THOROUGH:
    names = ("large", "requests", "wrong_calls", "active_targets")
    PROMISES = [(btl, name) for btl in BTLS for name in names]


@pytest.mark.parametrize(("btl", "name"), PROMISES)
def test_promises(btl: str, name: str, begun: list[str]) -> None:
    run(btl, 2, getattr(programs, name), 1)
    assert f"{btl} put" in begun or name == "wrong_calls"


@pytest.mark.parametrize("name", ["counter", "compare_and_swap", "ordered_accumulates"])
@pytest.mark.parametrize("pml", ["ob1", "bfo"] if THOROUGH else ["ob1"])
def test_atomics_of_a_btl(name: str, pml: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the owner's own accumulates and those that are messages; none where rails may fail."""
    made = Counter[AtomicOp]()
    begin = Changing.begin_change

    def counted(self: Changing, pending: Pending, change: Change, way: Way) -> bool:
        made[change.op] += 1
        return begin(self, pending, change, way)

    monkeypatch.setattr(Changing, "begin_change", counted)
    settings = {"btl": "self,ofi", "osc": "rdma,pt2pt", "pml": pml, **BTLS["ofi"]}
    virtual(3, getattr(programs, name), seed=2, **settings)
    assert bool(made) is (pml == "ob1" and name != "ordered_accumulates")  # all behind messages


def test_an_atomic_that_ends_badly_is_not_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The origin is told; what was done was done once."""
    done = Changing.completed

    def failed(self: Changing, module: Any, endpoint: Any, descriptor: Any, status: int) -> None:
        done(self, module, endpoint, descriptor, UNREACHABLE)

    def program(process: RankProcess) -> int:
        comm = world_of(process)
        memory = array("q", [5])
        win = Win.Create(memory, 8, comm=comm)
        if comm.rank:
            win.Lock(0)
            win.Accumulate(array("q", [2]), 0)
            with pytest.raises(MPIException, match="whether it was done is not known"):
                win.Flush(0)
            win.Unlock(0)
        comm.Barrier()
        win.Free()
        return memory[0]

    monkeypatch.setattr(Changing, "completed", failed)
    assert run("ofi", 2, program, 1)[0] == 7


def test_tcp_is_left_to_messages(begun: list[str]) -> None:
    program = partial(window_programs.run, seed=1)
    virtual(2, program, btl="self,tcp", osc="rdma,pt2pt")
    assert not begun


REFUSALS = (OUT_OF_RESOURCE, RESOURCE_BUSY, NOT_AVAILABLE, BAD_PARAM, UNREACHABLE)


@pytest.mark.parametrize("btl", ["sm", "ofi", "openib"] if THOROUGH else ["ofi"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_a_btl_refuses_or_fails_is_done_all_the_same(
    btl: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At random: pieces are not taken, for now or at all, or end badly though they were moved."""
    chance, faults = Random(seed), Counter[int]()
    piece, ended = Transfers._piece, Transfers.ended

    def refused(self: Transfers, transfer: Transfer) -> tuple[int, int]:
        if chance.random() < 0.3:
            code = chance.choice(REFUSALS)
            faults[code] += 1
            return 1, code
        return piece(self, transfer)

    def failed(self: Transfers, transfer: Transfer, status: int) -> None:
        if chance.random() < 0.3:
            status = UNREACHABLE
            faults[1] += 1
        ended(self, transfer, status)

    monkeypatch.setattr(Transfers, "_piece", refused)
    monkeypatch.setattr(Transfers, "ended", failed)
    # arbitrary: enough for each of these to happen
    program = partial(window_programs.run, seed=seed, phases=40)
    assert sum(run(btl, 2 + seed % 2, program, seed)) > 2
    assert all(faults[code] for code in REFUSALS), faults
    assert faults[1] or btl == "sm"  # whose copies are done when the call returns


def test_pieces_of_a_large_put_and_get(begun: list[str]) -> None:
    """A limit of the BTL is no limit of the operation."""
    settings = {"btl_ofi_nic": "ofi_emulated", "btl_ofi_put_limit": 70_000}
    settings["btl_ofi_get_limit"] = 50_001
    virtual(2, programs.large, btl="self,ofi", osc="rdma,pt2pt", **settings)
    assert {"ofi put", "ofi get"} <= set(begun)


def test_who_has_written_nothing_by_messages_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a BTL has done or the target has answered is done: the end of an epoch is only told.

    Before the window is freed all that was told has been taken in.
    """
    asked: list[tuple[int, str]] = []
    ask = MessageOsc._ask

    def noted(self: MessageOsc, peer: Any, kind: Kind) -> Pending:
        asked.append((self.rank, kind.name))
        return ask(self, peer, kind)

    def program(process: RankProcess) -> int:
        comm = world_of(process)
        memory = array("q", [0, 0])
        win = Win.Create(memory, 8, comm=comm)
        if comm.rank:
            was = array("q", [-1])
            for operation in (
                lambda: win.Put(array("q", [5]), 0),
                lambda: win.Get(was, 0),
                lambda: win.Fetch_and_op(array("q", [1]), was, 0),
                lambda: win.Accumulate(array("q", [1]), 0, 1),
                lambda: win.Get(was, 0, 1),
            ):
                win.Lock(0)
                operation()
                win.Unlock(0)
            assert was[0] == 1
        win.Free()
        return memory[0]

    monkeypatch.setattr(MessageOsc, "_ask", noted)
    assert run("sm", 2, program, 1)[0] == 6
    locks = [name for rank, name in asked if rank == 1]
    assert locks == ["LOCK", "LOCK", "LOCK", "LOCK", "UNLOCK", "LOCK", "FLUSH"]
