"""The io contract: one file that the members of a communicator have opened together.

A component is asked for a module when a file is opened, by all its members together and in the
order of priority (`IoComponent.query`).

**The MPI floor** checks arguments, keeps pointers, etypes and the shared pointer, and converts
representations. A component sees positions in views (`io_base/view.py`) and bytes (`Convertor`).

**Local calls** (`read`, `write`, `size`) block until the bytes are moved. They come without the
rank's lock, from any thread.

**Collective calls** are schedules (`collectives/schedule.py`) in a communicator of the file's own,
so that they serve blocking, nonblocking and split calls. A schedule does not raise what the disk
says: it goes on to its end, as other members wait for it, and gives it as the `Outcome`, which the
members agree on. What a component has of its own is `schedule_read` and `schedule_write`; here they
are local calls of all members, with an agreement at the end.

**Gaps** between the bytes that a rank sees are never written, not even with what was there: others
may have written them since.

Source: MPI 4.1 chapter 14; Open MPI's framework of the same name.
"""

from __future__ import annotations

from collections.abc import Generator
from struct import Struct
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from ompy.data.convertor import Convertor
from ompy.data.errors import ERR_IO, MPIError
from ompy.data.message import Message
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Schedule
from ompy.frameworks.collectives.values import tell_all
from ompy.mca.component import ApiVersion, Component

if TYPE_CHECKING:
    from ompy.frameworks.communicator import Communicator
    from ompy.frameworks.io_base.view import FileView

API: Final[ApiVersion] = (3, 0)  # ours; Open MPI 5: MCA_IO_BASE_VERSION_3_0_0
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


class IoModule:
    """One open file.

    Attributes:
        opening: what it was opened with.
        communicator: of its own.
        view: of this rank.
        views: of all members, by rank.
        atomic: what one rank writes in a call is seen by others whole or not at all.
    """

    def __init__(self, opening: Opening) -> None:
        from ompy.frameworks.io_base.view import WHOLE_FILE

        self.opening = opening
        self.communicator = opening.communicator
        self.view: FileView = WHOLE_FILE
        self.views = [WHOLE_FILE] * self.communicator.size
        self.atomic = False

    # --- of this rank

    def open(self, *, create: bool, exclusive: bool) -> None:
        """Open it at this rank.

        Raises:
            MPIError: it cannot be.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Close it at this rank; called once, also when another member could not open it."""
        raise NotImplementedError

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

    def refresh(self) -> None:
        """All members have flushed: what they wrote can be read from now on."""

    def read(self, access: Access) -> int:
        """Read through this rank's view.

        Returns:
            Bytes read; fewer than asked for where the file ends.
        """
        raise NotImplementedError

    def write(self, access: Access) -> None:
        """Write through this rank's view."""
        raise NotImplementedError

    def hints(self) -> dict[str, str]:
        """The hints that are in use, with their values."""
        return {}

    # --- of all members

    def schedule_open(self, exchange: Exchange, outcome: Outcome) -> Schedule:
        """Open it: the first rank makes it, the others find it there."""
        opening = self.opening
        first = exchange.rank == 0
        if first:
            _attempt(outcome, self.open, create=opening.create, exclusive=opening.exclusive)
        yield from agree(exchange, outcome)
        if outcome.problem is not None:
            return
        if not first:
            _attempt(outcome, self.open, create=False, exclusive=False)
        yield from agree(exchange, outcome)

    def schedule_close(self, exchange: Exchange, outcome: Outcome) -> Schedule:
        """Close it, and remove it if that was asked for."""
        _attempt(outcome, self.close)
        yield from agree(exchange, outcome)
        if self.opening.delete:
            from ompy.net.storage import remove_file

            problem = outcome.problem
            if exchange.rank == 0:
                _attempt(outcome, remove_file, self.opening.path)
            yield from agree(exchange, outcome)
            outcome.problem = problem or outcome.problem

    def schedule_view(self, exchange: Exchange, outcome: Outcome, view: FileView) -> Schedule:
        """Have another view at each rank; all learn of all."""
        from ompy.frameworks.io_base.view import FileView

        self.view = view
        told = yield from tell_all(exchange, view.to_bytes())
        self.views = [FileView.from_bytes(each) for each in told]
        self.views[exchange.rank] = view

    def schedule_resize(self, exchange: Exchange, outcome: Outcome, size: int) -> Schedule:
        """Cut it off, or have zeros at its end."""
        if exchange.rank == 0:
            _attempt(outcome, self.resize, size)
        yield from agree(exchange, outcome)

    def schedule_allocate(self, exchange: Exchange, outcome: Outcome, size: int) -> Schedule:
        """Have room for its first `size` bytes."""
        if exchange.rank == 0:
            _attempt(outcome, self.allocate, size)
        yield from agree(exchange, outcome)

    def schedule_flush(self, exchange: Exchange, outcome: Outcome) -> Schedule:
        """Have what all wrote on the device."""
        if self.opening.writes:
            _attempt(outcome, self.flush)
        yield from agree(exchange, outcome)
        self.refresh()

    def schedule_read(self, exchange: Exchange, outcome: Outcome, access: Access) -> Schedule:
        """Read, all members together."""
        read = _attempt(outcome, self.read, access)
        outcome.size = read or 0
        yield from agree(exchange, outcome)

    def schedule_write(self, exchange: Exchange, outcome: Outcome, access: Access) -> Schedule:
        """Write, all members together."""
        _attempt(outcome, self.write, access)
        outcome.size = access.convertor.size
        yield from agree(exchange, outcome)


class IoComponent(Component):
    """Base of io components."""

    framework: ClassVar[str] = "io"

    def query(self, opening: Opening) -> IoModule | None:
        """A module for a file that is to be opened, or None when this is none for it.

        All members call it together, and have to come to the same answer.
        """
        raise NotImplementedError


def _attempt(outcome: Outcome, call: Any, *arguments: Any, **named: Any) -> Any:
    """Call something; what it raises is the outcome."""
    try:
        return call(*arguments, **named)
    except MPIError as problem:
        outcome.problem = problem
    except MemoryError as problem:
        outcome.problem = MPIError(ERR_IO, f"out of memory: {problem}")
    return None


def agree(exchange: Exchange, outcome: Outcome) -> Generator[None, None, None]:
    """Steps of a schedule: all members have the first one's problem, by rank, as their outcome."""
    said = b""
    mine = outcome.problem
    if mine is not None:
        said = _CODE.pack(mine.code) + mine.detail.encode(errors="replace")
    told = yield from tell_all(exchange, said)
    for rank, each in enumerate(told):
        if each and rank != exchange.rank:
            detail = f"{each[_CODE.size :].decode(errors='replace')} (at rank {rank})"
            outcome.problem = MPIError(_CODE.unpack_from(each)[0], detail)
        if each:
            return
