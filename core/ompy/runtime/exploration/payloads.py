"""Data of messages that is large enough not to be copied with each copy of a world."""

from __future__ import annotations

from typing import Any, Final

LARGE: Final = 256  # bytes; arbitrary: a reference takes about 40
_all: list[
    Payload
] = []  # those that there are; each is what some rank has said, and is kept with it


class Payload(bytes):
    """Data whose copies are itself."""

    place: int

    def __reduce__(self) -> Any:
        """Copy: the same one."""
        return _payload_at, (self.place,)


def _payload_at(place: int) -> Payload:
    return _all[place]


def with_payloads(batch: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Calls of a rank, the large data of their messages as payloads."""
    return [
        tuple(_large(one) if isinstance(one, bytes) and len(one) > LARGE else one for one in call)
        if call[0] == "direct_send"
        else call
        for call in batch
    ]


def _large(data: bytes) -> Payload:
    made = Payload(data)
    made.place = len(_all)
    _all.append(made)
    return made
