"""A search that was stopped, as plain values: what is known of each program's schedules so far.

JSON. Pairs of a choice and what is chosen there are in a table, `pairs`, and named by their place
in it: `[rank, operation, value]`. A node has its parent's place among the nodes, its constraint,
what was chosen in its world in that order, and what was tried and done below it. A checksum of all
of it finds a file that was damaged or changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from ompy import outputs
from ompy.runtime.exploration.boxes import Operation
from ompy.runtime.exploration.events import Value
from ompy.runtime.exploration.search import Constraint, Node, Search
from ompy.runtime.exploration.windows.parts import Parts

FORM: Final = 3  # of the file; arbitrary: one more than that of the last change; others are refused


class SavedSearch(NamedTuple):
    """What is in a file.

    Attributes:
        about: what was searched: equal for the same program, ranks, input and bounds.
        modes: the search of each mode of buffering, as `plain_of` has it.
    """

    about: Mapping[str, Any]
    modes: Mapping[bool, Mapping[str, Any]]


def text_of_search(saved: SavedSearch) -> str:
    """What to write."""
    modes = [{"buffers": buffers, **plain} for buffers, plain in saved.modes.items()]
    whole = {"form": FORM, "about": dict(saved.about), "modes": modes}
    return json.dumps({**whole, "checksum": outputs.json_checksum(whole)}) + "\n"


def read_search(path: str) -> SavedSearch:
    """Read a file.

    Raises:
        ValueError: it is no search; the text says why.
        OSError: it cannot be read.
    """
    try:
        found = json.loads(Path(path).read_text())
        if found["form"] == FORM and found.pop("checksum") != outputs.json_checksum(found):
            raise ValueError("it is damaged: its checksum is wrong")
        if found["form"] != FORM:
            raise ValueError(f"it is of form {found['form']}, and {FORM} is read here")
        modes = {bool(one["buffers"]): one for one in found["modes"]}
        for one in modes.values():
            search_of(one)
            Parts(one.get("parts", ()))
        return SavedSearch(dict(found["about"]), modes)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise ValueError(f"it is damaged or truncated, or no search: {problem}") from None
    except (KeyError, TypeError, AttributeError, IndexError) as problem:
        raise ValueError(f"it is no search: {type(problem).__name__}: {problem}") from None


def plain_of(search: Search, *, bounded: bool) -> dict[str, Any]:
    """Plain values of a search, and whether the bound of polls was felt in it."""
    return {"bounded": bounded, **_Writer().plain(search)}


class _Writer:
    def __init__(self) -> None:
        self._pairs: dict[tuple[Operation, Value], int] = {}
        self._places: dict[Node, int] = {}
        self._nodes: list[dict[str, Any]] = []

    def plain(self, search: Search) -> dict[str, Any]:
        """Plain values of a search."""
        left = [self._place(node) for node in search.waiting]
        root = self._place(search.root)
        pairs = [[*key, list(value)] for key, value in self._pairs]
        return {
            "worlds": search.worlds,
            "depth": search.depth,
            "shallow": search.shallow,
            "seen": sorted(one.hex() for one in search.seen),
            "pairs": pairs,
            "nodes": self._nodes,
            "root": root,
            "left": left,
        }

    def _place(self, node: Node) -> int:
        """Of a node among the nodes; its parents come before it."""
        line = []
        at: Node | None = node
        while at is not None and at not in self._places:
            line.append(at)
            at = at.parent
        for one in reversed(line):
            self._places[one] = len(self._nodes)
            self._nodes.append(
                {
                    "parent": self._places[one.parent] if one.parent is not None else -1,
                    "key": list(one.key) if one.key is not None else None,
                    "constraint": self._numbers(one.constraint),
                    "values": self._numbers(one.values),
                    "left": one.left,
                    "done": [self._numbers(each) for each in one.done],
                    "tried": [
                        [*key, [self._numbers(each) for each in of]]
                        for key, of in one.tried.items()
                    ],
                }
            )
        return self._places[node]

    def _numbers(self, values: Constraint) -> list[int]:
        return [self._pairs.setdefault(pair, len(self._pairs)) for pair in values.items()]


def search_of(plain: Mapping[str, Any]) -> Search:
    """The search whose plain values these are.

    Raises:
        KeyError, TypeError, IndexError, ValueError: they are not.
    """
    pairs = [((rank, number), tuple(value)) for rank, number, value in plain["pairs"]]

    def values_of(numbers: list[int]) -> Constraint:
        return dict(pairs[number] for number in numbers)

    nodes: list[Node] = []
    for one in plain["nodes"]:
        above = nodes[one["parent"]] if one["parent"] >= 0 else None
        key = one["key"]
        node = Node(values_of(one["constraint"]), above, (key[0], key[1]) if key else None)
        node.values = values_of(one["values"])
        node.order = {key: place for place, key in enumerate(node.values)}
        node.left = one["left"]
        node.done = [values_of(each) for each in one["done"]]
        node.tried = {
            (rank, number): [values_of(each) for each in of] for rank, number, of in one["tried"]
        }
        nodes.append(node)
    search = Search(plain["depth"])
    search.worlds, search.shallow = plain["worlds"], plain["shallow"]
    search.seen = {bytes.fromhex(one) for one in plain["seen"]}
    search.root = nodes[plain["root"]]
    search.waiting = [nodes[place] for place in plain["left"]]
    return search
