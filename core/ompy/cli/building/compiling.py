"""C to one shared object, and the whole build: every phase of every module on all cores."""

from __future__ import annotations

import gc
import os
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from ompy.cli.building.kept import KeptObjects
from ompy.cli.building.linking import OWN, renaming, write_table
from ompy.cli.building.modules import (
    dotted,
    extension_sources,
    hot_modules,
    optimiser_of,
)
from ompy.cli.building.preparing import write_sources
from ompy.cli.building.processes import Forks, RefusalError
from ompy.cli.building.progress import Progress
from ompy.cli.building.translating import Translator, translate_shared
from ompy.cli.hot import BUSIEST, BUSY, OFTEN, SELDOM, SHARED
from ompy.compiled_loader import OBJECT

PROBE: Final = "#include <Python.h>\nPyMODINIT_FUNC PyInit_probe(void) { return NULL; }\n"
KEPT: Final = ("-D", "-f", "-m", "-I", "-pthread")  # of the options Python itself was compiled with
# an error from GCC 14 on, so everywhere: a method of another signature than its caller thinks
REFUSED: Final = "-Werror=incompatible-pointer-types"
PREPARED: Final = "prepared"  # the folder of what Cython reads
# Cython's word for what runs once, when a module is imported. It is a third of the machine code, in
# one function of thousands of blocks: optimising that takes an eighth of the compiler's time.
ONCE: Final = """\
#if defined(__clang__)
#define CYTHON_SMALL_CODE __attribute__((cold, optnone, noinline))
#elif defined(__GNUC__)
#define CYTHON_SMALL_CODE __attribute__((cold, optimize("O0")))
#endif
"""
# A message runs through more pages of code and of data than a core keeps the places of. So calls of
# Python's library go without a jump between, what seldom runs stands apart, and of the linker's
# segments those that may be are one.
NEAR: Final = ("-fno-plt", "-freorder-blocks-and-partition")
TOGETHER: Final = ("-Wl,-z,now", "-Wl,-z,norelro", "-Wl,-z,noseparate-code")
# with loops over elements: where these begin is not to depend on what the linker puts before them
LOOPED: Final = ("ompy.data.convertor", "ompy.data.loops")
ALIGNED: Final = ("-falign-functions=64", "-falign-loops=64")  # bytes: a cache line
DROPPED: Final = ("-flto", "-fprofile", "-fdebug")  # Python's own business


class CompilerError(RefusalError):
    """There is no C compiler that can make extension modules; the text says what it said."""


def compiler() -> list[str]:
    """The C compiler and what it needs to know of this Python; `CC` and `CFLAGS` may say other."""
    command = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    options = [
        word
        for word in shlex.split(sysconfig.get_config_var("CFLAGS") or "")
        if word.startswith(KEPT) and not word.startswith(DROPPED)
    ]
    folders = dict.fromkeys(sysconfig.get_path(name) for name in ("include", "platinclude"))
    return [
        *shlex.split(command),
        *options,
        "-fPIC",
        REFUSED,
        *(NEAR if sys.platform == "linux" else ()),
        *(f"-I{folder}" for folder in folders),
        *shlex.split(os.environ.get("CFLAGS", "")),
    ]


def compile_extension(source: Path, target: Path, optimiser: str = "-O0") -> None:
    """Compile and link one C file. Where it is leaves no trace in what comes out.

    Args:
        source: the C file.
        target: the extension's file.
        optimiser: option of the compiler.

    Raises:
        CompilerError: the compiler refuses, or is not there.
    """
    _run_compiler(source.parent, optimiser, "-g0", *_linked(), source.name, "-o", str(target))


def compile_object(source: Path, target: Path, optimiser: str, *options: str) -> None:
    """Compile one C file for `link_objects`. Where it is leaves no trace in what comes out.

    Args:
        source: the C file.
        target: the object's file.
        optimiser: option of the compiler.
        options: other ones.

    Raises:
        CompilerError: the compiler refuses, or is not there.
    """
    _run_compiler(
        source.parent, optimiser, "-g0", OWN, *options, "-c", source.name, "-o", str(target)
    )


