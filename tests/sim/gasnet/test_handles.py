"""How many handles there may be, whose they are, and that nothing is counted wrongly."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest
from ompy.gasnet import HANDLES_MAX, BadArgument, ResourceError
from ompy.gasnet.handles import Handle, Implicit

from tests.support.gasnet_programs import raises
from tests.support.gasnet_worlds import CONDUITS, run


def test_as_many_as_there_may_be() -> None:
    """One more is refused, before anything is begun; all can be synced, and used again."""

    def program(gasnet: Any) -> None:
        gasnet.init()
        gasnet.attach()
        if gasnet.mynode():
            gasnet.barrier()
            return
        data = bytes(1)
        state = gasnet._state()
        state.handles = HANDLES_MAX - 3  # as if so many had been begun
        handles, value = [gasnet.put_nb(1, 0, data)], gasnet.get_nb_val(1, 0)
        gasnet.begin_nbi_accessregion()
        for _ in range(10):
            gasnet.put_nbi(1, 0, data)
        handles.append(gasnet.end_nbi_accessregion())
        before = gasnet.counters()
        raises(ResourceError, gasnet.put_nb, 1, 0, data)
        raises(ResourceError, gasnet.get_nb, bytearray(1), 1, 0)
        raises(ResourceError, gasnet.get_nb_val, 1, 0)
        raises(ResourceError, gasnet.memset_nb, 1, 0, 0, 1)
        gasnet.put(1, 0, data)  # it has no handle that anybody could sync
        gasnet.begin_nbi_accessregion()
        gasnet.put_nbi(1, 0, data)
        raises(ResourceError, gasnet.end_nbi_accessregion)
        assert gasnet.counters()["gets"] == before["gets"]
        gasnet.wait_syncnb_all(handles)
        assert gasnet.wait_syncnb_valget(value) == 0
        gasnet.wait_syncnb(gasnet.end_nbi_accessregion())  # it had stayed open
        assert state.handles == HANDLES_MAX - 3
        gasnet.put(1, 0, data)
        gasnet.barrier()

    run(CONDUITS["loopback"], 2, program)


def test_more_implicit_operations_than_a_counter_had() -> None:
    """GASNet's counters were reset at 65000; ours cannot overflow."""
    operations = Implicit()
    for number in range(70_000):
        operations.begin_transfer(is_get=bool(number % 2))
    assert operations.gets == operations.puts == 35_000
    for number in range(70_000):
        operations.done(is_get=bool(number % 2))
    assert not operations.under_way(gets=True, puts=True)
    with pytest.raises(AssertionError):
        operations.done(is_get=False)


def test_operations_finished_by_other_threads() -> None:
    """No count is lost, and a region's handle is completed once, by the last."""
    operations, threads, each = Implicit(), 4, 3_000
    for number in range(threads * each):
        operations.begin_transfer(is_get=bool(number % 2))
    handle = Handle()
    operations.when_drained(handle)
    assert not handle.complete
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        workers = [
            threading.Thread(
                target=lambda: [operations.done(is_get=bool(number % 2)) for number in range(each)]
            )
            for _ in range(threads)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(before)
    assert (operations.gets, operations.puts) == (0, 0)
    assert handle.complete


def test_whose_they_are() -> None:
    """A handle is synced by the thread that began the operation."""

    def program(gasnet: Any) -> None:
        gasnet.init("par")
        gasnet.attach()
        if gasnet.mynode() == 0:
            handles, value = [gasnet.put_nb(1, 0, bytes(8))], gasnet.get_nb_val(1, 0)
            said: list[str] = []

            def other() -> None:
                said.append(raises(BadArgument, gasnet.wait_syncnb, handles[0]))
                said.append(raises(BadArgument, gasnet.try_syncnb_all, handles))
                said.append(raises(BadArgument, gasnet.wait_syncnb_valget, value))
                raises(BadArgument, gasnet.end_nbi_accessregion)

            gasnet.begin_nbi_accessregion()
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            gasnet.end_nbi_accessregion()
            assert all("thread" in text for text in said)
            assert len(said) == 3
            gasnet.wait_syncnb_all(handles)
            gasnet.wait_syncnb_valget(value)
        gasnet.barrier()

    run(CONDUITS["loopback"], 2, program)


def test_awaiting_needs_real_time() -> None:
    def program(gasnet: Any) -> None:
        gasnet.init()
        gasnet.attach()
        if gasnet.mynode() == 0:
            handle = gasnet.put_nb(1, 0, bytes(8))
            raises(NotImplementedError, handle.__await__().send, None)
            gasnet.wait_syncnb(handle)
            raises(BadArgument, handle.__await__().send, None)
            done = gasnet.put_nb(0, 0, bytes(8))
            raises(StopIteration, done.__await__().send, None)
        gasnet.barrier()

    run(CONDUITS["loopback"], 2, program)


def test_what_is_under_way_is_told_to_who_asks() -> None:
    """For the report of a stuck rank: explicit and implicit operations, and the NIC's work."""

    def program(gasnet: Any) -> None:
        gasnet.init()
        gasnet.attach()
        assert gasnet.waiting() == []
        if not gasnet.mynode():
            handle = gasnet.put_nb_bulk(1, 16, bytes(8))
            gasnet.get_nbi(bytearray(4), 1, 0)
            told = gasnet.waiting()
            assert told[:2] == ["1 handles to be synced", "implicit operations: 0 puts and 1 gets"]
            assert any("put of 8 bytes at offset 16 of rank 1" in line for line in told[2:]), told
            assert any("get of 4 bytes at offset 0 of rank 1" in line for line in told[2:]), told
            gasnet.wait_syncnb(handle)
            gasnet.wait_syncnbi_all()
            assert gasnet.waiting() == []
        gasnet.barrier()

    run(CONDUITS["gemini, late"], 2, program)
