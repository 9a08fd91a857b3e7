"""What devices of every kind have in common: who they are, how they live, what they say unasked.

That is all that `ompy.frameworks.nic.base` promises. What goes through a device is a matter of its
kind: `datagrams.py` has that of one, `users.py` runs jobs over the others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

from ompy.conformance.kept_by_engine import kept_by_engine
from ompy.conformance.nic.nic_worlds import NicSuite, nic_registry, played
from ompy.conformance.registries import Settings
from ompy.conformance.watched_network import Wire
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.base import EventKind, LinkState, Nic, NicComponent
from ompy.mca.registry import Registry
from ompy.runtime.ranks.nic_selection import find_nics
from ompy.runtime.simulation.virtual_job import VirtualJob


class Bench:
    """One rank, with the devices of the component, none of them open.

    Attributes:
        context: the rank.
        wire: its network, which counts what is open.
        nics: the devices.
        find: gives the devices once more.
    """

    def __init__(self, component: NicComponent, context: RankContext, registry: Registry) -> None:
        self.context = context
        self.wire = Wire(context.network, context.engine)
        context.network = self.wire
        context.find_nics = partial(find_nics, registry, context)
        self.find: Callable[[], list[Nic]] = partial(
            find_nics, registry, context, Nic, component.name
        )
        self.nics = self.find()

    def finalize(self) -> None:
        """Close the devices, if the program has not."""
        for nic in self.nics:
            nic.close()
        self.wire.close()


class EveryKindSuite(NicSuite):
    """Of devices of any kind: identity, life, events."""

    title: ClassVar[str] = "every kind"

    def test_devices(self, available: NicComponent, settings: Settings) -> None:
        """They are of the component's kinds, come closed, and each call gives others."""

        def program(bench: Bench) -> None:
            nics, kinds = bench.nics, available.kinds
            assert nics, "a virtual host has an interface, and so it has a device"
            for nic in nics:
                assert isinstance(nic, kinds), f"{type(nic).__name__} is in none of its kinds"
                assert (nic.link, nic.gone, nic.events()) == (LinkState.UP, "", [])
            names = [nic.identity.name for nic in nics]
            assert all(names), "a device has no name"
            assert len(set(names)) == len(names), f"two devices have one name: {names}"
            others = bench.find()
            assert [nic.identity for nic in others] == [nic.identity for nic in nics]
            assert not set(map(id, nics)) & set(map(id, others)), "each call gives its own devices"

        play_bench(available, settings, program)

    def test_open_and_close(self, available: NicComponent, settings: Settings) -> None:
        """Closing is harmless the second time, and leaves no socket, no poller and no timer."""

        def program(bench: Bench) -> None:
            for nics in (bench.nics, bench.find()):
                for nic in nics:
                    nic.open()
                for nic in nics:
                    nic.close()
                    nic.close()
            assert not bench.wire.sources, f"open: {list(bench.wire.sources.values())}"
            assert not bench.wire.watches, "a readiness set is still open"
            left = kept_by_engine(bench.context.engine)
            assert left == (0, 0), f"pollers and timers that are left: {left}"

        play_bench(available, settings, program)

    def test_events(self, available: NicComponent, settings: Settings) -> None:
        """What happens is told once and in order, and who is gone stays gone."""

        def program(bench: Bench) -> None:
            nic = bench.nics[0]
            nic.open()
            for state in (LinkState.DOWN, LinkState.DOWN, LinkState.UP):
                nic.report_link(state, "as the kit says")
                assert nic.link is state
            assert nic.eventful
            assert [event.kind for event in nic.events()] == [
                EventKind.LINK_DOWN,
                EventKind.LINK_UP,
            ]
            assert (nic.eventful, nic.events()) == (False, [])
            nic.report_fatal("it burns")
            nic.report_fatal("it burns again")
            nic.report_link(LinkState.UP, "as the kit says")
            assert (nic.link, nic.gone) == (LinkState.DOWN, "it burns")
            assert [event.kind for event in nic.events()] == [EventKind.DEVICE_FATAL]

        play_bench(available, settings, program)


def play_bench(
    component: NicComponent, settings: Settings, program: Callable[[Bench], None]
) -> None:
    """Run a program on a rank that has a host of its own.

    Raises:
        AssertionError: it found something wrong.
    """
    registry = nic_registry(component, settings)
    job = VirtualJob(1, registry, bring_up=lambda context, using: Bench(component, context, using))
    try:
        played(job, program)
    finally:
        registry.close()
