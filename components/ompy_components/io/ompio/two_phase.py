"""Two-phase access: aggregators move large pieces of the file, members exchange what is in them.

In a cycle each aggregator has a window of the file in memory. For a write, all members send it what
they have of that; it puts the parts together as their views say and writes them. For a read it
reads the window and sends each member its part, cut where the file ends. A member whose disk fails
goes on with the messages, as the others wait for them; the agreement at the end tells all.

Source: Thakur, Gropp and Lusk 1999, "Data sieving and collective I/O in ROMIO"; Open MPI's
fcoll/two_phase.
"""

from __future__ import annotations

from typing import NamedTuple

from ompy.data.convertor import Convertor, allocate_memory
from ompy.data.errors import MPIError
from ompy.data.request import Request
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Schedule
from ompy.frameworks.io import Access, Outcome, agree
from ompy.net.storage import StoredFile

from ompy_components.io.ompio.coverage import covered_runs
from ompy_components.io.ompio.plan import Plan, Window


class Part(NamedTuple):
    """What a member has in a window, while it is on its way.

    Attributes:
        rank: the member.
        begin: its first position there.
        memory: the bytes.
        straight: they are in the window's memory already.
    """

    rank: int
    begin: int
    memory: memoryview
    straight: bool


def write_together(
    exchange: Exchange, outcome: Outcome, plan: Plan, file: StoredFile, access: Access
) -> Schedule:
    """Steps of a collective write."""
    outcome.size = access.convertor.size
    for windows in plan.cycles():
        mine = next((window for window in windows if window.owner == exchange.rank), None)
        memory = allocate_memory(mine.high - mine.low if mine is not None else 0)
        parts = _receive_parts(exchange, plan, mine, memory) if mine is not None else []
        for window in windows:
            _give_part(exchange, plan, window, access, parts)
        yield
        if mine is not None and outcome.problem is None:
            _store_window(outcome, plan, file, mine, memory, parts)
    yield from agree(exchange, outcome)


def _receive_parts(
    exchange: Exchange, plan: Plan, window: Window, memory: memoryview
) -> list[Part]:
    """Begin to receive what all members have in this rank's window."""
    found = [(rank, *plan.part(rank, window)) for rank in range(exchange.size)]
    found = [each for each in found if each[1] < each[2]]
    spans = {
        rank: (plan.views[rank].byte_at(begin), plan.views[rank].byte_at(end - 1) + 1)
        for rank, begin, end in found
    }
    parts = []
    for rank, begin, end in found:
        low, high = spans[rank]
        alone = all(high <= span[0] or span[1] <= low for r, span in spans.items() if r != rank)
        straight = alone and high - low == end - begin
        room = memory[low - window.low : high - window.low]
        parts.append(
            Part(rank, begin, room if straight else allocate_memory(end - begin), straight)
        )
        if rank != exchange.rank:
            exchange.receive(parts[-1].memory, rank)
    return parts


def _give_part(
    exchange: Exchange, plan: Plan, window: Window, access: Access, parts: list[Part]
) -> None:
    """Send what this rank has in a window to its aggregator; or copy it, if it is the one."""
    begin, end = plan.part(exchange.rank, window)
    if begin == end:
        return
    offset = begin - access.begin
    if window.owner != exchange.rank:
        exchange.send(_packed(access.convertor, offset, end - begin), window.owner)
        return
    own = next(part for part in parts if part.rank == exchange.rank)
    access.convertor.pack(offset, own.memory)


def _packed(convertor: Convertor, offset: int, size: int) -> memoryview:
    whole = convertor.view
    if whole is not None:
        return whole[offset : offset + size]
    room = memoryview(bytearray(size))
    convertor.pack(offset, room)
    return room


def _store_window(
    outcome: Outcome,
    plan: Plan,
    file: StoredFile,
    window: Window,
    memory: memoryview,
    parts: list[Part],
) -> None:
    """Put the parts together and write them, and no gap between them.

    Where members write the same bytes the one with the highest rank wins.
    """
    for part in parts:
        if not part.straight:
            plan.views[part.rank].scatter(memory, window.low, part.begin, part.memory)
    seen = [(plan.views[part.rank], part.begin, len(part.memory)) for part in parts]
    try:
        for low, high in covered_runs(seen, window.low, window.high):
            file.write_from(memory[low - window.low : high - window.low], low)
    except MPIError as problem:
        outcome.problem = problem


def read_together(
    exchange: Exchange, outcome: Outcome, plan: Plan, file: StoredFile, access: Access
) -> Schedule:
    """Steps of a collective read."""
    for windows in plan.cycles():
        rooms = _receive_from(exchange, plan, windows, access)
        for window in windows:
            if window.owner == exchange.rank:
                outcome.size += _serve_window(exchange, outcome, plan, file, window, access)
        yield
        for request, offset, room in rooms:
            took = min(request.received, len(room))
            outcome.size += took
            if access.convertor.view is None:
                access.convertor.unpack(offset, room[:took])
    yield from agree(exchange, outcome)


def _receive_from(
    exchange: Exchange, plan: Plan, windows: list[Window], access: Access
) -> list[tuple[Request, int, memoryview]]:
    """Begin to receive this rank's part of others' windows: each with its place in the message."""
    found = []
    whole = access.convertor.view
    for window in windows:
        begin, end = plan.part(exchange.rank, window)
        if begin == end or window.owner == exchange.rank:
            continue
        offset = begin - access.begin
        size = end - begin
        room = memoryview(bytearray(size)) if whole is None else whole[offset : offset + size]
        found.append((exchange.receive(room, window.owner), offset, room))
    return found


def _serve_window(
    exchange: Exchange,
    outcome: Outcome,
    plan: Plan,
    file: StoredFile,
    window: Window,
    access: Access,
) -> int:
    """Read a window and begin to send all members their parts.

    Returns:
        Bytes that this rank has got of it itself.
    """
    needed = [(rank, *plan.part(rank, window)) for rank in range(exchange.size)]
    needed = [each for each in needed if each[1] < each[2]]
    if not needed:
        return 0
    low = min(plan.views[rank].byte_at(begin) for rank, begin, _ in needed)
    high = max(plan.views[rank].byte_at(end - 1) + 1 for rank, _, end in needed)
    memory = allocate_memory(high - low)
    took = 0
    if outcome.problem is None:
        try:
            took = file.read_into(memory, low)
        except MPIError as problem:
            outcome.problem = problem
    own = 0
    for rank, begin, end in needed:
        view = plan.views[rank]
        there = max(begin, min(end, view.position_at(low + took)))
        packed = _seen(memory, plan, rank, low, begin, there)
        if rank != exchange.rank:
            exchange.send(packed, rank)
        else:
            access.convertor.unpack(begin - access.begin, packed)
            own = there - begin
    return own


def _seen(memory: memoryview, plan: Plan, rank: int, low: int, begin: int, end: int) -> memoryview:
    """The positions of a member that are in a piece of the file, packed."""
    view = plan.views[rank]
    if begin == end:
        return memory[:0]
    first = view.byte_at(begin)
    if view.byte_at(end - 1) - first == end - begin - 1:
        return memory[first - low : first - low + end - begin]
    packed = allocate_memory(end - begin)
    view.gather(memory, low, begin, packed)
    return packed
