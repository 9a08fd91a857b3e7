"""The benchmark loops of GASNet, as one rank runs them: latencies and floods, data checked.

Started by `ompy bench gasnet` as `python -m ompy.cli.measuring.gasnet_loops gasnet SIZES ROUNDS`;
rank 0 works on rank 1's segment, which polls meanwhile, and gives its rows.

Source: reference gasnet.md 11 (testsmall, testlarge, testam).
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any, Final, NamedTuple

from ompy import gasnet
from ompy.cli.measuring.benchmark_loops import form
from ompy.cli.own_jobs import tell_command

WINDOW: Final = 64  # transfers under way; reference performance.md 1a, as the OSU loops
ROUND_SECONDS: Final = 0.02  # arbitrary: long against the clock; there are many rounds
SMALL: Final = 8  # reference gasnet.md 11: bytes of the usual latency
WARM: Final = 3  # arbitrary: calls before the clock runs
FMA: Final = ("fma_put", "fma_get")
RDMA: Final = ("rdma_put", "rdma_get")
PLACES: Final = ("direct", "segment", "immediate", "bounce", "register")


class Row(NamedTuple):
    """One line of the result.

    Attributes:
        operation: what was done.
        local: where its local bytes lie: in the segment, out of it, or nowhere.
        size: bytes.
        way: how the conduit did it, if it says.
        seconds: of one, for each round.
    """

    operation: str
    local: str
    size: int
    way: str
    seconds: list[float]


class Bench:
    """Rank 0's loops; rank 1 answers."""

    def __init__(self, sizes: Sequence[int], rounds: int) -> None:
        self.sizes = sizes
        self.rounds = rounds
        self.answers = 0
        gasnet.init()
        page = gasnet.PAGE_SIZE
        self.room = -(-max([*sizes, page]) // page) * page
        gasnet.attach([self.ask, self.answer], 2 * self.room)

    def ask(self, token: gasnet.Token, payload: memoryview, *arguments: int) -> None:
        """Handler of a request: send back what came."""
        if not payload:
            gasnet.am_reply_short(token, self.answer, *arguments)
        elif arguments:
            gasnet.am_reply_long(token, self.answer, payload, arguments[0])
        else:
            gasnet.am_reply_medium(token, self.answer, payload)

    def answer(self, _token: gasnet.Token, _payload: memoryview, *_arguments: int) -> None:
        """Handler of a reply."""
        self.answers += 1

    # --- loops

    def rows(self) -> Iterator[Row]:
        """All of them."""
        yield from self._latencies()
        yield from self._messages()
        for inside in (False, True):
            yield from self._floods(inside)
        yield from self._copies()

    def _latencies(self) -> Iterator[Row]:
        source, back = bytes(range(1, SMALL + 1)), bytearray(SMALL)
        yield self._row("put", "out", SMALL, lambda: gasnet.put(1, 0, source))
        yield self._row("get", "out", SMALL, lambda: gasnet.get(back, 1, 0))
        check_bytes(back, source)

    def _messages(self) -> Iterator[Row]:
        medium = bytes(min(512, gasnet.am_max_medium()))  # reference gasnet.md 1: of 1.20.0
        long = bytes(min(gasnet.PAGE_SIZE, gasnet.am_max_long_request()))

        def trip(send: Callable[[], None]) -> Callable[[], None]:
            def once() -> None:
                goal = self.answers + 1
                send()
                gasnet.block_until(lambda: self.answers == goal)

            return once

        def longs() -> None:
            gasnet.am_request_long(1, self.ask, long, 0, self.room)

        yield self._row("AM short", "", 0, trip(lambda: gasnet.am_request_short(1, self.ask)))
        yield self._row(
            "AM medium",
            "",
            len(medium),
            trip(lambda: gasnet.am_request_medium(1, self.ask, medium)),
        )
        yield self._row("AM long", "", len(long), trip(longs))

    def _floods(self, inside: bool) -> Iterator[Row]:
        local = "in" if inside else "out"
        for size in self.sizes:
            memory = gasnet.segment().memory[:size] if inside else memoryview(bytearray(size))
            data = bytes(place & 0xFF for place in range(size))
            memory[:] = data

            def puts(memory: memoryview = memory) -> None:
                for _ in range(WINDOW):
                    gasnet.put_nbi_bulk(1, 0, memory)
                gasnet.wait_syncnbi_puts()

            def gets(memory: memoryview = memory) -> None:
                for _ in range(WINDOW):
                    gasnet.get_nbi_bulk(memory, 1, 0)
                gasnet.wait_syncnbi_gets()

            yield self._row("put flood", local, size, puts, WINDOW)
            memory[:] = bytes(size)
            yield self._row("get flood", local, size, gets, WINDOW)
            check_bytes(memory, data)

    def _copies(self) -> Iterator[Row]:
        """What a copy within the memory that both ranks map takes: no transfer is faster."""
        memory = gasnet.segment().memory
        for size in self.sizes:
            target, source = memory[:size], memory[self.room : self.room + size]

            def copies(target: memoryview = target, source: memoryview = source) -> None:
                for _ in range(WINDOW):
                    target[:] = source

            yield self._row("memory copy", "in", size, copies, WINDOW)

    def _row(
        self, operation: str, local: str, size: int, once: Callable[[], None], each: int = 1
    ) -> Row:
        for _ in range(WARM):
            once()
        before = gasnet.counters()
        begin = perf_counter()
        once()
        took = perf_counter() - begin
        way = way_of(before, gasnet.counters())
        repeats = max(1, min(10_000, int(ROUND_SECONDS / max(took, 1e-7))))
        times = array("d")
        for _ in range(self.rounds):
            begin = perf_counter()
            for _ in range(repeats):
                once()
            times.append((perf_counter() - begin) / repeats / each)
        return Row(operation, local, size, way, list(times))


def way_of(before: dict[str, int], after: dict[str, int]) -> str:
    """How the conduit has moved bytes between two looks at its counters, in its words."""
    grown = {name for name, count in after.items() if count > before.get(name, 0)}
    engine = ["FMA"] * bool(grown.intersection(FMA)) + ["BTE"] * bool(grown.intersection(RDMA))
    return " ".join([*engine, *(place for place in PLACES if place in grown)])


def check_bytes(memory: Any, expected: bytes) -> None:
    """Stop the job if the bytes that arrived are not the ones that were sent."""
    if bytes(memory) != expected:
        raise AssertionError(f"wrong data in a buffer of {len(memory)} bytes")


def main() -> None:
    """Run all loops on this rank; see the module's docstring for the arguments."""
    _, sizes, rounds = sys.argv[1:]
    made = Bench(json.loads(sizes), int(rounds))
    if gasnet.mynode() == 0:
        rows = list(made.rows())
        tell_command({"rows": rows, "form": form(), "conduit": gasnet.conduit_name()})
    gasnet.barrier()


if __name__ == "__main__":
    main()
