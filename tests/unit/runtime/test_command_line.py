"""How `ompy-run` takes its command line apart."""

import json
import os
import signal
import subprocess
import sys

import pytest
from click import Context
from ompy.cli import run
from ompy.cli.launch.command_line import Answered, CommandError, parse_command_line
from ompy.cli.launch.launch_options import job_timeout
from ompy.cli.launch.launching import make_job
from ompy.cli.options import arities, command, parse_by_click
from ompy.frameworks.job import Job


def options(*arguments):
    (group,) = parse_command_line([*arguments, "prog"])
    return group.options


@pytest.mark.parametrize("spelling", ["-n", "-np", "--n", "--np", "-c"])
def test_every_spelling_of_the_number(spelling):
    assert options(spelling, "4")["count"] == 4


def test_number_may_stick_to_its_option():
    assert options("-n4")["count"] == 4
    assert options("--np=4")["count"] == 4


@pytest.mark.parametrize("dash", ["-", "--"])
def test_long_options_with_one_dash_or_two(dash):
    found = options(
        f"{dash}mca", "btl", "^tcp", f"{dash}gmca", "a", "-1", f"{dash}wdir", "/tmp",
        f"{dash}timeout", "2.5", f"{dash}tag-output", f"{dash}timestamp-output",
        f"{dash}stdin", "none", f"{dash}nooversubscribe", f"{dash}no-mpi4py",
        f"{dash}display-map", f"{dash}do-not-launch", f"{dash}allow-run-as-root", "-q",
        "-x", "A=b=c", "-x", "B",
    )  # fmt: skip
    assert found["mca"] == (("btl", "^tcp"), ("a", "-1"))
    assert (found["wdir"], found["timeout"], found["stdin"]) == ("/tmp", 2.5, "none")
    assert found["exports"] == ("A=b=c", "B")
    switched_on = {"tag_output", "timestamp_output", "display_map", "do_not_launch", "quiet"}
    assert {name for name, value in found.items() if value is True} >= switched_on
    assert {found["oversubscribe"], found["mpi4py"]} == {False}


def test_defaults():
    found = options()
    assert {found["oversubscribe"], found["mpi4py"]} == {True}
    assert (found["count"], found["timeout"], found["stdin"]) == (None, None, "0")


@pytest.mark.parametrize(
    "line",
    [
        "prog", "prog -n 3 --help", "-n 4 prog", "--np 2 prog a", "-c 1 prog", "-np 12 prog : x",
        "--mca btl self,sm --mca a -1 prog", "-x A=b=c -x B prog", "--stdin none prog",
        "--stdin 2 --wdir /tmp prog -q", "--oversubscribe prog", "--nooversubscribe prog",
        "--oversubscribe --nooversubscribe -n 2 prog", "--no-mpi4py --tag-output -q prog",
        "--quiet --allow-run-as-root prog --quiet", "-n 1 a x : -n 2 --wdir d -x C b : c",
        "--mca a b -n 1 a : --mca c d b", "- x", "-n 007 prog",
        "--bind-to core --report-bindings --map-by numa:PE=2 prog",
    ],
)  # fmt: skip
def test_plain_command_lines_need_no_click(line, monkeypatch):
    by_click = parse_by_click(line.split())
    monkeypatch.setattr("ompy.cli.options.parse_by_click", lambda _: pytest.fail("asked click"))
    assert parse_command_line(line.split()) == by_click


@pytest.mark.parametrize(
    "line",
    [
        "", "-n", "-n 0 prog", "-n x prog", "-n ² prog", "--mca a", "--hlp prog", "-n 2",
        "a : b : --quiet c", "-n 1 a :", "--stdin", "-- prog", "--np=3 prog", "-n4 prog",
    ],
)  # fmt: skip
def test_all_others_are_for_click(line):
    def outcome(how):
        try:
            return how(line.split())
        except CommandError as problem:
            return str(problem), problem.exit_code

    assert outcome(parse_command_line) == outcome(parse_by_click)


