"""`ompy-run --view` on a terminal: the view, then what the job wrote, and its exit code."""

import os
import pty
import select
import sys
import time

import pytest

from tests.proc.launch.conftest import OMPY_RUN, PATIENCE

pytest.importorskip("textual")
pytestmark = pytest.mark.proc
PROGRAM = """
from mpi4py import MPI
import time
comm = MPI.COMM_WORLD
print("written by", comm.rank, flush=True)
if comm.rank:
    comm.recv(source=0)  # here
else:
    time.sleep(SLEEP)
    comm.send(1, dest=1)
comm.Barrier()
raise SystemExit(7 if comm.rank == 0 else 0)
"""
LEFT_SCREEN = b"\x1b[?1049l"  # xterm: the normal screen is back


def viewed(launch, folder, sleep, until, keys):
    """On a terminal of its own, with keys pressed when the view has a text: all it wrote, code."""
    (folder / "app.py").write_text(PROGRAM.replace("SLEEP", str(sleep)))
    (folder / "run").mkdir(mode=0o700)
    environment = {**launch.environment, "XDG_RUNTIME_DIR": str(folder / "run")}
    environment |= {"TERM": "xterm", "COLUMNS": "160", "LINES": "50"}
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        words = [*OMPY_RUN, "-n", "2", "--view", sys.executable, "app.py"]
        os.execve(words[0], words, environment)
    written, deadline = b"", time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                written += os.read(terminal, 65536)
            except OSError:  # Linux: nobody has the other end any longer
                break
        if keys and until in written:
            os.write(terminal, keys)
            keys = b""
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    return written, os.waitstatus_to_exitcode(status)


@pytest.mark.nightly
def test_the_view_ends_with_q_and_the_job_goes_on(launch, tmp_path):
    written, code = viewed(launch, tmp_path, 20, until=b"# here", keys=b"q")
    assert code == 7, written
    view, _, plain = written.rpartition(LEFT_SCREEN)
    assert b"waiting for receive from rank 0" in view
    assert b"written by 0\r\n" in plain
    assert b"written by 1\r\n" in plain
    assert b"ended with exit code 7" in plain
    assert not list((tmp_path / "run" / "ompy").iterdir())


def test_ctrl_c_ends_the_job(launch, tmp_path):
    written, code = viewed(launch, tmp_path, 600, until=b"# here", keys=b"\x03")
    assert code == 130, "as a launcher ends that Ctrl-C has ended"
    _, _, plain = written.rpartition(LEFT_SCREEN)
    assert b"app.py:9" in plain, "where the ranks were"
