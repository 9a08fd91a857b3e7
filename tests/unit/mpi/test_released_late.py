"""A user's buffer that only ompy holds any more is let go on an error's way; his code runs then.

The memory of such a buffer goes with an object whose end is code of the user's: a capsule with a
destructor in Python, which Python calls with the error still set, or a `__del__`. Whatever that
code does, the error of the call is what the caller sees.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ompy import MPI

_DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new = ctypes.pythonapi.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, _DESTRUCTOR)
COMM = MPI.COMM_SELF
TAG = 77
TAGS = itertools.count(TAG + 100)
LONG = bytes(64)

released: list[str] = []
kept: list[Any] = []  # what a destructor may drop the last reference of


def handles() -> None:
    """An exception of its own, which it handles."""
    try:
        raise LookupError("of the destructor")
    except LookupError:
        ctypes.pythonapi.PyErr_Clear()


def raises() -> None:
    raise LookupError("of the destructor")


def calls() -> None:
    """It uses MPI itself, what fails among it. It may be in the middle of itself already."""
    tag = next(TAGS)
    COMM.Iprobe(0, tag)
    request = COMM.Irecv(bytearray(1), 0, tag)
    COMM.Send(b"ab", 0, tag)
    try:
        request.Wait()
    except MPI.Exception:
        ctypes.pythonapi.PyErr_Clear()


def drops() -> None:
    """It lets go of another request, with a buffer of its own."""
    kept.clear()


ACTIONS = {action.__name__: action for action in (handles, raises, calls, drops)}


class Buffer(bytearray):
    """Memory with something beside it that ends with it."""

    beside: Any


class Ends:
    """Its end is Python code, which Python itself calls with the error put aside."""

    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action

    def __del__(self) -> None:
        released.append("end")
        self.action()


def capsule(action: Callable[[], None]) -> Any:
    """Something whose end is Python code that is called with the error still set."""

    def end(_: int) -> None:
        released.append("end")
        action()

    destructor = _DESTRUCTOR(end)
    ALIVE.append(destructor)
    return _new(1, b"beside", destructor)


ALIVE: list[Any] = []  # ctypes functions, for as long as a capsule may call them
BESIDE = {"capsule": capsule, "del": Ends}
Make = Callable[[int], Buffer]


def _truncated(finish: Callable[[Any], Any]) -> Callable[[Make], None]:
    """A receive whose message is too long, and which only its request holds."""

    def run(make: Make) -> None:
        request = COMM.Irecv(make(2), 0, TAG)
        COMM.Send(LONG, 0, TAG)
        finish(request)

    return run


def _persistent(make: Make) -> None:
    request = COMM.Recv_init(make(2), 0, TAG)
    request.Start()
    COMM.Send(LONG, 0, TAG)
    try:
        request.Wait()
    finally:
        request.Free()


def _matched(make: Make) -> None:
    COMM.Isend(LONG, 0, TAG).Free()
    COMM.Mprobe(0, TAG).Imrecv(make(2)).Wait()


def _lower_case(make: Make) -> None:
    request = COMM.irecv(make(2), 0, TAG)
    COMM.send("a text that is longer than that", 0, TAG)
    request.wait()


class Pickled:
    """An object with a buffer of its own, of which nobody else has a reference."""

    def __init__(self, make: Make, then: Any) -> None:
        self.make, self.then = make, then

    def __reduce_ex__(self, protocol: Any) -> Any:
        import pickle

        return bytes, (pickle.PickleBuffer(self.make(1 << 17)), self.then)


def _unpicklable(make: Make) -> None:
    COMM.send([Pickled(make, None), lambda: None], 0, TAG)


def _isend_unpicklable(make: Make) -> None:
    COMM.isend([Pickled(make, None), lambda: None], 0, TAG)


def _breaks(*_: Any) -> Any:
    raise ValueError("it cannot be made again")


class Unmakable:
    def __reduce_ex__(self, protocol: Any) -> Any:
        return _breaks, (Buffer(9),)


def _not_made(make: Make) -> None:
    """The request of a receive is given memory, and what is received cannot be made of it."""
    request = COMM.irecv(make(1 << 12), 0, TAG)
    COMM.send(Unmakable(), 0, TAG)
    request.wait()


def _window(work: Callable[[Any, Make], Any]) -> Callable[[Make], None]:
    def run(make: Make) -> None:
        window = MPI.Win.Create(bytearray(8), 1, comm=COMM)
        try:
            window.Fence()
            work(window, make)
        finally:
            window.Free()

    return run


def _window_memory(make: Make) -> None:
    window = MPI.Win.Create(make(8), 1, comm=COMM)
    try:
        window.Fence()
        window.Put(bytes(64), 0)
    finally:
        window.Free()


def _reduce_to_error(make: Make) -> None:
    COMM.Iallreduce([make(8), MPI.BYTE], [make(4), MPI.BYTE], MPI.SUM).Wait()


def _attached(make: Make) -> None:
    MPI.Attach_buffer(make(MPI.BSEND_OVERHEAD + 8))
    try:
        COMM.Bsend(LONG, 0, TAG)
    finally:
        MPI.Detach_buffer()


def _all_of(call: str) -> Callable[[Make], None]:
    def run(make: Make) -> None:
        requests = [COMM.Irecv(make(2), 0, TAG), COMM.Irecv(make(64), 0, TAG)]
        COMM.Send(LONG, 0, TAG)
        COMM.Send(LONG, 0, TAG)
        getattr(MPI.Request, call)(requests)

    return run


def _with_gaps(make: Make) -> None:
    """What is received into has gaps."""
    layout = MPI.BYTE.Create_vector(2, 1, 2).Commit()
    request = COMM.Irecv([make(64), 1, layout], 0, TAG)
    COMM.Send(LONG, 0, TAG)
    layout.Free()
    request.Wait()


def _in_part(make: Make) -> None:
    request = COMM.Irecv([make(64), 2, MPI.BYTE], 0, TAG)
    COMM.Send(LONG, 0, TAG)
    request.Wait()


def _pieces(send: Callable[[Any], Any]) -> Callable[[Make], None]:
    """A frame of pickled data and of the buffers beside it, which cannot be sent."""
    return lambda make: send([Pickled(make, None), Pickled(make, None)])


CALLS: dict[str, Callable[[Make], None]] = {
    "Wait of a message with gaps": _with_gaps,
    "Wait of a part of a buffer": _in_part,
    "send of pieces": _pieces(lambda data: COMM.send(data, 9, TAG)),
    "isend of pieces": _pieces(lambda data: COMM.isend(data, 9, TAG)),
    "issend of pieces": _pieces(lambda data: COMM.issend(data, 9, TAG)),
    "bcast of pieces": _pieces(lambda data: COMM.bcast(data, 9)),
    "Wait": _truncated(lambda request: request.Wait()),
    "Test": _truncated(lambda request: request.Test()),
    "wait of lower case": _lower_case,
    "what is received cannot be made": _not_made,
    "Waitall": _all_of("Waitall"),
    "Testall": _all_of("Testall"),
    "Waitany": _all_of("Waitany"),
    "Testany": _all_of("Testany"),
    "Waitsome": _all_of("Waitsome"),
    "persistent": _persistent,
    "Imrecv": _matched,
    "Recv": lambda make: (COMM.Isend(LONG, 0, TAG).Free(), COMM.Recv(make(2), 0, TAG)),
    "Isend to nobody": lambda make: COMM.Isend(make(8), 9, TAG),
    "Irecv of nobody": lambda make: COMM.Irecv(make(8), 9, TAG),
    "Send_init to nobody": lambda make: COMM.Send_init(make(8), 9, TAG),
    "Sendrecv": lambda make: COMM.Sendrecv(LONG, 0, TAG, make(2), 0, TAG),
    "Isendrecv": lambda make: COMM.Isendrecv(LONG, 0, TAG, make(2), 0, TAG).Wait(),
    "Isendrecv_replace": lambda make: COMM.Isendrecv_replace(make(8), 0, TAG, 9, TAG),
    "Iallreduce": _reduce_to_error,
    "Ibcast": lambda make: COMM.Ibcast(make(8), 9),
    "unpicklable": _unpicklable,
    "isend of it": _isend_unpicklable,
    "Put": _window(lambda window, make: window.Put(make(64), 0)),
    "Rput": _window(lambda window, make: window.Rput(make(64), 0).Wait()),
    "Rget": _window(lambda window, make: window.Rget(make(64), 0).Wait()),
    "Get_accumulate": _window(lambda window, make: window.Get_accumulate(make(64), make(64), 0)),
    "memory of a window": _window_memory,
    "attached memory": _attached,
}


# Here the last reference is the caller's, on the interpreter's stack; it lets go of it with the
# error set, as after any function in C: a capsule's destructor loses it whoever was called.
OF_CALLER = {
    *("Recv", "Sendrecv", "Isendrecv_replace"),
    *("Isend to nobody", "Irecv of nobody", "Send_init to nobody", "Ibcast", "Iallreduce"),
}
PAIRS = [
    (call, beside)
    for call in CALLS
    for beside in BESIDE
    if beside == "del" or call not in OF_CALLER
]


@pytest.fixture(scope="module")
def frozen() -> Iterator[None]:
    """What is there before these tests, a gigabyte after thousands of others, is looked at once."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # as `tests/conftest.py` does


