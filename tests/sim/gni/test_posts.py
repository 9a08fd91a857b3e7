"""Posts of the emulated Gemini and Aries: bytes, errors that touch nothing, atomics."""

from __future__ import annotations

import mmap
import os
from collections import Counter
from typing import Any

import pytest
from ompy.frameworks.nic.gni import (
    RDMA_MAX,
    AtomicCommand,
    CqMode,
    EventKind,
    MemoryHandle,
    Ordering,
    PostDescriptor,
    PostType,
    ReturnCode,
)

from tests.support.gni_job import SECOND, SIZE, GniRank, gni_world


def nothing(rank: GniRank) -> bytes:
    rank.fence()
    return bytes(rank.memory)


def both(program: Any, **settings: Any) -> list[Any]:
    """Rank 0 does something to rank 1's memory, on one host unless `hosts` says otherwise."""

    def active(rank: GniRank) -> Any:
        result = program(rank)
        rank.fence()
        return result

    return gni_world([active, nothing], **settings)


WHERE = pytest.mark.parametrize("hosts", [(0, 0), (0, 1)], ids=["one host", "two hosts"])


@WHERE
@pytest.mark.parametrize("generation", ["gemini", "aries"])
@pytest.mark.parametrize("late", [0, 60])
@pytest.mark.parametrize("ordering", Ordering)
def test_what_is_put_is_got(generation: str, late: int, ordering: Ordering, hosts: Any) -> None:
    data = bytes(range(256)) * 4

    def program(rank: GniRank) -> bytes:
        source = bytearray(data)
        handle = rank.register(memoryview(source))
        assert rank.do(1, PostType.FMA_PUT, source, 8) is ReturnCode.SUCCESS
        moved = rank.do(1, PostType.RDMA_PUT, source, 2048, local_handle=handle)
        assert moved is ReturnCode.SUCCESS
        back = bytearray(1024)
        there = rank.register(memoryview(back))
        assert rank.do(1, PostType.FMA_GET, back, 8) is ReturnCode.SUCCESS
        assert bytes(back) == data
        back[:] = bytes(1024)
        assert rank.do(1, PostType.RDMA_GET, back, 2048, local_handle=there) is ReturnCode.SUCCESS
        return bytes(back)

    found, memory = both(program, generation=generation, late=late, ordering=ordering, hosts=hosts)
    assert found == data
    assert memory[8:1032] == data
    assert memory[2048:3072] == data
    assert not any((*memory[:8], *memory[1032:2048], *memory[3072:]))


@WHERE
@pytest.mark.parametrize("late", [0, 60])
@pytest.mark.parametrize("wrong", ["end", "begin", "handle", "word", "given back", "other rank"])
@pytest.mark.parametrize("type_", [PostType.FMA_PUT, PostType.FMA_GET, PostType.AMO])
def test_what_is_not_registered_is_not_touched(
    type_: PostType, wrong: str, late: int, hosts: Any
) -> None:
    def program(rank: GniRank) -> tuple[ReturnCode, bytes]:
        local = bytearray(b"\xee" * 16 if type_ is not PostType.AMO else 8)
        theirs = rank.handles[1]
        handle = {
            "handle": MemoryHandle(theirs.qword1, theirs.qword2 ^ 2),
            "word": MemoryHandle(theirs.qword1 ^ 5, theirs.qword2),
            "given back": MemoryHandle(theirs.qword1 + 2, 0),
            "other rank": rank.handle,
        }.get(wrong, theirs)
        at = {"end": SIZE - 8 if type_ is not PostType.AMO else SIZE, "begin": -8}.get(wrong, 0)
        code = rank.do(
            1, type_, local, at, remote_handle=handle, command=AtomicCommand.ADD, first_operand=1
        )
        return code, bytes(local)

    (code, local), memory = both(program, late=late, hosts=hosts)
    assert code is ReturnCode.PERMISSION_ERROR
    assert memory == bytes(SIZE)
    assert type_ is not PostType.FMA_GET or local == b"\xee" * 16


