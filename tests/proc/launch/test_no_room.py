"""Who only observes never breaks what is observed: files that cannot be written, now or ever.

Each time the job ends with its own exit code and its own output, one line says what was lost, and
what there is of a trace can be read.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from ompy.trace.trace_files import read_trace

from tests.support.effort import THOROUGH

pytestmark = pytest.mark.proc
# many events; then the job fails in a way of its own
PROGRAM = """
from mpi4py import MPI
import os, sys
comm = MPI.COMM_WORLD
{before}
for _ in range(1500):
    comm.sendrecv(b"x", 1 - comm.rank, 3, source=1 - comm.rank)
comm.Barrier()
print("done")
MPI.Finalize()
sys.exit(7)
"""
TCP = ("--mca", "btl", "self,tcp")
WARNING = "warning: "
mounts = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="mounting takes root"
)


def check(result, lost: int) -> None:
    """The job is what it was without the observer."""
    assert result.code == 7, result
    assert result.out.splitlines() == ["done", "done"]
    said = [line for line in result.err.splitlines() if WARNING in line]
    assert len(said) == lost, result
    assert "Traceback" not in result.err
    assert "Exception ignored" not in result.err


def readable(folder) -> None:
    """As far as it goes, it is a trace."""
    found = read_trace(str(folder))
    assert set(found.headers) == {0, 1}
    command = [sys.executable, "-P", "-m", "ompy.cli.main", "trace", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr
    assert "end early" in done.stderr


def small_disk(launch, folder, size: str, *words):
    """Run `ompy-run` with a disk of so many bytes at `folder`, in a mount namespace of its own."""
    folder.mkdir()
    keep = folder.with_name("kept")
    script = (
        f"mount -t tmpfs -o size={size} none {folder} || exit 99; "
        f'{sys.executable} -P -m ompy.cli.run "$@"; code=$?; cp -r {folder} {keep}; exit $code'
    )
    process = subprocess.run(
        ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", *map(str, words)],
        env=launch.environment, cwd=launch.directory, capture_output=True, timeout=90,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return keep, process


class Result:
    """What `check` looks at."""

    def __init__(self, process) -> None:
        self.code = process.returncode
        self.out, self.err = process.stdout.decode(), process.stderr.decode()

    def __repr__(self) -> str:
        return f"{self.code}\n{self.out}\n{self.err}"


@mounts
@pytest.mark.parametrize("size", ["64k", "4k", "600k"][: 3 if THOROUGH else 1])
def test_the_disk_is_full(launch, tmp_path, size) -> None:
    words = ["-n", 2, "--trace", tmp_path / "disk" / "t", sys.executable, "-c"]
    kept, done = small_disk(launch, tmp_path / "disk", size, *words, PROGRAM.format(before=""))
    result = Result(done)
    assert "No space left on device" in result.err, result
    lost = sum(WARNING in line for line in result.err.splitlines())
    assert 1 <= lost <= 3  # each rank, and job.json, as far as there is nothing
    check(result, lost)
    if size != "4k":
        readable(kept / "t")


@pytest.mark.nightly
def test_the_largest_file_is_reached(launch, tmp_path) -> None:
    before = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))"
    result = launch.python(2, PROGRAM.format(before=before), *TCP, "--trace", tmp_path / "t")
    assert "File too large" in result.err
    check(result, 2)
    readable(tmp_path / "t")
    found = read_trace(str(tmp_path / "t"))
    assert {end.reason for end in found.ends.values()} <= {"File too large", "killed"}
    assert len(found.events) > 50


@pytest.mark.nightly
def test_the_folder_is_removed_meanwhile(launch, tmp_path) -> None:
    before = f"import shutil; comm.Barrier(); shutil.rmtree({str(tmp_path / 't')!r}, True)"
    result = launch.python(2, PROGRAM.format(before=before), "--trace", tmp_path / "t")
    check(result, 2)
    assert result.err.count("it was removed while the job ran") == 2


@pytest.mark.nightly
@mounts
def test_nothing_can_be_written_at_all(launch, tmp_path) -> None:
    """A file system that is read-only: root may write anywhere else."""
    for options, said in (
        (["--trace", "/proc/sys/none"], "--trace /proc/sys/none"),
        (["--record-rails", "/proc/sys/none"], "--record-rails /proc/sys/none"),
        (["--record-rails", "/dev/full"], "No space left"),
        (["--report-rails", "/dev/full"], "the report is lost"),
    )[:: 1 if THOROUGH else 2]:
        result = launch.python(2, PROGRAM.format(before=""), *TCP, *options)
        check(result, 1)
        assert said in result.err


@pytest.mark.nightly
def test_standard_error_takes_nothing(launch, tmp_path) -> None:
    """Neither what the launcher says, nor the table, nor reports of ranks are worth the job."""
    options = ["--watch-rails", "--display-comm", "--trace", tmp_path / "t", *TCP]
    before = "os.kill(os.getpid(), 10)"  # SIGUSR1: the rank says where it is
    program = PROGRAM.format(before=before)
    with open("/dev/full", "w") as full:
        result = launch.python(2, program, *options, stderr=full)
    assert (result.code, result.out) == (7, "done\ndone\n")
    if not THOROUGH:
        return
    result = launch.python(2, program, *options, preexec_fn=lambda: os.close(2))
    assert (result.code, result.out) == (7, "done\ndone\n")
    reader, writer = os.pipe()
    os.close(reader)
    result = launch.python(2, program, *options, stderr=writer)
    assert (result.code, result.out) == (7, "done\ndone\n")
    os.close(writer)


def test_a_map_for_a_full_standard_output(launch) -> None:
    with open("/dev/full", "w") as full:
        options = ["--display-map", "--do-not-launch"]
        result = launch.python(2, "pass", *options, stdout=full)
    assert (result.code, result.err.count(WARNING)) == (0, 1)
    assert "Traceback" not in result.err


@mounts
def test_a_trace_in_a_strangers_folder(launch, tmp_path) -> None:
    (shared := tmp_path / "shared").mkdir()
    shared.chmod(0o1777)
    (shared / "t").symlink_to(tmp_path)
    os.lchown(shared / "t", 12345, 12345)
    result = launch.python(2, "print(1)", "--trace", shared / "t")
    assert (result.code, result.out) == (2, "")
    assert "is a symbolic link of user 12345" in result.err
    assert not (tmp_path / "job.json").exists()
