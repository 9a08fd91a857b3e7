"""No step of the dance while something of the older generation is under way.

The rails write down what is under way when a message of the dance is offered to one, or arrives.
Source: seed bfo (6, 8).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from ompy_components.pml.bfo.headers import RESTART_NAMES

from tests.sim.ob1.programs import one_message
from tests.support.failing_rails import (
    READ,
    US,
    WRITE,
    FailingModule,
    FailingRail,
    Fault,
    failing_world,
)
from tests.support.fault_matrix import NOTIFY, PROTOCOLS, RECV_ERR, RESTART_ACK

SIZE = 19_000  # the largest that moves whole by RDMA, about
SENT = ("RNDV", "RGET", "FRAG", WRITE)  # what a sender has under way of its message


class Watch:
    """What is under way, by rank and name.

    Attributes:
        under_way: now.
        offered, arrived: for each message of the dance, what was under way then.
        broke: the same, for each end of a path that broke, behind what it lost.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.under_way: Counter[tuple[int, str]] = Counter()
        self.offered: list[tuple[str, Counter[tuple[int, str]]]] = []
        self.arrived: list[tuple[str, Counter[tuple[int, str]]]] = []
        self.broke: list[Counter[tuple[int, str]]] = []
        begin, arrival = FailingModule.begin, FailingModule.arrival
        break_path = FailingModule.break_path

        def begun(
            module: Any, name: str, endpoint: Any, size: int, arrive: Any, complete: Any
        ) -> Any:
            key = module.context.rank, name
            self.offered.append((name, Counter(self.under_way)))
            self.under_way[key] += 1

            def completed(status: int) -> None:
                self.under_way[key] -= 1
                complete(status)

            accepted = begin(module, name, endpoint, size, arrive, completed)
            self.under_way[key] -= not accepted
            return accepted

        def arriving(module: Any, endpoint: Any, tag: int, data: bytes) -> Any:
            arrive = arrival(module, endpoint, tag, data)

            def arrived() -> None:
                if tag in RESTART_NAMES:
                    self.arrived.append((RESTART_NAMES[tag], Counter(self.under_way)))
                arrive()

            return arrived

        def broken(module: Any, peer: int, **others: Any) -> None:
            break_path(module, peer, **others)
            self.broke.append(Counter(self.under_way))

        patch.setattr(FailingModule, "begin", begun)
        patch.setattr(FailingModule, "break_path", broken)
        patch.setattr(FailingModule, "arrival", arriving)

    def when(self, happened: str, name: str, rank: int, names: tuple[str, ...]) -> list[int]:
        """How many of these a rank had under way, each time a message was offered or arrived."""
        return [
            sum(there[rank, other] for other in names)
            for told, there in getattr(self, happened)
            if told == name
        ]


def run(patch: pytest.MonkeyPatch, protocol: str, fault: Fault) -> Watch:
    """A message over three rails: the first breaks, which is noticed late; the second is far."""
    near: FailingRail = replace(PROTOCOLS[protocol][0], notice=450 * US)
    far = replace(near, latency=300)
    parameters = {"use_all_rdma": True}
    with patch.context() as context:
        watch = Watch(context)
        failing_world(
            [one_message(SIZE)] * 2,
            [near, far, near],
            [fault],
            immortal=(1, 2),
            parameters=parameters,
        )
    return watch


@pytest.mark.parametrize(
    ("protocol", "fragment"),
    [("send/receive pipeline", "FRAG"), ("direct put", WRITE), ("RDMA pipeline", "FRAG")],
)
def test_no_restart_while_something_is_under_way(
    protocol: str, fragment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first rail is known to be broken while the far one has a fragment or a put."""
    watch = run(monkeypatch, protocol, Fault("lost", fragment))
    assert any(watch.broke[0][0, name] for name in SENT)
    assert watch.when("offered", NOTIFY, 0, SENT) == [0]
    first, *again = [
        sum(count for (rank, name), count in there.items() if rank == 0 and name in SENT)
        for told, there in watch.offered
        if told == "RNDV"
    ]
    assert (first, again) == (0, [0])


def test_no_ack_while_the_receiver_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a get under way over the far rail when it hears that all begins anew."""
    watch = run(monkeypatch, "direct get", Fault("lost", READ))
    assert watch.when("arrived", NOTIFY, 1, (READ,)) == [1]
    assert watch.when("offered", RESTART_ACK, 1, (READ,)) == [0]


def test_no_notify_while_the_sender_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has puts under way over the far rail when it hears that the receiver had an error."""
    watch = run(monkeypatch, "RDMA pipeline", Fault("lost", "ACK"))
    assert watch.when("arrived", RECV_ERR, 0, SENT) != [0]
    assert watch.when("offered", NOTIFY, 0, SENT) == [0]
