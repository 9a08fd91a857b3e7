"""What becomes of a received value: whether it matters which message came first.

A value is followed through the source: through names, containers, functions that return it. It is
an *item*, one message or what was made of it, or a *bag*, a list that has what came in any order.
Each use of an item or a bag is one of `Use`; the worst counts. What is not known is ANYTHING.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, Final

from ompy.check.analysis.source_tree import (
    argument_of,
    called_name,
    captured_names,
    is_kept,
    is_refilled,
    last_name,
)

DEPTH: Final = 40  # steps from one expression to the next; arbitrary: more than a program has
# what the order of arguments, or of calls, is nothing to
_FREEING: Final = frozenset({
    "sum", "fsum", "max", "min", "sorted", "set", "frozenset", "add", "maximum", "minimum",
    "Counter", "heappush", "heappop", "heapify", "merge", "nlargest", "nsmallest", "any", "all",
    "update", "union", "discard", "mean", "median", "prod", "amax", "amin", "isend", "logical_and",
    "logical_or", "unique",
})  # fmt: skip
_OF_BAGS: Final = frozenset({"len", "dict", "sort", "count", "clear"})
_INTO_BAGS: Final = frozenset({"append", "extend", "appendleft"})
# what makes one value of another, and does nothing else
_MAKING: Final = frozenset({
    "len", "int", "float", "abs", "round", "bool", "complex", "tuple", "list", "dict", "str",
    "array", "asarray", "copy", "sqrt", "norm", "dot", "loads", "tobytes", "decode", "item",
    "frombuffer", "reshape", "unpack",
})  # fmt: skip
_BAG_TO_BAG: Final = frozenset({"list", "tuple", "iter", "chain", "from_iterable", "extend"})
_JOINING: Final = frozenset({"concatenate", "hstack"})  # arrays to one; rows are no elements
_OF_ARRAYS: Final = frozenset({"sum", "mean", "max", "min", "prod", "any", "all", "std", "size"})
_ADDING: Final = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_COMMUTING: Final = (ast.BitOr, ast.BitAnd, ast.BitXor)
_LITTLE: Final = (ast.AugAssign, ast.Break, ast.Continue, ast.Pass)
_LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)
# of operations that may be handed to `reduce`, or have a method `at`
_FOLDING: Final = frozenset({
    "add", "mul", "multiply", "max", "min", "maximum", "minimum", "fmax", "fmin", "or_", "and_",
    "xor", "gcd", "lcm", "logical_or", "logical_and", "bitwise_or", "bitwise_and", "bitwise_xor",
})  # fmt: skip
_ONLY_AT: Final = frozenset({"subtract"})
_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
_TARGETS: Final = frozenset({"dest", "source"})  # each gets its own, in whatever order


class Use(Enum):
    """What a line does with what it receives."""

    ADDED = "added or multiplied: of numbers in any order the same"
    ORDER_FREE = "in any order the same: a largest, a set"
    ANYTHING = "nothing is known"


def worst(uses: Iterable[Use]) -> Use:
    """What all uses come to; without any the order is nothing."""
    found = set(uses)
    return next((use for use in (Use.ANYTHING, Use.ADDED) if use in found), Use.ORDER_FREE)


def _receives(node: ast.AST) -> bool:
    """Whether an expression is what a call receives, and nothing more."""
    return isinstance(node, ast.Call) and called_name(node) == "recv"


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def _parameters(function: ast.AST) -> list[ast.arg]:
    """Those of a function or a lambda that may be given by place; none of anything else."""
    arguments = getattr(function, "args", None)
    if not isinstance(arguments, ast.arguments):
        return []
    return [*arguments.posonlyargs, *arguments.args]


class Flow:
    """Follows values through a module, and others that have to do with it."""

    def __init__(self, tree: ast.Module, others: Sequence[ast.Module] = ()) -> None:
        # one tree whose modules are scopes, as functions are; made anew: parsed files are shared
        whole: list[Any] = [tree, *others]
        self._tree: ast.AST = ast.Module(whole, []) if others else tree
        self._parents = {
            child: node for node in ast.walk(self._tree) for child in ast.iter_child_nodes(node)
        }
        self._items: set[str] = set()
        self._seen: set[tuple[str, str, ast.AST]] = set()
        self._handed_on: dict[tuple[str, ast.AST], list[ast.AST]] = {}
        self._depth = 0

    # expressions

    def use_of_item(self, node: ast.AST, derived: bool = False) -> Use:
        """What is done with an expression that is one message.

        Args:
            node: the expression.
            derived: it was made of the message: a number, as far as is known.
        """
        self._depth += 1
        if self._depth > DEPTH:
            return Use.ANYTHING
        parent = self._parents.get(node, self._tree)
        handler = getattr(self, f"_item_in_{type(parent).__name__.lower()}", None)
        found: Use = Use.ANYTHING if handler is None else handler(parent, node, derived)
        self._depth -= 1
        return found

    def _onward(self, parent: ast.AST, _node: ast.AST, _derived: bool) -> Use:
        return self.use_of_item(parent, True)

    _item_in_attribute = _item_in_unaryop = _item_in_slice = _item_in_tuple = _onward
    _item_in_list = _item_in_dict = _onward

    def _item_in_await(self, parent: ast.AST, _node: ast.AST, derived: bool) -> Use:
        return self.use_of_item(parent, derived)

    def _item_in_ifexp(self, parent: ast.IfExp, node: ast.AST, derived: bool) -> Use:
        return self.use_of_item(parent, derived or node is parent.test)

    def _nothing(self, _parent: ast.AST, _node: ast.AST, _derived: bool) -> Use:
        return Use.ORDER_FREE

    _item_in_expr = _item_in_set = _item_in_setcomp = _item_in_dictcomp = _nothing

    def _item_in_subscript(self, parent: ast.Subscript, node: ast.AST, _derived: bool) -> Use:
        if node is not parent.value and isinstance(parent.ctx, ast.Store):
            return Use.ORDER_FREE  # it says itself where it belongs
        return self.use_of_item(parent, True)

    def _item_in_keyword(self, parent: ast.keyword, _node: ast.AST, derived: bool) -> Use:
        if parent.arg in _TARGETS:
            return Use.ORDER_FREE
        return self.use_of_item(parent, derived)

    def _item_in_call(self, parent: ast.Call, node: ast.AST, derived: bool) -> Use:
        name = called_name(parent)
        if node is parent.func:  # a method of what was received
            return self.use_of_item(parent, True)
        if self._functions(parent.func):  # whatever it is called
            return self._use_of_parameter(parent, node, derived)
        if name in _INTO_BAGS and isinstance(parent.func, ast.Attribute):
            return self._use_of_container(parent.func.value)
        if name in _FREEING or self._says_where(parent, node):
            return Use.ORDER_FREE
        makes = name in _MAKING or name in {"isinstance", "hasattr"}
        return self.use_of_item(parent, True) if makes else Use.ANYTHING

    def _says_where(self, call: ast.Call, node: ast.AST) -> bool:
        """Whether a message says itself where a call puts something, or adds it."""
        if called_name(call) == "setdefault":
            return node is call.args[0] and not _names(call.args[1:]) & self._items
        return called_name(call) == "at" and self._is_ufunc(call.func)

    @staticmethod
    def _is_ufunc(method: ast.expr) -> bool:
        """Whether a method is that of a function of NumPy whose order is nothing."""
        return isinstance(method, ast.Attribute) and last_name(method.value) in _FOLDING | _ONLY_AT

    def _use_of_parameter(self, call: ast.Call, node: ast.AST, derived: bool) -> Use:
        """What functions of the program do with an argument, and with what they return."""
        functions = self._functions(call.func)
        if not functions or node not in call.args:
            return Use.ANYTHING
        place = call.args.index(node)
        inside = [self._use_inside(each, place, derived) for each in functions]
        return worst((*inside, self.use_of_item(call, True)))

    def _use_inside(self, function: ast.AST, place: int, derived: bool) -> Use:
        """What a function does with an argument."""
        parameters = _parameters(function)
        place += bool(parameters) and parameters[0].arg == "self"
        if place >= len(parameters):
            return Use.ANYTHING
        return self.use_of_item_names(parameters[place], [parameters[place].arg], derived)

    def _functions(self, called: ast.expr) -> list[ast.AST]:
        """The functions that an expression may be, also where they were handed on; none if unknown.

        Args:
            called: the expression.
        """
        if isinstance(called, ast.Lambda):
            return [called]
        name = last_name(called)
        found = [
            each
            for each in ast.walk(self._tree)
            if isinstance(each, ast.FunctionDef) and each.name == name
        ]
        if found or not isinstance(called, ast.Name):
            return [*found]  # which one of those of a name is not known
        return self._functions_handed_on(name, self._scope_of(called))

    def _functions_handed_on(self, name: str, scope: ast.AST) -> list[ast.AST]:
        """The functions that others give a function as an argument; none if one is unknown."""
        parameters = [each.arg for each in _parameters(scope)]
        if name not in parameters:
            return []
        if (name, scope) not in self._handed_on:
            self._handed_on[name, scope] = []  # while it is looked for: it may hand on itself
            self._handed_on[name, scope] = self._find_handed_on(name, scope, parameters)
        return self._handed_on[name, scope]

    def _find_handed_on(self, name: str, scope: ast.AST, parameters: list[str]) -> list[ast.AST]:
        place = parameters.index(name) - (parameters[0] == "self")
        found: list[ast.AST] = []
        for each in ast.walk(self._tree):
            if not isinstance(each, ast.Call) or called_name(each) != getattr(scope, "name", None):
                continue
            given = argument_of(each, place, name)
            functions = [] if given is None else self._functions(given)
            if not functions:
                return []
            found += [one for one in functions if one not in found]
        return found

    def _use_of_container(self, node: ast.AST) -> Use:
        if isinstance(node, ast.Name):
            return self.use_of_bag_name(node, node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return self.use_of_bag_name(node, ast.unparse(node))
        return Use.ANYTHING

    def _item_in_binop(self, parent: ast.BinOp, node: ast.AST, derived: bool) -> Use:
        outer = self._parents.get(parent)
        other = parent.left if node is parent.right else parent.right
        again = (
            isinstance(outer, ast.Assign)
            and isinstance(outer.targets[0], ast.Name)
            and isinstance(other, ast.Name)
            and other.id == outer.targets[0].id
        )
        if again and (node is parent.right or isinstance(parent.op, (ast.Add, ast.Mult))):
            return self._sum(parent.op, derived)
        if isinstance(parent.op, (ast.Add, ast.Mult)) and self._are_alike(node, other):
            return Use.ADDED
        folded = isinstance(outer, ast.Assign) and _names(outer.targets) & _names([other])
        return Use.ANYTHING if folded else self.use_of_item(parent, True)

    def _are_alike(self, *operands: ast.AST) -> bool:
        """Whether each is what the same receive got, and is used nowhere else."""
        received = [self._received_by(each) for each in operands]
        return "" not in received and len(set(received)) == 1

    def _received_by(self, node: ast.AST) -> str:
        """The receive of which an operand is the only use; empty if it is none."""
        if not isinstance(node, ast.Name):
            return ast.unparse(node) if _receives(node) else ""
        named = [
            each
            for each in ast.walk(self._scope_of(node))
            if isinstance(each, ast.Name) and each.id == node.id
        ]
        store = next((each for each in named if isinstance(each.ctx, ast.Store)), None)
        made = self._parents.get(store) if store is not None else None
        if not isinstance(made, ast.Assign) or len(made.targets) > 1 or len(named) > 2:
            return ""
        return ast.unparse(made.value) if _receives(made.value) else ""

    def _item_in_boolop(self, parent: ast.BoolOp, _node: ast.AST, _derived: bool) -> Use:
        outer = self._parents.get(parent)
        if isinstance(outer, ast.Assign) and _names(outer.targets) & _names(parent.values):
            return Use.ORDER_FREE
        return Use.ANYTHING

    def _item_in_augassign(self, parent: ast.AugAssign, _node: ast.AST, derived: bool) -> Use:
        return Use.ORDER_FREE if self._is_keyed(parent.target) else self._sum(parent.op, derived)

    def _sum(self, operation: ast.operator, derived: bool) -> Use:
        if isinstance(operation, _ADDING):
            return Use.ORDER_FREE if derived else Use.ADDED
        return Use.ORDER_FREE if isinstance(operation, _COMMUTING) else Use.ANYTHING

    def _item_in_assign(self, parent: ast.Assign, _node: ast.AST, derived: bool) -> Use:
        if all(self._is_keyed(target) for target in parent.targets):
            return Use.ORDER_FREE
        if self._begins_sum(parent):
            return Use.ADDED
        names = [each.id for each in parent.targets if isinstance(each, ast.Name)]
        if any(is_kept(parent, name, self._parents) for name in names):
            return Use.ANYTHING
        return worst(self._use_of_target(target, derived) for target in parent.targets)

    def _begins_sum(self, node: ast.Assign) -> bool:
        """Whether others are added to what is received here before anybody looks at it."""
        target = node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Name) or not _receives(node.value):
            return False
        scope = list(ast.walk(self._scope_of(node)))
        sums = [
            each
            for each in scope
            if isinstance(each, ast.AugAssign) and ast.unparse(each.target) == target.id
        ]
        reads = [
            each.lineno
            for each in scope
            if isinstance(each, ast.Name) and each.id == target.id
            if isinstance(each.ctx, ast.Load)
        ]
        return (
            len({type(each.op) for each in sums}) == 1
            and all(isinstance(each.op, (ast.Add, ast.Mult)) for each in sums)
            and all(_receives(each.value) and each.lineno > node.lineno for each in sums)
            and all(line > (each.end_lineno or 0) for each in sums for line in reads)
        )

    def _item_in_namedexpr(self, parent: ast.NamedExpr, _node: ast.AST, derived: bool) -> Use:
        named = self._use_of_target(parent.target, derived)
        return worst((named, self.use_of_item(parent, derived)))

    def _use_of_target(self, target: ast.AST, derived: bool) -> Use:
        if isinstance(target, ast.Name):
            return self.use_of_item_names(target, [target.id], derived)
        if isinstance(target, (ast.Tuple, ast.List)):
            names = [each.id for each in target.elts if isinstance(each, ast.Name)]
            if len(names) == len(target.elts):
                return self.use_of_item_names(target, names, True)
        return Use.ANYTHING

    def _is_keyed(self, target: ast.AST) -> bool:
        """Whether something is put where the message says."""
        return isinstance(target, ast.Subscript) and bool(_names([target.slice]) & self._items)

    def _item_in_comprehension(self, parent: ast.comprehension, node: ast.AST, _d: bool) -> Use:
        return self._use_of_target(parent.target, True) if node is parent.iter else Use.ANYTHING

    def _item_in_listcomp(self, parent: ast.AST, _node: ast.AST, _derived: bool) -> Use:
        return self.use_of_bag(parent)

    _item_in_generatorexp = _item_in_listcomp

    def _item_in_for(self, parent: ast.For, node: ast.AST, _derived: bool) -> Use:
        return self._use_of_target(parent.target, True) if node is parent.iter else Use.ANYTHING

    def _item_in_return(self, parent: ast.AST, _node: ast.AST, derived: bool) -> Use:
        return worst(self.use_of_item(call, derived) for call in self._calls_of(parent))

    def _item_in_yield(self, parent: ast.AST, _node: ast.AST, _derived: bool) -> Use:
        return worst(self.use_of_bag(call) for call in self._calls_of(parent))

    def _item_in_compare(self, parent: ast.AST, _node: ast.AST, _derived: bool) -> Use:
        test = self._parents.get(parent)
        while isinstance(test, (ast.BoolOp, ast.UnaryOp)):
            test = self._parents.get(test)
        return self._use_as_test(test)

    def _item_in_if(self, parent: ast.AST, _node: ast.AST, _derived: bool) -> Use:
        return self._use_as_test(parent)

    def _item_in_match(self, parent: ast.Match, _node: ast.AST, _derived: bool) -> Use:
        found = []
        for each in parent.cases:
            names = captured_names(each.pattern)
            if names:
                found.append(self.use_of_item_names(each.pattern, names, True))
        return worst((*found, *map(self._use_as_test, parent.cases)))

    def _use_as_test(self, node: ast.AST | None) -> Use:
        """What is done where a message decides whether it is done."""
        if isinstance(node, ast.comprehension):
            return Use.ORDER_FREE  # it decides on itself alone
        if not isinstance(node, (ast.If, ast.match_case)):
            return Use.ANYTHING
        done = [*node.body, *getattr(node, "orelse", ())]
        return Use.ORDER_FREE if all(map(self._commutes, done)) else Use.ANYTHING

    def _commutes(self, node: ast.stmt) -> bool:
        """Whether a statement may be done for messages in any order, as far as it is of none."""
        if isinstance(node, _LITTLE) or (isinstance(node, ast.Return) and node.value is None):
            return True
        if isinstance(node, (ast.If, ast.For)):
            return all(map(self._commutes, [*node.body, *node.orelse]))
        if isinstance(node, (ast.Assign, ast.Expr)) and _names([node]) & self._items:
            return True  # what becomes of the message there is asked for itself
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            return self._sets_same(node)
        call = node.value if isinstance(node, ast.Expr) else None
        return isinstance(call, ast.Call) and called_name(call) in _FREEING

    def _sets_same(self, node: ast.Assign) -> bool:
        """Whether nothing else in the loop around sets the same variables to anything else."""
        around: ast.AST = node
        while around in self._parents and not isinstance(around, (*_LOOPS, *_SCOPES)):
            around = self._parents[around]
        targets = {ast.unparse(each) for each in node.targets}
        return isinstance(around, _LOOPS) and all(
            ast.dump(each.value) == ast.dump(node.value)
            for each in ast.walk(around)
            if isinstance(each, ast.Assign) and targets & {ast.unparse(t) for t in each.targets}
        )

    def use_of_bag(self, node: ast.AST) -> Use:
        """What is done with an expression that has messages in any order."""
        self._depth += 1
        if self._depth > DEPTH:
            return Use.ANYTHING
        parent = self._parents.get(node, self._tree)
        handler = getattr(self, f"_bag_in_{type(parent).__name__.lower()}", None)
        found: Use = Use.ANYTHING if handler is None else handler(parent, node)
        self._depth -= 1
        return found

    def _bag_alone(self, _parent: ast.AST, _node: ast.AST) -> Use:
        return Use.ORDER_FREE

    _bag_in_expr = _bag_in_if = _bag_in_while = _bag_in_setcomp = _bag_alone

    def _bag_in_attribute(self, parent: ast.Attribute, _node: ast.AST) -> Use:
        known = _INTO_BAGS | _OF_BAGS | _OF_ARRAYS
        return Use.ORDER_FREE if parent.attr in known else Use.ANYTHING

    def _bag_in_starred(self, parent: ast.AST, _node: ast.AST) -> Use:
        return self.use_of_bag(parent)

    def _bag_in_assign(self, parent: ast.Assign, _node: ast.AST) -> Use:
        return worst(map(self._use_of_container, parent.targets))

    def _bag_in_augassign(self, parent: ast.AugAssign, _node: ast.AST) -> Use:
        added = isinstance(parent.op, ast.Add)
        return self._use_of_container(parent.target) if added else Use.ANYTHING

    def _bag_in_return(self, parent: ast.AST, _node: ast.AST) -> Use:
        return worst(self.use_of_bag(call) for call in self._calls_of(parent))

    def _bag_in_for(self, parent: ast.For, node: ast.AST) -> Use:
        return self._use_of_target(parent.target, True) if node is parent.iter else Use.ANYTHING

    def _bag_in_comprehension(self, parent: ast.comprehension, node: ast.AST) -> Use:
        return self.use_of_bag(self._parents[parent]) if node is parent.iter else Use.ANYTHING

    def _bag_in_compare(self, parent: ast.Compare, node: ast.AST) -> Use:
        asked = node is not parent.left and isinstance(parent.ops[0], (ast.In, ast.NotIn))
        return Use.ORDER_FREE if asked else Use.ANYTHING

    def _bag_in_unaryop(self, parent: ast.UnaryOp, _node: ast.AST) -> Use:
        return Use.ORDER_FREE if isinstance(parent.op, ast.Not) else Use.ANYTHING

    def _bag_in_call(self, parent: ast.Call, node: ast.AST) -> Use:
        name = called_name(parent)
        if node is parent.func or name in _FREEING or name in _OF_BAGS:
            return Use.ORDER_FREE
        if name == "extend" and isinstance(parent.func, ast.Attribute):
            return self._use_of_container(parent.func.value)
        if name == "reduce" and node in parent.args[1:2] and last_name(parent.args[0]) in _FOLDING:
            return Use.ADDED
        if name in _JOINING and isinstance(parent.func, ast.Attribute):
            return self.use_of_bag(parent)
        return self.use_of_bag(parent) if name in _BAG_TO_BAG else Use.ANYTHING

    def use_of_request(self, node: ast.AST) -> Use:
        """What is done with an expression that is a request for a message, or a list of them."""
        parent = self._parents.get(node, self._tree)
        if isinstance(parent, ast.Call):
            return self._request_in_call(parent, node)
        if isinstance(parent, ast.Attribute) and parent.attr in {"wait", "append"}:
            call = self._parents[parent]
            return self.use_of_item(call) if parent.attr == "wait" else Use.ORDER_FREE
        if isinstance(parent, (ast.ListComp, ast.List)):
            return self.use_of_request(parent)
        targets: list[ast.expr] = []
        if isinstance(parent, ast.Assign):
            targets = parent.targets
        elif isinstance(parent, (ast.For, ast.comprehension)) and node is parent.iter:
            targets = [parent.target]
        if not targets:
            return Use.ANYTHING
        return worst(map(self._use_of_requests, targets))

    def _request_in_call(self, parent: ast.Call, _node: ast.AST) -> Use:
        name = called_name(parent)
        if name in {"waitall", "Waitall"}:
            return self.use_of_bag(parent)
        if name == "append" and isinstance(parent.func, ast.Attribute):
            return self._use_of_requests(parent.func.value)
        return Use.ANYTHING

    # names

    def use_of_item_names(self, node: ast.AST, names: list[str], derived: bool) -> Use:
        """What is done with variables that are of one message.

        Args:
            node: where they are.
            names: of them.
            derived: as of `use_of_item`.
        """
        self._items.update(names)
        if all(("item", name, self._scope_of(node)) in self._seen for name in names):
            return Use.ORDER_FREE
        loads = [load for name in names for load in self._loads("item", node, name)]
        if isinstance(node, ast.Call):  # that receives into a buffer
            loads = [one for one in loads if not is_refilled(one, names[0], node, self._parents)]
        if not loads and not all(name.startswith("_") for name in names):
            return Use.ANYTHING  # it has a name for something
        kept = (load for load in loads if not self._is_among_kept(load))
        return worst(self.use_of_item(load, derived) for load in kept)

    def _is_among_kept(self, load: ast.AST) -> bool:
        """Whether it is in a statement that puts it where it says, or keeps the best."""
        node: ast.AST | None = load
        while node is not None and not isinstance(node, ast.FunctionDef):
            if isinstance(node, ast.Assign) and all(map(self._is_keyed, node.targets)):
                return True
            if isinstance(node, ast.If) and self._keeps_best(node):
                return True
            node = self._parents.get(node)
        return False

    def _keeps_best(self, node: ast.If) -> bool:
        """Whether a message takes the place of what it is better than."""
        compared = [each for each in ast.walk(node.test) if isinstance(each, ast.Compare)]
        relations = (ast.Lt, ast.Gt, ast.LtE, ast.GtE)
        others = {
            name
            for each in compared
            if isinstance(each.ops[0], relations) and _names([each]) & self._items
            for name in _names([each]) - self._items
        }
        kept = [
            target for each in node.body if isinstance(each, ast.Assign) for target in each.targets
        ]
        return bool(_names(kept) & others)

    def use_of_bag_name(self, node: ast.AST, name: str) -> Use:
        """What is done with a variable that has messages in any order."""
        loads = list(self._loads("bag", node, name))
        for load in loads:
            parent = self._parents[load]
            if isinstance(parent, ast.Attribute) and parent.attr == "sort":
                return Use.ORDER_FREE
        return worst(self.use_of_bag(load) for load in loads)

    def _use_of_requests(self, node: ast.AST) -> Use:
        if not isinstance(node, ast.Name):
            return Use.ANYTHING
        return worst(map(self.use_of_request, self._loads("requests", node, node.id)))

    def _loads(self, kind: str, node: ast.AST, name: str) -> Iterator[ast.AST]:
        """Where a variable is read; nowhere if that was asked before."""
        of_object = isinstance(node, ast.Attribute)  # which all methods may read
        scope = self._tree if of_object else self._scope_of(node)
        if (kind, name, scope) in self._seen:
            return
        self._seen.add((kind, name, scope))
        for each in ast.walk(scope):
            if of_object:
                named = isinstance(each, ast.Attribute) and ast.unparse(each) == name
            else:
                named = isinstance(each, ast.Name) and each.id == name
            read = named and isinstance(each.ctx, ast.Load)  # type: ignore[attr-defined]
            if read and not self._is_received_into(each):
                yield each

    def _is_received_into(self, node: ast.AST) -> bool:
        """Whether it is named in a call that receives."""
        while not isinstance(node, ast.stmt) and node in self._parents:
            node = self._parents[node]
            if isinstance(node, ast.Call) and "recv" in called_name(node).lower():
                return True
        return False

    def _scope_of(self, node: ast.AST) -> ast.AST:
        while node in self._parents and not isinstance(node, _SCOPES):
            node = self._parents[node]
        return node

    def _calls_of(self, node: ast.AST) -> Iterator[ast.AST]:
        """The calls of the function that a statement is in."""
        scope = self._scope_of(node)
        name = getattr(scope, "name", "")
        if ("calls", name, scope) in self._seen:
            return
        self._seen.add(("calls", name, scope))
        for each in ast.walk(self._tree):
            if isinstance(each, ast.Call) and called_name(each) == name:
                yield each
