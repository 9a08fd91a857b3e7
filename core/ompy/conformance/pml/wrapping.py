"""Wrapping: a wrapper changes nothing that the PML inside does, nor what others see."""

from __future__ import annotations

from typing import ClassVar, Final

import pytest

from ompy.conformance.mpi_worlds import SECOND, Rank
from ompy.conformance.payloads import assert_same_bytes, payload
from ompy.conformance.pml.delivery import LARGE
from ompy.conformance.pml.pml_suite import PmlSuite, PmlWorlds
from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.frameworks.pml import Pml, PmlWrapper

SOON: Final = SECOND // 10  # ns; arbitrary: ten thousand times a message's way
TAG: Final = 5  # arbitrary


class WrappingSuite(PmlSuite):
    """Of components that wrap another PML."""

    title: ClassVar[str] = "wrapping"

    @pytest.fixture
    def wrapped(self, worlds: PmlWorlds) -> PmlWorlds:
        """The worlds of a wrapper."""
        if not worlds.wraps:
            pytest.skip("capability off: wrapper")
        return worlds

    @pytest.mark.parametrize("without", [(0,), (1,), (0, 2)])
    def test_ranks_without_it(self, wrapped: PmlWorlds, without: tuple[int, ...]) -> None:
        """Ranks that have it and ranks that do not exchange messages."""

        def program(rank: Rank) -> None:
            comm = rank.comm
            for size in (3, LARGE):
                room = bytearray(size)
                request = comm.Irecv(room, ANY_SOURCE, ANY_TAG)
                comm.Send(payload(size, comm.rank), (comm.rank + 1) % comm.size, TAG)
                request.Wait()
                assert_same_bytes(
                    room, payload(size, (comm.rank - 1) % comm.size), f"a message of {size} bytes"
                )
            assert comm.allreduce(1) == comm.size

        wrapped.play(program, 3, without=without)

    def test_has_a_pml_inside(self, wrapped: PmlWorlds) -> None:
        """What `wrap` gives holds the PML that it was given, which the base class hands on to."""

        def program(rank: Rank) -> None:
            pml: Pml = rank.process.pml
            assert isinstance(pml, PmlWrapper), "derive it from ompy.frameworks.pml.PmlWrapper"
            assert rank.process.context.pml_name == "ob1", (
                "the name on the wire is the PML's inside"
            )

        wrapped.play(program, 2)

    def test_answers_of_the_pml_inside(self, wrapped: PmlWorlds) -> None:
        """What the PML inside says of messages nobody has asked for is said."""

        def program(rank: Rank) -> None:
            comm, pml = rank.comm, rank.process.pml
            if comm.rank == 0:
                comm.Send(b"left", 1, TAG)
                comm.Barrier()
                return
            comm.Probe(0, TAG)
            inside = rank.process.communicators[0]
            assert (0, TAG) in pml.unreceived(inside), (
                f"unreceived says {pml.unreceived(inside)}: hand it on to the PML inside"
            )
            assert pml.counted(), "counted says nothing: hand it on to the PML inside"
            comm.Recv(bytearray(4), 0, TAG)
            comm.Barrier()

        wrapped.play(program, 2)

    def test_messages_come_soon(self, wrapped: PmlWorlds) -> None:
        """A wrapper that holds messages back lets them go: a round trip takes no 100 ms."""

        def program(rank: Rank) -> None:
            comm = rank.comm
            began = rank.engine.now()
            room = bytearray(4)
            if comm.rank == 0:
                comm.Send(b"ping", 1, TAG)
                comm.Recv(room, 1, TAG)
                took = rank.engine.now() - began
                assert took < SOON, f"a round trip took {took / SECOND:g} s of virtual time"
            else:
                comm.Recv(room, 0, TAG)
                comm.Send(b"pong", 0, TAG)

        wrapped.play(program, 2)
