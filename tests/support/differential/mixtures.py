"""Random mixtures of collective calls and messages, completed in every way and order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ompy import MPI

from tests.support.differential.calls import Call
from tests.support.differential.collectives import Collective, Plan
from tests.support.differential.communicators import Members, draw_communicators, free_all
from tests.support.differential.messages import draw_messages
from tests.support.differential.program import Program, WrongData, some

CALLS = 8  # of a batch, at most
BATCHES = 3  # of a program, at most
Done = tuple[list[int], list[Any] | None]  # which requests are complete, and statuses of theirs
Pending = list[tuple[Call, Any]]  # with their requests


def statuses(requests: list[Any]) -> list[Any]:
    """One for each."""
    return [MPI.Status() for _ in requests]


def wait_for_one(requests: list[Any]) -> Done:
    """The first one."""
    status = MPI.Status()
    requests[0].Wait(status)
    return [0], [status]


def wait_for_all(requests: list[Any]) -> Done:
    """With what is said of them."""
    found = statuses(requests)
    MPI.Request.Waitall(requests, found)
    return list(range(len(requests))), found


def wait_silently(requests: list[Any]) -> Done:
    """All, and nothing is said of them."""
    MPI.Request.Waitall(requests)
    return list(range(len(requests))), None


def wait_for_half(requests: list[Any]) -> Done:
    """Of some of them."""
    return wait_for_all(requests[: (len(requests) + 1) // 2])


def wait_for_any(requests: list[Any]) -> Done:
    """Whichever is first."""
    status = MPI.Status()
    return [MPI.Request.Waitany(requests, status)], [status]


def wait_for_some(requests: list[Any]) -> Done:
    """Those that are complete."""
    found = statuses(requests)
    return MPI.Request.Waitsome(requests, found), found


def test_one(requests: list[Any]) -> Done:
    """The first one."""
    status = MPI.Status()
    return ([0] if requests[0].Test(status) else []), [status]


def test_any(requests: list[Any]) -> Done:
    """One that is complete."""
    status = MPI.Status()
    which, complete = MPI.Request.Testany(requests, status)
    return ([which] if complete else []), [status]


def test_some(requests: list[Any]) -> Done:
    """Those that are complete."""
    found = statuses(requests)
    return MPI.Request.Testsome(requests, found) or [], found


def test_all(requests: list[Any]) -> Done:
    """All or none."""
    found = statuses(requests)
    complete = MPI.Request.Testall(requests, found)
    return list(range(len(requests))) if complete else [], found


TESTS: list[Callable[[list[Any]], Done]] = [test_one, test_any, test_some]
WAITS = [wait_for_one, wait_for_all, wait_silently, wait_for_half, wait_for_any, wait_for_some]
EVERY_WAY = [*WAITS, *TESTS, test_all]


def complete_all(program: Program, pending: Pending, sought: Pending) -> None:
    """Complete all calls, and judge each at once.

    Args:
        program: draws how.
        pending: calls with requests.
        sought: calls with functions that look for their messages: none may be waited for, as the
            sender of one may wait for this rank.
    """
    while pending or sought:
        for call, look in list(sought):
            request = look()
            if request is not None:
                sought.remove((call, look))
                pending.append((call, request))
        if not pending:
            continue
        program.own.shuffle(pending)
        requests = [request for _, request in pending]
        done, found = program.own.choice(TESTS if sought else EVERY_WAY)(requests)
        for at, place in enumerate(done):
            call = pending[place][0]
            if found is not None:
                call.check_status(found[at])
            if not call.persistent and requests[place] != MPI.REQUEST_NULL:
                raise WrongData(f"{call.what}: complete, and there is a request")
            call.check()
        pending[:] = [one for place, one in enumerate(pending) if place not in done]


def draw_calls(program: Program, batch: int, every: list[Members]) -> list[Call]:
    """This rank's parts of a batch."""
    found: list[Call] = []
    for place in range(program.chance.randint(1, CALLS)):
        number, messages = batch * CALLS + place, some(program.chance, 0.35)
        members = program.chance.choice(every)
        if messages:
            found += draw_messages(program, number, members)
            continue
        plan = Plan(program, members)
        if members.side is not None:
            found.append(Collective(program, number, plan))
    return found


def run_batch(program: Program, calls: list[Call], turns: int) -> None:
    """Begin all, and complete them; what is persistent or a message more than once."""
    started: dict[int, Any] = {}
    for turn in range(turns):
        pending: Pending = []
        sought: Pending = []
        for place, call in enumerate(calls):
            if turn and not call.persistent and not call.repeated:
                continue
            call.prepare(turn)
            request = started.get(place)
            if request is None:
                request = call.begin()
            if call.persistent:
                started[place] = request
                if some(program.own, 0.5):
                    request.Start()
                else:
                    MPI.Prequest.Startall([request])
            if request is None:
                call.check()
            elif isinstance(request, MPI.Request):
                pending.append((call, request))
            else:
                sought.append((call, request))
        complete_all(program, pending, sought)
    for request in started.values():
        request.Free()


def run(program: Program, others: Sequence[Members] = ()) -> None:
    """Some batches, in communicators that are made here, and in others."""
    every = [*draw_communicators(program), *others]
    for batch in range(program.chance.randint(1, BATCHES)):
        run_batch(program, draw_calls(program, batch, every), program.chance.randint(1, 3))
    if some(program.chance, 0.5):
        program.comm.Barrier()
    free_all([members for members in every if members not in others])
