"""Two ranks of a launched job that put into each other's memory with both emulated NICs."""

from __future__ import annotations

import json

from ompy.frameworks.nic.gni import GniNic, MemoryHandle, PostDescriptor, ReturnCode
from ompy.runtime.ranks.process import RankProcess

from tests.support.fabric_processes import swapper

TAG, COOKIE = 3, 0xBEE


def one_put(process: RankProcess, nic: GniNic) -> str:
    """Put this rank's number and the NIC's name there; what the other has put here."""
    rank, engine, swap = process.context.rank, process.context.engine, swapper(process)
    domain = nic.domain(rank, TAG, COOKIE)
    queue, memory = domain.completion_queue(4), memoryview(bytearray(8))
    code, handle = domain.register(memory)
    assert code is ReturnCode.SUCCESS
    theirs, address = json.loads(swap(json.dumps([handle, nic.address]).encode()))
    endpoint = domain.endpoint(queue)
    assert endpoint.bind(address, 1 - rank) is ReturnCode.SUCCESS
    post = PostDescriptor()
    post.local = memoryview(f"{nic.generation} {rank}".encode())
    post.remote_handle = MemoryHandle(*theirs)
    while endpoint.post_fma(post) is ReturnCode.ERROR_RESOURCE:
        engine.progress()
    assert engine.wait_until(queue.ready, 10_000_000_000)
    assert queue.get_event()[1].status is ReturnCode.SUCCESS  # type: ignore[union-attr]
    swap(b"done")
    assert endpoint.destroy() is ReturnCode.SUCCESS
    assert domain.destroy() is ReturnCode.SUCCESS
    nic.close()
    return bytes(memory).decode().rstrip("\0")


def both_nics(process: RankProcess) -> list[str]:
    """With each NIC the rank has."""
    nics = process.context.find_nics(GniNic)
    for nic in nics:
        nic.open()
    process.context.wireup.commit()
    process.context.wireup.fence()
    return [one_put(process, nic) for nic in nics]
