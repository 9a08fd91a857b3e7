"""A process group of torch whose messages are ompy's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final

import torch
import torch.distributed as dist
from ompy import MPI
from torch import Tensor
from torch.distributed.constants import default_pg_timeout

from ompy_torch import collectives
from ompy_torch.agreement import check_agreement, is_wanted
from ompy_torch.lane import Lane, LaneWork
from ompy_torch.messages import MessageWork
from ompy_torch.reductions import name_of
from ompy_torch.tensors import Room, check_tensors, message_of
from ompy_torch.work import DoneWork, ManyWork, as_torch_says

_ANY: Final = MPI.ANY_SOURCE
_CLOSING_S: Final = 5.0  # arbitrary: what is still under way then will not end

Tensors = list[Tensor]
Lists = list[list[Tensor]]


class OmpyProcessGroup(dist.ProcessGroup):
    """Ranks of an ompy job as torch.distributed wants them.

    A call that is not `async_op` and finds no other under way is made by the calling thread; all
    others by the group's lane. So collectives of a group run in the order of their calls.

    torch calls these methods by their names and options; they are not for users.
    """

    def __init__(self, store: dist.Store, comm: Any, timeout: timedelta) -> None:
        """Make a group.

        Args:
            store: torch's, for its own use.
            comm: a communicator of the members, which the group takes over.
            timeout: of waiting for a collective or message.
        """
        super().__init__(comm.rank, comm.size)  # the only form that a Python class may use
        self._comm = comm
        self._description = ""
        self._name = ""
        self._store = store
        self._lane = Lane(f"ompy_torch {comm.Get_name()}")
        self._timeout = timeout
        self._together: list[dist.Work] | None = None
        self._wary = is_wanted()

    # --- what torch asks of a group

    def getBackendName(self) -> str:  # noqa: N802 - torch's name
        """The name of the back end."""
        return "ompy"

    def name(self) -> str:
        """The name of the back end."""
        return "ompy"

    def setGroupName(self, name: str) -> None:  # noqa: N802 - torch's name
        """Take the name that torch knows the group by."""
        self._name = name

    def getGroupName(self) -> str:  # noqa: N802 - torch's name
        """The name that torch knows the group by."""
        return self._name

    def setGroupDesc(self, description: str) -> None:  # noqa: N802 - torch's name
        """Take what the user calls the group."""
        self._description = description

    def getGroupDesc(self) -> str:  # noqa: N802 - torch's name
        """What the user calls the group."""
        return self._description

    def get_group_store(self) -> dist.Store:
        """Where torch keeps what it says to this group alone."""
        return self._store

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device("cpu")]

    def set_timeout(self, timeout: timedelta) -> None:
        """Change how long a wait may take."""
        self._timeout = timeout

    def shutdown(self) -> None:
        """The end of the group: what was called is done first."""
        self._lane.close(_CLOSING_S)

    abort = shutdown

    def _set_sequence_number_for_group(self) -> None:
        pass

    def _get_sequence_number_for_group(self) -> int:
        return 0

    # --- how a call is made

    def _make(
        self,
        call: str,
        opts: Any,
        results: Tensors,
        operation: Callable[[], None],
        like: Sequence[Any] = (),
    ) -> dist.Work:
        """Make a collective call, now or in the lane.

        Args:
            call: its name.
            opts: torch's options: `asyncOp` and `timeout`.
            results: the tensors that are complete with it.
            operation: what does it.
            like: what all members must have alike; compared if TORCH_DISTRIBUTED_DEBUG is DETAIL.
        """
        timeout = opts.timeout if opts.timeout > timedelta() else self._timeout
        if self._wary:
            operation = check_agreement(self._comm, call, like, operation)
        made_here = not opts.asyncOp and timeout >= default_pg_timeout and self._lane.idle
        if made_here:
            try:
                operation()
            except MPI.Exception as problem:
                raise as_torch_says(problem, call) from problem
            return self._noted(DoneWork(results))
        work = LaneWork(call, results, timeout.total_seconds())
        self._lane.submit(work, operation)
        return self._noted(work)

    def _noted(self, work: dist.Work) -> dist.Work:
        if self._together is not None:
            self._together.append(work)
        return work

    def _start_coalescing(self, device: torch.device) -> None:
        self._together = []

    def _end_coalescing(self, device: torch.device) -> dist.Work:
        works, self._together = self._together or [], None
        return ManyWork(works)

    # --- one tensor for all

    def broadcast(self, tensors: Tensors, opts: Any = None) -> dist.Work:
        """The root's tensors go to all."""
        opts = opts or dist.BroadcastOptions()
        check_tensors("broadcast", tensors)
        root = opts.rootRank
        return self._make(
            "broadcast",
            opts,
            tensors,
            lambda: collectives.broadcast(self._comm, tensors, root),
            (root, tensors),
        )

    def allreduce(self, tensors: Tensors, opts: Any = None) -> dist.Work:
        """Each tensor becomes the reduction of all members'."""
        opts = opts or dist.AllreduceOptions()
        check_tensors("all_reduce", tensors, sparse=True)
        operation = collectives.prepared_allreduce(self._comm, tensors, opts.reduceOp)
        return self._make("all_reduce", opts, tensors, operation, (name_of(opts.reduceOp), tensors))

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> dist.Work:
        """The same."""
        return self.allreduce(tensors, opts or dist.AllreduceCoalescedOptions())

    def reduce(self, tensors: Tensors, opts: Any = None) -> dist.Work:
        """The root's tensors become the reductions; the others' stay as they are."""
        opts = opts or dist.ReduceOptions()
        check_tensors("reduce", tensors)
        root = opts.rootRank
        operation = collectives.prepared_reduce(self._comm, tensors, opts.reduceOp, root)
        return self._make(
            "reduce", opts, tensors, operation, (root, name_of(opts.reduceOp), tensors)
        )

    # --- a tensor of each

    def allgather(self, outputs: Lists, inputs: Tensors, opts: Any = None) -> dist.Work:
        """Each member's tensor goes to all."""
        opts = opts or dist.AllgatherOptions()
        for given, taken in zip(outputs, inputs, strict=True):
            collectives.check_list("all_gather", given, taken, self.size())
        return self._make(
            "all_gather",
            opts,
            [tensor for given in outputs for tensor in given],
            lambda: collectives.allgather(self._comm, outputs, inputs),
            ([len(inputs)],),
        )

    allgather_coalesced = allgather

    def all_gather_single(self, output: Tensor, taken: Tensor, opts: Any = None) -> dist.Work:
        """The same, into one tensor."""
        return self.all_gather_single_coalesced([output], [taken], opts)

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Any = None
    ) -> dist.Work:
        """The same, of several tensors."""
        opts = opts or dist.AllgatherOptions()
        collectives.check_singles("all_gather_into_tensor", outputs, inputs, self.size())
        return self._make(
            "all_gather_into_tensor",
            opts,
            outputs,
            lambda: collectives.allgather_single(self._comm, outputs, inputs),
            (inputs,),
        )

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def gather(self, outputs: Lists, inputs: Tensors, opts: Any = None) -> dist.Work:
        """Each member's tensor goes to the root."""
        opts = opts or dist.GatherOptions()
        root = opts.rootRank
        given = outputs[0] if outputs else []
        if self.rank() == root:
            collectives.check_list("gather", given, inputs[0], self.size())
        check_tensors("gather", inputs)
        return self._make(
            "gather",
            opts,
            given,
            lambda: collectives.gather(self._comm, given, inputs[0], root),
            (root,),
        )

    def scatter(self, outputs: Tensors, inputs: Lists, opts: Any = None) -> dist.Work:
        """Each member gets its one of the root's tensors."""
        opts = opts or dist.ScatterOptions()
        root = opts.rootRank
        taken = inputs[0] if inputs else []
        if self.rank() == root:
            collectives.check_list("scatter", taken, outputs[0], self.size())
        check_tensors("scatter", outputs)
        return self._make(
            "scatter",
            opts,
            outputs,
            lambda: collectives.scatter(self._comm, outputs[0], taken, root),
            (root,),
        )

    # --- a tensor for each

    def reduce_scatter(self, outputs: Tensors, inputs: Lists, opts: Any = None) -> dist.Work:
        """Each member gets its part of the reduction."""
        opts = opts or dist.ReduceScatterOptions()
        for output, taken in zip(outputs, inputs, strict=True):
            collectives.check_list("reduce_scatter", taken, output, self.size())
        operation = collectives.prepared_reduce_scatter(self._comm, outputs, inputs, opts.reduceOp)
        return self._make(
            "reduce_scatter", opts, outputs, operation, (name_of(opts.reduceOp), *inputs)
        )

    def reduce_scatter_single(self, output: Tensor, taken: Tensor, opts: Any = None) -> dist.Work:
        """The same, of one tensor."""
        return self.reduce_scatter_single_coalesced([output], [taken], opts)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Any = None
    ) -> dist.Work:
        """The same, of several tensors."""
        opts = opts or dist.ReduceScatterOptions()
        collectives.check_singles("reduce_scatter_tensor", inputs, outputs, self.size())
        rows: Lists = [list(taken.reshape(-1).chunk(self.size())) for taken in inputs]
        operation = collectives.prepared_reduce_scatter(self._comm, outputs, rows, opts.reduceOp)
        return self._make(
            "reduce_scatter_tensor", opts, outputs, operation, (name_of(opts.reduceOp), inputs)
        )

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> dist.Work:
        """Each member gives each a tensor."""
        opts = opts or dist.AllToAllOptions()
        collectives.check_exchange(outputs, inputs, self.size())
        return self._make(
            "all_to_all",
            opts,
            outputs,
            lambda: collectives.alltoall(self._comm, outputs, inputs),
        )

    def all_to_all_single(
        self,
        output: Tensor,
        taken: Tensor,
        output_splits: list[int] | None = None,
        input_splits: list[int] | None = None,
        opts: Any = None,
    ) -> dist.Work:
        """The same, with parts of one tensor along its first dimension."""
        opts = opts or dist.AllToAllOptions()
        call = "all_to_all_single"
        check_tensors(call, [output, taken])
        received = collectives.counts_of(call, output, output_splits, self.size())
        sent = collectives.counts_of(call, taken, input_splits, self.size())
        return self._make(
            call,
            opts,
            [output],
            lambda: collectives.alltoall_single(self._comm, output, taken, received, sent),
        )

    alltoall_base = all_to_all_single

    def barrier(self, opts: Any = None) -> dist.Work:
        """Wait for all members."""
        return self._make("barrier", opts or dist.BarrierOptions(), [], self._comm.Barrier)

    # --- messages

    def send(self, tensors: Tensors, rank: int, tag: int) -> dist.Work:
        """Send a tensor to a member."""
        taken = _single("send", tensors).contiguous()
        return self._message("send", self._comm.Isend, taken, rank, tag, tensors)

    def recv(self, tensors: Tensors, rank: int, tag: int) -> dist.Work:
        """Receive a tensor of a member."""
        room = Room(_single("recv", tensors))
        irecv = self._comm.Irecv
        return self._message("recv", irecv, room.flat, rank, tag, tensors, room.settle)

    def recv_anysource(self, tensors: Tensors, tag: int) -> dist.Work:
        """Receive a tensor of any member."""
        return self.recv(tensors, _ANY, tag)

    def _message(
        self,
        call: str,
        begin: Callable[..., Any],
        flat: Tensor,
        rank: int,
        tag: int,
        tensors: Tensors,
        settle: Callable[[], None] | None = None,
    ) -> dist.Work:
        try:
            request = begin(message_of(flat), rank, tag)
        except MPI.Exception as problem:
            raise as_torch_says(problem, call) from problem
        timeout = self._timeout.total_seconds()
        return self._noted(MessageWork(call, request, tensors, timeout, settle))


def _single(call: str, tensors: Tensors) -> Tensor:
    """The one tensor of a message.

    Raises:
        ValueError: there are several, or it cannot be taken.
    """
    if len(tensors) != 1:
        raise ValueError(f"{call}: {len(tensors)} tensors where one belongs")
    check_tensors(call, tensors)
    return tensors[0].detach()
