#!/usr/bin/env python3
"""Which class of a component's folder knows which other one, and how much of it: table and drawing.

    python tools/package who_knows_whom components/ompy_components/btl/openib
    python tools/package who_knows_whom components/ompy_components/btl/openib --class Failover
    python tools/package who_knows_whom FOLDER --svg x.svg      pip install -e '.[drawings]' before

A line for each pair of classes, from the types that mypy finds: of an expression of any form, so
through an alias or a loop as well, and also where the import is for types only.

    members   distinct attributes and methods of the other class that are used
    written   how many of these are set from outside
    through   uses of the other class that come by way of a third one: a.b.c
    held as   attributes whose type names the other class
    (types)   the import is for types only: at run time the two are handed to each other
    circle    each of the two knows the other, if by way of others

Folders below belong to it. Functions of a file count as a class that has the file's name. Enums,
tuples with names and exceptions are values, and left out. A base class of the same folder is known
by what `self` takes of it.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mypy import build
from mypy.graph_utils import strongly_connected_components
from mypy.modulefinder import BuildSource
from mypy.nodes import Expression, Import, ImportFrom, MypyFile, TypeInfo, Var
from mypy.options import Options
from mypy.types import (
    Instance,
    TupleType,
    Type,
    TypeVarType,
    UnionType,
    get_proper_type,
)

from tools.repository import ROOT

ROOTS: Final = (ROOT / "core", ROOT / "components")
CIRCLE: Final = "#d64545"
PLAIN: Final = "#64748b"
LABELLED: Final = 4  # arbitrary: members from which on the drawing says how many
Spot = tuple[int, int, int | None, int | None]  # line and column of beginning and end
# lines; arbitrary: more than a file has. mypy does not say of which file an expression is, so
# each file of the folder begins at another line
APART: Final = 10_000
STAGGER: Final = 0.3  # arbitrary: lines between layers of one class do not lie upon each other
INCHES: Final = (1.9, 1.15)  # of the drawing for each class; arbitrary: names do not overlap


@dataclass
class Known:
    """What one class knows of another.

    Attributes:
        holder, known: names of the two.
        members: of the other that it uses.
        written: those of them that it sets.
        through: uses that come by way of a third class.
        held: its attributes that hold the other.
        types_only: imported for types alone.
        circle: the other knows this one, too.
    """

    holder: str
    known: str
    members: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    through: int = 0
    held: set[str] = field(default_factory=set)
    types_only: bool = False
    circle: bool = False


@dataclass
class Folder:
    """What was measured of one.

    Attributes:
        pairs: by holder and known.
        circles: modules that import each other, imports for types included.
        ignored: comments that silence mypy.
        lines: of all files.
    """

    pairs: dict[tuple[str, str], Known] = field(default_factory=dict)
    circles: list[list[str]] = field(default_factory=list)
    ignored: int = 0
    lines: int = 0


def measure(folder: Path, root: Path | None = None) -> Folder:
    """Have mypy read a folder, and see who knows whom in it.

    Args:
        folder: of a component.
        root: that imports begin at; None: one of the repository's.

    Raises:
        SystemExit: mypy finds an error, or the folder is in no root.
    """
    folder = folder.resolve()
    base = root or next((one for one in ROOTS if folder.is_relative_to(one)), None)
    if base is None:
        raise SystemExit(f"{folder} is in none of {', '.join(map(str, ROOTS))}")
    package = ".".join(folder.relative_to(base).parts)
    texts = {
        _module_of(file.relative_to(base)): file.read_text()
        for file in sorted(folder.rglob("*.py"))
    }
    apart = {name: "\n" * (APART * at) + text for at, (name, text) in enumerate(texts.items(), 1)}
    sources = [BuildSource(f"{name}.py", name, text) for name, text in apart.items()]
    result = build.build(sources, _options(base))
    if result.errors:
        raise SystemExit("\n".join(result.errors))
    types = {_place(one): kind for one, kind in result.types.items()}
    found = Folder()
    for name, text in apart.items():
        _Reader(found, result.files[name], package, types).visit(ast.parse(text))
    found.circles = _import_circles([result.files[name] for name in texts])
    found.lines = sum(text.count("\n") for text in texts.values())
    found.ignored = sum(text.count("# type: ignore") for text in texts.values())
    _mark_circles(found)
    return found


def _module_of(file: Path) -> str:
    """What a file is imported as, which is below the root of imports."""
    path = file.parent if file.stem == "__init__" else file.with_suffix("")
    return ".".join(path.parts)


def _options(base: Path) -> Options:
    options = Options()
    options.mypy_path = [str(one) for one in dict.fromkeys((base, *ROOTS))]
    options.namespace_packages = options.explicit_package_bases = True
    options.export_types = options.preserve_asts = True
    options.incremental = False  # what comes from a cache has no expressions
    options.follow_imports = "silent"
    options.ignore_missing_imports = True
    options.check_untyped_defs = True
    options.always_true = ["DECLARING"]  # as pyproject.toml has it
    return options


# -- reading


class _Reader(ast.NodeVisitor):
    """Reads one file, of which each class is a holder, and the functions together are another.

    Names and places are Python's own; mypy says of which type the expression at a place is.
    """

    def __init__(
        self, found: Folder, tree: MypyFile, package: str, types: dict[Spot, Type]
    ) -> None:
        self._found = found
        self._tree = tree
        self._package = package
        self._types = types
        self._holder = f"{tree.fullname.rpartition('.')[2]}.py"
        self._class: TypeInfo | None = None
        self._for_types = _imported_for_types(tree)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """What is in a class is the class's."""
        if self._class is not None:
            self.generic_visit(node)
            return
        info = self._tree.names[node.name].node
        assert isinstance(info, TypeInfo)
        before, self._holder, self._class = self._holder, node.name, info
        for base in info.mro[1:]:
            if self._is_ours(base):
                self._pair(base).held.add("(base)")
        for name, symbol in info.names.items():
            if isinstance(symbol.node, Var) and symbol.node.type is not None:
                for known in self._named(symbol.node.type):
                    self._pair(known).held.add(name)
        self.generic_visit(node)
        self._holder, self._class = before, None

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """`node.value` is of a class, and `node.attr` a member of it."""
        if _is_super(node.value) and self._class is not None:
            self._inherited(node, self._class)
        for known in self._classes_of(node.value):
            if known is not self._class:
                self._uses(known, node)
            elif isinstance(node.value, ast.Name) and node.attr not in known.names:
                self._inherited(node, known)
        self.generic_visit(node)

    def _uses(self, known: TypeInfo, node: ast.Attribute) -> None:
        pair = self._pair(known)
        self._member(pair, node)
        if isinstance(node.value, ast.Attribute):
            others = self._classes_of(node.value.value)
            pair.through += any(one is not self._class for one in others)

    @staticmethod
    def _member(pair: Known, node: ast.Attribute) -> None:
        pair.members.add(node.attr)
        if not isinstance(node.ctx, ast.Load):
            pair.written.add(node.attr)

    def _inherited(self, node: ast.Attribute, info: TypeInfo) -> None:
        """A member of `self` that a base class has."""
        base = next((one for one in info.mro[1:] if node.attr in one.names), None)
        if base is not None and self._is_ours(base):
            self._member(self._pair(base), node)

    def _classes_of(self, node: ast.expr) -> list[TypeInfo]:
        kind = self._types.get(_spot(node))
        return [] if kind is None else list(self._named(kind, inside=False))

    def _named(self, kind: Type, *, inside: bool = True) -> Iterator[TypeInfo]:
        """The folder's classes that a type names; `inside`: also as a container's items."""
        proper = get_proper_type(kind)
        parts: Iterable[Type] = ()
        if isinstance(proper, Instance):
            if self._is_ours(proper.type) and not _is_value(proper.type):
                yield proper.type
            parts = proper.args if inside else ()
        elif isinstance(proper, UnionType):
            parts = proper.items
        elif isinstance(proper, TypeVarType):
            parts = (proper.upper_bound,)
        elif isinstance(proper, TupleType) and inside:
            parts = proper.items
        for part in parts:
            yield from self._named(part, inside=inside)

    def _is_ours(self, info: TypeInfo) -> bool:
        return f"{info.module_name}.".startswith(f"{self._package}.")

    def _pair(self, known: TypeInfo) -> Known:
        pair = Known(self._holder, known.name, types_only=known.module_name in self._for_types)
        if known is self._class:
            return pair  # itself: of no interest
        return self._found.pairs.setdefault((self._holder, known.name), pair)


