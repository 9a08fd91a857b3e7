"""Each protocol as the seed lists it: its calls to the BTL and its lettered steps, side by side.

With the seed (ob1-protocols, Protocol Details) in the other hand: the first column is the seed's
letter, the second whose step it is, the third the call as the seed writes it, or what is taken in
from the peer. Letters missing there (B, D, G, J) are those of its figures' arrows. RDMA Pipeline
has F and H twice, as in the seed: F are FRAGs and the FINs of puts; H is a FRAG that follows
another, and a FIN taken in.

What differs from the seed's listings on purpose is in ob1's README: ACK on a RNDV or RGET,
ACK on the first PUT alone, NORDMA on the other ACK, when registrations are given back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from ompy.frameworks.btl import GET, NOT_AVAILABLE, PUT
from ompy.frameworks.pml import BUFFERED, SYNCHRONOUS

from tests.sim.ob1.journals import SIDES, rows, table
from tests.sim.ob1.programs import one_message, protocols
from tests.support.btl_journal import ImmediateJournalModule, JournalModule
from tests.support.rdma_btl import RdmaRail, rdma_world

PUTS, GETS = frozenset({"put"}), frozenset({"get"})


@dataclass(frozen=True)
class Case:
    """One message of rank 0 to rank 1."""

    program: Any
    rails: tuple[RdmaRail, ...]
    module: type[JournalModule] = JournalModule


PROTOCOLS = {
    "Eager Send (Immediate)": Case(one_message(100), (RdmaRail(),), ImmediateJournalModule),
    "Eager Send (Prepared)": Case(one_message(900), (RdmaRail(),)),
    "Eager Send (Allocated)": Case(one_message(900), (RdmaRail(inplace=False),)),
    "RDMA Direct Put": Case(one_message(12_000), (RdmaRail(flags=PUT),) * 2),
    "RDMA Direct Get": Case(one_message(12_000), (RdmaRail(flags=GET),) * 2),
    "Send/Receive Pipeline": Case(one_message(8000, gather=True), (RdmaRail(flags=PUT),)),
    "RDMA Pipeline": Case(
        one_message(30_000),
        (RdmaRail(flags=PUT, pipeline_send_length=8000, pipeline_frag_size=11_000),),
    ),
    "Buffered Pipeline": Case(one_message(8000, mode=BUFFERED), (RdmaRail(flags=PUT),)),
}
FALLBACKS = {
    "Put, but the receive is in pieces": Case(
        one_message(3000, scatter=True), (RdmaRail(flags=PUT),)
    ),
    "Get, but the receive is in pieces": Case(
        one_message(3000, scatter=True), (RdmaRail(flags=GET),)
    ),
    "RDMA Pipeline, but the receive is in pieces": Case(
        one_message(3000, scatter=True), (RdmaRail(flags=PUT, min_rdma_pipeline_size=0),)
    ),
    "a put fails": Case(one_message(3000), (RdmaRail(flags=PUT, fail=PUTS),)),
    "a put is refused": Case(one_message(3000), (RdmaRail(flags=PUT, refuse=PUTS),)),
    "a get fails": Case(one_message(3000), (RdmaRail(flags=GET, fail=GETS),)),
    "a get is not available and a put is": Case(
        one_message(3000),
        (RdmaRail(flags=PUT | GET, refuse=GETS, refuse_with=NOT_AVAILABLE),),
    ),
    "synchronous and small": Case(one_message(900, mode=SYNCHRONOUS), (RdmaRail(),)),
}
# protocol: the seed's letters of the sender and of the receiver
SEED_LETTERS = {
    "Eager Send (Immediate)": ("A", "B"),
    "Eager Send (Prepared)": ("AB", "C"),
    "Eager Send (Allocated)": ("AB", "C"),
    "RDMA Direct Put": ("AEF", "CHI"),
    "RDMA Direct Get": ("AFG", "CD"),
    "Send/Receive Pipeline": ("AEF", "CG"),
    "RDMA Pipeline": ("AFGH", "CHIK"),
    "Buffered Pipeline": ("AEF", "CG"),
}
TABLES = {
    "Eager Send (Immediate)": """
