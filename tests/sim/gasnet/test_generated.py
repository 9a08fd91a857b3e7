"""Generated GASNet programs in random worlds; `tools/sweep gasnet` runs 100,000 of them."""

from __future__ import annotations

import pytest
from ompy.engine.virtual_engine import RankFailed
from ompy_components.conduit.gni import headers
from ompy_components.conduit.gni.rdma.engine import RdmaEngine
from ompy_components.conduit.gni.smsg import SmsgTransport

from tests.support import gasnet_random
from tests.support.effort import effort
from tests.support.gasnet_random import CLASSES

TURNS = effort(1)
FIRST = 9  # arbitrary: worlds of this turn are short, and none is run by ompy sim


@pytest.mark.parametrize("place", range(len(CLASSES)), ids=CLASSES)
def test_worlds(place: int) -> None:
    for turn in range(TURNS):
        gasnet_random.world(place + (FIRST + turn) * len(CLASSES))


WORST = (
    470,  # a credit in line for a rank that had left was an error of who left after it
    1031,  # a NIC that went while its rank took in what had come was an error of the NIC's own
    7487,  # a job's end while the head of a put was waited for finished the put twice
    24761,  # a connection that was lost as the job ended was MPI's error
    39195,
    45132,  # a rank's word of the exit was dropped, as the other's ring was full
)


@pytest.mark.parametrize("number", WORST)
def test_worlds_that_failed(number: int) -> None:
    gasnet_random.world(number)


NICS_GONE = (628, 978, 1031)  # NICs of which ranks never slept again, or hardly: 20 to 100 times


@pytest.mark.parametrize("number", NICS_GONE)
def test_a_rank_whose_nic_has_gone_sleeps(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ompy.engine.virtual_engine.STEPS_MAX", 100_000)
    gasnet_random.once(gasnet_random.draw(number))


def fails(number: int) -> bool:
    """Whether a world finds that something is wrong."""
    try:
        gasnet_random.once(gasnet_random.draw(number))
    except (RankFailed, AssertionError):
        return True
    return False


def test_a_byte_that_is_not_put_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    put = RdmaEngine._put

    def short(engine: RdmaEngine, node: int, offset: int, local: memoryview, *a, **k) -> None:  # type: ignore[no-untyped-def]
        put(engine, node, offset, local[: len(local) - (len(local) > 20)], *a, **k)

    monkeypatch.setattr(RdmaEngine, "_put", short)
    assert sum(fails(number) for number in (14, 17, 21, 24, 28, 31)) >= 2


def test_a_message_that_comes_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    take = SmsgTransport._take_messages

    def twice(transport: SmsgTransport, node: int) -> int:
        own = transport.deliver

        def again(source: int, message: memoryview) -> None:
            own(source, message)
            read = headers.parse_message(message)
            if read.command == headers.Command.MEDIUM_REQUEST:
                own(source, message)

        transport.deliver = again
        try:
            return take(transport, node)
        finally:
            transport.deliver = own

    monkeypatch.setattr(SmsgTransport, "_take_messages", twice)
    assert sum(fails(number) for number in (14, 21, 28, 35, 42, 49)) >= 2