def _place(one: Expression) -> Spot:
    return one.line, one.column, one.end_line, one.end_column


def _spot(node: ast.expr) -> Spot:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def _is_super(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Name) and called.id == "super"


def _is_value(info: TypeInfo) -> bool:
    return info.is_enum or info.is_named_tuple or info.has_base("builtins.BaseException")


def _imported_for_types(tree: MypyFile) -> set[str]:
    """Modules that a file imports under TYPE_CHECKING and nowhere else."""
    found: dict[str, bool] = {}
    for one in tree.imports:
        names: list[str] = []
        if isinstance(one, ImportFrom):
            names = [one.id, *(f"{one.id}.{name}" for name, _ in one.names)]
        elif isinstance(one, Import):
            names = [name for name, _ in one.ids]
        for name in names:
            found[name] = found.get(name, True) and one.is_mypy_only
    return {name for name, only in found.items() if only}


# -- circles


def _circles(edges: dict[str, list[str]]) -> list[list[str]]:
    found = strongly_connected_components(set(edges), edges)
    return sorted(sorted(part) for part in found if len(part) > 1)


def _import_circles(trees: list[MypyFile]) -> list[list[str]]:
    known = {tree.fullname for tree in trees}
    edges = {}
    for tree in trees:
        named: set[str] = set()
        for one in tree.imports:
            if isinstance(one, ImportFrom):
                named |= {one.id, *(f"{one.id}.{name}" for name, _ in one.names)}
            elif isinstance(one, Import):
                named |= {name for name, _ in one.ids}
        edges[tree.fullname] = sorted((named & known) - {tree.fullname})
    return [[name.rpartition(".")[2] for name in part] for part in _circles(edges)]


