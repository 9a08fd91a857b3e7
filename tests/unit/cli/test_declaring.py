"""The declarations for the compiler are what the annotations of a source say."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from ompy.cli.building.constants import Constants
from ompy.cli.building.declaring import Declarations
from ompy.cli.building.preparing import compilable
from ompy.cli.building.sources import SourceError, Tree

from tests.support.effort import THOROUGH

ROOT = Path(__file__).resolve().parents[3]
BASE = '''
"""A base."""
from __future__ import annotations
from struct import Struct
from typing import Final
from ompy.compiled import U64, Shown, U64View, ccall, cclass

HEADER = Struct("<BBHiQ")
SIZE = HEADER.size
MASK = (1 << 64) - 1
LOW = -2
WIDE = 1 << 64
TEXT = "text"
FLAG = True
GIVEN: Final[int] = int(TEXT)
TABLE: Final[dict[str, int]] = {TEXT: 1}
NAMED: Final[str] = TEXT
Pair = tuple[int, int]
Either = int | str
counted = 0

def count() -> None:
    global counted
    counted += 1

@cclass
class Base:
    """It has a place.

    Attributes:
        place: of it.
    """

    place: int
    _hidden: int
    _seen: Shown[int | None]
    words: U64View
    __slots__ = (*__annotations__, "__weakref__")

    @ccall
    def go(self, to: U64, fast: bool = False) -> bool:
        return fast

@ccall
def both(one: int | None, other: list[int]) -> U64:
    return 0

@ccall
def weigh(pair: Pair, either: Either) -> float:
    return 0.5
'''
LAYOUTS = """
LAYOUT = HeaderLayout("a.b", "one u8, pad 3, two i64, " "three b5")
PACKED: Final = LAYOUT.struct
WHOLE: Final = LAYOUT.size
LENGTH: Final = PACKED.size
MADE = HeaderLayout("a.b", fields)
UNKNOWN: Final = MADE.size
"""
HEIR = """
from __future__ import annotations
from typing import TYPE_CHECKING
from ompy import raw
from ompy.base import GIVEN, LOW, MASK, SIZE, TABLE, TEXT, WIDE, Base as Parent, both
from ompy.compiled import DECLARING, ccall, cclass, cfunc
from ompy.mpi.buffers import plainer, scalars
from ompy.plain import Plain

if TYPE_CHECKING:
    from ompy.base import Base as Unknown
if DECLARING:
    from ompy.base import Base as Known

_TWICE = SIZE * 2
OWN = _TWICE | 1

@cclass
class Heir(Parent):
    known: Known | None
    unknown: Unknown
    plain: Plain
    table: dict[int, Heir] | None
    number: int | None
    lent: raw.Lent
    __slots__ = tuple(__annotations__)

    if TYPE_CHECKING:
        place: int

    @ccall
    def go(self, to: int, fast: bool = False) -> bool:
        size: int = SIZE
        found = self.lookup(to)
        assert isinstance(found, Heir)
        maybe = self.lookup(to)
        if maybe is None:
            return fast
        assert isinstance(maybe, Heir)
        kept: list[int] = [size]
        return bool(kept)

    @cfunc
    def lookup(self, to: int) -> object:
        return None

@cclass
class Empty:
    pass
