"""What the driver sends and receives: fragments with their story, bytes that tell them apart."""

from __future__ import annotations

from collections import Counter
from random import Random
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from ompy.frameworks.btl import SEND_ALWAYS_CALLBACK

if TYPE_CHECKING:
    from ompy.frameworks.btl import BtlModule, Descriptor, Endpoint

MARK: Final = Struct("<IHI")  # serial number, sender, size: in front, so that short ones differ
_BLOCK: Final = Random(1).randbytes(1 << 16)  # noqa: S311 - bytes without a pattern, not a secret


def content(sender: int, serial: int, size: int) -> bytes:
    """`size` bytes that no other fragment of the world has, as far as they are enough for that."""
    mark = MARK.pack(serial, sender, size)[:size]
    start = serial * 257 % len(_BLOCK)
    left = size - len(mark)
    pieces = [mark, _BLOCK[start : start + left]]
    left -= len(pieces[-1])
    pieces += [_BLOCK] * (left // len(_BLOCK))
    pieces.append(_BLOCK[: left % len(_BLOCK)])
    return b"".join(pieces)


def sample(found: Counter[tuple[int, bytes]]) -> str:
    """Some of many fragments, counted by tag and bytes, for messages."""
    shown = [
        f"{count} x {len(data)} bytes with tag {tag} ({data[:12].hex() or 'empty'})"
        for (tag, data), count in list(found.items())[:3]
    ]
    return f"{'; '.join(shown)}; {found.total()} in all"


class Arrival(NamedTuple):
    """A fragment that a receive callback was given.

    Attributes:
        time: ns.
        source: rank of the endpoint it came from.
        tag: it came with.
        data: a copy of its bytes.
    """

    time: int
    source: int
    tag: int
    data: bytes


class PathError(NamedTuple):
    """A call of the error callback.

    Attributes:
        time: ns.
        module: whose path.
        rank: of the peer; None for the whole module.
        reason: as given.
        flags: as given.
    """

    time: int
    module: BtlModule
    rank: int | None
    reason: str
    flags: int = 0


class Returned(NamedTuple):
    """A call of the error callback's `returned`.

    Attributes:
        rank: of the peer.
        tag: it was sent with.
        data: a copy of its bytes.
        errors_before: path errors that had been told by then.
    """

    rank: int
    tag: int
    data: bytes
    errors_before: int


class Fragment:
    """One fragment the driver offered to a module.

    Attributes:
        sender, target: ranks.
        number: of the sender's fragments, this is the how-manieth.
        data: what has to arrive.
        tag: it is sent with.
        via: `alloc`, `prepare`, `gather` (prepared from memory in pieces) or `sendi`.
        flags: of the descriptor.
        module, endpoint: it goes through.
        descriptor: while it is open; None for `sendi`.
        memory: the user's memory it is sent from; None for `alloc`.
        told: whether it has a completion callback.
        result: of `send` or `sendi`; None while that runs.
        completions: time and status of each call of its completion callback.
        errors_before: path errors that had been told when the first completion came.
    """

    __slots__ = (
        "completions",
        "data",
        "descriptor",
        "endpoint",
        "errors_before",
        "flags",
        "memory",
        "module",
        "number",
        "result",
        "sender",
        "tag",
        "target",
        "told",
        "via",
    )

    def __init__(
        self,
        sender: int,
        target: int,
        number: int,
        data: bytes,
        tag: int,
        via: str,
        flags: int,
        module: BtlModule,
        endpoint: Endpoint,
    ) -> None:
        self.sender = sender
        self.target = target
        self.number = number
        self.data = data
        self.tag = tag
        self.via = via
        self.flags = flags
        self.module = module
        self.endpoint = endpoint
        self.descriptor: Descriptor | None = None
        self.memory: bytearray | None = None
        self.told = True
        self.result: int | None = None
        self.completions: list[tuple[int, int]] = []
        self.errors_before = 0

    def __repr__(self) -> str:
        return (
            f"fragment {self.number} of rank {self.sender} to rank {self.target} "
            f"({len(self.data)} bytes, {self.via}, flags {self.flags:#x})"
        )

    @property
    def accepted(self) -> bool:
        """Whether the module took it."""
        return self.result is not None and self.result >= 0

    @property
    def announced(self) -> bool:
        """Whether its completion comes, or came, by the callback."""
        if not self.told or self.via == "sendi" or not self.accepted:
            return False
        return self.result == 0 or bool(self.flags & SEND_ALWAYS_CALLBACK)

    @property
    def done(self) -> bool:
        """Whether all is said about it; one without callback is done when it is accepted."""
        return bool(self.completions) if self.announced else self.result is not None

    @property
    def good(self) -> bool:
        """Whether it was accepted, and completed well as far as the module said anything."""
        return self.accepted and self.done and all(status == 0 for _, status in self.completions)
