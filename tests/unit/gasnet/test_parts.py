"""Parts of the GASNet API that need no job."""

from __future__ import annotations

import inspect
import subprocess
import sys
from array import array
from ctypes import Structure, c_int, py_object

import pytest
from ompy import gasnet
from ompy.gasnet import errors
from ompy.gasnet.fill import PIECE, fill_memory, halves, joined_number
from ompy.gasnet.messages import words_of
from ompy.gasnet.rank import readable_bytes, writable_bytes
from ompy.gasnet.segment import Segment


def test_the_module_offers_all_methods() -> None:
    """Each public method of a rank, bound to the one of this interpreter; `finish` is its end's."""
    methods = {name for name, _ in inspect.getmembers(gasnet.Gasnet, inspect.isfunction)}
    public = {name for name in methods if not name.startswith("_")} - {"finish"}
    assert public == {name for name in vars(gasnet) if inspect.ismethod(getattr(gasnet, name))}
    assert len(public) > 60


def test_errors_have_gasnets_names() -> None:
    numbers = {kind.name: kind.code for kind in errors.GasnetError.__subclasses__()}
    assert numbers == {
        "GASNET_ERR_NOT_INIT": 10001,
        "GASNET_ERR_RESOURCE": 10002,
        "GASNET_ERR_BAD_ARG": 10003,
        "GASNET_ERR_NOT_READY": 10004,
        "GASNET_ERR_BARRIER_MISMATCH": 10005,
    }
    assert str(errors.BadArgument("why")) == "GASNET_ERR_BAD_ARG: why"


def test_codes_have_names_and_descriptions() -> None:
    """All that the module has, and one that there is not."""
    codes = [gasnet.OK, *(kind.code for kind in errors.GasnetError.__subclasses__())]
    for name, code in vars(gasnet).items():
        if name == "OK" or name.startswith("ERR_"):
            assert gasnet.error_name(code) == f"GASNET_{name}"
            codes.remove(code)
    assert not codes
    told = {gasnet.error_desc(code) for code in (0, *range(10001, 10006))}
    assert len(told) == 6
    assert gasnet.error_name(7) == "*unknown*"
    assert gasnet.error_desc(7) not in told


def test_before_init() -> None:
    with pytest.raises(gasnet.NotInitialised):
        gasnet.put(0, 0, b"a")
    with pytest.raises(gasnet.NotInitialised):
        gasnet.mynode()


def test_importing_it_imports_little() -> None:
    """No rank needs NumPy, asyncio or the launcher's libraries for GASNet."""
    program = "import sys; from ompy import gasnet; print(sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(eval(done.stdout))
    heavy = {"numpy", "asyncio", "click", "pydantic", "structlog", "pluggy", "uvloop", "ctypes"}
    assert not heavy & loaded
    assert not [name for name in loaded if name.startswith("ompy.mpi")]


def test_words() -> None:
    extremes = [0, 1, -1, 0x7FFF_FFFF, -0x8000_0000]
    assert words_of([*extremes, True]) == [*extremes, 1]
    for number in (0, 1, 0xFFFF_FFFF, 0x8000_0000, 1 << 32, (1 << 63) - 1):
        assert words_of(halves(number))
        assert joined_number(*halves(number)) == number


class Mixed(Structure):
    """Numbers and an object; the name of a field says nothing about its kind."""

    _fields_ = (("O", c_int), ("number", py_object))


class Plain(Structure):
    """Numbers only."""

    _fields_ = (("O", c_int), ("Other", c_int))


def test_buffers() -> None:
    assert len(readable_bytes(Plain())) == 8
    assert bytes(readable_bytes(array("i", [1, 2]))) == array("i", [1, 2]).tobytes()
    assert len(readable_bytes(array("d"))) == 0
    two = memoryview(bytearray(12)).cast("B", (3, 4))
    assert len(writable_bytes(two)) == 12
    for wrong in (5, "text", memoryview(bytes(8))[::2], None, (py_object * 2)(), Mixed()):
        with pytest.raises(errors.BadArgument):
            readable_bytes(wrong)
    with pytest.raises(errors.BadArgument):
        writable_bytes(b"abc")


def test_filling() -> None:
    memory = memoryview(bytearray(3 * PIECE))
    fill_memory(memory, 5, 7, 2 * PIECE + 1)
    assert bytes(memory) == bytes(5) + b"\7" * (2 * PIECE + 1) + bytes(PIECE - 6)


def test_segments_as_arrays() -> None:
    numpy = pytest.importorskip("numpy")
    memory = memoryview(bytearray(64))
    segment = Segment(memory, 4096)
    whole_of_it = segment.as_array("f8")
    part = segment.as_array(numpy.int32, (2, 3), offset=8)
    assert whole_of_it.shape == (8,)
    part[1, 2] = 77
    assert memory[28] == 77
    memory[8] = 5
    assert part[0, 0] == 5
    assert segment.as_array("f8", offset=64).shape == (0,)
    for wrong in ((9, 0), (8, 1), ((2, 5), 0), (1, -8), (0, 65)):
        with pytest.raises(errors.BadArgument):
            segment.as_array("f8", *wrong)
    assert repr(segment) == "<segment of 64 bytes at 0x1000>"
