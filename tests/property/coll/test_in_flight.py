"""Any collectives, blocking and not, several at a time, among other messages, by any algorithm.

Every rank begins the same calls in the same order and waits for them in an order of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from ompy.data.convertor import ContiguousConvertor
from ompy.data.request import Request
from ompy.frameworks.coll import OPERATIONS
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.pml import STANDARD
from ompy.runtime.ranks.process import RankProcess
from ompy_components.coll.tuned.decision import ALGORITHMS

from tests.sim.coll.calls import Drawn, prepare
from tests.sim.coll.programs import world
from tests.sim.coll.shapes import LAYOUTS, noise
from tests.support.effort import effort
from tests.support.worlds import virtual

MODES = ("blocking", "nonblocking", "persistent")
LENGTHS = (0, 10, 9000)  # of the messages between: nothing, eager, rendezvous
counts = st.sampled_from((0, 1, 2, 3, 9, 70, 700))


@st.composite
def calls(draw: Callable[[Any], Any], size: int) -> list[tuple[Drawn, str]]:
    drawn = []
    for key in range(draw(st.integers(1, 7))):
        call = Drawn(
            draw(st.sampled_from(OPERATIONS)),
            key,
            draw(st.integers(0, size - 1)),
            draw(st.lists(counts, min_size=size, max_size=size)),
            draw(st.sampled_from(LAYOUTS)),
            draw(st.integers(0, 1)),
            draw(st.booleans()),
        )
        drawn.append((call, draw(st.sampled_from(MODES))))
    return drawn


@st.composite
def forced(draw: Callable[[Any], Any]) -> dict[str, str]:
    """An algorithm for each operation, or the one the rules choose."""
    chosen = {name: draw(st.sampled_from(("ignore", *words))) for name, words in ALGORITHMS.items()}
    return {f"coll_tuned_{name}_algorithm": word for name, word in chosen.items()}


def neighbours(comm: Communicator, tag: int, length: int) -> list[Request]:
    """A message to the right, one from the left: others' traffic in the same communicator."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    room = memoryview(bytearray(length))
    out = memoryview(noise(length, tag, comm.rank).tobytes())
    came = comm.pml.irecv(comm, ContiguousConvertor(room), left, tag)
    sent = comm.pml.isend(comm, ContiguousConvertor(out), right, tag, STANDARD)

    def check() -> None:
        assert np.array_equal(np.frombuffer(room, np.uint8), noise(length, tag, left))

    came.notify(check)
    return [came, sent]


def one_rank(comm: Communicator, drawn: list[tuple[Drawn, str]], chance: Random) -> None:
    engine, coll = comm.context.engine, comm.coll
    requests: list[Request] = []
    verify = []
    for call, mode in drawn:
        prepared = prepare(call, comm.rank, comm.size)
        verify.append(prepared.verify)
        if chance.random() < 0.5:
            engine.spend(chance.randrange(100_000))
        requests += neighbours(comm, call.key, LENGTHS[call.key % 3])
        if mode == "blocking":
            getattr(coll, call.name)(*prepared.arguments)
        else:
            requests.append(
                coll.begin_operation(call.name, coll.nonblocking_tag(), tuple(prepared.arguments))
            )
    chance.shuffle(requests)
    for request in requests:
        engine.wait(request)
        assert request.error == 0, request.detail
    for check in verify:
        check()


@settings(max_examples=effort(40), deadline=None)
@given(data=st.data())
def test_calls_in_flight_do_not_mix(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 9))
    drawn = data.draw(calls(size))
    seed = data.draw(st.integers(0, 1 << 20))
    parameters = {
        "coll": data.draw(st.sampled_from(("tuned,basic", "basic"))),
        "btl": data.draw(st.sampled_from(("self,sm", "self,tcp"))),
        **data.draw(forced()),
    }

    def program(process: RankProcess) -> None:
        one_rank(world(process), drawn, Random(f"{seed} {process.context.rank}"))

    virtual(size, program, seed=seed, **parameters)
