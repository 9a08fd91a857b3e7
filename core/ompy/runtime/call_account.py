"""Whether all ranks have made the same collective calls: an account of each, compared at the end.

Two members whose calls need nothing of the other (both the root of a broadcast) have both succeeded
when the job ends. So every rank tells its agent, when it finalizes, what it has called, and the
launcher compares. It waits for nobody.

An account has the *balance* of all communicators: for each a hash of its calls, which the first
member counts once for every other and the others take off, so that the balances of all ranks add up
to nothing. Communicators that were freed are in it. Of some that live it has the last calls too, to
say which differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any, Final

from ompy.frameworks.call_order import DIGEST, REMEMBERED, WORD, call_text, number_of
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.proc import Proc

COMMUNICATORS_MAX: Final = 16  # told of in detail; arbitrary: an account is short
ADVICE: Final = "All members of a communicator have to make the same calls in the same order."


def balance(communicator: Communicator) -> int:
    """What a communicator adds to the account of this rank."""
    size, order = members(communicator), communicator.order
    if size < 2:
        return 0
    found, first = 0, first_of(communicator)
    for number in (communicator.context_id, first.rank, size, order.digest):
        found = (found ^ number) * DIGEST & WORD
    me = communicator.context.me
    return found * (size - 1) & WORD if first is me else -found & WORD


def members(communicator: Communicator) -> int:
    """How many processes are in a communicator, of both groups where there are two."""
    return communicator.size + (len(communicator.own) if communicator.between else 0)


def first_of(communicator: Communicator) -> Proc:
    """The member that counts for all: the first one; of two groups that of lower rank."""
    return min(communicator.own[0], communicator.procs[0], key=attrgetter("rank"))


def account(communicators: Iterable[Communicator], ended: int) -> dict[str, Any]:
    """The account of a rank.

    Args:
        communicators: its live ones.
        ended: sum of the balances of those that were freed.
    """
    shared = [each for each in communicators if members(each) > 1]
    total = (sum(map(balance, shared)) + ended) & WORD
    live = []
    for each in shared[:COMMUNICATORS_MAX]:
        number = each.order.number
        words = [each.order.at(at) for at in range(max(1, number - REMEMBERED + 1), number + 1)]
        live.append([each.context_id, first_of(each).rank, each.name, each.rank, words])
    return {"balance": total, "live": live}


def complaint(accounts: Mapping[int, Mapping[str, Any]]) -> str:
    """What is wrong with the accounts of all ranks; empty if nothing is."""
    if not sum(each["balance"] for each in accounts.values()) & WORD:
        return ""
    seen: dict[tuple[int, int], tuple[int, list[int]]] = {}
    for rank in sorted(accounts):
        for context_id, first, name, place, words in accounts[rank]["live"]:
            other, others = seen.setdefault((context_id, first), (place, words))
            found = _difference(name, (other, others), (place, words))
            if found:
                return found
    return "the members of a communicator have not made the same collective calls in it."


def _difference(name: str, first: tuple[int, list[int]], second: tuple[int, list[int]]) -> str:
    """The first call that differs, of those that both members tell of."""
    calls = [{number_of(word): word for word in words} for _, words in (first, second)]
    start = max((min(each) for each in calls if each), default=1)
    for number in sorted({*calls[0], *calls[1]}):
        words = [each.get(number, 0) for each in calls]
        if number >= start and words[0] != words[1]:
            said = [
                f"rank {rank} called {call_text(word)}" if word else f"rank {rank} called nothing"
                for (rank, _), word in zip((first, second), words, strict=True)
            ]
            what = f"collective call {number} of {name} is not the same in all members"
            return f"{what}: {', '.join(said)}."
    return ""
