"""Memory that peers map (`MPI.Alloc_mem`): sm copies it without the kernel, from either side."""

from __future__ import annotations

import pytest
from ompy.data.convertor import ContiguousConvertor
from ompy.frameworks.pml import STANDARD
from ompy.net.base import LinkError
from ompy.net.memory import vm
from ompy.net.virtual.virtual_copy import VirtualCopy
from ompy.runtime.ranks.process import RankProcess

from tests.sim.p2p.programs import pattern, world
from tests.support.effort import effort
from tests.support.worlds import virtual

SIZE = 1_000_003
PROBE = 8  # bytes that a rank reads to see whether the kernel copies


def exchanged(where: str, begin: int = 5):
    """One message from rank 0 to rank 1; the memory of both, or of the sender, is a region."""

    def program(process: RankProcess) -> None:
        comm, pml, network = world(process), process.pml, process.context.network
        process.context.engine.has_core = True
        shared = where == "both" or comm.rank == 0
        memory = network.region(SIZE + 99) if shared else memoryview(bytearray(SIZE + 99))
        part = memory[begin : begin + SIZE]
        if comm.rank == 0:
            part[:] = pattern(SIZE, 3)
            pml.send(comm, ContiguousConvertor(part), 1, 5, STANDARD)
        else:
            pml.recv(comm, ContiguousConvertor(part), 0, 5)
            assert bytes(part) == pattern(SIZE, 3)
            assert not any(memory[:begin])
            assert not any(memory[begin + SIZE :])
        if shared:
            network.release_region(vm.address_of(memory))

    return program


def only_the_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's copy does nothing but the first look."""
    read = VirtualCopy.read

    def small(self: VirtualCopy, process: int, address: int, view: memoryview) -> None:
        if len(view) != PROBE:
            raise LinkError("this copy was not to be")
        read(self, process, address, view)

    monkeypatch.setattr(VirtualCopy, "read", small)
    monkeypatch.setattr(VirtualCopy, "write", small)


@pytest.mark.parametrize("seed", range(effort(2)))
@pytest.mark.parametrize(("where", "split"), [("both", 1 << 19), ("both", 0), ("sender", 0)])
def test_the_kernel_copies_nothing(
    monkeypatch: pytest.MonkeyPatch, where: str, split: int, seed: int
) -> None:
    only_the_probe(monkeypatch)
    settings = {"btl": "self,sm", "btl_sm_split_least": split}
    job = virtual(2, exchanged(where), seed=seed, trace=True, **settings)
    moved = [event.name for event in job.events() if event.name in ("READ", "WRITE", "FRAG")]
    assert sorted(moved) == (["READ", "WRITE"] if split else ["READ"])


def test_what_cannot_be_mapped_the_kernel_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> memoryview:
        raise LinkError("not today")

    monkeypatch.setattr(VirtualCopy, "map", refuse)
    job = virtual(2, exchanged("both"), trace=True, btl="self,sm", btl_sm_split_least=0)
    names = [event.name for event in job.events()]
    assert "NO_REGION" in names
    assert "READ" in names
    assert "FRAG" not in names
