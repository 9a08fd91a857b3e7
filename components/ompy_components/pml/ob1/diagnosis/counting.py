"""What there is to count of a rank's messages, from what the protocol numbers anyway."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ompy_components.pml.ob1.module import Ob1


def counted(ob1: Ob1) -> dict[str, int]:
    """The values of the component's performance variables; nothing is changed."""
    flows = list(ob1.flow.peers.values())
    matchings = ob1.matchings()
    queues = [queue for matching in matchings for queue in matching.peers()]
    posted = [*(matching.wild for matching in matchings), *(queue.posted for queue in queues)]
    taken = sum(flow.taken for flow in flows)
    unexpected = sum(queue.unexpected.count for queue in queues)
    passed = ob1.receiving.passed + sum(matching.count_passed() for matching in matchings)
    return {
        "messages_sent": sum(flow.sent for flow in flows),
        "messages_received": taken,
        "messages_waiting": sum(len(flow.waiting) for flow in flows),
        "rendezvous_sent": ob1.sending.rendezvous_begun(),
        "rendezvous_received": ob1.receiving.rendezvous_begun(),
        "unexpected_msgq_length": unexpected,
        "match_attempts": passed + taken - unexpected,  # each message in the end by one that fits
        "posted_recvq_length": sum(1 for queue in posted for _ in queue.members()),
        "early_messages": sum(len(queue.early) for queue in queues),
    }
