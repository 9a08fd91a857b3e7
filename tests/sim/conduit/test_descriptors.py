"""GASNET_GNI_NUM_PD: messages and transfers under way need a post descriptor each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from ompy.frameworks.conduit import Token, Transfer
from ompy.frameworks.nic.gni import PostDescriptor, ReturnCode
from ompy_components.nic.gni.endpoint import GniEndpoint
from ompy_components.nic.gni.posts import Posts

from tests.support.conduit_parameters import NAMES
from tests.support.conduit_worlds import ConduitRank, conduit_world

ASK, TELL, ANSWER = 128, 129, 130
VARIANTS = ("smsg", "mailboxes")
ALL = [(name, variant) for name in NAMES for variant in VARIANTS]
EACH = pytest.mark.parametrize(("name", "messages"), ALL)
SLOW = {"late": 60}


class Count(Transfer):
    """Counts what is done."""

    def __init__(self) -> None:
        self.complete = 0

    def done(self, *, is_get: bool) -> None:
        self.complete += 1


@pytest.fixture
def most(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The most posts that a NIC has had under way, whoever they are of."""
    found = [0]
    begin = Posts.begin_post

    def watched(posts: Posts, endpoint: GniEndpoint, post: PostDescriptor) -> ReturnCode:
        code = begin(posts, endpoint, post)
        found[0] = max(found[0], posts.under_way)
        return code

    monkeypatch.setattr(Posts, "begin_post", watched)
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("num_pd", [1, 3])
def test_messages_in_mailboxes_are_bounded(name: str, num_pd: int, most: list[int]) -> None:
    """Twelve mediums with credits for all of them: each is under way until the NIC says done."""
    heard: list[int] = []

    def sender(rank: ConduitRank) -> int:
        rank.attach()
        for number in range(12):
            rank.medium(1, TELL, bytes(300), number)
        rank.settle()
        return int(rank.conduit.counters().get("alloc_pd_stall", 0))

    def receiver(rank: ConduitRank) -> None:
        rank.attach({TELL: lambda token, payload, arguments: heard.append(arguments[0])})
        rank.settle()

    stalls = conduit_world(
        [sender, receiver], name=name, messages="mailboxes", nic=SLOW, num_pd=num_pd
    )[0]
    assert heard == list(range(12))
    assert 0 < most[0] <= num_pd
    assert stalls


@EACH
def test_a_request_waits_for_the_descriptor_of_a_put(name: str, messages: str) -> None:
    def sender(rank: ConduitRank) -> tuple[int, int]:
        rank.attach()
        done = Count()
        memory = memoryview(bytearray(b"\x55" * 100))
        rank.conduit.put(1, 0, memory, done, bulk=True)
        before = done.complete
        rank.short(1, TELL, 7)
        after = done.complete
        rank.settle()
        return before, after

    heard: list[int] = []

    def receiver(rank: ConduitRank) -> None:
        rank.attach({TELL: lambda token, payload, arguments: heard.append(arguments[0])})
        rank.settle()

    before, after = conduit_world(
        [sender, receiver], name=name, messages=messages, nic={"late": 100}, num_pd=1
    )[0]
    assert (before, after) == (0, 1), "it was sent while the only descriptor was the put's"
    assert heard == [7]


@EACH
@pytest.mark.parametrize(
    ("hosts", "nic"),
    [
        ((0, 0, 0), SLOW),
        ((0, 0, 0), {"late": 40, "refuse_every": 3, "ring_slots": 2}),
        ((0, 1, 0), SLOW),
    ],
)
def test_handlers_reply_though_none_is_free(
    name: str, messages: str, hosts: Sequence[int], nic: dict[str, Any]
) -> None:
    """All ask all, with puts between, and each has one descriptor: everything is answered."""

    def program(rank: ConduitRank) -> Counter[str]:
        answers: Counter[int] = Counter()
        done = Count()

        def asked(token: Token, payload: memoryview, arguments: Any) -> None:
            rank.reply(token, ANSWER, bytes(payload), *arguments)

        def answered(token: Token, payload: memoryview, arguments: Any) -> None:
            assert bytes(payload) == bytes([arguments[0]]) * 200
            answers[arguments[0]] += 1

        rank.attach({ASK: asked, ANSWER: answered})
        kept = []
        for number in range(6):
            for node in rank.peers:
                kept.append(memoryview(bytearray([number]) * 5000))
                rank.conduit.put(node, 8192 * rank.rank, kept[-1], done, bulk=True)
                rank.medium(node, ASK, bytes([number]) * 200, number)
                place = 30_000 + (6 * rank.rank + number) * 256
                rank.long(node, ASK, bytes([number]) * 200, place, number, late=bool(number % 2))
        rank.wait(lambda: done.complete == 12 and sum(answers.values()) == 24)
        rank.settle()
        assert answers == dict.fromkeys(range(6), 4)
        return Counter(rank.conduit.counters())

    counted = sum(
        conduit_world(
            program, ranks=3, name=name, messages=messages, nic=nic, hosts=hosts, num_pd=1
        ),
        Counter(),
    )
    assert counted["alloc_pd_stall"]


@EACH
def test_a_rank_ends_with_all_descriptors_out(name: str, messages: str) -> None:
    """The exit's own words need one too: completions are taken while it goes on."""

    def program(rank: ConduitRank) -> None:
        rank.attach({TELL: lambda token, payload, arguments: None})
        for node in rank.peers:
            rank.short(node, TELL, 1)
        if rank.rank == 0:
            memory = memoryview(bytearray(100))
            rank.conduit.put(1, 0, memory, Count(), bulk=True)
            rank.exited.append(rank.conduit.exit(0))
        else:
            rank.wait(lambda: bool(rank.exited))
        began = rank.context.engine.now()
        assert rank.exited == [0]
        assert began < 1_000_000_000, "it took the exit's timeout"

    conduit_world([program] * 3, ranks=3, name=name, messages=messages, nic=SLOW, num_pd=1)
