"""The known bugs and limits of the original bfo (reference openmpi.md 4.14), one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from struct import Struct
from threading import Thread
from typing import Any

import pytest
from ompy.data.constants import ANY_SOURCE
from ompy.data.convertor import ContiguousConvertor
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.engine.virtual_engine import Deadlock, RankFailed
from ompy.frameworks.btl import GET, PUT
from ompy.frameworks.pml import STANDARD, SYNCHRONOUS
from ompy_components.pml.bfo import headers
from ompy_components.pml.bfo.failed_message import SendMessage
from ompy_components.pml.bfo.rail_events import Rails
from ompy_components.pml.bfo.receiving import BfoReceiving
from ompy_components.pml.bfo.sending import BfoSending
from ompy_components.pml.ob1 import headers as ob1_headers
from ompy_components.pml.ob1.headers import ACK, FIN, FRAG
from ompy_components.pml.ob1.headers import PUT as PUT_TAG

from tests.sim.ob1.programs import exchange, one_message
from tests.sim.p2p.programs import buffer, pattern, send, world
from tests.support.failing_rails import US, WRITE, FailingModule, FailingRail, Fault, failing_world
from tests.support.forms import interpreted_only

STREAM = FailingRail(flags=0)


def _lock_is_free(process: Any) -> bool:
    found: list[bool] = []

    def try_it() -> None:
        lock = process.context.engine.lock
        found.append(bool(lock.acquire(False)))
        if found[0]:
            lock.release()

    thread = Thread(target=try_it)
    thread.start()
    thread.join(5)
    return found == [True]


@pytest.mark.parametrize("what", ["lost", "error", "twice", "late"])
@pytest.mark.parametrize("fragment", ["RNDV", "FRAG", "MATCH"])
def test_1_the_lock_is_released_on_every_path(fragment: str, what: str) -> None:
    if (what, fragment) == ("twice", "FRAG"):
        what = "refused"  # a FRAG is never sent twice under one id
    size = 900 if fragment == "MATCH" else 9000
    job = failing_world([one_message(size)] * 2, [STREAM] * 2, [Fault(what, fragment)])
    assert all(_lock_is_free(process) for process in job.processes)


def test_2_a_fin_that_waits_for_room_keeps_what_it_is_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[headers.Fin] = []
    waited: Counter[int] = Counter()
    arrival, alloc = FailingModule.arrival, FailingModule.alloc

    def noted(self: Any, endpoint: Any, tag: int, data: bytes) -> Any:
        if tag == FIN:
            told.append(headers.parse_fin(memoryview(data)))
        return arrival(self, endpoint, tag, data)

    def no_room(self: Any, endpoint: Any, order: int, size: int, flags: int) -> Any:
        if size == headers.FIN_HEADER.size and waited[self.index] < 3:
            waited[self.index] += 1
            return None
        return alloc(self, endpoint, order, size, flags)

    monkeypatch.setattr(FailingModule, "arrival", noted)
    monkeypatch.setattr(FailingModule, "alloc", no_room)
    rail = FailingRail(flags=PUT, put_limit=1000)
    failing_world([one_message(9_000)] * 2, [rail] * 2, [Fault("lost", "FIN", 2)])
    assert waited == {0: 3, 1: 3}
    assert len(told) > 9
    assert {(fin.context_id, fin.source, fin.sequence) for fin in told} == {(0, 0, 1)}
    assert any(fin.flags & headers.FLAG_RESENT for fin in told)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_3_a_nack_sent_again_is_heeded(times: int) -> None:
    rail = FailingRail(flags=0, notice=150 * US)
    faults = [Fault("error", "FRAG")]
    faults += [Fault("lost", "RNDVRESTARTNACK", nth) for nth in range(1, times + 1)]
    job = failing_world([one_message(9_000)] * 2, [rail] * (times + 2), faults)
    assert job.net.counts["RNDVRESTARTNACK"] == times + 1


def test_4_a_message_may_dance_more_often_than_a_byte_counts() -> None:
    rail = FailingRail(flags=0, heal=1 * US, notice=0, other_end=0, max_send_size=1100)
    faults = [Fault("lost", "FRAG", nth) for nth in range(1, 2 * 150, 2)]
    parameters = {"restarts_max": 0}
    program = [one_message(9_000)] * 2
    job = failing_world(program, [rail, STREAM], faults, parameters=parameters, immortal=(1,))
    assert sum(name == "RNDVRESTARTNOTIFY" for name, _, _ in job.net.log) > 128


@interpreted_only
def test_4_restart_sequence_numbers_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    last = headers.GENERATIONS - 2
    begin = SendMessage.__init__

    def near_the_end(self: SendMessage, *arguments: Any) -> None:
        begin(self, *arguments)
        self.generation = last

    monkeypatch.setattr(SendMessage, "__init__", near_the_end)
    monkeypatch.setattr(
        BfoReceiving, "_generation", lambda self, *key: self._generations.get(key, last)
    )
    faults = [Fault("lost", "FRAG"), Fault("error", "FRAG", 5), Fault("lost", "RNDV", 2)]
    job = failing_world([one_message(9_000)] * 2, [STREAM] * 4, faults)
    assert not job.net.plan


def test_5_headers_are_the_same_on_machines_of_either_byte_order() -> None:
    """No peer converts anything: every field stands where it stands, its low byte first."""
    step = headers.Step(headers.NOTIFY, 0x0102, 3, 0x0405, 0x06070809, 1 << 56, 2)
    assert step.pack() == bytes.fromhex(
        "4a000201 03000000 0504 0000 09080706 0000000000000001 0200000000000000"
    )
    fin = headers.fin_words(1, 0x0102, 3, 0x0405, 0x06070809, -5, 7, 1 << 32)
    assert fin == bytes.fromhex(
        "49010201 03000000 0504 0000 09080706 fbffffffffffffff 0700000000000000 0000000001000000"
    )
    extra = headers.restarted(bytes(4), 5, 6)
    assert extra[4:] == bytes.fromhex("0500000000000000 06000000 00000000")
    for module in (headers, ob1_headers):
        layouts = [value for value in vars(module).values() if isinstance(value, Struct)]
        assert layouts
        assert {layout.format[0] for layout in layouts} == {"<"}


def test_6_a_healed_rail_is_used_again() -> None:
    rail = FailingRail(flags=0, heal=100 * US)
    other = FailingRail(flags=0, latency=50)  # its eager set is the first rail alone
    numbers: list[int] = []

    def program(process: Any) -> None:
        one_message(900)(process)
        end = process.context.engine.now() + 500 * US
        while process.context.engine.now() < end:
            process.context.engine.progress()
        numbers.append(len(process.context.btls[0].net.log))
        one_message(900)(process)

    job = failing_world([program] * 2, [rail, other], [Fault("lost", "MATCH")])
    rails = [index for name, _, index in job.net.log if name == "MATCH"]
    assert rails == [0, 1, 0]
    (event,) = job.processes[0].context.rail_events
    assert event.healed > event.noticed
    assert (event.rank, event.peer, event.messages, event.bytes) == (0, 1, 1, 900)
    assert event.pause > 0
    assert "cable" in event.cause
    assert "rail0" in event.rail


@pytest.mark.parametrize("what", ["lost", "error", "refused"])
def test_7_a_failed_put_leaves_nothing_registered(what: str) -> None:
    for fragment in ("PUT", WRITE):
        failing_world(
            [one_message(9_000)] * 2, [FailingRail(flags=PUT)] * 2, [Fault(what, fragment)]
        )


@interpreted_only
@pytest.mark.parametrize("half", ["sender", "receiver"])
def test_8_a_half_that_does_nothing_about_failures_fails_the_tests(
    half: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The original had no automated test; `test_matrix.py` plants more defects."""
    if half == "sender":
        monkeypatch.setattr(BfoSending, "_do", lambda *_: None)
    else:
        monkeypatch.setattr(BfoReceiving, "notified", lambda *_: None)
    with pytest.raises((RankFailed, Deadlock)):
        failing_world([one_message(9_000)] * 2, [STREAM] * 2, [Fault("lost", "FRAG")])


