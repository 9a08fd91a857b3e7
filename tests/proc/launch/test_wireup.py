"""Attach, publish, look up, fence, shared memory and doorbells between real ranks."""

import os
import socket
import subprocess
import sys
import threading

import pytest
from ompy.data.errors import MPIError
from ompy.runtime.connections.control import AGENT_FD, Decoder
from ompy.runtime.connections.frame_io import receive_frames
from ompy.runtime.ranks import client

pytestmark = pytest.mark.proc

HEAD = """
import mmap, os, select, subprocess, sys, time
from ompy.data import errors
from ompy.data.errors import MPIError
from ompy.runtime.ranks.client import attach
c = attach()
size = len(c.job.placements)
def say(*words): print(c.rank, *words, flush=True)
def leave(): c.finalized(); c.close()
def refused(call, *arguments):
    try: call(*arguments)
    except MPIError as error: return error
    raise AssertionError("not refused")
"""


def said(result):
    assert result.code == 0, result
    return sorted(result.out.splitlines())


def test_everybody_finds_everybody(launch):
    code = HEAD + (
        "c.publish('a', bytes([c.rank])); c.publish('b', b'\\0' * 100_000); c.commit()\n"
        "say([(c.lookup(r)['a'][0], len(c.lookup(r)['b'])) for r in range(size)])\n"
        "leave()"
    )
    everybody = [(rank, 100_000) for rank in range(4)]
    assert said(launch.python(4, code)) == [f"{rank} {everybody}" for rank in range(4)]


def test_lookup_waits_for_the_commit(launch):
    """Rank 1 commits only after rank 0 has been seen waiting by its doorbell."""
    code = HEAD + (
        "bell = c.doorbell(0)\n"
        "if c.rank == 1:\n"
        "    select.select([bell], [], [])\n"
        "    c.publish('x', b'late')\n"
        "else:\n"
        "    os.eventfd_write(bell, 1)\n"
        "    say(dict(c.lookup(1)))\n"
        "c.commit(); c.fence(); leave()"
    )
    assert said(launch.python(2, code)) == ["0 {'x': b'late'}"]


def test_lookup_of_a_rank_that_ended_uncommitted(launch):
    code = HEAD + (
        "if c.rank == 1: leave(); sys.exit()\n"
        "error = refused(c.lookup, 1)\n"
        "say(error.code == errors.ERR_PROC_FAILED, error.detail)\n"
        "leave()"
    )
    # the news of its finalizing and of its end, whichever comes first
    hows = ("has finalized MPI", "has finalized and ended")
    assert said(launch.python(2, code)) in [[f"0 True rank 1 {how}"] for how in hows]


def test_a_world_is_only_so_large(launch):
    code = HEAD + (
        "for rank in (-1, 2): say(refused(c.lookup, rank).code == errors.ERR_RANK)\n"
        "say(refused(c.doorbell, 2).code == errors.ERR_RANK)\n"
        "leave()"
    )
    assert said(launch.python(2, code)) == sorted(["0 True"] * 3 + ["1 True"] * 3)


def test_fence_waits_for_all_and_can_be_used_again(launch):
    code = HEAD + (
        "view = mmap.mmap(c.memory('count', 4096), 4096)\n"
        "for turn in range(20):\n"
        "    view[c.rank] = turn + 1\n"
        "    c.fence()\n"
        "    assert all(view[r] >= turn + 1 for r in range(size)), list(view[:size])\n"
        "    c.fence()\n"
        "say('ok'); leave()"
    )
    assert said(launch.python(4, code)) == [f"{rank} ok" for rank in range(4)]


def test_fence_without_a_departed_rank_fails(launch):
    code = HEAD + (
        "if c.rank == 1: leave(); sys.exit()\n"
        "error = refused(c.fence)\n"
        "say(error.code == errors.ERR_PROC_FAILED, 'rank 1 has finalized' in str(error))\n"
        "leave()"
    )
    assert said(launch.python(2, code)) == ["0 True True"]


def test_memory_is_shared_and_checked(launch):
    code = HEAD + (
        "view = mmap.mmap(c.memory('ring', 8192), 8192)\n"
        "view[c.rank] = c.rank + 1\n"
        "c.fence()\n"
        "say(list(view[:size]), os.fstat(c.memory('ring', 8192)).st_nlink)\n"
        "say(refused(c.memory, 'ring', 4096).code == errors.ERR_ARG)\n"
        "say(refused(c.memory, 'none', 0).code == errors.ERR_ARG)\n"
        "say(refused(c.memory, 'huge', 2**70).code == errors.ERR_NO_MEM)\n"
        "leave()"
    )
    result = said(launch.python(2, code))
    assert result == sorted(
        f"{rank} {words}" for rank in range(2) for words in ("[1, 2] 0", "True", "True", "True")
    )


