"""sm for one communicator: its memory, and what is done where there is none.

The memory is made when the first operation is called: rank 0 has it and tells the others, who map
it. Where one of them cannot, all go on with the module of the next priority.
"""

from __future__ import annotations

from collections.abc import Callable

from ompy.data.message import Message
from ompy.data.operation import Operation
from ompy.frameworks.coll import TAG_ALLREDUCE, TAG_BARRIER, TAG_BCAST, TAG_REDUCE, CollModule
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.shared_memory import SharedMemory, share
from ompy.mca.parameter import Values

from ompy_components.coll.sm.board import Board, board_size
from ompy_components.coll.sm.operations import Operations


class SmColl(CollModule):
    """Blocking operations of one communicator; others are the next module's."""

    def __init__(self, communicator: Communicator, values: Values) -> None:
        super().__init__(communicator)
        self._fragment: int = values.fragment_size
        self._depth: int = values.comm_num_segments
        self._window: int = values.window_size
        self._shared: SharedMemory | None = None
        self._operations: Operations | None = None

    def _ready(self) -> Operations | None:
        """The operations on the memory, made with the first; None where there is none."""
        if self._shared is None:
            size = board_size(self.communicator.size, self._depth, self._fragment)
            self._shared = share(self.communicator, size)
            view = self._shared.view
            if view is not None:
                board = Board(self.communicator, view, self._depth, self._fragment)
                self._operations = Operations(board, self._fragment, self._window)
        return self._operations

    def close(self) -> None:
        """Give the memory back."""
        self._operations = None
        if self._shared is not None:
            self._shared.close()

    def barrier(self) -> None:
        """Return when every member has called it."""
        operations = self._operations or self._ready()
        if operations is None:
            self._complete(TAG_BARRIER, self._next.schedule_barrier)
        else:
            operations.barrier()

    def prompt_barrier(self) -> Callable[[], None] | None:
        """The same, if there is memory: who waits there looks at every member."""
        operations = self._operations or self._ready()
        return None if operations is None else operations.barrier

    def bcast(self, message: Message, root: int) -> None:
        """Copy the root's message to every member."""
        operations = self._operations or self._ready()
        if operations is None:
            self._complete(TAG_BCAST, self._next.schedule_bcast, message, root)
        else:
            operations.bcast(message, root)

    def reduce(
        self, send: Message | None, receive: Message | None, operation: Operation, root: int
    ) -> None:
        """Combine all members' data; elements that are larger than a fragment as messages."""
        mine = send if send is not None else receive
        assert mine is not None, "every member has data"
        operations = self._operations or self._ready()
        if operations is None or mine.layout.size > self._fragment:
            plan = self._next.schedule_reduce
            self._complete(TAG_REDUCE, plan, send, receive, operation, root)
        else:
            operations.reduce(send, receive, operation, root)

    def allreduce(self, send: Message | None, receive: Message, operation: Operation) -> None:
        """Combine all members' data for all of them."""
        operations = self._operations or self._ready()
        if operations is None or receive.layout.size > self._fragment:
            plan = self._next.schedule_allreduce
            self._complete(TAG_ALLREDUCE, plan, send, receive, operation)
        else:
            operations.allreduce(send, receive, operation)

    @property
    def _next(self) -> CollModule:
        """What serves the operations here when there is no shared memory."""
        assert self.communicator.coll is not None, "it was selected"
        return self.communicator.coll