def test_alignment_is_that_of_the_generation() -> None:
    def program(rank: GniRank) -> list[ReturnCode]:
        endpoint, room = rank.endpoints[1], memoryview(bytearray(64))
        codes = []
        for at, begin, size in ((1, 0, 8), (0, 0, 7), (4, 0, 8), (0, 1, 8)):
            post = PostDescriptor(PostType.FMA_GET)
            post.local = room[begin : begin + size]
            post.remote_address, post.remote_handle = at, rank.handles[1]
            codes.append(endpoint.post_fma(post))
            if codes[-1] is ReturnCode.SUCCESS:
                rank.done(post)
        return codes

    wrong, right = ReturnCode.ALIGNMENT_ERROR, ReturnCode.SUCCESS
    assert both(program, generation="gemini")[0] == [wrong, wrong, right, wrong]
    assert both(program, generation="aries")[0] == [wrong, wrong, right, right]


@WHERE
def test_what_cannot_be_written_can_be_put_and_got(hosts: Any) -> None:
    """A put's source may be constant: it is registered to be read."""
    data = bytes(range(256)) * 4

    def program(rank: GniRank) -> bytes:
        source = memoryview(data)
        handle = rank.register(source)
        moved = rank.do(1, PostType.RDMA_PUT, source, 0, local_handle=handle)
        assert moved is ReturnCode.SUCCESS
        back = bytearray(1024)
        assert rank.do(1, PostType.FMA_GET, back, 0) is ReturnCode.SUCCESS
        return bytes(back)

    assert both(program, hosts=hosts)[0] == data


def test_block_transfers_want_registered_local_memory() -> None:
    def program(rank: GniRank) -> list[ReturnCode]:
        known, codes = memoryview(bytearray(64)), []
        handle = rank.register(known)
        for local, own in ((known, None), (known, rank.handle), (bytearray(8), handle)):
            post = PostDescriptor(PostType.RDMA_PUT)
            post.local, post.local_handle = memoryview(local), own
            post.remote_handle = rank.handles[1]
            codes.append(rank.endpoints[1].post_rdma(post))
            codes.append(rank.endpoints[1].post_fma(post))
        return codes

    assert set(both(program)[0]) == {ReturnCode.INVALID_PARAM}


@pytest.mark.parametrize("hosts", [(0,) * 5, (0, 0, 1, 1, 2)], ids=["one host", "three hosts"])
@pytest.mark.parametrize("late", [0, 60])
def test_many_ranks_add_to_one_word(late: int, hosts: Any) -> None:
    def program(rank: GniRank) -> list[int]:
        olds = []
        for _ in range(5 if rank.context.rank else 0):
            old = bytearray(8)
            code = rank.do(
                0,
                PostType.FETCHING_AMO,
                old,
                16,
                command=AtomicCommand.ADD,
                first_operand=1,
            )
            assert code is ReturnCode.SUCCESS
            olds.append(int.from_bytes(old, "little"))
        rank.fence()
        return olds if rank.context.rank else [int.from_bytes(rank.memory[16:24], "little")]

    (total,), *olds = gni_world([program] * 5, late=late, seed=late, hosts=hosts)
    assert total == 20
    assert sorted(old for mine in olds for old in mine) == list(range(20))


@pytest.mark.parametrize("command", AtomicCommand)
def test_atomics_are_those_of_the_generation(command: AtomicCommand) -> None:
    results = {"add": 12, "and": 0, "or": 12, "xor": 12, "swap": 7, "compare and swap": 7}
    expected = results | {"min": 5, "max": 7}

    def program(rank: GniRank) -> ReturnCode | int:
        assert rank.do(1, PostType.FMA_PUT, (5).to_bytes(8, "little"), 0) is ReturnCode.SUCCESS
        post = PostDescriptor(PostType.AMO)
        post.command, post.remote_handle = command, rank.handles[1]
        post.first_operand, post.second_operand = 7, 9
        if command is AtomicCommand.CSWAP:
            post.first_operand, post.second_operand = 5, 7
        if command in (AtomicCommand.AND, AtomicCommand.OR, AtomicCommand.XOR):
            post.first_operand = 8 + 1 if command is not AtomicCommand.AND else 2
        code = rank.endpoints[1].post_fma(post)
        if code is ReturnCode.SUCCESS:
            assert rank.done(post) is ReturnCode.SUCCESS
        return code

    extra = command in (AtomicCommand.SWAP, AtomicCommand.MIN, AtomicCommand.MAX)
    code, memory = both(program, generation="gemini")
    assert code is (ReturnCode.INVALID_PARAM if extra else ReturnCode.SUCCESS)
    code, memory = both(program, generation="aries")
    assert code is ReturnCode.SUCCESS
    known = expected | {"or": 13, "xor": 12}
    assert int.from_bytes(memory[:8], "little") == known[command.value]


