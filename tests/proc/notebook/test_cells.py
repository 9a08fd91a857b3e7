"""Cells on ranks, in IPython's shell without a kernel."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip("IPython")

from IPython.core.interactiveshell import InteractiveShell

pytestmark = [
    pytest.mark.proc,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
HEAD = "from mpi4py import MPI\ncomm = MPI.COMM_WORLD\n"


class Notebook:
    """A shell with our commands."""

    def __init__(self, capsys) -> None:
        self.shell = InteractiveShell()
        self.shell.history_manager.enabled = False
        self._capsys = capsys
        self.cell("%load_ext ompy")

    def cell(self, text: str) -> tuple[str, str, str]:
        """What is below a cell: output, errors, and the exception of the cell."""
        self.number = self.shell.execution_count
        result = self.shell.run_cell(text, store_history=True)
        problem = result.error_in_exec or result.error_before_exec
        said = self._capsys.readouterr()
        return said.out, said.err, "" if problem is None else f"{type(problem).__name__}: {problem}"

    def pids(self) -> list[int]:
        said = self.cell("%%ompy\nimport os\nprint('pid', os.getpid())")[0]
        return [int(number) for number in re.findall(r"pid (\d+)", said)]


@pytest.fixture
def notebook(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    made = Notebook(capsys)
    yield made
    made.cell("%ompy --stop")
    assert not list(tmp_path.glob("In*"))


def lines(text: str) -> list[str]:
    return sorted(text.splitlines())


def gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{pid}") for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_variables_live_as_long_as_the_ranks(notebook) -> None:
    out, _, problem = notebook.cell(f"%%ompy -n 2\n{HEAD}x = comm.rank + 5\nprint('begun', x)")
    assert lines(out) == ["[0] begun 5", "[1] begun 6"]
    assert not problem
    assert lines(notebook.cell("%%ompy -n 2\nx + 1")[0]) == ["[0] 6", "[1] 7"]
    assert notebook.cell("%%ompy\nx + 1;")[0] == ""
    assert notebook.cell("%%ompy --rank 1\nprint(x)")[0] == "6\n"
    before = notebook.pids()
    assert notebook.cell("%ompy")[0] == "2 ranks wait for a cell.\n"
    notebook.cell("%ompy --restart")
    assert gone(before)
    assert "NameError: name 'x' is not defined" in notebook.cell("%%ompy\nx")[2]
    notebook.cell("%%ompy\nx = 1")
    assert "NameError" in notebook.cell("%%ompy -n 1\nx")[2]
    last = notebook.pids()
    assert len(last) == 1
    notebook.cell("%ompy --stop")
    assert gone(last)


def test_what_cannot_be_is_said_before_anything_runs(notebook) -> None:
    assert "the number of ranks is missing" in notebook.cell("%%ompy\n1")[1]
    assert "from 1 to 512 is needed" in notebook.cell("%%ompy -n 0\n1")[1]
    problem = notebook.cell("%%ompy -n 1\nif True:\n    def f(:")[2]
    assert f'File "In[{notebook.number}]", line 3' in problem
    assert "SyntaxError" in problem
    assert notebook.cell("%ompy")[0].startswith("No ranks")
    assert "there are ranks 0 to 0" in notebook.cell("%%ompy -n 1 --rank 1\n1")[1]


def test_an_exception_has_its_ranks_and_the_cells_lines(notebook) -> None:
    notebook.cell(f"%%ompy -n 3\n{HEAD}x = 7\ndef halve(n):\n    return 1 / (n - n)")
    name = f"In[{notebook.number}]"
    out, err, problem = notebook.cell(
        "%%ompy\nif comm.rank:\n    halve(3)\ncomm.barrier()\nprint('never')"
    )
    assert "never" not in out
    assert problem.startswith("CellError: ranks 1, 2: ZeroDivisionError: division by zero")
    assert "ranks 1, 2:\nTraceback (most recent call last):\n" in err
    assert f'  File "In[{notebook.number}]", line 3, in <module>\n    halve(3)\n' in err
    assert f'  File "{name}", line 6, in halve\n    return 1 / (n - n)\n' in err
    assert "ompy/" not in err
    assert f"rank 0 was at In[{notebook.number}]:4 in <module>: comm.barrier()" in err
    assert lines(notebook.cell("%%ompy\nx")[0]) == ["[0] 7", "[1] 7", "[2] 7"]


def test_what_a_cell_does_wrong(notebook) -> None:
    notebook.cell(f"%%ompy -n 2\n{HEAD}other = 1 - comm.rank")
    swap = "comm.send(comm.rank, dest=other)\ncomm.recv(source=other);"
    assert notebook.cell(f"%%ompy\n{swap}")[0] == ""
    out, _, problem = notebook.cell(f"%%ompy --check\n{swap}")
    assert "buffering-dependent: these sends end only because" in out
    place = f"ranks 0, 1 at In[{notebook.number}]:2: comm.send(comm.rank, dest=other)"
    assert place in out
    assert not problem
    right = "%%ompy --check\nassert comm.sendrecv(comm.rank, dest=other, source=other) == other"
    assert notebook.cell(right)[0] == "check: nothing was found\n"
    meant = swap.replace("\n", "  # ompy: expect buffering-dependent\n", 1)
    assert notebook.cell(f"%%ompy --check\n{meant}")[0] == "check: nothing was found\n"
    types = (
        "from array import array\nif comm.rank == 0:\n    comm.Send(array('i', [1]), dest=1)\n"
        "else:\n    comm.Recv(array('f', [1]), source=0)"
    )
    out = notebook.cell(f"%%ompy --check\n{types}")[0]
    assert "type-mismatch: rank 0 sends 1 int" in out
    assert f"rank 0 at In[{notebook.number}]:4: comm.Send(array('i', [1]), dest=1)" in out
    assert f"rank 1 at In[{notebook.number}]:6: comm.Recv(array('f', [1]), source=0)" in out


def test_messages_that_the_checker_has_not_seen(notebook) -> None:
    notebook.cell(f"%%ompy -n 2\n{HEAD}")
    notebook.cell("%%ompy\nif comm.rank == 0: comm.send(1, dest=1)")
    said = notebook.cell("%%ompy --check\ncomm.barrier()")[0]
    assert "messages of cells that were not checked are still there" in said
    notebook.cell("%%ompy\nif comm.rank == 1: comm.recv()")
    assert notebook.cell("%%ompy --check\ncomm.barrier()")[0] == "check: nothing was found\n"


def test_a_message_from_one_cell_to_the_next(notebook) -> None:
    notebook.cell(f"%%ompy -n 2\n{HEAD}from array import array")
    out = notebook.cell("%%ompy --check\nif comm.rank == 0: comm.Send(array('i', [1]), 1, 7)")[0]
    assert out.startswith("check: nothing was found\nleft for a later cell, else it is a leak\n")
    assert f"rank 0 at In[{notebook.number}]:2: " in out
    sent = notebook.number
    notebook.cell("%%ompy\nif comm.rank == 0: comm.Send(array('i', [2]), 1, 7)")
    out = notebook.cell(
        "%%ompy --check\nif comm.rank == 1:\n    comm.Recv(array('f', [1]), 0, 7)\n"
        "    b = array('i', [0]); comm.Recv(b, 0, 7); print(b[0])"
    )[0]
    assert "[1] 2\ncheck: 1 finding\ntype-mismatch: " in out
    assert f"rank 0 at In[{sent}]:2: " in out
    assert f"rank 1 at In[{notebook.number}]:3: " in out
    assert "left for" not in out
    assert notebook.cell("%%ompy --check\ncomm.barrier()")[0] == "check: nothing was found\n"
    out = notebook.cell("%%ompy --check\nif comm.rank == 0: r = comm.irecv(source=1)")[0]
    assert "comm.irecv: it is not completed yet" in out
    done = "if comm.rank == 0: r.wait()\nelse: comm.send(1, dest=0)"
    assert notebook.cell(f"%%ompy --check\n{done}")[0] == "check: nothing was found\n"


def test_a_window_from_one_cell_to_the_next(notebook) -> None:
    made = "from array import array\nwin = MPI.Win.Create(bytearray(8), comm=comm)\nwin.Fence()"
    assert notebook.cell(f"%%ompy -n 2 --check\n{HEAD}{made}")[0] == "check: nothing was found\n"
    out = notebook.cell("%%ompy --check\nwin.Put(array('i', [comm.rank]), 0)\nwin.Fence()")[0]
    assert "rma-race: " in out
    assert f"In[{notebook.number}]:2: win.Put" in out
    out = notebook.cell("%%ompy --check\nwin.Free()")[0]
    assert out == "check: nothing was found\n"


def test_a_deadlock_is_told_with_the_lines_of_the_cell(notebook) -> None:
    notebook.cell(f"%%ompy -n 2\n{HEAD}")
    pids = notebook.pids()
    out, err, problem = notebook.cell("%%ompy --check\nx = 1\ncomm.recv(source=1 - comm.rank)")
    name = f"In[{notebook.number}]"
    assert "deadlock: ranks 0, 1 can never go on; each waits for the next: 0 -> 1 -> 0" in err
    assert f"rank 0 is at {name}:3 in <module>: comm.recv(source=1 - comm.rank)" in err
    assert f"  ranks 0, 1 at {name}:3: comm.recv(source=1 - comm.rank)" in out
    assert problem.startswith("CellError: deadlock. The ranks have gone")
    assert gone(pids)
    out, err, _ = notebook.cell(f"%%ompy\n{HEAD}if comm.rank == 0: comm.recv(source=1, tag=4)")
    assert f"rank 1 is at In[{notebook.number}]:5 in <module>: # the end of the cell" in err


def test_a_rank_that_dies(notebook) -> None:
    notebook.cell(f"%%ompy -n 2\n{HEAD}")
    out, err, problem = notebook.cell(
        "%%ompy\nimport os\nprint('last words')\nif comm.rank: os._exit(3)\ncomm.barrier()"
    )
    assert [line for line in lines(out) if "]" in line] == ["[0] last words", "[1] last words"]
    assert "Rank 1 ended with exit code 3" in err
    assert "The ranks have gone, and their variables" in problem
    assert lines(notebook.cell("%%ompy\n1")[0]) == ["[0] 1", "[1] 1"]


def test_control_c_gives_the_prompt_back(notebook) -> None:
    notebook.cell(f"%%ompy -n 3\n{HEAD}x = 3")
    timer = threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    _, err, problem = notebook.cell(
        "%%ompy --check\nif comm.rank == 0:\n    while True: pass\n"
        "elif comm.rank == 1:\n    comm.recv(source=0)"
    )
    timer.join()
    name = f"In[{notebook.number}]"
    assert problem == "CellError: interrupted."
    assert f"rank 0 was at {name}:3 in <module>: while True: pass" in err
    assert f"rank 1 was at {name}:5 in <module>: comm.recv(source=0)" in err
    assert f"rank 2 was at the end of {name}" in err
    assert "messages may be left over, which %ompy --restart" in err
    assert lines(notebook.cell("%%ompy\nx")[0]) == ["[0] 3", "[1] 3", "[2] 3"]


def test_calls_that_an_interruption_made_differ_are_not_complained_of(notebook) -> None:
    notebook.cell(f"%%ompy -n 2\n{HEAD}import time")
    timer = threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    code = "if comm.rank:\n    time.sleep(60)\ncomm.barrier()"
    assert notebook.cell(f"%%ompy\n{code}")[2] == "CellError: interrupted."
    timer.join()
    assert notebook.cell("%ompy --stop") == (
        "2 ranks have ended: %%ompy -n N starts new ones.\n",
        "",
        "",
    )
    assert notebook.cell("%ompy --stop")[0] == "No ranks: %%ompy -n N starts them.\n"


def test_one_rank_is_told_of_as_one(notebook) -> None:
    notebook.cell("%%ompy -n 1\n1")
    assert notebook.cell("%ompy")[0] == "1 rank waits for a cell.\n"
    ended = notebook.cell("%ompy --stop")[0]
    assert ended == "1 rank has ended: %%ompy -n N starts new ones.\n"


def test_a_rank_that_does_not_listen_is_killed(notebook, monkeypatch) -> None:
    monkeypatch.setattr("ompy.cli.notebook.ranks.INTERRUPT_PATIENCE_S", 0.5)
    notebook.cell(f"%%ompy -n 2\n{HEAD}")
    pids = notebook.pids()
    timer = threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    _, err, problem = notebook.cell(
        "%%ompy\nimport time\nwhile comm.rank == 0:\n    try:\n        time.sleep(1000)\n"
        "    except KeyboardInterrupt: pass"
    )
    timer.join()
    assert "rank 0 has not said where" in err
    assert problem.startswith("CellError: interrupted. The ranks have gone")
    assert gone(pids)


def test_the_package_stays_light() -> None:
    program = (
        "import ompy, sys; print([m for m in sys.modules if 'IPython' in m "
        "or 'ompy.' in m and not m.startswith('ompy.compiled_')])"  # where compiled modules are
    )
    environment = {name: value for name, value in os.environ.items() if name != "OMPY_PURE"}
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
    )
    assert said.stdout == "[]\n"
