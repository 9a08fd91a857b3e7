"""Small virtual worlds of ranks that have a conduit `gemini` or `aries`, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from ompy.frameworks.conduit import HANDLERS, Category, Handler, ThreadMode, Token
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.base import interfaces_for
from ompy.frameworks.nic.gni import GniNic
from ompy.mca.registry import Registry
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.simulation.virtual_job import VirtualJob
from ompy_components.conduit.gni.attaching import find_nic
from ompy_components.conduit.gni.component import ARIES, GEMINI
from ompy_components.conduit.gni.conduit import GniConduit
from ompy_components.conduit.gni.mailboxes import MailboxTransport
from ompy_components.nic.gni.component import GniComponent
from ompy_components.nic.gni.device import GniDevice
from ompy_components.nic.gni.generations import GENERATIONS

from tests.support.gni_job import fabrics
from tests.support.small_worlds import values_of
from tests.support.worlds import registry

EMPTY = memoryview(b"")
SECOND = 1_000_000_000  # ns
MOMENT = 20_000
SEGMENT = 1 << 16


class ConduitRank:
    """One rank: its conduit, attached, and what a test does with it.

    Attributes:
        conduit: of the rank.
        handlers: by index; a test sets those from 128 on before it begins.
    """

    def __init__(self, context: RankContext, conduit: GniConduit, world: _World) -> None:
        self.context = context
        self.conduit = conduit
        self.world = world
        self.rank, self.size = context.rank, context.size
        self.handlers: list[Handler | None] = [None] * HANDLERS
        self.exited: list[int] = []
        self.rounds = 0

    @property
    def messages(self) -> Any:
        return self.conduit._messages

    @property
    def peers(self) -> list[int]:
        return [rank for rank in range(self.size) if rank != self.rank]

    def attach(self, handlers: Mapping[int, Handler] = {}, size: int = SEGMENT) -> None:
        for index, handler in handlers.items():
            self.handlers[index] = handler
        self.conduit.attach(self.handlers, size)

    def short(self, node: int, handler: int, *arguments: int) -> None:
        self.conduit.request(Category.SHORT, node, handler, arguments, EMPTY, 0)

    def medium(self, node: int, handler: int, data: bytes, *arguments: int) -> None:
        self.conduit.request(Category.MEDIUM, node, handler, arguments, memoryview(data), 0)

    def long(
        self, node: int, handler: int, data: Any, offset: int, *arguments: int, late: bool = False
    ) -> None:
        category = Category.LONG_ASYNC if late else Category.LONG
        self.conduit.request(category, node, handler, arguments, memoryview(data), offset)

    def reply(self, token: Token, handler: int, data: bytes = b"", *arguments: int) -> None:
        category = Category.MEDIUM if data else Category.SHORT
        self.conduit.reply(category, token, handler, arguments, memoryview(data), 0)

    def wait(self, ready: Callable[[], bool]) -> None:
        assert self.context.engine.wait_until(ready, 600 * SECOND), "it does not happen"

    def fence(self) -> None:
        """All ranks have come here, polling."""
        self.rounds += 1
        came = self.world.came
        came[self.rounds] = came.get(self.rounds, 0) + 1
        while came[self.rounds] < self.size:
            self.context.engine.wait_until(lambda: False, MOMENT)

    def settle(self) -> None:
        """All ranks have come here, and no credit is missing."""
        self.fence()
        looks = 0
        while self.missing():  # a peer that banks one wakes nobody
            self.context.engine.wait_until(lambda: False, MOMENT)
            looks += 1
            assert looks < 10_000, "a credit is lost"
        self.fence()

    def missing(self) -> int:
        """Credits of this rank that are neither here nor in a peer's bank."""
        outstanding = self.messages.credits.outstanding()
        first = [other.conduit._transports[0] for other in self.world.ranks]
        owners = [transport for transport in first if isinstance(transport, MailboxTransport)]
        return outstanding - sum(transport.banked(self.rank) for transport in owners)

    def finalize(self) -> None:
        self.fence()
        if not self.exited:
            self.conduit.exit(0)


@cache
def _registry() -> Registry:
    """One for all worlds: no component is opened."""
    return registry()


class _World:
    def __init__(self) -> None:
        self.came: dict[int, int] = {}
        self.ranks: list[ConduitRank] = []


def conduit_world(
    programs: Sequence[Callable[[ConduitRank], Any]] | Callable[[ConduitRank], Any],
    *,
    ranks: int = 2,
    name: str = "gemini",
    seed: int = 0,
    hosts: Sequence[int] | None = None,
    mode: ThreadMode = ThreadMode.SEQ,
    nic: Mapping[str, object] = {},
    rails: Sequence[Rail] = (Rail("rail0"),),
    **settings: object,
) -> list[Any]:
    """Run one program per rank of a host, over the NIC alone; past it where `messages` is pshm."""
    component = {"gemini": GEMINI, "aries": ARIES}[name]
    shared = settings.get("messages") == "pshm"
    if shared:
        del settings["messages"]
        settings["pshm_network_depth"] = settings.get("networkdepth", 12)
    settings = {"pshm": shared, "physmem_noprobe": True} | settings
    values = values_of(component, **settings)
    nic_values = values_of(GniComponent, **nic)
    world = _World()

    def bring_up(context: RankContext, _: object) -> ConduitRank:
        devices = [GniDevice(context, kind, nic_values) for kind in GENERATIONS]
        between_hosts = fabrics(context, interfaces_for(context))

        def find(kind: type, name: str = "") -> Any:
            return devices if kind is GniNic else between_hosts(kind, name)

        context.find_nics = find
        device = find_nic(context, name)
        rank = ConduitRank(context, GniConduit(name, context, mode, device, values), world)
        rank.conduit.on_exit = rank.exited.append
        world.ranks.append(rank)
        return rank

    each = list(programs) if isinstance(programs, Sequence) else [programs] * ranks
    job = VirtualJob(len(each), _registry(), seed=seed, hosts=hosts, rails=rails, bring_up=bring_up)
    return job.run(each)
