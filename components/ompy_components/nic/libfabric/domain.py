"""A domain of one provider: regions of memory, address vectors, and what is made of them.

Source: reference ofi.md A3, A4, B1.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from ompy.frameworks.nic.fabric import (
    AddressVector,
    Caps,
    CompletionQueue,
    FabricDomain,
    FabricEndpoint,
    FabricError,
    FabricInfo,
    MemoryRegion,
    MrMode,
    ScalableEndpoint,
)
from ompy.net.base import Network

from ompy_components.nic.libfabric.completions import LibfabricQueue
from ompy_components.nic.libfabric.endpoint import LibfabricEndpoint, LibfabricScalable, ShmEndpoint
from ompy_components.nic.libfabric.infos import Native
from ompy_components.nic.libfabric.library import Library

EINVAL: Final = 22  # Linux
# reference ofi.md B1: with BASIC the address is virtual and the provider chooses the key
VIRTUAL: Final = MrMode.BASIC | MrMode.VIRT_ADDR
KEY_OF_PROVIDER: Final = MrMode.BASIC | MrMode.PROV_KEY
TIMERS: Final = "ofi_rxd"  # it sends again what was lost, but only when its queue is read


class LibfabricDomain(FabricDomain):
    """A fabric and a domain of it, opened.

    Attributes:
        library: libfabric.
        network: of the rank, which is woken through it.
        name: for messages.
        fid: libfabric's object.
        closing: regions that are closed as soon as the work under way in them has ended.
        may_wait: a descriptor tells of all that a rank would have to wake up for.
        opened: what was made of it and is not closed: endpoints, queues, vectors and regions.
    """

    def __init__(
        self, library: Library, network: Network, info: FabricInfo, *, may_wait: bool
    ) -> None:
        """Open both.

        Raises:
            FabricError: the provider refuses.
        """
        assert isinstance(info.native, Native), "the info is of another device"
        self.library = library
        self.network = network
        self.info = info
        self.name = f"{info.provider} on {info.domain}"
        self.closing: list[LibfabricRegion] = []
        self.may_wait = may_wait and TIMERS not in info.provider
        self.opened: set[
            LibfabricEndpoint
            | LibfabricScalable
            | LibfabricQueue
            | LibfabricVector
            | LibfabricRegion
        ] = set()
        self.native = library.copy_info(info.native.info)
        self.native.tx_attr.op_flags = info.op_flags
        self._queues: list[LibfabricQueue] = []
        ffi = library.ffi
        fabric = ffi.new("struct fid_fabric **")
        result = library.functions.fi_fabric(self.native.fabric_attr, fabric, ffi.NULL)
        library.check_result(result, f"the fabric of {self.name}")
        self._fabric = fabric[0]
        domain = ffi.new("struct fid_domain **")
        try:
            opens = library.slot(self._fabric.ops, "domain")
            result = opens(self._fabric, self.native, domain, ffi.NULL)
            library.check_result(result, f"the domain of {self.name}")
        except FabricError:
            library.close(self._fabric.fid, "a fabric")
            raise
        self.fid: Any = domain[0]
        self._register = library.slot(self.fid.mr, "reg")

    def register(self, memory: memoryview, access: Caps, key: int) -> MemoryRegion:
        """Register it with the provider."""
        return LibfabricRegion(self, memory, access, key)

    def registers(self, memory: Any, access: Caps, key: int) -> Any:
        """fi_mr_reg.

        Raises:
            FabricError: it is refused.
        """
        ffi = self.library.ffi
        made = ffi.new("struct fid_mr **")
        result = self._register(
            ffi.addressof(self.fid.fid), memory, len(memory), access, 0, key, 0, made, ffi.NULL
        )
        self.library.check_result(result, f"registering {len(memory)} bytes with {self.name}")
        return made[0]

    def in_use(self, region: LibfabricRegion) -> bool:
        """Whether work under way has it for its local memory."""
        return any(queue.contexts.uses(region) for queue in self._queues)

    def close_regions(self) -> None:
        """Close the regions nothing is under way in any more."""
        waiting = list(self.closing)
        self.closing.clear()
        for region in waiting:
            region.close()

    def address_vector(self) -> AddressVector:
        """An empty one."""
        return LibfabricVector(self)

    def completion_queue(self, depth: int = 0) -> LibfabricQueue:
        """A queue for `depth` completions."""
        queue = LibfabricQueue(self, depth)
        self._queues.append(queue)
        self.opened.add(queue)
        return queue

    def forget(self, queue: LibfabricQueue) -> None:
        """For a queue: it is closed."""
        self.opened.discard(queue)
        if queue in self._queues:
            self._queues.remove(queue)

    def endpoint(self, vector: AddressVector, queue: CompletionQueue) -> FabricEndpoint:
        """An endpoint that reports all to `queue`."""
        assert isinstance(vector, LibfabricVector), f"{vector!r} is of another device"
        assert isinstance(queue, LibfabricQueue), f"{queue!r} is of another device"
        kind = ShmEndpoint if self.info.provider == "shm" else LibfabricEndpoint
        return kind(self, vector.fid, queue)

    def scalable_endpoint(self, vector: AddressVector, contexts: int) -> ScalableEndpoint:
        """One address with that many contexts."""
        assert isinstance(vector, LibfabricVector), f"{vector!r} is of another device"
        if contexts > self.info.tx_contexts_max:
            raise FabricError(
                EINVAL, f"{self.name} has {self.info.tx_contexts_max} contexts, not {contexts}"
            )
        return LibfabricScalable(self, vector.fid, contexts)

    def trywait(self, fids: Any, count: int) -> int:
        """fi_trywait."""
        return int(self.library.slot(self._fabric.ops, "trywait")(self._fabric, fids, count))

    def close(self) -> None:
        """Give both back; harmless the second time."""
        if self.fid is None:
            return
        self._close_all()
        fid, self.fid = self.fid, None
        try:
            self.library.close(fid.fid, f"the domain of {self.name}")
        finally:
            self.library.close(self._fabric.fid, f"the fabric of {self.name}")

    def _close_all(self) -> None:
        """Close what is still open, what is made of others before these."""
        self.closing.clear()
        order = (
            LibfabricEndpoint,
            LibfabricScalable,
            LibfabricQueue,
            LibfabricVector,
            LibfabricRegion,
        )
        for kind in order:
            for one in [one for one in self.opened if isinstance(one, kind)]:
                with suppress(FabricError):
                    one.close()


class LibfabricRegion(MemoryRegion):
    """Registered memory.

    Attributes:
        number: what libfabric has for the descriptor.
    """

    def __init__(self, domain: LibfabricDomain, memory: memoryview, access: Caps, key: int) -> None:
        self.memory = memory
        self._domain = domain
        # keeps the memory alive, and where it is
        self._buffer = domain.library.ffi.from_buffer(memory)
        try:
            self._fid = domain.registers(self._buffer, access, key)
        except FabricError:
            domain.library.ffi.release(self._buffer)  # why: endpoint.py, `_refused`
            raise
        self.key = int(self._fid.key)
        self.number = int(self._fid.mem_desc)
        self.descriptor = self
        start = int(domain.library.ffi.cast("uintptr_t", self._buffer))
        self.base = start if domain.info.mr_mode & VIRTUAL else 0
        domain.opened.add(self)

    def close(self) -> None:
        """Take the memory back, now or when the work under way in it has ended."""
        if self._fid is None:
            return
        if self._domain.in_use(self):
            self._domain.closing.append(self)
        else:
            self.close_now()

    def close_now(self) -> None:
        """Take the memory back."""
        fid, self._fid = self._fid, None
        if fid is not None:
            self._domain.opened.discard(self)
            self._domain.library.close(fid.fid, "a memory region")
            self._buffer = None


class LibfabricVector(AddressVector):
    """The peers of a domain's endpoints.

    Attributes:
        fid: libfabric's object.
    """

    def __init__(self, domain: LibfabricDomain) -> None:
        library = domain.library
        ffi = library.ffi
        self._domain = domain
        attributes = ffi.new("struct fi_av_attr *")
        attributes.type = domain.native.domain_attr.av_type
        made = ffi.new("struct fid_av **")
        opens = library.slot(domain.fid.ops, "av_open")
        result = opens(domain.fid, attributes, made, ffi.NULL)
        library.check_result(result, f"an address vector of {domain.name}")
        self.fid: Any = made[0]
        self._insert = library.slot(self.fid.ops, "insert")
        self._remove = library.slot(self.fid.ops, "remove")
        domain.opened.add(self)

    def insert(self, name: bytes) -> int:
        """The address for a peer's endpoint."""
        library = self._domain.library
        address = library.ffi.new("uint64_t *")
        count = self._insert(self.fid, name, 1, address, 0, library.ffi.NULL)
        library.check_result(count, f"an address of {self._domain.name}")
        if count != 1:
            raise FabricError(EINVAL, f"{self._domain.name} does not take the address {name!r}")
        return int(address[0])

    def remove(self, address: int) -> None:
        """Forget a peer."""
        library = self._domain.library
        addresses = library.ffi.new("uint64_t *", address)
        result = self._remove(self.fid, addresses, 1, 0)
        library.check_result(result, f"an address of {self._domain.name}")

    def close(self) -> None:
        """Give it back; harmless the second time."""
        fid, self.fid = self.fid, None
        if fid is not None:
            self._domain.opened.discard(self)
            self._domain.library.close(fid.fid, "an address vector")
