"""A peer as an ofi module reaches it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ompy.compiled import U64, ccall, cclass
from ompy.frameworks.btl import Endpoint
from ompy.frameworks.proc import Proc

from ompy_components.btl.ofi.headers import receiver_of
from ompy_components.btl.ofi.window import Window

if TYPE_CHECKING:
    from ompy.frameworks.btl import BtlModule
    from ompy.frameworks.paths.path_keeper import KeptPath

    from ompy_components.btl.ofi.modex import PeerRecord
    from ompy_components.btl.ofi.work_records import OfiFragment, Operation


@cclass
class OfiEndpoint(Endpoint):
    """One path.

    Attributes:
        record: the peer's module, as it was published.
        place: names that module, for the seal.
        address: in the vector.
        window: of the generation that is, or was last.
        generation: of the path, as the wire has it.
        path: where it is in its life.
        broken: why nothing can be sent now; empty while it can.
        bye_number: number of the peer's BYE, 0 while it has not said it.
        parted: we have said ours.
        posted: messages the device has, in the order they were posted.
        kept: fragments the peer has not acknowledged, in order; empty where nobody wants to know.
        operations: puts, gets and atomics under way.
        abandon_at: when what the device still has of a broken path is given up, ns.
        reached: a put, get or atomic was made: the peer may have a connection for it.
        refused: the provider had no room for a message, or no connection.
        heard: messages and completions that showed that the path works.
        lacking: what was taken when a fragment was first known to be missing, and 1; 0: none is.
        lacking_since: when that was, ns.
    """

    abandon_at: int
    address: U64
    broken: str
    bye_number: int
    generation: int
    heard: int
    kept: deque[OfiFragment]
    lacking: int
    lacking_since: int
    operations: dict[Operation, None]
    parted: bool
    path: KeptPath
    place: U64
    posted: dict[OfiFragment, None]
    reached: bool
    record: PeerRecord
    refused: bool
    window: Window
    __slots__ = tuple(__annotations__)

    def __init__(
        self, module: BtlModule, proc: Proc, index: int, record: PeerRecord, address: int
    ) -> None:
        """The path to the `index`th module of a peer."""
        super().__init__(module, proc)
        self.place = receiver_of(proc.rank, index)
        self.record = record
        self.address = address
        self.window = Window(record.window)
        self.generation = 1
        self.path: KeptPath  # of the module, which makes both
        self.broken = ""
        self.bye_number = 0
        self.parted = self.reached = self.refused = False
        self.posted = {}
        self.kept = deque()
        self.operations = {}
        self.abandon_at = 0
        self.heard = 0
        self.lacking = self.lacking_since = 0

    @ccall
    def describe(self) -> str:
        """The path, for people."""
        return f"ofi {self.record.provider} {self.record.address}".rstrip()

    @ccall
    def usable(self) -> bool:
        """Something can be sent."""
        return not self.broken and not self.proc.departed

    @ccall
    def left(self) -> bool:
        """The peer has said BYE, and everything it sent before that is here."""
        return bool(self.bye_number) and self.window.taken == self.bye_number

    def talked(self) -> bool:
        """A connection that closes without BYE would be a broken path to the peer."""
        return self.reached or bool(self.window.sent or self.window.taken)

    @ccall
    def busy(self) -> bool:
        """Something is to be completed."""
        return bool(self.posted or self.kept or self.operations)

    def stop(self, reason: str, abandon_at: int) -> None:
        """Nothing can be sent, and what the device has is given up then; ns."""
        self.broken = self.broken or reason
        self.abandon_at = abandon_at

    def part(self, said: bool) -> None:
        """Our BYE went, or did not."""
        self.parted = said

    def mended(self) -> None:
        """Something can be sent again."""
        self.broken = ""

    @ccall
    def admits(self, generation: int) -> bool:
        """Whether a message belongs to the generation that the path is in.

        A peer that sends in one that is being opened here knows of it: its word was overtaken.
        """
        if generation != self.generation:
            return False
        self.path.data()
        return not self.broken

    def is_late(self, now: int, patience: int) -> bool:
        """A fragment is missing: whether the same one has been for so long, in ns."""
        lacking = self.window.taken + 1
        if lacking != self.lacking:
            self.lacking, self.lacking_since = lacking, now
        return now - self.lacking_since >= patience

    def no_room(self, *, refused: bool) -> None:
        """The provider had no room for a message, or no connection; or that is over."""
        self.refused = refused

    def renew(self, generation: int) -> None:
        """A new generation of the path begins."""
        self.generation = generation
        self.window = Window(self.record.window)
        self.refused = False
        self.lacking = 0
