"""Post descriptors: what one transfer needs from its beginning to its end, and their pool.

Source: seed gasnet (RDMA); reference gasnet.md 6.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ompy.frameworks.conduit import Transfer
from ompy.frameworks.nic.gni import MemoryHandle, PostDescriptor

from ompy_components.conduit.gni.rdma.transfer_choice import IMMEDIATE_SIZE

NOTHING: Final = memoryview(b"")


class Flag:
    """What a thread that waits looks at.

    Attributes:
        raised: the transfer is done.
    """

    __slots__ = ("raised",)

    def __init__(self) -> None:
        self.raised = False


class Descriptor:
    """gasnetc_post_descriptor: one post, and what is to follow it.

    Attributes:
        post: the NIC's; its `context` is this.
        immediate: a small buffer of its own, registered.
        flags: what follows, bits of `flags.py`.
        node: the peer.
        is_get: it reads.
        target: COPY: where what was got is wanted; the caller's memory.
        lead: COPY: bytes that were read before what is wanted.
        bounce: UNBOUNCE: the buffer.
        registration: UNREGISTER: the registration.
        after: SEND: what sends the message.
        flag: COMPLETION_FLAG: whom to tell.
        transfer: COMPLETION_OP: whom to tell.
        operation, number: where it is traced, the put or get it is of, and its own number; or 0.
    """

    __slots__ = (
        "after",
        "bounce",
        "flag",
        "flags",
        "immediate",
        "is_get",
        "lead",
        "node",
        "number",
        "operation",
        "post",
        "registration",
        "target",
        "transfer",
    )

    def __init__(self, immediate: memoryview) -> None:
        self.post = PostDescriptor()
        self.post.context = self
        self.immediate = immediate
        self.flags = 0
        self.node = -1
        self.is_get = False
        self.target = NOTHING
        self.lead = 0
        self.bounce = NOTHING
        self.registration: MemoryHandle | None = None
        self.after: Callable[[], object] | None = None
        self.flag: Flag | None = None
        self.transfer: Transfer | None = None
        self.operation = self.number = 0

    def __repr__(self) -> str:
        post = self.post
        return (
            f"{post.type.value} of {len(post.local)} bytes at offset {post.remote_address} of rank "
            f"{self.node}, flags {self.flags:#x}"
        )

    def clear(self) -> None:
        """Let go of all that is the caller's."""
        self.post.local = self.target = self.bounce = NOTHING
        self.registration = self.after = self.flag = self.transfer = None
        self.flags = self.number = 0


class DescriptorPool:
    """All descriptors of a rank; the one that came back last goes out first.

    Several threads may take and give: one operation of a list is whole.

    Attributes:
        count: how many there are.
    """

    def __init__(self, memory: memoryview, count: int) -> None:
        """Make none yet; `memory` is registered and has `IMMEDIATE_SIZE` bytes for each."""
        self.count = count
        self._memory = memory
        self._made: list[Descriptor] = []
        # a number stands for a descriptor that was never needed so far
        self._free: list[Descriptor | int] = list(range(count - 1, -1, -1))

    @staticmethod
    def size(count: int) -> int:
        """Bytes of memory for so many."""
        return count * IMMEDIATE_SIZE

    def __len__(self) -> int:
        """How many are free."""
        return len(self._free)

    def take_descriptor(self) -> Descriptor | None:
        """A free one, if there is one."""
        try:
            found = self._free.pop()
        except IndexError:
            return None
        if isinstance(found, int):
            at = found * IMMEDIATE_SIZE
            found = Descriptor(self._memory[at : at + IMMEDIATE_SIZE])
            self._made.append(found)
        return found

    def in_use(self) -> list[Descriptor]:
        """Those that are not free."""
        return [descriptor for descriptor in [*self._made] if descriptor.flags]

    def give(self, descriptor: Descriptor) -> None:
        """Give one back, cleared."""
        self._free.append(descriptor)