def link_objects(objects: Mapping[str, Path], folder: Path, target: Path) -> None:
    """Make the shared object of all modules, those that most messages run through side by side.

    Args:
        objects: the object of each module.
        folder: for what is written meanwhile.
        target: the shared object's file.

    Raises:
        CompilerError: the linker refuses.
    """
    table = folder / f"{OBJECT}.c"
    table.write_text(write_table(objects))
    words = [str(objects[name]) for name in sorted(objects, key=lambda n: (_rank_of(n), n))]
    _run_compiler(folder, "-O1", "-g0", OWN, *_linked(), table.name, *words, "-o", str(target))


def _rank_of(name: str) -> int:
    """Place of a module in the shared object: by how much of a message's way is in it."""
    return (BUSIEST, BUSY, OFTEN, SELDOM).index(optimiser_of(name))


def _linked() -> list[str]:
    options = ["-shared", *(TOGETHER if sys.platform == "linux" else ())]
    return options + shlex.split(os.environ.get("LDFLAGS", ""))


def _run_compiler(folder: Path, *words: str) -> None:
    command = [*compiler(), *words]
    try:
        done = subprocess.run(  # noqa: S603
            command, cwd=folder, capture_output=True, text=True, check=False
        )
    except OSError as problem:
        raise CompilerError(f"no C compiler: {problem}") from None
    if done.returncode:
        raise CompilerError(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()}")


def probe_compiler() -> None:
    """See that extensions can be made here, before the work of translating is done.

    Raises:
        CompilerError: they cannot.
    """
    with tempfile.TemporaryDirectory(prefix="ompy-build-") as folder:
        source = Path(folder, "probe.c")
        source.write_text(PROBE)
        try:
            compile_extension(source, source.with_suffix(".so"))
        except CompilerError as problem:
            if "Python.h" not in str(problem):
                raise
            raise CompilerError(
                f"the headers of {sys.executable} are missing (Debian and Ubuntu: apt install "
                f"python3-dev; Fedora: dnf install python3-devel): {problem}"
            ) from None


def suffix() -> str:
    """What the names of extension modules of this Python end with."""
    return str(sysconfig.get_config_var("EXT_SUFFIX"))


def compile_modules(
    tree: Path,
    target: Path,
    optimiser: str = "",
    without: Sequence[str] = (),
    kept: Path | None = None,
) -> list[Path]:
    """Compile the hot modules of a tree.

    Args:
        tree: the folder with the packages; nothing is written there.
        target: the folder for the extensions, which go where they belong below it.
        optimiser: option of the C compiler, for all; empty: as `modules.py` says.
        without: how names of modules, with a dot behind each, begin that stay interpreted.
        kept: folder of objects made before, which are taken where nothing has changed; new ones go
            there, too.

    Returns:
        The extension files made.

    Raises:
        ImportError: Cython is missing.
        SourceError, TranslationError, WorkFailed: a module does not compile.
    """
    cores = len(os.sched_getaffinity(0))

    def wanted(path: Path) -> bool:
        return not f"{dotted(tree, path)}.".startswith(tuple(without))

    modules = sorted(filter(wanted, hot_modules(tree)), key=lambda path: -path.stat().st_size)
    extensions = list(filter(wanted, extension_sources(tree)))
    text = (
        f"ompy: compiling {len(modules)} modules on {cores} cores, two to four minutes on two "
        f"(OMPY_PURE=1 leaves them interpreted)"
    )
    here = os.getcwd()
    with (
        tempfile.TemporaryDirectory(prefix="ompy-build-") as folder,
        Progress(text, len(modules) + 1) as progress,
    ):
        places = _Places(Path(folder), target)
        try:
            gc.disable()  # what Cython makes stays; the collector would only touch, and copy, pages
            works = _works(tree, modules, extensions, places, optimiser, kept)
            for name in Forks(cores).run_in_forks(works):
                progress.show_step(name)
        finally:
            os.chdir(here)
            gc.enable()
        link_objects(places.objects, Path(folder), places.extension(OBJECT))
    return sorted(path for path in places.extensions if path.exists())


