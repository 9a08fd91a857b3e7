"""The choices of an explored world: what was chosen, and what could have been instead."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ompy.runtime.exploration.boxes import Operation

Value = tuple[Any, ...]  # of a choice: FROM, DONE, SEES or NOTHING with what belongs to it
FROM: Final = "from"  # the message that this operation sent
DONE: Final = "done"  # this operation of the rank is complete
AGAIN: Final = "again"  # no value: a rank that polls has work to do before it is answered
SEES: Final = "sees"  # a read in a window is served just before this choice of its target
NOTHING: Final = "nothing"  # the poll finds nothing
MATCH: Final = "match"
ANY: Final = "any"
PROBE: Final = "probe"
SERVE: Final = "serve"  # which command a part of a window serves next of a class
CANCEL: Final = "cancel"  # of a receive: it may take a message before
POLL: Final = "poll"
FURTHER: Final = "further"  # a poll for what is told of together with what was told last


class Event(NamedTuple):
    """A choice that was made.

    Attributes:
        number: its bit in a past.
        key: the operation that had it; the same in every world with the same past.
        kind: MATCH, SERVE, PROBE, CANCEL, ANY, POLL or FURTHER.
        value: what was chosen.
        past: numbers of the events that it depends on, a bit for each.
        own: of these, what its operation depends on, whatever is chosen.
        site: where the operation stands in the program.
        offered: a poll could have found something; of SERVE: a read that nothing had changed for.
        outstanding: operations that could be complete instead (ANY, POLL, FURTHER).
        sent: where the message was sent that was taken, if one was.
    """

    number: int
    key: Operation
    kind: str
    value: Value
    past: int
    own: int
    site: str
    offered: bool = False
    outstanding: tuple[int, ...] = ()
    sent: str = ""


class Race(NamedTuple):
    """What an event could have been instead.

    Attributes:
        event: which.
        value: instead of its own.
        past: events that this depends on, a bit for each.
        site: where what is chosen instead was sent; empty if it is no message.
    """

    event: Event
    value: Value
    past: int
    site: str = ""


class Meeting(NamedTuple):
    """A message and the receive that took it.

    Attributes:
        sender: rank and operation.
        sent: where in the program it was sent.
        receiver: rank and operation.
        received: where the receive was posted.
        tag: of the message.
    """

    sender: Operation
    sent: str
    receiver: Operation
    received: str
    tag: int


class Impossible(Exception):
    """What is chosen cannot be together: no schedule of the program has it."""


class Diverged(Exception):
    """The program did not do again what it had done in the same world."""
