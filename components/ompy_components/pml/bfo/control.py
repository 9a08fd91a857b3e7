"""Control messages that are told of when they fail.

Source: seed bfo (7, 8).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ompy.compiled import DECLARING, ccall, cclass
from ompy.frameworks.bml import Rail
from ompy.frameworks.btl import BtlModule, CompletionCallback, Descriptor, Endpoint

from ompy_components.pml.bfo.headers import SENT
from ompy_components.pml.ob1.control import Control

if TYPE_CHECKING:
    from ompy_components.pml.bfo.module import Bfo

if DECLARING:
    from ompy_components.pml.bfo.rail_events import Rails


@cclass
class ControlDone(CompletionCallback):
    """Completions of control messages. What one was stands in its bytes."""

    bfo: Bfo
    __slots__ = tuple(__annotations__)

    def __init__(self, bfo: Bfo) -> None:
        self.bfo = bfo

    @ccall
    def completed(
        self, module: BtlModule, endpoint: Endpoint, descriptor: Descriptor, status: int
    ) -> None:
        """A control message is done."""
        if status < 0:
            message, tag = bytes(descriptor.segment), descriptor.tag
            self.bfo.recovery.later(partial(self.bfo.control_lost, endpoint.proc, tag, message))


@cclass
class BfoControl(Control):
    """Sends control messages for one rank."""

    _rails: Rails
    bfo: Bfo
    __slots__ = tuple(__annotations__)

    def __init__(self, bfo: Bfo) -> None:
        super().__init__(bfo, ControlDone(bfo), SENT)
        self.bfo = bfo
        self._rails = bfo.rails

    @ccall
    def attempt(self, rail: Rail, message: bytes, tag: int) -> bool:
        """Send over this rail, unless it is lost; false when there is no room now."""
        if self._rails.is_lost(rail.endpoint.proc, rail.module):
            proc = rail.endpoint.proc
            self.bfo.recovery.later(partial(self.bfo.control_lost, proc, tag, message))
            return True
        return Control.attempt(self, rail, message, tag)

    @ccall
    def refused(self, rail: Rail, message: bytes, tag: int) -> None:
        """A rail does not take a message: it is no rail any more."""
        self.bfo.rails.refused(rail)
        proc = rail.endpoint.proc
        self.bfo.recovery.later(partial(self.bfo.control_lost, proc, tag, message))
