"""Epochs of a path: which packets belong together, and how both ends come to a new one.

A path that was given up and is taken back begins a new epoch: fresh numbers, windows and timers.
Every packet says its epoch, so one of an earlier epoch that is still under way is not taken. Both
ends begin in epoch 0. An end may send in an epoch once it knows that the other one has given up
all before it. For that they say OPEN, with the epoch and what the sender knows of it:

    UP        the path is in use
    DOWN      it was given up
    OPENING   this end is in a new epoch, and has not heard of the other one there
    AGREEING  both are in it; whether the other one knows of this end is not known
    UP        the other one has said that it knows, or has sent something

An end that is OPENING or AGREEING says so again and again; one that is UP only answers. A higher
epoch than its own tells an end that the other one has given up everything before. An end that is
DOWN and hears of an epoch that is over begins a new one, as its peer cannot know that it is over.

A late OPEN brings nobody UP, as that takes an answer to what one has said in the same epoch.
Source: ours; the exchange is TCP's (RFC 9293 3.5), where both may begin too.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

EPOCH_MAX: Final = (1 << 32) - 1  # arbitrary: a packet has 32 bits for it


class Stage(Enum):
    """Where an end is in its epoch; the values go over the wire."""

    OPENING = 0
    AGREEING = 1
    UP = 2
    DOWN = 3


class EpochEvent(Enum):
    """What happens to an end."""

    BROKE = "broke"  # it gives the path up
    WANTED = "wanted"  # the path is to be taken back
    OVER = "over"  # the peer is opening an epoch that is over here, or a lower one
    NEWER = "newer"  # the peer is in a higher one
    ASKED = "asked"  # the peer is in this one, and has not heard of this end there
    ANSWERED = "answered"  # it has, or it sends in it


_S, _E = Stage, EpochEvent

TABLE: Final[Mapping[tuple[Stage, EpochEvent], Stage]] = {
    (_S.UP, _E.BROKE): _S.DOWN,
    (_S.UP, _E.WANTED): _S.UP,
    (_S.UP, _E.OVER): _S.UP,  # late: the peer has been further
    (_S.UP, _E.NEWER): _S.DOWN,
    (_S.UP, _E.ASKED): _S.UP,  # late as well
    (_S.UP, _E.ANSWERED): _S.UP,
    (_S.DOWN, _E.WANTED): _S.OPENING,
    (_S.DOWN, _E.OVER): _S.OPENING,
    (_S.DOWN, _E.NEWER): _S.AGREEING,
    (_S.OPENING, _E.WANTED): _S.OPENING,
    (_S.OPENING, _E.OVER): _S.OPENING,  # the peer hears of this epoch soon
    (_S.OPENING, _E.NEWER): _S.AGREEING,
    (_S.OPENING, _E.ASKED): _S.AGREEING,
    (_S.OPENING, _E.ANSWERED): _S.UP,
    (_S.AGREEING, _E.WANTED): _S.AGREEING,
    (_S.AGREEING, _E.OVER): _S.AGREEING,
    (_S.AGREEING, _E.NEWER): _S.AGREEING,
    (_S.AGREEING, _E.ASKED): _S.AGREEING,
    (_S.AGREEING, _E.ANSWERED): _S.UP,
}


class WrongStage(AssertionError):
    """An end was told something that cannot happen where it is."""


def follow(stage: Stage, event: EpochEvent) -> Stage:
    """The stage after `event`.

    Raises:
        WrongStage: it cannot happen in `stage`.
    """
    after = TABLE.get((stage, event))
    if after is None:
        raise WrongStage(f"an end that is {stage.name} cannot be told {event.value}")
    return after


class Step(Enum):
    """What is to be done about an event, in this order."""

    FAIL = "give the path up: the peer has"
    RENEW = "begin with fresh numbers"
    SAY = "send an OPEN"
    READY = "the path can be used"


class Epoch:
    """One end of one path: no timer, no packet.

    Attributes:
        number: of the epoch it is in, or was in last; it only grows.
        stage: where it is there.
    """

    __slots__ = ("number", "stage")

    def __init__(self) -> None:
        self.number = 0
        self.stage = Stage.UP

    @property
    def unsettled(self) -> bool:
        """An OPEN is to be said again."""
        return self.stage is Stage.OPENING or self.stage is Stage.AGREEING

    def broke(self) -> None:
        """The path, which is in use, is given up."""
        self.stage = follow(self.stage, EpochEvent.BROKE)

    def want(self) -> list[Step]:
        """The path is to be taken back."""
        return self._go(EpochEvent.WANTED, self.number + 1)

    def heard(self, number: int, peer: Stage) -> list[Step]:
        """The peer has said OPEN.

        After `Step.FAIL` the caller gives the path up by `broke`; the peer will say it again.
        """
        if number > self.number:
            if self.stage is Stage.UP:
                return [Step.FAIL]
            return self._go(EpochEvent.NEWER, number)
        if number < self.number or self.stage is Stage.DOWN:
            if peer is Stage.UP:
                return []  # it asks for nothing, and hears of it when this end begins anew
            return self._go(EpochEvent.OVER, self.number + 1)
        steps = self._go(EpochEvent.ASKED if peer is Stage.OPENING else EpochEvent.ANSWERED, number)
        return steps if peer is Stage.UP else [Step.SAY, *steps]

    def data(self) -> list[Step]:
        """The peer sends packets of this epoch, which it is in."""
        return self._go(EpochEvent.ANSWERED, self.number)

    def _go(self, event: EpochEvent, number: int) -> list[Step]:
        before, self.stage = self.stage, follow(self.stage, event)
        moved = event is EpochEvent.NEWER or (before is Stage.DOWN and self.unsettled)
        if moved:
            assert self.number < number <= EPOCH_MAX, "an epoch is never used again"
            self.number = number
            return [Step.RENEW, Step.SAY]
        return [Step.READY] if self.stage is Stage.UP and before is not Stage.UP else []
