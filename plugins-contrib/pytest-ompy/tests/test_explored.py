"""Tests in every schedule."""

from __future__ import annotations

ORDER = """
    import pytest

    @pytest.mark.ompy(n=3, explore=True)
    def test_order(comm):
        if comm.rank == 0:
            assert [comm.recv(), comm.recv()] == [1, 2]
        else:
            comm.send(comm.rank, dest=0)

    @pytest.mark.ompy(n=3, explore=True)
    def test_proven(comm):
        if comm.rank == 0:
            assert sorted([comm.recv(), comm.recv()]) == [1, 2]
        else:
            comm.send(comm.rank, dest=0)
"""


def test_a_schedule_that_fails_is_shown_and_repeats_it(pytester, run) -> None:
    pytester.makepyfile(test_it=ORDER)
    result = run()
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        [
            "failed with standard sends that buffer, in world 2: rank 0: *"
            "AssertionError: assert ?2, 1? == ?1, 2?",
            "  rank 0 at test_it.py:6 takes the message that rank 2 sent at test_it.py:8",
            "  with the message that rank 1 sent at test_it.py:8 it ends well",
            "the schedule is in sim-failures/*; again by: ompy sim -n 3 --schedule *",
            "both schedules are drawn in sim-failures/*",
        ]
    )


def test_what_makes_no_sense_is_said(pytester, run) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ompy(n=2, explore=True, seeds=[1])
        def test_it(comm):
            pass
        """
    )
    result = run()
    result.stdout.fnmatch_lines(["*explore tries all orders: leave seeds out*"])
