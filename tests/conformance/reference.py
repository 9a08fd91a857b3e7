"""A plain BTL that does everything the contract knows, so that every suite has something to test.

Go-back-N over datagrams: packets to a peer are numbered, kept until the peer has acknowledged
them, and sent again when that takes too long. A fragment is completed when it is acknowledged,
which the peer does after its callback has run: completed well means the peer has it. Put and get
are requests in the same numbered stream, answered by the other side's module. An interface that is
down fails every path: the error callback first, then everything that was accepted. From then on it
knocks at its peers until one answers: that path is healed. Each time a path breaks both ends begin
a new generation of it; packets of another one are dropped, but for knocks, which tell of theirs.
"""

from __future__ import annotations

import zlib
from collections import deque
from contextlib import suppress
from struct import Struct

from ompy.engine.timers import Timer
from ompy.frameworks import btl
from ompy.frameworks.btl import BtlComponent, BtlModule, Descriptor, Endpoint
from ompy.frameworks.btl_base.atomics import (
    NEEDS,
    SUPPORTS_32BIT,
    WIDTH,
    AtomicOp,
    AtomicType,
    result_of,
)
from ompy.frameworks.btl_base.btl_parameters import common_parameters
from ompy.frameworks.capabilities import Capabilities
from ompy.mca.component import NotAvailable
from ompy.mca.parameter import Parameter
from ompy.net.base import Address, LinkError

# CRC of the rest, number, sender, kind, tag, number expected next, generation
PACKET = Struct("<IIHBBIB")
TRANSFER = Struct("<IBIQI")  # id, kind, key, address, size
PUT, GET, ATOMIC = range(3)
CHANGE = Struct("<BB16s16s")  # operation, type, operand, compared with
ANSWER = Struct("<Ib")  # id, status
HANDLE = Struct("<I")
FRAGMENT, REQUEST, REPLY, ACK, KNOCK, WELCOME = range(6)
RESEND = 2_000_000  # ns
KNOCKING = 20 * RESEND
BURST = 32  # packets a poll takes in
LINGER = 100 * RESEND
LIMIT = 8192  # of put and get


class Pooled(Descriptor):
    """A descriptor that is counted while it is out."""

    __slots__ = ("out",)


class Transfer:
    """A put or get under way."""

    def __init__(self, local, callback, context):
        self.local = local
        self.callback = callback
        self.context = context


class Handle:
    """Registered memory."""

    def __init__(self, key, memory, access):
        self.key = key
        self.memory = memory
        self.access = access

    def __bytes__(self):
        return HANDLE.pack(self.key)


class Packet:
    """One numbered packet, waiting or under way."""

    def __init__(self, kind, tag, body, descriptor=None, immediate=False):
        self.kind = kind
        self.tag = tag
        self.body = body
        self.descriptor = descriptor
        self.immediate = immediate  # sendi has taken it
        self.number = -1


class ReferenceEndpoint(Endpoint):
    """A peer: the packets to it, and what is expected from it."""

    def __init__(self, module, proc, address):
        super().__init__(module, proc)
        self.address = address
        self.queue = deque()
        self.unacknowledged = deque()
        self.next_number = 0
        self.expected = 0
        self.owes = False  # an acknowledgement
        self.broken = False
        self.generation = 0


