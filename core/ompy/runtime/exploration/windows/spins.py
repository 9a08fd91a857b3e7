"""Ranks that read the same in a window again and again, until another rank has changed it.

A read that is made once more from the same line, with the same result and nothing else in between,
is a poll that finds nothing. It may do so as often as the bound of polls allows (`Exchange.polls`,
at least once). Then it waits until something of its class has changed. If it is locked each time,
the lock waits, as who has the lock may be who keeps others from changing anything.

A program that counts how often it has read can tell, as it can with any bound of polls.
"""

from __future__ import annotations

from typing import Any, Final

from ompy.frameworks.osc_base.headers import Command, Kind
from ompy.runtime.exploration.windows.box import READING, Asked
from ompy.runtime.exploration.windows.parts import FREE, Place, changes

_READS: Final = READING | {Kind.SWAP}


class Section:
    """What a rank does between a lock and its end.

    Attributes:
        site: where it has locked.
        reads: what it has read.
        only: it has done nothing else.
    """

    def __init__(self, site: str) -> None:
        self.site = site
        self.reads: list[Asked] = []
        self.only = True

    def is_in_vain(self, most: int) -> bool:
        """Whether it was nothing but the same reads more than so often, with the same result."""
        reads = self.reads
        same = len({(one.of, one.seen) for one in reads}) == 1
        return self.only and same and all(one.served and one.tries > most for one in reads)


class Spin:
    """What one rank has read in windows since it has done anything else.

    Attributes:
        count: reads in a row that could tell it nothing new, as nothing else could go on.
    """

    def __init__(self) -> None:
        self.count = 0
        self._reads: dict[Any, Asked] = {}
        self._open: dict[Place, Section] = {}
        self._closed: dict[Place, Section] = {}

    def reset(self) -> None:
        """The rank does something else."""
        self.count = 0
        self._reads.clear()
        self._closed.clear()
        for section in self._open.values():
            section.only = False

    def note_command(
        self, place: Place, command: Command, asked: Asked, site: str, most: int
    ) -> None:
        """The rank asks a part of a window.

        Args:
            place: which.
            command: for what.
            asked: what becomes of it; it is told here what it waits for.
            site: where in the program.
            most: how often it may read the same in vain.
        """
        if command.kind in {Kind.LOCK, Kind.LOCK_SHARED}:
            before = self._closed.get(place)
            if before is not None and before.site == site and before.is_in_vain(most):
                asked.again = before.reads[0]
            self._open[place] = Section(site)
        elif command.kind is Kind.UNLOCK:
            section = self._open.pop(place, None)
            if section is not None:
                self._closed[place] = section
        elif command.kind in _READS and not changes(command):
            self._note_read((place, site), command, asked, most)
        elif command.kind is not Kind.FLUSH:
            self.reset()

    def _note_read(
        self, where: tuple[Place, str], command: Command, asked: Asked, most: int
    ) -> None:
        at = command.displacement, command.number, bytes(command.layout)
        what = where, command.kind, command.operation, at, bytes(command.data)
        before = self._reads.get(what)
        section = self._open.get(where[0])
        if before is not None and before.served and not before.changes:
            asked.before = before
            others = {one.of for one in self._reads.values()} - {before.of, FREE}
            inside = section is None or before in section.reads
            if inside and not others and before.tries >= most:
                asked.again = before
        self._reads[what] = asked
        if section is not None:
            section.reads.append(asked)
