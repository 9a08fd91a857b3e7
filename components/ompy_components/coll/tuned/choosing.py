"""Why a call takes its algorithm: the rule that decided, and what would change it.

Found by asking the rules again with one thing different, so that it cannot say what is not so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ompy.frameworks.explanation import Branch, Change, Choice
from ompy.trace.amounts import byte_count

from ompy_components.coll.tuned.decision import ALGORITHMS, RULES, Rule, decide, possible

MOST_RANKS: Final = 1024  # that are asked about; arbitrary: larger communicators are seldom
_DYNAMIC: Final = "coll_tuned_use_dynamic_rules"


class Asked(NamedTuple):
    """What the choice depends on, and the word it gave."""

    operation: str
    size: int
    commutative: bool
    regular: bool
    word: str


def reasons(about: Asked, ranks: int, sharing: bool, forced: Mapping[str, str]) -> Choice:
    """Why a call takes its algorithm.

    Args:
        about: the call.
        ranks: of the communicator.
        sharing: whether ranks share cores.
        forced: algorithms that parameters name, by operation.
    """
    operation = about.operation
    parameter = f"coll_tuned_{operation}_algorithm"
    branches = [_cores(sharing)]
    word = forced.get(operation)
    if word is not None:
        branches.append(Branch(f"a parameter names {word}", (parameter, _DYNAMIC)))
    else:
        branches.append(Branch("no parameter names an algorithm", (parameter, _DYNAMIC)))
        rules = RULES[operation]
        fits = [rule.fits(about.size, ranks, sharing=sharing) for rule in rules]
        number = fits.index(True)
        word = rules[number].algorithm
        text = f"of {len(rules)} rules for {operation} number {number + 1} is the first that fits"
        branches.append(Branch(f"{text} {_call(about, ranks)}: {_rule(rules[number])}"))
    if word != about.word:
        branches.append(Branch(f"{word} cannot serve this call: {about.word} takes its place"))
    return Choice(tuple(branches), (), tuple(_changes(about, ranks, sharing, forced)))


def _call(about: Asked, ranks: int) -> str:
    size = f"{byte_count(about.size)}, " if about.size else ""
    return f"({size}{ranks} ranks)"


def _cores(sharing: bool) -> Branch:
    if sharing:
        return Branch("ranks share cores: some host has more of them than cores")
    return Branch("every rank has a core to itself")


def _rule(rule: Rule) -> str:
    """A rule in words."""
    where = []
    if rule.most_bytes is not None:
        where.append(f"up to {byte_count(rule.most_bytes)}")
    if rule.least_ranks > 1:
        where.append(f"from {rule.least_ranks} ranks on")
    if rule.most_ranks is not None:
        where.append(f"up to {rule.most_ranks} ranks")
    if rule.sharing:
        where.append("where ranks share cores")
    return f"{rule.algorithm} {', '.join(where) or 'for all that is left'}"


def _changes(
    about: Asked, ranks: int, sharing: bool, forced: Mapping[str, str]
) -> Iterator[Change]:
    """What is different when one thing is."""
    operation, now = about.operation, about.word

    def then(word: str | None, ranks: int, sharing: bool, commutative: bool) -> str:
        found = word or decide(operation, about.size, ranks, sharing=sharing)
        regular = about.regular
        return possible(operation, found, ranks, commutative=commutative, regular=regular)

    word = forced.get(operation)
    if then(word, ranks, not sharing, about.commutative) != now:
        text = "every rank had a core" if sharing else "ranks shared cores"
        yield Change(text, then(word, ranks, not sharing, about.commutative))
    for other in (*range(ranks + 1, MOST_RANKS + 1), *range(ranks - 1, 1, -1)):
        if then(word, other, sharing, about.commutative) != now:
            yield Change(f"{other} ranks", then(word, other, sharing, about.commutative))
            break
    if then(word, ranks, sharing, not about.commutative) != now:
        text = "an operation that does not commute" if about.commutative else "one that commutes"
        yield Change(text, then(word, ranks, sharing, not about.commutative))
    parameter = f"coll_tuned_{operation}_algorithm"
    for each in ALGORITHMS[operation]:
        if each != now and then(each, ranks, sharing, about.commutative) == each:
            yield Change(f"the parameter set to {each}", each, (parameter,))
