"""Calls in flight: several at once, without a meeting in between, beside a program's messages."""

from __future__ import annotations

from array import array
from random import Random
from typing import ClassVar, Final

from ompy.conformance.coll.calls import CALLS, Prepared, sum_reduction
from ompy.conformance.coll.coll_suite import CollSuite, skip_unserved
from ompy.conformance.coll.results import blocking
from ompy.conformance.coll.rooms import Case, Types
from ompy.conformance.mpi_worlds import MpiWorlds, Rank
from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.mpi.point_to_point.status import Status

TURNS: Final = 40  # calls; arbitrary
DELAY: Final = 50_000  # ns of computing at most between two calls; arbitrary: several messages long
BARRIERS: Final = 10  # arbitrary
AT_ONCE: Final = 12  # nonblocking calls; arbitrary
TAG: Final = 17  # of the program's own messages; arbitrary


class InFlightSuite(CollSuite):
    """No call takes a message of another one."""

    title: ClassVar[str] = "calls in flight"

    def test_barrier(self, worlds: MpiWorlds, seed: int) -> None:
        """Nobody leaves a barrier before all have come."""
        for ranks in (2, 3, 5, 8):
            come = [0] * ranks

            def program(rank: Rank, come: list[int] = come) -> bool:
                for turn in range(1, BARRIERS + 1):
                    rank.compute(DELAY)
                    come[rank.comm.rank] = turn
                    rank.comm.Barrier()
                    late = [who for who, turns in enumerate(come) if turns < turn]
                    assert not late, f"left barrier {turn} before ranks {late} had come"
                return rank.serves("barrier")

            served = any(worlds.play(program, ranks, seed=seed).results)
        skip_unserved("barrier", served=served)

    def test_one_after_the_other(self, worlds: MpiWorlds, seed: int) -> None:
        """Calls of all kinds in turn, by ranks that are early and late."""

        def program(rank: Rank) -> None:
            types, chance = Types(), Random(seed)  # noqa: S311 - the same in each rank
            for turn in range(TURNS):
                prepared = _drawn(rank, types, chance, turn)
                rank.compute(DELAY)
                blocking(rank.comm, prepared)
                prepared.verify(f"call {turn}, {prepared.name}")
            types.free_all()

        for ranks in (3, 4):
            worlds.play(program, ranks, seed=seed)

    def test_all_at_once(self, worlds: MpiWorlds, seed: int) -> None:
        """Nonblocking calls under way together, waited for in another order."""

        def program(rank: Rank) -> None:
            types, chance = Types(), Random(seed)  # noqa: S311 - the same in each rank
            calls = [_drawn(rank, types, chance, turn) for turn in range(AT_ONCE)]
            requests = []
            for call in calls:
                rank.compute(DELAY)
                requests.append(getattr(rank.comm, f"I{call.name.lower()}")(*call.words))
            order = list(range(AT_ONCE))
            rank.engine.random.shuffle(order)
            for index in order:
                requests[index].Wait()
            for turn, call in enumerate(calls):
                call.verify(f"call {turn} of {AT_ONCE} at once, {call.name}")
            types.free_all()

        worlds.play(program, 4, seed=seed, hosts=(0, 1, 0, 1))

    def test_a_programs_messages(self, worlds: MpiWorlds, seed: int) -> None:
        """A receive from anybody with any tag gets the program's message, never one of a call."""

        def program(rank: Rank) -> None:
            comm, types, chance = rank.comm, Types(), Random(seed)  # noqa: S311 - the same
            room = array("i", [0])
            request = comm.Irecv(room, ANY_SOURCE, ANY_TAG)
            for turn in range(len(CALLS)):
                prepared = _drawn(rank, types, chance, turn)
                blocking(comm, prepared)
                prepared.verify(f"call {turn}, {prepared.name}, with a receive under way")
            comm.Barrier()
            comm.Send(array("i", [comm.rank]), (comm.rank + 1) % comm.size, TAG)
            status = Status()
            request.Wait(status)
            left = (comm.rank - 1) % comm.size
            assert (room[0], status.tag, status.source) == (left, TAG, left), (
                f"a receive of the program got {room[0]} of rank {status.source}, "
                f"tag {status.tag}: a message of a collective call"
            )
            types.free_all()

        worlds.play(program, 3, seed=seed)

    def test_two_communicators(self, worlds: MpiWorlds, seed: int) -> None:
        """Calls in a communicator's halves and in its duplicate, made by turns."""

        def program(rank: Rank) -> None:
            comm, types = rank.comm, Types()
            half, other = comm.Split(comm.rank % 2, -comm.rank), comm.Dup()
            for turn, operation in enumerate(CALLS):
                for each in (half, other, comm):
                    case = Case(4, salt=turn, root=each.size - 1)
                    prepared = CALLS[operation](each, case, types, sum_reduction())
                    rank.compute(DELAY)
                    blocking(each, prepared)
                    prepared.verify(f"{prepared.name} in a communicator of {each.size}")
            half.Free()
            other.Free()
            types.free_all()

        worlds.play(program, 5, seed=seed, hosts=(0, 0, 1, 1, 1))


def _drawn(rank: Rank, types: Types, chance: Random, turn: int) -> Prepared:
    """A call that all ranks draw alike."""
    names = list(CALLS)
    operation = names[turn % len(names)] if turn < len(names) else chance.choice(names)
    root, count = chance.randrange(rank.comm.size), chance.choice((0, 1, 5, 300))
    uneven = chance.random() < 0.5
    case = Case(count, uneven=uneven, root=root, salt=turn)
    return CALLS[operation](rank.comm, case, types, sum_reduction())
