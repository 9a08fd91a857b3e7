"""The binding: its layouts, what it says when something is missing, what it keeps alive."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from ompy.engine.real import RealEngine
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.fabric import (
    AtomicCall,
    Caps,
    Datatype,
    FabricError,
    FabricNic,
    Hints,
    MrMode,
    Op,
)
from ompy.mca.component import NotAvailable
from ompy.net.real import RealNetwork
from ompy.runtime.launching.singleton import SingletonWireUp
from ompy.runtime.ranks.nic_selection import find_nics
from ompy_components.nic.libfabric import library as binding
from ompy_components.nic.libfabric.declared import ffi
from ompy_components.nic.libfabric.domain import LibfabricDomain
from ompy_components.nic.libfabric.infos import EP_DGRAM, EP_RDM, what_strangers_do

from tests.support.fabric_programs import ALL, best
from tests.support.libfabric_devices import fabric_nic, needs_libfabric
from tests.support.worlds import ROOT, registry
from tools.package.fabric_declarations import TARGET, generated

# offsets of the fields that are declared, and the size, from libfabric-dev 1.17 on x86-64; a table
# of which only the first slots are declared is longer there, and its size is left out
LAYOUTS = {
    "fi_tx_attr": (0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80),
    "fi_rx_attr": (0, 8, 16, 24, 32, 40, 48, 56, 64),
    "fi_ep_attr": (0, 4, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96),
    "fi_domain_attr": (0, 8, 16, 20, 24, 28, 32, 36, *range(40, 193, 8)),
    "fi_fabric_attr": (0, 8, 16, 24, 28, 32),
    "fi_info": tuple(range(0, 121, 8)),
    "fid": (0, 8, 16, 24),
    "fi_ops": (0, 8, 16, 24),
    "fi_ops_fabric": (0, 8, 16, 24, 32, 40),
    "fid_fabric": (0, 24, 32, 40),
    "fi_av_attr": (0, 4, 8, 16, 24, 32, 40, 48),
    "fi_cq_attr": (0, 8, 16, 20, 24, 28, 32, 40),
    "fi_ops_domain": (0, 8, 16, 24, 32),
    "fi_ops_mr": (0, 8),
    "fid_domain": (0, 24, 32, 40),
    "fid_mr": (0, 24, 32, 40),
    "fi_ops_av": (0, 8, 16, 24, 32),
    "fid_av": (0, 24, 32),
    "fi_cq_msg_entry": (0, 8, 16, 24),
    "fi_cq_err_entry": (0, 8, 16, 24, 32, 40, 48, 56, 60, 64, 72, 80),
    "fi_ops_cq": (0, 8, 16, 24, 32, 40, 48, 56, 64),
    "fid_cq": (0, 24, 32),
    "fi_ops_ep": (0, 8, 16, 24, 32, 40),
    "fi_ops_cm": (0, 8, 16),
    "fi_ops_msg": (0, 8, 16, 24, 32, 40, 48, 56),
    "fi_ops_rma": (0, 8, 16, 24, 32),
    "fi_ops_atomic": (0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112),
    "fid_ep": (0, 24, 32, 40, 48, 56, 64),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_declarations_are_laid_out_as_the_library_is(name: str) -> None:
    kind = ffi.typeof(f"struct {name}")
    offsets = tuple(ffi.offsetof(kind, field) for field, _ in kind.fields)
    assert LAYOUTS[name] in (offsets, (*offsets, ffi.sizeof(kind)))


def test_the_compiled_declarations_are_those_that_are_written() -> None:
    assert TARGET.read_text() == generated(), "run tools/package fabric_declarations"


def test_without_the_library_it_says_how_to_get_it() -> None:
    with pytest.raises(NotAvailable, match=r"missing .*apt install libfabric1"):
        binding.load_library("libfabric-of-nobody.so", -1)


def test_another_library_is_refused() -> None:
    with pytest.raises(NotAvailable, match="libfabric is missing"):
        binding.load_library("libc.so.6", -1)


def test_without_cffi_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ompy_components.nic.libfabric.declared", None)
    with pytest.raises(NotAvailable, match=r"pip install 'ompy\[ofi\]'"):
        binding.load_library("libfabric.so.1", -2)


@pytest.mark.parametrize("name", ["libfabric-of-nobody.so", "/nowhere/libfabric.so.1"])
def test_the_component_opens_where_there_is_something_to_load(name: str) -> None:
    """So that `ompy-info` says what is missing, and a rank that needs no device loads nothing."""
    records = registry(nic_libfabric_library=name)
    assert "libfabric" not in [one.name for one in records.open("nic")]
    record = next(one for one in records.records_of("nic") if one.name == "libfabric")
    assert "apt install libfabric1" in record.reason
    with pytest.raises(NotAvailable, match="nic libfabric: .*apt install libfabric1"):
        find_nics(records, cast("RankContext", None), FabricNic, "libfabric")


def test_a_virtual_world_has_none() -> None:
    component = next(one for one in registry().open("nic") if one.name == "libfabric")
    context: Any = SimpleNamespace(network=SimpleNamespace(virtual=True))
    with pytest.raises(NotAvailable, match="virtual world"):
        component.devices(context)


@needs_libfabric
def test_an_older_library_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "OLDEST", (2, 99))
    with pytest.raises(NotAvailable, match=r"is libfabric \d.\d+; 2.99 to 2.x are known"):
        binding.Library("libfabric.so.1")


@needs_libfabric
@pytest.mark.parametrize(
    "mark",
    [("rx_attr", "caps", 7), ("ep_attr", "max_order_raw_size", 1 << 64 - 1)],
)
def test_a_library_with_another_layout_is_refused(
    mark: tuple[str, str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has another field where we put a number does not show the number."""
    monkeypatch.setattr(binding, "MARKS", (mark,))
    original = binding.Library.string
    monkeypatch.setattr(
        binding.Library, "string", lambda self, text: original(self, text).replace("raw", "war")
    )
    with pytest.raises(NotAvailable, match=f"{mark[0]}.{mark[1]} is not where the binding has it"):
        binding.Library("libfabric.so.1")


