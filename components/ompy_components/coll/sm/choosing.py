"""Which way a call takes through the memory, in words: for traces and explanations only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ompy.data.message import Blocks, Message
from ompy.frameworks.explanation import Branch, Change, Choice, Limit
from ompy.trace.amounts import byte_count

FRAGMENTS: Final = "fragments in memory"
IN_PLACE: Final = "read in place, or fragments in memory"
LAST_COMBINES: Final = "one fragment, combined by who shows last"
ROOT_COMBINES: Final = "one fragment, combined by the root"
EACH_COMBINES: Final = "one fragment, combined by each for itself"
WINDOWS: Final = "windows, combined in parts"
BLOCKS: Final = "blocks in memory"
LARGE_BLOCKS: Final = "large blocks, read in place or sent"
SENT_BLOCKS: Final = "large blocks, as messages"

_REDUCTIONS: Final = ("reduce", "allreduce", "scan", "exscan", "reduce_scatter")
_SMALL: Final = {"allreduce": LAST_COMBINES, "reduce": ROOT_COMBINES}
_FRAGMENT_SIZE: Final = "coll_sm_fragment_size"
_WINDOW_SIZE: Final = "coll_sm_window_size"
_SINGLE_COPY: Final = "coll_sm_single_copy"


class Asked(NamedTuple):
    """What decides.

    Attributes:
        operation: its name.
        size: bytes: of a reduction its data, of others the largest block.
        element: bytes that have to be in a fragment as they are.
        table: the block table has room in a slot.
    """

    operation: str
    size: int
    element: int
    table: bool


def asked(operation: str, arguments: tuple[Any, ...], table: bool) -> Asked:
    """What decides about a call."""
    if operation in _REDUCTIONS:
        given: Message = arguments[0] if arguments[0] is not None else arguments[1]
        element = given.layout.size
        size = given.size
        if operation == "reduce_scatter":
            counts = arguments[2]
            element *= len(counts)
            size = sum(counts) * given.layout.size
        return Asked(operation, size, element, table)
    messages = [_largest(each) for each in arguments if isinstance(each, (Message, Blocks))]
    return Asked(operation, max(messages, default=0), 0, table)


def _largest(part: Message | Blocks) -> int:
    if isinstance(part, Blocks):
        return max((part[rank].size for rank in range(len(part))), default=0)
    return part.size


def way(about: Asked, fragment: int, single_copy: bool) -> str:
    """The way, where there is memory; empty when the call goes as messages."""
    operation = about.operation
    if about.element > fragment or (operation in ("scatter", "alltoall") and not about.table):
        return ""
    if operation == "barrier":
        return "a fragment without data"
    if operation == "bcast":
        return IN_PLACE if single_copy and about.size > fragment else FRAGMENTS
    if operation in _REDUCTIONS:
        return _SMALL.get(operation, EACH_COMBINES) if about.size <= fragment else WINDOWS
    if about.size <= fragment:
        return BLOCKS
    return LARGE_BLOCKS if single_copy else SENT_BLOCKS


def reasons(
    about: Asked, fragment: int, window: int, single_copy: bool, otherwise: Callable[[], str]
) -> Choice:
    """Why a call takes its way.

    Args:
        about: the call.
        fragment: bytes of one.
        window: bytes of one.
        single_copy: whether blocks may be read in place.
        otherwise: what serves the call as messages.
    """
    now = way(about, fragment, single_copy)
    branches = [
        Branch("all members are on one host, and messages between them go through memory: btl sm"),
    ]
    if about.operation in _REDUCTIONS:
        fits = about.element <= fragment
        text = f"what has to be combined at once has {byte_count(about.element)}"
        compared = "no more" if fits else "more"
        branches.append(
            Branch(
                f"{text}, {compared} than a fragment ({byte_count(fragment)})", (_FRAGMENT_SIZE,)
            )
        )
    if now and about.operation != "barrier":
        compared = "no more" if about.size <= fragment else "more"
        what = "the data have" if about.operation in (*_REDUCTIONS, "bcast") else "a block has"
        text = f"{what} {byte_count(about.size)}, {compared} than a fragment"
        branches.append(Branch(f"{text} ({byte_count(fragment)}): {now}", (_FRAGMENT_SIZE,)))
    limits = [Limit(f"a fragment has {byte_count(fragment)}", (_FRAGMENT_SIZE,))]
    if now == WINDOWS:
        limits.append(Limit(f"a window has {byte_count(window)} at most", (_WINDOW_SIZE,)))
    if now == LARGE_BLOCKS:
        text = "blocks are sent until every member has tried to read the others' memory"
        limits.append(Limit(text, (_SINGLE_COPY,)))
    return Choice(tuple(branches), tuple(limits), _changes(about, fragment, single_copy, otherwise))


def _changes(
    about: Asked, fragment: int, single_copy: bool, otherwise: Callable[[], str]
) -> tuple[Change, ...]:
    """What is different when one thing is."""
    now = way(about, fragment, single_copy)
    found = []
    for other in (max(about.size, about.element, 1), max(about.size - 1, 64)):
        then = way(about, other, single_copy)
        if then != now:
            than = "or more" if other > fragment else "or less"
            text = f"fragments of {byte_count(other)} {than}"
            found.append(Change(text, then or otherwise(), (_FRAGMENT_SIZE,)))
    if way(about, fragment, not single_copy) != now:
        text = "blocks are not read in place" if single_copy else "blocks may be read in place"
        found.append(Change(text, way(about, fragment, not single_copy), (_SINGLE_COPY,)))
    return tuple(found)
