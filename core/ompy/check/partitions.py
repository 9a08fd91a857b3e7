"""Partitioned messages: one that is sent counts as sent when its last partition is ready."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, Final

from ompy.check.checker import Checker
from ompy.check.messages import STANDARD, whole
from ompy.check.signatures import of_elements
from ompy.check.under_way import Entry
from ompy.data.constants import ANY_TAG, PROC_NULL
from ompy.mpi.buffers.spec import message

Handler = Callable[..., Any]


class ReadyParts:
    """Which partitions of a message that is sent are ready, and their memory in use since."""

    def __init__(
        self, check: Checker, entry: Entry, event: tuple[Any, ...], memory: memoryview | None,
        partitions: int,
    ) -> None:  # fmt: skip
        """Know of none.

        Args:
            check: the rank's.
            entry: of the request.
            event: of the send in the record, without its site, call and number; empty for none.
            memory: of the message; None where it is not known.
            partitions: how many there are.
        """
        self._check = check
        self._entry = entry
        self._event = event
        self._memory = memory
        self._partitions = partitions
        self._ready: set[int] = set()
        self._lock = Lock()  # threads make partitions ready, and one of them the last
        self._used: list[Entry] = []

    def forget_ready(self) -> None:
        """It was started."""
        with self._lock:
            self._ready.clear()

    def made_ready(self, at: int, call: str, partitions: Iterable[int]) -> None:
        """A call has made some ready."""
        check, memory = self._check, self._memory
        for each in partitions:
            if memory is not None:
                size = len(memory) // self._partitions
                used = Entry(check.number(), at, call, "part", None)
                check.buffers.begin_use(used, memory[each * size : (each + 1) * size], writes=False)
                self._used.append(used)
            if self._is_last(each) and self._event:
                self._write_send()

    def _is_last(self, partition: int) -> bool:
        """Whether all are ready now, and were not before."""
        with self._lock:
            before = len(self._ready)
            self._ready.add(partition)
            return before < len(self._ready) == self._partitions

    def _write_send(self) -> None:
        entry, check = self._entry, self._check
        site = check.recorder.start_site(entry.at, *entry.made)
        check.write_again(("send", site, entry.call, *self._event, 0), entry.number)

    def end_use(self, *, quietly: bool = False) -> None:
        """The message is over."""
        used, self._used = self._used, []
        for each in used:
            self._check.buffers.end_use(each, quietly=quietly)


def _signature(buf: Any, partitions: int) -> Any:
    """Of the whole message; None where that is wrong, or not known."""
    try:
        typed = message(buf, False, partitions)
    except Exception:
        return None  # the call itself says what is wrong
    return of_elements(typed.datatype, typed.message.count * partitions)


def _memory(buf: Any) -> memoryview | None:
    """The bytes of a buffer that has no more to it than them."""
    if isinstance(buf, (list, tuple)):
        return None
    try:
        return memoryview(buf).cast("B")
    except (TypeError, ValueError):
        return None


def _prepare_send(
    check: Checker, at: int, call: str, original: Any, comm: Any, buf: Any, partitions: Any,
    dest: Any, tag: Any = 0, *others: Any, **named: Any,
) -> Any:  # fmt: skip
    """The handler of `Psend_init`."""
    request = original(comm, buf, partitions, dest, tag, *others, **named)
    check.requests.prepared(request, at, call, ("send", 0), None)
    entry = check.requests.of(request)
    if entry is not None:
        event: tuple[Any, ...] = ()
        if whole(dest) != PROC_NULL:
            number = check.comm_of_partitions(comm, whole(dest), whole(tag), sends=True)
            event = (number, whole(dest), whole(tag), _signature(buf, partitions), STANDARD)
        entry.parts = ReadyParts(check, entry, event, _memory(buf), whole(partitions))
    return request


def _prepare_receive(
    check: Checker, at: int, call: str, original: Any, comm: Any, buf: Any, partitions: Any,
    source: Any, tag: Any = ANY_TAG, *others: Any, **named: Any,
) -> Any:  # fmt: skip
    """The handler of `Precv_init`; what has arrived may be read, so its memory is not in use."""
    request = original(comm, buf, partitions, source, tag, *others, **named)
    number = 0
    if whole(source) != PROC_NULL:
        number = check.comm_of_partitions(comm, whole(source), whole(tag), sends=False)
    event = ("recv", number, whole(source), whole(tag), _signature(buf, partitions))
    check.requests.prepared(request, at, call, event, None)
    return request


def _ready(
    check: Checker, at: int, call: str, original: Any, request: Any, *which: Any, **named: Any
) -> Any:
    """The handler of `Pready` and its like."""
    result = original(request, *which, **named)
    entry = check.requests.of(request)
    if entry is not None and entry.parts is not None and entry.active:
        chosen = [*which, *(named[name] for name in sorted(named, reverse=True))]  # low, high
        if call.endswith("_range"):
            low, high = map(whole, chosen)
            chosen = list(range(low, high + 1))
        elif call.endswith("_list"):
            (chosen,) = chosen
        entry.parts.made_ready(at, call, map(whole, chosen))
    return result


COMM_HANDLERS: Final[dict[str, Handler]] = {
    "Psend_init": _prepare_send,
    "Precv_init": _prepare_receive,
}
REQUEST_HANDLERS: Final[dict[str, Handler]] = dict.fromkeys(
    ("Pready", "Pready_range", "Pready_list"), _ready
)
