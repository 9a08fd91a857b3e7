"""Random programs in several threads of each rank at a time, each on a communicator of its own."""

from __future__ import annotations

from threading import Thread
from typing import Final

from ompy import MPI

from tests.support.differential import files, mixtures, objects, reductions, windows
from tests.support.differential.program import Judge, Program

KINDS: Final = (mixtures, mixtures, reductions, windows, files, objects)
PROGRAMS: Final = 2  # of a thread
MOST: Final = 4  # threads
SEEDS: Final = 10  # of one thread; at least as many as programs, and as threads


def run(program: Program) -> None:
    """Two to four threads, each with some programs of any kind."""
    assert MPI.Query_thread() == MPI.THREAD_MULTIPLE
    count = program.chance.randint(2, MOST)
    plans = [[program.chance.choice(KINDS) for _ in range(PROGRAMS)] for _ in range(count)]
    comms = [program.comm.Dup() for _ in range(count)]
    judges = [Judge(plant=program.judge.plant and not place) for place in range(count)]
    program.judge.plant = False
    wrong: list[Exception] = []

    def run_some(place: int) -> None:
        """What one thread does."""
        for turn, kind in enumerate(plans[place]):
            seed = (program.seed * SEEDS + place) * SEEDS + turn
            try:
                kind.run(Program(comms[place], seed, judges[place]))
            except Exception as problem:
                problem.add_note(f"thread {place}, {kind.__name__}, seed {seed}")
                wrong.append(problem)
                return

    every = [Thread(target=run_some, args=(place,)) for place in range(count)]
    for thread in every:
        thread.start()
    for thread in every:
        thread.join()
    if wrong:
        raise wrong[0]
    program.judge.compared += sum(judge.compared for judge in judges)
    for comm in comms:
        comm.Free()
