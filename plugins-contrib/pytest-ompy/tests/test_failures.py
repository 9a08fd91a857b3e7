"""How a test that fails on ranks is reported."""

from __future__ import annotations


def test_each_different_failure_once_with_its_ranks(pytester, run) -> None:
    pytester.makepyfile(
        """
        import pytest

        def check(rank):
            assert {"rank": rank} == {"rank": 1}

        @pytest.mark.ompy(n=3)
        def test_it(comm):
            print(f"I am {comm.rank}")
            if comm.rank == 1:
                raise KeyError("one")
            check(7)
        """
    )
    result = run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "ranks 0,2 of 3:",
            "E       AssertionError: assert {'rank': 7} == {'rank': 1}",
            "E         {'rank': 7} != {'rank': 1}*",
            "rank 1 of 3:",
            "E           KeyError: 'one'",
            "*Captured stdout call (rank 0)*",
            "I am 0",
            "*Captured stdout call (rank 1)*",
            "FAILED *::test_it - ranks 0,2: AssertionError: assert {'rank': 7} == * (and 1 more)",
        ]
    )
    assert result.stdout.str().count("E       AssertionError: assert {'rank': 7}") == 1


def test_phases_and_expected_failures(pytester, run) -> None:
    pytester.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.ompy(n=2)

        @pytest.fixture
        def breaks_on_one(comm):
            assert comm.rank == 0, "in setup"

        @pytest.fixture
        def ends_badly(comm):
            yield
            assert comm.rank == 1, "in teardown"

        def test_setup(breaks_on_one): pass

        def test_teardown(ends_badly): pass

        @pytest.mark.xfail(reason="gone", strict=True)
        def test_strict(comm): pass

        @pytest.mark.xfail(reason="gone")
        def test_lenient(comm): pass

        @pytest.mark.xfail(reason="known")
        def test_others_wait(comm):
            assert comm.rank == 0
            comm.barrier()
        """
    )
    result = run("-v", "-rA", "-o", "ompy_grace=0.3")
    result.assert_outcomes(passed=1, failed=1, errors=2, xfailed=1, xpassed=1)
    result.stdout.fnmatch_lines(
        [
            "*::test_setup ERROR *",
            "*::test_teardown PASSED *",
            "*::test_teardown ERROR *",
            "*::test_strict FAILED *",
            "*::test_lenient XPASS (gone) *",
            "*::test_others_wait XFAIL (known) *",
            "*ERROR at setup of test_setup*",
            "rank 1 of 2:",
            "*ERROR at teardown of test_teardown*",
            "rank 0 of 2:",
        ]
    )
    result.stdout.fnmatch_lines(["[[]XPASS(strict)] gone"])


def test_messages_nobody_received(pytester, run) -> None:
    pytester.makepyfile(
        """
        import pytest
        from mpi4py import MPI

        pytestmark = pytest.mark.ompy(n=2)

        @pytest.mark.ompy(unreceived="ignore")
        def test_allowed(comm):
            comm.isend(None, dest=1 - comm.rank, tag=5)

        def test_left(comm):
            if comm.rank == 0:
                comm.Send(bytearray(40), dest=0, tag=7)
                comm.isend(bytes(1 << 20), dest=1, tag=8)

        def test_left_in_the_world():
            if MPI.COMM_WORLD.rank == 1:
                MPI.COMM_WORLD.send(None, dest=0)
        """
    )
    result = run("-rf")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "rank 0 of 2:",
            "never received: 40 bytes with tag 7 from rank 0 on comm",
            "rank 1 of 2:",
            "never received: 1048*bytes with tag 8 from rank 0 on comm",
            "FAILED *::test_left - rank 0: Failed: never received: 40*",
            "FAILED *rank 0: Failed: never received: * with tag 0 from rank 1 on MPI_COMM_WORLD",
        ]
    )


def test_ranks_that_hang(pytester, run) -> None:
    pytester.makepyfile(
        """
        import time
        import pytest

        def wait_for(comm, other):
            return comm.recv(source=other)

        @pytest.mark.ompy(n=3, timeout=2)
        def test_ring(comm):
            while comm.rank == 1: pass
            if comm.rank == 0:
                wait_for(comm, 1)

        @pytest.mark.ompy(n=2)
        def test_one_fails(comm):
            if comm.rank == 0:
                raise ValueError("here")
            comm.barrier()

        """
    )
    result = run("-rf", "-o", "ompy_grace=0.3")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "rank 0 of 3:",
            "no end after 2 s; it was here (most recent call last):",
            '  File "test_ranks_that_hang.py", line *, in test_ring',
            "    wait_for(comm, 1)",
            '  File "test_ranks_that_hang.py", line *, in wait_for',
            "    return comm.recv(source=other)",
            "",
            "rank 1 of 3:",
            "    while comm.rank == 1: pass",
            "rank 2 of 3:",
            "it had come to the end of the test and waited for the others",
            "*test_one_fails*",
            "E           ValueError: here",
            "rank 1 of 2:",
            "no end when another rank had failed; it was here (most recent call last):",
            "    comm.barrier()",
            "FAILED *::test_ring - rank 0: no end after 2 s, in: return * (and 1 more)",
            "FAILED *::test_one_fails - rank 0: ValueError: here",
        ],
        consecutive=False,
    )


def test_ranks_that_die(pytester, run) -> None:
    pytester.makepyfile(
        """
        import os, pytest
        from mpi4py import MPI

        @pytest.mark.ompy(n=2)
        def test_exit(comm):
            if comm.rank == 1:
                os._exit(3)
            comm.barrier()

        @pytest.mark.ompy(n=1)
        def test_abort(comm):
            MPI.COMM_WORLD.Abort(5)

        @pytest.mark.ompy(n=1)
        def test_crash(comm):
            os.kill(os.getpid(), 11)
        """
    )
    result = run("-rf")
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(
        [
            "rank 1 of 2:",
            "Rank 1 ended with exit code 3, so the whole job was ended.",
            "rank 0 of 2:",
            "ended with the job after rank 1 had gone",
            "FAILED *::test_exit - rank 1: Rank 1 ended with exit code 3, so the whole *",
            "FAILED *::test_abort - rank 0: Rank 0 aborted the job with code 5*",
            "FAILED *::test_crash - rank 0: Rank 0 was killed by signal 11 (SIGSEGV*",
        ]
    )


def test_mpi_finalised_by_a_test(pytester, run) -> None:
    pytester.makepyfile(
        """
        import os, pytest
        from mpi4py import MPI

        pytestmark = pytest.mark.ompy(n=1)

        def test_ends_it(comm):
            MPI.Finalize()

        def test_good(comm):
            assert comm.allreduce(1) == 1
        """
    )
    run().assert_outcomes(passed=2)
