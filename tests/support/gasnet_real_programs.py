"""GASNet programs for real processes: threads, coroutines, MPI beside it, ends of all kinds."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Any

from ompy.gasnet import INVALID_HANDLE, PAGE_SIZE, BadArgument

from tests.support.gasnet_programs import pattern, start

THREADS = 4
EACH = 40


def threads(gasnet: Any) -> None:
    """Several threads put, get and send at once; handlers count under a lock (testthreads)."""
    gasnet.init("par")
    lock = gasnet.hsl()
    counted = {"asked": 0, "answered": 0}

    def ask(token: Any, payload: memoryview, key: int) -> None:
        with lock:
            before = counted["asked"]
            counted["asked"] = before + 1
        gasnet.am_reply_medium(token, answer, payload, key)

    def answer(_token: Any, payload: memoryview, key: int) -> None:
        assert bytes(payload) == pattern(key, 32)
        with lock:
            counted["answered"] += 1

    gasnet.attach([ask, answer], 4 * PAGE_SIZE)
    right = (gasnet.mynode() + 1) % gasnet.nodes()
    wrong: list[BaseException] = []

    def work(number: int) -> None:
        try:
            share = number * PAGE_SIZE // 2
            back = bytearray(200)
            for key in range(EACH):
                data = pattern(key + number, 200)
                gasnet.put(right, share, data)
                gasnet.get(back, right, share)
                assert back == data
                handles = [gasnet.put_nb(right, share + 400, data[:90])]
                gasnet.put_nbi_bulk(right, share + 600, data)
                gasnet.am_request_medium(right, ask, pattern(key, 32), key)
                gasnet.wait_syncnb_all(handles)
                gasnet.wait_syncnbi_all()
        except BaseException as problem:
            wrong.append(problem)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if wrong:
        raise wrong[0]
    gasnet.block_until(lambda: set(counted.values()) == {THREADS * EACH})
    gasnet.barrier()


def coroutines(gasnet: Any) -> None:
    """Handles are awaited beside other coroutines; NumPy sees the segment."""
    import asyncio

    import numpy as np

    start(gasnet, size=PAGE_SIZE)
    numbers = gasnet.segment().as_array("i8")
    numbers[:64] = gasnet.mynode()
    gasnet.barrier()
    right = (gasnet.mynode() + 1) % gasnet.nodes()
    ticks = []

    async def tick() -> None:
        while len(ticks) < 3:
            ticks.append(len(ticks))
            await asyncio.sleep(0.001)

    async def transfer() -> None:
        back = np.zeros(64, "i8")
        await gasnet.get_nb(back, right, 0)
        assert (back == right).all()
        await gasnet.put_nb_bulk(right, 1024, back + 5)
        assert await gasnet.get_nb_val(right, 1024) == right + 5
        gasnet.begin_nbi_accessregion()
        for place in range(8):
            gasnet.get_nbi(back[place : place + 1], right, 1024)
        await gasnet.end_nbi_accessregion()
        assert (back[:8] == right + 5).all()
        await INVALID_HANDLE
        handle = gasnet.put_nb(right, 1024, back)
        await handle
        try:
            await handle
        except BadArgument:
            return
        raise AssertionError("a handle was awaited twice")

    async def both() -> None:
        await asyncio.gather(tick(), transfer())

    asyncio.run(both())
    assert len(ticks) == 3
    gasnet.barrier()


def beside_mpi(gasnet: Any) -> None:
    """MPI and GASNet share the rank: a handler runs while MPI waits, and the other way round."""
    came: list[int] = []

    def take(_token: Any, _payload: memoryview, number: int) -> None:
        came.append(number)

    first = os.environ["OMPI_COMM_WORLD_RANK"] == "0"
    if first:
        gasnet.init()
    from ompy import MPI

    if not first:
        gasnet.init()
    comm = MPI.COMM_WORLD
    assert (gasnet.mynode(), gasnet.nodes()) == (comm.rank, comm.size)
    gasnet.attach([take], PAGE_SIZE)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for number in range(20):
        gasnet.am_request_short(right, take, number)
        request = comm.isend({"number": number}, right)
        assert comm.recv(source=left) == {"number": number}
        gasnet.block_until(lambda number=number: number in came)
        request.wait()
        gasnet.put_val(right, 0, number)
        comm.Barrier()
        assert gasnet.segment().memory[0] == number
        comm.Barrier()
    MPI.Finalize()  # GASNet goes on
    gasnet.put_val(right, 8, 1)
    gasnet.barrier()
    assert gasnet.segment().memory[8] == 1


def one_exits(gasnet: Any) -> None:
    """The others wait for ever."""
    start(gasnet, size=PAGE_SIZE)
    gasnet.barrier()
    if gasnet.mynode() == 1:
        gasnet.exit(7)
    gasnet.block_until(lambda: False)


def one_leaves(gasnet: Any) -> None:
    """As Python programs do, after an end that it thought better of; the others learn the code."""
    start(gasnet, size=PAGE_SIZE)
    try:
        sys.exit(9)
    except SystemExit:
        assert gasnet.exit.__self__._code == 0
    gasnet.barrier()
    if gasnet.mynode() == 1:
        sys.exit(5)
    try:
        gasnet.block_until(lambda: False)
    except SystemExit as end:
        sys.stdout.write(f"rank {gasnet.mynode()} was ended with {end.code}\n")
        raise


def one_is_silent(gasnet: Any) -> None:
    """Neither ends nor polls, when the others have ended."""
    start(gasnet, size=PAGE_SIZE)
    gasnet.barrier()
    if gasnet.mynode() == 1:
        time.sleep(60)


def handler_exits(gasnet: Any) -> None:
    """In a handler, while its rank waits."""

    def end(_token: Any, _payload: memoryview, code: int) -> None:
        gasnet.exit(code)

    start(gasnet, end, size=PAGE_SIZE)
    if gasnet.mynode() == 1:
        gasnet.am_request_short(0, end, 9)
    gasnet.block_until(lambda: False)


def one_fails(gasnet: Any) -> None:
    """What nobody catches ends the job with its traceback."""
    start(gasnet, size=PAGE_SIZE)
    if gasnet.mynode() == 1:
        raise LookupError("nobody catches this")
    gasnet.block_until(lambda: False)


def one_is_killed(gasnet: Any) -> None:
    """Without a word."""
    start(gasnet, size=PAGE_SIZE)
    gasnet.barrier()
    if gasnet.mynode() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    gasnet.barrier()


def exits_before_attach(gasnet: Any) -> None:
    """All know each other by then."""
    gasnet.init()
    gasnet.exit(5)


def all_exit(gasnet: Any) -> None:
    """As C programs end."""
    start(gasnet, size=PAGE_SIZE)
    gasnet.barrier()
    sys.stdout.write(f"rank {gasnet.mynode()} is through\n")
    gasnet.exit(0)


def asks_for_ever(gasnet: Any) -> None:
    """Asks the other rank and waits for its answer, until that is impossible."""
    answered: list[int] = []

    def ask(token: Any, _payload: memoryview, number: int) -> None:
        gasnet.am_reply_short(token, answer, number)

    def answer(_token: Any, _payload: memoryview, number: int) -> None:
        answered.append(number)

    start(gasnet, ask, answer, size=PAGE_SIZE)
    while True:
        answered.clear()
        gasnet.am_request_short(1 - gasnet.mynode(), ask, 0)
        gasnet.block_until(lambda: bool(answered))


def modes_of_waiting(gasnet: Any) -> None:
    """Barriers in all modes, and in all mixtures of two ranks."""
    start(gasnet, size=PAGE_SIZE)
    for mine in range(3):
        for other in range(3):
            gasnet.set_waitmode((mine, other)[gasnet.mynode() % 2])
            gasnet.barrier()


REAL = {
    program.__name__: program
    for program in (
        threads,
        coroutines,
        beside_mpi,
        one_exits,
        one_leaves,
        one_is_silent,
        handler_exits,
        one_fails,
        one_is_killed,
        exits_before_attach,
        all_exit,
        asks_for_ever,
        modes_of_waiting,
    )
}
