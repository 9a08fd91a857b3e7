"""Devices: what the component offers, how they are opened and closed, a BTL over them."""

from __future__ import annotations

from typing import ClassVar, Final

import pytest

from ompy.conformance.kept_by_engine import kept_by_engine
from ompy.conformance.mpi_worlds import MpiWorlds, Rank
from ompy.conformance.nic.nic_worlds import DEPTH, MakeWorld, NicSuite, Station
from ompy.conformance.payloads import assert_same_bytes, payload
from ompy.conformance.registries import Settings
from ompy.frameworks.nic.base import LinkState, Nic, NicComponent, NicError
from ompy.frameworks.nic.datagram import Work
from ompy.runtime.ranks.nic_selection import find_nics

SIZES: Final = (0, 1, 700, 5000, 100_001)  # bytes; arbitrary: tiny, one packet, a few, many
FEW_BUFFERS: Final = 64  # arbitrary: usnic posts all its buffers at its start, by default many


class DeviceSuite(NicSuite):
    """Identity, life, leaks, and what is built on them."""

    title: ClassVar[str] = "devices"

    def test_kinds(self, component: NicComponent) -> None:
        """It says which interfaces its devices have."""
        assert component.kinds
        assert all(issubclass(kind, Nic) and kind is not Nic for kind in component.kinds), (
            "kinds: the classes that NICs are asked for by, such as DatagramNic"
        )

    def test_identity(self, datagrams: MakeWorld) -> None:
        """Each device has a name of its own, and is behind an interface of the rank."""

        def program(station: Station) -> None:
            interfaces = {one.name: one for one in station.context.network.interfaces()}
            names = [nic.identity.name for nic in station.nics]
            assert all(names)
            assert len(set(names)) == len(names), f"two devices have one name: {names}"
            for nic in station.nics:
                behind = interfaces[nic.identity.interface]
                assert nic.identity.address == behind.address
            nic = station.nic
            assert nic.link is LinkState.UP
            assert 0 < nic.max_message <= nic.mtu
            assert nic.depth_max >= DEPTH
            assert nic.domain() is nic.domain(), "a process has one share of a device"
            assert 0 <= station.pair.inline_max <= station.pair.max_message

        datagrams().play(program, 2)

    def test_life(self, datagrams: MakeWorld, component: NicComponent) -> None:
        """Devices come closed, can be opened and closed again, and closing twice is harmless."""

        def program(station: Station) -> None:
            context = station.context
            (other, *_) = find_nics(station.registry, context, type(station.nic), component.name)
            assert other is not station.nic, "each call gives devices of its own"
            with pytest.raises(NicError):
                other.domain()
            for _ in range(2):
                other.open()
                queue = other.domain().completion_queue(2)
                pair = other.domain().queue_pair(queue, 1, 1, other.max_message)
                assert pair.address != station.pair.address
                other.close()
                other.close()

        datagrams().play(program, 1)

    def test_leaks(self, datagrams: MakeWorld) -> None:
        """A device that is closed leaves no socket, no poller and no timer."""

        def program(station: Station) -> None:
            station.post_buffers()
            station.meet()
            target = 1 - station.context.rank
            for number in range(4):
                station.send(target, payload(8, number), number)
            station.wait(lambda: len(station.of_kind(Work.SEND)) == 4, "the sends")
            station.meet()
            station.engine.remove_poller(station)
            station.registration.close()
            station.nic.close()
            assert not station.wire.sources, f"open: {list(station.wire.sources.values())}"
            assert not station.wire.watches, "a readiness set is still open"
            left = kept_by_engine(station.engine)
            assert left == (0, 0), f"pollers and timers that are left: {left}"

        datagrams().play(program)

    def test_same_seed_same_run(self, datagrams: MakeWorld, seed: int) -> None:
        """What it does depends on the seed alone: also what it loses."""

        def program(station: Station) -> list[str]:
            station.post_buffers()
            station.meet()
            for number in range(DEPTH):
                if station.context.rank == 0:
                    station.send(1, payload(9, number), number, slot=number)
                station.pass_time(5000)
            station.meet()
            return [f"{station.engine.now()} {one}" for one in station.done]

        first, second = (datagrams().play(program, seed=seed)[0] for _ in range(2))
        assert first == second, f"seed {seed}: two runs differ"

    @pytest.mark.parametrize("size", SIZES)
    def test_under_a_btl(
        self, datagrams: MakeWorld, component: NicComponent, settings: Settings, size: int
    ) -> None:
        """Messages of a job over BTL usnic, which is reliable over whatever the device loses."""
        name = component.name
        told = {"btl": "self,usnic", "btl_usnic_nic": name, "btl_usnic_rd_num": FEW_BUFFERS}
        told |= {"btl_usnic_prio_rd_num": FEW_BUFFERS}

        def program(rank: Rank) -> None:
            comm = rank.comm
            for turn in range(5):
                room, before = bytearray(size), (comm.rank - 1) % comm.size
                request = comm.Irecv(room, before, turn)
                comm.Send(payload(size, comm.rank, turn), (comm.rank + 1) % comm.size, turn)
                request.Wait()
                assert_same_bytes(room, payload(size, before, turn), f"message {turn} was altered")

        worlds = MpiWorlds(component, {**settings, **told})
        assert worlds.play(program, 3, hosts=(0, 1, 2)).used, "usnic has not used its devices"
