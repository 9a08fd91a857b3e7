"""Which links a message takes from host to host. Links have one direction.

- switch: one crossbar, whose inside is never short.
- fat-tree: the k-ary n-tree of Petrini and Vanneschi (IPPS 1997): k^n hosts, n levels of k^(n-1)
  switches, as much bandwidth at each level. Up to the nearest common level by the digits of the
  receiver (D-mod-k: Zahavi, *Fat-tree routing and node ordering*, 2012), so that different
  receivers are reached over different switches; then down, where there is one way only.
- torus: one dimension after the other, the shorter way round (a tie: upwards), as in Dally and
  Seitz, *Deadlock-free message routing* (1987).

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

LinkName = tuple[str | int, ...]

SWITCH: Final = "switch"
FAT_TREE: Final = "fat-tree"
TORUS: Final = "torus"


class Topology(Protocol):
    """How hosts are connected."""

    @property
    def hosts(self) -> int:
        """How many there can be."""

    def route(self, source: int, target: int) -> tuple[LinkName, ...]:
        """The links from a host to another one, in order."""


class Switch(NamedTuple):
    """One crossbar."""

    hosts: int

    def route(self, source: int, target: int) -> tuple[LinkName, ...]:
        """Into the switch and out of it."""
        return () if source == target else (("host", source, "up"), ("host", target, "down"))


class FatTree(NamedTuple):
    """A k-ary n-tree.

    Attributes:
        arity: k, hosts of a leaf switch; other switches have as many below and above.
        levels: n, of switches.
    """

    arity: int
    levels: int

    @property
    def hosts(self) -> int:
        """How many there can be."""
        return int(self.arity**self.levels)

    def _digits(self, host: int) -> list[int]:
        return [host // self.arity**place % self.arity for place in range(self.levels)]

    def route(self, source: int, target: int) -> tuple[LinkName, ...]:
        """Up to the nearest switch that is above both, and down.

        A switch of level l is known by the digits of a host above the lowest, of which those up to
        l have been chosen on the way up.
        """
        if source == target:
            return ()
        here, there = self._digits(source), self._digits(target)
        top = max(place for place in range(self.levels) if here[place] != there[place])
        word = here[1:]
        links: list[LinkName] = [("host", source, "up")]
        for level in range(top):
            links.append(("level", level, *word, "up", there[level]))
            word[level] = there[level]
        for level in reversed(range(top)):
            above = word[level]
            word[level] = there[level + 1]
            links.append(("level", level, *word, "down", above))
        links.append(("host", target, "down"))
        return tuple(links)


class Torus(NamedTuple):
    """A torus.

    Attributes:
        dimensions: hosts along each.
    """

    dimensions: tuple[int, ...]

    @property
    def hosts(self) -> int:
        """How many there can be."""
        count = 1
        for size in self.dimensions:
            count *= size
        return count

    def place(self, host: int) -> list[int]:
        """Its coordinates; the first changes fastest."""
        found = []
        for size in self.dimensions:
            host, at = divmod(host, size)
            found.append(at)
        return found

    def route(self, source: int, target: int) -> tuple[LinkName, ...]:
        """One dimension after the other."""
        at, to = self.place(source), self.place(target)
        links: list[LinkName] = []
        for axis, size in enumerate(self.dimensions):
            up = (to[axis] - at[axis]) % size
            step = 1 if up * 2 <= size else -1
            while at[axis] != to[axis]:
                links.append(("node", *at, "axis", axis, "up" if step > 0 else "down"))
                at[axis] = (at[axis] + step) % size
        return tuple(links)


def link_text(name: Sequence[str | int]) -> str:
    """A link, for people."""
    match tuple(name):
        case ("host", host, direction):
            return f"host {host}, {direction}"
        case ("level", level, *word, direction, port):
            at = ".".join(map(str, word)) or "0"
            return f"switch {at} of level {level}, {direction}, port {port}"
        case ("node", *place, "axis", axis, direction):
            return f"node {'.'.join(map(str, place))}, axis {axis}, {direction}"
        case ("memory", host):
            return f"memory of host {host}"
        case (what, rank):
            return f"rank {rank}, {what}"
        case other:
            return " ".join(map(str, other))
