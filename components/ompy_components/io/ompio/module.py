"""ompio's module: one open file, and each rank's own reads and writes in it."""

from __future__ import annotations

from itertools import pairwise
from struct import Struct
from typing import Any, Final

from ompy.compiled import ccall, cclass, cfunc
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Schedule
from ompy.frameworks.collectives.values import tell_all
from ompy.frameworks.io import (
    Access,
    IoModule,
    Opening,
    Outcome,
    agree,
    hear_problems,
    move_alone,
)
from ompy.frameworks.io_base.view import FileView
from ompy.mca.parameter import Values
from ompy.net.storage import StoredFile

from ompy_components.io.ompio.independent import is_dense, read_through, write_through
from ompy_components.io.ompio.plan import Plan, Settings, ranges_of
from ompy_components.io.ompio.two_phase import read_together, write_together

_AUTOMATIC: Final = "automatic"
_DISABLED: Final = "disable"
_ENABLED: Final = "enable"
_WRITE_HINT: Final = "romio_cb_write"
_READ_HINT: Final = "romio_cb_read"
_CHOICES: Final = (_AUTOMATIC, _DISABLED, _ENABLED)
_HINTS: Final = Struct("<4q2B")  # settings, and the choices for writing and reading


@cclass
class Ompio(IoModule):
    """One open file."""

    _few: int
    _sieved: int
    _file: StoredFile | None
    _said: dict[str, str] | None  # the hints, once somebody has asked
    _settings: Any
    _told_of_views: bool
    _uses: dict[str, str]
    _views: list[FileView]
    __slots__ = tuple(__annotations__)

    def __init__(self, opening: Opening, values: Values) -> None:
        super().__init__(opening)
        self._views = [self.view] * self.communicator.size  # of all members, by rank
        self._told_of_views = True
        self._few = values.few_runs
        one_host = len({proc.node for proc in self.communicator.procs}) == 1
        self._sieved = values.sieved_alone if one_host else -1
        self._file = None
        hints = opening.hints
        nodes = _number(hints.get("cb_nodes"))
        size = _number(hints.get("cb_buffer_size"))
        self._said = None
        self._settings = Settings(
            per_host=values.num_aggregators,
            most=nodes or self.communicator.size,
            buffer_size=size or values.bytes_per_agg,
            independent_from=values.independent_from,
        )
        self._uses = {name: _choice(hints.get(name)) for name in (_WRITE_HINT, _READ_HINT)}
        if hints.get("collective_buffering") == "false":
            self._uses = dict.fromkeys(self._uses, _DISABLED)

    @cfunc
    def _stored(self) -> StoredFile:
        """The file, while it is open."""
        file: StoredFile | None = self._file
        assert file is not None, "the file is open until it is closed"
        return file

    def open(self, *, create: bool, exclusive: bool) -> None:
        """Open it at this rank."""
        opening = self.opening
        self._file = StoredFile(
            self.communicator.context.network,
            opening.path,
            reads=opening.reads,
            writes=opening.writes,
            create=create,
            exclusive=exclusive,
            permissions=opening.permissions,
        )

    def close(self) -> None:
        """Close it."""
        if self._file is not None:
            self._file.close()

    @ccall
    def size(self) -> int:
        """Bytes in it."""
        return self._stored().size()

    def resize(self, size: int) -> None:
        """Cut it off, or have zeros at its end."""
        self._stored().resize(size)

    def allocate(self, size: int) -> None:
        """Have room for its first bytes."""
        self._stored().allocate_room(size)

    def flush(self) -> None:
        """Have what was written on the device."""
        self._stored().flush_writes()

    def flushes_for_host(self) -> bool:
        """Where the kernel of the host has the file system."""
        return self._stored().is_on_device()

    def refresh(self) -> None:
        """See what others have written."""
        self._stored().refresh()

    def hints(self) -> dict[str, str]:
        """The hints in use."""
        said = self._said
        if said is None:
            settings = self._settings
            said = self._said = {
                "cb_nodes": str(len(settings.aggregators(self.communicator))),
                "cb_buffer_size": str(settings.buffer_size),
                **self._uses,
            }
        return said

    def say_hints(self) -> bytes:
        """How collective accesses are done: plans would differ else."""
        uses = [_CHOICES.index(use) for use in self._uses.values()]
        return _HINTS.pack(*self._settings, *uses)

    def take_hints(self, said: bytes) -> None:
        """Do them as the first member."""
        *settings, write, read = _HINTS.unpack(said)
        self._said = None
        self._settings = Settings(*settings)
        self._uses = dict(zip(self._uses, (_CHOICES[write], _CHOICES[read]), strict=True))

    @ccall
    def set_view(self, view: FileView) -> None:
        """Have another view, which the others hear of when they need it."""
        self.view = view
        self._told_of_views = False

    @ccall
    def read_piece(self, memory: memoryview, at: int) -> int:
        """Read what lies side by side."""
        return self._stored().read_into(memory, at)

    @ccall
    def write_piece(self, memory: memoryview, at: int) -> None:
        """Write so."""
        self._stored().write_from(memory, at)

    @ccall
    def read(self, access: Access) -> int:
        """Read through this rank's view."""
        return read_through(self._stored(), self.view, access, atomic=self.atomic)

    @ccall
    def write(self, access: Access) -> None:
        """Write through this rank's view."""
        write_through(self._stored(), self.view, access, atomic=self.atomic)

    # --- of all members

    @ccall
    def moves_alone(self, position: int, size: int, writes: bool) -> bool:
        """Whether aggregators would bring this rank nothing: it has few runs, or long ones."""
        use = self._uses[_WRITE_HINT if writes else _READ_HINT]
        view = self.view
        if use != _AUTOMATIC:
            return use == _DISABLED
        if view.contiguous or not view.ordered:
            return True
        runs = 1 + size // max(1, view.run)
        if runs <= self._few or size >= runs * self._settings.independent_from:
            return True
        return not writes and self._sieves_alone(position, size)

    @cfunc
    def _sieves_alone(self, position: int, size: int) -> bool:
        """Whether reading all between this rank's first and last byte is less than asking others.

        The page cache of one host has it for all of them; a server would send it to each.
        """
        view = self.view
        if self._sieved < 0 or not is_dense(view):
            return False
        span = view.byte_at(position + size - 1) + 1 - view.byte_at(position)
        return span <= max(self._sieved, 2 * size)

    def schedule_access(
        self, exchange: Exchange, outcome: Outcome, access: Access, *, writes: bool, moved: bool
    ) -> Schedule:
        """Move the rest, through aggregators where what the ranks access is interleaved."""
        ranges, told = yield from ranges_of(exchange, outcome, access, moved=moved)
        if ranges is None:
            hear_problems(exchange, outcome, told)
            return
        if not self._told_of_views:
            views = yield from tell_all(exchange, self.view.to_bytes())
            self._views = [FileView.from_bytes(each) for each in views]
            self._views[exchange.rank] = self.view
            self._told_of_views = True
        if self._is_shared(ranges, _WRITE_HINT if writes else _READ_HINT):
            plan = Plan(self.communicator, self._views, ranges, self._settings)
            together = write_together if writes else read_together
            yield from together(exchange, outcome, plan, self._stored(), access)
            return
        if not moved:
            move_alone(self, outcome, access, writes=writes)
        yield from agree(exchange, outcome)

    def _is_shared(self, ranges: list[tuple[int, int]], hint: str) -> bool:
        """Whether the access goes through aggregators; all members come to the same answer."""
        use = self._uses[hint]
        busy = [rank for rank, (begin, end) in enumerate(ranges) if end > begin]
        if use == _DISABLED or not busy or not all(self._views[rank].ordered for rank in busy):
            return False
        if use == _ENABLED:
            return True
        total = sum(end - begin for begin, end in ranges)
        runs = sum(
            1 + (end - begin) // max(1, self._views[rank].run)
            for rank, (begin, end) in enumerate(ranges)
            if end > begin and not self._views[rank].contiguous
        )
        if not runs or total >= runs * self._settings.independent_from:
            return False
        spans = sorted(
            (
                self._views[rank].byte_at(ranges[rank][0]),
                self._views[rank].byte_at(ranges[rank][1] - 1),
            )
            for rank in busy
        )
        return any(after[0] <= before[1] for before, after in pairwise(spans))


def _choice(text: str | None) -> str:
    """What a hint chooses; the automatic one when it says nothing that is known."""
    return text if text in _CHOICES else _AUTOMATIC


def _number(text: str | None) -> int:
    """A positive number that a hint says; 0 when it says none, as hints are never errors."""
    try:
        return max(0, int(text or 0))
    except ValueError:
        return 0
