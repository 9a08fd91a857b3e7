"""What an operation that is not complete needs of other ranks: for who asks whether they can.

A rank that has slept in a call for long says what it waits for, as operations that each need some
ranks to do something (`runtime/diagnosis/standing.py`). From what all ranks say it can be proven
that nothing will ever happen again (`runtime/machines/diagnosis/deadlock.py`). Nothing of this is
on the way of a message.

What the PML waits for it is asked for (`Pml.need`), collective calls are known where they are
waited for (`collectives/patience.py`). Whatever else waits says so itself, as a `Needing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from ompy.data.request import Waitable
    from ompy.frameworks.communicator import Communicator
    from ompy.frameworks.proc import Proc

RECEIVE: Final = "receive"
PROBE: Final = "probe"
SEND: Final = "send"
COLLECTIVE: Final = "collective"
LOCK: Final = "lock"
POST: Final = "post"
COMPLETE: Final = "complete"
PORT: Final = "port"


class Meeting:
    """What all ranks of a job enter again and again, and that no communicator has: a barrier.

    Attributes:
        context_id: less than 0, which no communicator's is.
        name: of it.
        procs: who enters, by rank.
        own: nobody: there is no other group.
        number: how often this rank has entered.
    """

    __slots__ = ("context_id", "name", "number", "procs")

    own: tuple[Proc, ...] = ()

    def __init__(self, context_id: int, name: str, procs: Sequence[Proc]) -> None:
        """Not entered yet; arguments as the attributes."""
        self.context_id = context_id
        self.name = name
        self.procs = procs
        self.number = 0


class Need(NamedTuple):
    """One operation under way.

    Attributes:
        what: RECEIVE or PROBE, a message that has to be sent; SEND, a receive that has to be
            posted; COLLECTIVE, the part of others in a collective call. In a window: LOCK, that who
            has it gives it back; POST and COMPLETE, that call of others.
            PORT, that anybody at all comes to a port; `ranks` is empty.
        communicator: it is of, or what else all enter.
        ranks: of the communicator, whom it needs; of a message from anybody all that may yet send
            one there.
        every: all of them; else any one.
        tag: of its message, ANY_TAG or less than 0 included.
        sequence: of a message to be received there, its number among those to that rank.
        size: bytes of that.
        word: of a collective call (`collectives/call_order.py`).
        start: which start of that, if it is started again and again; 0 for any other.
        target: of the communicator, whose lock.
        alone: nobody else may have that.
        detail: of a port and of a meeting, what is waited for, in words.
    """

    what: str
    communicator: Communicator | Meeting
    ranks: tuple[int, ...]
    every: bool = True
    tag: int = 0
    sequence: int = 0
    size: int = 0
    word: int = 0
    start: int = 0
    target: int = -1
    alone: bool = False
    detail: str = ""


class Needing:
    """What waits, or is asked by what waits (`Engine.wait_until`), and knows what it needs."""

    __slots__ = ()

    def need(self) -> Need | Waitable | None:
        """What it needs of others, or what else it waits for; the caller holds the rank's lock.

        Only what surely needs them is a need: None for what is under way, or not known.
        """
        raise NotImplementedError


class Unmatched(NamedTuple):
    """A message that is here and that no receive has taken.

    Attributes:
        source: rank in its communicator.
        tag: of it.
        sequence: its number among those from that rank.
        size: bytes.
    """

    source: int
    tag: int
    sequence: int
    size: int


class Traffic(NamedTuple):
    """How many messages a rank has sent to, and taken in from, others in a communicator.

    Attributes:
        sent: by rank; all that have a number, those that wait for room among them.
        received: by rank; those that came in order, whether a receive has taken them or not.
        unmatched: of these, what no receive has taken.
    """

    sent: dict[int, int]
    received: dict[int, int]
    unmatched: list[Unmatched]
