"""Tests of GASNet programs on simulated ranks: each has its own GASNet, for the test alone."""

from __future__ import annotations

import pytest

TABLE = """
    import pytest

    PAGE = 4096

    def table(gasnet, *, locked):
        '''Each rank adds one to a counter of rank 0: by a message, or by get and put.'''
        def add(token, payload):
            memory = gasnet.segment().memory
            memory[0] += 1

        gasnet.init()
        gasnet.attach([add], segment_size=PAGE)
        if locked:
            gasnet.am_request_short(0, add)
        else:
            gasnet.put_val(0, 0, gasnet.get_val(0, 0, 1) + 1, 1)
        gasnet.barrier()
        if gasnet.mynode() == 0:
            gasnet.block_until(lambda: not locked or gasnet.segment().memory[0] == gasnet.nodes())
            assert gasnet.segment().memory[0] == gasnet.nodes()

    @pytest.mark.ompy(n=3, world="virtual", seeds=range(10), mca={"conduit_aries_pshm": False})
    class TestTable:
        def test_messages(self, gasnet):
            table(gasnet, locked=True)

        def test_puts(self, gasnet):
            table(gasnet, locked=False)

        def test_exit_is_an_end(self, gasnet):
            gasnet.init()
            gasnet.attach()
            gasnet.exit(0)

        def test_with_mpi(self, gasnet, comm):
            table(gasnet, locked=True)
            assert comm.allreduce(1) == gasnet.nodes()
"""
MISUSE = """
    import pytest

    @pytest.fixture
    def early(gasnet):
        gasnet.init()

    @pytest.mark.ompy(n=2, world="virtual")
    def test_in_a_fixture(early):
        pass

    @pytest.mark.ompy(n=2, world="virtual")
    def test_another_code(gasnet):
        gasnet.init()
        gasnet.attach()
        raise SystemExit(3)

    def test_unmarked(gasnet):
        pass

    @pytest.mark.ompy(n=1)
    def test_real(gasnet):
        pass
"""


def test_a_race_of_puts_is_found_and_its_seed_repeats_it(
    pytester: pytest.Pytester, run: object
) -> None:
    pytester.makepyfile(test_it=TABLE)
    result = run("-rf")  # type: ignore[operator]
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*- virtual world -*",
            "failed with seed *; this one alone:",
            "    pytest test_it.py::TestTable::test_puts --ompy-seed *",
        ]
    )
    seed = result.stdout.str().partition("--ompy-seed ")[2].split()[0]
    again = run("test_it.py::TestTable::test_puts", "--ompy-seed", seed)  # type: ignore[operator]
    again.assert_outcomes(failed=1)


def test_misuse(pytester: pytest.Pytester, run: object) -> None:
    pytester.makepyfile(test_it=MISUSE)
    result = run("-rA")  # type: ignore[operator]
    result.assert_outcomes(errors=3, failed=1)
    for text in (
        "gasnet.init: gasnet exists only inside the test function",
        "SystemExit: 3",
        "gasnet is for tests on ranks: mark this one",
        "gasnet is for world='virtual'",
    ):
        assert text in result.stdout.str(), text
