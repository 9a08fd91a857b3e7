"""Which handler has which index.

Source: reference gasnet.md 1 (Handler index ranges).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ompy.frameworks.conduit import CLIENT_HANDLERS
from ompy.gasnet.errors import BadArgument

# token, payload, arguments
ClientHandler = Callable[..., Any]
Entry = ClientHandler | tuple[int, ClientHandler]


def assign(entries: Iterable[Entry]) -> list[tuple[int, ClientHandler]]:
    """Give each handler its index: what was asked for first, then the lowest free ones in order.

    Args:
        entries: functions, or pairs of an index and a function; index 0 leaves the choice.

    Returns:
        Pairs in the order of `entries`.

    Raises:
        BadArgument: an index is not a client's, or is used twice; there are too many; it is no
            function.
    """
    wanted = [_pair(entry) for entry in entries]
    used: set[int] = set()
    for index, _ in wanted:
        if not index:
            continue
        if index not in CLIENT_HANDLERS:
            first, last = CLIENT_HANDLERS[0], CLIENT_HANDLERS[-1]
            raise BadArgument(f"handler index {index} is not one of {first} to {last}")
        if index in used:
            raise BadArgument(f"two handlers have index {index}")
        used.add(index)
    free = (index for index in CLIENT_HANDLERS if index not in used)
    chosen = [(index or next(free, 0), function) for index, function in wanted]
    if any(not index for index, _ in chosen):
        raise BadArgument(
            f"{len(wanted)} handlers are more than the {len(CLIENT_HANDLERS)} indices"
        )
    return chosen


def _pair(entry: Entry) -> tuple[int, ClientHandler]:
    index, function = entry if isinstance(entry, tuple) else (0, entry)
    if not callable(function):
        raise BadArgument(f"{function!r} is no handler: it cannot be called")
    return index, function
