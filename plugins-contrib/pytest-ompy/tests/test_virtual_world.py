"""The same tests on simulated ranks, where a seed decides everything."""

from __future__ import annotations

import signal
import sys
from types import ModuleType

import greenlet
import pytest

ORDER = """
    import pytest
    from mpi4py import MPI

    WORLD = MPI.COMM_WORLD

    @pytest.mark.ompy(n=3, world="virtual", seeds=range(20))
    def test_order(comm, capsys):
        assert comm.size == WORLD.size == 3
        assert WORLD.rank == comm.rank
        assert MPI.COMM_SELF.size == 1
        if comm.rank == 0:
            assert (comm.recv(), comm.recv()) == (1, 2)
        else:
            comm.send(comm.rank, dest=0)
"""


def test_a_seed_that_fails_is_named_and_repeats_it(pytester, run) -> None:
    pytester.makepyfile(test_it=ORDER)
    result = run("-rf")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "rank 0 of 3:",
            "E           assert (2, 1) == (1, 2)",
            "*- virtual world -*",
            "failed with seed * of 20 seeds failed: *); this one alone:",
            "    pytest test_it.py::test_order --ompy-seed *",
            "in a debugger:",
            "    pytest test_it.py::test_order --ompy-seed * --ompy-pdb 0",
            "FAILED *::test_order - seed *, rank 0: assert (2, 1) == (1, 2)",
        ]
    )
    text = result.stdout.str()
    failed = text.partition("seeds failed: ")[2].partition(")")[0].split(", ")
    assert 0 < len(failed) < 20
    good = next(seed for seed in range(20) if str(seed) not in failed)
    for seed, outcome in ((failed[-1], "failed"), (good, "passed")):
        again = run("test_it.py::test_order", "--ompy-seed", seed)
        again.assert_outcomes(**{outcome: 1})


def test_outcomes(pytester, run) -> None:
    pytester.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.ompy(n=2, world="virtual", seeds=[1, 2])

        @pytest.fixture
        def shared():
            return []

        def test_fixtures_are_shared(comm, shared, tmp_path):
            shared.append(comm.rank)
            comm.barrier()
            assert sorted(shared[-2:]) == [0, 1]
            assert comm.allgather(str(tmp_path))[0] == str(tmp_path)

        def test_all_skip(comm):
            pytest.skip("no")

        def test_one_skips(comm):
            if comm.rank == 1:
                pytest.skip("no")

        @pytest.mark.xfail(raises=ZeroDivisionError)
        def test_expected(comm):
            if comm.rank == 1:
                1 / 0
            comm.recv(source=1)

        @pytest.mark.xfail(strict=True)
        def test_strict(comm): pass

        @pytest.mark.parametrize("value", [3])
        @pytest.mark.ompy(n=[1, 2])
        def test_parametrised(comm, value):
            assert comm.allreduce(value) == 3 * comm.size

        class TestClass:
            def test_method(self, comm):
                assert comm.size == 2

        @pytest.fixture
        def too_early(comm):
            return comm.rank

        def test_fixture_with_comm(too_early): pass

        def test_left(comm):
            comm.isend("x", dest=comm.rank, tag=3)

        @pytest.mark.ompy(unreceived="ignore")
        def test_left_on_purpose(comm):
            comm.isend("x", dest=comm.rank, tag=3)

        async def test_async(comm): pass
        """
    )
    result = run("-v", "-rA")
    result.assert_outcomes(passed=6, failed=3, errors=1, skipped=1, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "*::test_all_skip SKIPPED (no)*",
            "*::test_one_skips PASSED (skipped on rank 1 of 2)*",
            "*::test_expected XFAIL*",
            "*::test_strict FAILED*",
            "*comm.rank: in the virtual world comm exists only inside the test function*",
            "*cannot be async*",
        ]
    )
    result.stdout.fnmatch_lines(
        ["rank 0 of 2:", "*never received: * bytes with tag 3 from rank 0 on comm"]
    )


def test_ranks_that_do_not_go_on(pytester, run) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ompy(n=3, world="virtual", seeds=[4])
        def test_deadlock(comm):
            if comm.rank == 0:
                return
            comm.recv(source=3 - comm.rank, tag=9)

        @pytest.mark.ompy(n=2, world="virtual")
        def test_one_fails(comm):
            if comm.rank == 0:
                raise ValueError("here")
            comm.barrier()

        @pytest.mark.ompy(n=2, world="virtual", timeout=0.5)
        def test_computes_for_ever(comm):
            while comm.rank == 1:
                pass
            comm.barrier()

        @pytest.mark.ompy(n=2, world="virtual", timeout=0.5)
        def test_polls_for_ever(comm):
            while comm.rank == 1:
                comm.iprobe()
            comm.barrier()
        """
    )
    result = run("-rf")
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(
        [
            "rank 1 of 3:",
            "deadlock: it waits for receive from rank 2 with tag 9 in comm; it was here *",
            "    comm.recv(source=3 - comm.rank, tag=9)",
            "rank 2, at the same place: deadlock: it waits for receive from rank 1 with tag 9*",
            "E           ValueError: here",
            "rank 1 of 2:",
            ">       comm.barrier()",
            "*rank 0 on host0 has ended, without taking part in Barrier*",
            "rank 1 of 2:",
            "no end after 0.5 s; it was here (most recent call last):",
            "    while comm.rank == 1:",
        ]
    )
    result.stdout.fnmatch_lines(
        [
            "FAILED *::test_computes_for_ever - seed 0, rank 1: no end after 0.5 s, in: while *",
            "FAILED *::test_polls_for_ever - seed 0, rank*: no end after 0.5 s*",
        ]
    )
    assert signal.getitimer(signal.ITIMER_REAL)[0] > 10, "the outer test's own limit goes on"
    assert greenlet.gettrace() is None