class ReferenceModule(BtlModule):
    """The way to every other rank over one interface."""

    def __init__(self, context, values, interface, index):
        super().__init__("reference", context, values)
        self.flags = btl.SEND | btl.PUT | btl.GET | btl.FAILOVER_SUPPORT | btl.RDMA_COMPLETION
        self.flags |= btl.ATOMIC_OPS | btl.ATOMIC_FOPS
        self.atomic_flags = sum(NEEDS.values()) | SUPPORTS_32BIT
        self.put_limit = self.get_limit = LIMIT
        self.registration_handle_size = HANDLE.size
        self.index = index
        self.window = values.window
        self.room = values.free_list_max
        self.endpoints: dict[int, ReferenceEndpoint] = {}
        self.handles: dict[int, Handle] = {}
        self.transfers: dict[int, Transfer] = {}
        self.names = 0
        self.error_flags = btl.ERROR_FATAL
        self.timer: Timer | None = None
        self.knocking: Timer | None = None
        self.ended = False
        self.buffer = memoryview(bytearray(1 << 17))
        self.socket = context.network.datagram(interface.address)
        self.readiness = context.network.readiness()
        self.readiness.add(self.socket, self)

    def begin_failover(self):
        self.error_flags = btl.ERROR_NONFATAL
        return True

    # -- peers

    def add_procs(self, procs):
        return [self.reach(proc) for proc in procs]

    def reach(self, proc):
        if proc is self.context.me:
            return None
        if proc.rank not in self.endpoints:
            text = self.context.modex(proc).get("btl.reference", b"").decode().split()
            if self.index >= len(text):
                return None
            host, _, port = text[self.index].rpartition(":")
            made = ReferenceEndpoint(self, proc, Address(host, int(port)))
            self.endpoints[proc.rank] = made
        return self.endpoints[proc.rank]

    # -- fragments

    def alloc(self, endpoint, order, size, flags):
        if not self.room:
            return None
        self.room -= 1
        made = Pooled(memoryview(bytearray(size)), flags, order)
        made.out = True
        return made

    def free(self, descriptor):
        if descriptor.out:
            descriptor.out = False
            self.room += 1

    def prepare_src(self, endpoint, convertor, offset, order, reserve, size, flags):
        size = min(size, convertor.size - offset, self.max_send_size - reserve)
        made = self.alloc(endpoint, order, reserve + size, flags)
        if made is not None and size:
            made.payload_size = convertor.pack(offset, made.segment[reserve:])
        return made

    def send(self, endpoint, descriptor, tag):
        if endpoint.broken or endpoint.proc.departed:
            return btl.UNREACHABLE
        descriptor.tag = tag
        endpoint.queue.append(Packet(FRAGMENT, tag, self.body(descriptor), descriptor))
        return btl.QUEUED

    def sendi(self, endpoint, convertor, header, payload_size, order, flags, tag):
        if endpoint.broken or endpoint.proc.departed or not self.room:
            return btl.NOT_AVAILABLE
        body = bytearray(header) + bytearray(payload_size)
        convertor.pack(0, memoryview(body)[len(header) :])
        endpoint.queue.append(Packet(FRAGMENT, tag, bytes(body), immediate=True))
        return btl.COMPLETED

    def body(self, descriptor):
        return bytes(descriptor.segment)

    def complete(self, endpoint, packet, status):
        """Tell who waits for a packet."""
        descriptor = packet.descriptor
        if descriptor is not None:
            if descriptor.flags & btl.BTL_OWNERSHIP:
                self.free(descriptor)
            if descriptor.callback is not None:
                descriptor.callback.completed(self, endpoint, descriptor, status)

    # -- remote memory

    def register_mem(self, endpoint, memory, flags):
        self.names += 1
        made = self.handles[self.names] = Handle(self.names, memory, flags)
        return made

    def deregister_mem(self, handle):
        self.handles.pop(handle.key, None)

    def put(self, endpoint, local, address, handle, key, flags, order, callback, context):
        return self.move(False, endpoint, local, address, key, callback, context)

    def get(self, endpoint, local, address, handle, key, flags, order, callback, context):
        return self.move(True, endpoint, local, address, key, callback, context)

    def move(self, get, endpoint, local, address, key, callback, context):
        if len(local) > LIMIT:
            return btl.NOT_AVAILABLE
        kind, more = (GET, b"") if get else (PUT, bytes(local))
        return self.ask(kind, endpoint, local, address, len(local), key, more, callback, context)

    def atomic(self, endpoint, asked, callback, context):
        width = WIDTH[asked.type]
        local = asked.local if asked.local is not None else memoryview(bytearray(width))
        numbers = [
            value.to_bytes(16, "little", signed=True) for value in (asked.operand, asked.compare)
        ]
        more = CHANGE.pack(asked.op, asked.type, *numbers)
        at, key = asked.remote_address, asked.remote_handle
        return self.ask(ATOMIC, endpoint, local, at, width, key, more, callback, context)

    def ask(self, kind, endpoint, local, address, size, key, more, callback, context):
        if endpoint.broken or endpoint.proc.departed:
            return btl.UNREACHABLE
        self.names += 1
        self.transfers[self.names] = Transfer(local, callback, context)
        (number,) = HANDLE.unpack(key)
        body = TRANSFER.pack(self.names, kind, number, address, size) + more
        endpoint.queue.append(Packet(REQUEST, 0, body))
        return btl.QUEUED

    def requested(self, endpoint, body):
        name, kind, key, address, size = TRANSFER.unpack_from(body)
        handle = self.handles.get(key)
        fits = handle is not None and address + size <= len(handle.memory)
        if fits and kind == ATOMIC:
            fits = self.changeable(handle)
        answer = ANSWER.pack(name, 0 if fits else btl.BAD_PARAM)
        if fits and kind != PUT:
            answer += bytes(handle.memory[address : address + size])
        if fits and kind == PUT:
            self.write(handle.memory, address, body[TRANSFER.size :])
        elif fits and kind == ATOMIC:
            op, type_, operand, compare = CHANGE.unpack_from(body, TRANSFER.size)
            word = Struct(f"<{chr(type_)}")
            (old,) = word.unpack_from(handle.memory, address)
            numbers = [int.from_bytes(x, "little", signed=True) for x in (operand, compare)]
            new = self.computed(AtomicOp(op), AtomicType(type_), old, *numbers)
            self.store(handle.memory, address, word.pack(new))
        endpoint.queue.append(Packet(REPLY, 0, answer))

    def changeable(self, handle):
        return handle.access & btl.REMOTE_ATOMIC

    def computed(self, op, type_, old, operand, compare):
        return result_of(op, type_, old, operand, compare)

    def store(self, memory, address, word):
        memory[address : address + len(word)] = word

    def write(self, memory, address, data):
        memory[address : address + len(data)] = data

    def replied(self, endpoint, body):
        name, status = ANSWER.unpack_from(body)
        transfer = self.transfers.pop(name, None)
        if transfer is not None:
            if len(body) > ANSWER.size:
                transfer.local[:] = body[ANSWER.size :]
            self.moved(endpoint, transfer, status)

    def moved(self, endpoint, transfer, status):
        descriptor = Descriptor(transfer.local, 0, btl.NO_ORDER)
        descriptor.context = transfer.context
        transfer.callback.completed(self, endpoint, descriptor, status)

    # -- the wire

    def poll(self):
        events = 0
        if self.ended:  # a rank polls until the last of its modules is given back
            return events
        try:
            events += self.take_in()
            for endpoint in self.peers():
                events += self.transmit(endpoint)
        except LinkError as problem:
            self.path_failed(str(problem))
            events += 1
        return events

    def peers(self):
        return list(self.endpoints.values())

    def take_in(self):
        count = 0
        while count < BURST and (found := self.socket.receive_into(self.buffer)) is not None:
            count += 1
            packet = self.buffer[: found[0]]
            if self.intact(packet):
                self.arrived(packet)
        return count

    def intact(self, packet):
        if len(packet) < PACKET.size:
            return False
        return zlib.crc32(packet[4:]) == PACKET.unpack_from(packet)[0]

    def arrived(self, packet):
        _, number, sender, kind, tag, expected, generation = PACKET.unpack_from(packet)
        endpoint = self.reach(self.context.procs[sender])
        if kind in (KNOCK, WELCOME):
            self.knocked(endpoint, kind, generation)
            return
        if endpoint.broken or not self.is_current(endpoint, generation):
            return
        kept = endpoint.unacknowledged
        while kept and kept[0].number < expected:
            self.complete(endpoint, kept.popleft(), 0)
        if kind == ACK:
            return
        endpoint.owes = True
        if self.is_due(endpoint, number):
            endpoint.expected = max(endpoint.expected, number + 1)
            self.deliver(endpoint, kind, tag, packet[PACKET.size :])

    def is_current(self, endpoint, generation):
        return generation == endpoint.generation

    def is_due(self, endpoint, number):
        return number == endpoint.expected

    def deliver(self, endpoint, kind, tag, body):
        if kind == REQUEST:
            self.requested(endpoint, body)
        elif kind == REPLY:
            self.replied(endpoint, body)
        else:
            self.context.active_messages.handlers[tag].received(self, endpoint, tag, body)

    def transmit(self, endpoint):
        """Send what the window allows, and the acknowledgement that is owed."""
        count = 0
        while endpoint.queue and len(endpoint.unacknowledged) < self.window:
            packet = endpoint.queue.popleft()
            packet.number = endpoint.next_number
            endpoint.next_number += 1
            endpoint.unacknowledged.append(packet)
            self.sent_first(endpoint, packet)
            self.put_on_wire(endpoint, packet.number, packet.kind, packet.tag, packet.body)
            count += 1
        if endpoint.owes:
            self.put_on_wire(endpoint, 0, ACK, 0, b"")
            count += 1
        return count

    def sent_first(self, endpoint, packet):
        """A packet goes out for the first time."""

    def put_on_wire(self, endpoint, number, kind, tag, body):
        endpoint.owes = False
        own = self.context.rank
        head = PACKET.pack(0, number, own, kind, tag, endpoint.expected, endpoint.generation)
        check = zlib.crc32(body, zlib.crc32(head[4:]))
        packet = check.to_bytes(4, "little") + head[4:] + body
        self.socket.send(memoryview(packet), endpoint.address)
        if kind < ACK and self.timer is None:
            self.timer = self.context.engine.call_later(RESEND, self.resend)

    def resend(self):
        self.timer = None
        try:
            for endpoint in self.peers():
                for packet in endpoint.unacknowledged:
                    body = packet.body
                    self.put_on_wire(endpoint, packet.number, packet.kind, packet.tag, body)
        except LinkError as problem:
            self.path_failed(str(problem))

    def arm(self):
        idle = all(
            not endpoint.owes
            and (not endpoint.queue or len(endpoint.unacknowledged) >= self.window)
            for endpoint in self.endpoints.values()
        )
        return idle and not self.readiness.poll()

    # -- errors and the end

    def path_failed(self, why):
        """The interface is down: every path is broken."""
        working = [endpoint for endpoint in self.peers() if not endpoint.broken]
        if self.ended or not working:
            return
        for endpoint in working:
            self.breaks(endpoint, endpoint.generation + 1)
        self.tell_of(None, why)
        for endpoint in working:
            self.fail(endpoint)

    def breaks(self, endpoint, generation):
        endpoint.broken = True
        endpoint.generation = generation
        if self.knocking is None:
            self.knock_later()

    def tell_of(self, proc, why):
        if self.error_callback is not None:
            self.error_callback.failed(self, self.error_flags, proc, why)

    def knock_later(self):
        self.knocking = self.context.engine.call_later(KNOCKING, self.knock)

    def knock(self):
        """Ask whether the broken paths work again."""
        self.knocking = None
        for endpoint in self.peers():
            if endpoint.broken and not endpoint.proc.departed:
                self.say(endpoint, KNOCK)
                if self.knocking is None:
                    self.knock_later()

    def say(self, endpoint, kind):
        owes = endpoint.owes
        with suppress(LinkError):  # it is still broken
            self.put_on_wire(endpoint, 0, kind, 0, b"")
        endpoint.owes = owes

    def knocked(self, endpoint, kind, generation):
        """A peer is at a generation of the path, where it has nothing under way."""
        if self.ended or generation < endpoint.generation:
            return
        if generation > endpoint.generation:
            told = endpoint.broken
            self.breaks(endpoint, generation)
            if not told:
                self.tell_of(endpoint.proc, "the other end has given the path up")
                self.fail(endpoint)
        if kind == KNOCK:
            self.say(endpoint, WELCOME)
        if endpoint.broken:
            self.heal(endpoint)

    def heal(self, endpoint):
        endpoint.broken = False
        endpoint.next_number = endpoint.expected = 0
        endpoint.owes = False
        if self.error_callback is not None:
            self.error_callback.healed(self, endpoint.proc)

    def fail(self, endpoint):
        """Complete everything open to a peer with an error."""
        open_packets = [*endpoint.unacknowledged, *endpoint.queue]
        endpoint.unacknowledged.clear()
        endpoint.queue.clear()
        for packet in open_packets:
            if packet.kind == REQUEST:
                name = TRANSFER.unpack_from(packet.body)[0]
                transfer = self.transfers.pop(name, None)
                if transfer is not None:
                    self.moved(endpoint, transfer, btl.UNREACHABLE)
            if packet.immediate:
                self.give_back_fragment(endpoint, packet)
            self.complete(endpoint, packet, btl.UNREACHABLE)

    def give_back_fragment(self, endpoint, packet):
        if self.error_callback is not None:
            body = memoryview(packet.body)
            self.error_callback.returned(self, endpoint.proc, packet.tag, body)

    def finalize(self):
        engine = self.context.engine
        engine.wait_until(self.nothing_open)
        engine.wait_until(self.all_gone, LINGER)  # a peer may have missed our last word
        self.ended = True
        if self.knocking is not None:
            self.knocking.cancel()
        self.give_back()

    def give_back(self):
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.readiness.remove(self.socket)
        self.readiness.close()
        self.socket.close()

    def nothing_open(self):
        for endpoint in self.peers():
            if endpoint.proc.departed:
                self.fail(endpoint)
        return not any(e.queue or e.unacknowledged for e in self.endpoints.values())

    def all_gone(self):
        return all(endpoint.proc.departed for endpoint in self.endpoints.values())


