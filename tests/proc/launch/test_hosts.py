"""A job of several hosts: what agents tell each other through the launcher.

The "hosts" are this one, with an agent each; launcher and agents do not know.
"""

import sys

import pytest

pytestmark = pytest.mark.proc

MAIN = """
import sys
from ompy.frameworks.job import App, Job, Placement
from ompy.frameworks.plm import Target
from ompy.runtime.launching.launcher import LaunchOptions, launch
from ompy_components.plm.local.component import LocalPlm

class Everywhere(LocalPlm):
    def start(self, host):
        link = super().start("localhost")
        link.host = host
        return link

hosts, each, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
job = Job(
    "0" * 16,
    (App((sys.executable, "-c", program), hosts * each),),
    tuple(f"host{node}" for node in range(hosts)),
    tuple(Placement(rank, 0, rank // each, rank % each) for rank in range(hosts * each)),
    stdin_rank=int(sys.argv[4]),
)
starts = [(Everywhere(), Target(host)) for host in job.hosts]
sys.exit(launch(job, starts, LaunchOptions(universe=8, kill_grace_ms=1000, tag=True)))
"""
HEAD = """
import os, select, sys, time
from ompy.data.errors import MPIError
from ompy.runtime.ranks.client import attach
c = attach()
size = len(c.job.placements)
here = c.job.placements[c.rank]
"""


@pytest.fixture
def hosts(launch, monkeypatch):
    """Runs a program on so many hosts with so many ranks each."""

    def run(count, each, program, stdin_rank=0, **options):
        command = [sys.executable, "-c", MAIN]
        monkeypatch.setattr(f"{type(launch).__module__}.OMPY_RUN", command)
        return launch(count, each, HEAD + program, stdin_rank, **options)

    return run


def said(result):
    assert result.code == 0, result
    return sorted(line.partition(">:")[2] for line in result.out.splitlines())


def test_modex_and_fences_span_hosts(hosts):
    program = (
        "c.publish('host', os.environ['OMPI_COMM_WORLD_LOCAL_RANK'].encode() * 1000); c.commit()\n"
        "found = [c.lookup(rank)['host'][:1].decode() for rank in range(size)]\n"
        "for _ in range(10): c.fence()\n"
        "print(here.node, here.local_rank, *found); c.finalized()"
    )
    assert said(hosts(3, 2, program)) == [
        f"{node} {local} 0 1 0 1 0 1" for node in range(3) for local in range(2)
    ]


def test_memory_is_of_one_host(hosts):
    program = (
        "import mmap\n"
        "view = mmap.mmap(c.memory('m', 4096), 4096)\n"
        "view[here.local_rank] = c.rank + 1\n"
        "c.fence(); print(here.node, list(view[:3])); c.finalized()"
    )
    expected = ["0 [1, 2, 0]", "0 [1, 2, 0]", "1 [3, 4, 0]", "1 [3, 4, 0]"]
    assert said(hosts(2, 2, program)) == expected


def test_departures_reach_other_hosts(hosts):
    program = (
        "c.commit(); c.fence()\n"
        "if c.rank == 1: c.finalized(); sys.exit()\n"
        "gone = []\n"
        "c.on_left = lambda rank, done, silent: gone.append((rank, done))\n"
        "c.on_readable()\n"  # what came with the answer to the fence
        "while not gone: select.select([c], [], []); c.on_readable()\n"
        "print(gone)\n"
        "try: c.fence()\n"
        "except MPIError as error: print(error.code)\n"
        "c.finalized()"
    )
    assert said(hosts(2, 1, program)) == ["75", "[(1, True)]"]


def test_a_failure_on_one_host_ends_all(hosts, processes):
    program = "c.commit(); c.fence()\nc.abort(9, 'far away') if c.rank == 3 else time.sleep(1000)"
    result = hosts(2, 2, program)
    assert result.code == 9
    assert "host1" in result.err
    assert not processes()


def test_input_goes_to_another_host(hosts):
    program = "print(c.rank, sys.stdin.read()); c.finalized()"
    assert said(hosts(2, 1, program, stdin_rank=1, data=b"hello")) == ["0 ", "1 hello"]


def test_much_output_of_several_hosts(hosts):
    program = "for i in range(50_000): print('x' * 60)\nc.finalized()"
    assert said(hosts(2, 1, program)) == ["x" * 60] * 100_000
