"""The compiled calls of nic/libfabric do what the pointers in libfabric's tables do."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ompy.cli.building.compiling import compile_extension, suffix
from ompy.engine.real import RealEngine
from ompy.frameworks.nic.fabric import AtomicCall, Datatype, Op
from ompy.net.real import RealNetwork
from ompy.runtime.launching.singleton import SingletonWireUp
from ompy_components.nic.libfabric import declarations
from ompy_components.nic.libfabric import library as binding
from ompy_components.nic.libfabric.calls_source import MODULE, OFTEN, function, write_calls

from tests.support.libfabric_devices import DEFAULTS, needs_libfabric
from tests.unit.nic.test_libfabric import End

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
ONE, TWO = (value.to_bytes(8, "little") for value in (1, 2))


def test_every_slot_has_its_function() -> None:
    for table, slots in OFTEN.items():
        for slot in slots:
            head, body = function(declarations.ALL, table, slot)
            assert f" {table}_{slot}(void *object, " in head
            assert f"->{slot}(object, " in body
            assert head.count(",") == body.count(","), "an argument is lost on the way"
    with pytest.raises(ValueError, match=r"fi_ops_msg.sendmsg is declared"):
        function(declarations.ALL, "msg", "sendmsg")


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("calls")
    made = folder / f"calls{suffix()}"
    compile_extension(write_calls(Path(str(declarations.__file__)).parent, folder), made)
    spec = importlib.util.spec_from_file_location(MODULE, made)
    assert spec is not None
    return importlib.util.module_from_spec(spec)


@pytest.fixture(params=["shm", "tcp;ofi_rxm"])
def end(
    request: pytest.FixtureRequest, extension: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[End]:
    monkeypatch.setitem(sys.modules, MODULE, extension)
    binding.load_library.cache_clear()
    engine = RealEngine(1)
    network = RealNetwork(engine, 0, SingletonWireUp())
    made = End(network, request.param)
    assert made.endpoint._library.compiled is extension.lib
    yield made
    made.nic.close()
    network.close()
    engine.close()
    binding.load_library.cache_clear()


@needs_libfabric
@needs_compiler
def test_messages_puts_and_gets(end: End) -> None:
    end.write(b"x" * 64, "write")
    assert [one.context for one in end.until(1)] == ["write"]
    back = bytearray(64)
    place = (end.to, end.region.base, end.region.key, "read")
    assert end.endpoint.read(memoryview(back), None, *place)
    assert [one.context for one in end.until(1)] == ["read"]
    assert bytes(back) == b"x" * 64
    room = bytearray(16)
    assert end.endpoint.receive(memoryview(room), None, "received")
    assert end.endpoint.send(memoryview(b"a message"), None, end.to, "sent")
    assert {one.context for one in end.until(2)} == {"sent", "received"}
    assert bytes(room[:9]) == b"a message"
    assert end.endpoint.receive(memoryview(room), None, "received")
    assert end.endpoint.inject(memoryview(b"short"), end.to)
    assert [one.context for one in end.until(1)] == ["received"]
    assert bytes(room[:5]) == b"short"


@needs_libfabric
@needs_compiler
def test_atomics(end: End) -> None:
    here = end.endpoint
    place = (end.to, end.region.base, end.region.key, Datatype.UINT64, Op.SUM, "atomic")
    end.write(bytes(8), "first")  # and the path is there
    end.until(1)
    assert here.atomic_valid(AtomicCall.ATOMIC, Datatype.UINT64, Op.SUM)
    assert here.atomic(memoryview(ONE), *place)
    end.until(1)
    old = bytearray(8)
    assert here.fetch_atomic(memoryview(ONE), memoryview(old), None, *place)
    end.until(1)
    assert bytes(old) == ONE
    swap = (*place[:3], Datatype.UINT64, Op.CSWAP, "atomic")
    operands = (memoryview(bytes(8)), memoryview(TWO), memoryview(old))
    assert here.compare_atomic(*operands, None, *swap)
    end.until(1)
    assert bytes(old) == TWO
    assert bytes(end.memory[:8]) == bytes(8)


@needs_compiler
def test_it_can_be_done_without(extension: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, MODULE, extension)
    assert binding._compiled_calls() is extension.lib
    monkeypatch.setitem(sys.modules, MODULE, None)
    assert binding._compiled_calls() is None
    assert DEFAULTS["compiled"] is True
