"""GASNet programs in `ompy sim`: they run as they are, twice the same, and a deadlock is told."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from ompy.trace.operations import operations
from ompy.trace.trace_files import read_trace

from tests.proc.test_sim import Sim, files, sim
from tests.support.effort import THOROUGH
from tests.support.gasnet_programs import PROGRAMS

__all__ = ["sim"]  # a fixture

pytestmark = pytest.mark.proc

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from ompy import gasnet
from tests.support.gasnet_programs import PROGRAMS
PROGRAMS[sys.argv[1]].run(gasnet)
gasnet.exit(0)
"""
FEW = ("own_rank", "values")  # the nightly run has all programs, and all faults
FAULTS = {
    "none": (),
    "delays": ("--fault", "delay:delay=2ms,jitter=2ms,probability=0.1"),
    "held back": ("--fault", "delay:probability=0.02,delay=5ms"),
    "lossy": ("--fault", "lossy"),
}
ALONE = """
import sys
from ompy import gasnet
gasnet.init()
gasnet.attach(segment_size=gasnet.PAGE_SIZE)
gasnet.coll_init()
me, block, blocks = gasnet.mynode(), bytearray(8), bytearray(8 * gasnet.nodes())
flags = gasnet.COLL_IN_NOSYNC | gasnet.COLL_OUT_NOSYNC | gasnet.COLL_LOCAL
team = gasnet.TEAM_ALL
calls = {
    "roots": lambda: gasnet.coll_broadcast(team, block, me, block, 8, flags),
    "broadcast and gather": lambda: (
        gasnet.coll_gather(team, 0, block, block, 8, flags)
        if me
        else gasnet.coll_broadcast(team, block, 0, block, 8, flags)
    ),
    "scatter and gather": lambda: (
        gasnet.coll_gather(team, 0, block, block, 8, flags)
        if me
        else gasnet.coll_scatter(team, block, 0, blocks, 8, flags)
    ),
    "the same": lambda: gasnet.coll_broadcast(team, block, 0, block, 8, flags),
}
calls[sys.argv[1]]()
"""
MEETING = """
from ompy import gasnet
heard = []
def ask(token, payload, number):
    gasnet.am_reply_medium(token, answer, bytes(payload) * 2, number + 1)
def answer(token, payload, number):
    heard.append((gasnet.am_get_msg_source(token), bytes(payload), number))
gasnet.init()
gasnet.attach([ask, answer], segment_size=gasnet.PAGE_SIZE)
me, ranks = gasnet.mynode(), gasnet.nodes()
for node in range(ranks):
    gasnet.am_request_medium(node, ask, b"ab", node)
gasnet.block_until(lambda: len(heard) == ranks)
print(me, heard, flush=True)
gasnet.put_val((me + 1) % ranks, 0, 100 + me)
gasnet.barrier()
assert int.from_bytes(gasnet.segment().memory[:8], "little") == 100 + (me - 1) % ranks
if me == 0 and STUCK:
    gasnet.block_until(lambda: False)
gasnet.barrier()
"""


