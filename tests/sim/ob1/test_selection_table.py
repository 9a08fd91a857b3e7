"""Mode x size x contiguity x what the BTL can: the wire shows what the seed's rule says.

The protocol is told from the calls that the BTL got and from the headers' bytes, nothing of which
comes from ob1's own account of itself; the rule is the transcription in `seed_rule`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product

import pytest
from ompy.frameworks.pml import BUFFERED, READY, STANDARD, SYNCHRONOUS
from ompy.runtime.ranks.process import RankProcess

from tests.sim.ob1.programs import one_message, protocols
from tests.sim.p2p.programs import buffer, send, world
from tests.support.btl_journal import LAYER, ImmediateJournalModule, JournalModule
from tests.support.rdma_btl import RdmaRail, rdma_world
from tests.support.seed_rule import GET, HEADER, PUT, Btl, bytes_by_rdma, candidate

MODES = {
    "standard": STANDARD,
    "buffered": BUFFERED,
    "synchronous": SYNCHRONOUS,
    "ready": READY,
}
EAGER, LARGE = 1024, 5000
FITS = EAGER - HEADER
SIZES = (0, 1, 256, 257, FITS, FITS + 1, LARGE, LARGE + 1)
CASES = [
    case
    for case in product(MODES, SIZES, (True, False), (True, False))
    if case[1] > FITS or case[3]  # how an eager message is received changes nothing
]


def everything(process: RankProcess) -> None:
    """A message of each case, one after the other."""
    comm, pml = world(process), process.pml
    for mode, size, contiguous, contiguous_receive in CASES:
        process.context.trace.record(LAYER, "next")
        one_message(size, mode=MODES[mode], gather=not contiguous, scatter=not contiguous_receive)(
            process
        )
        process.context.trace.record(LAYER, "done")
        if comm.rank:
            pml.send(comm, send(b""), 0, 99, STANDARD)
        else:
            pml.recv(comm, buffer(0)[1], 1, 99)


def by_message(job, rank: int) -> Iterator[list[str]]:
    """The calls that each message made on one side, those of `everything`'s answers apart."""
    calls: list[str] = []
    inside = False
    for event in job.traces[rank]:
        if event.layer != LAYER:
            continue
        if event.name in ("next", "done"):
            if inside:
                yield calls
            inside, calls = event.name == "next", []
        elif inside:
            calls.append(event.name)


def seen(calls: Sequence[str]) -> str:
    """The protocol that a sender's calls amount to."""
    taken = [call for call in calls if not call.startswith("btl_register")]
    first, second = taken[0], "".join(taken[1:2])
    if first.startswith("btl_sendi"):
        return "Eager Send (Immediate)"
    prepared = first.startswith("btl_prepare_src")
    if "tag = MATCH" in second:
        return "Eager Send (Prepared)" if prepared else "Eager Send (Allocated)"
    if "tag = RGET" in second:
        return "RDMA Direct Get"
    assert "tag = RNDV" in second, calls
    if "PIN" in second:
        return "RDMA Direct Put"
    if "CONTIG" in second:
        return "RDMA Pipeline"
    return "Send/Receive Pipeline" if prepared else "Buffered Pipeline"


def moved(calls: Sequence[str]) -> int:
    found = [re.fullmatch(r"btl_(?:put|get)\(size = (\d+)\)", call) for call in calls]
    return sum(int(match[1]) for match in found if match)


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("flags", [0, PUT, GET, PUT | GET])
def test_the_wire_shows_what_the_seed_says(flags: int, pinned: bool) -> None:
    found: Counter[str] = Counter()
    for sendi, inplace in product((False, True), repeat=2):
        btl = Btl(sendi, inplace, flags, EAGER, 512, LARGE, 1000, pinned)
        rail = RdmaRail(
            flags=flags,
            inplace=inplace,
            eager_limit=EAGER,
            min_rdma_pipeline_size=LARGE,
            pipeline_send_length=1000,
        )
        module = ImmediateJournalModule if sendi else JournalModule
        settings = {"pml_ob1_leave_pinned": int(pinned)}
        job = rdma_world(2, everything, [rail], trace=True, module=module, **settings)
        sides = zip(by_message(job, 0), by_message(job, 1), CASES, strict=True)
        for sender, receiver, (mode, size, contiguous, contiguous_receive) in sides:
            expected = candidate(mode, size, contiguous, btl)
            case = (mode, size, contiguous, contiguous_receive, btl)
            assert seen(sender) == expected, case
            by_rdma = bytes_by_rdma(expected, size, contiguous_receive, btl)
            assert moved(sender) + moved(receiver) == by_rdma, case
            found[expected] += 1
        assert len(protocols(job)) >= len(CASES)
    wanted = {
        "Eager Send (Immediate)",
        "Eager Send (Prepared)",
        "Eager Send (Allocated)",
        "Send/Receive Pipeline",
        "Buffered Pipeline",
    }
    if flags:
        wanted.add("RDMA Direct Get" if flags & GET else "RDMA Direct Put")
    if not (flags == GET or (pinned and flags)):
        wanted.add("RDMA Pipeline")
    assert found.keys() == wanted