def test_options_end_at_the_program():
    (group,) = parse_command_line(
        ["-n", "2", "python", "-n", "7", "--mca", "x", "--help", "--", "-q"]
    )
    assert group.argv == ("python", "-n", "7", "--mca", "x", "--help", "--", "-q")
    assert group.options["count"] == 2
    assert not group.options["quiet"]


def test_two_dashes_end_the_options():
    (group,) = parse_command_line(["-n", "2", "--", "-odd-name", "arg"])
    assert group.argv == ("-odd-name", "arg")


def test_several_programs():
    first, second = parse_command_line(["-n", "1", "a", "-x", ":", "-np", "3", "-x", "V=1", "b"])
    assert (first.argv, second.argv) == (("a", "-x"), ("b",))
    assert (first.options["count"], second.options["count"]) == (1, 3)
    assert second.options["exports"] == ("V=1",)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "no program to run"),
        (["-n", "2"], "no program to run"),
        (["-n", "0", "x"], "'0' is no whole number from 1 to 1000000"),
        (["-n", "-3", "x"], "'-3' is no whole number from 1"),
        (["-n", "two", "x"], "'two' is no whole number from 1"),
        (["-n"], "-n needs 1 argument(s), got 0"),
        (["--mca", "btl"], "--mca needs 2 argument(s), got 1"),
        (["--tag-ouput", "x"], "there is no option --tag-ouput; did you mean --tag-output?"),
        (["-tag-ouput", "x"], "there is no option -tag-ouput; did you mean --tag-output?"),
        (["-nolocal", "x"], "-nolocal is an option of mpirun that ompy-run does not"),
        (["-nowhere", "x"], "there is no option -nowhere"),
        (["--zzzzzz", "x"], "there is no option --zzzzzz"),
        (["--xterm", "0", "x"], "--xterm is an option of other launchers; write --debug RANK"),
        (["-xml-file", "f", "x"], "-xml-file is an option of mpirun that ompy-run does not"),
        (["--timeout", "0", "x"], "'0' is no number above 0"),
        (["--timeout", "soon", "x"], "'soon' is no number above 0"),
        (["-n", "1", "a", ":", "b", ":", "--bad", "c"], "program 3: there is no option --bad"),
        (["a", ":"], "program 2: no program to run"),
        (["-n", "1", "a", ":", "-n", "1", "--timeout", "3", "b"], "program 2: --timeout belongs"),
    ],
)
def test_bad_command_lines(arguments, text):
    with pytest.raises(CommandError) as caught:
        parse_command_line(arguments)
    assert text in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("option", ["-h", "--help", "-help", "-V", "--version", "-version"])
def test_help_and_version(option, capsys):
    with pytest.raises(Answered) as caught:
        parse_command_line([option])
    assert caught.value.exit_code == 0
    assert "ompy-run" in capsys.readouterr().out


def test_help_says_what_the_default_number_is(capsys):
    with pytest.raises(Answered):
        parse_command_line(["--help"])
    assert "as many as" in capsys.readouterr().out


def job(*arguments):
    return make_job(parse_command_line(arguments), "here").job


def test_as_many_ranks_as_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2, 3})
    assert len(job("true").placements) == 3
    with pytest.raises(CommandError, match=r"4 processes .* 3 cores"):
        job("--nooversubscribe", "-n", "4", "true")
    assert len(job("-n", "4", "true").placements) == 4


def test_the_ranks_are_told_when_they_share_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2, 3})
    for number, crowded in (("3", False), ("4", True)):
        made = job("-n", number, "true")
        assert Job.from_dict(json.loads(json.dumps(made.to_dict()))).oversubscribed is crowded


def test_ranks_of_several_programs_are_numbered_through():
    made = job("-n", "2", "-x", "A=1", "true", ":", "-n", "1", "-wdir", "/tmp", "ls")
    assert [placement.app for placement in made.placements] == [0, 0, 1]
    assert [placement.local_rank for placement in made.placements] == [0, 1, 2]
    assert made.apps[0].environment == (("A", "1"),)
    assert (made.apps[0].directory, made.apps[1].directory) == ("", "/tmp")
    with pytest.raises(CommandError, match="each of several programs needs its -n"):
        job("-n", "2", "true", ":", "ls")


