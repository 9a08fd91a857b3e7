"""distwq: a controller gives tasks to brokers, each of which has two ranks for them.

The brokers spawn these ranks, or they are ranks of the job: `spawn` or `split` on the command line.
"""

import atexit
import sys

import distwq

TASKS = 10


def squared(number):
    return number * number


def worker_begins(worker):
    assert worker.comm.allreduce(1) == 2


def broker_begins(broker):
    # the workers disconnect, distwq's brokers do not: all members of a communicator have to
    atexit.register(broker.merged_comm.Disconnect)


def give_out(controller):
    # exit() tells those brokers that were heard of; another would wait for its word for ever
    while len(controller.active_workers) < controller.comm.size - 1:
        controller.process(block=True)
    for number in range(TASKS):
        controller.submit_call("squared", (number,), module_name="distwq_groups")
    results = [controller.get_next_result()[1] for _ in range(TASKS)]
    found = sorted(one for result in results for one in result)
    assert found == sorted(2 * [number * number for number in range(TASKS)]), found
    print("fine", flush=True)


if __name__ == "__main__":
    method = sys.argv[1]
    begins, broker = ("worker_begins", "broker_begins") if method == "spawn" else (None, None)
    distwq.run(
        fun_name="give_out" if distwq.is_controller else begins,
        broker_fun_name=None if distwq.is_controller else broker,
        module_name="distwq_groups",
        nprocs_per_worker=2,
        worker_grouping_method=method,
        broker_is_worker=False,
    )
