#!/usr/bin/env python3
"""The tests of plugins-contrib/ompy-torch beside a real PyTorch, which is too large for CI.

    python tools/sweep torch_backend
    python tools/sweep torch_backend --torch 'torch>=2.13' --seeds 5

Makes an environment of its own (build/torch), with ompy, the plug-in and that torch, and keeps it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence

from tools.repository import ROOT

TORCH = "torch==2.13.*"  # the version the tests were written with
HOME = ROOT / "build" / "torch"
PLUGIN = ROOT / "plugins-contrib" / "ompy-torch"


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser("tools/sweep", "torch_backend", description=__doc__)
    found.add_argument("--torch", default=TORCH, help="what pip is asked for (%(default)s)")
    found.add_argument("--seeds", type=int, default=2, help="of random calls beside gloo")
    return found


def passed(*command: str, seeds: int = 0) -> bool:
    """Run one command in the plug-in's folder."""
    print("==>", *command, flush=True)
    environment = {**os.environ, "OMPY_PURE": "1", "OMPY_TORCH_SEEDS": str(seeds)}
    return subprocess.run(command, cwd=PLUGIN, env=environment, check=False).returncode == 0


def main(words: Sequence[str] | None = None) -> int:
    options = parser().parse_args(words)
    python = str(HOME / "bin" / "python")
    install = (sys.executable, "-m", "pip", "--python", str(HOME), "install", "-q")
    wanted = (str(ROOT), f"{PLUGIN}[test]")
    ready = (
        (HOME.exists() or passed(sys.executable, "-m", "venv", "--without-pip", str(HOME)))
        and passed(*install, "hatchling>=1.27", options.torch)
        and passed(*install, "--no-build-isolation", "--force-reinstall", "--no-deps", *wanted)
        and passed(*install, "pytest>=8.2", "pytest-timeout>=2.3", "pytest-xdist>=3.6")
    )
    pytest = (python, "-m", "pytest", "-q", "-n", "2", "-o", "timeout=900")
    return 0 if ready and passed(*pytest, seeds=options.seeds) else 1


if __name__ == "__main__":
    sys.exit(main())
