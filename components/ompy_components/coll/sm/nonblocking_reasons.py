"""Why a nonblocking call goes through the memory, or as messages: for explanations only."""

from __future__ import annotations

from typing import Any, Final

from ompy.data.message import Message
from ompy.frameworks.explanation import Branch, Change, Choice, Limit
from ompy.trace.amounts import byte_count

from ompy_components.coll.sm.blocks import table_size
from ompy_components.coll.sm.choosing import Asked
from ompy_components.coll.sm.lent_reductions import DIRECT_MOST
from ompy_components.coll.sm.slots import bytes_along

IN_MEMORY: Final = "nonblocking, in memory"
SENT_WHOLE: Final = "messages, as the component of the next priority has them"
SENT_BLOCKS: Final = "nonblocking, its blocks as messages"
IN_PLACE: Final = "nonblocking, read in place, or as messages"

_SIZE: Final = "coll_sm_nonblocking_size"
_LEND_LEAST: Final = "coll_sm_lend_least"
_SINGLE_COPY: Final = "coll_sm_single_copy"
_LEAST: Final = 64  # bytes; arbitrary: the minimum of the parameter in component.py
_WITH_TABLES: Final = ("scatter", "alltoall")
_OF_BLOCKS: Final = (
    *_WITH_TABLES,
    "gather",
    "allgather",
    "neighbor_allgather",
    "neighbor_alltoall",
)


def shown(about: Asked, arguments: tuple[Any, ...], ranks: int) -> int:
    """Bytes that a member has to show at once; of a scatter the root, whose blocks are equal."""
    if about.operation in _WITH_TABLES:
        return table_size(ranks) + (ranks - 1) * about.size
    if about.operation.startswith("neighbor_"):
        send, _, edges = arguments
        same = send if isinstance(send, Message) else None
        return bytes_along(same, None if same is not None else send, edges)
    return about.size


def begin_reasons(
    about: Asked, arguments: tuple[Any, ...], ranks: int, room: int, least: int
) -> Choice:
    """Why a nonblocking or persistent call takes its way.

    Args:
        about: the call.
        arguments: as of the blocking call.
        ranks: members of the communicator.
        room: bytes of a slot.
        least: bytes from which on data are read in place; 0 for never.
    """
    if about.operation == "barrier":
        return Choice((), (), ())
    needed = shown(about, arguments, ranks)
    table = table_size(ranks) if about.operation in _WITH_TABLES else 0
    sent = SENT_BLOCKS if about.operation in _OF_BLOCKS and table <= room else SENT_WHOLE
    fits = needed <= room
    reads = about.operation not in _OF_BLOCKS and (not fits or about.operation == "bcast")
    if about.operation == "allreduce" and ranks > DIRECT_MOST:
        reads = False
    lends = least and (reads or sent == SENT_BLOCKS)
    if lends:
        sent = IN_PLACE
    compared = "no more" if fits else "more"
    what = "blocks and their table" if needed > about.size else "data"
    branch = Branch(
        f"the {what} of a rank have {byte_count(needed)}, {compared} than a slot of a nonblocking "
        f"call ({byte_count(room)}): {IN_MEMORY if fits else sent}",
        (_SIZE,),
    )
    branches = [branch]
    limits = [Limit(f"a slot of a nonblocking call has {byte_count(room)}", (_SIZE,))]
    changes = []
    if lends and (about.size >= least or not fits):
        compared = "no less" if about.size >= least else "less"
        text = (
            f"a rank has {byte_count(about.size)} for another, {compared} than what is read in "
            f"place in any case ({byte_count(least)})"
        )
        branches.append(Branch(text, (_LEND_LEAST,)))
        text = "nothing is read in place until every member has tried to read the others' memory"
        limits.append(Limit(text, (_SINGLE_COPY,)))
    if not fits:
        changes.append(Change(f"slots of {byte_count(needed)} or more", IN_MEMORY, (_SIZE,)))
    elif needed > _LEAST:
        changes.append(Change(f"slots of {byte_count(needed - 1)} or less", sent, (_SIZE,)))
    return Choice(tuple(branches), tuple(limits), tuple(changes))
