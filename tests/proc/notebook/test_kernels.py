"""Cells on ranks in a real kernel of Jupyter."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from queue import Empty

import pytest

pytest.importorskip("IPython")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

nbformat = pytest.importorskip("nbformat")
manager_module = pytest.importorskip("jupyter_client.manager")

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "cells_on_ranks.ipynb"
pytestmark = [
    pytest.mark.proc,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def said(cell) -> str:
    return "".join(output.get("text", "") for output in cell.outputs)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))


def test_the_example(tmp_path) -> None:
    notebook = nbformat.read(EXAMPLE, as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": "."}}).execute()
    _, first, gathered, swap, right, sent, taken, circle, stop = (
        cell for cell in notebook.cells if cell.cell_type == "code"
    )
    assert sorted(said(first).splitlines()) == [f"[{rank}] rank {rank} of 3" for rank in range(3)]
    assert said(gathered) == "[1, 2, 0]\n"
    assert "buffering-dependent" in said(swap)
    assert "ranks 0-2 at In[4]:2: comm.send(comm.rank, dest=right)" in said(swap)
    assert said(right) == "check: nothing was found\n"
    assert "left for a later cell" in said(sent)
    assert said(taken) == "[1] a word\ncheck: nothing was found\n"
    assert "deadlock: ranks 0-2 can never go on" in said(circle)
    assert "In[8]:2 in <module>: comm.recv(source=left)" in said(circle)
    assert circle.outputs[-1].ename == "CellError"
    assert said(stop).startswith("No ranks")


@pytest.fixture
def kernel():
    manager, client = manager_module.start_new_kernel(kernel_name="python3")
    yield manager, client
    client.stop_channels()
    if manager.has_kernel:
        manager.shutdown_kernel(now=True)


def read(client, until) -> str:
    """What the kernel says until something is in it, or it is idle."""
    text, deadline = "", time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            message = client.get_iopub_msg(timeout=1)
        except Empty:
            continue
        content = message["content"]
        text += content.get("text", "") + "".join(content.get("traceback", ()))
        if (until and until in text) or (
            not until and content.get("execution_state") == "idle" and text
        ):
            return text
    raise AssertionError(f"{until!r} was not said, but {text}")


def begin(client) -> list[int]:
    client.execute("%load_ext ompy")
    client.execute("%%ompy -n 2\nimport os, time\nprint('pid', os.getpid())")
    text = ""
    while text.count("pid") < 2:
        text += read(client, "\n")
    return [int(number) for number in re.findall(r"pid (\d+)", text)]


def assert_gone(pids) -> None:
    deadline = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{pid}") for pid in pids):
        assert time.monotonic() < deadline, pids
        time.sleep(0.05)


def test_the_kernel_is_interrupted(kernel) -> None:
    manager, client = kernel
    pids = begin(client)
    sleeping = "%%ompy\nprint('begun', flush=True)\ntime.sleep(1000)"
    client.execute(sleeping, stop_on_error=False)
    begun = ""
    while begun.count("begun") < 2:
        begun += read(client, "\n")
    manager.interrupt_kernel()
    text = read(client, "CellError")
    assert "ranks 0, 1 were at In[3]:3 in <module>: time.sleep(1000)" in text
    client.execute("%%ompy --rank 0\nprint('still', os.getpid())")
    assert re.search(r"still (\d+)", read(client, "still"))[1] in map(str, pids)
    assert all(os.path.exists(f"/proc/{pid}") for pid in pids)


@pytest.mark.parametrize("now", [False, True], ids=["restart", "kill"])
def test_nothing_is_left_of_a_kernel_that_ends(kernel, now) -> None:
    manager, client = kernel
    pids = begin(client)
    assert len(pids) == 2
    if now:
        client.execute("%%ompy\nprint('begun', flush=True)\nwhile True: pass")
        read(client, "begun")
    manager.restart_kernel(now=now) if not now else manager.shutdown_kernel(now=True)
    assert_gone(pids)
