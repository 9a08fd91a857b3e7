"""The hot modules keep the form that runs interpreted and compiles."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ompy.cli.building.sources import Source, attributes, mark, methods
from ompy.cli.hot import HOT, INLINE, SHARED
from ompy.compiled_loader import is_compiled

ROOT = Path(__file__).resolve().parents[2]
ROOTS = (ROOT / "core", ROOT / "components")
WRITTEN_TWICE = [path for root in ROOTS for path in sorted(root.rglob("*.pxd"))]
NAMES = sorted(HOT.keys() - {SHARED})
CLOSURES = (ast.FunctionDef, ast.Lambda, ast.GeneratorExp)


def path_of(name: str) -> Path:
    found = (root.joinpath(*name.split(".")).with_suffix(".py") for root in ROOTS)
    return next(path for path in found if path.exists())


def source_of(name: str) -> Source:
    return Source(name, path_of(name).read_text())


@pytest.mark.parametrize("name", NAMES)
def test_a_class_has_the_attributes_that_it_declares_and_no_others(name: str) -> None:
    """Those of its body are its slots, interpreted as compiled."""
    source = source_of(name)
    for node in source.classes.values():
        (slots,) = [
            item.value
            for item in node.body
            if isinstance(item, ast.Assign) and ast.unparse(item.targets[0]) == "__slots__"
        ]
        if attributes(node):
            assert re.fullmatch(
                r"tuple\(__annotations__\)|\(\*__annotations__, '__\w+__'\)", ast.unparse(slots)
            )
        else:
            assert ast.literal_eval(slots) in ((), ("__weakref__",))


@pytest.mark.parametrize("path", WRITTEN_TWICE, ids=lambda path: path.stem)
def test_what_is_written_twice_has_the_same_functions(path: Path) -> None:
    """Those a module takes from `raw` and its like, whichever form it has."""
    tree = ast.parse(path.with_suffix(".py").read_text())
    there = {node.name: len(node.args.args) for node in tree.body if is_function(node)}
    inline = re.findall(r"^cdef inline .*?(\w+)\(([^)]*)\)", path.read_text(), re.MULTILINE)
    declared = {name: len([part for part in row.split(",") if part]) for name, row in inline}
    assert declared
    for name, count in there.items():
        assert declared.get(name) == count, f"{path.stem}.{name}"


def is_function(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and not node.name.startswith("_")


def test_the_list_of_them_is_whole() -> None:
    assert {*INLINE} == {path.stem for path in WRITTEN_TWICE}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_that_would_not_compile(name: str) -> None:
    """What is called both ways may hold no closure; cython is never named in the source."""
    source = source_of(name)
    assert "import cython" not in path_of(name).read_text()
    marked = [*source.functions.values()]
    marked += [item for node in source.classes.values() for item in methods(node)]
    for item in marked:
        if mark(item) == "ccall":
            inner = [one for one in ast.walk(item) if one is not item and isinstance(one, CLOSURES)]
            assert not inner, f"{item.name} holds a closure"


@pytest.mark.parametrize("name", NAMES)
def test_no_number_of_c_is_shifted(name: str) -> None:
    """Compiled, the 1 of `1 << bits` is of 32 bits, and so is what comes out."""
    source = source_of(name)
    places: list[ast.AST] = [*source.functions.values(), *source.constants.values()]
    places += [item for node in source.classes.values() for item in methods(node)]
    for place in places:
        for one in ast.walk(place):
            match one:
                case ast.BinOp(
                    left=ast.Constant(), op=ast.LShift(), right=ast.Name() | ast.Attribute()
                ):
                    pytest.fail(f"line {one.lineno}: {ast.unparse(one)}")


@pytest.mark.parametrize("name", NAMES)
def test_the_form_under_test_is_the_one_asked_for(name: str) -> None:
    module = importlib.import_module(name)
    compiled = os.environ.get("OMPY_TEST_COMPILED") == "1"
    assert is_compiled(name) == compiled
    assert module.__file__ is not None
    assert module.__file__.endswith(f"{name.rpartition('.')[2]}.py")


def test_sources_are_used_where_the_environment_asks_for_them() -> None:
    """In the compiled run there is a shared object whose finder would come first."""
    program = "import importlib\nfrom ompy.compiled_loader import is_compiled\n" + "".join(
        f"print(is_compiled(importlib.import_module({name!r}).__name__))\n" for name in NAMES
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "OMPY_PURE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False"] * len(NAMES)
    assert len(NAMES) > 10


def test_a_strangers_python_subclass_plugs_into_the_bases() -> None:
    """Overriding in plain Python works whatever form the base has."""
    from ompy.data.request import Waitable
    from ompy.engine.base import Engine, Poller

    class Mine(Poller):
        polls = 0

        def poll(self) -> int:
            self.polls += 1
            return 1

        def arm(self) -> bool:
            return self.polls > 2

    class Quiet(Engine):
        def now(self) -> int:
            return 5

    engine = Quiet(None)
    mine = Mine()
    engine.add_poller(mine)
    assert engine.poll_all() == 1
    assert not engine.arm_pollers()
    assert engine.poll_all() + engine.poll_all() == 2
    assert engine.arm_pollers()
    said = []
    waitable = Waitable()
    engine.call_later(0, waitable.finish)
    waitable.notify(lambda: said.append(1))
    assert engine.poll_all() == 2
    assert said == [1]


def test_a_strangers_python_btl_carries_messages() -> None:
    """A BTL module written in plain Python works under ob1, compiled or not."""
    from ompy.frameworks.btl import BtlModule
    from ompy_components.btl.self.module import SelfModule

    from tests.sim.p2p import programs
    from tests.support.worlds import virtual

    class Stranger(SelfModule):
        sent = 0

        def send(self, endpoint, descriptor, tag):
            type(self).sent += 1
            return super().send(endpoint, descriptor, tag)

        def sendi(self, *arguments):
            type(self).sent += 1
            return super().sendi(*arguments)

    assert issubclass(Stranger, BtlModule)
    import ompy_components.btl.self.module as module

    original = module.SelfModule
    module.SelfModule = Stranger
    try:
        virtual(1, programs.ring, btl="self")
    finally:
        module.SelfModule = original
    assert Stranger.sent > 20


def test_ompy_info_counts_the_modules_there_are() -> None:
    """And those that are compiled are those that Python would take so."""
    from ompy.cli.forms import hot_modules

    assert hot_modules() == dict.fromkeys(NAMES, os.environ.get("OMPY_TEST_COMPILED") == "1")