"""
WRITTEN = 'cdef extern from *:\n    ctypedef struct Lent "Py_buffer":\n        pass\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    package = tmp_path / "ompy"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "base.py").write_text(BASE)
    (package / "heir.py").write_text(HEIR)
    (package / "plain.py").write_text("class Plain:\n    pass\n")
    (package / "mpi" / "buffers").mkdir(parents=True)
    (package / "mpi" / "buffers" / "scalars.py").write_text("@ccall\ndef count() -> int: ...\n")
    (package / "mpi" / "buffers" / "plainer.py").write_text("@ccall\ndef count() -> int: ...\n")
    (package / "raw.py").write_text("")
    (package / "raw.pxd").write_text(WRITTEN)
    return tmp_path


def declared(tree: Path, name: str) -> list[str]:
    read = Tree(tree)
    text = Declarations(read, Constants(read), name).text()
    return [line for line in text.splitlines() if line]


def test_a_base(tree: Path) -> None:
    assert declared(tree, "ompy.base") == [
        "cimport cython",
        "cdef long long SIZE",
        "cdef unsigned long long MASK",
        "cdef long long LOW",
        "cdef long long GIVEN",
        "cdef dict TABLE",
        "cdef class Base:",
        "    cdef public long long place",
        "    cdef long long _hidden",
        "    cdef public object _seen",
        "    cdef unsigned long long[::1] words",
        "    cdef object __weakref__",
        "    cpdef bint go(self, unsigned long long to, bint fast=*) except -1",
        "cpdef unsigned long long both(one, list other) except? 99",
        "cpdef double weigh(tuple pair, either) except? -99",
    ]


def test_one_that_is_derived(tree: Path) -> None:
    """Of modules those are known that are compiled, too."""
    assert declared(tree, "ompy.heir") == [
        "cimport cython",
        "from ompy cimport raw",
        "from ompy.base cimport Base as Known, Base as Parent, both",
        "from ompy.mpi.buffers cimport scalars",
        "cdef long long GIVEN",
        "cdef long long LOW",
        "cdef unsigned long long MASK",
        "cdef long long SIZE",
        "cdef long long _TWICE",
        "cdef long long OWN",
        "cdef class Heir(Parent):",
        "    cdef public Known known",
        "    cdef public object unknown",
        "    cdef public object plain",
        "    cdef public dict table",
        "    cdef public object number",
        "    cdef raw.Lent lent",
        '    @cython.locals(size="long long", kept="list", found="Heir")',
        "    cpdef bint go(self, long long to, bint fast=*) except -1",
        "    cdef lookup(self, long long to)",
        "cdef class Empty:",
        "    pass",
    ]


def test_constants(tree: Path) -> None:
    constants = Constants(Tree(tree))
    values = {name: constants.value("ompy.base", name) for name in ("SIZE", "MASK", "LOW", "WIDE")}
    assert values == {"SIZE": 16, "MASK": (1 << 64) - 1, "LOW": -2, "WIDE": 1 << 64}
    for name in ("TEXT", "FLAG", "counted", "HEADER", "GIVEN", "missing"):
        assert constants.value("ompy.base", name) is None
    assert constants.value("ompy.heir", "OWN") == 33
    assert constants.value("elsewhere", "OWN") is None


def test_a_constant_that_is_made_of_itself_is_none(tree: Path) -> None:
    (tree / "ompy" / "base.py").write_text("from ompy.heir import TO\nFROM = TO\n")
    (tree / "ompy" / "heir.py").write_text("from ompy.base import FROM\nTO = FROM\n")
    assert Constants(Tree(tree)).value("ompy.base", "FROM") is None


def test_sizes_of_headers_that_are_declared(tree: Path) -> None:
    (tree / "ompy" / "layouts.py").write_text(LAYOUTS)
    constants = Constants(Tree(tree))
    values = [constants.value("ompy.layouts", name) for name in ("WHOLE", "LENGTH", "UNKNOWN")]
    assert values == [17, 17, None]


@pytest.mark.parametrize(
    ("module", "name", "size"),
    [
        ("pml.ob1.headers", "MATCH_SIZE", 16),
        ("pml.ob1.headers", "UNION_SIZE", 56),
        ("pml.bfo.headers", "_FIN_SIZE", 40),
        ("btl.tcp.framing", "REMOTE_SIZE", 40),
    ],
)
def test_headers_of_hot_modules_have_known_sizes(module: str, name: str, size: int) -> None:
    """They are numbers in C where they are compiled."""
    constants = Constants(Tree(ROOT / "components"))
    assert constants.value(f"ompy_components.{module}", name) == size


def test_what_is_compiled_has_every_line_in_its_place(tree: Path) -> None:
    for text in (BASE, HEIR):
        made = compilable("ompy.any", text, ["SIZE", "LOW"])
        before, after = text.splitlines(), made.splitlines()
        assert after[-1] == "globals().update(SIZE=SIZE, LOW=LOW)"
        assert len(after) == len(before) + 1
        same = [one for one, other in zip(before, after, strict=False) if one == other]
        assert [line for line in after if line and line not in before][:-1] == [
            line for line in after if line.lstrip().startswith("__slots__")
        ]
        assert len(same) > len(before) // 2
        names = {node.id for node in ast.walk(ast.parse(made)) if isinstance(node, ast.Name)}
        assert not {"cclass", "ccall", "cfunc", "TYPE_CHECKING"} & names - {"TYPE_CHECKING"}
    assert "    __slots__ = ('place', '_hidden', '_seen', 'words', '__weakref__')\n" in compilable(
        "ompy.base", BASE
    )


def test_memory_of_recycled_instances_is_kept() -> None:
    text = (
        "from __future__ import annotations\n\n@recycled\n@cclass\nclass One:\n    at: int\n"
        "@recycled\n@other\nclass Two:\n    pass\n"
    )
    assert compilable("one", text) == (
        "from __future__ import annotations\n\n\n\nclass One:\n    pass\n"
        "\n@other\nclass Two:\n    pass\n"
        "from ompy.recycling import recycle; recycle(One, Two)\n"
    )


PLAIN = """from __future__ import annotations
from other import Elsewhere

