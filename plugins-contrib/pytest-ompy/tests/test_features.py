"""What pytest gives to tests works on the ranks."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

CONFTEST = """
    import os, pytest

    def note(text):
        with open("notes", "a") as notes:
            notes.write(f"{os.environ['OMPY_RANK']} {os.getpid()} {text}\\n")

    @pytest.fixture(scope="session")
    def session():
        note("session up")
        yield os.getpid()
        note("session down")

    @pytest.fixture(scope="module")
    def module(request, session):
        note(f"{request.module.__name__} up")
        yield session
        note(f"{request.module.__name__} down")

    @pytest.fixture(autouse=True)
    def everywhere(monkeypatch):
        monkeypatch.setenv("SEEN", "yes")
"""

FIRST = """
    import os, sys, unittest, warnings
    import pytest
    from mpi4py import MPI

    pytestmark = pytest.mark.ompy(n=2)
    WORLD = MPI.COMM_WORLD

    def test_ranks(comm, module):
        assert (WORLD.size, comm.size, WORLD.rank) == (2, 2, comm.rank)
        assert comm.allreduce(comm.rank) == 1
        assert module == os.getpid()
        assert comm.Get_name() == "comm"

    def test_comm_is_fresh(comm, module):
        assert comm != WORLD
        comm.Set_attr(MPI.Comm.Create_keyval(), 3)
        assert os.environ["SEEN"] == "yes"

    @pytest.mark.parametrize("root", [0, 1])
    @pytest.mark.parametrize("data", ["text", (1, 2)], ids=["text", "pair"])
    def test_parametrised(comm, root, data):
        assert comm.bcast(data if comm.rank == root else None, root) == data

    def test_tmp_path(comm, tmp_path):
        assert len(set(comm.allgather(tmp_path))) == 2
        shared = comm.bcast(tmp_path)
        (shared / str(comm.rank)).write_text("x")
        comm.barrier()
        assert len(list(shared.iterdir())) == 2

    def test_capture(comm, capsys):
        print("rank", comm.rank)
        assert capsys.readouterr().out == f"rank {comm.rank}\\n"

    def test_monkeypatch(comm, monkeypatch):
        monkeypatch.setattr(sys, "path", [])
        assert sys.path == []

    def test_after_monkeypatch(comm, record_property):
        assert sys.path
        record_property("ranks", comm.size)
        record_property("mine", comm.rank)

    @pytest.fixture(scope="class")
    def once():
        return []

    class TestClass:
        @pytest.fixture
        def both(self, comm):
            return comm.allgather(comm.rank)

        def test_fixture_with_comm(self, both, once):
            once.append(1)
            assert both == [0, 1]

        def test_class_fixture_stays(self, once):
            assert once == [1]

    class TestCase(unittest.TestCase):
        def test_unittest(self):
            self.assertEqual(WORLD.allreduce(1), 2)

    def test_warns(comm):
        warnings.warn("the same on all ranks", DeprecationWarning)

    @pytest.mark.ompy(n=[1, 2])
    def test_sizes(comm, module):
        assert comm.size == WORLD.size

    @pytest.mark.skip(reason="never")
    def test_skipped(comm):
        os._exit(1)

    @pytest.mark.skipif(WORLD.size > 1, reason="alone only")
    def test_skipped_on_ranks(comm):
        os._exit(1)

    def test_skips_in_the_middle(comm):
        comm.barrier()
        pytest.skip(f"rank {comm.rank} has enough")

    def test_one_rank_skips(comm):
        if comm.rank == 1:
            pytest.skip("not here")

    def test_plain_messages_in_flight(comm):
        requests = [comm.isend(bytes(1 << 20), dest=1 - comm.rank)]
        if comm.rank == 0:
            comm.recv(source=1)
        else:
            assert comm.recv(source=0)
"""

SECOND = """
    import os
    import pytest

    @pytest.mark.ompy(n=2)
    def test_same_pool(comm, module):
        pass

    def test_here(tmp_path):
        assert "OMPY_RANK" not in os.environ
