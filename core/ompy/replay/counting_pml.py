"""A PML around another one that counts what the program begins, and has some calls looked at.

It is compiled with the others on the way of a message: what names its peer and its tag goes on at
once. What does not is the business of a subclass, which is plain Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.compiled import DECLARING, ccall, cclass, cfunc
from ompy.data.convertor import Convertor
from ompy.data.request import Request
from ompy.frameworks.pml import STANDARD, Pml, PmlWrapper

if TYPE_CHECKING:
    from typing import Any

if DECLARING:
    from ompy.frameworks.communicator import Communicator

# kinds of calls, as the digest has them (`events.folded`, which says the same in one place)
SENT = 16777260
RECEIVED = 33554519
LEAST = -1  # tag of a program: ANY_TAG; those below are internal (reference openmpi.md 3.4)
MASK = 0xFFFFFFFF  # values of 32 bits, as recordings have them


@cclass
class CountingPml(PmlWrapper):
    """Counts sends and receives of the program. Those of windows and of ompy itself are none.

    Attributes:
        calls: sends, and receives that name source and tag.
        digest: of their peers and tags (`events.folded`).
        posted: nonblocking receives of the program.
        numbers: of these, by the request's id: that of the latest with this id.
        every: all receives are looked at, those of collectives too.
        straight: nonblocking receives that name source and tag are not.
        kind: class of the PML's receives.
        threads: whose turn it is to begin something, to be entered around that; None as long as
            the program has one thread. Of another thread's turn the counts are its own.
    """

    calls: int
    digest: int
    every: bool
    kind: object
    numbers: dict[int, int]
    posted: int
    straight: bool
    threads: Any
    __slots__ = tuple(__annotations__)

    def __init__(self, inner: Pml, every: bool) -> None:
        PmlWrapper.__init__(self, inner)
        self.calls = 0
        self.digest = 0
        self.every = every
        self.kind = None
        self.numbers = {}
        self.posted = 0
        self.straight = not every
        self.threads = None

    @ccall
    def send(
        self, communicator: Communicator, convertor: Convertor, target: int, tag: int, mode: int
    ) -> None:
        """Hand on."""
        if tag >= 0 and not communicator.served:
            if self.threads is not None:
                request = self.begin_send_in_turn(communicator, convertor, target, tag, mode)
                self.wait(communicator, request)
                return
            self.calls += 1
            mixed: int = self.digest * 33 + target * 65599 + tag * 31 + SENT
            self.digest = mixed & MASK
        self.inner.send(communicator, convertor, target, tag, mode)

    @ccall
    def isend(
        self, communicator: Communicator, convertor: Convertor, target: int, tag: int, mode: int
    ) -> Request:
        """Hand on."""
        if tag >= 0 and not communicator.served:
            if self.threads is not None:
                return self.begin_send_in_turn(communicator, convertor, target, tag, mode)
            self.calls += 1
            mixed: int = self.digest * 33 + target * 65599 + tag * 31 + SENT
            self.digest = mixed & MASK
        return self.inner.isend(communicator, convertor, target, tag, mode)

    @ccall
    def isend_waited(
        self, communicator: Communicator, convertor: Convertor, target: int, tag: int
    ) -> Request:
        """Hand on."""
        if tag >= 0 and not communicator.served:
            if self.threads is not None:
                return self.begin_send_in_turn(communicator, convertor, target, tag, STANDARD)
            self.calls += 1
            mixed: int = self.digest * 33 + target * 65599 + tag * 31 + SENT
            self.digest = mixed & MASK
        return self.inner.isend_waited(communicator, convertor, target, tag)

    def begin_send_in_turn(
        self, communicator: Communicator, convertor: Convertor, target: int, tag: int, mode: int
    ) -> Request:
        """Count a send and begin it, when it is this thread's turn."""
        with self.threads:
            self.calls += 1
            mixed: int = self.digest * 33 + target * 65599 + tag * 31 + SENT
            self.digest = mixed & MASK
            return self.inner.isend(communicator, convertor, target, tag, mode)

    @ccall
    def irecv(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int
    ) -> Request:
        """Hand on, or have it looked at."""
        if tag < LEAST or communicator.served:
            made = self.irecv_internal(communicator, convertor, source, tag)
            self.numbers.pop(id(made), None)
            return made
        if self.threads is not None:
            with self.threads:
                return self._begin_receive(communicator, convertor, source, tag)
        return self._begin_receive(communicator, convertor, source, tag)

    @cfunc
    def _begin_receive(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int
    ) -> Request:
        """Count a receive of the program's and begin it, or have it looked at."""
        self.posted += 1
        if source >= 0 and tag >= 0:
            self.calls += 1
            mixed: int = self.digest * 33 + source * 65599 + tag * 31 + RECEIVED
            self.digest = mixed & MASK
        number: int = self.posted
        if self.straight and source >= 0 and tag >= 0:
            request = self.inner.irecv(communicator, convertor, source, tag)
        else:
            request = self.irecv_numbered(communicator, convertor, source, tag, number)
        self.numbers[id(request)] = number
        self.kind = request.__class__
        return request

    def number_of(self, request: Request) -> int:
        """Which nonblocking receive of the program a request is; 0 if it is none."""
        return self.numbers.get(id(request), 0) if request.__class__ is self.kind else 0

    @ccall
    def recv(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int
    ) -> Request:
        """Hand on, or have it looked at."""
        if tag < LEAST or communicator.served:
            if self.every:
                return self.inner.wait(
                    communicator, self.irecv_internal(communicator, convertor, source, tag)
                )
            return self.inner.recv(communicator, convertor, source, tag)
        if self.threads is not None:  # another one may begin a receive before this has a message
            return self.recv_in_turn(communicator, convertor, source, tag)
        if source >= 0 and tag >= 0:
            self.calls += 1
            mixed: int = self.digest * 33 + source * 65599 + tag * 31 + RECEIVED
            self.digest = mixed & MASK
            if not self.every:
                return self.inner.recv(communicator, convertor, source, tag)
        return self.recv_looked_at(communicator, convertor, source, tag)

    def recv_in_turn(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int
    ) -> Request:
        """A blocking receive of one of several threads: begun in turn, and ended in turn."""
        request = self.irecv(communicator, convertor, source, tag)
        try:
            return self.wait(communicator, request)
        finally:
            self.tell_returned()

    def tell_returned(self) -> None:
        """A thread has what it waited for, where there are several."""

    @ccall
    def irecv_internal(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int
    ) -> Request:
        """A receive of ompy's own."""
        return self.inner.irecv(communicator, convertor, source, tag)

    @ccall
    def irecv_numbered(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int, number: int
    ) -> Request:
        """A nonblocking receive of the program's, its `number`th."""
        return self.inner.irecv(communicator, convertor, source, tag)

    @ccall
    def recv_looked_at(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int
    ) -> Request:
        """A blocking one that names no source, or no tag, or where every one is looked at."""
        return self.inner.recv(communicator, convertor, source, tag)
