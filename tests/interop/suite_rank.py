"""One rank of a run of mpi4py's own test suite: which tests were well, by file.

ompy-run -n N python -m tests.interop.suite_rank SUITE FOLDER test_status test_request ...
"""

from __future__ import annotations

import json
import os
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path


class Record(unittest.TestResult):
    """The names of the tests that were well; the others are in the base class's lists."""

    def __init__(self) -> None:
        super().__init__()
        self.well: list[str] = []

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.well.append(test.id())


def cases(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from cases(each)
        else:
            yield each


def main() -> None:
    suite, folder, *names = sys.argv[1:]
    sys.path.insert(0, str(Path(suite, "test")))
    record = Record()
    for name in names:
        for case in cases(unittest.defaultTestLoader.loadTestsFromName(name)):
            case.run(record)
    wrong = {test.id(): text for test, text in (*record.failures, *record.errors)}
    from mpi4py import MPI

    rank = MPI.COMM_WORLD.Get_rank()
    answer = {"size": MPI.COMM_WORLD.Get_size(), "well": record.well, "wrong": wrong}
    made = Path(folder, f"{rank}.new")
    made.write_text(json.dumps(answer))
    os.replace(made, Path(folder, str(rank)))


if __name__ == "__main__":
    main()
