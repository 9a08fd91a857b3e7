"""distwq: a controller gives tasks to brokers, each of which spawns two ranks for them."""

import distwq

TASKS = 10


def squared(number):
    return number * number


def worker_begins(worker):
    assert worker.comm.allreduce(1) == 2


def give_out(controller):
    for number in range(TASKS):
        controller.submit_call("squared", (number,), module_name="distwq_groups")
    results = [controller.get_next_result()[1] for _ in range(TASKS)]
    found = sorted(one for result in results for one in result)
    assert found == sorted(2 * [number * number for number in range(TASKS)]), found
    print("fine", flush=True)


if __name__ == "__main__":
    distwq.run(
        fun_name="give_out" if distwq.is_controller else "worker_begins",
        module_name="distwq_groups",
        nprocs_per_worker=2,
        worker_grouping_method="spawn",
        broker_is_worker=False,
    )
