"""init, attach, exit: in what order, and how a job ends."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from ompy.engine.virtual_engine import RankFailed
from ompy.frameworks.conduit import CLIENT_HANDLERS
from ompy.gasnet import PAGE_SIZE, BadArgument, NotInitialised

from tests.support.effort import THOROUGH
from tests.support.gasnet_programs import raises
from tests.support.gasnet_worlds import CHOSEN, CONDUITS, Ended, Under, run

EVERY = pytest.mark.parametrize("under", CHOSEN.values(), ids=CHOSEN)


def never(gasnet: Any) -> None:
    """Wait for what does not come."""
    gasnet.init()
    gasnet.attach()
    gasnet.block_until(lambda: False)


@EVERY
def test_order(under: Under) -> None:
    def program(gasnet: Any) -> None:
        for early in (gasnet.mynode, gasnet.nodes, gasnet.attach, gasnet.exit, gasnet.am_poll):
            raises(NotInitialised, early)
        assert not gasnet.is_init()
        raises(BadArgument, gasnet.init, "fast")
        raises(NotInitialised, gasnet.set_waitmode, 0)
        gasnet.init("par")
        assert gasnet.is_init()
        for mode in (-1, 3, "spin", 0.5):
            raises(BadArgument, gasnet.set_waitmode, mode)
        gasnet.set_waitmode(1)
        assert gasnet.nodes() == 2
        assert gasnet.mynode() in gasnet.neighbours()
        assert len(gasnet.get_node_info()) == 2
        for early in (gasnet.segment, gasnet.get_segment_info, gasnet.am_poll, gasnet.barrier):
            raises(NotInitialised, early)
        raises(NotInitialised, gasnet.put, 0, 0, b"a")
        for size in (1, PAGE_SIZE + 1, -PAGE_SIZE):
            raises(BadArgument, gasnet.attach, (), size)
        too_large = (gasnet.get_max_local_segment_size() // PAGE_SIZE + 1) * PAGE_SIZE
        raises(BadArgument, gasnet.attach, (), too_large)
        for wrong in ([(127, print)], [(256, print)], [(130, print), (130, repr)], [3], [(0, 3)]):
            raises(BadArgument, gasnet.attach, wrong)
        raises(BadArgument, gasnet.attach, [print] * (len(CLIENT_HANDLERS) + 1))
        first = CLIENT_HANDLERS[0]
        chosen = gasnet.attach([print, (first + 1, repr), (0, str), (255, len)])
        assert chosen == [first, first + 1, first + 2, 255]
        gasnet.barrier()
        gasnet.finish()
        assert not gasnet.is_init()
        raises(NotInitialised, gasnet.put, 0, 0, b"a")
        gasnet.finish()

    run(under, 2, program)


@EVERY
@pytest.mark.parametrize("code", [0, 1, 255])
def test_all_exit(under: Under, code: int) -> None:
    def program(gasnet: Any) -> None:
        gasnet.init()
        gasnet.attach()
        gasnet.barrier()
        gasnet.exit(code)

    assert run(under, 4, program) == [Ended(code)] * 4


@EVERY
@pytest.mark.parametrize("who", range(3))
def test_one_exits(under: Under, who: int) -> None:
    """The others wait for ever, and are ended with its code."""

    def leave(gasnet: Any) -> None:
        gasnet.init()
        gasnet.attach()
        gasnet.exit(7)

    programs = [leave if rank == who else never for rank in range(3)]
    assert run(under, 3, programs) == [Ended(7)] * 3


@EVERY
def test_exit_before_attach(under: Under) -> None:
    def program(gasnet: Any) -> None:
        gasnet.init()
        gasnet.exit(9)

    assert run(under, 3, program) == [Ended(9)] * 3


@EVERY
def test_exit_in_a_handler(under: Under) -> None:
    """The request is answered for, the poll ends, and so does the job."""

    def program(gasnet: Any) -> None:
        def end(_token: Any, _payload: memoryview, code: int) -> None:
            gasnet.exit(code)

        gasnet.init()
        gasnet.attach([end])
        if gasnet.mynode() == 1:
            gasnet.am_request_short(2, end, 5)
        gasnet.block_until(lambda: False)

    assert run(under, 3, program) == [Ended(5)] * 3


@EVERY
def test_return_from_main(under: Under) -> None:
    """As exit(0): who needs a while longer has it."""

    def program(gasnet: Any) -> str:
        gasnet.init()
        gasnet.attach()
        gasnet.barrier()
        gasnet._engine.spend(gasnet.mynode() * 1_000_000)
        return "did all it had to do"

    assert run(under, 3, program) == ["did all it had to do"] * 3


@EVERY
@pytest.mark.parametrize("waits", ["barrier", "block_until"])
def test_a_rank_that_is_ended_in_a_barrier_says_so(
    under: Under, waits: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The job's code is 0; who only waits for a condition of its own may have meant that."""

    def program(gasnet: Any) -> None:
        gasnet.init()
        gasnet.attach()
        gasnet.barrier()
        if gasnet.mynode() == 1:
            gasnet.exit(0)
        gasnet.barrier() if waits == "barrier" else gasnet.block_until(lambda: False)

    assert run(under, 3, program) == [Ended(0)] * 3
    said = capfd.readouterr().err
    wanted = "in the middle of an anonymous barrier: nothing has come from rank"
    assert said.count(wanted) == (2 if waits == "barrier" else 0), said