@interpreted_only
def test_9_ids_are_never_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What names an older generation names nothing: no memory of another request is looked at."""
    used: list[int] = []
    fresh = BfoSending.fresh_id

    def noted(sending: BfoSending) -> int:
        used.append(fresh(sending))
        return used[-1]

    monkeypatch.setattr(BfoSending, "fresh_id", noted)

    def program(process: Any) -> None:
        for _ in range(5):
            one_message(9_000)(process)

    faults = [Fault("lost", "FRAG", nth) for nth in (1, 9)]
    failing_world([program] * 2, [STREAM] * 3, faults)
    assert len(used) >= 7
    assert len(set(used)) == len(used)


def test_9_ids_that_name_nothing_are_dropped() -> None:
    random = Random(9)
    tags = (ACK, FRAG, PUT_TAG, FIN, *headers.RESTART_NAMES)

    def program(process: Any) -> None:
        comm, pml = world(process), process.pml
        if comm.rank == 0:
            rail = pml.endpoint(comm.procs[1]).send.rails[0]
            for _ in range(300):
                tag = random.choice(tags)
                body = bytes([tag, 0]) + random.randbytes(62)
                pml.control.send_on(rail, body, tag)
        one_message(9_000)(process)

    job = failing_world([program] * 2, [STREAM] * 2)
    assert sum(job.processes[1].pml.counters.values()) > 100


@pytest.mark.parametrize("fragment", ["RNDV", "ACK", "FRAG"])
def test_10_the_other_end_never_hears_of_it(fragment: str) -> None:
    rail = FailingRail(flags=0, other_end=-1)
    failing_world([one_message(9_000)] * 2, [rail] * 2, [Fault("lost", fragment)])


@pytest.mark.parametrize("what", ["error", "late"])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_pipeline_that_a_failed_first_fragment_fills_goes_on(depth: int, what: str) -> None:
    """The RNDV arrived and was answered before its failure was noticed; FRAGs wait for it."""
    rail = FailingRail(flags=0, notice=100 * US)
    parameters = {"send_pipeline_depth": depth}
    job = failing_world(
        [one_message(9_000)] * 2, [rail] * 2, [Fault(what, "RNDV")], parameters=parameters
    )
    assert job.net.delivered.total() == 1


@interpreted_only
@pytest.mark.parametrize(
    ("flags", "queues"),
    [(0, ("starts", "fragments")), (PUT | GET, ("packets", "starts", "rdma"))],
    ids=["fragments", "RDMA"],
)
def test_what_waits_for_room_when_a_rail_goes_moves_to_the_survivors(
    flags: int, queues: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The original ends the job when anything waits, for whomever."""
    waiting: Counter[str] = Counter()
    failed = Rails.failed

    def noted(self: Rails, *what: Any) -> None:
        for name in queues:
            waiting[name] += len(getattr(self.bfo.pending, f"_{name}"))
        failed(self, *what)

    monkeypatch.setattr(Rails, "failed", noted)
    rail = FailingRail(flags=flags, descriptors=1, put_limit=2000, get_limit=2000)
    for nth in (10, 40, 70):
        failing_world([exchange] * 2, [rail] * 2, [Fault("lost", nth=nth)])
    assert all(waiting[name] for name in queues), waiting