def test_a_table_that_is_too_short_has_no_such_slot() -> None:
    library: Any = object.__new__(binding.Library)
    library.ffi = ffi
    library.functions = SimpleNamespace(fi_strerror=lambda _number: ffi.NULL)
    table = ffi.new("struct fi_ops_rma *")
    table.size = 16  # the size itself and `read`
    table.write = ffi.cast("void *", 4096)
    assert library.slot_or_none(table, "write") is None
    table.size = ffi.sizeof("struct fi_ops_rma")
    assert library.slot(table, "write") == table.write
    assert library.slot_or_none(table, "read") is None, "the slot is empty"
    assert library.slot_or_none(ffi.NULL, "read") is None


# -- one end that talks to itself


class End:
    """An endpoint whose peer is itself."""

    def __init__(self, network: RealNetwork, provider: str) -> None:
        self.nic = fabric_nic(network)
        self.info = best(self.nic, provider)
        domain = self.nic.domain(self.info)
        assert isinstance(domain, LibfabricDomain)
        self.domain = domain
        self.vector = domain.address_vector()
        self.queue = domain.completion_queue(64)
        self.endpoint = domain.endpoint(self.vector, self.queue)
        self.endpoint.enable()
        self.to = self.vector.insert(self.endpoint.name())
        self.memory = bytearray(4096)
        self.region = domain.register(memoryview(self.memory), ALL, 7)

    def until(self, count: int) -> list[Any]:
        done: list[Any] = []
        for _ in range(1_000_000):
            done += self.queue.read(8)
            if len(done) >= count:
                return done
        raise AssertionError(f"late: {done}")

    def write(self, memory: Any, context: object, descriptor: Any = None) -> None:
        place = (self.to, self.region.base, self.region.key, context)
        for _ in range(1_000_000):
            if self.endpoint.write(memoryview(memory), descriptor, *place):
                return
            self.queue.read(8)
        raise AssertionError("it never takes it")


