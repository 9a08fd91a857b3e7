"""What is explained of a collective operation is what the traced call then does."""

from __future__ import annotations

from itertools import product

import click
import pytest
from ompy.cli.explaining import explain_collective as explaining
from ompy.cli.explaining.explain import collective_text
from ompy.cli.explaining.explain_collective import Asked
from ompy.cli.explaining.explain_names import NONBLOCKING, PERSISTENT
from ompy.frameworks.coll import NEIGHBOURHOODS, OPERATIONS
from ompy.frameworks.explanation import Choice
from ompy.trace.calls import fields_of, joint_calls, messages_of
from ompy.trace.message_events import messages

from tests.support.effort import THOROUGH
from tests.support.worlds import registry

WAYS = {
    "memory": {"btl": "self,sm"},
    "tuned": {"btl": "self,tcp"},
    "basic": {"btl": "self,tcp", "coll": "basic"},
}
FROM_LOWER = ("bcast", "scatter", "scan", "exscan")  # rank 0 needs nothing of the others
SIZES = (8, 24 * 1024, 200 * 1024) if THOROUGH else (8, 200 * 1024)


def asked(operation: str, size: int, ranks: int = 5, hosts: int = 1, **more: bool) -> Asked:
    return Asked(operation, size, ranks, hosts, 0, more.get("sharing", False))


@pytest.mark.parametrize("way", sorted(WAYS))
@pytest.mark.parametrize("operation", OPERATIONS)
def test_it_does_what_it_says(operation: str, way: str) -> None:
    for size, sharing in product(SIZES, (False, True)):
        found, job = explaining._run(asked(operation, size, sharing=sharing), registry(**WAYS[way]))
        events = job.events()
        (call,) = joint_calls(events)
        assert call.served == f"{found.row.blocking}: {found.name}"
        at = [name for first, name in found.sizes if first <= size]
        assert operation == "barrier" or at[-1] == found.name
        sent = messages_of(call, [call], messages(events))
        memory = [event for part in call.parts for event in part.memory]
        assert bool(memory) == (way == "memory")
        assert bool(sent) or bool(memory)
        assert all(each.sends and each.receives for each in sent)


def answer(operation: str, size: int, ranks: int, hosts: int, *mca: tuple[str, str]) -> dict:
    return explaining.explain_collective(asked(operation, size, ranks, hosts), mca)


def test_the_steps_are_those_of_the_schedule() -> None:
    """Rabenseifner's: halves to the neighbour, quarters to the next but one, and back."""
    found = answer("allreduce", 1 << 20, 4, 2)
    assert (found["component"], found["algorithm"]) == ("tuned", "rabenseifner")
    assert found["steps"] == [
        "as 16 messages",
        "  round 1     512 KiB   0 <-> 1   2 <-> 3",
        "  round 2     256 KiB   0 <-> 2   1 <-> 3",
        "  round 3     256 KiB   0 <-> 2   1 <-> 3",
        "  round 4     512 KiB   0 <-> 1   2 <-> 3",
    ]


def test_what_would_change_it_does() -> None:
    """A forced algorithm, another component, and the border of a size."""
    found = answer("allreduce", 1 << 20, 4, 2)
    words = {change["protocol"] for change in found["changes"]}
    assert {"ring", "recursive_doubling", "basic: allreduce_ring"} <= words
    forced = answer("allreduce", 64, 4, 2, ("coll_tuned_allreduce_algorithm", "ring"))
    assert forced["algorithm"] == "ring"
    assert any("a parameter names ring" in part["text"] for part in forced["branches"])
    border = found["sizes"][1][0]
    below, at = (answer("allreduce", size, 4, 2)["algorithm"] for size in (border - 8, border))
    assert (below, at) == ("recursive_doubling", "rabenseifner")


@pytest.mark.parametrize("operation", ["allgather", "alltoall", "allreduce", "reduce_scatter"])
def test_basics_limit(operation: str) -> None:
    found = answer(operation, 4096, 4, 2, ("coll", "basic"))
    (branch,), change = found["branches"], found["changes"][0]
    (parameter,) = branch["parameters"]
    limit = "0" if "less" in change["text"] else str(1 << 30)
    other = answer(operation, 4096, 4, 2, ("coll", "basic"), (parameter, limit))
    assert other["algorithm"] == change["protocol"] != found["algorithm"]


