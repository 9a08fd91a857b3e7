"""Has a communicator's collectives tell the trace who serves each call, and when steps begin.

Only where a rank is traced: then functions stand in front of the entries of the communicator's
table, and of the schedules of its modules, as one component may go on with another's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from ompy.frameworks.coll import NEIGHBOURHOODS, OPERATIONS, CollModule
from ompy.frameworks.collectives.call_order import number_of
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Schedule

if TYPE_CHECKING:
    from ompy.data.request import Request
    from ompy.frameworks.collectives.coll_selection import SelectedColl
    from ompy.frameworks.communicator import Communicator
    from ompy.trace.sink import Trace

LAYER: Final = "coll"
FRAMEWORK: Final = "framework"  # who serves neighbourhoods that no component has


class CollObserver:
    """What a traced rank has in front of its collectives."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._seen: WeakSet[Communicator] = WeakSet()

    def observe_collectives(self, communicator: Communicator) -> None:
        """Have a communicator's collectives tell from now on; selects them if nobody has."""
        if communicator in self._seen:
            return
        self._seen.add(communicator)
        coll = communicator.coll
        if coll is not None:
            _Table(self._trace, communicator, coll).interpose()


class _Table:
    """One communicator's."""

    def __init__(self, trace: Trace, communicator: Communicator, coll: SelectedColl) -> None:
        self._trace = trace
        self._communicator = communicator
        self._coll = coll
        self._tag = 0  # of the nonblocking call that is being begun
        self._word = 0
        self._names = {
            id(offer.module): offer.component for offer in coll.asked if offer.module is not None
        }

    def interpose(self) -> None:
        """Put functions in front of everything that serves."""
        coll = self._coll
        modules = [offer.module for offer in coll.asked if offer.module is not None]
        for operation in (*OPERATIONS, *NEIGHBOURHOODS):
            bound = vars(coll).get(f"schedule_{operation}")
            for module in modules:
                if module.offers_schedule(operation) or operation in NEIGHBOURHOODS:
                    self._interpose_schedule(module, operation)
            self._bind(f"schedule_{operation}", operation, bound)
            self._bind(operation, operation, vars(coll).get(operation))
        for module in modules:
            if any(module.offers_begin(operation) for operation in OPERATIONS):
                vars(module)["begin"] = self._begin(module, module.begin)
        vars(coll)["begin_operation"] = self._begin_operation(coll.begin_operation)

    def _bind(self, name: str, operation: str, bound: Any) -> None:
        """The table's entry, so that it goes by what was put in front of the module's."""
        module = getattr(bound, "__self__", None)
        if not isinstance(module, CollModule) or id(module) not in self._names:
            if operation in NEIGHBOURHOODS and name.startswith("schedule_"):
                self._interpose_schedule(self._coll, operation)
            return
        if name != operation:
            vars(self._coll)[name] = getattr(module, name)
        elif getattr(type(module), operation) is not getattr(CollModule, operation):
            vars(self._coll)[name] = self._blocking(module, operation, bound)

    def _interpose_schedule(self, module: CollModule, operation: str) -> None:
        plan: Callable[..., Schedule] = getattr(module, f"schedule_{operation}")

        def told(exchange: Exchange, *arguments: Any) -> Schedule:
            schedule = plan(exchange, *arguments)
            algorithm = module.name_algorithm(operation, exchange, arguments)
            tag = self._served(operation, module, algorithm)
            return self._steps(schedule, tag)

        vars(module)[f"schedule_{operation}"] = told

    def _served(self, operation: str, module: CollModule, algorithm: str) -> int:
        """Write down who serves the call. Returns the tag of its messages."""
        order = self._communicator.order
        tag = self._tag or order.tag()
        self._trace.record(
            LAYER,
            "SERVED",
            operation=operation,
            component=self._names.get(id(module), FRAMEWORK),
            algorithm=algorithm,
            context=self._communicator.context_id,
            collective=number_of(self._word or order.word),
            tag=tag,
        )
        return tag

    def _steps(self, schedule: Schedule, tag: int) -> Schedule:
        """The same schedule, which says when each step begins."""
        trace, context = self._trace, self._communicator.context_id
        step = 0
        try:
            while True:
                step += 1
                if trace.active:
                    trace.record(LAYER, "STEP", context=context, tag=tag, step=step)
                try:
                    next(schedule)
                except StopIteration:
                    return
                yield
        finally:
            schedule.close()

    def _blocking(self, module: CollModule, operation: str, call: Callable[..., None]) -> Any:
        """A call that a module makes in a way of its own."""

        def told(*arguments: Any) -> None:
            way = module.name_way(operation, arguments)
            if way:
                self._served(operation, module, way)
            call(*arguments)

        return told

    def _begin_operation(self, begin: Callable[..., Request]) -> Any:
        """Nonblocking calls are told their tags."""

        def told(
            operation: str, tag: int, arguments: tuple[Any, ...], word: int = 0, kept: int = -1
        ) -> Request:
            self._tag, self._word = tag, word
            try:
                return begin(operation, tag, arguments, word, kept)
            finally:
                self._tag = self._word = 0

        return told

    def _begin(self, module: CollModule, begin: Callable[..., Request | None]) -> Any:
        """Nonblocking calls that a module makes in a way of its own."""

        def told(
            operation: str, arguments: tuple[Any, ...], tag: int, word: int, kept: int
        ) -> Request | None:
            begun = begin(operation, arguments, tag, word, kept)
            if begun is not None:
                self._served(operation, module, "nonblocking")
            return begun

        return told
