"""ompio's module: one open file, and each rank's own reads and writes in it."""

from __future__ import annotations

from itertools import pairwise
from struct import Struct
from typing import Final

from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Schedule
from ompy.frameworks.collectives.values import tell_all
from ompy.frameworks.io import Access, IoModule, Opening, Outcome
from ompy.mca.parameter import Values
from ompy.net.storage import StoredFile

from ompy_components.io.ompio.independent import read_through, write_through
from ompy_components.io.ompio.plan import Plan, Settings, ranges_of
from ompy_components.io.ompio.two_phase import read_together, write_together

_AUTOMATIC: Final = "automatic"
_DISABLED: Final = "disable"
_ENABLED: Final = "enable"
_NAMES: Final = ("romio_cb_write", "romio_cb_read")
_CHOICES: Final = (_AUTOMATIC, _DISABLED, _ENABLED)
_SAID: Final = Struct("<4q2B")  # settings, and the choices for writing and reading


class Ompio(IoModule):
    """One open file."""

    def __init__(self, opening: Opening, values: Values) -> None:
        super().__init__(opening)
        self._file: StoredFile | None = None
        hints = opening.hints
        nodes = _number(hints.get("cb_nodes"))
        size = _number(hints.get("cb_buffer_size"))
        self._settings = Settings(
            per_host=values.num_aggregators,
            most=nodes or self.communicator.size,
            buffer_size=size or values.bytes_per_agg,
            independent_from=values.independent_from,
        )
        self._uses = {
            name: _choice(hints.get(name)) for name in ("romio_cb_write", "romio_cb_read")
        }
        if hints.get("collective_buffering") == "false":
            self._uses = dict.fromkeys(self._uses, _DISABLED)

    @property
    def file(self) -> StoredFile:
        """The file, while it is open."""
        assert self._file is not None, "the file is open until it is closed"
        return self._file

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

    def schedule_open(self, exchange: Exchange, outcome: Outcome) -> Schedule:
        """Open it; the first rank's hints are everybody's, or plans would differ."""
        yield from super().schedule_open(exchange, outcome)
        if outcome.problem is None and exchange.size > 1:
            uses = [_CHOICES.index(use) for use in self._uses.values()]
            told = yield from tell_all(exchange, _SAID.pack(*self._settings, *uses))
            *settings, write, read = _SAID.unpack(told[0])
            self._settings = Settings(*settings)
            self._uses = dict(zip(self._uses, (_CHOICES[write], _CHOICES[read]), strict=True))

    def close(self) -> None:
        """Close it."""
        if self._file is not None:
            self._file.close()

    def size(self) -> int:
        """Bytes in it."""
        return self.file.size()

    def resize(self, size: int) -> None:
        """Cut it off, or have zeros at its end."""
        self.file.resize(size)

    def allocate(self, size: int) -> None:
        """Have room for its first bytes."""
        self.file.allocate_room(size)

    def flush(self) -> None:
        """Have what was written on the device."""
        self.file.flush_writes()

    def refresh(self) -> None:
        """See what others have written."""
        self.file.refresh()

    def hints(self) -> dict[str, str]:
        """The hints in use."""
        settings = self._settings
        return {
            "cb_nodes": str(len(settings.aggregators(self.communicator))),
            "cb_buffer_size": str(settings.buffer_size),
            **self._uses,
        }

    def read(self, access: Access) -> int:
        """Read through this rank's view."""
        return read_through(self.file, self.view, access, atomic=self.atomic)

    def write(self, access: Access) -> None:
        """Write through this rank's view."""
        write_through(self.file, self.view, access, atomic=self.atomic)

    def schedule_read(self, exchange: Exchange, outcome: Outcome, access: Access) -> Schedule:
        """Read, through aggregators where what the ranks read is interleaved."""
        ranges = yield from ranges_of(exchange, access)
        if self._is_shared(ranges, "romio_cb_read"):
            plan = Plan(self.communicator, self.views, ranges, self._settings)
            yield from read_together(exchange, outcome, plan, self.file, access)
        else:
            yield from super().schedule_read(exchange, outcome, access)

    def schedule_write(self, exchange: Exchange, outcome: Outcome, access: Access) -> Schedule:
        """Write, through aggregators where what the ranks write is interleaved."""
        ranges = yield from ranges_of(exchange, access)
        if self._is_shared(ranges, "romio_cb_write"):
            plan = Plan(self.communicator, self.views, ranges, self._settings)
            yield from write_together(exchange, outcome, plan, self.file, access)
        else:
            yield from super().schedule_write(exchange, outcome, access)

    def _is_shared(self, ranges: list[tuple[int, int]], hint: str) -> bool:
        """Whether the access goes through aggregators; all members come to the same answer."""
        use = self._uses[hint]
        busy = [rank for rank, (begin, end) in enumerate(ranges) if end > begin]
        if use == _DISABLED or not busy or not all(self.views[rank].ordered for rank in busy):
            return False
        if use == _ENABLED:
            return True
        total = sum(end - begin for begin, end in ranges)
        runs = sum(
            1 + (end - begin) // max(1, self.views[rank].run)
            for rank, (begin, end) in enumerate(ranges)
            if end > begin and not self.views[rank].contiguous
        )
        if not runs or total >= runs * self._settings.independent_from:
            return False
        spans = sorted(
            (
                self.views[rank].byte_at(ranges[rank][0]),
                self.views[rank].byte_at(ranges[rank][1] - 1),
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
