"""Message races between rounds: one message of each member is added up, again and again.

The order within a round is nothing: who sent is asked, or does not matter. But a message of the
next round may be taken in place of another member's: it would be added to the wrong round.

A round is a loop over as many receives as there are other members, whose sum begins anew each time;
or one of several such loops, each of which has a sum of its own.
A program that goes on adding, or that keeps what comes by its source, is right in any order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple

from ompy.check.analysis.matching import Messages, Receive, Send
from ompy.check.analysis.order import Order
from ompy.check.analysis.received import path_to_call, received_name, scope_of
from ompy.check.analysis.source_tree import called_name, changed_in, read_in
from ompy.check.analysis.use_words import SUMMING
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
        rounds: dict[str, dict[int, Round]] = {}
        for (_, key), each in lines.items():
            rounds.setdefault(key, {}).update(_rounds_of(records[rank], each))
        for (_, key), each in lines.items():
            sends = incoming.get((key, rank), [])
            race = next(_races(each, rounds[key], sends, messages, order), None)
            if race is not None:
                found.append(_told(records, messages, *race))
    return found


class Round(NamedTuple):
    """One round.

    Attributes:
        begin: place of its first receive among the events of the rank.
        sum: what is added up, as `sum_of` has it.
        anew: the sum begins anew in the next round of the line.
    """

    begin: int
    sum: tuple[int, str]
    anew: bool


def _rounds_of(record: Record, receives: list[Receive]) -> dict[int, Round]:
    """The round of each receive of one line, by its place; empty where there are none."""
    first = receives[0]
    comm = next(comm for comm in record.comms.values() if comm.key == first.key)
    many = len(comm.members) - (comm.members == comm.own)  # of another group all are others
    place = record.places.get(first.site, Place("", 0, ""))
    summed = sum_of(place)
    if many < 2 or len(receives) % many or not summed[1]:
        return {}
    anew = is_round(place)
    length = many if anew else len(receives)  # else it goes on adding
    return {
        receive.place: Round(receives[number - number % length].place, summed, anew)
        for number, receive in enumerate(receives)
    }


def _is_later(one: Round | None, than: Round) -> bool:
    """Whether a round is a later one, of another sum."""
    if one is None or one.begin <= than.begin:
        return False
    return one.sum != than.sum or one.anew


def _races(
    receives: list[Receive],
    rounds: Mapping[int, Round],
    sends: list[Send],
    messages: Messages,
    order: Order,
) -> Iterator[tuple[Receive, Send]]:
    """Receives of one line, each with a message of a later round that it could have taken."""
    if receives[0].place not in rounds:
        return
    for receive in receives:
        assert receive.got is not None, "only such are asked for"
        for send in sends:
            taken = messages.receive_of.get((send.rank, send.place))
            if taken is None or receive.tag not in {ANY_TAG, send.tag}:
                continue
            later = _is_later(rounds.get(taken.place), rounds[receive.place])
            other = send.source != receive.got[0] and not _are_alike(receive, taken)
            if later and other and not _is_behind(receive, send, order):
                yield receive, send


def _are_alike(one: Receive, other: Receive) -> bool:
    """Whether two receives have got the same contents."""
    if one.got is None or other.got is None:
        return False
    digest: int = one.got[4]
    return digest >= 0 and digest == other.got[4]


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
    found = _summing(place)
    if found is None:
        return False
    around, loop, name = found
    if isinstance(loop, ast.stmt) and not isinstance(loop, ast.For):
        return True  # a sum in one expression
    return not isinstance(around, ast.Module) and name in set(_assigned(around, loop))


@cache
def sum_of(place: Place) -> tuple[int, str]:
    """What a line's loop adds up of all members: line of the scope and variable; no name if not."""
    found = _summing(place)
    if found is None:
        return 0, ""
    tree = parsed_file(place.file)
    assert tree is not None, "it has a loop"
    scope = scope_of(path_to_call(tree, place.line))
    if not isinstance(found[1], ast.For):
        return getattr(scope, "lineno", 0), found[2]
    begun = set(_assigned(scope, found[1]))
    return getattr(scope, "lineno", 0), found[2] if found[2] in begun else ""