# each needs another rank, or what it polls
GASNET_WAITS: dict[str, Any] = {
    "barrier": lambda gasnet: gasnet.barrier(),
    "barrier_wait": lambda gasnet: (gasnet.barrier_notify(), gasnet.barrier_wait()),
    "put": lambda gasnet: gasnet.put(1, 0, bytes(8)),
    "get": lambda gasnet: gasnet.get(bytearray(8), 1, 0),
    "get_val": lambda gasnet: gasnet.get_val(1, 0, 8),
    "wait_syncnb": lambda gasnet: gasnet.wait_syncnb(gasnet.put_nb(1, 0, bytes(4096))),
    "wait_syncnbi_gets": lambda gasnet: (
        gasnet.get_nbi(bytearray(4096), 1, 0),
        gasnet.wait_syncnbi_gets(),
    ),
    "memset": lambda gasnet: gasnet.memset(1, 0, 0, 4096),
    "replies": lambda gasnet: [gasnet.am_request_short(1, 200) for _ in range(50)],
    "am_request_medium": lambda gasnet: gasnet.am_request_medium(1, 201, bytes(16)),
    "am_request_long": lambda gasnet: gasnet.am_request_long(1, 201, bytes(16), 0),
}


@EVERY
@pytest.mark.parametrize("code", [0, 7])
def test_whatever_waits_for_a_rank_that_has_left_is_ended(under: Under, code: int) -> None:
    """With the code of the rank that has left, before or after the wait begins."""

    def program(gasnet: Any, wait: Any, late: int) -> None:
        def answer(token: Any, _payload: memoryview) -> None:
            gasnet.am_reply_short(token, 201)

        gasnet.init()
        gasnet.attach([(200, answer), (201, lambda *_: None)], PAGE_SIZE)
        gasnet.barrier()
        if gasnet.mynode() == 1:
            gasnet.exit(code)
        gasnet._engine.spend(late)
        wait(gasnet)
        gasnet.block_until(lambda: False)

    for name, wait in GASNET_WAITS.items():
        for late in (1, 10_000_000) if THOROUGH else (10_000_000,):
            found = run(under, 3, partial(program, wait=wait, late=late))
            assert found == [Ended(code)] * 3, (name, late)


@EVERY
def test_a_handler_that_raises(under: Under) -> None:
    """What it raises leaves the call that polled."""

    def program(gasnet: Any) -> None:
        def fail(_token: Any, _payload: memoryview) -> None:
            raise LookupError("out of the handler")

        gasnet.init()
        gasnet.attach([fail])
        if gasnet.mynode():
            gasnet.am_request_short(0, fail)
        gasnet.barrier()

    with pytest.raises(RankFailed, match="rank 0: LookupError: out of the handler"):
        run(under, 2, program)


@EVERY
def test_an_unknown_handler(under: Under) -> None:
    def program(gasnet: Any) -> None:
        gasnet.init()
        if gasnet.mynode():
            gasnet.attach([(200, print)])
            gasnet.am_request_short(0, 200)
        else:
            gasnet.attach()
        gasnet.barrier()

    with pytest.raises(RankFailed, match="node 1 sent a message to handler 200, which node 0"):
        run(under, 2, program)


@EVERY
def test_a_lock_kept_by_a_handler(under: Under) -> None:
    def program(gasnet: Any) -> None:
        lock = gasnet.hsl()

        def keep(_token: Any, _payload: memoryview) -> None:
            lock.lock()

        gasnet.init()
        gasnet.attach([keep])
        if gasnet.mynode():
            gasnet.am_request_short(0, keep)
        gasnet.barrier()

    with pytest.raises(RankFailed, match="has returned with a handler-safe lock held"):
        run(under, 2, program)


def test_a_mismatch_of_ends() -> None:
    """The largest code is the job's, whoever gave it."""

    def program(gasnet: Any) -> None:
        gasnet.init()
        gasnet.attach()
        if gasnet.mynode() == 3:
            gasnet.block_until(lambda: False)
        gasnet.exit(gasnet.mynode())

    assert run(CONDUITS["loopback"], 4, program) == [Ended(2)] * 4
