"""Whole lines out of pieces."""

from hypothesis import given
from hypothesis import strategies as st
from ompy.runtime.connections.lines import LineAssembler

PIECES = st.lists(st.binary(max_size=20) | st.sampled_from([b"\n", b"a\n", b"\n\n"]), max_size=30)


@given(PIECES)
def test_nothing_is_lost_and_lines_stay_whole(pieces):
    assembler = LineAssembler()
    sent = [lines for piece in pieces if (lines := assembler.feed(piece))]
    rest = assembler.flush()
    assert b"".join([*sent, rest]) == b"".join(pieces)
    assert all(lines.endswith(b"\n") for lines in sent)
    assert b"\n" not in rest


@given(PIECES, st.integers(1, 30))
def test_no_more_than_the_limit_is_kept(pieces, limit):
    assembler = LineAssembler(limit)
    sent = b""
    fed = b""
    for piece in pieces:
        sent += assembler.feed(piece)
        fed += piece
        assert len(fed) - len(sent) <= max(limit, len(piece))
    assert sent + assembler.flush() == fed


def test_a_long_line_is_cut_at_the_limit():
    assembler = LineAssembler(10)
    assert assembler.feed(b"12345") == b""
    assert assembler.feed(b"678901") == b"12345678901"
    assert assembler.feed(b"ab\ncd") == b"ab\n"
    assert assembler.flush() == b"cd"
    assert assembler.flush() == b""
