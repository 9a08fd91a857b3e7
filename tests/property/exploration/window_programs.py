"""Small programs of windows, what can come of them by trying every order, and what is explored.

A rank is a list of steps on the part of rank 0, which has some cells of 8 bytes:
`("put", cells, value)`, `("add", cell, value)`, `("get", cells)`, `("fetch", cell, value)`,
`("swap", cell, compare, new)`, `("lock", alone)`, `("unlock",)`. `("spin", cell, value)` reads
until that is there, and `("take", cell)` swaps 0 for 1 until that succeeds. `("send", rank)` and
`("receive", rank)` are messages beside that. Puts, adds and sends do not wait, the others do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ompy.data.constants import ANY_SOURCE
from ompy.data.layout import Layout
from ompy.data.typemap import Run
from ompy.frameworks.osc_base.headers import (
    COMMAND_TAG,
    OPERATIONS,
    Command,
    Kind,
    pack_answer,
    parsed,
)
from ompy.frameworks.osc_base.layouts import encode_layout
from ompy.frameworks.osc_base.locks import LockQueue
from ompy.runtime.exploration.events import Impossible
from ompy.runtime.exploration.exchange import Exchange
from ompy.runtime.exploration.races import find_races
from ompy.runtime.exploration.search import KnownRaces, Schedule, Search
from ompy.runtime.exploration.windows.parts import Learnt, Parts

WINDOW = 7  # context id
WORLD = 0  # likewise, of messages beside it
CELL = 8  # bytes
LAYOUT = encode_layout(Layout.of((0, Run(CELL)), 0, CELL, "q"))
Step = tuple[Any, ...]


def numbers(data: bytes | bytearray | memoryview) -> tuple[int, ...]:
    """Cells as numbers."""
    return tuple(memoryview(bytes(data)).cast("q"))


def packed(*values: int) -> bytes:
    """Numbers as cells."""
    return b"".join(value.to_bytes(CELL, "little", signed=True) for value in values)


def command_of_step(step: Step, tag: int) -> Command:
    """What the target is told."""
    what, *words = step
    if what == "lock":
        return Command(Kind.LOCK if words[0] else Kind.LOCK_SHARED, tag)
    if what == "unlock":
        return Command(Kind.UNLOCK, tag)
    first, count = words[0] if isinstance(words[0], tuple) else (words[0], 1)
    where = {"displacement": first * CELL, "number": count, "layout": LAYOUT}
    if what == "put":
        return Command(Kind.PUT, 0, size=count * CELL, data=packed(words[1]) * count, **where)
    if what in {"get", "spin"}:
        return Command(Kind.GET, tag, size=count * CELL, **where)
    if what in {"swap", "take"}:
        new = words[1:] or (0, 1)
        return Command(Kind.SWAP, tag, size=2 * CELL, data=packed(*new), **where)
    kind = Kind.ACCUMULATE if what == "add" else Kind.FETCH
    operation = OPERATIONS.index("MPI_SUM")
    used = 0 if what == "add" else tag
    return Command(kind, used, size=CELL, operation=operation, data=packed(words[1]), **where)


def execute(memory: list[int], step: Step) -> tuple[int, ...]:
    """Do a step; what was there before."""
    what, *words = step
    first, count = words[0] if isinstance(words[0], tuple) else (words[0], 1)
    before = tuple(memory[first : first + count])
    if what == "put":
        memory[first : first + count] = [words[1]] * count
    elif what in {"add", "fetch"}:
        memory[first] += words[1]
    elif what == "swap" and memory[first] == words[1]:
        memory[first] = words[2]
    elif what == "take":
        memory[first] = memory[first] or 1
    return before


def is_in_vain(step: Step, before: Sequence[int]) -> bool:
    """Whether a step is done once more."""
    return (step[0] == "spin" and before[0] != step[2]) or (step[0] == "take" and before[0] != 0)


class _Rank:
    """One rank of an explored world; rank 0 has the part and serves it."""

    def __init__(self, rank: int, steps: Sequence[Step], exchange: Exchange, cells: int) -> None:
        self.rank = rank
        self.results: list[tuple[int, ...]] = []
        self.memory = [0] * cells
        self._steps = steps
        self._at = 0
        self._exchange = exchange
        self._number = 0
        self._served = 0
        self._awaits = 0
        self._tag = 0
        self._listening = 0
        self._locks = LockQueue()
        if not rank:
            self._listen()

    @property
    def ended(self) -> bool:
        return self._at == len(self._steps)

    def _listen(self) -> None:
        self._served += 1
        self._listening = (WINDOW << 32) + self._served
        operation = (self.rank, self._listening)
        self._exchange.post_receive(operation, WINDOW, ANY_SOURCE, COMMAND_TAG, served=True)

    def _send(self, to: int, tag: int, data: bytes, *, serves: bool) -> None:
        if serves:
            self._served += 1
            number = (WINDOW << 32) + self._served
        else:
            self._number += 1
            number = self._number
        operation = (self.rank, number)
        site = f"{self.rank}:{self._at}"
        self._exchange.send_message(
            operation, (WINDOW, to), self.rank, tag, data, served=True, site=site
        )

    def go_on(self) -> None:
        """Take what it is told, then run until it waits."""
        for _, number, *rest in self._exchange.news(self.rank):
            if number == self._listening:
                self._listen()
                self._serve(rest[0], parsed(memoryview(rest[2])))
            else:
                self._take(rest[2])
        while not self._awaits and not self.ended:
            self._do(self._steps[self._at])
        # who has ended waits for what never comes, and serves
        receives = not self.ended and self._steps[self._at][0] == "receive"
        wanted = [self._awaits] if receives else []
        self._exchange.await_operations((self.rank, 0), wanted, inner=not receives)

    def _do(self, step: Step) -> None:
        if step[0] in {"send", "receive"}:
            self._number += 1
            operation = (self.rank, self._number)
            if step[0] == "send":
                self._exchange.send_message(operation, (WORLD, step[1]), self.rank, 0, b"")
                self._at += 1
            else:
                self._exchange.post_receive(operation, WORLD, step[1], 0)
                self._awaits = self._number
            return
        if step[0] in {"put", "add"}:
            self._send(0, COMMAND_TAG, command_of_step(step, 0).packed(), serves=False)
            self._at += 1
            return
        self._tag += 2
        self._number += 1
        self._awaits = self._number
        self._exchange.post_receive(
            (self.rank, self._number), WINDOW, 0, self._tag + 1, served=True
        )
        self._send(0, COMMAND_TAG, command_of_step(step, self._tag).packed(), serves=False)

    def _take(self, data: bytes) -> None:
        self._awaits = 0
        step = self._steps[self._at]
        if step[0] in {"spin", "take"}:
            if is_in_vain(step, numbers(data)):
                return  # once more
        elif step[0] not in {"lock", "unlock", "receive"}:
            self.results.append(numbers(data))
        self._at += 1

    def _serve(self, origin: int, command: Command) -> None:
        if command.kind in {Kind.LOCK, Kind.LOCK_SHARED}:

            def grant(_code: int, _text: str) -> None:
                self._send(origin, command.tag + 1, pack_answer(), serves=True)

            self._locks.request(origin, command.kind is Kind.LOCK, grant)
            return
        if command.kind is Kind.UNLOCK:
            self._locks.release(origin)
            self._send(origin, command.tag + 1, pack_answer(), serves=True)
            return
        first, count = command.displacement // CELL, command.number
        data = numbers(command.data) if command.data else ()
        step: Step = {
            Kind.PUT: lambda: ("put", (first, count), data[0]),
            Kind.GET: lambda: ("get", (first, count)),
            Kind.ACCUMULATE: lambda: ("add", first, data[0]),
            Kind.FETCH: lambda: ("fetch", first, data[0]),
            Kind.SWAP: lambda: ("swap", first, *data),
        }[command.kind]()
        before = execute(self.memory, step)
        if command.tag:
            self._send(origin, command.tag + 1, packed(*before), serves=True)


Outcome = tuple[Any, ...]  # how it ends, what each rank has read, the memory


def run_world(programs: Sequence[Sequence[Step]], exchange: Exchange, cells: int) -> Outcome:
    """Run a program to its end."""
    ranks = [_Rank(rank, steps, exchange, cells) for rank, steps in enumerate(programs)]
    for rank in ranks:
        rank.go_on()
    while True:
        ready = exchange.match_certain()
        for rank in ready:
            ranks[rank].go_on()
        if not ready and (exchange.idle_polls() > 20 or not exchange.decide()):
            exchange.see_it_can_be()
            break
    ended = all(rank.ended for rank in ranks)
    return ended, tuple(tuple(rank.results) for rank in ranks), tuple(ranks[0].memory)


def explore(
    programs: Sequence[Sequence[Step]], cells: int, *, polls: int = 1
) -> tuple[Search, set[Outcome]]:
    """Search all schedules. Returns the search, and what comes of them."""
    parts = Parts()
    while True:
        search, outcomes = Search(), set()
        try:
            while (node := search.take_node()) is not None:
                exchange = Exchange(len(programs), node.constraint, polls=polls, parts=parts)
                try:
                    outcomes.add(run_world(programs, exchange, cells))
                except Impossible:
                    search.drop_node(node)
                    continue
                values = {event.key: event.value for event in exchange.events}
                assert all(values.get(key) == value for key, value in node.constraint.items())
                races = find_races(exchange, KnownRaces(node))
                search.report_world(node, Schedule(list(exchange.events), races))
        except Learnt:
            continue
        return search, outcomes


def ordered_cells(programs: Sequence[Sequence[Step]], cells: int) -> list[int]:
    """Of each cell its class: the lowest of those accessed together, -1 if it needs no order."""
    group = list(range(cells))
    ways: list[set[str]] = [set() for _ in range(cells)]
    for step in (one for steps in programs for one in steps):
        if step[0] in {"lock", "unlock", "send", "receive"}:
            continue
        first, count = step[1] if isinstance(step[1], tuple) else (step[1], 1)
        low = min(group[first : first + count])
        touched = {group[cell] for cell in range(first, first + count)}
        group = [low if one in touched else one for one in group]
        how = {"get": "read", "spin": "read", "add": "add"}.get(step[0], step[0])
        for cell in range(first, first + count):
            ways[cell].add(how)
    free = [{"read"}, {"add"}, set()]
    of = {
        one: set().union(*(ways[cell] for cell in range(cells) if group[cell] == one))
        for one in group
    }
    return [one if of[one] not in free else -1 for one in group]


class Oracle:
    """Tries every order of every step and of all that is served."""

    def __init__(self, programs: Sequence[Sequence[Step]], cells: int) -> None:
        self._programs = programs
        self._cells = cells
        self._classes = ordered_cells(programs, cells)
        locks = [step[1] for steps in programs for step in steps if step[0] == "lock"]
        self._alone = any(locks)
        self.outcomes: set[Outcome] = set()
        self.orders: set[Any] = set()  # of what needs one

    def run(self) -> Oracle:
        """Try them."""
        size = len(self._programs)
        first = (
            (0,) * size,
            ((),) * size,
            (False,) * size,
            ((),) * size,
            (0,) * self._cells,
            (),
            (),
            (),
        )
        stack, seen = [first], {first}
        while stack:
            state = stack.pop()
            nexts = list(self._nexts(state))
            for one in nexts:
                if one not in seen:
                    seen.add(one)
                    stack.append(one)
            if not nexts:
                at, _, _, results, memory, _, _, order = state
                ended = all(
                    place == len(steps) for place, steps in zip(at, self._programs, strict=True)
                )
                self.outcomes.add((ended, results, memory))
                self.orders.add(order)
        return self

    def _nexts(self, state: Any) -> Iterator[Any]:
        asked = state[1]
        for rank in range(len(self._programs)):
            yield from self._asks(state, rank)
            for place in range(len(asked[rank])):
                if self._may_be_served(asked[rank], place):
                    yield self._served(state, rank, place)

    def _asks(self, state: Any, rank: int) -> Iterator[Any]:
        """What a rank does next itself."""
        at, asked, waits, *others = state
        number = at[rank]
        if number == len(self._programs[rank]) or waits[rank]:
            return
        step = self._programs[rank][number]
        beside = step[0] in {"send", "receive"}
        if step[0] == "receive" and not self._has_come(at, step[1], rank):
            return
        later = beside or step[0] in {"put", "add"}
        if not beside:
            asked = _with(asked, rank, (*asked[rank], (number, step)))
        yield _with(at, rank, number + later), asked, _with(waits, rank, not later), *others

    def _has_come(self, at: Any, sender: int, rank: int) -> bool:
        """Whether more was sent than was received."""
        sent = self._programs[sender][: at[sender]].count(("send", rank))
        return sent > self._programs[rank][: at[rank]].count(("receive", sender))

    def _may_be_served(self, asked: Any, place: int) -> bool:
        """Only accumulates of the same bytes have an order, and what is waited for."""
        step = asked[place][1]
        before = [one[1] for one in asked[:place]]
        if {"lock", "unlock"} & {step[0], *(one[0] for one in before)}:
            return place == 0
        chained = {"add", "fetch", "swap", "take"}
        same = [one for one in before if one[0] in chained and self._of(one) == self._of(step)]
        return step[0] not in chained or not same

    def _of(self, step: Step) -> int:
        return self._classes[step[1][0] if isinstance(step[1], tuple) else step[1]]

    def _served(self, state: Any, rank: int, place: int) -> Any:
        at, asked, waits, results, memory, held, queue, order = state
        number, step = asked[rank][place]
        asked = _with(asked, rank, (*asked[rank][:place], *asked[rank][place + 1 :]))
        if step[0] == "lock":
            order = self._lock_ordered(order, rank, number)
            return self._granted(
                (at, asked, waits, results, memory, held, (*queue, (rank, step[1])), order)
            )
        if step[0] == "unlock":
            held = tuple(one for one in held if one[0] != rank)
            at, waits = _with(at, rank, at[rank] + 1), _with(waits, rank, False)
            return self._granted((at, asked, waits, results, memory, held, queue, order))
        cells = list(memory)
        before = execute(cells, step)
        order = self._data_ordered(order, rank, number, step)
        memory = tuple(cells)
        if step[0] not in {"put", "add"}:
            waits = _with(waits, rank, False)
            again = is_in_vain(step, before)
            at = _with(at, rank, at[rank] + (not again))
            if step[0] not in {"spin", "take"}:
                results = _with(results, rank, (*results[rank], before))
        return at, asked, waits, results, memory, held, queue, order

    def _granted(self, state: Any) -> Any:
        at, asked, waits, results, memory, held, queue, order = state
        while queue:
            (rank, alone), *others = queue
            if held and (alone or held[0][1]):
                break
            held, queue = (*held, (rank, alone)), tuple(others)
            at, waits = _with(at, rank, at[rank] + 1), _with(waits, rank, False)
        return at, asked, waits, results, memory, tuple(sorted(held)), queue, order

    def _lock_ordered(self, order: Any, rank: int, number: int) -> Any:
        return self._in_order(order, "lock", (rank, number)) if self._alone else order

    def _data_ordered(self, order: Any, rank: int, number: int, step: Step) -> Any:
        first = step[1][0] if isinstance(step[1], tuple) else step[1]
        of = self._classes[first]
        if of < 0 or step[0] in {"spin", "take"}:
            return order
        if step[0] == "get":
            place = len(dict(order).get(of, ()))
            return tuple(sorted([*order, (("read", rank, number), place)], key=repr))
        return self._in_order(order, of, (rank, number))

    @staticmethod
    def _in_order(order: Any, of: Any, one: Any) -> Any:
        found = dict(order)
        found[of] = (*found.get(of, ()), one)
        return tuple(sorted(found.items(), key=repr))


def _with(values: tuple[Any, ...], place: int, value: Any) -> tuple[Any, ...]:
    return (*values[:place], value, *values[place + 1 :])