def test_the_eager_set_is_refilled_from_slower_rails() -> None:
    slow = FailingRail(flags=0, latency=80, eager_limit=300, max_send_size=600)
    job = failing_world([exchange] * 2, [STREAM, slow], [Fault("lost", "MATCH", 3)])
    assert {rail for _, _, rail in job.net.log} == {0, 1}


def test_a_message_too_large_for_the_survivors_becomes_a_rendezvous() -> None:
    """Its first copy arrived: the receiver must say so, or the sender waits for ever."""
    small = FailingRail(flags=0, latency=80, eager_limit=300, rndv_eager_limit=100)
    for what in ("lost", "error", "late"):
        for sendi in (False, True):
            large = FailingRail(flags=0, sendi=sendi, eager_limit=1024)
            name = "MATCH via sendi" if sendi else "MATCH"
            job = failing_world(
                [one_message(250 if sendi else 900)] * 2, [large, small], [Fault(what, name)]
            )
            assert job.net.delivered[what] == 1


def _lost(begin: Any) -> Any:
    """A program whose only rails die, and that has to hear so."""

    def program(process: Any) -> int:
        comm, pml = world(process), process.pml
        if comm.rank == 0:
            pml.isend(comm, send(pattern(900, 1)), 1, 7, STANDARD)
        try:
            begin(comm, pml)
        except MPIError as error:
            return error.code
        return 0

    return program


def _ssend(comm: Any, pml: Any) -> None:
    pml.send(comm, send(pattern(90_000, 1)), 1 - comm.rank, 5, SYNCHRONOUS)


def _recv(source: int) -> Any:
    def begin(comm: Any, pml: Any) -> None:
        pml.recv(comm, buffer(100)[1], 1 - comm.rank if source >= 0 else ANY_SOURCE, 5)

    return begin


def _probe(comm: Any, pml: Any) -> None:
    pml.probe(comm, 1 - comm.rank, 5)


def _recv_later(comm: Any, pml: Any) -> None:
    engine = comm.context.engine
    while engine.now() < 2_000 * US:  # everything is lost by then
        engine.progress()
    pml.recv(comm, ContiguousConvertor(memoryview(bytearray(10))), 1 - comm.rank, 5)


WAITING = {
    "a synchronous send": _ssend,
    "a receive": _recv(0),
    "a receive from anybody": _recv(-1),
    "a probe": _probe,
    "a receive that comes later": _recv_later,
}


@pytest.mark.parametrize("begin", WAITING.values(), ids=WAITING)
def test_all_rails_gone_is_a_clean_error(begin: Any) -> None:
    faults = [Fault("lost", "MATCH", 1), Fault("lost", "MATCH", 2)]
    job = failing_world([_lost(begin)] * 2, [STREAM] * 2, faults, lossy=True)
    assert job.results == [ERR_PROC_FAILED] * 2
    assert job.scheduler.time < 10_000 * US
    last = [event for event in job.processes[0].context.rail_events if event.last]
    assert [(event.messages, event.bytes, event.pause) for event in last] == [(0, 0, 0)]


def test_a_rail_without_the_obligations_ends_as_in_ob1() -> None:
    def program(process: Any) -> int:
        comm = world(process)
        if comm.rank == 0:
            module = process.context.btls[0]
            module.broken.add(1)
            module.error_callback.failed(module, 1, comm.procs[1], "the cable was pulled")
        try:
            one_message(9_000)(process)
        except MPIError as error:
            return error.code
        return 0

    plain = FailingRail(flags=0, supports=False)
    silent = [program, lambda process: None]
    job = failing_world(silent, [plain, plain], lossy=True)
    assert job.results[0] == ERR_PROC_FAILED