def test_in_memory_a_parameter_changes_it() -> None:
    found = answer("allreduce", 100_000, 3, 1)
    assert found["component"] == "sm"
    assert "windows" in found["algorithm"]
    (change,) = [each for each in found["changes"] if "coll_sm_fragment_size" in each["parameters"]]
    other = answer("allreduce", 100_000, 3, 1, ("coll_sm_fragment_size", "100000"))
    assert other["algorithm"] == change["protocol"]


def test_the_text_has_everything() -> None:
    found = answer("bcast", 1000, 4, 2)
    text = "\n".join(collective_text(found))
    for part in ("Served by tuned: binomial", "sm (40): not available: its members are on 2 hosts"):
        assert part in text
    assert "coll_tuned_bcast_algorithm = ignore (default)" in text
    assert text.endswith("  round 2      1000 B   2 -> 3")


def test_a_component_of_a_stranger_needs_to_say_nothing() -> None:
    """Names and reasons are asked of what a module has; by itself it has its schedule's name."""
    from ompy.frameworks.coll import CollModule
    from ompy.frameworks.coll_base import barrier
    from ompy.frameworks.collectives.exchange import Exchange
    from ompy.frameworks.collectives.schedule import Schedule

    class Stranger(CollModule):
        def schedule_barrier(self, exchange: Exchange) -> Schedule:
            return barrier.linear(exchange)

    module = Stranger(None)
    assert module.name_algorithm("barrier", None, ()) == "linear"
    assert isinstance(module.explain_choice("barrier", None, ()), Choice)


def test_buffers_that_no_host_has() -> None:
    with pytest.raises(click.ClickException, match="the buffers of all ranks"):
        answer("alltoall", 1 << 30, 8, 1)


def test_a_component_above_one_that_shares_memory() -> None:
    """All members ask the others' ways: to know its own, coll/sm may agree on memory with all."""
    found = answer("allgather", 100, 4, 1, ("coll_tuned_priority", "1000"))
    assert found["component"] == "tuned"
    words = [change["protocol"] for change in found["changes"]]
    assert "sm: blocks in memory" in words


def asked_nonblocking(operation: str, size: int, form: str, **more: bool) -> Asked:
    return asked(operation, size, **more)._replace(form=form)


@pytest.mark.parametrize("form", [NONBLOCKING, PERSISTENT])
@pytest.mark.parametrize("operation", [*OPERATIONS, *NEIGHBOURHOODS])
def test_a_nonblocking_call_in_memory_has_steps(operation: str, form: str) -> None:
    """What a member shows, what is read of it, and that all are done."""
    _, job = explaining._run(asked_nonblocking(operation, 8, form), registry(**WAYS["memory"]))
    events = job.events()
    (call,) = joint_calls(events)
    assert call.served == "sm: nonblocking"
    assert not messages_of(call, [call], messages(events))
    for part in call.parts:
        names = [event.name for event in part.memory]
        assert names.count("SHOW") == names.count("DONE") == 1
    read = {
        (event.rank, fields_of(event)["owner"])
        for part in call.parts
        for event in part.memory
        if event.name == "READ"
    }
    assert {reader for reader, owner in read if reader != owner} == readers(operation, 5)


def readers(operation: str, ranks: int) -> set[int]:
    """The ranks that need what another one has."""
    every = set(range(ranks))
    few = {"barrier": set(), "gather": {0}, "reduce": {0}}
    return few.get(operation, every - {0} if operation in FROM_LOWER else every)


def test_the_steps_of_a_nonblocking_call_in_words() -> None:
    found = explaining.explain_collective(asked_nonblocking("bcast", 1000, NONBLOCKING), ())
    assert found["steps"] == [
        "in shared memory",
        "    1. rank 0 shows 1000 B",
        "    2. ranks 1-4 show the call, without data",
        "    3. ranks 1-4 read 1000 B of what rank 0 shows",
        "    4. all are done with the memory",
    ]


def test_a_nonblocking_call_without_room_says_so_before_its_messages() -> None:
    found = explaining.explain_collective(asked_nonblocking("allreduce", 1 << 20, NONBLOCKING), ())
    assert found["steps"][:4] == [
        "in shared memory",
        "    1. all have no room for 1 MiB",
        "    2. all are done with the memory",
        "as 18 messages",
    ]


