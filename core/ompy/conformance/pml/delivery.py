"""Delivery: every message once, unaltered, to the receive that it is for."""

from __future__ import annotations

from typing import ClassVar, Final

import pytest

from ompy.conformance.mpi_worlds import Rank
from ompy.conformance.payloads import assert_same_bytes, payload
from ompy.conformance.pml.pml_suite import PmlSuite, PmlWorlds
from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.data.errors import ERR_TRUNCATE
from ompy.mpi.constants import BSEND_OVERHEAD
from ompy.mpi.errors import MPIException
from ompy.mpi.point_to_point.status import Status

# bytes; arbitrary: eager, rendezvous, many fragments, each limit of ours more and less by one
SIZES: Final = (0, 1, 64, 4000, 4095, 4096, 4097, 65_535, 65_536, 65_537, 300_001)
COUNT: Final = 30  # messages; arbitrary
LAST: Final = 7  # tag that no size is; arbitrary
LARGE: Final = 300_001  # bytes; arbitrary: no message of ours is eager with so many
DELAY: Final = 50_000  # ns; arbitrary: several messages long
MODES: Final = ("Send", "Ssend", "Bsend", "Rsend")
# where the ranks are, and so which BTL carries their messages
PLACES: Final = {"one host": (0, 0, 0), "several hosts": (0, 1, 2)}


