"""Jobs over what drives devices of each kind: whoever uses a device knows its contract best.

BTL openib drives verbs, BTL ofi a fabric, the conduits aries and gemini a gni device. BTL usnic,
which drives datagrams, is in `devices.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar, Final

import pytest

from ompy.conformance.mpi_worlds import MpiWorlds, Rank
from ompy.conformance.nic.nic_worlds import NicSuite, has_kind, nic_registry, played
from ompy.conformance.payloads import assert_same_bytes, payload
from ompy.conformance.registries import Settings
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.base import Nic, NicComponent
from ompy.frameworks.nic.fabric import FabricNic
from ompy.frameworks.nic.gni import GniNic
from ompy.frameworks.nic.verbs import VerbsNic
from ompy.gasnet import Gasnet
from ompy.mca.registry import Registry
from ompy.runtime.ranks.conduit_selection import select_conduit
from ompy.runtime.ranks.nic_selection import find_nics
from ompy.runtime.simulation.virtual_job import VirtualJob

SIZES: Final = (0, 1, 700, 100_001)  # bytes; arbitrary: tiny, one packet, a rendezvous
TURNS: Final = 3  # messages of a size to each neighbour; arbitrary
SEGMENT: Final = 65536  # bytes; arbitrary: some pages
GENERATIONS: Final = ("aries", "gemini")


class UserSuite(NicSuite):
    """What is built on devices other than those for datagrams."""

    title: ClassVar[str] = "users"

    @pytest.mark.parametrize("size", SIZES)
    def test_under_openib(self, available: NicComponent, settings: Settings, size: int) -> None:
        """Messages of a job over BTL openib."""
        need_kind(available, VerbsNic, "verbs")
        play_ring(available, {"btl": "self,openib", **settings}, size)

    @pytest.mark.parametrize("size", SIZES)
    def test_under_ofi(self, available: NicComponent, settings: Settings, size: int) -> None:
        """Messages of a job over BTL ofi."""
        need_kind(available, FabricNic, "fabric")
        told = {"btl": "self,ofi", "btl_ofi_nic": available.name, **settings}
        play_ring(available, told, size)

    @pytest.mark.parametrize("generation", GENERATIONS)
    def test_under_gasnet(
        self, available: NicComponent, settings: Settings, generation: str
    ) -> None:
        """Active messages, puts and gets of two ranks of a host, over a generation's conduit."""
        need_kind(available, GniNic, "gni")
        own = {"pshm": "false", "physmem_noprobe": "true"}
        told = {f"conduit_{generation}_{name}": value for name, value in own.items()}
        registry = nic_registry(available, {"conduit": generation, **told, **settings})
        job = VirtualJob(2, registry, bring_up=partial(_GasnetRank, registry))
        try:
            played(job, _exchange)
        finally:
            registry.close()


def need_kind(component: NicComponent, kind: type[Nic], name: str) -> None:
    """Skip the test where the component has no devices of a kind."""
    if not has_kind(component, kind):
        pytest.skip(f"capability off: {name}")


def play_ring(component: NicComponent, settings: Settings, size: int) -> None:
    """Ranks of three hosts send to the next one.

    Raises:
        AssertionError: something has not arrived, or the devices were not used.
    """

    def program(rank: Rank) -> None:
        comm = rank.comm
        for turn in range(TURNS):
            room, before = bytearray(size), (comm.rank - 1) % comm.size
            request = comm.Irecv(room, before, turn)
            comm.Send(payload(size, comm.rank, turn), (comm.rank + 1) % comm.size, turn)
            request.Wait()
            assert_same_bytes(room, payload(size, before, turn), f"message {turn} was altered")

    played_world = MpiWorlds(component, settings).play(program, 3, hosts=(0, 1, 2))
    assert played_world.used, "its devices were not used"


class _GasnetRank:
    """A rank that has GASNet and no MPI."""

    def __init__(self, registry: Registry, context: RankContext, _using: Registry) -> None:
        context.find_nics = partial(find_nics, registry, context)
        process: Any = SimpleNamespace(registry=registry, context=context)
        self.gasnet = Gasnet(lambda mode: select_conduit(process, mode))

    def finalize(self) -> None:
        """It has left."""


def _exchange(rank: _GasnetRank) -> None:
    gasnet, heard = rank.gasnet, list[int]()
    gasnet.init()
    gasnet.attach(_handlers(gasnet, heard), segment_size=SEGMENT)
    peer = 1 - gasnet.mynode()
    gasnet.am_request_medium(peer, 128, payload(300, peer))
    gasnet.block_until(lambda: heard == [300])
    for size in (8, 5000):
        gasnet.put(peer, 0, payload(size, peer))
        gasnet.barrier()
        own = bytes(gasnet.segment().memory[:size])
        assert_same_bytes(own, payload(size, gasnet.mynode()), "a put was altered")
        room = bytearray(size)
        gasnet.get(room, peer, 0)
        assert_same_bytes(room, payload(size, peer), "a get was altered")
        gasnet.barrier()
    gasnet.finish()


def _handlers(gasnet: Gasnet, heard: list[int]) -> list[Callable[..., None]]:
    def ask(token: Any, data: memoryview) -> None:
        assert_same_bytes(data, payload(300, gasnet.mynode()), "an active message was altered")
        gasnet.am_reply_short(token, 129, len(data))

    def answer(_token: Any, _data: memoryview, size: int) -> None:
        heard.append(size)

    return [ask, answer]
