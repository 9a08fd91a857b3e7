"""`GASNET_TRACEFILE` and `GASNET_STATSFILE`: what this rank's GASNet does, as text.

Fed by the events that `ompy trace` is made of (`tracing.py`): a line for each in the one file, a
line for each kind of them in the other. Each event has a letter, as GASNet-1 has them, and a mask
says which are wanted:

    G P      gets, puts
    A        messages, and their handlers
    W        collectives, each member's part from its call to its end
    I        what the rank is: its host, the names of handlers
    C        the conduit's own: posts, completions, credits, stalls; its counters
    D        in traces, all fields of an event and not only peer, size, way, call

`B`, `S`, `X`, `L`, `N`, `H` are GASNet's, too, and nothing of ours has them: barriers are
messages.

    trace        0 0.001204> (P) PUT: peer=1 size=8 way=NIC
    statistics   0> (P) PUT: 3 times, 1048584 bytes: 8 to 1048576 each

Source: reference gasnet.md 7; the documentation of GASNet-1 has the letters and names of files.
"""

from __future__ import annotations

import sys
from typing import IO, TYPE_CHECKING, Final, NamedTuple

from ompy import outputs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ompy.mca.parameter import Values
    from ompy.trace.sink import Event, Trace

STREAMS: Final = {"stdout": "stdout", "stderr": "stderr", "-": "stderr"}
SHORT: Final = ("peer", "size", "way", "call")
API: Final = "gasnet"  # the layer of what the API does by itself
_BY_NAME: Final = {
    "PUT": "P",
    "GET": "G",
    "HANDLER": "A",
    "RETURN": "A",
    "NAME": "I",
    "COLL": "W",
    "COLL_DONE": "W",
}


def letter_of_event(event: Event) -> str:
    """Of what an event is about."""
    known = _BY_NAME.get(event.name)
    if known is not None:
        return known
    return "A" if event.name.startswith("AM") else "C"


class _Tally:
    """How often something was done, with how many bytes."""

    __slots__ = ("count", "largest", "smallest", "total")

    def __init__(self) -> None:
        self.count = self.total = self.largest = 0
        self.smallest = -1

    def add(self, size: int | None) -> None:
        """Once more."""
        self.count += 1
        if size is not None:
            self.total += size
            self.largest = max(self.largest, size)
            self.smallest = size if self.smallest < 0 else min(self.smallest, size)

    def __str__(self) -> str:
        times = f"{self.count} time{'s' * (self.count != 1)}"
        if self.smallest < 0:
            return times
        return f"{times}, {self.total} bytes: {self.smallest} to {self.largest} each"


class _File(NamedTuple):
    """Where text goes.

    Attributes:
        stream: open.
        mask: letters that are wanted.
        ours: it is closed by us.
    """

    stream: IO[str]
    mask: str
    ours: bool


class Recording:
    """The files of one rank. It is an `EventWriter`, beside the one a trace may have."""

    def __init__(
        self, trace: Trace, name: str, values: Values, layer: str, hostname: str, ranks: int
    ) -> None:
        """Open what the parameters name, and have events from now on.

        Args:
            trace: the rank's.
            name: of the conduit.
            values: of its parameters.
            layer: of its events, beside the API's.
            hostname: where the rank runs.
            ranks: of the job; with one file for several each has its own all the same.
        """
        self._rank, self._ranks = trace.rank, ranks
        self._layers = frozenset((API, layer))
        self._tallies: dict[tuple[str, str], _Tally] = {}
        self._began = trace.clock()
        self._trace = trace
        self._lines = self._open(values.tracefile, values.tracemask, "trace")
        self._counts = self._open(values.statsfile, values.statsmask, "statistics")
        self._tell(self._lines, "I", f"rank {self._rank} on {hostname}, conduit {name}")
        trace.also(self)

    @staticmethod
    def wanted(values: Values) -> bool:
        """Whether the parameters name a file."""
        return bool(values.tracefile or values.statsfile)

    def _open(self, path: str, mask: str, what: str) -> _File | None:
        """A file, or what stands for it where it cannot be had: standard error."""
        if not path:
            return None
        if path in STREAMS:
            return _File(getattr(sys, STREAMS[path]), mask, ours=False)
        several = self._ranks > 1 and "%" not in path
        path = path.replace("%", str(self._rank)) + f".{self._rank}" * several
        try:
            return _File(outputs.open_text(path), mask, ours=True)
        except OSError as problem:
            text = f"{what} file {path}: {problem.strerror}; it goes to standard error"
            outputs.warn(text, ("ompy", f"rank {self._rank}"))
            return _File(sys.stderr, mask, ours=False)

    # -- as an EventWriter

    def write(self, events: list[Event]) -> bool:
        """Take events in."""
        try:
            for event in events:
                if event.layer in self._layers:
                    self._take(event)
            if self._lines is not None:
                self._lines.stream.flush()
        except OSError as problem:
            self._lines = None
            text = f"its GASNet trace: {problem.strerror}; nothing more is traced"
            outputs.warn(text, ("ompy", f"rank {self._rank}"))
        return self._lines is not None or self._counts is not None

    def close(self, reason: str) -> None:
        """The trace is over; the files are when the rank leaves GASNet."""

    def _take(self, event: Event) -> None:
        kind = letter_of_event(event)
        fields = dict(event.fields)
        file = self._lines
        if file is not None and kind in file.mask:
            shown = event.fields
            if "D" not in file.mask:
                shown = tuple(pair for pair in shown if pair[0] in SHORT)
            text = " ".join(f"{key}={value}" for key, value in shown)
            seconds = (event.time - self._began) / 1e9
            line = f"{self._rank} {seconds:.6f}> ({kind}) {event.name}: {text}"
            print(line, file=file.stream)
        if self._counts is not None and kind in self._counts.mask:
            size = fields.get("size")
            name = f"{event.name} {fields['what']}" if "what" in fields else event.name
            tally = self._tallies.setdefault((kind, name), _Tally())
            tally.add(size if isinstance(size, int) else None)

    # -- the end

    def finish(self, counters: Mapping[str, int]) -> None:
        """The rank leaves GASNet: write what was counted, and close what is ours."""
        self._trace.flush()
        try:
            for (kind, name), tally in sorted(self._tallies.items()):
                self._tell(self._counts, kind, f"{name}: {tally}")
            for name, count in sorted(counters.items()):
                self._tell(self._counts, "C", f"counter {name}: {count}")
            for file in (self._lines, self._counts):
                if file is not None:
                    file.stream.close() if file.ours else file.stream.flush()
        except OSError as problem:
            text = f"its GASNet statistics: {problem.strerror}; they are lost"
            outputs.warn(text, ("ompy", f"rank {self._rank}"))
        self._lines = self._counts = None

    def _tell(self, file: _File | None, kind: str, text: str) -> None:
        if file is not None and kind in file.mask:
            print(f"{self._rank}> ({kind}) {text}", file=file.stream)
