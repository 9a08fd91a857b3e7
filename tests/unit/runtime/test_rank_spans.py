"""Many ranks in few words."""

import pytest
from ompy.runtime.diagnosis.rank_spans import ranks_in_words


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        ([3], "rank 3"),
        ([3, 3], "rank 3"),
        ([1, 0], "ranks 0, 1"),
        (range(3, 41), "ranks 3-40"),
        ([0, 2, 3, 4, 9, 10], "ranks 0, 2-4, 9, 10"),
    ],
)
def test_spans(ranks, words):
    assert ranks_in_words(ranks) == words
