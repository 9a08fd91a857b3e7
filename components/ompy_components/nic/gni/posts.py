"""Posts under way: what is done to the peer's memory, when it can be seen, and who is told.

Source: seed gasnet-gemini-aries-conduit (RDMA); reference gasnet.md 3, 6.8.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ompy.frameworks.nic.gni import (
    CQ_DATA_BITS,
    GET_ALIGNMENT,
    RDMA_MAX,
    CqMode,
    Event,
    EventKind,
    Ordering,
    PostDescriptor,
    PostType,
    ReturnCode,
)
from ompy.net.memory import address_of

from ompy_components.nic.gni import atomics
from ompy_components.nic.gni.host import Kind
from ompy_components.nic.gni.memory import PeerMemory

if TYPE_CHECKING:
    from ompy_components.nic.gni.domain import GniDomain
    from ompy_components.nic.gni.endpoint import GniEndpoint

PACKET: Final = 64  # arbitrary, as Gemini's: bytes of a put that become visible together
GETS: Final = frozenset({PostType.FMA_GET, PostType.RDMA_GET})
PUTS: Final = frozenset({PostType.FMA_PUT, PostType.RDMA_PUT, PostType.FMA_PUT_W_SYNCFLAG})
AMOS: Final = frozenset({PostType.AMO, PostType.FETCHING_AMO})
RDMA: Final = frozenset({PostType.RDMA_PUT, PostType.RDMA_GET})


class Posts:
    """The posts of one communication domain.

    Attributes:
        under_way: how many are.
    """

    def __init__(self, domain: GniDomain, most: int) -> None:
        self._domain = domain
        self._most = most
        self._asked: dict[int, tuple[GniEndpoint, PostDescriptor]] = {}
        self._number = 0
        self.under_way = 0

    def begin(self, endpoint: GniEndpoint, post: PostDescriptor) -> ReturnCode:
        """Begin a post that `refusal` has nothing against."""
        domain = self._domain
        if self.under_way >= self._most or domain.congested or domain.refuses():
            return ReturnCode.ERROR_RESOURCE
        peer = endpoint.memory
        size = atomics.WORD if post.type in AMOS else len(post.local)
        size = 0 if post.type is PostType.CQWRITE else size
        code = peer.check(post.remote_handle, post.remote_address, size)
        if post.type is PostType.FMA_PUT_W_SYNCFLAG and code is ReturnCode.SUCCESS:
            code = peer.check(post.remote_handle, post.sync_flag_address, atomics.WORD)
        if endpoint.stranger:
            code = ReturnCode.PERMISSION_ERROR
        self.under_way += 1
        if code is not ReturnCode.SUCCESS:
            domain.late.do(partial(self._done, endpoint, post, code))
        elif post.type in PUTS:
            self._put(endpoint, peer, post)
        elif post.type in GETS:
            domain.late.do(partial(self._get, endpoint, peer, post))
        elif post.type in AMOS:
            return self._ask(endpoint, post)
        else:
            handle = post.remote_handle
            assert handle is not None, "it was checked"
            words = b"".join(word.to_bytes(8, "little") for word in handle)
            domain.say(endpoint.rank, Kind.CQWRITE, post.cq_data, words)
            domain.late.do(partial(self._done, endpoint, post, ReturnCode.SUCCESS))
        return ReturnCode.SUCCESS

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
        if post.command not in self._domain.generation.commands:
            return ReturnCode.INVALID_PARAM
        if post.remote_address % atomics.WORD:
            return ReturnCode.ALIGNMENT_ERROR
        if post.type is PostType.FETCHING_AMO and len(post.local) != atomics.WORD:
            return ReturnCode.INVALID_PARAM
        return ReturnCode.SUCCESS

    def _is_aligned(self, post: PostDescriptor) -> bool:
        local = 0
        if self._domain.generation.local_get_aligned and len(post.local):
            local = address_of(post.local)
        return not (post.remote_address | len(post.local) | local) % GET_ALIGNMENT

    # -- puts and gets

    def _put(self, endpoint: GniEndpoint, peer: PeerMemory, post: PostDescriptor) -> None:
        domain = self._domain
        local = post.local
        at_once = post.type is not PostType.RDMA_PUT and domain.generation.fma_put_is_local
        if not domain.late.percent:
            code = self._write(peer, post, post.remote_address, local)
            if code is ReturnCode.SUCCESS:
                self._tell_peer(endpoint.rank, post)
            self._done(endpoint, post, code)
            return
        early = at_once or (post.cq_mode & CqMode.LOCAL_EVENT and not self._is_global(post))
        if early:
            local = memoryview(bytes(local))
        assert post.remote_handle is not None
        ordering = peer.ordering(post.remote_handle)
        if ordering is Ordering.RELAXED:
            self._scatter(endpoint, peer, post, local)
            domain.late.do(partial(self._tell_peer, endpoint.rank, post))
            return
        lane = endpoint if ordering is Ordering.STRICT else None

        def effect() -> None:
            code = self._write(peer, post, post.remote_address, local)
            if code is ReturnCode.SUCCESS:
                self._tell_peer(endpoint.rank, post)
            self._done(endpoint, post, code)

        domain.late.do(effect, lane)

    def _scatter(
        self, endpoint: GniEndpoint, peer: PeerMemory, post: PostDescriptor, local: memoryview
    ) -> None:
        """Have a put's packets become visible each by itself."""
        starts = range(0, max(len(local), 1), PACKET)
        codes: list[ReturnCode] = []

        def effect(start: int) -> None:
            packet = local[start : start + PACKET]
            codes.append(self._write_only(peer, post, post.remote_address + start, packet))
            if post.cq_mode & CqMode.REMOTE_EVENT:
                self._domain.wire.wake(endpoint.rank)  # the event may have come already
            if len(codes) == len(starts):
                bad = [code for code in codes if code is not ReturnCode.SUCCESS]
                if not bad:
                    self._flag(peer, post)
                self._done(endpoint, post, bad[0] if bad else ReturnCode.SUCCESS)

        for start in starts:
            self._domain.late.do(partial(effect, start))

    def _write(
        self, peer: PeerMemory, post: PostDescriptor, address: int, data: memoryview
    ) -> ReturnCode:
        code = self._write_only(peer, post, address, data)
        if code is ReturnCode.SUCCESS:
            self._flag(peer, post)
        return code

    def _write_only(
        self, peer: PeerMemory, post: PostDescriptor, address: int, data: memoryview
    ) -> ReturnCode:
        assert post.remote_handle is not None
        return peer.write(post.remote_handle, address, data)

    def _flag(self, peer: PeerMemory, post: PostDescriptor) -> None:
        if post.type is PostType.FMA_PUT_W_SYNCFLAG:
            assert post.remote_handle is not None
            word = memoryview(post.sync_flag.to_bytes(atomics.WORD, "little"))
            peer.write(post.remote_handle, post.sync_flag_address, word)

    def _get(self, endpoint: GniEndpoint, peer: PeerMemory, post: PostDescriptor) -> None:
        assert post.remote_handle is not None
        code = peer.read(post.remote_handle, post.remote_address, post.local)
        self._done(endpoint, post, code)

    def _tell_peer(self, rank: int, post: PostDescriptor) -> None:
        if post.cq_mode & CqMode.REMOTE_EVENT:
            assert post.remote_handle is not None
            slot = post.remote_handle.qword1 & 0xFFFFFFFF
            self._domain.say(rank, Kind.REMOTE, slot)

    # -- atomics

    def _ask(self, endpoint: GniEndpoint, post: PostDescriptor) -> ReturnCode:
        self._number += 1
        if not self._domain.send(endpoint.rank, Kind.AMO, self._number, atomics.ask(post)):
            self.under_way -= 1
            return ReturnCode.ERROR_RESOURCE
        self._asked[self._number] = endpoint, post
        return ReturnCode.SUCCESS

    def answered(self, number: int, answer: memoryview) -> None:
        """The peer's device has done an atomic."""
        endpoint, post = self._asked.pop(number)
        code, old = atomics.read_answer(answer)
        if code is ReturnCode.SUCCESS and post.type is PostType.FETCHING_AMO:
            post.local[:] = old.to_bytes(atomics.WORD, "little")
        self._domain.late.do(partial(self._done, endpoint, post, code))

    def look_for_the_dead(self) -> None:
        """Atomics that were asked of ranks that have ended will not be answered."""
        for number, (endpoint, post) in list(self._asked.items()):
            if self._domain.wire.proc(endpoint.rank).departed:
                del self._asked[number]
                self._done(endpoint, post, ReturnCode.TRANSACTION_ERROR)

    # -- the end of each

    def _is_global(self, post: PostDescriptor) -> bool:
        return bool(post.cq_mode & CqMode.GLOBAL_EVENT)

    def _done(self, endpoint: GniEndpoint, post: PostDescriptor, code: ReturnCode) -> None:
        self.under_way -= 1
        endpoint.under_way -= 1
        self._domain.news += 1
        wanted = post.cq_mode & (CqMode.GLOBAL_EVENT | CqMode.LOCAL_EVENT)
        if endpoint.queue is not None and (wanted or code is not ReturnCode.SUCCESS):
            endpoint.queue.push(Event(EventKind.POST, endpoint.rank, post=post, status=code))