class _Places:
    """Where what is made goes."""

    def __init__(self, folder: Path, target: Path) -> None:
        """Objects go to `folder`, extensions to where they belong below `target`."""
        self.folder = folder
        self._target = target
        self.objects: dict[str, Path] = {}  # by their modules' names
        self.extensions: list[Path] = []

    def object(self, name: str) -> Path:
        return self.objects.setdefault(name, self.folder / f"{name}.o")

    def extension(self, name: str) -> Path:
        path = self._target.joinpath(*name.split("."))
        path.parent.mkdir(parents=True, exist_ok=True)
        self.extensions.append(path.with_name(path.name + suffix()))
        return self.extensions[-1]


def _works(
    tree: Path,
    modules: list[Path],
    extensions: list[Path],
    places: _Places,
    optimiser: str,
    kept: Path | None,
) -> Iterator[tuple[str, Callable[[], object]]]:
    """What needs no declaration of ours first, so that it runs while those are read.

    Then the longest first, so that no core is left with one of them at the end.
    """

    def through_c(write: Callable[[Path], object], name: str, read: str = "") -> None:
        _through_c(write, name, places.object(name), optimiser or optimiser_of(name), read, kept)

    places.object(SHARED)
    yield SHARED, partial(through_c, translate_shared, SHARED)
    for path in extensions:
        name = dotted(tree, path).removesuffix("_source")
        place = places.extension(name)
        yield name, partial(_extension, path, places.folder, place, optimiser or optimiser_of(name))
    prepared = places.folder / PREPARED
    write_sources(tree, prepared)
    translator = Translator(prepared)
    declared = _declarations(prepared) if kept else ""
    for path in modules:
        name = dotted(tree, path)
        source = prepared / path.relative_to(tree)
        read = f"{name}\0{source.read_text()}\0{declared}" if kept else ""
        places.object(name)
        yield name, partial(through_c, partial(translator.translate, source), name, read)


def _through_c(
    write: Callable[[Path], object],
    name: str,
    target: Path,
    optimiser: str,
    read: str,
    kept: Path | None,
) -> None:
    """Translate and compile one module, or take what was made of the same before.

    Args:
        write: writes the C file it is given.
        name: of the module.
        target: the object; the C file is beside it.
        optimiser: option of the compiler.
        read: all that `write` reads; empty if that is not known.
        kept: folder of objects made before.
    """
    options = (renaming(name), *(ALIGNED if name in LOOPED else ()))
    found = KeptObjects(kept, (*_decides(), optimiser, *options)) if kept else None
    by_text = found.key(read) if found and read else ""
    if found and by_text and found.copy_to(target, by_text):
        return
    source = target.with_suffix(".c")
    write(source)
    text = ONCE + source.read_text()
    by_c = found.key(text) if found else ""
    if not (found and found.copy_to(target, by_c)):
        source.write_text(text)
        compile_object(source, target, optimiser, *options)
    if found:
        found.keep(target, *filter(None, (by_text, by_c)))


def _decides() -> list[str]:
    """What decides about an extension besides what Cython reads."""
    import Cython

    own = Path(__file__).with_name("translating.py").read_text()
    return [Cython.__version__, sys.version, *compiler(), OWN, ONCE, own]


def _declarations(prepared: Path) -> str:
    return "\0".join(
        f"{path.relative_to(prepared)}\0{path.read_text()}"
        for path in sorted(prepared.rglob("*.pxd"))
    )


def _extension(path: Path, folder: Path, target: Path, optimiser: str) -> None:
    """An extension that is written by a module beside it; none where that needs what is missing."""
    own = folder / path.stem
    own.mkdir()
    try:
        written: Path = runpy.run_path(str(path))["write_calls"](path.parent, own)
    except ImportError as problem:
        print(f"{path.stem} is left out: {problem}", file=sys.stderr)
        return
    compile_extension(written, target, optimiser)


def copy_tree(roots: list[Path], target: Path) -> None:
    """Copy packages to where they are compiled, without what earlier builds have left."""
    unwanted = shutil.ignore_patterns("__pycache__", "*.so", "*.c")
    for root in roots:
        shutil.copytree(root, target / root.name, dirs_exist_ok=True, ignore=unwanted)
