"""Who starts whose agent: a tree below the launcher. Does no input or output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

LAUNCHER: Final = -1  # stands for the launcher where a node is asked for


class Branch(NamedTuple):
    """An agent that a command starts.

    Attributes:
        node: index of its host.
        parent: index of the host whose agent starts it, or `LAUNCHER`.
        host: its name, for messages.
        command: what starts it there: a path and arguments; they name no secret.
        proven: what carries its connection does not protect that (`agent_proof.py`).
    """

    node: int
    parent: int
    host: str
    command: tuple[str, ...]
    proven: bool = False


def parents(nodes: Sequence[int], radix: int) -> dict[int, int]:
    """Who starts the agent of each node: nobody more than `radix` of them.

    The tree is filled level by level, so it is as shallow as it can be, and as long as there are
    no more nodes than `radix` all are the launcher's own.

    Args:
        nodes: indices of hosts, the first ones next to the launcher.
        radix: how many agents one process starts at most; 0 for any number.
    """
    if not radix:
        return dict.fromkeys(nodes, LAUNCHER)
    return {
        node: LAUNCHER if place < radix else nodes[place // radix - 1]
        for place, node in enumerate(nodes)
    }


class Tree:
    """The agents below one process, which is the launcher or an agent itself."""

    def __init__(self, branches: Sequence[Branch], root: int = LAUNCHER) -> None:
        """Sort them.

        Args:
            branches: the agents below `root`, parents before their children.
            root: whose view it is.
        """
        self._branches = {branch.node: branch for branch in branches}
        self._way: dict[int, int] = {}  # by node: which child of the root leads there
        for branch in branches:
            here = branch.parent == root
            self._way[branch.node] = branch.node if here else self._way[branch.parent]

    def __iter__(self) -> Iterator[Branch]:
        return iter(self._branches.values())

    def child_towards(self, node: int) -> int:
        """The root's own child that is `node` or leads there; `node` if it is not of the tree."""
        return self._way.get(node, node)

    def children(self) -> list[Branch]:
        """Those the root starts itself."""
        return [branch for branch in self if self._way[branch.node] == branch.node]

    def below(self, node: int) -> list[Branch]:
        """Those that `node` starts, and what these start: parents first."""
        found, inside = [], {node}
        for branch in self:
            if branch.parent in inside:
                inside.add(branch.node)
                found.append(branch)
        return found

    def subtree(self, node: int) -> list[int]:
        """A node and all that are below it: they go when it goes."""
        return [node, *(branch.node for branch in self.below(node))]


def to_plain(branches: Sequence[Branch]) -> list[Any]:
    """As plain values JSON can carry."""
    return [list(branch) for branch in branches]


def from_plain(values: Sequence[Sequence[Any]]) -> list[Branch]:
    """The inverse of `to_plain`."""
    return [
        Branch(node, parent, host, tuple(command), proven)
        for node, parent, host, command, proven in values
    ]
