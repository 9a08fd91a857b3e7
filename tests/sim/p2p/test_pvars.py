"""Performance variables: what is declared is there, and only that; sums over ranks agree."""

from __future__ import annotations

import pytest
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.performance import declared, measured
from ompy.runtime.ranks.process import RankProcess

from tests.support.worlds import virtual


def program(process: RankProcess) -> tuple[dict[str, int], set[str]]:
    comm = world_of(process)
    for size in (0, 100, 100_000):
        comm.Sendrecv(bytes(size), 1 - comm.rank, 0, bytearray(size), 1 - comm.rank)
    comm.barrier()
    names = {module.name for module in process.context.btls}
    counted = {f"pml_{process.context.pml_name}_{name}" for name in process.pml.counted()}
    for module in process.context.btls:
        if module.name in {"self", "sm", "tcp"}:  # others tell what has counted anything
            counted |= {f"btl_{module.name}_{name}" for name in module.counters()}
    known = set(declared(process))
    assert counted <= known
    checked = {name for name in known if not name.endswith("_highest")}
    if names <= {"self", "sm", "tcp"}:
        assert counted == checked
    return measured(process), known


@pytest.mark.parametrize("btl", ["self,sm", "self,tcp", "self,usnic", "self,openib", "self,ofi"])
@pytest.mark.parametrize("pml", ["ob1", "bfo"])
def test_what_is_declared(pml: str, btl: str) -> None:
    results = virtual(2, program, btl=btl, pml=pml).results
    for values, known in results:
        assert values.keys() == known
    sent, received = (
        sum(values[f"pml_{pml}_messages_{way}"] for values, _ in results)
        for way in ("sent", "received")
    )
    assert sent == received >= 8
    kinds = {"usnic": "num_total_sends", "openib": "sends", "ofi": "fragments"}
    name = btl.removeprefix("self,")
    if name in kinds:
        assert all(values[f"btl_{name}_{kinds[name]}"] > 0 for values, _ in results)
