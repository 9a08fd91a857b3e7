"""What the seed says of registrations, endpoints, queues and hidden credits, in whole worlds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from ompy.frameworks.conduit import Token, Transfer
from ompy.frameworks.nic.gni import Ordering
from ompy_components.conduit.gni.smsg import MESSAGE_SIZE
from ompy_components.nic.gni.device import GniDevice
from ompy_components.nic.gni.domain import GniDomain

from tests.support.conduit_worlds import ConduitRank, conduit_world

ASK, TELL, ANSWER = 128, 129, 130
BOTH = pytest.mark.parametrize("name", ["gemini", "aries"])
VARIANTS = pytest.mark.parametrize("messages", ["smsg", "mailboxes"])


class Done(Transfer):
    def __init__(self) -> None:
        self.complete = False

    def done(self, *, is_get: bool) -> None:
        self.complete = True


def exchange(rank: ConduitRank, rounds: int) -> int:
    """Every other request is answered. Returns how many credits went back by themselves."""
    back, answers, asked = 0, 0, 0
    for transport in rank.conduit._transports:
        give = transport.return_credit

        def counted(node: int, give: Any = give) -> bool:
            nonlocal back
            sent = bool(give(node))
            back += sent
            return sent

        transport.return_credit = counted  # type: ignore[method-assign]

    def answered(token: Token, payload: memoryview, arguments: Sequence[int]) -> None:
        nonlocal answers
        answers += 1

    def ask(token: Token, payload: memoryview, arguments: Sequence[int]) -> None:
        nonlocal asked
        asked += 1
        rank.reply(token, ANSWER)

    def tell(token: Token, payload: memoryview, arguments: Sequence[int]) -> None:
        nonlocal asked
        asked += 1

    rank.attach({ASK: ask, TELL: tell, ANSWER: answered})
    for number in range(rounds):
        for peer in rank.peers:
            rank.short(peer, ASK if number % 2 else TELL, number)
    rank.wait(lambda: asked == rounds * len(rank.peers))
    rank.settle()
    return back


@BOTH
@VARIANTS
def test_a_credit_comes_back_hidden_if_and_only_if_there_was_no_reply(
    name: str, messages: str
) -> None:
    rounds = 10
    found = conduit_world(
        lambda rank: exchange(rank, rounds), ranks=3, name=name, messages=messages, networkdepth=2
    )
    assert found == [rounds // 2 * 2] * 3


@BOTH
@pytest.mark.parametrize("depth", [1, 12])
def test_the_nic_never_lacks_room_for_what_has_a_credit(name: str, depth: int) -> None:
    """A NIC that refuses nothing by itself takes each message at once, whatever is under way."""

    def program(rank: ConduitRank) -> Counter[str]:
        exchange(rank, 40)
        return Counter(rank.conduit.counters())

    counted = sum(
        conduit_world(program, ranks=4, name=name, networkdepth=depth, nic={"ring_slots": 256}),
        Counter(),
    )
    assert counted["requests"] == 40 * 3 * 4
    assert not counted["smsg_send_retries"]
    assert not counted["messages_in_line"]


@BOTH
@VARIANTS
def test_a_rank_has_two_registrations_and_more_for_a_moment(
    name: str, messages: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The segment with all that the engine needs, the mailboxes; others for one transfer each."""
    there: dict[int, list[int]] = {}
    register, deregister = GniDomain.register, GniDomain.deregister

    def registered(domain: GniDomain, memory: memoryview, *more: Any) -> Any:
        code, handle = register(domain, memory, *more)
        there.setdefault(id(domain), []).append(len(memory))
        return code, handle

    def given_back(domain: GniDomain, handle: Any) -> Any:
        there[id(domain)].pop()
        return deregister(domain, handle)

    monkeypatch.setattr(GniDomain, "register", registered)
    monkeypatch.setattr(GniDomain, "deregister", given_back)
    most: list[int] = []

    def program(rank: ConduitRank) -> list[int]:
        mine = there[id(rank.conduit.resources.domain)]
        before = len(mine)
        rank.attach()
        after = len(mine)
        done, local = Done(), memoryview(bytearray(20_000))
        rank.conduit.put(rank.peers[0], 0, local, done, bulk=True)
        most.append(len(mine))
        rank.wait(lambda: done.complete)
        rank.settle()
        return [before, after, len(mine)]

    assert conduit_world(program, name=name, messages=messages) == [[1, 2, 2]] * 2
    assert max(most) == 3


@BOTH
def test_an_endpoint_for_each_rank_and_two_queues(name: str) -> None:
    def program(rank: ConduitRank) -> int:
        resources: Any = rank.conduit.resources
        ends = [end for end in resources.endpoints if end is not None]
        assert resources.endpoints[rank.rank] is None
        assert len({id(end) for end in ends}) == rank.size - 1
        assert {id(end.queue) for end in ends} == {id(resources.local_queue)}
        assert resources.local_queue is not resources.message_queue
        return len(ends)

    assert conduit_world(program, ranks=4, name=name) == [3] * 4


@BOTH
def test_mailboxes_hold_all_that_credits_allow(name: str) -> None:
    """Two messages a credit, each of a whole Medium, and one for each round of the exit."""

    def program(rank: ConduitRank) -> int:
        transport: Any = rank.conduit._transports[0]
        assert rank.conduit.max_medium + 72 == MESSAGE_SIZE == transport.max_message
        return int(rank.conduit.resources.domain.smsg_mailbox_size(2 * 12 + 2, MESSAGE_SIZE))

    (size, _) = conduit_world(program, name=name)
    assert 24 * MESSAGE_SIZE <= size <= 20_000


@BOTH
def test_all_ranks_of_a_job_have_its_tag_and_cookie(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And those of another job have others: Cray's runtime gives them, here they are the job's."""
    domain, known = GniDevice.domain, set()

    def watched(device: GniDevice, rank: int, tag: int, cookie: int) -> Any:
        known.add((tag, cookie))
        return domain(device, rank, tag, cookie)

    monkeypatch.setattr(GniDevice, "domain", watched)
    for seed in range(3):
        conduit_world(lambda rank: rank.attach(), ranks=3, name=name, seed=seed)
        assert len(known) == seed + 1


@pytest.mark.parametrize("ordering", Ordering)
def test_the_segment_is_registered_as_the_user_says(
    ordering: Ordering, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: set[Ordering] = set()
    register = GniDomain.register

    def watched(domain: GniDomain, memory: memoryview, *more: Any) -> Any:
        said.add(more[0])
        return register(domain, memory, *more)

    monkeypatch.setattr(GniDomain, "register", watched)
    conduit_world(lambda rank: rank.attach(), mem_consistency=ordering.value)
    assert said == {ordering}
