"""Tags of messages as people know them: users' are numbers, the others say what they are of.

On the floor of the trace, as its views show them too. What a tag is of is told by who has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_names: Final[dict[int, str]] = {}
_namers: Final[list[Callable[[int], str]]] = []


def name_tags(names: dict[int, str]) -> None:
    """Say what messages with some internal tags are, as in "the tag of {name}"."""
    _names.update(names)


def name_tags_by(namer: Callable[[int], str]) -> None:
    """Have a function say what messages with a tag are; it answers "" for those of others."""
    _namers.append(namer)


def tag_text(tag: int) -> str:
    """A tag in words, to follow "with" or to stand in a list."""
    if tag >= 0:
        return f"tag {tag}"
    if tag == -1:
        return "any tag"
    name = _names.get(tag) or next(filter(None, (namer(tag) for namer in _namers)), "")
    return f"the tag of {name}" if name else f"internal tag {tag}"
