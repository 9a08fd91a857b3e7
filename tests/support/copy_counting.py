"""Counting the bytes that ompy's own code copies, whoever copies them.

The modules are imported in another form, in which every expression that may copy bytes says so:
a slice that is stored, a slice of bytes, a sum of bytes, `bytes`, `bytearray`, `join`,
`tobytes`. So a copy that somebody adds is counted without his help. To be used in a process of
its own, before ompy is imported; interpreted modules only.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("ompy", "ompy_components")
PAYLOAD = 512  # bytes; larger than any header, smaller than any piece of a message in the tests
MAKERS = {"bytes", "bytearray"}
METHODS = {"join", "tobytes"}

counted: Counter[str] = Counter()


def _count(size: int) -> None:
    if size >= PAYLOAD:
        counted[sys._getframe(2).f_globals["__name__"]] += size


def _store(target: Any, place: slice, value: Any) -> None:
    if isinstance(target, (bytearray, memoryview)) or type(target).__name__ == "mmap":
        _count(len(memoryview(value).cast("B")) if len(value) else 0)
    target[place] = value


def _made(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray)):
        _count(len(value))
    return value


def _maker(function: Any, *args: Any, **more: Any) -> Any:
    value = function(*args, **more)
    if args and not isinstance(args[0], int):
        _count(len(value))
    return value


class _Instrument(ast.NodeTransformer):
    """Puts the counting functions around what may copy."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        target = node.targets[0]
        if len(node.targets) > 1 or not _is_sliced(target):
            return node
        place = target.slice
        ends = [end or ast.Constant(None) for end in (place.lower, place.upper, place.step)]
        made = ast.Call(ast.Name("_copying_slice", ast.Load()), ends, [])
        return ast.Expr(_call("_copying_store", _loaded(target.value), made, node.value))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in MAKERS:
            return ast.Call(
                ast.Name("_copying_maker", ast.Load()), [node.func, *node.args], node.keywords
            )
        if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            return _call("_copying_made", node)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _call("_copying_made", node) if isinstance(node.op, ast.Add) else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        loaded = isinstance(node.ctx, ast.Load) and _is_sliced(node)
        return _call("_copying_made", node) if loaded else node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return node


def _is_sliced(node: ast.AST) -> Any:
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def _loaded(node: ast.expr) -> ast.expr:
    return node


class _Loader(SourceFileLoader):
    """Compiles the other form; never from or to a cache."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        tree = _Instrument().visit(ast.parse(self.get_data(path), path))
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: object = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in PACKAGES:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is None or spec.origin is None:
            return spec
        spec.loader = _Loader(fullname, spec.origin)
        return spec


def install() -> None:
    """Import ompy's modules in the counting form from now on."""
    assert not any(name.partition(".")[0] in PACKAGES for name in sys.modules)
    vars(builtins).update(
        _copying_slice=slice, _copying_store=_store, _copying_made=_made, _copying_maker=_maker
    )
    sys.meta_path.insert(0, _Finder())


def copies_of(cases: Sequence[Mapping[str, object]]) -> list[dict[str, int]]:
    """By case, the bytes each module copied: counted in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.sim.ob1.copies", json.dumps(cases)],
        cwd=ROOT,
        env={**os.environ, "OMPY_PURE": "1"},  # else the finder of compiled modules comes first
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, int]] = json.loads(done.stdout)
    return found
