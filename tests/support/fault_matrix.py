"""Fragment x fault x moment x protocol: which combinations there can be, and a world for each.

Source: reference openmpi.md 3.3 and 4.5 for the fragments, 3.5 for the protocols; faults and
moments are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from ompy.data.buffered import BufferedConvertor
from ompy.data.convertor import ContiguousConvertor, Convertor
from ompy.frameworks.btl import GET, PUT
from ompy.frameworks.pml import BUFFERED, STANDARD

from tests.sim.p2p.programs import buffer, pattern, world
from tests.support.failing_rails import READ, SENDI, US, WRITE, FailingRail, Fault, failing_world

NOTIFY, RESTART_ACK = "RNDVRESTARTNOTIFY", "RNDVRESTARTACK"
RESTART_NACK, RECV_ERR = "RNDVRESTARTNACK", "RECVERRNOTIFY"
DANCE: Final = (NOTIFY, RESTART_ACK, RESTART_NACK, RECV_ERR)
FIRST: Final = ("MATCH", SENDI, "RNDV", "RGET")
FRAGMENTS: Final = (*FIRST, "ACK", "PUT", "FRAG", "FIN", WRITE, READ, *DANCE)
FAULTS: Final = (
    "lost",
    "error but delivered",
    "delivered twice",
    "late",
    "corrupted",
    "half-open",
    "stuck in eager RDMA",
    "NIC gone",
    "NIC flaps",
)
MOMENTS: Final = ("before match", "during match", "after match")
MOMENTS_OF_NOTICE: Final = ("sender first", "receiver first", "both")

_RAIL = FailingRail(eager_limit=1024, rndv_eager_limit=500, max_send_size=2048)
# rail, size of the message, mode, and the fragments it has when nothing fails
PROTOCOLS: Final[dict[str, tuple[FailingRail, int, int, tuple[str, ...]]]] = {
    "eager immediate": (replace(_RAIL, sendi=True, flags=0), 100, STANDARD, (SENDI,)),
    "eager prepared": (replace(_RAIL, flags=0), 900, STANDARD, ("MATCH",)),
    "eager allocated": (replace(_RAIL, flags=0, inplace=False), 900, STANDARD, ("MATCH",)),
    "direct put": (
        replace(_RAIL, flags=PUT),
        9_000,
        STANDARD,
        ("RNDV", "PUT", WRITE, "FIN"),
    ),
    "direct get": (replace(_RAIL, flags=PUT | GET), 9_000, STANDARD, ("RGET", READ, "FIN")),
    "send/receive pipeline": (replace(_RAIL, flags=0), 9_000, STANDARD, ("RNDV", "ACK", "FRAG")),
    "RDMA pipeline": (
        replace(_RAIL, flags=PUT, min_rdma_pipeline_size=4_000, pipeline_frag_size=1_000),
        12_000,
        STANDARD,
        ("RNDV", "ACK", "PUT", "FRAG", WRITE, "FIN"),
    ),
    "buffered": (replace(_RAIL, flags=0), 9_000, BUFFERED, ("RNDV", "ACK", "FRAG")),
}


@dataclass(frozen=True)
class Cell:
    """One combination."""

    fragment: str
    fault: str
    moment: str
    protocol: str


def cells() -> Iterator[Cell]:
    """All there are, valid or not."""
    for values in product(FRAGMENTS, FAULTS, (*MOMENTS, *MOMENTS_OF_NOTICE), PROTOCOLS):
        yield Cell(*values)


def impossible(cell: Cell) -> str:
    """Why there is no such case; empty when there is."""
    return _no_fragment(cell) or _no_fault(cell) or _no_moment(cell)


def _no_fragment(cell: Cell) -> str:
    own = PROTOCOLS[cell.protocol][3]
    if cell.fragment in DANCE:
        if cell.protocol.startswith("eager"):
            return "an eager message is sent again, it does not dance"
        if cell.fragment == RESTART_NACK and "FRAG" not in own:
            return "a receiver that has everything by put or get has said so in its FINs"
        return ""
    return "" if cell.fragment in own else "the protocol has no such fragment"


def _no_fault(cell: Cell) -> str:
    once = ("ACK", "PUT", "FRAG", WRITE, READ)
    if cell.fault == "stuck in eager RDMA" and cell.fragment in (WRITE, READ):
        return "it is no fragment, and goes past the ring"
    if cell.fault == "delivered twice" and cell.fragment in once:
        return "it is never sent twice under one id, and a BTL delivers once"
    if cell.fault == "late" and cell.fragment == READ:
        return "a read that has failed writes nothing any more"
    return ""


def _no_moment(cell: Cell) -> str:
    if cell.moment in MOMENTS_OF_NOTICE:
        if cell.fault in ("delivered twice", "corrupted"):
            return "nobody notices anything: the path is good"
        if cell.fault in ("half-open", "NIC gone") and cell.moment != "sender first":
            return "by its nature its own end notices first"
        return ""
    if cell.fragment not in FIRST and cell.moment != "after match":
        return "there is no such fragment before the match"
    arrives = ("error but delivered", "delivered twice")
    if cell.fragment in FIRST and cell.moment == "after match" and cell.fault not in arrives:
        return "what has not arrived is not matched"
    return ""


def run(cell: Cell) -> int:
    """Run a world for a cell.

    Returns:
        Faults of the cell's kind that were delivered, not counting the one that makes them dance.

    Raises:
        AssertionError: the message did not arrive as it was sent, or something was left behind.
    """
    rail, size, mode, own = PROTOCOLS[cell.protocol]
    late_post = {"before match": 500 * US, "during match": 2 * US}.get(cell.moment, 0)
    what = {
        "error but delivered": "error",
        "delivered twice": "twice",
        "late": "late",
        "corrupted": "again",
        "stuck in eager RDMA": "stuck",
    }
    first = cell.moment.split()[0] if cell.moment in MOMENTS_OF_NOTICE else "sender"
    fault = Fault(
        what.get(cell.fault, "lost"),
        cell.fragment,
        first=first,
        gone=cell.fault == "NIC gone",
        delay=300 * US,
    )
    if cell.fault == "half-open":
        rail = replace(rail, other_end=-1)
    if cell.fault == "NIC flaps":
        rail = replace(rail, heal=3 * US, notice=3 * US)
    if cell.moment == "after match":
        rail = replace(rail, notice=200 * US)
    plan = [fault]
    if cell.fragment in DANCE:
        plan.insert(0, _opening(cell.fragment, own))
        # whoever sends the last fragment hears that it failed when the receiver has finished
        rail = replace(rail, notice=150 * US) if cell.fragment == RESTART_NACK else rail
    programs = [_sender(size, mode, early=not late_post), _receiver(size, late_post)]
    job = failing_world(programs, (rail, rail, rail), plan)
    assert not job.net.plan, f"not delivered: {job.net.plan}; {job.net.log}"
    return sum(job.net.delivered.values()) - (len(plan) - 1)


def _opening(fragment: str, own: tuple[str, ...]) -> Fault:
    """The fault that makes a message dance."""
    if fragment == RESTART_NACK:
        return Fault("error", "FRAG")
    if fragment == RECV_ERR:
        return Fault("lost", next(name for name in ("ACK", READ, "PUT") if name in own))
    return Fault("lost", next(name for name in ("FRAG", WRITE, READ) if name in own))


def _sender(size: int, mode: int, *, early: bool) -> Any:
    def program(process: Any) -> None:
        comm, pml = world(process), process.pml
        if early:
            process.context.wireup.fence()  # the receive is posted
        data = bytearray(pattern(size, 1))
        convertor: Convertor = ContiguousConvertor(memoryview(data))
        if mode == BUFFERED:
            convertor = BufferedConvertor(convertor, lambda n: memoryview(bytearray(n)))
        request = pml.isend(comm, convertor, 1, 5, mode)
        if mode == BUFFERED:
            convertor.keep(0)
            data[:] = b"\xaa" * size
        pml.wait(comm, request)

    return program


def _receiver(size: int, late: int) -> Any:
    def program(process: Any) -> None:
        comm, pml = world(process), process.pml
        memory, room = buffer(size)
        if late:
            end = process.context.engine.now() + late
            while process.context.engine.now() < end:
                process.context.engine.progress()
        request = pml.irecv(comm, room, 0, 5)
        if not late:
            process.context.wireup.fence()
        pml.wait(comm, request)
        assert (request.received, request.length) == (size, size)
        assert bytes(memory) == pattern(size, 1)
        # nothing else may come
        assert pml.iprobe(comm, 0, 5) is None

    return program
