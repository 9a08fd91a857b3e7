"""How the members of a file tell each other who has a problem, and what they do not say alike.

It takes messages, so it is done only when a word of each has shown that they differ.
"""

from __future__ import annotations

from collections.abc import Generator
from struct import Struct
from typing import Final

from ompy.data.errors import ERR_NOT_SAME, MPIError
from ompy.frameworks.collectives.call_order import call_text
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.values import tell_all
from ompy.frameworks.io import Outcome, hear_problems, problem_bytes

SAID: Final = Struct("<qq?")  # two numbers, and whether this rank is fine
_SET_VIEW: Final = "File.Set_view"


def settle_by_messages(
    exchange: Exchange, outcome: Outcome, said: bytes, word: int
) -> Generator[None, None, None]:
    """Steps of a schedule: all members' problems, and what they say.

    Args:
        exchange: its messages.
        outcome: this member's problem; what comes of it. Its size says whether all are fine.
        said: what this member says, as `SAID` has it.
        word: of the call.
    """
    told = yield from tell_all(exchange, said + problem_bytes(outcome.problem))
    hear_problems(exchange, outcome, [each[SAID.size :] for each in told])
    heard = [SAID.unpack_from(each) for each in told]
    outcome.size = int(all(each[2] for each in heard))
    for place in 0, 1:
        values = {each[place] for each in heard}
        if outcome.problem is None and len(values) > 1:
            call = call_text(word)
            text = f"{call}: {_difference(values, place, call)}"
            outcome.problem = MPIError(ERR_NOT_SAME, text)


def _difference(values: set[int], place: int, call: str) -> str:
    """What members do not say alike, where numbers mean something to people."""
    if place:  # it is `Seek_shared`'s alone
        return "the members do not name the same whence"
    if call == _SET_VIEW:
        return "the members do not name the same data representation"
    return f"the members say {', '.join(map(str, sorted(values)))}"
