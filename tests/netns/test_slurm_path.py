"""Somebody on the path between hosts of Slurm: what they read, and what comes of what they alter.

Slurm itself is asked too, so that what docs/security.md says of it is what is installed here.
"""

import contextlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.effort import THOROUGH

from .conftest import PATIENCE

pytestmark = [
    pytest.mark.proc,
    pytest.mark.netns,
    pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it"),
    pytest.mark.skipif(shutil.which("slurmctld") is None, reason="Slurm is not installed"),
]
ROOT = Path(__file__).parents[2]
RAILS = ("--mca", "btl_tcp_if_include", "10.77.0.0/16")
UNSEALED = ("--mca", "plm_slurm_seal", "none")
MARKS = "A" * 80
KEY = """
import gc, sys
from ompy import MPI
from ompy.runtime.ranks.client import AgentClient
c = MPI.COMM_WORLD
assert c.allreduce(c.rank) == c.size * (c.size - 1) // 2
(key,) = {o.job_key.hex() for o in gc.get_objects() if isinstance(o, AgentClient)}
with open(sys.argv[1], "a") as file: print(key, file=file)
"""


def in_switch(lab, *words):
    return ["ip", "netns", "exec", f"{lab.name}-switch", *words]


@contextlib.contextmanager
def python_there(lab, module, *words):
    """A module of the tests in the namespace all cables lead to, once it is ready."""
    command = in_switch(lab, sys.executable, "-m", module, *map(str, words))
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def heard(slurm_lab, tmp_path):
    """All that passes while a command runs to its end on h1, and its exit code."""

    def run(*words, path=tmp_path / "heard"):
        with python_there(slurm_lab, "tests.support.eavesdropper", path) as listener:
            job = slurm_lab.start("h1", *words)
            _, err = job.communicate(timeout=PATIENCE)
            assert job.returncode == 0, err
            listener.terminate()
            listener.wait(PATIENCE)
        return path.read_bytes()

    return run


def ompy_run(*words):
    return ("salloc", "-Q", "-N2", "-n4", sys.executable, "-m", "ompy.cli.run", *RAILS, *words)


def key_in(path):
    (key,) = set(path.read_text().split())
    return bytes.fromhex(key)


def test_nobody_reads_the_key_of_a_job_in_an_allocation(heard, tmp_path):
    keys = tmp_path / "keys"
    said = heard(*ompy_run(sys.executable, "-c", KEY, keys))
    assert b"in gc.get_objects()" in said  # of the job, all is to be read but its key
    assert b"MUNGE:" in said
    assert key_in(keys) not in said
    assert key_in(keys).hex().encode() not in said


def test_without_the_seal_the_key_is_there_to_be_read(heard, tmp_path):
    keys = tmp_path / "keys"
    said = heard(*ompy_run(*UNSEALED, sys.executable, "-c", KEY, keys))
    assert key_in(keys) in said


def test_nobody_reads_the_key_of_ranks_that_srun_starts(heard, tmp_path):
    keys = tmp_path / "keys"
    command = ("srun", "-Q", "-N2", "-n4", sys.executable, "-c", KEY, keys)
    said = heard("env", "OMPY_MCA_btl_tcp_if_include=10.77.0.0/16", *command)
    assert b"in gc.get_objects()" in said
    assert key_in(keys) not in said


def test_what_slurm_lets_others_read(heard):
    """Command lines, environments and standard streams: no secret belongs in any of them."""
    script = "read x; echo $x | tr a-z A-Z; true on-the-command-line"
    command = f"echo on-standard-input | srun -Q -w h2 sh -c '{script}'"
    said = heard("env", "SECRET=in-the-environment", "sh", "-c", command)
    for word in ("on-the-command-line", "in-the-environment", "on-standard-input"):
        assert word.encode() in said
    assert b"ON-STANDARD-INPUT" in said


@pytest.fixture
def altered(slurm_lab):
    """Runs a command on h1; a byte of marks in what passes between h2 and all others is another.

    Returns the command's exit code, output and errors, and whether a byte was altered.
    """
    switch = ("ip", "-n", f"{slurm_lab.name}-switch", "link")
    port = "h2.management"

    def do(*words):
        subprocess.run([*switch, *words], check=True)

    def plain(space, *ends):
        code = "import sys; from tests.support.two_hosts import _plain_packets as plain\n"
        code += "for end in sys.argv[1:]: plain(end)"
        command = ["ip", "netns", "exec", f"{slurm_lab.name}-{space}", sys.executable, "-c", code]
        subprocess.run([*command, *ends], check=True, cwd=ROOT)

    def run(*words):
        with python_there(slurm_lab, "tests.support.injector", "flip", 1, "/nowhere",
                          f"{port}:middle") as injector:  # fmt: skip
            job = slurm_lab.start("h1", *words)
            out, err = job.communicate(timeout=PATIENCE)
            injector.kill()
            return job.returncode, out, err, "struck" in injector.stdout.read()

    do("add", "middle", "type", "veth", "peer", "name", "middle2")
    do("set", "middle2", "master", "management", "up")
    do("set", "middle", "up")
    do("set", port, "nomaster")
    plain("switch", port, "middle", "middle2")
    plain("h2", "management")
    try:
        yield run
    finally:
        do("delete", "middle")
        do("set", port, "master", "management")


PROGRAM = f"print('{MARKS}')"


def test_what_is_altered_on_its_way_to_an_agent_ends_the_job(altered):
    code, out, err, struck = altered(*ompy_run(sys.executable, "-c", PROGRAM))
    assert struck
    assert code == 1
    assert "B" not in out
    assert "host        h2" in err or "host h2" in err
    assert "Traceback" not in err
    assert "what came is not what the other end has sealed" in " ".join(err.split())


def test_without_the_seal_another_program_runs(altered):
    code, out, err, struck = altered(*ompy_run(*UNSEALED, sys.executable, "-c", PROGRAM))
    assert struck
    assert code == 0, err
    assert sorted(set(out.split())) == sorted({MARKS, "B" + MARKS[1:]})


def test_slurm_finds_an_altered_command_line_itself(altered):
    """RPCs are hashed into their credential (`hash/k12`), so the name an agent is given is safe."""
    code, out, _, struck = altered("srun", "-Q", "-w", "h2", "echo", MARKS)
    assert struck
    assert code != 0
    assert out == ""


def test_slurm_does_not_find_altered_standard_input(altered):
    command = f"printf %s '{MARKS}' | srun -Q -w h2 sh -c 'read x; echo $x | tr A-B C-D'"
    code, out, err, struck = altered("sh", "-c", command)
    assert struck
    assert (code, out) == (0, "D" + "C" * 79 + "\n"), err
