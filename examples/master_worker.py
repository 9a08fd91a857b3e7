"""Lesson 9, wildcards: rank 0 deals out tasks by demand; a worker that is ready asks for the next.

You learn: a receive from ANY_SOURCE takes whoever comes first, and a Status says who it was; so who
    does what differs from run to run; `ompy sim --explore` tries every order that matters.
Run: ompy-run -n 4 python examples/master_worker.py
    ompy sim --explore -n 3 examples/master_worker.py 2
Change: assert that all workers have the same number of tasks, and explore it again.
"""

# %% What messages are for
import sys

from mpi4py import MPI

READY, TASK, RESULT, STOP = range(4)
TASKS = int(sys.argv[1]) if sys.argv[1:] else 40

comm = MPI.COMM_WORLD


def work(number):
    """The answer to one task: how many divisors a number has."""
    return sum(number % divisor == 0 for divisor in range(1, number + 1))


# %% Rank 0
def master():
    """Deal out tasks until all are answered, then send everybody home."""
    answers = {}
    tasks = iter(range(1, TASKS + 1))
    status = MPI.Status()
    at_work = comm.size - 1
    while at_work:
        said = comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
        if status.Get_tag() == RESULT:
            answers.update([said])
        task = next(tasks, None)
        if task is None:
            comm.send(None, dest=status.Get_source(), tag=STOP)
            at_work -= 1
        else:
            comm.send(task, dest=status.Get_source(), tag=TASK)
    answers.update((task, work(task)) for task in tasks)  # a world of one has no workers
    return answers


# %% The others
def worker():
    """Ask, work, answer, until told to stop."""
    done = 0
    status = MPI.Status()
    comm.send(None, dest=0, tag=READY)
    while True:
        task = comm.recv(source=0, status=status)
        if status.Get_tag() == STOP:
            return done
        comm.send((task, work(task)), dest=0, tag=RESULT)
        done += 1


# %% The work
result = master() if comm.rank == 0 else worker()
shares = comm.gather(result if comm.rank else 0, root=0)
if comm.rank == 0:
    assert result == {number: work(number) for number in range(1, TASKS + 1)}
    assert comm.size == 1 or sum(shares) == TASKS
    print(f"{TASKS} tasks done; by worker: {shares[1:]}")
