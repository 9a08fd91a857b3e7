"""How many bytes are copied for one contiguous message, by each module, in every protocol.

What the wire itself moves is not counted with tcp; over sm `ompy.net.virtual.virtual_copy` is the
kernel's single copy. A message that is copied once in and once out is counted twice its size.
"""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tests.support import copy_counting

RAW = "ompy.raw"
KERNEL = "ompy.net.virtual.virtual_copy"
WIRE = "ompy.net.virtual.virtual_network"
NONE = {"btl_sm_single_copy_mechanism": "none"}
PIPELINE = {
    "mpi_leave_pinned": 0, "btl_sm_flags": "send,put", "btl_sm_min_rdma_pipeline_size": 100_000,
}  # fmt: skip
CASES = {
    "self, eager": (900, 1, {"btl": "self"}, {RAW: 2 * 900}),
    "self, one copy": (
        100_000, 1, {"btl": "self"}, {"ompy_components.btl.self.module": 100_000},
    ),
    "sm, eager immediate": (1000, 2, {"btl": "self,sm"}, {RAW: 2 * 1000}),
    "sm, eager in a block": (30_000, 2, {"btl": "self,sm"}, {RAW: 2 * 30_000}),
    "sm, get": (200_000, 2, {"btl": "self,sm"}, {KERNEL: 200_000}),
    "sm, put": (200_000, 2, {"btl": "self,sm", "btl_sm_flags": "send,put"}, {KERNEL: 200_000}),
    "sm, get, large": (3_000_000, 2, {"btl": "self,sm"}, {KERNEL: 3_000_000}),
    "sm, fragments": (
        200_000, 2, {"btl": "self,sm", **NONE}, {RAW: 2 * 200_000},
    ),
    "sm, many fragments": (
        3_000_000, 2, {"btl": "self,sm", **NONE}, {RAW: 2 * 3_000_000},
    ),
    "sm, get in fragments": (
        200_000, 2, {"btl": "self,sm", "btl_sm_single_copy_mechanism": "emulated"},
        {RAW: 200_000, "ompy.frameworks.btl_base.emulation": 200_000},
    ),
    # what is not put goes as fragments; the last, of 2032 bytes, through a slot of the ring
    "sm, RDMA pipeline": (
        3_000_000, 2, {"btl": "self,sm", **PIPELINE},
        {RAW: 2 * (36_864 + 2064), KERNEL: 3_000_000 - 36_864},
    ),
    "tcp, eager prepared": (60_000, 2, {"btl": "self,tcp"}, {RAW: 60_000}),
    # out of the reader's memory; a last frame of less than 8192 bytes is joined with its header
    "tcp, fragments": (
        200_000, 2, {"btl": "self,tcp", "btl_tcp_flags": "send,inplace"},
        {RAW: 200_000, "ompy_components.btl.tcp.endpoint": 3520},
    ),
    "tcp, many fragments": (
        3_000_000, 2, {"btl": "self,tcp", "btl_tcp_flags": "send,inplace"},
        {RAW: 3_000_000},
    ),
    # puts land in the user's memory, but for what came in the read that had their headers
    "tcp, put": (
        3_000_000, 2, {"btl": "self,tcp"}, {"ompy_components.btl.tcp.framing": 8834},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def copies() -> dict[str, dict[str, int]]:
    """By case, the bytes each module copied."""
    cases = [{"size": size, "ranks": n, "set": set_} for size, n, set_, _ in CASES.values()]
    return dict(zip(CASES, copy_counting.copies_of(cases), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_no_byte_is_copied_without_need(name: str, copies: dict[str, dict[str, int]]) -> None:
    found, expected = copies[name], CASES[name][3]
    if "tcp" in name:
        found.pop(WIRE)
    assert found == expected


def test_what_copies_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    size = copy_counting.PAYLOAD
    source = (
        "a = bytearray(size)\nb = bytes(a)\na[:] = b\nmemoryview(a)[2:4] = b[:2]\n"
        "c = b[1:] + b'x'\nd = memoryview(b)[3:].tobytes()\ne = b''.join([b, b])\n"
        "numbers = [1, 2][:1] + [3]\n"
    )
    counted: Counter[str] = Counter()
    monkeypatch.setattr(copy_counting, "counted", counted)
    names = {
        "_copying_slice": slice,
        "_copying_store": copy_counting._store,
        "_copying_made": copy_counting._made,
        "_copying_maker": copy_counting._maker,
        "__name__": "here",
        "size": 2 * size,
    }
    tree = copy_counting._Instrument().visit(ast.parse(source))
    exec(compile(ast.fix_missing_locations(tree), "here", "exec"), names)
    assert counted == {"here": 7 * 2 * size - 4}  # the slices are shorter