@pytest.fixture(params=["shm", "tcp;ofi_rxm"])
def end(request: pytest.FixtureRequest) -> Iterator[End]:
    engine = RealEngine(1)
    network = RealNetwork(engine, 0, SingletonWireUp())
    made = End(network, request.param)
    yield made
    made.nic.close()
    network.close()
    engine.close()


class Context:
    """Can be referred to weakly."""


@needs_libfabric
def test_memory_and_context_live_until_the_completion(end: End) -> None:
    memory, context = bytearray(b"x" * 64), Context()
    seen = weakref.ref(context)
    end.write(memory, context)
    with pytest.raises(BufferError):  # it cannot move
        memory.append(1)
    del context
    gc.collect()
    assert seen() is not None
    (done,) = end.until(1)
    assert done.context is seen()
    assert done.error == 0
    memory.append(1)
    del done
    gc.collect()
    assert seen() is None
    assert end.memory[:64] == b"x" * 64


@needs_libfabric
def test_a_region_is_closed_when_the_work_in_it_has_ended(end: End) -> None:
    memory = memoryview(bytearray(b"y" * 64))
    region = end.domain.register(memory, ALL, 8)
    end.write(memory, "work", region.descriptor)
    region.close()
    assert region in end.domain.opened
    assert [done.context for done in end.until(1)] == ["work"]
    assert region not in end.domain.opened
    region.close()  # harmless


@needs_libfabric
def test_what_is_refused_gives_its_slot_back(end: End) -> None:
    contexts = end.queue.contexts
    before = len(contexts.free) + len(contexts.held)
    posted = 0
    while end.endpoint.receive(memoryview(bytearray(8)), None, posted) and posted < 100_000:
        posted += 1
    if posted == 100_000:
        pytest.skip("this libfabric refuses no receive (2.1)")
    assert len(contexts.held) == posted
    assert (len(contexts.free) + len(contexts.held) - before) % 256 == 0


@needs_libfabric
def test_errors_carry_the_librarys_words(end: End) -> None:
    with pytest.raises(FabricError, match=r"libfabric \d+") as caught:
        end.domain.register(memoryview(bytearray(8)), ALL, end.region.key)  # the key is taken
    assert caught.value.errno > 0
    with pytest.raises(FabricError, match="has 1 contexts, not 4"):
        end.domain.scalable_endpoint(end.vector, 4)


@needs_libfabric
def test_what_nobody_can_do_has_no_infos(end: End) -> None:
    hints = Hints(Caps.RMA, mr_mode=MrMode.VIRT_ADDR)
    assert end.nic.infos(hints._replace(provider="nobody's")) == []
    addresses = {info.source[4:8] for info in end.nic.infos(hints) if info.provider != "shm"}
    assert addresses == {bytes([127, 0, 0, 1])}, "a job on one host stays on loopback"


@needs_libfabric
def test_closing_the_device_closes_all(end: End) -> None:
    end.endpoint.receive(memoryview(bytearray(8)), None, "never comes")
    end.nic.close()
    assert not end.domain.opened
    end.nic.close()


