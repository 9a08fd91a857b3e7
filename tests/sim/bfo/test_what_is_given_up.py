"""What an error takes out of use: one path, or everything that the interface reaches.

Source: seed bfo (1, 2, 4).
"""

from __future__ import annotations

from typing import Any

import pytest
from ompy.frameworks.btl import ERROR_NONFATAL
from ompy.frameworks.pml import STANDARD
from ompy_components.pml.bfo.module import Bfo
from ompy_components.pml.ob1.module import Ob1

from tests.sim.p2p.programs import buffer, pattern, send, world
from tests.support.failing_rails import US, FailingRail, Fault, failing_world
from tests.support.worlds import virtual

RAIL = FailingRail(flags=0)
OTHER = FailingRail(flags=0, latency=50)  # the eager set is the first rail alone, while it is there


def program(process: Any) -> None:
    """Rank 0 sends to rank 1, waits until everything is known, and sends to both."""
    comm, pml = world(process), process.pml
    if comm.rank:
        for tag in range(3 - comm.rank):
            memory, room = buffer(900)
            pml.recv(comm, room, 0, tag)
            assert bytes(memory) == pattern(900, tag)
        return
    for proc in process.context.procs[1:]:
        pml.endpoint(proc)  # of peers that nobody has asked for nothing is told
    pml.send(comm, send(pattern(900, 0)), 1, 0, STANDARD)
    process.context.engine.wait_until(lambda: False, 500 * US)
    pml.send(comm, send(pattern(900, 1)), 1, 1, STANDARD)
    pml.send(comm, send(pattern(900, 0)), 2, 0, STANDARD)


@pytest.mark.parametrize(("gone", "rails"), [(False, [0, 1, 1, 0]), (True, [0, 1, 1, 1])])
def test_a_path_to_one_peer_or_the_interface(gone: bool, rails: list[int]) -> None:
    """The message that was lost, the same again, the next to this peer, and one to another."""
    job = failing_world([program] * 3, [RAIL, OTHER], [Fault("lost", "MATCH", gone=gone)])
    own = [index for name, rank, index in job.net.log if (name, rank) == ("MATCH", 0)]
    assert own[-4:] == rails
    lost = {event.peer for event in job.processes[0].context.rail_events}
    assert lost == ({1, 2} if gone else {1})


@pytest.mark.parametrize(("peer", "rails"), [(None, [1, 1]), (1, [1, 0]), (2, [0, 1])])
def test_whom_the_callback_names(peer: int | None, rails: list[int]) -> None:
    """One process, or none for all, though nothing has failed on the way to anybody."""

    def told(process: Any) -> None:
        comm, pml = world(process), process.pml
        if comm.rank:
            pml.recv(comm, buffer(900)[1], 0, 0)
            return
        for proc in process.context.procs[1:]:
            pml.endpoint(proc)
        module = process.context.btls[0]
        about = None if peer is None else process.context.procs[peer]
        module.error_callback.failed(module, ERROR_NONFATAL, about, "it is gone")
        for target in (1, 2):
            pml.send(comm, send(pattern(900, 0)), target, 0, STANDARD)

    job = failing_world([told] * 3, [RAIL, OTHER])
    sent = [index for name, rank, index in job.net.log if (name, rank) == ("MATCH", 0)]
    assert sent == rails


def test_a_rail_that_broke_is_not_used_again_unless_it_heals() -> None:
    def many(process: Any) -> None:
        comm, pml = world(process), process.pml
        for tag in range(20):
            if comm.rank == 0:
                pml.send(comm, send(pattern(9_000, tag)), 1, tag, STANDARD)
                continue
            memory, room = buffer(9_000)
            pml.recv(comm, room, 0, tag)
            assert bytes(memory) == pattern(9_000, tag)

    job = failing_world([many] * 2, [RAIL] * 2, [Fault("lost", "FRAG", 9)])
    rails = [index for name, _, index in job.net.log if name == "FRAG"]
    assert set(rails[:8]) == {0, 1}, "both carry while both are there"
    assert len(set(rails[20:])) == 1
    assert len(rails) > 60


@pytest.mark.parametrize(("settings", "kind"), [({}, Ob1), ({"pml": "bfo"}, Bfo)])
def test_bfo_is_chosen_by_name_alone(settings: dict[str, object], kind: type) -> None:
    def which(process: Any) -> tuple[type, bool]:
        return type(process.pml), process.context.fails_over

    job = virtual(2, which, btl="self,sm", **settings)
    assert job.results == [(kind, kind is Bfo)] * 2