NEW_PROGRAM = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from ompy import gasnet
from tests.support.gasnet_atomics import ATOMICS
from tests.support.gasnet_collectives import COLLECTIVES
(ATOMICS | COLLECTIVES)[sys.argv[1]](gasnet)
gasnet.exit(0)
"""
NEW = [
    ("patient_collectives", "delays", 2),
    ("patient_collectives", "lossy", 1),
    ("few_atomics", "delays", 1),
    ("team_barriers", "held back", 1),
    ("few_atomics", "lossy", 2),
    ("every_call", "delays", 1),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "fault", "near"), NEW if THOROUGH else NEW[:1])
def test_atomics_and_collectives(sim: Sim, name: str, fault: str, near: int) -> None:
    options = ("-n", 3, "--seed", 3, "--ranks-per-host", near, *FAULTS[fault])
    done = sim(NEW_PROGRAM, *options, program=(name,))
    assert done.returncode == 0, done.stdout + done.stderr
    delivered = int(done.stderr.partition("faults delivered:")[2].split()[2])
    assert delivered > 0, done.stderr


@pytest.mark.parametrize("fault", FAULTS if THOROUGH else ["none"])
@pytest.mark.parametrize("name", PROGRAMS if THOROUGH else FEW)
def test_programs(sim: Sim, name: str, fault: str) -> None:
    options = ("-n", PROGRAMS[name].ranks, "--seed", len(name), *FAULTS[fault])
    done = sim(PROGRAM, *options, program=(name,))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ended at" in done.stderr


@pytest.mark.nightly
def test_the_same_seed_is_the_same_world(sim: Sim, tmp_path: Path) -> None:
    said = []
    for run, seed in enumerate((5, 5, 6)):
        options = ("-n", 3, "--seed", seed, *FAULTS["delays"], "--trace", tmp_path / f"trace{run}")
        done = sim("STUCK = False\n" + MEETING, *options)
        assert done.returncode == 0, done.stderr
        said.append((done.stdout, done.stderr.partition("the trace")[0]))
    assert said[0] == said[1] != said[2]
    assert files(tmp_path / "trace0") == files(tmp_path / "trace1")
    assert int(said[0][1].partition("faults delivered:")[2].split()[2]) > 0


HOSTS = {
    "PSHM": (),
    "the NIC": ("--mca", "conduit_aries_pshm", 0),
    "mailboxes": ("--mca", "conduit_aries_messages", "mailboxes"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("way", HOSTS)
def test_hosts_of_several_ranks(sim: Sim, tmp_path: Path, way: str) -> None:
    """Ranks of one host go by PSHM, or the NIC within the host; twice the same world."""
    said = []
    for run in range(2):
        options = ("-n", 3, "--ranks-per-host", 2, "--seed", 5, "--trace", tmp_path / f"t{run}")
        done = sim("STUCK = False\n" + MEETING, *options, *HOSTS[way])
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0] == said[1]
    assert files(tmp_path / "t0") == files(tmp_path / "t1")
    near = "SMSG" if way == "the NIC" else "PSHM"
    far = "mailbox" if way == "mailboxes" else "SMSG"
    found = operations(read_trace(str(tmp_path / "t0")).events).all
    requests = [each for each in found if each.name == "AMRequestMedium"]
    ways = {(each.source, each.target): each.way for each in requests}
    assert ways == {
        (a, b): "own rank" if a == b else near if a + b == 1 else far
        for a in range(3)
        for b in range(3)
    }


@pytest.mark.nightly
@pytest.mark.parametrize("name", PROGRAMS if THOROUGH else ["own_rank"])
def test_programs_on_hosts_of_several_ranks(sim: Sim, name: str) -> None:
    options = ("-n", PROGRAMS[name].ranks, "--ranks-per-host", 2, *FAULTS["delays"])
    done = sim(PROGRAM, *options, program=(name,))
    assert done.returncode == 0, done.stdout + done.stderr


LATE = """
import time
from ompy import gasnet
heard = []
def beat(token, payload, rank):
    heard.append(rank)
gasnet.init()
gasnet.attach([beat])
gasnet.barrier()
if gasnet.mynode() == 0:
    latest = time.monotonic() + 0.002
    while len(heard) < gasnet.nodes() - 1:
        gasnet.am_poll()
        assert time.monotonic() < latest, "a rank is dead"
else:
    gasnet.am_request_short(0, beat, gasnet.mynode())
