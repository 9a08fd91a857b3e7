"""`--kill`: what may be said."""

from __future__ import annotations

import pytest
from ompy.frameworks.job import App, Job, Placement
from ompy.mca.errors import UsageError
from ompy.runtime.launching.kills import Kill, read_kills

JOB = Job(
    "0" * 16,
    (App(("a",), 4),),
    ("h0", "h1"),
    tuple(Placement(rank, 0, rank // 2, rank % 2) for rank in range(4)),
)


def test_in_the_order_of_time() -> None:
    texts = ["rank=3,after=2s", "host=h1,after=1500ms", "after=1s, rank=0"]
    assert read_kills(texts, JOB) == (Kill(1.0, 0, 0), Kill(1.5, 1, -1), Kill(2.0, 1, 3))
    assert read_kills([], JOB) == ()
    assert read_kills(["rank=1"], JOB) == (Kill(0.0, 0, 1),)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rank=4,after=1s", "ranks 0 to 3"),
        ("rank=x", "ranks 0 to 3"),
        ("host=h2", "there are h0, h1"),
        ("rank=1,host=h0", "either a rank or a host"),
        ("after=1s", "either a rank or a host"),
        ("rnak=1", "is expected"),
        ("rank=1,rank=2", "is expected"),
        ("rank=1,after=soon", "soon"),
    ],
)
def test_mistakes(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read_kills([text], JOB)