def test_words_and_signs_of_atomics() -> None:
    """32 bits on Aries alone, aligned, nothing beside them; MIN and MAX are of signed numbers."""

    def program(rank: GniRank) -> list[ReturnCode]:
        assert rank.do(1, PostType.FMA_PUT, b"\xff" * 16, 0) is ReturnCode.SUCCESS
        codes = []
        for at, size, room in ((4, 4, 4), (2, 4, 4), (4, 8, 8), (4, 4, 8), (4, 2, 2)):
            post = PostDescriptor(PostType.FETCHING_AMO)
            post.command, post.remote_handle = AtomicCommand.ADD, rank.handles[1]
            post.first_operand, post.amo_size, post.remote_address = 3, size, at
            post.local = memoryview(bytearray(room))
            codes.append(rank.endpoints[1].post_fma(post))
            if codes[-1] is ReturnCode.SUCCESS:
                assert rank.done(post) is ReturnCode.SUCCESS
                assert post.local == b"\xff" * 4
        for at, command in ((8, AtomicCommand.MIN), (12, AtomicCommand.MAX)):
            post = PostDescriptor(PostType.AMO)
            post.command, post.remote_handle = command, rank.handles[1]
            post.first_operand, post.amo_size, post.remote_address = 5, 4, at
            if rank.endpoints[1].post_fma(post) is ReturnCode.SUCCESS:
                assert rank.done(post) is ReturnCode.SUCCESS
        return codes

    invalid, odd = ReturnCode.INVALID_PARAM, ReturnCode.ALIGNMENT_ERROR
    codes, memory = both(program, generation="aries")
    assert codes == [ReturnCode.SUCCESS, odd, odd, invalid, invalid]
    words = [int.from_bytes(memory[at : at + 4], "little", signed=True) for at in (0, 4, 8, 12)]
    assert words == [-1, 2, -1, 5]
    codes, memory = both(program, generation="gemini")
    assert codes == [invalid, invalid, odd, invalid, invalid]
    assert memory[:16] == b"\xff" * 16


@WHERE
def test_a_peer_is_told_of_puts_and_queue_writes(hosts: Any) -> None:
    def active(rank: GniRank) -> None:
        mode = CqMode.GLOBAL_EVENT | CqMode.REMOTE_EVENT
        rank.do(1, PostType.FMA_PUT, b"12345678", 0, cq_mode=mode)
        rank.do(1, PostType.CQWRITE, b"", cq_data=0xABCDEF)

    def passive(rank: GniRank) -> list[Any]:
        events = [rank.take(rank.memory_queue) for _ in range(2)]
        return [(event.kind, event.peer, event.data) for event in events]

    _, found = gni_world([active, passive], hosts=hosts)
    assert found == [(EventKind.REMOTE, 0, 0), (EventKind.CQWRITE, 0, 0xABCDEF)]


def test_an_endpoint_is_busy_while_its_peer_has_no_room() -> None:
    """What was said to a full ring is not given up with the endpoint that said it."""
    count = 3  # one more than its ring holds

    def active(rank: GniRank) -> list[ReturnCode]:
        endpoint = rank.endpoints[1]
        for number in range(count):
            rank.do(1, PostType.CQWRITE, b"", cq_data=number)
        codes = [endpoint.destroy()]
        rank.context.wireup.fence()
        rank.until(endpoint.destroy, ReturnCode.ERROR_RESOURCE)
        return codes

    def passive(rank: GniRank) -> list[int]:
        rank.context.wireup.fence()
        return [rank.take(rank.memory_queue).data for _ in range(count)]

    codes, found = gni_world([active, passive], ring_slots=2)
    assert codes == [ReturnCode.ERROR_RESOURCE]
    assert found == list(range(count))


def test_registrations_run_out_and_come_back() -> None:
    def program(rank: GniRank) -> None:
        taken = []
        while True:
            code, handle = rank.domain.register(memoryview(bytearray(8)))
            if code is not ReturnCode.SUCCESS:
                break
            taken.append(handle)
        assert code is ReturnCode.ERROR_RESOURCE
        assert len(taken) == 16 - 2  # the rank's own and its mailboxes
        assert rank.domain.deregister(taken[3]) is ReturnCode.SUCCESS
        assert rank.domain.deregister(taken[3]) is ReturnCode.INVALID_PARAM
        assert rank.domain.register(memoryview(bytearray(8)))[0] is ReturnCode.SUCCESS

    both(program, registrations=16)


