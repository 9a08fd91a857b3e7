"""What bfo costs while nothing fails: nothing that can be counted, compared with ob1."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from ompy.frameworks.btl import GET, PUT
from ompy_components.pml.ob1.headers import MATCH

from tests.sim.ob1.programs import exchange, one_message
from tests.support.copy_counting import copies_of
from tests.support.failing_rails import BfoProcess, FailingModule, FailingRail, failing_world
from tests.support.fault_matrix import PROTOCOLS
from tests.support.small_worlds import SmallProcess

ROOT = Path(__file__).resolve().parents[3]
CALLS = (
    "alloc",
    "free",
    "prepare_src",
    "send",
    "sendi",
    "put",
    "get",
    "register_mem",
    "deregister_mem",
)
# what carries every eager message, and may not be made otherwise
EAGER = {
    "Arrivals.received",
    "FragmentDone.completed",
    "Sending.begin",
    "Sending.start",
    "Sending.send_fragment",
    "Sending.fragment_done",
    "Sending.match_header",
    "Receiving.match_arrived",
    "Receiving.post",
    "Receiving.deliver",
    "Receiving.adopt",
    "Ob1.isend",
    "Ob1.send",
    "Ob1.irecv",
    "Ob1.wait",
    "Ob1.iprobe",
    "Ob1.endpoint",
    "Ob1.matching",
}


def _calls(
    monkeypatch: pytest.MonkeyPatch, kind: type[SmallProcess], programs: Any, rail: FailingRail
) -> tuple[Counter[str], int, list[str]]:
    """BTL calls by name, bytes moved, and the transfers of a run."""
    counted: Counter[str] = Counter()
    with monkeypatch.context() as patch:
        for name in CALLS:
            method = getattr(FailingModule, name)

            def counting(self: Any, *args: Any, name: str = name, method: Any = method) -> Any:
                # ob1 tries small synchronous messages and their answers by one call first, of
                # which nobody is told what became: bfo has to be
                if name != "sendi" or args[-1] == MATCH:
                    counted[name] += 1
                return method(self, *args)

            patch.setattr(FailingModule, name, counting)
        job = failing_world(programs, [rail, rail], process=kind)
    log = [name for name, _, _ in job.net.log]
    barrier_rounds = log.count("FINAL_BARRIER")
    for name in ("alloc", "send"):
        counted[name] -= barrier_rounds
    return counted, sum(job.net.moved.values()), [name for name in log if name != "FINAL_BARRIER"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_same_calls_for_a_message(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rail, size, mode, _ = PROTOCOLS[protocol]
    programs = [one_message(size, mode=mode)] * 2
    ob1 = _calls(monkeypatch, SmallProcess, programs, rail)
    bfo = _calls(monkeypatch, BfoProcess, programs, rail)
    assert bfo == ob1
    assert ob1[0]


@pytest.mark.parametrize("flags", [0, PUT, PUT | GET])
def test_the_same_calls_for_many(flags: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # one rail has the messages in one order, and longer FINs do not change what overtakes what
    rail = FailingRail(flags=flags, bandwidth=1_000_000, min_rdma_pipeline_size=30_000)
    ob1 = _calls(monkeypatch, SmallProcess, [exchange] * 2, rail)
    bfo = _calls(monkeypatch, BfoProcess, [exchange] * 2, rail)
    assert Counter(bfo[2]) == Counter(ob1[2])
    assert bfo[:2] == ob1[:2]


def test_nothing_is_kept_while_nothing_fails() -> None:
    job = failing_world([exchange] * 2, [FailingRail()] * 2)
    for process in job.processes:
        pml = process.pml
        assert not pml.counters
        assert not len(pml.recovery)
        assert not pml.receiving._generations
        assert not pml.rdma._told
        assert not process.context.rail_events


def test_eager_messages_run_ob1s_code_alone() -> None:
    from tools.package.bfo_overrides import overrides

    names = {found.name for found in overrides()}
    assert len(names) > 20
    assert not names & EAGER


def test_the_same_bytes_are_copied() -> None:
    cases = [
        {"size": size, "ranks": 2, "set": {"btl": btl, "pml": pml}}
        for size, btl in ((1000, "self,sm"), (200_000, "self,sm"), (60_000, "self,tcp"))
        for pml in ("ob1", "bfo")
    ]
    found = copies_of(cases)
    assert found[0::2] == found[1::2]
    assert all(found)
