"""Whether all ranks have made the same collective calls: an account of each, compared at the end.

Two members whose calls need nothing of the other (both the root of a broadcast) have both succeeded
when the job ends. So every rank tells its agent, when it finalizes, what it has called, and the
launcher compares. It waits for nobody.

An account has the *balance* of all communicators (`Communicator.balance`): for each a hash of its
calls, which the first member counts once for every other and the others take off, so that the
balances of all ranks add up to nothing. Communicators that were freed are in it, and GASNet's
teams. Of some that live it has the last calls too, to say which differ: MPI's as words, others as
numbers and texts.

Members of a call that was refused may have named it differently: each has got its error, and the
program has gone on. Then nothing is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ompy.frameworks.collectives.call_order import (
    DIGEST,
    REMEMBERED,
    WORD,
    call_text,
    number_of,
)
from ompy.frameworks.communicator import Communicator

COMMUNICATORS_MAX: Final = 16  # told of in detail; arbitrary: an account is short
# of other groups: a name that no other has, the first member, for people, this rank there, calls
Group = tuple[str, int, str, int, list[tuple[int, str]]]
ADVICE: Final = "All members of a communicator have to make the same calls in the same order."


def share(said: Iterable[int], size: int, is_first: bool) -> int:
    """What a member adds, of numbers that all members of a group have alike."""
    found = 0
    for number in said:
        found = (found ^ number) * DIGEST & WORD
    return found * (size - 1) & WORD if is_first else -found & WORD


def account(
    communicators: Iterable[Communicator],
    ended: int,
    others: Iterable[Group] = (),
    *,
    gave_up: bool = False,
) -> dict[str, Any]:
    """The account of a rank.

    Args:
        communicators: its live ones.
        ended: sum of the balances of those that were freed, and of other groups.
        others: live ones of these.
        gave_up: a call has failed here, and the program has gone on.
    """
    shared = [each for each in communicators if each.members() > 1]
    total = (sum(each.balance() for each in shared) + ended) & WORD
    live = []
    for each in shared[:COMMUNICATORS_MAX]:
        number = each.order.number
        words = [each.order.at(at) for at in range(max(1, number - REMEMBERED + 1), number + 1)]
        live.append([each.context_id, each.first().rank, each.name, each.rank, words])
    live += map(list, others)
    return {"balance": total, "live": live, "gave_up": gave_up}


def complaint(accounts: Mapping[int, Mapping[str, Any]]) -> str:
    """What is wrong with the accounts of all ranks; empty if nothing is."""
    if not sum(each["balance"] for each in accounts.values()) & WORD:
        return ""
    if any(each["gave_up"] for each in accounts.values()):
        return ""
    seen: dict[tuple[int | str, int], tuple[int, list[Any]]] = {}
    for rank in sorted(accounts):
        for context_id, first, name, place, words in accounts[rank]["live"]:
            other, others = seen.setdefault((context_id, first), (place, words))
            found = _difference(name, (other, others), (place, words))
            if found:
                return found
    return "the members of a communicator have not made the same collective calls in it."


def _difference(name: str, first: tuple[int, list[Any]], second: tuple[int, list[Any]]) -> str:
    """The first call that differs, of those that both members tell of."""
    calls = [dict(map(_numbered, words)) for _, words in (first, second)]
    start = max((min(each) for each in calls if each), default=1)
    for number in sorted({*calls[0], *calls[1]}):
        words = [each.get(number, 0) for each in calls]
        if number >= start and words[0] != words[1]:
            said = [
                f"rank {rank} called {_text_of(word)}" if word else f"rank {rank} called nothing"
                for (rank, _), word in zip((first, second), words, strict=True)
            ]
            what = f"collective call {number} of {name} is not the same in all members"
            return f"{what}: {', '.join(said)}."
    return ""


def _numbered(call: Any) -> tuple[int, Any]:
    """A call's number, and what says which it is."""
    return (number_of(call), call) if isinstance(call, int) else (call[0], call[1])


def _text_of(call: Any) -> str:
    return call_text(call) if isinstance(call, int) else str(call)
