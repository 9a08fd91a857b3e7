"""Compile the hot modules into the wheel, where a C compiler is there; a pure wheel where not.

`OMPY_PURE=1` builds a pure one in any case. An editable installation stays interpreted: its sources
are there to be changed. `OMPY_BUILD_CACHE` names a folder where what was compiled is kept, and
taken from when the same is to be compiled again. Protocol models, and what drives a library that is
not on this machine, are compiled only with `OMPY_BUILD_ALL=1`, for wheels that others install;
there, what cannot be compiled is an error.
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
        """Compile, and say what the wheel then is; pure, and why, where that goes wrong."""
        if version == "editable" or os.environ.get("OMPY_PURE", "") not in ("", "0"):
            return
        self._folder = tempfile.TemporaryDirectory(prefix="ompy-build-")
        tree = Path(self._folder.name).resolve() / "tree"
        core = Path(self.root, "core")
        sys.path.insert(0, str(core))
        try:
            from ompy.cli.building import cached, compiling, modules

            compiling.probe_compiler()
            packages = Path(self.root, "components", "ompy_components")
            compiling.copy_tree([core / "ompy", packages], tree)
            without = modules.left_out_here()
            made = cached.build_or_copy(
                tree, os.environ.get("OMPY_BUILD_CACHE", ""), without=without
            )
        except (Exception, SystemExit) as problem:
            if os.environ.get("OMPY_BUILD_ALL", "") not in ("", "0"):
                raise
            self.app.display_warning(f"the hot modules stay interpreted: {problem}")
            return
        finally:
            sys.path.remove(str(core))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for path in made:
            build_data["force_include"][str(path)] = str(path.relative_to(tree))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was built beside the wheel."""
        folder = getattr(self, "_folder", None)
        if folder is not None:
            folder.cleanup()
