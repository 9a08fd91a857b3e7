"""The io contract: one file that the members of a communicator have opened together.

A component is asked for a module when a file is opened, by all its members together and in the
order of priority (`IoComponent.query`).

**The MPI floor** checks arguments, keeps pointers, etypes and the shared pointer, and converts
representations. A component sees positions in views (`io_base/view.py`) and bytes (`Convertor`).

**Local calls** block until the bytes are moved, or what else is asked is done. They come without
the rank's lock, from any thread. Where all members make a call together, the MPI floor has each
make its local part, or the first rank alone, and has them agree on what a disk says: the first
problem by rank is everybody's.

**Collective accesses** are the module's own, where a rank does not move its part by itself anyway
(`moves_alone`): schedules (`collectives/schedule.py`) in a communicator of the file's own, so that
they serve blocking, nonblocking and split calls. A schedule does not raise what the disk says: it
goes on to its end, as other members wait for it, and gives it as the `Outcome`, which the members
agree on.

**Gaps** between the bytes that a rank sees are never written, not even with what was there: others
may have written them since.

Source: MPI 4.1 chapter 14; Open MPI's framework of the same name.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from struct import Struct
from typing import Any, ClassVar, Final, NamedTuple

from ompy.compiled import ccall, cclass
from ompy.data.convertor import Convertor
from ompy.data.errors import ERR_IO, MPIError
from ompy.data.message import Message
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Schedule
from ompy.frameworks.collectives.values import tell_all
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.io_base.view import WHOLE_FILE, FileView
from ompy.mca.component import ApiVersion, Component

# ours; Open MPI 5: MCA_IO_BASE_VERSION_3_0_0. 4.0 leaves to the MPI floor what all members do alike
API: Final[ApiVersion] = (4, 0)
_CODE: Final = Struct("<i")


class Opening(NamedTuple):
    """What a file is opened with.

    Attributes:
        communicator: of its own: no other messages are in it.
        path: of the file.
        reads, writes: what it is opened for.
        create: make it if it is not there.
        exclusive: an error if it is there.
        delete: remove it when all have closed it.
        permissions: of a new file.
        hints: of the user's info.
    """

    communicator: Communicator
    path: str
    reads: bool
    writes: bool
    create: bool
    exclusive: bool
    delete: bool
    permissions: int
    hints: dict[str, str]


class Access(NamedTuple):
    """What a rank reads or writes in one call.

    Attributes:
        begin: position in the rank's view.
        convertor: the bytes; its size is how many.
        message: where these are in memory, for those that can use more than one piece at a time;
            None where they are made on the way.
    """

    begin: int
    convertor: Convertor
    message: Message | None = None


class Outcome:
    """What has become of a collective call.

    Attributes:
        size: bytes that this rank has read or written.
        problem: the first member's by rank, the same at all members; None when all went well.
    """

    __slots__ = ("problem", "size")

    def __init__(self) -> None:
        self.size = 0
        self.problem: MPIError | None = None


@cclass
class IoModule:
    """One open file.

    Attributes:
        opening: what it was opened with.
        communicator: of its own.
        view: of this rank.
        atomic: what one rank writes in a call is seen by others whole or not at all.
    """

    atomic: bool
    communicator: Communicator
    opening: Any
    view: FileView
    __slots__ = (*__annotations__, "__dict__")

    def __init__(self, opening: Opening) -> None:
        self.opening = opening
        self.communicator = opening.communicator
        self.view: FileView = WHOLE_FILE
        self.atomic = False

    # --- of this rank

    def open(self, *, create: bool, exclusive: bool) -> None:
        """Open it at this rank: the first one makes it, the others find it there.

        Raises:
            MPIError: it cannot be.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Close it at this rank; called once, also when another member could not open it."""
        raise NotImplementedError

    @ccall
    def size(self) -> int:
        """Bytes in the file."""
        raise NotImplementedError

    def resize(self, size: int) -> None:
        """Cut it off, or have zeros at its end; the first rank is asked."""
        raise NotImplementedError

    def allocate(self, size: int) -> None:
        """Have room for its first `size` bytes; the first rank is asked."""
        raise NotImplementedError

    def flush(self) -> None:
        """Have what this rank wrote on the device."""
        raise NotImplementedError

    def flushes_for_host(self) -> bool:
        """Whether a flush of one member stores what all of its host wrote, and all see that."""
        return False

    def refresh(self) -> None:
        """All members have flushed: what they wrote can be read from now on."""

    @ccall
    def set_view(self, view: FileView) -> None:
        """Have another view at this rank; all members have one, or what they had, together."""
        self.view = view

    @ccall
    def read_piece(self, memory: memoryview, at: int) -> int:
        """Read what lies side by side, whatever the view is; not for atomic mode.

        Args:
            memory: writable bytes.
            at: first byte in the file.

        Returns:
            Bytes read; fewer than there is room for where the file ends.
        """
        raise NotImplementedError

    @ccall
    def write_piece(self, memory: memoryview, at: int) -> None:
        """Write so. The arguments are as above."""
        raise NotImplementedError

    @ccall
    def read(self, access: Access) -> int:
        """Read through this rank's view.

        Returns:
            Bytes read; fewer than asked for where the file ends.
        """
        raise NotImplementedError

    @ccall
    def write(self, access: Access) -> None:
        """Write through this rank's view."""
        raise NotImplementedError

    def hints(self) -> dict[str, str]:
        """The hints that are in use, with their values."""
        return {}

    # --- of all members

    def say_hints(self) -> bytes:
        """What the members have to have alike of their hints; nothing where nobody gave any."""
        return b""

    def take_hints(self, said: bytes) -> None:
        """Have what the first member says in place of this rank's own."""

    @ccall
    def moves_alone(self, position: int, size: int, writes: bool) -> bool:
        """Whether this rank moves its part of a collective access by itself, whatever others do.

        Args:
            position: in this rank's view, where its part begins.
            size: bytes.
            writes: into the file.
        """
        return True

    def schedule_access(
        self, exchange: Exchange, outcome: Outcome, access: Access, *, writes: bool, moved: bool
    ) -> Schedule:
        """A collective access; a part that has been moved has its outcome.

        Args:
            exchange: the call's messages.
            outcome: of the call.
            access: this rank's part.
            writes: into the file.
            moved: this rank has moved it by itself.
        """
        if not moved:
            move_alone(self, outcome, access, writes=writes)
        yield from agree(exchange, outcome)


