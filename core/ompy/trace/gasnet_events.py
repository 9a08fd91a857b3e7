"""What an event of GASNet has to have, so that the tools may rest on it.

`components/ompy_components/conduit/gni/tracing.py` says what the fields are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ompy.trace.operations import (
    API,
    COLLECTIVE,
    COLLECTIVE_DONE,
    CONDUIT,
    ENDS,
    POSTS,
    TRANSFERS,
)

_AM: Final = ("peer", "am", "handler", "size")
_POST: Final = ("peer", "op", "post", "size")
# by the name of an event: what has to be a number, what a text
NEEDED: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "AM": (_AM, ("way",)),
    "NAME": (("handler",), ("function",)),
    "HANDLER": (("peer", "am"), ()),
    "RETURN": (("peer", "am"), ()),
    "CREDIT": (("peer", "count"), ("what",)),
    **dict.fromkeys(TRANSFERS, (("peer", "op", "size"), ("way",))),
    COLLECTIVE: (("peer", "op", "size"), ("way", "call")),
    COLLECTIVE_DONE: (("op",), ()),
    **dict.fromkeys(POSTS, (_POST, ("place",))),
    **dict.fromkeys(ENDS, (("peer", "op", "post"), ())),
}
# numbers wherever they stand
NUMBERS: Final = frozenset(
    {"am", "op", "post", "handler", "arguments", "size", "offset", "lead", "packed", "credits"}
    | {"count", "left", "request", "peer"}
)


def is_gasnet(layer: str) -> bool:
    """Whether events of a layer are GASNet's."""
    return layer == API or layer.startswith(CONDUIT)


def needs(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The numbers and the texts that an event has to have, by its name."""
    return NEEDED.get("AM" if name.startswith("AM") else name, ((), ()))
