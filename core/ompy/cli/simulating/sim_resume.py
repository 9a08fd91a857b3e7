"""The file of a search that is not whole: `ompy sim --explore --resume FILE`."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ompy import outputs
from ompy.cli.simulating.sim import PROGRAM, tell_user
from ompy.mca.errors import UsageError


class SearchFile:
    """Where a search that a bound or Ctrl-C has stopped is kept."""

    def __init__(self, options: dict[str, Any]) -> None:
        """Of the program and the options of a command."""
        self._options = options
        self._resumes = bool(options["resume"])
        stem = Path(options["program"]).stem
        self._path = Path(options["resume"] or Path(options["keep"]) / f"{stem}-search.json")

    def read_modes(self) -> Mapping[bool, Mapping[str, Any]]:
        """What an earlier search has found, by mode; empty if there was none.

        Raises:
            UsageError: the file cannot be used.
        """
        from ompy.runtime.exploration.search_file import read_search

        if self._resumes and self._options["check"]:
            text = "what --check has found in the worlds before is not kept: leave out one of them"
            raise UsageError(f"--resume {self._path}: {text}")
        if not self._resumes or not self._path.exists():
            return {}
        try:
            found = read_search(str(self._path))
        except (OSError, ValueError) as problem:
            why = getattr(problem, "strerror", None) or problem
            text = f"{why}; remove the file to begin anew"
            raise UsageError(f"--resume {self._path}: {text}") from None
        for name, value in self._about().items():
            if found.about.get(name) != value:
                raise UsageError(
                    f"--resume {self._path}: it is a search of another {name}; remove the file to "
                    "begin anew"
                )
        return found.modes

    def write_modes(self, modes: Mapping[bool, Mapping[str, Any] | None]) -> None:
        """Keep a search that is not whole; take the file of one that is away."""
        from ompy.runtime.exploration.search_file import SavedSearch, text_of_search

        kept = {mode: plain for mode, plain in modes.items() if plain is not None}
        if len(kept) == 2 and not any(plain["left"] for plain in kept.values()):
            self.remove_file()
            return
        try:
            os.makedirs(self._path.parent, exist_ok=True)
            outputs.write_text(str(self._path), text_of_search(SavedSearch(self._about(), kept)))
        except OSError as problem:
            why = f"{problem.strerror}; the search is lost"
            tell_user(f"warning: {self._path}: {why}", "lost", "warning")
            return
        checked = " without --check" if self._options["check"] else ""
        text = f"the search is in {self._path}; go on{checked} by: {self._command()}"
        tell_user(text, "search", file=str(self._path))

    def remove_file(self) -> None:
        """The search has come to its end."""
        if self._resumes:
            with suppress(OSError):
                self._path.unlink()

    def _about(self) -> dict[str, Any]:
        options = self._options
        program = hashlib.sha256(Path(options["program"]).read_bytes()).hexdigest()
        return {
            "program": program,
            "number of ranks (-n)": options["ranks"],
            "--polls": options["polls"],
            "--depth": options["depth"],
            "--mca": [list(pair) for pair in options["mca"]],
            "arguments": list(options["arguments"]),
        }

    def _command(self) -> str:
        options = self._options
        words = [*PROGRAM.split(), "--explore", "-n", str(options["ranks"])]
        for name in ("polls", "depth", "worlds", "time"):
            if options[name] not in (None, options["defaults"][name]):
                words += [f"--{name}", str(options[name])]
        for pair in options["mca"]:
            words += ["--mca", *pair]
        words += ["--resume", str(self._path), options["program"], *options["arguments"]]
        return shlex.join(words)