@needs_libfabric
def test_a_scalable_endpoint_has_contexts_of_its_own() -> None:
    """Each context's work ends in its own queue; a message goes to the peer's first context."""
    engine = RealEngine(1)
    network = RealNetwork(engine, 0, SingletonWireUp())
    nic = fabric_nic(network)
    info = best(nic, "sockets")
    assert info.tx_contexts_max >= 2
    domain = nic.domain(info)
    vector = domain.address_vector()
    whole = domain.scalable_endpoint(vector, 2)
    queues = [domain.completion_queue(64) for _ in range(2)]
    contexts = [whole.context(index, queue) for index, queue in enumerate(queues)]
    whole.enable()
    for context in contexts:
        context.enable()
    assert contexts[1].name() == whole.name()
    to = vector.insert(whole.name())
    memory = memoryview(bytearray(4096))
    region = domain.register(memory, ALL, 7)
    done: list[list[object]] = [[], []]

    def wait(index: int, what: object) -> None:
        def look() -> bool:
            for found, queue in zip(done, queues, strict=True):
                found += [(one.context, one.error) for one in queue.read(8)]
            return (what, 0) in done[index]

        assert engine.wait_until(look, 20 * 10**9), done

    for index, context in enumerate(contexts):
        source = memoryview(bytearray([index + 1]) * 8)
        assert context.write(source, None, to, region.base + 8 * index, region.key, f"w{index}")
        wait(index, f"w{index}")
    assert bytes(memory[:16]) == bytes([1] * 8 + [2] * 8)
    assert contexts[0].receive(memory[64:128], None, "received")
    assert contexts[1].send(memory[:16], None, to, "sent")
    wait(1, "sent")
    wait(0, "received")
    assert done == [[("w0", 0), ("received", 0)], [("w1", 0), ("sent", 0)]]
    nic.close()
    network.close()
    engine.close()


@needs_libfabric
def test_a_sleeping_rank_is_woken_by_tcp() -> None:
    """Its descriptor is among those the engine sleeps on, and it is armed only when all is read."""
    engine = RealEngine(1)
    network = RealNetwork(engine, 0, SingletonWireUp())
    ends = [End(network, "tcp;ofi_rxm") for _ in range(2)]
    here, there = ends
    to = here.vector.insert(there.endpoint.name())
    assert there.endpoint.receive(memoryview(bytearray(16)), None, "received")

    def both() -> list[Any]:
        return [one for end in ends for one in end.queue.read(8)]

    while not here.endpoint.send(memoryview(b"first"), None, to, "sent"):
        both()
    found: list[Any] = []
    assert engine.wait_until(lambda: bool(found.extend(both()) or len(found) == 2), 20 * 10**9)
    assert there.endpoint.receive(memoryview(bytearray(16)), None, "received")
    assert engine.wait_until(lambda: not both() and there.queue.arm() is True, 20 * 10**9)
    assert here.endpoint.send(memoryview(b"again"), None, to, "sent")
    here.queue.read(0)
    assert engine.wakeup.ready(10), "nothing has woken it"
    found.clear()
    assert engine.wait_until(lambda: bool(found.extend(both()) or len(found) == 2), 20 * 10**9)
    for end in ends:
        end.nic.close()
    network.close()
    engine.close()


