"""Requests in asyncio, on uvloop and on the standard library's loop."""

from __future__ import annotations

import asyncio
from typing import Any

import ompy
import pytest


@pytest.fixture(scope="module")
def comm() -> Any:
    from ompy import MPI

    return MPI.COMM_SELF


@pytest.fixture(params=["uvloop", "asyncio"])
def run(request: pytest.FixtureRequest) -> Any:
    return ompy.run if request.param == "uvloop" else lambda main: asyncio.run(main())


def test_a_receive_gives_its_object(comm: Any, run: Any) -> None:
    async def main() -> Any:
        receive = comm.irecv(source=0, tag=1)
        comm.isend({"a": 1}, 0, 1)
        return await receive

    assert run(main) == {"a": 1}


def test_others_run_meanwhile(comm: Any, run: Any) -> None:
    ticks = []

    async def tick() -> None:
        for turn in range(3):
            await asyncio.sleep(0.005)
            ticks.append(turn)
        comm.send("late", 0, 2)

    async def main() -> Any:
        ticking = asyncio.create_task(tick())
        found = await comm.irecv(source=0, tag=2)
        seen = list(ticks)
        await ticking
        return found, seen

    assert run(main) == ("late", [0, 1, 2])


def test_several_at_once(comm: Any, run: Any) -> None:
    room = bytearray(100_000)

    async def main() -> Any:
        return await asyncio.gather(
            comm.Irecv(room, 0, 3),
            comm.irecv(source=0, tag=4),
            comm.Isend(b"x" * len(room), 0, 3),
            comm.issend([1, 2], 0, 4),
            asyncio.sleep(0.001, "slept"),
        )

    assert run(main) == [None, [1, 2], None, None, "slept"]
    assert room == b"x" * len(room)


def test_null_requests_and_failed_ones(comm: Any, run: Any) -> None:
    from ompy import MPI

    async def main() -> Any:
        assert await MPI.Request() is None
        comm.isend(bytes(1000), 0, 5)
        with pytest.raises(MPI.Exception) as caught:
            await comm.irecv(10, 0, 5)
        return caught.value.Get_error_class()

    assert run(main) == MPI.ERR_TRUNCATE


def test_giving_up_leaves_the_request(comm: Any, run: Any) -> None:
    async def main() -> Any:
        receive = comm.irecv(source=0, tag=6)

        async def patient() -> Any:
            return await receive

        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(patient(), 0.01)
        assert receive
        comm.send("after all", 0, 6)
        return await receive

    assert run(main) == "after all"


def test_an_operation_of_the_users(comm: Any, run: Any) -> None:
    from ompy import MPI

    async def main() -> Any:
        own = MPI.Grequest.Start()
        asyncio.get_running_loop().call_later(0.005, own.complete, 42)
        return await own

    assert run(main) == 42


def test_blocking_inside_a_coroutine(comm: Any, run: Any) -> None:
    async def main() -> Any:
        comm.barrier()
        return comm.sendrecv(1, 0, 7, None, 0, 7)

    assert run(main) == 1
