"""The selection of a framework's components: `a,b` for only these, `^a,b` for all but these.

Reference: openmpi.md 1.5. Unlike Open MPI, spaces around names do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ompy.mca.enumerators import FALSE, TRUE

if TYPE_CHECKING:
    from ompy.mca.plugins.component_records import ComponentRecord


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


class LoadErrors:
    """Of which components a job says that they failed (reference openmpi.md 1.10).

    `all`, `none`, a word for true or false, a list of `framework` or `framework/component`, or
    `^` and such a list.
    """

    def __init__(self, raw: str) -> None:
        word = raw.strip().lower()
        everything = word in ("", "all", "1") or word in TRUE
        nothing = word in ("none", "0") or word in FALSE
        self._listed = {part.strip() for part in raw.strip().lstrip("^").split(",")}
        self._excludes = raw.strip().startswith("^")
        if everything or nothing:
            self._listed, self._excludes = set(), everything

    def __call__(self, record: ComponentRecord) -> bool:
        """Whether to say it of this one."""
        names = {record.framework, f"{record.framework}/{record.name}"}
        return bool(names & self._listed) is not self._excludes