def test_parameters_reach_both_worlds(pytester, run) -> None:
    pytester.makepyfile(
        """
        import pytest
        from ompy import MPI
        from ompy.mpi.processes import life

        def limit():
            process = life.current().process
            names = {"btl_tcp_eager_limit"}
            return [v.value for v in process.registry.variables("btl", "tcp") if v.name in names][0]

        @pytest.mark.ompy(n=2, mca={"btl_tcp_eager_limit": 2048, "btl": "self,tcp"})
        def test_it(comm):
            print("eager", limit())
            assert comm.allreduce(1) == 2
        """
    )
    for world in ("real", "virtual"):
        result = run("-rA", "--ompy-world", world)
        result.assert_outcomes(passed=1)
        result.stdout.fnmatch_lines(["eager 2048"])
    result = run("-rA", "--ompy-world", world, "--ompy-mca", "btl_tcp_eager_limit", "4k")
    result.stdout.fnmatch_lines(["eager 4096"])


def test_a_foreign_mpi_is_named(pytester, run, monkeypatch) -> None:
    foreign = ModuleType("mpi4py")
    foreign.MPI = ModuleType("mpi4py.MPI")
    foreign.MPI.__file__ = "/usr/lib/mpi4py/MPI.so"
    monkeypatch.setitem(sys.modules, "mpi4py", foreign)
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", foreign.MPI)
    pytester.makepyfile(
        "import pytest\nfrom mpi4py import MPI\n\n"
        "@pytest.mark.ompy(n=2, world='virtual')\ndef test_it(comm): pass"
    )
    result = run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*/usr/lib/mpi4py/MPI.so, which knows no virtual ranks*"])


def test_interrupts_go_through(pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ompy(n=2, world="virtual")
        def test_it(comm):
            raise KeyboardInterrupt

        @pytest.mark.ompy(n=2, world="virtual")
        def test_exit(comm):
            pytest.exit("enough")
        """
    )
    result = pytester.runpytest_subprocess("-k", "test_it")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["!* KeyboardInterrupt !*"])
    result = pytester.runpytest_inprocess("-k", "test_exit")
    result.stdout.fnmatch_lines(["!* _pytest.outcomes.Exit: enough !*"])


def test_examples_of_hypothesis_are_the_same_on_all_ranks(pytester, run) -> None:
    pytester.makepyfile(
        """
        import pytest
        from hypothesis import HealthCheck, Phase, given, settings
        from hypothesis import strategies as st

        quick = settings(
            derandomize=True,
            deadline=None,
            max_examples=5,
            phases=[Phase.generate],
            suppress_health_check=[HealthCheck.function_scoped_fixture],
        )

        class TestClass:
            @pytest.mark.ompy(n=2, world="virtual", seeds=[1])
            @quick
            @given(value=st.integers())
            def test_good(self, comm, value):
                assert comm.allreduce(value) == 2 * value

        @pytest.mark.ompy(n=2, world="virtual", seeds=[1, 2])
        @quick
        @given(value=st.integers())
        def test_bad(comm, value):
            assert comm.allreduce(value) == 0 or comm.rank == 0
        """
    )
    result = run("-rf")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "rank 1 of 2:",
            "E       assert (*",
            "E       *test_bad(",
            "E           value=*,",
            "failed with seed 1 (2 of 2 seeds failed: 1, 2); this one alone:",
            "FAILED *::test_bad - seed 1, rank 1: assert (*",
        ]
    )