A send    btl_sendi(flags = PRIORITY | BTL_OWNERSHIP, tag = MATCH, pml_flags = 0, size = 100)
A send    complete
C receive complete
""",
    "Eager Send (Prepared)": """
A send    btl_prepare_src(size = 900, flags = PRIORITY | BTL_OWNERSHIP)
A send    btl_send(tag = MATCH, pml_flags = 0)
B send    complete
C receive complete
""",
    "Eager Send (Allocated)": """
A send    btl_alloc(size = 916, flags = PRIORITY | BTL_OWNERSHIP)
A send    btl_send(tag = MATCH, pml_flags = 0)
B send    complete
C receive complete
""",
    "RDMA Direct Put": """
A send    btl_register_mem(rail = 0, size = 12000, flags = REMOTE_READ)
A send    btl_register_mem(rail = 1, size = 12000, flags = REMOTE_READ)
A send    btl_alloc(rail = 0, size = 32, flags = PRIORITY | BTL_OWNERSHIP)
A send    btl_send(rail = 0, tag = RNDV, pml_flags = ACK | PIN | CONTIG | SIGNAL, length = 12000)
E send    takes in PUT
E send    btl_put(rail = 0, size = 6000)
E send    takes in PUT
E send    btl_put(rail = 1, size = 6000)
F send    btl_alloc(rail = 0, size = 24, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
F send    btl_send(rail = 0, tag = FIN, pml_flags = 0, size = 6000)
F send    btl_alloc(rail = 1, size = 24, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
F send    btl_send(rail = 1, tag = FIN, pml_flags = 0, size = 6000)
F send    complete
F send    btl_deregister_mem(rail = 0, size = 12000)
F send    btl_deregister_mem(rail = 1, size = 12000)
C receive btl_register_mem(rail = 0, size = 12000, flags = REMOTE_WRITE)
C receive btl_register_mem(rail = 1, size = 12000, flags = REMOTE_WRITE)
C receive btl_alloc(rail = 0, size = 64, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
C receive btl_send(rail = 0, tag = PUT, pml_flags = ACK, offset = 0, size = 6000)
C receive btl_alloc(rail = 1, size = 64, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
C receive btl_send(rail = 1, tag = PUT, pml_flags = 0, offset = 6000, size = 6000)
H receive takes in FIN
H receive takes in FIN
I receive btl_deregister_mem(rail = 0, size = 12000)
I receive btl_deregister_mem(rail = 1, size = 12000)
I receive complete
""",
    "RDMA Direct Get": """
A send    btl_register_mem(rail = 0, size = 12000, flags = REMOTE_READ)
A send    btl_register_mem(rail = 1, size = 12000, flags = REMOTE_READ)
A send    btl_alloc(rail = 0, size = 73, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
A send    btl_send(rail = 0, tag = RGET, pml_flags = ACK | PIN | CONTIG, length = 12000)
F send    takes in FIN
F send    takes in FIN
G send    complete
G send    btl_deregister_mem(rail = 0, size = 12000)
G send    btl_deregister_mem(rail = 1, size = 12000)
C receive btl_register_mem(rail = 0, size = 12000, flags = LOCAL_WRITE | REMOTE_WRITE)
C receive btl_register_mem(rail = 1, size = 12000, flags = LOCAL_WRITE | REMOTE_WRITE)
C receive btl_get(rail = 0, size = 6000)
C receive btl_get(rail = 1, size = 6000)
D receive btl_alloc(rail = 0, size = 24, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
D receive btl_send(rail = 0, tag = FIN, pml_flags = 0, size = 6000)
D receive btl_alloc(rail = 1, size = 24, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
D receive btl_send(rail = 1, tag = FIN, pml_flags = 0, size = 6000)
D receive btl_deregister_mem(rail = 0, size = 12000)
D receive btl_deregister_mem(rail = 1, size = 12000)
D receive complete
""",
    "Send/Receive Pipeline": """
A send    btl_prepare_src(size = 512, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
A send    btl_send(tag = RNDV, pml_flags = ACK | SIGNAL, length = 8000)
E send    takes in ACK
E send    btl_prepare_src(size = 2016, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
E send    btl_send(tag = FRAG, pml_flags = 0, offset = 512)
E send    btl_prepare_src(size = 2016, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
E send    btl_send(tag = FRAG, pml_flags = 0, offset = 2528)
E send    btl_prepare_src(size = 2016, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
E send    btl_send(tag = FRAG, pml_flags = 0, offset = 4544)
F send    btl_prepare_src(size = 1440, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
F send    btl_send(tag = FRAG, pml_flags = 0, offset = 6560)
F send    complete
C receive btl_alloc(size = 40, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
C receive btl_send(tag = ACK, pml_flags = NORDMA, offset = 512, size = 0)
G receive takes in FRAG
G receive takes in FRAG
G receive takes in FRAG
G receive takes in FRAG
G receive complete
""",
    "RDMA Pipeline": """
A send    btl_prepare_src(size = 512, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
A send    btl_send(tag = RNDV, pml_flags = ACK | CONTIG, length = 30000)
F send    takes in ACK
F send    btl_prepare_src(size = 2016, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
F send    btl_send(tag = FRAG, pml_flags = 0, offset = 22000)
F send    btl_prepare_src(size = 2016, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
F send    btl_send(tag = FRAG, pml_flags = 0, offset = 24016)
F send    btl_prepare_src(size = 2016, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
F send    btl_send(tag = FRAG, pml_flags = 0, offset = 26032)
G send    takes in PUT
G send    btl_register_mem(size = 11000, flags = REMOTE_READ)
G send    btl_put(size = 11000)
G send    takes in PUT
G send    btl_register_mem(size = 10488, flags = REMOTE_READ)
G send    btl_put(size = 10488)
H send    btl_prepare_src(size = 1952, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
H send    btl_send(tag = FRAG, pml_flags = 0, offset = 28048)
F send    btl_deregister_mem(size = 11000)
F send    btl_alloc(size = 24, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
F send    btl_send(tag = FIN, pml_flags = 0, size = 11000)
F send    btl_deregister_mem(size = 10488)
F send    btl_alloc(size = 24, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
F send    btl_send(tag = FIN, pml_flags = 0, size = 10488)
F send    complete
C receive btl_alloc(size = 40, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
C receive btl_send(tag = ACK, pml_flags = 0, offset = 22000, size = 0)
C receive btl_register_mem(size = 11000, flags = REMOTE_WRITE)
C receive btl_alloc(size = 64, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
C receive btl_send(tag = PUT, pml_flags = 0, offset = 512, size = 11000)
C receive btl_register_mem(size = 10488, flags = REMOTE_WRITE)
C receive btl_alloc(size = 64, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
C receive btl_send(tag = PUT, pml_flags = 0, offset = 11512, size = 10488)
K receive takes in FRAG
K receive takes in FRAG
K receive takes in FRAG
K receive takes in FRAG
I receive btl_deregister_mem(size = 11000)
H receive takes in FIN
I receive btl_deregister_mem(size = 10488)
H receive takes in FIN
I receive complete
""",
    "Buffered Pipeline": """
A send    btl_alloc(size = 544, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
A send    btl_send(tag = RNDV, pml_flags = ACK, length = 8000)
E send    takes in ACK
E send    btl_prepare_src(size = 2016, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
E send    btl_send(tag = FRAG, pml_flags = 0, offset = 512)
E send    btl_prepare_src(size = 2016, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
E send    btl_send(tag = FRAG, pml_flags = 0, offset = 2528)
E send    btl_prepare_src(size = 2016, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
E send    btl_send(tag = FRAG, pml_flags = 0, offset = 4544)
F send    btl_prepare_src(size = 1440, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
F send    btl_send(tag = FRAG, pml_flags = 0, offset = 6560)
F send    complete
C receive btl_alloc(size = 40, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
C receive btl_send(tag = ACK, pml_flags = NORDMA, offset = 512, size = 0)
G receive takes in FRAG
G receive takes in FRAG
G receive takes in FRAG
G receive takes in FRAG
G receive complete
""",
}
FALLBACK_TABLES = {
    "Put, but the receive is in pieces": """
A send    btl_register_mem(size = 3000, flags = REMOTE_READ)
A send    btl_alloc(size = 32, flags = PRIORITY | BTL_OWNERSHIP)
A send    btl_send(tag = RNDV, pml_flags = ACK | PIN | CONTIG | SIGNAL, length = 3000)
E send    takes in ACK
E send    btl_prepare_src(size = 2016, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
E send    btl_send(tag = FRAG, pml_flags = 0, offset = 0)
E send    btl_prepare_src(size = 984, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
E send    btl_send(tag = FRAG, pml_flags = 0, offset = 2016)
F send    complete
F send    btl_deregister_mem(size = 3000)
C receive btl_alloc(size = 40, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
C receive btl_send(tag = ACK, pml_flags = NORDMA, offset = 0, size = 0)
G receive takes in FRAG
G receive takes in FRAG
G receive complete
""",
    "Get, but the receive is in pieces": """
A send    btl_register_mem(size = 3000, flags = REMOTE_READ)
A send    btl_alloc(size = 56, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
A send    btl_send(tag = RGET, pml_flags = ACK | PIN | CONTIG, length = 3000)
E send    takes in ACK
E send    btl_prepare_src(size = 2016, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
E send    btl_send(tag = FRAG, pml_flags = 0, offset = 0)
E send    btl_prepare_src(size = 984, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
E send    btl_send(tag = FRAG, pml_flags = 0, offset = 2016)
F send    complete
F send    btl_deregister_mem(size = 3000)
C receive btl_alloc(size = 40, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
C receive btl_send(tag = ACK, pml_flags = NORDMA, offset = 0, size = 0)
G receive takes in FRAG
G receive takes in FRAG
G receive complete
""",
    "RDMA Pipeline, but the receive is in pieces": """
A send    btl_prepare_src(size = 512, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
A send    btl_send(tag = RNDV, pml_flags = ACK | CONTIG, length = 3000)
E send    takes in ACK
E send    btl_prepare_src(size = 2016, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
E send    btl_send(tag = FRAG, pml_flags = 0, offset = 512)
E send    btl_prepare_src(size = 472, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
E send    btl_send(tag = FRAG, pml_flags = 0, offset = 2528)
F send    complete
C receive btl_alloc(size = 40, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
C receive btl_send(tag = ACK, pml_flags = NORDMA, offset = 512, size = 0)
G receive takes in FRAG
G receive takes in FRAG
G receive complete
""",
    "a put fails": """
A send    btl_register_mem(size = 3000, flags = REMOTE_READ)
A send    btl_alloc(size = 32, flags = PRIORITY | BTL_OWNERSHIP)
A send    btl_send(tag = RNDV, pml_flags = ACK | PIN | CONTIG | SIGNAL, length = 3000)
E send    takes in PUT
E send    btl_put(size = 3000)
F send    btl_alloc(size = 24, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
F send    btl_send(tag = FIN, pml_flags = 0, size = -1)
F send    btl_prepare_src(size = 2016, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
F send    btl_send(tag = FRAG, pml_flags = 0, offset = 0)
F send    btl_prepare_src(size = 984, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
F send    btl_send(tag = FRAG, pml_flags = 0, offset = 2016)
F send    complete
F send    btl_deregister_mem(size = 3000)
C receive btl_register_mem(size = 3000, flags = REMOTE_WRITE)
C receive btl_alloc(size = 64, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
C receive btl_send(tag = PUT, pml_flags = ACK, offset = 0, size = 3000)
H receive takes in FIN
G receive takes in FRAG
G receive takes in FRAG
I receive btl_deregister_mem(size = 3000)
I receive complete
""",
    "a put is refused": """
A send    btl_register_mem(size = 3000, flags = REMOTE_READ)
A send    btl_alloc(size = 32, flags = PRIORITY | BTL_OWNERSHIP)
A send    btl_send(tag = RNDV, pml_flags = ACK | PIN | CONTIG | SIGNAL, length = 3000)
E send    takes in PUT
E send    btl_put(size = 3000, result = -13)
F send    btl_alloc(size = 24, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
F send    btl_send(tag = FIN, pml_flags = 0, size = -13)
F send    btl_prepare_src(size = 2016, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
F send    btl_send(tag = FRAG, pml_flags = 0, offset = 0)
F send    btl_prepare_src(size = 984, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
F send    btl_send(tag = FRAG, pml_flags = 0, offset = 2016)
F send    complete
F send    btl_deregister_mem(size = 3000)
C receive btl_register_mem(size = 3000, flags = REMOTE_WRITE)
C receive btl_alloc(size = 64, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
C receive btl_send(tag = PUT, pml_flags = ACK, offset = 0, size = 3000)
H receive takes in FIN
G receive takes in FRAG
G receive takes in FRAG
I receive btl_deregister_mem(size = 3000)
I receive complete
""",
    "a get fails": """
A send    btl_register_mem(size = 3000, flags = REMOTE_READ)
A send    btl_alloc(size = 56, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
A send    btl_send(tag = RGET, pml_flags = ACK | PIN | CONTIG, length = 3000)
E send    takes in ACK
E send    btl_prepare_src(size = 2016, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
E send    btl_send(tag = FRAG, pml_flags = 0, offset = 0)
E send    btl_prepare_src(size = 984, flags = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL)
E send    btl_send(tag = FRAG, pml_flags = 0, offset = 2016)
G send    complete
G send    btl_deregister_mem(size = 3000)
C receive btl_register_mem(size = 3000, flags = LOCAL_WRITE | REMOTE_WRITE)
C receive btl_get(size = 3000)
C receive btl_alloc(size = 40, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
C receive btl_send(tag = ACK, pml_flags = 0, offset = 0, size = 3000)
G receive takes in FRAG
G receive takes in FRAG
D receive btl_deregister_mem(size = 3000)
D receive complete
""",
    "a get is not available and a put is": """
A send    btl_register_mem(size = 3000, flags = REMOTE_READ)
A send    btl_alloc(size = 56, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
A send    btl_send(tag = RGET, pml_flags = ACK | PIN | CONTIG, length = 3000)
E send    takes in PUT
E send    btl_put(size = 3000)
F send    btl_alloc(size = 24, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
F send    btl_send(tag = FIN, pml_flags = 0, size = 3000)
G send    complete
G send    btl_deregister_mem(size = 3000)
C receive btl_register_mem(size = 3000, flags = LOCAL_WRITE | REMOTE_WRITE)
C receive btl_get(size = 3000, result = -16)
C receive btl_alloc(size = 64, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
C receive btl_send(tag = PUT, pml_flags = 0, offset = 0, size = 3000)
H receive takes in FIN
I receive btl_deregister_mem(size = 3000)
D receive complete
""",
    "synchronous and small": """
A send    btl_prepare_src(size = 900, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
A send    btl_send(tag = RNDV, pml_flags = ACK | SIGNAL, length = 900)
E send    takes in ACK
F send    complete
C receive btl_alloc(size = 40, flags = PRIORITY | BTL_OWNERSHIP | SIGNAL)
C receive btl_send(tag = ACK, pml_flags = NORDMA, offset = 900, size = 0)
G receive complete
""",
}


def untraced_end(program: Any) -> Any:
    """Record the program only: the LEAVE that a rank says in Finalize is none of the seed's."""

    def run(process: Any) -> Any:
        result = program(process)
        process.context.trace.active = False
        return result

    return run


def check(case: Case, expected: str) -> Any:
    program = untraced_end(case.program)
    job = rdma_world(2, program, case.rails, trace=True, module=case.module)
    for rank, side in enumerate(SIDES):
        happened, wanted = rows(job, rank), table(expected)[side]
        assert [what for _, what in happened] == [what for _, what in wanted]
        for (letter, what), (listed, _) in zip(happened, wanted, strict=True):
            assert letter in ("", listed), f"{side}: {what} is step {listed}, not {letter}"
    return job


@pytest.mark.parametrize("name", PROTOCOLS)
def test_protocol(name: str) -> None:
    job = check(PROTOCOLS[name], TABLES[name])
    assert protocols(job)[0] == name


@pytest.mark.parametrize("name", FALLBACKS)
def test_fallback(name: str) -> None:
    check(FALLBACKS[name], FALLBACK_TABLES[name])


def test_every_letter_of_the_seed_is_there() -> None:
    """Immediate's B apart: the receiver of an eager message cannot tell which it was, it says C."""
    assert TABLES.keys() == SEED_LETTERS.keys()
    for name, letters in SEED_LETTERS.items():
        listed = table(TABLES[name])
        found = tuple("".join(sorted({letter for letter, _ in listed[s]})) for s in SIDES)
        assert found == (letters if name != "Eager Send (Immediate)" else ("A", "C"))
