"""The two machines of a message, in every order of what happens, with every loss of a few.

The machines are the product's, with its requests: only what lies between them is a model
(`tests/support/dance_orders.py`).
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import pytest
from ompy.data.errors import ERR_INTERN, MPIError
from ompy_components.pml.bfo.dance import (
    RECEIVE_TABLE,
    RECEIVER_ROWS,
    SEND_TABLE,
    SENDER_ROWS,
    Action,
    Place,
    ReceiverEvent,
    ReceiverState,
    SenderEvent,
    SenderState,
)
from ompy_components.pml.bfo.failed_message import Unreceived, row
from ompy_components.pml.ob1 import states
from ompy_components.pml.ob1.states import ReceiveState, SendState

from tests.support.dance_orders import Orders
from tests.support.dance_world import Both, Pair, Way
from tests.support.effort import THOROUGH

WAYS = {
    "a whole message": Way("MATCH", 3, "copy", 3, held=True),
    "a whole rendezvous": Way("RNDV", 3, "copy", 3, held=True),
    "copy in and out": Way("RNDV", 1, "copy", 3, held=True),
    "get": Way("RGET", 0, "get", 2, held=False),
    "put": Way("RNDV", 0, "put", 2, held=True),
    "pipeline": Way("RNDV", 0, "pipeline", 2, held=True),
}
LONGER = {  # 100,000 states and more each
    "copy in and out, 4 losses": Way("RNDV", 1, "copy", 4, held=False),
    "get, held": Way("RGET", 0, "get", 2, held=True),
    "get, 3 losses": Way("RGET", 0, "get", 3, held=False),
    "put, 3 losses": Way("RNDV", 0, "put", 3, held=False),
    "pipeline, 3 losses": Way("RNDV", 0, "pipeline", 3, held=False),
}
EVERY = {**WAYS, **(LONGER if THOROUGH else {})}


@cache
def explored(way: Way) -> tuple[int, list[Both], set[Pair]]:
    orders = Orders(way)
    return *orders.explore(), orders.used


@pytest.mark.parametrize("way", EVERY.values(), ids=EVERY)
def test_every_order_and_loss_ends_well(way: Way) -> None:
    count, ends, _ = explored(way)
    assert count > 1000
    assert {both.losses for both in ends} == set(range(way.losses + 1))
    for both in ends:
        assert both.sent_done, f"the send never ends: {both}"
        assert both.done, f"the receive never ends: {both}"
        assert not both.in_flight, f"a fragment is thought to be under way: {both}"
        assert not both.writing, f"a put is thought to be under way: {both}"


def test_every_row_is_reached() -> None:
    used = set().union(*[explored(way)[2] for way in WAYS.values()])
    assert {*SENDER_ROWS, *RECEIVER_ROWS} == used


WRONG = {
    "a message that is over is begun anew": ((Place.OVER, ReceiverEvent.NOTIFY), Action.ACK),
    "it goes on before the receiver has promised": (
        (SenderState.DRAINING, SenderEvent.DRAINED),
        Action.RESUME,
    ),
    "it goes on while something is under way": (
        (SendState.STREAMING, SenderEvent.FAILED),
        Action.RESUME,
    ),
    "what a restart offers is not remembered": (
        (Place.QUEUED, ReceiverEvent.RESTART),
        Action.DROP,
    ),
    "nobody is told": ((ReceiveState.RECEIVING, ReceiverEvent.FAILED), Action.NOTHING),
}


def _explore_all() -> None:
    for way in WAYS.values():
        _, ends = Orders(way).explore()
        assert all(both.sent_done and both.done for both in ends)


@pytest.mark.parametrize(("pair", "action"), WRONG.values(), ids=WRONG)
def test_a_row_that_is_wrong_is_found(
    pair: Any, action: Action, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: Any = SENDER_ROWS if pair in SENDER_ROWS else RECEIVER_ROWS
    monkeypatch.setitem(rows, pair, (rows[pair][0], action))
    with pytest.raises((AssertionError, MPIError)):
        _explore_all()


def test_the_tables_are_ob1s_and_more() -> None:
    assert states.SEND_TABLE.items() <= SEND_TABLE.items()
    assert states.RECEIVE_TABLE.items() <= RECEIVE_TABLE.items()
    assert not states.SEND_TABLE.keys() & SENDER_ROWS.keys()
    assert not states.RECEIVE_TABLE.keys() & RECEIVER_ROWS.keys()


class Told:
    def story(self) -> str:
        return "the story"


@pytest.mark.parametrize(
    ("rows", "places", "events"),
    [
        (SENDER_ROWS, (*SendState, *SenderState), SenderEvent),
        (RECEIVER_ROWS, (*ReceiveState, *ReceiverState, *Place), ReceiverEvent),
    ],
    ids=["sender", "receiver"],
)
def test_what_cannot_be_is_an_error_with_the_story(rows: Any, places: Any, events: Any) -> None:
    absent = 0
    for state, event in product(places, events):
        if (state, event) not in rows:
            absent += 1
            with pytest.raises(MPIError, match="the story") as raised:
                row(rows, state, event, Told())
            assert raised.value.code == ERR_INTERN
            assert state.value in str(raised.value)
    assert absent


def test_the_end_is_the_end() -> None:
    assert not [pair for pair in SEND_TABLE if pair[0] is SendState.DONE]
    assert not [pair for pair in RECEIVE_TABLE if pair[0] is ReceiveState.DONE]


def test_a_notify_that_cannot_be_says_of_which_message() -> None:
    message = Unreceived(Place.QUEUED, 3, 7, 5, 9)
    with pytest.raises(MPIError, match="message 9 of rank 5 in context 7, restart 3"):
        message.told(ReceiverEvent.NOTIFY, 4)
