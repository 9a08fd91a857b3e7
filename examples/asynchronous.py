"""Requests can be awaited beside any other asyncio code, on the same loop."""

import asyncio

import ompy
from mpi4py import MPI

comm = MPI.COMM_WORLD
right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size


async def clock(ticks):
    """Something else that wants to run."""
    while True:
        await asyncio.sleep(0.001)
        ticks.append(None)


async def main():
    """Pass a message to the right while the clock ticks."""
    ticks = []
    ticking = asyncio.create_task(clock(ticks))
    await asyncio.sleep(0.02)
    incoming = comm.irecv(source=left, tag=1)
    outgoing = comm.isend({"from": comm.rank}, dest=right, tag=1)
    said, _ = await asyncio.gather(answer(incoming), answer(outgoing))
    assert said == {"from": left}
    ticking.cancel()
    assert ticks, "the loop was free for others"
    return len(ticks)


async def answer(request):
    """Await a request: the object of a receive, None of a send."""
    return await request


ticks = ompy.run(main)
everybody = comm.gather(ticks > 0, root=0)
if comm.rank == 0:
    assert all(everybody)
    print(f"{comm.size} rank(s) received while their clocks ticked")
