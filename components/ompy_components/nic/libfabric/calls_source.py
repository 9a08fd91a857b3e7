"""The calls of nic/libfabric that post work and read queues, as C that cffi makes an extension of.

Without it they go through pointers in libfabric's tables, which cffi calls with libffi; compiled,
each is a function of an extension that does the same. It needs a C compiler and cffi, and nothing
of libfabric's: the structures are those of `declarations.py`. Builds run this file by its path
(`core/ompy/cli/building/`); nothing imports it.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Final

MODULE: Final = "ompy_components.nic.libfabric.calls"
# tables of an object, and the slots that are called often; the table's struct is fi_ops_NAME
OFTEN: Final = {
    "msg": ("recv", "send", "inject"),
    "rma": ("read", "write"),
    "atomic": ("write", "readwrite", "compwrite"),
    "cq": ("read",),
}
TYPES: Final = "#include <stddef.h>\n#include <stdint.h>\n#include <sys/types.h>\n"


def write_calls(package: Path, folder: Path) -> Path:
    """Write `calls.c`; the path of the file.

    Args:
        package: the folder of nic/libfabric.
        folder: where to write.

    Raises:
        ImportError: cffi is missing.
        ValueError: a declaration is not what it used to be.
    """
    from cffi import FFI

    declared: str = runpy.run_path(str(package / "declarations.py"))["ALL"]
    functions = [
        function(declared, table, slot) for table, slots in OFTEN.items() for slot in slots
    ]
    ffi = FFI()
    ffi.cdef("\n".join(f"{head};" for head, _ in functions))
    bodies = "\n".join(f"static {head} {{ {body} }}" for head, body in functions)
    ffi.set_source(MODULE, TYPES + declared + bodies)
    made = folder / "calls.c"
    ffi.emit_c_code(str(made))
    return made


def function(declared: str, table: str, slot: str) -> tuple[str, str]:
    """Head and body of the function for one slot."""
    words = " ".join(declared.split())
    found = re.search(
        rf"struct fi_ops_{table} \{{(?:(?!\}};).)*?(\w+) \(\*{slot}\)\((\w+ \w+) \*, (.*?)\);",
        words,
    )
    if found is None:
        raise ValueError(f"fi_ops_{table}.{slot} is declared in another way")
    result, kind, rest = found.groups()
    types = [re.sub(r"(?<=[\s*])\w+$", "", one).strip() for one in rest.split(", ")]
    head = ", ".join(["void *object", *(f"{one} a{n}" for n, one in enumerate(types))])
    given = ", ".join(["object", *(f"a{n}" for n in range(len(types)))])
    member = "ops" if table == "cq" else table
    body = f"return (({kind} *)object)->{member}->{slot}({given});"
    return f"{result} {table}_{slot}({head})", body
