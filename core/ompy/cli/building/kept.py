"""Objects by what they were made from: one module changed is one module compiled.

A developer builds again and again with few changes. An object is found by the text that Cython
would read, or, where a declaration has changed that others read too, by the C that came out.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

UNUSED: Final = 14 * 86_400  # seconds; arbitrary: what no build has used for so long is removed


class KeptObjects:
    """A folder of objects, each under a digest of what it was made from.

    Several builds may use one folder at a time: a file appears whole, by being renamed.
    """

    def __init__(self, folder: Path, said: Iterable[str]) -> None:
        """Use a folder, made if need be, and remove from it what is long unused.

        Args:
            folder: the folder.
            said: what decides besides the texts: versions, the compiler's call.
        """
        self._folder = folder
        self._said = "\0".join(said)
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > UNUSED:
                    path.unlink()

    def key(self, *texts: str) -> str:
        """The digest of texts, with what decides besides."""
        return hashlib.sha256("\0".join((self._said, *texts)).encode()).hexdigest()[:32]

    def copy_to(self, target: Path, key: str) -> bool:
        """Copy an object to where it is wanted.

        Returns:
            Whether there is one.
        """
        try:
            shutil.copyfile(self._folder / key, target)
            os.utime(self._folder / key)
        except OSError:
            return False
        target.chmod(0o755)
        return True

    def keep(self, made: Path, *keys: str) -> None:
        """Keep an object under each of these digests."""
        for key in keys:
            begun = self._folder / f"{key}.{os.getpid()}"
            shutil.copyfile(made, begun)
            begun.rename(self._folder / key)
