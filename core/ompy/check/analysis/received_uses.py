"""What becomes of a received value: whether it matters which message came first.

A value is followed through the source: through names, containers, functions that return it. It is
an *item*, one message or what was made of it, or a *bag*, a list that has what came in any order.
Each use of an item or a bag is one of `Use`; the worst counts. What is not known is ANYTHING.
"""

from __future__ import annotations

import ast
from typing import Final

from ompy.check.analysis.bag_uses import BagUses
from ompy.check.analysis.flow_base import DEPTH, names_in
from ompy.check.analysis.program_tree import OWN, init_of, parameters_of
from ompy.check.analysis.request_uses import RequestUses
from ompy.check.analysis.source_tree import (
    LOOPS,
    SCOPES,
    above,
    argument_of,
    called_name,
    captured_names,
    changed_in,
    is_kept,
    is_list,
    is_of_probe,
    is_refilled,
    is_text,
    read_in,
    values_of,
)
from ompy.check.analysis.use_words import (
    ADDING,
    COMMUTING,
    FREEING,
    HASHES,
    INTO_BAGS,
    LITTLE,
    MAKING,
    SENDING,
    TARGETS,
    Use,
    worst,
)

_PRODUCTS: Final = (ast.Mult, ast.Div)


def _receives(node: ast.AST) -> bool:
    """Whether an expression is what a call receives, and nothing more."""
    return isinstance(node, ast.Call) and called_name(node) == "recv"


def _sides_of(compared: ast.expr) -> list[ast.expr]:
    """What is compared: of a tuple each element, of `len(x)` or `-x` what is in it."""
    if isinstance(compared, ast.Tuple):
        return [side for each in compared.elts for side in _sides_of(each)]
    if isinstance(compared, ast.UnaryOp):
        return _sides_of(compared.operand)
    if isinstance(compared, ast.Call) and len(compared.args) == 1:
        return _sides_of(compared.args[0])
    return [compared]


def _begins(text: str, name: str) -> bool:
    """Whether an expression is a variable, or a part of it."""
    return text == name or text.startswith((f"{name}.", f"{name}["))


