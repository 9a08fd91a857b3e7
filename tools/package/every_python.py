#!/usr/bin/env python3
"""Build and try the wheel with each Python that this machine has.

    python tools/package every_python            every version of pyproject.toml that is on the PATH
    python tools/package every_python PYTHON...  these interpreters

Each gets an environment of its own in build/pythons, with what a build requires, and runs
`try_wheel.py` there. Ends with a line for each version: what came of it, or that it is not here.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
SETTINGS: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSION: Final = re.compile(r"Programming Language :: Python :: (3\.\d+)")
ASK: Final = """
import sys, sysconfig
free = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
print("%d.%d%s" % (*sys.version_info[:2], free))
"""


def versions() -> list[str]:
    """The versions that ompy is made for, as its classifiers have them."""
    found = map(VERSION.fullmatch, SETTINGS["project"]["classifiers"])
    return [match[1] for match in found if match]


def version_of(python: str) -> str:
    """Its version, with a `t` if it is a free-threaded one; empty if it does not run."""
    path = shutil.which(python)
    if path is None:
        return ""
    asked = subprocess.run([path, "-c", ASK], capture_output=True, text=True, check=False)
    return asked.stdout.strip()  # a shim of a version manager may lead nowhere


def tried(python: str, version: str) -> str:
    """Build and try the wheel with an interpreter. Returns what came of it."""
    if version not in versions():
        return f"ompy is made for {', '.join(versions())}"
    home = ROOT / "build" / "pythons" / version
    shutil.rmtree(home, ignore_errors=True)
    inside = str(home / "bin" / "python")
    needed = SETTINGS["build-system"]["requires"]
    install = [inside, "-m", "pip", "install", "-q"]
    steps = (
        [str(shutil.which(python)), "-m", "venv", str(home)],
        [*install, *needed, "editables"],
        [*install, "--no-build-isolation", "-e", str(ROOT)],
        [inside, "tools/package", "try_wheel"],
    )
    for step in steps:
        print(f"$ {' '.join(step)}", flush=True)
        if subprocess.run(step, cwd=ROOT, check=False).returncode:
            return f"FAILED: {' '.join(step)}"
    return "passed"


def main() -> None:
    """Try them; exit 1 when one failed, or when none is here."""
    wanted = sys.argv[1:] or [f"python{version}" for version in versions()]
    outcomes = {}
    for python in wanted:
        version = version_of(python)
        outcomes[python] = tried(python, version) if version else "is not on this machine"
    print("\n".join(f"{python}: {outcome}" for python, outcome in outcomes.items()))
    said = list(outcomes.values())
    absent = "is not on this machine"
    right = "passed" in said and all(one in ("passed", absent) for one in said)
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
