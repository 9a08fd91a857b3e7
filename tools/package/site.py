#!/usr/bin/env python3
"""Build the site: the pages of docs/, the READMEs, and a reference made of the code.

    python tools/package site              into build/site, from nothing; a warning is an error
    python tools/package site --again      only what has changed, for who writes a page

It wants `pip install -e '.[docs]'`. The site's first page is build/site/index.html. Links between
pages, to headings and to files are checked; links to other hosts are not, as nothing is fetched.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
WANTED: Final = ("sphinx", "myst_parser", "furo")
USAGE: Final = 2  # exit code, as of argparse


def main() -> None:
    """Do it; exit 1 when a page has a warning."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--again", action="store_true", help="build only what has changed")
    parser.add_argument("--to", type=Path, default=ROOT / "build" / "site", help="where to")
    given = parser.parse_args()
    missing = [name for name in WANTED if importlib.util.find_spec(name) is None]
    if missing:
        print(f"site: {', '.join(missing)} is missing: pip install -e '.[docs]'", file=sys.stderr)
        sys.exit(USAGE)
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-j", "2"]
    command += ["-c", str(ROOT / "docs")] + ([] if given.again else ["-E", "-a"])
    environment = {key: text for key, text in os.environ.items() if not key.startswith("OMPY_MCA_")}
    done = subprocess.run([*command, str(ROOT), str(given.to)], env=environment, check=False)
    if done.returncode == 0:
        print(f"the site is {given.to / 'index.html'}")
    sys.exit(1 if done.returncode else 0)


if __name__ == "__main__":
    main()