gasnet.barrier()
"""


@pytest.mark.skipif(not THOROUGH, reason="twenty seconds: the nightly run has it")
def test_a_planted_defect_is_shrunk(sim: Sim, tmp_path: Path) -> None:
    """A program that takes the late for the dead: one of the delays is enough, and named."""
    options = ("-n", 3, "--ranks-per-host", 2, "--seeds", 3, "--keep", tmp_path / "kept")
    fault = ("--fault", "delay:delay=5ms,probability=0.05")
    done = sim(LATE, *options, *fault)
    assert done.returncode == 1, done.stderr
    assert "AssertionError: a rank is dead" in done.stderr
    found = re.search(r"1 of (\d+) faults are enough", done.stderr)
    assert found, done.stderr
    assert int(found[1]) > 1
    (again,) = re.findall(r"# ompy sim (.*) \S+program.py", done.stderr)
    repeated = sim(LATE, *shlex.split(again))
    assert "AssertionError: a rank is dead" in repeated.stderr, again
    assert repeated.returncode == 1
    assert "rank = 2" in done.stderr  # the one of the other host: neighbours have no packets


@pytest.mark.nightly
def test_a_deadlock_between_neighbours(sim: Sim) -> None:
    done = sim("STUCK = True\n" + MEETING, "-n", 2, "--ranks-per-host", 2)
    assert done.returncode == 4
    assert "waiting for barrier 2 of GASNet, where rank 0 is missing" in done.stderr


def test_a_deadlock(sim: Sim) -> None:
    done = sim("STUCK = True\n" + MEETING, "-n", 2)
    assert done.returncode == 4
    for text in (
        "deadlock",
        "the condition of a block_until",
        "waiting for barrier 2 of GASNet, where rank 0 is missing",
    ):
        assert text in done.stderr


NEIGHBOURS = ("--ranks-per-host", 2, "--mca", "conduit_aries_pshm", 0)


@pytest.mark.nightly
def test_neighbours_meet_faults(sim: Sim, tmp_path: Path) -> None:
    """What the NIC does within a host: twice the same, counted, and in the trace."""
    said = []
    for run in range(2):
        options = ("-n", 2, *NEIGHBOURS, "--seed", 5, "--trace", tmp_path / f"trace{run}")
        done = sim("STUCK = False\n" + MEETING, *options, *FAULTS["delays"])
        assert done.returncode == 0, done.stderr
        said.append(done.stderr.partition("the trace")[0])
    assert said[0] == said[1]
    assert files(tmp_path / "trace0") == files(tmp_path / "trace1")
    count = int(said[0].partition("faults delivered:")[2].split()[2])
    struck = [
        event for event in read_trace(str(tmp_path / "trace0")).events if event.name == "DELAY"
    ]
    assert len(struck) == count > 0
    assert {dict(event.fields)["rail"] for event in struck} == {"aries_0"}


@pytest.mark.nightly
def test_what_passes_the_nic_by_is_told(sim: Sim) -> None:
    """A fault that cannot strike is warned of; active messages are counted."""
    fault = ("--fault", "link_down:rail=aries_0,nth=1")
    done = sim("STUCK = False\n" + MEETING, "-n", 2, "--ranks-per-host", 2, *fault)
    assert done.returncode == 0
    assert "past aries_0, through shared memory (PSHM)" in done.stderr
    assert "--mca conduit_aries_pshm 0 takes the NIC" in done.stderr
    assert "NEVER FIRED" in done.stderr
    assert re.search(r"^ompy sim: GASNet: .*requests [1-9]", done.stderr, re.M)
    assert "0 messages" not in done.stderr
    struck = sim("STUCK = False\n" + MEETING, "-n", 2, *NEIGHBOURS, *fault)
    assert "warning" not in struck.stderr
    assert "NEVER FIRED" not in struck.stderr


LEAVING = """
from ompy import gasnet

