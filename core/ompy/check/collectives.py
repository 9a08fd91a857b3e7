"""Collective calls: which, and with what arguments, for `analysis/collectives.py`.

What each member sends to, and receives from, each other one is a signature: one for all of them, or
a list by rank.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature as parameters_of
from typing import Any, Final

from ompy.check.buffers import Parts
from ompy.check.checker import Checker
from ompy.check.messages import whole
from ompy.check.operations import ALONG_EDGES, REDUCTIONS, stem_of
from ompy.check.signatures import OBJECT, Signature, of_elements, of_message, of_type, repeated
from ompy.data.constants import ROOT
from ompy.mpi.buffers.common_forms import says_in_place
from ompy.mpi.buffers.spec import even_blocks, typed_blocks, vector_blocks
from ompy.mpi.collectives.neighbour_calls import edges

Handler = Callable[..., Any]
Side = Signature | list[Signature | None] | None
_BUFFERS: Final = (
    "Barrier", "Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv",
    "Alltoall", "Alltoallv", "Alltoallw", "Reduce", "Allreduce", "Reduce_scatter_block",
    "Reduce_scatter", "Scan", "Exscan", "Neighbor_allgather", "Neighbor_allgatherv",
    "Neighbor_alltoall", "Neighbor_alltoallv", "Neighbor_alltoallw",
)  # fmt: skip
_OBJECTS: Final = (
    "barrier", "bcast", "gather", "scatter", "allgather", "alltoall", "reduce", "allreduce",
    "scan", "exscan", "neighbor_allgather", "neighbor_alltoall",
)  # fmt: skip


def _even(spec: Any, ranks: int) -> Signature | None:
    """The part of each rank in a buffer of equal parts."""
    if says_in_place(spec):
        return None
    dtype = getattr(spec, "dtype", None)
    if dtype is not None and dtype.kind in "iufcb" and ranks and spec.size % ranks == 0:
        return ((f"{dtype.kind}{dtype.itemsize}", int(spec.size) // ranks),), 1
    try:
        found = even_blocks(spec, False, ranks)
    except Exception:
        return None  # the call itself says what is wrong
    counts = found.blocks.counts
    return of_elements(found.datatype, counts[0]) if counts else None  # no neighbours


def _parts(spec: Any, ranks: int) -> list[Signature | None] | None:
    """The part of each rank in a buffer with counts."""
    if says_in_place(spec):
        return None
    try:
        found = vector_blocks(spec, False, ranks)
    except Exception:
        return None
    return [of_elements(found.datatype, count) for count in found.blocks.counts]


def _typed_parts(spec: Any, ranks: int) -> list[Signature | None] | None:
    """The part of each rank, with a datatype of its own."""
    if says_in_place(spec):
        return None
    try:
        counts = typed_blocks(spec, False, ranks).counts
        types = [each._inner for each in spec[-1]]  # noqa: SLF001 - private to users, not to us
    except Exception:
        return None
    found: list[Signature | None] = []
    for state, count in zip(types, counts, strict=False):
        runs, times = of_type(state)
        found.append(repeated(runs, times * count))
    return found


def _one(spec: Any, _ranks: int) -> Signature | None:
    """The same for every rank, or for the root."""
    return of_message(spec)


# how each call's buffers are read, by its stem; the root alone has parts in the rooted ones, and in
# those of neighbours each part belongs to an edge
_SENT: Final[dict[str, Callable[[Any, int], Side]]] = {
    **dict.fromkeys(("gather", "gatherv", "allgather", "allgatherv"), _one),
    "scatter": _even,
    "scatterv": _parts,
    "alltoall": _even,
    "alltoallv": _parts,
    "alltoallw": _typed_parts,
    **dict.fromkeys(("neighbor_allgather", "neighbor_allgatherv"), _one),
    "neighbor_alltoall": _even,
    "neighbor_alltoallv": _parts,
    "neighbor_alltoallw": _typed_parts,
}
_RECEIVED: Final[dict[str, Callable[[Any, int], Side]]] = {
    **dict.fromkeys(("scatter", "scatterv"), _one),
    **dict.fromkeys(("gather", "allgather", "alltoall"), _even),
    **dict.fromkeys(("gatherv", "allgatherv", "alltoallv"), _parts),
    "alltoallw": _typed_parts,
    **dict.fromkeys(("neighbor_allgather", "neighbor_alltoall"), _even),
    **dict.fromkeys(("neighbor_allgatherv", "neighbor_alltoallv"), _parts),
    "neighbor_alltoallw": _typed_parts,
}


# who reads the parts of a buffer
_BLOCKS: Final[dict[Callable[[Any, int], Side], Callable[[Any, bool, int], Any]]] = {
    _even: even_blocks,
    _parts: vector_blocks,
    _typed_parts: typed_blocks,
}
_AT_THE_ROOT: Final = frozenset({"gather", "gatherv", "reduce"})  # receives there alone


def _counted(sent: Signature | None, counts: Any) -> Side:
    """The parts of a result that is handed out, by the counts that a member gives."""
    if sent is None or not isinstance(counts, (list, tuple)) or len(sent[0]) != 1:
        return None
    letter = sent[0][0][0]
    return [(((letter, whole(count)),), 1) for count in counts]


def _sides(stem: str, size: int, given: dict[str, Any], here: bool) -> tuple[Side, Side]:
    """What is sent and received.

    Args:
        stem: of the call in small letters, as `allgatherv`.
        size: how many members there are to send to.
        given: its arguments.
        here: this rank is the root, if there is one.
    """
    send, receive = given.get("sendbuf"), given.get("recvbuf")
    if stem == "bcast":
        return of_message(given.get("buf")), None
    if stem in REDUCTIONS:
        sent = of_message(receive if says_in_place(send) else send)
        return sent, _counted(sent, given.get("recvcounts"))
    if stem not in _SENT:
        return None, None
    elsewhere = "root" in given and not here
    sends = None if elsewhere and stem.startswith("scatter") else _SENT[stem](send, size)
    receives = None if elsewhere and stem.startswith("gather") else _RECEIVED[stem](receive, size)
    return sends, receives


def _along_edges(stem: str, state: Any, given: dict[str, Any], *, objects: bool) -> tuple[Any, Any]:
    """The same of neighbours: a signature and who it is for, or from, edge by edge."""
    try:
        found = edges(state)
    except Exception:
        return None, None  # the call itself says what is wrong
    sides = []
    for of, buffer, ranks in (
        (_SENT, "sendbuf", found.targets),
        (_RECEIVED, "recvbuf", found.sources),
    ):
        side = OBJECT if objects else of[stem](given.get(buffer), len(ranks))
        parts = side if isinstance(side, list) else [side] * len(ranks)
        sides.append(list(zip(ranks, parts, strict=False)))
    return sides[0], sides[1]


def _op_text(op: Any) -> str:
    """An operation as people know it; what has no name is the program's own."""
    if op is None:
        return ""
    name = getattr(op, "_name", "")
    if name:
        return str(name)
    return getattr(op, "__name__", "") or "an operation of the program"


