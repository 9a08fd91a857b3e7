"""Extensions to where an installation has its sources: all of them, or nothing."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import shutil
import signal
from collections.abc import Collection
from importlib import metadata
from pathlib import Path

from ompy.cli.building.compiling import suffix

Row = list[str]


class NoRecordError(Exception):
    """The installation has no list of its files: pip has not made it."""


def record_path() -> Path:
    """The list of what the distribution has installed, which `pip uninstall` goes by.

    Raises:
        NoRecordError: there is none.
    """
    distribution = metadata.distribution("ompy")
    found = next((path for path in distribution.files or () if path.name == "RECORD"), None)
    if found is None:
        raise NoRecordError(
            "this installation has no list of its files (RECORD), as pip would have left; "
            "install ompy with pip, in an environment of its own"
        )
    return Path(str(distribution.locate_file("")), *found.parts)


def install_extensions(
    files: list[Path], made: Path, root: Path, held: Collection[signal.Signals]
) -> None:
    """Put extensions beside their sources, and have `pip uninstall` know of them.

    What takes long and may fail, copying, is done under other names first. Extensions of an earlier
    build or version that are not among the new ones go: they would hide their sources.

    Args:
        files: the extensions.
        made: the folder with the packages they are in.
        root: that of the installation.
        held: signals that change nothing any more while names are changed.
    """
    record = record_path()
    rows = list(csv.reader(io.StringIO(record.read_text())))
    new = {path.relative_to(made).as_posix(): path for path in files}
    stale = _earlier(rows, root) - new.keys()
    listed = record.with_name(record.name + ".new")
    beside = {root / name: root / f"{name}.new" for name in new}
    try:
        for name, path in new.items():
            shutil.copyfile(path, root / f"{name}.new")
            (root / f"{name}.new").chmod(0o755)
        with listed.open("w", newline="") as file:
            kept = [row for row in rows if row[0] not in stale and row[0] not in new]
            known = [_row(name, path) for name, path in new.items()]
            csv.writer(file, lineterminator="\n").writerows([*kept, *known])
    except BaseException:
        for path in (listed, *beside.values()):
            path.unlink(missing_ok=True)
        raise
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        listed.replace(record)
        for name in stale:
            (root / name).unlink(missing_ok=True)
        for target, path in beside.items():
            path.replace(target)  # who runs keeps what is mapped
    finally:
        while signal.sigpending() & {*held}:
            signal.sigwait(held)  # it came too late to stop anything
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _earlier(rows: list[Row], root: Path) -> set[str]:
    """The extensions there are: those listed, and any other beside a source of ours."""
    listed = {row[0] for row in rows if row[0].endswith(".so")}
    sources = (row[0].removesuffix(".py") for row in rows if row[0].endswith(".py"))
    beside = (f"{stem}{suffix()}" for stem in sources)
    return listed | {name for name in beside if (root / name).exists()}


def _row(name: str, path: Path) -> Row:
    """A line of the list: sha256, as the wheel format has it."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=")
    return [name, f"sha256={digest.decode()}", str(path.stat().st_size)]
