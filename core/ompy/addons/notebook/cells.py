"""A cell as a program: its name, its lines as the notebook numbers them, its code."""

from __future__ import annotations

import ast
import linecache
from types import CodeType
from typing import Any, Final

END: Final = "# the end of the cell"


class Cell:
    """One cell.

    The line with `%%ompy` is line 1, as in the notebook; it is a comment here. Behind the last line
    is one for those who have come to the end.

    Attributes:
        name: what tracebacks and reports call it, as in `In[3]`.
        text: its lines.
        end: the number of the line behind the last.
    """

    def __init__(self, name: str, options: str, body: str) -> None:
        """Take a cell.

        Args:
            name: of it.
            options: what stands behind `%%ompy`.
            body: the lines below.
        """
        self.name = name
        below = body if body.endswith("\n") else f"{body}\n"
        self.text = f"# %%ompy {options}".rstrip() + f"\n{below}"
        self.end = self.text.count("\n") + 1

    def keep_source(self) -> None:
        """Have its lines found by its name in this process, as those of a file are."""
        lines = [*self.text.splitlines(keepends=True), f"{END}\n"]
        linecache.cache[self.name] = (len(self.text), None, lines, self.name)

    def codes(self) -> tuple[CodeType, CodeType | None]:
        """All of it, and apart from that the expression at its end whose value is shown.

        Raises:
            SyntaxError: it is no Python.
        """
        tree = ast.parse(self.text, self.name)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not self._is_quiet():
            final = tree.body.pop()
            assert isinstance(final, ast.Expr), "it was looked at"
            last = compile(ast.Expression(final.value), self.name, "eval", dont_inherit=True)
        return compile(tree, self.name, "exec", dont_inherit=True), last

    def _is_quiet(self) -> bool:
        return self.text.rstrip().endswith(";")

    def end_code(self, call: str) -> CodeType:
        """A call of a function without arguments, at the line behind the last."""
        return compile("\n" * (self.end - 1) + f"{call}()", self.name, "exec", dont_inherit=True)

    def run_in(self, namespace: dict[str, Any]) -> None:
        """Run it, and print the value of an expression at its end.

        Raises:
            BaseException: what it raises.
        """
        all_but, last = self.codes()
        exec(all_but, namespace)  # noqa: S102 - that is what a notebook does
        if last is not None:
            value = eval(last, namespace)  # noqa: S307 - likewise
            if value is not None:
                namespace["_"] = value
                print(repr(value))
