"""What GASNet's own test programs check, in our words: programs for any conduit and any world.

Each is a function of `gasnet`, which is the module in a real process and a `Gasnet` in a virtual
world, and raises if something is wrong. `PROGRAMS` says which of GASNet's it follows, and on how
many ranks it is run. The numbers of messages are small: seeds make up for it.

Source: reference gasnet.md 11, 12.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import py_object
from typing import Any, NamedTuple

from ompy.gasnet import (
    BARRIERFLAG_ANONYMOUS,
    BARRIERFLAG_MISMATCH,
    INVALID_HANDLE,
    PAGE_SIZE,
    BadArgument,
    BarrierMismatch,
)

SEGMENT = 16 * PAGE_SIZE
ROUNDS = 3
EXTREMES = (0, 1, -1, 0x7FFF_FFFF, -0x8000_0000, 12345, -54321)


def pattern(key: int, size: int) -> bytes:
    """Bytes that differ for each key and place."""
    return bytes((key * 29 + place * 13 + (place >> 8)) & 0xFF for place in range(size))


def start(gasnet: Any, *handlers: Any, size: int = SEGMENT) -> Sequence[int]:
    gasnet.init()
    indices: Sequence[int] = gasnet.attach(handlers, size)
    return indices


def sizes(limit: int) -> list[int]:
    """Payloads: none, around powers of two, the most there may be."""
    near = {0, 1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 511, 512, 1000, 4096, limit - 1, limit}
    return sorted(size for size in near if 0 <= size <= min(limit, SEGMENT // 4))


def raises(kind: type[BaseException], call: Callable[..., Any], *arguments: Any) -> str:
    """What a call that has to fail says."""
    try:
        call(*arguments)
    except kind as problem:
        return str(problem)
    raise AssertionError(f"{call} did not raise {kind.__name__}")


# --- active messages (testam, testcore)


def short_messages(gasnet: Any) -> None:
    """All numbers of arguments, and what fits them; replies bring back what was sent."""
    got: list[tuple[int, ...]] = []

    def ask(token: Any, payload: memoryview, *arguments: int) -> None:
        assert not payload
        assert gasnet.am_get_msg_source(token) == token.source
        gasnet.am_reply_short(token, answer, *arguments)

    def answer(_token: Any, payload: memoryview, *arguments: int) -> None:
        assert not payload
        got.append(arguments)

    start(gasnet, ask, answer)
    assert gasnet.am_max_args() == 16
    for node in range(gasnet.nodes()):
        got.clear()
        sent = [tuple(EXTREMES[k % 7] for k in range(count)) for count in range(17)]
        for arguments in sent:
            gasnet.am_request_short(node, ask, *arguments)
        gasnet.block_until(lambda: len(got) == 17)
        assert sorted(got, key=len) == sent
    gasnet.barrier()


def medium_messages(gasnet: Any) -> None:
    """Payloads of all sizes to all ranks and back; each is its handler's alone."""
    got: dict[int, bytes] = {}

    def ask(token: Any, payload: memoryview, key: int) -> None:
        data = bytes(payload)
        payload[:] = bytes(len(payload))  # it is this handler's to spoil
        gasnet.am_reply_medium(token, answer, data[::-1], key)

    def answer(_token: Any, payload: memoryview, key: int) -> None:
        assert key not in got
        got[key] = bytes(payload)

    start(gasnet, ask, answer)
    sent = {}
    for node in range(gasnet.nodes()):
        for size in sizes(gasnet.am_max_medium()):
            key = len(sent)
            sent[key] = pattern(key, size)
            source = bytearray(sent[key])
            gasnet.am_request_medium(node, ask, source, key)
            source[:] = bytes(size)  # it may be changed by now
    gasnet.block_until(lambda: len(got) == len(sent))
    assert got == {key: data[::-1] for key, data in sent.items()}
    gasnet.barrier()


