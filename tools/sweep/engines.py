#!/usr/bin/env python3
"""The tests of plugins-contrib beside real engines, too large for CI: PyTorch, Dask and Ray.

    python tools/sweep engines
    python tools/sweep engines --only ompy-torch --seeds 5

Makes an environment of its own (build/engines), with ompy, the engines and their plug-ins, and
keeps it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence

from tools.repository import ROOT

# the versions that the tests were written with
ENGINES = {
    "ompy-torch": "torch==2.13.*",
    "ompy-dask": "distributed==2026.8.*",
    "ompy-ray": "ray==2.60.*",
}
HOME = ROOT / "build" / "engines"
PLUGINS = ROOT / "plugins-contrib"
PYTHON = str(HOME / "bin" / "python")


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser("tools/sweep", "engines", description=__doc__)
    found.add_argument("--only", choices=ENGINES, action="append", help="default: all")
    found.add_argument("--seeds", type=int, default=2, help="of random calls beside gloo")
    return found


def passed(*command: str, folder: str = "", seeds: int = 0) -> bool:
    """Run one command, and say which."""
    print("==>", *command, flush=True)
    environment = {**os.environ, "OMPY_PURE": "1", "OMPY_TORCH_SEEDS": str(seeds)}
    done = subprocess.run(command, cwd=PLUGINS / folder, env=environment, check=False)
    return done.returncode == 0


def own_needs() -> list[str]:
    """What ompy itself needs: it is installed without."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needs: list[str] = project["dependencies"]
    return needs


def installed(chosen: Sequence[str]) -> bool:
    """Whether the environment is there, with the present ompy and plug-ins."""
    install = (sys.executable, "-m", "pip", "--python", str(HOME), "install", "-q")
    ours = (str(ROOT), *(str(PLUGINS / name) for name in chosen))
    return (
        (HOME.exists() or passed(sys.executable, "-m", "venv", "--without-pip", str(HOME)))
        and passed(*install, "hatchling>=1.27", *(ENGINES[name] for name in chosen))
        and passed(*install, "cloudpickle>=3", "pytest>=8.2", "pytest-timeout>=2.3")
        and passed(*install, "numpy>=1.26")  # torch's collectives of objects need it
        and passed(*install, "pytest-xdist>=3.6", *own_needs())
        and passed(*install, "--no-build-isolation", "--force-reinstall", "--no-deps", *ours)
    )


def main(words: Sequence[str] | None = None) -> int:
    options = parser().parse_args(words)
    chosen = options.only or list(ENGINES)
    if not installed(chosen):
        return 1
    pytest = (PYTHON, "-m", "pytest", "-q", "-n", "2", "-o", "timeout=900")
    ended = [passed(*pytest, folder=name, seeds=options.seeds) for name in chosen]
    return 0 if all(ended) else 1


if __name__ == "__main__":
    sys.exit(main())
