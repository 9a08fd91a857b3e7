"""Running `ompy-run` as users do: as a process of its own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

OMPY_RUN = [sys.executable, "-m", "ompy.cli.run"]
PATIENCE = 90.0  # s; far beyond what anything here takes, beside many others too
# for ranks that do something when they are told to end, and may have to wait for a core to do it
PATIENT = ("--mca", "plm_base_kill_grace_ms", 60_000)


class Ended:
    """How a command went."""

    def __init__(self, code, out, err):
        self.code = code
        self.raw_out = out or b""
        self.raw_err = err or b""
        self.out = self.raw_out.decode(errors="replace")
        self.err = self.raw_err.decode(errors="replace")

    def __repr__(self):
        return f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class Running:
    """A command that has been started."""

    def __init__(self, process):
        self.process = process
        self.pid = process.pid

    def line(self):
        """The next line of standard output."""
        return self.process.stdout.readline().decode().rstrip("\n")

    def signal(self, number):
        self.process.send_signal(number)

    def end(self, stdin=None):
        """Wait for the end."""
        out, err = self.process.communicate(stdin, timeout=PATIENCE)
        return Ended(self.process.returncode, out, err)


class Launch:
    """Starts commands and leaves none."""

    def __init__(self, environment, directory):
        self.environment = environment
        self.directory = directory
        self._started = []

    def start(self, *arguments, stdin=subprocess.DEVNULL, env=None, **options):
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("cwd", self.directory)
        process = subprocess.Popen(
            [*OMPY_RUN, *map(str, arguments)],
            stdin=stdin,
            env={**self.environment, **(env or {})},
            **options,
        )
        self._started.append(process)
        return Running(process)

    def __call__(self, *arguments, data=None, **options):
        """Run to the end."""
        if data is not None:
            options["stdin"] = subprocess.PIPE
        return self.start(*arguments, **options).end(data)

    def python(self, ranks, code, *options, **more):
        """Run Python code on some ranks to the end."""
        return self("-n", ranks, *options, sys.executable, "-c", code, **more)

    def start_python(self, ranks, code, *options, **more):
        return self.start("-n", ranks, *options, sys.executable, "-c", code, **more)

    def close(self):
        for process in self._started:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


@pytest.fixture
def launch(tmp_path):
    """Runs `ompy-run`; afterwards nothing of it is left, neither processes nor files."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    token = f"{os.getpid()}-{tmp_path.name}-{time.monotonic_ns()}"
    environment = {
        **os.environ,
        "TMPDIR": str(temporary),
        "OMPY_TEST_TOKEN": token,
        "PYTHONPATH": "",
        "HOME": str(tmp_path),
    }
    # an activated environment decides what `python` means: these tests mean the launcher's own
    others = ("OMPI_", "OMPY_MCA_", "MPIEX", "VIRTUAL_ENV")
    for name in [name for name in environment if name.startswith(others)]:
        del environment[name]
    before = shared_memory_files()
    # a shell starts background jobs with SIGINT ignored, nohup everything with SIGHUP ignored, and
    # what is ignored is inherited
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    hangup = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    made = Launch(environment, tmp_path)
    yield made
    made.close()
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGHUP, hangup)
    assert_gone(token)
    left = {name for name in shared_memory_files() - before if not is_in_use(name)}
    assert not left & shared_memory_files(), "a file was left in /dev/shm"
    assert not list(temporary.iterdir()), "a file was left in the temporary directory"


def shared_memory_files():
    """Names in /dev/shm; not those of Open MPI and of multiprocessing, which others may run."""
    names = {path.name for path in Path("/dev/shm").iterdir()}
    return {name for name in names if not name.startswith(("sm_segment.", "sem."))}


def is_in_use(name):
    """Whether a process has the file in its memory; of ours none is left, so it is another's."""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            if f"/dev/shm/{name}\n" in maps.read_text():
                return True
        except OSError:
            pass  # it has gone
    return False


def tagged_processes(token):
    """Processes with `OMPY_TEST_TOKEN=token` in their environment, zombies excepted."""
    wanted = f"OMPY_TEST_TOKEN={token}".encode()
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    found[int(entry.name)] = command
            except OSError:
                pass  # it has gone, or is going
    return found


def assert_gone(token, within=20.0):
    """No process of the job is alive, soon."""
    deadline = time.monotonic() + within
    while alive := tagged_processes(token):
        if time.monotonic() > deadline:
            for process in alive:
                os.kill(process, signal.SIGKILL)
            raise AssertionError(f"alive after {within} s: {alive}")
        time.sleep(0.01)


def wait_until_asleep(pids, samples=40):
    """Until all processes have been found waiting so many times in a row."""
    quiet = 0
    while quiet < samples:
        time.sleep(0.002)
        quiet = quiet + 1 if {state(pid) for pid in pids} <= {"S", ""} else 0


def state(pid):
    """One letter for what a process does, nothing if it has gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


@pytest.fixture
def processes(launch):
    """The processes of the test's jobs that are alive, with their command lines."""
    return lambda: tagged_processes(launch.environment["OMPY_TEST_TOKEN"])