def long_messages(gasnet: Any) -> None:
    """Payloads are in the segment when the handler runs, and nothing beside them is touched."""
    _long(gasnet, gasnet.am_request_long)


def long_async_messages(gasnet: Any) -> None:
    """The same, with a source that has to stay until the reply is there."""
    _long(gasnet, gasnet.am_request_long_async)


def _long(gasnet: Any, request: Callable[..., None]) -> None:
    done: list[int] = []
    room = SEGMENT // 4

    def ask(token: Any, payload: memoryview, key: int, offset: int) -> None:
        assert bytes(payload) == pattern(key, len(payload))
        memory = gasnet.segment().memory
        assert bytes(memory[offset : offset + len(payload)]) == pattern(key, len(payload))
        assert not any(memory[offset + len(payload) : offset + len(payload) + 8])
        memory[offset : offset + len(payload)] = bytes(len(payload))
        gasnet.am_reply_long(token, answer, pattern(key + 1, len(payload)), 2 * room, key)

    def answer(_token: Any, payload: memoryview, key: int) -> None:
        assert bytes(payload) == pattern(key + 1, len(payload))
        done.append(key)

    start(gasnet, ask, answer)
    right = (gasnet.mynode() + 1) % gasnet.nodes()
    limit = min(gasnet.am_max_long_request(), gasnet.am_max_long_reply())
    for key, size in enumerate(sizes(limit)):
        source = bytearray(pattern(key, size))
        request(right, ask, source, room // 2 + 3, key, room // 2 + 3)
        if request == gasnet.am_request_long:
            source[:] = bytes(size)
        gasnet.block_until(lambda key=key: key in done)
        if request == gasnet.am_request_long_async:
            assert source == pattern(key, size)
    gasnet.barrier()


def requests_both_ways(gasnet: Any) -> None:
    """Ping-pong by requests: nobody replies, so all credits come back hidden."""
    came: list[int] = []

    def ball(_token: Any, _payload: memoryview, number: int) -> None:
        came.append(number)

    start(gasnet, ball)
    me, ranks = gasnet.mynode(), gasnet.nodes()
    for number in range(4 * ROUNDS):
        gasnet.am_request_short((me + 1) % ranks, ball, number)
        gasnet.block_until(lambda number=number: number in came)
    assert sorted(came) == list(range(4 * ROUNDS))
    gasnet.barrier()


# --- credits


def flood_without_replies(gasnet: Any) -> None:
    """All ranks flood one, which answers nothing: as many arrive as were sent, each once."""
    came: list[tuple[int, int]] = []

    def take(token: Any, payload: memoryview, number: int) -> None:
        assert bytes(payload) == pattern(number, len(payload))
        came.append((token.source, number))

    start(gasnet, take)
    each = 30
    limit = gasnet.am_max_medium()
    for number in range(each):
        gasnet.am_request_medium(0, take, pattern(number, number * 7 % limit), number)
    if gasnet.mynode() == 0:
        gasnet.block_until(lambda: len(came) == each * gasnet.nodes())
        assert len(set(came)) == each * gasnet.nodes()
    gasnet.barrier()


def full_bisection(gasnet: Any) -> None:
    """Everybody asks everybody at once, answered or not: no deadlock, nothing lost."""
    answered: list[int] = []
    asked: list[int] = []

    def ask(token: Any, _payload: memoryview, number: int) -> None:
        asked.append(number)
        if number % 2:
            gasnet.am_reply_short(token, answer, number)

    def answer(_token: Any, _payload: memoryview, number: int) -> None:
        answered.append(number)

    start(gasnet, ask, answer)
    ranks, each = gasnet.nodes(), 16
    for number in range(each):
        for node in range(ranks):
            gasnet.am_request_short((gasnet.mynode() + node) % ranks, ask, number)
    gasnet.block_until(lambda: len(asked) == each * ranks and len(answered) == each * ranks // 2)
    gasnet.barrier()
    assert len(asked) == each * ranks
    assert len(answered) == each * ranks // 2


# --- put and get (testsmall, testlarge, testalign)


def blocking_transfers(gasnet: Any) -> None:
    """What was put is what is got, at any alignment, and its neighbours are as they were."""
    start(gasnet)
    right = (gasnet.mynode() + 1) % gasnet.nodes()
    for number, size in enumerate(sizes(SEGMENT // 4)):
        for offset in (64, 67 + number % 4):
            data = pattern(number, size)
            gasnet.memset(right, offset - 8, 0xEE, size + 16)
            gasnet.put(right, offset, data)
            back = bytearray(size + 16)
            gasnet.get(back, right, offset - 8)
            assert back == b"\xee" * 8 + data + b"\xee" * 8, (size, offset)
            part = bytearray(max(0, size - 3))
            gasnet.get_bulk(part, right, offset + size - len(part))
            assert part == data[size - len(part) :]
    gasnet.barrier()


def explicit_handles(gasnet: Any) -> None:
    """Many at once, synced one by one, some, all, in any order."""
    start(gasnet)
    right = (gasnet.mynode() + 1) % gasnet.nodes()
    count, size = 20, 200
    sources = [bytearray(pattern(number, size)) for number in range(count)]
    handles = []
    for number, source in enumerate(sources):
        handles.append(gasnet.put_nb(right, number * size, source))
        source[:] = bytes(size)  # not bulk: it may be changed
    gasnet.wait_syncnb_all(handles)
    assert handles == [INVALID_HANDLE] * count
    back = [bytearray(size) for _ in range(count)]
    handles = [gasnet.get_nb(memory, right, n * size) for n, memory in enumerate(back)]
    left = {number for number, handle in enumerate(handles) if handle is not INVALID_HANDLE}
    while left:
        found = gasnet.wait_syncnb_some(handles)
        assert found
        assert left.issuperset(found)
        for number in found:
            assert back[number] == pattern(number, size)
        left -= set(found)
    assert gasnet.wait_syncnb_some(handles) == []
    assert gasnet.try_syncnb_all(handles)
    handle = gasnet.put_nb_bulk(right, 7, pattern(1, size))
    while not gasnet.try_syncnb(handle):
        pass
    gasnet.barrier()


def implicit_operations(gasnet: Any) -> None:
    """Gets and puts are waited for apart and together; regions apart from both."""
    start(gasnet)
    right = (gasnet.mynode() + 1) % gasnet.nodes()
    count, size = 16, 96
    for number in range(count):
        source = bytearray(pattern(number, size))
        gasnet.put_nbi(right, number * size, source)
        source[:] = bytes(size)
    gasnet.wait_syncnbi_puts()
    assert gasnet.try_syncnbi_all()
    back = [bytearray(size) for _ in range(count)]
    gasnet.begin_nbi_accessregion()
    for number in range(0, count, 2):
        gasnet.get_nbi(back[number], right, number * size)
    handle = gasnet.end_nbi_accessregion()
    for number in range(1, count, 2):
        gasnet.get_nbi_bulk(back[number], right, number * size)
    gasnet.wait_syncnbi_gets()
    assert all(back[number] == pattern(number, size) for number in range(1, count, 2))
    gasnet.wait_syncnb(handle)
    assert all(back[number] == pattern(number, size) for number in range(0, count, 2))
    keep = [pattern(number + 3, size) for number in range(count)]
    for number, source in enumerate(keep):
        gasnet.put_nbi_bulk(right, number * size, source)
    while not gasnet.try_syncnbi_puts():
        pass
    gasnet.get(back[0], right, 0)
    assert back[0] == keep[0]
    gasnet.wait_syncnbi_all()
    gasnet.barrier()


def large_transfers(gasnet: Any) -> None:
    """Of sizes around every cut-over there is, in and out of the segment."""
    most = gasnet_room(gasnet)
    right = (gasnet.mynode() + 1) % gasnet.nodes()
    for size in (127, 128, 129, 4095, 4096, 4097, 8191, 8192, 8193, most // 2 - 1):
        if size >= most // 2:
            continue
        data = pattern(size, size)
        gasnet.put_nbi_bulk(right, 0, data)
        gasnet.wait_syncnbi_all()
        inside = gasnet.segment().memory[most // 2 : most // 2 + size]
        outside = bytearray(size)
        gasnet.wait_syncnb_all([gasnet.get_nb(inside, right, 0), gasnet.get_nb(outside, right, 0)])
        assert bytes(inside) == data == outside, size
        gasnet.put(right, 1, inside)
        gasnet.get_bulk(outside, right, 1)
        assert outside == data
        source = bytearray(data)
        handle = gasnet.put_nb(right, 0, source)
        source[:] = bytes(size)
        gasnet.wait_syncnb(handle)
        gasnet.get(outside, right, 0)
        assert outside == data
        gasnet.barrier()
    gasnet.barrier()


def gasnet_room(gasnet: Any) -> int:
    """Begin with a segment for large transfers. Returns its size."""
    gasnet.init()
    most = min(gasnet.get_max_global_segment_size(), 5 * PAGE_SIZE)
    gasnet.attach([], most)
    return most


def values(gasnet: Any) -> None:
    """Numbers of 1 to 8 bytes (testval, but that what does not fit is refused)."""
    start(gasnet)
    right = (gasnet.mynode() + 1) % gasnet.nodes()
    number = 0xFEDC_BA98_7654_3210
    for size in range(1, 9):
        cut = number & ((1 << 8 * size) - 1)
        gasnet.put_val(right, 8, 0)
        gasnet.put_val(right, 8, cut, size)
        assert gasnet.get_val(right, 8) == cut
        raises(BadArgument, gasnet.put_val, right, 8, 1 << 8 * size, size)
        handle = gasnet.put_nb_val(right, 32, cut, size)
        gasnet.wait_syncnb(handle)
        gasnet.put_nbi_val(right, 64, -1, size)
        gasnet.wait_syncnbi_puts()
        handles = [gasnet.get_nb_val(right, 32, size), gasnet.get_nb_val(right, 64, size)]
        assert gasnet.wait_syncnb_valget(handles[1]) == (1 << 8 * size) - 1
        assert gasnet.wait_syncnb_valget(handles[0]) == cut
    for size in (0, 9, -1):
        raises(BadArgument, gasnet.get_val, right, 0, size)
    gasnet.barrier()


def filling(gasnet: Any) -> None:
    """memset in all forms, and what stands around stays (testmemset)."""
    start(gasnet)
    right = (gasnet.mynode() + 1) % gasnet.nodes()
    for size in (0, 1, 9, 1000):
        gasnet.memset(right, 0, 0x11, size + 8)
        handle = gasnet.memset_nb(right, 4, 0x22, size)
        gasnet.wait_syncnb(handle)
        gasnet.memset_nbi(right, 2000, 0x33, size)
        gasnet.wait_syncnbi_puts()
        back = bytearray(size + 8)
        gasnet.get(back, right, 0)
        assert back == b"\x11" * 4 + b"\x22" * size + b"\x11" * 4
        back = bytearray(size)
        gasnet.get(back, right, 2000)
        assert back == b"\x33" * size
    raises(BadArgument, gasnet.memset, right, 0, 256, 1)
    raises(BadArgument, gasnet.memset, right, 0, 0, -1)
    gasnet.barrier()


def own_rank(gasnet: Any) -> None:
    """What concerns the own rank is done when the call returns."""
    log: list[str] = []

    def ask(token: Any, payload: memoryview, number: int) -> None:
        log.append(f"asked {number}")
        payload[:] = bytes(len(payload))
        gasnet.am_reply_medium(token, answer, b"abc", number)
        log.append("replied")

    def answer(token: Any, payload: memoryview, number: int) -> None:
        assert not token.is_request
        log.append(f"{bytes(payload).decode()} {number}")

    start(gasnet, ask, answer)
    me = gasnet.mynode()
    source = bytearray(b"source")
    gasnet.am_request_medium(me, ask, source, 5)
    assert log == ["asked 5", "abc 5", "replied"]
    assert source == b"source"
    assert gasnet.put_nb(me, 3, b"xyz") is INVALID_HANDLE
    back = bytearray(3)
    assert gasnet.get_nb(back, me, 3) is INVALID_HANDLE
    assert back == b"xyz"
    gasnet.wait_syncnb(INVALID_HANDLE)
    gasnet.put_nbi(me, 0, b"q")
    gasnet.begin_nbi_accessregion()
    gasnet.get_nbi(back, me, 0)
    assert gasnet.end_nbi_accessregion() is INVALID_HANDLE
    assert back == b"q\0\0"
    assert gasnet.memset_nb(me, 0, 1, 2) is INVALID_HANDLE
    assert gasnet.wait_syncnb_valget(gasnet.get_nb_val(me, 0, 3)) == 0x000101
    gasnet.am_request_long(me, ask, b"long", 100, 6)
    assert bytes(gasnet.segment().memory[100:104]) == bytes(4)
    gasnet.barrier()


# --- segments


def segments(gasnet: Any) -> None:
    """Each rank has its own size; addresses and sizes are known to all; the last byte counts."""
    gasnet.init()
    me, ranks = gasnet.mynode(), gasnet.nodes()
    local, everywhere = gasnet.get_max_local_segment_size(), gasnet.get_max_global_segment_size()
    assert local >= everywhere >= (ranks + 1) * PAGE_SIZE
    gasnet.attach([], (me + 1) * PAGE_SIZE)
    info = gasnet.get_segment_info()
    assert [known.size for known in info] == [(rank + 1) * PAGE_SIZE for rank in range(ranks)]
    own = gasnet.segment()
    assert (own.address, own.size, len(own)) == (info[me].address, info[me].size, own.size)
    for node in range(ranks):
        end = info[node].size
        gasnet.put(node, end - 8 * (me + 1), bytes([me + 1]) * 8)
        back = bytearray(9)
        for offset, size in ((end - 8, 9), (end, 1), (-1, 1), (end + 1, 0), (1 << 40, 1)):
            raises(BadArgument, gasnet.get, memoryview(back)[:size], node, offset)
            raises(BadArgument, gasnet.put, node, offset, bytes(size))
            raises(BadArgument, gasnet.put_nbi, node, offset, bytes(size))
            raises(BadArgument, gasnet.memset, node, offset, 0, size)
        gasnet.put(node, end, b"")  # nothing, at the end: legal
    gasnet.barrier()
    for rank in range(ranks):
        last = own.size - 8 * (rank + 1)
        assert bytes(own.memory[last : last + 8]) == bytes([rank + 1]) * 8
    raises(BadArgument, gasnet.put, ranks, 0, b"a")
    raises(BadArgument, gasnet.put, -1, 0, b"a")
    gasnet.barrier()


# --- barriers (testbarrier, testbarrierconf)


def barriers(gasnet: Any) -> None:
    """Nobody leaves before all have entered; names are compared, but not with no name."""
    start(gasnet)
    me, ranks = gasnet.mynode(), gasnet.nodes()
    for number in range(ROUNDS):
        gasnet.put_val((me + 1) % ranks, 8 * number, number + 1)
        if (me + number) % 2:
            gasnet.barrier_notify(number, 0)
            while not gasnet.barrier_try(number, 0):
                pass
        else:
            gasnet.barrier(0)  # anonymous among named ones
        assert int.from_bytes(gasnet.segment().memory[8 * number : 8 * number + 8], "little")
        gasnet.barrier(-number, 0)
    gasnet.barrier_notify()
    raises(BadArgument, gasnet.barrier_notify)
    gasnet.barrier_wait()
    raises(BadArgument, gasnet.barrier_wait)
    raises(BadArgument, gasnet.barrier_try)


def barrier_mismatches(gasnet: Any) -> None:
    """A name that differs, or a rank that says so, fails the barrier everywhere, and only that."""
    start(gasnet)
    me, ranks = gasnet.mynode(), gasnet.nodes()
    for odd in range(ranks):
        if ranks > 1:
            raises(BarrierMismatch, gasnet.barrier, int(me == odd), 0)
        flags = BARRIERFLAG_MISMATCH if me == odd else BARRIERFLAG_ANONYMOUS
        raises(BarrierMismatch, gasnet.barrier, 0, flags)
        gasnet.barrier(9, 0)
        gasnet.barrier_notify(4, 0)
        if me == odd:
            raises(BarrierMismatch, gasnet.barrier_wait, 5, 0)  # its own affair
        else:
            gasnet.barrier_wait(4, 0)
    gasnet.barrier()


# --- locks and what is not allowed (testhsl)


def locks(gasnet: Any) -> None:
    """A lock is held by one, handlers may take it, and its holder sends nothing."""
    seen: list[str] = []
    gasnet.init()
    lock, other = gasnet.hsl(), gasnet.hsl()

    def ask(token: Any, _payload: memoryview, *_: int) -> None:
        with lock:
            seen.append(raises(BadArgument, gasnet.am_reply_short, token, answer))
            assert other.trylock()
            other.unlock()
        gasnet.hold_interrupts()
        gasnet.resume_interrupts()
        gasnet.am_reply_short(token, answer)

    def answer(_token: Any, _payload: memoryview, *_: int) -> None:
        with lock:
            seen.append("answered")

    gasnet.attach([ask, answer], PAGE_SIZE)
    right = (gasnet.mynode() + 1) % gasnet.nodes()
    gasnet.am_request_short(right, ask)
    gasnet.block_until(lambda: "answered" in seen)
    lock.lock()
    raises(BadArgument, lock.lock)
    raises(BadArgument, lock.trylock)
    raises(BadArgument, lock.destroy)
    raises(BadArgument, other.unlock)
    for call in _communication(gasnet, right, ask):
        raises(BadArgument, *call)
    lock.unlock()
    raises(BadArgument, lock.unlock)
    gasnet.hold_interrupts()
    raises(BadArgument, gasnet.hold_interrupts)
    for call in _communication(gasnet, right, ask):
        raises(BadArgument, *call)
    gasnet.resume_interrupts()
    raises(BadArgument, gasnet.resume_interrupts)
    gasnet.barrier()  # no handler needs it any more
    other.destroy()
    raises(BadArgument, other.lock)
    raises(BadArgument, other.destroy)
    gasnet.barrier()


def _communication(gasnet: Any, node: int, handler: Any) -> list[tuple[Any, ...]]:
    """One call of each kind that communicates or waits."""
    return [
        (gasnet.am_request_short, node, handler),
        (gasnet.am_request_medium, node, handler, b"a"),
        (gasnet.am_request_long, node, handler, b"a", 0),
        (gasnet.am_request_long_async, node, handler, b"a", 0),
        (gasnet.am_poll,),
        (gasnet.block_until, lambda: True),
        (gasnet.put, node, 0, b"a"),
        (gasnet.put_nb, node, 0, b"a"),
        (gasnet.put_nbi, node, 0, b"a"),
        (gasnet.get, bytearray(1), node, 0),
        (gasnet.get_nb, bytearray(1), node, 0),
        (gasnet.get_nbi, bytearray(1), node, 0),
        (gasnet.put_val, node, 0, 1),
        (gasnet.get_val, node, 0),
        (gasnet.memset, node, 0, 0, 1),
        (gasnet.wait_syncnb, INVALID_HANDLE),
        (gasnet.try_syncnb_all, []),
        (gasnet.wait_syncnbi_all,),
        (gasnet.try_syncnbi_gets,),
        (gasnet.begin_nbi_accessregion,),
        (gasnet.end_nbi_accessregion,),
        (gasnet.barrier_notify,),
        (gasnet.barrier_wait,),
        (gasnet.barrier_try,),
    ]


def forbidden_in_handlers(gasnet: Any) -> None:
    """A handler may reply, once, to who asked; nothing else gets as far as the network."""
    refused: list[str] = []
    tokens: list[Any] = []

    def ask(token: Any, _payload: memoryview, *_: int) -> None:
        for call in _communication(gasnet, right, ask):
            refused.append(raises(BadArgument, *call))
        raises(BadArgument, gasnet.am_reply_short, token, 3)
        raises(BadArgument, gasnet.am_reply_short, token, answer, 1 << 31)
        raises(BadArgument, gasnet.am_reply_long, token, answer, b"a", SEGMENT)
        gasnet.am_reply_short(token, answer)
        assert "already" in raises(BadArgument, gasnet.am_reply_short, token, answer)
        tokens.append(token)

    def answer(token: Any, _payload: memoryview, *_: int) -> None:
        refused.append(raises(BadArgument, gasnet.am_reply_short, token, answer))
        refused.append(raises(BadArgument, gasnet.am_request_short, right, ask))
        tokens.append(token)

    start(gasnet, ask, answer)
    right = (gasnet.mynode() + 1) % gasnet.nodes()
    gasnet.am_request_short(right, ask)
    gasnet.block_until(lambda: len(tokens) == 2)
    for token in tokens:
        raises(BadArgument, gasnet.am_reply_short, token, answer)
        raises(BadArgument, gasnet.am_get_msg_source, token)
    assert len(refused) == len(_communication(gasnet, right, ask)) + 2
    gasnet.barrier()


def _mistaken(gasnet: Any, node: int) -> list[tuple[Any, ...]]:
    """Calls with what is no number, no buffer of numbers, no function or no handle."""
    return [
        (gasnet.put, node, "a", b"x"),
        (gasnet.put, node, 1.0, b"x"),
        (gasnet.put, "0", 0, b"x"),
        (gasnet.put_nb, node, 0, (py_object * 1)(gasnet)),
        (gasnet.am_request_short, None, 200),
        (gasnet.memset, node, 0, 0, "a"),
        (gasnet.memset, node, 0, None, 1),
        (gasnet.put_val, node, 0, 1 << 64),
        (gasnet.put_val, node, 0, 300, 1),
        (gasnet.put_nbi_val, node, 0, -129, 1),
        (gasnet.put_nb_val, node, 0, 1.5),
        (gasnet.block_until, None),
        (gasnet.exit, "x"),
        (gasnet.wait_syncnb, None),
        (gasnet.try_syncnb, 5),
        (gasnet.wait_syncnb_all, 5),
        (gasnet.try_syncnb_some, [None]),
        (gasnet.wait_syncnb_valget, None),
    ]


def wrong_arguments(gasnet: Any) -> None:
    """What cannot be meant is refused before anything is sent."""

    def take(_token: Any, _payload: memoryview, *_: int) -> None:
        raise AssertionError("something was sent")

    (index,) = start(gasnet, (200, take))
    assert index == 200
    right = (gasnet.mynode() + 1) % gasnet.nodes()
    medium, long = gasnet.am_max_medium(), gasnet.am_max_long_request()
    raises(BadArgument, gasnet.am_request_short, right, 127)
    raises(BadArgument, gasnet.am_request_short, right, 256)
    raises(BadArgument, gasnet.am_request_short, right, print)
    raises(BadArgument, gasnet.am_request_short, gasnet.nodes(), take)
    raises(BadArgument, gasnet.am_request_short, right, take, *range(17))
    raises(BadArgument, gasnet.am_request_short, right, take, -(1 << 31) - 1)
    raises(BadArgument, gasnet.am_request_short, right, take, 1.5)
    raises(BadArgument, gasnet.am_request_medium, right, take, bytes(medium + 1))
    raises(BadArgument, gasnet.am_request_medium, right, take, "text")
    raises(BadArgument, gasnet.am_request_long, right, take, bytes(long + 1), 0)
    raises(BadArgument, gasnet.am_request_long, right, take, bytes(9), SEGMENT - 8)
    raises(BadArgument, gasnet.put, right, 0, memoryview(bytes(8))[::2])
    raises(BadArgument, gasnet.get, bytes(8), right, 0)
    raises(BadArgument, gasnet.barrier_notify, 1 << 40)
    raises(BadArgument, gasnet.barrier_notify, 0, 8)
    raises(BadArgument, gasnet.init)
    raises(BadArgument, gasnet.attach)
    raises(BadArgument, gasnet.end_nbi_accessregion)
    gasnet.begin_nbi_accessregion()
    raises(BadArgument, gasnet.begin_nbi_accessregion)
    raises(BadArgument, gasnet.wait_syncnbi_all)
    raises(BadArgument, gasnet.try_syncnbi_puts)
    gasnet.wait_syncnb(gasnet.end_nbi_accessregion())
    for call in _mistaken(gasnet, right):
        raises(BadArgument, *call)
    value = gasnet.get_nb_val(right, 0)
    raises(BadArgument, gasnet.wait_syncnb, value)
    raises(BadArgument, gasnet.try_syncnb_all, [value])
    assert gasnet.wait_syncnb_valget(value) == 0
    handle = gasnet.put_nb(right, 0, bytes(8))
    if gasnet.nodes() > 1:
        raises(BadArgument, gasnet.wait_syncnb_valget, handle)
        raises(BadArgument, gasnet.wait_syncnb_all, (handle,))
        raises(BadArgument, gasnet.wait_syncnb_all, [handle, handle])
        gasnet.wait_syncnb(handle)
        raises(BadArgument, gasnet.wait_syncnb, handle)
        raises(BadArgument, gasnet.try_syncnb_some, [handle])
    gasnet.barrier()


class Program(NamedTuple):
    """One of them.

    Attributes:
        run: it.
        follows: GASNet's test program.
        ranks: how many it is run on.
    """

    run: Callable[[Any], None]
    follows: str
    ranks: int = 3


PROGRAMS = {
    program.run.__name__: program
    for program in (
        Program(short_messages, "testam, testcore1"),
        Program(medium_messages, "testam, testcore2"),
        Program(long_messages, "testam"),
        Program(long_async_messages, "testam"),
        Program(requests_both_ways, "testam (ping-pong ReqReq)"),
        Program(flood_without_replies, "testam (flood one-way Req), credits", 4),
        Program(full_bisection, "testam (flood two-way Req), credits", 4),
        Program(blocking_transfers, "testsmall A, testalign", 2),
        Program(explicit_handles, "testsmall E/F, testgasnet"),
        Program(implicit_operations, "testsmall C/D, testgasnet"),
        Program(large_transfers, "testlarge A, B, C", 2),
        Program(values, "testval", 2),
        Program(filling, "testmemset", 2),
        Program(own_rank, "testgasnet (loopback)", 2),
        Program(segments, "testslice, segment limits", 4),
        Program(barriers, "testbarrier", 5),
        Program(barrier_mismatches, "testbarrierconf", 3),
        Program(locks, "testhsl", 2),
        Program(forbidden_in_handlers, "testcore3, rules of handlers", 2),
        Program(wrong_arguments, "testmisc, rules of arguments", 2),
    )
}
