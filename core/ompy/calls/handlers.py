"""What each call that communicates tells of itself: from its arguments, before it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from inspect import signature as parameters_of
from typing import Any, Final

from ompy.calls.caller import Caller
from ompy.frameworks.collectives.call_kinds import KINDS
from ompy.frameworks.collectives.call_order import CallOrder, detail_of, number_of
from ompy.mpi.buffers.common_forms import says_in_place
from ompy.mpi.buffers.spec import message

_SENDS: Final = ("Send", "Ssend", "Bsend", "Rsend")
_MESSAGES: Final = (
    *_SENDS, *(f"I{name.lower()}" for name in _SENDS), *(f"{name}_init" for name in _SENDS),
    *(name.lower() for name in _SENDS), *(f"i{name.lower()}" for name in _SENDS),
    "Recv", "Irecv", "Recv_init", "recv", "irecv", "Psend_init", "Precv_init",
    "Sendrecv", "Sendrecv_replace", "sendrecv", "Isendrecv", "Isendrecv_replace",
    "Probe", "Mprobe", "probe", "mprobe",
)  # fmt: skip
# other names of the same calls of MPI, which `call_kinds.py` does not know
_SAME: Final = {
    "barrier": "Barrier",
    "ibarrier": "Ibarrier",
    "Clone": "Dup",
    "File.Read_at_all": "File.Read_all",
    "File.Write_at_all": "File.Write_all",
}
_COLLECTIVES: Final = tuple(name for name in KINDS if "." not in name)
COMM_CALLS: Final = (
    *_MESSAGES, *_COLLECTIVES, "barrier", "ibarrier", "Clone", "Dup_with_info", "Disconnect",
    "Spawn_multiple", "Abort", "Agree", "Shrink",
)  # fmt: skip
REQUEST_CALLS: Final = (
    "Wait", "Waitall", "Waitany", "Waitsome", "wait", "waitall", "waitany", "waitsome", "Start",
    "Startall",
)  # fmt: skip
_RMA: Final = ("Put", "Get", "Accumulate", "Get_accumulate")
WINDOW_CALLS: Final = (
    *_RMA, *(f"R{name.lower()}" for name in _RMA), "Fetch_and_op", "Compare_and_swap", "Fence",
    "Lock", "Unlock", "Lock_all", "Unlock_all", "Post", "Start", "Complete", "Wait", "Flush",
    "Flush_all", "Flush_local", "Flush_local_all", "Free", "Create", "Allocate",
    "Allocate_shared", "Create_dynamic",
)  # fmt: skip
FILE_CALLS: Final = (
    "Open", "Close", "Set_size", "Preallocate", "Set_view", "Set_atomicity", "Sync", "Read_all",
    "Write_all", "Read_at_all", "Write_at_all", "Read_ordered", "Write_ordered", "Seek_shared",
)  # fmt: skip
_NUMBERS: Final = ("root", "dest", "source", "tag", "sendtag", "recvtag", "target_rank")
_FIELDS: Final = {"target_rank": "dest", "recvtag": "tag"}
_BUFFERS: Final = ("buf", "sendbuf", "recvbuf", "origin")
_OBJECTS: Final = ("obj", "sendobj")


def handler() -> Callable[..., Any]:
    """A handler of a call; what the call's parameters are it finds when it is first made."""
    names: list[str] = []
    defaults: dict[str, Any] = {}

    def handle(caller: Caller, at: Any, call: str, original: Any, *args: Any, **named: Any) -> Any:
        if not names:
            _read_parameters(original, names, defaults)
        given = {**defaults, **dict(zip(names, args, strict=False)), **named}
        fields: dict[str, object] = {}
        with suppress(Exception):  # a mistake of the program's is the call's to refuse
            fields = _fields(caller, call, args, given)
        number = caller.begin_call(at, call, fields)
        try:
            result = original(*args, **named)
        except BaseException as problem:
            caller.end_call(number, problem)
            raise
        caller.end_call(number, None)
        return result

    return handle


def _read_parameters(original: Any, names: list[str], defaults: dict[str, Any]) -> None:
    with suppress(TypeError, ValueError):
        for name, each in parameters_of(original).parameters.items():
            if name in (*_NUMBERS, "op") and each.default is not each.empty:
                defaults[name] = each.default
            names.append(name)


def _fields(
    caller: Caller, call: str, args: tuple[Any, ...], given: Mapping[str, Any]
) -> dict[str, object]:
    """What is written of a call; of what is wrong nothing is, as the call itself says so."""
    fields: dict[str, object] = {}
    communicator = _communicator(args[0] if args else None)
    if communicator is None:  # what makes a window or opens a file
        communicator = _communicator(given.get("comm"))
    if communicator is not None:
        fields["context"] = communicator.context_id
        fields["comm"] = str(communicator.name)
        fields["group"] = caller.group(communicator)
        if call in KINDS or call in _SAME:
            caller.collectives.observe_collectives(communicator)
            fields["collective"] = number_of(communicator.order.word) + 1
            fields["internal"] = _tag_of(communicator.order, call, given.get("root"))
    for name in _NUMBERS:
        with suppress(TypeError, ValueError, OverflowError):
            if name in given:
                fields[_FIELDS.get(name, name)] = int(given[name])
    fields |= _data(given, fields.get("root"), communicator)
    if "op" in given:
        fields["op"] = op_text(given["op"])
    if "requests" in given:
        with suppress(TypeError):
            fields["requests"] = len(given["requests"])
    return fields


def _tag_of(order: CallOrder, call: str, root: Any) -> int:
    """The tag that the messages of the next call will have."""
    kind = KINDS.get(call) or KINDS[_SAME[call]]
    ahead = order.ahead()
    ahead.begin(kind, detail_of(root))
    return ahead.tag()


def _communicator(handle: Any) -> Any:
    """Of a communicator, or of a window or file; None of others and null handles."""
    state = getattr(handle, "_inner", None)
    found = getattr(state, "communicator", None)
    if found is None:
        found = getattr(getattr(state, "comm", None), "communicator", None)
    return found


def _data(given: Mapping[str, Any], root: Any, communicator: Any) -> dict[str, object]:
    """How much a call gives, or has room for: of the first buffer that says so."""
    elsewhere = communicator is not None and root is not None and root != communicator.rank
    for name in _BUFFERS:
        spec = given.get(name)
        if says_in_place(spec):
            continue
        if name == "recvbuf" and elsewhere:
            continue
        try:
            typed = message(spec, writable=False)
            size, count = typed.message.size, typed.message.count
            return {"count": count, "bytes": size, "type": typed.datatype.Get_name()}
        except Exception:  # noqa: S112 - counts of a vector call, or a mistake
            continue
    if any(name in given for name in _OBJECTS):
        return {"type": "object"}
    return {}


def op_text(op: Any) -> str:
    """An operation as people know it; what has no name is the program's own."""
    name = getattr(getattr(op, "_inner", None), "name", "") or getattr(op, "__name__", "")
    return str(name).removeprefix("MPI_") or "an operation of the program"
