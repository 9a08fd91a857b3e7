"""Where many ranks are, in few lines."""

from ompy.runtime.diagnosis.whereabouts import LINES, Whereabouts


def test_ranks_that_say_the_same_share_a_line():
    where = Whereabouts(range(5))
    for rank in (4, 0, 1):
        where.told(rank, "a.py:5 in f: comm.Barrier()", "the barrier")
    assert not where.complete
    where.told(2, "", "")
    assert where.lines() == [
        "ranks 0, 1, 4 were at a.py:5 in f: comm.Barrier(), waiting for the barrier",
        "rank 2 was in no line of the program's own",
        "rank 3 has not said where, in native code perhaps",
    ]
    where.told(3, "a.py:6 in g", "")
    assert where.complete


def test_many_waits_at_one_line_are_one_line():
    where = Whereabouts(range(100))
    for rank in range(100):
        where.told(rank, "ring.py:3 in <module>", f"receive from rank {(rank - 1) % 100}")
    assert where.lines() == ["ranks 0-99 were at ring.py:3 in <module>"]


def test_there_is_an_end_to_lines():
    where = Whereabouts(range(100))
    for rank in range(100):
        where.told(rank, f"a.py:{rank} in f", "")
    lines = where.lines()
    assert len(lines) == LINES + 1
    assert lines[-1] == "ranks 16-99 were at 84 more lines"