def test_who_needs_no_device_loads_nothing() -> None:
    """Not even cffi's backend; opening the component looks only whether there is something."""
    program = (
        "import sys; from tests.support.worlds import ROOT, registry; registry().open('nic');"
        "print([name for name in ('_cffi_backend', 'cffi') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == ["[]"], done.stderr


@needs_libfabric
def test_what_a_provider_has_no_function_for_is_an_error() -> None:
    """The datagram provider has neither RMA nor atomics."""
    engine = RealEngine(1)
    network = RealNetwork(engine, 0, SingletonWireUp())
    nic = fabric_nic(network)
    (info, *_) = nic.infos(Hints(Caps.MSG, provider="udp", datagram=True))
    domain = nic.domain(info)
    vector, queue = domain.address_vector(), domain.completion_queue(16)
    endpoint = domain.endpoint(vector, queue)
    endpoint.enable()
    word = memoryview(bytearray(8))
    for call in (endpoint.write, endpoint.read):
        with pytest.raises(FabricError, match="not implemented") as caught:
            call(word, None, 0, 0, 0, "none")
        assert caught.value.errno == 38  # ENOSYS
    with pytest.raises(FabricError, match="not implemented"):
        endpoint.atomic(word, 0, 0, 0, Datatype.UINT64, Op.SUM, "none")
    assert not endpoint.atomic_valid(AtomicCall.ATOMIC, Datatype.UINT64, Op.SUM)
    assert not queue.contexts.held
    nic.close()
    network.close()
    engine.close()


@needs_libfabric
def test_memory_that_cannot_be_written_takes_no_slot(end: End) -> None:
    slots = len(end.queue.contexts.free)
    with pytest.raises((BufferError, ValueError)):
        end.endpoint.receive(memoryview(b"constant"), None, "never")
    assert (len(end.queue.contexts.free), len(end.queue.contexts.held)) == (slots, 0)


CYCLES = """
import gc, sys
from ompy.engine.real import RealEngine
from ompy.frameworks.nic.fabric import Caps, Datatype, FabricError, Hints, Op
from ompy.net.real import RealNetwork
from ompy.runtime.launching.singleton import SingletonWireUp
from tests.support.libfabric_devices import fabric_nic

engine = RealEngine(1)
nic = fabric_nic(RealNetwork(engine, 0, SingletonWireUp()))
domain = nic.domain(nic.infos(Hints(Caps.MSG, provider="udp", datagram=True))[0])
endpoint = domain.endpoint(domain.address_vector(), domain.completion_queue(16))
endpoint.enable()

def refused(call, *arguments):
    try:
        call(*arguments)
    except FabricError as problem:
        kept = [problem]  # what the problem's frames know, this one among them, is a cycle now
        kept.append(kept)

def word():
    return memoryview(bytearray(8))

for _ in range(3):
    refused(endpoint.write, word(), None, 0, 0, 0, 1)
    refused(endpoint.read, word(), None, 0, 0, 0, 1)
    refused(endpoint.atomic, word(), 0, 0, 0, Datatype.UINT64, Op.SUM, 1)
    refused(endpoint.fetch_atomic, word(), word(), None, 0, 0, 0, Datatype.UINT64, Op.SUM, 1)
    refused(
        endpoint.compare_atomic,
        word(), word(), word(), None, 0, 0, 0, Datatype.UINT64, Op.CSWAP, 1,
    )
    gc.collect()
print("alive")
"""


@needs_libfabric
def test_an_error_in_a_cycle_does_not_crash_python() -> None:
    """A memoryview that is exported, in a cycle, crashes the collector of Python before 3.11.10."""
    done = subprocess.run([sys.executable, "-c", CYCLES], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


@needs_libfabric
def test_which_providers_strangers_can_crash() -> None:
    engine = RealEngine()
    nic = fabric_nic(RealNetwork(engine, 0, SingletonWireUp()))
    nic.open()
    found = {info.provider: info.exposed for info in nic.infos(Hints(Caps.MSG))}
    nic.close()
    engine.close()
    assert {name for name, exposed in found.items() if exposed} == {"sockets", "udp;ofi_rxd"}
    assert "crashes" in found["udp;ofi_rxd"]
    assert "hangs" in found["sockets"]


def test_a_provider_the_user_calls_exposed_is() -> None:
    assert what_strangers_do("TCP;ofi_rxm", ["sockets", "tcp;ofi_rxm"])
    assert not what_strangers_do("tcp;ofi_rxm", ["tcp"])
    assert not what_strangers_do("sockets", [])


@needs_libfabric
def test_infos_are_of_the_endpoints_that_were_asked_for() -> None:
    """Reliable and without connection, or datagrams; never those that have to be connected."""
    engine = RealEngine()
    nic = fabric_nic(RealNetwork(engine, 0, SingletonWireUp()))
    nic.open()
    for datagram, kind in ((False, EP_RDM), (True, EP_DGRAM)):
        found = nic.infos(Hints(Caps.MSG, datagram=datagram))
        assert {info.native.info.ep_attr.type for info in found} == {kind}
    nic.close()
    engine.close()
