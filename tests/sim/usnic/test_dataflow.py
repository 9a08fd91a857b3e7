"""What ob1 asks usnic for: which calls a message makes, and how many of its bytes go by each."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess
from ompy_components.btl.usnic.module import UsnicModule

from tests.support.forms import interpreted_only
from tests.support.worlds import virtual

CONTROL_MAX = 56 + 16  # bytes of a message without user data at most: a PUT and its handle
EAGER, LARGE = 2_000, 400_000
MATCH, RNDV = 65, 66  # reference openmpi.md 3.3


@interpreted_only
def test_what_ob1_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """`alloc` for control messages, `prepare_src` for what begins a message, `put` for the rest."""
    asked: list[tuple[int, str, int]] = []
    made: dict[object, str] = {}
    tags: list[tuple[int, str, int]] = []

    def note(name: str, size_of: Any) -> None:
        plain = getattr(UsnicModule, name)

        def noting(module: UsnicModule, *args: Any) -> Any:
            result = plain(module, *args)
            asked.append((module.context.rank, name, size_of(args, result)))
            if name != "put":
                made[result] = name
            return result

        monkeypatch.setattr(UsnicModule, name, noting)

    note("alloc", lambda args, _: args[2])
    note("prepare_src", lambda _, made: made.payload_size)
    note("put", lambda args, _: len(args[1]))
    send = UsnicModule.send

    def sending(module: UsnicModule, endpoint: Any, descriptor: Any, tag: int) -> int:
        tags.append((module.context.rank, made.get(descriptor, "usnic's own"), tag))
        return send(module, endpoint, descriptor, tag)

    monkeypatch.setattr(UsnicModule, "send", sending)

    def program(process: RankProcess) -> None:
        comm = world_of(process)
        for size in (EAGER, LARGE):
            if comm.rank == 0:
                comm.Send(bytes([size % 251]) * size, 1, 0)
            else:
                room = bytearray(size)
                comm.Recv(room, 0, 0)
                assert room == bytes([size % 251]) * size

    virtual(2, program, btl="self,usnic")
    assert max(size for _, name, size in asked if name == "alloc") <= CONTROL_MAX
    assert {name for rank, name, _ in asked if rank == 1} == {"alloc"}
    begun = [(name, tag) for rank, name, tag in tags if rank == 0 and tag in (MATCH, RNDV)]
    assert begun == [("prepare_src", MATCH), ("prepare_src", RNDV)]
    sizes = {
        name: [size for rank, other, size in asked if (rank, other) == (0, name)]
        for name in ("prepare_src", "put")
    }
    assert sizes["prepare_src"][0] == EAGER
    assert sum(sizes["prepare_src"]) + sum(sizes["put"]) == EAGER + LARGE
    assert sum(sizes["put"]) > LARGE / 2
