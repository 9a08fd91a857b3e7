#!/usr/bin/env python3
"""Write `core/ompy/MPI.pyi`, what type checkers and editors know of `ompy.MPI`, from the module.

    python tools/package mpi_stub            write it
    python tools/package mpi_stub --check    exit 1 if it is not what would be written

Names, parameters and their kinds are the running module's, annotations those of its sources. A
class gets all that it inherits from classes without a public name. Where a source says `Any` for a
buffer or for a handle of a class it cannot import, the tables here say what it is.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from inspect import unwrap
from pathlib import Path
from types import FunctionType
from typing import Any

STUB = Path(__file__).resolve().parents[2] / "core" / "ompy" / "MPI.pyi"
HEADER = '''# Written by tools/package mpi_stub from the module and its sources: change those
# ruff: noqa: A001, A002, F821, N801, N802, N999, RUF022
"""What `ompy.MPI` offers, for type checkers and editors."""

from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from threading import RLock
from typing import Any, AnyStr, Final, Literal, NoReturn, Self, SupportsIndex, overload

from ompy.typing import Bottom, Buffer, BufSpec, BufSpecB, BufSpecV, BufSpecW, InPlace, TargetSpec

'''
MODULE_PRIVATE = (
    "_addressof", "_comm_lock", "_comm_lock_table", "_commctx_inter", "_commctx_intra",
    "_datatype_create", "_datatype_decode", "_handleof", "_set_abort_status", "_set_expendable",
    "_sizeof", "_typealign", "_typecode", "_typedict", "_typedict_c", "_typedict_f",
)  # fmt: skip
# what a class has of `object`, and what only the interpreter looks at
UNTOLD = frozenset((
    "__annotations__", "__dict__", "__doc__", "__firstlineno__", "__module__", "__repr__",
    "__slots__", "__static_attributes__", "__str__", "__weakref__", "__match_args__",
))  # fmt: skip
BASES = {"Exception": "RuntimeError"}
# names of sources, where the module has others
RENAMED = {
    "MPIException": "Exception",
    "MPIError": "Exception",
    "CommBase": "Comm",
    "Communicators": "Comm",
    "Pieces": "Sequence[Any]",
    "Function": "Callable[[buffer, buffer, Datatype], None]",
    "Pairs": "Mapping[str, str] | Iterable[tuple[str, str]]",
    "Callback": "Callable[..., None] | None",
}
IN_BLOCKS = ("gather", "allgather", "alltoall", "scatter")
# (class, method or "", parameter or "return"): what a source says no more of than `Any`
SAID = {
    ("", "_comm_lock", "return"): "RLock",
    ("", "_comm_lock_table", "return"): "dict[Hashable, RLock]",
    ("", "_comm_lock", "key"): "Hashable | None",
    ("", "Alloc_mem", "info"): "Info | None",
    ("", "Attach_buffer", "buf"): "Buffer | None",
    ("", "Detach_buffer", "return"): "Buffer | None",
    ("", "Get_address", "location"): "Buffer | Bottom",
    ("Comm", "Attach_buffer", "buf"): "Buffer | None",
    ("Comm", "Detach_buffer", "return"): "Buffer | None",
    ("Comm", "Create", "return"): "Comm",
    ("Comm", "Create_errhandler", "errhandler_fn"): "Callable[[Comm, int], None]",
    ("Comm", "Get_parent", "return"): "Intercomm",
    ("Comm", "Iagree", "flag"): "Buffer",
    ("Comm", "Split", "return"): "Comm",
    ("Comm", "Split_type", "return"): "Comm",
    ("Comm", "recv", "buf"): "Buffer | None",
    ("Comm", "irecv", "buf"): "Buffer | None",
    ("Comm", "sendrecv", "recvbuf"): "Buffer | None",
    ("Cartcomm", "Sub", "return"): "Cartcomm",
    ("Intracomm", "Create_cart", "return"): "Cartcomm",
    ("Intracomm", "Create_cart", "periods"): "Sequence[bool] | bool | None",
    ("Intercomm", "Get_remote_group", "return"): "Group",
    ("Intercomm", "Merge", "return"): "Intracomm",
    ("Intercomm", "remote_group", "return"): "Group",
    ("Datatype", "Pack", "comm"): "Comm",
    ("Datatype", "Pack_size", "comm"): "Comm",
    ("Datatype", "Unpack", "comm"): "Comm",
    ("Group", "Create_from_session_pset", "session"): "Session",
    ("Info", "Create_env", "args"): "Sequence[str] | None",
    ("Pickle", "copy", "return"): "Any",
    ("Pickle", "loads", "data"): "Buffer",
    ("Pickle", "load", "data"): "Buffer",
    ("Pickle", "loads_oob", "data"): "Buffer",
    ("Pickle", "loads_oob", "buffers"): "Iterable[Buffer]",
    ("Pickle", "dumps_oob", "return"): "tuple[bytes, list[buffer]]",
    ("Session", "Attach_buffer", "buf"): "Buffer | None",
    ("Session", "Detach_buffer", "return"): "Buffer | None",
    ("Win", "Attach", "memory"): "Buffer",
    ("Win", "Create", "memory"): "Buffer | Bottom",
    ("Win", "Create_errhandler", "errhandler_fn"): "Callable[[Win, int], None]",
    ("Win", "Detach", "memory"): "Buffer",
    ("buffer", "cast", "shape"): "list[int] | tuple[int, ...] | None",
    ("buffer", "frombuffer", "obj"): "Buffer",
    ("buffer", "obj", "return"): "Buffer | None",
}  # fmt: skip
BUILTIN = {"Wtime": "() -> float"}
# calls that take one thing or another, and what they give for it
OVERLOADS = {
    ("buffer", "__new__"): ("(cls) -> Self", "(cls, buf: Buffer, /) -> Self"),
    ("buffer", "__getitem__"): (
        "(self, item: SupportsIndex, /) -> int",
        "(self, item: slice, /) -> buffer",
    ),
    ("buffer", "__setitem__"): (
        "(self, item: SupportsIndex, value: int, /) -> None",
        "(self, item: slice, value: Buffer | int, /) -> None",
    ),
}


def buffer_type(method: str, parameter: str) -> str | None:
    """What stands for a message in a call; None if the parameter is something else."""
    if parameter in {"buf", "origin", "result", "compare", "inbuf", "outbuf", "inoutbuf"}:
        return "BufSpec"
    if parameter == "target":
        return "TargetSpec | None"
    if parameter not in {"sendbuf", "recvbuf"}:
        return None
    call = method.lower().removesuffix("_init").removeprefix("i")
    neighbours = call.startswith("neighbor_")
    call = call.removeprefix("neighbor_")
    last = call[-1] if call[:-1] in IN_BLOCKS and call[-1] in "vw" else ""
    call = call.removesuffix(last) if last else call
    return _collective_type(call, parameter, last, neighbours)


def _collective_type(call: str, parameter: str, last: str, neighbours: bool) -> str:
    """The type of a collective call's buffer, by what each side of it is."""
    sends = parameter == "sendbuf"
    blocks = {
        "gather": not sends, "allgather": not sends, "scatter": sends, "alltoall": True,
        "reduce_scatter_block": sends,
    }.get(call, False)  # fmt: skip
    found = f"BufSpec{last.upper() or 'B'}" if blocks else "BufSpec"
    if call == "reduce_scatter_block" and not sends:
        found = "BufSpec | BufSpecB"
    if call in {"sendrecv"}:
        return found if sends else f"{found} | None"
    if neighbours:
        return found
    if call == "scatter":
        return f"{found} | None" if sends else f"{found} | InPlace"
    if call in {"gather", "reduce"} and not sends:
        return f"{found} | None"
    return f"{found} | InPlace" if sends else found


