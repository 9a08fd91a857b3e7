"""Which way a call takes through the memory, in words: for traces and explanations only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ompy.data.message import Blocks, Message
from ompy.frameworks.explanation import Branch, Change, Choice, Limit
from ompy.trace.amounts import byte_count

from ompy_components.coll.sm.lent_reductions import DIRECT_MOST, MOST

FRAGMENTS: Final = "fragments in memory"
IN_PLACE: Final = "read in place, or fragments in memory"
LAST_COMBINES: Final = "one fragment, combined by who shows last"
ROOT_COMBINES: Final = "one fragment, combined by the root"
EACH_COMBINES: Final = "one fragment, combined by each for itself"
WINDOWS: Final = "windows, combined in parts"
LENT_REDUCTION: Final = "read in place, or windows, combined in parts"
BLOCKS: Final = "blocks in memory"
LARGE_BLOCKS: Final = "large blocks, read in place or sent"
SENT_BLOCKS: Final = "large blocks, as messages"

_SCANS: Final = ("scan", "exscan")
_REDUCTIONS: Final = ("reduce", "allreduce", "scan", "exscan", "reduce_scatter")
_SMALL: Final = {"allreduce": LAST_COMBINES, "reduce": ROOT_COMBINES}
_FRAGMENT_SIZE: Final = "coll_sm_fragment_size"
_WINDOW_SIZE: Final = "coll_sm_window_size"
_SINGLE_COPY: Final = "coll_sm_single_copy"
_LEND_LEAST: Final = "coll_sm_lend_least"


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


class Rule(NamedTuple):
    """What the size of a call is compared with.

    Attributes:
        fragment: bytes that a slot has room for.
        window: bytes of a window of a large reduction.
        least: bytes from which on blocks and broadcasts are read in place.
        single_copy: whether they may be.
        ranks: members.
    """

    fragment: int
    window: int
    least: int
    single_copy: bool
    ranks: int


def way(about: Asked, rule: Rule) -> str:
    """The way, where there is memory; empty when the call goes as messages."""
    operation, fits = about.operation, about.size <= rule.fragment
    if about.element > rule.fragment or (operation in ("scatter", "alltoall") and not about.table):
        return ""
    if operation == "barrier":
        return "a fragment without data"
    if operation in _REDUCTIONS:
        return _who_combines(operation, rule) if fits else _how_combined(operation, rule)
    in_place = rule.single_copy and about.size >= rule.least
    if operation == "bcast":
        return IN_PLACE if in_place else FRAGMENTS
    small = BLOCKS if fits else SENT_BLOCKS
    return LARGE_BLOCKS if in_place else small


def _who_combines(operation: str, rule: Rule) -> str:
    if operation == "allreduce" and rule.ranks <= DIRECT_MOST:
        return EACH_COMBINES
    return _SMALL.get(operation, EACH_COMBINES)


def _how_combined(operation: str, rule: Rule) -> str:
    """The way of much data."""
    most = DIRECT_MOST if operation in _SCANS else MOST
    return LENT_REDUCTION if rule.single_copy and rule.ranks <= most else WINDOWS


def reasons(about: Asked, rule: Rule, otherwise: Callable[[], str]) -> Choice:
    """Why a call takes its way.

    Args:
        about: the call.
        rule: what it is compared with.
        otherwise: what serves the call as messages.
    """
    now = way(about, rule)
    fragment = byte_count(rule.fragment)
    branches = [
        Branch("all members are on one host, and messages between them go through memory: btl sm"),
    ]
    if about.operation in _REDUCTIONS:
        compared = "no more" if about.element <= rule.fragment else "more"
        text = f"what has to be combined at once has {byte_count(about.element)}"
        branches.append(
            Branch(f"{text}, {compared} than a fragment ({fragment})", (_FRAGMENT_SIZE,))
        )
    if now and about.operation != "barrier":
        branches.append(_compared(about, rule, now))
    limits = [Limit(f"a fragment has {fragment}", (_FRAGMENT_SIZE,))]
    if now in (WINDOWS, LENT_REDUCTION):
        limits.append(Limit(f"a window has {byte_count(rule.window)} at most", (_WINDOW_SIZE,)))
    if now in (LARGE_BLOCKS, IN_PLACE, LENT_REDUCTION):
        text = "nothing is read in place until every member has tried to read the others' memory"
        limits.append(Limit(text, (_SINGLE_COPY,)))
    return Choice(tuple(branches), tuple(limits), _changes(about, rule, otherwise))


def _compared(about: Asked, rule: Rule, now: str) -> Branch:
    """The branch that the size of the data decides."""
    what = "the data have" if about.operation in (*_REDUCTIONS, "bcast") else "a block has"
    text = f"{what} {byte_count(about.size)}"
    if about.operation not in _REDUCTIONS and rule.single_copy:
        compared = "no less" if about.size >= rule.least else "less"
        text = f"{text}, {compared} than what is read in place ({byte_count(rule.least)}): {now}"
        return Branch(text, (_LEND_LEAST,))
    compared = "no more" if about.size <= rule.fragment else "more"
    text = f"{text}, {compared} than a fragment ({byte_count(rule.fragment)}): {now}"
    return Branch(text, (_FRAGMENT_SIZE,))


def _changes(about: Asked, rule: Rule, otherwise: Callable[[], str]) -> tuple[Change, ...]:
    """What is different when one thing is."""
    now = way(about, rule)
    found = []
    for other in (max(about.size, about.element, 1), max(about.size - 1, 64)):
        then = way(about, rule._replace(fragment=other))
        if then != now:
            than = "or more" if other > rule.fragment else "or less"
            text = f"fragments of {byte_count(other)} {than}"
            found.append(Change(text, then or otherwise(), (_FRAGMENT_SIZE,)))
    for least in (about.size, about.size + 1):
        then = way(about, rule._replace(least=least))
        if then != now:
            text = f"what has {byte_count(least)} or more is read in place"
            found.append(Change(text, then, (_LEND_LEAST,)))
    then = way(about, rule._replace(single_copy=not rule.single_copy))
    if then != now:
        text = "nothing is read in place" if rule.single_copy else "blocks may be read in place"
        found.append(Change(text, then, (_SINGLE_COPY,)))
    return tuple(found)
