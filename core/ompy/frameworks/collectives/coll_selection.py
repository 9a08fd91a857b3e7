"""Which component serves which collective operation of a communicator.

As in Open MPI each communicator has a table of operations of its own. It is filled from the
components that the user's selection allows and that have a module for the communicator: the one
with the highest priority that has an operation gets it, so that a component with a few operations
leaves the others to the next. Blocking calls and those in steps (`schedule.py`) are looked for
apart, as a module may have the one without the other. What nobody has is an error when it is
called.

Source: reference openmpi.md 0.6 and 1.5 (`mca_coll_base_comm_select`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ompy.compiled import U64, Shown, ccall, cclass, cfunc
from ompy.data.errors import ERR_UNSUPPORTED_OPERATION, MPIError
from ompy.data.request import Request
from ompy.engine.lock import RankLock
from ompy.frameworks.coll import (
    NEIGHBOURHOODS,
    OPERATIONS,
    TAG_NONBLOCKING,
    TAGS_IN_TURN,
    UNKNOWN,
    CollModule,
    PreparedCall,
)
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Progression, Schedule
from ompy.frameworks.collectives.unsized import UnsizedMessages

if TYPE_CHECKING:
    from ompy.frameworks.communicator import Communicator

# what became of a component that was asked for an operation
CHOSEN: Final = "chosen"
CHOSEN_BLOCKING: Final = "chosen for blocking calls"
CHOSEN_NONBLOCKING: Final = "chosen for nonblocking calls"
LOWER: Final = "lower priority"
LACKS: Final = "lacks it"
NOT_AVAILABLE: Final = "not available"

_UNKNOWN: Final = UNKNOWN  # of this module: a number in C where it is compiled
Others = Callable[[str], list[str]]


class Offer(NamedTuple):
    """What a component says to a communicator.

    Attributes:
        component: its name.
        priority: of it in the selection.
        module: its module; None if it has none for this communicator.
        reason: why it has none.
    """

    component: str
    priority: float
    module: CollModule | None
    reason: str = ""


class Verdict(NamedTuple):
    """What became of a component for an operation.

    Attributes:
        component: its name.
        priority: of it.
        verdict: one of those above.
        reason: why it is not available; else empty.
    """

    component: str
    priority: float
    verdict: str
    reason: str = ""


class Row(NamedTuple):
    """An operation of the table.

    Attributes:
        operation: its name.
        blocking: the component whose blocking call it is; empty if no component has it.
        nonblocking: the one whose steps nonblocking calls take; likewise.
        verdicts: on each component that was asked, the highest priority first.
    """

    operation: str
    blocking: str
    nonblocking: str
    verdicts: list[Verdict]


def row(operation: str, offers: Sequence[Offer]) -> Row:
    """Who gets an operation; `offers` come with the highest priority first."""
    modules = [(offer.component, offer.module) for offer in offers if offer.module is not None]
    having = [name for name, module in modules if module.offers(operation)]
    in_steps = [
        name
        for name, module in modules
        if module.offers_begin(operation) or module.offers_schedule(operation)
    ]
    blocking, nonblocking = (having or [""])[0], (in_steps or [""])[0]

    def verdict(offer: Offer) -> str:
        if offer.module is None:
            return NOT_AVAILABLE
        if offer.component == blocking:
            return CHOSEN if blocking == nonblocking else CHOSEN_BLOCKING
        if offer.component == nonblocking:
            return CHOSEN_NONBLOCKING
        return LOWER if offer.component in having else LACKS

    verdicts = [
        Verdict(each.component, each.priority, verdict(each), each.reason) for each in offers
    ]
    return Row(operation, blocking, nonblocking, verdicts)


@cache
def _servers(kinds: tuple[type[CollModule], ...]) -> list[tuple[str, str, int]]:
    """Which of several kinds of modules has each call first.

    Returns:
        The operation, the call (the operation's or that of its schedule), and the place of the
        kind; -1 where none has it: of neighbourhoods the framework's own serves then.
    """
    return [
        (operation, name, next((at for at, kind in enumerate(kinds) if kind.has(name)), -1))
        for operation in (*OPERATIONS, *NEIGHBOURHOODS)
        for name in (operation, f"schedule_{operation}")
    ]


@cache
def _served(kinds: tuple[type[CollModule], ...]) -> list[tuple[str, int]]:
    """The calls that one of the modules has, and its place."""
    return [(name, place) for _, name, place in _servers(kinds) if place >= 0]


@cache
def _unserved(kinds: tuple[type[CollModule], ...]) -> list[tuple[str, str]]:
    """Operations and their calls that none has, nor the framework for it."""
    return [
        (operation, name)
        for operation, name, place in _servers(kinds)
        if place < 0 and operation in OPERATIONS
    ]


@cache
def _beginning(kinds: tuple[type[CollModule], ...]) -> list[tuple[str, int]]:
    """Operations that a module begins itself, and its place: before it comes none with steps."""
    found = []
    for operation in (*OPERATIONS, *NEIGHBOURHOODS):
        for place, kind in enumerate(kinds):
            if kind.offers_begin(operation):
                found.append((operation, place))
            if kind.offers_begin(operation) or kind.offers_schedule(operation):
                break
    return found


def _nobody_else(_operation: str) -> list[str]:
    return []


@cclass
class UnderWay:
    """The nonblocking operations of a communicator that have begun and not ended."""

    _callback: Callable[[], object] | None
    _count: int
    _lock: RankLock
    _tell_ended: Callable[[], object]
    __slots__ = tuple(__annotations__)

    def __init__(self, lock: RankLock) -> None:
        """None yet; `lock` is the rank's."""
        self._callback = None
        self._count = 0
        self._lock = lock
        self._tell_ended = self._ended  # bound once, and not with each call

    @ccall
    def until(self, request: Request) -> Request:
        """One has begun, and has ended when a request is complete; returns the request."""
        if request.complete:
            return request
        self._lock.acquire(True)
        try:
            if not request.complete:
                self._count += 1
                request.notify(self._tell_ended)
        finally:
            self._lock.release()
        return request

    def when_idle(self, callback: Callable[[], object]) -> None:
        """Call `callback` once, when none is under way: at once if that is so."""
        with self._lock:
            if self._count:
                self._callback = callback
                return
        callback()

    def _ended(self) -> None:
        self._count -= 1
        if not self._count and self._callback is not None:
            callback, self._callback = self._callback, None
            callback()


@cclass
class SelectedColl(CollModule):
    """The collectives a communicator uses: each operation bound to the module that won it.

    Attributes:
        asked: what the components said, the highest priority first.
        under_way: the nonblocking operations that were begun.
    """

    _beginners: Shown[dict[str, CollModule]]
    _begun: Shown[int]
    _exchanger: CollModule | None
    _modules: list[CollModule]
    _others: Others
    asked: tuple[Offer, ...]
    under_way: UnderWay
    __slots__ = tuple(__annotations__)

    def __init__(
        self, communicator: Communicator, offers: Sequence[Offer], others: Others = _nobody_else
    ) -> None:
        """Bind the operations.

        Args:
            communicator: whose.
            offers: of the components that may be used, the highest priority first.
            others: for an error: those that may not be used and have an operation.
        """
        super().__init__(communicator)
        self.asked = tuple(offers)
        self._modules = [offer.module for offer in offers if offer.module is not None]
        self._others = others
        self._begun = 0
        self._exchanger = None  # whose allgather it is; itself for nobody's
        self.under_way = UnderWay(communicator.context.engine.lock)
        self._beginners = self._find_beginners()
        modules = self._modules
        kinds = tuple(map(type, modules))
        bound = {name: getattr(modules[place], name) for name, place in _served(kinds)}
        for operation, name in _unserved(kinds):
            bound[name] = partial(self._refuse, operation, name)
        vars(self).update(bound)

    def _find_beginners(self) -> dict[str, CollModule]:
        """Who begins nonblocking calls itself, and has a higher priority than who has steps."""
        modules = self._modules
        return {
            operation: modules[place] for operation, place in _beginning(tuple(map(type, modules)))
        }

    def keep_call(self, operation: str) -> int:
        """What `begin_operation` is told of a call that is started again and again."""
        module = self._beginners.get(operation)
        return -1 if module is None else module.keep_call(operation)

    def prepare_call(
        self, operation: str, arguments: tuple[Any, ...], tag: int, word: U64, kept: int
    ) -> PreparedCall | None:
        """What starts a persistent request without asking for each start who serves it, or None.

        None also where somebody looks on, who has to see each beginning (`coll_observing.py`).
        """
        module = self._beginners.get(operation)
        if module is None or "begin_operation" in vars(self):
            return None
        return module.prepare_call(operation, arguments, tag, word, kept)

    @ccall
    def begins(self, operation: str) -> bool:
        """Whether a module begins an operation in a way of its own, without a schedule."""
        return operation in self._beginners

    def table(self) -> list[Row]:
        """Which component serves which operation, and why."""
        return [row(operation, self.asked) for operation in OPERATIONS]

    def _refuse(self, operation: str, name: str, *_: object) -> Any:
        """No module has an operation, or has it in steps.

        Raises:
            MPIError: always.
        """
        in_steps = name != operation
        what = f"nonblocking {operation}" if in_steps else operation
        partly = "has the blocking one only"
        said = [
            f"{each.component} is not available here: {each.reason}"
            if each.verdict == NOT_AVAILABLE
            else f"{each.component} {LACKS if each.verdict == LACKS else partly}"
            for each in row(operation, self.asked).verdicts
        ]
        found = "; ".join(said) or "there is none"
        others = self._others(name)
        advice = "name one that has it in the parameter coll, too"
        if others:
            have = " and ".join(others)
            verb = "has" if len(others) == 1 else "have"
            advice = f"{have} {verb} it and may not be used: {advice}"
        raise MPIError(
            ERR_UNSUPPORTED_OPERATION,
            f"{self.communicator.name} has no {what}: none of the components of coll that may be "
            f"used has it ({found}); {advice}",
        )

    def refuse_all(self, error: Callable[[], MPIError]) -> None:
        """Every operation that is called from now on raises; those under way go on."""

        def refuse(*_: object, **_named: object) -> Any:
            raise error()

        for operation in (*OPERATIONS, *NEIGHBOURHOODS):
            setattr(self, operation, refuse)
            setattr(self, f"schedule_{operation}", refuse)
        self._beginners.clear()
        self._exchanger = self

    def prompt_barrier(self) -> Callable[[], None] | None:
        """That of the module whose barrier is the communicator's."""
        for module in self._modules:
            if module.offers("barrier"):
                return module.prompt_barrier()
        return None

    @cfunc
    def _exchanging(self) -> CollModule | None:
        """The module whose allgather is the communicator's, or None."""
        if self._exchanger is None:
            having = [module for module in self._modules if module.offers("allgather")]
            self._exchanger = having[0] if having else self
        return None if self._exchanger is self else self._exchanger

    @ccall
    def exchange_words(self, said: bytes) -> list[bytes] | None:
        """That of the module whose allgather is the communicator's."""
        module: CollModule | None = self._exchanging()
        return None if module is None else module.exchange_words(said)

    @ccall
    def compare_words(self, word: U64) -> int:
        """That of the same module."""
        module: CollModule | None = self._exchanging()
        return _UNKNOWN if module is None else module.compare_words(word)

    @ccall
    def unsized_messages(self) -> UnsizedMessages | None:
        """That of the same module."""
        module: CollModule | None = self._exchanging()
        return None if module is None else module.unsized_messages()

    def hear_words(self, word: int) -> list[int] | None:
        """That of the same module."""
        module: CollModule | None = self._exchanging()
        return None if module is None else module.hear_words(word)

    def shared_words(self) -> memoryview | None:
        """That of the same module."""
        module: CollModule | None = self._exchanging()
        return None if module is None else module.shared_words()

    def take_no_part(self) -> Request | None:
        """All modules are told; until the others can know it the communicator is there."""
        for module in self._modules:
            found = module.take_no_part()
            if found is not None:
                self.under_way.until(found)
        return None

    def close(self) -> None:
        """Close all modules."""
        for module in self._modules:
            module.close()

    def nonblocking_tag(self) -> int:
        """The tag of the next nonblocking operation that no call of the API stands for."""
        self._begun += 1
        return TAG_NONBLOCKING - self._begun % TAGS_IN_TURN

    @ccall
    def begin_operation(
        self, operation: str, tag: int, arguments: tuple[Any, ...], word: U64 = 0, kept: int = -1
    ) -> Request:
        """Begin an operation.

        Args:
            operation: one of `OPERATIONS` or `NEIGHBOURHOODS`.
            tag: of its messages: nobody else's while it is under way.
            arguments: as of the blocking call. The memory is in use until the request completes.
            word: of the API's call; 0 for the last one.
            kept: of a call that is started again and again: what `keep_call` gave.
        """
        module: CollModule | None = self._beginners.get(operation)
        if module is not None:
            if not word:
                word = self.communicator.order.word
            begun: Request | None = module.begin(operation, arguments, tag, word, kept)
            if begun is not None:
                return self.under_way.until(begun)
        exchange = Exchange(self.communicator, tag)
        if word:
            exchange.word = word
        exchange.whole = "reduce" in operation or "scan" in operation
        plan: Callable[..., Schedule] = getattr(self, f"schedule_{operation}")
        return self.begin_schedule(exchange, plan(exchange, *arguments))

    def begin_schedule(self, exchange: Exchange, schedule: Schedule) -> Request:
        """Begin any schedule; the communicator is not closed before it has ended."""
        return self.under_way.until(Progression(exchange, schedule).begin())

    def when_idle(self, callback: Callable[[], object]) -> None:
        """Call `callback` once, when no operation begun is under way: at once if there is none."""
        self.under_way.when_idle(callback)