def _mark_circles(found: Folder) -> None:
    edges: dict[str, list[str]] = {}
    for holder, known in found.pairs:
        edges.setdefault(holder, []).append(known)
        edges.setdefault(known, [])
    for part in _circles(edges):
        for (holder, known), pair in found.pairs.items():
            pair.circle = pair.circle or (holder in part and known in part)


# -- telling


def table(found: Folder, least: int) -> str:
    """A line for each pair, those with most members first, and what they come to."""
    pairs = sorted(found.pairs.values(), key=lambda one: (-len(one.members), one.holder, one.known))
    shown = [one for one in pairs if len(one.members) >= least]
    width = max((len(_arrow(one)) for one in shown), default=0)
    lines = [f"{'':{width}} members written through  held as"]
    for one in shown:
        counts = f"{len(one.members):7} {len(one.written):7} {one.through:7}"
        marks = " (types)" * one.types_only + " circle" * one.circle
        lines.append(f"{_arrow(one):{width}} {counts}  {', '.join(sorted(one.held))}{marks}")
    circles = "; ".join(", ".join(part) for part in found.circles) or "none"
    in_circles = {name for one in pairs if one.circle for name in (one.holder, one.known)}
    lines += [
        "",
        f"{found.lines} lines, {len(pairs)} pairs, {sum(one.circle for one in pairs)} in circles of"
        f" {len(in_circles)} classes, {sum(one.through for one in pairs)} uses through a third",
        f"imports in a circle, those for types included: {circles}",
        f"comments that silence mypy: {found.ignored}",
    ]
    return "\n".join(lines)


def _arrow(one: Known) -> str:
    return f"{one.holder} -> {one.known}"