class DeliverySuite(PmlSuite):
    """Sizes, modes, order, matching."""

    title: ClassVar[str] = "delivery"

    def test_is_used(self, worlds: PmlWorlds) -> None:
        """The rank selects it: its `init` or `wrap` answers, and nothing declines."""
        played = worlds.play(lambda rank: rank.comm.Barrier(), 2)
        assert played.used, "no rank has selected it: does it decline without a parameter?"

    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("place", PLACES)
    def test_every_size(self, worlds: PmlWorlds, place: str, mode: str) -> None:
        """Messages of many sizes around a ring, in each mode of sending."""

        def program(rank: Rank) -> None:
            comm = rank.comm
            after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
            if mode == "Bsend":
                comm.Attach_buffer(bytearray(LARGE + BSEND_OVERHEAD))
            for size in SIZES:
                room, status = bytearray(size), Status()
                receive = comm.Irecv(room, before, size)
                comm.Barrier()  # a ready send needs the receive
                sent = bytearray(payload(size, comm.rank))
                request = getattr(comm, f"I{mode.lower()}")(sent, after, size)
                request.Wait()
                sent[:] = bytes(size)  # the memory is the program's again
                receive.Wait(status)
                assert_same_bytes(
                    room, payload(size, before), f"{mode} of {size} bytes was altered"
                )
                assert status.Get_count() == size, f"{mode} of {size} bytes: {status.Get_count()}"
                assert (status.source, status.tag) == (before, size)
            if mode == "Bsend":
                comm.Detach_buffer()

        worlds.play(program, 3, hosts=PLACES[place])

    @pytest.mark.parametrize("place", PLACES)
    def test_order(self, worlds: PmlWorlds, place: str, seed: int) -> None:
        """Messages do not overtake each other, large ones among small ones."""
        sizes = [LARGE if number % 7 == 3 else number for number in range(COUNT)]

        def program(rank: Rank) -> None:
            comm = rank.comm
            if comm.rank:
                for number, size in enumerate(sizes):
                    rank.compute(DELAY)
                    comm.Isend(payload(size, number, comm.rank), 0, number)
                comm.Barrier()
                return
            last = [-1, -1, -1]
            for _ in range(2 * COUNT):
                room, status = bytearray(LARGE), Status()
                comm.Recv(room, ANY_SOURCE, ANY_TAG, status)
                tag, source = status.tag, status.source
                assert tag == last[source] + 1, (
                    f"from rank {source} message {tag} came after message {last[source]}"
                )
                last[source] = tag
                assert_same_bytes(
                    room[: sizes[tag]],
                    payload(sizes[tag], tag, source),
                    f"message {tag} of rank {source}",
                )
            comm.Barrier()

        worlds.play(program, 3, seed=seed, hosts=PLACES[place])

    def test_matching(self, worlds: PmlWorlds, seed: int) -> None:
        """Receives posted in another order than messages come, by source, tag and both."""

        def program(rank: Rank) -> None:
            comm = rank.comm
            peers = [other for other in range(comm.size) if other != comm.rank]
            wanted = [(peer, tag) for tag in reversed(range(COUNT)) for peer in peers]
            rooms = [bytearray(100) for _ in wanted]
            requests = [
                comm.Irecv(room, peer, tag) for room, (peer, tag) in zip(rooms, wanted, strict=True)
            ]
            rank.compute(DELAY)
            sent = [
                comm.Isend(payload(100, comm.rank, tag), peer, tag)
                for tag in range(COUNT)
                for peer in peers
            ]
            for request in (*requests, *sent):
                request.Wait()
            for room, (peer, tag) in zip(rooms, wanted, strict=True):
                assert_same_bytes(room, payload(100, peer, tag), f"tag {tag} of rank {peer}")

        worlds.play(program, 3, seed=seed)

    def test_early_messages(self, worlds: PmlWorlds, seed: int) -> None:
        """Messages that come before their receives wait for them, whatever their size."""

        def program(rank: Rank) -> None:
            comm = rank.comm
            if comm.rank == 0:
                requests = [comm.Isend(payload(size, size), 1, size) for size in SIZES]
                comm.Send(b"", 1, LAST)
                for request in requests:
                    request.Wait()
                return
            comm.Recv(bytearray(0), 0, LAST)
            for size in reversed(SIZES):
                room = bytearray(size)
                comm.Recv(room, 0, size)
                assert_same_bytes(room, payload(size, size), f"{size} bytes that came early")

        worlds.play(program, 2, seed=seed)

    def test_communicators(self, worlds: PmlWorlds) -> None:
        """A message of one communicator is not taken in another one, by ANY_TAG neither."""

        def program(rank: Rank) -> None:
            comm = rank.comm
            other = comm.Dup()
            left, right = bytearray(5), bytearray(5)
            requests = [
                other.Irecv(left, ANY_SOURCE, ANY_TAG),
                comm.Irecv(right, ANY_SOURCE, ANY_TAG),
            ]
            peer = 1 - comm.rank
            comm.Send(b"world", peer, 3)
            other.Send(b"other", peer, 3)
            for request in requests:
                request.Wait()
            assert (bytes(left), bytes(right)) == (b"other", b"world")
            other.Free()

        worlds.play(program, 2)

    @pytest.mark.parametrize("size", [10, LARGE])
    def test_truncation(self, worlds: PmlWorlds, size: int) -> None:
        """A message that is too long: MPI_ERR_TRUNCATE, what fits is stored, the rest goes on."""

        def program(rank: Rank) -> None:
            comm = rank.comm
            if comm.rank == 0:
                comm.Send(payload(size), 1, 1)
                comm.Send(b"next", 1, 1)
                return
            room = bytearray(b"-" * (size + 4))
            with pytest.raises(MPIException) as caught:
                comm.Recv([memoryview(room)[: size - 3], size - 3], 0, 1)
            assert caught.value.Get_error_class() == ERR_TRUNCATE, caught.value
            assert_same_bytes(room[: size - 3], payload(size)[:-3], "what fits was not stored")
            assert room[size - 3 :] == b"-" * 7, "memory behind the buffer was changed"
            short = bytearray(4)
            comm.Recv(short, 0, 1)
            assert short == b"next"

        worlds.play(program, 2)

    def test_to_itself(self, worlds: PmlWorlds) -> None:
        """A rank's messages to itself."""

        def program(rank: Rank) -> None:
            for size in SIZES:
                room = bytearray(size)
                request = rank.comm.Irecv(room, rank.comm.rank, 2)
                rank.comm.Send(payload(size, 7), rank.comm.rank, 2)
                request.Wait()
                assert_same_bytes(room, payload(size, 7), f"{size} bytes to itself")

        worlds.play(program, 1)
