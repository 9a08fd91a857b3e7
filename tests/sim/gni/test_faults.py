"""What a fault script does to a Gemini or Aries NIC whose peers are on its own host."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest
from ompy.frameworks.nic.gni import AtomicCommand, CqMode, Ordering, PostType, ReturnCode
from ompy.net.faults.fault_rules import NEVER, FaultRule
from ompy.net.faults.scripted import ScriptedFaults
from ompy.runtime.simulation.shrinking import events

from tests.support.gni_job import GniRank, gni_world

MS = 1_000_000
HOLD = 5 * MS
NIC = {"ranks": (0,), "rails": ("gemini_0",)}
POSTS: dict[str, tuple[PostType, dict[str, Any]]] = {
    "put": (PostType.FMA_PUT, {}),
    "get": (PostType.FMA_GET, {}),
    "flag": (PostType.FMA_PUT_W_SYNCFLAG, {"sync_flag": 9, "sync_flag_address": 512}),
    "queue": (PostType.CQWRITE, {"cq_data": 5}),
    "atomic": (PostType.FETCHING_AMO, {"command": AtomicCommand.ADD, "first_operand": 3}),
}


def world(
    program: Callable[[GniRank], Any], *script: FaultRule, **settings: Any
) -> tuple[Any, list[ScriptedFaults]]:
    """What rank 0's program returns, whose peers only poll, and the script as each rank has it."""

    def active(rank: GniRank) -> Any:
        result = program(rank)
        rank.fence()
        return result

    made: list[ScriptedFaults] = []
    found = gni_world([active, GniRank.fence], script=script, made=made, **settings)
    return found[0], made


def timed(rank: GniRank, kind: str) -> tuple[ReturnCode, int]:
    """How a post ends, and after how long."""
    type_, more = POSTS[kind]
    before = rank.engine.now()
    return rank.do(1, type_, bytearray(8), 0, **more), rank.engine.now() - before


@pytest.mark.parametrize("clock", [True, False])
@pytest.mark.parametrize("kind", POSTS)
def test_a_post_is_held_up(kind: str, clock: bool) -> None:
    delay = FaultRule("delay", nth=(2,), delay=HOLD, **NIC)
    (plain, held, last), made = world(
        lambda rank: [timed(rank, kind) for _ in range(3)], delay, clock=clock
    )
    assert {code for code, _ in (plain, held, last)} == {ReturnCode.SUCCESS}
    assert held[1] >= HOLD > plain[1]
    assert last[1] < HOLD
    assert [faults.delivered for faults in made] == [[1], [0]]


@pytest.mark.parametrize("kind", POSTS)
def test_a_post_that_fails_is_not_done(kind: str) -> None:
    error = FaultRule("work_error", nth=(1,), error=errno.EIO, **NIC)

    def program(rank: GniRank) -> Any:
        rank.memory[:] = bytes(len(rank.memory))
        return [timed(rank, kind)[0] for _ in range(2)]

    found, made = world(program, error)
    assert found == [ReturnCode.TRANSACTION_ERROR, ReturnCode.SUCCESS]
    assert made[0].delivered == [1]


def test_a_post_is_refused_for_the_moment() -> None:
    script = FaultRule("work_error", nth=(1, 2), error=errno.EAGAIN, **NIC)
    found, made = world(lambda rank: timed(rank, "put")[0], script)
    assert found is ReturnCode.SUCCESS, "the third try"
    assert made[0].delivered == [2]


def test_a_put_that_is_held_lets_go_of_its_memory() -> None:
    """On Gemini an FMA put has, when the post returns."""

    def active(rank: GniRank) -> None:
        local = bytearray(b"abcdefgh")
        put = rank.post(1, PostType.FMA_PUT, local)
        local[:] = b"xxxxxxxx"
        assert rank.done(put) is ReturnCode.SUCCESS
        rank.fence()

    def passive(rank: GniRank) -> bytes:
        rank.fence()
        return bytes(rank.memory[:8])

    delay = FaultRule("delay", nth=(1,), delay=HOLD)
    assert gni_world([active, passive], script=[delay])[1] == b"abcdefgh"


@pytest.mark.parametrize("clock", [True, False])
def test_strict_puts_keep_their_order(clock: bool) -> None:
    """What is behind one that is held up waits with it."""
    seen: list[bytes] = []

    def active(rank: GniRank) -> None:
        mode = CqMode.GLOBAL_EVENT | CqMode.REMOTE_EVENT
        puts = [rank.post(1, PostType.FMA_PUT, b"1", at, cq_mode=mode) for at in (0, 1)]
        assert [rank.done(put) for put in puts] == [ReturnCode.SUCCESS] * 2
        rank.fence()

    def passive(rank: GniRank) -> None:
        rank.memory[:2] = bytes(2)
        rank.take(rank.memory_queue)
        seen.append(bytes(rank.memory[:2]))
        rank.fence()

    delay = FaultRule("reorder", nth=(1,), delay=HOLD)
    for ordering, first in ((Ordering.STRICT, {b"1\0", b"11"}), (Ordering.DEFAULT, {b"\x001"})):
        gni_world([active, passive], script=[delay], ordering=ordering, clock=clock)
        assert seen.pop() in first


