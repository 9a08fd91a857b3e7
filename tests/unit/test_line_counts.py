"""The table of lines by folder (`tools/package line_counts`)."""

from __future__ import annotations

from collections import Counter

import pytest

from tools.package.line_counts import folder_of, lines_by_folder, rows


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("core/ompy/mpi/communicators/comm.py", "core/ompy/mpi"),
        ("core/ompy/frameworks/nic/base.py", "core/ompy/frameworks"),
        ("core/ompy/raw.py", "core/ompy"),
        ("components/ompy_components/btl/tcp/path.py", "components/ompy_components/btl"),
        ("tests/unit/net/test_ring.py", "tests"),
        ("hatch_build.py", "."),
    ],
)
def test_a_file_is_counted_in_one_folder(path: str, folder: str) -> None:
    assert folder_of(path) == folder


def test_what_git_says_is_added_up() -> None:
    said = "3\t0\tcore/ompy/mpi/a.py\n4\t0\tcore/ompy/mpi/b/c.pxd\n5\t0\ttools/check.py"
    assert lines_by_folder(said) == {"core/ompy/mpi": 7, "tools": 5}


def test_folders_that_changed_and_the_sum_of_all() -> None:
    before, after = Counter(a=1_000, b=10, gone=7), Counter(a=2_500, b=11, new=70)
    assert rows(before, after, 5)[2:] == [
        "| a | 1,000 | 2,500 | +1,500 |",
        "| gone | 7 | 0 | -7 |",
        "| new | 0 | 70 | +70 |",
        "| all | 1,017 | 2,581 | +1,564 |",
    ]
