"""Compile the hot modules into the wheel, where a C compiler is there; a pure wheel where not.

`OMPY_PURE=1` builds a pure one in any case. An editable installation stays interpreted: its sources
are there to be changed.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileHook(BuildHookInterface):
    """Adds an extension beside each hot module."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say what the wheel then is; what goes wrong is said and changes nothing."""
        if version == "editable" or os.environ.get("OMPY_PURE", "") not in ("", "0"):
            return
        sys.path.insert(0, str(Path(self.root, "tools")))
        self._folder = tempfile.TemporaryDirectory(prefix="ompy-build-")
        try:
            from compile_hot import build, probe

            folder = Path(self._folder.name)
            probe(folder)
            made = build(folder / "tree")
        except (Exception, SystemExit) as problem:
            self.app.display_warning(f"the hot modules stay interpreted: {problem}")
            return
        finally:
            sys.path.pop(0)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for path in made:
            inside = str(path.relative_to(folder / "tree"))
            build_data["force_include"][str(path)] = inside

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was built beside the wheel."""
        folder = getattr(self, "_folder", None)
        if folder is not None:
            folder.cleanup()
