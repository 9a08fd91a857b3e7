"""Control messages: ACK, PUT and FIN. What finds no room now is tried again."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from ompy.compiled import DECLARING, ccall, cclass, cfunc
from ompy.data.convertor import ContiguousConvertor
from ompy.frameworks.bml import BmlEndpoint, Rail
from ompy.frameworks.btl import (
    BTL_OWNERSHIP,
    NO_ORDER,
    OUT_OF_RESOURCE,
    PRIORITY,
    SIGNAL,
    UNREACHABLE,
    CompletionCallback,
)

from ompy_components.pml.ob1.headers import ACK, SENT, place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ompy_components.pml.ob1.module import Ob1

if DECLARING:
    from ompy.frameworks.btl import BtlModule, Descriptor
    from ompy.trace.sink import Trace


@cclass
class Control:
    """Sends control messages for one rank."""

    _callback: CompletionCallback | None
    _names: Mapping[int, str]
    _none: ContiguousConvertor
    _ob1: Ob1
    _trace: Trace
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        ob1: Ob1,
        callback: CompletionCallback | None = None,
        names: Mapping[int, str] = SENT,
    ) -> None:
        """Begin.

        Args:
            ob1: whose messages these are.
            callback: told what became of each that a BTL has taken, or None.
            names: of the messages, by tag, for the flight recorder.
        """
        self._ob1 = ob1
        self._trace = ob1.trace
        self._callback = callback
        self._names = names
        self._none = ContiguousConvertor(memoryview(b""))

    @ccall
    def send(self, endpoint: BmlEndpoint, message: bytes, tag: int) -> None:
        """Send over whichever eager rail has room; an ACK, which a sender may wait for, at once."""
        if not self._try_any(endpoint, message, tag):
            self._ob1.pending.packet(partial(self._try_any, endpoint, message, tag), endpoint)

    @ccall
    def send_on(self, rail: Rail, message: bytes, tag: int) -> None:
        """Send over this rail: its BTL knows the registration, or has to keep the order."""
        if not self.attempt(rail, message, tag):
            self._ob1.pending.packet(partial(self.attempt, rail, message, tag), rail.endpoint)

    @ccall
    def send_next(self, rail: Rail, message: bytes, tag: int) -> None:
        """Send over this rail, at once: nothing that it was given before has to come before."""
        if self._put_out(rail, message, tag, rail.immediate) < 0:
            self.send_on(rail, message, tag)

    @ccall
    def _try_any(self, endpoint: BmlEndpoint, message: bytes, tag: int) -> bool:
        """True when it went out, or when no path is left: then nobody waits for it any more."""
        room_later: bool = False
        rail: Rail | None = None
        for _ in endpoint.eager.rails:
            rail = endpoint.eager.next()
            result: int = self._put_out(rail, message, tag, tag == ACK and rail.immediate)
            if result >= 0:
                return True
            room_later = room_later or result == OUT_OF_RESOURCE
        if rail is not None and not room_later:
            self.refused(rail, message, tag)
        return not room_later

    @ccall
    def attempt(self, rail: Rail, message: bytes, tag: int) -> bool:
        """Send over this rail; false when there is no room now."""
        # not immediately: what the same rail was given before may have to come before
        result: int = self._put_out(rail, message, tag, False)
        if result < 0 and result != OUT_OF_RESOURCE:
            self.refused(rail, message, tag)
        return result != OUT_OF_RESOURCE

    @ccall
    def refused(self, rail: Rail, message: bytes, tag: int) -> None:
        """No rail for a message takes it, this one being the last: nobody waits for it any more."""

    @cfunc
    def _put_out(self, rail: Rail, message: bytes, tag: int, immediate: bool) -> int:
        module: BtlModule = rail.module
        flags: int = PRIORITY | BTL_OWNERSHIP | SIGNAL
        result: int = OUT_OF_RESOURCE
        if immediate and self._callback is None:
            result = module.sendi(rail.endpoint, self._none, message, 0, NO_ORDER, flags, tag)
        if result < 0:
            descriptor: Descriptor | None = module.alloc(
                rail.endpoint, NO_ORDER, len(message), flags
            )
            if descriptor is None:
                return _unsent(rail, OUT_OF_RESOURCE)
            place(descriptor, message)
            descriptor.callback = self._callback
            result = module.send(rail.endpoint, descriptor, tag)
            if result < 0:
                module.free(descriptor)
                return _unsent(rail, result)
        if self._trace.noting:
            self._trace.note(self._names[tag], -1, rail.endpoint.proc.rank, 0, 0, len(message))
        return result


def _unsent(rail: Rail, result: int) -> int:
    """What a refusal means: to a peer that has ended there will never be room."""
    return UNREACHABLE if rail.endpoint.proc.departed else result
