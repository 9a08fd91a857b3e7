"""How headers follow each other on the wire: what a component declares of its protocol.

A component names such declarations (`Component.wire`); `ompy trace --dissector` makes a dissector
for Wireshark of them. The headers themselves are the layouts that the code packs by; here is only
which one comes when. Nothing of it is used, or imported, in a rank.

A description is a sequence of steps, which are done in order as long as bytes are left. Fields that
were shown are named `layout.field`, as `ob1.match.tag`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ompy.data.header_layout import HeaderLayout


@dataclass(frozen=True)
class Show:
    """A header.

    Attributes:
        layout: of it.
        values: names of a field's values, by field.
        bits: names of parts of a field, each with its mask, by field.
    """

    layout: HeaderLayout
    values: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    bits: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Switch:
    """What follows depends on a value.

    Attributes:
        on: a field that was shown; or `@n`, the byte n bytes from here.
        cases: steps by value.
        other: for all other values.
        mask: part of the value that is looked at.
    """

    on: str
    cases: Mapping[int, Steps]
    other: Steps = ()
    mask: int = 0xFFFF_FFFF


@dataclass(frozen=True)
class Sized:
    """What follows depends on how many bytes are left.

    Attributes:
        cases: steps by number of bytes.
        other: for all other numbers.
    """

    cases: Mapping[int, Steps]
    other: Steps = ()


@dataclass(frozen=True)
class Within:
    """Steps for so many bytes only.

    Attributes:
        size: a field that was shown.
        steps: for them.
        room: a field that says how many bytes they take; empty for as many.
    """

    size: str
    steps: Steps
    room: str = ""


@dataclass(frozen=True)
class Repeat:
    """Steps again and again, to the end."""

    steps: Steps


@dataclass(frozen=True)
class Blob:
    """Bytes whose number a field says.

    Attributes:
        name: of them, as `notice.name`.
        size: a field that was shown; or a number.
    """

    name: str
    size: str | int


@dataclass(frozen=True)
class Payload:
    """All that is left: data."""


@dataclass(frozen=True)
class Tagged:
    """A fragment, by the tag it travels under.

    Attributes:
        on: a field that was shown.
    """

    on: str


@dataclass(frozen=True)
class Through:
    """All that is left is another protocol's.

    Attributes:
        protocol: of a `Packets`; where nobody declares it, or its sign is missing, it is data.
    """

    protocol: str


Step: TypeAlias = (
    Show | Switch | Sized | Within | Repeat | Blob | Payload | Tagged | Through
)  # fmt: skip
Steps: TypeAlias = tuple[Step, ...]


@dataclass(frozen=True)
class Packets:
    """A protocol of packets.

    Attributes:
        name: what `Source.carries` is told, or a `Through` names; `*` at the end for any ending.
        steps: of a packet.
        sign: by which byte a packet is known where another protocol may be carried instead, and
            the values it has; empty where none may.
    """

    name: str
    steps: Steps
    sign: tuple[int, tuple[int, ...]] | tuple[()] = ()


@dataclass(frozen=True)
class Unit:
    """What a direction of a connection is cut into: a header, and bytes behind it.

    Attributes:
        layout: of the header.
        size: its field with the number of bytes behind it.
        kind: its field that says what it is.
        bare: kinds without bytes behind it.
        doubled: kinds with twice as many.
        heads: bytes that are dissected, by kind, where not all are: what follows is data, however
            much of it.
    """

    layout: HeaderLayout
    size: str
    kind: str
    bare: tuple[int, ...] = ()
    doubled: tuple[int, ...] = ()
    heads: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Connections:
    """A protocol of connections that begin with the handshake of `ompy.net.seals.handshake`.

    Attributes:
        name: what `Source.carries` is told.
        asked: units of who has opened it, and their steps.
        answered: of the other end.
    """

    name: str
    asked: tuple[Unit, Steps]
    answered: tuple[Unit, Steps]


@dataclass(frozen=True)
class Fragments:
    """What travels under tags of BTLs.

    Attributes:
        owner: whose: `pml.ob1`.
        cases: steps by tag.
        includes: owners whose descriptions these take the place of, where both have a tag.
    """

    owner: str
    cases: Mapping[int, Steps]
    includes: tuple[str, ...] = ()


WireFormat: TypeAlias = Packets | Connections | Fragments
