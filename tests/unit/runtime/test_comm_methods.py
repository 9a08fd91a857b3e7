"""The table of rails when a path is lost: once, of both ends, and not for a rank that ended."""

from ompy.runtime.rails.comm_methods import LostPaths, table

ROWS = [["h1", "h2", ["tcp rail1 a - b", "tcp rail2 c - d"]], ["h1", "h1", ["sm"]]]
BACK = [["h2", "h1", ["tcp rail1 b - a"]]]


def test_both_ends_are_in_one_table_and_it_is_shown_once():
    lost = LostPaths()
    assert lost.add(0, {"peer": 3, "reason": "BTL tcp lost its path: cut"}, ROWS)
    assert not lost.add(3, {"peer": 0, "reason": "BTL tcp lost its path: cut too"}, BACK)
    text = lost.text(frozenset())
    assert text.startswith(" Rank 0 and rank 3: BTL tcp lost its path: cut\n Rails as they were")
    assert [line.split() for line in text.splitlines()[3:]] == [
        ["h1", "h2", *["tcp", "rail1", "a", "-", "b"]],
        ["tcp", "rail2", "c", "-", "d"],
        ["h1", "h1", "sm"],
        ["h2", "h1", *["tcp", "rail1", "b", "-", "a"]],
    ]
    assert lost.text(frozenset()) == ""


def test_a_peer_that_ended_is_no_lost_path():
    lost = LostPaths()
    lost.add(0, {"peer": 3, "reason": "reset"}, ROWS)
    assert lost.text(frozenset({3})) == ""
    lost.add(1, {"peer": 2, "reason": "cut"}, ROWS)
    assert "Rank 1 and rank 2: cut" in lost.text(frozenset({3}))


def test_all_paths_of_a_module():
    lost = LostPaths()
    lost.add(1, {"peer": -1, "reason": "the NIC is gone"}, BACK)
    assert "Rank 1 and other ranks: the NIC is gone" in lost.text(frozenset({3}))


def test_nothing_lost_nothing_said():
    assert LostPaths().text(frozenset()) == ""
    assert table([]).splitlines() == [" Rails between hosts:", "  from  to  rails"]
