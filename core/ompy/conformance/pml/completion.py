"""Completion: when a send is done, what a probe sees, what can be cancelled, and how it ends."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import pytest

from ompy.conformance.kept_by_engine import kept_by_engine
from ompy.conformance.mpi_worlds import SECOND, Rank
from ompy.conformance.payloads import assert_same_bytes, payload
from ompy.conformance.pml.delivery import LARGE, PLACES
from ompy.conformance.pml.pml_suite import PmlSuite, PmlWorlds
from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.data.errors import ERR_PROC_FAILED
from ompy.mpi.errors import MPIException
from ompy.mpi.point_to_point.matched import Message
from ompy.mpi.point_to_point.status import Status

PAUSE: Final = SECOND // 100  # ns; arbitrary: a thousand times a message's way
BOUND: Final = 5 * SECOND  # ns; arbitrary: well above a PML's patience with who has left
PATIENCE_MS: Final = 50  # arbitrary: little of it
SIZES: Final = (3, LARGE)


class CompletionSuite(PmlSuite):
    """Requests, probes, the end of a rank."""

    title: ClassVar[str] = "completion"

    @pytest.mark.parametrize("size", SIZES)
    def test_a_synchronous_send(self, worlds: PmlWorlds, size: int) -> None:
        """It is complete when its receive is matched, and not before."""
        matched = [False]

        def program(rank: Rank) -> None:
            if rank.comm.rank == 0:
                request = rank.comm.Issend(payload(size), 1)
                while not request.Test():
                    rank.pass_time(PAUSE // 100)
                assert matched[0], "it was complete before its receive was posted"
                return
            rank.pass_time(PAUSE)
            matched[0] = True
            room = bytearray(size)
            rank.comm.Recv(room, 0)
            assert_same_bytes(room, payload(size), f"{size} bytes, matched after a pause")

        worlds.play(program, 2)

    @pytest.mark.parametrize("size", SIZES)
    def test_probe(self, worlds: PmlWorlds, size: int) -> None:
        """A probe says what has come, and leaves it there; no message, no answer."""

        def program(rank: Rank) -> None:
            comm = rank.comm
            assert not comm.Iprobe(ANY_SOURCE, 9), "there is no message with tag 9"
            comm.Barrier()
            if comm.rank == 0:
                comm.Send(payload(size), 1, 4)
                return
            for _ in range(2):
                status = Status()
                comm.Probe(ANY_SOURCE, ANY_TAG, status)
                assert (status.source, status.tag) == (0, 4)
                assert status.Get_count() == size, f"a probe says {status.Get_count()} bytes"
            assert comm.Iprobe(0, 4), "a message that was probed is not found again"
            assert not comm.Iprobe(0, 5), "a probe for tag 5 found a message with tag 4"
            room = bytearray(size)
            comm.Recv(room, 0, 4)
            assert_same_bytes(room, payload(size), f"{size} bytes, probed before")
            assert not comm.Iprobe(ANY_SOURCE, ANY_TAG), "the message was received, and is probed"

        worlds.play(program, 2)

    @pytest.mark.parametrize("size", SIZES)
    def test_matched_probe(self, worlds: PmlWorlds, size: int) -> None:
        """A message taken out by a matched probe is nobody else's."""

        def program(rank: Rank) -> None:
            comm = rank.comm
            if comm.rank == 0:
                requests = [comm.Isend(payload(size, number), 1, 4) for number in (1, 2)]
                for request in requests:
                    request.Wait()
                return
            message = comm.Mprobe(0, 4)
            room, other = bytearray(size), bytearray(size)
            comm.Recv(other, ANY_SOURCE, ANY_TAG)
            assert isinstance(message, Message)
            message.Recv(room)
            assert [bytes(room), bytes(other)] == [payload(size, 1), payload(size, 2)]
            assert comm.Improbe(ANY_SOURCE, ANY_TAG) is None

        worlds.play(program, 2)

    def test_cancel(self, worlds: PmlWorlds) -> None:
        """A receive that is cancelled takes no message."""

        def program(rank: Rank) -> None:
            comm = rank.comm
            if comm.rank == 0:
                comm.Barrier()
                comm.Send(b"mine", 1, 4)
                return
            room, status = bytearray(4), Status()
            request = comm.Irecv(room, 0, 4)
            request.Cancel()
            request.Wait(status)
            assert status.Is_cancelled()
            comm.Barrier()
            kept = bytearray(4)
            comm.Recv(kept, 0, 4)
            assert [bytes(kept), bytes(room)] == [b"mine", bytes(4)]

        worlds.play(program, 2)

    @pytest.mark.parametrize("size", SIZES)
    @pytest.mark.parametrize("place", PLACES)
    def test_finalize_delivers(self, worlds: PmlWorlds, place: str, size: int) -> None:
        """A rank that ends delivers what it was given, also to one that looks late."""

        def program(rank: Rank) -> None:
            if rank.comm.rank == 0:
                request = rank.comm.Isend(payload(size), 1)
                if size == LARGE:
                    request.Wait()
                return
            if rank.comm.rank == 1:
                rank.compute(PAUSE)
                room = bytearray(size)
                rank.comm.Recv(room, 0)
                assert_same_bytes(room, payload(size), f"{size} bytes, received late")

        worlds.play(program, 3, hosts=PLACES[place])

    def test_a_rank_has_left(self, worlds: PmlWorlds) -> None:
        """A receive from a rank that has ended gets MPI_ERR_PROC_FAILED, and does not hang."""

        def program(rank: Rank) -> None:
            rank.comm.Barrier()
            if rank.comm.rank == 1:
                return
            began = rank.engine.now()
            with pytest.raises(MPIException) as caught:
                rank.comm.Recv(bytearray(4), 1)
            assert caught.value.Get_error_class() == ERR_PROC_FAILED, caught.value
            assert rank.engine.now() - began < BOUND, "the error came late"

        name = worlds.component.name if not worlds.wraps else "ob1"
        known = {parameter.name for parameter in worlds.component.parameters}
        patience = f"pml_{name}_leave_patience_ms"
        told = {patience: PATIENCE_MS} if worlds.wraps or "leave_patience_ms" in known else {}
        worlds.play(program, 2, settings=told)

    def test_same_seed_same_trace(self, worlds: PmlWorlds, seed: int) -> None:
        """What it does depends on the seed alone."""
        first, second = (
            worlds.play(_some_of_everything, 3, seed=seed, trace=True).lines() for _ in range(2)
        )
        assert len(first) == len(second), f"{len(first)} events, then {len(second)}"
        for number, (one, other) in enumerate(zip(first, second, strict=True), 1):
            assert one == other, f"seed {seed}: a second run differs from event {number} on"

    def test_what_stays(self, worlds: PmlWorlds) -> None:
        """Communicators and messages that are done leave no poller and no timer."""

        def program(rank: Rank) -> None:
            kept: list[Any] = []
            for _ in range(3):
                _some_of_everything(rank)
                rank.pass_time(SECOND)
                kept.append(kept_by_engine(rank.engine))
            assert kept[1] == kept[2], f"pollers and timers grow: {kept}"

        worlds.play(program, 3)


def _some_of_everything(rank: Rank) -> None:
    comm = rank.comm.Dup()
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for size in SIZES:
        room = bytearray(size)
        request = comm.Irecv(room, ANY_SOURCE, ANY_TAG)
        comm.Ssend(payload(size, comm.rank), after, 4)
        request.Wait()
        assert_same_bytes(room, payload(size, before), f"{size} bytes")
    comm.allreduce(comm.rank)
    comm.Barrier()
    comm.Free()
