"""The osc contract: one-sided communication in one window.

A component is asked for a module when a window is made, by all its members together and in the
order of priority. It is taken when all of them can (`OscComponent.query`).

**Arguments** are checked by the MPI floor: ranks exist, epochs allow what is asked for, places
begin at 0 or above, origin and target have the same number of bytes, operations are predefined
and defined for the elements; what is beyond a target's memory is refused there too, except in a
dynamic window, whose members alone know what they have attached.

**Operations** give a request, which completes when the origin's memory may be used again; those
that fetch something when it is there. The memory is not to be touched until then. They may block,
and progress while they do. What goes wrong later at a target without a request to tell it
surfaces at the next `flush`, `unlock`, `complete` or `fence`.

**Order.** Accumulating operations of one origin on one target take effect in the order of their
calls, and each element of them at once.

Calls come without the rank's lock, from any thread.

Source: MPI 4.0 chapter 12; Open MPI's framework of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from ompy.data.layout import Layout
from ompy.data.message import Message
from ompy.data.request import Request
from ompy.mca.component import ApiVersion, Component

if TYPE_CHECKING:
    from ompy.frameworks.call_site import Site
    from ompy.frameworks.communicator import Communicator
    from ompy.frameworks.osc_base.lent_parts import LentParts
    from ompy.frameworks.osc_base.target_messages import TargetMessages
    from ompy.frameworks.osc_base.word_locks import WordLocks
    from ompy.frameworks.osc_base.word_posts import WordPosts

API: Final[ApiVersion] = (3, 3)  # Open MPI 4.1: OSC 3.0.0; ours has `straight` and `held` besides

# kinds of windows; Open MPI mpi.h: MPI_WIN_FLAVOR_...
CREATED: Final = 1
ALLOCATED: Final = 2
DYNAMIC: Final = 3
SHARED: Final = 4


class Place(NamedTuple):
    """Where in a target's window.

    Attributes:
        displacement: bytes from the window's beginning to the origin of the first element; in a
            dynamic window an address.
        number: of elements.
        layout: of an element.
    """

    displacement: int
    number: int
    layout: Layout

    @property
    def size(self) -> int:
        """Packed bytes."""
        return self.number * self.layout.size


class Window:
    """A window as components see it.

    Attributes:
        communicator: of its own: no other messages are in it.
        flavor: CREATED, ALLOCATED, DYNAMIC or SHARED.
        sizes: bytes of each member's part; 0 in a dynamic window.
        memory: this rank's part; a module has it set where it is made for the window.
    """

    __slots__ = ("communicator", "flavor", "memory", "sizes")

    def __init__(
        self, communicator: Communicator, flavor: int, sizes: Sequence[int], memory: memoryview
    ) -> None:
        self.communicator = communicator
        self.flavor = flavor
        self.sizes = tuple(sizes)
        self.memory = memory


class Straight(NamedTuple):
    """What lets the calls of a window go without a call of its module.

    Attributes:
        parts: each member's, which all may load from and store into. A put, get or accumulate there
            is done when the bytes are copied or combined, under the lock for that.
        lent: what reaches the parts of others where they are not mapped; `parts` has this rank's.
        locks: of them. Who gives one back calls `wake_waiting` where somebody waits for it.
        posts: what members tell each other by `Post` and `Complete`. Who tells one that may be
            asleep calls `wake_sleepers`.
        barrier: of the members, which nobody is left alone in; or None.
        messages: what has members do small operations in their own memory, where `lent` reaches
            it; or None. What is asked for is complete at the end of an epoch, or when flushed.
    """

    parts: list[memoryview]
    lent: LentParts | None
    locks: WordLocks
    posts: WordPosts
    barrier: Callable[[], None] | None
    messages: TargetMessages | None


class Held(NamedTuple):
    """A lock that a rank has.

    Attributes:
        alone: nobody else has it.
        site: where it was called for: the code, and the place in it (`call_site.py`); or None.
    """

    alone: bool
    site: Site | None = None


class OscModule:
    """One-sided communication in one window.

    Attributes:
        window: which.
    """

    def __init__(self, window: Window) -> None:
        self.window = window

    # --- operations

    def watched(self, begun: Request, target: int) -> Request:
        """What a program is given as the request of an operation that has begun at a target."""
        del target
        return begun

    def put(self, source: Message, target: int, place: Place) -> Request:
        """Store data of this rank in a target's window."""
        raise NotImplementedError

    def get(self, into: Message, target: int, place: Place) -> Request:
        """Load data of a target's window."""
        raise NotImplementedError

    def accumulate(self, source: Message, target: int, place: Place, operation: str) -> Request:
        """Combine data of this rank into a target's window.

        Args:
            source: the data.
            target: rank.
            place: there.
            operation: `MPI_SUM` and so on, `MPI_REPLACE` among them.
        """
        raise NotImplementedError

    def fetch(
        self, source: Message | None, into: Message, target: int, place: Place, operation: str
    ) -> Request:
        """The same, and get what was there before; without a source for `MPI_NO_OP`."""
        raise NotImplementedError

    def swap(
        self, source: Message, compare: Message, into: Message, target: int, place: Place
    ) -> Request:
        """Store one element if what is there equals `compare`, and get what was there."""
        raise NotImplementedError

    # --- completion

    def flush(self, targets: Sequence[int]) -> None:
        """Return when all operations of this rank are complete at these targets.

        Raises:
            MPIError: one of them failed; or a target has ended.
        """
        raise NotImplementedError

    def flush_local(self, targets: Sequence[int]) -> None:
        """Return when all operations of this rank on these targets are complete here."""
        raise NotImplementedError

    def sync(self) -> None:
        """What others stored can be loaded, what was stored here can be seen by others."""

    # --- epochs

    def meet_to_end(self) -> None:
        """Collective: return when all members have called it, and nothing more comes from them.

        Raises as `fence` does.
        """
        raise NotImplementedError

    def fence(self) -> None:
        """Collective: return when all operations of all members are complete."""
        raise NotImplementedError

    def start(self, targets: Sequence[int]) -> None:
        """Begin to access these targets, as soon as they `post`."""
        raise NotImplementedError

    def complete(self, targets: Sequence[int]) -> None:
        """End what `start` has begun, with the same targets."""
        raise NotImplementedError

    def post(self, origins: Sequence[int]) -> None:
        """Expose the window to these origins."""
        raise NotImplementedError

    def wait(self, origins: Sequence[int]) -> None:
        """Return when all origins of the last `post` have called `complete`."""
        raise NotImplementedError

    def test(self, origins: Sequence[int]) -> bool:
        """Whether `wait` would return at once; it counts as called then."""
        raise NotImplementedError

    def lock(self, target: int, *, exclusive: bool) -> None:
        """Return when this rank has the lock of a target's window."""
        raise NotImplementedError

    def unlock(self, target: int) -> None:
        """Complete all operations there and give the lock back. Raises as `flush` does."""
        raise NotImplementedError

    def lock_all(self) -> None:
        """Have the shared lock of each target at the latest when it is accessed."""
        raise NotImplementedError

    def unlock_all(self) -> None:
        """Complete all operations everywhere and give the locks back."""
        raise NotImplementedError

    # --- memory

    def attach(self, address: int, memory: memoryview) -> None:
        """A piece of this rank's memory is in the dynamic window from now on.

        Raises:
            MPIError: ERR_RMA_ATTACH, some of it is already.
        """
        raise NotImplementedError

    def detach(self, address: int) -> None:
        """The piece that begins at an address is no longer."""
        raise NotImplementedError

    def shared(self, rank: int) -> memoryview | None:
        """A member's part, to load from and store into; None where it cannot be had."""
        return None

    def straight(self) -> Straight | None:
        """What lets calls go without a call of the module; None where they cannot."""
        return None

    def held(self) -> dict[int, Held]:
        """The locks of epochs that this rank surely has now, by target.

        For proofs that ranks never go on: what is being taken or given back need not be there.
        """
        return {}

    def queued(self) -> list[tuple[int, bool]]:
        """Who waits for this rank's own lock, in the order they get it, and whether alone."""
        return []

    def wake_waiting(self, target: int) -> None:
        """A lock of `straight` was given back: have those try again who wait for it.

        Args:
            target: whose; -1 for those of all.
        """

    def wake_sleepers(self, ranks: Sequence[int]) -> None:
        """Something was told by words of `straight`: have these members look who may be asleep."""

    def progress(self) -> None:
        """Let others get on: a call of `straight` does so now and then."""

    def leave(self) -> None:
        """This rank finalizes with the window still there: it holds no lock any more."""

    def close(self) -> None:
        """The window is freed, by all members: give everything back."""


class OscComponent(Component):
    """Base of osc components."""

    framework: ClassVar[str] = "osc"

    def query(self, window: Window) -> OscModule | None:
        """A module for a new window, or None when this is none for it.

        All members call it together. It may send messages in the window's communicator; if so, all
        of them have to come to the same answer.
        """
        raise NotImplementedError
