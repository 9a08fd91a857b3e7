"""Every order of what may happen to a small message, with every failure of up to a few things.

Messages travel over any rail, so any may overtake any other. Each may arrive, or fail: then who
sent it hears so at any time later, and it arrives before that, after that, or never. What a BTL has
said is heeded at any time later, too: that is done in the next round of polling.
"""

from __future__ import annotations

from collections.abc import Iterator

from ompy_components.pml.bfo.dance import Place

from tests.support.dance_receiver import Receiver
from tests.support.dance_sender import Sender
from tests.support.dance_world import Both, Message, Pair, Report, Way, fewer, more

COUNTED = ("MATCH", "RNDV", "RGET", "FRAG", "WRITE")  # the sender counts them while under way
BEGIN = ("MATCH", "RNDV", "RGET", "NOTIFY")


class Orders:
    """The world of one way of a message.

    Attributes:
        used: rows of the tables that were.
    """

    def __init__(self, way: Way) -> None:
        self.way = way
        self.used: set[Pair] = set()
        self.sender = Sender(way, self.used)
        self.receiver = Receiver(way, self.used)

    def first(self) -> Both:
        """The message is sent."""
        return self.sender.begin(Both(), self.way.first)

    def steps(self, both: Both) -> Iterator[Both]:
        """All that may happen next."""
        for message in dict.fromkeys(both.wire):
            yield from self.travels(both._replace(wire=fewer(both.wire, message)), message)
        for report in dict.fromkeys(both.reports):
            yield self.reported(both._replace(reports=fewer(both.reports, report)), report)
        for ghost in dict.fromkeys(both.ghosts):
            yield self.arrives(both._replace(ghosts=fewer(both.ghosts, ghost)), ghost)
        for what, *about in dict.fromkeys(both.send_later):
            yield self.sender.heeds(both, what, *about)
        for what, number in dict.fromkeys(both.receive_later):
            yield self.receiver.heeds(both, what, number)
        if both.place in (Place.QUEUED, Place.WHOLE):
            yield self.receiver.match(both, *both.queued)
        if not both.begun:
            yield from self.begun(both)
        yield from self.gets(both)

    def begun(self, both: Both) -> Iterator[Both]:
        """The first fragment goes; a MATCH is a rendezvous where a rail takes less at once."""
        if self.way.first != "MATCH" or not both.send_id:
            yield self.sender.begin(both, self.way.first)
        if self.way.first == "MATCH":
            yield self.sender.begin(both, "RNDV")

    def gets(self, both: Both) -> Iterator[Both]:
        """Gets begin, and end well or with their rail."""
        for get in both.todo:
            yield from self.receiver.get(both, get)
        for get in both.reads:
            yield self.receiver.got(both, get, True)
            if both.losses < self.way.losses:
                yield self.receiver.got(both._replace(losses=both.losses + 1), get, False)

    def travels(self, both: Both, message: Message) -> Iterator[Both]:
        """A message, or a put, arrives or fails."""
        arrived = self.arrives(both, message)
        if message.kind not in COUNTED:
            yield arrived
        elif self.way.held:
            yield arrived._replace(reports=more(arrived.reports, Report(message, True)))
        else:
            yield self.sender.over(arrived, message, True)
        if both.losses < self.way.losses:
            failed = both._replace(
                losses=both.losses + 1, reports=more(both.reports, Report(message, False))
            )
            if message.kind != "WRITE":  # what a put that failed has written changes nothing
                failed = failed._replace(ghosts=more(failed.ghosts, message))
            yield failed

    def arrives(self, both: Both, message: Message) -> Both:
        """At the other end."""
        if message.kind in BEGIN:
            return self.receiver.begins(both, message)
        if message.kind in ("FRAG", "PUT DONE"):
            return self.receiver.arrives(both, message)
        if message.kind == "WRITE":
            return self.receiver.written(both, message)
        return self.sender.arrives(both, message)

    def reported(self, both: Both, report: Report) -> Both:
        """Who sent something hears what has become of it."""
        message, well = report
        if message.kind in COUNTED:
            return self.sender.over(both, message, well)
        if message.kind == "NOTIFY":
            return self.sender.notify_lost(both, message)
        if message.kind == "PUT DONE":
            return both.say(*message)  # from its own bytes
        return self.receiver.lost(both, message)

    def explore(self) -> tuple[int, list[Both]]:
        """How many states there can be, and those in which nothing has to happen any more."""
        begin = self.first()
        seen, todo, ends = {begin}, [begin], []
        while todo:
            both = todo.pop()
            if is_end(both):
                ends.append(both)
            for other in self.steps(both):
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return len(seen), ends


def is_end(both: Both) -> bool:
    """Whether nothing has to happen any more; ghosts need not come."""
    waits = both.place in (Place.QUEUED, Place.WHOLE) or not both.begun
    later = both.send_later or both.receive_later
    return not (both.wire or both.reports or later or both.todo or both.reads or waits)