def _memory(stem: str, comm: Any, given: dict[str, Any]) -> list[tuple[Any, bool]]:
    """The buffers that a call uses in this rank, each with whether it writes it.

    A buffer that counts at the root alone is not used elsewhere (MPI 4.1, 6.5 and 6.6).
    """
    here = _is_root(comm, given)
    elsewhere = "root" in given and not here
    sends = None if elsewhere and stem.startswith("scatter") else given.get("sendbuf")
    receives = None if elsewhere and stem in _AT_THE_ROOT else given.get("recvbuf")
    used = [(given.get("buf"), not here)]
    for spec, writes, of in ((sends, False, _SENT), (receives, True, _RECEIVED)):
        blocks = _BLOCKS.get(of.get(stem, _one))
        parted = blocks is not None and isinstance(spec, (list, tuple))
        many = _parts_of(stem, comm, writes=writes) if parted else 0
        used.append((Parts(spec, blocks, many) if blocks is not None and parted else spec, writes))
    return used


def _parts_of(stem: str, comm: Any, *, writes: bool) -> int:
    """How many parts a buffer of a call has."""
    state = comm._inner  # noqa: SLF001 - private to users, not to us
    if state is None:
        return 0  # the call itself says what is wrong
    if stem not in ALONG_EDGES:
        return len(state.communicator.procs)
    try:
        found = edges(state)
    except Exception:
        return 0  # likewise
    return len(found.sources if writes else found.targets)