def test_doorbells_ring(launch):
    code = HEAD + (
        "mine, theirs = c.doorbell(c.rank), c.doorbell(1 - c.rank)\n"
        "os.eventfd_write(theirs, 1)\n"
        "select.select([mine], [], [])\n"
        "say(os.eventfd_read(mine), os.get_inheritable(mine), os.get_blocking(mine))\n"
        "leave()"
    )
    assert said(launch.python(2, code)) == ["0 1 False False", "1 1 False False"]


def test_the_key_is_shared_and_secret(launch):
    code = HEAD + (
        "view = mmap.mmap(c.memory('key', 4096), 4096)\n"
        "if c.rank == 0: view[:32] = c.job_key\n"
        "c.fence()\n"
        "secret = c.job_key\n"
        "places = [open(f'/proc/self/{name}', 'rb').read() for name in ('environ', 'cmdline')]\n"
        "shown = any(secret in p or secret.hex().encode() in p for p in places)\n"
        "say(len(secret), secret == view[:32], shown)\n"
        "leave()"
    )
    assert said(launch.python(2, code)) == ["0 32 True False", "1 32 True False"]


def test_the_job_is_told(launch):
    code = HEAD + (
        "say(c.rank, len(c.job.job_id), c.job.apps[c.job.placements[c.rank].app].ranks)\n"
        "say(sorted(c.job.mca))\n"
        "leave()"
    )
    result = launch("-n", 1, sys.executable, "-c", code, ":", "-n", 2, sys.executable, "-c", code)
    lines = said(result)
    assert "0 0 16 1" in lines
    assert "2 2 16 2" in lines
    assert "1 ['components', 'format', 'settings', 'values']" in lines


def test_a_parameter_beside_one_program_holds_for_all(launch):
    code = HEAD + "say([one for one in c.job.mca['settings'] if 'pml' in one]); leave()"
    program = [sys.executable, "-c", code]
    result = launch("-n", 1, *program, ":", "-n", 1, "--mca", "pml", "ob1", *program)
    first, second = said(result)
    assert first[1:] == second[1:]
    assert "ob1" in first


def test_departures_are_told_while_parked(launch):
    code = HEAD + (
        "c.commit(); c.fence()\n"
        "if c.rank != 0: leave(); sys.exit()\n"
        "gone = []\n"
        "c.on_departure = lambda rank, reason: gone.append((rank, reason))\n"
        "c.on_readable()\n"  # what came with the answer to the fence
        "while len(gone) < 2:\n"
        "    select.select([c], [], [])\n"
        "    c.on_readable()\n"
        "c.on_readable()\n"
        "say(sorted(gone)); leave()"
    )
    gone = [(rank, "has finalized and ended") for rank in (1, 2)]
    assert said(launch.python(3, code)) == [f"0 {gone}"]


def test_departures_before_attaching_are_told(launch):
    late = HEAD.replace("c = attach()", "sys.stdin.read(); c = attach()") + (
        "gone = []\n"
        "c.on_departure = lambda rank, reason: gone.append(rank)\n"
        "c.commit()\n"
        "while not gone: select.select([c], [], []); c.on_readable()\n"
        "say(gone); leave()"
    )
    running = launch.start(
        "-n", 1, sys.executable, "-c", late,
        ":", "-n", 1, sys.executable, "-c", HEAD + "c.commit(); say('left'); leave()",
        stdin=subprocess.PIPE,
    )  # fmt: skip
    assert running.line() == "1 left"
    result = running.end(b"")
    assert (result.code, result.out) == (0, "0 [1]\n")


def test_a_subprocess_of_a_rank_is_a_plain_program(launch):
    plain = (
        "import os\n"
        "from ompy.runtime.ranks.client import attach\n"
        "print('OMPY_AGENT_FD' in os.environ, attach())"
    )
    code = HEAD + f"subprocess.run([sys.executable, '-c', {plain!r}], close_fds=False); leave()"
    assert said(launch.python(1, code)) == ["False None"]


def test_a_wrapper_is_no_obstacle(launch):
    code = HEAD + "c.commit(); c.fence(); say('here'); leave()"
    result = launch("-n", 2, "sh", "-c", f'"{sys.executable}" -c "$0"; true', code)
    assert said(result) == ["0 here", "1 here"]


def test_a_second_mpi_process_of_a_rank_is_refused(launch):
    twice = 'python -c "$0" && python -c "$0"'.replace("python", f'"{sys.executable}"')
    result = launch("-n", 1, "sh", "-c", twice, HEAD + "c.commit(); say('here'); leave()")
    assert result.code == 1
    assert result.out == "0 here\n"
    assert "MPIError: MPI_ERR_OTHER" in result.err
    assert "rank 0 is process " in result.err


