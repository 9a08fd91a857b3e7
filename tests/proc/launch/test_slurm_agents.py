"""Agents by srun, with somebody in the middle of its standard streams.

The srun is one of the test's own that stays on this host; what it passes on is recorded, and may be
altered. With Slurm itself and a network: `tests/netns/test_slurm.py`.
"""

import os
import sys

import pytest

from tests.support.effort import THOROUGH

pytestmark = pytest.mark.proc
nightly = pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")

# FOLDER gets what passes, by host and direction; TAMPER is host:direction:byte, if there is any
SRUN = """#!{python}
import os, subprocess, sys, threading
words = sys.argv[1:]
host = [word for word in words if word.startswith("--nodelist=")][0].partition("=")[2]
while words[0].startswith("-"):
    words.pop(0)
os.environ["OMPY_TEST_HOST"] = host
whom, way, place = (os.environ.get("OMPY_TEST_TAMPER") or "::-1").split(":")
agent = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
def read(reading):
    try:
        return os.read(reading, 65536)
    except ConnectionResetError:  # who wrote is gone: the end, as any other
        return b""
def pump(reading, writing, direction):
    done = 0
    with open(os.path.join({folder!r}, host + "." + direction), "wb", 0) as record:
        while data := read(reading):
            record.write(data)
            at = int(place) - done
            if (whom, way) == (host, direction) and 0 <= at < len(data):
                data = data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]
            done += len(data)
            try:
                while data:
                    data = data[os.write(writing, data):]
            except OSError:
                return
    os.close(writing)
down = threading.Thread(target=pump, args=(0, agent.stdin.fileno(), "down"), daemon=True)
down.start()
pump(agent.stdout.fileno(), 1, "up")
os._exit(agent.wait())
"""
ALLOCATION = {
    "SLURM_JOB_ID": "1",
    "SLURM_JOB_NODELIST": "a,b,c",
    "SLURM_TASKS_PER_NODE": "1(x3)",
}
MPI = "from ompy import MPI\nc = MPI.COMM_WORLD\nprint(c.allreduce(c.rank))"
KEY = (
    f"{MPI}\nimport gc, os\nfrom ompy.runtime.ranks.client import AgentClient\n"
    "(key,) = {o.job_key.hex() for o in gc.get_objects() if isinstance(o, AgentClient)}\n"
    "with open(os.environ['OMPY_TEST_KEYS'], 'a') as file: print(key, file=file)\n"
)
RADIX = ("--mca", "plm_base_radix", 1)
UNSEALED = ("--mca", "plm_slurm_seal", "none")


@pytest.fixture
def srun(launch, tmp_path):
    """Runs Python code on a, b and c."""
    (folder := tmp_path / "passed").mkdir()
    (tools := tmp_path / "tools").mkdir()
    (tools / "srun").write_text(SRUN.format(python=sys.executable, folder=str(folder)))
    (tools / "srun").chmod(0o755)
    secret = tmp_path / "secret"
    secret.write_bytes(os.urandom(32))
    secret.chmod(0o600)

    def run(code, *options, tamper="", **variables):
        env = {
            **ALLOCATION,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "OMPY_SECRET_FILE": str(secret),
            "OMPY_TEST_TAMPER": tamper,
            "OMPY_TEST_KEYS": str(tmp_path / "keys"),
            **variables,
        }
        return launch(*options, sys.executable, "-c", code, env=env)

    run.folder = folder
    run.keys = lambda: (tmp_path / "keys").read_text().split()
    return run


def passed(srun):
    """What has gone over all streams, by name."""
    return {path.name: path.read_bytes() for path in srun.folder.iterdir()}


