"""What the marker and the options take, and what they say otherwise."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

BAD = {
    "": "the number of ranks is missing, as in n=4",
    "4": "write n=4; the arguments are n, timeout, world, seeds, mca, unreceived, check and "
    "explore",
    "n=4, ranks=3": "has no argument ranks; the arguments are n, timeout",
    "n=0": "a number of ranks from 1 to 512, or a list of such, is needed",
    "n='4'": "a number of ranks from 1 to 512",
    "n=[]": "a number of ranks from 1 to 512",
    "n=True": "a number of ranks from 1 to 512",
    "n=[2, 2]": "a number is there twice",
    "n=2, timeout=-1": "a number of seconds is needed, 0 for no limit",
    "n=2, timeout='long'": "a number of seconds is needed",
    "n=2, world='moon'": "'real' or 'virtual' is needed",
    "n=2, world='virtual', seeds='all'": "as in seeds=range(20)",
    "n=2, world='virtual', seeds=10": "write seeds=range(10) for 10 seeds, or seeds=[10] for that",
    "n=2, seeds=[1, 2]": "seeds are of the virtual world: add world='virtual'",
    "n=2, world='virtual', seeds=[]": "as in seeds=range(20)",
    "n=2, mca='btl self'": 'as in mca={"btl": "self,tcp"}',
    "n=2, mca={'btl_tcp_eager_limt': 1}": "did you mean btl_tcp_eager_limit?",
    "n=2, unreceived='maybe'": "'error' or 'ignore' is needed",
    "n=2, check=1": "True or False is needed",
    "n=2, check=True, world='virtual'": "check is of the real world",
}


def test_bad_arguments_are_collection_errors(pytester, run) -> None:
    for number, arguments in enumerate(BAD):
        pytester.makepyfile(
            **{
                f"test_{number:02}": f"import pytest\n\n@pytest.mark.ompy({arguments})\n"
                "def test_it(comm): pass\n"
            }
        )
    result = run("--strict-markers", "-q")
    result.assert_outcomes(errors=len(BAD))
    text = result.stdout.str()
    for number, (arguments, wanted) in enumerate(BAD.items()):
        part = text.partition(f"ERROR collecting test_{number:02}.py")[2].partition("____")[2]
        assert wanted in part.partition("ERROR collecting")[0], arguments


def test_what_is_for_functions_only(pytester, run) -> None:
    for name, arguments, wanted in (
        ("sizes", "n=[2, 3]", "of this kind of test n has to be one number"),
        ("virtual", "n=2, world='virtual'", "the virtual world runs test functions only"),
    ):
        path = pytester.makepyfile(
            **{
                f"test_{name}": f"""
                import unittest, pytest

                @pytest.mark.ompy({arguments})
                class TestCase(unittest.TestCase):
                    def test_it(self): pass
                """
            }
        )
        result = run(path)
        result.stderr.fnmatch_lines([f"ERROR: *{wanted}*"])
        assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_unmarked_tests_are_left_alone(pytester, run) -> None:
    pytester.makepyfile(
        """
        import os

        CONTROLLER = int(os.environ["CONTROLLER"])

        def test_plain(tmp_path):
            assert os.getpid() == CONTROLLER
            assert "OMPY_RANK" not in os.environ

        def test_comm(comm):
            pass
        """
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTROLLER", str(__import__("os").getpid()))
        result = run("-v")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*comm is for tests on ranks: mark this one @pytest.mark.ompy*"])


def test_the_marker_is_registered_and_can_be_turned_off(pytester) -> None:
    assert [point.value for point in entry_points(group="pytest11", name="ompy")] == [
        "pytest_ompy.plugin"
    ]
    pytester.makepyfile(
        "import pytest\n\n@pytest.mark.ompy(n=2)\ndef test_it(): assert 1\n\ndef test_plain(): pass"
    )
    result = pytester.runpytest_subprocess("-p", "no:ompy", "-p", "no:randomly")
    result.assert_outcomes(passed=2, warnings=1)
    result.stdout.fnmatch_lines(["*PytestUnknownMarkWarning: Unknown pytest.mark.ompy*"])


def test_options_go_above_the_marker(pytester, run) -> None:
    pytester.makepyfile(
        """
        import pytest
        from mpi4py import MPI

        pytestmark = pytest.mark.ompy(mca={"pml": "ob1"})

        @pytest.mark.ompy(n=[2, 4])
        def test_it(comm):
            print(f"{comm.size} ranks of {MPI.COMM_WORLD.size}")
            if comm.rank == 0:
                raise ValueError("seen")
        """
    )
    collected = run("--collect-only", "-q")
    collected.stdout.fnmatch_lines(["*::test_it?n2?", "*::test_it?n4?"])
    options = ["--ompy-n", "3", "--ompy-world", "virtual", "--ompy-seed", "5"]
    result = run(*options, "--ompy-mca", "btl", "self,tcp", "-rA")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["3 ranks of 3", "*--ompy-seed 5", "FAILED *::test_it - seed 5, rank 0: ValueError: seen"]
    )
    result = run(*options, "--ompy-mca", "btl_tcp_eager_limt", "2")
    result.stdout.fnmatch_lines(["*there is no parameter btl_tcp_eager_limt; did you mean *"])
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result = run("-o", "ompy_timeout=soon")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: ompy_timeout = soon: a number of seconds is needed"])
