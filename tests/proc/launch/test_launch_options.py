"""Options of mpirun's on real jobs: files of output, merged streams, stacks, debuggers."""

import os
import pty
import sys

import pytest

from tests.support.effort import THOROUGH

nightly = pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
pytestmark = pytest.mark.proc
BOTH = "import os; r = os.environ['OMPY_RANK']; os.write(1, b'out ' + r.encode() + b'\\n'); "
BOTH += "os.write(2, b'err ' + r.encode() + b'\\n')"


def files_in(folder):
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_files_of_output(launch, tmp_path):
    there = tmp_path / "made" / "out"
    result = launch.python(2, BOTH, "--output-filename", there, "--tag-output")
    assert result.code == 0, result
    assert "[1,1]<stdout>:out 1" in result.out
    assert files_in(there) == {
        f"1/rank.{rank}/{name}": f"{text} {rank}\n"
        for rank in range(2)
        for name, text in (("stdout", "out"), ("stderr", "err"))
    }


def test_files_in_place_of_the_terminal(launch, tmp_path):
    folder = tmp_path / "out"
    line = ("--output-filename", f"{folder}:nojobid,nocopy", "--merge-stderr-to-stdout")
    (folder / "rank.0").mkdir(parents=True)
    (folder / "rank.0" / "stdout").write_text("of an earlier job")
    result = launch.python(1, BOTH, *line)
    assert (result.code, result.out, result.err) == (0, "", ""), result
    assert files_in(folder) == {"rank.0/stderr": "", "rank.0/stdout": "out 0\nerr 0\n"}


@nightly
def test_files_that_cannot_be_made(launch, tmp_path):
    (tmp_path / "file").write_text("")
    result = launch("-n", 1, "--output-filename", "file", "touch", "there")
    assert result.code == 2, result
    assert "--output-filename" in result.err
    assert not (tmp_path / "there").exists()
    result = launch("-n", 1, "--output-filename", "out:nope", "true")
    assert (result.code, "write DIR, DIR:nocopy or" in result.err) == (2, True), result


@nightly
def test_merged_streams_are_in_order(launch):
    code = "import os\nfor n in range(50): os.write(1 + n % 2, b'%d\\n' % n)"
    result = launch.python(1, code, "--merge-stderr")
    assert (result.out.split(), result.err) == ([str(n) for n in range(50)], ""), result


@nightly
def test_stacks_at_a_timeout(launch, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import threading, time\nfrom mpi4py import MPI\n"
        "def beside(): time.sleep(600)\n"
        "threading.Thread(target=beside, name='another', daemon=True).start()\n"
        "def innermost(): time.sleep(600)\n"
        "innermost()\n"
    )
    line = ("-n", 2, "--timeout", 6, "--get-stack-traces", sys.executable, program)
    result = launch(*line)
    assert result.code == 110, result
    assert "ompy-run: stacks of ranks 0, 1, the innermost call last:" in result.err
    stack = f"thread MainThread\nompy-run:     {program}:6 in <module>\n"
    assert f"{stack}ompy-run:     {program}:5 in innermost\n" in result.err, "the program's alone"
    assert "ompy-run:   thread another\n" in result.err
    assert f"{program}:3 in beside" in result.err
    result = launch("--get-stack-traces", "true")
    assert (result.code, "add --timeout SECONDS" in result.err) == (2, True), result


PROGRAM = "import os\nrank = os.environ['OMPY_RANK']\nprint('rank', rank, 'ran')\n"


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_pdb_has_one_rank(launch, program):
    line = ("-n", 2, "--debug", 1, sys.executable, program)
    result = launch(*line, data=b"n\nrestart\nn\nrun 3\np 'it is ' + rank\nc\n")
    assert result.out.count("a rank cannot begin again alone") == 2, result
    assert "it is 1" in result.out, result
    assert "rank 0 ran" in result.out
    assert "rank 1 ran" in result.out  # and not a second time
    assert result.out.count("rank 1 ran") == 1
    assert result.code == 0


def test_pdb_has_the_terminal(launch, program):
    ours, theirs = pty.openpty()
    running = launch.start(
        "-n", 2, "--debug", 0, sys.executable, program, stdin=theirs, stdout=theirs
    )
    os.close(theirs)
    seen = b""
    os.write(ours, b"n\nn\np 'it is ' + rank, __import__('os').isatty(1)\nq\n")
    while b"('it is 0', True)" not in seen:
        seen += os.read(ours, 4096)
    running.process.stdout = None
    assert running.process.wait(60) == 0
    os.close(ours)


@nightly
def test_debugpy_waits_for_an_editor(launch, program, tmp_path):
    line = ("-n", 2, "--debug", "1:7777", sys.executable, program)
    (tmp_path / "debugpy").mkdir()
    (tmp_path / "debugpy" / "__init__.py").write_text("")
    (tmp_path / "debugpy" / "__main__.py").write_text("import sys; print(sys.argv[1:])")
    result = launch(*line, env={"PYTHONPATH": str(tmp_path)})
    assert result.code == 0, result
    told = ["--listen", "127.0.0.1:7777", "--wait-for-client", str(program)]
    assert sorted(result.out.splitlines()) == [str(told), "rank 0 ran"], result
    assert "rank 1 waits for an editor at 127.0.0.1:7777" in result.err


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (["--debug", "2"], "the last of 2 ranks is 1"),
        (["--debug", "x"], "write RANK, or RANK:PORT"),
        (["--debug", "1:0"], "write RANK, or RANK:PORT"),
        (["--debug", "1:77", "--debugger", "pdb"], "pdb has no port"),
        (["--debugger", "pdb"], "--debug RANK says which rank"),
        (["--debug", "1", "--stdin", "none"], "both want the terminal"),
        (["--debug", "1"], "pdb runs a file, or -m with a module, and no -c"),
    ],
)
def test_what_cannot_be_debugged(line, why, capsys):
    from ompy.cli.run import main

    program = [] if "no -c" in why else ["-m", "this"]
    assert main(["-n", "2", *line, sys.executable, *(program or ["-c", ""])]) == 2
    assert why in capsys.readouterr().err
