"""Large eager messages of sm that their receiver reads in the sender's memory (`sm/lending.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from ompy import MPI
from ompy.frameworks.btl import (
    BTL_OWNERSHIP,
    NO_ORDER,
    BtlModule,
    Endpoint,
    ReceiveCallback,
)
from ompy.frameworks.btl_base.lent_payload import LentPayload
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess
from ompy_components.btl.sm.layout import FREE, READING, WITHDRAWN
from ompy_components.btl.sm.lending_choice import SOONEST, LendingChoice

from tests.sim.p2p.test_eager_blocks import module_of
from tests.support.effort import effort
from tests.support.worlds import virtual

TAG = 200  # nobody else's
LEAST = 5000  # bytes; a message of fewer lies in a record
SIZES = (LEAST - 1, LEAST, 20_000, 100_000)  # bytes; the last is near the eager limit


class Reader(ReceiveCallback):
    """Keeps what has come, and says how."""

    def __init__(self) -> None:
        self.came: list[tuple[str, bytes]] = []

    def received(self, module: BtlModule, endpoint: Endpoint, tag: int, data: memoryview) -> None:
        self.came.append(("block", bytes(data)))

    def lent(
        self,
        module: BtlModule,
        endpoint: Endpoint,
        tag: int,
        header: memoryview,
        payload: LentPayload,
    ) -> None:
        room = bytearray(payload.size)
        assert payload.read(memoryview(room))
        self.came.append(("lent", bytes(header) + bytes(room)))


def in_one_process(check: Callable[[Any, Any, Any, Reader], None], **settings: Any) -> None:
    """Call `check` with the modules of two ranks, the first one's endpoint, and the reader."""
    modules: dict[int, Any] = {}
    reader = Reader()

    def program(process: RankProcess) -> None:
        comm = world_of(process)
        modules[comm.rank] = module_of(process)
        if comm.rank == 1:
            process.context.active_messages.register(TAG, reader)
        comm.Barrier()
        if comm.rank == 0:
            check(modules[0], modules[1], modules[0].reach(process.context.procs[1]), reader)
        comm.Barrier()

    virtual(2, program, btl="self,sm", btl_sm_lend_least=LEAST, **settings)


@pytest.mark.parametrize("patience", [0, 1, 2, 3])
def test_every_order_of_looks(patience: int) -> None:
    """Whoever looks when, the message comes once, as it was while its memory was lent."""
    ways = set()

    def check(sender: Any, receiver: Any, endpoint: Any, reader: Reader) -> None:
        for steps in product("sr", repeat=6):
            memory = bytearray(Random("".join(steps)).randbytes(LEAST))
            before, reader.came = bytes(memory), []
            loan = sender.lend(endpoint, memoryview(memory), b"head", TAG)
            while loan is None:  # it is one in a block's turn
                loan = sender.lend(endpoint, memoryview(memory), b"head", TAG)
            for step in (*steps, *"rsrs"):
                (sender if step == "s" else receiver).poll()
                if loan.complete:
                    memory[:] = bytes(LEAST)  # it is the caller's again
            assert loan.complete
            ((way, data),) = reader.came
            assert data == b"head" + before
            ways.add(way)
        assert sender.lending.loans is None

    in_one_process(check, btl_sm_lend_patience=patience)
    assert ways == ({"lent", "block"} if patience else {"lent"})


@pytest.mark.parametrize("patience", [0, 2])
def test_a_receiver_that_may_not_read_says_so(patience: int) -> None:
    def check(sender: Any, receiver: Any, endpoint: Any, reader: Reader) -> None:
        receiver.reach(sender.context.me).copies = 0
        memory = memoryview(bytearray(b"x" * LEAST))
        loan = sender.lend(endpoint, memory, b"head", TAG)
        for module in (receiver, sender, receiver, sender, receiver):
            module.poll()
        assert loan.complete
        assert reader.came == [("block", b"head" + bytes(memory))]
        assert patience or not endpoint.lends, "it need not be asked again"

    in_one_process(check, btl_sm_lend_patience=patience)


@pytest.mark.parametrize("state", ["LENT", "READING"])
def test_a_receiver_that_has_ended_keeps_nobody(state: str) -> None:
    def check(sender: Any, receiver: Any, endpoint: Any, reader: Reader) -> None:
        loan = sender.lend(endpoint, memoryview(bytearray(LEAST)), b"head", TAG)
        words = sender.lending._memory.cast("Q")
        if state == "READING":
            words[loan.start >> 3] = READING
        sender.poll()
        assert not loan.complete
        endpoint.proc.departed = "is gone"
        sender.poll()
        assert loan.complete
        assert sender.lending.loans is None
        endpoint.proc.departed = ""
        words[loan.start >> 3] = FREE if state == "READING" else words[loan.start >> 3]
        receiver.poll()

    in_one_process(check, btl_sm_lend_patience=0)


def test_a_sender_that_has_ended_while_it_copied_keeps_back_nothing_else() -> None:
    def check(sender: Any, receiver: Any, endpoint: Any, reader: Reader) -> None:
        loan = sender.lend(endpoint, memoryview(bytearray(LEAST)), b"head", TAG)
        words = sender.lending._memory.cast("Q")
        words[loan.start >> 3] = WITHDRAWN
        behind = sender.alloc(endpoint, NO_ORDER, 6, BTL_OWNERSHIP)
        behind.segment[:] = b"behind"
        sender.send(endpoint, behind, TAG)
        receiver.poll()
        assert not reader.came, "the copy may come yet"
        receiver.reach(sender.context.me).proc.departed = "is gone"
        receiver.poll()
        assert reader.came == [("block", b"behind")]
        receiver.reach(sender.context.me).proc.departed = ""
        words[loan.start >> 3] = FREE
        sender.poll()
        assert loan.complete

    in_one_process(check)


