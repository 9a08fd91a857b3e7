"""What the parts of the API share for one rank: its conduit, and what may be called where."""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import index as as_index
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ompy import raw
from ompy.data.errors import MPIError
from ompy.engine.base import Engine
from ompy.frameworks.conduit import HANDLERS, Conduit, Handler, SegmentInfo, ThreadMode, Token
from ompy.gasnet.errors import BadArgument, GasnetError, NotInitialised
from ompy.gasnet.segment import Segment

if TYPE_CHECKING:
    from ompy.data.request import Waitable
    from ompy.gasnet.handles import ThreadState
    from ompy.gasnet.locks import Hsl
    from ompy.trace.sink import Trace

FindConduit = Callable[[ThreadMode], Conduit]
LAYER: Final = "gasnet"  # in traces
PIECE: Final = 65_536  # bytes filled at once; arbitrary: fits a processor's cache


class Rank:
    """Base of the API's parts.

    Attributes are private: users have methods. They are
        _find: brings the conduit up, at `init`.
        _conduit, _engine, _trace: from `init` on.
        _me: the own rank.
        _infos: segments of all ranks, empty until `attach`.
        _segment: the own one.
        _mapped: the conduit's: of each rank its segment, where it can be written and read here.
        _table: functions by handler index, as the conduit calls them.
        _indices: of the client's functions.
        _handling: tokens whose handlers run, innermost last, by thread.
        _held: handler-safe locks, by thread that holds them.
        _quiet: threads in a no-interrupt section.
        _states: handles and implicit operations, by thread.
        _guard: held around calls of the conduit.
        _copies: operations of this rank alone, or on mapped memory, that were traced.
        _blocked: calls of `block_until` that have not returned.
        _over: the rank has left.
        _handlers_own: what a handler raised last; it comes out of the poll as it is.
    """

    _conduit: Conduit
    _engine: Engine
    _trace: Trace

    def __init__(self, find: FindConduit) -> None:
        self._find = find
        self._me = -1
        self._infos: Sequence[SegmentInfo] = ()
        self._segment = Segment(memoryview(b""), 0)
        self._mapped: Sequence[memoryview | None] = ()
        self._table: list[Handler | None] = [None] * HANDLERS
        self._indices: dict[Any, int] = {}
        self._handling: dict[int, list[Token]] = {}
        self._held: dict[int, list[Hsl]] = {}
        self._quiet: set[int] = set()
        self._states: dict[int, ThreadState] = {}
        self._guard: AbstractContextManager[object] = nullcontext()
        self._blocked = 0
        self._copies = 0
        self._parallel = False
        self._attached = False
        self._over = False
        self._handlers_own: BaseException | None = None

    # --- what may be called

    def _need_init(self) -> None:
        """Raises: NotInitialised: before `init`, or after the end."""
        if self._me < 0 or self._over:
            raise NotInitialised("call init first" if self._me < 0 else "this rank has left")

    def _check_free(self) -> None:
        """See that this thread may communicate now.

        Raises:
            NotInitialised: before `attach`, or after the end.
            BadArgument: in a handler, with a handler-safe lock, or in a no-interrupt section.
        """
        if not self._attached:
            self._refuse_early()
        if self._handling or self._held or self._quiet:
            self._refuse(get_ident())

    def _refuse_early(self) -> NoReturn:
        self._need_init()
        raise NotInitialised("call attach first: there are no handlers and segments yet")

    def _refuse(self, thread: int) -> None:
        if thread in self._handling:
            raise BadArgument("a handler may do nothing but reply: it may not wait for the network")
        self._refuse_quiet(thread)

    def _refuse_quiet(self, thread: int) -> None:
        if thread in self._held:
            raise BadArgument("this thread holds a handler-safe lock: unlock it first")
        if thread in self._quiet:
            raise BadArgument("this thread is in a no-interrupt section: resume interrupts first")

    def _check_node(self, node: int) -> None:
        """See that there is such a rank, and that this thread may communicate."""
        self._check_free()
        check_integers(node)
        if not 0 <= node < len(self._infos):
            raise BadArgument(f"there is no node {node}: they are 0 to {len(self._infos) - 1}")

    def _check_place(self, node: int, offset: int, size: int) -> None:
        """See that bytes lie in a rank's segment, and that this thread may communicate."""
        if not self._attached or self._handling or self._held or self._quiet:
            self._check_free()
        if node.__class__ is not int or offset.__class__ is not int:
            check_integers(node, offset)
        if not 0 <= node < len(self._infos):
            self._check_node(node)
        if not 0 <= offset <= self._infos[node].size - size:
            self._check_range(node, offset, size)

    def _check_range(self, node: int, offset: int, size: int) -> None:
        room = self._infos[node].size
        if offset < 0 or offset + size > room:
            raise BadArgument(
                f"{size} bytes from offset {offset} on are not in the segment of node {node}, "
                f"which has {room}"
            )

    def _failed(self, problem: BaseException) -> GasnetError:
        """What a conduit's error is to a user."""
        from ompy.gasnet.errors import ResourceError

        return ResourceError(str(problem))

    # --- progress

    def _progress(self) -> None:
        """Poll once. Raises as `_wait_for`."""
        try:
            self._engine.progress()
        except MPIError as problem:
            self._told(problem)

    def _wait_for(self, predicate: Callable[[], bool]) -> None:
        """Progress until it is true. Raises: ResourceError: what the conduit could not do."""
        try:
            if not predicate():
                self._engine.wait_until(predicate)
        except MPIError as problem:
            self._told(problem)

    def _wait(self, waitable: Waitable) -> None:
        """Progress until it is complete. Raises as `_wait_for`."""
        try:
            self._engine.wait(waitable)
        except MPIError as problem:
            self._told(problem)

    def _told(self, problem: MPIError) -> NoReturn:
        """Raise what a poll has raised, as a user is told of it."""
        if problem is self._handlers_own:
            raise problem
        raise self._failed(problem) from problem


def check_integers(*numbers: Any) -> None:
    """Raises: BadArgument: one of these is no integer."""
    for number in numbers:
        try:
            as_index(number)
        except TypeError:
            raise BadArgument(f"{number!r} is no integer: ranks, offsets, sizes are") from None


def readable_bytes(buffer: Any) -> memoryview:
    """The bytes of a contiguous buffer.

    Raises:
        BadArgument: it is none.
    """
    view = raw.numbers(buffer)
    if view is not None:
        return view
    try:
        view = memoryview(buffer)
        if "O" in "".join(view.format.split(":")[::2]):  # PEP 3118: names stand between colons
            raise TypeError("its elements are Python objects, which mean nothing elsewhere")
        return view.cast("B") if view.nbytes else memoryview(b"")
    except (TypeError, BufferError, ValueError) as problem:
        raise BadArgument(
            f"{type(buffer).__name__} is no contiguous memory of plain numbers: {problem}"
        ) from None


def writable_bytes(buffer: Any) -> memoryview:
    """The bytes of a contiguous buffer that may be changed.

    Raises:
        BadArgument: it is none.
    """
    view = readable_bytes(buffer)
    if view.readonly and len(view):
        raise BadArgument(f"this {type(buffer).__name__} is read-only")
    return view
