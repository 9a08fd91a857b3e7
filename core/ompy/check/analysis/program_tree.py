"""The source of a program as one tree: what is around a node, and which functions are called."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ompy.check.analysis.source_tree import (
    LOOPS,
    SCOPES,
    argument_of,
    called_name,
    last_name,
    values_of,
)

OWN: Final = frozenset({"self", "cls"})  # what a method gets without being given it


def parameters_of(function: ast.AST) -> list[ast.arg]:
    """Those of a function or a lambda that may be given by place; none of anything else."""
    arguments = getattr(function, "args", None)
    if not isinstance(arguments, ast.arguments):
        return []
    return [*arguments.posonlyargs, *arguments.args]


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function or a module, without those of functions within it."""
    left = list(ast.iter_child_nodes(scope))
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, SCOPES):
            left += ast.iter_child_nodes(node)


class ProgramTree:
    """A module, and others that have to do with it."""

    def __init__(self, tree: ast.Module, others: Sequence[ast.Module] = ()) -> None:
        # one tree whose modules are scopes, as functions are; made anew: parsed files are shared
        whole: list[Any] = [tree, *others]
        self.tree: ast.AST = ast.Module(whole, []) if others else tree
        self.parents = {
            child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)
        }
        self._handed_on: dict[tuple[str, ast.AST], list[ast.AST]] = {}
        self._bound: dict[ast.AST, set[str]] = {}

    def scope_of(self, node: ast.AST) -> ast.AST:
        """The function that a node is in, or the module."""
        while node in self.parents and not isinstance(node, SCOPES):
            node = self.parents[node]
        return node

    def scope_of_name(self, node: ast.AST, name: str) -> ast.AST:
        """The function or module that a variable belongs to, as seen from a node."""
        scope = self.scope_of(node)
        while scope in self.parents and name not in self._names_bound(scope):
            if isinstance(scope, ast.Module):
                break
            scope = self.scope_of(self.parents[scope])
        return scope

    def _names_bound(self, scope: ast.AST) -> set[str]:
        """The variables that a function has of its own."""
        if scope not in self._bound:
            found, others = set(), set()
            for each in own_nodes(scope):
                if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
                    found.add(each.id)
                elif isinstance(each, ast.arg):
                    found.add(each.arg)
                elif isinstance(each, (ast.Global, ast.Nonlocal)):
                    others.update(each.names)
            self._bound[scope] = found - others
        return self._bound[scope]

    def calls_of(self, scope: ast.AST) -> Iterator[ast.AST]:
        """The calls of a function."""
        name = getattr(scope, "name", "")
        for each in ast.walk(self.tree):
            if isinstance(each, ast.Call) and called_name(each) == name:
                yield each

    def functions(self, called: ast.expr) -> list[ast.AST]:
        """The functions that an expression may be, also where they were handed on; none if unknown.

        Args:
            called: the expression.
        """
        if isinstance(called, ast.Lambda):
            return [called]
        name = last_name(called)
        found = [
            each
            for each in ast.walk(self.tree)
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)) and each.name == name
        ]
        if found or not isinstance(called, ast.Name):
            return [*found]  # which one of those of a name is not known
        made = self.partial_of(called)
        if made is not None:
            return self.functions(made.args[0])
        return self._functions_handed_on(name, self.scope_of(called))

    def partial_of(self, called: ast.expr) -> ast.Call | None:
        """The `partial` of a function with its first arguments that an expression is."""
        values = values_of(self.tree, ast.unparse(called))
        made = values[0] if len(values) == 1 else None
        known = isinstance(made, ast.Call) and called_name(made) == "partial" and made.args
        return made if known and isinstance(made, ast.Call) else None

    def _functions_handed_on(self, name: str, scope: ast.AST) -> list[ast.AST]:
        """The functions that others give a function as an argument; none if one is unknown."""
        parameters = [each.arg for each in parameters_of(scope)]
        if name not in parameters:
            return []
        if (name, scope) not in self._handed_on:
            self._handed_on[name, scope] = []  # while it is looked for: it may hand on itself
            self._handed_on[name, scope] = self._find_handed_on(name, scope, parameters)
        return self._handed_on[name, scope]

    def _find_handed_on(self, name: str, scope: ast.AST, parameters: list[str]) -> list[ast.AST]:
        place = parameters.index(name) - (parameters[0] in OWN)
        found: list[ast.AST] = []
        for each in ast.walk(self.tree):
            if not isinstance(each, ast.Call) or called_name(each) != getattr(scope, "name", None):
                continue
            given = argument_of(each, place, name)
            functions = [] if given is None else self.functions(given)
            if not functions:
                return []
            found += [one for one in functions if one not in found]
        return found

    def constructor(self, called: ast.expr) -> ast.ClassDef | None:
        """The class of the program that a call makes an object of."""
        name = last_name(called)
        return next(
            (e for e in ast.walk(self.tree) if isinstance(e, ast.ClassDef) and e.name == name), None
        )

    def rows_of(self, node: ast.AST, name: str) -> ast.expr | None:
        """What a loop around a node goes through, whose variable has a name."""
        while node in self.parents and not isinstance(node, SCOPES):
            node = self.parents[node]
            loops = getattr(node, "generators", [node])
            for loop in loops:
                target = getattr(loop, "target", None)
                if isinstance(target, ast.Name) and target.id == name and hasattr(loop, "iter"):
                    return loop.iter  # type: ignore[no-any-return]
        return None

    def loops_around(self, node: ast.AST) -> set[ast.AST]:
        """The loops that a node is in, within its function."""
        found: set[ast.AST] = set()
        while node in self.parents and not isinstance(node, SCOPES):
            node = self.parents[node]
            if isinstance(node, LOOPS):
                found.add(node)
        return found


def init_of(made: ast.ClassDef) -> ast.FunctionDef | None:
    """The `__init__` of a class, if it has one of its own."""
    return next(
        (e for e in made.body if isinstance(e, ast.FunctionDef) and e.name == "__init__"), None
    )
