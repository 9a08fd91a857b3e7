"""The selection of a framework's components: `a,b` for only these, `^a,b` for all but these.

Reference: openmpi.md 1.5. Unlike Open MPI, spaces around names do not count.
"""

from __future__ import annotations

from typing import NamedTuple


class Selection(NamedTuple):
    """Which components of a framework may be used.

    Attributes:
        names: in the order given, each once.
        excludes: the names are those that may not be used.
    """

    names: tuple[str, ...] = ()
    excludes: bool = True

    def allows(self, name: str) -> bool:
        """Whether the component may be used."""
        return (name in self.names) is not self.excludes

    def asks_for(self, name: str) -> bool:
        """Whether the user named the component as one to use, so that failure matters."""
        return not self.excludes and name in self.names


def parse_selection(raw: str) -> Selection:
    """Read a selection; an empty one allows everything.

    Raises:
        ValueError: a `^` stands elsewhere than in front.
    """
    text = raw.strip()
    names = text.lstrip("^")
    if "^" in names:
        raise ValueError("^ negates the whole list and stands once, in front of it")
    unique = dict.fromkeys(name.strip() for name in names.split(","))
    unique.pop("", None)
    return Selection(tuple(unique), excludes=not unique or text.startswith("^"))
