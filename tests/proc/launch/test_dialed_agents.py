"""Agents that wait (`ompy agent`) and are called (plm/dial), on addresses of this host.

As pods of Kubernetes, on hosts with names: `tests/netns/test_kubernetes.py`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ompy.runtime.connections.credentials import SecretFile
from ompy.runtime.dialing.greeting import HELLO, HELLO_SIZE, make_call, nonce_of

pytestmark = pytest.mark.proc

OMPY = str(Path(sys.executable).parent / "ompy")
SUM = "from ompy import MPI\nc = MPI.COMM_WORLD\nprint(c.allreduce(c.rank))"
WAIT = (
    "import os, time\nfrom ompy import MPI\nc = MPI.COMM_WORLD\nc.barrier()\n"
    "print(os.getpid(), flush=True)\ntime.sleep(600)"
)
HOSTS = ("127.0.0.2", "127.0.0.3")
PATIENCE = 90.0  # s; far beyond what anything here takes


def free_port() -> int:
    """One that nobody has at any of the hosts' addresses."""
    with socket.create_server(("", 0)) as found:
        return found.getsockname()[1]


class Agents:
    """Those that wait, by host."""

    def __init__(self, launch, tmp_path):
        self.port = free_port()
        self.key = tmp_path / "key"
        self.key.write_bytes(os.urandom(32))
        self.key.chmod(0o600)
        self.running = {}
        self._launch = launch
        self._environment = {**launch.environment, "OMPY_SECRET_FILE": str(self.key)}

    def start(self, *hosts, key=None, patience="60"):
        for host in hosts:
            words = ["agent", "--port", str(self.port), "--address", host, "--patience", patience]
            self.running[host] = subprocess.Popen(
                [OMPY, *words], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                env={**self._environment, **({"OMPY_SECRET_FILE": str(key)} if key else {})},
            )  # fmt: skip

    def options(self, slots=1):
        hosts = ",".join(f"{host}:{slots}" for host in HOSTS)
        return ("--mca", "plm_dial_port", self.port, "--host", hosts)

    def run(self, code, *options, slots=1):
        words = (*self.options(slots), *options, sys.executable, "-c", code)
        return self._launch(*words, env={"OMPY_SECRET_FILE": str(self.key)})

    def begin(self, code, *options):
        words = (*self.options(), *options, sys.executable, "-c", code)
        return self._launch.start(*words, env={"OMPY_SECRET_FILE": str(self.key)})

    def connect(self, host):
        """A stranger's connection, and what the agent says first."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                connection = socket.create_connection((host, self.port))
                break
            except ConnectionRefusedError:
                assert time.monotonic() < until
                time.sleep(0.05)
        hello = b""
        while len(hello) < HELLO_SIZE:
            hello += connection.recv(HELLO_SIZE - len(hello))
        return connection, hello

    def codes(self):
        return [self.running[host].wait(PATIENCE) for host in HOSTS]

    def close(self):
        for process in self.running.values():
            process.kill()
            process.communicate()


@pytest.fixture
def agents(launch, tmp_path):
    made = Agents(launch, tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("options", [(), ("--mca", "plm_base_radix", 1)])
def test_a_job(agents, options):
    agents.start(*HOSTS)
    result = agents.run(SUM, *options, slots=2)
    assert (result.code, result.out) == (0, "6\n" * 4), result
    assert agents.codes() == [0, 0]


def test_agents_end_with_0_whatever_the_job_ends_with(agents):
    agents.start(*HOSTS)
    result = agents.run(f"{SUM}\nif c.rank == 1: raise SystemExit(5)")
    assert result.code == 5, result
    assert agents.codes() == [0, 0]


def test_strangers_are_sent_away_and_the_job_runs(agents):
    """Garbage, silence, another key, a call that was recorded: none of them is the launcher."""
    agents.start(*HOSTS)
    silent, hello = agents.connect(HOSTS[0])
    assert hello.startswith(HELLO)
    ours, theirs = SecretFile(str(agents.key)), agents.key.with_name("another")
    theirs.write_bytes(os.urandom(32))
    theirs.chmod(0o600)
    recorded = make_call(ours, nonce_of(hello), "a" * 32)
    for said in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0\0\0\0",
        b"\xff" * 5000,
        make_call(SecretFile(str(theirs)), nonce_of(hello), "a" * 32),
        recorded,
    ):
        connection, nonce = agents.connect(HOSTS[0])
        assert nonce != hello
        connection.sendall(said)
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""
        connection.close()
    result = agents.run(SUM)
    assert (result.code, result.out) == (0, "1\n1\n"), result
    silent.close()


@pytest.mark.nightly
def test_many_who_say_nothing_do_not_keep_the_launcher_out_for_ever(agents):
    agents.start(*HOSTS)
    silent = [agents.connect(HOSTS[0])[0] for _ in range(16)]
    result = agents.run(SUM)
    assert (result.code, result.out) == (0, "1\n1\n"), result
    for connection in silent:
        connection.close()


def test_an_agent_with_another_key_is_none(agents, tmp_path):
    other = tmp_path / "other"
    other.write_bytes(os.urandom(32))
    other.chmod(0o600)
    agents.start(HOSTS[0])
    agents.start(HOSTS[1], key=other)
    result = agents.run(SUM)
    assert (result.code, result.out) == (1, ""), result
    assert f"no agent on host {HOSTS[1]}" in result.err
    assert "the same OMPY_SECRET_FILE" in result.err
    agents.running[HOSTS[1]].send_signal(signal.SIGTERM)  # it waits for its own launcher
    assert agents.codes() == [0, 128 + signal.SIGTERM] or agents.codes() == [1, 143]


def test_an_agent_that_is_not_there(agents):
    agents.start(HOSTS[0])
    result = agents.run(SUM, "--mca", "plm_base_start_timeout_ms", 4000)
    assert (result.code, result.out) == (1, ""), result
    assert "not ready within 4 s" in result.err
    assert agents.running[HOSTS[0]].wait(PATIENCE) is not None


def test_a_launcher_that_does_not_come(agents):
    agents.start(HOSTS[0], patience="0.5")
    process = agents.running[HOSTS[0]]
    assert process.wait(PATIENCE) == 1
    assert process.stderr.read() == "ompy agent: error: no launcher came within 0.5 s\n"


def test_a_port_that_is_taken_and_an_address_that_is_not_ours(agents):
    with socket.create_server((HOSTS[0], agents.port)):
        agents.start(HOSTS[0], "192.0.2.1", "nonsense")
        for process in agents.running.values():
            assert process.wait(PATIENCE) == 1
            said = process.stderr.read()
            assert f"port {agents.port}: cannot listen there" in said
            assert "Traceback" not in said


def test_without_a_secret(launch):
    done = subprocess.run(
        [OMPY, "agent"], capture_output=True, text=True, env={**launch.environment, "PATH": ""}
    )
    assert done.returncode == 1
    assert "set OMPY_SECRET_FILE" in done.stderr


def killed(agents, job, whom):
    """End one of a job's processes."""
    agent = agents.running[HOSTS[1]]
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    dialers = [
        int(pid)
        for pid in children
        if HOSTS[1].encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    guards = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
    pid, number = {
        "launcher": (job.pid, signal.SIGKILL),
        "dialer": (dialers[0], signal.SIGKILL),
        "waiting": (agent.pid, signal.SIGKILL),
        "guard": (int(guards[0]), signal.SIGKILL),
        "evicted": (agent.pid, signal.SIGTERM),
    }[whom]
    os.kill(pid, number)


@pytest.mark.parametrize("whom", ["launcher", "dialer", "waiting", "guard", "evicted"])
def test_whoever_is_killed_nothing_is_left(agents, whom):
    """The fixture `launch` looks for processes that are left."""
    agents.start(*HOSTS)
    job = agents.begin(WAIT)
    ranks = [int(job.line()) for _ in HOSTS]
    killed(agents, job, whom)
    result = job.end()
    assert result.code == (-signal.SIGKILL if whom == "launcher" else 1), result
    codes = {"waiting": -signal.SIGKILL, "guard": 137, "evicted": 143}
    assert agents.codes() == [0, codes.get(whom, 0)]
    until = time.monotonic() + PATIENCE
    while any(Path(f"/proc/{rank}").exists() for rank in ranks):
        assert time.monotonic() < until
        time.sleep(0.05)
