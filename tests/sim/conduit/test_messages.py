"""Active messages of the conduits: each arrives once, no credit is lost, nobody waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from ompy.engine.virtual_engine import RankFailed
from ompy.frameworks.conduit import Category, Token

from tests.support.conduit_worlds import SEGMENT, ConduitRank, conduit_world
from tests.support.effort import effort

CONDUITS = ["gemini", "aries"]
NIC_VARIANTS = ["smsg", "mailboxes"]
VARIANTS = [*NIC_VARIANTS, "pshm"]
REQUEST, ANSWER, NOTE, DATA = range(128, 132)
Arguments = Sequence[int]

both = pytest.mark.parametrize("name", CONDUITS)
variants = pytest.mark.parametrize("messages", VARIANTS)
nic_variants = pytest.mark.parametrize("messages", NIC_VARIANTS)


def pattern(size: int, salt: int) -> bytes:
    return bytes((salt * 7 + place * 13) % 251 for place in range(size))


def everybody_asks(rounds: int) -> Any:
    """Each asks each `rounds` times; of the requests only every other one is answered."""

    def program(rank: ConduitRank) -> dict[str, int]:
        counts: Counter[str] = Counter()

        def asked(token: Token, payload: memoryview, arguments: Arguments) -> None:
            counts["asked"] += 1
            assert token.is_request
            assert arguments[1] == token.source
            assert bytes(payload) == bytes([arguments[0] % 256]) * arguments[0]
            if arguments[0] % 2:
                rank.reply(token, ANSWER, bytes(payload), *arguments)

        def answered(token: Token, payload: memoryview, arguments: Arguments) -> None:
            counts["answered"] += 1
            assert not token.is_request
            assert arguments[1] == rank.rank
            assert bytes(payload) == bytes([arguments[0] % 256]) * arguments[0]

        rank.attach({REQUEST: asked, ANSWER: answered})
        for number in range(rounds):
            for peer in rank.peers:
                rank.medium(peer, REQUEST, bytes([number % 256]) * number, number, rank.rank)
        answers = rounds // 2 * len(rank.peers)
        rank.wait(lambda: counts["asked"] == 2 * answers and counts["answered"] == answers)
        rank.settle()
        return dict(counts) | rank.conduit.counters()

    return program


@both
@variants
@pytest.mark.parametrize("depth", [1, 2, 12])
def test_everybody_asks_everybody(name: str, messages: str, depth: int) -> None:
    for seed in range(effort(1)):
        found = conduit_world(
            everybody_asks(20), ranks=3, name=name, messages=messages, networkdepth=depth, seed=seed
        )
        assert [(one["asked"], one["answered"]) for one in found] == [(40, 20)] * 3


@both
@nic_variants
@pytest.mark.parametrize("pshm", [False, True])
def test_on_several_hosts(name: str, messages: str, pshm: bool) -> None:
    for seed in range(effort(1)):
        found = conduit_world(
            everybody_asks(8),
            ranks=4,
            hosts=(0, 1, 0, 2),
            name=name,
            messages=messages,
            networkdepth=2,
            pshm=pshm,
            pshm_network_depth=3,
            seed=seed,
        )
        assert [(one["asked"], one["answered"]) for one in found] == [(24, 12)] * 4


@both
@nic_variants
def test_a_nic_that_refuses_and_is_late_loses_nothing(name: str, messages: str) -> None:
    waited = 0
    for seed in range(4):
        found = conduit_world(
            everybody_asks(4 + 2 * effort(1)),
            ranks=3,
            name=name,
            messages=messages,
            networkdepth=1 + seed % 3,
            nic={"late": 15 * seed, "refuse_every": 2 + seed % 3, "ring_slots": 2 + seed},
            seed=seed,
        )
        waited += sum(one["messages_in_line"] for one in found)
    assert waited, "the NIC has refused nothing"


@both
@pytest.mark.parametrize("room", [1, 2, 3, 5])
def test_lost_events_lose_no_message(name: str, room: int) -> None:
    lost = 0
    for seed in range(2 * effort(1)):
        found = conduit_world(
            everybody_asks(12),
            ranks=4,
            name=name,
            message_events=room,
            nic={"late": 30 * (seed % 2), "clock": False},  # with one they come one by one
            seed=seed,
        )
        lost += sum(one.get("message_events_lost", 0) for one in found)
    assert lost, "no event was lost"


@both
@variants
def test_every_size_and_number_of_arguments(name: str, messages: str) -> None:
    """Both ways, with arguments of all values, as a reply too."""
    corners = [0, 1, -1, 2**31 - 1, -(2**31), 2**32 - 1, *range(10)]

    def program(rank: ConduitRank) -> Any:
        heard: list[Any] = []
        most = rank.conduit.max_medium
        cases = [(size, count) for size in (0, 1, 7, 8, 9, most - 1, most) for count in range(17)]

        def asked(token: Token, payload: memoryview, arguments: Arguments) -> None:
            data = bytes(payload)
            category = Category.MEDIUM if data else Category.SHORT
            rank.conduit.reply(category, token, ANSWER, arguments, memoryview(data), 0)

        def answered(token: Token, payload: memoryview, arguments: Arguments) -> None:
            heard.append((bytes(payload), list(arguments)))

        rank.attach({REQUEST: asked, ANSWER: answered})
        if rank.rank:
            rank.fence()
            return None
        for size, count in cases:
            rank.medium(1, REQUEST, pattern(size, count), *corners[:count])
        rank.wait(lambda: len(heard) == len(cases))
        rank.fence()
        as_signed = [value - 2**32 if value >= 2**31 else value for value in corners]
        wanted = [(pattern(size, count), as_signed[:count]) for size, count in cases]
        assert sorted(heard) == sorted(wanted)
        return most

    found = conduit_world(program, name=name, messages=messages)[0]
    assert found >= 512


LONGS = [0, 1, 30, 31, 47, 48, 49, 111, 112, 113, 600, 616, 617, 640, 4096, 4097, 20_001]


@both
def test_who_waits_for_a_flag_does_not_spin(name: str) -> None:
    """The event of a message may come before its flag: meanwhile the rank sleeps, now and then."""
    rounds = 40
    steps: list[int] = []

    def program(rank: ConduitRank) -> int:
        asked: list[int] = []
        rank.attach({REQUEST: lambda token, payload, arguments: asked.append(arguments[0])})
        for number in range(rounds):
            rank.medium(1 - rank.rank, REQUEST, b"x" * number, number)
        rank.wait(lambda: len(asked) == rounds)
        engine: Any = rank.context.engine
        steps.append(engine.scheduler.steps)
        return len(asked)

    made = conduit_world(program, name=name, messages="mailboxes", nic={"late": 60})
    assert made == [rounds] * 2
    # arbitrary: spinning takes a hundred times as many as there are messages
    assert max(steps) < 20 * rounds


@both
@variants
@pytest.mark.parametrize("late", [False, True])
def test_the_bytes_of_a_long_are_there_when_its_handler_runs(
    name: str, messages: str, late: bool
) -> None:
    """Requests and replies, whose bytes go along or are put first."""

    def program(rank: ConduitRank) -> int:
        seen: list[int] = []
        answers: list[int] = []

        def asked(token: Token, payload: memoryview, arguments: Arguments) -> None:
            size, count = arguments[0], len(arguments)
            assert bytes(payload) == pattern(size, count)
            place = rank.conduit.segment[arguments[1] : arguments[1] + size]
            place[:] = payload[::-1] if False else payload
            seen.append(size)
            back = memoryview(pattern(size, count + 1))
            rank.conduit.reply(Category.LONG, token, ANSWER, [size], back, SEGMENT // 2)

        def answered(token: Token, payload: memoryview, arguments: Arguments) -> None:
            assert len(payload) == arguments[0]
            answers.append(arguments[0])

        rank.attach({REQUEST: asked, ANSWER: answered})
        cases = [(size, count) for size in LONGS for count in (2, 16)]
        wanted: list[int] = []
        if rank.rank == 0:
            for size, count in cases:
                arguments = [size, 64 + size % 5] + [0] * (count - 2)
                data = pattern(size, count)
                rank.long(1, REQUEST, data, arguments[1], *arguments, late=late)
                wanted.append(size)
                rank.wait(lambda: answers == wanted)
                place = rank.conduit.segment[SEGMENT // 2 : SEGMENT // 2 + size]
                assert bytes(place) == pattern(size, count + 1)
        else:
            rank.wait(lambda: len(seen) == len(cases))
        rank.settle()
        return len(seen)

    for seed in range(effort(2)):
        conduit_world(
            program, name=name, messages=messages, seed=seed, nic={"late": 25 * seed}, num_pd=4
        )


@both
@variants
def test_longs_in_a_flood_with_one_of_everything(name: str, messages: str) -> None:
    """All to all with one credit, one descriptor, one bounce buffer, replies that are long too."""
    size, rounds = 700, 8

    def program(rank: ConduitRank) -> int:
        answers: list[int] = []
        part = SEGMENT // 2 // 4 // rounds

        def asked(token: Token, payload: memoryview, arguments: Arguments) -> None:
            assert bytes(payload) == pattern(size, token.source)
            place = SEGMENT // 2 + (rank.rank * rounds + arguments[0]) * part
            data = memoryview(pattern(size, rank.rank))
            rank.conduit.reply(Category.LONG, token, ANSWER, [], data, place)

        def answered(token: Token, payload: memoryview, arguments: Arguments) -> None:
            assert bytes(payload) == pattern(size, token.source)
            answers.append(token.source)

        rank.attach({REQUEST: asked, ANSWER: answered})
        data = pattern(size, rank.rank)
        for number in range(rounds):
            for peer in rank.peers:
                place = (rank.rank * rounds + number) * part
                rank.long(peer, REQUEST, data, place, number, late=bool(number % 2))
        rank.wait(lambda: len(answers) == rounds * len(rank.peers))
        rank.settle()
        return len(answers)

    assert size <= SEGMENT // 2 // 4 // rounds
    for seed in range(effort(2)):
        found = conduit_world(
            program,
            ranks=4,
            name=name,
            messages=messages,
            networkdepth=1,
            num_pd=1,
            bounce_size=8192,
            seed=seed,
            nic={"late": 20 * seed},
        )
        assert found == [24] * 4


@variants
def test_nothing_recurses(messages: str) -> None:
    """A handler's reply polls for nothing, however many messages wait."""

    def program(rank: ConduitRank) -> int:
        depth = deepest = count = 0

        def asked(token: Token, payload: memoryview, arguments: Arguments) -> None:
            nonlocal depth, deepest, count
            depth += 1
            deepest = max(depth, deepest)
            rank.conduit.reply(
                Category.LONG, token, ANSWER, [], memoryview(bytes(5000)), 0
            )  # waits for a put
            depth -= 1
            count += 1

        rank.attach({REQUEST: asked, ANSWER: lambda *_: None})
        for _ in range(10):
            for peer in rank.peers:
                rank.short(peer, REQUEST)
        rank.wait(lambda: count == 10 * len(rank.peers))
        rank.settle()
        return deepest

    assert conduit_world(program, ranks=3, messages=messages, nic={"late": 60}) == [1] * 3


