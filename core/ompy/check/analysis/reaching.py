"""Which reads of a variable may see the value that one place gave it (reaching definitions).

The statements of one function are followed in all orders in which they may run. Only what is
certain ends a value: another binding of the same name. Functions within it may run at any time, so
their reads always count. (Aho, Lam, Sethi, Ullman: Compilers, 9.2.4)
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ompy.check.analysis.program_tree import own_nodes


def reads_of(scope: ast.AST, name: str, given: ast.AST) -> set[ast.AST]:
    """The reads of a variable that may see what it got at one place.

    Args:
        scope: the function, lambda or module that the variable belongs to.
        name: the variable.
        given: where it gets a value: what is assigned to, a parameter, a pattern, or a call that
            receives into it.
    """
    return _Walk(name, given).reads_in(scope)


class _Walk:
    """Follows one value through a function. A *state* is whether the variable may have it."""

    def __init__(self, name: str, given: ast.AST) -> None:
        self._name = name
        self._given = {given} if isinstance(given, ast.Call) else set(ast.walk(given))
        self._read: set[ast.AST] = set()
        self._left: list[bool] = []  # of each loop around: had it at a `break`
        self._again: list[bool] = []  # at a `continue`
        self._raised = False  # had it at a statement of the `try` around

    def reads_in(self, scope: ast.AST) -> set[ast.AST]:
        """The reads that see it."""
        within = any(node in self._given for node in own_nodes(scope))  # not in a function within
        if isinstance(scope, ast.Lambda) or not within:
            self._after_function(scope, True)
            return self._read
        # a module may be run again as it was left: a cell of a notebook
        entered = isinstance(scope, ast.Module) or any(
            isinstance(node, ast.arg) for node in self._given
        )
        self._follow(getattr(scope, "body", ()), entered)
        return self._read

    # statements

    def _follow(self, nodes: Iterable[ast.AST], state: bool) -> bool:
        for node in nodes:
            state = self._after(node, state)
            self._raised |= state
        return state

    def _after(self, node: ast.AST, state: bool) -> bool:
        """The state behind a node that has it before."""
        handler = getattr(self, f"_after_{type(node).__name__.lower()}", None)
        if handler is not None:
            known: bool = handler(node, state)
            return known
        state = self._follow(ast.iter_child_nodes(node), state)
        return state or (isinstance(node, ast.Call) and node in self._given)

    def _after_name(self, node: ast.Name, state: bool) -> bool:
        if node.id != self._name:
            return state
        if not isinstance(node.ctx, ast.Load):
            return node in self._given
        if state:
            self._read.add(node)
        return state

    def _after_pattern(self, node: ast.AST, state: bool) -> bool:
        named = self._name in (getattr(node, "name", None), getattr(node, "rest", None))
        state = self._follow(ast.iter_child_nodes(node), state)
        return node in self._given or state if named else state  # it may not match

    _after_matchas = _after_matchstar = _after_matchmapping = _after_pattern

    def _after_assign(self, node: ast.Assign, state: bool) -> bool:
        return self._follow(node.targets, self._after(node.value, state))

    def _after_annassign(self, node: ast.AnnAssign, state: bool) -> bool:
        if node.value is None:
            return state
        return self._after(node.target, self._after(node.value, state))

    def _after_augassign(self, node: ast.AugAssign, state: bool) -> bool:
        state = self._after(node.value, state)
        return state if isinstance(node.target, ast.Name) else self._after(node.target, state)

    def _after_namedexpr(self, node: ast.NamedExpr, state: bool) -> bool:
        return self._after(node.target, self._after(node.value, state))

    def _after_function(self, node: ast.AST, state: bool) -> bool:
        named = [n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == self._name]
        self._read.update(each for each in named if isinstance(each.ctx, ast.Load))
        return state

    _after_functiondef = _after_asyncfunctiondef = _after_module = _after_function
    _after_lambda = _after_function

    def _after_parts(self, node: ast.AST, state: bool) -> bool:
        """A comprehension: its variables are its own."""
        inner = state
        for each in getattr(node, "generators", ()):
            inner = self._follow([each.iter, each.target], inner)
            inner = self._follow(each.ifs, inner)
        made = (getattr(node, field, None) for field in ("key", "value", "elt"))
        self._follow([each for each in made if each is not None], inner)
        return state

    _after_listcomp = _after_setcomp = _after_dictcomp = _after_generatorexp = _after_parts

    def _after_if(self, node: ast.If | ast.IfExp, state: bool) -> bool:
        state = self._after(node.test, state)
        ways = (node.body, node.orelse)
        after = [self._follow([w] if isinstance(w, ast.AST) else w, state) for w in ways]
        return any(after)

    _after_ifexp = _after_if

    def _after_boolop(self, node: ast.BoolOp, state: bool) -> bool:
        found = state = self._after(node.values[0], state)
        for each in node.values[1:]:
            state = self._after(each, state)
            found |= state
        return found

    def _after_match(self, node: ast.Match, state: bool) -> bool:
        state = found = self._after(node.subject, state)
        for case in node.cases:
            tested = [case.pattern, *([case.guard] if case.guard is not None else [])]
            state = self._follow(tested, state)
            found |= self._follow(case.body, state)
        return found

    def _after_for(self, node: ast.For | ast.AsyncFor, state: bool) -> bool:
        state = self._after(node.iter, state)
        left = False
        for _ in range(2):  # what the first time leaves, the second one meets
            end, left = self._once(node, self._after(node.target, state))
            state |= end
        return left | self._follow(node.orelse, state)

    _after_asyncfor = _after_for

    def _after_while(self, node: ast.While, state: bool) -> bool:
        left = False
        for _ in range(2):
            end, left = self._once(node, self._after(node.test, state))
            state |= end
        by_break = isinstance(node.test, ast.Constant) and bool(node.test.value)
        over = self._after(node.test, state) and not by_break
        return left | self._follow(node.orelse, over)

    def _once(self, node: ast.For | ast.AsyncFor | ast.While, state: bool) -> tuple[bool, bool]:
        """The state where a loop goes on after its body was run once, and where it was left."""
        self._left.append(False)
        self._again.append(False)
        end = self._follow(node.body, state)
        return end | self._again.pop(), self._left.pop()

    def _after_try(self, node: ast.Try, state: bool) -> bool:
        outer, self._raised = self._raised, state
        done = self._follow(node.body, state)
        raised = self._raised
        done = self._follow(node.orelse, done)
        for handler in node.handlers:
            done |= self._follow([handler], raised)
        ended = self._follow(node.finalbody, self._raised)  # it may come from any place
        if self._left and any(isinstance(n, (ast.Break, ast.Continue)) for n in ast.walk(node)):
            self._left[-1] |= ended  # what is done at last is done before these, too
            self._again[-1] |= ended
        self._raised |= outer
        return self._follow(node.finalbody, done)

    _after_trystar = _after_try

    def _after_return(self, node: ast.Return | ast.Raise, state: bool) -> bool:
        self._follow(ast.iter_child_nodes(node), state)
        return False

    _after_raise = _after_return

    def _after_break(self, _node: ast.Break, state: bool) -> bool:
        self._left[-1] |= state
        return False

    def _after_continue(self, _node: ast.Continue, state: bool) -> bool:
        self._again[-1] |= state
        return False
