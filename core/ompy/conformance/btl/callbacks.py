"""What the modules under test call: each hands on to the driver, or counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.engine.base import Poller
from ompy.frameworks.btl import (
    BtlModule,
    CompletionCallback,
    Descriptor,
    Endpoint,
    ErrorCallback,
    ReceiveCallback,
)

if TYPE_CHECKING:
    from ompy.conformance.btl.driver import Driver
    from ompy.frameworks.proc import Proc

POLLS_MAX: Final = 1_000_000  # arbitrary: a hundred times what the longest test takes


class Arrivals(ReceiveCallback):
    """Hands the driver what arrives."""

    __slots__ = ("_driver",)

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def received(self, module: BtlModule, endpoint: Endpoint, tag: int, data: memoryview) -> None:
        """What has arrived."""
        self._driver.received(module, endpoint, tag, data)


class Completions(CompletionCallback):
    """Hands the driver what is completed."""

    __slots__ = ("_driver",)

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def completed(
        self, module: BtlModule, endpoint: Endpoint, descriptor: Descriptor, status: int
    ) -> None:
        """What is done."""
        self._driver.completed(module, endpoint, descriptor, status)


class Errors(ErrorCallback):
    """Hands the driver what is said about paths."""

    __slots__ = ("_driver",)

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def failed(self, module: BtlModule, flags: int, proc: Proc | None, reason: str) -> None:
        """A path is gone."""
        self._driver.failed(module, flags, proc, reason)

    def returned(self, module: BtlModule, proc: Proc, tag: int, fragment: memoryview) -> None:
        """What sendi took and may not have arrived."""
        self._driver.gave_back(module, proc, tag, fragment)

    def healed(self, module: BtlModule, proc: Proc) -> None:
        """A path can be used again."""
        self._driver.mended(module, proc)


class Metered(Poller):
    """Polls a module, and counts."""

    def __init__(self, driver: Driver, module: BtlModule) -> None:
        self._driver = driver
        self._module = module
        self._polls = 0

    def poll(self) -> int:
        """Poll the module."""
        driver = self._driver
        self._polls += 1
        assert self._polls < POLLS_MAX, f"rank {driver.rank} has polled {POLLS_MAX} times: no end"
        before = len(driver.inbox)
        outer, driver.inside = driver.inside, "poll"
        try:
            events = self._module.poll()
        finally:
            driver.inside = outer
        driver.largest_poll = max(driver.largest_poll, len(driver.inbox) - before)
        if not isinstance(events, int) or events < 0:
            driver.complain(f"poll of {self._module.name} answered {events!r}, not how many events")
            return 0
        return events

    def arm(self) -> bool:
        """As the module."""
        return self._module.arm()

    def disarm(self) -> None:
        """As the module."""
        self._module.disarm()
