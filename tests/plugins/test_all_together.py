"""Every stranger installed at once: a job that asked for none of them runs, and says what is up."""

from __future__ import annotations

import pytest

from tests.plugins.strangers import STRANGERS, VERSION, Stranger

pytestmark = pytest.mark.proc

RING = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
for size in (0, 10, 100_000):
    got = comm.sendrecv(b"x" * size, dest=right, source=left)
    assert got == b"x" * size
print(comm.allreduce(comm.rank))
"""


def line(stranger: Stranger) -> str:
    """What a job says of a stranger, without who says it."""
    tail = "its hooks are not called any more" if stranger.framework == "hooks" else ""
    tail = tail or f"ompy-info --why {stranger.full_name} tells more"
    origin = f"{stranger.distribution} {VERSION}"
    return f"{stranger.full_name} of {origin}: {stranger.said}; {tail}"


def test_a_job_runs_and_each_stranger_has_one_line_at_most(commands) -> None:
    done = commands.run(3, RING)
    assert done.code == 0, done.err
    assert done.out.split() == ["3"] * 3
    said = [text.partition(": ") for text in done.err.splitlines()]
    assert {who for who, _, _ in said} == {"ompy-run", "ompy"}
    assert sorted(what for _, _, what in said) == sorted(
        line(stranger) for stranger in STRANGERS if stranger.said
    )


def test_what_is_said_does_not_depend_on_the_order_of_the_path(commands) -> None:
    def everything() -> list[object]:
        listing = [commands.info("--plugins"), commands.info("--plugins", "--parsable")]
        job = commands.run(1, "from mpi4py import MPI; MPI.COMM_WORLD.barrier()")
        return [*listing, job]

    one = everything()
    commands.sites.reverse()
    assert everything() == one
    assert [done.code for done in one] == [0, 0, 0]


def test_nothing_is_said_if_nothing_is_wanted(commands) -> None:
    quiet = ("--mca", "mca_base_component_show_load_errors", "none")
    done = commands.run(2, RING, *quiet, "--mca", "hooks", "^grumpy,sulky")
    assert (done.code, done.err) == (0, "")


def test_what_is_excluded_is_neither_imported_nor_told_of(commands) -> None:
    """All but those for frameworks there are none of: nothing can exclude them."""
    modules = {s.module for s in STRANGERS if s.source}
    assert commands.run(1, RING).code == 0
    offered = {s.module for s in STRANGERS if s.found_by or s.state in ("opened", "loaded")}
    unnamed = {"ompy_btl_base", "ompy_btl_dashed", "ompy_btl_long"}
    assert commands.seen == offered - unnamed  # so each of them would be seen

    for path in commands.sightings.iterdir():
        path.unlink()
    options: list[str] = []
    for framework in ("btl", "pml", "coll", "hooks"):
        names = {s.name for s in STRANGERS if s.framework == framework} - {"tcp"}
        options += ["--mca", framework, "^" + ",".join(sorted(names))]
    done = commands.run(2, RING, *options)
    assert done.code == 0
    assert not commands.seen & modules
    told = [text.split()[1] for text in done.err.splitlines()]
    assert told == ["blt:typo", "btl:tcp", "nonsense:some"]
