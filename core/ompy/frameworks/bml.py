"""The BML contract: which BTL modules carry what to a peer (Open MPI's r2).

A peer's BML endpoint has three arrays. `eager` carries small messages: the modules with the
least latency. `send` carries fragments: all modules of the highest exclusivity. `rdma`
carries put and get. Each array is walked round-robin.

Source: reference openmpi.md 3.14.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from ompy.compiled import ccall, cclass
from ompy.frameworks.btl import BtlModule, Endpoint
from ompy.frameworks.proc import Proc
from ompy.mca.component import ApiVersion, Component

if TYPE_CHECKING:
    from ompy.frameworks.context import RankContext

# what users are shown of rails that break: nothing, all at the end, or each at once as well
DISPLAY_RAILS: Final = {"none": 0, "end": 1, "live": 2}
API: Final[ApiVersion] = (2, 0)  # reference openmpi.md 0.6: BML 2.0.0


@cclass
class Rail:
    """One module's endpoint to one peer, as the BML weighs it.

    Attributes:
        module: the BTL module.
        endpoint: its endpoint for the peer.
        weight: share of the array's bandwidth, 0 to 1.
        immediate: the module can take header and payload at once (it has a `sendi`).
    """

    endpoint: Endpoint
    immediate: bool
    module: BtlModule
    weight: float
    __slots__ = tuple(__annotations__)

    def __init__(self, module: BtlModule, endpoint: Endpoint) -> None:
        self.module = module
        self.endpoint = endpoint
        self.weight = 0.0
        # by name: compiled, `BtlModule.sendi` would be a C function and never the same object
        inherited = vars(BtlModule)["sendi"]
        self.immediate = getattr(type(module), "sendi", inherited) is not inherited


@cclass
class RailArray:
    """Rails in order of preference, walked round-robin.

    Attributes:
        rails: the rails.
    """

    _next: int
    rails: list[Rail]
    __slots__ = tuple(__annotations__)

    def __init__(self, rails: Sequence[Rail] = ()) -> None:
        self.rails = list(rails)
        self._next = 0

    @ccall
    def next(self) -> Rail:
        """The next rail in turn. The array is not empty."""
        rails = self.rails
        if len(rails) == 1:
            return rails[0]
        index = self._next
        if index >= len(rails):
            index = 0
        self._next = index + 1
        return rails[index]

    @ccall
    def give_back(self) -> None:
        """The rail that `next` has given was not used: it is the next again."""
        if self._next and len(self.rails) > 1:
            self._next -= 1

    @ccall
    def in_turn(self) -> list[Rail]:
        """All rails, from the next in turn on; the one behind it is the next then."""
        if len(self.rails) < 2:
            return list(self.rails)
        first = self.rails.index(self.next())
        return self.rails[first:] + self.rails[:first]


@cclass
class BmlEndpoint:
    """A peer as the PML sends to it.

    Attributes:
        proc: the peer.
        eager, send, rdma: the rails for small messages, for fragments, for put and get.
        send_limit: bytes from which RDMA is worth it: largest `min_rdma_pipeline_size`.
        max_send_size: least of the rails.
        pipeline_send_length: largest of the rails.
        flags: all flags of its rails together.
    """

    eager: RailArray
    flags: int
    max_send_size: int
    pipeline_send_length: int
    proc: Proc
    rdma: RailArray
    send: RailArray
    send_limit: int
    __slots__ = tuple(__annotations__)

    def __init__(self, proc: Proc) -> None:
        self.proc = proc
        self.eager = RailArray()
        self.send = RailArray()
        self.rdma = RailArray()
        self.send_limit = 0
        self.max_send_size = 0
        self.pipeline_send_length = 0
        self.flags = 0


class Bml:
    """Schedules over BTL modules. Called with the rank's lock held."""

    def endpoint(self, proc: Proc) -> BmlEndpoint:
        """The peer's endpoint, made on first use.

        Raises:
            MPIError: ERR_OTHER, when no module reaches the peer: who, and what was tried.
        """
        raise NotImplementedError

    def remove_rail(self, proc: Proc, module: BtlModule) -> None:
        """Use `module` no longer for `proc`; survivors of any latency take over."""
        raise NotImplementedError

    def add_rail(self, proc: Proc, module: BtlModule) -> None:
        """Use `module` for `proc` again."""
        raise NotImplementedError

    def stand_in(self, proc: Proc) -> bool:
        """Every rail to `proc` is lost: use modules of the next lower exclusivity as well.

        Returns:
            Whether there are any that reach it.
        """
        return False

    def finalize(self) -> None:
        """Finalize every module."""
        raise NotImplementedError


class BmlComponent(Component):
    """Base of BML components."""

    framework: ClassVar[str] = "bml"

    def init(self, context: RankContext) -> Bml:
        """The BML of one rank, over `context.btls`."""
        raise NotImplementedError


def has_spare(proc: Proc) -> bool:
    """Whether there is another path to a peer to go on over, when one breaks."""
    peer = proc.bml_endpoint
    return isinstance(peer, BmlEndpoint) and len(peer.send.rails) > 1