def _touch(check: Checker, at: int, call: str, used: list[tuple[Any, bool]]) -> None:
    """Its buffers may be in use by an operation that is pending, or by itself."""
    (_, (sends, _), (receives, _)) = used
    if sends is not None and receives is not None:
        check.buffers.compare(at, call, sends, receives)
    if check.buffers.busy:
        for spec, writes in used:
            check.buffers.used(at, call, spec, writes=writes)


def _is_root(comm: Any, given: dict[str, Any]) -> bool:
    """Whether this rank is the root: of a bcast it only gives."""
    state = comm._inner  # noqa: SLF001 - private to users, not to us
    if state is None or "root" not in given:
        return False
    communicator, root = state.communicator, whole(given["root"])
    between = communicator.own is not communicator.procs
    return bool(root == (ROOT if between else communicator.rank))


def _call(name: str) -> Handler:
    """The handler of a collective call, in any of its forms."""
    objects = name[0].islower() and name not in {"barrier", "ibarrier"}
    nonblocking = name[0] in "Ii" and name[1:].lower() in _STEMS
    persistent = name.endswith("_init")
    stem = stem_of(name)
    names: list[str] = []

    def handler(
        check: Checker, at: int, call: str, original: Any, comm: Any, *args: Any, **named: Any
    ) -> Any:
        if not names:
            names.extend(list(parameters_of(original).parameters)[1:])
        given = {**dict(zip(names, args, strict=False)), **named}
        if "root" in names:
            given.setdefault("root", 0)
        number = check.comm(comm)
        request = check.number() if nonblocking or persistent else 0
        _write(check, at, call, comm, number, (name, stem), given, objects, request)
        used = [] if objects else _memory(stem, comm, given)
        if used:
            _touch(check, at, call, used)
        result = original(comm, *args, **named)
        _begun(check, at, call, result, used, request, persistent)
        return result

    return handler


def _write(
    check: Checker, at: int, call: str, comm: Any, number: int, names: tuple[str, str],
    given: dict[str, Any], objects: bool, request: int,
) -> None:  # fmt: skip
    name, stem = names
    sends: Side = OBJECT if objects and stem != "barrier" else None
    receives: Side = None
    state = comm._inner  # noqa: SLF001 - private to users, not to us
    if stem in ALONG_EDGES:
        sends, receives = _along_edges(stem, state, given, objects=objects)
    elif not objects and number:
        others = len(state.communicator.procs)
        sends, receives = _sides(stem, others, given, _is_root(comm, given))
    op = ""
    if stem in REDUCTIONS:
        op = _op_text(given.get("op")) or "SUM"
    root = whole(given["root"]) if "root" in given else -1
    kind = "Barrier" if name == "barrier" else name
    check.write_event("coll", at, call, number, kind, root, op, sends, receives, request)


def _begun(
    check: Checker, at: int, call: str, result: Any, used: list[tuple[Any, bool]], request: int,
    persistent: bool,
) -> None:  # fmt: skip
    """A nonblocking or persistent call has given a request."""
    if not request or not hasattr(result, "_inner"):
        return
    if persistent:
        check.requests.prepared(result, at, call, ("coll", request, *used), None)
        return
    entry = check.requests.begun(result, at, call, "coll")
    entry.number = request
    for spec, writes in used:
        check.buffers.begin_use(entry, spec, writes=writes)


_STEMS: Final = frozenset(name.lower() for name in (*_BUFFERS, *_OBJECTS))
_NAMES: Final = (
    *_BUFFERS,
    *(f"I{name.lower()}" for name in _BUFFERS),
    *(f"{name}_init" for name in _BUFFERS),
    *_OBJECTS,
    *(f"i{name}" for name in _OBJECTS),
)
HANDLERS: Final[dict[str, Handler]] = {name: _call(name) for name in _NAMES}
