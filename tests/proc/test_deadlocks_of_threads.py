"""Deadlocks of ranks with several threads: those that only wait for each other free nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.proc.test_check import check
from tests.proc.test_deadlocks import DEADLOCK, run

pytestmark = pytest.mark.proc
STUCK: Final = {
    "joined": """
import threading
thread = threading.Thread(target=lambda: comm.recv(source=1 - me, tag=8))
thread.start()
comm.send(me, dest=1 - me, tag=7)
thread.join()
""",
    "a queue": """
import queue, threading
box = queue.Queue()
threading.Thread(target=lambda: box.put(comm.recv(source=1 - me, tag=8)), daemon=True).start()
print(box.get())
""",
    "a pool": """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(2) as pool:
    print(list(pool.map(lambda tag: comm.recv(source=1 - me, tag=tag), (7, 8))))
""",
    "the end of the program": """
import threading
threading.Thread(target=lambda: comm.recv(source=1 - me, tag=8)).start()
""",
    "one waits for another one that waits for a third": """
import threading
event = threading.Event()
def receive():
    comm.recv(source=1 - me, tag=8)
    event.set()
threading.Thread(target=receive).start()
second = threading.Thread(target=event.wait)
second.start()
second.join()
""",
}
ENDED: Final = """
import queue, threading
box = queue.Queue()
if me == 1:
    threading.Thread(target=lambda: box.put(comm.{0}), daemon=True).start()
    box.get()
"""
FREE: Final = {
    "a timer": """
import threading
go = threading.Event()
threading.Timer(1.5, go.set).start()
thread = threading.Thread(target=lambda: comm.recv(source=1 - me))
thread.start()
go.wait()
comm.send(me, dest=1 - me)
thread.join()
""",
    "a time limit": """
import threading
go = threading.Event()
thread = threading.Thread(target=lambda: comm.recv(source=1 - me))
thread.start()
go.wait(1.5)
comm.send(me, dest=1 - me)
thread.join()
""",
    "a bare lock": """
import threading, time
lock = threading.Lock()
def late():
    with lock:
        time.sleep(1.5)
threading.Thread(target=late).start()
thread = threading.Thread(target=lambda: comm.recv(source=1 - me))
thread.start()
with lock:
    comm.send(me, dest=1 - me)
thread.join()
""",
    "a pipe": """
import os, subprocess, threading
child = subprocess.Popen(["sleep", "1.5"])
thread = threading.Thread(target=lambda: comm.recv(source=1 - me))
thread.start()
child.wait()
comm.send(me, dest=1 - me)
thread.join()
""",
    "a thread that ends by an error": """
import threading, time
def broken():
    comm.send(me, dest=5)
threading.excepthook = lambda *_: None
thread = threading.Thread(target=broken)
thread.start()
thread.join()
time.sleep(1)
comm.send(me, dest=1 - me)
comm.recv(source=1 - me)
""",
}


@pytest.mark.parametrize("name", STUCK)
def test_all_of_them_wait(name: str, tmp_path: Path) -> None:
    done = run(tmp_path, STUCK[name], 2, "--timeout", "40")
    assert done.returncode == DEADLOCK, done.stderr
    assert "ranks 0, 1 can never go on; each waits for the next" in done.stderr
    assert "tag 8 in MPI_COMM_WORLD" in done.stderr


@pytest.mark.parametrize("name", FREE)
def test_who_may_go_on_is_not_accused(name: str, tmp_path: Path) -> None:
    done = run(tmp_path, FREE[name], 2)
    assert "never go on" not in done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("call", "kind", "code"),
    [("recv(source=0)", "deadlock", DEADLOCK), ("send(1, dest=2)", "invalid-argument", 1)],
)
def test_nobody_is_left_behind_a_thread_that_ended(
    call: str, kind: str, code: int, tmp_path: Path
) -> None:
    """The main thread would wait for ever for what that one was to put into the queue."""
    done = run(tmp_path, ENDED.format(call), 2, "--timeout", "40")
    assert done.returncode == code, done.stderr
    found, said, _ = check(tmp_path, ENDED.format(call))
    assert [one["class"] for one in found] == [kind], said


def test_a_thread_that_ends_by_an_error_is_found_though_the_job_ends_well(tmp_path: Path) -> None:
    text = """
import threading
thread = threading.Thread(target=lambda: comm.send(me, dest=size))
thread.start()
thread.join()
"""
    found, said, _ = check(tmp_path, text)
    assert [one["class"] for one in found] == ["invalid-argument"], said