"""


def notes(pytester, rank: int) -> list[tuple[int, str]]:
    lines = (pytester.path / "notes").read_text().splitlines()
    parts = [line.split(" ", 2) for line in lines]
    return [(int(pid), text) for number, pid, text in parts if int(number) == rank]


def test_on_ranks_as_in_one_process(pytester, run) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_first=FIRST, test_second=SECOND)
    result = run("-v", "--junitxml=junit.xml", "-rA")
    result.assert_outcomes(passed=20, skipped=3, warnings=1)
    result.stdout.fnmatch_lines(
        [
            "test_first.py::test_skipped SKIPPED (never)*",
            "test_first.py::test_skipped_on_ranks SKIPPED (alone only)*",
            "test_first.py::test_skips_in_the_middle SKIPPED (rank 0 has enough; rank 1 has*",
            "test_first.py::test_one_rank_skips PASSED (skipped on rank 1 of 2)*",
            "*DeprecationWarning: the same on all ranks",
        ]
    )
    # one pool of two and one of one; fixtures are set up once for each, and taken down in order
    mine = notes(pytester, 1)
    assert len({pid for pid, _ in mine}) == 1
    expected = ["session up", "test_first up", "test_first down", "test_second up"]
    assert [text for _, text in mine] == [*expected, "test_second down", "session down"]
    assert len({pid for pid, _ in notes(pytester, 0)}) == 2
    cases = {
        case.get("name"): case for case in ET.parse(pytester.path / "junit.xml").iter("testcase")
    }
    assert len(cases) == 23
    properties = cases["test_after_monkeypatch"].iter("property")
    assert [(p.get("name"), p.get("value")) for p in properties] == [
        ("ranks", "2"),
        ("mine[rank 0]", "0"),
        ("mine[rank 1]", "1"),
    ]


def test_each_test_its_own_job_without_pools(pytester, run) -> None:
    pytester.makepyfile(
        """
        import os, pytest

        @pytest.mark.ompy(n=1)
        @pytest.mark.parametrize("number", [1, 2])
        def test_it(comm, number):
            with open("pids", "a") as pids:
                pids.write(f"{os.getpid()}\\n")
        """
    )
    run("--ompy-no-pool").assert_outcomes(passed=2)
    assert len(set((pytester.path / "pids").read_text().split())) == 2


def test_selection_and_stopping(pytester, run) -> None:
    pytester.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.ompy(n=1)

        def test_good(comm): pass

        def test_bad(comm): assert comm.size == 2

        def test_late(comm): pass
        """
    )
    result = run("-x", "--durations=3", "-vv")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*slowest 3 durations*", "*s setup *::test_good"])
    run("--lf").assert_outcomes(failed=1, deselected=0)
    run("-k", "late or good").assert_outcomes(passed=2, deselected=1)
    run("-m", "not ompy").assert_outcomes(deselected=3)
    result = run("-s", "--ompy-n", "2", "-k", "good", "--ompy-world", "virtual")
    result.assert_outcomes(passed=1, deselected=2)


def test_what_ranks_print_is_seen_at_once_with_s(pytester, monkeypatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ompy(n=2)
        def test_it(comm):
            print("hello from", comm.rank)
        """
    )
    result = pytester.runpytest_subprocess("-p", "pytest_ompy.plugin", "-s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines_random(
        ["*?1,0?<stdout>:hello from 0", "*?1,1?<stdout>:hello from 1"]
    )


def test_a_test_that_the_ranks_do_not_have(pytester, run) -> None:
    pytester.makepyfile(
        """
        import os, pytest

        @pytest.mark.ompy(n=1)
        @pytest.mark.parametrize("rank", [os.environ.get("OMPY_RANK")])
        def test_it(comm, rank): pass
        """
    )
    result = run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*collected 1 tests, but not this one. What is collected must not depend on the rank*"]
    )


def test_a_rank_that_cannot_collect(pytester, run) -> None:
    pytester.makepyfile(
        """
        import os, pytest
        if "OMPY_RANK" in os.environ:
            raise ImportError("not on this rank")

        @pytest.mark.ompy(n=1)
        def test_it(comm): pass
        """
    )
    result = run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*a rank cannot collect the tests:*", "*not on this rank*"])


def test_pytest_under_ompy_run_is_told_off(pytester, run, monkeypatch) -> None:
    monkeypatch.setenv("OMPY_RANK", "0")
    pytester.makepyfile("import pytest\n\n@pytest.mark.ompy(n=2)\ndef test_it(comm): pass")
    result = run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*Start it without ompy-run*"])


def test_exit_ends_the_session(pytester, run) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ompy(n=2)
        def test_it(comm):
            if comm.rank == 1:
                pytest.exit("enough")
            comm.barrier()

        def test_never(): assert 0
        """
    )
    result = run()
    result.assert_outcomes()
    result.stdout.fnmatch_lines(["!* _pytest.outcomes.Exit: enough !*"])
    assert result.ret == pytest.ExitCode.INTERRUPTED