def messages(rank: GniRank, count: int) -> list[bytes]:
    """Take so many short messages of rank 0."""
    found: list[bytes] = []

    def take() -> bool:
        while len(found) < count:
            code, place = rank.endpoints[0].smsg_next()
            if place is None:
                assert code is ReturnCode.NOT_DONE
                return False
            found.append(bytes(place))
            rank.endpoints[0].smsg_release()
        return True

    rank.wait(take)
    return found


def send(rank: GniRank, count: int) -> None:
    """Send so many short messages to rank 1, each again while it is refused."""
    for number in range(count):
        text = memoryview(bytes([number]))
        rank.until(lambda text=text: rank.endpoints[1].smsg_send(text, text), ReturnCode.NOT_DONE)  # type: ignore[misc]


@pytest.mark.parametrize("clock", [True, False])
@pytest.mark.parametrize("ring_slots", [2, 64])
def test_messages_stay_in_their_order(ring_slots: int, clock: bool) -> None:
    script = [
        FaultRule("delay", probability=0.2, delay=HOLD, jitter=HOLD, **NIC),
        FaultRule("work_error", probability=0.2, error=errno.EAGAIN, **NIC),
    ]

    def active(rank: GniRank) -> None:
        send(rank, 40)
        rank.fence()

    def passive(rank: GniRank) -> list[bytes]:
        found = messages(rank, 40)
        rank.fence()
        return found

    made: list[ScriptedFaults] = []
    settings: dict[str, Any] = {"ring_slots": ring_slots, "clock": clock}
    found = gni_world([active, passive], script=script, made=made, **settings)[1]
    assert found == [bytes([number, number]) for number in range(40)]
    assert all(made[0].delivered)


def test_a_message_that_is_lost_is_told() -> None:
    def program(rank: GniRank) -> Any:
        send(rank, 1)
        return [peer for peer, _ in rank.domain.losses]

    found, made = world(program, FaultRule("work_error", nth=(1,), error=errno.EIO, **NIC))
    assert found == [1]
    assert made[0].delivered == [1]


@pytest.mark.parametrize("there", [0, 1])
@pytest.mark.parametrize("what", ["link_down", "nic_gone"])
def test_a_nic_that_is_gone_fails_what_it_does_and_what_is_done_to_it(
    what: str, there: int
) -> None:
    """Until it is back, if it comes back."""
    until = 10 * MS if what == "link_down" else NEVER
    script = FaultRule(what, ranks=(there,), rails=("gemini_0",), since=2 * MS, until=until)

    def program(rank: GniRank) -> list[ReturnCode]:
        found = [timed(rank, "put")[0]]
        for _ in range(2):
            rank.engine.wait_until(lambda: False, 5 * MS)
            found.append(timed(rank, "put")[0])
        rank.engine.wait_until(lambda: False, 5 * MS)
        return [*found, timed(rank, "get")[0]]

    found, made = world(program, script)
    bad, good = ReturnCode.TRANSACTION_ERROR, ReturnCode.SUCCESS
    back = good if what == "link_down" else bad
    assert found == [good, bad, back, back]
    assert there or made[0].delivered[0]


def test_the_same_seed_strikes_the_same_work() -> None:
    rule = FaultRule("delay", probability=0.3, delay=HOLD, jitter=HOLD, **NIC)

    def strikes(seed: int) -> list[int]:
        _, made = world(lambda rank: [timed(rank, "put") for _ in range(30)], rule, seed=seed)
        return made[0].delivered

    assert [strikes(seed) for seed in (1, 1)] == [strikes(1), strikes(1)]
    assert len({tuple(strikes(seed)) for seed in range(6)}) > 1


def test_work_for_other_hosts_is_struck_on_its_way_alone() -> None:
    found, made = world(
        lambda rank: timed(rank, "put")[0],
        FaultRule("work_error", nth=(1,), error=errno.EIO, **NIC),
        hosts=(0, 1),
    )
    assert found is ReturnCode.SUCCESS
    assert made[0].delivered == [0]


def test_what_has_struck_can_be_struck_again_one_by_one() -> None:
    """By rules of their own, as a sweep makes them to shrink what makes a world fail."""
    script = [
        FaultRule("delay", probability=0.3, delay=HOLD, jitter=HOLD, **NIC),
        FaultRule("work_error", probability=0.1, error=errno.EAGAIN, **NIC),
    ]

    def struck(*rules: FaultRule) -> tuple[Any, list[Any]]:
        def program(rank: GniRank) -> Any:
            made[0].record = True
            return [timed(rank, kind) for kind in [*POSTS] * 6]

        made: list[ScriptedFaults] = []
        found = gni_world(
            [lambda rank: (program(rank), rank.fence())[0], GniRank.fence],  # type: ignore[func-returns-value]
            script=rules,
            made=made,
        )
        return found[0], made[0].injections

    took, strikes = struck(*script)
    single = events(script, strikes)
    again, struck_again = struck(*single)
    assert len(single) == len(strikes) > 5
    assert {rule.rails for rule in single} == {("gemini_0",)}
    assert again == took
    assert [each._replace(rule=0) for each in struck_again] == [
        each._replace(rule=0) for each in strikes
    ]