def test_two_mpi_processes_of_a_rank_at_once(launch):
    """Both ask at the same time; neither gets the other's answer.

    They share one pipe, and `print` would write word and newline apart under PYTHONUNBUFFERED.
    """
    code = (
        "import sys\n"
        "from ompy.data.errors import MPIError\n"
        "from ompy.runtime.ranks.client import attach\n"
        "try: c = attach()\n"
        "except MPIError: sys.stdout.write('refused\\n')\n"
        "else: sys.stdout.write('welcome\\n'); c.finalized()"
    )
    both = 'python -c "$0" & python -c "$0" & wait'.replace("python", f'"{sys.executable}"')
    for _ in range(4):
        assert said(launch("-n", 1, "sh", "-c", both, code)) == ["refused", "welcome"]


def test_a_rank_that_never_attaches(launch):
    assert launch.python(2, "print('no MPI')").code == 0


def test_a_fork_cannot_use_the_connection(launch):
    code = HEAD + (
        "c.commit()\n"
        "if os.fork() == 0:\n"
        "    for call in (c.commit, c.fence, lambda: c.lookup(0), lambda: c.abort(5, 'x')):\n"
        "        assert 'forked' in refused(call).detail\n"
        "    say('child', c.fileno(), c.usable); os._exit(0)\n"
        "os.wait()\n"
        "c.fence(); say('parent'); leave()"
    )
    assert said(launch.python(1, code)) == ["0 child -1 False", "0 parent"]


def test_an_interrupted_call_does_not_confuse_the_next(launch):
    code = HEAD + (
        "import signal\n"
        "class Interrupt(Exception): pass\n"
        "def handler(*_): raise Interrupt\n"
        "signal.signal(signal.SIGALRM, handler)\n"
        "if c.rank == 0:\n"
        "    signal.setitimer(signal.ITIMER_REAL, 0.05)\n"
        "    try: c.lookup(1)\n"
        "    except Interrupt: os.eventfd_write(c.doorbell(1), 1)\n"
        "    c.publish('n', b'0'); c.commit()\n"
        "    c.memory('m', 4096); say(dict(c.lookup(1)), dict(c.lookup(0)))\n"
        "else:\n"
        "    select.select([c.doorbell(1)], [], [])\n"
        "    c.publish('n', b'1'); c.commit()\n"
        "c.fence(); leave()"
    )
    assert said(launch.python(2, code)) == ["0 {'n': b'1'} {'n': b'0'}"]


def test_too_much_to_publish_is_refused(launch):
    code = HEAD + (
        "c.publish('big', bytes(17 * 1024 * 1024))\n"
        "say('are allowed' in refused(c.commit).detail); leave()"
    )
    assert said(launch.python(1, code)) == ["0 True"]


def test_after_close_nothing_is_possible(launch):
    code = HEAD + (
        "leave(); c.close()\nsay('closed' in refused(c.fence).detail, c.fileno()); c.on_readable()"
    )
    assert said(launch.python(1, code)) == ["0 True -1"]


# without a launcher


def test_not_launched(monkeypatch):
    monkeypatch.delenv(AGENT_FD, raising=False)
    assert client.attach() is None


@pytest.mark.parametrize("kind", ["closed", "file", "udp", "no number"])
def test_a_descriptor_that_leads_nowhere(monkeypatch, kind):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp, open(os.devnull) as file:
        number = {"closed": "9999", "file": file.fileno(), "udp": udp.fileno(), "no number": "x"}
        monkeypatch.setenv(AGENT_FD, str(number[kind]))
        with pytest.raises(MPIError, match=f"{AGENT_FD}=.* does not lead to an agent"):
            client.attach()
        udp.getsockname(), os.fstat(file.fileno())  # they are not ours to close


@pytest.mark.parametrize("answer", ["none", "garbage", "end"])
def test_somebody_else_at_the_other_end(monkeypatch, answer):
    monkeypatch.setattr(client, "ATTACH_PATIENCE", 0.2)
    ours, theirs = socket.socketpair()

    def impostor():
        decoder = Decoder()
        receive_frames(theirs, decoder)
        (descriptor,) = decoder.next().descriptors
        with socket.socket(fileno=descriptor) as connection:
            if answer == "garbage":
                connection.send(b"HTTP/1.0 200 OK\r\n\r\n")
            if answer == "none":
                connection.recv(1)

    with ours, theirs:
        thread = threading.Thread(target=impostor)
        thread.start()
        monkeypatch.setenv(AGENT_FD, str(ours.fileno()))
        with pytest.raises(MPIError, match="does not lead to an agent"):
            client.attach()
        thread.join()


def test_a_rank_that_is_not_answered_leaves_a_word_and_no_traceback(launch):
    """All ranks of a host are started before one is answered: a crowd takes its time."""
    patience = ["--mca", "plm_base_attach_timeout_ms", "1"]
    result = launch.python(6, "from mpi4py import MPI", *patience)
    assert result.code == 1
    assert "Traceback" not in result.err
    said = " ".join(result.err.split())
    assert said.count("could not be started: the agent (process ") == 1
    assert said.count("has not answered within 0.001 s") == 1
    assert "plm_base_attach_timeout_ms" in said