@pytest.fixture(autouse=True)
def uncollected(frozen: None) -> Iterator[None]:
    """What is let go is let go by the call.

    Python's collector would run a `__del__` in the middle of any call, and one that waits there for
    a message to its own rank waits for what the call has not done yet.
    """
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(("call", "beside"), PAIRS)
def test_the_error_of_the_call_is_what_is_seen(call: str, beside: str, action: str) -> None:
    def make(size: int) -> Buffer:
        buffer = Buffer(size)
        buffer.beside = BESIDE[beside](ACTIONS[action])
        return buffer

    released.clear()
    other = Buffer(4)
    other.beside = BESIDE[beside](handles)
    kept[:] = [COMM.Irecv(other, 0, TAG + 2)]
    del other
    caught: BaseException | None = None
    try:
        CALLS[call](make)
    except Exception as problem:  # of which kind is what is looked at
        caught = problem.with_traceback(None)
    assert isinstance(caught, (MPI.Exception, ValueError, TypeError, AttributeError)) or (
        "pickle" in str(caught)
    ), repr(caught)
    assert not isinstance(caught, (LookupError, SystemError)), repr(caught)
    assert caught.__context__ is None or not isinstance(caught.__context__, LookupError)
    del caught
    for request in kept:
        request.Cancel()
        request.Wait()
    kept.clear()
    assert COMM.sendrecv(b"as before", 0, 3, source=0, recvtag=3) == b"as before"
    assert released, "nothing was let go"
