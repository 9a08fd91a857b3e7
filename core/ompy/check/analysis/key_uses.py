"""By which part of a message a program says where the rest of it is put."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ompy.check.analysis.flow_base import names_in
from ompy.check.analysis.reaching import reads_of
from ompy.check.analysis.received_uses import Flow
from ompy.check.analysis.source_tree import called_name, read_in


class KeyFlow(Flow):
    """Follows items, and looks where they are put."""

    def keys(self) -> frozenset[int | str]:
        """The parts that say where: `table[message.task] = message.value` has `task`.

        Only where nothing is made of what was there before, and nothing asks for it.
        """
        found: set[int | str] = set()
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.Assign) or len(node.targets) > 1:
                continue
            target = node.targets[0]
            if isinstance(target, ast.Subscript) and self._is_plain(node, target):
                found.update(self._parts_of(target.slice))
        return frozenset(found)

    def _is_plain(self, node: ast.Assign, target: ast.Subscript) -> bool:
        if not names_in([node.value]) & self.items:
            return False
        kept = ast.unparse(target.value)
        if kept in read_in(node.value):
            return False
        around = self.parents.get(node)
        while around is not None and not isinstance(around, (ast.FunctionDef, ast.Module)):
            asked = around.test if isinstance(around, ast.If) else None
            asked = around.subject if isinstance(around, ast.Match) else asked
            if asked is not None and (names_in([asked]) & self.items or kept in read_in(asked)):
                return False
            around = self.parents.get(around)
        return self._is_read(target)

    def _is_read(self, target: ast.Subscript) -> bool:
        """Whether anybody looks at what is put there."""
        name = ast.unparse(target.value).rpartition(".")[2]
        return any(
            name in (getattr(each, "id", ""), getattr(each, "attr", ""))
            and each is not target.value
            and not self._is_put(each)
            for each in ast.walk(self.tree)
            if isinstance(each, (ast.Name, ast.Attribute)) and isinstance(each.ctx, ast.Load)
        )

    def _is_put(self, node: ast.AST) -> bool:
        parent = self.parents.get(node)
        stored = isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Store)
        return stored and isinstance(parent, ast.Subscript) and parent.value is node

    def _parts_of(self, key: ast.expr) -> Iterator[int | str]:
        """What a key is of the message."""
        if isinstance(key, ast.Name):
            yield from self._places_of(key)
        elif isinstance(key, ast.Attribute) and isinstance(key.value, ast.Name):
            if key.value.id in self.items:
                yield key.attr
        elif (
            isinstance(key, ast.Subscript)
            and isinstance(key.value, ast.Name)
            and key.value.id in self.items
            and isinstance(key.slice, ast.Constant)
            and isinstance(key.slice.value, (int, str))
        ):
            yield key.slice.value

    def _places_of(self, key: ast.Name) -> Iterator[int]:
        """The index of a name among those that a message is unpacked to, all in one place."""
        scope = self.scope_of(key)
        stores = [
            each
            for each in ast.walk(scope)
            if isinstance(each, ast.Name) and each.id == key.id
            if isinstance(each.ctx, ast.Store) and key in reads_of(scope, key.id, each)
        ]
        made = self.parents.get(stores[0]) if len(stores) == 1 else None
        outer = self.parents.get(made) if isinstance(made, (ast.Tuple, ast.List)) else None
        if not isinstance(made, (ast.Tuple, ast.List)) or not isinstance(outer, ast.Assign):
            return
        value = outer.value
        named = isinstance(value, ast.Name) and value.id in self.items
        received = isinstance(value, ast.Call) and called_name(value) == "recv"
        if (named or received) and not any(isinstance(one, ast.Starred) for one in made.elts):
            yield made.elts.index(stores[0])