def members(found: Folder, name: str) -> str:
    """What is taken of and by one class, name by name."""
    lines = []
    for (holder, known), one in sorted(found.pairs.items()):
        if name in (holder, known):
            each = (f"{word}=" if word in one.written else word for word in sorted(one.members))
            lines.append(f"{_arrow(one)}: {', '.join(each)}")
    return "\n".join(lines)


# -- drawing


def draw(found: Folder, path: Path, least: int) -> None:
    """Who knows whom, from above to below: lines in circles are red, wide lines take much.

    Pairs with less than `least` members are left out, but for those in a circle.
    """
    import igraph

    from tools.bench.plots.figure import plotting

    plt = plotting(path.stem)
    plt.rcParams["svg.fonttype"] = "none"  # letters as text: small, and found by a search
    every = [found.pairs[key] for key in sorted(found.pairs)]
    pairs = [one for one in every if one.circle or len(one.members) >= least]
    names = sorted({name for one in pairs for name in (one.holder, one.known)})
    graph = igraph.Graph(directed=True)
    graph.add_vertices(names)
    graph.add_edges([(one.holder, one.known) for one in pairs])
    places = dict(zip(names, _places(graph), strict=True))
    columns = 1 + round(max(x for x, _ in places.values()))
    rows = 1 + max(y for _, y in places.values())
    figure, axes = plt.subplots(figsize=(columns * INCHES[0], rows * INCHES[1]))
    for one in pairs:
        _line(axes, one, places[one.holder], places[one.known])
    for name, (x, y) in places.items():
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "#1d6fb8"}
        axes.text(x, y, name, ha="center", va="center", fontsize=9, bbox=box, zorder=3)
    axes.set_xlim(-1, columns)
    axes.set_ylim(rows - 0.6, -0.4)
    axes.axis("off")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    if path.suffix != ".svg":
        return
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")


def _places(graph: Any) -> list[tuple[float, float]]:
    """Layers and the order in them by Sugiyama's method; each layer over the whole width."""
    layout = graph.layout_sugiyama(maxiter=1000)
    spots = [(x, y) for x, y in layout.coords[: graph.vcount()]]  # behind them are bends
    rows: dict[float, list[float]] = {}
    for x, y in spots:
        rows.setdefault(y, []).append(x)
    widest = max(map(len, rows.values()))
    layers = {y: layer for layer, y in enumerate(sorted(rows))}

    def place(x: float, y: float) -> tuple[float, float]:
        at = sorted(rows[y]).index(x)
        aside = STAGGER * (1 if layers[y] % 2 else -1)
        return (at + 0.5) * widest / len(rows[y]) - 0.5 + aside, layers[y]

    return [place(x, y) for x, y in spots]


def _line(axes: Any, one: Known, start: tuple[float, float], end: tuple[float, float]) -> None:
    taken = len(one.members)
    colour = CIRCLE if one.circle else PLAIN
    arrow = {
        "arrowstyle": "-|>",
        "color": colour,
        "linewidth": 0.5 + taken / 5,
        "shrinkA": 12,
        "shrinkB": 12,
        "linestyle": "--" if one.types_only else "-",
        "connectionstyle": "arc3,rad=0.12",
        "alpha": 0.75,
    }
    axes.annotate("", xy=end, xytext=start, arrowprops=arrow, zorder=1)
    if taken >= LABELLED:
        x, y = (0.6 * start[at] + 0.4 * end[at] for at in (0, 1))
        box = {"boxstyle": "circle,pad=0.15", "facecolor": "white", "edgecolor": "none"}
        axes.text(x, y, taken, color=colour, fontsize=8, ha="center", bbox=box, zorder=2)


def main() -> None:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="of a component")
    parser.add_argument("--svg", type=Path, help="draw it here")
    parser.add_argument("--class", dest="name", help="say which members, for this class alone")
    parser.add_argument("--least", type=int, default=1, help="members that a line has at least")
    chosen = parser.parse_args()
    found = measure(chosen.folder)
    print(members(found, chosen.name) if chosen.name else table(found, chosen.least))
    if chosen.svg is not None:
        draw(found, chosen.svg, chosen.least)


if __name__ == "__main__":
    main()