PARAMETERS = (
    *common_parameters(
        exclusivity=50,
        eager_limit=4096,
        rndv_eager_limit=4096,
        max_send_size=16 * 1024,
        latency=50,
        bandwidth=1000,
    ),
    Parameter(
        "window",
        "int",
        8,
        "Packets under way to one peer at a time.",
        level=5,
        unit="packets",
        minimum=1,
    ),
    Parameter(
        "free_list_max",
        "int",
        24,
        "Descriptors there are in all.",
        level=5,
        unit="descriptors",
        minimum=1,
    ),
)


class ReferenceComponent(BtlComponent):
    """One module of `module_class` per interface."""

    name = "reference"
    version = "1.0"
    api = (3, 1)
    capabilities = Capabilities(reach="network", wire="datagram", checksum=True, heals=True)
    parameters = PARAMETERS

    def __init__(self, module_class=ReferenceModule):
        self.module_class = module_class

    def init(self, context):
        if context.size < 2:
            return []
        interfaces = context.network.interfaces()
        if not interfaces:
            raise NotAvailable("there is no interface")
        modules = [
            self.module_class(context, self.values, interface, index)
            for index, interface in enumerate(interfaces)
        ]
        addresses = (module.socket.address for module in modules)
        text = " ".join(f"{address.host}:{address.port}" for address in addresses)
        context.wireup.publish("btl.reference", text.encode())
        return modules


COMPONENT = ReferenceComponent()
