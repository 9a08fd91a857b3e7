"""A world that is run to its first choice, and is there while others begin from it."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from ompy.engine.virtual_engine import VirtualEngine
from ompy.runtime.exploration.histories import Histories, Undetermined
from ompy.runtime.exploration.told_world import ENDED, MATCHES, Actor, Point
from ompy.runtime.exploration.trunk import Result, result_of_world
from ompy.runtime.simulation.simulated_world import Scenario, World
from ompy.runtime.simulation.stub import RankStub

# objects until the collector looks for what is only referred to by itself; measured: it took a
# tenth of the search with Python's own 700
YOUNG: Final = 20_000
_NAMES: Final = {"_tell_leaving": "left", "_tell_departure": "ended"}


class Beginning(NamedTuple):
    """Where the worlds of a program part.

    Attributes:
        point: the first choice.
        histories: of each rank, from there on.
        recorded: of each rank the record of its calls until there, where the program is checked.
    """

    point: Point
    histories: list[Histories]
    recorded: list[list[tuple[Any, ...]]]


class _Enough(BaseException):
    """What was to be done there is done, or could not be.

    Attributes:
        problem: why it could not.
    """

    problem: Exception | None = None


def explore_from_first_choice(
    scenario: Scenario, explore: Callable[[Beginning], object]
) -> Result | None:
    """Run a world to its first choice and call `explore` there. Leaves no process.

    Args:
        scenario: with `exploring`; its script is not looked at.
        explore: called once, unless the world has no choice.

    Returns:
        What a world without choices came to; None of another.

    Raises:
        Undetermined: the world is at something there that only a whole world can be at.
        Exception: what `explore` raises.
    """
    world = World(scenario)

    def begin() -> None:
        made = _beginning(world, scenario.patience)
        enough = _Enough()
        often = gc.get_threshold()
        gc.freeze()  # what a world leaves is little beside what was there, which is looked at anew
        gc.set_threshold(YOUNG, *often[1:])
        try:
            explore(made)
        except Exception as problem:  # it is none of this world's, which would end by it
            enough.problem = problem
        finally:
            gc.set_threshold(*often)
            gc.unfreeze()
            for each in made.histories:
                each.end_processes()
        raise enough

    world.at_first_choice = begin
    try:
        return result_of_world(world)
    except _Enough as enough:
        if enough.problem is not None:
            raise enough.problem from None
        return None


def _beginning(world: World, patience: float) -> Beginning:
    exchange = world.exchange
    assert exchange is not None, "the world is explored"
    histories = [Histories(stub.asks, stub.line, patience) for stub in world.stubs]
    actors = tuple(map(_actor, world.stubs, histories))
    scheduler = world.scheduler
    timers = tuple(_timer(*one) for one in scheduler.timers())
    data = pickle.dumps(exchange, pickle.HIGHEST_PROTOCOL)
    point = Point(data, tuple(exchange.events), actors, timers, scheduler.time, scheduler.steps)
    return Beginning(point, histories, [stub.checked for stub in world.stubs])


def _actor(stub: RankStub, histories: Histories) -> Actor:
    made = Actor(stub.rank, histories.first)
    made.news, made.calls = list(stub.news), stub.calls
    if stub.done:
        made.state = ENDED
        return made
    name, *words = stub.asks[-1]
    if not stub.in_exchange or name not in {"direct_wait", "direct_poll", "direct_look"}:
        raise Undetermined(name)
    made.state, made.number = MATCHES, words[0]
    return made


def _timer(deadline: int, callback: Callable[[], Any]) -> tuple[Any, ...]:
    if isinstance(callback, partial):
        name = getattr(callback.func, "__name__", "")
        if name in _NAMES:
            return (deadline, _NAMES[name], *callback.args)
    engine = getattr(callback, "__self__", None)
    if isinstance(engine, VirtualEngine) and callback.__name__ == "wake":
        return deadline, "wake", engine.rank
    raise Undetermined(str(callback))
