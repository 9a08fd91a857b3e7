"""sm for one communicator: its memory, and what is done where there is none.

The memory is made when the first operation is called: rank 0 has it and tells the others, who map
it. Where one of them cannot, all go on with the module of the next priority.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ompy.compiled import U64, Shown, ccall, cclass, cfunc
from ompy.data.message import Blocks, Message
from ompy.data.operation import Operation
from ompy.data.request import Request
from ompy.frameworks.coll import (
    NEIGHBOURHOODS,
    OPERATIONS,
    TAG_ALLGATHER,
    TAG_ALLREDUCE,
    TAG_ALLTOALL,
    TAG_BARRIER,
    TAG_BCAST,
    TAG_EXSCAN,
    TAG_GATHER,
    TAG_NEIGHBOR_ALLGATHER,
    TAG_NEIGHBOR_ALLTOALL,
    TAG_REDUCE,
    TAG_REDUCE_SCATTER,
    TAG_SCAN,
    TAG_SCATTER,
    TAG_SHARED_MEMORY,
    UNKNOWN,
    CollModule,
    PreparedCall,
)
from ompy.frameworks.collectives.call_kinds import KINDS, operation_of
from ompy.frameworks.collectives.call_order import CallOrder, name_of
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.neighbours import Neighbours
from ompy.frameworks.collectives.shared_memory import PROOF_SIZE, SharedMemory, share
from ompy.frameworks.collectives.unsized import UnsizedMessages
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.explanation import Choice
from ompy.mca.parameter import Values

from ompy_components.coll.sm.blocks import BlockOperations, table_size
from ompy_components.coll.sm.broadcast import Broadcast
from ompy_components.coll.sm.choosing import Asked, Rule, asked, reasons, way
from ompy_components.coll.sm.edges import EdgeOperations
from ompy_components.coll.sm.leaving import LeavableBoard
from ompy_components.coll.sm.lending import Lending
from ompy_components.coll.sm.lent_reductions import LentReductions
from ompy_components.coll.sm.nonblocking import NonblockingCalls
from ompy_components.coll.sm.nonblocking_reasons import begin_reasons
from ompy_components.coll.sm.operations import Operations
from ompy_components.coll.sm.parts import PartOperations
from ompy_components.coll.sm.slots import LINE, board_size
from ompy_components.coll.sm.unsized import UnsizedOperations

# arbitrary: so many exchanges of words take as long as to make memory
WITHOUT_MEMORY: Final = 8
# times that memory is left before a communicator goes on without; arbitrary: what was left is kept
# until the communicator goes, as others may still read it
LEFT_MOST: Final = 16
# blocking calls that show nothing here before the others hear of a member by messages
BY_MESSAGES: Final = frozenset(
    {
        "scan",
        "exscan",
        "Create_dist_graph",
        "Create_intercomm",
        "Iagree",
        "Sub",
        "File.Iread_all",
        "File.Iwrite_all",
        "File.Read_all_begin",
        "File.Write_all_begin",
        "Spawn",
        "Accept",
        "Connect",
    }
)
# nonblocking calls, and the operations that they begin
BEGUN: Final = {
    "Idup": "allgather",
    "Ishrink": "allgather",
    **{
        name: operation_of(name)
        for name in KINDS
        if name[0] == "I" and operation_of(name) in {*OPERATIONS, *NEIGHBOURHOODS}
    },
}
_UNKNOWN: Final = UNKNOWN  # of this module: a number in C where it is compiled


@cclass
class SmColl(CollModule):
    """Operations of one communicator."""

    _blocks: BlockOperations | None
    _board: LeavableBoard | None
    _broadcast: Broadcast | None
    _depth: int
    _edges: EdgeOperations | None
    _lend_least: int
    _left: list[tuple[SharedMemory, Lending | None]]
    _exchanged: int
    _fragment: int
    _lending: Lending | None
    _nonblocking: Shown[NonblockingCalls]
    _operations: Shown[Operations | None]
    _parts: PartOperations | None
    _room: int
    _shared: SharedMemory | None
    _single_copy: bool
    _tables: bool
    _unsized: UnsizedOperations | None
    _window: int
    __slots__ = tuple(__annotations__)

    def __init__(self, communicator: Communicator, values: Values) -> None:
        super().__init__(communicator)
        self._fragment = values.fragment_size
        self._lend_least = min(max(1, values.lend_least), self._fragment + 1)
        self._depth = 1 << (values.comm_num_segments - 1).bit_length()
        self._window = values.window_size
        self._single_copy = values.single_copy
        self._tables = table_size(communicator.size) <= self._fragment  # they fit into a slot
        self._exchanged = 0
        self._shared = None
        self._board = None
        self._left = []
        self._lending = None
        self._operations = None
        self._blocks = None
        self._broadcast = None
        self._edges = None
        self._parts = None
        self._unsized = None
        self._room = values.nonblocking_size
        least = max(1, values.lend_least) if self._single_copy else 0
        self._nonblocking = NonblockingCalls(communicator, self._depth, self._room, least)

    @classmethod
    def offers_begin(cls, operation: str) -> bool:
        """All of them."""
        return operation in OPERATIONS or operation in NEIGHBOURHOODS

    @ccall
    def begin(
        self, operation: str, arguments: tuple[Any, ...], tag: int, word: U64, kept: int
    ) -> Request | None:
        """Begin a nonblocking call on memory of its own; None where there is none."""
        return self._nonblocking.begin_call(operation, arguments, tag, word, kept)

    def keep_call(self, operation: str) -> int:
        """The number of a persistent request, of which the first few have slots."""
        return self._nonblocking.keep_call()

    def prepare_call(
        self, operation: str, arguments: tuple[Any, ...], tag: int, word: U64, kept: int
    ) -> PreparedCall | None:
        """What starts a persistent request on a slot of its own; None where it has none."""
        return self._nonblocking.prepare_call(operation, arguments, tag, word, kept)

    @cfunc
    def _ready(self) -> Operations | None:
        """The operations on the memory, made with the first; None where there is none."""
        if self._shared is None:
            self._share()
        return self._operations

    def _share(self) -> None:
        size = board_size(self.communicator.size, self._depth, self._fragment)
        willing = len(self._left) < LEFT_MOST
        tag = self._tag(TAG_SHARED_MEMORY)
        shared = share(self.communicator, size, tag, willing=willing, leave=self._spoil)
        self._shared = shared
        if shared.view is not None:
            self._make(shared.view, shared)

    def _spoil(self, shared: SharedMemory) -> None:
        """This member has not heard whether all have new memory: nobody is to wait for it there."""
        self._left.append((shared, None))
        assert shared.view is not None, "it is not asked for else"
        LeavableBoard(self.communicator, shared.view, self._depth, self._fragment).leave()

    def _forget(self) -> None:
        """This member has left the memory; the next call is to make another one."""
        assert self._shared is not None, "it had some"
        self._left.append((self._shared, self._lending))
        self._forget_operations()
        self._shared = self._lending = None

    def _forget_operations(self) -> None:
        self._operations = self._blocks = self._parts = self._unsized = None
        self._board = self._broadcast = self._edges = None

    def take_no_part(self) -> Request | None:
        """Show so in place of what the others wait for."""
        name = name_of(self.communicator.order.word)
        board = self._board
        if name.endswith("_init"):
            return self._nonblocking.leave_out()
        if name in BEGUN:
            return self._nonblocking.take_no_part(BEGUN[name])
        if board is not None and name not in BY_MESSAGES and not board.has_shown():
            board.refuse_next(self._fragment if name == "Bcast" else 0)
        return None

    @cfunc
    def _ready_blocks(self) -> BlockOperations | None:
        """The same for operations on blocks."""
        self._ready()
        return self._blocks

    @cfunc
    def _ready_edges(self) -> EdgeOperations | None:
        """The same for operations along edges."""
        self._ready()
        return self._edges

    @cfunc
    def _ready_parts(self) -> PartOperations | None:
        """The same for reductions whose results differ."""
        self._ready()
        return self._parts

    def _make(self, view: memoryview, shared: SharedMemory) -> None:
        kind, lender = LeavableBoard, Lending
        if self.communicator.context.trace.active:
            from ompy_components.coll.sm.traced_board import TracedBoard, TracedLending

            kind, lender = TracedBoard, TracedLending
        board = kind(self.communicator, view, self._depth, self._fragment)
        board.leaving = self._forget
        self._board = board
        lending = lender(board, shared.copy if self._single_copy else None)
        self._lending = lending
        self._blocks = BlockOperations(
            self.communicator, board, lending, self._fragment, self._lend_least
        )
        self._edges = EdgeOperations(
            self.communicator, board, lending, self._fragment, self._lend_least
        )
        lent = LentReductions(board, lending) if self._single_copy else None
        self._parts = PartOperations(board, self._fragment, self._window, lent)
        if self._tables:
            self._unsized = UnsizedOperations(self.communicator, board, self._fragment)
        self._broadcast = Broadcast(board, lending, self._fragment, self._lend_least)
        self._operations = Operations(board, self._fragment, self._window, lent)

    def name_way(self, operation: str, arguments: tuple[Any, ...]) -> str:
        """The way through memory; all members ask for it together, as the call that follows."""
        if self._ready() is None:
            return ""
        return way(self._asked(operation, arguments), self._rule())

    def explain_choice(
        self, operation: str, exchange: Exchange, arguments: tuple[Any, ...]
    ) -> Choice:
        """Why the call goes through memory, or does not."""

        def otherwise() -> str:
            return "messages, as the component of the next priority has them"

        about = self._asked(operation, arguments)
        return reasons(about, self._rule(), otherwise)

    def _rule(self) -> Rule:
        size = self.communicator.size
        return Rule(self._fragment, self._window, self._lend_least, self._single_copy, size)

    def explain_begin(self, operation: str, arguments: tuple[Any, ...]) -> Choice:
        """Why a nonblocking call goes through memory of its own, or does not."""
        about, ranks = self._asked(operation, arguments), self.communicator.size
        least = self._lend_least if self._single_copy else 0
        return begin_reasons(about, arguments, ranks, self._room, least)

    def _asked(self, operation: str, arguments: tuple[Any, ...]) -> Asked:
        return asked(operation, arguments, self._tables)

    def close(self) -> None:
        """Give the memory back."""
        if self._board is not None:
            self._board.close()
        self._forget_operations()
        self._nonblocking.close()
        if self._lending is not None:
            self._lending.close()
            self._lending = None
        if self._shared is not None:
            self._left.append((self._shared, None))
        for shared, lending in self._left:
            if lending is not None:
                lending.close()
            shared.close()

    def barrier(self) -> None:
        """Return when every member has called it."""
        operations: Operations | None = self._ready()
        if operations is None:
            self._complete(TAG_BARRIER, self._next.schedule_barrier)
        else:
            operations.barrier()

    def prompt_barrier(self) -> Callable[[], None] | None:
        """The same, if there is memory: who waits there looks at every member."""
        return None if self._ready() is None else self.barrier

    def bcast(self, message: Message, root: int) -> None:
        """Copy the root's message to every member."""
        broadcast: Broadcast | None = self._broadcast if self._ready() is not None else None
        if broadcast is None:
            self._complete(TAG_BCAST, self._next.schedule_bcast, message, root)
        else:
            broadcast.bcast(message, root)

    def reduce(
        self, send: Message | None, receive: Message | None, operation: Operation, root: int
    ) -> None:
        """Combine all members' data; elements that are larger than a fragment as messages."""
        mine = send if send is not None else receive
        assert mine is not None, "every member has data"
        operations: Operations | None = self._ready()
        if operations is None or mine.layout.size > self._fragment:
            plan = self._next.schedule_reduce
            self._complete(TAG_REDUCE, plan, send, receive, operation, root)
        else:
            operations.reduce(send, receive, operation, root)

    def allreduce(self, send: Message | None, receive: Message, operation: Operation) -> None:
        """Combine all members' data for all of them."""
        operations: Operations | None = self._ready()
        if operations is None or receive.layout.size > self._fragment:
            plan = self._next.schedule_allreduce
            self._complete(TAG_ALLREDUCE, plan, send, receive, operation)
        else:
            operations.allreduce(send, receive, operation)

    # --- blocks

    @cfunc
    def _tag(self, tag: int) -> int:
        """The tag of the call's messages."""
        order: CallOrder = self.communicator.order
        found: int = order.tag()
        return found or tag

    def gather(self, send: Message | None, receive: Blocks | None, root: int) -> None:
        """Each member's block to the root."""
        blocks: BlockOperations | None = self._ready_blocks()
        if blocks is None:
            self._complete(TAG_GATHER, self._next.schedule_gather, send, receive, root)
        else:
            blocks.gather(send, receive, root, self._tag(TAG_GATHER))

    def scatter(self, send: Blocks | None, receive: Message | None, root: int) -> None:
        """Each of the root's blocks to its member."""
        blocks: BlockOperations | None = self._ready_blocks()
        if blocks is None or not self._tables:
            self._complete(TAG_SCATTER, self._next.schedule_scatter, send, receive, root)
        else:
            blocks.scatter(send, receive, root, self._tag(TAG_SCATTER))

    def allgather(self, send: Message | None, receive: Blocks) -> None:
        """Each member's block to every member."""
        blocks: BlockOperations | None = self._ready_blocks()
        if blocks is None:
            self._complete(TAG_ALLGATHER, self._next.schedule_allgather, send, receive)
        else:
            blocks.allgather(send, receive, self._tag(TAG_ALLGATHER))

    @ccall
    def exchange_words(self, said: bytes) -> list[bytes] | None:
        """What all members say; made for this alone, the memory costs as much as a few messages."""
        blocks: BlockOperations | None = self._blocks
        size: int = len(said)
        if blocks is None and self._is_worth_it():
            blocks = self._ready_blocks()
        if blocks is None or size > self._fragment:
            return None
        return blocks.exchange(said)

    @cfunc
    def _is_worth_it(self) -> bool:
        """Whether so much is exchanged here that memory is made for it; members count alike."""
        self._exchanged += 1
        order: CallOrder = self.communicator.order
        calls: int = order.number
        return (calls or self._exchanged) > WITHOUT_MEMORY

    @ccall
    def unsized_messages(self) -> UnsizedMessages | None:
        """What carries objects; the memory is made for it as for words."""
        if self._unsized is None and self._is_worth_it():
            self._ready()
        return self._unsized

    @ccall
    def compare_words(self, word: U64) -> int:
        """Whether all say the same; the memory is made for it."""
        operations: Operations | None = self._ready()
        return _UNKNOWN if operations is None else operations.compare(word)

    def hear_words(self, word: int) -> list[int] | None:
        """What each says, in place of a size; the memory is made for it."""
        operations: Operations | None = self._ready()
        return None if operations is None else operations.hear(word)

    def shared_words(self) -> memoryview | None:
        """What is left of the first cache line of the memory."""
        self._ready()
        view = None if self._shared is None else self._shared.view
        return None if view is None else view[PROOF_SIZE:LINE]

    def alltoall(self, send: Blocks | None, receive: Blocks) -> None:
        """Each member's blocks to their members."""
        blocks: BlockOperations | None = self._ready_blocks()
        if blocks is None or not self._tables:
            self._complete(TAG_ALLTOALL, self._next.schedule_alltoall, send, receive)
        else:
            blocks.alltoall(send, receive, self._tag(TAG_ALLTOALL))

    # --- along the edges of a topology

    def neighbor_allgather(self, send: Message, receive: Blocks, neighbours: Neighbours) -> None:
        """A member's block to all its targets."""
        edges: EdgeOperations | None = self._ready_edges()
        if edges is None:
            plan = self.schedule_neighbor_allgather
            self._complete(TAG_NEIGHBOR_ALLGATHER, plan, send, receive, neighbours)
        else:
            tag = self._tag(TAG_NEIGHBOR_ALLGATHER)
            edges.pass_along(send, None, receive, neighbours, tag)

    def neighbor_alltoall(self, send: Blocks, receive: Blocks, neighbours: Neighbours) -> None:
        """A block of its own to each target."""
        edges: EdgeOperations | None = self._ready_edges()
        if edges is None:
            plan = self.schedule_neighbor_alltoall
            self._complete(TAG_NEIGHBOR_ALLTOALL, plan, send, receive, neighbours)
        else:
            tag = self._tag(TAG_NEIGHBOR_ALLTOALL)
            edges.pass_along(None, send, receive, neighbours, tag)

    # --- results that differ from member to member

    def scan(self, send: Message | None, receive: Message, operation: Operation) -> None:
        """Combine the data of the members up to this one."""
        parts: PartOperations | None = self._ready_parts()
        if parts is None or receive.layout.size > self._fragment:
            self._complete(TAG_SCAN, self._next.schedule_scan, send, receive, operation)
        else:
            parts.scan(send, receive, operation, True)

    def exscan(self, send: Message | None, receive: Message, operation: Operation) -> None:
        """Combine the data of the members before this one."""
        parts: PartOperations | None = self._ready_parts()
        if parts is None or receive.layout.size > self._fragment:
            self._complete(TAG_EXSCAN, self._next.schedule_exscan, send, receive, operation)
        else:
            parts.scan(send, receive, operation, False)

    def reduce_scatter(
        self, send: Message | None, receive: Message, counts: list[int], operation: Operation
    ) -> None:
        """Combine all members' data, and give each its part."""
        parts: PartOperations | None = self._ready_parts()
        if parts is None or receive.layout.size * len(counts) > self._fragment:
            plan = self._next.schedule_reduce_scatter
            self._complete(TAG_REDUCE_SCATTER, plan, send, receive, counts, operation)
        else:
            parts.reduce_scatter(send, receive, counts, operation)

    @property
    def _next(self) -> CollModule:
        """What serves the operations here when there is no shared memory."""
        assert self.communicator.coll is not None, "it was selected"
        return self.communicator.coll
