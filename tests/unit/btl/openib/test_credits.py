"""Credits and tokens: what one end spends is what the other one gives back, and nobody starves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy_components.btl.openib.queues.credits import PeerCredits, Tokens
from ompy_components.btl.openib.queues.pending import Pending
from ompy_components.btl.openib.queues.receive_queues import PerPeer, parse_receive_queues


def entries() -> st.SearchStrategy[PerPeer]:
    def make(num: int, low: int, win: int, rsv: int) -> PerPeer:
        text = f"P,64,{num},{min(low, num - 1)},{win},{rsv}"
        (entry,), _ = parse_receive_queues(text, 1)
        assert isinstance(entry, PerPeer)
        return entry

    number = st.integers(1, 12)
    return st.builds(make, number, st.integers(0, 11), number, st.integers(0, 4))


@given(entry=entries(), talk=st.lists(st.booleans(), max_size=80))
def test_a_one_way_stream_never_starves(entry: PerPeer, talk: list[bool]) -> None:
    """The receiver only sends CREDITS, and whatever the fields are, credits always come back."""
    sender, receiver = PeerCredits(entry), PeerCredits(entry)
    in_flight = sent = 0
    for more in [*talk, *[True] * 200]:
        if more and sender.spend_credit():
            in_flight += 1
            sent += 1
        elif in_flight:
            in_flight -= 1
            receiver.used()
            if receiver.pressing:
                assert receiver.take_reserve()
                sender.gained(*receiver.give())
                sender.seen += 1
                receiver.gained(*sender.give())  # with whatever it sends next
    assert sent >= 60, f"{entry} stopped after {sent} fragments"
    assert sender.available + in_flight + receiver.owed + receiver.spent == entry.num


def test_an_end_without_credits_or_reserve_says_so() -> None:
    (entry,), _ = parse_receive_queues("P,64,2,1,1,1", 1)
    assert isinstance(entry, PerPeer)
    account = PeerCredits(entry)
    assert [account.spend_credit() for _ in range(3)] == [True, True, False]
    assert [account.take_reserve() for _ in range(2)] == [True, False]
    account.used()
    assert not account.pressing, "there is no reserve for a message"
    with pytest.raises(AssertionError):
        account.gained(3, 0)


def test_tokens() -> None:
    tokens = Tokens(2)
    assert [tokens.spend_token() for _ in range(3)] == [True, True, False]
    tokens.give_back()
    assert tokens.spend_token()
    tokens.give_back()
    tokens.give_back()
    with pytest.raises(AssertionError):
        tokens.give_back()


def test_pending_lists_by_queue_and_priority() -> None:
    pending: Pending[str] = Pending(2)
    assert pending.first(0) is None
    for item, high in (("low 1", False), ("high 1", True), ("low 2", False), ("high 2", True)):
        pending.append_item(0, item, high=high)
    pending.append_item(1, "other", high=False)
    assert pending.waits(1, high=False)
    assert not pending.waits(1, high=True), "only those of high priority are before it"
    assert pending.last(0, high=False) == "low 2"
    pending.replace_last(0, "low 2 and 3", high=False)
    assert len(pending) == 5
    assert [pending.pop(0) for _ in range(2)] == ["high 1", "high 2"]
    assert pending.first(0) == "low 1"
    assert pending.clear() == ["low 1", "low 2 and 3", "other"]
    assert not len(pending)
