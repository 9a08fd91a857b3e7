"""Which line has tried to write an array that is not writeable, by the exception that it raised."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from ompy.check.callees import (
    contains,
    enters_program,
    is_of_base,
    owner_of,
    value_of,
)
from ompy.check.uses import INTO, uses_of


def place_of_write(
    problem: BaseException | None, traceback: TracebackType | None
) -> TracebackType | None:
    """Where the program was when NumPy refused to write; None if that is not what happened."""
    if not isinstance(problem, ValueError) or "read-only" not in str(problem):
        return None
    last, found = traceback, None
    while traceback is not None:
        last = traceback
        if enters_program(traceback.tb_frame):
            found = traceback
        traceback = traceback.tb_next
    return found or last


def names_memory(where: TracebackType, memory: Any) -> bool:
    """Whether a line has a name for some memory, for what that is part of, or for what has it."""
    uses, line, frame = uses_of(where.tb_frame.f_code), where.tb_lineno, where.tb_frame
    names = {name.removesuffix(INTO) for name, _, _ in uses.given.get(line, ())}
    for table in (uses.stored, uses.elements_stored):
        names.update(table.get(line, ()))
    base = owner_of(memory)
    values = [value_of(frame, name) for name in names]
    return any(
        each is memory or is_of_base(each, base) or contains(each, memory, base)
        for each in values
        if each is not None
    )