def test_stdin_goes_to_a_rank_there_is():
    assert job("-n", "2", "true").stdin_rank == 0
    assert job("-n", "2", "--stdin", "1", "true").stdin_rank == 1
    assert job("-n", "2", "--stdin", "none", "true").stdin_rank == -1
    with pytest.raises(CommandError, match="the last of 2 ranks is 1"):
        job("-n", "2", "--stdin", "2", "true")
    with pytest.raises(CommandError, match="a rank or none"):
        job("--stdin", "all", "true")


def test_exports(monkeypatch, capsys):
    monkeypatch.setenv("HERE", "there")
    monkeypatch.delenv("GONE", raising=False)
    made = job("-x", "HERE", "-x", "GONE", "-x", "NEW=", "true")
    assert made.apps[0].environment == (("HERE", "there"), ("NEW", ""))
    assert "-x GONE" in capsys.readouterr().err
    with pytest.raises(CommandError, match="no name"):
        job("-x", "=5", "true")


@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        ("no-such-program", 127, "looked for in PATH"),
        ("./no-such-program", 127, "there is no program"),
        ("notes.txt", 127, "write ./notes.txt"),
        ("app.py", 127, "write python app.py"),
        ("./app.py", 126, "is not executable"),
        ("./", 126, "is a directory, not a program"),
        ("tag-output", 127, "did you mean the option --tag-output?"),
        ("np", 127, "did you mean the option -np?"),
        ("", 2, "empty"),
    ],
)
def test_programs_that_cannot_be_run(name, code, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for file in ("notes.txt", "app.py"):
        (tmp_path / file).write_text("")
    with pytest.raises(CommandError) as caught:
        job("-n", "1", name)
    assert text in str(caught.value)
    assert caught.value.exit_code == code


def test_a_program_is_looked_for_from_its_directory(tmp_path):
    program = tmp_path / "prog"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert job("-wdir", str(tmp_path), "./prog").apps[0].argv == ("./prog",)
    assert job("-x", f"PATH={tmp_path}", "prog").apps[0].argv == ("prog",)
    with pytest.raises(CommandError, match="no such directory"):
        job("-wdir", str(tmp_path / "none"), "true")


def test_timeout_from_option_or_variable():
    assert job_timeout(None, {}) == (0.0, "")
    assert job_timeout(3.0, {}) == (3.0, "--timeout 3")
    assert job_timeout(None, {"MPIEXEC_TIMEOUT": "5"}) == (5.0, "MPIEXEC_TIMEOUT=5")
    assert job_timeout(5.0, {"MPIEXEC_TIMEOUT": "5"})[0] == 5.0
    with pytest.raises(CommandError, match="differ"):
        job_timeout(3.0, {"MPIEXEC_TIMEOUT": "5"})
    for text in ("x", "-1", "0", "nan", "inf"):
        with pytest.raises(CommandError, match="MPIEXEC_TIMEOUT"):
            job_timeout(None, {"MPIEXEC_TIMEOUT": text})


def test_help_mentions_every_option_but_the_hidden_one():
    text = command.get_help(Context(command))
    for name in arities():
        if name not in {"--allow-run-as-root"}:
            assert name in text


def test_an_interrupt_is_not_lost_before_the_job_is_looked_after():
    """What Python's own handler raises in a weak reference's callback, as imports have, is lost."""
    code = (
        "import os, signal, weakref\n"
        "from ompy.cli import run\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Lock: pass\n"
        "def interrupted(_): os.kill(os.getpid(), signal.SIGINT)\n"
        "def start(_):\n"
        "    lock = Lock(); reference = weakref.ref(lock, interrupted); del lock\n"
        "    return 0\n"
        "run._run = start\n"
        "raise SystemExit(run.main([]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


def test_a_program_that_calls_it_can_be_interrupted_afterwards():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert run.main(["-n", "2", "--debug", "x", sys.executable, "-c", ""]) == 2
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