def messages(chance: Random) -> Iterator[tuple[int, int, str, str]]:
    """Sizes, tags, ways to send, and ways to receive."""
    sends = ("Send", "Isend", "send", "persistent", "vector")
    receives = ("Recv", "Irecv", "any", "probe", "vector", "late")
    for tag in range(12):
        yield chance.choice(SIZES) // 8 * 8, tag, chance.choice(sends), chance.choice(receives)


def data_of(tag: int, size: int) -> np.ndarray:
    """What a message has."""
    return np.frombuffer(Random(f"{tag} {size}").randbytes(size), "u1").copy()


def send_all(comm: Any, peer: int, chance: Random) -> None:
    """Send, and write over what was sent as soon as that is allowed."""
    begun: list[tuple[Any, np.ndarray]] = []
    for size, tag, how, _ in messages(chance):
        data = data_of(tag, size)
        if how == "send":
            comm.send(data, peer, tag)
        elif how == "Isend":
            begun.append((comm.Isend(data, peer, tag), data))
            continue
        elif how == "persistent":
            request = comm.Send_init(data, peer, tag)
            request.Start()
            request.Wait()
            request.Free()
        elif how == "vector":
            wide = np.zeros((size, 2), "u1")
            wide[:, 0] = data
            column = MPI.BYTE.Create_vector(size, 1, 2).Commit()
            comm.Send([wide, 1, column], peer, tag)
            column.Free()
        else:
            getattr(comm, how)(data, peer, tag)
        data[:] = 0
    for request, data in begun:
        request.Wait()
        data[:] = 0


def receive_all(comm: Any, peer: int, chance: Random) -> None:
    """Receive all, in some order."""
    late = []
    for each in messages(chance):
        if each[3] == "late":
            late.append(each)
        else:
            receive(comm, peer, *each)
    for each in late:
        receive(comm, peer, *each)


def receive(comm: Any, peer: int, size: int, tag: int, sent: str, how: str) -> None:
    """Receive a message and compare it."""
    if sent == "send":
        got = comm.recv(source=peer, tag=tag)
    elif how == "vector":
        wide = np.zeros((size, 2), "u1")
        column = MPI.BYTE.Create_vector(size, 1, 2).Commit()
        comm.Recv([wide, 1, column], peer, tag)
        column.Free()
        got = wide[:, 0]
    else:
        got = np.zeros(size + 8 * (how == "any"), "u1")
        if how == "probe":
            status = MPI.Status()
            comm.Probe(peer, tag, status)
            assert status.Get_count(MPI.BYTE) == size
        if how == "Irecv":
            comm.Irecv(got, peer, tag).Wait()
        else:
            comm.Recv(got, MPI.ANY_SOURCE if how == "any" else peer, tag)
        got = got[:size]
    assert np.array_equal(got, data_of(tag, size)), f"{size} bytes, tag {tag}, {sent}, {how}"


@pytest.mark.parametrize("patience", [0, 2, 100])
@pytest.mark.parametrize("seed", range(effort(8)))
def test_programs(patience: int, seed: int) -> None:
    """What is received is what was there before the sender might write again."""

    def program(process: RankProcess) -> None:
        comm = world_of(process)
        peer = comm.rank ^ 1
        for turn in range(3):
            chance = Random(f"{seed} {turn} {comm.rank // 2}")
            if comm.rank % 2 == turn % 2:
                send_all(comm, peer, chance)
            else:
                receive_all(comm, peer, chance)

    settings = {"btl_sm_lend_least": LEAST, "btl_sm_lend_patience": patience}
    virtual(4, program, seed=seed, btl="self,sm", **settings)


def test_a_message_that_is_too_long_is_truncated() -> None:
    def program(process: RankProcess) -> None:
        comm = world_of(process)
        if comm.rank:
            comm.Send(data_of(1, 20_000), 0, 1)
            return
        room = np.zeros(6000, "u1")
        status = MPI.Status()
        comm.Set_errhandler(MPI.ERRORS_RETURN)
        with pytest.raises(MPI.Exception) as caught:
            comm.Recv(room, 1, 1, status)
        assert caught.value.Get_error_class() == MPI.ERR_TRUNCATE
        assert np.array_equal(room, data_of(1, 20_000)[:6000])

    virtual(2, program, btl="self,sm", btl_sm_lend_least=LEAST, btl_sm_lend_patience=0)


def test_the_better_way_is_chosen_and_the_other_one_tried_now_and_then() -> None:
    """Lent messages take 1 us, those in blocks 3; then 5 and 3; then 1 and 3 again."""
    choice, size = LendingChoice(), 20_000
    for lent_us, lends in ((1, True), (5, False), (1, True)):
        ways = []
        for _ in range(400):
            lend = choice.next()
            ways.append(lend)
            choice.took(lend, 1000 * lent_us + 700 if lend else 3000, size)
        assert choice.lends is lends
        better = [way is lends for way in ways[-200:]]
        assert 0 < better.count(False) < 10, "the other way is tried, and seldom"
        assert ways[-200:].count(lends) > 190
    assert SOONEST < 200