@pytest.mark.parametrize("options", [(), RADIX] if THOROUGH else [RADIX])
def test_a_job_and_its_key_is_in_nothing_that_passes(srun, options):
    result = srun(KEY, *options)
    assert (result.code, result.out) == (0, "3\n" * 3), result
    (key,) = set(srun.keys())
    said = passed(srun)
    # the first has started the others by srun too, when the radix is 1
    assert sorted(said) == [f"{host}.{way}" for host in "abc" for way in ("down", "up")]
    assert b"OMPY_TEST_KEYS" in said["a.down"]  # the job itself can be read
    for text in said.values():
        assert bytes.fromhex(key) not in text
        assert key.encode() not in text


@nightly
def test_what_others_could_read_before(srun):
    """Without the seal the key is there to be read: the test above would see it."""
    assert srun(KEY, *UNSEALED).code == 0
    (key,) = set(srun.keys())
    assert bytes.fromhex(key) in passed(srun)["a.down"]


# of b's streams: the seal of the letter, the banner, the nonce, READY, START and what follows
PLACES = [
    "down:10",
    "down:150",
    "up:3",
    "up:15",
    "up:40",
    "up:70",
    "down:200",
    "down:900",
    "up:300",
]


@pytest.mark.parametrize("place", PLACES if THOROUGH else [PLACES[3], PLACES[7]])
def test_nothing_altered_is_acted_upon(srun, tmp_path, place):
    """A byte of what passes to or from b is another: the job ends, and says so."""
    options = ("--mca", "plm_base_start_timeout_ms", 5000) if place == "up:3" else ()
    long = f"import time\n{MPI}\ntime.sleep(1)\n{MPI}"
    result = srun(long, *options, tamper=f"b:{place}")
    assert result.code == 1, result
    assert "host" in result.err
    assert "Traceback" not in result.err, result
    said = " ".join(result.err.split())
    assert any(
        text in said
        for text in ("has sealed", "another OMPY_SECRET_FILE", "not ready within", "is no seal")
    ), result


@nightly
def test_without_a_seal_altered_bytes_are_obeyed(srun):
    """What is defended against: a letter of the program is another."""
    code = "print('" + "A" * 5000 + "')"
    result = srun(code, *UNSEALED, tamper="b:down:4000")
    assert result.code == 0, result
    assert result.out.count("@") == 1


def test_no_proof_is_an_error_that_says_what_to_do(srun, tmp_path):
    (nothing := tmp_path / "nothing").mkdir()
    (nothing / "srun").symlink_to(tmp_path / "tools" / "srun")
    result = srun(MPI, OMPY_SECRET_FILE="", PATH=str(nothing))
    assert result.code == 1, result
    said = " ".join(result.err.split())
    assert "there is no munge" in said
    assert "set OMPY_SECRET_FILE" in said
    assert "--mca plm_slurm_seal none" in said
    assert not passed(srun)


@nightly
def test_a_secret_file_that_is_none(srun, tmp_path):
    result = srun(MPI, OMPY_SECRET_FILE=str(tmp_path / "not-there"))
    assert result.code == 1, result
    assert "No such file or directory" in result.err
    assert not passed(srun)


FAKE_MUNGE = """#!/bin/sh
# what is sealed by others, or on a host with another key, cannot be opened
case $0 in
*unmunge) test "$OMPY_TEST_HOST" != b || {{ echo 'Invalid credential' >&2; exit 15; }}
    printf 'UID: {user}\\n\\n'; cut -d: -f2- ;;
*) printf 'MUNGE:'; cat ;;
esac
"""


def test_a_host_with_another_munge_does_not_get_in(srun, tmp_path):
    for name in ("munge", "unmunge"):
        (tmp_path / "tools" / name).write_text(FAKE_MUNGE.format(user=os.geteuid()))
        (tmp_path / "tools" / name).chmod(0o755)
    (tmp_path / "tools" / "scontrol").symlink_to("/bin/true")
    result = srun(MPI, OMPY_SECRET_FILE="")
    assert result.code == 1, result
    said = " ".join(result.err.split())
    assert "unmunge: Invalid credential" in said
    assert "no agent on host b" in said
    assert result.out == ""
