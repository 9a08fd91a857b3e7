"""What puts and gets of GASNet take over an emulated Gemini or Aries, by the virtual clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ompy.frameworks.conduit import Transfer
from ompy.net.virtual.virtual_network import Rail

from tests.support.conduit_worlds import ConduitRank, conduit_world

SEGMENT: Final = 5 << 20  # bytes; the largest transfer, and some
ROUNDS: Final = 4
PAUSE: Final = 1_000_000  # ns; what came before is over
RAIL: Final = Rail("rail0", jitter=0, chosen=False)  # so the NIC's own link counts
WORD: Final = 8


class Way(NamedTuple):
    """How transfers go.

    Attributes:
        settings: parameters of the conduit that have them go so.
        inside: the local memory lies in the segment.
        most: bytes of the largest that can.
        is_get: they read.
    """

    settings: dict[str, int]
    inside: bool
    most: int = 4 << 20
    is_get: bool = False


NO_FMA: Final = {"put_fma_rdma_cutover": 0, "get_fma_rdma_cutover": 0}
BY_FMA: Final = {"put_fma_rdma_cutover": 16_384}
WAYS: Final = {
    "FMA": Way(BY_FMA, inside=True, most=16_384),
    "BTE": Way(NO_FMA, inside=True),
    "BTE, bounce buffer": Way(
        NO_FMA | {"put_bounce_register_cutover": 32_768}, inside=False, most=32_768
    ),
    "BTE, registered": Way(NO_FMA | {"put_bounce_register_cutover": 0}, inside=False),
    "as by default, in the segment": Way({}, inside=True),
    "as by default, outside": Way({}, inside=False),
    "get, in the segment": Way({}, inside=True, is_get=True),
}


class _Done(Transfer):
    def __init__(self) -> None:
        self.complete = False

    def done(self, *, is_get: bool) -> None:
        self.complete = True


def series(
    generation: str, way: Way, sizes: Sequence[int], hosts: Sequence[int] = (0, 1)
) -> dict[int, float]:
    """Nanoseconds of a blocking transfer by its size: the mean of some, one after another."""

    def active(rank: ConduitRank) -> dict[int, float]:
        rank.attach(size=SEGMENT)
        memory = rank.conduit.resources.segment if way.inside else memoryview(bytearray(SEGMENT))
        found = {}
        for size in (size for size in sizes if size <= way.most):
            found[size] = _mean(rank, memory[:size], way)
        return found

    rows: dict[int, float] = conduit_world(
        [active, lambda rank: rank.attach(size=SEGMENT)],
        name=generation,
        hosts=hosts,
        rails=[RAIL],
        **way.settings,
    )[0]
    return rows


def _mean(rank: ConduitRank, local: memoryview, way: Way) -> float:
    engine = rank.context.engine
    _once(rank, local, way)  # they are connected now
    engine.wait_until(lambda: False, PAUSE)
    begin = engine.now()
    for _ in range(ROUNDS):
        _once(rank, local, way)
    return (engine.now() - begin) / ROUNDS


def _once(rank: ConduitRank, local: memoryview, way: Way) -> None:
    done = _Done()
    if way.is_get:
        rank.conduit.get(1, 0, local, done)
    else:
        rank.conduit.put(1, 0, local, done, bulk=True)
    rank.wait(lambda: done.complete)


def latency(generation: str, hosts: Sequence[int] = (0, 1)) -> int:
    """Nanoseconds from a put of eight bytes until the peer sees them."""
    times: dict[str, int] = {}

    def active(rank: ConduitRank) -> None:
        rank.attach(size=SEGMENT)
        zero, one = (memoryview(number.to_bytes(WORD, "little")) for number in (0, 1))
        for word in (zero, one):
            rank.context.engine.wait_until(lambda: False, PAUSE)
            done = _Done()
            times["put"] = rank.context.engine.now()
            rank.conduit.put(1, 0, word, done, bulk=True)
            rank.wait(lambda done=done: done.complete)  # type: ignore[misc]

    def passive(rank: ConduitRank) -> None:
        rank.attach(size=SEGMENT)
        while not rank.conduit.resources.segment[0]:
            rank.context.engine.progress()
        times["seen"] = rank.context.engine.now()

    conduit_world([active, passive], name=generation, hosts=hosts, rails=[RAIL])
    return times["seen"] - times["put"]


def crossing(one: dict[int, float], other: dict[int, float]) -> int:
    """The size at which two ways take the same, between two that were measured; 0: none."""
    both = sorted(one.keys() & other.keys())
    for low, high in zip(both, both[1:], strict=False):
        before, after = one[low] - other[low], one[high] - other[high]
        if before <= 0 < after:
            return round(low + (high - low) * -before / (after - before))
    return 0


WHERE: Final = {"one host": (0, 0), "two hosts": (0, 1)}
Row = tuple[str, str, str, int, float]  # generation, where, way, bytes, ns


def sizes(where: str, most: int) -> list[int]:
    """Powers of two from 8 to `most`, and between hosts to half a MiB, which takes seconds."""
    largest = min(most, 1 << 19 if where == "two hosts" else 1 << 20)
    return [WORD << power for power in range(18) if WORD << power <= largest]


def measured(generation: str, most: int = 1 << 20) -> list[Row]:
    """All ways at all sizes up to `most`."""
    return [
        (generation, where, name, size, round(ns, 2))
        for where, hosts in WHERE.items()
        for name, way in WAYS.items()
        for size, ns in series(generation, way, sizes(where, most), hosts).items()
    ]
