"""`ompy build`: compile the hot modules of an installation where it is."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import shutil
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Final, NoReturn

import click

import ompy
from ompy.cli.forms import PACKAGES, described, is_editable

PROGRAM: Final = "ompy build"
WRONG: Final = 1  # exit codes, as of `ompy conformance`
IMPOSSIBLE: Final = 2


@click.command("build")
def build() -> None:
    """Compile the modules on the way of a message, of this installation, where it is.

    For an installation that is interpreted because there was no C compiler, or OMPY_PURE=1. Needs a
    C compiler and Cython (pip install 'ompy[build]'), and a minute on two cores. Ends with 2 where
    it cannot be done, with 1 when it fails; then nothing has changed.
    """
    root = Path(ompy.__file__).resolve().parent.parent
    _check(root)
    from ompy.cli.building import cached, compiling
    from ompy.cli.building.processes import WorkFailed
    from ompy.cli.building.translating import TranslationError

    try:
        compiling.probe()
    except compiling.CompilerError as problem:
        _end(f"there is no C compiler that can be used: {problem}", IMPOSSIBLE)
    click.echo(f"{PROGRAM}: compiling the hot modules in {root}, a minute on two cores", err=True)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ompy-build-") as folder:
        tree = Path(folder).resolve() / "tree"
        compiling.copy_tree([root / package for package in PACKAGES], tree)
        try:
            files = cached.build(tree, os.environ.get("OMPY_BUILD_CACHE", ""))
        except (TranslationError, WorkFailed) as problem:
            _end(str(problem), WRONG)
        _install(files, tree, root)
    click.echo(f"{PROGRAM}: {described()} in {time.monotonic() - begun:.0f} s", err=True)


def _check(root: Path) -> None:
    """See that it can be done; end the program if not."""
    if is_editable():
        _end(
            "this installation is editable, and compiled modules would hide its sources; "
            "`pip install .` installs compiled ones",
            IMPOSSIBLE,
        )
    if not os.access(root / PACKAGES[0], os.W_OK):
        _end(f"{root} cannot be written to by this user", IMPOSSIBLE)
    try:
        import Cython.Build.SharedModule  # noqa: F401
    except ImportError as problem:
        _end(f"Cython is missing ({problem}): pip install 'ompy[build]'", IMPOSSIBLE)


def _install(files: list[Path], made: Path, root: Path) -> None:
    """Move extensions beside their sources, and have `pip uninstall` know of them."""
    record = _record()
    with record.open("a", newline="") as known:
        rows = csv.writer(known, lineterminator="\n")  # sha256, as the wheel format has it
        for path in files:
            inside = path.relative_to(made)
            digest = hashlib.sha256(path.read_bytes()).digest()
            told = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            rows.writerow([inside.as_posix(), f"sha256={told}", path.stat().st_size])
    for path in files:
        target = root / path.relative_to(made)
        beside = target.with_name(f"{target.name}.new")  # one that runs keeps what it has mapped
        shutil.copyfile(path, beside)
        beside.chmod(0o755)
        beside.replace(target)


def _record() -> Path:
    """The list of what the distribution has installed, without what an earlier build has added."""
    distribution = metadata.distribution("ompy")
    path = Path(str(distribution.locate_file("")), *_named(distribution).parts)
    rows = list(csv.reader(io.StringIO(path.read_text())))
    with path.open("w", newline="") as known:
        kept = [row for row in rows if not row[0].endswith(".so")]
        csv.writer(known, lineterminator="\n").writerows(kept)
    return path


def _named(distribution: metadata.Distribution) -> metadata.PackagePath:
    found = next((path for path in distribution.files or () if path.name == "RECORD"), None)
    if found is None:
        _end("this installation has no list of its files (RECORD)", IMPOSSIBLE)
    return found


def _end(text: str, code: int) -> NoReturn:
    click.echo(f"{PROGRAM}: error: {text}", err=True)
    sys.exit(code)
