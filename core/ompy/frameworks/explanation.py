"""How a PML or conduit explains the way a message takes: plain values, for `ompy explain`."""

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


class Choice(NamedTuple):
    """Why a component of coll takes an algorithm for a call.

    Attributes:
        branches: the way through its rule, in order.
        limits: numbers that shape the algorithm.
        changes: what would change it; `protocol` is the algorithm then.
    """

    branches: tuple[Branch, ...]
    limits: tuple[Limit, ...]
    changes: tuple[Change, ...]


class OperationAsked(NamedTuple):
    """An operation of GASNet that is asked about.

    Attributes:
        name: short, medium, long, long-async, put or get.
        peer: the other rank.
        size: bytes of payload.
        inside: the local memory of a put or get is in the own segment.
        bulk: the source of a put stays as it is until the put is complete.
        offset: in the peer's segment.
        arguments: of a message.
    """

    name: str
    peer: int
    size: int
    inside: bool = False
    bulk: bool = True
    offset: int = 0
    arguments: int = 0


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