gasnet.init()
gasnet.attach([], segment_size=gasnet.PAGE_SIZE)
gasnet.barrier()
print("done", flush=True)
"""


@pytest.mark.nightly
def test_an_end_that_reaches_nobody_is_a_failure(sim: Sim) -> None:
    """The link goes when the program is over: an exit code of 0 means that nothing was struck."""
    seen = set()
    for begun in range(10, 17):
        done = sim(LEAVING, "-n", 2, "--fault", f"link_down:from={begun}us")
        struck = "cannot be reached" in done.stderr or "Nothing has come" in done.stderr
        assert done.returncode == struck, done.stderr
        assert "Exception ignored" not in done.stderr
        seen.add((done.stdout.count("done"), struck))
    assert {(2, True), (2, False)} <= seen


def test_a_fault_that_its_links_hide_is_refused(sim: Sim) -> None:
    done = sim(MEETING, "-n", 2, "--fault", "drop:probability=0.5,rail=aries_0")
    assert done.returncode == 2
    assert "no drop to be seen on aries_0; there are delay, reorder, link_down" in done.stderr


def test_what_it_does_as_text(sim: Sim, tmp_path: Path) -> None:
    """Files by rank, letters of the masks; a trace beside it is what it is without."""
    texts = []
    for run, mask in enumerate(("GPSWXBLAICDNH", "P")):
        place = tmp_path / str(run)
        place.mkdir()
        files_ = {"tracefile": place / "trace.%", "statsfile": place / "stats", "tracemask": mask}
        options = [
            word
            for name, value in files_.items()
            for word in ("--mca", f"conduit_aries_{name}", value)
        ]
        done = sim("STUCK = False\n" + MEETING, "-n", 2, *options, "--trace", place / "events")
        assert done.returncode == 0, done.stderr
        names = sorted(path.name for path in place.iterdir())
        assert names == ["events", "stats.0", "stats.1", "trace.0", "trace.1"]
        texts.append([(place / name).read_text() for name in names[1:]])
    plain = sim("STUCK = False\n" + MEETING, "-n", 2, "--trace", tmp_path / "plain")
    assert plain.returncode == 0
    assert files(tmp_path / "plain") == files(tmp_path / "1" / "events")
    stats, _, lines, _ = texts[0]
    assert re.search(r"^0> \(I\) rank 0 on host0, conduit aries$", lines, re.M)
    assert re.search(r"^0 \d\.\d{6}> \(P\) PUT: peer=1 op=1 offset=0 size=8 way=NIC$", lines, re.M)
    assert re.search(r"^0 \d\.\d{6}> \(A\) AMRequestMedium: .*peer=1", lines, re.M)
    assert re.search(r"^0> \(P\) PUT: 1 time, 8 bytes: 8 to 8 each$", stats, re.M)
    assert re.search(r"^0> \(C\) counter requests: \d+$", stats, re.M)
    _, _, puts, _ = texts[1]
    assert re.fullmatch(r"0 \d\.\d{6}> \(P\) PUT: peer=1 size=8 way=NIC\n", puts)


@pytest.mark.nightly
def test_a_file_that_cannot_be_written(sim: Sim, tmp_path: Path) -> None:
    place = tmp_path / "nowhere" / "trace.%"
    option = ("--mca", "conduit_aries_tracefile", place, "--mca", "conduit_aries_tracemask", "P")
    done = sim("STUCK = False\n" + MEETING, "-n", 2, *option)
    assert done.returncode == 0, done.stderr
    assert "No such file or directory; it goes to standard error" in done.stderr
    assert "(P) PUT: peer=1 size=8 way=NIC" in done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("case", ["roots", "broadcast and gather", "scatter and gather"])
def test_collectives_that_differ_and_need_nothing_of_each_other(sim: Sim, case: str) -> None:
    """All have sent what they had to and ended: their calls are compared then."""
    done = sim(ALONE, "-n", 2, program=(case,))
    assert done.returncode == 1, done.stderr
    assert "collective call 1 of TEAM_ALL is not the same in all members" in done.stderr
    assert "rank 0 called " in done.stderr
    assert "rank 1 called " in done.stderr
    assert sim(ALONE, "-n", 2, program=("the same",)).returncode == 0
