"""Posts under way: what is done to the peer's memory, when it can be seen, and who is told.

Source: seed gasnet (RDMA); reference gasnet.md 3, 6.8.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from ompy.frameworks.nic.gni import (
    CQ_DATA_BITS,
    GET_ALIGNMENT,
    RDMA_MAX,
    AtomicCommand,
    CqMode,
    Event,
    EventKind,
    Ordering,
    PostDescriptor,
    PostType,
    ReturnCode,
)
from ompy.net.memory.kernel_copy import address_of

from ompy_components.nic.gni import atomics
from ompy_components.nic.gni.host import Kind
from ompy_components.nic.gni.memory import PeerMemory, ordering_of, slot_of

if TYPE_CHECKING:
    from ompy_components.nic.gni.domain import GniDomain
    from ompy_components.nic.gni.endpoint import GniEndpoint

PACKET: Final = 64  # arbitrary, as Gemini's: bytes of a put that become visible together
# arbitrary: enough disorder to see; each is a request and an answer of the fabric's streams
FRAMES: Final = 256
GETS: Final = frozenset({PostType.FMA_GET, PostType.RDMA_GET})
PUTS: Final = frozenset({PostType.FMA_PUT, PostType.RDMA_PUT, PostType.FMA_PUT_W_SYNCFLAG})
AMOS: Final = frozenset({PostType.AMO, PostType.FETCHING_AMO})
RDMA: Final = frozenset({PostType.RDMA_PUT, PostType.RDMA_GET})

# members of an enum are slow to find, and those of a flag slow to combine
SUCCESS: Final = ReturnCode.SUCCESS
FMA_PUT: Final = PostType.FMA_PUT
FMA_PUT_W_SYNCFLAG: Final = PostType.FMA_PUT_W_SYNCFLAG
FMA_GET: Final = PostType.FMA_GET
CQWRITE: Final = PostType.CQWRITE
POST: Final = EventKind.POST
REMOTE_EVENT: Final = int(CqMode.REMOTE_EVENT)
LOCAL_OR_GLOBAL: Final = int(CqMode.LOCAL_EVENT | CqMode.GLOBAL_EVENT)


def _now_or(domain: GniDomain, hold: int, say: Callable[[], object]) -> None:
    """Tell a peer something now, or as much later as a fault script says."""
    if hold:
        domain.at(domain.clock.now() + hold, say, held=True)
    else:
        say()


def post_event(rank: int, post: PostDescriptor, code: ReturnCode) -> Event:
    """A post has ended."""
    return tuple.__new__(Event, (POST, rank, 0, post, code))


class Posts:
    """The posts of one communication domain.

    Attributes:
        under_way: how many are.
    """

    def __init__(self, domain: GniDomain, most: int) -> None:
        self._domain = domain
        self._most = most
        self._clock = domain.clock
        self._plain = domain.plain
        self._local_aligned = domain.generation.local_get_aligned
        self._asked: dict[int, tuple[GniEndpoint, PostDescriptor]] = {}
        self._flags: dict[int, bool] = {}  # those of them that are flags: whether the peer is told
        self._number = 0
        self.under_way = 0

    def at_once(self, endpoint: GniEndpoint, post: PostDescriptor) -> bool:
        """Do a put or get of the processor's within this host, if that is all there is to it.

        Nothing takes time then, is late or refused. What cannot be done so goes the other way.
        """
        type_, memory, handle = post.type, endpoint.memory, post.remote_handle
        put, flag = type_ is FMA_PUT, type_ is FMA_PUT_W_SYNCFLAG
        if (
            not (put or flag or type_ is FMA_GET)
            or not self._plain
            or type(memory) is not PeerMemory
            or handle is None
            or endpoint.rank in self._domain.unsaid
            or not (put or flag or self._is_aligned(post))
            or (flag and memory.check(handle, post.sync_flag_address, atomics.WORD) is not SUCCESS)
        ):
            return False
        code = memory.move(handle, post.remote_address, post.local, put or flag)
        if flag and code is SUCCESS:
            word = memoryview(post.sync_flag.to_bytes(atomics.WORD, "little"))
            code = memory.move(handle, post.sync_flag_address, word, True)
        mode, queue = int(post.cq_mode), endpoint.queue
        if mode & REMOTE_EVENT and code is SUCCESS:
            self._domain.send_when_room(endpoint.rank, Kind.REMOTE, slot_of(handle), 0)
        self._domain.news += 1
        if queue is not None and (mode & LOCAL_OR_GLOBAL or code is not SUCCESS):
            queue.push(post_event(endpoint.rank, post, code))
        return True

    def begin_post(self, endpoint: GniEndpoint, post: PostDescriptor) -> ReturnCode:
        """Begin a post that `refusal` has nothing against."""
        domain = self._domain
        tells = post.type in AMOS or post.type is CQWRITE or int(post.cq_mode) & REMOTE_EVENT
        congested = tells and endpoint.rank in domain.unsaid
        struck = domain.work(endpoint)
        if struck.error == errno.EAGAIN:
            domain.not_now()
            return ReturnCode.ERROR_RESOURCE
        if self.under_way >= self._most or congested or domain.refuses():
            return ReturnCode.ERROR_RESOURCE
        peer = endpoint.memory
        size = post.amo_size if post.type in AMOS else len(post.local)
        size = 0 if post.type is CQWRITE else size
        code = peer.check(post.remote_handle, post.remote_address, size)
        if post.type is PostType.FMA_PUT_W_SYNCFLAG and code is ReturnCode.SUCCESS:
            code = peer.check(post.remote_handle, post.sync_flag_address, atomics.WORD)
        if endpoint.stranger:
            code = ReturnCode.PERMISSION_ERROR
        if endpoint.wire.lost(endpoint.rank) or domain.fails() or struck.error:
            code = ReturnCode.TRANSACTION_ERROR
        self.under_way += 1
        if code is not ReturnCode.SUCCESS:
            self._refuse(endpoint, post, code)
        elif post.type in PUTS:
            self._put(endpoint, post, struck.hold)
        elif post.type in GETS:
            self._get(endpoint, post, struck.hold)
        elif post.type in AMOS:
            return self._ask(endpoint, post, struck.hold)
        else:
            self._write_queue(endpoint, post, struck.hold)
        return ReturnCode.SUCCESS

    def _refuse(self, endpoint: GniEndpoint, post: PostDescriptor, code: ReturnCode) -> None:
        """It comes to nothing, and that is known when an answer could be here."""
        clock = self._clock
        there = clock.stores("amo", 0).last + clock.way
        done = partial(self._done, endpoint, post, code)
        self._domain.at(there + clock.way, partial(self._domain.late.do, done))

    def _write_queue(self, endpoint: GniEndpoint, post: PostDescriptor, hold: int) -> None:
        """A queue write."""
        domain, clock, handle = self._domain, self._clock, post.remote_handle
        assert handle is not None, "it was checked"
        words = b"".join(word.to_bytes(8, "little") for word in handle)
        there = clock.stores("amo", atomics.WORD).last + clock.way
        if hold:
            there = max(there, clock.now()) + hold
        say = partial(
            domain.send_when_room, endpoint.rank, Kind.CQWRITE, post.cq_data, there, words
        )
        _now_or(domain, hold, say)
        done = partial(self._done, endpoint, post, ReturnCode.SUCCESS)
        domain.at(there + clock.ack, partial(domain.late.do, done), held=bool(hold))

    def refusal(self, post: PostDescriptor, *, rdma: bool) -> ReturnCode:
        """What is wrong with a post, whoever it goes to."""
        if (post.type in RDMA) is not rdma or post.remote_handle is None:
            return ReturnCode.INVALID_PARAM
        if post.type in GETS and not self._is_aligned(post):
            return ReturnCode.ALIGNMENT_ERROR
        if rdma:
            return self._rdma_refusal(post)
        if post.type in AMOS:
            return self._amo_refusal(post)
        if post.type is PostType.CQWRITE and post.cq_data >> CQ_DATA_BITS:
            return ReturnCode.INVALID_PARAM
        return ReturnCode.SUCCESS

    def _rdma_refusal(self, post: PostDescriptor) -> ReturnCode:
        if len(post.local) > RDMA_MAX:
            return ReturnCode.SIZE_ERROR
        known = self._domain.memory.find(post.local_handle)
        registered = known is not None and known.has(post.local)
        return ReturnCode.SUCCESS if registered else ReturnCode.INVALID_PARAM

    def _amo_refusal(self, post: PostDescriptor) -> ReturnCode:
        generation, size = self._domain.generation, post.amo_size
        if post.command not in generation.commands or size not in generation.words:
            return ReturnCode.INVALID_PARAM
        if post.remote_address % size:
            return ReturnCode.ALIGNMENT_ERROR
        if post.type is PostType.FETCHING_AMO and len(post.local) != size:
            return ReturnCode.INVALID_PARAM
        return ReturnCode.SUCCESS

    def _is_aligned(self, post: PostDescriptor) -> bool:
        local = 0
        if self._domain.generation.local_get_aligned and len(post.local):
            local = address_of(post.local)
        return not (post.remote_address | len(post.local) | local) % GET_ALIGNMENT

    # -- puts and gets

    def _put(self, endpoint: GniEndpoint, post: PostDescriptor, hold: int) -> None:
        domain, peer, local = self._domain, endpoint.memory, post.local
        late, clock = domain.late.percent, self._clock
        handle = post.remote_handle
        assert handle is not None, "it was checked"
        ordering = ordering_of(handle)
        strict = ordering is Ordering.STRICT
        held = domain.scripted and bool(hold or (strict and endpoint.strict > clock.now()))
        if isinstance(peer, PeerMemory) and not late and not clock.runs and not held:
            self._landed(endpoint, post, peer.move(handle, post.remote_address, local, True))
            return
        fma = post.type is not PostType.RDMA_PUT
        lets_go = post.cq_mode & CqMode.LOCAL_EVENT and not post.cq_mode & CqMode.GLOBAL_EVENT
        if (fma and domain.generation.fma_put_is_local) or lets_go:
            local = memoryview(bytes(local))
        leaves = clock.post(post)
        near = isinstance(peer, PeerMemory)
        when = leaves.last + clock.way if near else clock.over_link(leaves, len(local))
        if hold:
            when = max(when, clock.now()) + hold
        if strict:
            when = endpoint.strict = max(endpoint.strict, when)
        domain.at(when, partial(self._arrive, endpoint, post, local, ordering), held=held)

    def _arrive(
        self, endpoint: GniEndpoint, post: PostDescriptor, local: memoryview, ordering: Ordering
    ) -> None:
        """A put is where the peer's memory is, or the link to it."""
        domain, handle = self._domain, post.remote_handle
        assert handle is not None, "it was checked"
        if domain.late.percent and ordering is Ordering.RELAXED:
            self._scatter(endpoint, post, local)
            return
        lane = endpoint if ordering is Ordering.STRICT else None
        landed = partial(self._landed, endpoint, post)
        write = partial(endpoint.memory.write, handle, post.remote_address, local, landed)
        domain.late.do(write, lane)

    def _scatter(self, endpoint: GniEndpoint, post: PostDescriptor, local: memoryview) -> None:
        """Have a put's packets become visible each by itself.

        On the way to other hosts several together, where there are too many for its streams.
        """
        size, handle = PACKET, post.remote_handle
        if endpoint.wire is self._domain.far:
            size *= max(1, -(-len(local) // (PACKET * FRAMES)))
        starts = range(0, max(len(local), 1), size)
        assert handle is not None
        codes: list[ReturnCode] = []
        domain, tells = self._domain, bool(post.cq_mode & CqMode.REMOTE_EVENT)
        if tells:
            told = partial(domain.send_when_room, endpoint.rank, Kind.REMOTE, slot_of(handle))
            domain.late.do(lambda: told(self._clock.now()))

        def landed(code: ReturnCode) -> None:
            codes.append(code)
            if len(codes) == len(starts):
                bad = [other for other in codes if other is not ReturnCode.SUCCESS]
                self._landed(endpoint, post, bad[0] if bad else ReturnCode.SUCCESS, told=tells)
            if tells:
                endpoint.wire.wake(endpoint.rank)  # the event may have come already

        for start in starts:
            packet, at = local[start : start + size], post.remote_address + start
            domain.late.do(partial(endpoint.memory.write, handle, at, packet, landed))

    def _landed(
        self,
        endpoint: GniEndpoint,
        post: PostDescriptor,
        code: ReturnCode,
        *,
        told: bool = False,
    ) -> None:
        """The peer's memory has a put's bytes, or cannot have them; its flag is next."""
        ended = partial(self._ended, endpoint, post, told=told)
        if post.type is not PostType.FMA_PUT_W_SYNCFLAG or code is not ReturnCode.SUCCESS:
            ended(code)
            return
        assert post.remote_handle is not None
        if endpoint.wire is self._domain.far:
            self._ask_for_flag(endpoint, post, told=told)
            return
        word = memoryview(post.sync_flag.to_bytes(atomics.WORD, "little"))
        endpoint.memory.write(post.remote_handle, post.sync_flag_address, word, ended)

    def _ask_for_flag(self, endpoint: GniEndpoint, post: PostDescriptor, *, told: bool) -> None:
        """Between hosts bytes may be seen one by one, but a flag only whole: the peer swaps it."""
        swap = PostDescriptor(PostType.AMO)
        swap.command = AtomicCommand.SWAP
        swap.remote_handle, swap.remote_address = post.remote_handle, post.sync_flag_address
        swap.first_operand = post.sync_flag
        self._number += 1
        self._asked[self._number] = endpoint, post
        self._flags[self._number] = told
        there = self._clock.now() + self._clock.way
        self._domain.send_when_room(
            endpoint.rank, Kind.AMO, self._number, there, atomics.pack_question(swap)
        )

    def _ended(
        self, endpoint: GniEndpoint, post: PostDescriptor, code: ReturnCode, *, told: bool
    ) -> None:
        """All of a put is there: tell the peer unless it is, then the caller."""
        clock = self._clock
        if code is ReturnCode.SUCCESS and post.cq_mode & CqMode.REMOTE_EVENT and not told:
            assert post.remote_handle is not None
            self._domain.send_when_room(
                endpoint.rank, Kind.REMOTE, slot_of(post.remote_handle), clock.now()
            )
        ack = clock.ack if post.cq_mode & CqMode.GLOBAL_EVENT else 0
        self._domain.at(clock.now() + ack, partial(self._done, endpoint, post, code))

    def _get(self, endpoint: GniEndpoint, post: PostDescriptor, hold: int) -> None:
        """Read there when the bytes can be here; of another host, ask when the link can be."""
        assert post.remote_handle is not None
        domain, clock, memory = self._domain, self._clock, endpoint.memory
        done = partial(self._done, endpoint, post)
        leaves = clock.post(post)
        here = leaves.last + 2 * clock.way
        if hold:
            here = max(here, clock.now()) + hold
        near = isinstance(memory, PeerMemory)

        def came(code: ReturnCode) -> None:
            domain.at(max(clock.now() + clock.way, here), partial(done, code))

        told = done if near else came
        read = partial(memory.read, post.remote_handle, post.remote_address, post.local, told)
        due = here if near else leaves.first + clock.way
        domain.at(due, partial(domain.late.do, read), held=bool(hold))

    # -- atomics

    def _ask(self, endpoint: GniEndpoint, post: PostDescriptor, hold: int) -> ReturnCode:
        if not self._domain.has_room(endpoint.rank, Kind.AMO):
            self.under_way -= 1
            return ReturnCode.ERROR_RESOURCE
        self._number += 1
        there = self._clock.stores("amo", atomics.WORD).last + self._clock.way
        number, asked = self._number, atomics.pack_question(post)
        say = partial(
            self._domain.send_when_room, endpoint.rank, Kind.AMO, number, there + hold, asked
        )
        _now_or(self._domain, hold, say)
        self._asked[self._number] = endpoint, post
        return ReturnCode.SUCCESS

    def answered(self, number: int, answer: memoryview) -> None:
        """The peer's device has done an atomic."""
        endpoint, post = self._asked.pop(number, (None, None))
        if endpoint is None or post is None:
            return  # the peer was taken for lost meanwhile
        code, old = atomics.read_answer(answer)
        if number in self._flags:
            self._ended(endpoint, post, code, told=self._flags.pop(number))
            return
        if code is ReturnCode.SUCCESS and post.type is PostType.FETCHING_AMO:
            post.local[:] = old.to_bytes(post.amo_size, "little")
        self._domain.late.do(partial(self._done, endpoint, post, code))

    @property
    def asks(self) -> bool:
        """Whether answers are awaited."""
        return bool(self._asked)

    def look_for_the_dead(self) -> None:
        """Atomics that were asked of ranks that have ended will not be answered."""
        for number, (endpoint, post) in list(self._asked.items()):
            if endpoint.wire.lost(endpoint.rank):
                del self._asked[number]
                self._flags.pop(number, None)
                self._done(endpoint, post, ReturnCode.TRANSACTION_ERROR)

    # -- the end of each

    def _done(self, endpoint: GniEndpoint, post: PostDescriptor, code: ReturnCode) -> None:
        self.under_way -= 1
        endpoint.under_way -= 1
        self._domain.news += 1
        wanted = int(post.cq_mode) & LOCAL_OR_GLOBAL
        if endpoint.queue is not None and (wanted or code is not SUCCESS):
            endpoint.queue.push(post_event(endpoint.rank, post, code))
