"""A laboratory of four hosts with two rails, made once and used by all tests here."""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tools.lab.laboratory import Laboratory

LAB = str(Path(__file__).parents[2] / "tools" / "lab")

OMPY_RUN = [sys.executable, "-m", "ompy.cli.run"]
PATIENCE = 90.0  # s; far beyond what anything here takes, beside many others too
_names = itertools.count()


class Lines:
    """What a process writes, read as it comes: it never waits for us, and nothing is lost."""

    def __init__(self, pipe):
        self.lines, self._more = [], threading.Condition()
        self._reader = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._reader.start()

    def _read(self, pipe):
        for line in pipe:
            with self._more:
                self.lines.append(line.rstrip("\n"))
                self._more.notify_all()

    def count(self, *words):
        """Lines so far that have all of these in them."""
        return sum(all(word in line for word in words) for line in self.lines)

    def wait_for(self, count, *words):
        """Until there are so many such lines."""
        with self._more:
            found = self._more.wait_for(lambda: self.count(*words) >= count, PATIENCE)
            assert found, (words, self.lines)

    def all(self):
        """Every line, when the process has ended."""
        self._reader.join(PATIENCE)
        return list(self.lines)


class Lab:
    """Uses `tools/lab` as a user does."""

    hosts = ("h1", "h2", "h3", "h4")

    def __init__(self, name):
        self.name = name
        self._started = []

    def __call__(self, *words, **options):
        command = [sys.executable, LAB, "--name", self.name, *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, **options)
        if "needs nftables" in done.stderr:
            pytest.skip("nftables is not installed")
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, host, *words):
        """Begin a command on a host."""
        command = [sys.executable, LAB, "--name", self.name, "exec", host, "--", *map(str, words)]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        self._started.append(process)
        return process

    def ompy_run(self, *words):
        """Begin a job; the launcher is on h1."""
        return self.start("h1", *OMPY_RUN, *words)

    def run(self, *words):
        """Run a job to its end: exit code, output, errors."""
        process = self.ompy_run(*words)
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err

    def processes(self, host):
        """What runs on a host, by process number; asked without a process of its own."""
        return Laboratory(self.name).processes(host)

    def everything(self):
        return {host: found for host in self.hosts if (found := self.processes(host))}

    def assert_empty(self, within=5.0, but=None):
        """Nothing of a job is left on any host, soon; but processes of one program."""
        deadline = time.monotonic() + within
        while left := self.everything():
            words = [text for found in left.values() for text in found.values()]
            if but is not None and all(text.startswith(but) for text in words):
                return
            assert time.monotonic() < deadline, left
            time.sleep(0.05)

    def sent(self, host, link):
        """Bytes a host has sent over a link."""
        path = f"/sys/class/net/{link}/statistics/tx_bytes"
        # ip netns exec, because it shows the namespace's own /sys
        command = ["ip", "netns", "exec", f"{self.name}-{host}", "cat", path]
        return int(subprocess.run(command, capture_output=True, check=True).stdout)

    def wait_for_messages(self, host, size=20_000):
        """Until ranks of a host have sent so many bytes more over its rails."""
        began, deadline = self.sent_by_rails(host), time.monotonic() + PATIENCE
        while self.sent_by_rails(host) < began + size:
            assert time.monotonic() < deadline, f"{host} sends nothing"
            time.sleep(0.05)

    def sent_by_rails(self, host):
        """Bytes a host has sent over all its rails."""
        return sum(self.sent(host, link) for link in ("rail1", "rail2"))

    def clean(self):
        """End what a test has left, so that the next begins with nothing."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
        for found in self.everything().values():
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for process in self._started:  # now that nobody holds the other ends of its pipes
            process.communicate()
        self._started.clear()


@pytest.fixture(scope="session")
def laboratory():
    why = subprocess.run([sys.executable, LAB, "why-not"], capture_output=True, text=True)
    if why.returncode:
        pytest.skip(f"no laboratory here: {why.stdout.strip()}")
    lab = Lab(f"t{os.getpid()}n{next(_names)}")
    lab("up")
    try:
        yield lab
    finally:
        lab("down")
        assert (
            lab.name not in subprocess.run(["ip", "netns"], capture_output=True, text=True).stdout
        )
        assert not Path(f"/run/ompy-lab-{lab.name}").exists()


@pytest.fixture
def lab(laboratory):
    yield laboratory
    laboratory.clean()


class SlurmLab(Lab):
    """Every job in an allocation of its own."""

    def ompy_run(self, *words):
        return self.start("h1", "salloc", "-Q", "-N4", "-n8", *OMPY_RUN, *words)

    def processes(self, host):
        """Slurm's step daemons are not ours, and end when our processes have."""
        found = super().processes(host)
        return {pid: words for pid, words in found.items() if not words.startswith("slurmstepd")}


@pytest.fixture(scope="session")
def slurm_laboratory():
    why = subprocess.run([sys.executable, LAB, "why-not"], capture_output=True, text=True)
    if why.returncode:
        pytest.skip(f"no laboratory here: {why.stdout.strip()}")
    lab = SlurmLab(f"s{os.getpid()}")
    lab("up", "--slurm")
    try:
        yield lab
    finally:
        lab("down")


@pytest.fixture
def slurm_lab(slurm_laboratory):
    yield slurm_laboratory
    slurm_laboratory.clean()
