"""What a rank says of its sleeps, and when."""

from __future__ import annotations

import json
from typing import Any

from ompy.runtime.diagnosis import standing
from ompy.runtime.diagnosis.standing import Standing
from ompy.runtime.ranks.process import RankProcess

from tests.sim.p2p.programs import buffer, world
from tests.support.worlds import virtual


def test_a_rank_that_is_asked_between_two_naps_says_that_it_sleeps_on(monkeypatch: Any) -> None:
    """It is awake for a moment, and says so; nobody would hear of the rest of its sleep."""
    monkeypatch.setattr(standing, "program_threads", list)  # the virtual world's are no program's
    monkeypatch.setattr(standing.signal, "getitimer", lambda _which: (0.0, 0.0))  # the test has one

    def program(process: RankProcess) -> list[tuple[int, bool]]:
        said: list[tuple[int, bool]] = []

        def tell(question: int, body: bytes) -> None:
            said.append((question, bool(json.loads(body)["live"])))

        stands = Standing(process, tell)
        comm = world(process)
        request = process.pml.irecv(comm, buffer(8)[1], 1 - comm.rank, 1)
        for _ in range(3):  # naps of one sleep
            stands.sleeps(request, 0)
            stands.wakes()
        stands.asked(7)
        for _ in range(3):
            stands.sleeps(request, 0)
            stands.wakes()
        process.pml.cancel(request)
        return said

    for said in virtual(2, program, btl="self,sm").results:
        assert said == [(0, False), (7, True), (0, False)]