def test_a_handler_that_is_not_there() -> None:
    def asks(rank: ConduitRank) -> None:
        rank.attach()
        rank.short(1, 200)
        rank.fence()

    def hears(rank: ConduitRank) -> str:
        rank.attach()
        with pytest.raises(Exception, match="handler 200, which rank 1 has not registered"):
            rank.wait(lambda: False)
        rank.fence()
        return "yes"

    assert conduit_world([asks, hears])[1] == "yes"


def test_an_error_in_a_handler_costs_no_credit() -> None:
    def asks(rank: ConduitRank) -> None:
        rank.attach()
        for _ in range(5):
            rank.short(1, REQUEST)
        rank.settle()

    def hears(rank: ConduitRank) -> int:
        count = 0

        def fails(token: Token, payload: memoryview, arguments: Arguments) -> None:
            raise ZeroDivisionError

        rank.attach({REQUEST: fails})
        while count < 5:
            with pytest.raises(ZeroDivisionError):
                rank.wait(lambda: False)
            count += 1
        rank.settle()
        return count

    assert conduit_world([asks, hears], networkdepth=1)[1] == 5


@both
def test_an_overrun_at_every_position(name: str) -> None:
    """The event of each message in turn finds the queue full, with one or several before it."""

    def program(lost_at: int) -> Any:
        def run(rank: ConduitRank) -> int:
            queue = rank.conduit.resources.message_queue
            pushed, whole = 0, type(queue).push

            def push(event: Any) -> None:
                nonlocal pushed
                pushed += 1
                queue.depth = len(queue._events) or 1 if pushed >= lost_at else 1000
                whole(queue, event)
                if queue.lost:
                    queue.depth = 1000

            queue.push = push
            asks(rank)
            return int(queue.lost)

        asks = everybody_asks(4)
        return run

    lost = [
        sum(conduit_world(program(position), ranks=3, name=name, seed=position, smsg_burst=1))
        for position in range(1, 20)
    ]
    assert sum(map(bool, lost[:12])) >= 10, lost


@both
def test_a_message_that_the_nic_has_not_put_is_an_error(name: str) -> None:
    """Whoever waits for it would wait for ever."""
    with pytest.raises(RankFailed, match="a message to it could not be put: transaction failed"):
        conduit_world(everybody_asks(40), name=name, messages="mailboxes", nic={"fail": 5})
