"""Events become messages: names that come again, sides that are missing, arrows to and fro."""

from __future__ import annotations

from ompy.trace.message_events import Kind, messages
from ompy.trace.sink import Event


def event(time: int, rank: int, name: str, side: str, sequence: int = 1, **fields: object) -> Event:
    peer = 1 - rank
    common = {"side": side, "peer": peer, "tag": 3, "context": 0, "source": 0, "sequence": sequence}
    return Event(time, rank, "pml.ob1", name, tuple({**common, **fields}.items()))


def eager(time: int, sequence: int) -> list[Event]:
    return [
        event(time, 0, "MATCH", "send", sequence, payload=time),
        event(time + 1, 0, "COMPLETE", "send", sequence),
        event(time + 2, 1, "MATCH", "receive", sequence, payload=time),
        event(time + 3, 1, "COMPLETE", "receive", sequence),
    ]


def test_a_sequence_number_that_comes_again_is_another_message() -> None:
    found = messages([*eager(0, 1), *eager(10, 2), *eager(20, 1)])
    assert [(m.sequence, m.start_time) for m in found] == [(1, 0), (2, 10), (1, 20)]
    assert [[arrow.size for arrow in m.arrows()] for m in found] == [[0], [10], [20]]


def test_the_sender_may_be_a_message_ahead_of_the_receiver() -> None:
    """A context id is used again while the receiver has not finished with its first use."""
    first, second = eager(0, 1), eager(10, 1)
    found = messages([*first[:2], *second[:2], *first[2:], *second[2:]])
    assert [len(m.events()) for m in found] == [4, 4]
    assert [m.arrows()[0].arrived.time for m in found] == [2, 12]


def test_only_one_side_was_traced() -> None:
    (message,) = messages(eager(0, 1)[:2])
    (arrow,) = message.arrows()
    assert (message.sender, message.receiver) == (0, 1)
    assert arrow.arrived is None
    assert arrow.kind is Kind.DATA


def test_a_get_that_became_a_put_has_fins_both_ways() -> None:
    found = messages(
        [
            event(0, 0, "RGET", "send", payload=0),
            event(1, 1, "RGET", "receive", payload=0),
            event(2, 1, "READ", "receive", offset=0, size=8, rail="a"),
            event(3, 1, "PUT", "receive", offset=8, size=4, rail="b"),
            event(4, 1, "FIN", "receive", offset=0, size=8),
            event(5, 0, "PUT", "send", offset=8, size=4, rail="b"),
            event(6, 0, "WRITE", "send", offset=8, size=4, rail="b"),
            event(7, 0, "FIN", "send", size=8),
            event(8, 0, "FIN", "send", offset=8, size=4),
            event(9, 1, "FIN", "receive", offset=8, size=4),
        ]
    )
    ways = [(a.name, a.source, a.target, a.arrived.time) for a in found[0].arrows()]
    assert ways == [
        ("RGET", 0, 1, 1),
        ("get", 0, 1, 4),
        ("PUT", 1, 0, 5),
        ("FIN", 1, 0, 7),
        ("put", 0, 1, 8),
        ("FIN", 0, 1, 9),
    ]


def test_the_post_that_a_receive_began_with() -> None:
    """Context ids are used again and posting is counted anew: the latest post is meant."""
    posts = [
        Event(time, 1, "pml.ob1", "POST", (("side", "receive"), ("context", 0), ("posted", 1)))
        for time in (0, 5)
    ]
    own = eager(10, 1)
    own[3] = event(13, 1, "COMPLETE", "receive", posted=1)
    (message,) = messages([*posts, *own])
    assert message.posted is posts[1]
