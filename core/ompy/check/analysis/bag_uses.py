"""What becomes of messages in any order: of a list, a generator, rows of an array."""

from __future__ import annotations

import ast

from ompy.check.analysis.flow_base import DEPTH, FlowBase, names_in
from ompy.check.analysis.source_tree import called_name, last_name, other_axis
from ompy.check.analysis.use_words import (
    BAG_TO_BAG,
    FOLDING,
    FREEING,
    INTO_BAGS,
    JOINING,
    MAKING,
    OF_ARRAYS,
    OF_BAGS,
    ONE_OVER,
    ONLY_AT,
    SOME_OVER,
    STACKING,
    TAKING,
    Use,
    worst,
)


def _is_ufunc(method: ast.expr) -> bool:
    """Whether a method is that of a function of NumPy whose order is nothing."""
    return isinstance(method, ast.Attribute) and last_name(method.value) in FOLDING | ONLY_AT


def _is_wait(node: ast.expr, names: frozenset[str]) -> bool:
    """Whether an expression is the places of requests that a call has found to be over."""
    return isinstance(node, ast.Call) and called_name(node) in names


class BagUses(FlowBase):
    """Follows bags."""

    def use_of_bag(self, node: ast.AST) -> Use:
        """What is done with an expression that has messages in any order."""
        self.depth += 1
        if self.depth > DEPTH:
            return Use.ANYTHING
        parent = self.parents.get(node, self.tree)
        handler = getattr(self, f"_bag_in_{type(parent).__name__.lower()}", None)
        found: Use = Use.ANYTHING if handler is None else handler(parent, node)
        self.depth -= 1
        return found

    def _bag_alone(self, _parent: ast.AST, _node: ast.AST) -> Use:
        return Use.ORDER_FREE

    _bag_in_expr = _bag_in_if = _bag_in_while = _bag_in_setcomp = _bag_alone

    def _bag_in_attribute(self, parent: ast.Attribute, _node: ast.AST) -> Use:
        call = self.parents.get(parent)
        if parent.attr in TAKING and isinstance(call, ast.Call):
            return self.use_of_item(call)
        if isinstance(call, ast.Call) and other_axis(call):
            return Use.ANYTHING
        known = INTO_BAGS | OF_BAGS | OF_ARRAYS
        return Use.ORDER_FREE if parent.attr in known else Use.ANYTHING

    def _bag_in_subscript(self, parent: ast.Subscript, _node: ast.AST) -> Use:
        if isinstance(parent.ctx, ast.Store):
            return Use.ORDER_FREE
        if self._is_in_turn(parent):
            return self.use_of_item(parent)
        place = parent.slice.elts[0] if isinstance(parent.slice, ast.Tuple) else parent.slice
        of_all = isinstance(place, ast.Slice) and place.lower is place.upper is place.step is None
        return self.use_of_bag(parent) if of_all else Use.ANYTHING

    def _is_in_turn(self, element: ast.Subscript) -> bool:
        """Whether an element is that of whichever request was over, and its place is nothing else.

        So each is used once, in the order in which they came.
        """
        place = element.slice
        if not isinstance(place, ast.Name):
            return _is_wait(place, ONE_OVER)
        array = ast.unparse(element.value)
        named = [
            each
            for each in ast.walk(self.scope_of_name(place, place.id))
            if isinstance(each, ast.Name) and each.id == place.id
        ]
        return all(
            self._is_place_of(each, array)
            if isinstance(each.ctx, ast.Load)
            else self._gets_place(each)
            for each in named
        )

    def _is_place_of(self, name: ast.Name, array: str) -> bool:
        """Whether a variable is an index of an array where it is read."""
        outer = self.parents[name]
        if isinstance(outer, ast.Subscript) and outer.slice is name:
            return ast.unparse(outer.value) == array or self._is_received_into(name)
        return self._is_received_into(name)

    def _gets_place(self, name: ast.Name) -> bool:
        """Whether a variable gets the place of a request that is over."""
        made = self.parents[name]
        if isinstance(made, ast.Assign):
            return _is_wait(made.value, ONE_OVER)
        if isinstance(made, (ast.For, ast.comprehension)) and made.target is name:
            return _is_wait(made.iter, SOME_OVER) or self._is_received_into_by(made)
        return False

    def _is_received_into_by(self, loop: ast.For | ast.comprehension) -> bool:
        """Whether a loop is the one that receives into all elements."""
        return any(self._is_received_into(each) for each in self._rows_named(loop))

    def _bag_onward(self, parent: ast.AST, _node: ast.AST) -> Use:
        return self.use_of_bag(parent)

    _bag_in_starred = _bag_in_await = _bag_onward

    def _bag_in_binop(self, parent: ast.BinOp, _node: ast.AST) -> Use:
        return self.use_of_bag(parent) if isinstance(parent.op, ast.Add) else Use.ANYTHING

    def _bag_in_withitem(self, parent: ast.withitem, _node: ast.AST) -> Use:
        named = parent.optional_vars
        return Use.ORDER_FREE if named is None else self.use_of_container(named)

    def _bag_in_assign(self, parent: ast.Assign, node: ast.AST) -> Use:
        apart = isinstance(node, ast.Call) and called_name(node) == "zip"
        if apart and isinstance(parent.targets[0], ast.Tuple):
            return worst(map(self.use_of_container, parent.targets[0].elts))
        return worst(map(self.use_of_container, parent.targets))

    def _bag_in_annassign(self, parent: ast.AnnAssign, _node: ast.AST) -> Use:
        return self.use_of_container(parent.target)

    def _bag_in_namedexpr(self, parent: ast.NamedExpr, _node: ast.AST) -> Use:
        return worst((self.use_of_container(parent.target), self.use_of_bag(parent)))

    def _bag_in_augassign(self, parent: ast.AugAssign, _node: ast.AST) -> Use:
        added = isinstance(parent.op, ast.Add)
        return self.use_of_container(parent.target) if added else Use.ANYTHING

    def _bag_in_return(self, parent: ast.AST, _node: ast.AST) -> Use:
        return worst(self.use_of_bag(call) for call in self._calls_of(parent))

    _bag_in_yieldfrom = _bag_in_return

    def _bag_in_for(self, parent: ast.For, node: ast.AST) -> Use:
        return self.use_of_target(parent.target, True) if node is parent.iter else Use.ANYTHING

    def _bag_in_comprehension(self, parent: ast.comprehension, node: ast.AST) -> Use:
        return self.use_of_bag(self.parents[parent]) if node is parent.iter else Use.ANYTHING

    def _bag_in_compare(self, parent: ast.Compare, node: ast.AST) -> Use:
        asked = node is not parent.left and isinstance(parent.ops[0], (ast.In, ast.NotIn))
        return Use.ORDER_FREE if asked else Use.ANYTHING

    def _bag_in_unaryop(self, parent: ast.UnaryOp, _node: ast.AST) -> Use:
        return Use.ORDER_FREE if isinstance(parent.op, ast.Not) else Use.ANYTHING

    def _bag_in_call(self, parent: ast.Call, node: ast.AST) -> Use:
        name = called_name(parent)
        if node is parent.func or name in OF_BAGS:
            return Use.ORDER_FREE
        if name in FREEING:
            return Use.ANYTHING if other_axis(parent) else Use.ORDER_FREE
        if isinstance(parent.func, ast.Attribute):
            if name == "extend":
                return self.use_of_container(parent.func.value)
            if name in JOINING | STACKING:
                return self._use_of_joined(parent)
        return self._bag_in_function(parent, name, node)

    def _bag_in_function(self, call: ast.Call, name: str, node: ast.AST) -> Use:
        if name == "reduce" and node in call.args[1:2] and last_name(call.args[0]) in FOLDING:
            return Use.ADDED
        if name in {"map", "filter"} and node in call.args[1:]:
            mapped = self._use_of_mapped(call.args[0], call.args.index(node) - 1)
            return worst((mapped, self.use_of_bag(call)))
        if isinstance(node, ast.Starred) and name in {"zip", "gather"}:
            return self._use_of_joined(call)
        if name == "enumerate":
            return self._use_of_numbered(call)
        return self.use_of_bag(call) if name in BAG_TO_BAG else Use.ANYTHING

    def _use_of_numbered(self, call: ast.Call) -> Use:
        """What is done with each of `enumerate`, if nobody reads its number."""
        loop = self.parents.get(call)
        target = loop.target if isinstance(loop, (ast.For, ast.comprehension)) else None
        if not isinstance(target, ast.Tuple) or not isinstance(target.elts[0], ast.Name):
            return Use.ANYTHING
        if any(True for _ in self._loads("number", target, target.elts[0].id)):
            return Use.ANYTHING
        return self.use_of_target(target.elts[1], True)

    def _use_of_mapped(self, function: ast.expr, place: int) -> Use:
        """What a function that is handed to `map` or `filter` does with each."""
        if isinstance(function, ast.Constant) or last_name(function) in MAKING | FREEING:
            return Use.ORDER_FREE
        functions = self.functions(function)
        if not functions:
            return Use.ANYTHING
        return worst(self.use_inside(each, place, False) for each in functions)

    def _use_of_joined(self, call: ast.Call) -> Use:
        """What is done with an array or a tuple of all."""
        outer = self.parents.get(call)
        if isinstance(outer, ast.Assign) and isinstance(outer.targets[0], ast.Name):
            name = outer.targets[0].id
            scope = ast.walk(self.scope_of(call))
            named = [each for each in scope if isinstance(each, ast.Name) and each.id == name]
            if not any(isinstance(each.ctx, ast.Load) for each in named):
                return Use.ANYTHING  # it has a name for something
        return self.use_of_bag(call)

    def _use_of_lists(self, node: ast.expr) -> Use:
        """What is done with a dict that has a list of messages at each key."""
        if not isinstance(node, ast.Name):
            return Use.ANYTHING
        loads = [load for load in self._loads("lists", node, node.id) if not self._is_filled(load)]
        return worst(map(self._use_of_list_in, loads)) if loads else Use.ANYTHING

    def _is_filled(self, load: ast.AST) -> bool:
        """Whether a dict of lists is named where something is put into a list."""
        node = self.parents[load]
        if isinstance(node, ast.Attribute) and node.attr == "setdefault":
            node = self.parents[node]
        outer = self.parents.get(node)
        return isinstance(outer, ast.Attribute) and outer.attr in INTO_BAGS

    def _use_of_list_in(self, load: ast.AST) -> Use:
        """What is done with the lists of a dict where that is read."""
        parent = self.parents[load]
        if isinstance(parent, ast.Subscript) and parent.value is load:
            return self.use_of_bag(parent)
        if isinstance(parent, ast.Attribute):
            return self._use_of_list_by(parent)
        keys = isinstance(parent, (ast.Compare, ast.For, ast.comprehension)) or (
            isinstance(parent, ast.Call)
            and called_name(parent) in {"len", "sorted", "set", "list", "iter"}
        )
        return Use.ORDER_FREE if keys else Use.ANYTHING

    def _use_of_list_by(self, method: ast.Attribute) -> Use:
        """The same for a method: `items`, `values`, `keys`."""
        loop: ast.AST | None = self.parents.get(self.parents[method])
        while isinstance(loop, ast.Call) and called_name(loop) in {"sorted", "list"}:
            loop = self.parents.get(loop)
        target = getattr(loop, "target", None)
        if method.attr == "items" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            return self.use_of_container(target.elts[1])
        if method.attr == "values" and isinstance(target, ast.Name):
            return self.use_of_container(target)
        return Use.ORDER_FREE if method.attr == "keys" else Use.ANYTHING

    def use_of_container(self, node: ast.AST) -> Use:
        """What is done with a variable, or an attribute, that has messages in any order."""
        if isinstance(node, ast.Subscript) and names_in([node.slice]) & self.items:
            return self._use_of_lists(node.value)
        if isinstance(node, ast.Call) and self._says_where(node, node.args[0]):
            assert isinstance(node.func, ast.Attribute), "setdefault is a method"
            return self._use_of_lists(node.func.value)
        if isinstance(node, ast.Name):
            return self.use_of_bag_name(node, node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return self.use_of_bag_name(node, ast.unparse(node))
        return Use.ANYTHING

    def _says_where(self, call: ast.Call, node: ast.AST) -> bool:
        """Whether a message says itself where a call puts something, or adds it."""
        if called_name(call) == "setdefault":
            return node is call.args[0] and not names_in(call.args[1:]) & self.items
        return called_name(call) == "at" and _is_ufunc(call.func)

    def use_of_bag_name(self, node: ast.AST, name: str) -> Use:
        """What is done with a variable that has messages in any order."""
        loads = list(self._loads("bag", node, name))
        sorts = [load for load in loads if self._is_sorted(load, name)]
        if sorts and isinstance(node, ast.Attribute):
            return Use.ORDER_FREE  # which method runs first is not known
        return worst(
            self.use_of_bag(load)
            for load in loads
            if not any(self._comes_behind(load, each) for each in sorts)
        )

    def use_of_rows(self, call: ast.AST, buffer: ast.expr) -> Use:
        """What is done with an array whose part, or row, is received into."""
        if isinstance(buffer, ast.Subscript):
            return self._use_of_whole(buffer.value)
        assert isinstance(buffer, ast.Name), "it has a name, or is a part"
        rows = self.rows_of(call, buffer.id)
        if rows is None or any(True for _ in self._loads("row", call, buffer.id)):
            return self.use_of_item_names(call, [buffer.id], False)
        self.rows.add((buffer.id, self.scope_of_name(call, buffer.id)))
        return self._use_of_whole(rows)

    def _use_of_whole(self, array: ast.expr) -> Use:
        """What is done with an array of which parts are received into."""
        text = ast.unparse(array)
        named = (each for each in ast.walk(self.tree) if isinstance(each, type(array)))
        read = any(
            ast.unparse(each) == text
            and not self._is_received_into(each)
            and isinstance(getattr(each, "ctx", None), ast.Load)
            and not self._is_stored_into(each)
            for each in named
        )
        return self.use_of_container(array) if read else Use.ANYTHING  # its order is for something

    def _is_stored_into(self, node: ast.AST) -> bool:
        """Whether an array is named where a part of it gets a value, or as what a loop goes by."""
        parent = self.parents[node]
        if isinstance(parent, (ast.For, ast.comprehension)):
            return any(self._is_received_into(each) for each in self._rows_named(parent))
        return isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Store)

    def _rows_named(self, loop: ast.For | ast.comprehension) -> list[ast.AST]:
        """Where a loop's body names its variable."""
        around = loop if isinstance(loop, ast.For) else self.parents[loop]
        named = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
        return [e for e in ast.walk(around) if isinstance(e, ast.Name) and e.id in named]

    def _is_sorted(self, load: ast.AST, name: str) -> bool:
        """Whether a list is sorted where it is read, and has its name again."""
        node = self.parents[load]
        if isinstance(node, ast.Attribute):
            return node.attr == "sort"
        while isinstance(node, ast.Call) and called_name(node) in FREEING:
            node = self.parents[node]
        return isinstance(node, ast.Assign) and [ast.unparse(e) for e in node.targets] == [name]

    def _comes_behind(self, load: ast.AST, sort: ast.AST) -> bool:
        """Whether a list is sorted before it is read: behind it, or in a loop with it."""
        if load is sort:
            return True
        behind = load.lineno > sort.lineno  # type: ignore[attr-defined]
        return behind or bool(self.loops_around(load) & self.loops_around(sort))
