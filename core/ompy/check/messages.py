"""Messages: what each call sends or receives, for `analysis/messages.py` and its like."""

# ruff: noqa: SLF001 - states are private to users, not to us

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable, Iterable
from functools import cache, partial
from itertools import islice
from typing import Any, Final
from zlib import crc32

from ompy.check.callees import program_files
from ompy.check.checker import Checker
from ompy.check.program_text import is_cell, is_key_read
from ompy.check.record import ADDS, ASKED, BY_STATUS, NAMED, NAMED_AT, REFUSED
from ompy.check.signatures import OBJECT, Signature, of_message
from ompy.data.constants import ANY_SOURCE, ANY_TAG, PROC_NULL
from ompy.data.errors import ERR_TRUNCATE
from ompy.mpi.errors import MPIException
from ompy.mpi.point_to_point.status import Status

Handler = Callable[..., Any]
STANDARD: Final = "standard"
# of sends, by the letter in their names
_MODES: Final = {"": STANDARD, "b": "buffered", "s": "synchronous", "r": "ready"}
Parts = tuple[tuple[int | str, int], ...]
Got = tuple[int, int, int, int, int, Parts]
_JOINED: Final = (str, bytes, list, tuple)  # what + puts one behind the other
_ARRIVED: Final = re.compile(r"from rank (\d+) with tag (\d+)")  # in errors of messages
_NAMED_BEFORE: Final = 16  # elements; arbitrary: more than a program unpacks into names
PARTS_MOST: Final = 8  # arbitrary: more than a message has that says where it belongs
PLAIN: Final = frozenset({int, str, bool})  # types of such parts
_DIGESTED: Final = 1 << 16  # bytes of a message; arbitrary: what differs mostly does so early


