"""Atomic domains over every conduit, against a model; who computes; what a trace says of it."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.gasnet import Datatype, Gasnet, GasnetError, Op, ResourceError
from ompy.trace.operations import operations

from tests.support.effort import effort
from tests.support.gasnet_atomics import ATOMICS, atomic_operations
from tests.support.gasnet_programs import start
from tests.support.gasnet_worlds import CHOSEN, CONDUITS, Under, run, traced


@pytest.mark.parametrize("under", CHOSEN.values(), ids=CHOSEN)
@pytest.mark.parametrize("name", sorted({*ATOMICS} - {"few_atomics"}))
@pytest.mark.parametrize("seed", range(effort(1)))
def test_programs(name: str, under: Under, seed: int) -> None:
    run(under, 3, ATOMICS[name], seed=seed)


def test_alone() -> None:
    run(CONDUITS["aries, smsg"], 1, atomic_operations)


BY_NIC = {  # a domain, and on which NICs the NIC computes
    (Datatype.I64, Op.ADD): ("gemini", "aries"),
    (Datatype.U64, Op.FADD | Op.SUB | Op.FINC | Op.DEC | Op.FAND | Op.OR | Op.XOR): (
        "gemini",
        "aries",
    ),
    (Datatype.I64, Op.FCAS | Op.GET): ("gemini", "aries"),
    (Datatype.I64, Op.SWAP): ("aries",),
    (Datatype.I64, Op.SET): ("aries",),
    (Datatype.I32, Op.FADD | Op.CAS | Op.SWAP | Op.GET): ("aries",),
    (Datatype.I32, Op.MIN | Op.FMAX): ("aries",),
    (Datatype.U32, Op.MIN): (),
    (Datatype.U64, Op.FMAX): (),
    (Datatype.I64, Op.MULT): (),
    (Datatype.I64, Op.ADD | Op.MULT): (),
    (Datatype.DBL, Op.ADD): (),
    (Datatype.FLT, Op.FCAS): (),
}


@pytest.mark.parametrize("name", ["gemini, smsg", "aries, smsg", "aries, neighbours", "loopback"])
def test_who_computes(name: str) -> None:
    """The NIC where it has all of a domain's operations and reaches the rank."""

    def program(gasnet: Gasnet) -> list[bool]:
        start(gasnet)
        peer = 1 - gasnet.mynode()
        found = []
        for kind, ops in BY_NIC:
            domain = gasnet.ad_create(kind, ops)
            assert not domain.by_nic(gasnet.mynode())
            found.append(domain.by_nic(peer))
            (op, *_) = [op for op in Op if op & ops]
            before = gasnet.counters().get("fma_amo", 0)
            domain.op(peer, 64, op)
            assert gasnet.counters().get("fma_amo", 0) - before == found[-1]
        gasnet.barrier()
        return found

    nic = "" if name == "aries, neighbours" else name.partition(",")[0]
    assert run(CONDUITS[name], 2, program) == [[nic in by for by in BY_NIC.values()]] * 2


def test_a_trace_has_them() -> None:
    def program(gasnet: Gasnet) -> None:
        start(gasnet)
        if not gasnet.mynode():
            fast = gasnet.ad_create(Datatype.I32, Op.FADD | Op.ADD)
            fast.op(1, 64, Op.FADD, 1)
            fast.op(1, 64, Op.ADD, 1)
            fast.op(0, 64, Op.ADD, 1)
            gasnet.ad_create(Datatype.I32, Op.MULT).op(1, 64, Op.MULT, 3)
        gasnet.barrier()

    found = operations(traced(CONDUITS["aries, smsg"], 2, program))
    ways = [(each.name, each.target, each.way) for each in found.all if each.name == "atomic"]
    assert ways == [
        ("atomic", 1, "FMA AMO that fetches, add"),
        ("atomic", 1, "FMA AMO, add"),
        ("atomic", 0, "own memory"),
    ]
    done = [post.done for each in found.all if each.name == "atomic" for post in each.posts]
    assert len(done) == 2
    assert all(done)
    names = [found.handler_name(each) for each in found.all if each.is_message]
    assert names.count("atomic") == names.count("atomic done") == 1


@pytest.mark.parametrize("settings", [{"num_pd": 1}, {"messages": "mailboxes", "networkdepth": 1}])
def test_what_runs_out_and_what_is_late(settings: dict[str, Any]) -> None:
    nic = {"late": 40, "refuse": 30, "posts": 2}
    name, hosts = ("aries", 1) if "num_pd" in settings else ("gemini", 2)
    run(Under(name, settings, nic, hosts=hosts), 2, ATOMICS["atomic_counters"], seed=3)


def test_a_post_that_fails_is_an_error() -> None:
    def program(gasnet: Gasnet) -> str:
        start(gasnet)
        domain = gasnet.ad_create(Datatype.I64, Op.FADD)
        with pytest.raises(ResourceError) as caught:
            domain.op(1 - gasnet.mynode(), 0, Op.FADD, 1)
        return str(caught.value)

    def ended(gasnet: Gasnet) -> str:
        try:
            return program(gasnet)
        finally:
            assert issubclass(ResourceError, GasnetError)

    for said in run(Under("aries", {}, {"fail": 100}), 2, ended):
        assert "atomic that fetches" in said
        assert "transaction failed" in said
