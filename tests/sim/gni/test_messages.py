"""Short messages: credits, order, and event queues that overflow."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.frameworks.nic.gni import EventKind, ReturnCode

from tests.support.effort import THOROUGH
from tests.support.gni_job import GniRank, gni_world

COUNT = 30
CREDIT = 4  # of the job's mailboxes
EMPTY = memoryview(b"")
SUCCESS = ReturnCode.SUCCESS


def say(rank: GniRank, peer: int, text: bytes) -> None:
    endpoint = rank.endpoints[peer]
    rank.until(lambda: endpoint.smsg_send(memoryview(text), EMPTY), ReturnCode.NOT_DONE)


def sender(rank: GniRank) -> int:
    for number in range(COUNT):
        say(rank, 0, b"%d of %d" % (number, rank.context.rank))
    return rank.context.rank


def receiver(rank: GniRank) -> tuple[dict[int, list[bytes]], int]:
    """Take messages when told to, and of everybody when events were lost, and count that."""
    found: dict[int, list[bytes]] = {peer: [] for peer in rank.endpoints}
    overruns = 0

    def drained() -> bool:
        nonlocal overruns
        code, event = rank.mailbox_queue.get_event()
        while event is not None:
            assert event.kind is EventKind.SMSG
            take_all(rank, event.peer, found[event.peer])
            if code is ReturnCode.ERROR_RESOURCE:
                overruns += 1
                for peer, mine in found.items():
                    take_all(rank, peer, mine)
            code, event = rank.mailbox_queue.get_event()
        return all(len(mine) == COUNT for mine in found.values())

    rank.wait(drained)
    return found, overruns


def take_all(rank: GniRank, peer: int, found: list[bytes]) -> None:
    endpoint = rank.endpoints[peer]
    code, message = endpoint.smsg_next()
    while code is ReturnCode.SUCCESS:
        assert message is not None
        found.append(bytes(message))
        assert endpoint.smsg_release() is ReturnCode.SUCCESS
        code, message = endpoint.smsg_next()
    assert code is ReturnCode.NOT_DONE


HOSTS = pytest.mark.parametrize("hosts", [(0,) * 4, (0, 0, 1, 2)], ids=["one host", "three hosts"])


@HOSTS
@pytest.mark.parametrize("seed", range(20 if THOROUGH else 2))
@pytest.mark.parametrize("depth", [1, 3, 1000] if THOROUGH else [1, 1000])
@pytest.mark.parametrize("late", [0, 50])
def test_each_message_comes_once_and_in_order(seed: int, depth: int, late: int, hosts: Any) -> None:
    programs = [receiver, sender, sender, sender]
    (found, overruns), *_ = gni_world(programs, seed=seed, depth=depth, late=late, hosts=hosts)
    for peer, texts in found.items():
        assert texts == [b"%d of %d" % (number, peer) for number in range(COUNT)]
    assert overruns or depth > 1
    assert not overruns or depth < 1000


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("before", range(6))
def test_an_overrun_is_told_once_with_the_oldest_event(before: int, depth: int) -> None:
    """After `before` events that were read in time, as many more as the mailbox has room for."""

    def sends(rank: GniRank) -> None:
        for number in range(before):
            say(rank, 0, bytes([number]))
            rank.fence()
            rank.fence()
        for number in range(before, before + CREDIT):
            say(rank, 0, bytes([number]))
        rank.fence()

    def receives(rank: GniRank) -> tuple[list[ReturnCode], list[bytes]]:
        codes, found = [], []
        for _ in range(before):
            rank.fence()
            codes.append(rank.mailbox_queue.get_event()[0])
            take_all(rank, 1, found)
            rank.fence()
        rank.fence()
        rank.engine.progress()
        for _ in range(CREDIT + 1):
            codes.append(rank.mailbox_queue.get_event()[0])
        take_all(rank, 1, found)
        return codes, found

    (codes, found), _ = gni_world([receives, sends], depth=depth)
    told = (
        [SUCCESS] * depth
        if depth == CREDIT
        else [ReturnCode.ERROR_RESOURCE, *[SUCCESS] * (depth - 1)]
    )
    assert codes == [SUCCESS] * before + told + [ReturnCode.NOT_DONE] * (CREDIT + 1 - depth)
    assert found == [bytes([number]) for number in range(before + CREDIT)]


@pytest.mark.parametrize("hosts", [(0, 0), (0, 1)])
def test_refusals_for_the_moment_lose_nothing(hosts: Any) -> None:
    (found, _), _ = gni_world([receiver, sender], refuse_every=3, hosts=hosts)
    assert [len(texts) for texts in found.values()] == [COUNT]


def test_no_credit_no_message() -> None:
    def sends(rank: GniRank) -> list[ReturnCode]:
        endpoint = rank.endpoints[1]
        codes = [endpoint.smsg_send(memoryview(b"x"), EMPTY) for _ in range(5)]
        codes.append(endpoint.smsg_send(memoryview(bytes(257)), EMPTY))
        rank.fence()
        rank.fence()
        codes.append(endpoint.smsg_send(memoryview(b"x"), EMPTY))
        codes.append(endpoint.smsg_send(memoryview(b"x"), EMPTY))
        return codes

    def receives(rank: GniRank) -> None:
        rank.fence()
        endpoint = rank.endpoints[0]
        assert endpoint.smsg_release() is ReturnCode.INVALID_STATE
        assert endpoint.smsg_next()[0] is ReturnCode.SUCCESS
        assert endpoint.smsg_next()[0] is ReturnCode.INVALID_STATE
        assert endpoint.smsg_release() is ReturnCode.SUCCESS
        rank.fence()

    good, none = ReturnCode.SUCCESS, ReturnCode.NOT_DONE
    codes = gni_world([sends, receives])[0]
    assert codes == [good] * 4 + [none, ReturnCode.SIZE_ERROR, good, none]


def test_the_shared_queue_has_short_messages_and_leads_to_other_hosts() -> None:
    def sends(rank: GniRank) -> list[ReturnCode]:
        endpoint = rank.endpoints[1]
        codes = [
            endpoint.msgq_send(memoryview(bytes(size)), memoryview(b"end")) for size in (125, 126)
        ]
        rank.fence()
        return codes

    def receives(rank: GniRank) -> tuple[int, bytes] | None:
        queue = rank.domain.completion_queue(10)
        assert rank.domain.msgq_init(queue, 4) is ReturnCode.SUCCESS
        rank.fence()
        code, peer, message = rank.domain.msgq_next()
        return (peer, message) if code is ReturnCode.SUCCESS else None

    codes, found = gni_world([sends, receives])
    assert codes == [ReturnCode.INVALID_PARAM] * 2
    assert found is None

    def ready(rank: GniRank) -> list[ReturnCode]:
        rank.domain.msgq_init(rank.domain.completion_queue(10), 4)
        return sends(rank)

    codes, found = gni_world([ready, receives], msgq_on_host=True)
    assert codes == [ReturnCode.SUCCESS, ReturnCode.SIZE_ERROR]
    assert found == (0, bytes(125) + b"end")


def test_the_shared_queue_leads_to_another_host_with_its_room() -> None:
    def sends(rank: GniRank) -> list[ReturnCode]:
        endpoint = rank.endpoints[1]
        rank.domain.msgq_init(rank.domain.completion_queue(10), 4)
        rank.fence()
        codes = [endpoint.msgq_send(memoryview(bytes([n])), EMPTY) for n in range(5)]
        codes.append(endpoint.msgq_send(memoryview(bytes(129)), EMPTY))
        rank.until(lambda: endpoint.msgq_send(memoryview(b"last"), EMPTY), ReturnCode.NOT_DONE)
        return codes

    def receives(rank: GniRank) -> list[bytes]:
        queue, found = rank.domain.completion_queue(10), []
        assert rank.domain.msgq_init(queue, 4) is ReturnCode.SUCCESS
        rank.fence()
        for _ in range(5):
            event = rank.take(queue)
            code, peer, message = rank.domain.msgq_next()
            assert (event.kind, event.peer, code, peer) == (EventKind.MSGQ, 0, SUCCESS, 0)
            found.append(message)
        return found

    codes, found = gni_world([sends, receives], hosts=(0, 1))
    assert codes == [SUCCESS] * 4 + [ReturnCode.NOT_DONE, ReturnCode.SIZE_ERROR]
    assert found == [bytes([0]), bytes([1]), bytes([2]), bytes([3]), b"last"]


@pytest.mark.parametrize("hosts", [(0, 0), (0, 1)])
def test_credit_of_a_mailbox_that_was_made_again(hosts: Any) -> None:
    """An endpoint that was given back and made again has the credit of its mailbox, no more."""

    def again(rank: GniRank) -> list[Any]:
        peer = 1 - rank.context.rank
        codes, found = [], []
        for _ in range(3):
            endpoint = rank.endpoints[peer]
            codes += [endpoint.smsg_send(memoryview(b"x"), EMPTY) for _ in range(CREDIT + 1)]
            rank.fence()
            wanted = len(found) + CREDIT
            rank.wait(lambda wanted=wanted: take_all(rank, peer, found) or len(found) == wanted)
            rank.fence()
            # between hosts the peer may have it all, and this NIC not know so yet
            rank.until(endpoint.destroy, ReturnCode.ERROR_RESOURCE)
            rank.fence()
            rank.connect(peer)
            rank.fence()
        return [codes, len(found)]

    expected = [([SUCCESS] * CREDIT + [ReturnCode.NOT_DONE]) * 3, 3 * CREDIT]
    assert gni_world([again, again], hosts=hosts) == [expected] * 2