def test_a_block_transfer_has_a_largest_size() -> None:
    def program(rank: GniRank) -> ReturnCode:
        file = os.memfd_create("large")
        os.truncate(file, RDMA_MAX + 1)  # without pages
        with mmap.mmap(file, RDMA_MAX + 1) as pages, memoryview(pages) as large:
            os.close(file)
            post = PostDescriptor(PostType.RDMA_PUT)
            post.local, post.remote_handle = large, rank.handles[1]
            return rank.endpoints[1].post_rdma(post)

    assert both(program)[0] is ReturnCode.SIZE_ERROR


@WHERE
def test_who_is_told_is_what_the_mode_says(hosts: Any) -> None:
    def program(rank: GniRank) -> list[tuple[PostType, ReturnCode]]:
        for at in (0, SIZE):  # the second is beyond the end
            rank.post(1, PostType.FMA_PUT, b"12345678", at, cq_mode=CqMode.SILENT)
        rank.do(1, PostType.FMA_PUT, b"87654321", 8, cq_mode=CqMode.LOCAL_EVENT)
        rank.wait(lambda: len(rank.events) > 1)
        rank.context.engine.wait_until(lambda: False, SECOND)  # and for any that should not come
        return [(event.post.type, event.status) for event in rank.events if event.post]

    events, memory = both(program, hosts=hosts)
    bad, good = ReturnCode.PERMISSION_ERROR, ReturnCode.SUCCESS
    assert Counter(events) == Counter([(PostType.FMA_PUT, bad), (PostType.FMA_PUT, good)])
    assert memory[:16] == b"1234567887654321"


@WHERE
def test_other_jobs_are_not_heard(hosts: Any) -> None:
    """A rank of another communication domain has right handles, and reaches nothing."""

    def stranger(rank: GniRank) -> ReturnCode:
        rank.endpoints[1].smsg_send(memoryview(b"psst"), memoryview(b""))
        code = rank.do(1, PostType.FMA_PUT, b"12345678", 0)
        rank.fence()
        return code

    def passive(rank: GniRank) -> tuple[bytes, ReturnCode]:
        rank.fence()
        return bytes(rank.memory), rank.mailbox_queue.get_event()[0]

    code, (memory, told) = gni_world([stranger, passive], hosts=hosts, cookies=(1, 2))
    assert (code, told) == (ReturnCode.PERMISSION_ERROR, ReturnCode.NOT_DONE)
    assert memory == bytes(SIZE)


def test_a_peer_that_does_not_listen_holds_nobody_else_up() -> None:
    """Its ring is full, so posts that tell it something are refused, and no others."""
    tells = CqMode.GLOBAL_EVENT | CqMode.REMOTE_EVENT

    def active(rank: GniRank) -> list[ReturnCode]:
        post, codes = PostDescriptor(), []
        post.local, post.remote_handle, post.cq_mode = memoryview(b"1"), rank.handles[1], tells
        while ReturnCode.ERROR_RESOURCE not in codes:
            codes.append(rank.endpoints[1].post_fma(post))
        codes = [rank.do(peer, PostType.FMA_PUT, b"2", 1) for peer in (1, 2)]
        codes.append(rank.do(2, PostType.FMA_PUT, b"3", 2, cq_mode=tells))
        rank.context.wireup.fence()
        return codes

    def deaf(rank: GniRank) -> bytes:
        rank.context.wireup.fence()  # which does not poll
        return bytes(rank.memory[:2])

    def third(rank: GniRank) -> bytes:
        rank.take(rank.memory_queue)
        found = bytes(rank.memory[1:3])
        rank.context.wireup.fence()
        return found

    codes, first, second = gni_world([active, deaf, third], ring_slots=2)
    assert codes == [ReturnCode.SUCCESS] * 3
    assert (first, second) == (b"12", b"23")


@WHERE
def test_posts_that_fail_are_not_done(hosts: Any) -> None:
    def program(rank: GniRank) -> list[bool]:
        codes = [rank.do(1, PostType.FMA_PUT, b"x", at) for at in range(100)]
        assert set(codes) == {ReturnCode.SUCCESS, ReturnCode.TRANSACTION_ERROR}
        return [code is ReturnCode.SUCCESS for code in codes]

    done, memory = both(program, hosts=hosts, fail=30)
    assert memory[:100] == b"".join(b"x" if good else b"\0" for good in done)
