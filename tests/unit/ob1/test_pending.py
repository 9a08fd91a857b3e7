"""What waits for room: nobody is tried in vain behind one that failed, and nobody starves."""

from __future__ import annotations

from collections.abc import Callable

from ompy_components.pml.ob1.pending import Lines


class Room:
    """A rail or peer that takes so many attempts more, and counts the tries."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.tries = 0
        self.went: list[str] = []

    def attempt(self, name: str) -> Callable[[], bool]:
        def tried() -> bool:
            self.tries += 1
            if not self.left:
                return False
            self.left -= 1
            self.went.append(name)
            return True

        return tried


def test_one_that_fails_speaks_for_those_behind_it() -> None:
    lines, rooms = Lines(), [Room(0), Room(2), Room(0)]
    for number in range(1000):
        for room in rooms:
            lines.add(room.attempt(f"{number}"), room)
    assert lines.advance() == 2
    assert [room.tries for room in rooms] == [1, 3, 1]
    assert rooms[1].went == ["0", "1"]
    assert lines.advance() == 0
    assert [room.tries for room in rooms] == [2, 4, 2]
    assert len(lines) == 2998


def test_the_order_of_a_line_is_kept() -> None:
    lines, room = Lines(), Room(0)
    for number in range(100):
        lines.add(room.attempt(f"{number}"), room)
    for _ in range(50):
        room.left = 2
        lines.advance()
    assert room.went == [f"{number}" for number in range(100)]
    assert not len(lines)


def test_no_line_takes_all_the_room() -> None:
    """Three peers share room that one attempt a round finds."""
    lines, shared = Lines(), Room(0)
    for number in range(30):
        for peer in "abc":
            lines.add(shared.attempt(f"{peer}{number}"), peer)
    for _ in range(30):
        shared.left = 1
        assert lines.advance() == 1
    assert sorted(name[0] for name in shared.went) == [*"a" * 10, *"b" * 10, *"c" * 10]


def test_what_an_attempt_adds_is_kept() -> None:
    lines, room = Lines(), Room(5)

    def adds() -> bool:
        lines.add(room.attempt("behind"), room)
        return room.attempt("first")()

    lines.add(adds, room)
    assert lines.advance() == 2
    assert room.went == ["first", "behind"]