ROOM = "coll_sm_nonblocking_size"
NOT_LENT = (("coll_sm_single_copy", "0"),)


def in_memory(found: dict) -> bool:
    """The call's data went through memory, and nothing as messages."""
    return not any("messages" in line or "no room" in line for line in found["steps"])


@pytest.mark.parametrize("form", [NONBLOCKING, PERSISTENT])
@pytest.mark.parametrize("operation", [*OPERATIONS[1:], *NEIGHBOURHOODS])
def test_the_room_of_a_nonblocking_call_decides(operation: str, form: str) -> None:
    """The parameter is named, and the border is where the answer says."""
    question = asked_nonblocking(operation, 1000, form)
    found = explaining.explain_collective(question, NOT_LENT)
    assert in_memory(found)
    assert any(ROOM in branch["parameters"] for branch in found["branches"])
    assert found["parameters"][ROOM]["value"] == "65536"
    (change,) = [each for each in found["changes"] if ROOM in each["parameters"]]
    assert "messages" in change["protocol"]
    (size,) = [int(word) for word in change["text"].split() if word.isdigit()]
    less, more = (*NOT_LENT, (ROOM, str(size))), (*NOT_LENT, (ROOM, str(size + 1)))
    assert not in_memory(explaining.explain_collective(question, less))
    assert in_memory(explaining.explain_collective(question, more))


@pytest.mark.parametrize("operation", ["bcast", "allreduce", "alltoall", "scatter", "allgather"])
def test_what_would_give_a_nonblocking_call_room(operation: str) -> None:
    """A call that went as messages says how large a slot would have to be."""
    question = asked_nonblocking(operation, 100_000, NONBLOCKING)._replace(root=1)
    found = explaining.explain_collective(question, NOT_LENT)
    assert not in_memory(found)
    (change,) = [each for each in found["changes"] if ROOM in each["parameters"]]
    (size,) = [int(word) for word in change["text"].split() if word.isdigit()]
    more, less = (*NOT_LENT, (ROOM, str(size))), (*NOT_LENT, (ROOM, str(size - 1)))
    assert in_memory(explaining.explain_collective(question, more))
    assert not in_memory(explaining.explain_collective(question, less))


@pytest.mark.parametrize("operation", ["bcast", "scan", "reduce", "alltoall", "scatter", "gather"])
def test_much_is_read_in_place(operation: str) -> None:
    """Where all have tried to read all; the parameters are named."""
    question = asked_nonblocking(operation, 100_000, NONBLOCKING)
    found = explaining.explain_collective(question, ())
    named = {name for branch in found["branches"] for name in branch["parameters"]}
    assert {ROOM, "coll_sm_lend_least"} <= named
    assert any("coll_sm_single_copy" in limit["parameters"] for limit in found["limits"])
    assert any("read in place" in branch["text"] for branch in found["branches"])
    small = explaining.explain_collective(asked_nonblocking(operation, 8, NONBLOCKING), ())
    assert not any("read in place" in branch["text"] for branch in small["branches"])


def test_a_barrier_needs_no_room() -> None:
    found = explaining.explain_collective(asked_nonblocking("barrier", 0, NONBLOCKING), ())
    assert ROOM not in found["parameters"]


@pytest.mark.parametrize(
    ("operation", "root", "reads"),
    [
        ("bcast", 2, "ranks 0-1, 3-4 read 100 B of what rank 2 shows"),
        ("bcast", 0, "ranks 1-4 read 100 B of what rank 0 shows"),
        ("scatter", 4, "ranks 0-3 read 100 B of what rank 4 shows"),
        ("gather", 1, "rank 1 reads 100 B of what rank 3 shows"),
    ],
)
def test_whose_memory_is_read_is_a_member(operation: str, root: int, reads: str) -> None:
    question = asked(operation, 100)._replace(root=root)
    found = explaining.explain_collective(question, ())
    assert any(line.endswith(reads) for line in found["steps"]), found["steps"]
    assert not any("rank -" in line for line in found["steps"])


def test_a_window_of_results_is_the_result() -> None:
    found = explaining.explain_collective(asked("reduce", 100_000)._replace(root=3), ())
    assert "    3. rank 3 reads 100000 B of the result" in found["steps"]
