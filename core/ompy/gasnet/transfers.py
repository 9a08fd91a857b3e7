"""Reading and writing other ranks' segments: put and get, in all their forms.

| form | returns when | is complete |
|---|---|---|
| blocking | it is complete | |
| `_nb` | it has begun, with a handle | when the handle is synced |
| `_nbi` | it has begun | when implicit operations are synced |

A put that is not `_bulk` has let go of the source when it returns; a `_bulk` one reads it until it
is complete. Of gets both are the same: in C they differ in what they ask of alignment, and
nothing is asked here. What concerns memory that this rank has mapped, its own and that of ranks of
its host, is done at once.

Source: reference gasnet.md 2 and 6.5.
"""

# ruff: noqa: SLF001 - handles and ranks are private to users, not to this package

from __future__ import annotations

from _thread import get_ident
from typing import Any

from ompy.data.errors import MPIError
from ompy.frameworks.conduit import Transfer
from ompy.gasnet.errors import BadArgument
from ompy.gasnet.handles import INVALID_HANDLE, Handle, Implicit, ThreadState
from ompy.gasnet.messages import Messages
from ompy.gasnet.rank import LAYER, readable_bytes, writable_bytes


class Transfers(Messages):
    """put and get."""

    # --- blocking

    def put(self, node: int, offset: int, source: Any) -> None:
        """Write bytes into a rank's segment; they are there when this returns.

        Args:
            node: the rank.
            offset: into its segment.
            source: contiguous buffer.

        Raises:
            BadArgument: the place is not in the segment, the source is no such buffer, or this
                thread may not communicate now.
            ResourceError: the peer is gone.
        """
        local = readable_bytes(source)
        size = len(local)
        self._check_place(node, offset, size)
        memory = self._mapped[node]
        if memory is not None:
            memory[offset : offset + size] = local
            if self._trace.active:
                self._copied("PUT", node, offset, size)
            return
        if not size:
            return
        handle = Handle()
        self._begin_put(node, offset, local, handle, bulk=True)
        if not handle.complete:
            self._wait(handle)

    put_bulk = put

    def get(self, destination: Any, node: int, offset: int) -> None:
        """Read bytes of a rank's segment, as many as the destination has.

        Args:
            destination: contiguous buffer to write to.
            node: the rank.
            offset: into its segment.

        Raises:
            BadArgument, ResourceError: as `put`.
        """
        local = writable_bytes(destination)
        size = len(local)
        self._check_place(node, offset, size)
        memory = self._mapped[node]
        if memory is not None:
            local[:] = memory[offset : offset + size]
            if self._trace.active:
                self._copied("GET", node, offset, size)
            return
        if not size:
            return
        handle = Handle()
        self._begin_get(node, offset, local, handle)
        if not handle.complete:
            self._wait(handle)

    get_bulk = get

    # --- explicit handles

    def put_nb(self, node: int, offset: int, source: Any) -> Handle:
        """Begin a put; the source may be changed when this returns. Raises as `put`."""
        return self._put(node, offset, readable_bytes(source), bulk=False)

    def put_nb_bulk(self, node: int, offset: int, source: Any) -> Handle:
        """Begin a put; the source is not to be changed until it is synced. Raises as `put`."""
        return self._put(node, offset, readable_bytes(source), bulk=True)

    def get_nb(self, destination: Any, node: int, offset: int) -> Handle:
        """Begin a get; the destination is not to be used until it is synced. Raises as `put`."""
        return self._get(writable_bytes(destination), node, offset)

    get_nb_bulk = get_nb

    # --- implicit handles

    def put_nbi(self, node: int, offset: int, source: Any) -> None:
        """Begin an implicit put; the source may be changed when this returns. Raises as `put`."""
        self._put_implicit(node, offset, readable_bytes(source), bulk=False)

    def put_nbi_bulk(self, node: int, offset: int, source: Any) -> None:
        """Begin an implicit put; the source stays as it is until it is synced. Raises as `put`."""
        self._put_implicit(node, offset, readable_bytes(source), bulk=True)

    def get_nbi(self, destination: Any, node: int, offset: int) -> None:
        """Begin an implicit get; the destination is not to be used until it is synced."""
        local = writable_bytes(destination)
        self._check_place(node, offset, len(local))
        if self._load(local, node, offset):
            return
        operations = self._state().current()
        operations.begin_transfer(is_get=True)
        try:
            self._begin_get(node, offset, local, operations)
        except BaseException:
            operations.done(is_get=True)
            raise

    get_nbi_bulk = get_nbi

    # --- below

    def _state(self) -> ThreadState:
        """What this thread has under way."""
        key = get_ident()
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = ThreadState(self._engine)
        return state

    def _put(self, node: int, offset: int, local: memoryview, *, bulk: bool) -> Handle:
        self._check_place(node, offset, len(local))
        if node == self._me or not len(local):
            self._store(node, offset, local)
            return INVALID_HANDLE
        handle = self._state().new_handle()
        try:
            head = self._begin_put(node, offset, local, handle, bulk=bulk)
        except BaseException:
            handle._release()
            raise
        if head is not None:
            self._wait(head)
        return handle

    def _put_implicit(self, node: int, offset: int, local: memoryview, *, bulk: bool) -> None:
        self._check_place(node, offset, len(local))
        if self._store(node, offset, local):
            return
        operations = self._state().current()
        operations.begin_transfer(is_get=False)
        try:
            head = self._begin_put(node, offset, local, operations, bulk=bulk)
        except BaseException:
            operations.done(is_get=False)
            raise
        if head is not None:
            self._wait(head)

    def _store(self, node: int, offset: int, local: memoryview) -> bool:
        """Write what can be written at once; whether that was so, or there is nothing to write."""
        memory = self._mapped[node]
        if memory is not None:
            memory[offset : offset + len(local)] = local
            if self._trace.active:
                self._copied("PUT", node, offset, len(local))
        return memory is not None or not len(local)

    def _load(self, local: memoryview, node: int, offset: int) -> bool:
        """The same for reading."""
        memory = self._mapped[node]
        if memory is not None:
            local[:] = memory[offset : offset + len(local)]
            if self._trace.active:
                self._copied("GET", node, offset, len(local))
        return memory is not None or not len(local)

    def _copied(self, name: str, node: int, offset: int, size: int) -> None:
        """A put or get of mapped memory is traced."""
        self._copies += 1
        way = "own memory" if node == self._me else "PSHM"
        fields = {"op": self._copies, "offset": offset, "size": size, "way": way}
        self._trace.record(LAYER, name, peer=node, **fields)

    def _begin_put(
        self, node: int, offset: int, local: memoryview, transfer: Transfer, *, bulk: bool
    ) -> Handle | None:
        """Have the conduit begin one put.

        Of one that is to let go of more than the conduit does at once, the head is put first
        (reference gasnet.md 6.5). The caller waits for it while the tail is under way: from then on
        the conduit finishes the transfer, whatever ends that wait.

        Returns:
            The put of the head; None where there is no such part.
        """
        head = None
        limit = self._conduit.max_put_local
        try:
            with self._guard:
                if not bulk and len(local) > limit:
                    split = len(local) - limit
                    head = Handle()
                    self._conduit.put(node, offset, local[:split], head, bulk=True)
                    offset, local = offset + split, local[split:]
                self._conduit.put(node, offset, local, transfer, bulk=bulk)
        except MPIError as problem:
            raise self._failed(problem) from problem
        return head

    def _get(self, local: memoryview, node: int, offset: int) -> Handle:
        self._check_place(node, offset, len(local))
        if node == self._me or not len(local):
            self._load(local, node, offset)
            return INVALID_HANDLE
        handle = self._state().new_handle()
        try:
            self._begin_get(node, offset, local, handle)
        except BaseException:
            handle._release()
            raise
        return handle

    def _begin_get(self, node: int, offset: int, local: memoryview, transfer: Transfer) -> None:
        try:
            with self._guard:
                self._conduit.get(node, offset, local, transfer)
        except MPIError as problem:
            raise self._failed(problem) from problem

    # --- access regions

    def begin_nbi_accessregion(self) -> None:
        """Have the implicit operations that follow belong together, until the region is ended.

        Raises:
            BadArgument: there is an open region: they do not nest.
        """
        self._check_free()
        state = self._state()
        if state.region is not None:
            raise BadArgument("there is an open access region: access regions do not nest")
        state.region = Implicit()

    def end_nbi_accessregion(self) -> Handle:
        """End the open region. Returns a handle for all that was begun in it.

        Raises:
            BadArgument: there is none.
        """
        self._check_free()
        state = self._state()
        operations = state.region
        if operations is None:
            raise BadArgument("there is no open access region in this thread")
        if not operations.under_way(gets=True, puts=True):
            state.region = None
            return INVALID_HANDLE
        handle = state.new_handle()
        state.region = None
        operations.when_drained(handle)
        return handle
