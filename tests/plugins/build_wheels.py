"""Build wheels of source folders in this one process: python build_wheels.py OUT FOLDER..."""

from __future__ import annotations

import os
import sys

from hatchling.build import build_wheel


def main() -> None:
    out, *folders = map(os.path.abspath, sys.argv[1:])
    for folder in folders:
        os.chdir(folder)  # PEP 517: hooks run in the source folder
        build_wheel(out)


main()
