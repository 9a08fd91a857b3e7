"""Message races between rounds: one message of each member is added up, again and again.

The order within a round is nothing: who sent is asked, or does not matter. But a message of the
next round may be taken in place of another member's: it would be added to the wrong round.

A round is a loop over as many receives as there are other members, whose sum begins anew each time.
A program that goes on adding, or that keeps what comes by its source, is right in any order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from ompy.check.analysis.matching import Messages, Receive, Send
from ompy.check.analysis.order import Order
from ompy.check.analysis.received import path_to_call, received_name, scope_of
from ompy.check.analysis.source_tree import called_name
from ompy.check.findings import Found
from ompy.check.logs import Place, Record
from ompy.check.program_text import parsed_file
from ompy.data.constants import ANY_SOURCE, ANY_TAG

_SIZES: Final = frozenset({"size", "Get_size"})
# of an expression that says how many other members there are
_COUNTING: Final = (
    ast.BinOp, ast.Add, ast.Sub, ast.Constant, ast.Name, ast.Attribute, ast.Call, ast.Load,
)  # fmt: skip


def round_findings(
    records: Mapping[int, Record],
    messages: Messages,
    order: Order,
    incoming: Mapping[tuple[str, int], list[Send]],
) -> list[Found]:
    """The first race of each line.

    Args:
        records: of all ranks.
        messages: matched.
        order: what happened before what.
        incoming: messages by communicator and rank of the job that they are for.
    """
    found = []
    for rank, receives in messages.receives.items():
        lines: dict[tuple[int, str], list[Receive]] = {}
        for receive in receives:
            if receive.source == ANY_SOURCE and receive.got is not None:
                lines.setdefault((receive.site, receive.key), []).append(receive)
        for (_, key), each in lines.items():
            sends = incoming.get((key, rank), [])
            race = next(_races(records[rank], each, sends, messages, order), None)
            if race is not None:
                found.append(_told(records, messages, *race))
    return found


def _races(
    record: Record, receives: list[Receive], sends: list[Send], messages: Messages, order: Order
) -> Iterator[tuple[Receive, Send]]:
    """Receives of one line, each with a message of a later round that it could have taken."""
    first = receives[0]
    comm = next(comm for comm in record.comms.values() if comm.key == first.key)
    many = len(comm.members) - (comm.members == comm.own)  # of another group all are others
    place = record.places.get(first.site, Place("", 0, ""))
    if many < 2 or len(receives) <= many or len(receives) % many or not is_round(place):
        return
    rounds = {receive.place: number // many for number, receive in enumerate(receives)}
    for receive in receives:
        assert receive.got is not None, "only such are asked for"
        for send in sends:
            taken = messages.receive_of.get((send.rank, send.place))
            if taken is None or receive.tag not in {ANY_TAG, send.tag}:
                continue
            later = rounds.get(taken.place, -1) > rounds[receive.place]
            other = send.source != receive.got[0] and not _are_alike(receive, taken)
            if later and other and not _is_behind(receive, send, order):
                yield receive, send


def _are_alike(one: Receive, other: Receive) -> bool:
    """Whether two receives have got the same contents."""
    if one.got is None or other.got is None:
        return False
    return one.got[4] >= 0 and one.got[4] == other.got[4]


def _is_behind(receive: Receive, send: Send, order: Order) -> bool:
    return order.before(receive.rank, receive.over, send.rank, send.place)


def _told(
    records: Mapping[int, Record], messages: Messages, receive: Receive, other: Send
) -> Found:
    assert receive.got is not None, "only such are asked for"
    sites = [records[receive.rank].site(receive.site, receive.call)]
    sent = messages.send_of.get((receive.rank, receive.place))
    if sent is not None:
        sites.append(records[sent.rank].site(sent.site, sent.call))
    sites.append(records[other.rank].site(other.site, other.call))
    message = (
        f"{receive.call} from any source took the message of rank {receive.got[0]}; one that rank "
        f"{other.source} sends for a later round could have come first, and would be added to this "
        "round. MPI 4.1, 3.5: only messages of one source are in order; give each round a tag of "
        "its own, or name the source"
    )
    return Found("message-race", message, tuple(sites))


@cache
def is_round(place: Place) -> bool:
    """Whether a line receives within a round whose sum begins anew each time."""
    tree = parsed_file(place.file)
    if tree is None:
        return False
    path = path_to_call(tree, place.line)
    if not path:
        return False
    scope = scope_of(path)
    inner = path[path.index(scope) :]
    loops = [node for node in inner if isinstance(node, (ast.For, ast.While))]
    if not loops or not isinstance(loops[-1], ast.For) or not _is_of_members(loops[-1].iter, tree):
        return False
    around = loops[-2] if len(loops) > 1 else scope
    if isinstance(around, ast.Module):
        return False
    name = _sum_of(loops[-1], inner)
    return bool(name) and name in set(_assigned(around, loops[-1]))


def _is_of_members(count: ast.expr, tree: ast.AST) -> bool:
    """Whether a loop is over `range` of the number of members, or of the others."""
    if not isinstance(count, ast.Call) or called_name(count) != "range":
        return False
    sizes = _names_of_size(tree)
    nodes = [node for argument in count.args for node in ast.walk(argument)]
    says_size = any(
        (isinstance(node, ast.Name) and node.id in sizes)
        or (isinstance(node, ast.Attribute) and node.attr in _SIZES)
        for node in nodes
    )
    return says_size and all(isinstance(node, _COUNTING) for node in nodes)


def _names_of_size(tree: ast.AST) -> set[str]:
    """Variables that have the number of a communicator's members."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for name, value in _pairs(node.targets[0], node.value):
                function = value.func if isinstance(value, ast.Call) else value
                if isinstance(function, ast.Attribute) and function.attr in _SIZES:
                    found.add(name)
    return found


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, other in zip(target.elts, value.elts, strict=False):
            yield from _pairs(one, other)


def _sum_of(loop: ast.For, path: list[ast.AST]) -> str:
    """The variable that what a loop receives is added to; empty if it is not."""
    name = received_name(path)
    for node in ast.walk(loop):
        if not isinstance(node, ast.AugAssign) or not isinstance(node.target, ast.Name):
            continue
        read = {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
        if node in path or name in read:
            return node.target.id
    return ""


def _assigned(around: ast.AST, loop: ast.For) -> Iterator[str]:
    """Variables that get a value outside of the loop."""
    inside = set(ast.walk(loop))
    for node in ast.walk(around):
        if isinstance(node, ast.Assign) and node not in inside:
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id
