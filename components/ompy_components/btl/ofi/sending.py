"""Messages on their way out: fragments of the PML and our own.

Source: reference ofi.md A5, A7; the window is ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy import raw
from ompy.compiled import DECLARING, U64, ccall, cclass, cfunc
from ompy.frameworks.btl import (
    BTL_OWNERSHIP,
    OUT_OF_RESOURCE,
    QUEUED,
    UNREACHABLE,
)
from ompy.frameworks.nic.fabric import Completion, FabricError

from ompy_components.btl.ofi.failures.blame import blame
from ompy_components.btl.ofi.headers import Header, Kind, Seal
from ompy_components.btl.ofi.work_records import MessagePool, OfiFragment, own_message

if TYPE_CHECKING:
    from collections.abc import Callable

if DECLARING:
    from ompy.frameworks.btl import BtlModule
    from ompy.frameworks.nic.fabric import FabricEndpoint

    from ompy_components.btl.ofi.attention import Attention
    from ompy_components.btl.ofi.endpoint import OfiEndpoint
    from ompy_components.btl.ofi.failures.detection import Failures
    from ompy_components.btl.ofi.window import Window

_BYE: Final[int] = int(Kind.BYE)


@cclass
class SendEngine:
    """Of one module.

    Attributes:
        keeping: a fragment is complete when the peer has acknowledged it.
        outstanding: messages the device has.
        pool: memory for messages.
        owing: endpoints whose peers have to be told what was taken.
        pressed: one of them has waited long enough for that.
        fragments, injected, acknowledgements: messages sent, by kind.
    """

    _attention: Attention
    _failures: Failures
    _first: FabricEndpoint
    _inject_size: int
    _module: BtlModule
    _rank: U64
    _refused: Callable[[OfiEndpoint], None]
    _seal: Seal
    acknowledgements: int
    fragments: int
    injected: int
    keeping: bool
    outstanding: int
    owing: dict[OfiEndpoint, None]
    pool: MessagePool
    pressed: bool
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        module: BtlModule,
        first: FabricEndpoint,
        seal: Seal,
        pool: MessagePool,
        inject_size: int,
        attention: Attention,
        failures: Failures,
        refused: Callable[[OfiEndpoint], None],
    ) -> None:
        """Begin with nothing under way.

        Args:
            module: that completes fragments.
            first: the context that transmits them.
            seal: closes messages.
            pool: memory for them.
            inject_size: messages of up to so many bytes need no completion.
            attention: is told of what waits, and that something is under way.
            failures: judge what ends badly.
            refused: is told whose message the provider had no room for.
        """
        self._module = module
        self._first = first
        self._attention = attention
        self._failures = failures
        self._refused = refused
        self._rank = module.context.rank
        self._seal = seal
        self._inject_size = inject_size
        self.pool = pool
        self.keeping = self.pressed = False
        self.outstanding = 0
        self.owing = {}
        self.fragments = self.injected = self.acknowledgements = 0

    def counters(self) -> dict[str, int]:
        """Messages sent, by kind."""
        return {
            "fragments": self.fragments,
            "injected": self.injected,
            "acknowledgements": self.acknowledgements,
        }

    # -- fragments

    @ccall
    def offer(self, endpoint: OfiEndpoint, fragment: OfiFragment, tag: int) -> int:
        """Send a fragment, or say why not; then it is the caller's as it was."""
        window: Window = endpoint.window
        if not endpoint.usable():
            return UNREACHABLE
        if window.full():
            self._attention.waits_for_room()
            return OUT_OF_RESOURCE
        fragment.tag = tag
        fragment.endpoint = endpoint
        fragment.number = window.next()
        result: int = self._post(endpoint, fragment, fragment.number, endpoint.generation)
        if result < 0:
            fragment.endpoint = None
            return result
        window.sent = fragment.number
        self.fragments += 1
        if self.keeping:
            endpoint.kept.append(fragment)
            self._attention.watch_over()
            return QUEUED
        if fragment.posted:
            self._attention.watch_over()
            return QUEUED
        fragment.told = True
        result = self._module.finish(endpoint, fragment)
        if fragment.flags & BTL_OWNERSHIP:
            self.release(fragment)
        return result

    @ccall
    def release(self, fragment: OfiFragment) -> None:
        """Nobody but the device needs it any more."""
        if fragment.posted:
            fragment.freed = True
        else:
            self.pool.give_back(fragment.message)

    @ccall
    def complete(self, fragment: OfiFragment, status: int) -> None:
        """Tell who wants to be told, once."""
        if fragment.told:
            return
        fragment.told = True
        endpoint: OfiEndpoint | None = fragment.endpoint
        assert endpoint is not None, "what was not sent is not completed"
        if fragment.callback is not None:
            fragment.callback.completed(self._module, endpoint, fragment, status)
        if fragment.flags & BTL_OWNERSHIP:
            self.release(fragment)

    # -- our own

    def say(
        self,
        endpoint: OfiEndpoint,
        kind: Kind,
        generation: int | None = None,
        tag: int = 0,
        sent: int = 0,
    ) -> bool:
        """Send a message of our own. Whether it went; an error breaks the path.

        Args:
            endpoint: to whom.
            kind: what; BYE is numbered, as fragments are.
            generation: that a HELLO is about; otherwise the path's.
            tag: of a HELLO, the stage.
            sent: of an ACK, up to which we have sent; 0: it does not say so.
        """
        message = own_message(kind)
        message.endpoint = endpoint
        message.tag = tag
        window = endpoint.window
        if kind is Kind.BYE:
            if window.full():
                return False
            message.number = window.next()
        if generation is None:
            generation = endpoint.generation
        if self._post(endpoint, message, message.number or sent, generation) < 0:
            return False
        if message.number:
            window.sent = message.number
            if self.keeping:
                endpoint.kept.append(message)
        return True

    @cfunc
    def owes(self, endpoint: OfiEndpoint, pressing: bool) -> None:
        """Something of a peer was taken; it waits for that to be said, or will before long."""
        self.owing[endpoint] = None
        if pressing:
            self.pressed = True

    @ccall
    def acknowledge(self, endpoint: OfiEndpoint) -> bool:
        """Tell a peer what has been taken of its fragments. Whether nothing is owed any more."""
        if endpoint.usable() and endpoint.window.owed():
            if not self.say(endpoint, Kind.ACK):
                return not endpoint.usable()
            self.acknowledgements += 1
        self.owing.pop(endpoint, None)
        return True

    def acknowledge_all(self) -> bool:
        """Before the rank sleeps. Whether nothing is owed any more."""
        for endpoint in list(self.owing):
            self.acknowledge(endpoint)
        return not self.owing

    # -- the device

    @cfunc
    def _post(
        self,
        endpoint: OfiEndpoint,
        fragment: OfiFragment,
        number: int,
        generation: U64,
    ) -> int:
        """Hand it to the device. `QUEUED`, or what is wrong: then nothing has changed."""
        window: Window = endpoint.window
        header: Header = Header.__new__(Header)
        header.rank = self._rank
        header.number = number
        header.acknowledged = window.taken
        header.generation = generation
        header.kind = fragment.kind
        header.tag = fragment.tag
        self._seal.close(fragment.message, endpoint.place, header)
        inject: bool = raw.size(fragment.message) <= self._inject_size and fragment.kind != _BYE
        fragment.posted = not inject
        if not inject:  # before it is posted: nobody may think that everything is over
            self.outstanding += 1
            endpoint.posted[fragment] = None
        result: int = OUT_OF_RESOURCE
        try:
            context: FabricEndpoint = self._first
            if inject:
                taken: bool = context.inject(fragment.message, endpoint.address)
            else:
                taken = context.send(fragment.message, None, endpoint.address, fragment)
            if taken:
                endpoint.refused = False
                window.tell()
                if self.owing:
                    self.owing.pop(endpoint, None)
                self.injected += inject
                return QUEUED
            self._seal.withdraw(endpoint.place, fragment.kind)
            self._attention.waits_for_room()
            self._refused(endpoint)  # who asked may not, and the path may be broken
            self._attention.watch_over()
        except FabricError as problem:
            result = UNREACHABLE
            self._failures.post_failed(endpoint, problem)
        self._forget(endpoint, fragment)
        return result

    @cfunc
    def _forget(self, endpoint: OfiEndpoint, fragment: OfiFragment) -> None:
        fragment.posted = False
        if fragment in endpoint.posted:
            del endpoint.posted[fragment]
            self.outstanding -= 1

    def abandon(self, endpoint: OfiEndpoint, fragment: OfiFragment) -> None:
        """The device will not say how it ends; its memory stays the device's."""
        self._forget(endpoint, fragment)
        fragment.freed = False

    @ccall
    def done(self, fragment: OfiFragment, completion: Completion) -> None:
        """The device has sent it, or could not."""
        endpoint: OfiEndpoint | None = fragment.endpoint
        assert endpoint is not None, "what is posted has somewhere to go"
        self._forget(endpoint, fragment)  # unless it was given up before
        if fragment.freed:
            self.pool.give_back(fragment.message)
        if completion.error:
            if not fragment.told:
                self._failures.work_failed(endpoint, completion, blame(completion.error))
                self.complete(fragment, UNREACHABLE)
            return
        endpoint.heard += 1
        if not self.keeping or fragment.acknowledged:
            self.complete(fragment, 0)

    # -- what peers say

    @ccall
    def acknowledged(self, endpoint: OfiEndpoint, number: int) -> None:
        """A peer has taken our fragments up to a number.

        Raises:
            ValueError: it cannot have.
        """
        count: int = endpoint.window.acknowledge(number)
        if not count or not endpoint.kept:
            return
        taken = [endpoint.kept.popleft() for _ in range(min(count, len(endpoint.kept)))]
        fragment: OfiFragment
        for fragment in taken:
            fragment.acknowledged = True
        for fragment in taken:
            if not fragment.posted:
                self.complete(fragment, 0)