def _summing(place: Place) -> tuple[ast.AST, ast.stmt, str] | None:
    """What adds up what a line receives of all members: what is around it, it, and where.

    It is a loop, or a statement that has `sum(... for _ in range(others))` and nothing before it.
    """
    tree = parsed_file(place.file)
    path = path_to_call(tree, place.line) if tree is not None else []
    if tree is None or not path:
        return None
    scope = scope_of(path)
    inner = path[path.index(scope) :]
    loops = [node for node in inner if isinstance(node, (ast.For, ast.While))]
    if _is_added_elsewhere(scope, tree):
        return None
    at_once = _summed_at_once(inner, tree)
    if at_once is not None:
        return scope, at_once, f"line {at_once.lineno}"
    loop = loops[-1] if loops else None
    if not isinstance(loop, ast.For) or not _is_of_members(loop.iter, tree):
        return None
    name = _sum_of(loop, inner)
    return (loops[-2] if len(loops) > 1 else scope, loop, name) if name else None


def _summed_at_once(path: list[ast.AST], tree: ast.AST) -> ast.stmt | None:
    """The statement that sums up, in one expression, what a call in it receives of all members."""
    all_of = next((n for n in path if isinstance(n, (ast.GeneratorExp, ast.ListComp))), None)
    if all_of is None or len(all_of.generators) > 1 or path[-1] not in set(ast.walk(all_of.elt)):
        return None
    called = path[path.index(all_of) - 1]
    statement = next((node for node in reversed(path) if isinstance(node, ast.stmt)), None)
    if not isinstance(called, ast.Call) or called_name(called) not in SUMMING:
        return None
    if not isinstance(statement, (ast.Assign, ast.Return, ast.Expr)):
        return None
    goes_on = changed_in([statement]) & read_in(statement.value or statement)
    return None if goes_on or not _is_of_members(all_of.generators[0].iter, tree) else statement


def _is_added_elsewhere(scope: ast.AST, tree: ast.AST) -> bool:
    """Whether what a function returns is added up by those that call it: to one sum, then."""
    name = getattr(scope, "name", None)
    if name is None or not any(isinstance(e, ast.Return) and e.value for e in ast.walk(scope)):
        return False
    calls = {e for e in ast.walk(tree) if isinstance(e, ast.Call) and called_name(e) == name}
    sums = [
        each
        for each in ast.walk(tree)
        if (isinstance(each, ast.AugAssign) and isinstance(each.op, ast.Add))
        or (isinstance(each, ast.Call) and called_name(each) in SUMMING)
    ]
    added = {each for one in sums for each in ast.walk(one)}
    return bool(calls) and calls <= added


def _is_of_members(count: ast.expr, tree: ast.AST) -> bool:
    """Whether a loop is over `range` of the number of members, or of the others."""
    if not isinstance(count, ast.Call) or called_name(count) != "range":
        return False
    sizes = _names_of_size(tree)
    nodes = [node for argument in count.args for node in ast.walk(argument)]
    return all(isinstance(node, _COUNTING) for node in nodes) and any(
        _says_size(argument, sizes) for argument in count.args
    )


def _names_of_size(tree: ast.AST) -> set[str]:
    """Variables that have the number of a communicator's members, or of the others."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for name, value in _pairs(node.targets[0], node.value):
                if _says_size(value, found):
                    found.add(name)
    return found


def _says_size(count: ast.expr, sizes: set[str]) -> bool:
    """Whether an expression counts members: it has their number, and nothing but whole numbers."""
    nodes = list(ast.walk(count))
    return all(isinstance(node, _COUNTING) for node in nodes) and any(
        (isinstance(node, ast.Name) and node.id in sizes)
        or (isinstance(node, ast.Attribute) and node.attr in _SIZES)
        for node in nodes
    )


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