class IoComponent(Component):
    """Base of io components."""

    framework: ClassVar[str] = "io"

    def query(self, opening: Opening) -> IoModule | None:
        """A module for a file that is to be opened, or None when this is none for it.

        All members call it together, and have to come to the same answer.
        """
        raise NotImplementedError


def attempt(outcome: Outcome, call: Any, *arguments: Any, **named: Any) -> Any:
    """Call something; what it raises is the outcome."""
    try:
        return call(*arguments, **named)
    except MPIError as problem:
        outcome.problem = problem
    except MemoryError as problem:
        outcome.problem = MPIError(ERR_IO, f"out of memory: {problem}")
    return None


def move_alone(module: IoModule, outcome: Outcome, access: Access, *, writes: bool) -> None:
    """Have a rank's part moved by itself."""
    if writes:
        attempt(outcome, module.write, access)
        outcome.size = access.convertor.size
    else:
        outcome.size = attempt(outcome, module.read, access) or 0


def agree(exchange: Exchange, outcome: Outcome) -> Generator[None, None, None]:
    """Steps of a schedule: all members have the first one's problem, by rank, as their outcome."""
    told = yield from tell_all(exchange, problem_bytes(outcome.problem))
    hear_problems(exchange, outcome, told)


def problem_bytes(problem: MPIError | None) -> bytes:
    """What a rank says of its problem; nothing if it has none."""
    if problem is None:
        return b""
    return _CODE.pack(problem.code) + problem.detail.encode(errors="replace")


def hear_problems(exchange: Exchange, outcome: Outcome, told: Sequence[bytes]) -> None:
    """Have the first problem of those that the members tell, by rank, as the outcome."""
    for rank, each in enumerate(told):
        if each and rank != exchange.rank:
            detail = f"{each[_CODE.size :].decode(errors='replace')} (at rank {rank})"
            outcome.problem = MPIError(_CODE.unpack_from(each)[0], detail)
        if each:
            return
