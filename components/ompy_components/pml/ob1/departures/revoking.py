"""What becomes of what is under way in a communicator that is revoked: it fails on both sides.

Nobody tells the peers of single messages: they hear of the revocation themselves. What still comes
for a message that was given up is dropped, as after the loss of a peer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.data.errors import ERR_REVOKED
from ompy.frameworks.communicator import Communicator

if TYPE_CHECKING:
    from ompy_components.pml.ob1.matching import RecvRequest
    from ompy_components.pml.ob1.module import Ob1


def revoke_communicator(ob1: Ob1, communicator: Communicator, spared: int) -> None:
    """Fail all that is under way in it but messages with the tag `spared`."""
    with communicator.context.engine.lock:
        _fail_all(ob1, communicator, spared)


def _fail_all(ob1: Ob1, communicator: Communicator, spared: int) -> None:
    ob1.gave_up = True
    why = f"{communicator.name} has been revoked"
    for send in list(ob1.sending.requests.values()):
        if send.context_id == communicator.context_id and send.tag != spared:
            ob1.sending.give_up(send, ERR_REVOKED, f"{why}: {send.story()}")
    for request in list(ob1.receiving.requests.values()):
        if request.communicator is communicator and request.tag != spared:
            ob1.receiving.give_up(request, ERR_REVOKED, f"{why}: {request.story()}")
    for posted in _posted(ob1, communicator):
        if posted.wanted_tag != spared and ob1.matching(communicator).cancel(posted):
            posted.fail(ERR_REVOKED, f"{why}: {posted.story()}")
    ob1.gone.in_doubt.forget(communicator, why)


def _posted(ob1: Ob1, communicator: Communicator) -> list[RecvRequest]:
    """The receives that nothing has matched."""
    matching = ob1.matching(communicator)
    found = matching.wild.members()
    for queue in matching.peers():
        found += queue.posted.members()
    return found