@cache
def _definitions(file: str) -> dict[int, ast.FunctionDef]:
    """The functions of a source file, by the line they begin at, decorators included."""
    tree = ast.parse(Path(file).read_text())
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {min([n.lineno, *(d.lineno for d in n.decorator_list)]): n for n in nodes}


class _Renaming(ast.NodeTransformer):
    """Annotations with the module's names."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        renamed = RENAMED.get(node.id)
        return node if renamed is None else ast.parse(renamed, mode="eval").body


def _default(node: ast.expr, names: frozenset[str]) -> ast.expr:
    """A default as the stub says it: constants of the module by name."""
    if isinstance(node, (ast.Constant, ast.UnaryOp, ast.Tuple)):
        return node
    known = isinstance(node, ast.Name) and node.id in names
    return node if known else ast.Constant(value=...)


def signature(owner: str, name: str, function: FunctionType, names: frozenset[str]) -> str:
    """`(parameters) -> result` of a function, as its source has it."""
    code = unwrap(function).__code__
    node = _definitions(code.co_filename)[code.co_firstlineno]
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None]
    for argument in every:
        found = SAID.get((owner, name, argument.arg)) or _of_any(name, argument)
        if found is not None:
            argument.annotation = ast.parse(found, mode="eval").body
        elif argument.annotation is not None:
            argument.annotation = _Renaming().visit(argument.annotation)
    arguments.defaults = [_default(value, names) for value in arguments.defaults]
    said = SAID.get((owner, name, "return"))
    assert node.returns is not None, name
    result = said or ast.unparse(_Renaming().visit(node.returns))
    return f"({ast.unparse(arguments)}) -> {result}"


def _of_any(method: str, argument: ast.arg) -> str | None:
    if argument.annotation is None or ast.unparse(argument.annotation) != "Any":
        return None
    return buffer_type(method, argument.arg)


def _members(cls: type, public: dict[type, str]) -> dict[str, Any]:
    """What a class has of its own and of bases without a public name, nearest first."""
    found: dict[str, Any] = {}
    for base in cls.__mro__:
        if base is not cls and (base in public or base.__module__ == "builtins"):
            if base is RuntimeError or base in public:
                inherited = vars_of(base)
                found = {n: m for n, m in found.items() if inherited.get(n) is not m}
            break
        if not base.__module__.startswith("ompy"):
            break
        for name, member in vars(base).items():
            if name not in found and name not in UNTOLD and not _is_private(name):
                found[name] = member
    return found


def vars_of(cls: type) -> dict[str, Any]:
    """All members of a class, by name."""
    return {name: member for base in reversed(cls.__mro__) for name, member in vars(base).items()}


def _is_private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def _method_lines(owner: str, name: str, member: Any, names: frozenset[str]) -> Iterator[str]:
    """The lines of one member of a class."""
    if (owner, name) in OVERLOADS:
        for text in OVERLOADS[owner, name]:
            yield from ("    @overload", f"    def {name}{text}: ...")
    elif isinstance(member, property):
        assert isinstance(member.fget, FunctionType)
        yield "    @property"
        yield f"    def {name}{signature(owner, name, member.fget, names)}: ..."
        if isinstance(member.fset, FunctionType):
            yield f"    @{name}.setter"
            yield f"    def {name}{signature(owner, name, member.fset, names)}: ..."
    elif isinstance(member, (classmethod, staticmethod)):
        if name != "__new__":
            yield f"    @{type(member).__name__}"
        function = member.__func__
        assert isinstance(function, FunctionType)
        yield f"    def {name}{signature(owner, name, function, names)}: ..."
    elif isinstance(member, FunctionType):
        yield f"    def {name}{signature(owner, name, member, names)}: ..."
    elif name == "__hash__" and member is None:
        yield "    __hash__ = None  # type: ignore[assignment]"
    else:
        raise TypeError(
            f"{owner}.{name} is a {type(member).__name__}: tell tools/package mpi_stub how"
        )


def _class_lines(name: str, cls: type, public: dict[type, str], names: frozenset[str]) -> list[str]:
    """A class."""
    bases = [public[base] for base in cls.__mro__[1:] if base in public][:1]
    said = BASES.get(name) or (bases[0] if bases else "")
    lines = [f"class {name}({said}):" if said else f"class {name}:"]
    for member_name, member in _members(cls, public).items():
        lines += _method_lines(name, member_name, member, names)
    return [*lines, ""]


def _depth(cls: type) -> int:
    return len(cls.__mro__)


def text() -> str:
    """The stub, before it is formatted."""
    from ompy import MPI

    _definitions.cache_clear()
    everything = {name: getattr(MPI, name) for name in (*MPI.__all__, *MODULE_PRIVATE)}
    everything = dict(sorted(everything.items()))
    classes = {n: o for n, o in everything.items() if isinstance(o, type) and n != "memory"}
    public = {cls: name for name, cls in classes.items()}
    names = frozenset(MPI.__all__)
    lines = [f"__all__ = {sorted(MPI.__all__)}", ""]
    lines += [f"{n}: Final[int]" for n, o in everything.items() if type(o) is int]
    lines.append("")
    for name in sorted(classes, key=lambda n: (n == "Exception", _depth(classes[n]), n)):
        lines += _class_lines(name, classes[name], public, names)
    lines += ["memory = buffer", ""]
    for name, value in everything.items():
        if name in BUILTIN:
            lines.append(f"def {name}{BUILTIN[name]}: ...")
        elif isinstance(value, FunctionType):
            lines.append(f"def {name}{signature('', name, value, names)}: ...")
        elif isinstance(value, dict):
            lines.append(f"{name}: Final[dict[str, Datatype]]")
        elif type(value) in public and not isinstance(value, type):
            lines.append(f"{name}: Final[{public[type(value)]}]")
        elif not isinstance(value, (int, type)):
            raise TypeError(f"{name} is a {type(value).__name__}: tell tools/package mpi_stub how")
    return HEADER + "\n".join(lines) + "\n"


def formatted(source: str) -> str:
    """As `ruff format` has it."""
    ruff = Path(sys.executable).parent / "ruff"
    done = subprocess.run(
        [str(ruff), "format", "--stdin-filename", str(STUB), "-"],
        input=source,
        capture_output=True,
        text=True,
        check=True,
        cwd=STUB.parent,
    )
    return done.stdout


def main() -> None:
    """Write the stub, or compare it."""
    wanted = formatted(text())
    if sys.argv[1:] == ["--check"]:
        sys.exit(int(STUB.read_text() != wanted))
    STUB.write_text(wanted)


if __name__ == "__main__":
    main()