def whole(value: Any) -> int:
    """A rank or a tag as a plain number; a wrong one is the call's to refuse."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return PROC_NULL


def digest(received: Any) -> int:
    """A number that equal contents have in common; -1 where it cannot be known."""
    try:
        if isinstance(received, (list, tuple)) and received and hasattr(received[0], "dtype"):
            received = received[0]
        if hasattr(received, "dtype") or isinstance(received, (bytes, bytearray, memoryview)):
            return crc32(memoryview(received).cast("B")[:_DIGESTED])
        return crc32(repr(received)[:_DIGESTED].encode())
    except Exception:
        return -1


def digests_of_parts(received: Any) -> Parts:
    """Digests of the parts of an object by which a program may say where it belongs.

    Those are small values that have an index, a key or an attribute of their own.
    """
    named: Iterable[tuple[Any, Any]] = ()
    if isinstance(received, (list, tuple)):
        fields = getattr(received, "_fields", ())
        named = (*enumerate(received[:PARTS_MOST]), *zip(fields, received, strict=False))
    elif isinstance(received, dict):
        named = received.items()
    elif hasattr(received, "__dict__"):
        named = vars(received).items()
    return tuple(
        (name, crc32(repr(part).encode("utf-8", "backslashreplace")))
        for name, part in islice(named, 2 * PARTS_MOST)
        if isinstance(name, (int, str)) and type(part) in PLAIN
    )


def says_source(received: Any, source: int) -> int:
    """What is known where an object has its sender's rank in it: the program need not ask.

    If one element of a sequence is that, the program's source may show that nobody looks at it.
    Of a dict its source shows at once whether it reads what is under that key.
    """
    if isinstance(received, dict):
        keys = [key for key, each in received.items() if type(each) is int and each == source]
        named = any(type(key) is int and key == source for key in received)
        return ASKED if named or any(map(_is_read, keys)) else 0
    if not isinstance(received, (list, tuple)):
        return 0
    places = [n for n, each in enumerate(received) if type(each) is int and each == source]
    if len(places) == 1 and places[0] < _NAMED_BEFORE:
        return NAMED | places[0] << NAMED_AT
    return ASKED if places else 0


def _is_read(key: Any) -> bool:
    """Whether the program reads what is under a key of a dict, as far as that can be known."""
    if type(key) is not str:
        return True
    cells = tuple(name for name in list(linecache.cache) if is_cell(name))
    return _is_text_read(key, len(sys.modules), cells)


@cache
def _is_text_read(key: str, _imported: int, cells: tuple[str, ...]) -> bool:
    files = [*program_files(), *cells]
    return not files or is_key_read(key, files)


def got_of(status: Status, asked: bool, received: Any, wanted: int) -> Got:
    """What a receive has got: source, tag, bytes, what is known of it (`record.py`), digests.

    The last three are looked at only where anybody could have sent it: `wanted` is ANY_SOURCE.
    """
    source, tag, size = status.Get_source(), status.Get_tag(), status.Get_count()
    if wanted != ANY_SOURCE:
        return source, tag, size, ASKED, -1, ()
    known = says_source(received, source) | (BY_STATUS if asked else 0)
    known |= 0 if isinstance(received, _JOINED) else ADDS
    return source, tag, size, known, digest(received), digests_of_parts(received)


@cache
def _is_of_objects(call: str) -> bool:
    """Whether a call, as `comm.isend`, is of objects."""
    return call.removeprefix("comm.")[0].islower()


@cache
def _mode_of(call: str) -> str:
    """The mode of a call that sends: that of `comm.Issend` is synchronous."""
    letters, _, _ = call.removeprefix("comm.").lower().partition("send")
    return _MODES[letters.removeprefix("i")]


def _send(
    check: Checker, at: int, call: str, original: Any, comm: Any, buf: Any, dest: Any, tag: Any = 0
) -> Any:
    """The handler of a call that sends and waits."""
    number, target, mode, objects = (
        check.comm(comm),
        whole(dest),
        _mode_of(call),
        _is_of_objects(call),
    )
    if number and target != PROC_NULL:
        signature = OBJECT if objects else of_message(buf)
        check.write_event("send", at, call, number, target, whole(tag), signature, mode, 0)
    if not objects:
        check.buffers.used(at, call, buf, writes=False)
    try:
        if check.synchronous and mode == STANDARD:
            return (comm.ssend if objects else comm.Ssend)(buf, dest, tag)
        return original(comm, buf, dest, tag)
    except Exception:
        check.write_event("unsent", at, call)
        raise


def _send_object(
    check: Checker, at: int, call: str, original: Any, comm: Any, obj: Any, dest: Any, tag: Any = 0
) -> Any:
    """The same for objects, whose argument has another name."""
    return _send(check, at, call, original, comm, obj, dest, tag)


def _receive(
    check: Checker, at: int, call: str, original: Any, comm: Any, buf: Any = None,
    source: Any = ANY_SOURCE, tag: Any = ANY_TAG, status: Status | None = None,
) -> Any:  # fmt: skip
    """The handler of `Recv` and `recv`."""
    number, objects = check.comm(comm), call == "comm.recv"
    signature = OBJECT if objects else of_message(buf)
    if not objects:
        check.buffers.used(at, call, buf, writes=True)
    filled = Status() if status is None else status
    got: Got | None = None
    try:
        result = original(comm, buf, source, tag, filled)
        got = got_of(filled, status is not None, result if objects else buf, whole(source))
        return result
    except Exception as problem:
        got = got_in_vain(problem, filled, objects)
        raise
    finally:
        if number and got is not None and whole(source) != PROC_NULL:
            event = (number, whole(source), whole(tag), signature, 0, got)
            check.write_event("recv", at, call, *event)


def got_in_vain(problem: Exception, filled: Status, objects: bool) -> Got | None:
    """What a receive has got that ended with an error; None for nothing."""
    if isinstance(problem, MPIException):
        came = _ARRIVED.search(problem.detail)
        if problem.Get_error_class() == ERR_TRUNCATE and came is not None:
            return int(came[1]), int(came[2]), 0, ASKED | REFUSED, -1, ()  # it was too long
    elif objects and filled.Get_source() >= 0:  # it came, and was no object
        return got_of(filled, True, None, filled.Get_source())
    return None


def _begin_send(
    check: Checker, at: int, call: str, original: Any, comm: Any, buf: Any, dest: Any, tag: Any = 0
) -> Any:
    """The handler of a call that begins to send."""
    mode, objects = _mode_of(call), _is_of_objects(call)
    if not objects:
        check.buffers.used(at, call, buf, writes=False)
    request = original(comm, buf, dest, tag)
    entry = check.requests.begun(request, at, call, "send")
    number, target = check.comm(comm), whole(dest)
    if number and target != PROC_NULL:
        signature = OBJECT if objects else of_message(buf)
        event = ("send", at, call, number, target, whole(tag), signature, mode, 0)
        check.write_again(event, entry.number)
        if not objects:
            check.buffers.begin_use(entry, buf, writes=False)
    return request


def _begin_send_object(
    check: Checker, at: int, call: str, original: Any, comm: Any, obj: Any, dest: Any, tag: Any = 0
) -> Any:
    """The same for objects."""
    return _begin_send(check, at, call, original, comm, obj, dest, tag)


def _begin_receive(
    check: Checker, at: int, call: str, original: Any, comm: Any, buf: Any = None,
    source: Any = ANY_SOURCE, tag: Any = ANY_TAG,
) -> Any:  # fmt: skip
    """The handler of `Irecv` and `irecv`."""
    number, objects = check.comm(comm), call == "comm.irecv"
    if not objects:
        check.buffers.used(at, call, buf, writes=True)
    request = original(comm, buf, source, tag)
    entry = check.requests.begun(request, at, call, "recv")
    if number and whole(source) != PROC_NULL:
        signature = OBJECT if objects else of_message(buf)
        event = ("recv", at, call, number, whole(source), whole(tag), signature, 0, None)
        check.write_again(event, entry.number)
        entry.received = None if objects else buf
        entry.receives, entry.wanted = True, whole(source)
        if not objects:
            check.buffers.begin_use(entry, buf, writes=True)
    return request


def _both(
    check: Checker, at: int, call: str, comm: Any, *,
    sent: Signature | None, dest: Any, sendtag: Any, expected: Signature | None, source: Any,
    recvtag: Any, numbers: tuple[int, int],
) -> bool:  # fmt: skip
    """Write down an exchange; whether there is a receive."""
    number = check.comm(comm)
    if not number:
        return False
    if whole(source) != PROC_NULL:
        receive = ("recv", at, call, number, whole(source), whole(recvtag), expected, 0, None)
        check.write_again(receive, numbers[1])
    if whole(dest) != PROC_NULL:
        send = ("send", at, call, number, whole(dest), whole(sendtag), sent, STANDARD, 0)
        check.write_again(send, numbers[0])
    return whole(source) != PROC_NULL


def _exchange(
    check: Checker, at: int, call: str, original: Any, comm: Any, sendbuf: Any, dest: Any,
    sendtag: Any = 0, recvbuf: Any = None, source: Any = ANY_SOURCE, recvtag: Any = ANY_TAG,
    status: Status | None = None,
) -> Any:  # fmt: skip
    """The handler of `Sendrecv` and `sendrecv`."""
    objects, numbers = call == "comm.sendrecv", (check.number(), check.number())
    if not objects:
        check.buffers.compare(at, call, sendbuf, recvbuf)
        check.buffers.used(at, call, sendbuf, writes=False)
        check.buffers.used(at, call, recvbuf, writes=True)
    receives = _both(
        check, at, call, comm, sent=OBJECT if objects else of_message(sendbuf), dest=dest,
        sendtag=sendtag, expected=OBJECT if objects else of_message(recvbuf), source=source,
        recvtag=recvtag, numbers=numbers,
    )  # fmt: skip
    filled = Status() if status is None else status
    result = original(comm, sendbuf, dest, sendtag, recvbuf, source, recvtag, filled)
    got = got_of(filled, status is not None, result if objects else recvbuf, whole(source))
    _exchanged(check, at, call, numbers, got if receives else None)
    return result


def _exchanged(
    check: Checker, at: int, call: str, numbers: tuple[int, int], got: Got | None
) -> None:
    """An exchange is over; it received something, or nothing."""
    if got is not None:
        check.write_again(("got", 0, got), numbers[1])
    check.write_again(("wait", at, call, 0, 0, "all"), *numbers)


def _object_exchange(
    check: Checker, at: int, call: str, original: Any, comm: Any, sendobj: Any, dest: Any,
    sendtag: Any = 0, recvbuf: Any = None, source: Any = ANY_SOURCE, recvtag: Any = ANY_TAG,
    status: Status | None = None,
) -> Any:  # fmt: skip
    return _exchange(
        check, at, call, original, comm, sendobj, dest, sendtag, recvbuf, source, recvtag, status
    )


def _replace(
    check: Checker, at: int, call: str, original: Any, comm: Any, buf: Any, dest: Any,
    sendtag: Any = 0, source: Any = ANY_SOURCE, recvtag: Any = ANY_TAG,
    status: Status | None = None,
) -> Any:  # fmt: skip
    """The handler of `Sendrecv_replace`."""
    numbers, signature = (check.number(), check.number()), of_message(buf)
    check.buffers.used(at, call, buf, writes=True)
    receives = _both(
        check, at, call, comm, sent=signature, dest=dest, sendtag=sendtag, expected=signature,
        source=source, recvtag=recvtag, numbers=numbers,
    )  # fmt: skip
    filled = Status() if status is None else status
    result = original(comm, buf, dest, sendtag, source, recvtag, filled)
    got = got_of(filled, status is not None, buf, whole(source))
    _exchanged(check, at, call, numbers, got if receives else None)
    return result


def _begin_exchange(
    check: Checker, at: int, call: str, original: Any, comm: Any, sendbuf: Any, dest: Any,
    sendtag: Any = 0, recvbuf: Any = None, source: Any = ANY_SOURCE, recvtag: Any = ANY_TAG,
) -> Any:  # fmt: skip
    """The handler of `Isendrecv`."""
    check.buffers.used(at, call, sendbuf, writes=False)
    check.buffers.used(at, call, recvbuf, writes=True)
    request = original(comm, sendbuf, dest, sendtag, recvbuf, source, recvtag)
    entry = check.requests.begun(request, at, call, "recv")
    entry.other = check.number()
    entry.received, entry.wanted = recvbuf, whole(source)
    entry.receives = _both(
        check, at, call, comm, sent=of_message(sendbuf), dest=dest, sendtag=sendtag,
        expected=of_message(recvbuf), source=source, recvtag=recvtag,
        numbers=(entry.other, entry.number),
    )  # fmt: skip
    check.buffers.begin_use(entry, sendbuf, writes=False)
    check.buffers.begin_use(entry, recvbuf, writes=True)
    return request


def _begin_replace(
    check: Checker, at: int, call: str, original: Any, comm: Any, buf: Any, dest: Any,
    sendtag: Any = 0, source: Any = ANY_SOURCE, recvtag: Any = ANY_TAG,
) -> Any:  # fmt: skip
    """The handler of `Isendrecv_replace`."""
    check.buffers.used(at, call, buf, writes=True)
    signature = of_message(buf)
    request = original(comm, buf, dest, sendtag, source, recvtag)
    entry = check.requests.begun(request, at, call, "recv")
    entry.other, entry.received = check.number(), buf
    entry.wanted = whole(source)
    entry.receives = _both(
        check, at, call, comm, sent=signature, dest=dest, sendtag=sendtag, expected=signature,
        source=source, recvtag=recvtag, numbers=(entry.other, entry.number),
    )  # fmt: skip
    check.buffers.begin_use(entry, buf, writes=True)
    return request


def _prepare_send(
    check: Checker, at: int, call: str, original: Any, comm: Any, buf: Any, dest: Any, tag: Any = 0
) -> Any:
    """The handler of `Send_init` and its like."""
    request = original(comm, buf, dest, tag)
    number = 0 if whole(dest) == PROC_NULL else check.comm(comm)
    event = ("send", number, whole(dest), whole(tag), of_message(buf), _mode_of(call))
    check.requests.prepared(request, at, call, event, buf)
    return request


def _prepare_receive(
    check: Checker, at: int, call: str, original: Any, comm: Any, buf: Any,
    source: Any = ANY_SOURCE, tag: Any = ANY_TAG,
) -> Any:  # fmt: skip
    """The handler of `Recv_init`."""
    request = original(comm, buf, source, tag)
    number = 0 if whole(source) == PROC_NULL else check.comm(comm)
    event = ("recv", number, whole(source), whole(tag), of_message(buf))
    check.requests.prepared(request, at, call, event, buf)
    return request


def _look(
    check: Checker, at: int, call: str, original: Any, comm: Any, source: Any = ANY_SOURCE,
    tag: Any = ANY_TAG, status: Status | None = None,
) -> Any:  # fmt: skip
    """The handler of `Probe` and `Iprobe`: only who found a message counts."""
    filled = Status() if status is None else status
    found = original(comm, source, tag, filled)
    if found and whole(source) != PROC_NULL:
        number = check.comm(comm)
        check.write_event("probe", at, call, number, filled.Get_source(), filled.Get_tag())
    return found


def _take(
    check: Checker, at: int, call: str, original: Any, comm: Any, source: Any = ANY_SOURCE,
    tag: Any = ANY_TAG, status: Status | None = None,
) -> Any:  # fmt: skip
    """The handler of `Mprobe` and `Improbe`: the message is matched here."""
    filled = Status() if status is None else status
    found = original(comm, source, tag, filled)
    if found and whole(source) != PROC_NULL:
        entry = check.requests.taken(found, at, call)
        entry.wanted, entry.with_status = whole(source), status is not None
        number = check.comm(comm)
        got = got_of(filled, True, None, filled.Get_source())
        event = ("recv", at, call, number, whole(source), whole(tag), None, entry.number, got)
        check.write_event(*event)
    return found


def _take_as(
    check: Checker, at: int, call: str, original: Any, kind: Any, comm: Any,
    source: Any = ANY_SOURCE, tag: Any = ANY_TAG, status: Status | None = None,
) -> Any:  # fmt: skip
    """The handler of `Message.Probe` and its like."""
    return _take(check, at, call, partial(original, kind), comm, source, tag, status)


def _receive_taken(
    check: Checker, at: int, call: str, original: Any, message: Any, *args: Any, **named: Any
) -> Any:
    """The handler of a message's `Recv` and its like."""
    if call[len("message.")].isupper():
        check.buffers.used(at, call, (*args, named.get("buf"))[0], writes=True)
    if call in {"message.Irecv", "message.irecv"}:
        return _begin_taken(check, at, call, original, message, *args, **named)
    state = message._inner
    entry = check.requests.taken_as(state)
    if entry is None:
        return original(message, *args, **named)
    objects = call == "message.recv"
    place = 0 if objects else 1  # of the status
    asked = named.get("status") or (args[place] if len(args) > place else None)
    filled = Status() if asked is None else asked
    buffer = () if objects else args[:1]
    rest = {name: value for name, value in named.items() if name != "status"}
    got: Got | None = None
    try:
        result = original(message, *buffer, status=filled, **rest)
        received = result if objects else (*buffer, named.get("buf"))[0]
        with_status = entry.with_status or asked is not None
        got = got_of(filled, with_status, received, entry.wanted)
        return result
    except Exception as problem:
        got = got_in_vain(problem, filled, objects)
        raise
    finally:
        _tell_taken(check, at, call, entry, args, named, got)
        check.requests.message_received(state, at, call)


