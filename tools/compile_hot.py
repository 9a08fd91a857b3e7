#!/usr/bin/env python3
"""Compile the hot modules into a copy of the tree, to run the same tests on them.

    python tools/compile_hot.py build/compiled [--quick]
    PYTHONPATH=build/compiled python -m pytest tests/sim

A hot module is a `.py` with a `.pxd` of the same name beside it; the `.py` is compiled as it is.
With them go the calls of nic/libfabric (`fabric_calls.py`).
The tree the tests usually run on is left alone. `--quick` leaves the C compiler's optimiser out:
the same code in a third of the time, to be tested but not measured.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from setuptools import Extension

ROOT = Path(__file__).resolve().parent.parent
DIRECTIVES = {
    "language_level": 3,
    "annotation_typing": False,
    "binding": True,
    "infer_types": True,
}
INLINE = ("__init__", "borrowed", "direct", "elements", "entries", "raw", "vm", "wire")
SOURCES = (ROOT / "core" / "ompy", ROOT / "components" / "ompy_components")


def hot_modules(root: Path) -> list[Path]:
    """The sources with a declaration file beside them, sorted.

    Not those whose declaration files have it all and go into the modules that use them.
    """
    return sorted(p.with_suffix(".py") for p in root.rglob("*.pxd") if p.stem not in INLINE)


def build(target: Path, optimise: str = "-O2") -> list[Path]:
    """Copy the packages into `target` and compile their hot modules there.

    Args:
        target: the folder.
        optimise: option of the C compiler.

    Returns:
        The extension files made.
    """
    from Cython.Build import cythonize
    from setuptools import Extension

    target.mkdir(parents=True, exist_ok=True)
    for source in SOURCES:
        ignore = shutil.ignore_patterns("__pycache__", "*.so", "*.c")
        shutil.copytree(source, target / source.name, dirs_exist_ok=True, ignore=ignore)
    shutil.copytree(ROOT / "configs", target / "ompy" / "configs", dirs_exist_ok=True)
    extensions = []
    for path in hot_modules(target):
        name = ".".join(path.relative_to(target).with_suffix("").parts)
        extensions.append(Extension(name, [str(path)], extra_compile_args=[optimise, "-g0", "-w"]))
    modules = cythonize(
        extensions,
        include_path=[str(target)],
        compiler_directives={
            "language_level": 3,
            "annotation_typing": False,
            "binding": True,
            "infer_types": True,
        },
        nthreads=os.cpu_count() or 1,
        quiet=True,
    )
    modules += _fabric_calls(target, optimise)
    compile_into(modules, target)
    return sorted(target.rglob("*.so"))


def _fabric_calls(target: Path, optimise: str) -> list[Extension]:
    """The calls of nic/libfabric; none where cffi is missing, which they need anyway."""
    from fabric_calls import MODULE, write
    from setuptools import Extension

    try:
        made = write(target / "ompy_components" / "nic" / "libfabric")
    except ImportError as problem:
        print(f"the calls of nic/libfabric stay as they are: {problem}", file=sys.stderr)
        return []
    return [Extension(MODULE, [str(made)], extra_compile_args=[optimise, "-g0", "-w"])]


def probe(target: Path) -> None:
    """See that C extensions can be made here, before the work of translating is done.

    Raises:
        Exception: of setuptools, with what the compiler said; there is no narrower class.
    """
    from setuptools import Extension

    source = target / "probe.c"
    source.write_text("#include <Python.h>\nPyMODINIT_FUNC PyInit_probe(void) { return NULL; }\n")
    compile_into([Extension("probe", [str(source)])], target / "probe")


def compile_into(modules: list[Extension], target: Path) -> None:
    """Compile extensions, each to its place below `target`."""
    from setuptools.dist import Distribution

    command = Distribution({"ext_modules": modules}).get_command_obj("build_ext")
    command.build_lib = str(target)  # type: ignore[attr-defined]
    command.build_temp = str(target / "objects")  # type: ignore[attr-defined]
    command.parallel = os.cpu_count()  # type: ignore[attr-defined]
    command.ensure_finalized()
    command.run()


def main() -> None:
    """Build into the folder named on the command line."""
    folders = [argument for argument in sys.argv[1:] if argument != "--quick"]
    if len(folders) != 1:
        sys.exit(__doc__)
    optimise = "-O0" if "--quick" in sys.argv else "-O2"
    for made in build(Path(folders[0]).resolve(), optimise):
        print(made)


if __name__ == "__main__":
    main()
