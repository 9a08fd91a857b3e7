"""`ompy build`: compile the hot modules of an installation where it is."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NoReturn

import click

import ompy
from ompy import outputs
from ompy.cli.forms import PACKAGES, described, is_editable
from ompy.cli.refusing import tell_error

PROGRAM: Final = "ompy build"
WRONG: Final = 1  # exit codes, as of `ompy conformance`
IMPOSSIBLE: Final = 2
ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal asks to end; which one is its argument."""


@click.command("build")
def build() -> None:
    """Compile the modules on the way of a message, of this installation, where it is.

    For an installation that is interpreted because there was no C compiler, or OMPY_PURE=1. Needs a
    C compiler and Cython (pip install 'ompy[build]'), and a minute on two cores. Ends with 2 where
    it cannot be done, with 1 when it fails, with 130 after Ctrl-C; then nothing has changed.
    """
    root = Path(ompy.__file__).resolve().parent.parent
    _check(root)
    from ompy.cli.building import compiling
    from ompy.cli.building.processes import WorkFailed
    from ompy.cli.building.translating import TranslationError

    begun = time.monotonic()
    try:
        with _alone(root), _signals_raise():
            compiling.probe_compiler()
            outputs.tell(f"{PROGRAM}: compiling the hot modules in {root}, a minute on two cores\n")
            _compile(root)
    except compiling.CompilerError as problem:
        _end(f"there is no C compiler that can be used: {problem}", IMPOSSIBLE)
    except (TranslationError, WorkFailed, OSError) as problem:
        _end(f"{problem}; nothing has changed", WRONG)
    except Interrupted as interrupted:
        _end("interrupted; nothing has changed", 128 + int(interrupted.args[0]))
    outputs.tell(f"{PROGRAM}: {described()} in {time.monotonic() - begun:.0f} s\n")


def _compile(root: Path) -> None:
    from ompy.cli.building import cached, compiling, installing

    with tempfile.TemporaryDirectory(prefix="ompy-build-") as folder:
        tree = Path(folder).resolve() / "tree"
        compiling.copy_tree([root / package for package in PACKAGES], tree)
        files = cached.build_or_copy(tree, os.environ.get("OMPY_BUILD_CACHE", ""))
        installing.install_extensions(files, tree, root, ENDING)


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    """No other build of this installation meanwhile; end the program if there is one."""
    import fcntl

    folder = os.open(root / PACKAGES[0], os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # no locks on this file system: as if it were alone
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                _end(f"another one is compiling {root}", IMPOSSIBLE)
        yield
    finally:
        os.close(folder)


@contextlib.contextmanager
def _signals_raise() -> Iterator[None]:
    """End by an exception, so that what was begun is cleared away."""
    process = os.getpid()

    def interrupt(number: int, _: object) -> None:
        if os.getpid() != process:  # a fork, which compiles one module
            os._exit(128 + number)
        for each in ENDING:
            signal.signal(each, signal.SIG_IGN)  # clearing away takes a moment
        raise Interrupted(number)

    heard = [each for each in ENDING if signal.getsignal(each) != signal.SIG_IGN]  # not by nohup
    before = {each: signal.signal(each, interrupt) for each in heard}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _check(root: Path) -> None:
    """See that it can be done; end the program if not."""
    if is_editable():
        _end(
            "this installation is editable, and compiled modules would hide its sources; "
            "`pip install .` installs compiled ones",
            IMPOSSIBLE,
        )
    from ompy.cli.building import installing

    try:
        record = installing.record_path()
    except installing.NoRecordError as problem:
        _end(str(problem), IMPOSSIBLE)
    packages = [root / package for package in PACKAGES]
    for path in (record, *packages, *(at for package in packages for at in package.rglob("*/"))):
        if not os.access(path, os.W_OK):
            _end(f"{path} cannot be written to by this user", IMPOSSIBLE)
    try:
        import Cython.Build.SharedModule  # noqa: F401
    except ImportError as problem:
        _end(f"Cython is missing ({problem}): pip install 'ompy[build]'", IMPOSSIBLE)


def _end(text: str, code: int) -> NoReturn:
    tell_error(PROGRAM, text)
    sys.exit(code)
