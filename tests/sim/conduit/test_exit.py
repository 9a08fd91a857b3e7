"""The end of a job: every rank learns the largest code, whoever began and whatever is under way."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

import pytest
from ompy.engine.virtual_engine import RankFailed
from ompy.frameworks.conduit import Token
from ompy.runtime.simulation.virtual_job import Aborted
from ompy_components.conduit.gni.reduction import Reduction

from tests.support.conduit_worlds import ConduitRank, conduit_world

REQUEST = 128
SECOND = 1_000_000_000  # ns

both = pytest.mark.parametrize("name", ["gemini", "aries"])
variants = pytest.mark.parametrize("messages", ["smsg", "mailboxes", "pshm"])


def leave(code: int) -> None:
    raise SystemExit(code)


def quietly(program: Any) -> Any:
    """A program whose rank has no further part in the world when it has exited."""

    def run(rank: ConduitRank) -> int:
        rank.conduit.on_exit = leave
        rank.finalize = lambda: None  # type: ignore[method-assign]
        try:
            return int(program(rank))
        except SystemExit as end:
            assert isinstance(end.code, int)
            return end.code

    return run


def waits_for_the_end(rank: ConduitRank) -> int:
    rank.wait(lambda: False)
    return -1


@both
@variants
@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
def test_all_exit_with_the_largest_code(name: str, messages: str, ranks: int) -> None:
    def program(rank: ConduitRank) -> int:
        rank.attach()
        rank.context.engine.spend(rank.rank * 1000)  # type: ignore[attr-defined]
        return rank.conduit.exit(10 + (rank.rank * 5) % 7)

    found = conduit_world(quietly(program), ranks=ranks, name=name, messages=messages)
    assert found == [10 + max((rank * 5) % 7 for rank in range(ranks))] * ranks


@both
@variants
@pytest.mark.parametrize("attached", [False, True])
def test_one_rank_ends_all(name: str, messages: str, attached: bool) -> None:
    def ends(rank: ConduitRank) -> int:
        if attached:
            rank.attach()
        return rank.conduit.exit(42)

    def goes_on(rank: ConduitRank) -> int:
        if attached:
            rank.attach()
        return waits_for_the_end(rank)

    for seed in range(3):
        programs = [quietly(goes_on)] * 5
        programs[seed + 1] = quietly(ends)
        nic = {"late": 30 * seed, "refuse_every": 3 * seed, "ring_slots": 2}
        found = conduit_world(programs, name=name, messages=messages, seed=seed, nic=nic)
        assert found == [42] * 5


@both
@variants
def test_in_the_middle_of_a_flood_and_from_a_handler(name: str, messages: str) -> None:
    def program(rank: ConduitRank) -> int:
        count = 0

        def asked(token: Token, payload: memoryview, arguments: Sequence[int]) -> None:
            nonlocal count
            count += 1
            if rank.rank == 1 and count == 9:
                leave(rank.conduit.exit(7))

        rank.attach({REQUEST: asked})
        while True:
            for peer in rank.peers:
                rank.medium(peer, REQUEST, bytes(100))

    for seed in range(3):
        found = conduit_world(
            quietly(program), ranks=4, name=name, messages=messages, networkdepth=2, seed=seed
        )
        assert found == [7] * 4


@variants
def test_who_does_not_look_is_ended_by_the_launcher(messages: str) -> None:
    times: list[int] = []

    def ends(rank: ConduitRank) -> int:
        try:
            return rank.conduit.exit(9)
        finally:
            times.append(rank.context.engine.now())

    def computes(rank: ConduitRank) -> int:
        rank.context.engine.spend(3600 * SECOND)  # type: ignore[attr-defined]
        return 0

    with pytest.raises(RankFailed) as failed:
        conduit_world([quietly(ends), quietly(computes)], messages=messages)
    assert isinstance(failed.value.__cause__, Aborted)
    assert "code 9" in str(failed.value.__cause__)
    assert 3.25 * SECOND <= times[0] < 3.3 * SECOND  # reference gasnet.md 7: 3 s, 0.125 s a rank


def told(under_way: list[tuple[int, int, int]], *message: int) -> None:
    node, shift, code = message
    under_way.append((node, shift, code))


def test_the_reduction_in_every_size_and_order() -> None:
    """Messages in any order, also before a rank takes part: all learn the largest code."""
    random = Random(7)
    for size in [*range(1, 20), 64, 100]:
        for _ in range(10):
            under_way: list[tuple[int, int, int]] = []
            tell = partial(told, under_way)
            machines = [Reduction(rank, size, tell) for rank in range(size)]
            codes = [random.randrange(256) for _ in range(size)]
            waiting = list(range(size))
            random.shuffle(waiting)
            while waiting or under_way:
                if waiting and (not under_way or random.random() < 0.3):
                    rank = waiting.pop()
                    machines[rank].begin_reduction(codes[rank])
                else:
                    node, shift, code = under_way.pop(random.randrange(len(under_way)))
                    machines[node].round_arrived(shift, code)
            assert all(machine.complete for machine in machines)
            assert {machine.code for machine in machines} == {max(codes)}
