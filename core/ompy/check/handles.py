"""Handles that have to be freed: where each was made, and what is left when the rank finalizes."""

# ruff: noqa: SLF001 - states are private to users, not to us

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ompy.check.checker import Checker
from ompy.mpi.communicators.comm import Comm

Handler = Callable[..., Any]
# calls that all members make, and that make a communicator; as members may mix them
_MAKING: Final = {
    "Dup": "Dup",
    "Clone": "Dup",
    "Dup_with_info": "Dup",
    "Idup": "Idup",
    "Idup_with_info": "Idup",
    "Create": "Create",
    "Split": "Split",
    "Split_type": "Split_type",
    "Create_cart": "Create_cart",
    "Create_graph": "Create_graph",
    "Create_dist_graph": "Create_dist_graph",
    "Create_dist_graph_adjacent": "Create_dist_graph_adjacent",
    "Sub": "Sub",
    "Merge": "Merge",
    "Create_intercomm": "Create_intercomm",
    "Spawn": "Spawn",
    "Spawn_multiple": "Spawn",
    "Shrink": "",
    "Ishrink": "",
    "Create_group": "",
    "Create_from_group": "",
    "Create_from_groups": "",
    "Accept": "Accept",
    "Connect": "Connect",
}
_NEVER: Final = {
    "file": "opened here was never closed",
    "session": "begun here was never finalized",
}
_WHY: Final = {
    "communicator": "MPI 4.1, 7.4.3: call its Free when it is not needed any more",
    "datatype": "MPI 4.1, 5.1.9: call its Free when it is not needed any more",
    "window": "MPI 4.1, 12.2.5: all members call its Free",
    "file": "MPI 4.1, 14.2.2: all members call its Close before the program ends",
    "session": "MPI 4.1, 11.3.1: call its Finalize",
    "attached buffer": "MPI 4.1, 3.6: call MPI.Detach_buffer",
}


def _make_comm(kind: str) -> Handler:
    """The handler of a call that makes a communicator."""

    def handler(
        check: Checker, at: int, call: str, original: Any, comm: Any, *args: Any, **named: Any
    ) -> Any:
        if kind:
            check.write_event("coll", at, call, check.comm(comm), kind, -1, "", None, None, 0)
        result = original(comm, *args, **named)
        if isinstance(result, tuple):
            made, request = result
            check.duplicates.append((made, at, call))  # null until its request is complete
            check.requests.begun(request, at, call, "coll")
        elif isinstance(result, Comm) and result._inner is not None:
            check.comm(result)
            check.hold("communicator", at, call, result._inner)
        return result

    return handler


def _free_comm(check: Checker, _at: int, _call: str, original: Any, comm: Any) -> Any:
    """The handler of `Free` and `Disconnect`."""
    state = comm._inner
    result = original(comm)
    if state is not None:
        check.release(state)
        check.forget_comm(state)
    return result


def _make_datatype(
    check: Checker, at: int, call: str, original: Any, datatype: Any, *args: Any, **named: Any
) -> Any:
    """The handler of what makes a datatype."""
    result = original(datatype, *args, **named)
    state = getattr(result, "_inner", None)
    if state is not None and not state.predefined:
        check.hold("datatype", at, call, state)
    return result


def _let_go(check: Checker, _at: int, _call: str, original: Any, handle: Any) -> Any:
    """The handler of what ends a datatype or a session."""
    state = handle._inner
    result = original(handle)
    check.release(state)
    return result


def _begin_session(
    check: Checker, at: int, call: str, original: Any, kind: Any, *args: Any, **named: Any
) -> Any:  # fmt: skip
    """The handler of `Session.Init`."""
    result = original(kind, *args, **named)
    check.hold("session", at, call, result._inner)
    return result


class _Attached:
    """Memory for buffered sends, as something that has to be given back."""


_attached: Final = _Attached()


def _attach(check: Checker, at: int, call: str, original: Any, buf: Any) -> Any:
    result = original(buf)
    check.hold("attached buffer", at, call, _attached)
    return result


def _detach(check: Checker, _at: int, _call: str, original: Any) -> Any:
    result = original()
    check.release(_attached)
    return result


def finish(checker: Checker) -> None:
    """The rank begins to finalize: what is left was forgotten."""
    for made, at, call in checker.duplicates:
        state = made._inner
        if state is not None and state.communicator.context_id in state.world.context.communicators:
            checker.hold("communicator", at, call, state)
    for what, at, call, _ in list(checker.handles.values()):
        never = _NEVER.get(what, "made here was never freed")
        text = f"{call}: the {what} {never}. {_WHY[what]}"
        checker.add_finding("leak", text, (at, call))


COMM_HANDLERS: Final[dict[str, Handler]] = {
    **{name: _make_comm(kind) for name, kind in _MAKING.items()},
    **dict.fromkeys(("Free", "Disconnect", "free"), _free_comm),
}
DATATYPE_HANDLERS: Final[dict[str, Handler]] = {
    **dict.fromkeys(
        (
            "Dup", "Create_dup", "Create_contiguous", "Create_vector", "Create_hvector",
            "Create_indexed", "Create_indexed_block", "Create_hindexed", "Create_hindexed_block",
            "Create_struct", "Create_subarray", "Create_darray", "Create_resized", "Clone",
        ),
        _make_datatype,
    ),
    **dict.fromkeys(("Free", "free"), _let_go),
}  # fmt: skip
SESSION_HANDLERS: Final[dict[str, Handler]] = {"Init": _begin_session, "Finalize": _let_go}
FUNCTION_HANDLERS: Final[dict[str, Handler]] = {
    "Attach_buffer": _attach,
    "Detach_buffer": _detach,
}
