"""How large a segment may be, and what lies in its memory.

    0           the segment
    a page on   what the RDMA engine needs

All of it is one piece of memory that peers of the host can map, and one registration.

Source: seed gasnet (Recognized environment variables); reference gasnet.md 4.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ompy.data.errors import ERR_NO_MEM, MPIError
from ompy.frameworks.nic.gni import (
    CommunicationDomain,
    CompletionQueue,
    MemoryHandle,
    Ordering,
)
from ompy.net.base import LinkError, Network
from ompy.net.memory.vm import address_of

PAGE: Final = 4096  # bytes; x86 and most aarch64
TRIES: Final = 10  # reference gasnet.md 4: of a registration
STEPS: Final = 8  # arbitrary: halves that are tried, so that what is found is within 1/256


def whole_pages(size: int) -> int:
    """Down to a multiple of a page."""
    return size // PAGE * PAGE


def segment_limit(
    physical: int, ratio: float, physmem_max: int, ranks_here: int, for_messages: int
) -> int:
    """Bytes of the largest segment of a rank that the rules allow.

    Args:
        physical: memory of the host, bytes.
        ratio: of it that may be pinned.
        physmem_max: memory that counts instead, bytes; 0 for none.
        ranks_here: how many share that.
        for_messages: what else a rank has registered, bytes.
    """
    pinnable = int((physmem_max or physical) * ratio)
    return max(0, whole_pages(pinnable // ranks_here - for_messages))


def probe_segment(network: Network, most: int) -> int:
    """The largest segment that there is memory for, up to `most`, a multiple of a page."""
    if _there_is(network, most):
        return most
    good, bad = 0, most
    for _ in range(STEPS):
        middle = whole_pages((good + bad) // 2)
        if _there_is(network, middle):
            good = middle
        else:
            bad = middle
    return good


def _there_is(network: Network, size: int) -> bool:
    if not size:
        return True
    try:
        memory = network.region(size)
    except LinkError:
        return False
    address = address_of(memory)
    memory.release()
    network.release_region(address)
    return True


class Memory(NamedTuple):
    """A rank's segment, and what is behind it.

    Attributes:
        address: of the first byte here.
        handle: of all of it.
        segment, auxiliary: views of the two.
    """

    address: int
    handle: MemoryHandle
    segment: memoryview
    auxiliary: memoryview


def allocate_segment(
    network: Network, domain: CommunicationDomain, ordering: Ordering, size: int, auxiliary: int
) -> Memory:
    """Have memory for both, and register it.

    Raises:
        MPIError: there is none, or no registration.
    """
    begin = -(-size // PAGE) * PAGE
    total = max(begin + auxiliary, PAGE)
    try:
        memory = network.region(-(-total // PAGE) * PAGE)
    except LinkError as problem:
        raise MPIError(ERR_NO_MEM, f"a segment of {size} bytes: {problem}") from None
    handle = register_segment(domain, memory, ordering)
    behind = memory[begin : begin + auxiliary]
    return Memory(address_of(memory), handle, memory[:size], behind)


def register_segment(
    domain: CommunicationDomain,
    memory: memoryview,
    ordering: Ordering,
    queue: CompletionQueue | None = None,
) -> MemoryHandle:
    """Register memory, trying a few times.

    Raises:
        MPIError: the NIC has no registration left.
    """
    for _ in range(TRIES):
        code, handle = domain.register(memory, ordering, queue)
        if handle is not None:
            return handle
    text = f"{len(memory)} bytes cannot be registered: {code.value}"
    raise MPIError(ERR_NO_MEM, text)
