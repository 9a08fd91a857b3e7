"""Puts and gets of one rank over its NIC: gasnetc_rdma_{put,get}*.

Source: seed gasnet (RDMA, Extended API); reference gasnet.md 6.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ompy import raw
from ompy.data.errors import ERR_OTHER, MPIError
from ompy.frameworks.btl_base.atomics import AtomicOp, AtomicType
from ompy.frameworks.conduit import Transfer
from ompy.frameworks.nic.gni import (
    Endpoint,
    MemoryHandle,
    PostDescriptor,
    PostType,
    ReturnCode,
)
from ompy.mca.parameter import Values
from ompy.net.memory.kernel_copy import address_of

from ompy_components.conduit.gni.rdma import atomics
from ompy_components.conduit.gni.rdma.buffers import BouncePool
from ompy_components.conduit.gni.rdma.completion import Completions, Joined
from ompy_components.conduit.gni.rdma.descriptors import Descriptor, DescriptorPool, Flag
from ompy_components.conduit.gni.rdma.flags import (
    GC_POST_COMPLETION_FLAG,
    GC_POST_COMPLETION_OP,
    GC_POST_COPY,
    GC_POST_SEND,
    GC_POST_UNBOUNCE,
    GC_POST_UNREGISTER,
)
from ompy_components.conduit.gni.rdma.get_alignment import Piece, get_pieces
from ompy_components.conduit.gni.rdma.registrations import TemporaryRegistrations
from ompy_components.conduit.gni.rdma.transfer_choice import BUFFERED, Place, Ways
from ompy_components.conduit.gni.resources import Resources

TRANSFER_MAX: Final = 1 << 20  # seed gasnet: bytes; larger transfers are cut
TRIES_MAX: Final = 1000  # reference gasnet.md 6.8: times the NIC may refuse a post
SECOND: Final = 1_000_000_000  # ns
CLOSE_WAIT: Final = 2 * SECOND  # arbitrary: the NIC tells soon what becomes of a post

# by whether it reads, then by whether it goes by FMA: the post, and what counts it
KINDS: Final = (
    ((PostType.RDMA_PUT, "rdma_put"), (PostType.FMA_PUT, "fma_put")),
    ((PostType.RDMA_GET, "rdma_get"), (PostType.FMA_GET, "fma_get")),
)

After = Callable[[], object]
Told = Transfer | Flag | After  # who hears that a post is done


class RdmaEngine:
    """Puts and gets of one rank.

    It needs the segments, handles and auxiliary memory of `resources`, and queue and endpoints.

    Attributes:
        max_put_local: bytes of a put that lets go of its memory at once.
    """

    def __init__(self, resources: Resources) -> None:
        values = resources.parameters
        self._resources = resources
        self._counters = resources.counters
        self._trace, self._tracing = resources.tracing.trace, resources.tracing
        self._lock = resources.lock
        self._ways = Ways(values, resources.nic)
        self.max_put_local = self._ways.max_put_local
        self._begin = address_of(resources.segment) if len(resources.segment) else 0
        self._end = self._begin + len(resources.segment)
        edge = DescriptorPool.size(values.num_pd)
        assert len(resources.auxiliary) >= self.auxiliary_size(values)
        self._descriptors = DescriptorPool(resources.auxiliary[:edge], values.num_pd)
        resources.descriptors = self._descriptors
        self._bounce = BouncePool(resources.auxiliary[edge:], values)
        self._registrations = TemporaryRegistrations(resources.domain, values.memreg)
        self._patience = int(values.retry_patience * SECOND)
        self._completions = Completions(
            resources, self._descriptors, self._bounce, self._registrations
        )
        self.poll_local = self._completions.poll

    @staticmethod
    def auxiliary_size(values: Values) -> int:
        """Bytes of registered memory it needs."""
        return DescriptorPool.size(values.num_pd) + BouncePool.size(values)

    @staticmethod
    def queue_depth(values: Values) -> int:
        """Events its posts may have in the local queue at a time."""
        return int(values.num_pd)

    @property
    def under_way(self) -> int:
        """Posts that have not been seen to be done."""
        return self._descriptors.count - len(self._descriptors)

    # -- what the conduit calls

    def put(
        self, node: int, offset: int, local: memoryview, transfer: Transfer, *, bulk: bool
    ) -> None:
        """Begin to write into a peer's segment; waits for what runs out, polling for completions.

        Args:
            node: the peer.
            offset: of its segment.
            local: what is written; stays as it is until the transfer is done if it is `bulk`.
            transfer: told.
            bulk: see there; else `local` may have up to `max_put_local` bytes.

        Raises:
            MPIError: the NIC does not take it, or a post has failed.
        """
        local = raw.flat(local)
        if not len(local):
            transfer.done(is_get=False)
            return
        offset, local = self._put_all_but_last(node, offset, local)
        self._put(node, offset, local, transfer, bulk=bulk)

    def get(self, node: int, offset: int, local: memoryview, transfer: Transfer) -> None:
        """Begin to read from a peer's segment; as `put`, `local` being written to."""
        local = raw.flat(local)
        if not len(local):
            transfer.done(is_get=True)
            return
        while len(local) > TRANSFER_MAX:
            flag = Flag()
            self._get(node, offset, local[:TRANSFER_MAX], flag)
            self._wait(flag)
            offset, local = offset + TRANSFER_MAX, local[TRANSFER_MAX:]
        self._get(node, offset, local, transfer)

    def atomic(
        self,
        node: int,
        offset: int,
        op: AtomicOp,
        kind: AtomicType,
        operand: int,
        compare: int,
        result: memoryview | None,
        transfer: Transfer,
    ) -> None:
        """Begin an atomic of a word of a peer's segment, as `Conduit.atomic`; as `put` else."""
        made = self._prepare(node, offset, transfer, is_get=result is not None)
        try:
            atomics.describe_atomic(made, op, kind, operand, compare, result)
            self._counters["fma_amo"] += 1
            if self._trace.active:
                self._tracing.atomic_post(made)
            self._submit(made, self._endpoint(node).post_fma, "post_fma_retry")
        except BaseException:
            self._completions.drop(made)
            raise

    def put_then(
        self, node: int, offset: int, payload: memoryview, after: After, *, keeps_payload: bool
    ) -> None:
        """Write into a peer's segment, and call `after` when it is there.

        Args:
            node: the peer.
            offset: of its segment.
            payload: what is written.
            after: called once, from a `poll_local`, or from here where it has to wait for that.
                Not called from within another `after`.
            keeps_payload: it stays as it is until then. If not, this returns when the payload may
                be changed.
        """
        payload = raw.flat(payload)
        if not keeps_payload and len(payload) > self.max_put_local:
            self._put_all(node, offset, payload)
            after()
            return
        offset, payload = self._put_all_but_last(node, offset, payload)
        self._put(node, offset, payload, after, bulk=keeps_payload)

    def waiting(self) -> list[str]:
        """Posts that are not done, in words (`Conduit.waiting`)."""
        return [f"the NIC to complete {made!r}" for made in self._descriptors.in_use()]

    def close(self) -> None:
        """Wait for what is under way, though not for long; what fails now is nobody's concern."""
        now = self._resources.context.engine.now
        end = now() + CLOSE_WAIT
        while self.under_way and now() < end:
            with suppress(MPIError):
                self._poll_or_yield()

    # -- puts

    def _put_all_but_last(
        self, node: int, offset: int, local: memoryview
    ) -> tuple[int, memoryview]:
        """Put what is more than one transfer, waiting for each, as seed gasnet (Extended API)."""
        while len(local) > TRANSFER_MAX:
            self._put_all(node, offset, local[:TRANSFER_MAX])
            offset, local = offset + TRANSFER_MAX, local[TRANSFER_MAX:]
        return offset, local

    def _put_all(self, node: int, offset: int, local: memoryview) -> None:
        """Put something, and wait for it."""
        offset, local = self._put_all_but_last(node, offset, local)
        flag = Flag()
        self._put(node, offset, local, flag, bulk=True)
        self._wait(flag)

    def _put(self, node: int, offset: int, local: memoryview, told: Told, *, bulk: bool) -> None:
        """One post."""
        size, ways = len(local), self._ways
        fma = size <= ways.put_fma
        inside = not fma and self._is_inside(local)  # to the ways of an FMA put it is all one
        place = ways.put(size, inside=inside, bulk=bulk)
        made = self._prepare(node, offset, told, is_get=False)
        try:
            if place is Place.DIRECT:
                made.post.local = local
                made.post.local_handle = None
            else:
                self._find_place(made, place, local, size)
                if place in BUFFERED:
                    raw.copy(made.post.local, 0, local, 0, size)
                    self._resources.domain.processor_copies(size)
            self._post(made, place, fma=fma)
        except BaseException:  # the NIC's refusal, or what a poll meanwhile has raised
            self._completions.drop(made)
            raise

    # -- gets

    def _get(self, node: int, offset: int, local: memoryview, told: Transfer | Flag) -> None:
        """One post, or several where it is not aligned."""
        address = address_of(local)
        inside = self._begin <= address and address + len(local) <= self._end
        pieces = get_pieces(offset, len(local), address, inside=inside, ways=self._ways)
        if len(pieces) > 1:
            self._counters["split_gets"] += 1
            told = Joined(told if isinstance(told, Transfer) else _Raises(told), len(pieces))
        for piece in pieces:
            self._get_piece(node, piece, local, told)

    def _get_piece(self, node: int, piece: Piece, local: memoryview, told: Transfer | Flag) -> None:
        made = self._prepare(node, piece.start, told, is_get=True)
        try:
            target = local[piece.at : piece.at + piece.size]
            self._find_place(made, piece.place, target, piece.length)
            if piece.place in BUFFERED:
                made.flags |= GC_POST_COPY
                made.target, made.lead = target, piece.lead
            self._post(made, piece.place, fma=piece.length <= self._ways.get_fma)
        except BaseException:
            self._completions.drop(made)
            raise

    # -- one post, step by step

    def _is_inside(self, local: memoryview) -> bool:
        """Whether local memory lies in the own segment."""
        address = address_of(local)
        return self._begin <= address and address + len(local) <= self._end

    def wait_for_descriptor(self) -> None:
        """Poll for completions, and for nothing else, while no descriptor is free."""
        if not self._descriptors:
            self._stalled("alloc_pd_stall", "descriptor")
            while not self._descriptors:
                self._poll_or_yield()

    def _stalled(self, counter: str, what: str) -> None:
        """Something has run out."""
        self._counters[counter] += 1
        if self._trace.active:
            self._tracing.stalled(what)

    def _prepare(self, node: int, offset: int, told: Told, *, is_get: bool) -> Descriptor:
        """A descriptor that knows who is told."""
        made = self._descriptors.take_descriptor()
        while made is None:
            self.wait_for_descriptor()
            made = self._descriptors.take_descriptor()
        made.node, made.is_get = node, is_get
        made.post.remote_address = offset
        made.post.remote_handle = self._resources.handles[node]
        if isinstance(told, Transfer):
            made.transfer, made.flags = told, GC_POST_COMPLETION_OP
        elif isinstance(told, Flag):
            made.flag, made.flags = told, GC_POST_COMPLETION_FLAG
        else:
            made.after, made.flags = told, GC_POST_SEND
        return made

    def _find_place(self, made: Descriptor, place: Place, local: memoryview, length: int) -> None:
        """Say where the local bytes of a post are; `length` of them in a buffer."""
        self._counters[place.value] += 1
        post, handle = made.post, self._resources.auxiliary_handle
        if place is Place.SEGMENT:
            post.local, handle = local, self._resources.segment_handle
        elif place is Place.IMMEDIATE:
            post.local = made.immediate[:length]
        elif place is Place.BOUNCE:
            made.bounce = self._bounce_buffer()
            made.flags |= GC_POST_UNBOUNCE
            post.local = made.bounce[:length]
        else:
            post.local = local
            handle = made.registration = self._register(made, local)
            made.flags |= GC_POST_UNREGISTER
        post.local_handle = handle

    def _bounce_buffer(self) -> memoryview:
        buffer = self._bounce.take_bounce_buffer()
        if buffer is None:
            self._stalled("alloc_bb_stall", "bounce buffer")
            while buffer is None:
                self._poll_or_yield()
                buffer = self._bounce.take_bounce_buffer()
        return buffer

    def _register(self, made: Descriptor, local: memoryview) -> MemoryHandle:
        """Register local memory for one post."""
        known = self._registrations
        stalled, attempts = False, _Attempts(self._resources, self._patience)
        while True:
            with self._lock:
                handle = known.register_temporarily(local)
                refused = known.refused
            if handle is not None:
                return handle
            if refused:
                self._counters["mem_reg_retry"] += 1
                # while some of ours are out one of them will come back
                if not known.held and attempts.are_over():
                    made.post.local = local
                    raise self._refused(made, "register", "memory for it")
            elif not stalled:
                stalled = True
                self._stalled("mem_reg_stall", "registration")
            self._poll_or_yield()

    def _post(self, made: Descriptor, place: Place, *, fma: bool) -> None:
        endpoint = self._endpoint(made.node)
        post = endpoint.post_fma if fma else endpoint.post_rdma
        made.post.type, name = KINDS[made.is_get][fma]
        self._counters[name] += 1
        if self._trace.active:
            self._tracing.post(made, place, fma=fma)
        self._submit(made, post, "post_fma_retry" if fma else "post_rdma_retry")

    def _endpoint(self, node: int) -> Endpoint:
        endpoint = self._resources.endpoints[node]
        assert endpoint is not None, f"rank {node} is not reached by the NIC"
        return endpoint

    def _submit(
        self, made: Descriptor, post: Callable[[PostDescriptor], ReturnCode], retries: str
    ) -> None:
        """Have the NIC take a post; polls while it has no room, and counts how often."""
        attempts: _Attempts | None = None
        while True:
            with self._lock:
                code = post(made.post)
            if code is ReturnCode.SUCCESS:
                return
            if code is not ReturnCode.ERROR_RESOURCE:
                raise self._refused(made, "post", code.value)
            self._counters[retries] += 1
            attempts = attempts or _Attempts(self._resources, self._patience)
            if attempts.are_over():
                raise self._refused(made, "post", f"{code.value}, {attempts.count} times in a row")
            self._poll_or_yield()

    def _refused(self, made: Descriptor, what: str, why: str) -> MPIError:
        """What to say of a post that could not be begun."""
        return MPIError(ERR_OTHER, f"conduit: the NIC does not {what} {why}: {made!r}")

    # -- waiting

    def _poll_or_yield(self) -> None:
        if not self.poll_local():
            self._resources.yield_()

    def _wait(self, flag: Flag) -> None:
        """Poll for completions, and for nothing else, until a flag is raised."""
        while not flag.raised:
            self._poll_or_yield()


class _Raises(Transfer):
    """Raises a flag for the parts of a get that is waited for."""

    __slots__ = ("_flag",)

    def __init__(self, flag: Flag) -> None:
        self._flag = flag

    def done(self, *, is_get: bool) -> None:
        self._flag.raised = True


class _Attempts:
    """Counts how often the NIC has refused something, and for how long."""

    def __init__(self, resources: Resources, patience: int) -> None:
        self._now = resources.context.engine.now
        self._end = self._now() + patience
        self.count = 0

    def are_over(self) -> bool:
        """Count one more; whether that was the last."""
        self.count += 1
        return self.count >= TRIES_MAX and self._now() >= self._end
