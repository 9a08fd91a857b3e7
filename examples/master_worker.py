"""Rank 0 deals out tasks by demand; whoever is ready asks for the next one."""

from mpi4py import MPI

READY, TASK, RESULT, STOP = range(4)
TASKS = 40

comm = MPI.COMM_WORLD


def work(number):
    """The answer to one task: how many divisors a number has."""
    return sum(number % divisor == 0 for divisor in range(1, number + 1))


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


result = master() if comm.rank == 0 else worker()
shares = comm.gather(result if comm.rank else 0, root=0)
if comm.rank == 0:
    assert result == {number: work(number) for number in range(1, TASKS + 1)}
    assert comm.size == 1 or sum(shares) == TASKS
    print(f"{TASKS} tasks done; by worker: {shares[1:]}")
