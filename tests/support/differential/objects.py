"""Random programs that give each other objects: every lower-case call, also where pickle fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import reduce
from random import Random
from typing import Any, Final

from ompy import MPI
from ompy.addons import pkl5

from tests.support.differential.program import Program, WrongData, some
from tests.support.differential.things import Unreadable, Unwritable, draw_object, same_objects

CALLS: Final = 8  # at most
TAGS: Final = 10  # of a call; more than messages
SHIFTED: Final = 800  # the first tag of `shift`; those of messages are lower
UNREAD: Final = 900  # the first tag of `failures`
REDUCTIONS: Final[
    dict[str, tuple[Any, Callable[[Any, Any], Any], Callable[[Random, int], Any]]]
] = {
    "sum": (MPI.SUM, lambda a, b: a + b, lambda chance, rank: chance.randint(0, 1 << 70)),
    "max": (MPI.MAX, max, lambda chance, rank: chance.random()),
    "lists": (MPI.SUM, lambda a, b: a + b, lambda chance, rank: [rank] * 3),
    "lowest": (MPI.MINLOC, min, lambda chance, rank: (chance.randint(0, 2), rank)),
    "function": (lambda a, b: a + b, lambda a, b: a + b, lambda chance, rank: f"<{rank}>"),
}


class Objects:
    """A program's calls.

    Attributes:
        comm: of the program; with out-of-band buffers where `five`.
        pending: requests, or functions that look for a message, with what has to come and what it
            is; None for what is sent.
    """

    def __init__(self, program: Program) -> None:
        self.program, self.chance, self.own = program, program.chance, program.own
        self.size, self.me = program.size, program.me
        self.base = program.comm.Dup()
        self.five = some(self.chance, 0.35)
        self.comm = pkl5.Intracomm(self.base) if self.five else self.base
        self.pending: list[tuple[Any, Any, str]] = []

    def thing(self, number: int, rank: int, part: int = 0) -> Any:
        """What a rank gives to a part of a call: a new one each time."""
        return draw_object(Random(f"{self.program.seed} {number} {rank} {part}"))

    def check(self, got: Any, want: Any, what: str) -> None:
        """Judge what a call returned."""
        self.program.judge.compare_objects(got, want, what, same_objects)

    def messages(self, number: int) -> None:
        """Some, received in every way, later."""
        comm, own = self.comm, self.own
        for tag in range(number * TAGS, number * TAGS + self.chance.randint(1, 5)):
            source, target = self.chance.randrange(self.size), self.chance.randrange(self.size)
            what = f"message {tag} from {source} to {target}"
            if source == self.me:
                send = own.choice((comm.isend, comm.isend, comm.issend))
                self.pending.append((send(self.thing(tag, source), target, tag), None, what))
            if target == self.me:
                taken: Any = self._looking(source, tag)
                if not self.five and some(own, 0.5):
                    taken = comm.irecv(None, source, tag)
                self.pending.append((taken, (self.thing(tag, source),), what))

    def _looking(self, source: int, tag: int) -> Callable[[], Any]:
        """Looks for a message. Returns it, received in one of two ways, in a tuple."""

        def look() -> Any:
            message = self.comm.improbe(source, tag)
            if message is None:
                return None
            return (message.recv(),) if some(self.own, 0.5) else message.irecv()

        return look

    def collectives(self, number: int) -> None:
        """One that gives objects as they are."""
        comm, me, root = self.comm, self.me, self.chance.randrange(self.size)
        name = self.chance.choice(("bcast", "gather", "scatter", "allgather", "alltoall"))
        what, ranks = f"call {number}: {name}, root {root}", range(self.size)
        mine = self.thing(number, me)
        every = [self.thing(number, rank) for rank in ranks]
        if name == "bcast":
            self.check(comm.bcast(mine if me == root else None, root), every[root], what)
        elif name == "gather":
            self.check(comm.gather(mine, root), every if me == root else None, what)
        elif name == "scatter":
            self.check(comm.scatter(every if me == root else None, root), every[me], what)
        elif name == "allgather":
            self.check(comm.allgather(mine), every, what)
        else:
            given = [self.thing(number, me, rank) for rank in ranks]
            want = [self.thing(number, rank, me) for rank in ranks]
            self.check(comm.alltoall(given), want, what)

    def reductions(self, number: int) -> None:
        """One that combines objects."""
        chance, comm, me = self.chance, self.comm, self.me
        name, root = chance.choice(("reduce", "allreduce", "scan", "exscan")), None
        kind = chance.choice(list(REDUCTIONS))
        operation, combine, give = REDUCTIONS[kind]
        root = chance.randrange(self.size)

        def combined(ranks: Iterable[int]) -> Any:
            each = [give(Random(f"{self.program.seed} {number} {rank}"), rank) for rank in ranks]
            return reduce(combine, each) if each else None

        more = [root] if name == "reduce" else []
        got = getattr(comm, name)(combined([me]), operation, *more)
        last = {"scan": me + 1, "exscan": me}.get(name, self.size)
        want = None if name == "reduce" and me != root else combined(range(last))
        self.check(got, want, f"call {number}: {name} {kind}, root {root}")

    def shift(self, number: int) -> None:
        """All ranks send and receive at a time."""
        by, tag = self.chance.randrange(self.size), SHIFTED + number
        target, source = (self.me + by) % self.size, (self.me - by) % self.size
        mine = self.thing(number, self.me)
        got = self.comm.sendrecv(mine, target, tag, None, source, tag)
        self.check(got, self.thing(number, source), f"call {number}: sendrecv by {by}")

    def failures(self, number: int) -> None:
        """What cannot be pickled or read is an error of those that do it, and of no other call."""
        comm, me, root = self.comm, self.me, self.chance.randrange(self.size)
        after, before = (me + 1) % self.size, (me - 1) % self.size
        kind = self.chance.choice(("unwritable", "message", "bcast", "allgather"))
        if kind == "unwritable":
            self.fails(lambda: comm.send(Unwritable(), after), LookupError)
        elif kind == "message":
            request = comm.isend([1, Unreadable()], after, UNREAD + number)
            self.fails(lambda: comm.recv(source=before, tag=UNREAD + number), KeyError)
            request.wait()
        elif kind == "allgather":
            self.fails(lambda: comm.allgather(Unreadable() if me == root else 5), KeyError)
        elif me == root:
            with suppress(KeyError, MPI.Exception):  # it may return what it gave, or read it, too
                comm.bcast(Unreadable(), root)
        else:
            self.fails(lambda: comm.bcast(None, root), KeyError)

    def fails(self, call: Callable[[], Any], error: type[Exception]) -> None:
        """Judge that it does."""
        try:
            call()
        except (error, MPI.Exception):
            return
        raise WrongData(f"no {error} was raised")

    def complete_all(self) -> None:
        """Complete and judge what is pending, in any order."""
        self.own.shuffle(self.pending)
        while self.pending:
            taken, want, what = self.pending.pop(0)
            if callable(taken):
                found = taken()
                if type(found) is not tuple:  # requests of pkl5 are tuples, too
                    self.pending.append((taken if found is None else found, want, what))
                    continue
                (got,) = found
            elif some(self.own, 0.3) or any(callable(one) for one, _, _ in self.pending):
                complete, got = taken.test()
                if not complete:
                    self.pending.append((taken, want, what))
                    continue
            else:
                got = taken.wait()
            if want is not None:
                self.check(got, want[0], what)


def run(program: Program) -> None:
    """Some calls, and messages beside them."""
    objects = Objects(program)
    kinds = (objects.messages, objects.collectives, objects.reductions)
    for number in range(program.chance.randint(1, CALLS)):
        program.chance.choice((*kinds * 3, objects.shift, objects.failures))(number)
    objects.complete_all()
    objects.base.Free()
