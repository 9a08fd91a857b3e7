"""mpi4py's own source distribution, fetched by pip when it is needed; nothing of it is kept."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VERSION = "4.1.2"  # the version that everything was measured with
CACHE = Path(__file__).resolve().parents[3] / "build" / "peer-sources"


class Unavailable(Exception):
    """There is no package index to fetch from; the text says what pip said."""


def fetch() -> Path:
    """The unpacked distribution; fetched once, then taken from `build/`.

    Raises:
        Unavailable: it is not here and cannot be had.
    """
    folder = CACHE / f"mpi4py-{VERSION}"
    if folder.exists():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as fresh:
        _unpack(fresh)
        try:
            os.rename(Path(fresh, folder.name), folder)  # whole, or not there
        except OSError:
            if not folder.exists():  # another process was not quicker
                raise
    return folder


def _unpack(where: str) -> None:
    """Download and unpack."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", where]
    command += ["--no-binary", "mpi4py", f"mpi4py=={VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    archive = Path(where, f"mpi4py-{VERSION}.tar.gz")
    if not archive.exists():
        raise Unavailable(done.stderr.strip().rpartition("\n")[2] or "pip said nothing")
    with tarfile.open(archive) as opened:
        opened.extractall(where, filter="data")
