"""Why a nonblocking call goes through the memory, or as messages: for explanations only."""

from __future__ import annotations

from typing import Any, Final

from ompy.data.message import Message
from ompy.frameworks.explanation import Branch, Change, Choice, Limit
from ompy.trace.amounts import byte_count

from ompy_components.coll.sm.blocks import table_size
from ompy_components.coll.sm.choosing import Asked
from ompy_components.coll.sm.slots import bytes_along

IN_MEMORY: Final = "nonblocking, in memory"
SENT_WHOLE: Final = "messages, as the component of the next priority has them"
SENT_BLOCKS: Final = "nonblocking, its blocks as messages"

_SIZE: Final = "coll_sm_nonblocking_size"
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


def begin_reasons(about: Asked, arguments: tuple[Any, ...], ranks: int, room: int) -> Choice:
    """Why a nonblocking or persistent call takes its way.

    Args:
        about: the call.
        arguments: as of the blocking call.
        ranks: members of the communicator.
        room: bytes of a slot.
    """
    if about.operation == "barrier":
        return Choice((), (), ())
    needed = shown(about, arguments, ranks)
    table = table_size(ranks) if about.operation in _WITH_TABLES else 0
    sent = SENT_BLOCKS if about.operation in _OF_BLOCKS and table <= room else SENT_WHOLE
    fits = needed <= room
    compared = "no more" if fits else "more"
    what = "blocks and their table" if needed > about.size else "data"
    branch = Branch(
        f"the {what} of a rank have {byte_count(needed)}, {compared} than a slot of a nonblocking "
        f"call ({byte_count(room)}): {IN_MEMORY if fits else sent}",
        (_SIZE,),
    )
    limit = Limit(f"a slot of a nonblocking call has {byte_count(room)}", (_SIZE,))
    changes = []
    if not fits:
        changes.append(Change(f"slots of {byte_count(needed)} or more", IN_MEMORY, (_SIZE,)))
    elif needed > _LEAST:
        changes.append(Change(f"slots of {byte_count(needed - 1)} or less", sent, (_SIZE,)))
    return Choice((branch,), (limit,), tuple(changes))
