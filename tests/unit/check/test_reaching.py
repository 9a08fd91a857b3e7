"""Which reads see what a place gave: beside programs that are run, and the cases that matter."""

from __future__ import annotations

import ast
import random
import sys
from collections.abc import Callable
from contextlib import suppress
from textwrap import dedent, indent

import pytest
from ompy.check.analysis.reaching import reads_of


def _stores(scope: ast.AST, name: str = "x") -> dict[int, ast.Name]:
    """What is assigned to, by line."""
    return {
        each.lineno: each
        for each in ast.walk(scope)
        if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store)
    }


def _lines(scope: ast.AST, given: ast.AST, name: str = "x") -> set[int]:
    return {each.lineno for each in reads_of(scope, name, given)}  # type: ignore[attr-defined]


class _Programs:
    """Random functions: `put(n)` gives a value that says its line, `see(n, x)` reads it."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def function(self) -> str:
        return f"def run():\n    x = put()\n{indent(self._block(0, loop=False), '    ')}"

    def _block(self, depth: int, loop: bool) -> str:
        return "".join(self._statement(depth, loop) for _ in range(self._rng.randint(1, 4)))

    def _statement(self, depth: int, loop: bool) -> str:
        plain = ["x = put()\n", "see(x)\n", "see(x)\n", "trip()\n", "if choose(): return\n"]
        plain += ["x = see(x) or put()\n", "keep = [see(x) for x in (put(),)]\n"]
        plain += ["(x := put()) and see(x)\n", "choose() and (x := put())\n"]
        if loop:
            plain += ["if choose(): break\n", "if choose(): continue\n"]
        if depth > 2 or self._rng.random() < 0.55:
            return self._rng.choice(plain)
        kind = self._rng.choice(["if", "while", "for", "try", "finally", "match", "forever"])
        one = indent(self._block(depth + 1, loop or kind in {"while", "for", "forever"}), "    ")
        two = indent(self._block(depth + 1, loop), "    ")
        return {
            "if": f"if choose():\n{one}else:\n{two}",
            "while": f"while choose():\n{one}else:\n{two}",
            "for": f"for x in some():\n{one}else:\n{two}",
            "try": f"try:\n{one}except KeyError:\n{two}else:\n    see(x)\n",
            "finally": f"try:\n{one}finally:\n{two}",
            "match": f"match which():\n    case 0:\n{indent(one, '    ')}    case 1:\n"
            + indent(two, "    "),
            "forever": f"while True:\n{one}    if choose(): break\nsee(x)\n",
        }[kind]


def _run(text: str, rng: random.Random) -> set[tuple[int, int]]:
    """The lines that gave what each line read, in one run."""
    seen: set[tuple[int, int]] = set()
    steps = 0

    def line() -> int:
        return sys._getframe(2).f_lineno  # of who called the function that asks

    def put() -> list[int]:
        return [line()]

    def see(value: list[int]) -> None:
        nonlocal steps
        steps += 1
        if steps > 200:
            raise TimeoutError
        seen.add((value[0], line()))

    def choose() -> bool:
        nonlocal steps
        steps += 1
        if steps > 200:
            raise TimeoutError
        return rng.random() < 0.5

    def some() -> list[list[int]]:
        return [[line()]] * rng.randint(0, 2)

    def trip() -> None:
        if rng.random() < 0.3:
            raise KeyError

    names: dict[str, Callable[..., object]] = {
        "put": put, "see": see, "choose": choose, "some": some, "trip": trip,
        "which": lambda: rng.randint(0, 2),
    }  # fmt: skip
    exec(compile(text, "program", "exec"), names)
    with suppress(KeyError, TimeoutError):
        names["run"]()
    return seen


@pytest.mark.parametrize("seed", range(100))
def test_no_read_is_missed(seed: int) -> None:
    rng = random.Random(seed)
    text = _Programs(rng).function()
    function = ast.parse(text).body[0]
    known = {
        (line, read)
        for line, store in _stores(function).items()
        for read in _lines(function, store)
    }
    met: set[tuple[int, int]] = set()
    for _ in range(60):
        met |= _run(text, rng)
    assert met <= known, text


CASES = {
    "another branch": ("if a:\n    x = 1\n    see(x)\nelse:\n    x = 2\n    see(x)", {3}),
    "bound anew": ("x = 1\nx = 2\nsee(x)", set()),
    "perhaps bound anew": ("x = 1\nif a:\n    x = 2\nsee(x)", {4}),
    "bound anew in both": ("x = 1\nif a:\n    x = 2\nelse:\n    x = 3\nsee(x)", set()),
    "a loop comes again": ("while a:\n    see(x)\n    x = 1", {2}),
    "bound first in a loop": ("for y in z:\n    x = 1\nfor x in z:\n    see(x)\n", set()),
    "a loop may not run": ("x = 1\nfor x in z:\n    pass\nsee(x)", {4}),
    "after an endless loop": ("x = 1\nwhile True:\n    x = 2\n    if a: break\nsee(x)", set()),
    "returned before": ("if a:\n    x = 1\n    return x\nsee(x)", {3}),
    "a function within": ("x = 1\nx = 2\ndef f():\n    return x", {4}),
    "a lambda": ("x = 1\nx = 2\nf = lambda: x", {3}),
    "of a comprehension": ("x = 1\ny = [x for x in z]\nsee(x)", {3}),
    "an error in between": ("try:\n    x = 1\n    x = f()\nexcept E:\n    see(x)", {5}),
    "a pattern": ("x = 1\nmatch a:\n    case [x]:\n        see(x)\nsee(x)", {5, 4}),
    "deleted": ("x = 1\ndel x\nsee(x)", set()),
    "added to": ("x = 1\nx += 2\nsee(x)", {3}),
}


@pytest.mark.parametrize("name", CASES)
def test_reads_that_see_it(name: str) -> None:
    text, expected = CASES[name]
    function = ast.parse(f"def run(a, z):\n{indent(dedent(text), '    ')}").body[0]
    store = next(one for line, one in sorted(_stores(function).items()) if line > 1)
    assert {line - 1 for line in _lines(function, store)} == expected


def test_a_parameter_is_read_until_it_is_bound_anew() -> None:
    function = ast.parse("def run(x):\n    see(x)\n    x = 2\n    see(x)").body[0]
    assert isinstance(function, ast.FunctionDef)
    assert _lines(function, function.args.args[0]) == {2}
