"""What becomes of requests for messages: who waits for them, and what he does with the messages."""

from __future__ import annotations

import ast

from ompy.check.analysis.flow_base import FlowBase
from ompy.check.analysis.program_tree import OWN, init_of, parameters_of
from ompy.check.analysis.source_tree import called_name
from ompy.check.analysis.use_words import ENDING, MANY, MESSAGE_AT, Use, worst


class RequestUses(FlowBase):
    """Follows requests."""

    def use_of_request(self, node: ast.AST) -> Use:
        """What is done with an expression that is a request for a message, or a list of them."""
        parent = self.parents.get(node, self.tree)
        if isinstance(parent, ast.Call):
            return self._request_in_call(parent, node)
        if isinstance(parent, ast.Attribute):
            return self._request_in_attribute(parent)
        if isinstance(parent, (ast.ListComp, ast.List)):
            return self.use_of_request(parent)
        targets: list[ast.expr] = []
        if isinstance(parent, ast.Assign):
            targets = parent.targets
        elif isinstance(parent, (ast.For, ast.comprehension)) and node is parent.iter:
            targets = [parent.target]
        return worst(map(self._use_of_requests, targets)) if targets else Use.ANYTHING

    def _request_in_attribute(self, parent: ast.Attribute) -> Use:
        call = self.parents[parent]
        if parent.attr == "wait":
            return self.use_of_item(call)
        if parent.attr in MESSAGE_AT:
            return self._use_of_several(call, parent.attr)
        return Use.ORDER_FREE if parent.attr in ENDING else Use.ANYTHING

    def _request_in_call(self, parent: ast.Call, node: ast.AST) -> Use:
        name = called_name(parent)
        if name in {"waitall", "Waitall"}:
            return self.use_of_bag(parent)
        if name in MESSAGE_AT:
            return self._use_of_several(parent, name)
        if name == "append" and isinstance(parent.func, ast.Attribute):
            return self._use_of_requests(parent.func.value)
        made = self.constructor(parent.func)
        init = None if made is None else init_of(made)
        functions = self.functions(parent.func) if init is None else [init]
        if not functions or node not in parent.args:
            return Use.ANYTHING
        place = parent.args.index(node)
        return worst(self._use_of_given_request(each, place) for each in functions)

    def _use_of_given_request(self, function: ast.AST, place: int) -> Use:
        parameters = parameters_of(function)
        place += bool(parameters) and parameters[0].arg in OWN
        if place >= len(parameters):
            return Use.ANYTHING
        name = parameters[place].arg
        loads = self._loads("requests", parameters[place], name)
        return worst(map(self.use_of_request, loads))

    def _use_of_several(self, call: ast.AST, name: str) -> Use:
        """What is done with the messages in what a test, or a wait for one of several, returns."""
        outer, place = self.parents.get(call), MESSAGE_AT[name]
        if isinstance(outer, ast.Subscript) and isinstance(outer.slice, ast.Constant):
            if outer.slice.value != place:
                return Use.ORDER_FREE
            return self.use_of_bag(outer) if name in MANY else self.use_of_item(outer)
        target = outer.targets[0] if isinstance(outer, ast.Assign) else None
        if not isinstance(target, ast.Tuple) or len(target.elts) <= place:
            return Use.ANYTHING
        message = target.elts[place]
        return (
            self.use_of_container(message) if name in MANY else self.use_of_target(message, False)
        )

    def _use_of_requests(self, node: ast.AST) -> Use:
        of_object = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if not isinstance(node, ast.Name) and not of_object:
            return Use.ANYTHING
        return worst(map(self.use_of_request, self._loads("requests", node, ast.unparse(node))))
