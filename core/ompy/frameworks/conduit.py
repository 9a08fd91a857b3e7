"""The conduit contract: active messages, and reading and writing of peers' segments, for GASNet.

A conduit is what `ompy.gasnet` runs over, as a PML is what MPI runs over. The API above it checks
arguments, runs what is for the own rank itself, and keeps handles and access regions; a conduit
moves bytes between ranks.

**Life.** `init` bootstraps: ranks are known, and exit works. `attach` makes the segment, tells all
ranks' segments to all, and from then on messages and transfers may be begun. `exit` ends the job.

**Active messages.** A request goes to a handler of the peer, which may reply once, to who asked
and from within the handler only; a reply's handler sends nothing. Requests may wait for
resources, and then poll; replies never do. Handlers run within `poll` of their rank, and may not
wait for anything of the network. The call returns when the payload may be used again, but for
`LONG_ASYNC`, whose payload stays as it is until the reply has come. A LONG's payload is in the
segment before its handler runs; a MEDIUM's is the handler's while it runs.

**Transfers.** `put` and `get` begin something and return; `Transfer.done` is called from within a
poll, once, when the peer's memory has the bytes, or the local memory those read. A put that is not
`bulk` has let go of the local memory when it returns. Remote addresses are offsets into the
peer's segment, and the API has checked that they lie in it. Local memory may be anywhere.

**Atomics.** `atomics` says what the NIC computes in a peer's memory, all of it atomic among each
other; `atomic` begins one, as a transfer. What it does not compute the API has the owner
do, by active messages: atomic also with what the NIC does there where both have the rank's lock.

**Threads.** Modes SEQ and PARSYNC have one caller at a time. In PAR several threads may be in any
of these calls, and handlers of several messages run at once.

Source: reference gasnet.md 1, 2; seed gasnet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from ompy.data.errors import ERR_UNSUPPORTED_OPERATION, MPIError
from ompy.engine.base import Poller
from ompy.mca.component import ApiVersion, Component

if TYPE_CHECKING:
    from ompy.frameworks.btl_base.atomics import AtomicOp, AtomicType
    from ompy.frameworks.context import RankContext
    from ompy.frameworks.explanation import Explanation, OperationAsked

API: Final[ApiVersion] = (1, 0)  # arbitrary: the first version

MAX_ARGS: Final = 16  # reference gasnet.md 1: 32-bit arguments of a message
HANDLERS: Final = 256  # reference gasnet.md 1
CORE_HANDLERS: Final = range(1, 64)  # a conduit's own
EXTENDED_HANDLERS: Final = range(64, 128)  # of `ompy.gasnet`
CLIENT_HANDLERS: Final = range(128, 256)
SECOND: Final = 1_000_000_000  # ns
EXIT_MIN: Final = 3  # reference gasnet.md 7: EXITTIMEOUT_MIN, s
EXIT_MAX: Final = 120  # reference gasnet.md 7: EXITTIMEOUT_MAX, s
EXIT_FACTOR: Final = 0.125  # reference gasnet.md 7: EXITTIMEOUT_FACTOR, s for each rank


class Category(Enum):
    """What a message carries beside its arguments."""

    SHORT = "short"  # nothing
    MEDIUM = "medium"  # bytes, for the time of the handler
    LONG = "long"  # bytes, to a place in the receiver's segment
    LONG_ASYNC = "long async"  # the same; requests only


class ThreadMode(Enum):
    """How many threads may call."""

    SEQ = "seq"
    PARSYNC = "parsync"
    PAR = "par"


class SegmentInfo(NamedTuple):
    """One rank's segment.

    Attributes:
        address: where it begins, as that rank has it.
        size: bytes.
    """

    address: int
    size: int


class Token:
    """What a handler knows of its message; a conduit derives its own.

    Attributes:
        source: rank that sent it.
        is_request: a reply may be sent.
        replied: one has been.
    """

    def __init__(self, source: int, *, is_request: bool) -> None:
        self.source = source
        self.is_request = is_request
        self.replied = False


# token, payload or the place in the segment it was written to, arguments
Handler = Callable[[Token, memoryview, Sequence[int]], Any]


class Transfer:
    """Told when a put or get is done."""

    def done(self, *, is_get: bool) -> None:
        """One put, or get, is done."""
        raise NotImplementedError


class Conduit(Poller):
    """Moves messages and bytes for one rank. Nothing is for the own rank.

    Attributes:
        name: of the component.
        context: the rank.
        mode: threads that may call.
        max_medium: bytes of a MEDIUM.
        max_long_request, max_long_reply: bytes of a LONG.
        max_put_local: bytes of a put that lets go of its memory at once; larger ones have to be
            `bulk`.
        segments: of all ranks, after `attach`.
        segment: the own one, after `attach`.
        mapped: after `attach`, by rank, segments that this rank can read and write as its own
            memory, its own and those of ranks of its host; None for the others, and for all after
            `exit`. The API has no need to call `put` and `get` for them.
        on_exit: called from within a poll, once, when another rank has ended the job and all know
            of it, with the code; by default it raises SystemExit. `exit` need not be called then.
        exit_limit: nanoseconds that `exit` waits for the others where the API has waited for them
            already; None: as `exit_timeout` says.
    """

    max_medium: int
    max_long_request: int
    max_long_reply: int
    max_put_local: int

    def __init__(self, name: str, context: RankContext, mode: ThreadMode) -> None:
        self.name = name
        self.context = context
        self.mode = mode
        self.segments: list[SegmentInfo] = []
        self.segment = memoryview(b"")
        self.mapped: list[memoryview | None] = []
        self.on_exit: Callable[[int], object] = _leave
        self.exit_limit: int | None = None

    def max_segment(self) -> tuple[int, int]:
        """Bytes of the largest segment this rank, and every rank, could have; before `attach`."""
        raise NotImplementedError

    def attach(self, handlers: Sequence[Handler | None], size: int) -> None:
        """Make the segment. All ranks call it.

        Args:
            handlers: `HANDLERS` of them by index; the conduit puts its own where they belong.
            size: bytes, a multiple of a page, not more than `max_segment` said.

        Raises:
            MPIError: there is no such memory.
        """
        raise NotImplementedError

    def request(
        self,
        category: Category,
        node: int,
        handler: int,
        arguments: Sequence[int],
        payload: memoryview,
        offset: int,
    ) -> None:
        """Send a request; waits for resources, polling.

        Args:
            category: what kind.
            node: who gets it.
            handler: index of it there.
            arguments: up to `MAX_ARGS`, 32 bits with a sign each; handlers get them so.
            payload: empty for SHORT.
            offset: into the peer's segment, of a LONG.

        Raises:
            MPIError: the peer is gone.
        """
        raise NotImplementedError

    def reply(
        self,
        category: Category,
        token: Token,
        handler: int,
        arguments: Sequence[int],
        payload: memoryview,
        offset: int,
    ) -> None:
        """Send the reply to a request, from within its handler; never polls for messages."""
        raise NotImplementedError

    def put(
        self, node: int, offset: int, local: memoryview, transfer: Transfer, *, bulk: bool
    ) -> None:
        """Begin to write into a peer's segment; waits for resources, polling."""
        raise NotImplementedError

    def get(self, node: int, offset: int, local: memoryview, transfer: Transfer) -> None:
        """Begin to read from a peer's segment; waits for resources, polling."""
        raise NotImplementedError

    def atomics(self, node: int) -> frozenset[tuple[AtomicOp, AtomicType]]:
        """What its NIC computes in a peer's segment; nothing where it does not say."""
        return frozenset()

    def atomic(
        self,
        node: int,
        offset: int,
        op: AtomicOp,
        kind: AtomicType,
        operand: int,
        compare: int,
        result: memoryview | None,
        transfer: Transfer,
    ) -> None:
        """Begin one of `atomics`; waits for resources, polling.

        Args:
            node: the peer.
            offset: of the word in its segment, a multiple of the word's bytes.
            op: what is computed.
            kind: of the word.
            operand: the second operand, as the bits of the word; of CSWAP what is written.
            compare: of CSWAP, with what the word is compared.
            result: gets the old value; None where nobody wants it.
            transfer: told; a get where it fetches.

        Raises:
            MPIError: the NIC does not take it, or a post has failed.
        """
        raise NotImplementedError

    def neighbours(self) -> Sequence[int]:
        """Ranks of this host, by rank, the own one among them."""
        raise NotImplementedError

    def exit_timeout(self) -> int:
        """Nanoseconds that ranks which leave wait for the others, before they end the job."""
        return int(SECOND * min(EXIT_MAX, EXIT_MIN + EXIT_FACTOR * self.context.size))

    def exit(self, code: int) -> int:
        """End the job with a code; returns when all ranks know, and nothing can be sent any more.

        Where others do not answer in time, which is `exit_limit` or else `exit_timeout`, the job
        is ended by its launcher, as by `WireUp.abort`, and never with 0. May be called from within
        a handler.

        Returns:
            The code of the job: the largest where several ranks end it.
        """
        raise NotImplementedError

    def explain(self, asked: OperationAsked) -> Explanation:
        """Say which way an operation would take, and why; `ompy explain` asks after `attach`.

        Raises:
            MPIError: it explains nothing, or there is no such operation.
        """
        raise MPIError(ERR_UNSUPPORTED_OPERATION, f"{type(self).__name__} explains nothing")

    def waiting(self) -> list[str]:
        """What is not complete, a line each for people to read, as `Pml.waiting`.

        May be called at any moment, from a signal handler too: it changes nothing, takes no lock
        and may miss what is just changing.
        """
        return []

    def counters(self) -> dict[str, int]:
        """What it has counted: stalls, retries, messages; for reports."""
        return {}


def _leave(code: int) -> None:
    raise SystemExit(code)


class ConduitComponent(Component):
    """Base of conduit components."""

    framework: ClassVar[str] = "conduit"
    emulated: ClassVar[bool] = True

    def init(self, context: RankContext, mode: ThreadMode) -> Conduit:
        """Bootstrap the conduit of one rank.

        Raises:
            NotAvailable: it cannot be used here.
        """
        raise NotImplementedError
