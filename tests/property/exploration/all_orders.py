"""All that can happen to a small program, by trying every order of every step.

An oracle for the exchange, with a model of its own: messages of a sender arrive in their order, at
any time; an arrived message goes to the first posted receive that fits, a posted receive takes any
sender's first message that has arrived, a probe finds any. Every order of steps and arrivals is
tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.runtime.exploration.events import DONE, FROM, NOTHING

Chosen = frozenset[tuple[Any, Any]]


class _State:
    """What all ranks have done; immutable values only, so that states compare."""

    def __init__(self, size: int) -> None:
        self.answers: list[tuple[Any, ...]] = [()] * size  # what each rank was answered, in order
        self.flying: dict[tuple[int, int], tuple[Any, ...]] = {}
        self.arrived: list[tuple[Any, ...]] = [()] * size
        self.posted: list[tuple[Any, ...]] = [()] * size
        self.matched: list[frozenset[Any]] = [frozenset()] * size  # (operation, sender's)
        self.told: list[frozenset[int]] = [frozenset()] * size
        self.chosen: Chosen = frozenset()

    def copy(self) -> _State:
        made = _State(0)
        made.__dict__.update(
            {
                name: value if isinstance(value, frozenset) else value.copy()
                for name, value in self.__dict__.items()
            }
        )
        return made

    def key(self) -> Any:
        return (
            tuple(self.answers),
            tuple(sorted(self.flying.items())),
            tuple(self.arrived),
            tuple(self.posted),
            tuple(self.matched),
            tuple(self.told),
            self.chosen,
        )

    def choose(self, rank: int, number: int, value: Any) -> None:
        self.chosen |= {((rank, number), value)}


def _fits(source: int, tag: int, message: Any) -> bool:
    sender, sent, _ = message
    return source in {ANY_SOURCE, sender} and tag in {ANY_TAG, sent}


def _firsts(words: Any, arrived: Any) -> list[Any]:
    """Of each sender the first message that fits."""
    found: dict[int, Any] = {}
    for message in arrived:
        if _fits(*words, message):
            found.setdefault(message[0], message)
    return list(found.values())


def _sorted(done: dict[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted(done.items()))


class Oracle:
    """Tries everything."""

    def __init__(self, ranks: Sequence[Any], buffers: bool = True) -> None:
        self._ranks = ranks
        self._buffers = buffers
        self.found: dict[Chosen, str] = {}

    def run(self) -> dict[Chosen, str]:
        """What can be chosen, and how the program ends then."""
        stack, seen = [_State(len(self._ranks))], set()
        while stack:
            state = stack.pop()
            key = state.key()
            if key in seen:
                continue
            seen.add(key)
            nexts = list(self._nexts(state))
            stack += nexts
            if not nexts:
                asks = [self._asks(state, rank)[0] for rank in range(len(self._ranks))]
                end = "ended" if all(ask is None for ask in asks) else "deadlock"
                self.found[state.chosen] = end
        return self.found

    def _asks(self, state: _State, rank: int) -> tuple[Any, int]:
        """What a rank does next, and the number that this operation has."""
        program = self._ranks[rank]()
        number = 0
        try:
            asked = program.send(None)
            for answer, counts in state.answers[rank]:
                number += counts
                asked = program.send(answer)
        except StopIteration:
            return None, number
        return asked, number + 1

    def _nexts(self, state: _State) -> Iterator[_State]:
        for (sender, to), messages in state.flying.items():
            if messages:
                yield self._arrive(state, sender, to)
        for rank in range(len(self._ranks)):
            asked, number = self._asks(state, rank)
            if asked is not None:
                yield from self._step(state, rank, asked, number)

    def _arrive(self, state: _State, sender: int, to: int) -> _State:
        made = state.copy()
        first, *others = made.flying[sender, to]
        made.flying[sender, to] = tuple(others)
        for receive in made.posted[to]:
            if _fits(*receive[1:], first):
                self._match(made, to, receive, first)
                return made
        made.arrived[to] += (first,)
        return made

    def _match(self, state: _State, rank: int, receive: Any, message: Any) -> None:
        sender, _, number = message
        state.posted[rank] = tuple(one for one in state.posted[rank] if one != receive)
        state.arrived[rank] = tuple(one for one in state.arrived[rank] if one != message)
        state.matched[rank] |= {(receive[0], sender)}
        state.matched[sender] |= {(number, sender)}  # a synchronous send's
        if receive[1] == ANY_SOURCE:
            state.choose(rank, receive[0], (FROM, sender, number))

    def _answer(
        self, state: _State, rank: int, answer: Any, counts: int, told: Sequence[int] = ()
    ) -> None:
        state.answers[rank] += ((answer, counts),)
        state.told[rank] |= set(told)

    def _step(self, state: _State, rank: int, asked: Any, number: int) -> Iterator[_State]:
        what, *words = asked
        made = state.copy()
        matched = dict(state.matched[rank])
        told = state.told[rank]
        if what in {"send", "ssend"}:
            to, tag = words
            made.flying[rank, to] = (*made.flying.get((rank, to), ()), (rank, tag, number))
            done = what == "send" and self._buffers
            self._answer(made, rank, number, 1, (number,) if done else ())
            yield made
        elif what == "post":
            receive = (number, *words)
            made.posted[rank] += (receive,)
            self._answer(made, rank, number, 1)
            found = _firsts(words, made.arrived[rank])
            if not found:
                yield made
            for message in found:
                taken = made.copy()
                self._match(taken, rank, receive, message)
                yield taken
        elif what == "wait":
            one = words[0]
            if one in told:
                self._answer(made, rank, matched.get(one, rank), 0)
                yield made
            elif one in matched:
                self._answer(made, rank, matched[one], 1, (one,))
                yield made
        elif what == "any":
            yield from self._any(state, rank, words[0], number, matched)
        elif what == "poll":
            yield from self._poll(state, rank, number, matched)
        else:
            yield from self._probe(state, rank, what, words, number)

    def _any(self, state: Any, rank: int, of: Any, number: int, matched: Any) -> Iterator[_State]:
        for one in of:
            if one in state.told[rank]:
                made = state.copy()
                self._answer(made, rank, one, 0)
                yield made
                return
        for one in of:
            if one in matched:
                made = state.copy()
                if len(of) > 1:
                    made.choose(rank, number, (DONE, one))
                self._answer(made, rank, one, 1, (one,))
                yield made

    def _poll(self, state: _State, rank: int, number: int, matched: Any) -> Iterator[_State]:
        told = state.told[rank]
        done = {one: sender for one, sender in matched.items() if one in told}
        done |= {one: rank for one in told if one not in matched}
        ready = [one for one in matched if one not in told]
        open_ = {one[0] for one in state.posted[rank]} | set(ready)
        open_ |= self._unmatched_sends(state, rank) - told
        made = state.copy()
        if open_:
            made.choose(rank, number, (NOTHING,))
        self._answer(made, rank, _sorted(done), 1)
        yield made
        for one in ready:
            made = state.copy()
            made.choose(rank, number, (DONE, one))
            self._answer(made, rank, _sorted({**done, one: matched[one]}), 1, (one,))
            yield made

    def _unmatched_sends(self, state: _State, rank: int) -> set[int]:
        flying = [one for ones in state.flying.values() for one in ones]
        here = [one for ones in state.arrived for one in ones]
        return {number for sender, _, number in [*flying, *here] if sender == rank}

    def _probe(
        self, state: _State, rank: int, what: str, words: Any, number: int
    ) -> Iterator[_State]:
        found = _firsts(words, state.arrived[rank])
        for sender, _, sent in found:
            made = state.copy()
            made.choose(rank, number, (FROM, sender, sent))
            self._answer(made, rank, sender, 1)
            yield made
        if not found and what == "iprobe":
            made = state.copy()
            made.choose(rank, number, (NOTHING,))
            self._answer(made, rank, None, 1)
            yield made
