"""How a PML explains which protocol a message takes: plain values, for `ompy explain`."""

from __future__ import annotations

from typing import NamedTuple


class Branch(NamedTuple):
    """One question of the selection rule, as it was answered.

    Attributes:
        text: the question with its values, and the answer.
        parameters: full names of the parameters whose values are in it.
    """

    text: str
    parameters: tuple[str, ...] = ()


class Limit(NamedTuple):
    """A number that shapes how the message travels.

    Attributes:
        text: what it is, with its value.
        parameters: full names of the parameters that give it; none for a constant.
    """

    text: str
    parameters: tuple[str, ...] = ()


class Change(NamedTuple):
    """One thing that, changed alone, makes the message take another protocol.

    Attributes:
        text: what would have to be otherwise, and how.
        protocol: what the message would take then.
        parameters: full names of the parameters that would be set.
    """

    text: str
    protocol: str
    parameters: tuple[str, ...] = ()


class Explanation(NamedTuple):
    """Which protocol a message takes, and why.

    Attributes:
        protocol: the sender's candidate.
        branches: the way through the rule, in order.
        receiver: what the receiver may make of the candidate, a sentence each.
        rails: the ways to the peer, a line each.
        limits: numbers of the protocol.
        changes: what would change the protocol.
        sizes: first size of each range of sizes and the protocol there, all else being equal.
    """

    protocol: str
    branches: tuple[Branch, ...]
    receiver: tuple[str, ...]
    rails: tuple[str, ...]
    limits: tuple[Limit, ...]
    changes: tuple[Change, ...]
    sizes: tuple[tuple[int, str], ...]
