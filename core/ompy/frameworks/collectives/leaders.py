"""What the leaders of two groups say while these have no communicator, and how one takes no part.

Each tells the other one thing and hears one, again and again, with one tag in a communicator of
both (`swap_messages`). A leader whose call is wrong, or whose group fails, says that instead, with
the cause (`refuse`). So both have sent one message and taken one whatever comes of it, and none is
left for the next call with that tag.

What is wrong may be with whom it talks, or where, or with which tag: then it does not know whom to
tell (`Refusals`). The other leader asks after a while (`patience.py`), and is told then.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from functools import partial
from struct import Struct
from typing import Final, NamedTuple

from ompy.data.convertor import ContiguousConvertor, GrowingConvertor
from ompy.data.errors import ERR_OTHER, ERR_PROC_FAILED, ERR_REVOKED, MPIError
from ompy.engine.base import Engine
from ompy.frameworks.collectives.call_order import (
    tag_of_leaders,
    tag_of_some,
    word_of_leaders,
)
from ompy.frameworks.collectives.patience import (
    PATIENCE,
    inquire,
    inquiries_of,
    only,
    take_and_drop,
)
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.context import RankContext
from ompy.frameworks.pml import STANDARD

_REFUSED: Final = b"\1"  # what a message of a leader begins with that takes no part
_SAID: Final = b"\0"  # or one that says something
_OF_PROCESSES: Final = frozenset({ERR_PROC_FAILED, ERR_REVOKED})
_CODE: Final = Struct("<i")  # of an error, before its text
_KEPT: Final = 64  # arbitrary: mistakes of one process that nobody has asked about


def accepted(data: bytes) -> bytes:
    """A message that says something to the other leader."""
    return _SAID + data


def refused(problem: MPIError) -> bytes:
    """A message of a leader that takes no part."""
    return _REFUSED + _CODE.pack(problem.code) + problem.detail.encode()


def unwrapped(message: bytes | memoryview) -> memoryview:
    """What a leader has said.

    Raises:
        MPIError: it takes no part.
    """
    found = memoryview(message)
    if found[0] == _SAID[0]:
        return found[1:]
    (code,) = _CODE.unpack_from(found, 1)
    raise MPIError(code, str(found[1 + _CODE.size :], "utf-8", "replace"))


def swap_messages(
    engine: Engine, communicator: Communicator, rank: int, tag: int, data: bytes, word: int = 0
) -> memoryview:
    """Tell a member of a communicator something, and hear the same of it.

    Args:
        engine: waits.
        communicator: of both.
        rank: of the other.
        tag: internal tag of the messages.
        data: what is said.
        word: by which it is asked whether it takes part, if that takes long; 0 for never.

    Raises:
        MPIError: it cannot be reached, or has left.
    """
    came = GrowingConvertor()
    pml = communicator.pml
    received = pml.irecv(communicator, came, rank, tag)
    convertor = ContiguousConvertor(memoryview(data))
    sent = pml.isend(communicator, convertor, rank, tag, STANDARD)
    for request in (received, sent):
        if not request.complete and not engine.wait(request, PATIENCE if word else -1):
            inquire(communicator, request, partial(only, rank), word)
        if request.error:
            raise MPIError(request.error, request.detail)
    assert came.view is not None, "a received message has its memory"
    return came.view


class Lead(NamedTuple):
    """Whom a leader talks to, as far as that is known.

    Attributes:
        communicator: of both; None for an unknown one.
        rank: of the other in it; -1 for an unknown one.
        tag: the user's; -1 for an unknown one.
    """

    communicator: Communicator | None
    rank: int
    tag: int

    def fits(self, communicator: Communicator, rank: int, word: int) -> bool:
        """Whether this may be what a member asks about."""
        return (
            (self.communicator is None or self.communicator is communicator)
            and self.rank in {-1, rank}
            and (self.tag < 0 or word_of_leaders(self.tag) == word)
        )


def refuse(context: RankContext, lead: Lead, problem: Exception, *, surely: bool = True) -> None:
    """This process takes no part as a leader: the other one is told, now or when it asks.

    Args:
        context: of this rank.
        lead: whom it would have talked to.
        problem: what is wrong.
        surely: it is a leader; else it is only if the other asks.
    """
    code, text = ERR_OTHER, str(problem)
    if isinstance(problem, MPIError):
        text = problem.detail
        # a class that is about arguments would say of the other one's that they are wrong
        code = problem.code if problem.code in _OF_PROCESSES else ERR_OTHER
    why = MPIError(code, f"{context.me} takes no part in Create_intercomm: {text}")
    with context.engine.lock:
        communicator, rank, tag = lead
        if communicator is None or rank < 0 or tag < 0 or not surely:
            inquiries = inquiries_of(context)
            if inquiries.refusals is None:
                inquiries.refusals = Refusals()
            inquiries.refusals.note(lead, why)
        else:
            _tell(communicator, rank, tag_of_leaders(tag), why)


def _tell(communicator: Communicator, rank: int, tag: int, why: MPIError) -> None:
    """Say that this leader takes no part, and take what the other one says."""
    take_and_drop(communicator, rank, tag)
    message = ContiguousConvertor(memoryview(refused(why)))
    with suppress(MPIError):  # whom it does not reach cannot wait for it
        communicator.pml.isend(communicator, message, rank, tag, STANDARD)


def _is_here(communicator: Communicator, rank: int, tag: int) -> bool:
    """Whether a message is here and nobody has asked for it, or may be."""
    if communicator.context.direct is not None:
        return True  # the world has it, not this rank
    return (rank, tag) in communicator.pml.unreceived(communicator)


class Refusals:
    """The calls in which a process may have led, and does not know to whom; its lock is held."""

    def __init__(self) -> None:
        self._kept: deque[tuple[Lead, MPIError]] = deque(maxlen=_KEPT)

    def note(self, lead: Lead, why: MPIError) -> None:
        """One more; `why` is what the other leader is told."""
        self._kept.append((lead, why))

    def answer(self, communicator: Communicator, rank: int, word: int) -> bool:
        """Answer another leader that asks.

        Returns:
            Whether no answer is to come later. That is so as well when what it had said before it
            asked has been taken meanwhile: messages to be matched stay in order.
        """
        tag = tag_of_some(word)
        if not _is_here(communicator, rank, tag):
            return True
        for kept in self._kept:
            if kept[0].fits(communicator, rank, word):
                self._kept.remove(kept)
                _tell(communicator, rank, tag, kept[1])
                return True
        return False
