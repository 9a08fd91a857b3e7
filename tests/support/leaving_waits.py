"""Every call that may wait for another rank, as declarations for `leaving_cells.py`.

A wait is of two: rank 0 of the communicator makes the call, rank `GONE` leaves instead. What both
have to do before, and what `GONE` does last, belongs to it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ompy.mpi import constants
from ompy.mpi.communicators.intercomm import Intercomm
from ompy.mpi.info import Info
from ompy.mpi.point_to_point.request import Request
from ompy.mpi.windows.windows import Win

from tests.sim.coll.every_call import IN_WINDOWS, every_call

GONE = 1
TAG = 5
BETWEEN = 1_000_000  # ns of virtual time between two looks; arbitrary
LARGE = 2_000_000  # bytes; arbitrary: more than any BTL sends eagerly

Call = Callable[..., Any]


def nothing(_comm: Any) -> None:
    """Both need nothing."""


def _leaves(_comm: Any, _made: Any) -> None:
    """It does nothing more."""


class Wait(NamedTuple):
    """One way to wait for a rank.

    Attributes:
        call: made by rank 0, with the communicator and what `prepare` returned.
        prepare: made by both before; its result is `made`.
        last: made by rank `GONE`, before it leaves; what it returns lives until then.
        may_succeed: it does not need the other rank to do anything, so it may end well.
        late_succeeds: it may do so where it begins when the other rank has left already.
        in_worlds: virtual ranks can make the call; it does not go by the interpreter's COMM_WORLD.
    """

    call: Call
    prepare: Call = nothing
    last: Call = _leaves
    may_succeed: bool = False
    late_succeeds: bool = False
    in_worlds: bool = True


def room(size: int = 8) -> bytearray:
    """Memory for a message."""
    return bytearray(size)


def ints(count: int = 4) -> array[int]:
    """Numbers."""
    return array("i", [1] * count)


# --- messages: each request, ended by each call that ends requests

BEGINS: dict[str, Callable[[Any], Any]] = {
    "Irecv": lambda comm: comm.Irecv(room(), GONE, TAG),
    "Irecv any": lambda comm: comm.Irecv(room(), tag=TAG),
    "large Irecv": lambda comm: comm.Irecv(room(LARGE), GONE, TAG),
    "Issend": lambda comm: comm.Issend(room(), GONE, TAG),
    "large Isend": lambda comm: comm.Isend(room(LARGE), GONE, TAG),
    "large Irsend": lambda comm: comm.Irsend(room(LARGE), GONE, TAG),
    "Isendrecv": lambda comm: comm.Isendrecv(room(), GONE, TAG, recvbuf=room(), source=GONE),
    "Isendrecv_replace": lambda comm: comm.Isendrecv_replace(room(), GONE, TAG, GONE, TAG),
    "Recv_init": lambda comm: _started(comm.Recv_init(room(), GONE, TAG)),
    "Ssend_init": lambda comm: _started(comm.Ssend_init(room(), GONE, TAG)),
    "large Rsend_init": lambda comm: _started(comm.Rsend_init(room(LARGE), GONE, TAG)),
    "large Send_init": lambda comm: _started(comm.Send_init(room(LARGE), GONE, TAG)),
    "Precv_init": lambda comm: _started(comm.Precv_init(room(), 2, GONE, TAG)),
    "Psend_init": lambda comm: _ready(_started(comm.Psend_init(room(), 2, GONE, TAG))),
    "irecv": lambda comm: comm.irecv(source=GONE, tag=TAG),
    "issend": lambda comm: comm.issend(1, GONE, TAG),
    "large isend": lambda comm: comm.isend(bytes(LARGE), GONE, TAG),
}


def _started(request: Any) -> Any:
    request.Start()
    return request


def _ready(request: Any) -> Any:
    request.Pready_range(0, 1)
    return request


def until(comm: Any, look: Callable[[], Any]) -> None:
    """Look again and again; a virtual rank spends some time in between."""
    spend = getattr(comm._inner.world.process.context.engine, "spend", None)
    while not look():
        if spend is not None:
            spend(BETWEEN)


def _looked(look: Callable[[Any], Any], request: Any, comm: Any) -> None:
    """Looks say that the request is complete; what became of it its end says."""
    until(comm, partial(look, request))
    request.Wait()


ENDS: dict[str, Callable[[Any, Any], Any]] = {
    "Wait": lambda request, _: request.Wait(),
    "Test": lambda request, comm: until(comm, request.Test),
    "Get_status": partial(_looked, lambda request: request.Get_status()),
    "Get_status_all": partial(_looked, lambda request: Request.Get_status_all([request])),
    "Get_status_any": partial(_looked, lambda request: Request.Get_status_any([request])[1]),
    "Get_status_some": partial(_looked, lambda request: Request.Get_status_some([request])),
    "get_status": partial(_looked, lambda request: request.get_status()),
    "get_status_all": partial(_looked, lambda request: Request.get_status_all([request])),
    "get_status_any": partial(_looked, lambda request: Request.get_status_any([request])[1]),
    "get_status_some": partial(_looked, lambda request: Request.get_status_some([request])),
    "Waitall": lambda request, _: Request.Waitall([request]),
    "Waitany": lambda request, _: Request.Waitany([request]),
    "Waitsome": lambda request, _: Request.Waitsome([request]),
    "Testall": lambda request, comm: until(comm, partial(Request.Testall, [request])),
    "Testany": lambda request, comm: until(comm, lambda: Request.Testany([request])[1]),
    "Testsome": lambda request, comm: until(comm, partial(Request.Testsome, [request])),
    "wait": lambda request, _: request.wait(),
    "test": lambda request, comm: until(comm, lambda: request.test()[0]),
    "waitall": lambda request, _: Request.waitall([request]),
    "waitany": lambda request, _: Request.waitany([request]),
    "waitsome": lambda request, _: Request.waitsome([request]),
    "testall": lambda request, comm: until(comm, lambda: Request.testall([request])[0]),
    "testany": lambda request, comm: until(comm, lambda: Request.testany([request])[1]),
    "testsome": lambda request, comm: until(comm, lambda: Request.testsome([request])[0]),
}
# of one request after the other of these all ends are tried, of the others only the first
EVERY_END = ("Irecv", "Irecv any", "large Isend")


def _begun(begin: Call, end: Call, comm: Any, _made: Any) -> None:
    end(begin(comm), comm)


def _buffered(comm: Any, _made: Any) -> None:
    """A large buffered send is complete at once; its memory is given back all the same."""
    comm.Attach_buffer(room(2 * LARGE))
    comm.Bsend(room(LARGE), GONE, TAG)
    comm.Detach_buffer()


def _flushed(send: Call, flush: Call, comm: Any, _made: Any) -> None:
    comm.Attach_buffer(room(2 * LARGE))
    try:
        send(comm)
        flush(comm)
    finally:
        comm.Detach_buffer()


def _bsend_init(comm: Any) -> None:
    request = _started(comm.Bsend_init(room(LARGE), GONE, TAG))
    request.Wait()


BUFFERED: dict[str, tuple[Call, Call]] = {
    "Ibsend": (
        lambda comm: comm.Ibsend(room(LARGE), GONE, TAG).Wait(),
        lambda comm: comm.Flush_buffer(),
    ),
    "Bsend_init": (_bsend_init, lambda comm: comm.Iflush_buffer().Wait()),
    "bsend": (lambda comm: comm.bsend(bytes(LARGE // 2), GONE), lambda comm: comm.Flush_buffer()),
    "ibsend": (
        lambda comm: comm.ibsend(bytes(LARGE // 2), GONE).wait(),
        lambda comm: comm.Flush_buffer(),
    ),
}


def _twice(comm: Any, _made: Any) -> None:
    """A persistent request that has failed is started again."""
    request = comm.Recv_init(room(), GONE, TAG)
    for _ in range(2):
        request.Start()
        try:
            request.Wait()
        except Exception as problem:
            failed = problem
    raise failed


BLOCKING: dict[str, Call] = {
    "Recv": lambda comm, _: comm.Recv(room(), GONE, TAG),
    "Recv any": lambda comm, _: comm.Recv(room()),
    "recv": lambda comm, _: comm.recv(source=GONE, tag=TAG),
    "recv any": lambda comm, _: comm.recv(),
    "Probe": lambda comm, _: comm.Probe(GONE, TAG),
    "Probe any": lambda comm, _: comm.Probe(),
    "Mprobe": lambda comm, _: comm.Mprobe(GONE, TAG),
    "Mprobe any": lambda comm, _: comm.Mprobe(),
    "probe": lambda comm, _: comm.probe(GONE, TAG),
    "mprobe": lambda comm, _: comm.mprobe(GONE, TAG),
    "Ssend": lambda comm, _: comm.Ssend(room(), GONE, TAG),
    "large Send": lambda comm, _: comm.Send(room(LARGE), GONE, TAG),
    "large Rsend": lambda comm, _: comm.Rsend(room(LARGE), GONE, TAG),
    "ssend": lambda comm, _: comm.ssend(1, GONE, TAG),
    "large send": lambda comm, _: comm.send(bytes(LARGE), GONE, TAG),
    "Sendrecv": lambda comm, _: comm.Sendrecv(room(), GONE, TAG, room(), GONE, TAG),
    "Sendrecv_replace": lambda comm, _: comm.Sendrecv_replace(room(), GONE, TAG, GONE, TAG),
    "sendrecv": lambda comm, _: comm.sendrecv(1, GONE, source=GONE),
    "Recv_init twice": _twice,
    "barrier": lambda comm, _: comm.barrier(),
    "Clone": lambda comm, _: comm.Clone(),
    "Dup_with_info": lambda comm, _: comm.Dup_with_info(Info.Create()),
}


# --- messages of which a part is under way when the rank leaves


def _own(comm: Any) -> Any:
    """What the rank has begun is for nobody else."""
    return comm.Dup()


def _sends(_comm: Any, own: Any) -> Any:
    return own.Isend(bytes(LARGE), 0, TAG)


def _receives(_comm: Any, own: Any) -> Any:
    return own.Irecv(room(LARGE), 0, TAG)


def _mrecv(_comm: Any, own: Any) -> None:
    own.Mprobe(GONE, TAG).Recv(room(LARGE))


def _imrecv(_comm: Any, own: Any) -> None:
    until(own, lambda: own.Iprobe(GONE, TAG))
    own.Improbe(GONE, TAG).Irecv(room(LARGE)).Wait()


def _dropped(_comm: Any, own: Any) -> None:
    """It never asks what became of these, and may finalize."""
    own.Isend(bytes(LARGE), GONE, TAG)
    own.Irecv(room(), GONE, TAG)


UNDER_WAY: dict[str, tuple[Call, Call]] = {
    "Recv of what it sends": (lambda _, own: own.Recv(room(LARGE), GONE, TAG), _sends),
    "Recv any of what it sends": (lambda _, own: own.Recv(room(LARGE)), _sends),
    "Mrecv of what it sends": (_mrecv, _sends),
    "Imrecv of what it sends": (_imrecv, _sends),
    "Send of what it receives": (lambda _, own: own.Send(bytes(LARGE), GONE, TAG), _receives),
    "Ssend of what it receives": (lambda _, own: own.Ssend(bytes(LARGE), GONE, TAG), _receives),
    "Isend and Irecv, never waited for": (_dropped, _leaves),
    "Isend of what it receives, never waited for": (_dropped, _receives),
}


def _messages() -> dict[str, Wait]:
    made = {name: Wait(call) for name, call in BLOCKING.items()}
    made["Create_from_groups"] = Wait(_create_from_groups, in_worlds=False)
    made["Create_from_group"] = Wait(
        lambda comm, _: type(comm).Create_from_group(comm.group), in_worlds=False
    )
    made["Bsend"] = Wait(_buffered, may_succeed=True)
    for name, (send, flush) in BUFFERED.items():
        made[f"{name}, Flush_buffer"] = Wait(partial(_flushed, send, flush), may_succeed=True)
    for begin, call in BEGINS.items():
        objects = begin.rpartition(" ")[2].islower() and "any" not in begin
        ends = ENDS if begin in EVERY_END else ("wait" if objects else "Wait",)
        for end in ends:
            made[f"{begin}, {end}"] = Wait(partial(_begun, call, ENDS[end]))
    for name, (call, last) in UNDER_WAY.items():
        made[name] = Wait(call, _own, last, may_succeed=True)
    return made


# --- collective calls: all there are

# rank 0 has done its part in these when it has told the others, or is asked for nothing
_TELL: frozenset[str] = frozenset({"bcast", "scatter", "scatterv", "scan", "exscan"})
_ASK: frozenset[str] = frozenset({"gather", "gatherv", "reduce"})


def _may_succeed(name: str) -> bool:
    plain, _, root = name.partition(" from ")
    plain = plain.removeprefix("I").removesuffix("_init").lower()
    return plain in (_ASK if root == "1" else _TELL)


def _collective(call: Call, comm: Any, made: Any) -> None:
    call(comm if made is None else made)


def _collectives() -> dict[str, Wait]:
    made: dict[str, Wait] = {}
    for name, call in every_call().items():
        if name not in IN_WINDOWS:
            of_grids = name == "Sub" or "eighbor_" in name
            prepare = _cartesian if of_grids else nothing
            made[name] = Wait(partial(_collective, call), prepare, may_succeed=_may_succeed(name))
    large = 500_000
    made["large Bcast from 1"] = Wait(lambda comm, _: comm.Bcast(ints(large), GONE))
    made["large Bcast"] = Wait(lambda comm, _: comm.Bcast(ints(large), 0))
    made["large Allreduce"] = Wait(lambda comm, _: comm.Allreduce(ints(large), ints(large)))
    made["large Alltoall"] = Wait(lambda comm, _: comm.Alltoall(ints(large), ints(large)))
    made["Create_group"] = Wait(lambda comm, _: comm.Create_group(comm.group))
    made["Free"] = Wait(lambda _, made: made.Free(), lambda comm: comm.Dup(), may_succeed=True)
    made["Disconnect"] = Wait(
        lambda _, made: made.Disconnect(), lambda comm: comm.Dup(), may_succeed=True
    )
    made["Create_intercomm"] = Wait(
        lambda comm, local: local.Create_intercomm(0, comm, 1 - comm.rank), _alone
    )
    made["Merge"] = Wait(lambda _, both: both.Merge(), _between)
    for name in ("Barrier", "Dup"):
        made[f"{name} between groups"] = Wait(partial(_of_groups, name), _between)
    return made


def _create_from_groups(comm: Any, _: Any) -> None:
    mine, other = (comm.group.Incl([rank]) for rank in (comm.rank, 1 - comm.rank))
    Intercomm.Create_from_groups(mine, 0, other, 0)


def _alone(comm: Any) -> Any:
    return comm.Split(comm.rank)


def _between(comm: Any) -> Any:
    return _alone(comm).Create_intercomm(0, comm, 1 - comm.rank)


def _of_groups(name: str, _comm: Any, both: Any) -> None:
    getattr(both, name)()


def _cartesian(comm: Any) -> Any:
    return comm.Create_cart([comm.size])


# --- windows


def _made_window(comm: Any, how: str = "Create") -> Any:
    """A window that both have used, and so met in."""
    if how == "Create":
        win = Win.Create(array("i", [0] * 4096), 4, comm=comm)
    else:
        win = getattr(Win, how)(4096 * 4, 4, comm=comm)
    win.Fence()
    win.Put(ints(1), 1 - comm.rank)
    win.Fence(constants.MODE_NOSUCCEED)
    return win


def _locked(exclusive: bool, comm: Any, win: Any) -> None:
    """It has the lock of rank 0, and leaves with it."""
    del comm
    win.Lock(0, constants.LOCK_EXCLUSIVE if exclusive else constants.LOCK_SHARED)


def _lock(target: int, kind: int, _comm: Any, win: Any) -> None:
    win.Lock(target, kind)
    win.Unlock(target)


def _flush(flush: Callable[[Any], Any], _comm: Any, win: Any) -> None:
    win.Lock_all()
    win.Accumulate(ints(4096), GONE)
    flush(win)
    win.Unlock_all()


FLUSHES: dict[str, Callable[[Any], Any]] = {
    "Flush_all": lambda win: win.Flush_all(),
    "Flush_local": lambda win: win.Flush_local(GONE),
    "Flush_local_all": lambda win: win.Flush_local_all(),
}


def _in_lock(operation: Callable[[Any], Any], _comm: Any, win: Any) -> None:
    win.Lock_all()
    request = operation(win)
    if request is not None:
        request.Wait()
    win.Flush(GONE)
    win.Unlock_all()


def _peer(win: Any) -> Any:
    return win.group.Incl([GONE])


def _start(operate: bool, _comm: Any, win: Any) -> None:
    win.Start(_peer(win))
    if operate:
        win.Put(ints(1), GONE)
    win.Complete()


def _post(test: bool, comm: Any, win: Any) -> None:
    win.Post(_peer(win))
    if test:
        until(comm, win.Test)
    else:
        win.Wait()


def _started_by_gone(comm: Any, win: Any) -> None:
    """It has begun an epoch on rank 0 that it never ends."""
    del comm
    win.Start(win.group.Incl([0]))


def _fence(operate: bool, _comm: Any, win: Any) -> None:
    win.Fence()
    if operate:
        win.Put(ints(1000), GONE)
    win.Fence()


def _cas(win: Any) -> None:
    win.Compare_and_swap(ints(1), ints(1), ints(1), GONE)


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "Put": lambda win: win.Put(ints(), GONE),
    "large Put": lambda win: win.Put(ints(4096), GONE),
    "Get": lambda win: win.Get(ints(), GONE),
    "large Get": lambda win: win.Get(ints(4096), GONE),
    "Accumulate": lambda win: win.Accumulate(ints(), GONE),
    "Get_accumulate": lambda win: win.Get_accumulate(ints(), ints(), GONE),
    "Fetch_and_op": lambda win: win.Fetch_and_op(ints(1), ints(1), GONE),
    "Compare_and_swap": _cas,
    "Rput": lambda win: win.Rput(ints(), GONE),
    "Rget": lambda win: win.Rget(ints(), GONE),
    "Raccumulate": lambda win: win.Raccumulate(ints(), GONE),
    "Rget_accumulate": lambda win: win.Rget_accumulate(ints(), ints(), GONE),
}
LOCKS = {"": constants.LOCK_EXCLUSIVE, " shared": constants.LOCK_SHARED}


def _windows(how: str) -> dict[str, Wait]:
    """The waits of a window; with the members' memory shared a target has no part in most."""
    prepare = partial(_made_window, how=how)
    made = {}
    for name, kind in LOCKS.items():
        made[f"Lock{name} that it holds"] = Wait(
            partial(_lock, 0, kind), prepare, partial(_locked, True), late_succeeds=True
        )
        made[f"Lock{name} of its memory"] = Wait(
            partial(_lock, GONE, kind), prepare, may_succeed=True
        )
    made["Lock that it shares"] = Wait(
        partial(_lock, 0, constants.LOCK_EXCLUSIVE),
        prepare,
        partial(_locked, False),
        late_succeeds=True,
    )
    for name, operation in OPERATIONS.items():
        made[name] = Wait(partial(_in_lock, operation), prepare, may_succeed=True)
    for name, flush in FLUSHES.items():
        made[name] = Wait(partial(_flush, flush), prepare, may_succeed=True)
    made["Complete"] = Wait(partial(_start, False), prepare)
    made["Start, Put"] = Wait(partial(_start, True), prepare)
    made["Wait"] = Wait(partial(_post, False), prepare)
    made["Test"] = Wait(partial(_post, True), prepare)
    made["Wait for one that has started"] = Wait(partial(_post, False), prepare, _started_by_gone)
    made["Fence"] = Wait(partial(_fence, False), prepare)
    made["Put, Fence"] = Wait(partial(_fence, True), prepare)
    made["Free"] = Wait(lambda _, win: win.Free(), prepare)
    return {f"Win.{how} {name}": wait for name, wait in made.items()}


MESSAGES = _messages()
COLLECTIVES = _collectives()
WINDOWS = {how: _windows(how) for how in ("Create", "Allocate", "Allocate_shared")}
WAITS: dict[str, Wait] = {**MESSAGES, **COLLECTIVES}
for _each in WINDOWS.values():
    WAITS.update(_each)
