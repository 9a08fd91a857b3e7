"""What a request that is not complete needs of another rank, and what has come and gone until now.

Imported when a rank has waited for long. A message that is matched, or whose first fragment is not
known to have come, needs nobody: it is under way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.data.constants import ANY_SOURCE
from ompy.engine.base import Watched
from ompy.frameworks.needs import PROBE, RECEIVE, SEND, Need, Traffic, Unmatched

from ompy_components.pml.ob1.headers import SEQUENCE_MASK
from ompy_components.pml.ob1.look import Look
from ompy_components.pml.ob1.matching import RecvRequest
from ompy_components.pml.ob1.sendrequest import SendRequest
from ompy_components.pml.ob1.states import SendState

if TYPE_CHECKING:
    from ompy.data.request import Waitable
    from ompy.frameworks.communicator import Communicator

    from ompy_components.pml.ob1.module import Ob1

_UNANSWERED = frozenset({SendState.AWAIT_ACK, SendState.AWAIT_GET})


def need_of(ob1: Ob1, waitable: Waitable) -> Need | None:
    """As `Pml.need` has it."""
    if isinstance(waitable, RecvRequest):
        if waitable.complete or not waitable.queued:
            return None
        source, tag = waitable.wanted_source, waitable.wanted_tag
        return _message(ob1, RECEIVE, waitable.communicator, source, tag)
    if isinstance(waitable, SendRequest):
        return _receive(ob1, waitable)
    if isinstance(waitable, Watched) and isinstance(waitable.predicate, Look):
        look = waitable.predicate
        return _message(ob1, PROBE, look.communicator, look.source, look.tag)
    return None


def _message(ob1: Ob1, what: str, communicator: Communicator, source: int, tag: int) -> Need | None:
    """A message that has to be sent; None where nobody is left who could send it."""
    if source != ANY_SOURCE:
        return Need(what, communicator, (source,), tag=tag)
    ranks = tuple(ob1.gone.who_may_send(communicator))
    return Need(what, communicator, ranks, every=False, tag=tag) if ranks else None


def _receive(ob1: Ob1, request: SendRequest) -> Need | None:
    """A receive that has to be posted, if the message is a rendezvous that nobody has answered."""
    if request.complete or not request.id or request.state not in _UNANSWERED:
        return None
    here = (each.communicator for each in ob1.matchings())
    found = [each for each in here if each.context_id == request.context_id]
    if not found:
        return None
    return Need(
        SEND,
        found[0],
        (request.source,),
        tag=request.tag,
        sequence=request.sequence,
        size=request.convertor.size,
    )


def traffic_of(ob1: Ob1, communicator: Communicator) -> Traffic:
    """As `Pml.traffic` has it."""
    traffic = Traffic({}, {}, [])
    matching = ob1.matching(communicator)
    for rank in range(communicator.size):
        queue = matching.known_peer(rank)
        if queue is None:
            continue
        traffic.sent[rank] = queue.sent
        traffic.received[rank] = queue.expected - 1 & SEQUENCE_MASK
        for fragment in queue.unexpected.members():
            size = fragment.length
            traffic.unmatched.append(Unmatched(rank, fragment.tag, fragment.sequence, size))
    return traffic
