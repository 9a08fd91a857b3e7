"""The lettered steps of the seed, for the trace: which event of which side is which step.

The seed's letters skip those of the arrows in its figures. RDMA Pipeline repeats F and H there:
its second F is the FIN of a put (as in step F of RDMA Direct Put), its second H that FIN's
arrival. They are kept as the seed has them.

Source: seed ob1 (Protocol Details).
"""

from __future__ import annotations

from typing import Final

from ompy_components.pml.ob1.selection import Protocol

SEND: Final = "send"
RECEIVE: Final = "receive"

# events that are no header of their own
WRITE: Final = "WRITE"  # a put begins
READ: Final = "READ"  # a get begins
FRAG_FIRST: Final = "FRAG first"  # a FRAG that answers an ACK; FRAG: one that follows another
COMPLETE: Final = "COMPLETE"  # the request is complete

_EAGER: Final = {
    (SEND, "MATCH"): "A",
    (SEND, COMPLETE): "B",
    (RECEIVE, COMPLETE): "C",
}
_PIPELINE: Final = {
    (SEND, "RNDV"): "A",
    (RECEIVE, "ACK"): "C",
    (SEND, "ACK"): "E",
    (SEND, FRAG_FIRST): "E",
    (SEND, "FRAG"): "F",
    (SEND, COMPLETE): "F",
    (RECEIVE, "FRAG"): "G",
    (RECEIVE, COMPLETE): "G",
}
LETTERS: Final = {
    Protocol.EAGER_IMMEDIATE: {
        (SEND, "MATCH"): "A",
        (SEND, COMPLETE): "A",
        (RECEIVE, COMPLETE): "B",
    },
    Protocol.EAGER_PREPARED: _EAGER,
    Protocol.EAGER_ALLOCATED: _EAGER,
    Protocol.RDMA_DIRECT_PUT: {
        (SEND, "RNDV"): "A",
        (RECEIVE, "PUT"): "C",
        (SEND, "PUT"): "E",
        (SEND, WRITE): "E",
        (SEND, "FIN"): "F",
        (SEND, COMPLETE): "F",
        (RECEIVE, "FIN"): "H",
        (RECEIVE, COMPLETE): "I",
    },
    Protocol.RDMA_DIRECT_GET: {
        (SEND, "RGET"): "A",
        (RECEIVE, READ): "C",
        (RECEIVE, "FIN"): "D",
        (RECEIVE, COMPLETE): "D",
        (SEND, "FIN"): "F",
        (SEND, COMPLETE): "G",
    },
    Protocol.SEND_RECEIVE_PIPELINE: _PIPELINE,
    Protocol.RDMA_PIPELINE: {
        (SEND, "RNDV"): "A",
        (RECEIVE, "ACK"): "C",
        (RECEIVE, "PUT"): "C",
        (SEND, "ACK"): "F",
        (SEND, FRAG_FIRST): "F",
        (SEND, "PUT"): "G",
        (SEND, WRITE): "G",
        (SEND, "FRAG"): "H",
        (SEND, "FIN"): "F",
        (SEND, COMPLETE): "F",
        (RECEIVE, "FRAG"): "K",
        (RECEIVE, "FIN"): "H",
        (RECEIVE, COMPLETE): "I",
    },
    Protocol.BUFFERED_PIPELINE: _PIPELINE,
}


def letter(protocol: Protocol, side: str, event: str) -> str:
    """The seed's letter of a step.

    Args:
        protocol: what the message takes as far as this side knows.
        side: `SEND` or `RECEIVE`, whose step it is.
        event: header that is sent or taken in, or one of this module's events.

    Returns:
        The letter. A step of another protocol, such as a FRAG for what a put could not move,
        has the letter it has there.
    """
    found = LETTERS[protocol].get((side, event))
    if found is not None:
        return found
    for other in LETTERS.values():
        if (side, event) in other:
            return other[side, event]
    return ""
