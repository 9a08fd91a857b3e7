#!/usr/bin/env python3
"""Write `nic/libfabric/declared.py`: its declarations as cffi keeps them, parsed before.

    tools/package fabric_declarations            write it
    tools/package fabric_declarations --check    exit code 1 where it is not what would be written

Needs cffi (of the extra `dev`). A rank imports the result, which needs cffi's backend only.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from cffi import FFI
from ompy_components.nic.libfabric import declarations

MODULE: Final = "ompy_components.nic.libfabric.declared"
TARGET: Final = Path(declarations.__file__).with_name("declared.py")
HEAD: Final = (
    '"""Made of declarations.py by tools/package fabric_declarations: change that, not this."""\n'
    "# fmt: off\n"
)


def generated() -> str:
    """What the file has to be."""
    ffi = FFI()
    ffi.cdef(declarations.ALL)
    ffi.set_source(MODULE, None)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / TARGET.name
        ffi.emit_python_code(str(target))
        text = target.read_text()
    return HEAD + text.replace("# auto-generated file\n", "")


def main() -> int:
    if "--check" in sys.argv[1:]:
        return 0 if TARGET.read_text() == generated() else 1
    TARGET.write_text(generated())
    return 0


if __name__ == "__main__":
    sys.exit(main())
