"""Writes down what ob1 asks of its BTL modules, in the words of the seed's listings.

Headers are read here from the bytes on the wire, by the offsets of reference openmpi.md 3.4, with
nothing of ob1's own. The lines go into the rank's trace, among ob1's own steps and in their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import unpack_from
from typing import Any

from ompy.frameworks.btl import NOT_AVAILABLE, QUEUED, RETURNABLE, UNHURRIED

from tests.support.rdma_btl import RdmaModule

LAYER = "journal"
# reference openmpi.md 3.3
HEADERS = {65: "MATCH", 66: "RNDV", 67: "RGET", 68: "ACK", 70: "FRAG", 72: "PUT", 73: "FIN"}
OURS = {71, 79}  # LEAVE and CREDIT (pml/ob1/README.md), which the seed does not know
PML_FLAGS = {0x01: "ACK", 0x02: "NBO", 0x04: "PIN", 0x08: "CONTIG", 0x10: "NORDMA", 0x20: "SIGNAL"}
# reference openmpi.md 3.11
BTL_FLAGS = {0x01: "PRIORITY", 0x02: "BTL_OWNERSHIP", 0x04: "SEND_ALWAYS_CALLBACK", 0x40: "SIGNAL"}
ACCESS = {0x1: "LOCAL_WRITE", 0x2: "REMOTE_READ", 0x4: "REMOTE_WRITE"}
# what else the headers say: name, format, offset (reference openmpi.md 3.4)
FIELDS: Mapping[str, tuple[tuple[str, str, int], ...]] = {
    "MATCH": (),
    "RNDV": (("length", "<Q", 16),),
    "RGET": (("length", "<Q", 16),),
    "ACK": (("offset", "<Q", 24), ("size", "<Q", 32)),
    "FRAG": (("offset", "<Q", 8),),
    "PUT": (("offset", "<Q", 32), ("size", "<Q", 48)),
    "FIN": (("size", "<q", 8),),
}
SIZES = {"MATCH": 16, "RNDV": 32, "RGET": 48, "ACK": 40, "FRAG": 32, "PUT": 56, "FIN": 24}


def words(names: Mapping[int, str], bits: int) -> str:
    """The names of all bits that are set; a bit without a name is an error."""
    assert not bits & ~sum(names), f"an unknown flag in {bits:#x}"
    return " | ".join(name for bit, name in names.items() if bits & bit) or "0"


def btl_words(flags: int) -> str:
    """The BTL's flags but those that the seed's listings cannot have: none of Open MPI's."""
    return words(BTL_FLAGS, flags & ~(RETURNABLE | UNHURRIED))


def header(tag: int, data: bytes) -> str:
    """A fragment: its header's type, flags and fields."""
    name = HEADERS[tag]
    assert data[0] == tag, "the header is of another type than the tag"
    assert len(data) >= SIZES[name]
    fields = [f"{field} = {unpack_from(form, data, at)[0]}" for field, form, at in FIELDS[name]]
    return ", ".join([f"tag = {name}", f"pml_flags = {words(PML_FLAGS, data[1])}", *fields])


class JournalModule(RdmaModule):
    """One rail that writes down what is asked of it."""

    __slots__ = ("_nested",)

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._nested = False

    def _say(self, call: str, text: str) -> None:
        trace = self.context.trace
        if trace.active and not self._nested:
            on = f"rail = {self.index}, " if len(self.context.btls) > 1 else ""
            trace.record(LAYER, f"btl_{call}({on}{text})")

    def alloc(self, endpoint, order, size, flags):
        made = super().alloc(endpoint, order, size, flags)
        if made is not None:
            self._say("alloc", f"size = {size}, flags = {btl_words(flags)}")
        return made

    def prepare_src(self, endpoint, convertor, offset, order, reserve, size, flags):
        self._nested = True
        made = super().prepare_src(endpoint, convertor, offset, order, reserve, size, flags)
        self._nested = False
        if made is not None:
            taken = made.payload_size
            self._say("prepare_src", f"size = {taken}, flags = {btl_words(flags)}")
        return made

    def send(self, endpoint, descriptor, tag):
        if self.context.trace.active and tag not in OURS:
            self._say("send", header(tag, bytes(descriptor.segment)))
        return super().send(endpoint, descriptor, tag)

    def put(self, endpoint, local, *others):
        result = super().put(endpoint, local, *others)
        self._say("put", f"size = {len(local)}" + (f", result = {result}" if result < 0 else ""))
        return result

    def get(self, endpoint, local, *others):
        result = super().get(endpoint, local, *others)
        self._say("get", f"size = {len(local)}" + (f", result = {result}" if result < 0 else ""))
        return result

    def register_mem(self, endpoint, memory, flags):
        made = super().register_mem(endpoint, memory, flags)
        self._say("register_mem", f"size = {len(memory)}, flags = {words(ACCESS, flags)}")
        return made

    def deregister_mem(self, handle):
        size = len(self.net.memory[handle.number][2])
        super().deregister_mem(handle)
        self._say("deregister_mem", f"size = {size}")


class ImmediateJournalModule(JournalModule):
    """One that takes header and payload in one call."""

    __slots__ = ()

    def sendi(self, endpoint, convertor, header_, payload_size, order, flags, tag):
        self._nested = True
        descriptor = self.alloc(endpoint, order, len(header_) + payload_size, flags)
        self._nested = False
        if descriptor is None:
            return NOT_AVAILABLE
        descriptor.segment[: len(header_)] = header_
        convertor.pack(0, descriptor.segment[len(header_) :])
        asked = f"flags = {btl_words(flags)}, {header(tag, header_)}, size = {payload_size}"
        self._say("sendi", asked)
        self._nested = True
        assert super().send(endpoint, descriptor, tag) == QUEUED
        self._nested = False
        return QUEUED
