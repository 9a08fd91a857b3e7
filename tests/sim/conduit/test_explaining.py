"""What a conduit explains is what it does: asked first, then done and traced."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
from ompy.data.errors import MPIError
from ompy.frameworks.explanation import OperationAsked
from ompy.gasnet import Gasnet, ResourceError
from ompy.trace.operations import is_of_program, operations

from tests.support.effort import THOROUGH
from tests.support.gasnet_worlds import CONDUITS, run, traced

ROOM = 3 << 20
SIZES = (1, 128, 129, 4096, 4097, 8192, 8193, 20_001, (1 << 20) + 5)
CHOSEN = ["gemini, smsg", "gemini, mailboxes", "aries, mailboxes", "aries, neighbours"]


def asked_and_done(name: str, questions: list[OperationAsked], **settings: Any) -> list[Any]:
    """What was explained, and the way in the trace, of each."""
    said: list[Any] = []

    def program(gasnet: Gasnet) -> None:
        def nothing(*_: Any) -> None:
            pass

        gasnet.init()
        gasnet.attach([nothing], segment_size=2 * ROOM)
        outside = bytearray(ROOM)
        for asked in questions if gasnet.mynode() == 0 else []:
            said.append(gasnet.explain(asked))
            memory = gasnet.segment().memory[ROOM:] if asked.inside else memoryview(outside)
            _do(gasnet, asked, nothing, memory[: asked.size])
        gasnet.barrier()

    under = CONDUITS[name]
    done = [
        each
        for each in operations(traced(under, 2, program, **settings)).all
        if each.source == 0 and is_of_program(each)
    ]
    assert len(said) == len(questions)
    return [said, done]


def _do(gasnet: Gasnet, asked: OperationAsked, handler: Any, memory: memoryview) -> None:
    words = range(asked.arguments)
    if asked.name == "put" and asked.bulk:
        gasnet.put(asked.peer, asked.offset, memory)
    elif asked.name == "put":
        gasnet.wait_syncnb(gasnet.put_nb(asked.peer, asked.offset, memory))
    elif asked.name == "get":
        gasnet.get(memory, asked.peer, asked.offset)
    elif asked.name == "short":
        gasnet.am_request_short(asked.peer, handler, *words)
    elif asked.name == "medium":
        gasnet.am_request_medium(asked.peer, handler, memory, *words)
    else:
        kind = "am_request_long" if asked.name == "long" else "am_request_long_async"
        getattr(gasnet, kind)(asked.peer, handler, memory, asked.offset, *words)
        # what is put before it takes time, and the message follows it
        gasnet.block_until(lambda: not any("the NIC to" in line for line in gasnet.waiting()))


@pytest.mark.parametrize("name", CHOSEN)
def test_puts_and_gets(name: str) -> None:
    questions = [
        OperationAsked(kind, 1, size, inside=inside, bulk=bulk, offset=offset)
        for kind, size, inside, bulk, offset in product(
            ("put", "get"), SIZES, (False, True), (True, False), (0, 3)
        )
        if (kind == "put" or bulk) and (THOROUGH or size < 1 << 20 or (bulk and not offset))
    ]
    said, done = asked_and_done(name, questions)
    at = 0
    for asked, found in zip(questions, said, strict=True):
        ways = [done[at].way]
        moved = done[at].size
        while moved < asked.size:  # the API has put the head first
            at += 1
            ways.append(done[at].way)
            moved += done[at].size
        at += 1
        told = "; ".join(ways)
        if set(ways) == {"PSHM"}:
            told = "PSHM"
        elif len(ways) > 1:
            told = "split: " + told.replace("split: ", "")
        assert found.protocol == told, asked
        at_size = [way for size, way in found.sizes if size <= asked.size]
        assert at_size, asked
        if asked.size < 1 << 20:
            assert _kinds(at_size[-1]) == _kinds(told), asked
    assert at == len(done)


def _kinds(way: str) -> list[str]:
    """Without how many of each."""
    plain = re.sub(r", \d+ bytes read", "", way.removeprefix("split: "))
    return [part.split(" x ")[-1] for part in plain.split("; ")]


@pytest.mark.parametrize("name", CHOSEN)
def test_messages(name: str) -> None:
    questions = [OperationAsked("short", 1, 0, arguments=3), OperationAsked("medium", 1, 568)]
    questions += [
        OperationAsked(kind, 1, size, arguments=arguments)
        for kind, size, arguments in product(
            ("long", "long-async"), (0, 48, 49, 112, 113, 560, 561, 632, 5000, 1 << 20), (0, 16)
        )
    ]
    said, done = asked_and_done(name, questions)
    sent = [each.way for each in done if each.is_message]
    for asked, found, way in zip(questions, said, sent, strict=True):
        assert found.protocol == way, asked
        last = [way for size, way in found.sizes if size <= asked.size][-1]
        assert last == way, asked


def test_changes_change_what_they_say() -> None:
    """Each change of a parameter that is named, made, is followed by the way that was named."""
    asked = OperationAsked("put", 1, 9000)
    (found,), _ = asked_and_done("aries, smsg", [asked])
    made = [change for change in found.changes if change.parameters]
    assert len(made) == 3
    for change in made:
        (parameter,) = change.parameters
        name = parameter.removeprefix("conduit_aries_")
        if name == "pshm":
            continue  # the worlds of one host: `CONDUITS` has one with it
        value = int(change.text.split()[1])
        _, (done, *_) = asked_and_done("aries, smsg", [asked], **{name: value})
        assert done.way == change.protocol, change
    others = [change for change in found.changes if not change.parameters]
    for change in others:
        field: dict[str, Any] = {"inside": True} if "segment" in change.text else {"bulk": False}
        (other,), _ = asked_and_done("aries, smsg", [asked._replace(**field)])
        assert other.protocol == change.protocol


def test_own_rank_and_what_cannot_be() -> None:
    questions = [OperationAsked("put", 0, 10), OperationAsked("medium", 0, 10)]
    said, _ = asked_and_done("aries, smsg", questions)
    assert [found.protocol for found in said] == ["own memory", "own rank"]
    with pytest.raises(Exception, match="a Medium brings up to 568 bytes, not 569") as told:
        asked_and_done("aries, smsg", [OperationAsked("medium", 1, 569)])
    assert not isinstance(told.value, MPIError)


def test_a_conduit_that_explains_nothing() -> None:
    def program(gasnet: Gasnet) -> None:
        gasnet.init()
        gasnet.attach()
        with pytest.raises(ResourceError, match="explains nothing"):
            gasnet.explain(OperationAsked("put", 1, 10))
        gasnet.barrier()

    run(CONDUITS["loopback"], 2, program)
