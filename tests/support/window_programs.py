"""Random one-sided programs with one outcome, and the sequential model that says which.

In each phase every target's numbers are dealt into blocks. A block is read by everybody, written
by one origin, accumulated into by one origin in order, or added to by all; so whatever order the
operations of different origins happen in, what is there afterwards is known, and what each read.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from random import Random

from ompy.mpi.buffers.memory import Get_address
from ompy.mpi.collectives.operation import OPERATIONS
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.constants import LOCK_EXCLUSIVE, LOCK_SHARED
from ompy.mpi.datatypes.predefined import DATATYPES
from ompy.mpi.windows.windows import Win
from ompy.runtime.ranks.process import RankProcess

NUMBERS = 48  # of each window
INT = DATATYPES["INT"]
ORDERED = ("SUM", "PROD", "MAX", "MIN", "BAND", "BOR", "BXOR", "REPLACE")
MASK = (1 << 16) - 1  # arbitrary: products stay far from the end of 32 bits
KINDS = ("fence", "pscw", "lock", "lock_all")


def apply(name: str, there: int, given: int) -> int:
    functions = {
        "SUM": there + given,
        "PROD": there * given,
        "MAX": max(there, given),
        "MIN": min(there, given),
        "BAND": there & given,
        "BOR": there | given,
        "BXOR": there ^ given,
        "REPLACE": given,
        "NO_OP": there,
    }
    return functions[name]


@dataclass
class Step:
    """One operation of one origin: on `count` numbers from `first` on, each `stride` apart."""

    what: str  # put, get, acc, fetch, swap
    target: int
    first: int
    count: int
    stride: int
    data: list[int] = field(default_factory=list)
    name: str = "SUM"
    expected: list[int] | None = None  # what it reads, if that is known
    at: int = 0  # where the window has the first

    def places(self) -> list[int]:
        return [self.first + number * self.stride for number in range(self.count)]


@dataclass
class Phase:
    kind: str
    exclusive: bool
    steps: list[list[Step]]  # by origin
    after: list[list[int]]  # by target


def plan(seed: int, ranks: int, phases: int) -> list[Phase]:
    """The same in every rank."""
    chance = Random(seed)
    memory = [[target * 100 + number for number in range(NUMBERS)] for target in range(ranks)]
    made = []
    for _ in range(phases):
        steps: list[list[Step]] = [[] for _ in range(ranks)]
        for target in range(ranks):
            first = 0
            while first < NUMBERS:
                size = min(chance.choice((1, 2, 5, 16)), NUMBERS - first)
                _block(chance, memory[target], steps, target, first, size)
                first += size
        for mine in steps:
            _shuffled(chance, mine)
        kind = chance.choice(KINDS)
        made.append(Phase(kind, chance.random() < 0.5, steps, [list(each) for each in memory]))
    return made


def _shuffled(chance: Random, steps: list[Step]) -> None:
    """Another order that keeps that of the steps on each block."""
    blocks: dict[tuple[int, int], list[Step]] = {}
    for step in steps:
        blocks.setdefault((step.target, step.first), []).append(step)
    queues = list(blocks.values())
    steps.clear()
    while queues:
        queue = chance.choice(queues)
        steps.append(queue.pop(0))
        if not queue:
            queues.remove(queue)


def _block(
    chance: Random, there: list[int], steps: list[list[Step]], target: int, first: int, size: int
) -> None:
    stride = chance.choice((1, 1, 2)) if size > 1 else 1
    count = (size + stride - 1) // stride
    origin = chance.randrange(len(steps))
    use = chance.choice(("read", "put", "ordered", "ordered", "shared", "nothing"))

    def step(what: str, **more: object) -> Step:
        return Step(what, target, first, count, stride, **more)  # type: ignore[arg-type]

    def data() -> list[int]:
        return [chance.randrange(1, 50) for _ in range(count)]

    if use == "read":
        for mine in steps:
            made = step("get")
            made.expected = [there[place] for place in made.places()]
            mine.append(made)
    elif use == "put":
        made = step("put", data=data())
        _change(there, made, "REPLACE")
        steps[origin].append(made)
    elif use == "ordered":
        for _ in range(chance.randrange(1, 4)):
            steps[origin].append(_ordered(chance, there, step, data))
    elif use == "shared":
        for mine in steps:
            made = step(chance.choice(("acc", "fetch")), data=data())
            _change(there, made, "SUM")
            mine.append(made)


def _ordered(chance: Random, there: list[int], step, data) -> Step:
    name = chance.choice(ORDERED)
    made = step(chance.choice(("acc", "fetch")), data=data(), name=name)
    before = [there[place] for place in made.places()]
    if made.count == 1 and chance.random() < 0.3:
        made.what, made.name, made.stride = "swap", "SWAP", 1
        compare = before[0] if chance.random() < 0.5 else -7
        made.data = [made.data[0], compare]
        made.expected = before
        if compare == before[0]:
            there[made.first] = made.data[0]
        return made
    if any(apply(name, old, new) > MASK for old, new in zip(before, made.data, strict=True)):
        made.name = "REPLACE"
    if made.what == "fetch":
        if chance.random() < 0.2:
            made.name = "NO_OP"
        made.expected = before
    _change(there, made, made.name)
    return made


def _change(there: list[int], step: Step, name: str) -> None:
    for place, given in zip(step.places(), step.data, strict=True):
        there[place] = apply(name, there[place], given)


def run(process: RankProcess, *, seed: int, phases: int = 6, memory: str = "created") -> int:
    """Run the program of a seed in one rank; how many operations it was.

    `memory` is "created", "allocated" or "attached", of a dynamic window.
    """
    comm = world_of(process)
    start = array("i", [comm.rank * 100 + number for number in range(NUMBERS)])
    win, first, unit = _window(comm, memory, start)
    there = memoryview(start if memory == "attached" else win.tomemory()).cast("B").cast("i")
    done = 0
    for number, phase in enumerate(plan(seed, comm.size, phases)):
        steps = phase.steps[comm.rank]
        for step in steps:
            step.at = first[step.target] + unit * step.first
        results = _phase(win, comm, phase, steps)
        done += len(steps)
        comm.Barrier()
        for step, result in zip(steps, results, strict=True):
            if step.expected is not None:
                assert list(result[:: step.stride])[: step.count] == step.expected, (number, step)
        assert there.tolist() == phase.after[comm.rank], (number, phase.kind)
        comm.Barrier()
    if memory == "attached":
        win.Detach(start)
    win.Free()
    return done


def _window(comm, memory: str, start: array) -> tuple[Win, list[int], int]:
    """A window with these numbers; where each part begins, and what it counts for a number."""
    none = [0] * comm.size
    if memory == "created":
        return Win.Create(start, 4, comm=comm), none, 1
    if memory == "attached":
        win = Win.Create_dynamic(comm=comm)
        beside = array("i", [7, 7])  # another piece
        win.Attach(beside)
        win.Attach(start)
        win.Detach(beside)
        return win, comm.allgather(Get_address(start)), 4
    win = Win.Allocate(NUMBERS * 4, 4, comm=comm)
    memoryview(win.tomemory())[:] = memoryview(start).cast("B")
    comm.Barrier()
    return win, none, 1


def _phase(win: Win, comm, phase: Phase, steps: list[Step]) -> list[array]:
    if phase.kind == "fence":
        win.Fence()
        results = [_do(win, step) for step in steps]
        win.Fence()
    elif phase.kind == "pscw":
        results = _active(win, comm, phase, steps)
    elif phase.kind == "lock_all":
        win.Lock_all()
        results = [_do(win, step) for step in steps]
        win.Flush_all()
        win.Unlock_all()
    else:
        found: dict[int, array] = {}
        for target in range(comm.size):
            win.Lock(target, LOCK_EXCLUSIVE if phase.exclusive else LOCK_SHARED)
            for number, step in enumerate(steps):
                if step.target == target:
                    found[number] = _do(win, step)
                    if number % 3 == 0:
                        win.Flush(target)
            win.Unlock(target)
        results = [found[number] for number in range(len(steps))]
    return results


def _active(win: Win, comm, phase: Phase, steps: list[Step]) -> list[array]:
    """Each starts with those that it has something to do at, who post to them and to no others."""
    group = win.Get_group()
    if phase.exclusive:
        origins = targets = list(range(comm.size))
    else:
        targets = sorted({step.target for step in steps})
        starting = [{step.target for step in others} for others in phase.steps]
        origins = [rank for rank, there in enumerate(starting) if comm.rank in there]
    win.Post(group.Incl(origins))
    win.Start(group.Incl(targets))
    results = [_do(win, step) for step in steps]
    win.Complete()
    while not (win.Test() if phase.steps[0] and len(steps) % 2 else win.Wait()):
        pass
    return results


def _do(win: Win, step: Step) -> array:
    """Do it; where what it reads will be. That has the target's stride, origins have none."""
    kind = INT
    if step.stride > 1:
        kind = INT.Create_vector(step.count, 1, step.stride).Commit()
    place = [step.at, 1 if step.stride > 1 else step.count, kind]
    result = array("i", [-1] * (step.count * step.stride))
    into = [result, place[1], kind]
    data = array("i", step.data)
    if step.stride == 1 and step.first % 2 == 0 and _in_short(win, step, data, result):
        return result
    if step.what == "put":
        win.Put(data, step.target, place)
    elif step.what == "get":
        win.Get(into, step.target, place)
    elif step.what == "acc":
        win.Accumulate(data, step.target, place, OPERATIONS[step.name])
    elif step.what == "swap":
        new, compare = array("i", step.data[:1]), array("i", step.data[1:])
        win.Compare_and_swap(new, compare, result, step.target, step.at)
    else:
        origin = None if step.name == "NO_OP" else data
        spec = data if origin is None else origin
        win.Get_accumulate(spec, into, step.target, place, OPERATIONS[step.name])
    return result


