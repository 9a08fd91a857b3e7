"""What is explained of a collective operation is what the traced call then does."""

from __future__ import annotations

from itertools import product

import click
import pytest
from ompy.cli.explaining import explain_collective as explaining
from ompy.cli.explaining.explain import collective_text
from ompy.cli.explaining.explain_collective import Asked
from ompy.frameworks.coll import OPERATIONS
from ompy.frameworks.explanation import Choice
from ompy.trace.calls import joint_calls, messages_of
from ompy.trace.message_events import messages

from tests.support.effort import THOROUGH
from tests.support.worlds import registry

WAYS = {
    "memory": {"btl": "self,sm"},
    "tuned": {"btl": "self,tcp"},
    "basic": {"btl": "self,tcp", "coll": "basic"},
}
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
