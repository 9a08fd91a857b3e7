"""Ranks of one host past the NIC: messages by rings, puts and gets straight into the segments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest
from ompy.data.errors import MPIError
from ompy.frameworks.conduit import Token, Transfer
from ompy_components.nic.gni.device import GniDevice

from tests.support.conduit_parameters import NAMES
from tests.support.conduit_worlds import SEGMENT, ConduitRank, conduit_world

BOTH = pytest.mark.parametrize("name", NAMES)
REQUEST, ANSWER = 128, 129
NIC_WORK = {"fma_put", "rdma_put", "fma_get", "rdma_get", "smsg_send_retries"}


class Told(Transfer):
    def __init__(self) -> None:
        self.count = 0

    def done(self, *, is_get: bool) -> None:
        self.count += 1


def exchange(rounds: int) -> Callable[[ConduitRank], dict[str, int]]:
    """Each puts, gets and asks in every round; half of what is asked is answered."""

    def program(rank: ConduitRank) -> dict[str, int]:
        counts: Counter[str] = Counter()

        def asked(token: Token, payload: memoryview, arguments: Sequence[int]) -> None:
            counts["asked"] += 1
            assert bytes(payload) == bytes([arguments[0] % 256]) * len(payload)
            if arguments[0] % 2:
                rank.reply(token, ANSWER, bytes(payload[:400]), *arguments)

        def answered(_: Token, payload: memoryview, arguments: Sequence[int]) -> None:
            counts["answered"] += 1
            assert bytes(payload) == bytes([arguments[0] % 256]) * len(payload)

        rank.attach({REQUEST: asked, ANSWER: answered})
        random = Random(rank.rank)
        for number in range(rounds):
            for peer in rank.peers:
                rank.medium(peer, REQUEST, bytes([number]) * number, number)
                size = 300 + 400 * (number % 2)  # in the message, and before it
                place = (rank.rank * rounds + number) * 700
                rank.long(peer, REQUEST, bytes([number]) * size, place, number, late=number % 3 > 1)
                put_and_get(rank, peer, 30_000 + rank.rank * 9000, random)
        wanted = rounds * len(rank.peers)
        rank.wait(lambda: counts["asked"] == 2 * wanted and counts["answered"] == wanted)
        rank.settle()
        return dict(counts) | rank.conduit.counters()

    return program


def put_and_get(rank: ConduitRank, peer: int, offset: int, random: Random) -> None:
    told, size = Told(), random.randrange(1, 9000)
    data = memoryview(bytearray(random.randbytes(size)))
    bulk = size > rank.conduit.max_put_local
    rank.conduit.put(peer, offset, data, told, bulk=bulk)
    rank.wait(lambda: told.count == 1)
    back = memoryview(bytearray(size))
    rank.conduit.get(peer, offset, back, told)
    rank.wait(lambda: told.count == 2)
    assert back == data


@BOTH
@pytest.mark.parametrize("depth", [1, 2, 32])
def test_neighbours_do_all_past_the_nic(name: str, depth: int) -> None:
    for seed in range(3):
        found = conduit_world(
            exchange(10), ranks=3, name=name, pshm=True, pshm_network_depth=depth, seed=seed
        )
        assert [(one["asked"], one["answered"]) for one in found] == [(40, 20)] * 3
        assert not NIC_WORK & {name for one in found for name in one}


@BOTH
@pytest.mark.parametrize("messages", ["smsg", "mailboxes"])
def test_neighbours_and_others_at_once(name: str, messages: str) -> None:
    found = conduit_world(
        exchange(4), ranks=4, hosts=[0, 1, 0, 1], name=name, messages=messages, pshm=True
    )
    assert [(one["asked"], one["answered"]) for one in found] == [(24, 12)] * 4
    # to the two others everything goes by the NIC, a get a round to each among it
    for one in found:
        assert one["fma_get"] + one.get("rdma_get", 0) >= 8


def test_without_pshm_neighbours_use_the_nic() -> None:
    found = conduit_world(exchange(4), ranks=2, pshm=False)
    for one in found:
        assert NIC_WORK & set(one)


def test_who_is_a_neighbour_follows_the_hosts() -> None:
    def program(rank: ConduitRank) -> tuple[list[int], list[int]]:
        rank.attach({}, 4096)
        reached = [node for node in rank.peers if rank.conduit._shared.reaches(node)]  # type: ignore[union-attr]
        return list(rank.conduit.neighbours()), reached

    found = conduit_world(program, ranks=5, hosts=[0, 1, 0, 1, 2], pshm=True)
    assert found == [([0, 2], [2]), ([1, 3], [3]), ([0, 2], [0]), ([1, 3], [1]), ([4], [])]


def test_a_ring_that_is_full_takes_nothing_and_loses_nothing() -> None:
    """More than the credits let through, straight at the transport."""

    def program(rank: ConduitRank) -> list[int]:
        (between,) = rank.conduit._transports[1:]
        heard: list[int] = []
        deliver = between.deliver
        between.deliver = lambda node, message: heard.append(node * 1000 + message[0])
        rank.attach()
        rank.context.engine.remove_poller(rank.conduit)
        rank.fence()
        sent = 0
        while between.send(1 - rank.rank, bytearray([sent])):
            sent += 1
        assert sent == 2 * 3 + 2, "two a credit, and the rounds of the exit"
        rank.fence()
        polls = []
        while count := between.poll():
            polls.append(count)
        assert polls == [5, 3], "a burst at a time"
        rank.fence()
        assert between.send(1 - rank.rank, bytearray([99]))
        rank.fence()
        between.poll()
        with pytest.raises(MPIError, match="a message of 641 bytes"):
            between.send(1 - rank.rank, bytearray(641))
        between.deliver = deliver
        rank.context.engine.add_poller(rank.conduit)
        return heard

    found = conduit_world(program, ranks=2, pshm=True, pshm_network_depth=3, smsg_burst=5)
    assert found == [[1000 + n for n in (*range(8), 99)], [*range(8), 99]]


def test_what_is_not_the_peers_segment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from ompy_components.conduit.gni.shared_segments import SharedSegments

    honest = SharedSegments.offer

    def forged(self: SharedSegments, segment: memoryview, spare: memoryview) -> bytes:
        made = bytearray(honest(self, segment, spare))
        spare[:8] = bytes(8)  # as other memory at that place would have it
        return bytes(made)

    monkeypatch.setattr(SharedSegments, "offer", forged)

    def program(rank: ConduitRank) -> str:
        with pytest.raises(MPIError, match="what is mapped as the segment of rank . .*is none"):
            rank.attach()
        return "refused"

    assert conduit_world(program, ranks=2, pshm=True) == ["refused"] * 2


def test_bytes_beyond_a_segment_are_refused() -> None:
    def program(rank: ConduitRank) -> int:
        rank.attach({}, SEGMENT)
        told, local = Told(), memoryview(bytearray(8))
        for begin in (SEGMENT - 7, -1):
            with pytest.raises(MPIError, match="are not in a segment of"):
                rank.conduit.put(1 - rank.rank, begin, local, told, bulk=True)
            with pytest.raises(MPIError, match="are not in a segment of"):
                rank.conduit.get(1 - rank.rank, begin, local, told)
        rank.conduit.put(1 - rank.rank, SEGMENT - 8, local, told, bulk=True)
        rank.settle()
        return told.count

    assert conduit_world(program, ranks=2, pshm=True) == [1, 1]


def test_ranks_without_a_segment_map_nothing() -> None:
    def program(rank: ConduitRank) -> int:
        heard: list[Any] = []
        rank.attach({REQUEST: lambda *message: heard.append(message)}, 0)
        rank.short(1 - rank.rank, REQUEST, 7)
        rank.wait(lambda: bool(heard))
        rank.settle()
        return len(rank.conduit._shared.segment(1 - rank.rank))  # type: ignore[union-attr]

    assert conduit_world(program, ranks=2, pshm=True) == [0, 0]


@pytest.mark.parametrize(("hosts", "asked"), [((0, 0), False), ((0, 1), True)])
def test_the_device_has_no_turns_where_nothing_can_come_from_it(
    hosts: Sequence[int], asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [0, 0]
    progress = GniDevice.progress

    def counted(device: GniDevice) -> int:
        turns[device._context.rank] += 1
        return progress(device)

    def program(rank: ConduitRank) -> None:
        heard: list[int] = []
        rank.attach(
            {
                REQUEST: lambda token, payload, arguments: rank.reply(token, ANSWER),
                ANSWER: lambda token, payload, arguments: heard.append(1),
            }
        )
        rank.fence()
        turns[rank.rank] = 0
        for _ in range(10):
            rank.short(rank.peers[0], REQUEST)
        rank.wait(lambda: len(heard) == 10)
        rank.fence()

    monkeypatch.setattr(GniDevice, "progress", counted)
    conduit_world(program, hosts=hosts, messages="pshm")
    assert [bool(count) for count in turns] == [asked, asked]
