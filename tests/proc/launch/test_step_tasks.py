"""Counting the tasks of a Slurm step: a step daemon is what calls itself so."""

import subprocess
import time

import pytest
from ompy.runtime.passive.step_watch import tasks_by_host
from ompy.runtime.passive.tasks import count_tasks, step_name

pytestmark = pytest.mark.proc
STEP = "98765432.7"


def test_tasks_are_the_children_of_the_daemon_until_they_end():
    words = [f"slurmstepd: [{STEP}]"]
    daemon = subprocess.Popen(
        words, executable="/bin/sh", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        daemon.stdin.write("for i in 1 2 3; do read line & echo $!; done < /dev/null\n")
        daemon.stdin.write("sleep 1000 & echo $!\nsleep 1000 & echo $!\n")
        daemon.stdin.flush()
        tasks = [int(daemon.stdout.readline()) for _ in range(5)][3:]
        await_count(2)  # the other three have ended
        subprocess.run(["kill", str(tasks[0])], check=True)
        await_count(1)
    finally:
        subprocess.run(["kill", *map(str, tasks)], check=False, capture_output=True)
        daemon.kill()
        daemon.communicate()
    assert count_tasks(STEP) is None


def await_count(wanted):
    deadline = time.monotonic() + 60
    while count_tasks(STEP) != wanted:
        assert time.monotonic() < deadline, count_tasks(STEP)
        time.sleep(0.01)


def test_what_slurms_variables_say():
    step = {"SLURM_JOB_ID": "12", "SLURM_STEP_ID": "3"}
    assert step_name(step) == "12.3"
    assert step_name({"SLURM_JOB_ID": "12"}) == ""
    hosts = {"SLURM_STEP_NODELIST": "n[1-3]", "SLURM_STEP_TASKS_PER_NODE": "2(x2),1"}
    assert tasks_by_host(hosts) == {"n1": 2, "n2": 2, "n3": 1}
    assert tasks_by_host({**hosts, "SLURM_STEP_TASKS_PER_NODE": "2"}) == {}
