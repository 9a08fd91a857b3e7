"""What items and bags, and requests for them, have in common: see `received_uses.py`."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ompy.check.analysis.program_tree import ProgramTree
from ompy.check.analysis.reaching import reads_of
from ompy.check.analysis.source_tree import called_name
from ompy.check.analysis.use_words import Use

DEPTH: Final = 40  # steps from one expression to the next; arbitrary: more than a program has


def names_in(nodes: Iterable[ast.AST]) -> set[str]:
    """The variables that are named in some nodes."""
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


class FlowBase(ProgramTree, ABC):
    """Follows values through a module, and others that have to do with it.

    Attributes:
        items: variables that are one message, or were made of it.
        depth: steps that the current way has.
        rows: variables, with their scopes, that are rows of an array which is followed as a whole.
    """

    def __init__(self, tree: ast.Module, others: Sequence[ast.Module] = ()) -> None:
        super().__init__(tree, others)
        self.items: set[str] = set()
        self.depth = 0
        self._seen: set[tuple[str, str, ast.AST]] = set()
        self.rows: set[tuple[str, ast.AST]] = set()
        self._followed: set[tuple[str, ast.AST]] = set()

    @abstractmethod
    def use_of_item(self, node: ast.AST, derived: bool = False) -> Use:
        """What is done with an expression that is one message.

        Args:
            node: the expression.
            derived: it was made of the message: a number, as far as is known.
        """

    @abstractmethod
    def use_of_item_names(self, node: ast.AST, names: list[str], derived: bool) -> Use:
        """What is done with variables that are of one message.

        Args:
            node: where they are.
            names: of them.
            derived: as of `use_of_item`.
        """

    @abstractmethod
    def use_of_target(self, target: ast.AST, derived: bool) -> Use:
        """What is done with what gets one message."""

    @abstractmethod
    def use_inside(self, function: ast.AST, place: int, derived: bool) -> Use:
        """What a function does with an argument."""

    @abstractmethod
    def use_of_bag(self, node: ast.AST) -> Use:
        """What is done with an expression that has messages in any order."""

    @abstractmethod
    def use_of_container(self, node: ast.AST) -> Use:
        """What is done with a variable, or an attribute, that has messages in any order."""

    def _is_new(self, name: str, node: ast.AST) -> bool:
        """Whether a variable that gets a message at a node is asked for the first time."""
        row = (name, self.scope_of_name(node, name)) in self.rows
        new = not row and (name, node) not in self._followed
        self._followed.add((name, node))
        return new

    def _loads(self, kind: str, node: ast.AST, name: str) -> Iterator[ast.AST]:
        """Where a variable is read; nowhere if that was asked before."""
        of_object = isinstance(node, ast.Attribute)  # which all methods may read
        scope = self.tree if of_object else self.scope_of_name(node, name)
        if (kind, name, scope) in self._seen:
            return
        self._seen.add((kind, name, scope))
        yield from self._reads(scope, name, of_object)

    def _reads_of_given(self, node: ast.AST, name: str) -> list[ast.AST]:
        """Where a variable is read that may have what it got at a node."""
        scope = self.scope_of_name(node, name)
        reached = reads_of(scope, name, node)
        return [each for each in self._reads(scope, name) if each in reached]

    def _reads(self, scope: ast.AST, name: str, of_object: bool = False) -> Iterator[ast.AST]:
        for each in ast.walk(scope):
            if of_object:
                named = isinstance(each, ast.Attribute) and ast.unparse(each) == name
            else:
                named = isinstance(each, ast.Name) and each.id == name
                named = named and self.scope_of_name(each, name) is scope
            read = named and isinstance(each.ctx, ast.Load)  # type: ignore[attr-defined]
            if read and not self._is_received_into(each):
                yield each

    def _is_received_into(self, node: ast.AST) -> bool:
        """Whether it is named in a call that receives."""
        while not isinstance(node, ast.stmt) and node in self.parents:
            node = self.parents[node]
            if isinstance(node, ast.Call) and "recv" in called_name(node).lower():
                return True
        return False

    def _calls_of(self, node: ast.AST) -> Iterator[ast.AST]:
        """The calls of the function that a statement is in; none if that was asked before."""
        scope = self.scope_of(node)
        asked = ("calls", getattr(scope, "name", ""), scope)
        if asked in self._seen:
            return
        self._seen.add(asked)
        yield from self.calls_of(scope)
