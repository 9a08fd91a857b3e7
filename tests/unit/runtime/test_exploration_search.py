"""Where worlds of a search begin."""

from __future__ import annotations

from ompy.runtime.exploration.events import FROM, SEES, SERVE, Event, Race
from ompy.runtime.exploration.search import Schedule, Search


def test_a_read_that_comes_before_a_write_begins_before_that():
    write, read = (0, 100), (1, 5)
    events = [
        Event(0, write, SERVE, (FROM, 2, 9), 0, 0, ""),
        Event(1, read, SERVE, (SEES, 0, 101), 1, 0, ""),
    ]
    race = Race(events[1], (SEES, *write), 0)
    search = Search()
    node = search.take_node()
    saved = [(0, "before the write"), (1, "after it")]
    search.report_world(node, Schedule(events, [race], saved))
    below = search.take_node()
    assert below.constraint == {write: (FROM, 2, 9), read: (SEES, *write)}
    assert below.begin == "before the write"


def test_so_does_a_world_that_needs_such_a_read_for_another_choice():
    write, read, other = (0, 100), (1, 5), (2, 7)
    events = [
        Event(0, write, SERVE, (FROM, 3, 9), 0, 0, ""),
        Event(1, other, SERVE, (SEES, 0, 101), 1, 0, ""),
        Event(2, read, SERVE, (SEES, 0, 101), 1, 0, ""),
    ]
    search = Search()
    node = search.take_node()
    saved = [(0, "before the write"), (1, "after it")]
    search.report_world(node, Schedule(events, [Race(events[2], (SEES, *write), 0)], saved))
    below = search.take_node()
    early = [events[0], Event(2, read, SERVE, (SEES, *write), 0, 0, ""), events[1]]
    race = Race(events[1], (SEES, 0, 102), 1 << 2)
    search.report_world(below, Schedule(early, [race]))
    last = search.take_node()
    assert last.constraint[read] == (SEES, *write)
    assert last.constraint[other] == (SEES, 0, 102)
    assert last.begin == "before the write"