def _begin_taken(
    check: Checker, at: int, call: str, original: Any, message: Any, *args: Any, **named: Any
) -> Any:
    """The same for those that return a request."""
    state = message._inner
    entry = check.requests.taken_as(state)
    request = original(message, *args, **named)
    _tell_taken(check, at, call, entry, args, named, None)
    check.requests.message_received(state, at, call)
    begun = check.requests.begun(request, at, call, "matched")
    if call == "message.Irecv" and entry is not None:
        check.buffers.begin_use(begun, (*args, named.get("buf"))[0], writes=True)
    return request


def _tell_taken(
    check: Checker, at: int, call: str, entry: Any, args: Any, named: Any, got: Got | None
) -> None:
    """What a message is received into that a matched probe took."""
    if entry is not None:
        objects = call.rpartition(".")[2].islower()
        signature = OBJECT if objects else of_message((*args, named.get("buf"))[0])
        check.write_event("taken", entry.number, at, call, signature, got)


HANDLERS: Final[dict[str, Handler]] = {
    **dict.fromkeys(("Send", "Bsend", "Ssend", "Rsend"), _send),
    **dict.fromkeys(("Isend", "Ibsend", "Issend", "Irsend"), _begin_send),
    **dict.fromkeys(("send", "bsend", "ssend"), _send_object),
    **dict.fromkeys(("isend", "ibsend", "issend"), _begin_send_object),
    **dict.fromkeys(("Send_init", "Bsend_init", "Ssend_init", "Rsend_init"), _prepare_send),
    "Recv": _receive,
    "recv": _receive,
    "Irecv": _begin_receive,
    "irecv": _begin_receive,
    "Sendrecv": _exchange,
    "sendrecv": _object_exchange,
    "Sendrecv_replace": _replace,
    "Isendrecv": _begin_exchange,
    "Isendrecv_replace": _begin_replace,
    "Recv_init": _prepare_receive,
    **dict.fromkeys(("Probe", "probe", "Iprobe", "iprobe"), _look),
    **dict.fromkeys(("Mprobe", "mprobe", "Improbe", "improbe"), _take),
}
MESSAGE_HANDLERS: Final[dict[str, Handler]] = {
    **dict.fromkeys(("Recv", "Irecv", "recv", "irecv"), _receive_taken),
    **dict.fromkeys(("Probe", "Iprobe", "probe", "iprobe"), _take_as),
}
