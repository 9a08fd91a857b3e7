"""Message races: a receive from anybody that could have taken another message.

A race that the program provides for is none to speak of: it asks who sent, it does the same with
whatever comes (a sum), or all that may come is alike.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from typing import Final

from ompy.check.analysis.matching import Messages, Receive, Send
from ompy.check.analysis.order import Order
from ompy.check.findings import Found
from ompy.check.logs import Place, Record
from ompy.check.program_text import parsed_file
from ompy.check.record import ADDS, ASKED
from ompy.data.constants import ANY_SOURCE, ANY_TAG

# operations whose result does not depend on the order
_ADDING: Final = (ast.Add, ast.Mult)
_COMMUTING: Final = (ast.BitOr, ast.BitAnd, ast.BitXor)
_GATHERING: Final = frozenset({"sum", "max", "min", "sorted", "set", "add", "maximum", "minimum"})


def race_findings(records: Mapping[int, Record], messages: Messages, order: Order) -> list[Found]:
    """The first race of each line."""
    if not order.known:
        return []
    found: dict[tuple[int, int], Found] = {}
    incoming = _by_target(records, messages)
    for rank, receives in messages.receives.items():
        for receive in receives:
            key = (rank, receive.site)
            if receive.source != ANY_SOURCE or receive.got is None or key in found:
                continue
            other = _candidate(receive, incoming.get((receive.key, rank), []), messages, order)
            if other is not None and not _provided_for(records[rank], receive, other, messages):
                found[key] = _race(records, receive, other, messages)
    return list(found.values())


def _by_target(
    records: Mapping[int, Record], messages: Messages
) -> dict[tuple[str, int], list[Send]]:
    found: dict[tuple[str, int], list[Send]] = {}
    for rank, sends in messages.sends.items():
        comms = {comm.key: comm for comm in records[rank].comms.values()}
        for send in sends:
            members = comms[send.key].members
            if send.target < len(members):
                found.setdefault((send.key, members[send.target]), []).append(send)
    return found


def _candidate(
    receive: Receive, sends: list[Send], messages: Messages, order: Order
) -> Send | None:
    """A message of another source that it could have taken."""
    assert receive.got is not None, "only then is it asked"
    for send in sends:
        if send.source == receive.got[0] or receive.tag not in {ANY_TAG, send.tag}:
            continue
        taken = messages.receive_of.get((send.rank, send.place))
        if taken is not None and taken.place <= receive.place:
            continue
        if not order.before(receive.rank, receive.over, send.rank, send.place):
            return send
    return None


def _provided_for(record: Record, receive: Receive, other: Send, messages: Messages) -> bool:
    assert receive.got is not None, "only then is it asked"
    if receive.got[3] & ASKED:
        return True
    taken = messages.receive_of.get((other.rank, other.place))
    digest = receive.got[4]
    if taken is not None and taken.got is not None and digest >= 0 and taken.got[4] == digest:
        return True
    use = use_at(record.places.get(receive.site, Place("", 0, "")))
    return use == Use.ORDER_FREE or (use == Use.ADDED and bool(receive.got[3] & ADDS))


def _race(
    records: Mapping[int, Record], receive: Receive, other: Send, messages: Messages
) -> Found:
    assert receive.got is not None, "only then is it asked"
    sites = [records[receive.rank].site(receive.site, receive.call)]
    sent = messages.send_of.get((receive.rank, receive.place))
    if sent is not None:
        sites.append(records[sent.rank].site(sent.site, sent.call))
    sites.append(records[other.rank].site(other.site, other.call))
    message = (
        f"{receive.call} from any source took the message of rank {receive.got[0]}; that of rank "
        f"{other.source} could have come first, and nothing asks who sent. MPI 4.1, 3.5: which is "
        "taken is not determined; name the source, or look at the Status"
    )
    return Found("message-race", message, tuple(sites))


# --- what the program does with what it receives


class Use(Enum):
    """What a line does with what it receives."""

    ADDED = "added or multiplied: of numbers in any order the same"
    ORDER_FREE = "in any order the same: a largest, a set"
    ANYTHING = "nothing is known"


@cache
def use_at(place: Place) -> Use:
    """How a line treats what it receives."""
    tree = parsed_file(place.file)
    if tree is None:
        return Use.ANYTHING
    path = _path_to_call(tree, place.line)
    for node in reversed(path):
        if isinstance(node, ast.AugAssign):
            return _use_of(node.op)
        if isinstance(node, ast.Call) and _called(node) in _GATHERING:
            return Use.ORDER_FREE
    name = _received_name(path)
    uses = list(_uses(_scope(path), name, [])) if name else []
    if not uses or Use.ANYTHING in uses:
        return Use.ANYTHING
    return Use.ADDED if Use.ADDED in uses else Use.ORDER_FREE


def _use_of(operation: ast.operator) -> Use:
    if isinstance(operation, _ADDING):
        return Use.ADDED
    return Use.ORDER_FREE if isinstance(operation, _COMMUTING) else Use.ANYTHING


def _path_to_call(tree: ast.AST, line: int) -> list[ast.AST]:
    """The nodes from the module to the innermost receive on a line."""
    best: list[ast.AST] = []

    def walk(node: ast.AST, path: list[ast.AST]) -> None:
        nonlocal best
        path = [*path, node]
        called = _called(node).lower() if isinstance(node, ast.Call) else ""
        on_line = getattr(node, "lineno", 0) <= line <= getattr(node, "end_lineno", 0)
        if on_line and ("recv" in called or "wait" in called):
            best = path
        for child in ast.iter_child_nodes(node):
            walk(child, path)

    walk(tree, [])
    return best


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _received_name(path: list[ast.AST]) -> str:
    """The variable that has what was received: the target of the assignment, or the buffer."""
    if not path:
        return ""
    call = path[-1]
    for node in reversed(path):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            return node.targets[0].id
    assert isinstance(call, ast.Call), "the path leads to a call"
    first = call.args[0] if call.args else None
    if isinstance(first, (ast.List, ast.Tuple)) and first.elts:
        first = first.elts[0]
    return first.id if isinstance(first, ast.Name) else ""


def _scope(path: list[ast.AST]) -> ast.AST:
    """The function that a call is in, or the module."""
    return next((n for n in reversed(path) if isinstance(n, ast.FunctionDef)), path[0])


def _uses(node: ast.AST, name: str, path: list[ast.AST]) -> Iterator[Use]:
    """What is done with a variable's value, wherever that is."""
    path = [*path, node]
    if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
        calls = [n for n in path if isinstance(n, ast.Call)]
        if any("recv" in _called(call).lower() for call in calls):
            return
        added = next((n for n in path if isinstance(n, ast.AugAssign)), None)
        if added is not None:
            yield _use_of(added.op)
            return
        gathers = any(_called(call) in _GATHERING for call in calls)
        yield Use.ORDER_FREE if gathers else Use.ANYTHING
        return
    for child in ast.iter_child_nodes(node):
        yield from _uses(child, name, path)
