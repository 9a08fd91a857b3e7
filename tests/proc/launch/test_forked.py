"""Ranks that are forks of their agent: a program cannot tell them from new interpreters.

Each program is run both ways, and everything it sees, and how it ends, has to be the same.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.effort import THOROUGH

pytestmark = pytest.mark.proc

EXECUTED = ("--mca", "plm_base_fork_ranks", "0")
FORKED = "'ompy.runtime.ranks.forked' in sys.modules"
SEEN = """
import gc, json, os, resource, signal, sys
def descriptors():
    found = []
    for number in sorted(map(int, os.listdir("/proc/self/fd"))):
        try:
            kind = os.readlink(f"/proc/self/fd/{number}").partition(":")[0]
            found.append((number > 2, os.get_inheritable(number), kind))
        except OSError:
            pass
    return sorted(found)
def stream(file):
    names = "name mode encoding errors line_buffering write_through newlines".split()
    return [repr(file), type(file.buffer).__name__, *(getattr(file, name) for name in names)]
own = {name: repr(value) if name != "__builtins__" else type(value).__name__
       for name, value in list(globals().items()) if name.startswith("__")}
facts = {
    "main": {name: text.partition(" at 0x")[0] for name, text in own.items()},
    "is main": sys.modules["__main__"].__dict__ is globals(),
    "argv": [sys.argv, sys.orig_argv, sys.executable, sys._base_executable, sys.prefix, sys.path],
    "streams": [stream(file) for file in (sys.stdin, sys.stdout, sys.stderr)],
    "the same": [getattr(sys, name) is getattr(sys, f"__{name}__")
                 for name in ("stdin", "stdout", "stderr")],
    "descriptors": descriptors(),
    "environment": {name: value for name, value in os.environ.items()
                    if name not in ("OMPY_AGENT_FD", "_")},
    "libc's": len(os.environb),
    "signals": [repr(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "limits": [resource.getrlimit(number) for number in range(15)],
    "process": [os.getcwd(), os.getpgrp() == os.getpid(), os.getsid(0) == os.getppid(),
                os.getpriority(0, 0)],
    "flags": repr(sys.flags), "gc": [gc.get_threshold(), gc.isenabled(), gc.get_debug()],
    "hooks": [sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__],
    "limit": sys.getrecursionlimit(), "last": hasattr(sys, "last_value"),
    "name": open("/proc/self/comm").read(),
    "command": open("/proc/self/cmdline").read().rstrip(chr(0)).split(chr(0)),
    "read": sys.stdin.read(),
}
"""
TELL = SEEN + f"print(json.dumps(facts)); print({FORKED})\n"


def both_ways(launch, *words, ranks=1, **options):
    """What a command line gives in a fork, and in a new interpreter."""
    return launch("-n", ranks, *words, **options), launch(*EXECUTED, "-n", ranks, *words, **options)


def compared(launch, *words, **options):
    """See that a program of `TELL` sees the same both ways. Returns what it saw."""
    forked, executed = both_ways(launch, *words, **options)
    assert (forked.code, forked.err, executed.code, executed.err) == (0, "", 0, "")
    seen, was_forked = forked.out.splitlines()
    expected, was_executed = executed.out.splitlines()
    assert (was_forked, was_executed) == ("True", "False")
    assert json.loads(seen) == json.loads(expected)
    return json.loads(seen)


def test_a_file_sees_the_same(launch, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "program.py").write_text(TELL)
    (tmp_path / "link.py").symlink_to("there/program.py")
    seen = compared(launch, "python", "link.py", "a", "-b", "", data=b"some input\r\n")
    assert seen["argv"][0] == ["link.py", "a", "-b", ""]
    assert seen["argv"][5][0] == str(tmp_path / "there")
    assert seen["read"] == "some input\r\n"


@pytest.mark.parametrize("kind", ["-c", "-m", "python3 -c"])
def test_code_and_modules_see_the_same(launch, tmp_path, kind):
    (tmp_path / "beside.py").write_text(TELL)
    name, _, kind = kind.rpartition(" ")
    what = "beside" if kind == "-m" else TELL
    compared(launch, name or sys.executable, kind, what, "-q", env={"LONELY": "x", "PWD": "/odd"})


def test_a_name_of_the_interpreter_tells_what_is_below_it():
    """The fork of `python3.11` that stands for `python` says what `python` says of its base."""
    names = ("python", "python3", "python{}.{}".format(*sys.version_info))
    here = Path(sys.executable).parent
    names = [str(here / name) for name in names if (here / name).exists()]
    asked = "import sys; from ompy.runtime.ranks.forked import base_executable as base;"
    asked += "print([base(name) for name in sys.argv[1:]])"
    told = [said(name, "-c", "import sys; print(sys._base_executable)") for name in names]
    for name in names:
        assert said(name, "-c", asked, *names) == repr(told)


def said(*words):
    """What a command prints, without its end of line."""
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.rstrip("\n")


def test_options_of_the_launcher_mean_the_same(launch, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "program.py").write_text(TELL)
    options = ["-x", "A=b", "--wdir", tmp_path / "elsewhere", "--no-mpi4py", "--stdin", "none"]
    seen = compared(launch, *options, "python", "program.py", env={"PYTHONPATH": "/odd:/even"})
    assert seen["environment"]["A"] == "b"
    assert seen["argv"][5][1:3] == ["/odd", "/even"]


def test_an_unbuffered_interpreter_stays_one(launch):
    seen = compared(launch, "python", "-c", TELL, env={"PYTHONUNBUFFERED": "1"})
    assert seen["streams"][1][-2] is True


ENDS = {
    "code": "sys.exit(3)",
    "text": "sys.exit('a text')",
    "uncaught": "def inner():\n    1 / 0\ninner()",
    "chained": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('x') from e",
    "at once": "print('lost', end=''); os._exit(7)",
    "signal": "os.kill(os.getpid(), 11)",
    "aborting": "os.abort()",
    "interrupt": "raise KeyboardInterrupt",
    "syntax": "1 +",
    "null": "'\\x00' + \0",
    "no hook": "del sys.excepthook\n1 / 0",
    "own hook": "sys.excepthook = lambda k, v, t: print(v, t.tb_lineno, sys.last_value is v)\n1/0",
    "bad hook": "def hook(*_): raise SystemExit(9)\nsys.excepthook = hook\n1/0",
    "at exit": "import atexit\natexit.register(print, 'bye')\natexit.register(lambda: 1/0)\n1/0",
    "open file": "keep = open('kept', 'w')\nkeep.write('all of it')",
    "destructor": "class C:\n    def __del__(self): print('deleted')\nc = C()\nc.c = c",
    "thread": "import threading\nthreading.Timer(0.1, print, ['later']).start()",
    "broken output": "sys.stdout.close(); os.close(1); sys.stdout = open(2, 'w', closefd=False)",
    "stack": "import traceback\ntraceback.print_stack(limit=1)",
}


def normal(text):
    """An output without what differs between any two runs."""
    text = re.sub(r"(process +)\d+", r"\1N", text)
    return re.sub(r"0x[0-9a-f]+", "0x", text)


@pytest.mark.parametrize("name", ENDS if THOROUGH else [*ENDS][::2])
def test_the_end_is_the_same(launch, tmp_path, name):
    (tmp_path / "program.py").write_text(f"import os, sys\n{ENDS[name]}\n")
    forked, executed = both_ways(launch, "python", "program.py")
    assert forked.code == executed.code
    assert normal(forked.out) == normal(executed.out)
    assert normal(forked.err) == normal(executed.err)
    if name == "open file":
        assert (tmp_path / "kept").read_text() == "all of it"
    if name == "uncaught":
        assert "ompy" not in forked.err.partition("-----")[0]


@pytest.mark.parametrize(("code", "end"), [("1 +", 1), ("1 / 0", 1), ("exit(3)", 3), ("", 0)])
def test_the_interpreter_ends_in_memory_that_is_there(code, end):
    """What CPython keeps of the script that it has begun is still there when a rank is at its end.

    Freed memory is overwritten here: a syntax error once ended ranks of an installed copy by
    SIGSEGV, as nothing but the frames of its traceback held the launcher's own `__main__`.
    """
    script = Path(sys.executable).with_name("ompy-run")  # what is run as a module is held by runpy
    command = [script, "-n", "1", "python", "-c", code]
    environment = {**os.environ, "PYTHONMALLOC": "debug"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == end, done.stderr
    assert "signal" not in done.stderr


def test_one_crash_leaves_the_others_alone(launch):
    code = (
        "import os, pathlib, sys, time\nrank = int(os.environ['OMPY_RANK'])\n"
        "import json; json.rank = rank\n"  # what they have in common they have in common no more
        "pathlib.Path(f'ready-{rank}').touch()\n"  # before, a SIGTERM would end it
        "while rank == 1 and len(list(pathlib.Path().glob('ready-*'))) < 3: time.sleep(0.01)\n"
        "if rank == 1: os.kill(os.getpid(), 9)\n"
        "time.sleep(0.2)\n"
        f"assert json.rank == rank; print(rank, {FORKED}, flush=True)\n"
    )
    result = launch("-n", 3, "--mca", "plm_base_kill_grace_ms", "20000", "python", "-c",
                    "import signal; signal.signal(15, signal.SIG_IGN)\n" + code)  # fmt: skip
    assert result.code == 137
    assert sorted(result.out.splitlines()) == ["0 True", "2 True"]


def test_chance_is_not_shared(launch):
    code = f"import random, uuid; print(random.random(), uuid.uuid4(), {FORKED})"
    result = launch("-n", 2, "python", "-c", f"import sys; {code}")
    first, second = (line.split() for line in result.out.splitlines())
    assert first[0] != second[0]
    assert first[1] != second[1]
    assert {first[2], second[2]} == {"True"}


@pytest.mark.parametrize(("options", "seeds"), [((), 1), (EXECUTED, 3)])
def test_the_seed_of_hashes_is_shared_by_forks_alone(launch, options, seeds):
    launch.environment.pop("PYTHONHASHSEED", None)
    code = "print(hash('the same in all forks'))"
    result = launch("-n", "3", *options, sys.executable, "-c", code)
    assert result.code == 0, result.err
    assert len(set(result.out.split())) == seeds


def test_importing_mpi_loads_next_to_nothing_more(launch):
    code = (
        "import sys\nbefore = set(sys.modules)\nfrom mpi4py import MPI\n"
        "comm = MPI.COMM_WORLD\nassert comm.allreduce(1) == 2\n"
        "print(sorted(set(sys.modules) - before))\n"
        "print([n for n in ('numpy', 'asyncio', 'click', 'pydantic') if n in sys.modules])"
    )
    result = launch("-n", 2, "python", "-c", code)
    assert result.code == 0, result
    new = json.loads(result.out.splitlines()[0].replace("'", '"'))
    assert set(new) <= {"mpi4py", "mpi4py.MPI", "mpi4py.rc", "ompy.MPI", "pickle", "_compat_pickle",
                        "_pickle", "ompy.mpi.buffers.arrays",
                        "ompy.mpi.collectives.object_collectives"}  # fmt: skip
    assert "[]" in result.out.splitlines()


@pytest.mark.parametrize(
    ("options", "words", "env"),
    [
        ([], ["python", "-B"], {}),
        (["-x", "PYTHONHASHSEED=3"], ["python"], {}),
        (["-x", "LD_PRELOAD="], ["python"], {}),
        (["-x", "PYTHONPATH=/odd"], ["python"], {}),
        (["--wdir", "/"], ["python"], {"PYTHONPATH": "relative"}),
        (["-x", "MPI4PY_RC_THREADS=0"], ["python"], {}),
        ([], ["env", "python"], {}),
        ([], [os.path.realpath(sys.executable)], {}),
        (list(EXECUTED), ["python"], {}),
    ],
)
def test_in_doubt_programs_are_executed(launch, options, words, env):
    result = launch("-n", 1, *options, *words, "-c", f"import sys; print({FORKED})", env=env)
    assert (result.code, result.out) == (0, "False\n")


def test_a_module_of_the_program_is_not_hidden_by_one_of_ours(launch, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "struct.py").write_text("mine = True")
    (folder / "program.py").write_text("import struct; print(struct.mine)")
    for words in (["-c", "import struct; print(struct.mine)"], ["program.py"]):
        result = launch("-n", 1, "--wdir", folder, "python", *words)
        assert (result.code, result.out) == (0, "True\n"), result
    assert launch("-n", 1, "python", "folder/program.py").out == "True\n"


def test_a_file_that_is_no_source_is_the_interpreters_business(launch, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "__main__.py").write_text(f"import sys; print({FORKED})")
    assert launch("-n", 1, "python", "folder").out == "False\n"
    missing = launch("-n", 1, "python", "missing.py")
    assert missing.code == 2
    assert "can't open file" in missing.err
