"""The PML contract: point-to-point messages with MPI's matching rules.

The MPI floor calls it with valid arguments: ranks exist, PROC_NULL is handled above. Any
thread of the rank may call; the PML takes the rank's lock itself. The memory under a
convertor is the user's, and stays untouched until the request completes.

Tags of users are 0 and up. Negative tags are internal (collectives); ANY_TAG never matches
them.

**Buffered sends.** The MPI floor owns the attached buffer: it refuses what does not fit, and for
it the send is complete when `isend` returns. The convertor it passes is a `BufferedConvertor`
(`ompy.data.buffered`) over the user's memory. The PML calls `convertor.keep(offset)` before
`isend` returns unless the whole message has been handed to a BTL by then: the bytes from `offset`
on are copied into the attached buffer, and later fragments are packed from there. The request
completes when everything is sent; then the floor takes the copy's memory back. A PML made for
an older contract treats the mode as standard and never calls `keep`: so the floor calls
`keep(0)` itself on a request that comes back incomplete, which does nothing the second time.

One PML is selected, by priority. *Wrappers* then put themselves around it, as Open MPI's
`monitoring` does: they see every call, and the PML inside knows nothing of them. A wrapper
changes nothing on the wire, so ranks with it and ranks without it work together, and the name
that peers compare stays that of the PML inside.

Source: reference openmpi.md 3.1 and 3.2, seed ob1; wrappers 1.4.9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from ompy.compiled import DECLARING, ccall, cclass
from ompy.data.convertor import Convertor
from ompy.data.errors import ERR_PROC_FAILED, ERR_UNSUPPORTED_OPERATION, MPIError
from ompy.data.request import Request, Waitable
from ompy.mca.component import ApiVersion, Component

if TYPE_CHECKING:
    from ompy.frameworks.bml import Bml
    from ompy.frameworks.btl import BtlModule
    from ompy.frameworks.context import RankContext
    from ompy.frameworks.explanation import Explanation
    from ompy.frameworks.needs import Need, Traffic

if DECLARING:
    from ompy.frameworks.communicator import Communicator

# 2.0: reference openmpi.md 0.6, PML 2.0.0 (Open MPI 4.x); 2.1 adds wrappers, and asks nothing
# new of a component made for 2.0; 2.2 has buffered sends keep what is not sent, by themselves;
# 2.3 has a PML explain its choices and say what it waits for, if it likes; 2.4 tells it of a send
# that its caller waits for; 2.5 asks what it has counted; 2.6 what a request needs of others, and
# has it fail what is under way in a communicator that is revoked, and what waits for anybody when a
# member has died; 2.7 how many messages it has sent to whom, and which receives are pending
API: Final[ApiVersion] = (2, 7)

# communication modes; seed ob1: standard, buffered, synchronous and ready
STANDARD: Final = 0
BUFFERED: Final = 1
SYNCHRONOUS: Final = 2
READY: Final = 3

# internal tags from -199 to -100 are the wrappers', for messages between their own kind
TAG_WRAPPERS: Final = -100


@cclass
class MatchedMessage:
    """A message taken out of matching by a matched probe, not yet received.

    Attributes:
        source: rank in the communicator.
        tag: of the message.
        length: bytes.
    """

    length: int
    source: int
    tag: int
    __slots__ = tuple(__annotations__)


@cclass
class Pml:
    """Point-to-point for one rank."""

    __slots__ = ()

    @ccall
    def add_communicator(self, communicator: Communicator) -> None:
        """Begin matching for a communicator; what arrived early is delivered now."""
        raise NotImplementedError

    @ccall
    def remove_communicator(self, communicator: Communicator) -> None:
        """End matching for a communicator."""
        raise NotImplementedError

    def add_btl(self, module: BtlModule) -> None:
        """Use a BTL module that was made later, for processes of another world, as those before.

        Raises:
            MPIError: it cannot be used; the text says why.
        """

    @ccall
    def isend(
        self, communicator: Communicator, convertor: Convertor, target: int, tag: int, mode: int
    ) -> Request:
        """Begin to send.

        Returns:
            A request; complete when the memory may be reused (synchronous mode: and when
            the receive was matched). In buffered mode the user's memory is free when this
            returns; the request says when the copy is.

        Raises:
            MPIError: the peer cannot be reached.
        """
        raise NotImplementedError

    @ccall
    def irecv(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int
    ) -> Request:
        """Begin to receive from a rank or ANY_SOURCE, a tag or ANY_TAG.

        The request completes with `ERR_TRUNCATE` when the message is longer than the
        convertor; what fits is stored.
        """
        raise NotImplementedError

    @ccall
    def iprobe(self, communicator: Communicator, source: int, tag: int) -> Request | None:
        """A message that a receive would match now, as a completed request; or None."""
        raise NotImplementedError

    @ccall
    def probe(self, communicator: Communicator, source: int, tag: int) -> Request:
        """Wait for a message that a receive would match; it stays to be received."""
        raise NotImplementedError

    @ccall
    def improbe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage | None:
        """Take a message out of matching, or None if there is none."""
        raise NotImplementedError

    @ccall
    def mprobe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage:
        """Wait for a message and take it out of matching."""
        raise NotImplementedError

    @ccall
    def imrecv(self, message: MatchedMessage, convertor: Convertor) -> Request:
        """Begin to receive a message taken out of matching."""
        raise NotImplementedError

    @ccall
    def cancel(self, request: Request) -> None:
        """Cancel a receive that is not matched yet; anything else goes on."""
        raise NotImplementedError

    def abandon(self, communicator: Communicator, tag: int, code: int = ERR_PROC_FAILED) -> None:
        """This rank's part in the collective with this internal tag has failed: it ends it.

        A PML that can tells the members: what waits there for this rank's messages with that tag
        fails with `code`, once all that was sent is taken in.
        """

    def revoke(self, communicator: Communicator, spared: int) -> None:
        """Fail what is under way in a communicator with ERR_REVOKED (since API 2.6).

        Nothing more begins there, as the caller sees to it. What has come stays unreceived.

        Args:
            communicator: which.
            spared: internal tag of messages that go on.
        """

    def resume_receives(self, communicator: Communicator) -> None:
        """Have receives that failed with ERR_PROC_FAILED_PENDING wait again (since API 2.6).

        They are from ANY_SOURCE, and the program has acknowledged more of the members that died.
        They go behind the receives that were posted meanwhile.
        """

    def unreceived(self, communicator: Communicator) -> list[tuple[int, int]]:
        """Sources and tags, internal ones too, of messages that are here and nobody has asked for.

        For what is said of an error. A PML that does not know them says none.
        """
        return []

    def pending_receives(self, communicator: Communicator) -> list[Request]:
        """The program's receives in a communicator that are not complete (since API 2.7).

        A communicator that is freed lives until they are (MPI standard, 7.4.3). A PML that does not
        know them says none. The caller holds the rank's lock.
        """
        return []

    def need(self, waitable: Waitable) -> Need | None:
        """What the ranks named have to do before this can complete (since API 2.6).

        Only what surely needs them is a need: None for what is under way, or not known. The caller
        holds the rank's lock.
        """
        return None

    def traffic(self, communicator: Communicator) -> Traffic | None:
        """The messages sent and taken in in a communicator; None if not known (since API 2.6).

        Two ranks whose numbers agree have no message from the one to the other under way. The
        caller holds the rank's lock.
        """
        return None

    def messages_to(self) -> dict[int, int]:
        """How many messages it has numbered for each rank of the job (since API 2.7).

        Read at any moment, by a signal handler too. Empty if it is not known.
        """
        return {}

    @ccall
    def send(
        self, communicator: Communicator, convertor: Convertor, target: int, tag: int, mode: int
    ) -> None:
        """Send, and return when the memory may be reused."""
        self.wait(communicator, self.isend(communicator, convertor, target, tag, mode))

    @ccall
    def isend_waited(
        self, communicator: Communicator, convertor: Convertor, target: int, tag: int
    ) -> Request:
        """A standard `isend` of a caller who does nothing but wait for it (since API 2.4)."""
        return self.isend(communicator, convertor, target, tag, STANDARD)

    @ccall
    def recv(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int
    ) -> Request:
        """Receive; the completed request says what came."""
        return self.wait(communicator, self.irecv(communicator, convertor, source, tag))

    @ccall
    def wait(self, communicator: Communicator, request: Request) -> Request:
        """Wait for a request; raises MPIError if it failed."""
        communicator.context.engine.wait(request)
        if request.error:
            raise MPIError(request.error, request.detail)
        return request

    def explain(
        self, communicator: Communicator, target: int, size: int, mode: int, contiguous: bool
    ) -> Explanation:
        """Which protocol a message would take, and why (since API 2.3). Sends nothing.

        Call it only while nothing is under way: it may try out other settings.

        Raises:
            MPIError: ERR_UNSUPPORTED_OPERATION, this PML cannot say; or the peer is not reached.
        """
        raise MPIError(ERR_UNSUPPORTED_OPERATION, f"{type(self).__name__} explains nothing")

    def waiting(self) -> list[str]:
        """What is not complete, a line each for people to read (since API 2.3).

        May be called at any moment, from a signal handler too: it changes nothing, takes no lock
        and may miss what is just changing.
        """
        return []

    def counted(self) -> dict[str, int]:
        """What it has counted, by name (since API 2.5): the values of its component's `pvars`.

        It changes nothing, and costs what it takes to look everywhere.
        """
        return {}

    def who_may_send(self, communicator: Communicator) -> list[int]:
        """The members that have not left, or of whose messages there not all have come.

        By default these are all.
        """
        return list(range(len(communicator.procs)))

    @ccall
    def say_leave(self) -> None:
        """This rank begins to finalize: others wait no longer for what it has not sent.

        A PML does so in `finalize` too, if nobody has before. By default nothing is said.
        """

    @ccall
    def finalize(self) -> None:
        """Deliver what was accepted and end."""
        raise NotImplementedError


@cclass
class PmlWrapper(Pml):
    """A PML around another one; this one hands every call on.

    A subclass overrides the calls it cares about and has `inner` do the work. `send` and `recv`
    are not handed on: they are made of `isend`, `irecv` and `wait` as in any PML, so that a
    wrapper of those sees all messages.

    What a communicator's `pml_state` and a request of `inner` hold is the inner PML's alone.

    Attributes:
        inner: the PML inside, which may be a wrapper too.
    """

    inner: Pml
    __slots__ = tuple(__annotations__)

    def __init__(self, inner: Pml) -> None:
        self.inner = inner

    @ccall
    def add_communicator(self, communicator: Communicator) -> None:
        """Hand on; `communicator.pml` is the outermost wrapper."""
        self.inner.add_communicator(communicator)

    @ccall
    def remove_communicator(self, communicator: Communicator) -> None:
        """Hand on."""
        self.inner.remove_communicator(communicator)

    def add_btl(self, module: BtlModule) -> None:
        """Hand on."""
        self.inner.add_btl(module)

    @ccall
    def isend(
        self, communicator: Communicator, convertor: Convertor, target: int, tag: int, mode: int
    ) -> Request:
        """Hand on."""
        return self.inner.isend(communicator, convertor, target, tag, mode)

    @ccall
    def irecv(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int
    ) -> Request:
        """Hand on."""
        return self.inner.irecv(communicator, convertor, source, tag)

    @ccall
    def iprobe(self, communicator: Communicator, source: int, tag: int) -> Request | None:
        """Hand on."""
        return self.inner.iprobe(communicator, source, tag)

    @ccall
    def probe(self, communicator: Communicator, source: int, tag: int) -> Request:
        """Hand on."""
        return self.inner.probe(communicator, source, tag)

    @ccall
    def improbe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage | None:
        """Hand on."""
        return self.inner.improbe(communicator, source, tag)

    @ccall
    def mprobe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage:
        """Hand on."""
        return self.inner.mprobe(communicator, source, tag)

    @ccall
    def imrecv(self, message: MatchedMessage, convertor: Convertor) -> Request:
        """Hand on; `message` has to be the one `inner` gave."""
        return self.inner.imrecv(message, convertor)

    @ccall
    def cancel(self, request: Request) -> None:
        """Hand on."""
        self.inner.cancel(request)

    def abandon(self, communicator: Communicator, tag: int, code: int = ERR_PROC_FAILED) -> None:
        """Hand on."""
        self.inner.abandon(communicator, tag, code)

    def revoke(self, communicator: Communicator, spared: int) -> None:
        """Hand on."""
        self.inner.revoke(communicator, spared)

    def resume_receives(self, communicator: Communicator) -> None:
        """Hand on."""
        self.inner.resume_receives(communicator)

    def unreceived(self, communicator: Communicator) -> list[tuple[int, int]]:
        """Hand on."""
        return self.inner.unreceived(communicator)

    def pending_receives(self, communicator: Communicator) -> list[Request]:
        """Hand on."""
        return self.inner.pending_receives(communicator)

    def need(self, waitable: Waitable) -> Need | None:
        """As the PML inside says."""
        return self.inner.need(waitable)

    def traffic(self, communicator: Communicator) -> Traffic | None:
        """As the PML inside says."""
        return self.inner.traffic(communicator)

    def messages_to(self) -> dict[int, int]:
        """As the PML inside says."""
        return self.inner.messages_to()

    @ccall
    def wait(self, communicator: Communicator, request: Request) -> Request:
        """Hand on."""
        return self.inner.wait(communicator, request)

    def explain(
        self, communicator: Communicator, target: int, size: int, mode: int, contiguous: bool
    ) -> Explanation:
        """Hand on."""
        return self.inner.explain(communicator, target, size, mode, contiguous)

    def counted(self) -> dict[str, int]:
        """Hand on."""
        return self.inner.counted()

    def waiting(self) -> list[str]:
        """Hand on."""
        return self.inner.waiting()

    def who_may_send(self, communicator: Communicator) -> list[int]:
        """As the PML inside says."""
        return self.inner.who_may_send(communicator)

    @ccall
    def say_leave(self) -> None:
        """Hand on."""
        self.inner.say_leave()

    @ccall
    def finalize(self) -> None:
        """Hand on. A wrapper with something to say over `inner` says it first."""
        self.inner.finalize()


class PmlComponent(Component):
    """Base of PML components."""

    framework: ClassVar[str] = "pml"

    def init(self, context: RankContext, bml: Bml) -> Pml:
        """The PML of one rank.

        Raises:
            NotAvailable: it cannot work here; the reason is kept.
        """
        raise NotImplementedError


class PmlWrapperComponent(Component):
    """Base of components that wrap the selected PML (since API 2.1).

    They stand in the framework `pml` like any other and are selected on their own: each that the
    selection allows and that does not decline wraps, the one with the highest priority first, and
    so closest to the PML.
    """

    framework: ClassVar[str] = "pml"

    def declines(self) -> str:
        """Why it wraps nothing in this job, in a sentence; empty when it will.

        Asked when it is open. Its parameters decide, nothing else: `ompy-info` asks too.
        """
        return ""

    def wrap(self, context: RankContext, inner: Pml) -> Pml:
        """The wrapper of one rank, around a PML that is ready.

        What it publishes through `context.wireup` is committed later.

        Raises:
            NotAvailable: it cannot work here; the reason is kept, and the job goes on without.
        """
        raise NotImplementedError