def _in_short(win: Win, step: Step, data: array, result: array) -> bool:
    """The same by arguments without gaps, which may go another way; if there are.

    Which forms the buffers and the place have, and whether there is a request, is by the step.
    """
    form = step.first // 2 + step.count + len(step.name)
    operation = OPERATIONS.get(step.name)
    given, into = _spec(data, form), _spec(result, form // 3)
    place = _there(step, form // 2)
    request = None
    if step.what == "put" and form % 2:
        request = win.Rput(given, step.target, place)
    elif step.what == "put":
        win.Put(given, step.target, place)
    elif step.what == "get" and form % 2:
        request = win.Rget(into, step.target, place)
    elif step.what == "get":
        win.Get(into, step.target, place)
    elif step.what == "acc" and form % 2:
        request = win.Raccumulate(given, step.target, place, operation)
    elif step.what == "acc":
        win.Accumulate(given, step.target, place, operation)
    elif step.what == "fetch" and step.count == 1 and form % 3:
        win.Fetch_and_op(given, into, step.target, step.at, operation)
    elif step.what == "fetch" and form % 2:
        request = win.Rget_accumulate(given, into, step.target, place, operation)
    elif step.what == "fetch":
        win.Get_accumulate(given, into, step.target, place, operation)
    elif step.what == "swap":
        new, compare = _spec(data[:1], form), _spec(data[1:], form // 2)
        win.Compare_and_swap(new, compare, into, step.target, step.at)
    else:
        return False
    if request is not None:
        request.Wait()
    return True


def _spec(numbers: array, form: int) -> object:
    """A buffer as users write it."""
    forms = (numbers, [numbers, INT], (numbers, len(numbers), INT), [numbers, "i"])
    return forms[form % len(forms)]


def _there(step: Step, form: int) -> object:
    """A place as users write it."""
    forms = (step.at, [step.at], (step.at, step.count), [step.at, step.count, INT])
    return forms[form % len(forms)]


def seeded(process: RankProcess) -> int:
    """Some programs in one job: for real ranks."""
    return sum(run(process, seed=seed, phases=4) for seed in range(6))


def seeded_attached(process: RankProcess) -> int:
    """The same in memory that is attached to dynamic windows."""
    return sum(run(process, seed=200 + seed, phases=4, memory="attached") for seed in range(6))


def seeded_allocated(process: RankProcess) -> int:
    """The same in memory that the windows have of their own."""
    return sum(run(process, seed=100 + seed, phases=4, memory="allocated") for seed in range(6))
