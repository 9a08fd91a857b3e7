"""What a rank's messages wait for, in words: for a rank that is asked why it does not go on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ompy.trace.tag_names import tag_text

if TYPE_CHECKING:
    from ompy_components.pml.ob1.matching import Matching
    from ompy_components.pml.ob1.module import Ob1

MOST: Final = 20  # lines of one kind; arbitrary: who waits for more has seen enough by then


def waiting(ob1: Ob1) -> list[str]:
    """Receives and sends that are not complete, and messages nobody has asked for."""
    lines = [
        f"{request.story()} ({request.state.value})" for request in [*ob1.sending.requests.values()]
    ][:MOST]
    lines += [request.story() for request in [*ob1.receiving.requests.values()]][:MOST]
    for matching in ob1.matchings():
        lines += list(_posted(matching))[:MOST]
        lines += list(_unexpected(matching))[:MOST]
    for peer in ob1.flow.peers.values():
        if peer.waiting:
            under_way = peer.sent - len(peer.waiting)
            lines.append(
                f"{len(peer.waiting)} sends to {peer.proc} wait until it has taken some of the "
                f"{under_way} messages before them (message_window {ob1.flow.window})"
            )
    if len(ob1.pending):
        lines.append(f"{len(ob1.pending)} sends wait for room in a BTL")
    return lines


def _posted(matching: Matching) -> Iterator[str]:
    for queue in matching.peers():
        yield from map(repr, queue.posted.members())
    yield from map(repr, matching.wild.members())


def _unexpected(matching: Matching) -> Iterator[str]:
    """A message that is here under another tag is what a stuck receive mostly comes down to."""
    name = matching.communicator.name
    for queue in matching.peers():
        for fragment in [*queue.unexpected.members()]:
            yield (
                f"no receive for the {fragment.length} bytes that came from rank "
                f"{fragment.source} with {tag_text(fragment.tag)} in {name}"
            )
        for sequence in sorted(queue.early):
            early = queue.early[sequence]
            yield (
                f"message {sequence} from rank {early.source} in {name} is here, message "
                f"{queue.expected} has to come first"
            )