class Flow(BagUses, RequestUses):
    """Follows items."""

    # expressions

    def use_of_item(self, node: ast.AST, derived: bool = False) -> Use:
        """What is done with an expression that is one message.

        Args:
            node: the expression.
            derived: it was made of the message: a number, as far as is known.
        """
        self.depth += 1
        if self.depth > DEPTH:
            return Use.ANYTHING
        parent = self.parents.get(node, self.tree)
        handler = getattr(self, f"_item_in_{type(parent).__name__.lower()}", None)
        found: Use = Use.ANYTHING if handler is None else handler(parent, node, derived)
        self.depth -= 1
        return found

    def _onward(self, parent: ast.AST, _node: ast.AST, _derived: bool) -> Use:
        return self.use_of_item(parent, True)

    _item_in_attribute = _item_in_unaryop = _item_in_slice = _item_in_tuple = _onward
    _item_in_starred = _item_in_formattedvalue = _item_in_joinedstr = _onward

    def _item_in_list(self, parent: ast.AST, _node: ast.AST, _derived: bool) -> Use:
        outer = self.parents.get(parent)
        if isinstance(outer, ast.AugAssign) and isinstance(outer.op, ast.Add):
            return self.use_of_container(outer.target)
        return self.use_of_item(parent, True)

    def _item_in_dict(self, parent: ast.Dict, node: ast.AST, _derived: bool) -> Use:
        joined = [v for k, v in zip(parent.keys, parent.values, strict=True) if k is None]
        return Use.ORDER_FREE if node in joined else self.use_of_item(parent, True)

    def _item_in_dictcomp(self, parent: ast.DictComp, node: ast.AST, _derived: bool) -> Use:
        keyed = node is not parent.value or names_in([parent.key]) & self.items
        return Use.ORDER_FREE if keyed else Use.ANYTHING

    def _item_in_assert(self, parent: ast.Assert, _node: ast.AST, _derived: bool) -> Use:
        calls = {each.func for each in ast.walk(parent.test) if isinstance(each, ast.Call)}
        read = {
            each.id
            for each in ast.walk(parent.test)
            if isinstance(each, ast.Name) and each not in calls
        }
        return Use.ANYTHING if read - self.items else Use.ORDER_FREE

    def _item_in_withitem(self, parent: ast.withitem, _node: ast.AST, derived: bool) -> Use:
        named = parent.optional_vars
        return Use.ORDER_FREE if named is None else self.use_of_target(named, derived)

    def _item_in_await(self, parent: ast.AST, _node: ast.AST, derived: bool) -> Use:
        return self.use_of_item(parent, derived)

    def _item_in_ifexp(self, parent: ast.IfExp, node: ast.AST, derived: bool) -> Use:
        return self.use_of_item(parent, derived or node is parent.test)

    def _nothing(self, _parent: ast.AST, _node: ast.AST, _derived: bool) -> Use:
        return Use.ORDER_FREE

    _item_in_expr = _item_in_set = _item_in_setcomp = _nothing

    def _item_in_subscript(self, parent: ast.Subscript, node: ast.AST, _derived: bool) -> Use:
        if node is not parent.value and isinstance(parent.ctx, ast.Store):
            return Use.ORDER_FREE  # it says itself where it belongs
        return self.use_of_item(parent, True)

    def _item_in_keyword(self, parent: ast.keyword, _node: ast.AST, derived: bool) -> Use:
        if parent.arg in TARGETS:
            return Use.ORDER_FREE
        return self.use_of_item(parent, derived)

    def _item_in_call(self, parent: ast.Call, node: ast.AST, derived: bool) -> Use:
        name = called_name(parent)
        if node is parent.func:  # a method of what was received
            return self.use_of_item(parent, True)
        if self.functions(parent.func):  # whatever it is called
            return self._use_of_parameter(parent, node, derived)
        if name in INTO_BAGS and isinstance(parent.func, ast.Attribute):
            return self.use_of_container(parent.func.value)
        if self._is_free(parent, node):
            return Use.ORDER_FREE
        return self.use_of_item(parent, True) if self._makes(parent) else Use.ANYTHING

    def _is_free(self, call: ast.Call, node: ast.AST) -> bool:
        """Whether a call does the same with messages in any order."""
        if self._is_hashed(call):
            return False
        if called_name(call) in FREEING or self._says_where(call, node) or self._is_answer(call):
            return True
        return isinstance(self.parents.get(call), ast.Raise)  # it ends by whichever is wrong

    def _makes(self, call: ast.Call) -> bool:
        """Whether a call makes one thing of another, and nothing else happens."""
        made = self.constructor(call.func)
        if made is not None:
            return self._only_keeps(made)
        return called_name(call) in MAKING or called_name(call) in {"isinstance", "hasattr"}

    def _is_hashed(self, call: ast.Call) -> bool:
        """Whether a call gives something to a checksum of all that it was given in turn."""
        if called_name(call) != "update" or not isinstance(call.func, ast.Attribute):
            return False
        values = values_of(self.tree, ast.unparse(call.func.value))
        return any(isinstance(v, ast.Call) and called_name(v).startswith(HASHES) for v in values)

    def _is_answer(self, call: ast.Call) -> bool:
        """Whether a call sends to somebody whom a message names."""
        target = argument_of(call, 1, "dest") if called_name(call) in SENDING else None
        return target is not None and bool(names_in([target]) & self.items)

    @staticmethod
    def _only_keeps(made: ast.ClassDef) -> bool:
        """Whether an object of a class has what it is made of, and nothing else happens."""
        init = init_of(made)
        return init is None or all(
            isinstance(each, (ast.Assign, ast.AnnAssign)) for each in init.body
        )

    def _use_of_parameter(self, call: ast.Call, node: ast.AST, derived: bool) -> Use:
        """What functions of the program do with an argument, and with what they return."""
        functions = self.functions(call.func)
        if not functions or node not in call.args:
            return Use.ANYTHING
        partial = self.partial_of(call.func)
        place = call.args.index(node) + (len(partial.args) - 1 if partial is not None else 0)
        inside = [self.use_inside(each, place, derived) for each in functions]
        return worst((*inside, self.use_of_item(call, True)))

    def use_inside(self, function: ast.AST, place: int, derived: bool) -> Use:
        """What a function does with an argument."""
        parameters = parameters_of(function)
        place += bool(parameters) and parameters[0].arg in OWN
        if place >= len(parameters):
            return Use.ANYTHING
        return self.use_of_item_names(parameters[place], [parameters[place].arg], derived)

    def _item_in_binop(self, parent: ast.BinOp, node: ast.AST, derived: bool) -> Use:
        outer = self.parents.get(parent)
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
        folded = isinstance(outer, ast.Assign) and names_in(outer.targets) & names_in([other])
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
            for each in ast.walk(self.scope_of(node))
            if isinstance(each, ast.Name) and each.id == node.id
        ]
        store = next((each for each in named if isinstance(each.ctx, ast.Store)), None)
        made = self.parents.get(store) if store is not None else None
        if not isinstance(made, ast.Assign) or len(made.targets) > 1 or len(named) > 2:
            return ""
        return ast.unparse(made.value) if _receives(made.value) else ""

    def _item_in_boolop(self, parent: ast.BoolOp, _node: ast.AST, _derived: bool) -> Use:
        outer = self.parents.get(parent)
        if isinstance(outer, ast.Assign) and names_in(outer.targets) & names_in(parent.values):
            return Use.ORDER_FREE
        return Use.ANYTHING

    def _item_in_augassign(self, parent: ast.AugAssign, _node: ast.AST, derived: bool) -> Use:
        if self._is_keyed(parent.target):
            return Use.ORDER_FREE
        if self._is_mixed(parent):
            return Use.ANYTHING
        before = values_of(self.tree, ast.unparse(parent.target))
        if any(map(is_list, before)):
            return self.use_of_container(parent.target)
        return Use.ANYTHING if any(map(is_text, before)) else self._sum(parent.op, derived)

    def _is_mixed(self, node: ast.AugAssign) -> bool:
        """Whether a sum is of itself, too, or what is added up is multiplied by others as well."""
        target = ast.unparse(node.target)
        return target in read_in(node.value) or any(
            isinstance(each, ast.AugAssign)
            and ast.unparse(each.target) == target
            and isinstance(each.op, _PRODUCTS) != isinstance(node.op, _PRODUCTS)
            and names_in([each.value]) & self.items
            for each in ast.walk(self.tree)
        )

    def _item_in_annassign(self, parent: ast.AnnAssign, _node: ast.AST, derived: bool) -> Use:
        return self.use_of_target(parent.target, derived)

    def _sum(self, operation: ast.operator, derived: bool) -> Use:
        if isinstance(operation, ADDING):
            return Use.ORDER_FREE if derived else Use.ADDED
        return Use.ORDER_FREE if isinstance(operation, COMMUTING) else Use.ANYTHING

    def _item_in_assign(self, parent: ast.Assign, _node: ast.AST, derived: bool) -> Use:
        if all(self._is_keyed(target) for target in parent.targets):
            return Use.ORDER_FREE
        if self._begins_sum(parent):
            return Use.ADDED
        names = [each.id for each in parent.targets if isinstance(each, ast.Name)]
        if any(is_kept(parent, name, self.parents) for name in names):
            return Use.ANYTHING
        return worst(self.use_of_target(target, derived) for target in parent.targets)

    def _begins_sum(self, node: ast.Assign) -> bool:
        """Whether others are added to what is received here before anybody looks at it."""
        target = node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Name) or not _receives(node.value):
            return False
        scope = list(ast.walk(self.scope_of(node)))
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
        named = self.use_of_target(parent.target, derived)
        return worst((named, self.use_of_item(parent, derived)))

    def use_of_target(self, target: ast.AST, derived: bool) -> Use:
        """What is done with what gets one message."""
        if isinstance(target, ast.Name):
            return self.use_of_item_names(target, [target.id], derived)
        if isinstance(target, (ast.Tuple, ast.List)):
            names = [each.id for each in target.elts if isinstance(each, ast.Name)]
            if len(names) == len(target.elts):
                names = [name for n, name in enumerate(names) if not self._is_probed(target, n)]
                return self.use_of_item_names(target, names, True)
        return Use.ANYTHING

    def _is_probed(self, target: ast.AST, place: int) -> bool:
        """Whether what a function returns there is who sent what was probed.

        A Status of the receive itself is asked for elsewhere (`received.py`).
        """
        made = self.parents.get(target)
        call = made.value if isinstance(made, ast.Assign) else None
        functions = self.functions(call.func) if isinstance(call, ast.Call) else []
        inside = (each for one in functions for each in ast.walk(one))
        returned = [each.value for each in inside if isinstance(each, ast.Return)]
        return bool(returned) and all(
            isinstance(each, ast.Tuple)
            and place < len(each.elts)
            and is_of_probe(each.elts[place], self.scope_of(each))
            for each in returned
        )

    def _is_keyed(self, target: ast.AST) -> bool:
        """Whether something is put where the message says."""
        return isinstance(target, ast.Subscript) and bool(names_in([target.slice]) & self.items)

    def _item_in_comprehension(self, parent: ast.comprehension, node: ast.AST, _d: bool) -> Use:
        return self.use_of_target(parent.target, True) if node is parent.iter else Use.ANYTHING

    def _item_in_listcomp(self, parent: ast.AST, _node: ast.AST, _derived: bool) -> Use:
        return self.use_of_bag(parent)

    _item_in_generatorexp = _item_in_listcomp

    def _item_in_for(self, parent: ast.For, node: ast.AST, _derived: bool) -> Use:
        return self.use_of_target(parent.target, True) if node is parent.iter else Use.ANYTHING

    def _item_in_return(self, parent: ast.AST, _node: ast.AST, derived: bool) -> Use:
        return worst(self.use_of_item(call, derived) for call in self._calls_of(parent))

    def _item_in_yieldfrom(self, parent: ast.AST, _node: ast.AST, _derived: bool) -> Use:
        return worst(self.use_of_bag(call) for call in self._calls_of(parent))

    def _item_in_yield(self, parent: ast.AST, _node: ast.AST, _derived: bool) -> Use:
        return worst(self.use_of_bag(call) for call in self._calls_of(parent))

    def _item_in_compare(self, parent: ast.AST, _node: ast.AST, _derived: bool) -> Use:
        test = self.parents.get(parent)
        while isinstance(test, (ast.BoolOp, ast.UnaryOp)):
            test = self.parents.get(test)
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
        test = node.test if isinstance(node, ast.If) else node.guard
        met = set() if test is None else (read_in(test) - self.items) & changed_in(done)
        if met and not (isinstance(node, ast.If) and self._keeps_best(node)):
            return Use.ANYTHING  # what it does for one, the next one meets
        return Use.ORDER_FREE if all(map(self._commutes, done)) else Use.ANYTHING

    def _commutes(self, node: ast.stmt) -> bool:
        """Whether a statement may be done for messages in any order, as far as it is of none."""
        if isinstance(node, LITTLE) or (isinstance(node, ast.Return) and node.value is None):
            return True
        if isinstance(node, (ast.If, ast.For)):
            return all(map(self._commutes, [*node.body, *node.orelse]))
        if isinstance(node, (ast.Assign, ast.Expr)) and names_in([node]) & self.items:
            return True  # what becomes of the message there is asked for itself
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            return self._sets_same(node)
        call = node.value if isinstance(node, ast.Expr) else None
        return isinstance(call, ast.Call) and called_name(call) in FREEING

    def _sets_same(self, node: ast.Assign) -> bool:
        """Whether nothing else in the loop around sets the same variables to anything else."""
        around: ast.AST = node
        while around in self.parents and not isinstance(around, (*LOOPS, *SCOPES)):
            around = self.parents[around]
        targets = {ast.unparse(each) for each in node.targets}
        return isinstance(around, LOOPS) and all(
            ast.dump(each.value) == ast.dump(node.value)
            for each in ast.walk(around)
            if isinstance(each, ast.Assign) and targets & {ast.unparse(t) for t in each.targets}
        )

    # names

    def use_of_item_names(self, node: ast.AST, names: list[str], derived: bool) -> Use:
        """What is done with variables that are of one message.

        Args:
            node: where they are.
            names: of them.
            derived: as of `use_of_item`.
        """
        self.items.update(names)
        new = [name for name in names if self._is_new(name, node)]
        if not new:
            return Use.ORDER_FREE
        loads = [load for name in new for load in self._reads_of_given(node, name)]
        if isinstance(node, ast.Call):  # that receives into a buffer
            loads = [one for one in loads if not is_refilled(one, names[0], node, self.parents)]
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
            node = self.parents.get(node)
        return False

    def _keeps_best(self, node: ast.If) -> bool:
        """Whether a message takes the place of what it is better than."""
        relations = (ast.Lt, ast.Gt, ast.LtE, ast.GtE)
        others = [
            side
            for each in ast.walk(node.test)
            if isinstance(each, ast.Compare) and isinstance(each.ops[0], relations)
            if names_in([each]) & self.items
            for compared in (each.left, *each.comparators)
            for side in _sides_of(compared)
            if not names_in([side]) & self.items
        ]
        kept = changed_in([each for each in node.body if isinstance(each, ast.Assign)])
        best = any(_begins(ast.unparse(side), name) for side in others for name in kept)
        return best and not self._keeps_turn(node)

    def _keeps_turn(self, node: ast.If) -> bool:
        """Whether with a message something is kept that says the how-manieth it was."""
        loop = above(node, LOOPS, self.parents)
        if loop is None:
            return False
        own = set(ast.walk(node))
        turns = {
            each.target.id
            for each in ast.walk(loop)
            if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name)
            if each not in own
        }
        turns |= names_in([loop.target]) if isinstance(loop, (ast.For, ast.AsyncFor)) else set()
        kept = [each.value for each in node.body if isinstance(each, ast.Assign)]
        return bool(names_in(kept) & turns - self.items)