@cclass
class Known:
    at: int

class Public(Known):
    \"\"\"Of Python.\"\"\"

    def Get(self, asked: Known) -> int:
        said: Known = self
        asked: Known = asked
        number: int = 1 << 70
        other: Elsewhere = self

        def inner() -> None:
            unseen: Known = self

        return said.at

    # any comment
    @property
    def kept(self) -> int:
        said: Known | None = self
        return said.at
"""


def test_variables_of_functions_that_are_no_c_have_their_classes(tmp_path: Path) -> None:
    """Numbers stay objects, an argument stays what is given, an inner function is its own."""
    (tmp_path / "one.py").write_text(PLAIN)
    tree = Tree(tmp_path)
    hints = Declarations(tree, Constants(tree), "one").hints()
    lines = PLAIN.splitlines()
    get = lines.index("    def Get(self, asked: Known) -> int:") + 1
    kept = lines.index("    @property") + 1
    assert hints == {get: 'said="Known"', kept: 'said="Known"'}
    made = compilable("one", PLAIN, hints=hints).splitlines()
    assert made[0] == "from __future__ import annotations; import cython"
    assert made[get - 2 : get] == ['    @cython.locals(said="Known")', lines[get - 1]]
    assert made[kept - 2 : kept] == ['    @cython.locals(said="Known")', "    @property"]
    assert len(made) == len(lines)


def test_a_hint_needs_an_empty_line() -> None:
    text = "from __future__ import annotations\nx = 1\ndef f():\n    pass\n"
    with pytest.raises(SourceError, match="line 3: there has to be an empty line before"):
        compilable("one", text, hints={3: 'x="Known"'})


def test_an_instance_may_have_a_dict(tmp_path: Path) -> None:
    text = '@cclass\nclass One:\n    at: int\n    __slots__ = (*__annotations__, "__dict__")\n'
    (tmp_path / "one.py").write_text(text)
    assert "    cdef dict __dict__" in declared(tmp_path, "one")


def test_a_class_of_nothing_but_attributes_is_left_with_pass() -> None:
    text = "@cclass\nclass One:\n    at: int\n    to: int\n"
    assert compilable("one", text) == "\nclass One:\n\n    pass\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("@ccall\ndef f(*more: int) -> None: ...\n", "ompy.base, line 2: f has arguments"),
        ("@ccall\ndef f(a: int, *, b: int) -> None: ...\n", "ompy.base, line 2: f has arguments"),
        ("class A: ...\n@cclass\nclass B(A): ...\n", "line 3: A is no compiled class"),
        ("@cclass\nclass B(x.A): ...\n", r"line 2: x\.A is no compiled class"),
        ("@cclass\nclass B:\n    a.b: int\n", "line 3: not an attribute's name"),
        ("def f(:\n", "ompy.base, line 1: "),
    ],
)
def test_what_cannot_be_compiled_is_told_with_its_place(tree: Path, text: str, told: str) -> None:
    (tree / "ompy" / "base.py").write_text(text)
    with pytest.raises(SourceError, match=told):
        declared(tree, "ompy.base")


@pytest.mark.skipif(not THOROUGH, reason="18 s: tools/nightly.py does it")
def test_the_tool_that_shows_them() -> None:
    command = [sys.executable, "tools/package", "declarations"]
    said = subprocess.run(
        [*command, "ompy.net.memory.ring"], cwd=ROOT, capture_output=True, text=True
    )
    assert "    cpdef long long reserve(self, long long size) except? -99\n" in said.stdout
    said = subprocess.run(
        [*command, "--source", "ompy.net.memory.ring"], cwd=ROOT, capture_output=True, text=True
    )
    assert "\n    def reserve(self, size: int) -> int:\n" in said.stdout
    said = subprocess.run([*command, "ompy.nowhere"], cwd=ROOT, capture_output=True, text=True)
    assert said.returncode == 2
    assert "ompy.nowhere" in said.stderr


def test_a_module_that_is_not_there(tree: Path) -> None:
    with pytest.raises(SourceError, match=r"ompy\.nowhere is to be compiled and is not there"):
        declared(tree, "ompy.nowhere")
